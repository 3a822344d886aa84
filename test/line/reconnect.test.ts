import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection, ConnectionHandler, OpenTransport } from "../../src/device/transport.ts";
import { closeMs, OpenError } from "../../src/device/transport.ts";
import { openMs, reopenMs } from "../../src/line/limits.ts";
import { Reconnector } from "../../src/line/reconnect.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { gate } from "../support/promises.ts";
import { virtualTime } from "../support/virtual-time.ts";

const time = virtualTime();

const handler: ConnectionHandler = { space: () => Buffer.alloc(1), onBytes: () => {}, onWritten: () => {}, onClosed: () => {} };

class TestOpening implements Connection {
  readonly isAccepted: boolean;
  wroteBytes = 0;
  closed = 0;

  constructor(isAccepted = false) {
    this.isAccepted = isAccepted;
  }

  write(): void {}
  async close(): Promise<void> {
    this.closed++;
  }
}

function openerOf(open: OpenTransport): { opener: Reconnector; told: string[] } {
  const told: string[] = [];
  const opener = new Reconnector(open, () => handler, {
    opened: () => told.push("opened"),
    failed: (reason) => told.push(reason),
  });
  return { opener, told };
}

test("Reconnector tries for ever, with pauses that double up to the longest, which leaves time to open within a second", async () => {
  const attempts: number[] = [];
  const { opener, told } = openerOf(async () => {
    attempts.push(time.nowMs);
    throw new OpenError("there is no device");
  });
  opener.start();
  await time.advance(20_000);
  opener.stop();
  const pauses = attempts.slice(1).map((at, index) => at - (attempts[index] ?? 0));
  assert.deepEqual(pauses.slice(0, 7), [100, 200, 400, 500, 500, 500, 500]);
  assert.equal(told.length, attempts.length);
  assert.ok(told.every((reason) => reason === "there is no device"));
});

test("Reconnector opens again reopenMs.first after the loss of what had lasted, once it is closed", async () => {
  let attempts = 0;
  const { opener } = openerOf(async () => {
    attempts++;
    return new TestOpening();
  });
  opener.start();
  await time.advance(reopenMs.longest);
  const closed = gate();
  opener.again(closed.passed);
  await time.advance(60_000);
  assert.equal(attempts, 1, "the old descriptor is held still");
  closed.open();
  await time.advance(reopenMs.first - 1);
  assert.equal(attempts, 1);
  await time.advance(1);
  assert.equal(attempts, 2);
  opener.stop();
});

test("Reconnector slows down for a device that is lost as soon as it opens", async () => {
  let attempts = 0;
  const { opener } = openerOf(async () => {
    attempts++;
    setTimeout(() => opener.again(Promise.resolve()), 10);
    return new TestOpening();
  });
  opener.start();
  await time.advance(20_000);
  opener.stop();
  // Four while it slows down, then one each `reopenMs.longest`.
  assert.ok(attempts > 34 && attempts < 44, `${attempts} attempts in 20 s`);
});

test("Reconnector awaits the next connection at once after one that the far end opened, and pauses if it can't be awaited", async () => {
  const attempts: number[] = [];
  const { opener } = openerOf(async () => {
    attempts.push(time.nowMs);
    if (attempts.length > 3) throw new OpenError("it is unplugged");
    return new TestOpening(true);
  });
  opener.start();
  const startMs = time.nowMs;
  for (let n = 0; n < 3; n++) {
    await time.advance(10);
    opener.again(Promise.resolve());
  }
  await time.advance(1_000);
  opener.stop();
  assertMapped(attempts.slice(0, 6), [0, 10, 20, 30, 130, 330], (at) => at - startMs);
});

test("Reconnector reports an attempt that doesn't return, makes no second one, and takes it when it does", async () => {
  let attempts = 0;
  let answer: (opening: Connection) => void = () => {};
  const { opener, told } = openerOf(() => {
    attempts++;
    return new Promise((resolve) => {
      answer = resolve;
    });
  });
  opener.start();
  await time.advance(openMs);
  assert.deepEqual(told, [`opening the device takes longer than ${openMs / 1000} s`]);
  await time.advance(60_000);
  assert.equal(attempts, 1);
  answer(new TestOpening());
  await time.settle();
  assert.deepEqual(told.slice(1), ["opened"]);
  opener.stop();
});

test("Reconnector.stop() tries no more, and closes what opens after it", async () => {
  const opening = new TestOpening();
  let answer: (opening: Connection) => void = () => {};
  const { opener, told } = openerOf(
    () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  );
  opener.start();
  opener.stop();
  answer(opening);
  await time.advance(60_000);
  assert.equal(opening.closed, 1);
  assert.deepEqual(told, ["opening the device takes longer than 5 s"].slice(1));
});

test("Reconnector tells an error that is no OpenError in its own words", async () => {
  const { opener, told } = openerOf(async () => {
    throw new TypeError("boom");
  });
  opener.start();
  await time.settle();
  opener.stop();
  assert.deepEqual(told, ["the device cannot be opened: TypeError: boom"]);
});

test("Reconnector begins with the shortest pause again after an opening that lasted reopenMs.longest, and after no shorter one", async () => {
  for (const [lastedMs, pauseMs] of [
    [reopenMs.longest, 100],
    [reopenMs.longest - 1, 400],
  ] as const) {
    const attempts: number[] = [];
    const { opener } = openerOf(async () => {
      attempts.push(time.nowMs);
      if (attempts.length < 3) throw new OpenError("there is no device");
      return new TestOpening();
    });
    opener.start();
    assert.ok(await time.until(() => attempts.length === 3));
    await time.advance(lastedMs);
    const lostMs = time.nowMs;
    opener.again(Promise.resolve());
    assert.ok(await time.until(() => attempts.length === 4));
    assert.equal((attempts[3] ?? 0) - lostMs, pauseMs);
    opener.stop();
  }
});

test("Reconnector says nothing of an opening that returned in time", async () => {
  const { opener, told } = openerOf(async () => new TestOpening());
  opener.start();
  await time.advance(60_000);
  assert.deepEqual(told, ["opened"]);
  opener.stop();
});

test("Reconnector.overdueMs() counts from when the next attempt should have begun, and not while one is under way", async () => {
  const attempts: { readonly answer: (opening: Connection) => void; readonly fail: (error: Error) => void }[] = [];
  const { opener } = openerOf(() => new Promise((answer, fail) => attempts.push({ answer, fail })));
  const overdueIn = (ms: number) => opener.overdueMs(time.nowMs + ms);
  opener.start();
  await time.advance(60_000);
  assert.equal(overdueIn(0), 0, "an attempt is the system's affair");
  attempts[0]?.fail(new OpenError("there is no device"));
  await time.settle();
  assert.deepEqual([overdueIn(reopenMs.first), overdueIn(reopenMs.first + 50)], [0, 50]);
  await time.advance(reopenMs.first);
  assert.equal(attempts.length, 2);
  assert.equal(overdueIn(60_000), 0, "the second is under way");
  attempts[1]?.answer(new TestOpening());
  await time.advance(reopenMs.longest);
  opener.again(new Promise(() => {}));
  assert.deepEqual([overdueIn(closeMs), overdueIn(closeMs + 50)], [0, 50], "a descriptor that isn't let go of");
  opener.stop();
  assert.equal(overdueIn(60_000), 0);
});

test("Reconnector.stop() leaves no timer and nothing due behind, whenever it comes", async () => {
  time.forgetTimers();
  let fail: (error: Error) => void = () => {};
  let attempts = 0;
  const { opener, told } = openerOf(() => {
    attempts++;
    return new Promise((_, reject) => {
      fail = reject;
    });
  });
  opener.start();
  await time.settle();
  fail(new OpenError("there is no device"));
  await time.settle();
  opener.stop();
  const other = openerOf(() => new Promise((_, reject) => (fail = reject)));
  other.opener.start();
  other.opener.stop();
  fail(new OpenError("there is no device"));
  await time.settle();
  const run = time.timersRun;
  await time.advance(60_000);
  opener.start();
  await time.settle();
  assert.deepEqual([time.timersRun - run, attempts, told.length, other.told.length], [0, 1, 1, 0]);
  assert.deepEqual([opener.overdueMs(time.nowMs), other.opener.overdueMs(time.nowMs)], [0, 0]);
});
