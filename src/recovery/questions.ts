import { copyMs, openMax, passedOverMax, rowAnswerMs, rowMin } from "./limits.ts";

/** Which of a service's two questions: its probe, or another read-only request whose answer has a shape of its own as well. */
export type Question = "probe" | "second";

/** One that is out. */
interface OpenQuestion {
  readonly question: Question;
  /** It was drawn, so that no older answer can know it. */
  readonly isDrawn: boolean;
}

/** What is known of a service's questions, for a recording. */
export interface QuestionsState {
  readonly open?: readonly OpenQuestion[] | undefined;
  readonly row?: number | undefined;
  readonly isBehind?: boolean | undefined;
  readonly isUnsure?: boolean | undefined;
  readonly offersSecond?: boolean | undefined;
  readonly answersSecond?: boolean | undefined;
  readonly passedOver?: number | undefined;
  readonly misfits?: number | undefined;
}

/**
 * Whether a service answers the questions that it is asked now, and not older ones that it works off. Where it has two, the answer says which
 * one was asked. One that works off older questions can't know which of the two is drawn now: it is right half the time, and right in a
 * row of twenty once in a million, whatever its pace, its losses or its copies.
 */
export class Questions implements QuestionsState {
  /** Those that are out, oldest first, as far as answers are to be compared with them. */
  open: readonly OpenQuestion[] = [];
  /** Answers in a row, each to the oldest question that was out, which had been drawn. */
  row = 0;
  /** An answer came that fits no question which is out: older ones come, however many, so only a row proves that none is left. */
  isBehind = false;
  /** A silence settled it before it had ever answered: where it answers after all, older answers may come, and only a row says no more. */
  isUnsure = false;
  /** It lists the second one among what it supports. */
  offersSecond = false;
  /** It has answered the second one in this process. */
  answersSecond = false;
  /** How often in a row it has not answered the second one, but refused it, or answered the one behind it. */
  passedOver = 0;
  /** Answers in this recovery that fitted no question, or another one than the oldest that was out. */
  misfits = 0;

  /** Nothing is asked yet. */
  renew(): void {
    this.open = [];
    this.row = 0;
    this.misfits = 0;
  }

  asked(question: Question, isDrawn: boolean): void {
    this.open = [...this.open.slice(1 - openMax), { question, isDrawn }];
  }

  /**
   * An answer came, in the shape that this question's has. It is compared with the oldest one that is out, or where it came promptly with the
   * last one: those before it were lost then. What is out before the one that it fits was lost as well; or it is answered later, and fits
   * nothing then.
   * @returns whether it fits.
   */
  answered(question: Question, isPrompt: boolean): boolean {
    const candidates = isPrompt ? this.open.slice(-1) : this.open;
    const [first] = candidates;
    const at = candidates.findIndex((open) => open.question === question);
    const rest = at === -1 ? [] : candidates.slice(at + 1);
    const passedOver = this.open.slice(0, this.open.length - rest.length);
    const isPassedOver = question === "probe" && passedOver.some((open) => open.question === "second");
    // It may be an older one where the second question before it has no answer, whenever it comes.
    const fits = at !== -1 && !isPassedOver;
    if (question === "second") {
      this.answersSecond = true;
      this.passedOver = 0;
    } else if (isPassedOver) this.passedOver++;
    // Nothing was asked since the last answer: it is a copy, or an older one, and says nothing of what is asked next.
    if (first === undefined) return false;
    if (question !== first.question) {
      this.row = 0;
      this.misfits++;
      this.contradicted();
    } else if (first.isDrawn) this.row++;
    this.open = rest;
    return fits;
  }

  /** The second one is out. */
  get isSecondOut(): boolean {
    return this.open.some(({ question }) => question === "second");
  }

  /** Another one was asked behind a second one that is out. */
  get isSecondPassedOver(): boolean {
    return this.isSecondOut && this.open.at(-1)?.question === "probe";
  }

  /** An answer to the probe came that may be to the one behind the second question, whose own is lost then: that is asked again. */
  passOver(): void {
    // That one is answered.
    this.open = this.open.slice(this.open.findLastIndex(({ question }) => question === "second") + 2);
    this.passedOver++;
  }

  /** Something else came in answer to the oldest one. It says nothing of what was drawn, so a row goes on. */
  refused(): void {
    const [oldest, ...others] = this.open;
    if (oldest?.question === "second") this.passedOver++;
    this.open = others;
  }

  /** Nothing older is left, or not expected any more. */
  proved(): void {
    this.row = 0;
    this.isBehind = false;
    this.isUnsure = false;
  }

  /** Older answers come though none should: only a row says that there are none, of one that can be asked so. */
  contradicted(): void {
    this.isBehind ||= this.canTell;
  }

  /** Whether it can be asked either of the two. */
  get canTell(): boolean {
    return this.offersSecond && this.passedOver < (this.answersSecond ? passedOverMax.ofKnown : passedOverMax.ofUnknown);
  }

  /** Nothing but a row says that no older answer is left, and it can be had. */
  get needsRow(): boolean {
    return this.canTell && (this.isBehind || this.isUnsure);
  }

  /**
   * Milliseconds that what is out may take to come, before another question of a row is asked: longer the more answers were not to the
   * question asked last, so that a row is made at any pace in the end.
   */
  answerMs(mostMs: number): number {
    return Math.min(rowAnswerMs * 2 ** Math.max(0, this.misfits - 1), mostMs);
  }

  /** It is asked for a row with pauses: answers came to other questions than the one that was due. */
  get isSlow(): boolean {
    return this.canTell && this.misfits > 0;
  }

  /**
   * Milliseconds between an answer and the next question of a row, once one was wrong: behind a wrong one what is out can come, and behind a
   * right one its copy, which would be taken for the next one's.
   */
  pauseMs(mostMs: number): number {
    if (!this.isSlow) return 0;
    return this.row === 0 ? this.answerMs(mostMs) : Math.min(copyMs * 2 ** (this.misfits - 1), rowAnswerMs);
  }

  /** A row came: nothing older is left. */
  get isProof(): boolean {
    return this.row >= rowMin;
  }
}
