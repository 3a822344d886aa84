import type { ServiceName } from "../core/call.ts";
import { durationText } from "../core/duration.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { Cause } from "../device/open-errors.ts";
import { otherReading } from "../wire/crc16.ts";
import type { Discard, Framing } from "../wire/decoded.ts";
import { isConsole } from "./byte-patterns.ts";
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
import { evidenceMs, silentWarnMs } from "./limits.ts";
import type { LineService } from "./standing.ts";

/**
 * Whether the terminal behind a line is there. A clean line does not prove it: silence proves that no late answer comes, and no
 * terminal. The proof is a reply of the service itself, since the opening and since the last question that stayed unanswered.
 *
 * It sends nothing, has no clock, and decides nothing about calls: those are sent on a clean line, since a terminal may answer them
 * and no probe. Readiness, log, status and doctor go by it.
 */

/**
 * `heard`: it replied, and to all that was asked since. `unheard`: it did not reply since the opening, or to what was asked last.
 * `unproven`: it did not reply yet, and posline asks it nothing by itself (`"recovery": "quiet"`, or fiscal without a merchantId).
 */
export type LivenessState = "heard" | "unheard" | "unproven";

/** How one service on a line does. */
export interface ServiceLiveness {
  readonly service: ServiceName;
  readonly state: LivenessState;
  /** When it replied last, on `nowMs`'s scale; undefined when it did not since the opening. */
  readonly heardMs: number | undefined;
  /** Why it is probably unheard, and what to do; undefined while it isn't. */
  readonly cause: Cause | undefined;
  /** It answers posline's question, by which its line is proven clean, wrongly: what that is likely to mean, and what to do. */
  readonly refusal: Cause | undefined;
}

/**
 * What came in place of a reply, the most telling first. Bytes of a wrong speed now and then look like a frame with a wrong checksum, so
 * noise beside those tells more than they do.
 */
const evidences = [
  "login prompt",
  "echo",
  "other crc16",
  "noise",
  "checksum",
  "late",
  "babble",
] as const satisfies readonly Symptom[];

export type Evidence = (typeof evidences)[number];

/** All that is known of a line's services, as data, for a recording. */
export interface LivenessSnapshot {
  readonly services: readonly {
    readonly name: ServiceName;
    readonly heardMs?: number | undefined;
    readonly silentSinceMs?: number | undefined;
    readonly isReported: boolean;
    /** Absent where it wasn't, as in recordings made before it was noted. */
    readonly wasReported?: boolean | undefined;
    readonly refusedWith?: string | undefined;
  }[];
  /** When each kind came last. */
  readonly evidence: readonly (readonly [Evidence, number])[];
  /** Absent where it doesn't, as in recordings made before it was noted. */
  readonly echoes?: true | undefined;
}

interface Service {
  readonly name: ServiceName;
  readonly framing: Framing;
  readonly isProbed: boolean;
  heardMs: number | undefined;
  /** Since when it owes the answer to a question of posline's, or to a call that timed out; undefined while it doesn't. */
  silentSinceMs: number | undefined;
  isReported: boolean;
  /** It was reported before the opening, and hasn't replied since. */
  wasReported: boolean;
  /** What came in place of the answer to posline's question, in words. */
  refusedWith: string | undefined;
}

/** What is reported of a service that stops to reply, and that replies again. */
export interface LivenessReport {
  unheard(service: ServiceName, cause: Cause): void;
  heardAgain(service: ServiceName): void;
  /** The line gives back what is sent: said once an opening. */
  echoes(cause: Cause): void;
}

export class Liveness {
  readonly #line: TroubledLine;
  readonly #services: readonly Service[];
  readonly #report: LivenessReport;
  /** When each kind came last. */
  readonly #evidence = new Map<Evidence, number>();
  /** It has given back what was sent on this opening. */
  #echoes = false;

  constructor(line: TroubledLine, services: readonly LineService[], report: LivenessReport) {
    this.#line = line;
    this.#report = report;
    this.#services = services.map(({ service, framing, probe }) => ({
      name: service,
      framing,
      isProbed: probe !== undefined,
      heardMs: undefined,
      silentSinceMs: undefined,
      isReported: false,
      wasReported: false,
      refusedWith: undefined,
    }));
  }

  /** All that it knows, as data from which another goes on: a recording begins with it. */
  get state(): LivenessSnapshot {
    return {
      services: this.#services.map(({ name, heardMs, silentSinceMs, isReported, wasReported, refusedWith }) => ({
        name,
        heardMs,
        silentSinceMs,
        isReported,
        ...(wasReported ? { wasReported } : {}),
        refusedWith,
      })),
      evidence: [...this.#evidence],
      ...(this.#echoes ? { echoes: true } : {}),
    };
  }

  set state({ services, evidence, echoes = undefined }: LivenessSnapshot) {
    for (const { name, heardMs, silentSinceMs, isReported, wasReported = false, refusedWith } of services) {
      const service = this.#serviceOf(name);
      if (service !== undefined) Object.assign(service, { heardMs, silentSinceMs, isReported, wasReported, refusedWith });
    }
    this.#evidence.clear();
    for (const [kind, lastMs] of evidence) this.#evidence.set(kind, lastMs);
    this.#echoes = echoes === true;
  }

  /** Another device may be there now: nothing is known of it yet. */
  opened(): void {
    this.#evidence.clear();
    this.#echoes = false;
    for (const service of this.#services) {
      service.heardMs = undefined;
      service.silentSinceMs = undefined;
      service.wasReported ||= service.isReported;
      service.isReported = false;
      service.refusedWith = undefined;
    }
  }

  /** A reply of this service came: its answer, an error too. */
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

  /** It answered the question by which it is proven in step. */
  probed(name: ServiceName): void {
    const service = this.#serviceOf(name);
    if (service !== undefined) service.refusedWith = undefined;
  }

  /** The same with something else: an error, or what its contract doesn't have; `reply` is undefined when that is not a JSON object. */
  refused(name: ServiceName, reply: JsonObject | undefined): void {
    const service = this.#serviceOf(name);
    if (service === undefined) return;
    const code = reply?.["code"];
    const words = () => refusalWords(typeof code === "number" ? code : undefined);
    service.refusedWith = reply?.["status"] === "error" ? words() : otherThanContract;
  }

  /** What the first of these services answers in place of what would prove its line clean; undefined where none does. */
  refusal(names: readonly ServiceName[]): Cause | undefined {
    return this.#services.flatMap((each) => (names.includes(each.name) ? (this.#refusalOf(each) ?? []) : []))[0];
  }

  #refusalOf(service: Service): Cause | undefined {
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

  /** It was asked, and has not replied yet. What came long before says nothing of that. */
  unanswered(name: ServiceName, sinceMs: number): void {
    const service = this.#serviceOf(name);
    if (service !== undefined) service.silentSinceMs ??= sinceMs;
    for (const [kind, lastMs] of this.#evidence) if (sinceMs >= lastMs + evidenceMs) this.#evidence.delete(kind);
  }

  /** Bytes came that became no frame. */
  discarded({ reason, checksum, head }: Discard, now: number): void {
    if (isConsole(Buffer.from(head, "hex"))) this.#evidence.set("login prompt", now);
    const other = otherReading(this.#line.config.crc16);
    const fitsOther = checksum?.[other] !== undefined && checksum[other] === checksum.got;
    this.#evidence.set(fitsOther ? "other crc16" : reason === "checksum" ? "checksum" : "noise", now);
  }

  /** A whole frame came that is not a reply. */
  strayed(kind: "noise" | "late" | "babble", now: number): void {
    this.#evidence.set(kind, now);
  }

  /** What was sent came back. */
  echoed(now: number): void {
    this.#evidence.set("echo", now);
    if (!this.#echoes) this.#report.echoes(echoes());
    this.#echoes = true;
  }

  /** When something is to be reported; Infinity when nothing is. */
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

  /** Since when a service that was reported answers nothing, and what says why; undefined of one that isn't known to be silent. */
  silence(name: ServiceName, now: number): string | undefined {
    const { isReported = false, silentSinceMs } = this.#serviceOf(name) ?? {};
    if (!isReported || silentSinceMs === undefined) return undefined;
    return `${name} has not answered for ${durationText(now - silentSinceMs)}: ${doctorFor(this.#line.name)} says why`;
  }

  /**
   * The cause that was reported of a service that is still silent, as it is now; undefined while there is none.
   * @param among Only of these; of all where absent.
   */
  trouble(among?: readonly ServiceName[]): Cause | undefined {
    const service = this.#services.find(({ isReported, name }) => isReported && (among?.includes(name) ?? true));
    return service === undefined ? undefined : this.#likelyCause(service);
  }

  /** How each service of the line does. */
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

/** Whether a service answers while another is silent. That it did before says nothing: the terminal may have been switched off since. */
function answersBeside(other: Service, silentSinceMs: number): boolean {
  return stateOf(other) === "heard" && other.heardMs !== undefined && other.heardMs >= silentSinceMs;
}

function stateOf({ heardMs, silentSinceMs, isProbed }: Service): LivenessState {
  if (silentSinceMs !== undefined) return "unheard";
  if (heardMs !== undefined) return "heard";
  return isProbed ? "unheard" : "unproven";
}
