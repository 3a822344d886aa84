import assert from "node:assert/strict";
import { test } from "node:test";
import { readCaptured, writeCaptured } from "../../src/capture/captured-frame.ts";
import { frameText } from "../../src/capture/frame-text.ts";
import { PcapngWriter, upperPdu } from "../../src/capture/pcapng.ts";
import { upperPduOf } from "../../src/capture/upper-pdu.ts";
import { frame } from "./frame.ts";

test("readCaptured() reads what writeCaptured() wrote", () => {
  assert.deepEqual(readCaptured(writeCaptured(frame)), frame);
});

test("readCaptured() refuses moments and lengths that no capture can hold (found by fuzzing)", () => {
  const line = writeCaptured(frame);
  for (const timeMs of ["1e999", "-1", "8.7e15"]) {
    assert.equal(readCaptured(line.replace(/"timeMs":[\d.]+/, `"timeMs":${timeMs}`)), undefined, timeMs);
  }
  for (const wireBytes of ["1e999", "-1", "0.5", "4294967296"]) {
    assert.equal(readCaptured(line.replace('"wireBytes":63', `"wireBytes":${wireBytes}`)), undefined, wireBytes);
  }
});

test("readCaptured() cuts texts, so that each frame it reads can be shown and written (found by fuzzing)", () => {
  const long = "x".repeat(70_000);
  const read = readCaptured(writeCaptured({ ...frame, line: long, service: long, route: long, reason: long, sums: long }));
  assert.ok(read);
  assert.equal(read.line.length, 1_000);
  assert.match(frameText(read, false), /request 63 bytes/);
  const { line, timeMs, direction } = read;
  assert.ok(new PcapngWriter(upperPdu, "posline").packet({ line, timeMs, direction, bytes: upperPduOf(read) }).length > 4_000);
});
