import type { ServiceName } from "../core/call.ts";
import { durationText } from "../core/duration.ts";
import type { JsonObject } from "../core/json-object.ts";
import { type Cause, wordsOf } from "../device/open-errors.ts";
import { evidenceMs, silentWarnMs } from "../recovery/limits.ts";
import type { LineService } from "../recovery/standing.ts";
import { otherReading } from "../wire/crc16.ts";
import type { Discard, Framing } from "../wire/decoded.ts";
import { isConsole, isWebServer } from "./byte-patterns.ts";
import {
  doctorFor,
  echoes,
  likelyCause,
  maybeNotServed,
  notAsked,
  notServed,
  otherThanContract,
  refusalWords,
  refused,
  type Symptom,
  silent,
  type TroubledLine,
} from "./causes.ts";

/**
 * Whether the terminal behind a line is there. A clean line does not prove it: silence proves that no late answer comes, but not that a
 * terminal is there. The proof is a reply of the service itself, since the opening and since the last question that stayed unanswered.
 *
 * Liveness sends nothing, has no clock, and decides nothing about calls: those are sent on a clean line, since a terminal may answer them
 * and no probe. Readiness, log, status and doctor go by it.
 */

/**
 * `heard`: the service replied, and to all that was asked since. `unheard`: it did not reply since the opening, or to what was asked last.
 * `unproven`: it did not reply yet, and posline asks it nothing by itself (`"recovery": "quiet"`, or fiscal without a merchantId).
 */
export type LivenessState = "heard" | "unheard" | "unproven";

/** How one service on a line does. */
export interface ServiceLiveness {
  readonly service: ServiceName;
  readonly state: LivenessState;
  /** When the service replied last, on `nowMs`'s scale; undefined if it did not since the opening. */
  readonly heardMs: number | undefined;
  /** Why the service is probably unheard, and what to do; undefined unless it is. */
  readonly cause: Cause | undefined;
  /** The likely meaning of a wrong answer to the question that proves the line clean, and what to do; undefined unless there is one. */
  readonly refusal: Cause | undefined;
}

/**
 * Symptoms in place of a reply, the most telling first. Bytes of a wrong speed now and then look like a frame with a wrong checksum, so
 * noise beside those tells more than they do.
 */
const evidences = [
  "login prompt",
  "web server",
  "echo",
  "till",
  "other crc16",
  "noise",
  "checksum",
  "late",
  "babble",
] as const satisfies readonly Symptom[];

/** Words for what comes in place of an answer if a till is at the other end. */
const aRequest = "a request";

export type Evidence = (typeof evidences)[number];

/** All that is known of a line's services, as data, for a recording. */
export interface LivenessSnapshot {
  readonly services: readonly {
    readonly name: ServiceName;
    readonly heardMs?: number | undefined;
    readonly silentSinceMs?: number | undefined;
    readonly isReported: boolean;
    /** Absent if false. */
    readonly wasReported?: boolean | undefined;
    readonly refusedWith?: string | undefined;
  }[];
  /** When each symptom came last. */
  readonly evidence: readonly (readonly [Evidence, number])[];
  /** Absent if false. */
  readonly echoes?: true | undefined;
}

interface Service {
  readonly name: ServiceName;
  readonly framing: Framing;
  readonly isProbed: boolean;
  heardMs: number | undefined;
  /** Since when the service owes the answer to a question of posline's, or to a call that timed out; undefined if it doesn't. */
  silentSinceMs: number | undefined;
  isReported: boolean;
  /** True if the service was reported before the opening, and hasn't replied since. */
  wasReported: boolean;
  /** Words for what came in place of the answer to posline's question. */
  refusedWith: string | undefined;
}

/** What is known of a service when its line opens. */
const unknownYet = { heardMs: undefined, silentSinceMs: undefined, isReported: false, refusedWith: undefined } as const;

/** Told when a service stops replying, and when it replies again. */
export interface LivenessReport {
  unheard(service: ServiceName, cause: Cause): void;
  heardAgain(service: ServiceName): void;
  /** Called once an opening, if the line gives back what is sent. */
  echoes(cause: Cause): void;
}

export class Liveness {
  readonly #line: TroubledLine;
  readonly #services: readonly Service[];
  readonly #report: LivenessReport;
  /** When each symptom came last. */
  readonly #evidence = new Map<Evidence, number>();
  /** True if the line has given back what was sent on this opening. */
  #echoes = false;

  constructor(line: TroubledLine, services: readonly LineService[], report: LivenessReport) {
    this.#line = line;
    this.#report = report;
    this.#services = services.map(({ service, framing, probe }) => ({
      name: service,
      framing,
      isProbed: probe !== undefined,
      ...unknownYet,
      wasReported: false,
    }));
  }

  /** All that is known, as data from which another Liveness goes on: a recording begins with it. */
  get state(): LivenessSnapshot {
    const services = this.#services.map(({ framing, isProbed, wasReported, ...known }) =>
      wasReported ? { ...known, wasReported } : known,
    );
    return { services, evidence: [...this.#evidence], ...(this.#echoes ? { echoes: true } : {}) };
  }

  set state({ services, evidence, echoes = undefined }: LivenessSnapshot) {
    for (const { name, wasReported = false, ...known } of services) {
      Object.assign(this.#serviceOf(name) ?? {}, known, { wasReported });
    }
    this.#evidence.clear();
    for (const [kind, lastMs] of evidence) this.#evidence.set(kind, lastMs);
    this.#echoes = echoes === true;
  }

  /** Forgets all: another device may be there now. */
  opened(): void {
    this.#evidence.clear();
    this.#echoes = false;
    for (const service of this.#services) {
      service.wasReported ||= service.isReported;
      Object.assign(service, unknownYet);
    }
  }

  /** Takes a reply of this service, an error too. */
  heard(name: ServiceName, now: number): void {
    const service = this.#serviceOf(name);
    if (service === undefined) return;
    service.heardMs = now;
    service.silentSinceMs = undefined;
    if (this.#evidence.size > 0) this.#evidence.clear();
    if (!service.isReported && !service.wasReported) return;
    service.isReported = false;
    service.wasReported = false;
    this.#report.heardAgain(name);
  }

  /** Takes a right answer to the question that proves the service in step. */
  probed(name: ServiceName): void {
    const service = this.#serviceOf(name);
    if (service !== undefined) service.refusedWith = undefined;
  }

  /**
   * Takes a wrong answer to the question that proves the service in step: an error, or what the contract doesn't have.
   * @param reply undefined if the answer is not a JSON object.
   */
  refused(name: ServiceName, reply: JsonObject | undefined): void {
    const service = this.#serviceOf(name);
    if (service === undefined) return;
    const code = reply?.["code"];
    const words = () => refusalWords(typeof code === "number" ? code : undefined);
    service.refusedWith = reply?.["status"] === "error" ? words() : otherThanContract;
  }

  /** Takes a request as tills send it, in place of this service's answer if one was asked. */
  requested(name: ServiceName | undefined, now: number): void {
    this.strayed("till", now);
    const service = name === undefined ? undefined : this.#serviceOf(name);
    if (service !== undefined) service.refusedWith = aRequest;
  }

  /** The first wrong answer among these services to the question that proves a line clean; undefined if there is none. */
  refusal(names: readonly ServiceName[]): Cause | undefined {
    return this.#services.flatMap((each) => (names.includes(each.name) ? (this.#refusalOf(each) ?? []) : []))[0];
  }

  #refusalOf(service: Service): Cause | undefined {
    if (service.refusedWith === aRequest) return likelyCause("till", this.#line);
    return service.refusedWith === undefined ? undefined : refused(service, service.refusedWith, this.#line.name);
  }

  /** Why these services have not proven their line clean, in words. */
  whyUnproven(names: readonly ServiceName[]): readonly string[] {
    const services = this.#services.filter(({ name }) => names.includes(name));
    const named = (those: readonly Service[]) => those.map(({ name }) => name).join(", ");
    const silent = services.filter(({ isProbed, refusedWith }) => isProbed && refusedWith === undefined);
    const unasked = services.filter(({ isProbed }) => !isProbed);
    return [
      ...(silent.length === 0 ? [] : [`no answer yet from ${named(silent)}`]),
      ...(unasked.length === 0 ? [] : [`${named(unasked)} can't be asked, so its silence is waited for`]),
      ...services.flatMap((each) => this.#refusalOf(each)?.cause ?? []),
    ];
  }

  /** Why calls are sent after a silence, and to which services they are not, in words. */
  whyClean({ aside, vague }: { readonly aside: readonly ServiceName[]; readonly vague: readonly ServiceName[] }): string {
    const why: string[] = [];
    if (aside.length > 0) {
      const cause = this.trouble(aside);
      const because = cause === undefined ? "" : `: ${wordsOf(cause)}`;
      why.push(`calls to ${aside.join(", ")} are refused until an answer comes${because}`);
    }
    const refusal = this.refusal(vague);
    if (refusal !== undefined) why.push(`${wordsOf(refusal)}; calls are sent`);
    return why.length === 0 ? "the terminal was silent for long enough: the line is ready" : why.join(". ");
  }

  /** Notes that a service was asked and has not replied yet. Symptoms from long before say nothing of that. */
  unanswered(name: ServiceName, sinceMs: number): void {
    const service = this.#serviceOf(name);
    if (service !== undefined) service.silentSinceMs ??= sinceMs;
    for (const [kind, lastMs] of this.#evidence) if (sinceMs >= lastMs + evidenceMs) this.#evidence.delete(kind);
  }

  /** Bytes came that became no frame. */
  discarded({ reason, checksum, head }: Discard, now: number): void {
    const bytes = Buffer.from(head, "hex");
    if (isConsole(bytes)) this.#evidence.set("login prompt", now);
    if (isWebServer(bytes)) this.#evidence.set("web server", now);
    const other = otherReading(this.#line.config.crc16);
    const fitsOther = checksum?.[other] !== undefined && checksum[other] === checksum.got;
    this.#evidence.set(fitsOther ? "other crc16" : reason === "checksum" ? "checksum" : "noise", now);
  }

  /** A whole frame came that is not a reply. */
  strayed(kind: "noise" | "late" | "babble" | "till", now: number): void {
    this.#evidence.set(kind, now);
  }

  /** Notes that what was sent came back. */
  echoed(now: number): void {
    this.#evidence.set("echo", now);
    if (!this.#echoes) this.#report.echoes(echoes());
    this.#echoes = true;
  }

  /** When something is to be reported; Infinity if nothing is. */
  get reportDueMs(): number {
    let due = Number.POSITIVE_INFINITY;
    for (const { isReported, silentSinceMs } of this.#services) {
      if (!isReported && silentSinceMs !== undefined) due = Math.min(due, silentSinceMs + silentWarnMs);
    }
    return due;
  }

  /** Reports, once each, the services that have been silent for too long. */
  reportDue(now: number): void {
    for (const service of this.#services) {
      const { name, isReported, silentSinceMs } = service;
      if (isReported || silentSinceMs === undefined || now < silentSinceMs + silentWarnMs) continue;
      service.isReported = true;
      this.#report.unheard(name, this.#likelyCause(service));
    }
  }

  /** Since when a reported service answers nothing, and which command says why; undefined of a service that isn't known to be silent. */
  silence(name: ServiceName, now: number): string | undefined {
    const { isReported = false, silentSinceMs } = this.#serviceOf(name) ?? {};
    if (!isReported || silentSinceMs === undefined) return undefined;
    return `${name} has not answered for ${durationText(now - silentSinceMs)}: ${doctorFor(this.#line.name)} says why`;
  }

  /**
   * The present cause of a service that was reported and is still silent; undefined if there is none.
   * @param among Only these services; all if absent.
   */
  trouble(among?: readonly ServiceName[]): Cause | undefined {
    const service = this.#services.find(({ isReported, name }) => isReported && (among?.includes(name) ?? true));
    return service === undefined ? undefined : this.#likelyCause(service);
  }

  /** The state of each service of the line. */
  view(): readonly ServiceLiveness[] {
    return this.#services.map((service) => {
      const state = stateOf(service);
      const cause = state === "unheard" ? this.#likelyCause(service) : undefined;
      const { name, heardMs } = service;
      return { service: name, state, heardMs, cause, refusal: this.#refusalOf(service) };
    });
  }

  #serviceOf(name: ServiceName): Service | undefined {
    return this.#services.find((service) => service.name === name);
  }

  /** The likeliest cause, by what came in the last moments. */
  #likelyCause({ name, framing, silentSinceMs }: Service): Cause {
    if (silentSinceMs === undefined) return notAsked(name);
    const symptom = evidences.find((kind) => this.#evidence.has(kind));
    if (symptom !== undefined) return likelyCause(symptom, this.#line);
    if (this.#services.some((other) => answersBeside(other, silentSinceMs))) return notServed(name);
    if (this.#services.some((other) => answersBeside(other, silentSinceMs - evidenceMs))) return maybeNotServed(name);
    return silent(this.#line, framing === "length");
  }
}

/** True if a service answers while another is silent. An answer from before says nothing: the terminal may have been switched off since. */
function answersBeside(other: Service, silentSinceMs: number): boolean {
  return stateOf(other) === "heard" && other.heardMs !== undefined && other.heardMs >= silentSinceMs;
}

function stateOf({ heardMs, silentSinceMs, isProbed }: Service): LivenessState {
  if (silentSinceMs !== undefined) return "unheard";
  if (heardMs !== undefined) return "heard";
  return isProbed ? "unheard" : "unproven";
}
