import assert from "node:assert/strict";
import { contracts } from "../../src/contract/contracts.ts";
import { Fault } from "../../src/core/fault.ts";
import { lineService } from "../../src/line/caller.ts";
import type { EngineRest, LineEffect, LineEvent } from "../../src/line/events.ts";
import type { Exchange } from "../../src/line/exchange.ts";
import type { Receiving } from "../../src/line/frame-reader.ts";
import type { Recovery } from "../../src/recovery/recovery.ts";
import type { Decoded, Discard, DiscardReason, Framing } from "../../src/wire/decoded.ts";
import { configOf, idOf, merchantId, requestFor } from "../../test/line/lines.ts";
import { questionReplies } from "../../test/support/terminal.ts";
import { keyOf, type OpenEngine } from "./open-engine.ts";

/**
 * One line with two services, as its engine's driver and its terminal may drive it: which events may come next, what each does, and
 * what must hold after it. The terminal answers in order, as late as may be, may lose what it has and may garble it; where a silence is waited
 * for, it isn't silent for `lateReplyMs` while it owes an answer.
 */

const crc16 = "arc";
const names = ["bank", "fiscal"] as const;
const config = configOf({ lateReplyMs: 5_000, queueWaitMs: 15_000, queueCallsMax: 2, idleProbeMs: 0 });
const services = names.map((name) => lineService(contracts[name], { crc16, quiet: false, merchantId }));

type CallKind = { readonly service: (typeof names)[number]; readonly repeatable: boolean; readonly record: boolean };

/** Calls of a sequence: for money with a record, a question, for money of the other service. */
const callKinds: readonly [CallKind, ...CallKind[]] = [
  { service: "bank", repeatable: false, record: true },
  { service: "bank", repeatable: true, record: false },
  { service: "fiscal", repeatable: false, record: false },
];
const callsMax = 2;

/** When an event comes: a millisecond before what the engine waits for next, with it, or a millisecond after. */
export type Timing = "before" | "at" | "after";

export type Choice = { readonly what: string; readonly timing: Timing };

interface Call {
  readonly exchange: Exchange;
  readonly repeatable: boolean;
  isRecording: boolean;
  wasRecorded: boolean;
  /** How often it was written whole. */
  sendings: number;
  hasEnded: boolean;
  hasLeft: boolean;
}

/** What the terminal owes an answer to: a call by its number, -1 for one of the process before, or a question of posline's own. */
interface Owed {
  readonly framing: Framing;
  readonly call: number | undefined;
  /** The answer to the question. */
  readonly answer: string | undefined;
}

/** A line at rest. */
export interface Rest {
  readonly engine: EngineRest;
  readonly nowMs: number;
  /** Its terminal answers bank's probes with something of its own. */
  readonly isOdd: boolean;
}

export class LineModel {
  now = 1_000_000;
  readonly #open: OpenEngine;
  readonly #engine: InstanceType<OpenEngine["LineEngine"]>;
  readonly #calls: Call[] = [];
  readonly #owed: Owed[] = [];
  #isOpen = false;
  #isDrained = false;
  /** What is being written. */
  #writing: Owed | undefined;
  /** The call in flight. */
  #current: number | undefined;
  #phase: Receiving["phase"] = "idle";
  #heardMs = this.now;
  #isStopped = false;
  #isClosed = false;
  /** When something went either way last. */
  #busyMs = this.now;
  #isOdd = false;

  /** @param rest Where it goes on from, on an open and silent line; absent for a line that begins. */
  constructor(open: OpenEngine, rest?: Rest) {
    this.#open = open;
    this.#engine = new open.LineEngine({ name: "till", config, services, rest: rest?.engine });
    if (rest === undefined) return;
    this.now = rest.nowMs;
    this.#isOdd = rest.isOdd;
    this.#isOpen = true;
    this.#isDrained = true;
  }

  /** A line that is clean, its terminal having answered all. */
  static clean(open: OpenEngine): Rest {
    const model = new LineModel(open);
    model.#settle();
    return model.#rest(false);
  }

  #rest(isOdd: boolean): Rest {
    const engine = this.#engine.rest;
    if (engine === undefined) throw new Error("the line doesn't come to rest");
    return { engine, nowMs: this.now, isOdd };
  }

  /** A call of the process before may still be answered. */
  oweFormerCall(): void {
    this.#owed.push({ framing: "length", call: -1, answer: undefined });
  }

  /** A line that lets calls out, though its terminal answers bank's probes with something of its own, and fiscal's not. */
  static answeredOddly(open: OpenEngine): Rest {
    const model = new LineModel(open);
    model.#isOdd = true;
    const untilMs = model.now + 3 * config.lateReplyMs;
    for (const what of ["opened", "drained"]) model.take({ what, timing: "at" });
    while (model.#owed.length > 0 || model.#writing !== undefined || model.now < untilMs) {
      if (model.#writing !== undefined) model.#soon("wrote");
      else if (model.#owed.length > 0) model.#soon(model.#owed[0]?.framing === "length" ? "answer" : "terminal forgets");
      else if (model.#engine.nextDueMs() < untilMs) model.take({ what: "tick", timing: "at" });
      else break;
    }
    return model.#rest(true);
  }

  /** It happens at once, whatever the engine waits for. */
  #soon(what: string): void {
    this.now++;
    const event = this.#eventOf(what);
    if (event !== undefined) this.#feed(event);
  }

  /** All that its future depends on. */
  get key(): string {
    const calls = this.#calls.map(({ sendings, isRecording, wasRecorded, hasEnded, hasLeft, repeatable }) =>
      [sendings, +isRecording, +wasRecorded, +hasEnded, +hasLeft, +repeatable].join(""),
    );
    const owed = this.#owed.map(({ framing, call, answer }) => `${framing}${call ?? answer}`);
    const own = [this.#isOpen, this.#isDrained, this.#isStopped, this.#isClosed, this.#phase, this.#current];
    const since = this.#owed.length === 0 ? 0 : Math.max(-config.lateReplyMs, this.#busyMs - this.now);
    const { framing, call, answer } = this.#writing ?? {};
    const writing = framing === undefined ? "" : `${framing}${call ?? answer}`;
    return [keyOf(this.#engine, this.now), ...calls, "|", ...owed, "|", ...own, since, writing].join(" ");
  }

  /** What may come next. */
  choices(): readonly Choice[] {
    const whats: string[] = [];
    const add = (condition: boolean, ...more: string[]) => {
      if (condition) whats.push(...more);
    };
    if (this.#isClosed) return [];
    const isOpen = this.#isOpen;
    add(!isOpen, "opened", "open failed");
    add(isOpen && !this.#isDrained, "drained");
    add(isOpen, "lost", "noise", "broken frame");
    add(isOpen && this.#writing !== undefined, "wrote", "lost unwritten");
    add(isOpen && this.#owed.length > 0, "answer", "answer with an error", "garbled answer");
    add(this.#owed.length > 0, "terminal forgets");
    add(isOpen && this.#isDrained && this.#engine.state === "recovering", "terminal works all off");
    add(isOpen && this.#phase === "idle", "frame begins");
    add(this.#phase !== "idle", "frame ends in nothing");
    if (this.#calls.length < callsMax) for (const index of callKinds.keys()) whats.push(`call ${index}`);
    for (const [index, call] of this.#calls.entries()) {
      add(call.isRecording && !call.hasEnded, `recorded ${index}`, `record failed ${index}`);
      add(!call.hasEnded && !call.hasLeft, `caller gone ${index}`);
    }
    add(!this.#isStopped, "stop");
    const isDue = this.#engine.nextDueMs() < Number.POSITIVE_INFINITY;
    const timings: readonly Timing[] = isDue ? ["before", "at", "after"] : ["at"];
    const choices = whats.flatMap((what) => timings.map((timing) => ({ what, timing })));
    if (isDue) choices.push({ what: "tick", timing: "at" }, { what: "tick", timing: "after" });
    return choices;
  }

  /** Lets it happen. @throws AssertionError when a promise is broken. */
  take({ what, timing }: Choice): void {
    this.#pass(timing);
    if (what === "terminal works all off") {
      this.#workOff();
      return;
    }
    const event = this.#eventOf(what);
    if (event !== undefined) this.#feed(event);
  }

  /** To where nothing waits and nothing is owed: a terminal that answers at once. */
  #settle(): void {
    for (let turn = 0; turn < 200; turn++) {
      if (!this.#isOpen) this.take({ what: "opened", timing: "at" });
      else if (!this.#isDrained) this.take({ what: "drained", timing: "at" });
      else if (this.#writing !== undefined) this.take({ what: "wrote", timing: "before" });
      else if (this.#owed.length > 0) this.take({ what: "answer", timing: "before" });
      else if (this.#engine.nextDueMs() < Number.POSITIVE_INFINITY) this.take({ what: "tick", timing: "at" });
      else return;
    }
    throw new Error("the line doesn't come to rest");
  }

  /** It answers what it owes, and what it is asked then, each at once, until the line lets calls out: too many events to try others between. */
  #workOff(): void {
    for (let turn = 0; turn < 500 && this.#isOpen && this.#engine.state === "recovering"; turn++) {
      if (this.#writing !== undefined) this.#soon("wrote");
      else if (this.#owed.length > 0) this.#soon("answer");
      else if (this.#engine.nextDueMs() < Number.POSITIVE_INFINITY) this.#atDue();
      else return;
    }
  }

  #atDue(): void {
    this.#pass("at");
    this.#feed({ at: "tick" });
  }

  #pass(timing: Timing): void {
    const dueMs = this.#engine.nextDueMs();
    const aroundMs = timing === "before" ? -1 : timing === "at" ? 0 : 1;
    this.now = Math.max(this.now, dueMs < Number.POSITIVE_INFINITY ? dueMs + aroundMs : this.now + 1);
    if (this.#isSilenceAwaited && this.now - this.#busyMs >= config.lateReplyMs) this.#owed.length = 0;
  }

  /** A silence is to put a service in step: what the terminal doesn't say within it, it will never say. */
  get #isSilenceAwaited(): boolean {
    // Private fields of the engine, readable as compiled.
    const { p_recovery } = this.#engine as unknown as { readonly p_recovery: Recovery };
    return p_recovery.state.services.some(({ standing }) => standing === "waits");
  }

  #eventOf(what: string): LineEvent | undefined {
    const [word = "", number] = what.split(/ (?=\d)/);
    const call = number === undefined ? undefined : this.#calls[Number(number)];
    switch (word) {
      case "opened":
        this.#isOpen = true;
        this.#isDrained = false;
        this.#phase = "idle";
        return { at: "opened" };
      case "open failed":
        return { at: "open failed", reason: "there is no device" };
      case "drained":
        this.#isDrained = true;
        return { at: "drained" };
      case "lost":
      case "lost unwritten":
        return this.#lost(word === "lost unwritten");
      case "wrote":
        this.#wrote();
        return { at: "wrote" };
      case "tick":
      case "stop":
        this.#isStopped ||= word === "stop";
        return word === "tick" ? { at: "tick" } : { at: "stop", graceMs: 3_000, why: "posline is shutting down" };
      case "call":
        return { at: "call", exchange: this.#newCall(Number(number)) };
      default:
        return call === undefined ? this.#heard(what) : this.#ofCall(word, call);
    }
  }

  #ofCall(word: string, call: Call): LineEvent {
    const { exchange } = call;
    if (word === "caller gone") {
      call.hasLeft = true;
      exchange.request.caller.leave();
      return { at: "caller gone", exchange };
    }
    call.isRecording = false;
    call.wasRecorded = word === "recorded";
    if (call.wasRecorded) return { at: "recorded", exchange };
    return { at: "record failed", exchange, fault: new Fault("unavailable", "Cannot send: its record can't be written") };
  }

  #newCall(kind: number): Exchange {
    const { service, repeatable, record } = callKinds[kind] ?? callKinds[0];
    const request = requestFor(`C${this.#calls.length}`, {
      ...{ service, repeatable, replyTimeoutMs: 4_000 },
      beforeSend: record ? async () => {} : undefined,
    });
    const times = { cameMs: this.now, waitUntilMs: this.now + config.queueWaitMs };
    const exchange = new this.#open.Exchange("till", request, [Buffer.alloc(40)], times);
    exchange.recordedAs = this.#calls.length + 1;
    this.#calls.push({
      exchange,
      repeatable,
      isRecording: false,
      wasRecorded: false,
      sendings: 0,
      hasEnded: false,
      hasLeft: false,
    });
    return exchange;
  }

  #wrote(): void {
    const written = this.#writing;
    this.#writing = undefined;
    if (written === undefined) return;
    this.#busyMs = this.now;
    this.#owed.push(written);
    const call = written.call === undefined ? undefined : this.#calls[written.call];
    if (call === undefined) return;
    call.sendings++;
    assert.ok(call.sendings <= (call.repeatable ? 2 : 1), `call ${written.call} was sent ${call.sendings} times`);
  }

  #lost(nothingWritten: boolean): LineEvent {
    const wasWriting = this.#writing !== undefined;
    this.#isOpen = false;
    this.#isDrained = false;
    // What the kernel had taken may have left whole.
    if (wasWriting && !nothingWritten) this.#wrote();
    this.#writing = undefined;
    this.#phase = "idle";
    return { at: "lost", reason: "unplugged", nothingWritten, discards: [] };
  }

  #heard(what: string): LineEvent | undefined {
    const answered = what.includes("answer") || what === "terminal forgets" ? this.#owed.shift() : undefined;
    if (what === "terminal forgets") return undefined;
    this.#busyMs = this.now;
    this.#heardMs = this.now;
    this.#phase = what === "frame begins" ? "in-frame" : "idle";
    const items = this.#itemsOf(what, answered);
    return { at: "received", items, receiving: { phase: this.#phase, heardMs: this.#heardMs, burstUntilMs: 0 } };
  }

  #itemsOf(what: string, answered: Owed | undefined): readonly Decoded[] {
    if (what === "frame begins") return [];
    if (answered === undefined || what === "garbled answer") {
      const reason = what === "noise" ? "noise" : what === "frame ends in nothing" ? "reset" : "checksum";
      return [discardOf(reason, answered?.framing ?? "length")];
    }
    const { framing, call, answer } = answered;
    const isError = what === "answer with an error";
    const text = isError ? undefined : answer;
    const id = call === undefined ? "" : `C${call < 0 ? "former" : call}`;
    const payload = Buffer.from(text ?? `{"status":"${isError ? "error" : "success"}","id":"${id}"}`);
    return [{ kind: "frame", framing, payload: [payload], payloadBytes: payload.length, wireBytes: payload.length + 8 }];
  }

  #feed(event: LineEvent): void {
    for (const effect of this.#engine.handle(event, this.now)) this.#carryOut(effect);
  }

  #carryOut(effect: LineEffect): void {
    switch (effect.do) {
      case "write":
        this.#written(effect);
        break;
      case "record": {
        const call = this.#calls[effect.exchange.recordedAs - 1];
        if (call !== undefined) call.isRecording = true;
        break;
      }
      case "end":
        this.#settled(effect);
        break;
      case "close":
        this.#isClosed = true;
        assert.ok(
          this.#calls.every(({ hasEnded }) => hasEnded),
          "the line closes, and a call has no end",
        );
        break;
      case "report":
        // The call in flight is sent once more later, or has ended.
        if (effect.what.is === "state" && effect.what.state === "recovering") this.#current = undefined;
        break;
    }
  }

  #written({ service, frame, exchange }: LineEffect & { do: "write" }): void {
    const number = exchange === undefined ? undefined : exchange.recordedAs - 1;
    const what = number === undefined ? "a probe" : `call ${number}`;
    assert.ok(this.#isOpen && this.#isDrained, `${what} was written while the line was not ready`);
    assert.equal(this.#writing, undefined, `${what} was written while another was`);
    assert.equal(this.#current, undefined, `${what} was written while call ${this.#current} was in flight`);
    const call = number === undefined ? undefined : this.#calls[number];
    assert.ok(exchange === undefined || (call !== undefined && !call.hasEnded), `${what} was written after its end`);
    assert.ok(exchange?.request.beforeSend === undefined || call?.wasRecorded, `${what} was written and not recorded`);
    assert.ok(!this.#isStopped, `${what} was written after the stop`);
    const answer = exchange === undefined ? this.#answerTo(service, frame) : undefined;
    this.#writing = { framing: service === "fiscal" ? "stx" : "length", call: number, answer };
    this.#current = number;
  }

  #answerTo(service: string, frame: readonly Buffer[]): string {
    const name = service === "fiscal" ? "fiscal" : "bank";
    const isSecond = services.some(({ second }) => second === frame);
    if (this.#isOdd && name === "bank" && !isSecond) return '{"status":"success"}';
    return questionReplies[name][isSecond ? "second" : "probe"];
  }

  #settled({ exchange, ending }: LineEffect & { do: "end" }): void {
    const number = exchange.recordedAs - 1;
    const call = this.#calls[number];
    assert.ok(call !== undefined && !call.hasEnded, `call ${number} ended twice`);
    call.hasEnded = true;
    if (this.#current === number) this.#current = undefined;
    // A fault of the engine's own module has the same name.
    if ("payload" in ending) {
      const text = Buffer.concat(ending.payload).toString();
      assert.equal(idOf(text), `C${number}`, `call ${number} was answered ${text}`);
    } else if (ending.outcome === "not-sent") assert.equal(call.sendings, 0, `call ${number} was sent, and called not sent`);
  }
}

function discardOf(reason: DiscardReason, framing: Framing): Discard {
  const discard = { kind: "discard", reason, wireBytes: 12, head: "4154" } as const;
  if (reason !== "checksum") return discard;
  return { ...discard, checksum: framing === "stx" ? { got: "01", crc32: "02" } : { got: "01", arc: "02", umts: "03" } };
}
