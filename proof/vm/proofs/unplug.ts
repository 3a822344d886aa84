import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type Box, endedAs } from "../box.ts";
import { type BoxProof, seconds, spread } from "../proof.ts";

/** The adapter is pulled in the middle of sales, and comes back under the same or another number. */

/** Milliseconds until a call works after the device is back, beside what it takes here to ask three times; the 66 questions of a row take 50 ms each here. */
const backMs = 7_000;
/** Rounds out of `rounds` after which memory must not grow any more: until then V8 finds the size of its heap. */
const warmRounds = (rounds: number) => Math.floor(rounds / 2);
const growthKb = 4_096;

export const unplug: BoxProof = {
  name: "unplug",
  shows: "unplugged mid-exchange: unknown at once; back, under another number too: the next call works; nothing leaks or spins",
  isShort: true,
  async run({ box, isShort, figure }) {
    const rounds = isShort ? 3 : 20;
    const lost: number[] = [];
    const back: number[] = [];
    const devices = new Set<string>();
    const before = await box.vitals();
    let warm = before;
    for (let round = 1; round <= rounds; round++) {
      if (round === warmRounds(rounds) + 1) warm = await box.vitals();
      const {
        lostMs,
        backMs: ms,
        device,
      } = await roundTrip(box, `U-${round}`, { isTaken: round % 2 === 0, isComingIn: round % 3 === 0 });
      lost.push(lostMs);
      back.push(ms);
      devices.add(device);
    }
    const after = await box.vitals();
    figure(`unplugged mid-exchange, 502 unknown: ${spread(lost)}`);
    figure(`plugged again (as ${[...devices].sort().join(", ")}), next call answered: ${spread(back)}`);
    figure(
      `${rounds} rounds: process ${before.pid} to ${after.pid}, descriptors ${warm.descriptors} to ${after.descriptors}, ` +
        `own memory ${warm.rssAnonKb} to ${after.rssAnonKb} kB`,
    );
    assert.equal(devices.size, 2, "the device comes back under another number, too");
    assert.deepEqual([after.pid, after.restarts], [before.pid, before.restarts], "the service goes on without a restart");
    assert.ok(after.descriptors <= warm.descriptors, "no descriptor stays open");
    assert.ok(after.rssAnonKb - warm.rssAnonKb < growthKb, "memory doesn't grow");
    const told = await box.guest.sh("posline logs --outcome unknown -n 1");
    assert.match(told, /U-/, "the technician's view has the last of them");
    figure(`posline logs --outcome unknown: ${told.split("\n").at(-1)}`);
    await assertIdleUnplugged(box, isShort ? 10_000 : 20_000, figure);
  },
};

interface Round {
  readonly lostMs: number;
  readonly backMs: number;
  /** Where the device's link leads to. */
  readonly device: string;
}

interface Manner {
  /** Another process keeps the old device open, so that it can't come back under its number. */
  readonly isTaken: boolean;
  /** The answer is coming in when the cable is pulled. */
  readonly isComingIn: boolean;
}

async function roundTrip(box: Box, key: string, { isTaken, isComingIn }: Manner): Promise<Round> {
  const { guest, terminal } = box;
  const taken = isTaken ? await guest.start(`exec 9<>${await box.device()}; exec sleep 600`, 900_000) : undefined;
  const sale = await (isComingIn ? box.saleComingIn(key) : box.saleInFlight(key));
  const pulled = performance.now();
  await terminal.unplug();
  await endedAs(sale.ended, 502, "unknown");
  const lostMs = performance.now() - pulled;
  terminal.release();
  const asked = performance.now();
  await endedAs(box.call("bank", "/check", `{"pay_id":"${key}"}`), 503, "not-sent");
  // What it costs here to start a shell and curl in an emulated box, and to hear of their end.
  const askingMs = performance.now() - asked;
  const answered = box.answers(key);
  // The shell that asks again and again is under way.
  await sleep(500);
  const plugged = performance.now();
  terminal.plug();
  await answered;
  const ms = performance.now() - plugged;
  // A row of questions beside the asking itself, each as slow as the box is emulated.
  const limitMs = backMs + 3 * askingMs;
  assert.ok(ms <= limitMs, `the next call must work within ${limitMs} ms: ${ms}, and asking took ${askingMs}`);
  assert.equal(terminal.count("/sale", `"${key}"`), 1, "a sale is never sent twice");
  const device = await box.device();
  if (taken !== undefined) await guest.sh(`kill ${taken.pid}`);
  return { lostMs, backMs: ms, device };
}

/**
 * How many times the processor time of the yardstick the service may use while there is no device. The service looks for its device twice a
 * second, and uses one to three times as much; a service that spins, or looks a hundred times a second, uses dozens of times as much.
 */
const idleTimes = 8;

/** A bare Node that looks for a file four times a second; after two seconds, its first compilations behind it, it says that it is there. */
const yardstick =
  'let n = 0; setInterval(() => { fs.promises.access("/dev/none").catch(() => {}); if (++n === 8) console.log("there"); }, 250)';

/** Measured against another process of the same guest at the same time: how fast emulation is varies with the machine, and with its load. */
async function assertIdleUnplugged(box: Box, forMs: number, figure: (text: string) => void): Promise<void> {
  const { guest } = box;
  const file = "/run/yardstick";
  const idle = await guest.start(`exec node -e '${yardstick}' > ${file}`, 900_000);
  // The serial library's own reading spins for ever when a tty hangs up while data comes.
  const sale = await box.saleComingIn("U-IDLE");
  await box.terminal.unplug();
  box.terminal.release();
  assert.equal((await sale.ended).status, 502);
  await guest.until(`cat ${file}`, /there/);
  const { pid } = await box.vitals();
  const used = () => box.cpuMs(pid, idle.pid);
  await sleep(2_000);
  const [[service = 0, bare = 0], began] = [await used(), performance.now()];
  await sleep(forMs);
  const [[serviceEnd = 0, bareEnd = 0], ended] = [await used(), performance.now()];
  await guest.sh(`kill ${idle.pid}`);
  const [serviceMs, bareMs] = [serviceEnd - service, bareEnd - bare];
  figure(
    `unplugged while data came, for ${seconds(ended - began)}: ${serviceMs} ms of an emulated core; ` +
      `${bareMs} ms that of a Node that looks for a file four times a second`,
  );
  assert.ok(serviceMs <= idleTimes * bareMs, `the processor is idle while unplugged: ${idleTimes} times as much at most`);
  box.terminal.plug();
}
