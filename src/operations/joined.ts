import type { Contract } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { Call, Handler, Reply } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import { bytesOf } from "../core/pieces.ts";
import { wholeOf } from "../envelope/json.ts";

/**
 * Calls that wait or are out, with their replies, in the order in which they came: a call is joined to the first one like it. A line's
 * queue has a cap, so there are some hundreds at most.
 */
export class InFlight {
  readonly #calls: OutCall[] = [];

  /** The identical call that waits or is out; undefined if there is none. */
  find(call: Call): OutCall | undefined {
    return this.#calls.find((each) => isSame(each.call, call));
  }

  /**
   * True if a call may be identical to one of which only the route and the body's length are known; of a form only its two values stay.
   * @param bodyBytes undefined if that isn't known either.
   */
  mayHave(route: string, bodyBytes: number | undefined): boolean {
    const isShort = ({ body }: Call) => bodyBytes === undefined || bytesOf(body) <= bodyBytes;
    return this.#calls.some(({ call }) => call.route === route && isShort(call));
  }

  add(entry: OutCall): void {
    this.#calls.push(entry);
  }

  remove(entry: OutCall): void {
    const index = this.#calls.indexOf(entry);
    if (index !== -1) this.#calls.splice(index, 1);
  }
}

interface OutCall {
  readonly call: Call;
  readonly reply: Promise<Reply>;
}

/**
 * Makes a handler that joins identical calls: those that come while the first waits or is out get its answer, by one exchange (same route,
 * same bytes). A double click at a till is then one sale. A call with an effect is joined only if it carries a key: two sales without one
 * may be two sales.
 * @param inFlight Calls of the handler that this one replaces, so that a call is joined to one that came before.
 */
export function joined(contract: Contract, handler: Handler, inFlight = new InFlight()): Handler {
  return (call) => {
    const effect = routeOf(contract, call.route)?.effect;
    if (effect === undefined || (effect !== "none" && call.key === undefined)) return handler(call);
    const same = inFlight.find(call);
    if (same !== undefined) {
      same.call.caller.join(call.caller);
      return same.reply.then(asJoined, rejectJoined);
    }
    const entry: OutCall = { call, reply: handler(call) };
    inFlight.add(entry);
    const end = () => inFlight.remove(entry);
    entry.reply.then(end, end);
    return entry.reply;
  };
}

function isSame(one: Call, other: Call): boolean {
  return (
    one.key === other.key &&
    one.contract === other.contract &&
    one.route === other.route &&
    wholeOf(one.body).equals(wholeOf(other.body))
  );
}

const asJoined = (reply: Reply): Reply => ({ ...reply, isJoined: true });

function rejectJoined(error: unknown): never {
  if (error instanceof Fault) throw new Fault(error.kind, error.message, { ...error.details, isJoined: true });
  throw error;
}
