import assert from "node:assert/strict";
import { test } from "node:test";
import { silenceMs } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { Fault } from "../../src/core/fault.ts";
import { Presence } from "../../src/core/presence.ts";
import { lineService } from "../../src/line/caller.ts";
import { type LineEffect, LineEngine, type LineEvent } from "../../src/line/engine.ts";
import { Exchange } from "../../src/line/exchange.ts";
import type { Receiving } from "../../src/line/frame-reader.ts";
import { type LineState, lineStates } from "../../src/line/states.ts";
import type { Frame } from "../../src/wire/decoded.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { probeReplies } from "../support/terminal.ts";
import { configOf, requestFor } from "./lines.ts";

/** The engine by itself, fed by hand: no device, no timer, no promise. Each event of each state has a cell here. */

const still: Receiving = { phase: "idle", heardMs: 0, burstUntilMs: 0 };

function frame(text: string): Frame {
  const payload = Buffer.from(text);
  return { kind: "frame", framing: "length", payload: [payload], payloadBytes: payload.length, wireBytes: payload.length + 6 };
}

/** An engine with a bank on its line, and the clock and events in the test's hand. */
class Bench {
  now = 1_000;
  readonly config = configOf();
  readonly engine = new LineEngine({
    name: "till",
    config: this.config,
    services: [lineService(contracts.bank, { crc16: "arc", quiet: false, merchantId: undefined })],
  });
  /** What was done since the beginning, in words. */
  readonly done: string[] = [];

  give(event: LineEvent): readonly LineEffect[] {
    const effects = this.engine.handle(event, this.now);
    this.done.push(...effects.map(wordsOf));
    // A write is taken over at once, as most are.
    if (effects.some((effect) => effect.do === "write")) this.give({ at: "wrote" });
    return effects;
  }

  /** Lets time go on until something is due. */
  tick(): readonly LineEffect[] {
    this.now = Math.max(this.now, this.engine.nextDueMs());
    return this.give({ at: "tick" });
  }

  receive(...texts: readonly string[]): readonly LineEffect[] {
    return this.give({ at: "received", items: texts.map(frame), receiving: { ...still, heardMs: this.now } });
  }

  exchange(id: string, settings: Parameters<typeof requestFor>[1] = {}): Exchange {
    const request = requestFor(id, settings);
    const times = { cameMs: this.now, waitUntilMs: this.now + this.config.queueWaitMs };
    return new Exchange("till", request, frameOf("length", request.payload, "arc"), times);
  }
}

function wordsOf(effect: LineEffect): string {
  if (effect.do === "settle") {
    return `settle ${effect.ending instanceof Fault ? `${effect.ending.outcome}` : "reply"}`;
  }
  if (effect.do === "report") return `report ${effect.what.is}`;
  return effect.do;
}

const sale = '{"status":"success","data":{"status":"APPROVED"}}';

/** Brings a new engine into a state. */
function inState(state: LineState): Bench & { inFlight?: Exchange } {
  const bench: Bench & { inFlight?: Exchange } = new Bench();
  if (state === "closed") bench.give({ at: "stop", graceMs: 0, why: "posline is shutting down" });
  if (state === "down" || state === "closed") return bench;
  bench.give({ at: "opened" });
  bench.now += silenceMs;
  bench.give({ at: "drained" });
  bench.tick();
  if (state === "recovering") return bench;
  const isIdle = () => bench.engine.state === "idle";
  for (let answers = 0; !isIdle() && answers < 10; answers++) {
    bench.receive(probeReplies.bankSupported);
    if (!isIdle()) bench.tick();
  }
  if (state === "idle") return bench;
  const inFlight = bench.exchange("OUT");
  bench.give({ at: "call", exchange: inFlight });
  return Object.assign(bench, { inFlight });
}

test("LineEngine comes into each state by events alone", () => {
  for (const state of lineStates) assert.equal(inState(state).engine.state, state);
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
        for (const effect of effects) if (effect.do === "settle" && effect.exchange === late) settled++;
      };
      count(bench.give({ at: "call", exchange: late }));
      for (let ticks = 0; settled === 0 && ticks < 1_000 && bench.engine.nextDueMs() < Number.POSITIVE_INFINITY; ticks++) {
        count(bench.tick());
      }
      assert.equal(settled, 1);
    });
  }
}

test("LineEngine.handle() gives the next request's write after the reply's settling, in one answer", () => {
  const bench = inState("awaiting");
  bench.give({ at: "call", exchange: bench.exchange("NEXT") });
  assert.deepEqual(bench.receive(sale).map(wordsOf), ["settle reply", "write"]);
});

test("LineEngine.handle() settles what is in flight as unknown and what waits as not sent when the device is lost", () => {
  const bench = inState("awaiting");
  bench.give({ at: "call", exchange: bench.exchange("NEXT") });
  const effects = bench.give({ at: "lost", reason: "unplugged", nothingWritten: false, discards: [] });
  assert.deepEqual(effects.map(wordsOf), ["report state", "settle unknown", "settle not-sent"]);
});

test("LineEngine.handle() settles as not sent what was in flight when no byte of it was taken over", () => {
  const bench = inState("awaiting");
  const effects = bench.give({ at: "lost", reason: "unplugged", nothingWritten: true, discards: [] });
  assert.deepEqual(effects.map(wordsOf), ["report state", "settle not-sent"]);
});

test("LineEngine.handle() has a call recorded before it is written, once, and asks for nobody else's meanwhile", () => {
  const bench = inState("idle");
  const recorded = bench.exchange("A", { beforeSend: async () => {} });
  assert.deepEqual(bench.give({ at: "call", exchange: recorded }).map(wordsOf), ["record"]);
  assert.deepEqual(bench.give({ at: "call", exchange: bench.exchange("B") }).map(wordsOf), []);
  assert.deepEqual(bench.give({ at: "recorded", exchange: recorded }).map(wordsOf), ["write"]);
  assert.deepEqual(bench.receive(sale).map(wordsOf), ["settle reply", "write"]);
});

test("LineEngine.handle() closes when the exchange in flight has ended, or its grace is over", () => {
  const ends = inState("awaiting");
  assert.deepEqual(ends.give({ at: "stop", graceMs: 60_000, why: "stopping" }).map(wordsOf), []);
  assert.deepEqual(ends.receive(sale).map(wordsOf), ["settle reply", "report state", "close"]);
  const over = inState("awaiting");
  over.give({ at: "stop", graceMs: 1_000, why: "stopping" });
  const before = over.now;
  assert.deepEqual(over.tick().map(wordsOf), ["report state", "settle unknown", "close"]);
  assert.equal(over.now, before + 1_000);
});

test("LineEngine.handle() never settles a call twice, whoever left and whatever is recorded late", () => {
  const bench = inState("idle");
  const caller = new Presence();
  const call = bench.exchange("A", { beforeSend: async () => {}, caller });
  bench.give({ at: "call", exchange: call });
  caller.leave();
  assert.deepEqual(bench.give({ at: "caller gone", exchange: call }).map(wordsOf), ["settle not-sent"]);
  assert.deepEqual(bench.give({ at: "recorded", exchange: call }).map(wordsOf), []);
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
    effect.do === "settle" ? [effect.ending instanceof Fault ? effect.ending.reason : "answered"] : [],
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

test("LineEngine.nextDueMs() is the end of a burst while a call waits for it, and the call is sent then", () => {
  const bench = inState("idle");
  const burstUntilMs = bench.now + 50;
  bench.give({ at: "received", items: [], receiving: { ...still, heardMs: bench.now, burstUntilMs } });
  assert.deepEqual(bench.give({ at: "call", exchange: bench.exchange("A") }).map(wordsOf), []);
  assert.equal(bench.engine.nextDueMs(), burstUntilMs);
  bench.now = burstUntilMs - 1;
  assert.deepEqual(bench.give({ at: "tick" }).map(wordsOf), []);
  assert.deepEqual(bench.tick().map(wordsOf), ["write"]);
  assert.equal(bench.now, burstUntilMs);
});

test("LineEngine.handle() says of a caller who left whether the call waited for its record or for its turn", () => {
  const said = (bench: Bench, settings: Parameters<typeof requestFor>[1]) => {
    const exchange = bench.exchange("NEW", settings);
    bench.give({ at: "call", exchange });
    return bench
      .give({ at: "caller gone", exchange })
      .map((effect) => (effect.do === "settle" && effect.ending instanceof Fault ? effect.ending.message : ""))
      .join();
  };
  assert.match(said(inState("awaiting"), {}), /: the client disconnected before its turn came/);
  assert.match(said(inState("idle"), { beforeSend: async () => {} }), /: the client disconnected before the request was sent/);
});
