import type { Call, Handler, Reply } from "../../core/call.ts";
import { Fault } from "../../core/fault.ts";
import type { Presence } from "../../core/presence.ts";
import type { Emulator } from "./emulator.ts";
import type { WireFault } from "./faults/wire-fault.ts";

/**
 * The emulator over HTTP. No frame can be broken here, since TCP sees to that: instead of a broken answer, HTTP has a connection that is
 * cut without one. Noise, pieces and copies don't exist here, and change nothing.
 */

/** Milliseconds an answer that never comes keeps its connection at most: longer than any till waits for a sale by card. */
const noAnswerMs = 300_000;

/** Milliseconds an answer waits for the next request at most: a till that asks only once it has its answer never sends one. */
const afterNextMs = 60_000;

/** The emulator's handler for HTTP listeners. */
export interface HttpEndpoint {
  /** One handler for all services: an answer may wait for the next request of any of them. */
  readonly handler: Handler;
  /**
   * Holds nothing back any more, so that the listeners can close: a held answer goes out, or its connection is cut if it was to have none;
   * later calls likewise.
   */
  stop(): void;
}

export function httpEndpoint(emulator: Pick<Emulator, "answer">): HttpEndpoint {
  const held = new HeldAnswers();
  const handler = async (call: Call): Promise<Reply> => {
    held.next();
    const { reply, fault } = emulator.answer(call);
    if (fault !== undefined) await applyFault(fault, call.caller, held);
    return reply;
  };
  return { handler, stop: () => held.stop() };
}

/** Resolves when the answer may go out; if the connection is gone by then, it goes nowhere. */
async function applyFault(fault: WireFault, caller: Presence, held: HeldAnswers): Promise<void> {
  switch (fault.kind) {
    case "late":
      return held.hold(fault.ms, caller);
    case "after-next":
      return held.hold(afterNextMs, caller, true);
    case "no-answer":
      await held.hold(noAnswerMs, caller);
      return cutConnection(caller);
    case "corrupt":
    case "truncated":
    case "wrong-length":
    case "unplug":
      return cutConnection(caller);
    case "pieces":
    case "noise":
    case "twice":
    case "reserved-crc":
      return;
  }
}

/** Answers that are held back. */
class HeldAnswers {
  readonly #ends = new Set<() => void>();
  #untilNext: (() => void) | undefined;
  #stopped = false;

  /**
   * Resolves after so many milliseconds, or as soon as the caller has left.
   * @param untilNext Resolves as soon as the next request comes, too.
   */
  hold(ms: number, caller: Presence, untilNext = false): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#ends.delete(end);
        caller.offLeave(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#ends.add(end);
      caller.onLeave(end);
      if (untilNext) this.#untilNext = end;
      if (caller.gone || this.#stopped) end();
    });
  }

  /** A request came. */
  next(): void {
    this.#untilNext?.();
    this.#untilNext = undefined;
  }

  stop(): void {
    this.#stopped = true;
    for (const end of this.#ends) end();
  }
}

/**
 * Ends the caller's connection, and resolves once it is gone, so that the log has it.
 * @throws Fault `broken` if there is no connection: it stands for the answer that got lost.
 */
function cutConnection(caller: Presence): Promise<void> {
  return new Promise((resolve, reject) => {
    caller.onLeave(resolve);
    // A caller that left may have shut down its own side alone, and would be answered.
    caller.hangUp?.();
    if (caller.gone) resolve();
    else if (caller.hangUp === undefined)
      reject(new Fault("broken", "Cannot answer: the emulator dropped the answer, as its fault says"));
  });
}
