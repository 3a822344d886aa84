import { isDeepStrictEqual } from "node:util";
import type { ServiceName } from "../core/call.ts";
import type { Framing } from "../wire/decoded.ts";
import {
  assumedMax,
  fullMin,
  hastyMax,
  humPatience,
  oddMin,
  pacedMin,
  provenPatience,
  refusalsMax,
  staleProbesMax,
  unansweredMax,
} from "./limits.ts";
import { type Question, Questions, type QuestionsState } from "./questions.ts";

/** A service on a line, as far as recovery needs it. */
export interface LineService {
  readonly service: ServiceName;
  readonly framing: Framing;
  /** Bytes of the largest reply that is taken for one of its requests. */
  readonly replyBytesMax: number;
  /** The probe, framed and ready to send; undefined when there is none, and only silence settles the service. */
  readonly probe: readonly Buffer[] | undefined;
  /** Another such question, whose answer is of another shape; undefined when there is none. */
  readonly second: readonly Buffer[] | undefined;
  /** Which of the two a reply can only be the answer to. */
  questionOf(reply: Readonly<Record<string, unknown>>): Question | undefined;
  /** Whether an answer to the probe says that the second question is answered too. */
  offersSecond(answer: Readonly<Record<string, unknown>>): boolean;
}

export interface RecoveryLimits {
  /** Milliseconds without a byte after which a service that answers no probe stops owing. */
  readonly lateReplyMs: number;
  /** Milliseconds between two probes, at least. */
  readonly probeIntervalMs: number;
}

/** How a service answers its probes, as the line knows it that had the device before: what it takes to believe its silence. */
export interface KnownAnswers
  extends Pick<ProbeAccount, "service" | "isProven" | "isOdd" | "answersProbes" | "answeredProbes" | "isGivenUp">,
    Pick<QuestionsState, "isBehind" | "offersSecond" | "answersSecond"> {
  /** Answers to its probes that are known to be possible still. */
  readonly stillOut: number;
  /** Those that are merely assumed to be; absent where there are none, as in recordings made before it was noted. */
  readonly assumed?: number | undefined;
  /** Absent where it isn't so, as in recordings made before it was noted. */
  readonly owesCall?: boolean | undefined;
  readonly secondsOut?: number | undefined;
}

/** One service's probes as numbers, for a recording. */
export interface ProbeAccountState {
  readonly service: ServiceName;
  readonly sent: number;
  readonly answered: number;
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
  /** Absent where it isn't so, as in recordings made before it was noted. */
  readonly firstAnswerMs?: number | undefined;
  readonly awaitsSilence?: boolean | undefined;
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
  readonly questions?: QuestionsState | undefined;
  readonly isProven: boolean;
  readonly staleKnown: number;
  readonly staleAssumed: number;
  readonly isAssumedRight: boolean;
  readonly staleBefore?: number | undefined;
  readonly unheard?: number | undefined;
  readonly isCountedOff?: boolean | undefined;
  readonly owesCall?: boolean | undefined;
  readonly idleSinceMs?: number | undefined;
  readonly idleRepliedMs?: number | undefined;
  readonly secondsOut?: number | undefined;
}

/** What a state leaves out where it is so, as recordings do that were made before it was noted. */
const usual: Readonly<Record<string, unknown>> = {
  firstAnswerMs: 0,
  awaitsSilence: false,
  odd: 0,
  isOdd: false,
  answersProbes: false,
  answeredProbes: false,
  isSilent: false,
  isGivenUp: false,
  isBesideOthers: false,
  isTried: false,
  isAsked: false,
  evidence: 0,
  wasProven: false,
  staleBefore: 0,
  unheard: 0,
  isCountedOff: false,
  owesCall: false,
  idleSinceMs: 0,
  idleRepliedMs: 0,
  secondsOut: 0,
};

const usualState: Readonly<Record<string, unknown>> = { ...usual, questions: { ...new Questions() } };

/** One service's probes: what was asked and what came of it, in this recovery and before. */
export class ProbeAccount implements ProbeAccountState {
  readonly lineService: LineService;
  /** Probes sent in this recovery, and answers that came in it; which answer is to which probe isn't known. */
  sent = 0;
  answered = 0;
  /** When it was probed last in this recovery; 0 when an answer came since. */
  sentAtMs = 0;
  /** When the first and the last of these answers came. */
  firstAnswerMs = 0;
  answeredAtMs = 0;
  /** Its answers aren't counted any more, since a silence says as much sooner. */
  awaitsSilence = false;
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
  readonly questions = new Questions();
  /**
   * Answers to earlier probes that may still come: an upper bound. Some are known of, since this process asked; at start some are
   * assumed, of the process before, until an answer too many shows that there were such.
   */
  staleKnown = 0;
  staleAssumed = 0;
  isAssumedRight = false;
  /**
   * How many were possible before a call's reply, a row of right answers or a silence said that none is left; 0 once it was asked since. One
   * that comes all the same says that it was wrong.
   */
  staleBefore = 0;
  /** Of one that never answered: how many questions silences have given up. It may have hung, and answer all of them. */
  unheard = 0;
  /** Answers that came unasked were counted off since it was proven last; where some were copies, more may come than are counted. */
  isCountedOff = false;
  /** A call of it had no answer, and nothing has proven since that none comes: a silence alone may end before a terminal that hangs wakes. */
  owesCall = false;
  /** Of the answers that may still come, how many may be to the second question, at most. */
  secondsOut = 0;
  /** Since when an idle line's questions are answered and nothing comes unasked; 0 where that isn't so. */
  idleSinceMs = 0;
  /** When the last one was answered. */
  idleRepliedMs = 0;

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
    this.firstAnswerMs = 0;
    this.sentAtMs = 0;
    this.errors = 0;
    this.dueMs = 0;
    this.awaitsSilence = false;
    this.unanswered = [];
    this.refusals = 0;
    this.odd = 0;
    this.isAsked = false;
    this.evidence = 0;
    this.questions.renew();
  }

  /**
   * Which question to ask now. Where so many answers may come as at a start, or older ones came than should have, it is drawn. Where
   * the next answer is one more than are possible, or copies may have been counted, it is the second one, which nobody asked before: answers
   * that were not counted, or came twice, can't be taken for it. One that has never answered the second one isn't asked it again before it was
   * asked its probe.
   * @param isSecondDrawn Draws.
   */
  question(isSecondDrawn: () => boolean): { readonly question: Question; readonly isDrawn: boolean } {
    const { canTell, answersSecond, isSecondOut } = this.questions;
    if (!canTell || (isSecondOut && !answersSecond)) return { question: "probe", isDrawn: false };
    // What doesn't answer isn't asked for a row: its answers to second questions would come, in the end, in place of calls' replies.
    if (this.#needsRow && this.answered === 0) return { question: "probe", isDrawn: false };
    if (this.#needsRow) return { question: isSecondDrawn() ? "second" : "probe", isDrawn: true };
    const isLast = this.#secondDecides && this.answered === this.stale && !isSecondOut;
    return { question: isLast ? "second" : "probe", isDrawn: false };
  }

  /** Older answers are counted, of which some may be copies: the one that is too many must be to the second question. */
  get #secondDecides(): boolean {
    return this.questions.canTell && (this.stale > 0 || this.isCountedOff) && !this.#needsRow;
  }

  /** A question is sent. */
  ask(now: number, limits: RecoveryLimits, question: Question = "probe", isDrawn = false): void {
    if (this.unanswered.length === 0) this.waitsSinceMs = now;
    this.sent++;
    this.questions.asked(question, isDrawn);
    if (question === "second") this.secondsOut++;
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
   * An answer came, to a question of this recovery or to a stale one. One that came promptly is the last question's, and those before that
   * were lost; otherwise it is the oldest one's, and the terminal works off the others. Only a terminal that has nothing left to work
   * off is asked again at once.
   */
  take(now: number, limits: RecoveryLimits, question: Question = "probe"): void {
    const isPrompt = this.sentAtMs > 0 && now - this.sentAtMs < this.#leastMs(limits);
    const fits = this.questions.answered(question, isPrompt);
    this.isProven = true;
    this.isOdd = false;
    this.isAsked = false;
    if (this.answered === 0) this.firstAnswerMs = now;
    this.#came(question);
    const mayBeCopy = this.#secondDecides && question === "probe" && fits && this.answered >= this.stale;
    const isPassedOver = mayBeCopy && this.questions.isSecondPassedOver;
    if (!mayBeCopy) this.answered++;
    if (isPassedOver) this.questions.passOver();
    this.sentAtMs = 0;
    this.answeredAtMs = now;
    this.unanswered = this.unanswered.slice(1);
    if (this.questions.isProof) this.#nothingOlder();
    else if (this.answered > this.stale && !fits) this.questions.contradicted();
    this.#countAnew();
    const [oldest] = this.unanswered;
    if (isPassedOver) this.dueMs = now;
    else if (isPrompt || oldest === undefined) {
      this.waitsSinceMs = now;
      this.dueMs = now;
    } else {
      this.waitsSinceMs = oldest;
      this.#wait(now, limits);
    }
    if (this.stale > staleProbesMax || this.#needsRow) this.#waitWith(now, limits);
  }

  /**
   * It may have older answers, and can't be asked two questions, or not any more: its answers are counted as those of a start are, or as many
   * as it was asked in vain.
   */
  #countAnew(): void {
    const { isBehind, isUnsure, canTell } = this.questions;
    if (canTell || !(isBehind || isUnsure)) return;
    this.questions.proved();
    this.staleAssumed = Math.max(this.staleAssumed, staleProbesMax, this.unheard);
    this.answered = 0;
    this.errors = 0;
    this.sent = this.unanswered.length;
  }

  /** Only questions that are out now may still be answered. */
  #nothingOlder(): void {
    this.staleBefore = this.stale;
    this.setStale(0);
    this.secondsOut = Math.min(this.secondsOut, this.unanswered.length);
    this.answered = 1;
    this.errors = 0;
    this.sent = 1 + this.unanswered.length;
    this.questions.proved();
  }

  /**
   * Many answers may come. Who can be asked two questions is asked on while the answers are right, and after a pause where one isn't. Another
   * one that only posline has asked, all night perhaps, isn't asked until all of that was answered: a silence then says as much. Where a call
   * is owed they are counted, or where that would take longer than a silence, that is waited for.
   */
  #waitWith(now: number, { lateReplyMs }: RecoveryLimits): void {
    const longestMs = lateReplyMs * this.patience;
    if (this.questions.canTell) {
      if (this.answered > hastyMax) this.dueMs = now + lateReplyMs;
      else this.dueMs = Math.max(this.dueMs, now + this.questions.pauseMs(lateReplyMs));
    } else if (this.isGivenUp) this.dueMs = now + lateReplyMs * humPatience;
    else {
      // Where answers were lost, the next question may wait longer than one took on average.
      const paceMs = Math.max((now - this.firstAnswerMs) / (this.answered - 1), this.dueMs - now);
      this.awaitsSilence = this.answered >= pacedMin && (this.stale - this.answered) * paceMs > longestMs;
    }
  }

  /** Only a row of right answers says that no older one is left, or it says as much in as many questions as counting takes. */
  get #needsRow(): boolean {
    return this.questions.needsRow || (this.questions.canTell && this.stale >= staleProbesMax);
  }

  /**
   * The next question may follow after half the time that the line has waited, within these bounds. It follows after the longest while nearly
   * as many answers may come as the next process takes for left over, of a service that it can only count (nearly: a recovery that begins asks
   * once at once, and so does a prompt answer), and while only posline asks a service that is silent: more questions would only be more answers
   * to count later.
   */
  #wait(now: number, limits: RecoveryLimits): void {
    const { lateReplyMs } = limits;
    const halfMs = Math.max(this.#leastMs(limits), (now - this.waitsSinceMs) / 2);
    const isSeldom = this.isGivenUp || (this.isFull && !this.questions.canTell);
    this.dueMs = now + (isSeldom ? lateReplyMs : Math.min(halfMs, lateReplyMs));
  }

  /** Milliseconds that an answer may take before it is asked again. */
  #leastMs({ probeIntervalMs, lateReplyMs }: RecoveryLimits): number {
    return this.#needsRow ? this.questions.answerMs(lateReplyMs) : probeIntervalMs;
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
    // The first may be the late answer of the call, to which no question of these was answered.
    if (!this.owesCall || this.wrong > 1) this.questions.refused();
    this.#countAnew();
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

  /** More answers came than could be stale: one belongs to a question of this recovery. */
  get hasAnswered(): boolean {
    return this.answered > this.stale && !this.#needsRow;
  }

  /** It answered in this recovery, and was asked nothing since. */
  get isAnswering(): boolean {
    return this.answered > 0 && this.sentAtMs === 0;
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

  /**
   * How many times more is borne of it than of a service that never answered a probe. One that only posline has asked waits for nobody's card,
   * so no more is borne of it, but where it makes a row slowly: the pauses between the questions would be taken for its silence.
   */
  get patience(): number {
    return this.isProven && (!this.isGivenUp || this.questions.isSlow) ? provenPatience : 1;
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
    const { stillOut, hasAnswered } = this;
    const mayHang = (this.isProven || (this.answeredProbes && this.wrong === 0)) && !hasAnswered;
    this.staleKnown = Math.min(stillOut, this.unanswered.filter((sentAtMs) => sentAtMs > sinceMs).length);
    this.staleAssumed = mayHang ? Math.min(stillOut - this.staleKnown, assumedMax) : 0;
    this.isAssumedRight = false;
    this.isCountedOff = false;
    if (hasAnswered) this.owesCall = false;
    else if (!mayHang) this.unheard = Math.min(this.unheard + stillOut - this.stale, assumedMax);
    this.staleBefore = stillOut > this.stale ? stillOut : 0;
    this.questions.proved();
    this.questions.isUnsure = stillOut > 0 && !mayHang && !this.hasAnswered;
  }

  /** A call was replied to. A terminal answers in order, so none is left of what it was asked before. */
  replied(): void {
    if (this.isStaleKnown || this.isSilent) this.staleBefore = this.stale;
    this.setStale(0);
    this.questions.isUnsure = false;
    this.proved();
  }

  /** Nothing is left of what it was asked before, questions and calls. */
  proved(): void {
    this.unheard = 0;
    this.isCountedOff = false;
    this.owesCall = false;
    this.idleSinceMs = 0;
    // Of those that are out in a recovery the answers may come yet.
    this.secondsOut = Math.min(this.secondsOut, this.unanswered.length);
  }

  /**
   * An idle line's question was answered. Where that goes on for as long as a proven service must be silent, nothing older is left; but not
   * where one follows the other so soon that each answer may be the one to the question before.
   */
  repliedIdle(now: number, { lateReplyMs }: RecoveryLimits): void {
    // One that is heard for the first time may answer an older question.
    if (this.isProven) this.staleBefore = 0;
    if (this.idleSinceMs === 0 || now < this.idleRepliedMs + lateReplyMs) this.idleSinceMs = now;
    this.idleRepliedMs = now;
    if (now < this.idleSinceMs + lateReplyMs * provenPatience) return;
    const { stale } = this;
    this.replied();
    this.staleBefore = stale;
  }

  /**
   * One comes, though none should have been left: so many may come as before. Where a call's reply had said that none is, it was no reply to
   * that call, but an older answer. Or a silence settled it wrongly, and answers to older calls may follow.
   * @returns whether either is so.
   */
  contradicts(): boolean {
    if (this.staleBefore === 0 || this.stale > 0) return this.wasWronglySettled;
    this.staleAssumed = this.staleBefore;
    this.staleBefore = 0;
    this.questions.contradicted();
    return true;
  }

  /** An answer comes, though a silence had settled it that owed a call, or had never answered: it hung, and that silence was wrong. */
  get wasWronglySettled(): boolean {
    return this.questions.isUnsure || this.owesCall;
  }

  /** An answer to an older second question may come, of one that is known to answer it. */
  get mayAnswerSecond(): boolean {
    return this.secondsOut > 0 && this.questions.answersSecond;
  }

  /** It may answer a question of posline's with an error, which looks like a call's. */
  get mayErr(): boolean {
    return this.stale > 0 && (!this.isProven || this.answeredProbes);
  }

  /**
   * One came. A terminal answers in order, so those of the process before come first.
   * @param question To which it is; undefined of an error, or where that isn't known.
   */
  staleCame(question: Question | undefined): void {
    this.#came(question);
    this.isCountedOff = true;
    this.idleSinceMs = 0;
    if (this.staleAssumed > 0) {
      this.isAssumedRight = true;
      this.staleAssumed--;
    } else this.staleKnown = Math.max(0, this.staleKnown - 1);
  }

  /** An answer to this question came, asked for or not. */
  #came(question: Question | undefined): void {
    if (question === "second") this.secondsOut = Math.max(0, this.secondsOut - 1);
  }

  get state(): ProbeAccountState {
    const { lineService, questions, ...noted } = this;
    const all = { ...noted, questions: { ...questions }, service: lineService.service };
    return Object.fromEntries(
      Object.entries(all).filter(([key, value]) => !isDeepStrictEqual(value, usualState[key])),
    ) as unknown as ProbeAccountState;
  }

  set state({ service, questions, ...noted }: ProbeAccountState) {
    Object.assign(this, usual, noted);
    Object.assign(this.questions, new Questions(), questions);
  }
}
