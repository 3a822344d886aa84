import assert from "node:assert/strict";
import { type Box, type Called, checkOf, endedAs, saleOf } from "../box.ts";
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
    await endedAs(box.call("bank", "/check", checkOf("READY")), 503, "not-sent");
    const { restarts } = await box.vitals();
    assert.equal(restarts, 0, "a device that isn't there is no reason to restart");
    const answered = box.answers("READY");
    box.terminal.plug();
    figure(`503 not-sent until the device came, answered ${seconds(await answered)} after the plug`);
  },
};

const answeredBefore = 5;

/** Sales whose answers are missing when the power goes, and what the terminal made of them. */
const inDoubt = [
  { key: "P-PAID", amount: 1500, result: "approved" },
  { key: "P-DECLINED", amount: 1520, result: "declined" },
  { key: "P-LOST", amount: 1500, result: "failed" },
] as const;

/** The least that the service may be given: two of the sales have to be given up before the power goes. */
const replyTimeoutMs = 3_001;

/** Milliseconds that a start may take right after a boot, where nothing but emulation is at hand, and that is busy. */
const startMsMax = 240_000;

/** Milliseconds after the terminal's return in which the journal must have settled. */
const settledWithinMs = 60_000;

export const power: BoxProof = {
  name: "power",
  shows:
    "power cut with three sales in doubt: unknown after boot, settled within 60 s of the terminal's return, nothing sent again",
  async run({ box, figure }) {
    const { guest, machine, terminal } = box;
    await box.configure({}, { services: { bank: { line: "till", replyTimeoutMs } } });
    await guest.sh("systemctl restart posline.service");
    await box.answers("READY");
    const keys = Array.from({ length: answeredBefore }, (_, n) => `P-${n}`);
    for (const key of keys) {
      await endedAs(box.call("bank", "/sale", saleOf(key)), 200, "answered");
    }
    await cutWithSalesInDoubt(box);
    await terminal.unplug();
    terminal.release();
    const bootMs = await machine.boot();
    await guest.until("systemctl is-active posline.service", /^active$/, startMsMax);
    const unknown = await box.unknown();
    const { out: all } = await guest.run("posline journal");
    const log = await box.log(100);
    for (const { key } of inDoubt) {
      assert.match(unknown, new RegExp(`${key}\\b`), "a sale in doubt is unknown");
    }
    const named = inDoubt.filter(({ key }) => new RegExp(`"${key}".*in progress when posline stopped`).test(log));
    assert.equal(named.length, 1, "the log of the start names the one that was out");
    assert.match(log, /2 earlier operations have an unknown outcome: posline journal --unknown/);
    for (const key of keys) {
      assert.doesNotMatch(unknown, new RegExp(`${key}\\b`), "an answered sale is not unknown");
      assert.match(all, new RegExp(`${key}\\b`), "an answered sale is in the journal");
    }
    terminal.plug();
    const settledMs = await box.settled(
      inDoubt.map(({ key }) => key),
      settledWithinMs,
    );
    for (const { key, result } of inDoubt) {
      assert.deepEqual(await box.recorded(key), [{ outcome: "settled", result }], `${key} is settled as the terminal has it`);
      assert.equal(terminal.count("/sale", `"${key}"`), 1, `${key} is never sent again`);
    }
    figure(
      `booted in ${seconds(bootMs)}; unknown: ${inDoubt.length} sales in doubt; ${keys.length} answered sales are in the journal`,
    );
    figure(
      `settled ${seconds(settledMs)} after the terminal was back: ${inDoubt.map(({ result }) => result).join(", ")}; sent once each`,
    );
  },
};

/**
 * Cuts the power while the third of the sales is out and the first two have got no answer in time. They come at once, so that the line
 * is never free and posline asks about none of them before.
 */
async function cutWithSalesInDoubt(box: Box): Promise<void> {
  const { machine, terminal } = box;
  const ended = new Map<string, Promise<Called>>();
  terminal.hold("/sale");
  terminal.lose("P-LOST");
  let asked = terminal.next("/sale");
  for (const { key, amount } of inDoubt) {
    const call = await box.calling("bank", "/sale", saleOf(key, amount));
    // The last one's connection goes with the box.
    call.ended.catch(() => {});
    ended.set(`${key}"`, call.ended);
  }
  for (let given = 1; given < inDoubt.length; given++) {
    const { body } = await asked;
    const [, end] = [...ended].find(([key]) => body.includes(key)) ?? [];
    asked = terminal.next("/sale");
    await endedAs(end, 504, "unknown");
    // The answer that was held is late now, and lets the line go on; the one that was lost held nothing up, and the next sale may be there.
    if (!body.includes("P-LOST")) terminal.letOut();
  }
  await asked;
  await machine.off();
}
