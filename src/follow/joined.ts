import type { Contract } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { Call, Handler, Reply } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import { wholeOf } from "../envelope/json.ts";

/** Calls that wait or are out, with their replies, by what tells most of them apart: so one of 512 costs no more than one alone. */
export type InFlight = Map<string | undefined, OutCall>;

interface OutCall {
  readonly call: Call;
  readonly reply: Promise<Reply>;
  /** Its place in the order of all that is sent, once it is sent. */
  readonly order: () => number | undefined;
  /** Another one of the same key, that came later. */
  next: OutCall | undefined;
}

/**
 * A handler for which identical calls that come while the first waits or is out are one: same route, same bytes, one exchange, and
 * each caller gets its answer. A double click at a till is then one sale. What has an effect is joined only where it carries a key: two
 * sales without one may be two sales.
 * @param inFlight Of the handler whose place it takes, so that a call is joined to one that came before.
 */
export function joined(contract: Contract, handler: Handler, inFlight: InFlight = new Map()): Handler {
  return (call) => {
    const effect = routeOf(contract, call.route)?.effect;
    if (effect === undefined || (effect !== "none" && call.key === undefined)) return handler(call);
    let last: OutCall | undefined;
    let same = inFlight.get(call.key);
    while (same !== undefined && !isSame(same.call, call)) {
      last = same;
      same = same.next;
    }
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
    if (last === undefined) inFlight.set(call.key, entry);
    else last.next = entry;
    const end = () => leave(inFlight, entry);
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

/** It has ended: the others of its key close up. */
function leave(inFlight: InFlight, entry: OutCall): void {
  const { next } = entry;
  const { key } = entry.call;
  const first = inFlight.get(key);
  if (first !== entry) {
    for (let each = first; each !== undefined; each = each.next) if (each.next === entry) each.next = next;
  } else if (next === undefined) inFlight.delete(key);
  else inFlight.set(key, next);
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
