import type { ServiceName } from "../core/call.ts";
import { bytesOf } from "../core/pieces.ts";
import { readReply } from "../envelope/reply.ts";
import type { LineEffect, LineEvent } from "../line/events.ts";
import type { LineObserve } from "../line/line.ts";
import type { LineListenerReport } from "../line/listener.ts";
import type { LineService } from "../recovery/standing.ts";
import type { Decoded, Frame, Framing } from "../wire/decoded.ts";

/**
 * How much went over each line: bytes, frames, and what became of posline's own probes. It adds up plain numbers where a line's
 * observer is called, keeps no byte, and doesn't know who reads them.
 */

/** What became of a service's probes. Each is one of these once it is over. */
export interface ProbeCounts {
  answered: number;
  /** Answered with an error, as a terminal does that doesn't know the question. */
  refused: number;
  unanswered: number;
}

/** What went over a line since posline began. */
export interface TrafficCounts {
  sentBytes: number;
  sentFrames: number;
  /** Those of whole frames and of discards; bytes of which neither is known yet aren't counted. */
  receivedBytes: number;
  receivedFrames: number;
  readonly probes: Map<ServiceName, ProbeCounts>;
}

/** A line as far as its traffic goes. */
export interface CountedLine {
  readonly name: string;
  readonly services: readonly LineService[];
}

/** Bytes of the longest answer that is read as a refusal of a probe: an error is a line or two. */
const refusalBytesMax = 65_536;

/** Counts what goes over lines, by their names: a line that takes another's place goes on with its counts. */
export class LineTraffic {
  readonly #lines = new Map<string, TrafficCounts>();

  /** Counts on a line that is asked, where no probe is sent. */
  listening(name: string): Required<Pick<LineListenerReport, "received" | "writes">> {
    const counts = this.of(name);
    return { received: (items) => countReceived(counts, items), writes: (frame) => countSent(counts, frame) };
  }

  /** Counts on a line that asks. */
  watch({ name, services }: CountedLine): LineObserve {
    const counts = this.of(name);
    for (const { service } of services) probesOf(counts, service);
    const framings = new Map(services.map(({ service, framing }) => [service, framing]));
    const counter = new LineCounter(counts, framings);
    return (event, effects) => counter.seen(event, effects);
  }

  /** What went over the line of a name. */
  of(name: string): TrafficCounts {
    const counts = this.#lines.get(name) ?? {
      sentBytes: 0,
      sentFrames: 0,
      receivedBytes: 0,
      receivedFrames: 0,
      probes: new Map(),
    };
    this.#lines.set(name, counts);
    return counts;
  }
}

function probesOf({ probes }: TrafficCounts, service: ServiceName): ProbeCounts {
  const counts = probes.get(service) ?? { answered: 0, refused: 0, unanswered: 0 };
  probes.set(service, counts);
  return counts;
}

function countSent(counts: TrafficCounts, frame: readonly Buffer[]): void {
  counts.sentFrames++;
  counts.sentBytes += bytesOf(frame);
}

function countReceived(counts: TrafficCounts, items: readonly Decoded[]): void {
  for (const { kind, wireBytes } of items) {
    counts.receivedBytes += wireBytes;
    if (kind === "frame") counts.receivedFrames++;
  }
}

/**
 * What a frame is to a question of posline's own, by what the engine makes of it; undefined where that goes on waiting. In a recovery the
 * engine says whose question was answered, by an error too where that is the right answer; an idle line's is answered as a call is. What
 * answers nothing is reported as late.
 */
function answerTo(probed: ServiceName, frame: Frame, effects: readonly LineEffect[]): "answered" | "refused" | undefined {
  const reports = effects.flatMap((effect) => (effect.do === "report" ? [effect.what] : []));
  const answered = reports.flatMap((what) => (what.is === "probe answered" ? [what.service] : []));
  if (answered.includes(probed)) return "answered";
  const read = frame.payloadBytes > refusalBytesMax ? "too long" : readReply(frame.payload);
  if (typeof read !== "string" && read.json["status"] === "error") return "refused";
  const isLate = reports.some((what) => what.is === "late" && what.frame === frame);
  return isLate || answered.length > 0 ? undefined : "answered";
}

/** Counts on one line that asks. */
class LineCounter {
  readonly #counts: TrafficCounts;
  readonly #framings: ReadonlyMap<ServiceName, Framing>;
  /** Whose probe is out. */
  #probed: ServiceName | undefined;

  constructor(counts: TrafficCounts, framings: ReadonlyMap<ServiceName, Framing>) {
    this.#counts = counts;
    this.#framings = framings;
  }

  seen(event: LineEvent, effects: readonly LineEffect[]): void {
    if (event.at === "received") this.#received(event.items, effects);
    else if (event.at === "lost") {
      this.#received(event.discards, effects);
      this.#probeOver("unanswered");
    }
    for (const effect of effects) if (effect.do === "write") this.#sent(effect);
  }

  #sent({ frame, service, exchange }: LineEffect & { readonly do: "write" }): void {
    countSent(this.#counts, frame);
    // What is sent next is sent because the answer was given up.
    this.#probeOver("unanswered");
    if (exchange === undefined) this.#probed = service;
  }

  #received(items: readonly Decoded[], effects: readonly LineEffect[]): void {
    countReceived(this.#counts, items);
    for (const item of items) {
      const probed = this.#probed;
      if (probed === undefined) return;
      if (item.kind === "discard" || item.isEcho === true || item.framing !== this.#framings.get(probed)) continue;
      const how = answerTo(probed, item, effects);
      if (how !== undefined) this.#probeOver(how);
    }
  }

  #probeOver(how: keyof ProbeCounts): void {
    if (this.#probed === undefined) return;
    probesOf(this.#counts, this.#probed)[how]++;
    this.#probed = undefined;
  }
}
