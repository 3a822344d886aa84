import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { endedAs } from "../box.ts";
import { type BoxProof, seconds } from "../proof.ts";

/** A box without a clock of its own is told the time while a customer's card is in the terminal. */

export const clock: BoxProof = {
  name: "clock",
  shows: "the wall clock is stepped by years mid-exchange, forth and back: no time-out fires",
  async run({ box, figure }) {
    const { guest, terminal } = box;
    for (const step of ["+6 years", "-11 years"]) {
      const key = `C${step.replace(" ", "")}`;
      const sale = await box.saleInFlight(key);
      const before = await guest.sh("date -u +%F");
      await guest.sh(`date -s '${step}'`);
      const after = await guest.sh("date -u +%F");
      await sleep(3_000);
      terminal.release();
      const { ms } = await endedAs(sale.ended, 200, "answered");
      figure(`${before} to ${after}: 200 answered, after ${seconds(ms)}`);
    }
    await guest.sh(`date -s @${Math.floor(Date.now() / 1000)}`);
    const { restarts } = await box.vitals();
    assert.equal(restarts, 0, "the watchdog isn't misled either");
  },
};
