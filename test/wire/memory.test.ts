import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { crc16 } from "../../src/wire/crc16.ts";
import { Memory } from "../../src/wire/memory.ts";
import { assertMapped } from "../support/assert-mapped.ts";

/** The window over chunks beside the plainest model of it: one buffer. */

const stx = 0x02;
const chunkBytes = 64 * 1024;

/** Collects garbage, which only a flag lets a program do. */
function collect(): void {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
}

/** A window and what should be in it; what was handed out is kept, to be looked at again at the end. */
class Beside {
  readonly memory = new Memory();
  window = Buffer.alloc(0);
  readonly handedOut: { readonly pieces: readonly Buffer[]; readonly bytes: Buffer }[] = [];

  /** Bytes of which `each` is one STX every so many, the others never one. */
  come(bytes: number, each: number, missingBytesMax: number): void {
    this.comeAs(
      Buffer.from(Array.from({ length: bytes }, (_, i) => (i % each === each - 1 ? stx : 0x30 + ((i * 7) % 64)))),
      missingBytesMax,
    );
  }

  comeAs(came: Buffer, missingBytesMax: number): void {
    for (let at = 0; at < came.length; ) {
      const space = this.memory.space(missingBytesMax);
      const n = Math.min(space.length, came.length - at);
      assert.ok(n > 0, "there is room");
      came.copy(space, 0, at, at + n);
      this.memory.advance(n);
      at += n;
    }
    this.window = Buffer.concat([this.window, came]);
  }

  drop(bytes: number): void {
    this.memory.drop(bytes);
    this.window = this.window.subarray(bytes);
  }

  release(bytes: number): void {
    this.handedOut.push({ pieces: this.memory.pieces(0, bytes), bytes: this.window.subarray(0, bytes) });
    this.memory.release(bytes);
    this.window = this.window.subarray(bytes);
  }

  look(from: number, to: number): void {
    const { memory, window } = this;
    const part = window.subarray(from, to);
    assert.equal(memory.size, window.length);
    const pieces = memory.pieces(from, to);
    assert.ok(Buffer.concat(pieces).equals(part), `pieces of ${from} to ${to}`);
    assert.ok(
      pieces.every((piece) => piece.length > 0),
      `no empty piece in ${from} to ${to}`,
    );
    assert.equal(memory.hex(from, to), part.subarray(0, 16).toString("hex"));
    const found = part.indexOf(stx);
    assert.equal(memory.indexOf(stx, from, to), found < 0 ? -1 : from + found, `STX in ${from} to ${to}`);
    assert.equal(memory.has(stx, from, to), found >= 0, `whether STX is in ${from} to ${to}`);
    const sum = memory.sum((bytes, start, end, value) => crc16("arc", bytes, start, end, value), from, to, 7);
    assert.equal(sum, crc16("arc", part, 0, part.length, 7));
    if (part.length > 0) assert.equal(memory.at(from), part[0]);
    if (part.length >= 4) assert.equal(memory.uint(from, 4), part.readUInt32BE(0));
  }

  /** Looks around each place where one piece ends and another begins, too. */
  lookAll(from: number, to: number): void {
    const { memory, window } = this;
    this.look(from, to);
    let seam = 0;
    for (const piece of memory.pieces(0, window.length)) {
      seam += piece.length;
      for (const bytes of [1, 4, 10, 11, 32, 33, 200])
        for (const back of [0, 1, 2, bytes]) {
          const start = Math.max(0, seam - back);
          this.look(start, Math.min(window.length, start + bytes));
        }
    }
  }
}

const share = fc.double({ min: 0, max: 1, noNaN: true });
const bytesComing = fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 100_000 }), fc.constant(chunkBytes));
const step = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(fc.constant("come" as const), bytesComing, fc.integer({ min: 2, max: 70_000 })) },
  fc.tuple(fc.constantFrom("drop" as const, "release" as const), share, share),
);

test("Memory shows the bytes that came and weren't taken out, and never writes again what was handed out", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), share, share, (steps, one, other) => {
      const beside = new Beside();
      for (const [what, amount, each] of steps) {
        const { length } = beside.window;
        if (what === "come") beside.come(amount, each, 1_000_000);
        else beside[what](Math.round(length * (amount > 0.8 ? 1 : amount)));
        const [from, to] = [one, other].map((of) => Math.round(of * beside.window.length)).sort((a, b) => a - b);
        beside.lookAll(from ?? 0, to ?? 0);
      }
      for (const { pieces, bytes } of beside.handedOut) assert.ok(Buffer.concat(pieces).equals(bytes), "as it was handed out");
    }),
    { seed: 15, numRuns: 25 },
  );
});

test("Memory shows a byte at each place around the seams of its chunks, and none beside the range asked for", () => {
  for (const dropped of [0, 100, chunkBytes, 2 * chunkBytes - 50])
    for (const seam of [chunkBytes, 2 * chunkBytes]) {
      if (seam - dropped < 50) continue;
      for (const place of [seam - 1, seam, seam + 1]) {
        const came = Buffer.alloc(2 * chunkBytes + 100, "0123456789abcdefg");
        came[place] = stx;
        const beside = new Beside();
        // Little is missing, so that each chunk is as small as the first
        beside.comeAs(came, 100);
        beside.drop(dropped);
        const at = place - dropped;
        for (const bytes of [0, 1, 2, 4, 11, 40])
          for (const from of [at - bytes, at - bytes + 1, at - 1, at, at + 1]) beside.look(from, from + bytes);
        beside.look(0, beside.window.length);
        assert.equal(beside.memory.indexOf(0, 0, beside.window.length), -1, "no byte 0 came");
      }
    }
});

test("Memory.has() finds the first byte of all among many, and among few that begin in the chunk before", () => {
  for (const before of [0, chunkBytes - 1, chunkBytes]) {
    const beside = new Beside();
    beside.comeAs(Buffer.alloc(before, "a"), 100);
    beside.comeAs(Buffer.from([stx, ...Buffer.alloc(60, "b")]), 100);
    beside.drop(before);
    for (const bytes of [1, 10, 32, 33, 61]) beside.look(0, bytes);
  }
});

test("Memory's searches write into nothing that was handed out", () => {
  const beside = new Beside();
  beside.come(300, 1_000, 1_000);
  beside.release(200);
  assert.equal(beside.memory.indexOf(stx, 0, 100), -1);
  for (const { pieces, bytes } of beside.handedOut) assert.deepEqual(Buffer.concat(pieces), bytes);
});

test("Memory.advance() refuses bytes that can't have been written", () => {
  const memory = new Memory();
  const refuses = (room: number) => {
    for (const bytes of [-1, 0.5, room + 1, Number.NaN])
      assert.throws(() => memory.advance(bytes), {
        name: "RangeError",
        message: new RegExp(`${bytes}: there was room for ${room}`),
      });
  };
  const room = memory.space(1).length;
  refuses(room);
  memory.advance(0);
  memory.advance(100);
  // What is taken out of the window makes no room behind it
  memory.drop(40);
  assert.equal(memory.space(1).length, room - 100);
  refuses(room - 100);
  memory.advance(room - 100);
  assert.equal(memory.size, room - 40);
});

test("Memory.space() is a whole chunk of 64 KiB at first, and again once a chunk was handed out to its end", () => {
  const memory = new Memory();
  const first = memory.space(1_000);
  assert.equal(first.length, chunkBytes);
  memory.advance(chunkBytes);
  memory.release(chunkBytes);
  const second = memory.space(1_000);
  assert.notEqual(second.buffer, first.buffer);
  assert.deepEqual([second.byteOffset, second.length], [0, chunkBytes]);
  memory.advance(10);
  memory.release(10);
  const third = memory.space(1_000);
  assert.equal(third.buffer, second.buffer);
  assert.deepEqual([third.byteOffset, third.length], [10, chunkBytes - 10]);
});

test("Memory begins a frame behind the last one where 4 KiB are left, and in a fresh chunk where it is less", () => {
  for (const [left, isSame] of [
    [4_096, true],
    [4_095, false],
  ] as const) {
    const memory = new Memory();
    const { buffer } = memory.space(1_000);
    memory.advance(chunkBytes - left);
    memory.release(chunkBytes - left);
    const next = memory.space(1_000);
    assert.deepEqual([next.buffer === buffer, next.length], [isSame, isSame ? left : chunkBytes]);
  }
});

test("Memory grows by what is missing, by no more than came, and by a whole chunk at least", () => {
  for (const [missing, grown] of [
    [10, chunkBytes],
    [2 * chunkBytes - 1, 2 * chunkBytes - 1],
    [2 * chunkBytes, 2 * chunkBytes],
    [1_000_000, 2 * chunkBytes],
  ] as const) {
    const memory = new Memory();
    for (const _ of ["first", "second"]) {
      assert.equal(memory.space(1_000_000).length, chunkBytes);
      memory.advance(chunkBytes);
    }
    assert.equal(memory.space(missing).length, grown);
  }
});

test("Memory keeps a chunk made for one large frame for that frame alone", () => {
  const memory = new Memory();
  for (const _ of ["first", "second"]) {
    memory.space(1_000_000);
    memory.advance(chunkBytes);
  }
  const large = memory.space(1_000_000).buffer;
  assert.equal(large.byteLength, 2 * chunkBytes);
  memory.advance(5);
  memory.release(memory.size);
  const next = memory.space(1_000_000);
  assert.notEqual(next.buffer, large);
  assert.equal(next.length, chunkBytes);
});

test("Memory goes on at the start of the last chunk after a large frame that was dropped", () => {
  const memory = new Memory();
  memory.space(1_000);
  memory.advance(chunkBytes);
  const { buffer } = memory.space(1_000);
  memory.advance(5);
  memory.drop(memory.size);
  const next = memory.space(1_000);
  assert.equal(next.buffer, buffer);
  assert.deepEqual([next.byteOffset, next.length], [0, chunkBytes]);
});

test("Memory lets go of the chunks before the last one with the bytes in them", async () => {
  const memory = new Memory();
  const filled = () => {
    const { buffer } = memory.space(1_000);
    memory.advance(chunkBytes);
    return new WeakRef(buffer);
  };
  const chunks = [filled(), filled()];
  memory.space(1_000);
  memory.advance(10);
  memory.drop(chunkBytes + 1);
  // A reference holds what it refers to until its task is over
  await setImmediate();
  collect();
  assertMapped(chunks, [true, false], (chunk) => chunk.deref() === undefined);
  // Which is still in use
  assert.equal(memory.size, chunkBytes + 9);
});

test("Memory.rewind() brings back the last of what was passed over, across chunks, and nothing once bytes were dropped", () => {
  const held = 70_000;
  for (const [before, passed] of [
    [10, 30],
    [60_000, 20_000],
    [10, 200_000],
  ] as const) {
    const beside = new Beside();
    beside.come(before, 7, 1_000);
    beside.release(before);
    beside.come(passed, 11, 200_000);
    const all = beside.window;
    // A byte stays, so that nothing begins anew.
    for (let at = 0; at < passed - 1; at += 1_000) beside.memory.pass(Math.min(1_000, passed - 1 - at), held);
    beside.window = all.subarray(passed - 1);
    beside.come(50, 5, 1_000);
    beside.look(0, 51);
    const back = beside.memory.rewind();
    assert.equal(back, Math.min(held, passed - 1));
    beside.window = Buffer.concat([all.subarray(passed - 1 - back), beside.window.subarray(1)]);
    beside.look(0, back + 51);
    beside.drop(3);
    assert.equal(beside.memory.rewind(), 0);
    beside.look(0, back + 48);
  }
});

test("Memory goes on behind what is held, though the window is empty", () => {
  const beside = new Beside();
  beside.come(100, 7, 1_000);
  const all = beside.window;
  beside.memory.pass(100, 40);
  beside.window = Buffer.alloc(0);
  beside.come(20, 3, 1_000);
  assert.equal(beside.memory.rewind(), 40);
  beside.window = Buffer.concat([all.subarray(60), beside.window]);
  beside.look(0, 60);
});
