import type { Contract } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { Call, Handler, Reply } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import { wholeOf } from "../envelope/json.ts";

/**
 * Calls that wait or are out, with their replies, by what tells most of them apart: so one of 512 costs no more than one alone.
 *
 * It is a plain object without a prototype, and no Map. A Map from which entries go as fast as others come is copied again and again, and
 * each table that V8 gave up keeps the next one alive, with all that it holds, until the whole heap is collected: with eight callers a
 * third of all objects outlived their call so, and V8 took pauses of 6 ms to move them.
 */
export class InFlight {
  /** Those of one key follow each other, in the order in which they came: a call is joined to the first one like it. */
  readonly #byKey: Record<string, OutCall | undefined> = Object.create(null);

  /** The identical call that waits or is out; undefined where there is none. */
  find(call: Call): OutCall | undefined {
    let each = this.#byKey[nameOf(call)];
    while (each !== undefined && !isSame(each.call, call)) each = each.next;
    return each;
  }

  add(entry: OutCall): void {
    const name = nameOf(entry.call);
    let last = this.#byKey[name];
    if (last === undefined) {
      this.#byKey[name] = entry;
      return;
    }
    while (last.next !== undefined) last = last.next;
    last.next = entry;
  }

  remove(entry: OutCall): void {
    const name = nameOf(entry.call);
    const { next } = entry;
    entry.next = undefined;
    let each = this.#byKey[name];
    if (each === entry) {
      if (next === undefined) delete this.#byKey[name];
      else this.#byKey[name] = next;
      return;
    }
    while (each !== undefined && each.next !== entry) each = each.next;
    if (each !== undefined) each.next = next;
  }
}

/** What has no key stands under the empty one. */
const nameOf = ({ key = "" }: Call) => key;

interface OutCall {
  readonly call: Call;
  readonly reply: Promise<Reply>;
  /** Its place in the order of all that is sent, once it is sent. */
  readonly order: () => number | undefined;
  /** The next one of the same key, that came later. */
  next: OutCall | undefined;
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
      // Before its own caller goes on from the answer.
      const noteOrder = () => {
        const order = same.order();
        if (order !== undefined) call.onSent?.(order);
      };
      same.reply.then(noteOrder, noteOrder);
      return same.reply.then(asJoined, rejectJoined);
    }
    // What has no effect has no place in that order.
    const entry: OutCall =
      effect === "none" ? { call, reply: handler(call), order: noOrder, next: undefined } : ordered(handler, call);
    inFlight.add(entry);
    const end = () => inFlight.remove(entry);
    entry.reply.then(end, end);
    return entry.reply;
  };
}

/** A call with its place in the order of all that is sent, from when it is sent. */
function ordered(handler: Handler, call: Call): OutCall {
  let order: number | undefined;
  const onSent = (given: number) => {
    order = given;
    call.onSent?.(given);
  };
  return { call, reply: handler({ ...call, onSent }), order: () => order, next: undefined };
}

const noOrder = () => undefined;

function isSame(one: Call, other: Call): boolean {
  return (
    one.contract === other.contract &&
    one.route === other.route &&
    one.key === other.key &&
    // What the terminal was asked before the other holds only while nothing is sent under its key, which the one doesn't look at.
    (other.askedAtOrder === undefined || one.askedAtOrder === other.askedAtOrder) &&
    wholeOf(one.body).equals(wholeOf(other.body))
  );
}

const asJoined = (reply: Reply): Reply => ({ ...reply, isJoined: true });

function rejectJoined(error: unknown): never {
  if (error instanceof Fault) throw new Fault(error.kind, error.message, { ...error.details, isJoined: true });
  throw error;
}
