import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { CapturedFrame } from "../../../src/capture/captured-frame.ts";
import { PcapngWriter, upperPdu } from "../../../src/capture/pcapng.ts";
import { upperPduOf } from "../../../src/capture/upper-pdu.ts";
import { frame } from "../../capture/frame.ts";
import { assertMapped } from "../../support/assert-mapped.ts";
import { scratchFolder } from "../../support/bridge-process.ts";
import { fieldsOf, noTshark } from "../../support/wireshark.ts";

test("A capture with a reply of the largest size can be read to its end", { skip: noTshark }, () => {
  const payload = Buffer.from(`{"status":"success","data":"${"x".repeat(8 * 1024 * 1024)}"}`);
  const large: CapturedFrame = { ...frame, direction: "in", role: "reply", wireBytes: payload.length + 6, payload };
  const writer = new PcapngWriter(upperPdu, "posline");
  const blocks = [frame, large, frame].map((each) =>
    writer.packet({ line: each.line, timeMs: each.timeMs, direction: each.direction, bytes: upperPduOf(each) }),
  );
  const folder = scratchFolder();
  const file = join(folder.path, "large.pcapng");
  writeFileSync(file, Buffer.concat([writer.start(), ...blocks]));
  const packets = fieldsOf(file, ["posline.role", "posline.wire_bytes", "frame.len", "frame.cap_len", "_ws.malformed"]);
  assertMapped(packets, ["0", "1", "0"], (packet) => packet["posline.role"]);
  const [, cut] = packets;
  assert.equal(cut?.["posline.wire_bytes"], String(payload.length + 6));
  assert.equal(cut?.["frame.len"], String(upperPduOf(large).length));
  assert.equal(cut?.["frame.cap_len"], "262144");
});
