import assert from "node:assert/strict";
import { checkOf } from "../box.ts";
import { type BoxProof, seconds } from "../proof.ts";

/** The process stands still, or is killed, while a sale is in flight. */

export const watchdog: BoxProof = {
  name: "watchdog",
  shows: "a process that stands still is restarted by systemd, and calls work again",
  async run({ box, figure }) {
    const { guest } = box;
    const before = await box.vitals();
    const period = await guest.sh("systemctl show -P WatchdogUSec posline.service");
    const began = performance.now();
    await guest.sh(`kill -STOP ${before.pid}`);
    await guest.until("systemctl show -P NRestarts posline.service", new RegExp(`^${before.restarts + 1}$`), 180_000);
    await box.answers("READY", 120_000);
    figure(`watchdog ${period}: stopped, and answering again after ${seconds(performance.now() - began)}`);
    assert.match(await guest.sh("journalctl -o cat -u posline -n 60 --no-pager"), /[Ww]atchdog/);
  },
};

export const killed: BoxProof = {
  name: "killed",
  shows: "kill -9 mid-exchange: restarted, the sale unknown and then settled, the late answer given to nobody",
  async run({ box, figure }) {
    const { guest, terminal } = box;
    const before = await box.vitals();
    const sale = await box.saleInFlight("K-1");
    const began = performance.now();
    await guest.sh(`kill -9 ${before.pid}`);
    const { status } = await sale.ended;
    assert.equal(status, 0, "nobody can answer for a process that is gone");
    await guest.until("systemctl show -P NRestarts posline.service", new RegExp(`^${before.restarts + 1}$`));
    // What it would have said to the killed process comes when the next one may already be asking.
    terminal.release();
    const asked = terminal.next("/check", "K-1");
    await box.answers("K-1", 120_000);
    const answeredMs = performance.now() - began;
    assert.match((await asked).answer?.toString() ?? "", /"data"/);
    const next = terminal.next("/check", "K-1");
    const { body } = await box.call("bank", "/check", checkOf("K-1"));
    assert.deepEqual(body, (await next).answer, "the answer to this question, and no earlier one");
    const named = (await box.log(100)).split("\n").find((line) => /outcome is unknown/.test(line) && /"K-1"/.test(line));
    assert.ok(named !== undefined, "the log of the start names it as unknown");
    // The two questions above have settled it, or posline's own has.
    const settledMs = await box.settled(["K-1"]);
    assert.deepEqual(await box.recorded("K-1"), [{ outcome: "settled", result: "approved" }]);
    const told = JSON.parse(await guest.sh("curl -sf http://127.0.0.1:8880/status"));
    assert.doesNotMatch(JSON.stringify(told.journal.unknown), /"K-1"/, "the status doesn't list it any more");
    assert.equal(terminal.count("/sale", '"K-1"'), 1, "it is never sent again");
    figure(`killed, restarted, and answering ${seconds(answeredMs)} later; settled within ${seconds(settledMs)} of that:`);
    figure(named);
  },
};
