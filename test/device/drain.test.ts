import assert from "node:assert/strict";
import { test } from "node:test";
import { type Drainable, drained, drainsMax } from "../../src/device/drain.ts";
import { virtualTime } from "../support/virtual-time.ts";

/** How long is waited for what was written to leave, with the clock in the test's hand. */

const time = virtualTime();

/** A port that drains when a test says so. */
class SlowPort implements Drainable {
  /** Undefined where it has no such signal. */
  cts: boolean | undefined = true;
  drains = 0;
  /** Ends the drain: well, or as on a device that is gone. */
  end: (error?: Error) => void = () => {};

  drain(): Promise<void> {
    this.drains++;
    return new Promise((resolve, reject) => {
      this.end = (error) => (error === undefined ? resolve() : reject(error));
    });
  }

  async get(): Promise<{ readonly cts: boolean }> {
    if (this.cts === undefined) throw new Error("ENOTTY: inappropriate ioctl for device");
    return { cts: this.cts };
  }
}

/** Begins to drain, and gives how that ended: undefined until it has. */
function draining(port: SlowPort, limitMs: number, rtscts = false): { isEmpty?: boolean } {
  const end: { isEmpty?: boolean } = {};
  void drained(port, time.nowMs + limitMs, rtscts).then((isEmpty) => {
    end.isEmpty = isEmpty;
  });
  return end;
}

test("drained() is true once the system has sent all, and false where that fails", async () => {
  const [well, gone] = [new SlowPort(), new SlowPort()];
  const ends = [draining(well, 1_000), draining(gone, 1_000)];
  await time.advance(500);
  assert.deepEqual(ends, [{}, {}]);
  well.end();
  gone.end(new Error("EIO: i/o error"));
  await time.settle();
  assert.deepEqual(ends, [{ isEmpty: true }, { isEmpty: false }]);
});

test("drained() is false at its limit, and lets another port have its place when the drain has ended", async () => {
  const stuck = Array.from({ length: drainsMax }, () => new SlowPort());
  const ends = stuck.map((port) => draining(port, 1_000));
  const last = new SlowPort();
  const lastEnd = draining(last, 3_000);
  await time.advance(1_001);
  assert.ok(ends.every(({ isEmpty }) => isEmpty === false));
  assert.equal(last.drains, 0, "the threads are taken");
  for (const port of stuck) port.end();
  await time.settle();
  assert.equal(last.drains, 1);
  last.end();
  await time.settle();
  assert.deepEqual(lastEnd, { isEmpty: true });
});

test("drained() never drains while CTS is off, so nothing blocks for ever, and is false at its limit", async () => {
  const port = new SlowPort();
  port.cts = false;
  const end = draining(port, 1_000, true);
  await time.advance(1_001);
  assert.deepEqual(end, { isEmpty: false });
  await time.advance(1_000);
  assert.equal(port.drains, 0);
});

test("drained() drains a port that has no CTS, or whose CTS holds nothing up", async () => {
  for (const [cts, rtscts] of [
    [undefined, true],
    [false, false],
  ] as const) {
    const port = new SlowPort();
    port.cts = cts;
    const end = draining(port, 1_000, rtscts);
    await time.settle();
    port.end();
    await time.settle();
    assert.deepEqual(end, { isEmpty: true });
  }
});
