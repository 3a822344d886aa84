import type { Reply } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { Fault, nothingSent } from "../core/fault.ts";
import { type Ids, isNothing } from "../core/followed.ts";
import { Presence } from "../core/presence.ts";
import { textOf } from "../envelope/json.ts";
import { Pauses } from "../settle/clock.ts";
import { writeExactObject } from "../settle/exact-json.ts";
import { after, type Known, unknownYet } from "../settle/judge.ts";
import { saidToQuestion } from "../settle/said.ts";
import type { AskedCall } from "./asked-call.ts";
import type { Asking } from "./asking.ts";
import type { Operations } from "./operations.ts";
import { answeredOf, errorText } from "./question.ts";
import { mayHaveBegun, unfailed } from "./sending.ts";
import type { Waiting } from "./waiting.ts";

/** The conditions for sending a follow-up: everything under its key has ended, and it is known what the terminal has there. */

/** The callers that wait for a call to be sent, and how many questions were asked for them. */
export interface Waited {
  readonly caller: Presence;
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

  /** @throws Fault if an operation under the key hasn't ended while the callers wait. */
  async ended(asked: AskedCall, waited: Waited): Promise<void> {
    const { call, key, route } = asked;
    const standing = () => unfailed(this.#operations.under(call.service, key));
    for (const former of standing()) {
      // The answer to its own sending may prove more than any question.
      await this.#waiting.flightEnded(former, () => waited.caller.gone);
      if (former.endedMs === undefined || !this.#asking.isOpen(former)) continue;
      const watch = this.#asking.watch(former, call.requestId);
      await this.#waiting.whilePresent(watch.over, waited.caller);
      this.#asking.unwatch(former, watch);
      waited.polls += watch.polls;
    }
    const isOpen = standing().some((each) => this.#operations.togetherOf(each).end === undefined);
    if (isOpen) throw this.#tooLong(asked, `an operation with its ${route.key} has not ended yet`);
  }

  /**
   * Asks what the terminal has under the key.
   * @returns `{}` for nothing.
   * @throws Fault if the terminal refuses to say it, or doesn't while the callers wait.
   */
  async known(asked: AskedCall, waited: Waited): Promise<Ids> {
    const operation = { ...asked.operation, asksFirst: true };
    const pauses = new Pauses(asked.route.polling?.intervalMs);
    let known = unknownYet(operation);
    for (;;) {
      const askedMs = nowMs();
      const ending = await this.#ask(asked, waited);
      if (ending instanceof Fault && ending.outcome === "not-sent") throw ending;
      const answered = ending instanceof Fault ? undefined : answeredOf(textOf(ending.payload));
      if (answered !== undefined)
        known = after(operation, known, { is: "told", atMs: askedMs, said: saidToQuestion(operation, answered, undefined) });
      const said =
        answered === undefined
          ? "gave no answer to that"
          : `answered that with ${answered.success ? "success" : errorText(answered.summary)}`;
      if (known.end !== undefined) throw this.#cannotAsk(asked, said);
      if (known.before !== undefined) return this.#notItsOwn(asked, known.before);
      await this.#waiting.whilePresent(this.#waiting.sleep(pauses.nextMs({ pause: "interval" })), waited.caller);
      if (waited.caller.gone || this.#waiting.isStopped) throw this.#tooLong(asked, this.#openWhy(asked, known, said));
    }
  }

  /** @throws Fault if what the terminal has may be an earlier sending of the same call, of which a person has recorded that it failed. */
  #notItsOwn(asked: AskedCall, before: Ids): Ids {
    const under = this.#operations.under(asked.call.service, asked.key);
    const begun = under.filter(mayHaveBegun);
    const areOwn = begun.every(({ sent }) => sent.digest === asked.digest && sent.route === asked.route.path);
    if (isNothing(before) || begun.length === 0 || unfailed(under).length > 0 || !areOwn) return before;
    const { path, key } = asked.route;
    const state = `it was sent before, and the terminal has something under its ${key}, which may be that: look at the terminal`;
    throw new Fault("reused", `Cannot send ${path}: ${state}, and use a new ${key} for another operation. Nothing was sent`);
  }

  #openWhy({ contract, route, rules }: AskedCall, { nones }: Known, said: string): string {
    if (nones === 0) return `the terminal is asked first what it has under its ${route.key}, and ${said}`;
    const more = rules.absentsMin - nones;
    return `before, ${contract.service} must say ${more} more times that it has nothing under its ${route.key}, which takes longer than the wait`;
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
    await this.#waiting.whilePresent(answered, waited.caller);
    asker.leave();
    waited.polls++;
    return (
      ending ??
      this.#tooLong(asked, `the terminal is asked first what it has under its ${asked.route.key}, and its answer is awaited`)
    );
  }

  /** The fault of a call that isn't sent because the terminal refuses the question before. Of the call itself that says nothing. */
  #cannotAsk({ route }: AskedCall, said: string): Fault {
    const state = `the terminal must be asked first what it has under its ${route.key}, and ${said}: fix what the terminal says`;
    return new Fault("unavailable", `Cannot send ${route.path}: ${state}. ${nothingSent}`, { reason: "cannot-ask" });
  }

  #tooLong({ route }: AskedCall, state: string): Fault {
    const why = this.#waiting.isStopped
      ? "posline is shutting down"
      : `${state}: send the same call again, or with a longer wait`;
    const reason = this.#waiting.isStopped ? "stopping" : "waited-too-long";
    return new Fault("unavailable", `Cannot send ${route.path}: ${why}. ${nothingSent}`, { reason });
  }
}
