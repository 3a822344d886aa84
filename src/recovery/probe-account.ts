import type { ServiceName } from "../core/call.ts";
import type { Framing } from "../wire/decoded.ts";
import { InStep, type InStepState } from "./in-step.ts";
import { humPatience, inStep, staleProbesMax, stepsMs } from "./limits.ts";

/** A service on a line, as far as recovery needs it. */
export interface LineService {
  readonly service: ServiceName;
  readonly framing: Framing;
  /** Bytes of the largest reply that is taken for one of its requests. */
  readonly replyBytesMax: number;
  /** The probe, framed and ready to send; undefined when there is none, and only silence settles the service. */
  readonly probe: readonly Buffer[] | undefined;
  /** Whether a reply can only be the answer to this service's probe. */
  isProbeAnswer(reply: Readonly<Record<string, unknown>>): boolean;
}

export interface RecoveryLimits {
  /** Milliseconds without a byte after which a service that answers no probe stops owing. */
  readonly lateReplyMs: number;
  /** Milliseconds between two probes, at least. */
  readonly probeIntervalMs: number;
}

/** After so many wrong answers a service isn't probed until a silence settles it: asked on, it would never fall silent. */
const refusalsMax = 3;

/**
 * How many times longer the silence must last, and how many times more wrong answers are borne, of a service that has answered a
 * probe before. A terminal that waits for a customer's card is silent for minutes and then answers; since this one can prove itself,
 * it should.
 */
export const patience = 10;

/** Unanswered probes that are remembered: most of an hour's worth, of a line that hums and has nobody who answers. */
const unansweredMax = 100;

/** Answers that are assumed to come of a terminal that was silent for long, at most: more than are asked in a night and a day. */
const assumedMax = 2_000;

/** So many answers are nearly as many as the next process takes for left over. */
const fullMin = staleProbesMax - 2;

/** So many frames that are neither an error nor of a probe's shape, in one recovery, answer probes: a call's late answer is one. */
export const oddMin = 2;

/** How a service answers its probes, as the line knows it that had the device before: what it takes to believe its silence. */
export interface KnownAnswers
  extends Pick<ProbeAccount, "service" | "isProven" | "isOdd" | "answersProbes" | "answeredProbes" | "isGivenUp"> {
  /** Answers to its probes that are known to be possible still. */
  readonly stillOut: number;
  /** Those that are merely assumed to be; absent where there are none, as in recordings made before it was noted. */
  readonly assumed?: number | undefined;
}

/** One service's probes as numbers, for a recording. */
export interface ProbeAccountState extends InStepState {
  readonly service: ServiceName;
  readonly sent: number;
  readonly answered: number;
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
  readonly errors: number;
  readonly dueMs: number;
  readonly waitsSinceMs: number;
  readonly unanswered: readonly number[];
  readonly refusals: number;
  /** Absent where there is none, as in recordings made before it was counted. */
  readonly odd?: number | undefined;
  readonly isOdd?: boolean | undefined;
  readonly answersProbes?: boolean | undefined;
  readonly answeredProbes?: boolean | undefined;
  readonly isSilent?: boolean | undefined;
  readonly isGivenUp?: boolean | undefined;
  readonly isBesideOthers?: boolean | undefined;
  readonly isTried?: boolean | undefined;
  readonly isAsked?: boolean | undefined;
  readonly evidence?: number | undefined;
  readonly wasProven?: boolean | undefined;
  readonly stepDueMs?: number | undefined;
  readonly isProven: boolean;
  readonly staleKnown: number;
  readonly staleAssumed: number;
  readonly isAssumedRight: boolean;
  readonly staleBefore?: number | undefined;
}

/** What a state leaves out where it is so, as recordings do that were made before it was noted. */
const usual: Readonly<Record<string, unknown>> = {
  odd: 0,
  isOdd: false,
  answersProbes: false,
  answeredProbes: false,
  isSilent: false,
  isGivenUp: false,
  isBesideOthers: false,
  isTried: false,
  isAsked: false,
  stepDueMs: 0,
  evidence: 0,
  wasProven: false,
  staleBefore: 0,
};

const usualState: Readonly<Record<string, unknown>> = { ...usual, ...new InStep() };

/** One service's probes: what was asked and what came of it, in this recovery and before. */
export class ProbeAccount implements ProbeAccountState {
  readonly lineService: LineService;
  /** Probes sent in this recovery, and answers that came in it; which answer is to which probe isn't known. */
  sent = 0;
  answered = 0;
  /** When it was probed last in this recovery; 0 when an answer came since. */
  sentAtMs = 0;
  /** When its last answer in this recovery came. */
  answeredAtMs = 0;
  /** Of `refusals`, those that were counted off the answers that may still come, since they can be no call's. */
  errors = 0;
  /** When its next probe may be sent, and since when it has kept the line waiting, which says how soon that is. */
  dueMs = 0;
  waitsSinceMs = 0;
  /** When probes of this recovery were sent, the latest ones, oldest first; whatever came in answer takes the oldest away. */
  unanswered: readonly number[] = [];
  /** Error frames that came in this recovery, whosever they are. */
  refusals = 0;
  /** Frames that came in this recovery and are neither an error nor an answer in its probe's shape. */
  odd = 0;
  /** A probe was sent since an answer, right or wrong, came. */
  isAsked = false;
  /** Wrong answers in this recovery that came behind a probe of their own: one alone may be a call's late answer. */
  evidence = 0;
  /** It has answered probes with something of another shape, and with nothing in shape since. */
  isOdd = false;
  /** It has answered a probe in this process. */
  isProven = false;
  /** It had answered one before this line had the device, which may be one that isn't asked. */
  wasProven = false;
  /** It answers probes wrongly, so a silence of it may mean a customer's card: it must last longer. A silence that settles it ends this. */
  answersProbes = false;
  /** It has ever answered probes wrongly: its next reply to a call makes `answersProbes` true again. */
  answeredProbes = false;
  /** A silence settled it last, and it has replied to nothing since. */
  isSilent = false;
  /** A silence settled it last, and since then only posline has asked it: it waits for nobody's card, so one more silence is enough. */
  isGivenUp = false;
  /** It is silent alone: since a silence settled it, another service of its line replied, and none fell silent. */
  isBesideOthers = false;
  /** It never answered a probe, and replied to a call after a silence: it is asked once more while the line is idle. */
  isTried = false;
  readonly inStep = new InStep();
  /** When an idle line may ask it in step; 0 where it needn't. */
  stepDueMs = 0;
  /**
   * Answers to earlier probes that may still come: an upper bound. Some are known of, since this process asked; at start some are
   * assumed, of the process before, until an answer too many shows that there were such.
   */
  staleKnown = 0;
  staleAssumed = 0;
  isAssumedRight = false;
  /**
   * How many were possible before a call's reply, a row of answers in step or a silence said that none is left; 0 once it was asked since. One
   * that comes all the same says that it was wrong.
   */
  staleBefore = 0;

  constructor(lineService: LineService) {
    this.lineService = lineService;
    if (lineService.probe !== undefined) this.staleAssumed = staleProbesMax;
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
    this.errors = 0;
    this.dueMs = 0;
    this.unanswered = [];
    this.refusals = 0;
    this.odd = 0;
    this.isAsked = false;
    this.evidence = 0;
    this.inStep.renew();
    this.stepDueMs = 0;
  }

  /** A probe is sent. */
  ask(now: number, limits: RecoveryLimits): void {
    if (this.unanswered.length === 0) this.waitsSinceMs = now;
    this.sent++;
    // When it was due: one that is held up by what came behind the answer before takes that time as well.
    this.inStep.asked(this.dueMs === 0 ? now : Math.min(now, this.dueMs));
    this.staleBefore = 0;
    this.sentAtMs = now;
    this.isAsked = true;
    this.unanswered = [...this.unanswered.slice(1 - unansweredMax), now];
    this.#wait(now, limits);
  }

  /** The last byte of the probe is out that was asked at `askedMs`; false where this service wasn't asked then. */
  wrote(askedMs: number, now: number): boolean {
    if (this.unanswered.at(-1) !== askedMs) return false;
    this.unanswered = [...this.unanswered.slice(0, -1), now];
    return true;
  }

  /**
   * An answer came, to a probe of this recovery or to a stale one. One that came promptly is the last probe's, and those before that
   * were lost; otherwise it is the oldest one's, and the terminal works off the others. Only a terminal that has nothing left to work
   * off is asked again at once. One that only posline has asked, all night perhaps, isn't asked until all of that was answered: a silence
   * then says as much. Where a call is owed and counting would take longer than to ask in step, it is asked so.
   */
  take(now: number, limits: RecoveryLimits): void {
    const isUnasked = this.sentAtMs === 0;
    const tookMs = isUnasked ? Number.POSITIVE_INFINITY : now - this.sentAtMs;
    const isPrompt = tookMs < limits.probeIntervalMs;
    // With what was asked in vain before it: of one that sends zeros behind its answers, the next may be lost in them.
    const sinceMs = isUnasked ? this.answeredAtMs : this.inStep.firstDueMs;
    const paceMs = isUnasked && this.answered === 0 ? 0 : now - sinceMs;
    this.#step(tookMs, this.sentAtMs, now);
    this.isProven = true;
    this.isOdd = false;
    this.isAsked = false;
    this.answered++;
    this.sentAtMs = 0;
    this.unanswered = this.unanswered.slice(1);
    const [oldest] = this.unanswered;
    if (isPrompt || oldest === undefined) {
      this.waitsSinceMs = now;
      this.dueMs = now;
    } else {
      this.waitsSinceMs = oldest;
      this.#wait(now, limits);
    }
    if (this.stale <= staleProbesMax) return;
    const leftOver = this.stale - this.answered;
    const longestMs = limits.lateReplyMs * this.patience;
    if (this.isGivenUp) this.dueMs = now + limits.lateReplyMs * humPatience;
    else if (!this.inStep.isHopeless) {
      if (leftOver * paceMs > stepsMs) this.dueMs = now + this.inStep.pauseMs;
      // A silence says as much, and is sooner over: it settles it before it is asked again.
    } else if (leftOver * paceMs > longestMs) this.dueMs = now + longestMs + limits.lateReplyMs;
  }

  /** An idle line's question was answered rightly, which was asked at `askedMs`. */
  takeIdle(askedMs: number, now: number): void {
    this.staleBefore = 0;
    this.inStep.asked(askedMs);
    this.#step(now - askedMs, askedMs, now);
    this.stepDueMs = this.#mayStep ? now + this.inStep.pauseMs : 0;
  }

  answeredIdleWrongly(): void {
    this.inStep.breakOff();
    this.stepDueMs = 0;
  }

  #step(tookMs: number, askedMs: number, now: number): void {
    this.inStep.answered(tookMs, askedMs - this.answeredAtMs);
    this.answeredAtMs = now;
    if (!this.inStep.isProof) return;
    this.staleBefore = this.stale;
    this.setStale(0);
    this.inStep.proved();
  }

  /** More answers may come than are counted at ease. */
  get #mayStep(): boolean {
    return this.stale > staleProbesMax && !this.inStep.isHopeless;
  }

  /**
   * The next probe may follow after half the time that the line has waited, within these bounds; where it is to be asked in step, no sooner
   * than its answer would be late. It follows after the longest while nearly as many answers may come as the next process takes for left
   * over (nearly: a recovery that begins asks once at once, and so does a prompt answer), and while only posline asks a service that is
   * silent: more questions would only be more answers to count later.
   */
  #wait(now: number, { probeIntervalMs, lateReplyMs }: RecoveryLimits): void {
    const leastMs = this.#mayStep ? inStep.answerMs : probeIntervalMs;
    const waitMs =
      this.isFull || this.isGivenUp ? lateReplyMs : Math.min(Math.max(leastMs, (now - this.waitsSinceMs) / 2), lateReplyMs);
    this.dueMs = now + waitMs;
  }

  /**
   * Something else came in place of its answer. One error may be the late answer to a call; the others answer probes, of this service
   * where it is alone: no other of its framing owes, or has left-over answers. What isn't an error may be anything, and counts nothing
   * off. Who answers, if wrongly, isn't swamped: it is asked as often as before.
   */
  answerWrongly(now: number, { isError, isAlone }: { isError: boolean; isAlone: boolean }): void {
    if (isError) this.refusals++;
    else this.odd++;
    this.isGivenUp = false;
    this.inStep.breakOff();
    if (isError && isAlone && this.refusals > 1) {
      this.errors++;
      this.unanswered = this.unanswered.slice(1);
    }
    if (this.odd >= oddMin) this.isOdd = true;
    // A call's late answer may come twice, and a terminal may send of its own accord: so two say it only if each was asked for.
    if (this.isAsked) this.evidence++;
    this.isAsked = false;
    if (this.evidence >= oddMin) this.answersWrongly();
    this.waitsSinceMs = now;
  }

  answersWrongly(): void {
    this.answersProbes = true;
    this.answeredProbes = true;
  }

  /** More answers came than could be stale: one belongs to a probe of this recovery. */
  get hasAnswered(): boolean {
    return this.answered > this.stale;
  }

  /** It answered in this recovery, and was asked nothing since. */
  get isAnswering(): boolean {
    return this.answered > 0 && this.sentAtMs === 0;
  }

  /** It is asked in step, and its pause lasts. */
  get isPausing(): boolean {
    return this.#mayStep && this.isAnswering && !this.isGivenUp;
  }

  /** How many answers to its probes may still come. */
  get stillOut(): number {
    return Math.max(0, this.stale + this.sent - this.answered - this.errors);
  }

  /** Of those, how many are known of; a process that starts assumes more, of the one before. */
  get stillOutKnown(): number {
    return Math.max(0, this.stillOut - this.staleAssumed);
  }

  /** It can be asked, and whether it answers isn't known: it may have been off when it was asked. */
  get isUnknown(): boolean {
    return this.lineService.probe !== undefined && !this.isProven && !this.answeredProbes && !this.isTried;
  }

  /** Whether asking it says anything: it can be asked, and has not answered yet. */
  get isAskable(): boolean {
    return this.lineService.probe !== undefined && !this.hasAnswered;
  }

  /** How many times more is borne of it than of a service that never answered a probe. */
  get patience(): number {
    return this.isProven && !this.isGivenUp ? patience : 1;
  }

  /** What came in this recovery in place of an answer. */
  get wrong(): number {
    return this.refusals + this.odd;
  }

  /**
   * It isn't asked any more, so that a silence may settle it: after enough wrong answers, two of them behind a probe of their own; or after
   * `refusalsMax` where so many answers may come that it would be asked only once in `lateReplyMs`.
   */
  get isProbingStopped(): boolean {
    const isEvident = this.wrong >= refusalsMax * this.patience && this.evidence >= oddMin;
    // An error that is counted off leaves one less than full.
    return isEvident || (this.wrong >= refusalsMax && this.stillOutKnown >= fullMin - 1);
  }

  /** Nearly as many answers may come as the next process takes for left over. */
  get isFull(): boolean {
    return this.stillOutKnown >= fullMin;
  }

  /** How many stale answers may come. */
  get stale(): number {
    return this.staleKnown + this.staleAssumed;
  }

  /** Some are known of, or those that were assumed began to come. */
  get isStaleKnown(): boolean {
    return this.staleKnown > 0 || (this.isAssumedRight && this.staleAssumed > 0);
  }

  /** So many may come now. Those that were merely assumed and weren't contradicted are still merely assumed. */
  setStale(count: number): void {
    this.staleAssumed = Math.min(this.staleAssumed, count);
    this.staleKnown = count - this.staleAssumed;
  }

  /**
   * No byte came after `sinceMs`: no answer is expected any more to what was asked before, by this process or the one before. But a service
   * that has answered, if wrongly, and answers nothing now may hang, and answer all of it once it wakes, behind a call: those stay assumed.
   */
  expectNothingBefore(sinceMs: number): void {
    const { stillOut } = this;
    const mayHang = (this.isProven || (this.answeredProbes && this.wrong === 0)) && !this.hasAnswered;
    this.staleKnown = Math.min(stillOut, this.unanswered.filter((sentAtMs) => sentAtMs > sinceMs).length);
    this.staleAssumed = mayHang ? Math.min(stillOut - this.staleKnown, assumedMax) : 0;
    this.isAssumedRight = false;
    this.staleBefore = stillOut > this.stale ? stillOut : 0;
  }

  /** A call was replied to. A terminal answers in order, so none is left of what it was asked before. */
  replied(): void {
    if (this.isStaleKnown || this.isSilent) this.staleBefore = this.stale;
    this.setStale(0);
  }

  /**
   * One comes, though none should have been left: so many may come as before. Where a call's reply had said that none is, it was no reply to
   * that call, but an older answer.
   * @returns whether that is so.
   */
  contradicts(): boolean {
    if (this.staleBefore === 0) return false;
    this.staleAssumed = this.staleBefore;
    this.staleBefore = 0;
    this.inStep.contradicted();
    return true;
  }

  /** It may answer a question of posline's with an error, which looks like a call's. */
  get mayErr(): boolean {
    return this.stale > 0 && (!this.isProven || this.answeredProbes);
  }

  /** One came. A terminal answers in order, so those of the process before come first. */
  staleCame(): void {
    if (this.staleAssumed > 0) {
      this.isAssumedRight = true;
      this.staleAssumed--;
    } else this.staleKnown = Math.max(0, this.staleKnown - 1);
  }

  get state(): ProbeAccountState {
    const { lineService, inStep: row, ...noted } = this;
    const all: ProbeAccountState = { ...noted, ...row, service: lineService.service };
    return Object.fromEntries(
      Object.entries(all).filter(([key, value]) => value !== usualState[key]),
    ) as unknown as ProbeAccountState;
  }

  set state({
    service,
    asks = 0,
    firstDueMs = 0,
    steps = 0,
    tookLeastMs = 0,
    tookMostMs = 0,
    brokenOff = 0,
    hasProven = false,
    isRefuted = false,
    ...noted
  }: ProbeAccountState) {
    Object.assign(this, usual, noted);
    Object.assign(this.inStep, { asks, firstDueMs, steps, tookLeastMs, tookMostMs, brokenOff, hasProven, isRefuted });
  }
}
