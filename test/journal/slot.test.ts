import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readSlot, slotBytes, textBytesMax, writeSlot } from "../../src/journal/slot.ts";
import { crc32 } from "../../src/wire/crc32.ts";

const sequence = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const slots = 128;
const text = fc.string({ unit: "grapheme", maxLength: 200 }).filter((each) => Buffer.byteLength(each) <= textBytesMax);

test("readSlot() reads what writeSlot() wrote", () => {
  fc.assert(
    fc.property(sequence, text, (number, content) => {
      const slot = writeSlot(number, content, slots);
      assert.equal(slot.length, slotBytes);
      assert.deepEqual(readSlot(slot), { sequence: number, text: Buffer.from(content).toString(), slots });
    }),
  );
});

test("readSlot() takes a slot torn between two records at any byte, from either end, for none of them or for one whole", () => {
  const before = fc.oneof(
    fc.constant(Buffer.alloc(slotBytes)),
    fc.tuple(sequence, text).map(([n, t]) => writeSlot(n, t, slots)),
  );
  fc.assert(
    fc.property(before, sequence, text, fc.nat({ max: slotBytes }), fc.boolean(), (old, number, content, cut, fromStart) => {
      const fresh = writeSlot(number, content, slots);
      const [first, second] = fromStart ? [fresh, old] : [old, fresh];
      const torn = Buffer.concat([first.subarray(0, cut), second.subarray(cut)]);
      const read = readSlot(torn);
      if (torn.equals(fresh)) assert.deepEqual(read, readSlot(fresh));
      else if (torn.equals(old)) assert.deepEqual(read, readSlot(old));
      else assert.equal(read, "bad");
    }),
    { numRuns: 1_000 },
  );
});

test("readSlot() takes no changed byte for a record, and zeros for an empty slot", () => {
  const slot = writeSlot(7, '{"kind":"start"}', slots);
  for (let at = 0; at < slotBytes; at++) {
    const changed = Buffer.from(slot);
    changed.writeUInt8(changed.readUInt8(at) ^ 0x10, at);
    assert.equal(readSlot(changed), "bad");
  }
  assert.equal(readSlot(Buffer.alloc(slotBytes)), "empty");
  assert.equal(readSlot(Buffer.alloc(3)), "bad");
});

test("writeSlot() refuses a text that doesn't fit", () => {
  assert.throws(() => writeSlot(1, "x".repeat(textBytesMax + 1), slots), RangeError);
});

test("writeSlot() writes the format as it is described in src/journal/slot.ts", () => {
  const slot = writeSlot(0x0102_0304_0506, '{"kind":"é"}', 16_384);
  const head = Buffer.from("50534c4a 01 00 000d 0000010203040506 00004000".replaceAll(" ", ""), "hex");
  const tail = Buffer.alloc(slotBytes - 24);
  tail.write('{"kind":"é"}');
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(tail, 0, tail.length, crc32(head, 0, head.length)));
  assert.deepEqual(slot, Buffer.concat([head, sum, tail]));
});

test("readSlot() reads a text that fills its slot, and refuses what no posline writes though its checksum is right", () => {
  const full = writeSlot(1, "x".repeat(488), slots);
  assert.deepEqual(readSlot(full), { sequence: 1, text: "x".repeat(488), slots });
  for (const [at, hex] of [
    [6, "01e9"],
    [8, "0020000000000000"],
    [16, "00000000"],
  ] as const) {
    const odd = Buffer.from(full);
    odd.write(hex, at, "hex");
    odd.writeUInt32BE(crc32(odd, 24, slotBytes, crc32(odd, 0, 20)), 20);
    assert.equal(readSlot(odd), "bad", `${hex} at ${at}`);
  }
  assert.equal(readSlot(Buffer.concat([full, Buffer.alloc(1)])), "bad");
});
