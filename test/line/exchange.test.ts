import assert from "node:assert/strict";
import { test } from "node:test";
import { Presence } from "../../src/core/presence.ts";
import { Exchange, tooLarge, unavailable } from "../../src/line/exchange.ts";
import { babbleMsMax, corruptQuietMs } from "../../src/line/limits.ts";
import type { Frame } from "../../src/wire/decoded.ts";
import { requestFor } from "./lines.ts";

const never = Number.POSITIVE_INFINITY;
const replyTimeoutMs = 5_000;

/** An exchange whose frame has 10 bytes, in two pieces, and that came at 1000. */
function exchangeOf(settings: Parameters<typeof requestFor>[1] = {}): Exchange {
  const frame = [Buffer.alloc(4), Buffer.alloc(6)];
  return new Exchange("till", requestFor("A", { replyTimeoutMs, ...settings }), frame, { cameMs: 1_000, waitUntilMs: 9_000 });
}

/** One that was written at 2000, over a wire that takes 2 ms a byte. */
function written(settings: Parameters<typeof requestFor>[1] = {}): Exchange {
  const exchange = exchangeOf(settings);
  exchange.sent(1_500);
  exchange.wrote(2_000, 2);
  return exchange;
}

test("Exchange.dueMs() is replyTimeoutMs after its last byte has left the wire, and never while a frame comes", () => {
  const exchange = exchangeOf();
  exchange.sent(1_500);
  assert.equal(exchange.dueMs("idle", 1_500), never, "it isn't written yet");
  exchange.wrote(2_000, 2);
  assert.equal(exchange.dueMs("idle", 1_500), 2_000 + 20 + replyTimeoutMs);
  assert.equal(exchange.dueMs("in-frame", 1_500), never);
});

test("Exchange.dueMs() is corruptQuietMs after the last byte once its reply came broken, and not for noise before it", () => {
  const exchange = written();
  exchange.discarded({ reason: "noise", head: "000000207b22" });
  assert.equal(exchange.dueMs("idle", 3_000), 7_020);
  assert.equal(exchange.dueMs("garbage", 3_000), 7_020 + babbleMsMax, "its reply may be among what hasn't paused yet");
  exchange.discarded({ reason: "checksum", head: "000000207b22" });
  assert.equal(exchange.dueMs("idle", 3_000), 3_000 + corruptQuietMs);
  assert.equal(exchange.dueMs("in-frame", 3_000), 3_000 + corruptQuietMs);
  assert.equal(exchange.dueMs("idle", 7_000), 7_020, "a line that babbles doesn't put it off");
});

test("Exchange.dueFor says what came of the reply: nothing, a corrupt one, or one that is too large", () => {
  const silent = written();
  silent.discarded({ reason: "noise", head: "000000207b22" });
  assert.equal(silent.dueFor.reason, "no-reply");
  assert.match(silent.dueFor.why, /did not answer within 5 s/);
  const corrupt = written();
  corrupt.discarded({ reason: "checksum", head: "000000207b22" });
  corrupt.discarded({ reason: "oversize", head: "000000207b22" });
  assert.equal(corrupt.dueFor.reason, "reply-corrupt", "what came first was the reply");
  const large = written();
  large.discarded({ reason: "oversize", head: "000000207b22" });
  large.discarded({ reason: "reset", head: "000000207b22" });
  assert.equal(large.dueFor, tooLarge);
});

test("Exchange that is sent once more has forgotten the corrupt reply and waits as if anew", () => {
  const exchange = written();
  exchange.discarded({ reason: "checksum", head: "000000207b22" });
  exchange.sent(4_000);
  assert.equal(exchange.dueMs("idle", 4_000), never);
  exchange.wrote(4_000, 2);
  assert.equal(exchange.dueMs("idle", 4_000), 9_020);
  assert.equal(exchange.dueFor.reason, "no-reply");
});

test("Exchange.isRepeatable is true of what only reads, after its first sending, while its caller is there", () => {
  const caller = new Presence();
  const exchange = exchangeOf({ repeatable: true, caller });
  assert.equal(exchange.isRepeatable, false, "not sent yet");
  exchange.sent(1_500);
  assert.equal(exchange.isRepeatable, true);
  assert.equal(written().isRepeatable, false, "it moves money");
  exchange.sent(2_000);
  assert.equal(exchange.isRepeatable, false, "sent twice");
  exchange.unsent();
  assert.equal(exchange.isRepeatable, true);
  caller.leave();
  assert.equal(exchange.isRepeatable, false);
});

test("Exchange.isToRecord is true until it was sent, and again when no byte of it was taken", () => {
  assert.equal(exchangeOf().isToRecord, false);
  const exchange = exchangeOf({ beforeSend: async () => {} });
  assert.deepEqual([exchange.isToRecord, exchange.wasSent], [true, false]);
  exchange.sent(1_500);
  assert.deepEqual([exchange.isToRecord, exchange.wasSent], [false, true]);
  exchange.unsent();
  assert.deepEqual([exchange.isToRecord, exchange.wasSent], [true, false]);
});

test("Exchange.reply() has the reply as it came, how long it waited, and how long it took on the line", () => {
  const payload = [Buffer.from("{}")];
  const frame: Frame = { kind: "frame", framing: "length", payload, payloadBytes: 2, wireBytes: 8 };
  const reply = written().reply(frame, { json: {}, status: "error", code: -3 }, 4_000);
  assert.deepEqual(reply, { payload, status: "error", code: -3, queueMs: 500, lineMs: 2_500 });
});

test("Exchange.refusal() says that nothing was sent, unless it waits for its second sending: then it is unknown", () => {
  const unsent = exchangeOf().refusal("line-down", "it is down (unplugged)", 3_000);
  assert.deepEqual([unsent.outcome, unsent.reason], ["not-sent", "line-down"]);
  assert.deepEqual([unsent.details.queueMs, unsent.retryAfterS], [2_000, 2]);
  const again = written();
  again.waitsAgain({ reason: "reply-ambiguous", why: "two replies came at once" }, 9_000);
  assert.equal(again.waitUntilMs, 9_000);
  const sent = again.refusal("line-down", "it is down (unplugged)", 3_000);
  assert.deepEqual([sent.outcome, sent.reason], ["unknown", "reply-ambiguous"]);
  assert.match(
    sent.message,
    /two replies came at once, and the request was not sent once more \(it is down \(unplugged\)\)\. Outcome unknown, call \/check/,
  );
  assert.deepEqual([sent.details.queueMs, sent.details.lineMs], [500, 1_500]);
});

test("Exchange.failure() tells a terminal that was silent from a reply that was no good, with its times and what to do", () => {
  const silent = written().failure({ reason: "no-reply", why: "nothing came" }, 4_000);
  assert.deepEqual([silent.kind, silent.outcome], ["timeout", "unknown"]);
  assert.deepEqual([silent.details.queueMs, silent.details.lineMs], [500, 2_500]);
  assert.equal(silent.message, "No valid reply from line till: nothing came. Outcome unknown, call /check");
  const broken = written().failure({ reason: "reply-corrupt", why: "it was corrupt" }, 4_000, "Look at the cable");
  assert.deepEqual([broken.kind, broken.reason], ["broken", "reply-corrupt"]);
  assert.match(broken.message, /: it was corrupt\. Outcome unknown, call \/check\. Look at the cable$/);
});

test("unavailable() names the line, the state and that nothing was sent, and when to try again", () => {
  const fault = unavailable("till", "stopping", "posline is shutting down", { queueMs: 7 });
  assert.equal(fault.message, "Cannot send to line till: posline is shutting down. Nothing was sent, it is safe to send again");
  assert.deepEqual(fault.details, { queueMs: 7, reason: "stopping" });
  assert.equal(fault.retryAfterS, 5);
  assert.equal(fault.kind, "unavailable");
});
