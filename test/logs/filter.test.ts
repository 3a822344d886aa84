import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogCriteria } from "../../src/logs/filter.ts";
import { checksum, late, notSent, sale, shown, stamp, trace, unknown } from "./sample.ts";

const listening = { ...stamp, service: "bank", port: 8888, msg: "listening" };
const told = { ...stamp, level: "warn", service: "bank", key: "A-2", msg: "outcome unknown" };
const all = { sale, unknown, notSent, checksum, late, listening, told, trace };

/** Which of the lines are shown, one by one. */
function wanted(what: LogCriteria): string[] {
  return Object.entries(all)
    .filter(([, line]) => shown([line], { criteria: what, json: false }) !== "")
    .map(([name]) => name);
}

test("LogFilter wants everything unless something is asked", () => {
  assert.deepEqual(wanted({}), Object.keys(all));
});

test("LogFilter --service, --key and --outcome want what has them", () => {
  assert.deepEqual(wanted({ service: "bank" }), ["sale", "unknown", "listening", "told"]);
  assert.deepEqual(wanted({ key: "A-2" }), ["unknown", "told"]);
  assert.deepEqual(wanted({ key: "A-" }), []);
  assert.deepEqual(wanted({ outcome: "unknown" }), ["unknown"]);
  assert.deepEqual(wanted({ outcome: "not-sent" }), ["notSent"]);
  assert.deepEqual(wanted({ outcome: "answered" }), ["sale"]);
});

test("LogFilter --grep finds what stands on the line and what is seen of it, in capitals or not", () => {
  assert.deepEqual(wanted({ grep: "close_SHIFT" }), ["notSent"]);
  assert.deepEqual(wanted({ grep: "discard " }), ["checksum"]);
  assert.deepEqual(wanted({ grep: "not sent 503" }), ["notSent"]);
  assert.deepEqual(wanted({ grep: '"queueMs":120.4' }), ["unknown"]);
  assert.deepEqual(wanted({ grep: "posline.cjs" }), ["trace"]);
});

test("LogFilter wants only what fits all that is asked", () => {
  assert.deepEqual(wanted({ service: "bank", key: "A-2", outcome: "unknown" }), ["unknown"]);
  assert.deepEqual(wanted({ service: "qr", key: "A-2" }), []);
  assert.deepEqual(wanted({ key: "A-2", grep: "no reply" }), ["unknown"]);
});

test("LogFilter --key finds a key that stands masked or cut in the log", () => {
  const find = (key: string, logged: string) => shown([{ ...sale, key: logged }], { criteria: { key } }) !== "";
  assert.ok(find("PAY-4111111111111111", "PAY-411111******1111"));
  assert.ok(find("k".repeat(300), `${"k".repeat(255)}…`));
  assert.ok(!find("PAY-1", "PAY-2"));
});

test("LogFilter --since leaves out what is older, and a trace goes with the line before it", () => {
  const at = (time: string, key: string) => ({ ...sale, time, key });
  const lines = [
    "before all",
    at("2026-11-20T10:00:00.000Z", "old"),
    "old trace",
    at("2026-11-20T11:00:00.000Z", "new"),
    "new trace",
  ];
  const sinceMs = Date.parse("2026-11-20T11:00:00.000Z");
  const kept = (timeMs?: number) =>
    shown(lines, { criteria: { sinceMs }, timeMs }).match(/before all|old trace|new trace|\b(?:old|new)\b/g);
  assert.deepEqual(kept(), ["new", "new trace"]);
  // Where the source has looked at the times already.
  assert.deepEqual(kept(sinceMs), ["before all", "new", "new trace"]);
});
