import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { answering } from "../support/terminal.ts";
import { withBridge } from "../support/with-bridge.ts";

const sale = (id: string) => JSON.stringify({ pay_id: id, amount: 1, currency_name: "EUR" });

test("bridge says unknown at once on an unplug mid-exchange, not-sent while unplugged, and works after the replug", async () => {
  const good = answering(({ text }) => JSON.stringify({ status: "success", echo: /"pay_id":"([^"]+)"/.exec(text)?.[1] }));
  await withBridge({ services: { bank: {} } }, good, async ({ bridge, terminal }) => {
    for (let round = 0; round < 3; round++) {
      let pulled = 0;
      terminal.behaviour = () => {
        pulled = performance.now();
        terminal.unplug();
      };
      const mark = bridge.log.length;
      const lost = await bridge.post("bank", "/sale", sale(`LOST-${round}`));
      assert.equal(lost.headers["x-posline-outcome"], "unknown");
      assert.equal(lost.status, 502);
      assert.ok(performance.now() - pulled < 1_000, "the till learned of it at once, not by a time-out of 30 s");
      await bridge.state("till", "down", mark);
      const refused = await bridge.post("bank", "/sale", sale(`REFUSED-${round}`));
      assert.equal(refused.headers["x-posline-outcome"], "not-sent");
      assert.equal(refused.status, 503);
      assert.ok(refused.ms < 1_000, "a line that is down refuses at once");
      // Long enough for the longest pause between two attempts.
      await pause(round === 0 ? 2_500 : 50);
      terminal.behaviour = good;
      terminal.plug();
      const plugged = performance.now();
      let answer = await bridge.post("bank", "/sale", sale(`AFTER-${round}`));
      while (answer.headers["x-posline-outcome"] !== "answered" && performance.now() - plugged < 3_500) {
        await pause(20);
        answer = await bridge.post("bank", "/sale", sale(`AFTER-${round}`));
      }
      assert.match(answer.text, new RegExp(`AFTER-${round}`), "the first call after the replug succeeds within 3.5 s");
      assert.equal(
        terminal.calls.some(({ text }) => text.includes("REFUSED")),
        false,
        "what was refused while unplugged is never sent",
      );
    }
    assert.equal(bridge.child.exitCode, null, "it is still the same process");
  });
});
