import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeDevice } from "../support/fake-device.ts";
import { watched } from "../support/promises.ts";
import { probeReply } from "../support/terminal.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { ending, lineOver, requestFor } from "./lines.ts";

/**
 * Tests src/line/line.ts.
 *
 * How a line ends while its terminal is still at work, with the clock in the test's hand.
 */

const time = virtualTime();

/** A line that has a sale out, which its terminal answers when `answer` is called. */
async function selling() {
  const device = new FakeDevice((framing, text) => {
    const probe = probeReply({ framing, text, number: 0 });
    if (probe !== undefined) device.reply(framing, probe);
  });
  const { line } = lineOver(device.open);
  line.start();
  assert.ok(await time.until(() => line.state === "idle"));
  const sale = ending(line, requestFor("A", { replyTimeoutMs: 180_000 }));
  await time.settle();
  return { line, sale, answer: () => device.reply("length", '{"status":"success","id":"A"}') };
}

test("Line.stop() without a limit lets a call end that takes its terminal minutes", async () => {
  const { line, sale, answer } = await selling();
  const stopped = watched(line.stop(Number.POSITIVE_INFINITY, "the configuration was changed"));
  await time.advance(170_000);
  assert.equal(stopped.isOver, false);
  await assert.rejects(line.run(requestFor("B")), { kind: "unavailable", message: /the configuration was changed/ });
  answer();
  await time.settle();
  assert.equal(sale.text, '{"status":"success","id":"A"}');
  assert.ok(await time.until(() => stopped.isOver));
});

test("Line.stop() without a limit ends with the call's own time-out", async () => {
  const { line, sale } = await selling();
  const stopped = line.stop(Number.POSITIVE_INFINITY, "the configuration was changed");
  await time.advance(181_000);
  await stopped;
  assert.equal(sale.fault?.kind, "timeout");
});

test("Line.stop() told again holds to the sooner end, and says why first told", async () => {
  const { line, sale } = await selling();
  const both = [line.stop(Number.POSITIVE_INFINITY, "the configuration was changed"), line.stop(60_000)];
  await time.advance(59_000);
  assert.deepEqual(sale, {}, "it goes on");
  await time.advance(2_000);
  await Promise.all(both);
  assert.equal(sale.fault?.outcome, "unknown");
  assert.match(sale.fault?.message ?? "", /the configuration was changed, and the reply had not come/);
});

test("Line.stop() leaves no timer behind", async () => {
  time.forgetTimers();
  const { line } = await selling();
  // Its last bytes reach the terminal.
  await time.advance(10);
  await line.stop(0);
  const run = time.timersRun;
  await time.advance(600_000);
  assert.equal(time.timersRun, run);
});
