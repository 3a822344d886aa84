import type { ServiceName } from "../core/call.ts";
import type { Framing } from "../wire/decoded.ts";
import { asideMs } from "./limits.ts";
import { type LineService, type Question, type RecoveryLimits, ServiceStanding, type ServiceState } from "./standing.ts";

/**
 * Whether the services of a line are in step, which one to ask what, and what an answer proves. Recovery sends nothing and has no clock;
 * moments come in as milliseconds.
 *
 * A terminal answers in order; it may lose answers, delay them for hours and repeat them, and no answer says what was asked. So posline
 * asks questions that change nothing, one at a time, drawn between two whose answers differ. An answer to an older question can't know what
 * is drawn now. A service is in step after a row of right answers; only then it gets calls. Whatever may have left an answer puts it out of
 * step. Nothing is known or assumed of the time before a row.
 *
 * A service that isn't asked, or whose answers can't be told apart, is in step after a silence. A service that answers nothing is set
 * aside: it gets no calls, and holds up nobody.
 */

/**
 * The meaning of a frame to a line that recovers, and its service if that is known: the answer to a probe or second question, something in
 * place of a probe's answer, or nobody's.
 */
export type Heard =
  | { readonly kind: "answer" | "refusal"; readonly service: ServiceName }
  | { readonly kind: "late"; readonly service: ServiceName | undefined };

/** A call, reduced to what tells whether its reply may be an answer to a question of posline's own. */
export interface Shaped {
  readonly service: ServiceName;
  readonly shapedAs: Question | undefined;
}

/** A question of posline's own that is to be sent. */
export interface DueQuestion {
  readonly lineService: LineService;
  readonly question: Question;
  /** Framed. */
  readonly frame: readonly Buffer[];
}

/** What time alone ends for a service out of step, and when. */
export interface Wait {
  readonly service: ServiceName;
  /** `silence`: it stands in for the proof. `one question`: likewise, since the second one can't be told apart. */
  readonly kind: "silence" | "one question" | "other answers" | "set aside";
  readonly leftMs: number;
}

/** All that a recovery knows, as data; its services and limits come from elsewhere. */
export interface RecoveryState {
  readonly services: readonly ServiceState[];
  readonly silentSinceMs: number;
  readonly askedMs: number;
  readonly isAnswered: boolean;
  readonly drawn: number;
}

type Json = Readonly<Record<string, unknown>>;

export class Recovery {
  readonly #services: readonly ServiceStanding[];
  readonly #limits: RecoveryLimits;
  /** When the last byte came, or the last byte of a failed call went out. */
  #silentSinceMs = 0;
  /** When any service was asked last, and whether that question was answered. */
  #askedMs = 0;
  #isAnswered = true;
  /** The last number that was drawn. */
  #drawn = 1;

  constructor(services: readonly LineService[], limits: RecoveryLimits) {
    this.#limits = limits;
    this.#services = services.map((each) => new ServiceStanding(each));
  }

  get state(): RecoveryState {
    return {
      services: this.#services.map(({ state }) => state),
      silentSinceMs: this.#silentSinceMs,
      askedMs: this.#askedMs,
      isAnswered: this.#isAnswered,
      drawn: this.#drawn,
    };
  }

  set state({ services, silentSinceMs, askedMs, isAnswered, drawn }: RecoveryState) {
    for (const each of services) {
      const service = this.#of(each.service);
      if (service !== undefined) service.state = each;
    }
    this.#silentSinceMs = silentSinceMs;
    this.#askedMs = askedMs;
    this.#isAnswered = isAnswered;
    this.#drawn = drawn;
  }

  // --- what puts a service out of step

  /** The device opened: another terminal may be there. @param owing Services that owed a call's answer on the line before. */
  opened(now: number, seed: number | undefined, owing: readonly ServiceName[] = []): void {
    if (seed !== undefined) this.#drawn = seed >>> 0 || 1;
    this.#silentSinceMs = now;
    this.#isAnswered = true;
    for (const service of this.#services) {
      service.out(now);
      service.owesCall ||= owing.includes(service.service);
    }
  }

  /** A call had no whole answer. */
  lost(name: ServiceName, now: number): void {
    const service = this.#of(name);
    if (service === undefined) return;
    service.owesCall = true;
    this.#out(service, now);
  }

  /** An idle line's probe had no whole answer. A service that was set aside stays so. */
  lostIdle(name: ServiceName, now: number): void {
    const service = this.#of(name);
    if (service === undefined) return;
    // An answer to the service that is aside may come late, and be taken for an answer of another service of its framing.
    if (service.standing === "aside") this.#outBeside(({ framing }) => framing === service.framing, now);
    else this.#out(service, now);
  }

  /** Services in step that are asked have to prove themselves anew. */
  #outBeside(which: (service: ServiceStanding) => boolean, now: number): void {
    const isAsked = ({ standing, lineService }: ServiceStanding) => standing === "in step" && lineService.probe !== undefined;
    for (const each of this.#services) if (isAsked(each) && which(each)) this.#out(each, now);
  }

  /**
   * A frame came that nobody asked for: it puts the services of its framing out of step. One that was set aside stays so, unless it owes a
   * call's answer, which this may be, or the frame answers posline's own question to it.
   */
  unasked(framing: Framing, reply: Json | undefined, now: number): void {
    const known = reply === undefined ? undefined : this.#answerIn(framing, reply)?.service;
    for (const each of this.#services) {
      if (each === known || (each.framing === framing && (each.standing === "in step" || each.owesCall))) this.#out(each, now);
    }
  }

  #out(service: ServiceStanding, now: number): void {
    // If a service that was set aside answers, the terminal was switched on: the others may be there too.
    const those = service.standing === "aside" ? this.#services.filter(({ standing }) => standing === "aside") : [service];
    for (const each of those) each.out(now);
    this.#silentSinceMs = now;
    this.#isAnswered = true;
  }

  // --- what is known

  /** Services that owe a call's answer: the line that follows on the same device must know them. */
  get owing(): readonly ServiceName[] {
    return this.#names(({ owesCall }) => owesCall);
  }

  /** Services that the line recovers for. */
  get out(): readonly ServiceName[] {
    return this.#names(({ isOut }) => isOut);
  }

  /** Services out of step that answer as they should. */
  get answering(): readonly ServiceName[] {
    return this.#names(({ standing, isVague }) => standing === "row" && !isVague);
  }

  get aside(): readonly ServiceName[] {
    return this.#names(({ standing }) => standing === "aside");
  }

  /** Services in step that answer posline's questions otherwise than they should. */
  get vague(): readonly ServiceName[] {
    return this.#names(({ standing, isVague }) => standing === "in step" && isVague);
  }

  #names(which: (service: ServiceStanding) => boolean): readonly ServiceName[] {
    return this.#services.filter(which).map(({ service }) => service);
  }

  /** True if each service is in step, or set aside. */
  get isClean(): boolean {
    return this.#services.every(({ isOut }) => !isOut);
  }

  /** The service set aside that keeps this service from getting calls: itself, or one of its framing that owes a call's answer. */
  hindering(name: ServiceName): ServiceName | undefined {
    const own = this.#of(name);
    const isHindering = (each: ServiceStanding) => each === own || (each.framing === own?.framing && each.owesCall);
    return this.#services.find((each) => each.standing === "aside" && isHindering(each))?.service;
  }

  /** Whether a reply can only be the answer to a question of posline's own, and not to this request. */
  isProbeAnswer(framing: Framing, reply: Json, { service, shapedAs }: Shaped): boolean {
    const answer = this.#answerIn(framing, reply);
    return answer !== undefined && !(answer.question === shapedAs && answer.service.service === service);
  }

  // --- what comes

  heardBytes(now: number): void {
    this.#silentSinceMs = now;
  }

  /** A whole frame came while recovering. `reply` is undefined when it is not a JSON object. */
  heard(framing: Framing, reply: Json | undefined, now: number): Heard {
    const known = reply === undefined ? undefined : this.#answerIn(framing, reply);
    const service = known?.service ?? this.#askedLast(framing);
    // An answer after a whole row is left over from it. For a vague service it is an answer more.
    if (service?.open === undefined)
      for (const each of this.#services) if (each.isWhole && !each.isVague && each.framing === framing) each.misfit();
    if (service === undefined) return { kind: "late", service: undefined };
    const { service: name } = service;
    if (service.open === undefined) {
      // A service that was set aside is there after all. A frame in a pause says nothing of the next question.
      if (known !== undefined && !service.isOut) this.#out(service, now);
      return { kind: "late", service: known === undefined ? undefined : name };
    }
    const isInRow = service.standing === "row" && !service.isVague;
    const fit = service.answered(known?.question === "probe", now);
    if (service.open === undefined) this.#isAnswered = true;
    if (fit === "right") return { kind: "answer", service: name };
    return isInRow || known !== undefined ? { kind: "late", service: name } : { kind: "refusal", service: name };
  }

  /** An idle line's probe was answered; `reply` is undefined when that is not a JSON object. @returns whether rightly. */
  answeredIdle(name: ServiceName, reply: Json | undefined, now: number): boolean {
    const service = this.#of(name);
    if (service === undefined) return false;
    const isRight = reply !== undefined && service.lineService.questionOf(reply) === "probe";
    if (!isRight || service.standing === "aside") this.#out(service, now);
    return isRight;
  }

  // --- what is asked

  /** The question to ask now, if it is time for one; the caller sends it. */
  askDue(now: number): DueQuestion | undefined {
    const service = this.#next(now);
    if (service === undefined) return undefined;
    if (service.open !== undefined) service.giveUp(now);
    const question = service.next(() => this.#draw());
    service.ask(question, now);
    this.#askedMs = now;
    this.#isAnswered = false;
    const { lineService } = service;
    const frame = question === "second" ? lineService.second : lineService.probe;
    return frame === undefined ? undefined : { lineService, question, frame };
  }

  /** Among services that are to be asked by now, the one asked longest ago. */
  #next(now: number): ServiceStanding | undefined {
    let next: ServiceStanding | undefined;
    for (const each of this.#services) {
      if (!each.isAsked || now < this.#askAtMs(each)) continue;
      if (next === undefined || each.askedMs < next.askedMs) next = each;
    }
    return next;
  }

  /** When a service may be asked: one question is out at a time, unless an answer stays out. */
  #askAtMs(service: ServiceStanding): number {
    const freeMs = this.#isAnswered ? Number.NEGATIVE_INFINITY : this.#askedMs + this.#limits.probeIntervalMs;
    return Math.max(freeMs, service.askAtMs(this.#silentSinceMs, this.#limits));
  }

  /** Draws between two, by Marsaglia's xorshift: the draw needn't be secret, only other than what was asked before. */
  #draw(): boolean {
    let drawn = this.#drawn;
    drawn ^= drawn << 13;
    drawn ^= drawn >>> 17;
    drawn ^= drawn << 5;
    this.#drawn = drawn >>> 0;
    return this.#drawn >= 0x8000_0000;
  }

  /** Notes that the last byte of a question, or of a call that failed while it was written, is out: only from now on can it be answered. */
  wrote(now: number): void {
    const asked = this.#services.find(({ open, askedMs }) => open !== undefined && askedMs === this.#askedMs);
    if (asked === undefined) this.#silentSinceMs = now;
    else {
      asked.askedMs = now;
      this.#askedMs = now;
    }
  }

  get askedMs(): number {
    return this.#askedMs;
  }

  /** Lets a silence stand in for the services for which it lasted long enough. @returns these services. */
  believeSilence(now: number): readonly ServiceName[] {
    const believed = this.#services.filter((each) => now >= this.#silenceDueMs(each));
    for (const each of believed) each.believeSilence();
    // The terminal may be off, or answer late what was asked last.
    if (believed.some(({ standing }) => standing === "aside")) this.#outBeside(() => true, now);
    return believed.map(({ service }) => service);
  }

  /** The waits for services out of step, as things stand. */
  waits(now: number): readonly Wait[] {
    return this.#services.flatMap((each): readonly Wait[] => {
      const { service, standing, isWhole, isVague, isRefusing, owesCall } = each;
      const pauses = each.pausesUntilVague(this.#limits);
      if (pauses > 0) return [{ service, kind: "other answers", leftMs: pauses + this.#limits.lateReplyMs }];
      const leftMs = this.#silenceDueMs(each) - now;
      if (leftMs === Number.POSITIVE_INFINITY || (isWhole && !isVague)) return [];
      if (standing === "silent") return !owesCall ? [] : [{ service, kind: "set aside", leftMs }];
      return [{ service, kind: standing === "row" && !isRefusing ? "one question" : "silence", leftMs }];
    });
  }

  /** When a silence is long enough for a service. Nothing is asked in it either: while a question is out, the terminal may be busy. */
  #silenceDueMs(service: ServiceStanding): number {
    return service.silenceDueMs(Math.max(this.#silentSinceMs, this.#askedMs), this.#limits);
  }

  /**
   * When there is something to do next, unless something is heard before. @param still Nothing is half heard: only then a silence counts.
   */
  dueMs(still: boolean): number {
    let due = Number.POSITIVE_INFINITY;
    for (const each of this.#services) {
      if (each.isAsked) due = Math.min(due, this.#askAtMs(each));
      if (still) due = Math.min(due, this.#silenceDueMs(each));
    }
    return due;
  }

  // --- an idle line

  /**
   * When an idle line asks which service: one in step that can be told apart, so that a terminal switched off is known before the next
   * sale; or one that was set aside, for it may be there again.
   * @param idleProbeMs The setting; 0 if services in step aren't asked.
   * @param idleSinceMs When the line was last busy.
   */
  idleDue(idleProbeMs: number, idleSinceMs: number): { readonly lineService: LineService | undefined; readonly dueMs: number } {
    let next: ServiceStanding | undefined;
    let dueMs = Number.POSITIVE_INFINITY;
    for (const each of this.#services) {
      const eachMs = this.#idleDueMs(each, idleProbeMs, idleSinceMs);
      if (eachMs > dueMs || (eachMs === dueMs && each.askedMs >= (next?.askedMs ?? eachMs))) continue;
      dueMs = eachMs;
      next = each;
    }
    return { lineService: next?.lineService, dueMs };
  }

  #idleDueMs(service: ServiceStanding, idleProbeMs: number, idleSinceMs: number): number {
    if (service.standing === "aside") return this.#asideDueMs(service);
    if (idleProbeMs === 0 || service.lineService.probe === undefined || service.isRefusing) return Number.POSITIVE_INFINITY;
    return Math.max(idleSinceMs, service.askedMs) + idleProbeMs;
  }

  /**
   * When to ask a service that is aside. If all are silent, they take turns. Beside services that answer, each question holds those up, so
   * the wait is as long as the service has been silent already.
   */
  #asideDueMs({ askedMs, sinceMs }: ServiceStanding): number {
    if (this.#services.every(({ standing }) => standing !== "in step")) return this.#askedMs + asideMs.least;
    return askedMs + Math.min(Math.max(askedMs - sinceMs, asideMs.least), asideMs.most);
  }

  /** Notes that an idle line asks this service. */
  askedIdle(name: ServiceName, now: number): void {
    const service = this.#of(name);
    if (service !== undefined) service.askedMs = now;
    this.#askedMs = now;
  }

  // ---

  #of(name: ServiceName): ServiceStanding | undefined {
    return this.#services.find(({ service }) => service === name);
  }

  /** Among services of a framing whose question is out, the one asked last. */
  #askedLast(framing: Framing): ServiceStanding | undefined {
    let last: ServiceStanding | undefined;
    for (const each of this.#services) {
      if (each.framing !== framing || each.open === undefined) continue;
      if (last === undefined || each.askedMs > last.askedMs) last = each;
    }
    return last;
  }

  /** The service and question that a reply can only be the answer to. */
  #answerIn(framing: Framing, reply: Json): { readonly service: ServiceStanding; readonly question: Question } | undefined {
    for (const service of this.#services) {
      if (service.framing !== framing) continue;
      const question = service.lineService.questionOf(reply);
      if (question !== undefined) return { service, question };
    }
    return undefined;
  }
}
