import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Events, heartbeatMs, ringMax } from "../../src/admin/events.ts";
import type { NotReady } from "../../src/admin/readiness.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { recordOf } from "./worlds.ts";

/** Tests src/admin/events.ts and src/admin/published-event.ts. */

interface Sent {
  readonly id: string;
  readonly event: string;
  readonly data: Record<string, unknown>;
}

/** A hub and those who watch it; its timers run when the test says. */
function started() {
  const reasons: NotReady[] = [];
  const errors: unknown[] = [];
  const events = new Events({ version: "1.2.3", notReady: () => reasons, error: (error) => errors.push(error) });
  const watch = (query = "", headers: Record<string, string> = {}) => {
    const watcher = { text: "", writes: 0, ended: false };
    const answer = events.routes["GET /events"]("", { query: new URLSearchParams(query), headers });
    if (!("start" in answer) || answer.start === undefined) throw new Error(String(answer.text));
    const leave = answer.start({
      write: (text) => {
        watcher.text += text;
        watcher.writes++;
      },
      end: () => {
        watcher.ended = true;
      },
    });
    return Object.assign(watcher, { leave, contentType: answer.contentType });
  };
  return { events, reasons, errors, watch };
}

function sentIn(text: string): readonly Sent[] {
  return text
    .split("\n\n")
    .filter((block) => block !== "" && !block.startsWith(":"))
    .map((block) => {
      const [, id = "", event = "", data = ""] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block) ?? [];
      assert.notEqual(data, "", `not an event: ${block}`);
      return { id, event, data: JSON.parse(data) };
    });
}

const late = (bytes: number) => ({ event: "late" as const, fields: { line: "till", framing: "length", bytes } });
const bytesIn = (sent: readonly Sent[]) => sent.filter(({ event }) => event === "late").map(({ data }) => data["bytes"]);

/** With timers that stand still until `tick`. */
function withTimers(body: () => void): void {
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "setImmediate"] });
  try {
    body();
  } finally {
    mock.timers.reset();
  }
}

test("Events sends hello first and then what is published, gathered into one piece that all watchers share", () =>
  withTimers(() => {
    const { events, watch } = started();
    events.publish(late(0));
    const [one, two] = [watch(), watch()];
    assert.equal(one.contentType, "text/event-stream");
    const [hello] = sentIn(one.text);
    assert.equal(hello?.event, "hello");
    assert.deepEqual({ ...hello.data, time: 0 }, { version: "1.2.3", pid: process.pid, time: 0, missed: 0 });
    for (let n = 1; n <= 3; n++) events.publish(late(n));
    assert.equal(one.writes, 1);
    mock.timers.tick(25);
    assert.deepEqual([one.writes, two.writes], [2, 2]);
    assert.deepEqual(bytesIn(sentIn(one.text)), [1, 2, 3], "without an id nothing old is sent");
    assert.equal(sentIn(two.text).at(-1)?.id, sentIn(one.text).at(-1)?.id);
    const [id = "", number = ""] = sentIn(one.text).at(-1)?.id.split("-") ?? [];
    assert.match(id, /^[0-9a-f]+$/);
    assert.equal(number, "5", "one of before, and the verdict that the first watcher brought about");
    one.leave();
    two.leave();
  }));

test("Events goes on after Last-Event-ID by header or query, and sends all that it kept after an id of another process", () =>
  withTimers(() => {
    const { events, watch } = started();
    const first = watch();
    for (let n = 1; n <= 4; n++) events.publish(late(n));
    mock.timers.tick(25);
    first.leave();
    const second = sentIn(first.text).find(({ data }) => data["bytes"] === 2)?.id ?? "";
    for (const again of [watch("", { "last-event-id": second }), watch(`lastEventId=${second}`)]) {
      const sent = sentIn(again.text);
      assert.equal(sent[0]?.event, "hello");
      assert.equal(sent[0].id, second, "it stands where it was");
      assert.equal(sent[0].data["missed"], 2);
      assert.deepEqual(bytesIn(sent), [3, 4]);
    }
    for (const id of ["0-2", "x", second.replace(/-.*/, "-99"), `${second}0`, ""]) {
      assert.deepEqual(bytesIn(sentIn(watch("", { "last-event-id": id }).text)), [1, 2, 3, 4], id);
    }
    assert.deepEqual(bytesIn(sentIn(watch("recent=2").text)), [3, 4]);
    assert.deepEqual(bytesIn(sentIn(watch("recent=99999").text)), [1, 2, 3, 4]);
    assert.deepEqual(bytesIn(sentIn(watch("recent=0").text)), []);
  }));

test("Events refuses a recent that isn't a number", () => {
  const { events } = started();
  for (const recent of ["-1", "all", "", "1e3"]) {
    const answer = events.routes["GET /events"]("", { query: new URLSearchParams({ recent }), headers: {} });
    assert.equal(answer.status, 400);
    assert.match(String(answer.text), /recent must be a whole number from 0 to 512/);
  }
});

test(`Events keeps the last ${ringMax}, and of those it sends as many of the newest as may wait behind a watcher`, () =>
  withTimers(() => {
    const { events, watch } = started();
    for (let n = 1; n <= 1_000; n++) events.publish(late(n));
    const all = bytesIn(sentIn(watch("recent=512").text));
    assert.deepEqual([all.length, all[0], all.at(-1)], [511, 490, 1_000], "511, and the verdict");
    const reason = "x".repeat(2_000);
    for (let n = 0; n < 512; n++) events.publish({ event: "line", fields: { line: "till", state: "down", reason } });
    const { text } = watch("recent=512");
    assert.ok(text.length > 200 * 1024 && text.length < 260 * 1024, String(text.length));
  }));

test("Events sends a burst before its ring overwrites it", () =>
  withTimers(() => {
    const { events, watch } = started();
    const watcher = watch();
    for (let n = 1; n <= 1_200; n++) {
      events.publish(late(n));
      // Other work of the loop comes between.
      if (n % 200 === 0) mock.timers.tick(1);
    }
    mock.timers.tick(25);
    assert.equal(bytesIn(sentIn(watcher.text)).length, 1_200);
  }));

test("Events sends a heartbeat each 15 s while somebody watches, and has no timer otherwise", () =>
  withTimers(() => {
    const { watch } = started();
    const watcher = watch();
    mock.timers.tick(heartbeatMs);
    mock.timers.tick(heartbeatMs);
    assert.equal(watcher.text.match(/^: heartbeat$/gm)?.length, 2);
    watcher.leave();
    const { text } = watcher;
    mock.timers.tick(10 * heartbeatMs);
    assert.equal(watcher.text, text);
  }));

test("Events sends ready whenever the verdict changes, seen with another event or at a heartbeat", () =>
  withTimers(() => {
    const { events, reasons, watch } = started();
    const watcher = watch();
    const down: NotReady = { what: "line", line: "till", state: "down", reason: "for 1 s", cure: "look" };
    reasons.push(down);
    events.publish(late(1));
    mock.timers.tick(25);
    const [seen] = sentIn(watcher.text).filter(({ event }) => event === "ready");
    assert.deepEqual(seen?.data["ready"], false);
    assert.deepEqual(seen.data["reasons"], [down]);
    reasons[0] = { ...down, reason: "for 2 s" };
    mock.timers.tick(heartbeatMs);
    mock.timers.tick(25);
    assert.equal(sentIn(watcher.text).filter(({ event }) => event === "ready").length, 1, "only its words have changed");
    reasons.pop();
    mock.timers.tick(heartbeatMs);
    mock.timers.tick(25);
    assert.equal(
      sentIn(watcher.text)
        .filter(({ event }) => event === "ready")
        .at(-1)?.data["ready"],
      true,
    );
  }));

test("Events reports a bug in what it looks at, and neither publishing nor its timers throw", () =>
  withTimers(() => {
    const { events, reasons, errors, watch } = started();
    const watcher = watch();
    Object.defineProperty(reasons, "map", {
      configurable: true,
      value: () => {
        throw new Error("a bug");
      },
    });
    events.publish(late(1));
    mock.timers.tick(25);
    mock.timers.tick(heartbeatMs);
    assert.equal(errors.length, 2);
    Reflect.deleteProperty(reasons, "map");
    events.publish(late(2));
    mock.timers.tick(25);
    assert.deepEqual(bytesIn(sentIn(watcher.text)), [1, 2], "nothing is lost by it");
  }));

test("Events.close() sends what is left and ends each watcher", () =>
  withTimers(() => {
    const { events, watch } = started();
    const watcher = watch();
    events.publish(late(7));
    events.close();
    assert.deepEqual(bytesIn(sentIn(watcher.text)), [7]);
    assert.equal(watcher.ended, true);
  }));

test("Events masks and bounds what tills and terminals say, as the log does, on one line each", () =>
  withTimers(() => {
    const { events, watch } = started();
    const card = "4000001234567899";
    const money = { key: `K ${card}`, amount: { digits: card, currency: "EUR" }, about: card };
    const exchange = { requestId: card, service: "bank", line: "till", route: "/sale", ...money };
    const parts = { requestMs: 1.239, terminalMs: 7.001, replyMs: 0 };
    const record = {
      ...recordOf("bank", "unknown"),
      ...money,
      requestId: card,
      key: `K ${card}\n\u202e`,
      status: `${card}`,
      message: `it said ${card} ${"x".repeat(5_000)}`,
    };
    events.publish({ event: "exchange", exchange, phase: "sent" });
    events.publish({ event: "exchange", phase: "ended", line: "till", record, parts });
    events.publish({ event: "line", fields: { line: "till", state: "down", reason: `${card}\r\ndata: {}` } });
    events.publish({ event: "service", line: "till", service: "bank", state: "unheard", reason: card, cure: card });
    const operation = {
      time: "",
      requestId: card,
      callId: card,
      service: "bank",
      route: "/sale",
      key: card,
      amount: card,
      cause: "lost",
    };
    events.publish({ event: "operation", operation });
    const { text } = watch("recent=512");
    assert.doesNotMatch(text, new RegExp(card));
    assert.doesNotMatch(text, /\u202e/);
    const sent = sentIn(text);
    assertMapped(sent, ["hello", "exchange", "exchange", "line", "service", "operation", "ready"], ({ event }) => event);
    const ended = sent[2]?.data ?? {};
    assert.equal(ended["phase"], "ended");
    assert.deepEqual([ended["amount"], ended["currency"]], [sent[1]?.data["amount"], "EUR"]);
    assert.equal(ended["line"], "till");
    assert.deepEqual([ended["requestMs"], ended["terminalMs"], ended["replyMs"]], [1.24, 7, 0]);
    assert.ok(String(ended["message"]).length < 2_100);
    assert.equal(ended["requestBytes"], undefined);
    for (const { data } of sent) assert.match(String(data["time"]), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  }));
