import type { Call, Handler, ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
import { Presence } from "../core/presence.ts";
import type { OpenOperation } from "../journal/journal.ts";
import { signedForm } from "../settle/remote-service.ts";
import type { AskedService, Doubts } from "./doubts.ts";

/**
 * Asks by itself about the operations of a line whose outcome the journal doesn't know, one question at a time, when the line is
 * clean and nobody waits. It only asks: what an answer proves is judged where all answers are (`doubts.ts`).
 */

/** Milliseconds from one question about an operation to the next: it is asked 2, 5, 15 and 60 s after the first moment, then rarely. */
const gapsMs = [2_000, 3_000, 10_000, 45_000] as const;
const laterGapMs = 300_000;

/** Milliseconds until a line that isn't free, or a question that was refused, is looked at again. */
const retryMs = 1_000;

/** Milliseconds of a line's absence after which the questions come quickly again: its terminal was away, and is back. */
const awayMsMin = 60_000;

/** A line, as far as it is needed. */
export interface AskedLine {
  readonly state: string;
  /** How many calls wait. */
  readonly waiting: number;
}

export interface ResolverOptions {
  readonly doubts: Doubts;
  readonly line: AskedLine;
  /** The services of the line. */
  readonly services: ReadonlyMap<ServiceName, AskedService & { readonly handler: Handler }>;
  /** Whether a caller follows an operation already, and asks about it. */
  readonly isFollowed: (service: ServiceName, route: string, key: string) => boolean;
  /** Does something when nobody else asks on the line in the background. */
  readonly turn: <T>(work: () => Promise<T>) => Promise<T>;
}

/** When an operation is to be asked about next. */
interface Plan {
  dueMs: number;
  /** How many gaps are over. */
  step: number;
}

/** Numbers the questions of the process. */
let asked = 0;

export class Resolver {
  readonly #options: ResolverOptions;
  readonly #plans = new WeakMap<OpenOperation, Plan>();
  #timer: NodeJS.Timeout | undefined;
  #asking: Presence | undefined;
  #isStopped = false;
  /** Since when the line has been away; undefined while it is not. */
  #awaySinceMs: number | undefined;

  constructor(options: ResolverOptions) {
    this.#options = options;
  }

  /** There may be something to ask about: at the start, and when an outcome becomes unknown. */
  wake(): void {
    if (!this.#isStopped && this.#asking === undefined) this.#arm();
  }

  /** Asks nothing any more; a question that waits is not sent. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#asking?.leave();
  }

  /** Sets the timer to the first operation that is due; nothing is set where there is nothing to ask about. */
  #arm(): void {
    clearTimeout(this.#timer);
    const first = this.#first();
    if (first === undefined || this.#isStopped) return;
    const waitMs = Math.max(this.#plan(first).dueMs - nowMs(), 0);
    this.#timer = setTimeout(() => void this.#due(), Math.ceil(waitMs));
    this.#timer.unref();
  }

  #first(): OpenOperation | undefined {
    const { doubts, services } = this.#options;
    let first: OpenOperation | undefined;
    for (const service of services.keys()) {
      for (const operation of doubts.of(service)) {
        if (doubts.cannotAsk(operation) !== undefined) continue;
        if (first === undefined || this.#plan(operation).dueMs < this.#plan(first).dueMs) first = operation;
      }
    }
    return first;
  }

  #plan(operation: OpenOperation): Plan {
    let plan = this.#plans.get(operation);
    if (plan === undefined) {
      plan = { dueMs: operation.sinceMs + gapsMs[0], step: 1 };
      this.#plans.set(operation, plan);
    }
    return plan;
  }

  async #due(): Promise<void> {
    const now = nowMs();
    // First, since it may bring all plans back to their beginning.
    const isFree = this.#isFree(now);
    const operation = this.#first();
    if (operation === undefined) return;
    const plan = this.#plan(operation);
    const isDue = now >= plan.dueMs;
    // One that a caller follows is looked at again: the caller may leave.
    if (isDue && isFree && !this.#isFollowed(operation)) await this.#ask(operation, plan);
    else if (isDue) plan.dueMs = now + retryMs;
    this.#arm();
  }

  #isFollowed({ sent: { service, route, key } }: OpenOperation): boolean {
    return key !== undefined && this.#options.isFollowed(service, route, key);
  }

  /** Clean, and nobody waits. A line that comes back after a while is asked soon, as in the beginning. */
  #isFree(now: number): boolean {
    const { state, waiting } = this.#options.line;
    const isAway = state !== "idle" && state !== "awaiting";
    if (isAway) this.#awaySinceMs ??= now;
    else if (this.#awaySinceMs !== undefined) {
      if (now - this.#awaySinceMs >= awayMsMin) this.#beginAnew(now);
      this.#awaySinceMs = undefined;
    }
    return state === "idle" && waiting === 0;
  }

  #beginAnew(now: number): void {
    const { doubts, services } = this.#options;
    for (const service of services.keys()) {
      for (const operation of doubts.of(service)) this.#plans.set(operation, { dueMs: now + gapsMs[0], step: 1 });
    }
  }

  async #ask(operation: OpenOperation, plan: Plan): Promise<void> {
    const { doubts, turn } = this.#options;
    this.#asking = new Presence();
    const outcome = await turn(() => this.#exchange(operation));
    this.#asking = undefined;
    const now = nowMs();
    if (outcome === "not-sent") {
      plan.dueMs = now + retryMs;
      return;
    }
    const gapMs = gapsMs[plan.step] ?? laterGapMs;
    plan.step++;
    // Where only time is missing to prove that it never arrived, the next question comes when that time is over.
    const absenceMs = Math.max(doubts.absenceDueMs(operation) ?? Number.POSITIVE_INFINITY, now + retryMs);
    plan.dueMs = Math.min(now + gapMs, absenceMs);
  }

  /** Asks once. The answer is judged on its way, by the observer of its service. */
  async #exchange(operation: OpenOperation): Promise<"asked" | "not-sent"> {
    const { doubts, services } = this.#options;
    const service = services.get(operation.sent.service);
    const question = doubts.questionOf(operation);
    const caller = this.#asking;
    // While it waited for its turn it may have been settled.
    if (service === undefined || question === undefined || caller === undefined || !doubts.isOpen(operation)) return "not-sent";
    const { contract, merchantId, handler } = service;
    try {
      const text = contract.envelope === "form" ? await signedForm(question.text, merchantId ?? "") : question.text;
      const call: Call = {
        service: operation.sent.service,
        contract: contract.service,
        route: question.route,
        body: [Buffer.from(text)],
        requestId: `resolve-${++asked}`,
        key: operation.sent.key,
        caller,
        background: true,
      };
      await handler(call);
      doubts.asks(operation);
      return "asked";
    } catch (error) {
      if (error instanceof Fault && error.outcome === "not-sent") return "not-sent";
      doubts.asks(operation);
      doubts.unanswered(operation, error instanceof Fault ? error.reason : String(error));
      return "asked";
    }
  }
}
