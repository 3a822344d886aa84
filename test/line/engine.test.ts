import assert from "node:assert/strict";
import { test } from "node:test";
import type { LineConfig } from "../../src/config/config.ts";
import { silenceMs } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { Presence } from "../../src/core/presence.ts";
import { lineService } from "../../src/line/caller.ts";
import { LineEngine, type LineEngineOptions } from "../../src/line/engine.ts";
import type { LineEffect, LineEvent } from "../../src/line/events.ts";
import { Exchange } from "../../src/line/exchange.ts";
import type { Receiving } from "../../src/line/frame-reader.ts";
import { corruptQuietMs } from "../../src/line/limits.ts";
import { type LineState, lineStates } from "../../src/line/states.ts";
import { pauseMs, silentWarnMs } from "../../src/recovery/limits.ts";
import type { Decoded, Discard, Frame, Framing } from "../../src/wire/decoded.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { bothReplies, probeReplies, questionReply } from "../support/terminal.ts";
import { configOf, merchantId, requestFor } from "./lines.ts";

/** The engine by itself, fed by hand: no device, no timer, no promise. Each event of each state has a cell here. */

const still: Receiving = { phase: "idle", heardMs: 0, burstUntilMs: 0 };

function frame(text: string, framing: Framing = "length"): Frame {
  const payload = Buffer.from(text);
  return { kind: "frame", framing, payload: [payload], payloadBytes: payload.length, wireBytes: payload.length + 6 };
}

/** An engine with a bank on its line, where not with others, and the clock and events in the test's hand. */
class Bench {
  now = 1_000;
  readonly options: LineEngineOptions;
  readonly engine: LineEngine;
  /** What was done since the beginning, in words. */
  readonly done: string[] = [];
  /** What was written last, as the terminal reads it. */
  #heard: Frame | undefined;
  readonly #terminal = createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax: 1 << 20 });

  constructor(names: readonly ContractName[] = ["bank"], settings: Partial<LineConfig> = {}) {
    const config = configOf(settings);
    const rules = { crc16: "arc", quiet: config.recovery === "quiet", merchantId } as const;
    this.options = { name: "till", config, services: names.map((name) => lineService(contracts[name], rules)) };
    this.engine = new LineEngine(this.options);
  }

  get config(): LineConfig {
    return this.options.config;
  }

  give(event: LineEvent): readonly LineEffect[] {
    const effects = this.engine.handle(event, this.now);
    this.done.push(...effects.map(wordsOf));
    this.note(effects);
    // A write is taken over at once, as most are.
    if (effects.some((effect) => effect.do === "write")) this.give({ at: "wrote" });
    return effects;
  }

  /** The terminal hears what is written. */
  note(effects: readonly LineEffect[]): void {
    for (const effect of effects) {
      if (effect.do !== "write") continue;
      for (const item of this.#terminal.push(Buffer.concat(effect.frame))) if (item.kind === "frame") this.#heard = item;
    }
  }

  /** Lets time go on until something is due. */
  tick(): readonly LineEffect[] {
    this.now = Math.max(this.now, this.engine.nextDueMs());
    return this.give({ at: "tick" });
  }

  /** Lets time go on, by what is due in it, up to a moment. */
  tickUntil(done: () => boolean): void {
    for (let ticks = 0; !done() && ticks < 1_000; ticks++) this.tick();
    assert.ok(done());
  }

  hear(...items: readonly Decoded[]): readonly LineEffect[] {
    return this.give({ at: "received", items, receiving: { ...still, heardMs: this.now } });
  }

  receive(...texts: readonly string[]): readonly LineEffect[] {
    return this.hear(...texts.map((text) => frame(text)));
  }

  /** The right answer to posline's question that was written last. */
  get rightAnswer(): Frame {
    const { framing = "length", payload = [] } = this.#heard ?? {};
    const text = questionReply({ framing, text: Buffer.concat(payload).toString(), number: 0 }, "answered");
    assert.ok(text !== undefined, "a question was written");
    return frame(text, framing);
  }

  /** The terminal answers it. */
  answer(): readonly LineEffect[] {
    return this.hear(this.rightAnswer);
  }

  /** The terminal answers what it is asked until the line is in step. */
  prove(): void {
    for (let n = 0; this.engine.state === "recovering" && n < 500; n++)
      if (this.tick().some((effect) => effect.do === "write")) this.answer();
    assert.notEqual(this.engine.state, "recovering");
  }

  exchange(id: string, settings: Parameters<typeof requestFor>[1] = {}): Exchange {
    const request = requestFor(id, settings);
    const times = { cameMs: this.now, waitUntilMs: this.now + this.config.queueWaitMs };
    return new Exchange("till", request, frameOf("length", request.payload, "arc"), times);
  }

  /** A call comes. */
  call(id: string, settings: Parameters<typeof requestFor>[1] = {}): readonly LineEffect[] {
    return this.give({ at: "call", exchange: this.exchange(id, settings) });
  }
}

function wordsOf(effect: LineEffect): string {
  if (effect.do === "end") {
    return `settle ${effect.ending instanceof Fault ? `${effect.ending.outcome}` : "reply"}`;
  }
  if (effect.do === "report") return `report ${effect.what.is}`;
  return effect.do;
}

const sale = '{"status":"success","data":{"status":"APPROVED"}}';

/** Brings a new engine into a state. */
function inState(state: LineState, bench: Bench & { inFlight?: Exchange } = new Bench()): Bench & { inFlight?: Exchange } {
  if (state === "closed") bench.give({ at: "stop", graceMs: 0, why: "posline is shutting down" });
  if (state === "down" || state === "closed") return bench;
  bench.give({ at: "opened" });
  bench.now += silenceMs;
  bench.give({ at: "drained" });
  bench.tick();
  if (state === "recovering") return bench;
  bench.answer();
  bench.prove();
  if (state === "idle") return bench;
  const inFlight = bench.exchange("OUT");
  bench.give({ at: "call", exchange: inFlight });
  return Object.assign(bench, { inFlight });
}

test("LineEngine comes into each state by events alone", () => {
  for (const state of lineStates) assert.equal(inState(state).engine.state, state);
  assert.match(inState("idle").engine.reason(), /the terminal answered: the line is ready/);
});

const impossible = "impossible";
type Cell = LineState | typeof impossible;

/** What each event makes of each state; `impossible` for what a link never tells in it, which must not pass in silence. */
const cells: Readonly<Record<LineEvent["at"], Readonly<Record<LineState, Cell>>>> = {
  opened: { down: "recovering", recovering: impossible, idle: impossible, awaiting: impossible, closed: "closed" },
  drained: { down: "down", recovering: "recovering", idle: "idle", awaiting: "awaiting", closed: "closed" },
  "open failed": { down: "down", recovering: "recovering", idle: "idle", awaiting: "awaiting", closed: "closed" },
  lost: { down: impossible, recovering: "down", idle: "down", awaiting: "down", closed: "closed" },
  received: { down: impossible, recovering: "recovering", idle: "recovering", awaiting: "idle", closed: "closed" },
  wrote: { down: "down", recovering: "recovering", idle: "idle", awaiting: "awaiting", closed: "closed" },
  call: { down: "down", recovering: "recovering", idle: "awaiting", awaiting: "awaiting", closed: "closed" },
  recorded: { down: "down", recovering: "recovering", idle: "idle", awaiting: "awaiting", closed: "closed" },
  "record failed": { down: "down", recovering: "recovering", idle: "idle", awaiting: "awaiting", closed: "closed" },
  "caller gone": { down: "down", recovering: "recovering", idle: "idle", awaiting: "awaiting", closed: "closed" },
  stop: { down: "closed", recovering: "closed", idle: "closed", awaiting: "awaiting", closed: "closed" },
  tick: { down: "down", recovering: "recovering", idle: "awaiting", awaiting: "recovering", closed: "closed" },
};

/** An event of a kind, as it would come to this bench. */
function eventOf(at: LineEvent["at"], bench: Bench): LineEvent {
  const exchange = bench.exchange("NEW");
  switch (at) {
    case "open failed":
      return { at, reason: "there is no device" };
    case "lost":
      return { at, reason: "unplugged", nothingWritten: false, discards: [] };
    case "received":
      return { at, items: [frame(sale)], receiving: { ...still, heardMs: bench.now } };
    case "call":
    case "recorded":
    case "caller gone":
      return { at, exchange };
    case "record failed":
      return { at, exchange, fault: new Fault("unavailable", "the disk is full") };
    case "stop":
      return { at, graceMs: 1_000, why: "posline is shutting down" };
    case "tick": {
      // Whatever is due: an idle line's probe, a reply's time-out.
      const due = bench.engine.nextDueMs();
      if (due !== Number.POSITIVE_INFINITY) bench.now = due;
      return { at };
    }
    default:
      return { at };
  }
}

for (const [at, row] of Object.entries(cells)) {
  for (const state of lineStates) {
    const cell = row[state];
    test(`LineEngine.handle() of "${at}" while ${state}: ${cell}`, () => {
      const bench = inState(state);
      // The table's keys are the events' names.
      const event = eventOf(at as LineEvent["at"], bench);
      if (cell === impossible) {
        assert.throws(() => bench.give(event), /the table has no such cell/);
        return;
      }
      bench.give(event);
      assert.equal(bench.engine.state, cell);
      // Whatever came, a call that comes now ends once, in one of the two ways, and the engine has a moment for it.
      const late = bench.exchange("LATE");
      let settled = 0;
      const count = (effects: readonly LineEffect[]) => {
        for (const effect of effects) if (effect.do === "end" && effect.exchange === late) settled++;
      };
      count(bench.give({ at: "call", exchange: late }));
      for (let ticks = 0; settled === 0 && ticks < 1_000 && bench.engine.nextDueMs() < Number.POSITIVE_INFINITY; ticks++) {
        count(bench.tick());
      }
      assert.equal(settled, 1);
    });
  }
}

test("LineEngine.handle() never settles a call twice, whoever left and whatever is recorded late", () => {
  const bench = inState("idle");
  const caller = new Presence();
  const call = bench.exchange("A", { beforeSend: async () => {}, caller });
  bench.give({ at: "call", exchange: call });
  caller.leave();
  assert.deepEqual(bench.give({ at: "caller gone", exchange: call }).map(wordsOf), ["settle not-sent"]);
  assert.deepEqual(bench.give({ at: "recorded", exchange: call }).map(wordsOf), []);
  const fault = new Fault("unavailable", "the disk is full");
  assert.deepEqual(bench.give({ at: "record failed", exchange: call, fault }).map(wordsOf), []);
  assert.deepEqual(bench.give({ at: "caller gone", exchange: call }).map(wordsOf), []);
  assert.equal(bench.engine.state, "idle");
});

function departed(): Presence {
  const caller = new Presence();
  caller.leave();
  return caller;
}

/** The fault's reason that each of these effects settles a call with. */
const reasonsOf = (effects: readonly LineEffect[]) =>
  effects.flatMap((effect) =>
    effect.do === "end" ? [effect.ending instanceof Fault ? effect.ending.reason : "answered"] : [],
  );

test("LineEngine.handle() names the reason of each call that was not sent", () => {
  const call = (bench: Bench, settings: Parameters<typeof requestFor>[1] = {}) =>
    bench.give({ at: "call", exchange: bench.exchange("NEW", settings) });
  const down = inState("down");
  down.give({ at: "open failed", reason: "there is no device" });
  assert.deepEqual(reasonsOf(call(down)), ["line-down"]);
  assert.deepEqual(reasonsOf(call(inState("closed"))), ["stopping"]);
  assert.deepEqual(reasonsOf(call(inState("idle"), { caller: departed() })), ["caller-left"]);
  const full = inState("awaiting");
  for (let waiting = 0; waiting < full.config.queueCallsMax; waiting++) assert.deepEqual(reasonsOf(call(full)), []);
  assert.deepEqual(reasonsOf(call(full)), ["queue-full"]);
  const waits = (bench: Bench) => {
    call(bench);
    bench.now += bench.config.queueWaitMs;
    return reasonsOf(bench.give({ at: "tick" })).at(-1);
  };
  assert.equal(waits(inState("down")), "line-down");
  assert.equal(waits(inState("recovering")), "recovering");
  const busy = inState("idle");
  busy.give({ at: "call", exchange: busy.exchange("OUT", { replyTimeoutMs: 60_000 }) });
  assert.equal(waits(busy), "waited-too-long");
  const recorded = inState("idle");
  call(recorded, { beforeSend: async () => {} });
  recorded.now += recorded.config.queueWaitMs;
  assert.deepEqual(reasonsOf(recorded.give({ at: "tick" })), ["not-recorded"]);
});

test("LineEngine.handle() names the reason of each call that was sent and has no good reply", () => {
  assert.deepEqual(reasonsOf(inState("awaiting").tick()), ["no-reply"]);
  assert.deepEqual(reasonsOf(inState("awaiting").receive("ERROR")), ["reply-corrupt"]);
  const large = `{"status":"success","x":"${"x".repeat(1024 * 1024)}"}`;
  assert.deepEqual(reasonsOf(inState("awaiting").receive(large)), ["reply-too-large"]);
  const closed = { at: "lost", reason: "unplugged", nothingWritten: false, discards: [] } as const;
  assert.deepEqual(reasonsOf(inState("awaiting").give(closed)), ["line-lost"]);
  const stopped = inState("awaiting");
  stopped.give({ at: "stop", graceMs: 1_000, why: "stopping" });
  assert.deepEqual(reasonsOf(stopped.tick()), ["stopping"]);
  // A frame that comes before the request is written can't be its reply.
  const early = inState("idle");
  const items = [frame(sale)];
  early.engine.handle({ at: "call", exchange: early.exchange("OUT") }, early.now);
  assert.deepEqual(reasonsOf(early.engine.handle({ at: "received", items, receiving: still }, early.now)), ["reply-ambiguous"]);
});

const unplugged = { at: "lost", reason: "unplugged", nothingWritten: false, discards: [] } as const;

/** Opens the device, and lets the silence after that pass. */
function open(bench: Bench): readonly LineEffect[] {
  bench.give({ at: "opened" });
  bench.now += silenceMs;
  return bench.give({ at: "drained" });
}

test("LineEngine asks nothing while a frame comes, asks on while other bytes come, and sets nobody aside before they pause", () => {
  const bench = inState("recovering");
  const hearing = (phase: Receiving["phase"]) =>
    bench.give({ at: "received", items: [], receiving: { phase, heardMs: bench.now, burstUntilMs: 0 } });
  hearing("in-frame");
  assert.equal(bench.engine.nextDueMs(), bench.now + silentWarnMs, "nothing but to say that it is silent");
  bench.now += 5_000;
  assert.deepEqual(bench.give({ at: "tick" }).map(wordsOf), []);
  hearing("garbage");
  assert.deepEqual(bench.tick().map(wordsOf), ["write"]);
  bench.now += bench.config.lateReplyMs;
  bench.give({ at: "tick" });
  assert.equal(bench.engine.state, "recovering");
  hearing("idle");
  const heardMs = bench.now;
  bench.tickUntil(() => bench.engine.state === "idle");
  assert.equal(bench.now, heardMs);
  assert.deepEqual(reasonsOf(bench.call("A")), ["recovering"]);
});

test("LineEngine.handle() gives the answer to a question of its own to a call of that route only, and proves the line behind it", () => {
  for (const [reply, route, shapedAs] of [
    [probeReplies.bankSupported, "/supported_operations", "probe"],
    [bothReplies.terminals, "/terminals", "second"],
  ] as const) {
    const bench = inState("idle");
    assert.deepEqual(bench.receive(reply).map(wordsOf), ["report late", "report state"]);
    bench.prove();
    bench.call("A");
    assert.deepEqual(bench.receive(reply).map(wordsOf), ["report late"]);
    assert.deepEqual(bench.receive(sale).map(wordsOf), ["settle reply", "report state"]);
    assert.equal(bench.engine.state, "recovering", "question and answer were out of step");
    bench.prove();
    bench.call("B", { route, shapedAs });
    assert.deepEqual(bench.receive(reply).map(wordsOf), ["settle reply"], "it is what was asked");
    assert.equal(bench.engine.state, "idle");
  }
});

test("LineEngine.handle() takes a frame right behind a reply for evidence that the line is out of step, and sends nothing before a row", () => {
  for (const text of [sale, '{"status":"error","code":-20}', "BUSY", probeReplies.bankSupported]) {
    for (const isAtOnce of [true, false]) {
      const bench = inState("idle");
      bench.call("A");
      // In one read it has to be the same one twice, or the answer to a question, so that the call's is known.
      if (isAtOnce && text !== sale && text !== probeReplies.bankSupported) continue;
      if (isAtOnce) bench.receive(sale, text);
      else {
        bench.receive(sale);
        bench.receive(text);
      }
      assert.equal(bench.engine.state, "recovering", text);
      assert.deepEqual(bench.call("B").map(wordsOf), []);
      bench.prove();
      assert.equal(bench.done.at(-1), "write");
      assert.deepEqual(bench.receive(sale).map(wordsOf), ["settle reply"]);
    }
  }
});

test("LineEngine.handle() takes an empty frame for nobody's, whatever its state, and nothing else so", () => {
  for (const state of ["recovering", "idle", "awaiting"] as const) {
    const bench = inState(state);
    bench.receive("");
    assert.deepEqual([bench.engine.state, bench.done.at(-1)], [state, "report late"]);
  }
  const bench = inState("awaiting");
  bench.receive("", sale, "");
  assert.deepEqual([bench.engine.state, bench.done.slice(-3)], ["idle", ["report late", "settle reply", "report late"]]);
  bench.receive("0");
  assert.equal(bench.engine.state, "recovering", "what isn't empty is out of step");
});

test("LineEngine.handle() of a broken frame on an idle line suspects the services of its framing, and of noise none", () => {
  const checksum = "checksum" as const;
  const broken: Discard = { kind: "discard", reason: checksum, wireBytes: 9, head: "00" };
  for (const [discard, suspects] of [
    [{ ...broken, checksum: { got: "01", crc32: "02" } }, ["fiscal"]],
    [{ ...broken, checksum: { got: "01", arc: "02", umts: "03" } }, ["bank"]],
    [{ ...broken, reason: "noise" }, []],
  ] as const) {
    const bench = inState("idle", new Bench(["fiscal", "bank"]));
    assert.equal(wordsOf(bench.hear(discard)[0] ?? { do: "close" }), "report discard");
    const out = bench.engine.rest?.recovery.services.filter(({ standing }) => standing !== "in step");
    assert.deepEqual(
      out?.map(({ service }) => service),
      suspects,
    );
    assert.equal(bench.engine.state, suspects.length > 0 ? "recovering" : "idle");
  }
});

test("LineEngine sends no question once more that had no reply at all, or while it stops", () => {
  const silent = inState("idle");
  silent.call("Q", { repeatable: true });
  assert.deepEqual(reasonsOf(silent.tick()), ["no-reply"]);
  const stops = inState("idle");
  stops.call("Q", { repeatable: true });
  stops.give({ at: "stop", graceMs: 60_000, why: "stopping" });
  assert.deepEqual(reasonsOf(stops.receive("ERROR")), ["reply-corrupt"]);
  assert.equal(stops.engine.state, "closed");
});

test("LineEngine never sends a call whose caller has left before its turn, or before it was recorded", () => {
  const [waiting, recorded] = [new Presence(), new Presence()];
  const bench = inState("awaiting");
  bench.call("WAITS", { caller: waiting });
  waiting.leave();
  assert.deepEqual(bench.receive(sale).map(wordsOf), ["settle reply", "settle not-sent"]);
  const exchange = bench.exchange("RECORDED", { caller: recorded, beforeSend: async () => {} });
  bench.give({ at: "call", exchange });
  recorded.leave();
  assert.deepEqual(reasonsOf(bench.give({ at: "recorded", exchange })), ["caller-left"]);
  assert.deepEqual(bench.call("NEXT").map(wordsOf), ["write"]);
  // Nor does it wait for the line's proof to say so.
  const proving = inState("idle");
  const again = proving.exchange("RECORDED", { caller: recorded, beforeSend: async () => {} });
  const stays = new Presence();
  const other = proving.exchange("RECORDED", { caller: stays, beforeSend: async () => {} });
  proving.give({ at: "call", exchange: other });
  proving.receive(sale);
  stays.leave();
  assert.deepEqual(reasonsOf(proving.give({ at: "recorded", exchange: other })), ["caller-left"]);
  assert.deepEqual(reasonsOf(proving.give({ at: "call", exchange: again })), ["caller-left"]);
});

test("LineEngine.refusal() leaves places of callers to callers, and of questions in the background to those", () => {
  const bench = inState("awaiting");
  const { queueCallsMax } = bench.config;
  for (let count = 0; count < queueCallsMax; count++) assert.deepEqual(reasonsOf(bench.call("Q", { background: true })), []);
  assert.deepEqual(reasonsOf(bench.call("Q", { background: true })), ["queue-full"]);
  assert.equal(bench.engine.refusal(bench.now), undefined);
  assert.equal(bench.engine.refusal(bench.now, { background: true })?.reason, "queue-full");
  for (let count = 0; count < queueCallsMax; count++) assert.deepEqual(reasonsOf(bench.call("A")), []);
  assert.equal(bench.engine.refusal(bench.now)?.reason, "queue-full");
  assert.equal(bench.engine.waiting, queueCallsMax);
});

test("LineEngine.rest is data from which another one goes on with the same decisions, at each step of a life", () => {
  const bench = new Bench(["bank", "qr"]);
  let compared = 0;
  let isAsked = false;
  const stepOf = (engine: LineEngine, effects: readonly LineEffect[]) => {
    return [effects.map(wordsOf), engine.rest, engine.nextDueMs(), engine.reason(), engine.liveness()];
  };
  const give = (event: LineEvent) => {
    const { rest } = bench.engine;
    const twin = rest === undefined ? undefined : new LineEngine({ ...bench.options, rest: structuredClone(rest) });
    assert.deepEqual(twin?.rest, rest);
    const effects = bench.engine.handle(event, bench.now);
    bench.note(effects);
    isAsked = effects.some((effect) => effect.do === "write");
    if (twin === undefined || event.at === "call") return;
    assert.deepEqual(stepOf(twin, twin.handle(event, bench.now)), stepOf(bench.engine, effects));
    compared++;
  };
  const heard = (...items: readonly Decoded[]): void => {
    bench.now += 5;
    give({ at: "received", items, receiving: { ...still, heardMs: bench.now, burstUntilMs: bench.now + 3 } });
  };
  const ticks = (count: number) => {
    for (let tick = 0; tick < count; tick++) {
      bench.now = Math.max(bench.now, bench.engine.nextDueMs());
      give({ at: "tick" });
      give({ at: "wrote" });
    }
  };
  const opens = () => {
    give({ at: "opened" });
    bench.now += silenceMs;
    give({ at: "drained" });
  };
  const answers = () => {
    for (let count = 0; bench.engine.state !== "idle" && count < 100; count++) {
      bench.now = Math.max(bench.now, bench.engine.nextDueMs());
      give({ at: "tick" });
      if (!isAsked) continue;
      give({ at: "wrote" });
      heard(bench.rightAnswer);
    }
    assert.equal(bench.engine.state, "idle");
  };
  give({ at: "open failed", reason: "there is no device" });
  opens();
  ticks(12);
  heard({ kind: "discard", reason: "noise", wireBytes: 4, head: "fe9ce000" });
  answers();
  // An idle line's probe, its answer, one too many, and a frame that nobody asked for.
  ticks(1);
  heard(bench.rightAnswer);
  ticks(1);
  heard(bench.rightAnswer);
  heard(frame(probeReplies.bankSupported));
  answers();
  heard(frame(sale));
  answers();
  give({ at: "call", exchange: bench.exchange("A") });
  assert.equal(bench.engine.rest, undefined, "a call is out");
  give({ at: "wrote" });
  heard(frame(sale));
  give(unplugged);
  opens();
  ticks(3);
  bench.now += 100_000;
  give({ at: "tick" });
  assert.ok(compared > 50, `${compared} steps`);
});

test("LineEngine sends calls at last though a service refuses to prove its line clean, and says that alone", () => {
  const bench = inState("recovering");
  for (let ticks = 0; bench.engine.state === "recovering" && ticks < 500; ticks++)
    if (bench.tick().some((effect) => effect.do === "write")) bench.receive('{"status":"error","code":-5}');
  assert.equal(bench.engine.state, "idle");
  assert.match(bench.engine.reason(), /^bank answers posline's own question with code -5: .*; calls are sent$/);
});

test("LineEngine begins a row after a pause, and asks nothing right behind an answer that corrupt bytes follow", () => {
  const bench = inState("recovering");
  bench.answer();
  assert.equal(bench.engine.nextDueMs(), bench.now + pauseMs);
  assert.deepEqual(bench.tick().map(wordsOf), ["write"]);
  const heardMs = bench.now;
  const receiving: Receiving = { phase: "garbage", heardMs, burstUntilMs: 0 };
  bench.give({ at: "received", items: [bench.rightAnswer], receiving });
  assert.deepEqual(bench.give({ at: "tick" }).map(wordsOf), []);
  assert.equal(bench.engine.nextDueMs(), heardMs + corruptQuietMs);
  assert.deepEqual(bench.tick().map(wordsOf), ["write"]);
});

const listenMs = 200;

/** Each way to what is sent next: a call, its repetition, a probe. The terminal's last byte comes at the end of it. */
const beforePauses: readonly (readonly [what: string, before: (bench: Bench) => void])[] = [
  [
    "a call that waits",
    (bench) => {
      bench.call("A");
      bench.call("B");
      bench.receive(sale);
    },
  ],
  [
    "a call that comes in the pause",
    (bench) => {
      bench.call("A");
      bench.receive(sale);
      const [heardMs, before] = [bench.now, bench.done.length];
      bench.now += 50;
      bench.call("B");
      assert.deepEqual(bench.done.slice(before), []);
      assert.equal(bench.engine.nextDueMs(), heardMs + listenMs);
      bench.now = heardMs;
    },
  ],
  [
    "a question that is sent once more, behind a broken answer",
    (bench) => {
      bench.call("Q", { repeatable: true });
      bench.hear({ kind: "discard", reason: "checksum", wireBytes: 9, head: "000000057b" });
      const heardMs = bench.now;
      assert.deepEqual(bench.tick().map(wordsOf), ["report state"]);
      assert.equal(bench.now, heardMs + corruptQuietMs);
      bench.now = heardMs;
    },
  ],
  ["a recovery's probe, behind a frame that nobody asked for", (bench) => bench.receive(sale)],
  [
    "an idle line's probe of the next service",
    (bench) => {
      bench.give(unplugged);
      open(bench);
      bench.tick();
      bench.answer();
    },
  ],
];

test("LineEngine sends nothing until pauseMs after an answer's last byte, be it a call, its repetition or a probe, and then at once", () => {
  for (const [what, before] of beforePauses) {
    const bench = inState("idle", new Bench(["bank", "qr"], { pauseMs: listenMs }));
    bench.now += listenMs;
    for (const service of ["bank", "qr"] as const) {
      bench.call("A", { service });
      bench.receive(sale);
      bench.now += listenMs;
    }
    before(bench);
    const heardMs = bench.now;
    bench.now += listenMs - 1;
    assert.deepEqual(
      bench.give({ at: "tick" }).filter((effect) => effect.do === "write"),
      [],
      what,
    );
    bench.tick();
    assert.deepEqual([bench.done.at(-1), bench.now], ["write", heardMs + listenMs], what);
  }
});

test("LineEngine.rest keeps a pause, and noise begins none", () => {
  const bench = inState("idle", new Bench(["bank"], { pauseMs: listenMs }));
  bench.now += 1_000;
  bench.call("A");
  bench.receive(sale);
  const heardMs = bench.now;
  const { rest } = bench.engine;
  assert.equal(rest?.pausesUntilMs, heardMs + listenMs);
  const next = new LineEngine({ ...bench.options, rest });
  assert.deepEqual(next.handle({ at: "call", exchange: bench.exchange("B") }, heardMs + listenMs - 1), []);
  assert.deepEqual(next.handle({ at: "tick" }, heardMs + listenMs).map(wordsOf), ["write"]);
  bench.now += listenMs;
  bench.hear({ kind: "discard", reason: "noise", wireBytes: 1, head: "00" });
  assert.deepEqual(bench.call("C").map(wordsOf), ["write"]);
});

test("LineEngine says to a call that waited for a row that older answers may still come, and of whom", () => {
  const bench = inState("recovering", new Bench(["bank"], { queueWaitMs: 5_000 }));
  bench.answer();
  bench.call("A");
  const ends: string[] = [];
  for (let ticks = 0; ends.length === 0 && ticks < 10; ticks++)
    for (const effect of bench.tick())
      if (effect.do === "end" && effect.ending instanceof Fault) ends.push(effect.ending.message);
  assert.match(
    ends.join(),
    /it is recovering \(the device opened; older answers of bank may still come\), and the call waited 5 s/,
  );
});
