import assert from "node:assert/strict";
import { test } from "node:test";
import { readSince } from "../../src/logs/since.ts";
import { checksum, late, notSent, sale, shown, stamp, trace, unknown } from "./sample.ts";

const golden = (lines: readonly (object | string)[], expected: readonly string[], options = {}) =>
  assert.deepEqual(shown(lines, options).split("\n"), [...expected, ""]);

test("LogView shows an exchange a line, aligned, in local time, the date where the day changes", () => {
  const nextDay = { ...sale, time: "2026-11-20T23:00:00.000Z", key: "a-longer-key", code: -20, status: "error", left: true };
  golden(
    [sale, { ...sale, route: "/check", queueMs: 0.34, lineMs: 99.96 }, nextDay, unknown, notSent],
    [
      "--- 2026-11-20",
      "11:33:08.336  bank     /sale     A-1       answered success        0+8.7 ms",
      "11:33:08.336  bank     /check    A-1       answered success      0.3+100 ms",
      "--- 2026-11-21",
      "00:00:00.000  bank     /sale     a-longer-key  answered error -20        0+8.7 ms  the client disconnected before the answer",
      "--- 2026-11-20",
      "11:33:08.336  bank     /sale     A-2           UNKNOWN 504           120+30000 ms  Cannot tell the outcome of /sale: no reply came: outcome unknown: query /check with the same pay_id  [6fcc1715-1]",
      "11:33:08.336  fiscal   /close_shift  -             NOT SENT 503                0+0 ms  Cannot send /close_shift: the line is down: nothing was sent  [6fcc1715-1]",
    ],
  );
});

test("LogView shows the offset in the hour that comes twice, as --since reads it", () => {
  const at = (time: string) => ({ ...sale, time });
  const lines = [at("2026-10-25T00:30:00.000Z"), at("2026-10-25T01:30:00.000Z"), at("2026-10-25T02:30:00.000Z")];
  golden(lines, [
    "--- 2026-10-25",
    "02:30:00.000+02:00  bank     /sale     A-1       answered success        0+8.7 ms",
    "02:30:00.000+01:00  bank     /sale     A-1       answered success        0+8.7 ms",
    "03:30:00.000  bank     /sale     A-1       answered success        0+8.7 ms",
  ]);
  const [first = "", second = ""] = shown(lines, { terminal: false }).split("\n");
  assert.equal(readSince(first.slice(0, 29), 0), Date.parse("2026-10-25T00:30:00.000Z"));
  assert.equal(readSince(second.slice(0, 29), 0), Date.parse("2026-10-25T01:30:00.000Z"));
});

test("LogView shows the date on each line where its output is no terminal", () => {
  golden([sale], ["2026-11-20 11:33:08.336  bank     /sale     A-1       answered success        0+8.7 ms"], {
    terminal: false,
  });
});

test("LogView shows a line's states, discards with what follows from them, and late frames", () => {
  golden(
    [
      { ...stamp, level: "warn", line: "till", state: "down", reason: "there is no device: plug it in", msg: "line" },
      { ...stamp, line: "till", state: "idle", reason: "it is clean", device: "/dev/ttyUSB1", msg: "line" },
      { ...stamp, line: "till", reason: "the device opened", msg: "line" },
      checksum,
      { ...checksum, crcGot: "BB3D" },
      { ...checksum, crcGot: "1234", head: "0001", leftOut: 7 },
      { ...checksum, crcGot: "12345678", crcArc: undefined, crcUmts: undefined, crc32: "87654321", head: "02" },
      { ...stamp, level: "warn", line: "till", reason: "noise", bytes: 4, head: "41540d0a", msg: "bytes were discarded" },
      late,
      { ...late, reason: ":9001 selects no service", bytes: 21, msg: "a request was refused" },
    ],
    [
      "--- 2026-11-20",
      "11:33:08.336  line     till  DOWN  there is no device: plug it in",
      "11:33:08.336  line     till  IDLE  it is clean  device=/dev/ttyUSB1",
      "11:33:08.336  line     till  the device opened",
      '11:33:08.336  line     till  DISCARD  bytes were discarded: wrong checksum, 27 bytes, checksum fee8 received, arc gives bb3d, umts gives fee8, head 00 00 00 15 4f 4b 7b 22 73 74 61 74 75 73 22 3a |....OK{"status":|  the terminal uses the checksum CRC-16/UMTS: set "crc16": "umts" for line till',
      '11:33:08.336  line     till  DISCARD  bytes were discarded: wrong checksum, 27 bytes, checksum BB3D received, arc gives bb3d, umts gives fee8, head 00 00 00 15 4f 4b 7b 22 73 74 61 74 75 73 22 3a |....OK{"status":|  the terminal uses the checksum CRC-16/ARC: set "crc16": "arc" for line till',
      "11:33:08.336  line     till  DISCARD  bytes were discarded: wrong checksum, 27 bytes, checksum 1234 received, arc gives bb3d, umts gives fee8, head 00 01  no known checksum fits: check speed, parity and cable  (7 similar lines before it were left out of the log)",
      "11:33:08.336  line     till  DISCARD  bytes were discarded: wrong checksum, 27 bytes, checksum 12345678 received, crc32 gives 87654321, head 02  no known checksum fits: check speed, parity and cable",
      "11:33:08.336  line     till  DISCARD  bytes were discarded: not part of a frame, 4 bytes, head 41 54 0d 0a |AT..|  these are modem commands: is ModemManager probing the port? Run sudo posline doctor",
      "11:33:08.336  line     till  LATE  a late reply was discarded  length frame, 64 bytes",
      "11:33:08.336  line     till  a request was refused  :9001 selects no service  length frame, 21 bytes",
    ],
  );
});

test("LogView shows what is said of the process, and what isn't posline's as it is", () => {
  golden(
    [
      { ...stamp, version: "0.1.0", msg: "posline serves" },
      { ...stamp, service: "bank", host: "127.0.0.1", port: 8888, line: "till", msg: "listening" },
      { ...stamp, service: "qr", host: "::1", port: 8887, msg: "listening" },
      { ...stamp, level: "error", error: "Cannot listen on port 8888: taken", msg: "cannot serve" },
      { ...stamp, level: "warn", dropped: 17, msg: "log lines were dropped: the reader took none" },
      { ...stamp, level: "warn", service: "bank", route: "/sale", key: "A-9", amount: 1500, msg: "outcome unknown" },
      "Started posline.service - posline bridge.",
      "",
      trace,
      '{"level":"info","msg":"no time"}',
      "[1]",
      "{broken",
    ],
    [
      "--- 2026-11-20",
      "11:33:08.336  posline  posline serves  version=0.1.0",
      "11:33:08.336  bank     listening  127.0.0.1:8888  line=till",
      "11:33:08.336  qr       listening  [::1]:8887",
      "11:33:08.336  posline  ERROR  cannot serve: Cannot listen on port 8888: taken",
      "11:33:08.336  posline  WARNING  17 log lines were dropped: the reader took none",
      "11:33:08.336  bank     WARNING  outcome unknown  A-9  route=/sale amount=1500",
      "Started posline.service - posline bridge.",
      '    at run (/usr/lib/posline/posline.cjs:12:7)\uFFFD[31m "quoted"',
      '{"level":"info","msg":"no time"}',
      "[1]",
      "{broken",
    ],
  );
});

test("LogView shouts where money may have moved, and only there", () => {
  const outcome = (line: object) => /\[([\d;]+)m(?:answered|UNKNOWN|NOT SENT)/.exec(shown([line], { colour: true }))?.[1];
  assert.equal(outcome(unknown), "1;97;41");
  assert.equal(outcome({ ...unknown, route: "/check" }), "31");
  assert.equal(outcome({ ...unknown, service: "other" }), "1;97;41");
  assert.equal(outcome(notSent), "31");
  assert.equal(outcome({ ...sale, status: "error" }), "33");
  assert.equal(outcome(sale), "32");
});

test("LogView takes lines with the priority that journald strips, and lines that end as on Windows", () => {
  const json = JSON.stringify(sale);
  assert.equal(shown([`<6>${json}`]), shown([json]));
  assert.equal(shown([`${json}\r`]), shown([json]));
  assert.equal(shown(["<6>text", "<9>text"]), "text\n<9>text\n");
});

test("LogView takes no name of the language for a state or a reason (found by fuzzing)", () => {
  for (const state of ["constructor", "toString", "__proto__"]) {
    const line = { level: "info", time: "2026-11-20T10:33:08.336Z", line: "till", state, reason: state, msg: "line" };
    golden([line], [`--- 2026-11-20`, `11:33:08.336  line     till  ${state.toUpperCase()}  ${state}`]);
    const { state: _, ...discard } = { ...line, bytes: 3, head: "415400", msg: "bytes were discarded" };
    assert.match(shown([discard]), new RegExp(`DISCARD  bytes were discarded: ${state}, 3 bytes`));
  }
});
