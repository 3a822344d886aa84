import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type Box, checkOf } from "../box.ts";
import { assertNothingLost, type Load, soldMore, underLoad } from "../load.ts";
import { newerPackage, packageOf } from "../packages.ts";
import { type BoxProof, seconds } from "../proof.ts";

/** Tills ask all the time while the service is restarted and the package changed. */

const told = ({ calls, outcomes, refusals, errors, sales, slowestMs }: Load) =>
  `${calls} calls, ${sales.length} of them sales: ${countsOf(outcomes)}; errors: ${countsOf(errors)}; slowest ${seconds(slowestMs)}` +
  `; 503 for: ${countsOf(refusals)}`;

const countsOf = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts)
    .map(([name, count]) => `${count} × ${name}`)
    .join(", ") || "none";

const restarts = 5;
/** Milliseconds that a sale is in flight while the service is told to stop. */
const inFlightMs = 3_000;

export const restart: BoxProof = {
  name: "restart",
  shows: "systemctl restart under load: no connection refused or lost, each sale sent once or told as not sent",
  async run({ box, figure }) {
    const load = await underLoad(box, "R", async () => {
      for (let n = 0; n < restarts; n++) {
        await box.guest.sh("systemctl restart posline");
        await soldMore(box, "R-", 8);
      }
    });
    figure(`${restarts} restarts: ${told(load)}`);
    assertNothingLost(box, load);

    const sale = await box.saleInFlight("S-1");
    const restarting = await box.guest.start("systemctl restart posline");
    const waiting = await box.calling("bank", "/check", checkOf("S-1"));
    await sleep(inFlightMs);
    box.terminal.release();
    const { status, outcome, body } = await sale.ended;
    assert.deepEqual([status, outcome], [200, "answered"], body.toString());
    assert.equal((await restarting.ended).code, 0);
    const next = await waiting.ended;
    figure(
      `a sale in flight: ${status} ${outcome}; asked while it stopped: ${next.status} ${next.outcome} after ${seconds(next.ms)}`,
    );
    assert.notEqual(next.status, 0, "who asks meanwhile is answered, too");
  },
};

export const upgrade: BoxProof = {
  name: "upgrade",
  shows: "a package upgrade under load: no connection refused or lost, and the configuration stays",
  async run({ box, figure }) {
    const { guest } = box;
    await guest.put(newerPackage(packageOf("amd64")), "/root/newer.deb");
    const config = await guest.sh("cat /etc/posline/posline.json");
    const old = await versionIn(box);
    const load = await underLoad(box, "G", async () => {
      await guest.sh("DEBIAN_FRONTEND=noninteractive dpkg -i /root/newer.deb </dev/null", 600_000);
      await soldMore(box, "G-", 8);
    });
    const now = await versionIn(box);
    assert.notEqual(now, old);
    assert.equal(await guest.sh("cat /etc/posline/posline.json"), config, "the configuration stays");
    figure(`${old} to ${now}: ${told(load)}`);
    assertNothingLost(box, load);
  },
};

/** The package's version that is installed. */
const versionIn = ({ guest }: Box) => guest.sh("dpkg -s posline | sed -n 's/^Version: //p'");
