import type { ServiceName } from "../core/call.ts";
import type { Framing } from "../wire/decoded.ts";
import { copyMs, lostMax, owingPatience, pauseMs, rowMin, vagueMin, vagueMore } from "./limits.ts";

/**
 * How one service stands: whether it answers what it is asked now. A standing owns the row of right answers by which that is proven; it
 * knows no other service, sends nothing, and has no clock: moments come in as milliseconds.
 */

/** A service's two questions: its probe, or another read-only request whose answer never has the probe's shape. */
export type Question = "probe" | "second";

/** A service on a line, as far as recovery needs it. */
export interface LineService {
  readonly service: ServiceName;
  readonly framing: Framing;
  /** Bytes of the largest reply that is taken for an answer to this service's requests. */
  readonly replyBytesMax: number;
  /** The probe, framed and ready to send; undefined if the service isn't asked, and only silence puts it in step. */
  readonly probe: readonly Buffer[] | undefined;
  /** The second question; undefined if there is no probe. */
  readonly second: readonly Buffer[] | undefined;
  /** The question that a reply can only be the answer to; undefined if neither. */
  questionOf(reply: Readonly<Record<string, unknown>>): Question | undefined;
}

export interface RecoveryLimits {
  /** Milliseconds without a byte after which no late answer comes any more. */
  readonly lateReplyMs: number;
  /** Milliseconds between two probes, at least. */
  readonly probeIntervalMs: number;
}

/**
 * `silent`: out of step, and asked its probe until it answers. `row`: answers, and its right answers are counted. `waits`: isn't asked, so
 * a silence is waited for. `in step`: gets calls. `aside`: answers nothing, gets no calls, and holds up nobody.
 */
export type Standing = "silent" | "row" | "waits" | "in step" | "aside";

/**
 * An event in the life of a service. `out`: an answer of it may be left over. `out unasked`: that, of a service that isn't asked.
 * `answers`: its probe is answered, or again and again with something else. `hushed`: more answers of its row stayed out than may.
 * `proven`: its row is whole, or the silence was. `absent`: it has answered nothing for too long.
 */
export type StandingEvent = "out" | "out unasked" | "answers" | "hushed" | "proven" | "absent";

const outOf = { out: "silent", "out unasked": "waits" } as const;

/** The only place where a standing changes. An event that has no cell can't happen. */
export const standings: Readonly<Record<Standing, Partial<Record<StandingEvent, Standing>>>> = {
  silent: { ...outOf, answers: "row", absent: "aside" },
  row: { ...outOf, hushed: "silent", proven: "in step" },
  waits: { ...outOf, proven: "in step" },
  "in step": outOf,
  aside: outOf,
};

/** All that is known of a service, as data: a recording begins with it. */
export interface ServiceState {
  readonly service: ServiceName;
  readonly standing: Standing;
  readonly open: Question | undefined;
  readonly askedMs: number;
  readonly sinceMs: number;
  readonly isWrong: boolean;
  readonly row: number;
  readonly lost: number;
  readonly misfits: number;
  readonly refusals: number;
  readonly leftOut: number;
  readonly owesCall: boolean;
}

/** Whether an answer fits the question that is out. */
export type Fit = "right" | "wrong";

export class ServiceStanding implements ServiceState {
  readonly lineService: LineService;
  standing: Standing;
  /** The question that is out. */
  open: Question | undefined;
  /** When the service was asked last: when the question's last byte went out, or, until then, its first. */
  askedMs = 0;
  /** Since when the service has answered nothing. */
  sinceMs = 0;
  /** The probe that is out was answered with something else. */
  isWrong = false;
  /** Right answers in a row. For a service that can't be told apart any answer counts. */
  row = 0;
  /** Questions of this row that had no answer. */
  lost = 0;
  /** Contradictions since the service went out of step: each doubles the waits and pauses. */
  misfits = 0;
  /** Probes answered with something else since the service was silent; below zero once one was answered rightly. */
  refusals = 0;
  /** Second questions, since the service went out of step, that had no answer or the probe's. */
  leftOut = 0;
  /** True if a call had no whole answer, and nothing has proven since that none comes. */
  owesCall = false;

  constructor(lineService: LineService) {
    this.lineService = lineService;
    this.standing = lineService.probe === undefined ? "waits" : "silent";
  }

  get service(): ServiceName {
    return this.lineService.service;
  }

  get framing(): Framing {
    return this.lineService.framing;
  }

  /** True if the service is neither in step nor aside: the line recovers. */
  get isOut(): boolean {
    return this.standing !== "in step" && this.standing !== "aside";
  }

  /** True if the service is asked again and again. */
  get isAsked(): boolean {
    return this.standing === "silent" || this.standing === "row";
  }

  /** True if the row is whole, and only a silence is waited for, since answers stayed out, or say nothing of what was asked. */
  get isWhole(): boolean {
    return this.standing === "row" && this.row > rowMin + this.lost;
  }

  /** True if the service answers its probe with something else. */
  get isRefusing(): boolean {
    return this.refusals >= vagueMin;
  }

  /** True if the service's answers say nothing of what was asked. */
  get isVague(): boolean {
    return this.isRefusing || this.leftOut >= vagueMin;
  }

  /** Puts the service out of step: an answer of it may be left over. */
  out(now: number): void {
    this.#take(this.lineService.probe === undefined ? "out unasked" : "out");
    this.sinceMs = now;
    this.misfits = 0;
    this.refusals = 0;
    this.leftOut = 0;
    this.#anew();
  }

  #anew(): void {
    this.open = undefined;
    this.isWrong = false;
    this.row = 0;
    this.lost = 0;
  }

  /** The next question. Questions that end a row are probes, whose answers are known by their shape whenever they come. */
  next(draw: () => boolean): Question {
    return this.standing === "row" && this.row < rowMin && !this.isVague && draw() ? "second" : "probe";
  }

  /** A question goes out. */
  ask(question: Question, now: number): void {
    this.open = question;
    this.askedMs = now;
  }

  /** Ends the wait for the question that is out. In a row that says nothing either way: the answer is lost, or late. */
  giveUp(now: number): void {
    const { open, standing, isWrong } = this;
    this.open = undefined;
    this.isWrong = false;
    if (standing === "row") {
      this.lost++;
      if (this.isVague) this.misfits++;
      if (open === "second") this.leftOut++;
      if (this.lost <= lostMax) return;
      this.#take("hushed");
      this.refusals = 0;
    } else {
      if (isWrong) this.refusals++;
      if (!this.isRefusing) return;
      this.misfits++;
      this.#take("answers");
    }
    this.sinceMs = now;
    this.#anew();
  }

  /** A frame came, taken for the answer to the question that is out. */
  answered(isProbeShaped: boolean, now: number): Fit {
    const question = this.open;
    if (question === undefined) return "wrong";
    const fit = isProbeShaped === (question === "probe") ? "right" : "wrong";
    this.sinceMs = now;
    if (fit === "right") this.#right(question);
    else if (this.standing === "row") this.#contradicted(question);
    else this.isWrong = true;
    return fit;
  }

  #right(question: Question): void {
    const wasRefusing = this.isRefusing;
    if (question === "probe") this.refusals = -vagueMore;
    else this.leftOut = -vagueMore;
    if (this.standing === "row" && !wasRefusing) this.#counts();
    else {
      this.#anew();
      if (this.standing === "silent") this.#take("answers");
    }
  }

  #contradicted(question: Question): void {
    const wasVague = this.isVague;
    if (question === "probe") this.refusals++;
    else this.leftOut++;
    if (wasVague) this.#counts();
    else {
      // A vague service can't contradict from now on.
      if (this.isVague) this.misfits = 0;
      this.misfit();
    }
  }

  #counts(): void {
    this.open = undefined;
    this.row++;
    // Any answer of a vague service counts, so a missing one only shows how slow it is.
    if (this.isVague) this.lost = 0;
    if (this.isWhole && this.lost === 0 && !this.isVague) this.#proven();
  }

  /** Begins the row anew, after a contradiction. */
  misfit(): void {
    this.misfits++;
    this.#anew();
  }

  /** Puts the service in step: the silence was long enough. */
  #proven(): void {
    this.#take("proven");
    this.owesCall = false;
    this.#anew();
  }

  /** Milliseconds of pauses until answers that go on contradicting say nothing of what was asked; 0 unless some did: a late one may. */
  pausesUntilVague({ lateReplyMs }: RecoveryLimits): number {
    if (this.standing !== "row" || this.misfits < vagueMin) return 0;
    const contradictions = Math.max(0, vagueMin - Math.max(this.refusals, this.leftOut));
    const pauses = Array.from({ length: contradictions }, (_, n) => Math.min(pauseMs * 2 ** (this.misfits + n), lateReplyMs));
    return pauses.reduce((sum, ms) => sum + ms, 0);
  }

  /** When a silence says enough, for a service that waits for it or answers nothing; Infinity for others. */
  silenceDueMs(silentSinceMs: number, limits: RecoveryLimits): number {
    const { lateReplyMs } = limits;
    const absenceMs = lateReplyMs * (this.owesCall ? owingPatience : 1);
    if (this.isWhole) return silentSinceMs + (this.isVague ? lateReplyMs : this.#answerMs(limits));
    if (this.standing === "waits") return silentSinceMs + absenceMs;
    if (this.standing === "silent") return this.sinceMs + absenceMs;
    return Number.POSITIVE_INFINITY;
  }

  believeSilence(): void {
    if (this.standing === "waits" || this.isWhole) this.#proven();
    else {
      this.#take("absent");
      this.#anew();
    }
  }

  /** When the service is to be asked next, if it is asked at all. */
  askAtMs(silentSinceMs: number, limits: RecoveryLimits): number {
    if (this.open !== undefined) return this.askedMs + this.#answerMs(limits);
    if (this.isWhole) return Number.POSITIVE_INFINITY;
    return silentSinceMs + this.#pauseMs(limits);
  }

  #answerMs({ probeIntervalMs, lateReplyMs }: RecoveryLimits): number {
    const ms = this.standing === "row" ? probeIntervalMs * 2 ** this.misfits : (this.askedMs - this.sinceMs) / 2;
    return Math.min(Math.max(ms, probeIntervalMs), lateReplyMs);
  }

  /** The pause before the next question: none before the first, nor after a right answer if none was wrong before. */
  #pauseMs({ lateReplyMs }: RecoveryLimits): number {
    if (this.misfits === 0 && (this.standing === "silent" || this.row > 0)) return 0;
    if (this.row === 0) return Math.min(pauseMs * 2 ** this.misfits, lateReplyMs);
    return Math.min(copyMs.first * 2 ** (this.misfits - 1), copyMs.most);
  }

  get state(): ServiceState {
    const { lineService, ...state } = this;
    return { service: lineService.service, ...state };
  }

  set state({ service, ...state }: ServiceState) {
    Object.assign(this, state);
  }

  #take(event: StandingEvent): void {
    const next = standings[this.standing][event];
    if (next === undefined) throw new Error(`${this.service} is ${this.standing}, where "${event}" can't happen`);
    this.standing = next;
  }
}
