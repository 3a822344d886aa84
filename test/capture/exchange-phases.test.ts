import assert from "node:assert/strict";
import { test } from "node:test";
import { ExchangePhases, type QuestionEnd } from "../../src/capture/exchange-phases.ts";
import type { LineConfig } from "../../src/config/config.ts";
import { emulatedPath } from "../../src/config/config.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { Fault } from "../../src/core/fault.ts";
import { bytesOf } from "../../src/core/pieces.ts";
import { msPerByte } from "../../src/device/transport.ts";
import { lineService } from "../../src/line/caller.ts";
import { LineEngine } from "../../src/line/engine.ts";
import type { LineEvent } from "../../src/line/events.ts";
import { Exchange, type LineRequest } from "../../src/line/exchange.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { configOf, requestFor } from "../line/lines.ts";
import { assertMapped } from "../support/assert-mapped.ts";

/** An engine on a clean line with phases watched; the test gives events and times. */
function watched(settings: Partial<LineConfig> = {}) {
  const config = configOf({ recovery: "quiet", baudRate: 9_600, ...settings });
  const service = lineService(contracts.bank, { crc16: "arc", quiet: true, merchantId: undefined });
  const engine = new LineEngine({ name: "till", config, services: [service] });
  const seen: string[] = [];
  const ends: QuestionEnd[] = [];
  const phases = new ExchangePhases({
    phase: ({ requestId, service: of, line, route, background }, phase) => {
      seen.push(`${requestId} ${of}@${line}${route} ${phase}${background === true ? " in the background" : ""}`);
    },
    questionEnded: (end) => ends.push(end),
  });
  const observe = phases.watch({ name: "till", config });
  const records: { readonly requestId: string; readonly service: string; readonly lineMs: number }[] = [];
  let startMs = 0;
  /** Gives an event at so many ms after the line was clean. */
  const feed = (event: LineEvent, ms: number) => {
    const effects = engine.handle(event, startMs + ms);
    observe(event, effects, startMs + ms, engine);
    for (const effect of effects) {
      if (effect.do !== "end") continue;
      const { requestId, service: of } = effect.exchange.request;
      const { ending } = effect;
      const lineMs = (ending instanceof Fault ? ending.details.lineMs : ending.lineMs) ?? 0;
      records.push({ requestId, service: of, lineMs });
    }
  };
  const call = (id: string, ms: number, more: Omit<Partial<LineRequest>, "service" | "route"> = {}) => {
    const request = requestFor(id, more);
    const times = { cameMs: startMs + ms, waitUntilMs: startMs + ms + config.queueWaitMs };
    const exchange = new Exchange("till", request, frameOf("length", request.payload, "arc"), times);
    feed({ at: "call", exchange }, ms);
    return exchange;
  };
  const bytes = (ms: number, phase: "idle" | "in-frame", ...texts: string[]) => {
    const items = texts.map((text) => ({
      kind: "frame" as const,
      framing: "length" as const,
      payload: [Buffer.from(text)],
      payloadBytes: text.length,
      wireBytes: text.length + 4,
    }));
    feed({ at: "received", items, receiving: { phase, heardMs: startMs + ms, burstUntilMs: 0 } }, ms);
  };
  feed({ at: "opened" }, 0);
  feed({ at: "drained" }, 1);
  feed({ at: "tick" }, config.lateReplyMs + 1);
  assert.equal(engine.state, "idle");
  startMs = config.lateReplyMs + 1_000;
  const parts = (n = records.length - 1) => {
    const record = records[n];
    return record === undefined ? undefined : phases.partsOf(record);
  };
  return { engine, phases, seen, ends, feed, call, bytes, parts, records, byteMs: msPerByte(config) };
}

const good = '{"status":"success","code":0}';
const sum = (parts: { requestMs: number; terminalMs: number; replyMs: number }) =>
  parts.requestMs + parts.terminalMs + parts.replyMs;

test("ExchangePhases publishes sent, written and replying of a call that goes out at once, and waiting of one that doesn't", () => {
  const { seen, feed, call, bytes } = watched();
  call("A", 0);
  assert.deepEqual(seen, ["A bank@till/sale sent"]);
  feed({ at: "wrote" }, 1);
  call("B", 2);
  bytes(400, "in-frame");
  bytes(410, "in-frame");
  assert.deepEqual(seen.slice(1), ["A bank@till/sale written", "B bank@till/sale waiting", "A bank@till/sale replying"]);
  bytes(430, "idle", good);
  assert.deepEqual(seen.slice(4), ["B bank@till/sale sent"]);
});

test("ExchangePhases publishes waiting of a call that is recorded first, and nothing of one that is refused at once", () => {
  const { seen, feed, call } = watched();
  const exchange = call("A", 0, { beforeSend: async () => {} });
  assert.deepEqual(seen, ["A bank@till/sale waiting"]);
  feed({ at: "recorded", exchange }, 5);
  assert.deepEqual(seen.slice(1), ["A bank@till/sale sent"]);
  feed({ at: "lost", reason: "unplugged", nothingWritten: false, discards: [] }, 6);
  call("B", 7);
  assert.equal(seen.length, 2);
});

test("ExchangePhases.partsOf() splits lineMs into request, terminal and reply by the wire's speed, and gives it once", () => {
  const { feed, call, bytes, parts, records, byteMs } = watched();
  const { frame } = call("A", 0);
  // The kernel takes all at once; the wire doesn't.
  feed({ at: "wrote" }, 0.1);
  bytes(2_000, "in-frame");
  bytes(2_500, "idle", good);
  const shown = parts();
  assert.ok(shown);
  assert.ok(Math.abs(shown.requestMs - bytesOf(frame) * byteMs) < 1e-6);
  assert.ok(Math.abs(shown.replyMs - 500) < 1e-6);
  assert.ok(Math.abs(sum(shown) - 2_500) < 1e-6);
  assert.equal(records[0]?.lineMs, 2_500);
  assert.equal(parts(), undefined, "given once");
});

test("ExchangePhases.partsOf() takes a reply that comes in one piece to have been on the wire for its bytes' time", () => {
  const { feed, call, bytes, parts, byteMs } = watched();
  call("A", 0);
  feed({ at: "wrote" }, 0.1);
  bytes(2_000, "idle", good);
  const shown = parts();
  assert.ok(shown);
  assert.ok(Math.abs(shown.replyMs - (good.length + 4) * byteMs) < 1e-6);
  assert.ok(Math.abs(sum(shown) - 2_000) < 1e-6);
});

test("ExchangePhases.partsOf() knows that an emulated line's bytes take no time", () => {
  const { feed, call, bytes, parts } = watched({ path: emulatedPath });
  call("A", 0);
  feed({ at: "wrote" }, 1);
  bytes(8, "idle", good);
  assert.deepEqual(parts(), { requestMs: 1, terminalMs: 7, replyMs: 0 });
});

test("ExchangePhases.partsOf() gives the terminal all of the wait for a reply that never came", () => {
  const { engine, feed, call, parts, records } = watched({ path: emulatedPath });
  call("A", 0);
  feed({ at: "wrote" }, 10);
  feed({ at: "tick" }, 10_010 + 1_000);
  assert.equal(engine.state, "recovering");
  assert.equal(records[0]?.lineMs, 11_010);
  assert.deepEqual(parts(), { requestMs: 10, terminalMs: 11_000, replyMs: 0 });
});

test("ExchangePhases.partsOf() counts the reply from its own first byte, not from a stray frame's before it", () => {
  const { feed, call, bytes, parts, seen } = watched({ path: emulatedPath });
  call("A", 0, { framing: "length" });
  feed({ at: "wrote" }, 1);
  const stray = {
    kind: "frame" as const,
    framing: "stx" as const,
    payload: [Buffer.from("{}")],
    payloadBytes: 2,
    wireBytes: 9,
  };
  feed({ at: "received", items: [stray], receiving: { phase: "idle", heardMs: 0, burstUntilMs: 0 } }, 100);
  bytes(200, "in-frame");
  bytes(250, "idle", good);
  assert.deepEqual(parts(), { requestMs: 1, terminalMs: 199, replyMs: 50 });
  assert.equal(seen.filter((each) => each.endsWith("replying")).length, 1);
});

test("ExchangePhases.partsOf() has no parts of a call that no byte of went out", () => {
  const { feed, call, parts, records } = watched();
  call("A", 0);
  feed({ at: "lost", reason: "unplugged", nothingWritten: true, discards: [] }, 5);
  assert.equal(records.length, 1);
  assert.equal(parts(), undefined);
});

test("ExchangePhases publishes sent again of what is sent once more after a corrupt reply, with the parts of the second sending", () => {
  const { feed, call, bytes, parts, seen } = watched({ path: emulatedPath, lateReplyMs: 500 });
  call("A", 0, { repeatable: true });
  feed({ at: "wrote" }, 1);
  bytes(100, "idle", "no json");
  // In step by silence, which is when it goes out again.
  feed({ at: "tick" }, 6_000);
  feed({ at: "wrote" }, 6_002);
  bytes(6_050, "idle", good);
  assertMapped(seen, ["sent", "written", "replying", "sent", "written", "replying"], (each) => each.split(" ").at(-1));
  assert.deepEqual(parts(), { requestMs: 2, terminalMs: 48, replyMs: 0 });
});

test("ExchangePhases.partsOf() tells two calls of one request id apart, and keeps those of 64 calls whose records don't come", () => {
  const { feed, call, bytes, parts, records } = watched({ path: emulatedPath });
  for (let n = 0; n < 70; n++) {
    call("SAME", 1_000 * n);
    feed({ at: "wrote" }, 1_000 * n + 1);
    bytes(1_000 * n + 10 + n, "idle", good);
  }
  assert.equal(records.length, 70);
  assert.equal(parts(5), undefined);
  for (const n of [69, 6, 40]) assert.deepEqual(parts(n), { requestMs: 1, terminalMs: 9 + n, replyMs: 0 });
});

const question = { background: true, repeatable: true } as const;

test("ExchangePhases ends posline's own question, answered or not, with its outcome, its times and their parts", () => {
  const { feed, call, bytes, seen, ends, parts } = watched({ path: emulatedPath });
  call("Q-1", 0, question);
  feed({ at: "wrote" }, 1);
  bytes(8, "idle", good);
  assert.deepEqual(
    seen,
    ["sent", "written", "replying"].map((phase) => `Q-1 bank@till/sale ${phase} in the background`),
  );
  const [answered] = ends;
  assert.ok(answered);
  const { line, record } = answered;
  assert.deepEqual([line, record.requestId, record.service, record.route], ["till", "Q-1", "bank", "/sale"]);
  assert.deepEqual([record.outcome, record.status, record.code, record.httpStatus], ["answered", "success", 0, undefined]);
  assert.deepEqual([record.queueMs, record.lineMs, answered.parts], [0, 8, { requestMs: 1, terminalMs: 7, replyMs: 0 }]);
  assert.deepEqual(parts(), answered.parts, "for the call that is answered with it, too");

  call("Q-2", 100, question);
  feed({ at: "wrote" }, 110);
  feed({ at: "tick" }, 110 + 11_000);
  const [, unanswered] = ends;
  assert.deepEqual([unanswered?.record.outcome, unanswered?.record.reason], ["unknown", "no-reply"]);
  assert.match(String(unanswered?.record.message), /did not answer within 10 s/);
  assert.deepEqual(unanswered?.parts, { requestMs: 10, terminalMs: 11_000, replyMs: 0 });
  assert.equal(ends.length, 2);
});

test("ExchangePhases ends a question that waited and was not sent, and says nothing of one that is refused at once", () => {
  const { feed, call, seen, ends } = watched();
  call("A", 0);
  call("Q-1", 1, question);
  assert.equal(seen.at(-1), "Q-1 bank@till/sale waiting in the background");
  feed({ at: "lost", reason: "unplugged", nothingWritten: false, discards: [] }, 6);
  const [refused, ...more] = ends;
  assert.deepEqual([refused?.record.requestId, refused?.record.outcome], ["Q-1", "not-sent"]);
  assert.deepEqual([refused?.record.queueMs, refused?.record.lineMs, refused?.parts], [5, 0, undefined]);
  call("Q-2", 7, question);
  assert.deepEqual(more, []);
  assert.equal(ends.length, 1);
  assert.ok(!seen.some((each) => each.startsWith("Q-2")));
});

test("ExchangePhases ends no call of a till: its end is known with its HTTP answer", () => {
  const { feed, call, bytes, ends } = watched();
  call("A", 0);
  feed({ at: "wrote" }, 1);
  bytes(400, "idle", good);
  call("B", 500);
  feed({ at: "lost", reason: "unplugged", nothingWritten: false, discards: [] }, 600);
  assert.deepEqual(ends, []);
});

test("ExchangePhases.partsOf() gives a followed call the parts of the question that it is answered with", () => {
  const { phases, feed, call, bytes } = watched({ path: emulatedPath });
  call("A.1", 0, question);
  feed({ at: "wrote" }, 1);
  bytes(8, "idle", good);
  const named = { requestId: "A", service: "bank", lineMs: 8 };
  assert.equal(phases.partsOf({ ...named, result: undefined }), undefined, "not followed");
  assert.equal(phases.partsOf({ ...named, result: "approved", lineMs: 9 }), undefined);
  assert.deepEqual(phases.partsOf({ ...named, result: "approved" }), { requestMs: 1, terminalMs: 7, replyMs: 0 });
});
