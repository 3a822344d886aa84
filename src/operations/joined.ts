import type { Contract } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { Call, Handler, Reply } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import { bytesOf } from "../core/pieces.ts";
import { wholeOf } from "../envelope/json.ts";

/** With so many short lists a look-up costs no more for 512 calls than for eight. */
const listsCount = 256;

/**
 * Calls that wait or are out, with their replies, in lists by a hash of their keys, each in the order in which its calls came: a call is
 * joined to the first one like it.
 *
 * Lists instead of a Map: V8 copies a Map whose entries come and go again and again, with all that it holds, and an object's field names go
 * into one table of the process, which is slower than to walk.
 */
export class InFlight {
  readonly #lists: readonly OutCall[][] = Array.from({ length: listsCount }, () => []);

  /** The identical call that waits or is out; undefined if there is none. */
  find(call: Call): OutCall | undefined {
    for (const each of this.#listOf(call)) if (isSame(each.call, call)) return each;
    return undefined;
  }

  /**
   * True if a call may be identical to one of which only the route and the body's length are known; of a form only its two values stay.
   * @param bodyBytes undefined if that isn't known either.
   */
  mayHave(route: string, bodyBytes: number | undefined): boolean {
    const isShort = ({ body }: Call) => bodyBytes === undefined || bytesOf(body) <= bodyBytes;
    return this.#lists.some((list) => list.some(({ call }) => call.route === route && isShort(call)));
  }

  add(entry: OutCall): void {
    this.#listOf(entry.call).push(entry);
  }

  remove(entry: OutCall): void {
    const list = this.#listOf(entry.call);
    const index = list.indexOf(entry);
    if (index !== -1) list.splice(index, 1);
  }

  #listOf({ key = "" }: Call): OutCall[] {
    return this.#lists[hashOf(key) % listsCount] ?? [];
  }
}

/** FNV-1a of the whole key: keys may differ in their beginning, their middle or their end. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 16)) >>> 0;
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
