import assert from "node:assert/strict";
import { test } from "node:test";
import { eventText, type PublishedEvent } from "../../src/admin/published-event.ts";
import type { ExchangeRecord } from "../../src/core/log-fields.ts";
import { readEvent } from "../../src/logs/event.ts";
import { EventStreamReader, type LiveEvent, logLineOf } from "../../src/logs/event-stream.ts";
import { textOf } from "../core/written.ts";
import { assertMapped } from "../support/assert-mapped.ts";

const timeMs = Date.parse("2026-11-20T10:33:08.336Z");

/** What a stream brings, in chunks of so many bytes. */
function read(text: string, chunkBytes = text.length): readonly LiveEvent[] {
  const events: LiveEvent[] = [];
  const reader = new EventStreamReader();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    reader.push(bytes.subarray(at, at + chunkBytes), (event) => events.push(event));
  }
  return events;
}

const late: PublishedEvent = { event: "late", fields: { line: "тилл", framing: "length", bytes: 26 } };

test("EventStreamReader reads whole events, byte by byte too, with either line end, and passes over comments and what isn't JSON", () => {
  const text = `: heartbeat\n\n${eventText("a-1", timeMs, late)}data: no json\n\nid: a-2\nevent: late\ndata: {"line":"b"}\n\nid: a-3\nevent: half`;
  const whole = read(text);
  assertMapped(
    whole,
    [
      ["a-1", "late", "тилл"],
      ["a-2", "late", "b"],
    ],
    ({ id, event, data }) => [id, event, data["line"]],
  );
  for (const bytes of [1, 2, 7]) assert.deepEqual(read(text, bytes), whole);
  assert.deepEqual(read(text.replaceAll("\n", "\r\n")), whole);
});

test("EventStreamReader leaves out an event that is larger than any of posline's, and goes on", () => {
  const huge = `id: a-1\nevent: late\ndata: {"line":"${"x".repeat(100_000)}"}\n\n`;
  assertMapped(read(huge + eventText("a-2", timeMs, late)), ["a-2"], ({ id }) => id);
});

/** The log's reading of an event's line. */
function lineOf(published: PublishedEvent) {
  const [event] = read(eventText("a-1", timeMs, published));
  const line = event && logLineOf(event);
  return line === undefined ? undefined : readEvent(line);
}

test("logLineOf() gives each event the line that the log has of it", () => {
  const record = {
    requestId: "r-1",
    service: "bank",
    route: "/sale",
    key: "A-1",
    outcome: "unknown" as const,
    reason: "no-reply" as const,
    httpStatus: 504,
    status: "error",
    code: -3,
    queueMs: 0,
    lineMs: 30_000,
    requestBytes: 1,
    replyBytes: 1,
    left: false,
    message: "no reply",
  };
  const ended = lineOf({ event: "exchange", phase: "ended", line: "till", record, parts: undefined });
  assert.ok(ended?.kind === "exchange");
  assert.deepEqual(
    [ended.level, ended.key, ended.outcome, ended.timeMs, ended.message],
    ["warn", "A-1", "unknown", timeMs, "no reply"],
  );
  assert.equal(
    lineOf({ event: "exchange", phase: "ended", background: true, line: "till", record, parts: undefined }),
    undefined,
  );
  const exchange = { requestId: "r-1", service: "bank", line: "till", route: "/sale" };
  assert.equal(lineOf({ event: "exchange", exchange, phase: "sent" }), undefined);
  const down = lineOf({ event: "line", fields: { line: "till", state: "down", reason: "unplugged" } });
  assert.ok(down?.kind === "line");
  assert.deepEqual([down.level, down.message, down.state, down.reason], ["warn", "line", "down", "unplugged"]);
  const discard = lineOf({
    event: "discard",
    fields: { line: "till", reason: "checksum", bytes: 9, head: "00", crcGot: "1", crcArc: "2" },
  });
  assert.ok(discard?.kind === "line");
  assert.deepEqual([discard.message, discard.crcGot, discard.crcArc], ["bytes were discarded", "1", "2"]);
  const stray = lineOf(late);
  assert.ok(stray?.kind === "line");
  assert.deepEqual([stray.message, stray.framing, stray.bytes], ["a late or unexpected reply was discarded", "length", 26]);
  const heard = { event: "service", line: "till", service: "bank" } as const;
  const unheard = lineOf({ ...heard, state: "unheard", reason: "it is off", cure: "switch it on" });
  assert.ok(unheard?.kind === "line");
  assert.deepEqual(
    [unheard.level, unheard.message, unheard.reason],
    ["warn", "bank does not answer", "it is off: switch it on"],
  );
  const again = lineOf({ ...heard, state: "heard" });
  assert.ok(again?.kind === "process");
  assert.deepEqual([again.level, again.message], ["info", "bank answers again"]);
  const source = {
    time: "",
    requestId: "r-1",
    service: "bank",
    route: "/sale",
    key: "A-1",
    amount: "15",
    cause: "reported as unknown",
  };
  const operation = lineOf({ event: "operation", operation: source });
  assert.ok(operation?.kind === "process");
  assert.deepEqual([operation.level, operation.service, operation.key], ["warn", "bank", "A-1"]);
  const reasons = [{ what: "line", line: "till", state: "down", reason: "unplugged", cure: "" }];
  const ready = lineOf({ event: "ready", ready: false, reasons });
  assert.ok(ready?.kind === "process");
  assert.deepEqual([ready.message, ready.rest], ["not ready", [["error", "till down unplugged"]]]);
  const readyAgain = lineOf({ event: "ready", ready: true, reasons: [] });
  assert.ok(readyAgain?.kind === "process");
  assert.equal(readyAgain.message, "ready: the next request is sent, at once or in its turn");
  assert.equal(logLineOf({ id: "a-1", event: "hello", data: {} }), undefined);
});

test("logLineOf() has all that the log says of a call: how its operation stands, and that its client had left", () => {
  const record: ExchangeRecord = {
    ...{ requestId: "r-1", traceId: "0af7651916cd43dd8448eb211c80319c", service: "bank", route: "/sale", key: "A-1" },
    ...{ outcome: "answered", result: "declined", httpStatus: 200, status: "success", code: 0, queueMs: 0, lineMs: 9 },
    ...{ requestBytes: 1, replyBytes: 1, left: true, message: undefined },
  };
  const live = lineOf({ event: "exchange", phase: "ended", line: "till", record, parts: undefined });
  const line = textOf("info", (log) => log.exchange(record), false).trimEnd();
  const own = readEvent(line.replace(/"time":"[^"]+"/, `"time":"${new Date(timeMs).toISOString()}"`));
  assert.ok(live?.kind === "exchange" && own.kind === "exchange");
  assert.deepEqual(live, { ...own, rest: own.rest.filter(([name]) => !name.endsWith("Bytes")) });
  assert.deepEqual([live.left, Object.fromEntries(live.rest)["result"]], [true, "declined"]);
});

test("logLineOf() writes a line of whatever a stream has where posline has texts (found by fuzzing)", () => {
  const odd = { toString: 1, valueOf: 1 };
  const service = { line: odd, service: odd, state: "unheard", reason: odd, cure: odd };
  assert.match(logLineOf({ id: undefined, event: "service", data: service }) ?? "", /"msg":"\? does not answer"/);
  const ready = { ready: false, reasons: [{ line: odd, state: odd, reason: odd }] };
  assert.match(logLineOf({ id: undefined, event: "ready", data: ready }) ?? "", /"error":"\? \? \?"/);
});

test("EventStreamReader drops what is nested so deeply that no line could be written of it (found by fuzzing)", () => {
  const nested = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  const [event, ...more] = read(`event: line\ndata: {"state":${nested}}\n\nevent: line\ndata: {"line":"till"}\n\n`);
  assert.deepEqual([event?.data, more], [{ line: "till" }, []]);
});
