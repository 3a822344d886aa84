import type { Reply } from "../core/call.ts";
import { Fault, nothingSent } from "../core/fault.ts";
import { Presence } from "../core/presence.ts";
import { textOf } from "../envelope/json.ts";
import { emptySummary } from "../settle/call-result.ts";
import { Pauses } from "../settle/clock.ts";
import { writeExactObject } from "../settle/exact-json.ts";
import { nextStep } from "../settle/machine.ts";
import { freshState, type SettleState } from "../settle/state.ts";
import type { AskedCall } from "./asked-call.ts";
import type { Asking } from "./asking.ts";
import { standingOf } from "./known.ts";
import type { Operations } from "./operations.ts";
import { answeredOf } from "./question.ts";
import type { Waiting } from "./waiting.ts";

/** The conditions for sending a follow-up: everything under its key has ended, and it is known what the terminal has there. */

/**
 * Milliseconds for which a question's turn is waited for at least, since others are asked on its line: as for one answer (bank.md, 30 s).
 */
const turnMs = 30_000;

/** Milliseconds beyond its caller's wait for two questions more, once the question before a sending was answered by "there is none". */
const countMs = 15_000;

/** Until when the callers wait, and how many questions were asked for them. */
export interface Waited {
  readonly untilMs: number;
  polls: number;
}

export class Before {
  readonly #operations: Operations;
  readonly #asking: Asking;
  readonly #waiting: Waiting;

  constructor(operations: Operations, asking: Asking, waiting: Waiting) {
    this.#operations = operations;
    this.#asking = asking;
    this.#waiting = waiting;
  }

  /** @throws Fault if an operation under the key hasn't ended within the callers' wait. */
  async ended(asked: AskedCall, waited: Waited): Promise<void> {
    const { call, key, route } = asked;
    const standing = () => standingOf(this.#operations.under(call.service, key));
    for (const former of standing()) {
      // The answer to its own sending may prove more than any question.
      await this.#waiting.flightEnded(former, waited.untilMs);
      if (former.endedMs === undefined || !this.#asking.isOpen(former)) continue;
      const watch = this.#asking.watch(former, call.requestId);
      await this.#waiting.until(watch.over, waited.untilMs);
      this.#asking.unwatch(former, watch);
      waited.polls += watch.polls;
    }
    const isOpen = standing().some((each) => this.#operations.knownOf(each).end === undefined);
    if (isOpen) throw this.#tooLong(asked, `an operation with its ${route.key} has not ended yet`);
  }

  /**
   * Asks what the terminal has under the key.
   * @returns "" for nothing; the terminal's refusal if it refuses to say.
   * @throws Fault if that isn't known within the callers' wait.
   */
  async known(asked: AskedCall, waited: Waited): Promise<string | Reply> {
    const { contract, rules, route, names } = asked;
    const { key: keyField = "", polling } = route;
    const operation = { contract, rules, keyField, key: names[keyField], asks: true };
    const pauses = new Pauses(polling?.intervalMs);
    let state: SettleState = { ...freshState, phase: "baseline", baseline: undefined, isSentOnce: true };
    for (;;) {
      const ending = await this.#ask(asked, waited);
      if (ending instanceof Fault && ending.outcome === "not-sent") throw ending;
      const answered = ending instanceof Fault ? undefined : answeredOf(textOf(ending.payload));
      const step = nextStep(operation, state, answered ?? { outcome: "unknown", summary: emptySummary }, 0);
      if ("verdict" in step) {
        if (ending instanceof Fault) throw ending;
        return ending;
      }
      state = step.state;
      if (state.phase === "ready") return state.baseline ?? "";
      const why =
        ending instanceof Fault
          ? `the terminal did not say what it has under its ${keyField}`
          : `an operation with its ${keyField} has not ended yet`;
      const untilMs = waited.untilMs + (state.absents > 0 ? countMs : 0);
      const isOver = this.#waiting.nowMs >= untilMs || this.#waiting.isStopped;
      if (isOver) throw this.#tooLong(asked, why);
      await this.#waiting.sleep(pauses.nextMs(step));
    }
  }

  async #ask(asked: AskedCall, waited: Waited): Promise<Reply | Fault> {
    const { call, names } = asked;
    const { route = "", keys = [] } = asked.route.polling ?? {};
    const text = writeExactObject(Object.fromEntries(keys.map((name) => [name, names[name]])));
    const asker = new Presence();
    let ending: Reply | Fault | undefined;
    const question = this.#asking.question(call.service, route, text, {
      requestId: call.requestId,
      about: call.callId ?? call.requestId,
      caller: asker,
    });
    const answered = question.then((each) => {
      ({ ending } = each);
    });
    await this.#waiting.until(answered, Math.max(waited.untilMs, this.#waiting.nowMs + turnMs));
    asker.leave();
    waited.polls++;
    return ending ?? this.#tooLong(asked, "the questions about other operations on its line take too long");
  }

  #tooLong({ route }: AskedCall, state: string): Fault {
    const why = this.#waiting.isStopped ? "posline is shutting down" : `${state}: send the same call again`;
    const reason = this.#waiting.isStopped ? "stopping" : "waited-too-long";
    return new Fault("unavailable", `Cannot send ${route.path}: ${why}. ${nothingSent}`, { reason });
  }
}
