import type { LineConfig } from "../config/config.ts";
import { maskCardNumbers } from "../core/card-number.ts";
import { nowMs } from "../core/clock.ts";
import { bytesOf } from "../core/pieces.ts";
import { version } from "../core/version.ts";
import type { ContractService } from "../line/caller.ts";
import type { LineEffect, LineEvent } from "../line/events.ts";
import type { Exchange } from "../line/exchange.ts";
import type { LineObserve } from "../line/line.ts";
import type { Decoded } from "../wire/decoded.ts";
import { decisionOf } from "./decision.ts";
import { keptReading, replyIn, shownDiscard, shownFrame } from "./kept-frame.ts";
import {
  type RecordedCall,
  type RecordedEntry,
  type RecordedEvent,
  type RecordedInput,
  type RecordedItem,
  type Recording,
  type RecordingHead,
  recordingForm,
  recordingText,
} from "./recording.ts";

/**
 * The flight recorder: the last 512 KiB of what each line's engine was given and what it decided, each event one text of JSON. It stands on
 * the path of each call, so bytes are masked when they are read, which is seldom, and not when they are written.
 *
 * The texts lie in segments, of which the oldest goes at once. Where the beginning is lost by that, a replay begins where the engine was at
 * rest: each segment has its state there.
 */

/** Bytes of a payload that are kept; of a longer one, what the engine reads in it. Most replies are far shorter. */
const payloadBytesMax = 4_096;

/** Eight segments: an eighth of what is kept goes at once. A few hundred exchanges, hours of a till's day, fit in. */
const usualSize: RecordingSize = { segmentChars: 64 * 1024, segmentsMax: 8 };

export interface RecordingSize {
  /** Characters, which mostly take a byte each. */
  readonly segmentChars: number;
  readonly segmentsMax: number;
}

/** A line as it is recorded. */
export interface RecordedLine {
  readonly name: string;
  readonly config: LineConfig;
  readonly services: readonly ContractService[];
}

/** Records all lines of a process: each as it is now, and as it was before it was last configured anew. */
export class FlightRecorder {
  readonly #lines: LineRecorder[] = [];

  watch(line: RecordedLine): LineObserve {
    const recorder = new LineRecorder(line);
    let isKept = false;
    return (event, effects, now, engine) => {
      // A line that was made for a configuration that is then refused stops without having begun, and must push nothing out.
      if (!isKept && event.at !== "stop") {
        isKept = true;
        this.#keep(recorder);
      }
      recorder.observe(event, effects, now, engine);
    };
  }

  #keep(recorder: LineRecorder): void {
    const former = this.#lines.filter(({ name }) => name === recorder.name);
    const [oldest] = former;
    if (oldest !== undefined && former.length > 1) this.#lines.splice(this.#lines.indexOf(oldest), 1);
    this.#lines.push(recorder);
  }

  /**
   * All that is kept, masked, as text.
   * @param secrets Texts that must not stand in it, such as merchants' ids.
   */
  text(secrets: readonly string[]): string {
    return this.#lines.map((line) => recordingText(line.recording(secrets))).join("");
  }
}

export class LineRecorder {
  readonly name: string;
  readonly #line: RecordedLine;
  readonly #size: RecordingSize;
  /** The entries as JSON, the oldest segment first. */
  readonly #segments: string[][] = [];
  /** What may still be written into the last one. */
  #charsLeft = 0;
  #calls = 0;
  /** The engine's state is to be noted when it is at rest next. */
  #needsRest = false;

  constructor(line: RecordedLine, size = usualSize) {
    this.name = line.name;
    this.#line = line;
    this.#size = size;
    this.#keep({ at: "rest", rest: null });
    this.#needsRest = false;
  }

  observe(event: LineEvent, effects: readonly LineEffect[], now: number, engine: Parameters<LineObserve>[3]): void {
    // A device that stays away is tried again for ever, and what was before must not be lost by that.
    if (event.at === "open failed" && effects.length === 0) return;
    if (event.at === "call") event.exchange.recordedAs = ++this.#calls;
    if (!this.#keep(eventOf(event, effects, now))) {
      this.#keep({ at: "gap" });
      this.#needsRest = true;
    }
    if (!this.#needsRest) return;
    const { rest } = engine;
    if (rest === undefined) return;
    this.#keep({ at: "rest", rest });
    // A rest that fits into no segment isn't tried again with each event.
    this.#needsRest = false;
  }

  /** @returns false if it fits into no segment. */
  #keep(entry: RecordedEntry): boolean {
    const { segmentChars, segmentsMax } = this.#size;
    const text = JSON.stringify(entry);
    if (text.length > segmentChars) return false;
    if (text.length > this.#charsLeft) {
      if (this.#segments.length >= segmentsMax) this.#segments.shift();
      this.#segments.push([]);
      this.#charsLeft = segmentChars;
      this.#needsRest = true;
    }
    this.#segments.at(-1)?.push(text);
    this.#charsLeft -= text.length;
    return true;
  }

  /** What is kept, masked. */
  recording(secrets: readonly string[]): Recording {
    const { name, config, services } = this.#line;
    const head: RecordingHead = {
      recording: recordingForm,
      posline: version,
      line: name,
      config,
      services: services.map(({ service, contract, replyBytesMax, probe, second }) => ({
        ...{ service, contract, replyBytesMax },
        probeBytes: probe === undefined ? null : bytesOf(probe),
        secondBytes: second === undefined ? null : bytesOf(second),
      })),
      readAt: { t: nowMs(), time: new Date().toISOString() },
    };
    // Written by `#keep`.
    const entries = this.#segments.flat().map((text) => this.#shown(JSON.parse(text), secrets));
    // What stands before the first rest is in no state that is known: it can be shown, and not replayed.
    return { head, entries: entries[0]?.at === "rest" ? entries : [{ at: "gap" }, ...entries] };
  }

  #shown(entry: RecordedEntry, secrets: readonly string[]): RecordedEntry {
    // A till may choose its id.
    if (entry.at === "call") return { ...entry, requestId: maskCardNumbers(entry.requestId) };
    if (entry.at === "lost") return { ...entry, discards: entry.discards.map(shownDiscard) };
    if (entry.at !== "received") return entry;
    const items = entry.items.map((item): RecordedItem => {
      if (item.kind === "discard") return shownDiscard(item);
      const { framing, wireBytes, base64 } = item;
      if (base64 === undefined) return item;
      return shownFrame({ framing, wireBytes, payload: Buffer.from(base64, "base64") }, this.#line.services, secrets);
    });
    return { ...entry, items };
  }
}

/** An event as it is kept: with what a till sent as its id, and the bytes of frames and discards, not masked yet. */
function eventOf(event: LineEvent, effects: readonly LineEffect[], now: number): RecordedEvent {
  const left = effects.flatMap((effect) =>
    effect.do === "end" && effect.exchange.request.caller.gone ? [effect.exchange.recordedAs] : [],
  );
  return { t: now, ...inputOf(event, effects), ...(left.length === 0 ? {} : { left }), decided: effects.map(decisionOf) };
}

function inputOf(event: LineEvent, effects: readonly LineEffect[]): RecordedInput {
  switch (event.at) {
    case "call":
      return callOf(event.exchange);
    case "received": {
      const { items, receiving } = event;
      return { at: "received", items: items.map((item) => itemOf(item, effects)), receiving };
    }
    case "recorded":
    case "caller gone":
      return { at: event.at, call: event.exchange.recordedAs };
    case "record failed": {
      const { kind, message, reason } = event.fault;
      return { at: "record failed", call: event.exchange.recordedAs, fault: { kind, message, reason } };
    }
    default:
      return event;
  }
}

function callOf({ request, recordedAs, cameMs, waitUntilMs, frame }: Exchange): RecordedCall {
  const { requestId, service, route, framing, replyTimeoutMs, urgent, background, repeatable, shapedAs } = request;
  const { beforeSend, adviceWhenUnknown } = request;
  return {
    at: "call",
    call: recordedAs,
    ...{ requestId, service, route, framing, frameBytes: bytesOf(frame) },
    ...{ cameMs, waitUntilMs, replyTimeoutMs },
    ...{ urgent, background, repeatable, ...(shapedAs === undefined ? {} : { shapedAs }) },
    toRecord: beforeSend !== undefined,
    adviceWhenUnknown,
  };
}

function itemOf(item: Decoded, effects: readonly LineEffect[]): RecordedItem {
  if (item.kind === "discard") return item;
  const { framing, payload, payloadBytes, wireBytes, isEcho } = item;
  if (isEcho === true || payloadBytes > payloadBytesMax) return keptReading(item, replyIn(effects, item));
  return { kind: "frame", framing, payloadBytes, wireBytes, base64: Buffer.concat(payload).toString("base64") };
}
