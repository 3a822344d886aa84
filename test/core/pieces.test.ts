import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesOf, GatheredPieces } from "../../src/core/pieces.ts";

test("bytesOf() counts the bytes of all pieces", () => {
  assert.equal(bytesOf([]), 0);
  assert.equal(bytesOf([Buffer.from("ab"), Buffer.alloc(0), Buffer.from("c")]), 3);
});

test("GatheredPieces keeps every byte in its order, and copies short pieces together once there are many", () => {
  const text = Buffer.from(Array.from({ length: 100_000 }, (_, at) => at % 251));
  for (const sizes of [[1], [300], [5_000], [1, 5_000, 3], [4_095, 4_096], [100_000]]) {
    const gathered = new GatheredPieces();
    for (let at = 0, n = 0; at < text.length; n++) {
      const size = sizes[n % sizes.length] ?? 1;
      gathered.add(text.subarray(at, at + size));
      at += size;
    }
    assert.ok(Buffer.concat(gathered.all).equals(text), sizes.join());
    const long = sizes.filter((size) => size >= 4_096).length > 0 ? 1_000 : 0;
    assert.ok(gathered.all.length <= 16 + text.length / 12_000 + long, `${gathered.all.length} pieces of ${sizes.join()}`);
  }
});

test("GatheredPieces takes the few pieces of a usual body as they are", () => {
  const pieces = Array.from({ length: 16 }, (_, n) => Buffer.from(`piece ${n}`));
  const gathered = new GatheredPieces();
  for (const piece of pieces) gathered.add(piece);
  assert.ok(gathered.all.every((piece, n) => piece === pieces[n]));
});

test("GatheredPieces takes memory in proportion to its bytes", () => {
  const gathered = new GatheredPieces();
  const byte = Buffer.from("x");
  for (let n = 0; n < 262_144; n++) gathered.add(byte);
  const taken = gathered.all.reduce((sum, piece) => sum + piece.buffer.byteLength, 0);
  assert.ok(gathered.all.length < 40 && taken < 2 * 262_144 + 16 * 65_536, `${gathered.all.length} pieces, ${taken} bytes`);
});
