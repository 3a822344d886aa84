import assert from "node:assert/strict";
import { checkOf, saleOf } from "../box.ts";
import { type BoxProof, seconds } from "../proof.ts";

/** Boots: with nothing on the cable, and after the power went away in the middle of a sale. */

export const absent: BoxProof = {
  name: "absent",
  shows: "no device at boot: the ports answer, and the first call after it is plugged in works",
  async run({ box, figure }) {
    await box.guest.sh("sync");
    await box.terminal.unplug();
    await box.machine.off();
    figure(`booted in ${seconds(await box.machine.boot())}`);
    await box.guest.until("systemctl is-active posline.service", /^active$/);
    const refused = await box.call("bank", "/check", checkOf("READY"));
    assert.deepEqual([refused.status, refused.outcome], [503, "not-sent"], refused.body.toString());
    const { restarts } = await box.vitals();
    assert.equal(restarts, 0, "a device that isn't there is no reason to restart");
    const answered = box.answers("READY");
    box.terminal.plug();
    figure(`503 not-sent until the device came, answered ${seconds(await answered)} after the plug`);
  },
};

const answeredBefore = 5;

export const power: BoxProof = {
  name: "power",
  shows: "power cut mid-sale: after boot the journal has that sale as unknown, and nothing is lost of what was answered",
  async run({ box, figure }) {
    const { guest, machine, terminal } = box;
    const keys = Array.from({ length: answeredBefore }, (_, n) => `P-${n}`);
    for (const key of keys) {
      const { status, body } = await box.call("bank", "/sale", saleOf(key));
      assert.equal(status, 200, body.toString());
    }
    const cut = await box.saleInFlight("P-CUT");
    // Its connection goes with the box.
    cut.ended.catch(() => {});
    await machine.off();
    await terminal.unplug();
    terminal.release();
    const bootMs = await machine.boot();
    await guest.until("systemctl is-active posline.service", /^active$/);
    const unknown = await box.unknown();
    const { out: all } = await guest.run("posline journal");
    assert.match(unknown, /P-CUT/, "the sale in flight is unknown");
    for (const key of keys) {
      assert.doesNotMatch(unknown, new RegExp(`${key}\\b`), "an answered sale is not unknown");
      assert.match(all, new RegExp(`${key}\\b`), "an answered sale is in the journal");
    }
    assert.match(await box.log(100), /P-CUT/, "the log of the start names it");
    terminal.plug();
    await box.answers("P-CUT");
    assert.equal(terminal.count("/sale", '"P-CUT"'), 1, "it is never sent again");
    figure(`booted in ${seconds(bootMs)}; unknown: P-CUT alone; ${keys.length} answered sales are in the journal; sent once`);
    figure(unknown.split("\n").find((line) => line.includes("P-CUT")) ?? "");
  },
};
