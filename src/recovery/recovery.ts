import type { ServiceName } from "../core/call.ts";
import type { Framing } from "../wire/decoded.ts";
import { drainMs, humPatience, oddMin, provenPatience, staleProbesMax } from "./limits.ts";
import {
  type KnownAnswers,
  type LineService,
  ProbeAccount,
  type ProbeAccountState,
  type RecoveryLimits,
} from "./probe-account.ts";
import type { Question } from "./questions.ts";

/**
 * How a line is proven clean: who owes it an answer, what to ask, and what an answer proves. It sends nothing and has no clock;
 * moments come in as milliseconds.
 *
 * A service owes while an answer of it may still be on its way. It stops owing when its *probe* is answered: a read-only request
 * of its own whose answer has a shape that no other has. A terminal answers in order, so whatever it owed came before. A device that
 * answers no probe stops owing after a long silence.
 *
 * Probes are repeated, so an answer may belong to an earlier one, from before the request whose late answer is feared. That proves
 * nothing. So answers are counted: only when more came than could be stale, one of them belongs to a probe of this recovery. Stale
 * answers that may still come at the end are waited for a little.
 *
 * One that comes later still is known by its shape, unless the probe is answered with an error, which looks like any call's. So
 * while such an answer is known to be possible, a call's error proves nothing: its outcome is unknown, or the call is
 * sent again where that does no harm. A call's own reply takes its service's count back to none, for what was asked before it was
 * answered before it; and so does a silence of `lateReplyMs`.
 *
 * A terminal of another version may answer its probe with a success of another shape, which looks like any call's success. It says no
 * more than an error, and it may be a late answer as well. So whatever isn't of the shape counts towards asking no more, and then
 * silence settles: not before `lateReplyMs` is over since the last probe, or the next call would be given that probe's answer.
 *
 * A terminal that takes its time must not be swamped: the longer a probe has had no answer, the longer the next one waits. And no
 * call is sent while more than `staleProbesMax` answers are known to be possible, for so many the next process takes for left over.
 */

/**
 * What a frame is to a line that recovers, and whose it is where that is known: the answer to a service's probe, an error that may
 * refuse it, something else that it answers to its probes, or late.
 */
export type Heard =
  | { readonly kind: "answer" | "refusal" | "odd"; readonly service: ServiceName }
  | { readonly kind: "late"; readonly service: ServiceName | undefined };

/** A call, as far as its reply may be taken for an answer to a question of posline's own. */
export interface Shaped {
  readonly service: ServiceName;
  readonly shapedAs: Question | undefined;
}

/** A question of posline's own that is to be sent. */
export interface Asked {
  readonly lineService: LineService;
  readonly question: Question;
  /** Framed. */
  readonly frame: readonly Buffer[];
}

/** All that a recovery knows, as data; its services and limits come from elsewhere. */
export interface RecoveryState {
  readonly accounts: readonly ProbeAccountState[];
  /** Longest first. */
  readonly owing: readonly ServiceName[];
  /** Whom to ask while the line is idle. */
  readonly proven: readonly ServiceName[];
  readonly silentSinceMs: number;
  readonly probeAtMs: number;
  readonly probedMs: number;
  readonly awaitsStale: boolean;
  /** Where the draws go on; absent before the first, and in recordings made before there were any. */
  readonly drawn?: number | undefined;
  /** Absent where it is the usual one, as in recordings made before it was noted. */
  readonly drainMs?: number | undefined;
  readonly drainUntilMs?: number | undefined;
}

/** Milliseconds by which two times differ at most that are the same, and were reckoned in two ways. */
const roundingMs = 0.001;

export class Recovery {
  readonly #accounts: ReadonlyMap<ServiceName, ProbeAccount>;
  readonly #limits: RecoveryLimits;
  /** The services that owe, longest first. */
  readonly #owing = new Map<ServiceName, ProbeAccount>();
  /** Whom to ask while the line is idle. A list, since it is looked at after each exchange; called `proven` in recordings. */
  readonly #idleProbed: LineService[] = [];
  #silentSinceMs = 0;
  #probeAtMs = 0;
  /** When a probe was sent last: its last byte, or where that isn't out yet, its first. */
  #probedMs = 0;
  /** True when nobody owes and stale answers may still be on their way. */
  #awaitsStale = false;
  /** How long the silence must last for that, and until when it is waited for. */
  #drainMs = drainMs;
  #drainUntilMs = Number.POSITIVE_INFINITY;
  /** The last number that was drawn. */
  #drawn = 1;

  constructor(services: readonly LineService[], limits: RecoveryLimits) {
    this.#limits = limits;
    this.#accounts = new Map(services.map((lineService) => [lineService.service, new ProbeAccount(lineService)]));
    for (const account of this.#accounts.values()) this.#owing.set(account.service, account);
  }

  /** All that it knows, as data from which another goes on: a recording begins with it. */
  get state(): RecoveryState {
    return {
      accounts: [...this.#accounts.values()].map(({ state }) => state),
      owing: this.owing,
      proven: this.#idleProbed.map(({ service }) => service),
      silentSinceMs: this.#silentSinceMs,
      probeAtMs: this.#probeAtMs,
      probedMs: this.#probedMs,
      awaitsStale: this.#awaitsStale,
      ...(this.#drawn === 1 ? {} : { drawn: this.#drawn }),
      ...(this.#drainMs === drainMs ? {} : { drainMs: this.#drainMs }),
      ...(this.#drainUntilMs === Number.POSITIVE_INFINITY ? {} : { drainUntilMs: this.#drainUntilMs }),
    };
  }

  set state({ accounts, owing, proven, silentSinceMs, probeAtMs, probedMs, awaitsStale, ...rest }: RecoveryState) {
    for (const each of accounts) {
      const account = this.#accounts.get(each.service);
      if (account !== undefined) account.state = each;
    }
    const known = (names: readonly ServiceName[]) => names.flatMap((name) => this.#accounts.get(name) ?? []);
    this.#owing.clear();
    for (const account of known(owing)) this.#owing.set(account.service, account);
    this.#idleProbed.splice(0, this.#idleProbed.length, ...known(proven).map(({ lineService }) => lineService));
    this.#silentSinceMs = silentSinceMs;
    this.#probeAtMs = probeAtMs;
    this.#probedMs = probedMs;
    this.#awaitsStale = awaitsStale;
    this.#drawn = rest.drawn ?? 1;
    this.#drainMs = rest.drainMs ?? drainMs;
    this.#drainUntilMs = rest.drainUntilMs ?? Number.POSITIVE_INFINITY;
  }

  /** What the line that follows on the same device must know. */
  get known(): readonly KnownAnswers[] {
    return [...this.#accounts.values()].map((account) => {
      const { service, isOdd, answersProbes, answeredProbes, isGivenUp, stillOutKnown: stillOut } = account;
      const { staleAssumed, unheard, owesCall, secondsOut, questions } = account;
      const { isBehind, offersSecond, answersSecond } = questions;
      const isProven = account.isProven || account.wasProven;
      const answers = { isProven, isOdd, answersProbes, answeredProbes, isBehind, offersSecond, answersSecond };
      return { service, ...answers, isGivenUp, stillOut, assumed: Math.max(staleAssumed, unheard), owesCall, secondsOut };
    });
  }

  /** The line before knew this, or several lines did. A proven service that has no probe any more gets one long silence. */
  inherit(known: readonly KnownAnswers[]): void {
    for (const { service, isProven, isOdd, answersProbes, answeredProbes, stillOut, assumed = 0, ...asked } of known) {
      const account = this.#accounts.get(service);
      if (account === undefined) continue;
      account.questions.isBehind ||= asked.isBehind === true;
      account.questions.offersSecond ||= asked.offersSecond === true && account.lineService.second !== undefined;
      account.questions.answersSecond ||= asked.answersSecond === true;
      account.owesCall ||= asked.owesCall === true;
      account.secondsOut = Math.max(account.secondsOut, asked.secondsOut ?? 0);
      account.isOdd ||= isOdd;
      account.answeredProbes ||= answeredProbes;
      account.staleKnown = Math.max(account.staleKnown, stillOut);
      account.staleAssumed = Math.max(account.staleAssumed, assumed);
      account.isGivenUp = known.every((each) => each.service !== service || each.isGivenUp);
      account.wasProven ||= isProven;
      if (isProven && account.lineService.probe !== undefined) account.isProven = true;
      else if (isProven || answersProbes) account.answersProbes = true;
      if (account.isProven && !account.isOdd) this.#probeWhileIdle(account);
    }
  }

  /** What is drawn from now on follows from this: no process's questions are those of the one before. */
  seed(seed: number): void {
    this.#drawn = seed >>> 0 || 1;
  }

  get owing(): readonly ServiceName[] {
    return [...this.#owing.keys()];
  }

  /** Those that owe no more than left-over answers: their probes were answered. */
  get answered(): readonly ServiceName[] {
    return [...this.#owing.values()].filter(({ hasAnswered }) => hasAnswered).map(({ service }) => service);
  }

  /** Those that answered nothing of what they were asked last. */
  get silent(): readonly ServiceName[] {
    return [...this.#owing.values()].filter(({ isAnswering }) => !isAnswering).map(({ service }) => service);
  }

  /** Whether anybody owes. */
  get owes(): boolean {
    return this.#owing.size > 0;
  }

  /** Whether nobody owes an answer any more, and no stale one comes. */
  isClean(now: number): boolean {
    return !this.owes && (!this.#awaitsStale || now >= this.#drainedMs);
  }

  /** No answer can come to a probe before the whole of it is out, which may take seconds: what is silent until then says nothing. */
  get #drainedMs(): number {
    return Math.min(Math.max(this.#silentSinceMs, this.#probedMs) + this.#drainMs, this.#drainUntilMs);
  }

  /**
   * An answer of this service may still be on its way.
   * @param shapedAs The question of posline's own whose answer it will look like, because a caller asked that very route.
   */
  owe(service: ServiceName, shapedAs?: Question): void {
    const account = this.#accounts.get(service);
    if (account === undefined) return;
    const isProbeShaped = shapedAs !== undefined;
    if (isProbeShaped) {
      account.setStale(account.stale + 1);
      account.staleBefore = 0;
    }
    if (shapedAs === "probe" && !account.isProven) this.#stopIdleProbes(account);
    account.idleSinceMs = 0;
    // A call, for which it may print, or wait for a customer's card; the probe is posline's own, or asks for as little.
    if (shapedAs !== "probe") {
      account.isGivenUp = false;
      account.owesCall = true;
    }
    this.#owing.set(service, account);
  }

  /**
   * A whole frame came that nobody asked for: every service of its framing may be about to answer, unless one of them is known
   * to, which explains the frame.
   */
  suspectFraming(framing: Framing): void {
    const accounts = this.#accountsOf(framing);
    if (accounts.some(({ service }) => this.#owing.has(service))) return;
    for (const { service } of accounts) this.owe(service);
  }

  /** Starts afresh at `now`: what was asked earlier is stale, and the silence begins anew. */
  begin(now: number): void {
    for (const account of this.#owing.values()) {
      account.setStale(account.stillOut);
      account.renew();
    }
    this.#awaitsStale = false;
    this.#drainMs = drainMs;
    this.#drainUntilMs = Number.POSITIVE_INFINITY;
    this.#silentSinceMs = now;
    this.#probeAtMs = now;
  }

  /**
   * Errors come again and again that may be left-over ones, and each begins that doubt anew: starts afresh, and ends only once nothing came
   * for so long that none is left, or on a line that is never silent, after three times as long.
   */
  outlastStale(now: number): void {
    this.begin(now);
    this.#awaitsStale = true;
    this.#drainMs = this.#limits.lateReplyMs;
    this.#drainUntilMs = now + this.#limits.lateReplyMs * humPatience;
  }

  /** The line is clean. What was to be outlasted doesn't come any more. */
  end(now: number): void {
    if (this.#drainUntilMs === Number.POSITIVE_INFINITY) return;
    this.#drainUntilMs = Number.POSITIVE_INFINITY;
    for (const account of this.#accounts.values()) account.expectNothingBefore(now);
  }

  /** Bytes come without an end, though nobody is known to owe: starts afresh, until they pause. */
  awaitPause(now: number): void {
    this.begin(now);
    this.#awaitsStale = true;
  }

  /** To which of posline's own questions a reply of this service may be the answer. */
  questionOf(service: ServiceName, reply: Readonly<Record<string, unknown>>): Question | undefined {
    return this.#accounts.get(service)?.lineService.questionOf(reply);
  }

  /**
   * A call's own reply came: the service has answered all that it was asked before.
   * @param shapedAs The question of posline's own whose answer it looks like: it may be the answer to that.
   */
  replied(service: ServiceName, shapedAs?: Question): void {
    const account = this.#accounts.get(service);
    if (account === undefined || (shapedAs !== undefined && account.stale > 0)) return;
    account.replied();
    if (account.isSilent && account.isUnknown) {
      account.isTried = true;
      this.#probeWhileIdle(account);
    }
    this.#noteReply(account);
    if (account.answeredProbes) account.answersProbes = true;
  }

  /**
   * An idle line's question was answered. One that wasn't known to answer any is known from now on, as it answers.
   */
  repliedIdle(service: ServiceName, reply: Readonly<Record<string, unknown>>, now: number): void {
    const account = this.#accounts.get(service);
    if (account === undefined) return;
    const isRight = account.lineService.questionOf(reply) === "probe";
    account.repliedIdle(now, this.#limits);
    this.#noteAnswer(account, reply);
    this.#noteReply(account);
    if (account.isProven) return;
    account.isProven = isRight;
    if (isRight) return;
    account.answersWrongly();
    this.#stopIdleProbes(account);
  }

  /**
   * A reply came while a call awaited its own: true when it may as well answer a stale probe, of the call's service or of another of its
   * framing. A success may where that service answers its probes with something of another shape, and where it looks like the answer to the
   * second question and such a one may come. Where only the call's own service can have sent it, one answer is counted off: it was this
   * frame, or none is left, since a terminal answers in order. The first error after a silence may be that of a terminal that hung, and
   * answers what it was asked before, however long ago.
   */
  takeAmbiguous(
    framing: Framing,
    { service, shapedAs }: Shaped,
    reply: Readonly<Record<string, unknown>>,
    now: number,
  ): boolean {
    const accounts = this.#accountsOf(framing);
    const isSuccess = reply["status"] === "success";
    const own = this.#accounts.get(service);
    if (shapedAs === "second" && own?.mayAnswerSecond === true && own.lineService.questionOf(reply) === "second") {
      own.staleCame("second");
      return true;
    }
    if (now < Math.max(this.#probedMs, this.#silentSinceMs) + this.#limits.lateReplyMs) {
      const suspect = accounts.find(({ isStaleKnown, isOdd }) => isStaleKnown && (isOdd || !isSuccess));
      if (suspect?.service === service && this.#isAlone(framing)) suspect.staleCame(undefined);
      if (suspect !== undefined) return true;
    }
    return !isSuccess && this.isSilent(service) && accounts.some(({ mayErr }) => mayErr);
  }

  /** Bytes came, of whatever kind: a service that owes isn't silent yet. */
  heardBytes(now: number): void {
    this.#silentSinceMs = now;
  }

  /** A whole frame came while recovering. `reply` is undefined when it is not a JSON object. */
  heard(framing: Framing, reply: Readonly<Record<string, unknown>> | undefined, now: number): Heard {
    const answer = reply === undefined ? undefined : this.#answerIn(framing, reply);
    if (answer === undefined) {
      const heard = this.#heardWrong(this.#probedLast(framing), reply?.["status"] === "error", now);
      this.suspectFraming(framing);
      return heard;
    }
    const { account, question } = answer;
    const { service } = account;
    if (!this.#owing.has(service) || account.sent === 0) {
      // What comes behind a row may be a copy; where a silence was wrong, answers to calls may come.
      const isOutOfStep = account.wasWronglySettled;
      this.#cameLate(account, question);
      if (isOutOfStep) this.#owing.set(service, account);
      return { kind: "late", service };
    }
    this.#probeWhileIdle(account);
    if (reply !== undefined) this.#noteAnswer(account, reply);
    account.take(now, this.#limits, question);
    this.#probeAtMs = now;
    if (account.hasAnswered) this.#noteReply(account);
    if (account.hasAnswered && account.stillOutKnown <= staleProbesMax) {
      account.setStale(account.stillOut);
      account.proved();
      this.#settle(account);
    }
    return { kind: "answer", service };
  }

  /** An answer to its probe says whether it can be asked the second question. */
  #noteAnswer({ questions, lineService }: ProbeAccount, reply: Readonly<Record<string, unknown>>): void {
    if (lineService.second !== undefined && lineService.questionOf(reply) === "probe") {
      questions.offersSecond = lineService.offersSecond(reply);
    }
  }

  /** Not an answer in shape: it may be what the service answers to its probe, or late. */
  #heardWrong(account: ProbeAccount | undefined, isError: boolean, now: number): Heard {
    if (account === undefined) return { kind: "late", service: undefined };
    const { service } = account;
    account.answerWrongly(now, { isError, isAlone: this.#isAlone(account.framing) });
    // One may be a call's answer, late.
    if (isError) return account.refusals > 1 ? { kind: "refusal", service } : { kind: "late", service: undefined };
    if (account.odd < oddMin) return { kind: "late", service: undefined };
    // Asked while the line is idle, it would begin a recovery that it can't end by an answer.
    this.#stopIdleProbes(account);
    return { kind: "odd", service };
  }

  /**
   * It replied, so services that are still silent are silent alone, and are asked only once an hour. Not by its first reply after a silence of
   * its own: the terminal may just have been switched on.
   */
  #noteReply(account: ProbeAccount): void {
    for (const other of this.#accounts.values()) other.isBesideOthers = other.isSilent && !account.isSilent;
    account.isSilent = false;
    account.isGivenUp = false;
    account.isBesideOthers = false;
  }

  /** A silence settled it. Others that are silent may be off with it, so they aren't silent alone any more. */
  #noteSilence(account: ProbeAccount): void {
    account.isSilent = true;
    account.isGivenUp = account.wrong === 0;
    for (const each of this.#accounts.values()) if (each !== account) each.isBesideOthers = false;
  }

  /** It is asked while the line is idle. */
  #probeWhileIdle({ lineService }: ProbeAccount): void {
    if (!this.#idleProbed.includes(lineService)) this.#idleProbed.push(lineService);
  }

  /** It isn't asked while the line is idle. */
  #stopIdleProbes({ lineService }: ProbeAccount): void {
    const index = this.#idleProbed.indexOf(lineService);
    if (index !== -1) this.#idleProbed.splice(index, 1);
  }

  /** Whether a reply can only be the answer to a question of posline's own, and not to this request. */
  isProbeAnswer(framing: Framing, reply: Readonly<Record<string, unknown>>, { service, shapedAs }: Shaped): boolean {
    const answer = this.#answerIn(framing, reply);
    return answer !== undefined && !(answer.question === shapedAs && answer.account.service === service);
  }

  /**
   * A frame came while the line was clean or a call awaited its reply: `left over` when it is the stale answer to a probe, which must not be
   * given to a call of another route; `out of step` when none should have been left, or the answers to older calls may follow.
   */
  heardStale(framing: Framing, reply: Readonly<Record<string, unknown>>, now: number): "left over" | "out of step" | undefined {
    const answer = this.#answerIn(framing, reply);
    if (answer === undefined) return undefined;
    const { account, question } = answer;
    this.#silentSinceMs = now;
    const isOutOfStep = account.contradicts();
    this.#cameLate(account, question);
    return isOutOfStep ? "out of step" : "left over";
  }

  /**
   * An answer to a question that isn't waited for any more: it answers, if late, so its silence may mean that it is busy. Of one that can't be
   * asked it is a till's own question that was answered.
   */
  #cameLate(account: ProbeAccount, question: Question): void {
    account.staleCame(question);
    if (account.lineService.probe === undefined) return;
    account.isProven = true;
    if (!account.isOdd) this.#probeWhileIdle(account);
  }

  /**
   * Whom to ask while the line is idle: who has answered a probe in this process, and nothing else to probes since; and once, who was
   * silent when it was asked, and replied to a call since.
   */
  get idleProbed(): readonly LineService[] {
    return this.#idleProbed;
  }

  /**
   * Whether it is asked only once an hour while the line is idle: it is silent alone, and each question would hold up the others. Where all
   * are silent, nobody is held up.
   */
  isSilentAlone(service: ServiceName): boolean {
    return this.isSilent(service) && this.#accounts.get(service)?.isBesideOthers === true;
  }

  /** Whether it is known to have older answers to come: then its answers may be those to earlier questions. */
  mayBeBehind(service: ServiceName): boolean {
    return this.#accounts.get(service)?.isStaleKnown === true;
  }

  /** Whether silence settled it last, and it has replied to nothing since. */
  isSilent(service: ServiceName): boolean {
    return this.#accounts.get(service)?.isSilent ?? false;
  }

  /** Whether it has answered a probe in this process. */
  isProven(service: ServiceName): boolean {
    return this.#accounts.get(service)?.isProven ?? false;
  }

  /** When a probe was sent last. */
  get probedMs(): number {
    return this.#probedMs;
  }

  /** What to ask now, if it is time for it; the caller sends it. */
  probeDue(now: number): Asked | undefined {
    if (now < this.#probeAtMs) return undefined;
    const account = this.#nextToProbe(now);
    if (account === undefined) return undefined;
    const { lineService } = account;
    const { question, isDrawn } = account.question(() => this.#draw());
    account.ask(now, this.#limits, question, isDrawn);
    this.#probeAtMs = now + this.#limits.probeIntervalMs;
    this.#probedMs = now;
    const frame = question === "second" ? lineService.second : lineService.probe;
    return frame === undefined ? undefined : { lineService, question, frame };
  }

  /** One of two, by Marsaglia's xorshift: it needn't be secret, only other than what was asked before. */
  #draw(): boolean {
    let drawn = this.#drawn;
    drawn ^= drawn << 13;
    drawn ^= drawn >>> 17;
    drawn ^= drawn << 5;
    this.#drawn = drawn >>> 0;
    return this.#drawn >= 0x8000_0000;
  }

  /** The last byte is out of a probe, or of a call that failed while it was written: only from now on can it be answered. */
  wrote(now: number): void {
    const asked = [...this.#owing.values()].filter((account) => account.wrote(this.#probedMs, now));
    if (asked.length > 0) this.#probedMs = now;
    else this.#silentSinceMs = now;
  }

  /** Settles by silence those for whom it lasted long enough; true when it settled any. */
  settleBySilence(now: number): boolean {
    // Who is settled first says nothing of the others.
    const owing = [...this.#owing.values()];
    const settled = owing.filter((account) => now >= this.#settlesAtMs(account));
    for (const account of owing) {
      const settlesAtMs = this.#settlesAtMs(account);
      // Silent for long enough, but not since its last probe: another one would begin that wait again.
      if (now < settlesAtMs && now >= this.#quietEnoughMs(account)) account.dueMs = Math.max(account.dueMs, settlesAtMs);
    }
    for (const account of settled) {
      const sinceMs = now - this.#limits.lateReplyMs + roundingMs;
      if (account.isAnswering) this.#noteReply(account);
      else this.#noteSilence(account);
      if (this.#silentSinceMs <= sinceMs) account.expectNothingBefore(sinceMs);
      else account.setStale(account.stillOut);
      if (account.wrong === 0) account.answersProbes = false;
      this.#settle(account);
    }
    return settled.length > 0;
  }

  /**
   * When there is something to do next, unless something is heard before.
   * @param still Nothing is half heard: only then silence settles anything.
   */
  dueMs(still: boolean): number {
    let due = Number.POSITIVE_INFINITY;
    for (const account of this.#owing.values()) if (account.isAskable) due = Math.min(due, this.#askMs(account));
    due = Math.max(due, this.#probeAtMs);
    if (!still) return due;
    if (!this.owes) return this.#awaitsStale ? this.#drainedMs : this.#silentSinceMs;
    for (const account of this.#owing.values()) due = Math.min(due, this.#settlesAtMs(account));
    return due;
  }

  /**
   * When silence settles it. One that has answered has only left-over answers to send: it isn't waited for longer than for others, nor
   * for ever. Where a service of its framing answers wrongly, so may it answer its last probe: what comes would be taken for a call's.
   */
  #settlesAtMs(account: ProbeAccount): number {
    const { lateReplyMs } = this.#limits;
    if (account.hasAnswered) {
      return Math.min(this.#silentSinceMs + lateReplyMs, account.answeredAtMs + lateReplyMs * humPatience);
    }
    const probedMs = account.unanswered.at(-1);
    const answersWrongly =
      this.#accountsOf(account.framing).some(({ isOdd }) => isOdd) ||
      this.#owingOf(account.framing).some(({ wrong }) => wrong > 0);
    const quietEnoughMs = this.#quietEnoughMs(account);
    return probedMs === undefined || !answersWrongly ? quietEnoughMs : Math.max(quietEnoughMs, probedMs + lateReplyMs);
  }

  /** When it has been silent for long enough. */
  #quietEnoughMs(account: ProbeAccount): number {
    return this.#silentSinceMs + this.#limits.lateReplyMs * this.#silencesOf(account);
  }

  /**
   * For how many times `lateReplyMs` it must be silent. One that was given up asking in this recovery answers, if in another shape, so it
   * doesn't wait for a customer's card, as one that answers with errors may; unless another one of its framing owes, whose answers those
   * may have been. One that answers probes otherwise, and is silent now, may wait for a card, whatever it answers them.
   */
  #silencesOf(account: ProbeAccount): number {
    if (!account.isProbingStopped) return account.answersProbes ? provenPatience : account.patience;
    return account.isOdd && this.#owingOf(account.framing).length === 1 ? 1 : account.patience;
  }

  /**
   * When it may be asked next. One that was given up is asked again where no silence has settled it for twice as long as that takes: the
   * wrong answers may have been nobody's, of a line that is never silent. So is one whose silence is waited for.
   */
  #askMs(account: ProbeAccount): number {
    const { lateReplyMs } = this.#limits;
    const { awaitsSilence, isProbingStopped, dueMs, answeredAtMs } = account;
    const most = Math.max(...[...this.#owing.values()].map((each) => each.patience));
    if (isProbingStopped) return this.#probedMs + 2 * lateReplyMs * most;
    return awaitsSilence ? Math.max(dueMs, answeredAtMs + 2 * lateReplyMs * most) : dueMs;
  }

  #owingOf(framing: Framing): readonly ProbeAccount[] {
    return [...this.#owing.values()].filter((account) => account.framing === framing);
  }

  /** Of those that may be asked now, the one probed longest ago. */
  #nextToProbe(now: number): ProbeAccount | undefined {
    let next: ProbeAccount | undefined;
    for (const account of this.#owing.values()) {
      if (!account.isAskable || now < this.#askMs(account)) continue;
      if (next === undefined || account.sentAtMs < next.sentAtMs) next = account;
    }
    return next;
  }

  /**
   * Whether one service of a framing is left whose answers may come. One that has answered with errors may do so again: a terminal that hung
   * answers what silence had settled.
   */
  #isAlone(framing: Framing): boolean {
    const mayAnswer = ({ service, stale, answeredProbes }: ProbeAccount) =>
      this.#owing.has(service) || stale > 0 || answeredProbes;
    return this.#accountsOf(framing).filter(mayAnswer).length === 1;
  }

  /** Of the services of a framing that owe, the one probed last. */
  #probedLast(framing: Framing): ProbeAccount | undefined {
    let last: ProbeAccount | undefined;
    for (const account of this.#owingOf(framing)) {
      if (account.sent > 0 && (last === undefined || account.sentAtMs > last.sentAtMs)) last = account;
    }
    return last;
  }

  #settle(account: ProbeAccount): void {
    this.#owing.delete(account.service);
    // Its questions are among what may still come, or were answered.
    account.renew();
    if (account.stale > 0) this.#awaitsStale = true;
  }

  #accountsOf(framing: Framing): readonly ProbeAccount[] {
    return [...this.#accounts.values()].filter((account) => account.framing === framing);
  }

  /** Whose question a reply can only be the answer to. */
  #answerIn(
    framing: Framing,
    reply: Readonly<Record<string, unknown>>,
  ): { readonly account: ProbeAccount; readonly question: Question } | undefined {
    for (const account of this.#accounts.values()) {
      if (account.framing !== framing) continue;
      const question = account.lineService.questionOf(reply);
      if (question !== undefined) return { account, question };
    }
    return undefined;
  }
}
