import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Crc16 } from "../../src/wire/crc16.ts";
import { encodeLength } from "../../src/wire/length.ts";
import { encodeStx } from "../../src/wire/stx.ts";
import { decoderOf, Feed, type ModeName } from "./feed.ts";

/** Tests src/wire/length.ts, src/wire/stx.ts. */

interface Vector {
  readonly name: string;
  readonly framing: "length" | "stx";
  readonly crc16?: Crc16;
  readonly payload: string;
  readonly wire: string;
}
// The file is ours: a vector without one of these fields fails below
const { frames } = JSON.parse(readFileSync(new URL("../vectors/frames.json", import.meta.url), "utf8")) as {
  frames: readonly Vector[];
};

function encode(vector: Vector, pieces: readonly Buffer[]): Buffer[] {
  return vector.framing === "stx" ? encodeStx(pieces) : encodeLength(vector.crc16 ?? "arc", pieces);
}

function frameOf(vector: Vector): object {
  const [payloadBytes, wireBytes] = [vector.payload.length / 2, vector.wire.length / 2];
  return { kind: "frame", framing: vector.framing, payload: vector.payload, payloadBytes, wireBytes };
}

test("frames.json holds vectors of both framings and both readings", () => {
  const kinds = new Set(frames.map((vector) => vector.crc16 ?? vector.framing));
  assert.deepEqual([...kinds].sort(), ["arc", "stx", "umts"]);
});

for (const vector of frames) {
  const wire = Buffer.from(vector.wire, "hex");
  const payload = Buffer.from(vector.payload, "hex");
  const feedOf = (mode: ModeName): Feed => new Feed(decoderOf(mode, { crc16: vector.crc16 ?? "arc" }));

  test(`encode() of ${vector.name} gives its bytes, whole and in pieces, and copies no piece`, () => {
    assert.equal(Buffer.concat(encode(vector, [payload])).toString("hex"), vector.wire);
    const pieces = [payload.subarray(0, 3), payload.subarray(3, 4), payload.subarray(4)];
    const framed = encode(vector, pieces);
    assert.equal(Buffer.concat(framed).toString("hex"), vector.wire);
    for (const piece of pieces) assert.ok(framed.includes(piece));
  });

  for (const mode of [vector.framing, "dual"] as const) {
    test(`decoder (${mode}) takes ${vector.name} whole, byte by byte and with bytes after it`, () => {
      assert.deepEqual(feedOf(mode).feed(wire).plain(), [frameOf(vector)]);
      const single = feedOf(mode);
      single.feed(wire.subarray(0, -1), [1]);
      assert.deepEqual(single.plain(), []);
      assert.deepEqual(single.feed(wire.subarray(-1)).plain(), [frameOf(vector)]);
      for (const sizes of [[], [1]]) {
        const trailed = feedOf(mode).feed(Buffer.concat([wire, wire.subarray(0, 5)]), sizes);
        assert.deepEqual(trailed.plain(), [frameOf(vector)]);
        assert.equal(trailed.decoder.pendingBytes, 5);
        assert.deepEqual(trailed.feed(wire.subarray(5), sizes).plain(), [frameOf(vector), frameOf(vector)]);
      }
    });
  }

  test(`encode() of what the decoder gave for ${vector.name} is the same frame again`, () => {
    const [frame] = feedOf(vector.framing).feed(wire, [7]).events;
    assert.ok(frame?.kind === "frame");
    assert.equal(Buffer.concat(encode(vector, frame.payload)).toString("hex"), vector.wire);
  });
}
