import assert from "node:assert/strict";
import { test } from "node:test";
import { type Queued, SendQueue } from "../../src/line/send-queue.ts";

interface Named extends Queued {
  readonly name: string;
}

const item = (name: string, waitUntilMs = 1_000, urgent = false): Named => ({ name, urgent, background: false, waitUntilMs });
const asked = (name: string, waitUntilMs = 1_000): Named => ({ ...item(name, waitUntilMs), background: true });
const names = (all: Iterable<Named>): string => [...all].map(({ name }) => name).join(" ");

function queueOf(...items: readonly Named[]): SendQueue<Named> {
  const queue = new SendQueue<Named>(10);
  for (const each of items) queue.add(each);
  return queue;
}

test("SendQueue.next() gives first in first out", () => {
  const queue = queueOf(item("a"), item("b"), item("c"));
  assert.deepEqual([queue.next()?.name, queue.next()?.name, queue.next()?.name, queue.next()], ["a", "b", "c", undefined]);
});

test("SendQueue.next() gives urgent ones before all others, in their own order", () => {
  const queue = queueOf(item("a"), item("abort 1", 1_000, true), item("b"), item("abort 2", 1_000, true));
  assert.equal(names(queue.takeAll()), "abort 1 abort 2 a b");
  assert.equal(queue.isEmpty, true);
});

test("SendQueue.putFirst() goes before urgent ones, whatever the limit", () => {
  const queue = new SendQueue<Named>(2);
  queue.add(item("abort", 1_000, true));
  queue.add(item("a"));
  assert.equal(queue.isFullFor({ background: false }), true);
  queue.putFirst(item("again"));
  assert.equal(queue.size, 3);
  assert.equal(names(queue.takeAll()), "again abort a");
});

test("SendQueue.add() throws when the queue is full, urgent or not", () => {
  const queue = new SendQueue<Named>(1);
  queue.add(item("a"));
  assert.throws(() => queue.add(item("b")), /1 are waiting, which is the limit/);
  assert.throws(() => queue.add(item("abort", 1_000, true)), /which is the limit/);
  queue.next();
  queue.add(item("c"));
  assert.equal(queue.size, 1);
});

test("SendQueue.expired() gives each item that has waited too long, and nextDueMs says when the first will have", () => {
  const queue = queueOf(item("a", 300), item("abort", 100, true), item("b", 500));
  assert.equal(queue.nextDueMs, 100);
  assert.equal(names(queue.expired(99)), "");
  assert.equal(names(queue.expired(100)), "abort");
  for (const each of queue.expired(300)) queue.remove(each);
  assert.equal(queue.nextDueMs, 500);
  assert.equal(names(queue.takeAll()), "b");
  assert.equal(queue.nextDueMs, Number.POSITIVE_INFINITY);
});

test("SendQueue.remove() takes an item out wherever it waits, once", () => {
  const [a, abort, head] = [item("a"), item("abort", 1_000, true), item("head")];
  const queue = queueOf(a, abort);
  queue.hold(head);
  for (const each of [head, abort, a]) {
    assert.equal(queue.remove(each), true);
    assert.equal(queue.remove(each), false);
  }
  assert.equal(queue.isEmpty, true);
});

test("SendQueue.next() gives nothing while the head is recorded, and the head before all others then", () => {
  const queue = queueOf(item("a"), item("abort", 1_000, true));
  queue.hold(item("head", 200));
  assert.equal(queue.next(), undefined);
  assert.equal(queue.hasReady, false);
  assert.equal(queue.isEmpty, false);
  assert.equal(queue.size, 2, "the head isn't among those that wait");
  assert.equal(queue.nextDueMs, 200, "the head may wait too long as well");
  queue.headRecorded();
  assert.equal(queue.hasReady, true);
  assert.equal(queue.next()?.name, "head");
  assert.equal(queue.next()?.name, "abort");
});

test("SendQueue.next() gives background items behind all others, however early they came, and their repetition too", () => {
  const queue = queueOf(asked("question 1"), asked("question 2"), item("a"), item("abort", 1_000, true));
  queue.putFirst(asked("repeated"));
  assert.equal(queue.hasReady, true);
  assert.equal(queue.next()?.name, "abort");
  queue.add(item("b"));
  assert.equal(names(queue.takeAll()), "a b repeated question 1 question 2");
  assert.equal(queue.isEmpty, true);
});

test("SendQueue.add() keeps places of background items and of callers apart", () => {
  const queue = new SendQueue<Named>(1);
  queue.add(asked("question 1"));
  assert.deepEqual([queue.size, queue.isEmpty, queue.hasReady], [0, false, true]);
  assert.throws(() => queue.add(asked("question 2")), /1 are waiting, which is the limit/);
  queue.add(item("a"));
  assert.throws(() => queue.add(item("b")), /which is the limit/);
  assert.equal(names(queue.takeAll()), "a question 1");
});

test("SendQueue.expired() and remove() reach background items, and nextDueMs counts them", () => {
  const question = asked("question", 200);
  const queue = queueOf(item("a", 500), question);
  assert.equal(queue.nextDueMs, 200);
  assert.equal(names(queue.expired(200)), "question");
  assert.equal(queue.remove(question), true);
  assert.equal(queue.nextDueMs, 500);
});

test("SendQueue.remove() leaves all others where they are", () => {
  const items = ["a", "b", "c"].map((name) => item(name));
  const queue = queueOf(...items);
  assert.equal(queue.remove(item("d")), false);
  assert.equal(queue.remove(items[1] ?? item("")), true);
  assert.equal(names(queue.takeAll()), "a c");
});

test("SendQueue.hasReady is true with one item of any kind, and false with none", () => {
  assert.equal(queueOf().hasReady, false);
  for (const each of [item("a"), item("abort", 1_000, true), asked("question")]) {
    assert.equal(queueOf(each).hasReady, true);
    assert.equal(queueOf(each).isEmpty, false);
  }
});

test("SendQueue.takeAll() gives the head first, recorded or not, and the next item isn't taken for a recorded one", () => {
  for (const isRecorded of [false, true]) {
    const queue = queueOf(item("a"));
    queue.hold(item("head"));
    if (isRecorded) queue.headRecorded();
    assert.equal(names(queue.expired(1_000)), "head a");
    assert.equal(names(queue.takeAll()), "head a");
    assert.deepEqual([queue.isEmpty, queue.isHeadReady, queue.head], [true, false, undefined]);
    queue.hold(item("next"));
    assert.deepEqual([queue.isHeadReady, queue.next()], [false, undefined]);
  }
});
