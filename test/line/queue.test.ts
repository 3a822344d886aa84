import assert from "node:assert/strict";
import { after, test } from "node:test";
import { present } from "../../src/core/call.ts";
import { CallQueue, type Waiting } from "../../src/line/queue.ts";
import { VirtualTime } from "../support/virtual-time.ts";

const time = new VirtualTime();
after(() => time.restore());

interface Named extends Waiting {
  readonly name: string;
}

function waiting(name: string, waitMs = 1_000, urgent = false): Named {
  return { name, urgent, waitUntilMs: time.nowMs + waitMs, caller: present() };
}

function queueOf(callsMax = 10): { queue: CallQueue<Named>; gone: string[]; add: (each: Named) => void } {
  const gone: string[] = [];
  const queue = new CallQueue<Named>(callsMax, ({ name }) => gone.push(`${name} expired`));
  return { queue, gone, add: (each) => queue.add(each, () => gone.push(`${each.name} left`)) };
}

const names = (all: readonly Named[]): string => all.map(({ name }) => name).join(" ");

test("CallQueue.next() gives first in first out", () => {
  const { queue, add } = queueOf();
  for (const name of ["a", "b", "c"]) add(waiting(name));
  assert.deepEqual([queue.next()?.name, queue.next()?.name, queue.next()?.name, queue.next()], ["a", "b", "c", undefined]);
});

test("CallQueue.next() gives urgent ones before all others, in their own order", () => {
  const { queue, add } = queueOf();
  add(waiting("a"));
  add(waiting("abort 1", 1_000, true));
  add(waiting("b"));
  add(waiting("abort 2", 1_000, true));
  assert.equal(names(queue.drain()), "abort 1 abort 2 a b");
});

test("CallQueue.putFirst() goes before urgent ones, whatever the limit", () => {
  const { queue, add } = queueOf(2);
  add(waiting("abort", 1_000, true));
  add(waiting("a"));
  assert.equal(queue.isFull, true);
  queue.putFirst(waiting("again"), () => {});
  assert.equal(queue.size, 3);
  assert.equal(names(queue.drain()), "again abort a");
});

test("CallQueue.add() throws when the queue is full, urgent or not", () => {
  const { queue, add } = queueOf(1);
  add(waiting("a"));
  assert.throws(() => add(waiting("b")), /1 are waiting, which is the limit/);
  assert.throws(() => add(waiting("abort", 1_000, true)), /which is the limit/);
  queue.next();
  add(waiting("c"));
  assert.equal(queue.size, 1);
});

test("CallQueue tells each call that has waited too long, once and when it is due", async () => {
  const { queue, gone, add } = queueOf();
  add(waiting("a", 300));
  add(waiting("abort", 100, true));
  await time.advance(99);
  assert.deepEqual(gone, []);
  await time.advance(2);
  assert.deepEqual(gone, ["abort expired"]);
  add(waiting("b", 300));
  await time.advance(200);
  assert.deepEqual(gone, ["abort expired", "a expired"]);
  await time.advance(10_000);
  assert.deepEqual(gone, ["abort expired", "a expired", "b expired"]);
  assert.equal(queue.size, 0);
});

test("CallQueue.next() gives no call that has expired, and expires none that was given", async () => {
  const { queue, gone, add } = queueOf();
  add(waiting("a", 100));
  assert.equal(queue.next()?.name, "a");
  await time.advance(1_000);
  assert.deepEqual(gone, []);
});

test("CallQueue takes out a call whose caller leaves, and tells it", async () => {
  const { queue, gone, add } = queueOf();
  const [a, b, urgent] = [waiting("a"), waiting("b"), waiting("abort", 1_000, true)];
  for (const each of [a, b, urgent]) add(each);
  a.caller.onGone?.();
  urgent.caller.onGone?.();
  assert.deepEqual(gone, ["a left", "abort left"]);
  assert.equal(names(queue.drain()), "b");
  await time.advance(5_000);
  assert.deepEqual(gone, ["a left", "abort left"]);
});

test("CallQueue lets go of the callers of what was given or drained", () => {
  const { queue, add } = queueOf();
  const [a, b] = [waiting("a"), waiting("b")];
  add(a);
  add(b);
  queue.next();
  queue.drain();
  assert.equal(a.caller.onGone, undefined);
  assert.equal(b.caller.onGone, undefined);
});
