import type { ServiceName } from "../core/call.ts";
import type { Framing } from "../wire/decoded.ts";
import { staleProbesMax } from "./limits.ts";
import type { LineService } from "./line-service.ts";

/** After so many errors instead of its answer, a service isn't probed again in this recovery: it would never fall silent. */
const refusalsMax = 3;

/**
 * How many times longer the silence must last, and how many times more errors are borne, of a service that has answered a probe
 * before. A terminal that waits for a customer's card is silent for minutes and then answers; since this one can prove itself, it
 * should.
 */
const patience = 10;

export interface RecoveryLimits {
  /** Milliseconds without a byte after which a service that answers no probe stops owing. */
  readonly lateReplyMs: number;
  /** Milliseconds between two probes, at least. */
  readonly probeIntervalMs: number;
}

/** One service's probes as numbers, for a recording. */
export interface ProbeAccountState {
  readonly service: ServiceName;
  readonly sent: number;
  readonly answered: number;
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
  readonly dueMs: number;
  readonly waitsSinceMs: number;
  readonly unanswered: readonly number[];
  readonly refusals: number;
  readonly isProven: boolean;
  readonly staleKnown: number;
  readonly staleAssumed: number;
}

/** One service's probes: what was asked and what came of it, in this recovery and before. */
export class ProbeAccount {
  readonly lineService: LineService;
  /** Probes sent in this recovery, and answers that came in it; which answer is to which probe isn't known. */
  sent = 0;
  answered = 0;
  /** When it was probed last in this recovery; 0 when an answer came since. */
  sentAtMs = 0;
  /** When its last answer in this recovery came. */
  answeredAtMs = 0;
  /** When its next probe may be sent, and since when it has kept the line waiting, which says how soon that is. */
  dueMs = 0;
  waitsSinceMs = 0;
  /** When each probe was sent that has no answer yet, oldest first: an answer is taken for the oldest one's. */
  unanswered: readonly number[] = [];
  refusals = 0;
  /** It has answered a probe in this process. */
  isProven = false;
  /**
   * Answers to earlier probes that may still come: an upper bound. Some are known of, since this process asked; at start some are
   * merely assumed, of the process before, until an answer too many shows that there were such.
   */
  #staleKnown = 0;
  #staleAssumed = 0;

  constructor(lineService: LineService) {
    this.lineService = lineService;
    if (lineService.probe !== undefined) this.#staleAssumed = staleProbesMax;
  }

  get service(): ServiceName {
    return this.lineService.service;
  }

  get framing(): Framing {
    return this.lineService.framing;
  }

  /** Nothing is asked of it yet in this recovery. */
  renew(): void {
    this.sent = 0;
    this.answered = 0;
    this.sentAtMs = 0;
    this.dueMs = 0;
    this.unanswered = [];
    this.refusals = 0;
  }

  /** A probe is sent. The next may follow after half the time that the line has waited, and within these bounds. */
  ask(now: number, { probeIntervalMs, lateReplyMs }: RecoveryLimits): void {
    if (this.unanswered.length === 0) this.waitsSinceMs = now;
    this.sent++;
    this.sentAtMs = now;
    this.unanswered = [...this.unanswered, now];
    this.dueMs = now + Math.min(Math.max(probeIntervalMs, (now - this.waitsSinceMs) / 2), lateReplyMs);
  }

  /**
   * An answer came, to a probe of this recovery or to a stale one. The next may be sent at once. One that came promptly is the last
   * probe's, and those before that were lost; otherwise it is the oldest one's, and the terminal works off the others.
   */
  take(now: number, { probeIntervalMs }: RecoveryLimits): void {
    const isPrompt = now - this.sentAtMs < probeIntervalMs;
    this.isProven = true;
    this.answered++;
    this.sentAtMs = 0;
    this.answeredAtMs = now;
    this.unanswered = this.unanswered.slice(1);
    this.waitsSinceMs = isPrompt ? now : (this.unanswered[0] ?? now);
    this.dueMs = now;
  }

  /** More answers came than could be stale: one belongs to a probe of this recovery. */
  get hasAnswered(): boolean {
    return this.answered > this.stale;
  }

  /** How many answers to its probes may still come. */
  get stillOut(): number {
    return this.stale + this.sent - this.answered;
  }

  /** Whether asking it says anything: it can be asked, doesn't refuse, and has not answered yet. */
  get isAskable(): boolean {
    return this.lineService.probe !== undefined && !this.isRefused && !this.hasAnswered;
  }

  /** How many times more is borne of it than of a service that never answered a probe. */
  get patience(): number {
    return this.isProven ? patience : 1;
  }

  get isRefused(): boolean {
    return this.refusals >= refusalsMax * this.patience;
  }

  /** How many stale answers may come. */
  get stale(): number {
    return this.#staleKnown + this.#staleAssumed;
  }

  get isStaleKnown(): boolean {
    return this.#staleKnown > 0;
  }

  /** So many may come now. Those that were merely assumed and weren't contradicted are still merely assumed. */
  setStale(count: number): void {
    this.#staleAssumed = Math.min(this.#staleAssumed, count);
    this.#staleKnown = count - this.#staleAssumed;
  }

  /** Nothing came since `sinceMs` or longer: what was asked before that is no longer expected, and nothing of the process before. */
  wasSilent(sinceMs: number): void {
    this.#staleKnown = Math.min(this.stillOut, this.unanswered.filter((sentAtMs) => sentAtMs > sinceMs).length);
    this.#staleAssumed = 0;
  }

  /** One came, so there were such: what was assumed is known of from now on. */
  staleCame(): void {
    this.#staleKnown = Math.max(0, this.stale - 1);
    this.#staleAssumed = 0;
  }

  get state(): ProbeAccountState {
    const { service, sent, answered, sentAtMs, answeredAtMs, dueMs, waitsSinceMs, refusals, isProven } = this;
    return {
      ...{ service, sent, answered, sentAtMs, answeredAtMs, dueMs, waitsSinceMs, refusals, isProven },
      ...{ unanswered: this.unanswered, staleKnown: this.#staleKnown, staleAssumed: this.#staleAssumed },
    };
  }

  set state(state: ProbeAccountState) {
    const { sent, answered, sentAtMs, answeredAtMs, dueMs, waitsSinceMs, unanswered, refusals, isProven } = state;
    this.sent = sent;
    this.answered = answered;
    this.sentAtMs = sentAtMs;
    this.answeredAtMs = answeredAtMs;
    this.dueMs = dueMs;
    this.waitsSinceMs = waitsSinceMs;
    this.unanswered = [...unanswered];
    this.refusals = refusals;
    this.isProven = isProven;
    this.#staleKnown = state.staleKnown;
    this.#staleAssumed = state.staleAssumed;
  }
}
