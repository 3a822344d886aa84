import type { Call, Handler, Reply, ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
import { Presence } from "../core/presence.ts";
import { signedForm } from "../envelope/signed-form.ts";
import { Pauses } from "../settle/clock.ts";
import type { AskedService, Hearing } from "./hearing.ts";
import type { Operations } from "./operations.ts";
import { questionText, type Subject, subjectOf } from "./question.ts";
import type { Sending } from "./sending.ts";

/**
 * Asks about operations without an end, one question at a time on a line, after every call: at the contract's pace while a caller waits,
 * and ever more rarely if none does. Asking proves nothing by itself: `hearing.ts` judges each answer, as it does anybody's.
 */

/** Milliseconds from one question about an operation to the next while nobody waits: 2, 5, 15 and 60 s after its sending, then rarely. */
const gapsMs = [2_000, 3_000, 10_000, 45_000] as const;
const laterGapMs = 300_000;

/** Milliseconds until a busy line, or a question that was refused, is looked at again. */
const retryMs = 1_000;

/** Characters of a call's id that its questions' ids begin with: with a number added they are no longer than an id may be. */
const idCharsMax = 48;

/** A line, as far as asking needs it. */
export interface AskedLine {
  readonly name: string;
  readonly state: string;
  /** Count of calls that wait. */
  readonly waiting: number;
}

/** A service, and where its questions leave for the terminal; their answers are heard there. */
export interface AskingService extends AskedService {
  readonly handler: Handler;
  readonly line: AskedLine;
}

/** A question's ending. */
export interface EndedQuestion {
  readonly route: string;
  readonly ending: Reply | Fault;
}

/** In whose name a question is asked, and about which call's operation. */
interface QuestionNames {
  readonly requestId: string | undefined;
  readonly about: string | undefined;
  readonly caller?: Presence | undefined;
}

/** An operation that callers wait for. */
export interface Watch {
  /** Settles once the operation has ended, or can't be asked about any more. */
  readonly over: Promise<void>;
  readonly end: () => void;
  readonly pauses: Pauses;
  /** The id of the first caller's request. */
  readonly requestId: string;
  callers: number;
  polls: number;
  /** How the operation's sending ended, or the last question about it. */
  last: EndedQuestion | undefined;
}

/** When an operation is to be asked about next, and how many of the gaps are over. */
interface Plan {
  readonly dueMs: number;
  readonly step: number;
}

/** Count of the questions of this process, for their ids. */
let numbered = 0;

export class Asking {
  readonly #operations: Operations;
  readonly #hearing: Hearing;
  readonly #asksAll: boolean;
  #services: ReadonlyMap<ServiceName, AskingService> = new Map();
  /**
   * The last question on each line: one waits at a time. Questions wait for every caller; if two were in the queue, a caller that comes between
   * them would wait for both.
   */
  readonly #lastOn = new Map<string, Promise<unknown>>();
  readonly #watches = new Map<Sending, Watch>();
  readonly #plans = new WeakMap<Sending, Plan>();
  /** Operations asked about at this moment, each in the name of somebody who may leave. */
  readonly #out = new Map<Sending, Presence>();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  /** @param asksAll True to ask also about operations that no till follows. */
  constructor(operations: Operations, hearing: Hearing, asksAll: boolean) {
    this.#operations = operations;
    this.#hearing = hearing;
    this.#asksAll = asksAll;
    operations.onChange(() => this.#look());
  }

  /** Takes the services of a configuration. */
  use(services: ReadonlyMap<ServiceName, AskingService>): void {
    this.#services = services;
    this.#look();
  }

  serviceOf(name: ServiceName): AskingService | undefined {
    return this.#services.get(name);
  }

  /** Asks nothing any more; a question that waits is not sent. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    for (const asker of this.#out.values()) asker.leave();
    for (const { end } of this.#watches.values()) end();
  }

  /** How many operations of a service callers wait for. */
  watched(service: ServiceName): number {
    return [...this.#watches.keys()].filter(({ sent }) => sent.service === service).length;
  }

  /**
   * Asks about an operation at the contract's pace, since a caller waits for its end.
   * @param start How its sending ended a moment ago: then the first question comes after a pause, otherwise at once.
   */
  watch(sending: Sending, requestId: string, start?: Reply | Fault): Watch {
    let watch = this.#watches.get(sending);
    if (watch === undefined) {
      const pauses = new Pauses(this.#subjectOf(sending)?.polling.intervalMs);
      let end = () => {};
      const over = new Promise<void>((resolve) => {
        end = resolve;
      });
      const last = start === undefined || start instanceof Fault ? undefined : { route: sending.sent.route, ending: start };
      watch = { over, end, pauses, requestId, callers: 0, polls: 0, last };
      this.#watches.set(sending, watch);
      this.#plans.set(sending, { dueMs: nowMs() + (start === undefined ? 0 : pauses.nextMs({ pause: "interval" })), step: 0 });
    }
    watch.callers++;
    this.#look();
    return watch;
  }

  /** Notes that the caller waits no more. */
  unwatch(sending: Sending, watch: Watch): void {
    if (--watch.callers > 0) return;
    this.#watches.delete(sending);
    this.#plans.set(sending, { dueMs: nowMs() + gapsMs[0], step: 1 });
    this.#look();
  }

  /** Why an operation can't be asked about, in a sentence; undefined if it can. */
  cannotAsk(sending: Sending): string | undefined {
    return this.#hearing.cannotAsk(sending, this.#services.get(sending.sent.service));
  }

  /** True if asking may teach more about the operation. */
  isOpen(sending: Sending): boolean {
    return this.#operations.togetherOf(sending).end === undefined && this.cannotAsk(sending) === undefined;
  }

  /** Asks once about an operation; undefined if it can't be asked about. */
  ask(sending: Sending, requestId?: string, caller?: Presence): Promise<EndedQuestion | undefined> {
    const { service, requestId: id } = sending.sent;
    const subject = this.#subjectOf(sending);
    if (subject === undefined || this.cannotAsk(sending) !== undefined) return Promise.resolve(undefined);
    const text = questionText(sending, subject, this.#hearing.knownOf(sending).name);
    return this.question(service, subject.polling.route, text, {
      requestId: requestId ?? (sending.isFollowed ? id : undefined),
      about: sending.callId,
      caller,
    });
  }

  /** Asks a service, once no other question is on its line. */
  async question(
    name: ServiceName,
    route: string,
    text: string,
    { requestId, about, caller }: QuestionNames,
  ): Promise<EndedQuestion> {
    const line = this.#services.get(name)?.line.name ?? name;
    const asked = (this.#lastOn.get(line) ?? Promise.resolve()).then(async () => {
      const service = this.#services.get(name);
      if (service === undefined || this.#isStopped) return notAsked(route);
      const { contract, merchantId = "", handler } = service;
      const body = contract.envelope === "form" ? await signedForm(text, merchantId) : text;
      // Each question has an id of its own, so that each exchange has one beginning and one end for those who watch; the id's beginning is
      // the call's, by which it is found.
      const id = requestId === undefined ? `resolve-${++numbered}` : `${requestId.slice(0, idCharsMax)}.${++numbered}`;
      const call: Call = {
        service: name,
        contract: contract.service,
        route,
        body: [Buffer.from(body)],
        requestId: id,
        key: undefined,
        about,
        caller: caller ?? new Presence(),
        background: true,
      };
      return tried(handler, call);
    });
    this.#lastOn.set(
      line,
      asked.catch(() => {}),
    );
    return { route, ending: await asked };
  }

  #subjectOf(sending: Sending): Subject | undefined {
    const service = this.#services.get(sending.sent.service);
    return service === undefined ? undefined : subjectOf(service.contract, sending);
  }

  /** Ends the waits for operations that have ended, asks about those that are due, and sets the timer to the next. */
  #look(): void {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    // A wait ends only once the answer that ended its operation is there to be shown.
    for (const [sending, { end }] of this.#watches) if (!this.isOpen(sending) && !this.#out.has(sending)) end();
    const wanted = this.#operations.wanted().filter((each) => this.#asksAll || each.isFollowed);
    const asked = [...new Set([...this.#watches.keys(), ...wanted])].filter(
      (each) => each.endedMs !== undefined && !this.#out.has(each) && this.isOpen(each),
    );
    const now = nowMs();
    for (const sending of asked.toSorted((one, other) => this.#plan(one).dueMs - this.#plan(other).dueMs)) {
      const plan = this.#plan(sending);
      if (plan.dueMs > now) break;
      if (this.#watches.has(sending) || this.#isFree(sending)) void this.#askNow(sending);
      else this.#plans.set(sending, { ...plan, dueMs: now + retryMs });
    }
    const nextMs = Math.min(...asked.filter((each) => !this.#out.has(each)).map((each) => this.#plan(each).dueMs));
    if (nextMs === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => this.#look(), Math.ceil(Math.max(nextMs - now, 0)));
    this.#timer.unref();
  }

  /** True if a question may go out. If nobody waits, the line must be clean and free, also of another such question. */
  #isFree({ sent }: Sending): boolean {
    const line = this.#services.get(sent.service)?.line;
    const isAsked = [...this.#out.keys()].some((each) => this.#services.get(each.sent.service)?.line.name === line?.name);
    return line?.state === "idle" && line.waiting === 0 && !isAsked;
  }

  #plan(sending: Sending): Plan {
    return this.#plans.get(sending) ?? { dueMs: (sending.endedMs ?? nowMs()) + gapsMs[0], step: 1 };
  }

  async #askNow(sending: Sending): Promise<void> {
    const watch = this.#watches.get(sending);
    const asker = new Presence();
    this.#out.set(sending, asker);
    const asked = await this.ask(sending, watch?.requestId, asker).finally(() => this.#out.delete(sending));
    const fault = asked?.ending instanceof Fault ? asked.ending : undefined;
    const isUnsent = asked === undefined || fault?.outcome === "not-sent";
    if (watch !== undefined) {
      watch.polls++;
      watch.last = asked ?? watch.last;
    } else if (!isUnsent) this.#hearing.asks(sending, fault?.reason);
    if (this.#watches.get(sending) === watch) this.#plans.set(sending, this.#planAfter(sending, watch, isUnsent, fault));
    this.#look();
  }

  #planAfter(sending: Sending, watch: Watch | undefined, isUnsent: boolean, fault: Fault | undefined): Plan {
    const [now, { step }] = [nowMs(), this.#plan(sending)];
    if (watch !== undefined) {
      const retryAfterMs = (fault?.retryAfterS ?? 0) * 1_000;
      return { dueMs: now + watch.pauses.nextMs({ pause: isUnsent ? "back-off" : "interval", retryAfterMs }), step };
    }
    if (isUnsent) return { dueMs: now + retryMs, step };
    const subject = this.#subjectOf(sending);
    const absenceMs = subject === undefined ? undefined : this.#hearing.absenceDueMs(sending, subject);
    // If only time is missing to prove that an operation never arrived, the next question comes when that time is over.
    const soonMs = Math.max(absenceMs ?? Number.POSITIVE_INFINITY, now + retryMs);
    return { dueMs: Math.min(now + (gapsMs[step] ?? laterGapMs), soonMs), step: step + 1 };
  }
}

/** Runs a call, and copies the reply's bytes: they are a view of a line's memory, of which a few would keep much. */
export async function tried(handler: Handler, call: Call): Promise<Reply | Fault> {
  try {
    const reply = await handler(call);
    return { ...reply, payload: [Buffer.concat(reply.payload)] };
  } catch (error) {
    if (error instanceof Fault) return error;
    return new Fault("broken", `Cannot answer: internal error in posline, please report it (${String(error)})`);
  }
}

function notAsked(route: string): Fault {
  return new Fault("unavailable", `Cannot ask ${route}: posline is shutting down, or its service was taken away`, {
    reason: "stopping",
  });
}
