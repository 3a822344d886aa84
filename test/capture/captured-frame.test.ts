import assert from "node:assert/strict";
import { test } from "node:test";
import { type CapturedFrame, readCaptured, writeCaptured } from "../../src/capture/captured-frame.ts";
import { frameText } from "../../src/capture/frame-text.ts";
import { PcapngWriter, upperPdu } from "../../src/capture/pcapng.ts";
import { upperPduOf } from "../../src/capture/upper-pdu.ts";

const frame: CapturedFrame = {
  ...{ timeMs: 1_795_341_929_414.616, line: "till", direction: "out", role: "request", service: "bank", route: "/sale" },
  ...{ requestId: "r-1", framing: "length", wireBytes: 63, checksum: "good", sums: undefined, outcome: undefined },
  ...{ reason: undefined, masked: true, payload: Buffer.from("/sale") },
};

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
