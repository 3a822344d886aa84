import { inStep, rows } from "./limits.ts";

/** How far asking in step has come, for a recording. */
export interface InStepState {
  readonly asks?: number | undefined;
  readonly firstDueMs?: number | undefined;
  readonly steps?: number | undefined;
  readonly tookLeastMs?: number | undefined;
  readonly tookMostMs?: number | undefined;
  readonly brokenOff?: number | undefined;
  readonly hasProven?: boolean | undefined;
  readonly isRefuted?: boolean | undefined;
}

/**
 * Whether a service answers the questions that it is asked now, and not older ones that it works off: asked after pauses of several lengths,
 * it answers each within about the same time. One that works off older questions answers when it is done with the next, however long the
 * pause was: in the pause, unasked, or after a time that differs from question to question as the pauses do.
 */
export class InStep implements InStepState {
  /** Questions since its last answer, and when the first of them was due. */
  asks = 0;
  firstDueMs = 0;
  /** Answers in a row, each to one question that was asked after its pause, while nothing else came. */
  steps = 0;
  /** How long these took, the shortest and the longest. */
  tookLeastMs = 0;
  tookMostMs = 0;
  /** How often such a row was broken off, or an answer came too late to begin one; a pause that was too long counts as half of that. */
  brokenOff = 0;
  /** A row was taken for proof, and nothing was asked since. */
  hasProven = false;
  /** Something older came behind such a row: no row is proof any more. */
  isRefuted = false;

  /** Nothing is asked yet. */
  renew(): void {
    this.asks = 0;
    this.firstDueMs = 0;
    this.steps = 0;
    this.brokenOff = 0;
  }

  asked(dueMs: number): void {
    this.hasProven = false;
    if (this.asks === 0) this.firstDueMs = dueMs;
    this.asks++;
  }

  /**
   * An answer came. A pause that was too long, since another service was asked or something came behind the answer before, doesn't count
   * for the row, nor break it off; but too many of them are as hopeless.
   * @param tookMs Milliseconds since the last question.
   * @param pausedMs Milliseconds from the answer before to that question.
   */
  answered(tookMs: number, pausedMs: number): void {
    // One that was asked again first took longer than until then, whichever of the two it answers.
    const isLate = this.asks > 1 || (this.asks > 0 && tookMs >= inStep.answerMs);
    const isInStep = this.asks === 1 && !isLate && pausedMs >= this.pauseMs;
    this.asks = 0;
    const leastMs = this.steps === 0 ? tookMs : Math.min(this.tookLeastMs, tookMs);
    const mostMs = this.steps === 0 ? tookMs : Math.max(this.tookMostMs, tookMs);
    if (!isInStep || !rows.some(({ alikeMs }) => mostMs - leastMs <= alikeMs)) this.breakOff(isLate);
    else if (pausedMs <= this.pauseMs + inStep.slackMs) {
      this.steps++;
      this.tookLeastMs = leastMs;
      this.tookMostMs = mostMs;
    } else this.brokenOff += 0.5;
  }

  /**
   * Something else came, or the answer wasn't right: the row begins anew.
   * @param counts Whether it counts as broken off though it had not begun.
   */
  breakOff(counts = false): void {
    if (this.steps > 0 || counts) this.brokenOff++;
    this.steps = 0;
  }

  /** A row was proof: it begins anew. */
  proved(): void {
    this.renew();
    this.hasProven = true;
  }

  /** Something older came: where a row had said that there is none, it was met by chance, or by a terminal that is always behind. */
  contradicted(): void {
    this.isRefuted ||= this.hasProven;
  }

  /** Nothing older is left. */
  get isProof(): boolean {
    const spreadMs = this.tookMostMs - this.tookLeastMs;
    return !this.isRefuted && rows.some(({ alikeMs, answers }) => spreadMs <= alikeMs && this.steps >= answers);
  }

  /** It won't come to a row that is proof: its answers take too long or too unlike a time, or something follows each of them. */
  get isHopeless(): boolean {
    return this.isRefuted || this.brokenOff >= inStep.triesMax;
  }

  /** Milliseconds that the pause before the next question must last. */
  get pauseMs(): number {
    const { pausesMs } = inStep;
    return pausesMs[this.steps % pausesMs.length] ?? 0;
  }
}
