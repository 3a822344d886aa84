import type { LineConfig } from "../config/config.ts";
import { maskCardNumbers } from "../core/card-number.ts";
import { nowMs } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
import { bytesOf } from "../core/pieces.ts";
import { version } from "../core/version.ts";
import type { ContractService } from "../line/caller.ts";
import type { LineEffect, LineEvent } from "../line/events.ts";
import type { Exchange } from "../line/exchange.ts";
import type { Receiving } from "../line/frame-reader.ts";
import type { LineObserve } from "../line/line.ts";
import type { Decoded, Frame } from "../wire/decoded.ts";
import { type CodeClass, codeClass, type Decision, decisionOf, statusClass } from "./decision.ts";
import { keptReading, replyIn, shownDiscard, shownFrame } from "./kept-frame.ts";
import {
  type RecordedEntry,
  type RecordedInput,
  type RecordedItem,
  type Recording,
  type RecordingHead,
  recordingForm,
  recordingText,
} from "./recording.ts";
import { type RecordReader, RecordRing, type RingSize } from "./ring.ts";

/**
 * The flight recorder: the last 256 KiB of what each line's engine was given and what it decided, in memory of fixed size. It stands on
 * the path of each call, so the usual events are written as a few numbers; what is rare is written as JSON. Bytes are masked when they
 * are read, which is seldom, and not when they are written.
 *
 * Where the ring has lost the beginning, a replay begins where the engine was at rest: each segment of the ring has its state there.
 */

/** Bytes of a payload that are kept; of a longer one, what the engine reads in it. Most replies are far shorter. */
const payloadBytesMax = 4_096;

/** Texts of services, routes and advice: as many as the contracts have, and a few. Further ones would be a bug. */
const wordsMax = 4_096;

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

// Tags of records.
const tags = { rest: 0, gap: 1, call: 2, wrote: 3, received: 4, tick: 5, recorded: 6, other: 7 } as const;
// Of the items of a read.
const itemTags = { lengthFrame: 0, stxFrame: 1, other: 2 } as const;
// Of effects.
const effectTags = { write: 0, record: 1, answer: 2, other: 3 } as const;

/** Bytes that the numbers of a record take at most: of an event, and more for each item of a read and for each effect. */
const eventBytes = 64;
const itemBytes = 8;
const effectBytes = 12;

const flags = { urgent: 1, repeatable: 2, probeShaped: 4, toRecord: 8, stx: 16, background: 32, secondShaped: 64 } as const;
const phases = ["idle", "in-frame", "garbage"] as const;
const statuses = ["success", "error", "other"] as const;
/** Stand for a code that isn't a small number. */
const codes = { none: 0x7fff, other: 0x7ffe, offset: 0x4000 } as const;

export class LineRecorder {
  readonly name: string;
  readonly #line: RecordedLine;
  readonly #ring: RecordRing;
  readonly #words: string[] = [];
  readonly #wordNumbers = new Map<string, number>();
  #calls = 0;
  /** The engine's state is to be noted when it is at rest next. */
  #needsRest = false;

  constructor(line: RecordedLine, size?: RingSize) {
    this.name = line.name;
    this.#line = line;
    this.#ring = new RecordRing(size);
    this.#note(tags.rest, "null");
  }

  observe(event: LineEvent, effects: readonly LineEffect[], now: number, engine: Parameters<LineObserve>[3]): void {
    // A device that stays away is tried again for ever, and what was before must not be lost by that.
    if (event.at === "open failed" && effects.length === 0) return;
    if (event.at === "call") event.exchange.recordedAs = ++this.#calls;
    if (!this.#write(event, effects, now)) {
      this.#turn();
      if (!this.#write(event, effects, now)) this.#note(tags.gap, "");
    }
    if (this.#needsRest) this.#noteRest(engine);
  }

  /** @returns false when it didn't fit into the segment. */
  #write(event: LineEvent, effects: readonly LineEffect[], now: number): boolean {
    const ring = this.#ring;
    const items = event.at === "received" ? event.items.length : 0;
    if (!ring.begin(eventBytes + items * itemBytes + effects.length * effectBytes)) return false;
    this.#event(event, effects, now);
    ring.u16(effects.length);
    for (const effect of effects) this.#effect(effect);
    return ring.end();
  }

  #turn(): void {
    if (!this.#ring.isFresh) this.#ring.turn();
    this.#needsRest = true;
  }

  /** @returns false when it didn't fit into the segment. */
  #note(tag: number, text: string): boolean {
    if (!this.#ring.begin(eventBytes)) return false;
    this.#ring.u8(tag);
    this.#ring.text(text);
    return this.#ring.end();
  }

  #noteRest(engine: Parameters<LineObserve>[3]): void {
    const { rest } = engine;
    if (rest === undefined) return;
    const text = JSON.stringify(rest);
    if (!this.#note(tags.rest, text)) {
      this.#turn();
      this.#note(tags.rest, text);
    }
    // A rest that fits into no segment isn't tried again with each event.
    this.#needsRest = false;
  }

  #event(event: LineEvent, effects: readonly LineEffect[], now: number): void {
    const ring = this.#ring;
    const { at } = event;
    const isRare = at !== "call" && at !== "wrote" && at !== "tick" && at !== "recorded" && at !== "received";
    ring.u8(isRare ? tags.other : tags[at]);
    ring.f64(now);
    if (event.at === "call") this.#call(event.exchange);
    else if (event.at === "recorded") ring.u32(event.exchange.recordedAs);
    else if (event.at === "received") this.#received(event.items, event.receiving, effects);
    else if (isRare) ring.text(JSON.stringify(rareInput(event)));
  }

  #call(exchange: Exchange): void {
    const ring = this.#ring;
    const { request } = exchange;
    ring.u32(exchange.recordedAs);
    ring.u8(
      (request.urgent ? flags.urgent : 0) |
        (request.background ? flags.background : 0) |
        (request.repeatable ? flags.repeatable : 0) |
        (request.shapedAs === "probe" ? flags.probeShaped : 0) |
        (request.shapedAs === "second" ? flags.secondShaped : 0) |
        (request.beforeSend === undefined ? 0 : flags.toRecord) |
        (request.framing === "stx" ? flags.stx : 0),
    );
    ring.u16(this.#word(request.service));
    ring.u16(this.#word(request.route));
    ring.u16(this.#word(request.adviceWhenUnknown));
    ring.f64(exchange.cameMs);
    ring.f64(exchange.waitUntilMs);
    ring.u32(request.replyTimeoutMs);
    ring.u32(bytesOf(exchange.frame));
    ring.ascii(request.requestId);
  }

  #received(items: readonly Decoded[], { phase, heardMs, burstUntilMs }: Receiving, effects: readonly LineEffect[]): void {
    const ring = this.#ring;
    ring.u8(phases.indexOf(phase));
    ring.f64(heardMs);
    ring.f64(burstUntilMs);
    ring.u16(items.length);
    for (const item of items) {
      if (item.kind === "frame" && item.isEcho !== true && item.payloadBytes <= payloadBytesMax) this.#frame(item);
      else {
        ring.u8(itemTags.other);
        ring.text(JSON.stringify(item.kind === "frame" ? keptReading(item, replyIn(effects, item)) : item));
      }
    }
  }

  #frame({ framing, payload, payloadBytes, wireBytes }: Frame): void {
    const ring = this.#ring;
    ring.u8(framing === "stx" ? itemTags.stxFrame : itemTags.lengthFrame);
    ring.u32(wireBytes);
    ring.pieces(payload, payloadBytes);
  }

  #effect(effect: LineEffect): void {
    const ring = this.#ring;
    if (effect.do === "write") {
      ring.u8(effectTags.write);
      ring.u16(this.#word(effect.service));
      ring.u32(effect.exchange?.recordedAs ?? 0);
      ring.u32(bytesOf(effect.frame));
    } else if (effect.do === "record") {
      ring.u8(effectTags.record);
      ring.u32(effect.exchange.recordedAs);
    } else if (effect.do === "end" && !(effect.ending instanceof Fault)) {
      const code = codeClass(effect.ending.code);
      ring.u8(effectTags.answer);
      ring.u32(effect.exchange.recordedAs);
      ring.u8(statuses.indexOf(statusClass(effect.ending.status)));
      ring.u8(effect.exchange.request.caller.gone ? 1 : 0);
      ring.u16(typeof code === "number" ? code + codes.offset : codes[code]);
    } else {
      ring.u8(effectTags.other);
      ring.u8(effect.do === "end" && effect.exchange.request.caller.gone ? 1 : 0);
      ring.text(JSON.stringify(decisionOf(effect)));
    }
  }

  #word(text: string): number {
    const known = this.#wordNumbers.get(text);
    if (known !== undefined) return known;
    if (this.#words.length >= wordsMax) return wordsMax;
    this.#wordNumbers.set(text, this.#words.length);
    return this.#words.push(text) - 1;
  }

  // --- reading

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
    const entries = Array.from(this.#ring.records(), (record) => this.#entry(record, secrets));
    // What stands before the first rest is in no state that is known: it can be shown, and not replayed.
    return { head, entries: entries[0]?.at === "rest" ? entries : [{ at: "gap" }, ...entries] };
  }

  #entry(from: RecordReader, secrets: readonly string[]): RecordedEntry {
    const tag = from.u8();
    if (tag === tags.rest) return { at: "rest", rest: JSON.parse(from.text()) };
    if (tag === tags.gap) {
      from.text();
      return { at: "gap" };
    }
    const t = from.f64();
    const input = this.#input(tag, from, secrets);
    const left: number[] = [];
    const decided = Array.from({ length: from.u16() }, () => this.#decision(from, left));
    return { t, ...input, ...(left.length === 0 ? {} : { left }), decided };
  }

  #input(tag: number, from: RecordReader, secrets: readonly string[]): RecordedInput {
    switch (tag) {
      case tags.call:
        return this.#callFrom(from);
      case tags.wrote:
        return { at: "wrote" };
      case tags.tick:
        return { at: "tick" };
      case tags.recorded:
        return { at: "recorded", call: from.u32() };
      case tags.received:
        return this.#receivedFrom(from, secrets);
      default: {
        // Written by `rareInput`.
        const input: RecordedInput = JSON.parse(from.text());
        return input.at === "lost" ? { ...input, discards: input.discards.map(shownDiscard) } : input;
      }
    }
  }

  #callFrom(from: RecordReader): RecordedInput {
    const call = from.u32();
    const bits = from.u8();
    return {
      at: "call",
      call,
      urgent: (bits & flags.urgent) !== 0,
      background: (bits & flags.background) !== 0,
      repeatable: (bits & flags.repeatable) !== 0,
      ...((bits & flags.probeShaped) !== 0 ? { shapedAs: "probe" } : {}),
      ...((bits & flags.secondShaped) !== 0 ? { shapedAs: "second" } : {}),
      toRecord: (bits & flags.toRecord) !== 0,
      framing: (bits & flags.stx) !== 0 ? "stx" : "length",
      service: this.#wordOf(from.u16()),
      route: this.#wordOf(from.u16()),
      adviceWhenUnknown: this.#wordOf(from.u16()),
      cameMs: from.f64(),
      waitUntilMs: from.f64(),
      replyTimeoutMs: from.u32(),
      frameBytes: from.u32(),
      // A till may choose it.
      requestId: maskCardNumbers(from.ascii()),
    };
  }

  #receivedFrom(from: RecordReader, secrets: readonly string[]): RecordedInput {
    const phase = phases[from.u8()] ?? "idle";
    const receiving = { phase, heardMs: from.f64(), burstUntilMs: from.f64() };
    const items = Array.from({ length: from.u16() }, (): RecordedItem => {
      const tag = from.u8();
      if (tag === itemTags.other) {
        // Written by `#received`.
        const item: RecordedItem = JSON.parse(from.text());
        return item.kind === "discard" ? shownDiscard(item) : item;
      }
      const framing = tag === itemTags.stxFrame ? "stx" : "length";
      return shownFrame({ framing, wireBytes: from.u32(), payload: from.bytes() }, this.#line.services, secrets);
    });
    return { at: "received", items, receiving };
  }

  /** @param left Gets the call whose caller had left when it ended. */
  #decision(from: RecordReader, left: number[]): Decision {
    switch (from.u8()) {
      case effectTags.write: {
        const service = this.#wordOf(from.u16());
        return { do: "write", service, call: from.u32(), bytes: from.u32() };
      }
      case effectTags.record:
        return { do: "record", call: from.u32() };
      case effectTags.answer: {
        const call = from.u32();
        const status = statuses[from.u8()] ?? "other";
        if (from.u8() === 1) left.push(call);
        return { do: "answer", call, status, code: codeFrom(from.u16()) };
      }
      default: {
        const hasLeft = from.u8() === 1;
        // Written by `#effect`.
        const decision: Decision = JSON.parse(from.text());
        if (hasLeft && "call" in decision) left.push(decision.call);
        return decision;
      }
    }
  }

  #wordOf(number: number): string {
    return this.#words[number] ?? "";
  }
}

function codeFrom(number: number): CodeClass {
  if (number === codes.none) return "none";
  return number === codes.other ? "other" : number - codes.offset;
}

/** An event that is rare, as it is kept. */
function rareInput(event: LineEvent): RecordedInput {
  switch (event.at) {
    case "lost":
      return { at: "lost", reason: event.reason, nothingWritten: event.nothingWritten, discards: event.discards };
    case "caller gone":
      return { at: "caller gone", call: event.exchange.recordedAs };
    case "record failed": {
      const { kind, message, reason } = event.fault;
      return { at: "record failed", call: event.exchange.recordedAs, fault: { kind, message, reason } };
    }
    case "open failed":
    case "stop":
    case "opened":
      return event;
    case "drained":
      return { at: event.at };
    default:
      throw new Error(`Cannot record the event ${event.at}: it has a form of its own`);
  }
}
