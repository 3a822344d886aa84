import type { Contract } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { Call, Handler, Reply } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import { bytesOf } from "../core/pieces.ts";
import { wholeOf } from "../envelope/json.ts";

/** So many lists are walked a little instead of one that holds all: with 512 calls a look-up costs no more than with eight. */
const listsCount = 256;

/**
 * Calls that wait or are out, with their replies, in lists by a hash of their keys, each in the order in which its calls came: a call is
 * joined to the first one like it.
 *
 * They are lists, and no Map. A Map whose entries go as fast as others come is copied again and again, with all that it holds; and what
 * names the fields of an object, V8 keeps in one table for the whole process, which takes longer than to walk.
 */
export class InFlight {
  readonly #lists: readonly OutCall[][] = Array.from({ length: listsCount }, () => []);

  /** The identical call that waits or is out; undefined where there is none. */
  find(call: Call): OutCall | undefined {
    for (const each of this.#listOf(call)) if (isSame(each.call, call)) return each;
    return undefined;
  }

  /**
   * Whether one may be identical to a call of which only its route and its body's length are known; of a form only its two values stay.
   * @param bodyBytes undefined where that isn't known either.
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

/** FNV-1a of all of it: keys may differ in their beginning, their middle or their end. */
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
 * A handler for which identical calls that come while the first waits or is out are one: same route, same bytes, one exchange, and
 * each caller gets its answer. A double click at a till is then one sale. What has an effect is joined only where it carries a key: two
 * sales without one may be two sales.
 * @param inFlight Of the handler whose place it takes, so that a call is joined to one that came before.
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
