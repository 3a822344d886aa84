import type { Contract } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { Call, Handler, Reply } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import { wholeOf } from "../envelope/json.ts";

/** A call that waits or is out, and its reply. */
interface InFlight {
  readonly call: Call;
  readonly reply: Promise<Reply>;
}

/**
 * A handler for which identical calls that come while the first waits or is out are one: same route, same bytes, one exchange, and
 * each caller gets its answer. A double click at a till is then one sale. What has an effect is joined only where it carries a key: two
 * sales without one may be two sales.
 */
export function joined(contract: Contract, handler: Handler): Handler {
  // A line has a few calls in flight at most, so looking through them costs less than a digest of each.
  const inFlight: InFlight[] = [];
  const remove = (entry: InFlight) => {
    inFlight.splice(inFlight.indexOf(entry), 1);
  };
  return (call) => {
    const effect = routeOf(contract, call.route)?.effect;
    if (effect === undefined || (effect !== "none" && call.key === undefined)) return handler(call);
    const same = inFlight.find((each) => isSame(each.call, call));
    if (same !== undefined) {
      same.call.caller.join(call.caller);
      return same.reply.then(asJoined, rejectJoined);
    }
    const entry = { call, reply: handler(call) };
    inFlight.push(entry);
    const end = () => remove(entry);
    entry.reply.then(end, end);
    return entry.reply;
  };
}

function isSame(one: Call, other: Call): boolean {
  return one.route === other.route && one.key === other.key && wholeOf(one.body).equals(wholeOf(other.body));
}

const asJoined = (reply: Reply): Reply => ({ ...reply, isJoined: true });

function rejectJoined(error: unknown): never {
  if (error instanceof Fault) throw new Fault(error.kind, error.message, { ...error.details, isJoined: true });
  throw error;
}
