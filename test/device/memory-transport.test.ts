import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryTransport } from "../../src/device/memory-transport.ts";
import { type ConnectionHandler, OpenError } from "../../src/device/transport.ts";
import { virtualTime } from "../support/virtual-time.ts";

const time = virtualTime();

/** Keeps what it hears with the moment of each byte; its space is small, so that much comes in pieces. */
class Keeper implements ConnectionHandler {
  bytes: number[] = [];
  atMs: number[] = [];
  writes = 0;
  /** How many bytes came at a time. */
  readonly reads: number[] = [];
  readonly losses: string[] = [];
  readonly #space: Buffer;
  constructor(spaceBytes = 7) {
    this.#space = Buffer.alloc(spaceBytes);
  }
  space(): Buffer {
    return this.#space;
  }
  onBytes(n: number): void {
    assert.ok(n > 0 && n <= this.#space.length);
    this.reads.push(n);
    for (const byte of this.#space.subarray(0, n)) {
      this.bytes.push(byte);
      this.atMs.push(time.nowMs);
    }
  }
  onWritten(): void {
    this.writes++;
  }
  onClosed(reason: string): void {
    this.losses.push(reason);
  }
}

const counting = (n: number) => Buffer.from(Array.from({ length: n }, (_, at) => at % 256));

test("memoryTransport() delivers all bytes in order, in pieces of the size of the handler's space", async () => {
  const { near, far } = memoryTransport(0);
  const [one, other] = [new Keeper(), new Keeper()];
  const opening = await near(one);
  await far(other);
  opening.write([counting(300), Buffer.from("end")]);
  assert.equal(one.writes, 1);
  assert.equal(opening.wroteBytes, 303);
  await time.advance(5);
  assert.deepEqual(other.bytes, [...counting(300), ...Buffer.from("end")]);
  assert.deepEqual(one.bytes, []);
});

for (const msPerByte of [0.087, 1.04, 7]) {
  test(`memoryTransport() delivers no byte before its time on the wire, nor much later, at ${msPerByte} ms a byte`, async () => {
    const { near, far } = memoryTransport(msPerByte);
    const other = new Keeper();
    const opening = await near(new Keeper());
    await far(other);
    const began = time.nowMs;
    opening.write([counting(100)]);
    await time.advance(30 * msPerByte);
    // What is written while bytes are on their way comes behind them.
    opening.write([counting(50)]);
    await time.advance(1_500);
    assert.deepEqual(other.bytes, [...counting(100), ...counting(50)]);
    other.atMs.forEach((at, index) => {
      const earliest = began + (index + 1) * msPerByte;
      assert.ok(at >= earliest - 1e-6, `byte ${index} came ${earliest - at} ms too early`);
      assert.ok(at <= earliest + Math.max(4, 2 * msPerByte), `byte ${index} came ${at - earliest} ms too late`);
    });
  });
}

test("memoryTransport() keeps what it was given to write, though the writer uses its memory again", async () => {
  const { near, far } = memoryTransport(0.1);
  const other = new Keeper();
  const opening = await near(new Keeper());
  await far(other);
  const memory = Buffer.from("first");
  opening.write([memory]);
  memory.fill("x");
  await time.advance(10);
  assert.equal(Buffer.from(other.bytes).toString(), "first");
});

test("memoryTransport() loses what is sent to an end that nobody has open, and what was on its way from an end that closed", async () => {
  const { near, far } = memoryTransport(1);
  const other = new Keeper();
  const opening = await near(new Keeper());
  opening.write([Buffer.from("lost")]);
  await time.advance(20);
  await far(other);
  opening.write([counting(100)]);
  await time.advance(10);
  await opening.close();
  await time.advance(500);
  assert.ok(other.bytes.length > 0 && other.bytes.length < 100, `${other.bytes.length} bytes`);
});

test("memoryTransport() hands over what is there in one piece, however it was written", async () => {
  const { near, far } = memoryTransport(0);
  const other = new Keeper(64);
  const opening = await near(new Keeper());
  await far(other);
  opening.write([counting(4), counting(20), counting(2)]);
  await time.advance(5);
  assert.deepEqual(other.reads, [26]);
  opening.write([counting(60), counting(10)]);
  await time.advance(5);
  assert.deepEqual(other.reads, [26, 64, 6]);
});

test("MemoryTransport.unplug() loses both ends with what was on its way, and opens neither until its time has passed", async () => {
  const { near, far, unplug } = memoryTransport(1);
  const [one, other] = [new Keeper(), new Keeper()];
  const opening = await near(one);
  await far(other);
  opening.write([counting(100)]);
  await time.advance(10);
  unplug(2_000);
  const heard = other.bytes.length;
  assert.deepEqual([one.losses.length, other.losses.length], [1, 1]);
  await opening.close();
  for (const open of [near, far]) {
    await assert.rejects(
      open(new Keeper()),
      (error) => error instanceof OpenError && /it comes back by itself/.test(error.message),
    );
  }
  await time.advance(1_999);
  await assert.rejects(near(new Keeper()), OpenError);
  assert.equal(other.bytes.length, heard);
  await time.advance(1);
  const [again, back] = [new Keeper(), new Keeper()];
  const reopened = await near(again);
  await far(back);
  reopened.write([Buffer.from("back")]);
  await time.advance(20);
  assert.equal(Buffer.from(back.bytes).toString(), "back");
  assert.deepEqual([one.losses.length, other.losses.length, again.losses.length], [1, 1, 0]);
});

test("MemoryTransport.unplug() while nobody has it open only keeps it from being opened, and the longest time counts", async () => {
  const { near, far, unplug } = memoryTransport(1);
  unplug(500);
  unplug(100);
  await time.advance(499);
  await assert.rejects(far(new Keeper()), OpenError);
  await time.advance(1);
  await far(new Keeper());
  await near(new Keeper());
});
