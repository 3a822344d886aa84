import assert from "node:assert/strict";
import { test } from "node:test";
import { ptyBench } from "../../line/benches.ts";
import { testExchange } from "../../line/exchange.ts";
import { ending, hasEnded, lineOver, requestFor } from "../../line/lines.ts";
import { until } from "../../support/until.ts";

/** Tests src/line/line.ts. */

testExchange(ptyBench, "a real tty");

test("Line that is down refuses at once, with the reason: nothing was sent", async (t) => {
  const bench = ptyBench({ path: "/dev/posline-absent" });
  const { line } = lineOver(bench.open);
  t.after(() => line.stop(0));
  t.after(() => bench.dispose());
  // Whether there is a device nobody knows before the first attempt has ended.
  const early = ending(line, requestFor("A"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(!hasEnded(early));
  line.start();
  await until(() => line.reason.includes("there is no device"), "the reason");
  assert.match(early.fault?.message ?? "", /it is down \(there is no device/);
  assert.equal(early.fault?.outcome, "not-sent");
  await assert.rejects(line.run(requestFor("A")), {
    kind: "unavailable",
    outcome: "not-sent",
    message: /^Cannot send to line till: it is down \(there is no device \/dev\/posline-absent: check the cable/,
  });
});
