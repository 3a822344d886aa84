import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs, { closeSync, constants, openSync, readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { type ExchangeRecord, type Log, openLog } from "../../src/core/log.ts";
import { LogBudget } from "../../src/core/log-budget.ts";
import { lineBytesMax } from "../../src/core/log-text.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { needs } from "../support/lacking.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { record, textOf, written } from "./written.ts";

/** Tests src/core/log.ts, src/core/log-budget.ts. */

test("Log puts a line's syslog priority in front where its descriptor is journald's, and nowhere else", () => {
  const use = (log: Log) => {
    log.exchange(record);
    log.exchange({ ...record, outcome: "not-sent" });
    log.exchange({ ...record, outcome: "unknown" });
    log.line("info", "i", { line: "till" });
    log.line("warn", "w", { line: "till" });
    log.process("error", "e");
  };
  const prefixes = (text: string) => text.split("\n").map((line) => line.slice(0, line.indexOf("{")));
  assert.deepEqual(prefixes(textOf("info", use)), ["<6>", "<6>", "<4>", "<6>", "<4>", "<3>", ""]);
  assert.deepEqual(prefixes(textOf("info", use, false)), ["", "", "", "", "", "", ""]);
});

test("Log writes no line that journald would split, whatever texts it is given", () => {
  const text = fc.oneof(
    fc.string({ maxLength: 20, unit: "binary" }),
    fc
      .tuple(fc.constantFrom("\0", "é", "€", "\ud800", "\u{1f4b3}", '"', "a"), fc.integer({ min: 0, max: 60_000 }))
      .map(([unit, times]) => unit.repeat(times)),
  );
  fc.assert(
    fc.property(text, (any) => {
      const use = (log: Log) => {
        log.exchange({ ...record, outcome: "unknown", requestId: any, key: any, status: any, message: any });
        log.line("warn", any, { line: any, reason: any, device: any });
        const fields = { service: any, host: any, version: any, line: any, path: any, device: any, folder: any };
        log.process("error", any, { ...fields, signal: any, requestId: any, route: any, key: any, amount: any, error: any });
      };
      for (const line of textOf("info", use, true).split("\n")) assert.ok(Buffer.byteLength(line) < lineBytesMax);
    }),
    { numRuns: 60 },
  );
});

const refused: ExchangeRecord = { ...record, key: undefined, outcome: "not-sent", httpStatus: 404 };

/** How many lines there are of those that fit, and how many more they say were left out. */
function counted(lines: readonly Record<string, unknown>[], fits: (line: Record<string, unknown>) => boolean): number[] {
  const found = lines.filter(fits);
  return [found.length, found.reduce((sum, { leftOut }) => sum + Number(leftOut ?? 0), 0)];
}

test("Log leaves out what a client that floods it is refused, with the number, and nothing that went over the line", () => {
  const lines = written("info", (log) => {
    for (let i = 0; i < 2_000; i++) {
      log.exchange(refused);
      log.exchange({ ...record, requestId: `a${i}` });
      log.exchange({ ...record, outcome: "unknown", requestId: `u${i}` });
    }
    log.exchange({ ...refused, service: "qr" });
    log.exchange({ ...refused, key: "A-7", httpStatus: 503 });
  });
  assert.deepEqual(
    counted(lines, ({ outcome }) => outcome === "answered"),
    [2_000, 0],
  );
  assert.deepEqual(
    counted(lines, ({ outcome }) => outcome === "unknown"),
    [2_000, 0],
  );
  const [written404, leftOut404] = counted(lines, ({ service, httpStatus }) => service === "bank" && httpStatus === 404);
  assert.equal(Number(written404) + Number(leftOut404), 2_000);
  assert.ok(Number(written404) < 200, String(written404));
  // Neither another service's requests nor good ones pay for it.
  assert.deepEqual(
    counted(lines, ({ service }) => service === "qr"),
    [1, 0],
  );
  assert.deepEqual(
    counted(lines, ({ key, outcome }) => key === "A-7" && outcome === "not-sent"),
    [1, 0],
  );
});

test("Log leaves out what a line babbles and what fails again and again, and the latest of it is written", () => {
  const lines = written("info", (log) => {
    for (let i = 0; i < 1_000; i++) {
      log.line("warn", "bytes were discarded", { line: "till", bytes: i });
      log.line(i % 2 === 0 ? "warn" : "info", "line", {
        line: "till",
        state: i % 2 === 0 ? "down" : "idle",
        reason: String(i),
      });
      log.process("error", "posline failed within", { error: String(i) });
    }
    log.line("warn", "bytes were discarded", { line: "other", bytes: 1 });
    log.process("info", "stopped");
  });
  const kinds = [
    counted(lines, ({ line, bytes }) => line === "till" && bytes !== undefined),
    counted(lines, ({ state }) => state !== undefined),
    counted(lines, ({ msg }) => msg === "posline failed within"),
  ];
  for (const [shown, leftOut] of kinds) {
    assert.equal(Number(shown) + Number(leftOut), 1_000);
    assert.ok(Number(shown) < 200, String(shown));
  }
  for (const field of ["bytes", "reason", "error"])
    assert.ok(
      lines.some((line) => String(line[field]) === "999"),
      field,
    );
  assert.equal(lines.filter(({ line, msg }) => line === "other" || msg === "stopped").length, 2);
});

test("Log says of a line that a budget held back when it happened, and not when it is written", async () => {
  const folder = scratchFolder();
  const time = new VirtualTime();
  try {
    const path = join(folder.path, "log");
    const log = openLog("info", { fd: openSync(path, "w"), journald: false });
    const happened = new Date(Date.now()).toISOString();
    for (let n = 0; n < 150; n++) {
      log.exchange({ ...record, requestId: `r-${n}`, key: undefined, httpStatus: 404, outcome: "not-sent" });
      log.line("info", "line", { line: "till", state: "idle", reason: String(n) });
      log.process("warn", "again", { count: n });
    }
    await time.advance(10_000);
    log.flush();
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    const told: Record<string, unknown>[] = lines.map((line) => JSON.parse(line));
    const held = told.filter(({ leftOut }) => leftOut !== undefined);
    assertMapped(held, ["r-149", "149", 149], ({ requestId, reason, count }) => requestId ?? reason ?? count);
    for (const line of told) assert.equal(line["time"], happened);
  } finally {
    time.restore();
  }
});

test("LogBudget writes a burst, then so many a second, and tells within ten seconds what it left out", async () => {
  const time = new VirtualTime();
  try {
    const put: [number, number][] = [];
    const budget = new LogBudget<number>({ burst: 3, perSecond: 2 }, (n, leftOut) => put.push([n, leftOut]));
    for (let n = 1; n <= 6; n++) budget.add(n);
    assert.deepEqual(put.splice(0), [
      [1, 0],
      [2, 0],
      [3, 0],
    ]);
    await time.advance(1_000);
    for (let n = 7; n <= 10; n++) budget.add(n);
    assert.deepEqual(put.splice(0), [
      [7, 3],
      [8, 0],
    ]);
    await time.advance(9_999);
    assert.deepEqual(put, []);
    await time.advance(1);
    assert.deepEqual(put.splice(0), [[10, 1]]);
    await time.advance(60_000);
    assert.deepEqual(put, []);
    for (let n = 11; n <= 14; n++) budget.add(n);
    budget.end();
    assert.deepEqual(put.splice(0), [
      [11, 0],
      [12, 0],
      [13, 0],
      [14, 0],
    ]);
    assert.equal(await time.until(() => false), false);
  } finally {
    time.restore();
  }
});

test("Log.dropped counts the lines that a budget left out, as the log itself says", () => {
  let counted: Log["dropped"] | undefined;
  const lines = written("info", (log) => {
    for (let n = 0; n < 150; n++) log.exchange({ ...record, key: undefined, httpStatus: 404, outcome: "not-sent" });
    assert.equal(log.dropped.budget, 0, "none is missing until the log says so");
    log.flush();
    counted = log.dropped;
  });
  const leftOut = lines.map((line) => Number(line["leftOut"] ?? 0)).reduce((sum, n) => sum + n, 0);
  assert.ok(leftOut > 0);
  assert.deepEqual(counted, { budget: leftOut, reader: 0 });
  assert.equal(lines.length + leftOut, 150);
});

test("Log.dropped counts the lines that a reader who stopped reading never took", needs("mkfifo"), () => {
  const folder = scratchFolder();
  try {
    const path = join(folder.path, "fifo");
    execFileSync("mkfifo", [path]);
    // Open at both ends, so that it fills and nobody reads.
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    const log = openLog("info", { fd, journald: false });
    const count = 10_000;
    const line = { ...record, message: "m".repeat(1_000) };
    for (let n = 0; n < count; n++) log.exchange(line);
    const { budget, reader } = log.dropped;
    assert.equal(budget, 0);
    // It holds 1 MiB, and the kernel some more; a line has more than 1,000 bytes.
    assert.ok(reader > count - 1_400 && reader < count, `${reader} of ${count}`);
    log.flush();
    assert.match(log.state, /^the log's reader takes no lines: lines are held up to 1 MiB, then dropped: /);
    for (let n = 0; n < 10; n++) log.exchange(line);
    assert.equal(log.dropped.reader, reader + 10);
  } finally {
    folder.remove();
  }
});

test("Log writes what a full disk did not take once there is room, from where it stopped", (t) => {
  const folder = scratchFolder();
  const path = join(folder.path, "log");
  const fd = openSync(path, "a");
  let roomBytes = 1_000;
  const { writeSync } = fs;
  t.mock.method(fs, "writeSync", (to: number, bytes: Buffer) => {
    if (roomBytes === 0) throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    const written = writeSync(to, bytes.subarray(0, roomBytes));
    roomBytes -= written;
    return written;
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
    closeSync(fd);
  });
  const log = openLog("info", { fd, journald: false });
  const count = 6_000;
  for (let n = 0; n < count; n++) log.exchange({ ...record, key: `A-${n}`, outcome: "unknown" });
  const { reader } = log.dropped;
  assert.ok(reader > 0 && reader < count, `${reader} of ${count}`);
  assert.equal(log.state, "the log can't be written (ENOSPC): lines are held up to 1 MiB, then dropped: make room on its disk");
  roomBytes = Number.POSITIVE_INFINITY;
  log.flush();
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  const told: Record<string, unknown>[] = lines.map((line) => JSON.parse(line));
  assertMapped(
    told.slice(0, -1),
    Array.from({ length: count - reader }, (_, n) => `A-${n}`),
    (line) => line["key"],
  );
  assert.equal(told.at(-1)?.["dropped"], reader);
  assert.equal(told.at(-1)?.["msg"], "log lines were dropped: they could not be written (ENOSPC)");
  assert.equal(log.state, "ok");
});
