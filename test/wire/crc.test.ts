import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as npm from "crc";
import fc from "fast-check";
import { type Crc16, crc16 } from "../../src/wire/crc16.ts";
import { crc32 } from "../../src/wire/crc32.ts";

/** Tests src/wire/crc16.ts, src/wire/crc32.ts. */

type Check = { readonly input: string; readonly arc: string; readonly umts: string; readonly crc32: string };
// The file is ours and its shape is what this test checks
const { checks } = JSON.parse(readFileSync(new URL("../vectors/frames.json", import.meta.url), "utf8")) as {
  checks: readonly Check[];
};

/** The definition, bit by bit. */
function bitwise(kind: Crc16, bytes: Uint8Array): number {
  let value = 0;
  for (const byte of bytes) {
    for (let bit = 0; bit < 8; bit++) {
      const came = kind === "arc" ? (byte >> bit) & 1 : (byte >> (7 - bit)) & 1;
      const top = (value >> 15) & 1;
      value = ((value << 1) & 0xffff) ^ (top ^ came ? 0x8005 : 0);
    }
  }
  if (kind === "umts") return value;
  let reflected = 0;
  for (let bit = 0; bit < 16; bit++) reflected |= ((value >> bit) & 1) << (15 - bit);
  return reflected;
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0");

test("crc16() and crc32() give the catalogue's check values", () => {
  assert.ok(checks.length > 0);
  for (const check of checks) {
    const bytes = Buffer.from(check.input, "hex");
    assert.equal(hex(crc16("arc", bytes, 0, bytes.length), 4), check.arc);
    assert.equal(hex(crc16("umts", bytes, 0, bytes.length), 4), check.umts);
    assert.equal(hex(crc32(bytes, 0, bytes.length), 8), check.crc32);
  }
});

test("crc16() equals the bitwise definition and, for arc, the crc package", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 700 }), (bytes) => {
      for (const kind of ["arc", "umts"] as const) assert.equal(crc16(kind, bytes, 0, bytes.length), bitwise(kind, bytes));
      assert.equal(crc16("arc", bytes, 0, bytes.length), npm.crc16(Buffer.from(bytes)));
    }),
  );
});

test("crc32() equals the crc package on both sides of the length where it turns to zlib", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1200, size: "max" }), (bytes) => {
      assert.equal(crc32(bytes, 0, bytes.length), npm.crc32(Buffer.from(bytes)));
    }),
  );
});

test("crc16() and crc32() carried on over any cut equal one run, and look at nothing outside the range", () => {
  const cut = fc
    .uint8Array({ maxLength: 1500, size: "max" })
    .chain((bytes) => fc.tuple(fc.constant(bytes), fc.nat(bytes.length), fc.nat(20), fc.nat(20)));
  fc.assert(
    fc.property(cut, ([bytes, at, before, after]) => {
      const wide = Buffer.concat([Buffer.alloc(before, 0xa5), bytes, Buffer.alloc(after, 0x5a)]);
      const [from, middle, to] = [before, before + at, before + bytes.length];
      for (const kind of ["arc", "umts"] as const) {
        const first = crc16(kind, wide, from, middle);
        assert.equal(crc16(kind, wide, middle, to, first), crc16(kind, bytes, 0, bytes.length));
      }
      assert.equal(crc32(wide, middle, to, crc32(wide, from, middle)), crc32(bytes, 0, bytes.length));
    }),
  );
});
