import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type CapturedFrame, readCaptured, writeCaptured } from "../../src/capture/captured-frame.ts";
import { frameText } from "../../src/capture/frame-text.ts";
import { PcapngWriter, upperPdu } from "../../src/capture/pcapng.ts";
import { upperPduOf } from "../../src/capture/upper-pdu.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { fieldsOf, noTshark } from "../support/wireshark.ts";

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

test("A capture with a reply of the largest size can be read to its end", { skip: noTshark }, (t) => {
  const payload = Buffer.from(`{"status":"success","data":"${"x".repeat(8 * 1024 * 1024)}"}`);
  const large: CapturedFrame = { ...frame, direction: "in", role: "reply", wireBytes: payload.length + 6, payload };
  const writer = new PcapngWriter(upperPdu, "posline");
  const blocks = [frame, large, frame].map((each) =>
    writer.packet({ line: each.line, timeMs: each.timeMs, direction: each.direction, bytes: upperPduOf(each) }),
  );
  const folder = scratchFolder();
  t.after(() => folder.remove());
  const file = join(folder.path, "large.pcapng");
  writeFileSync(file, Buffer.concat([writer.start(), ...blocks]));
  const packets = fieldsOf(file, ["posline.role", "posline.wire_bytes", "frame.len", "frame.cap_len", "_ws.malformed"]);
  assert.deepEqual(
    packets.map((packet) => packet["posline.role"]),
    ["0", "1", "0"],
  );
  const [, cut] = packets;
  assert.equal(cut?.["posline.wire_bytes"], String(payload.length + 6));
  assert.equal(cut?.["frame.len"], String(upperPduOf(large).length));
  assert.equal(cut?.["frame.cap_len"], "262144");
});
