import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { blocks, page } from "../../../test/e2e/docs.ts";
import { type Box, checkOf, endedAs } from "../box.ts";
import { must, need, packages } from "../host.ts";
import { assertNothingLost, type Load, soldMore, underLoad } from "../load.ts";
import { newerPackage, packageOf, repositoryWith } from "../packages.ts";
import { type BoxProof, seconds, spread } from "../proof.ts";

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
    const { status, outcome } = await endedAs(sale.ended, 200, "answered");
    assert.equal((await restarting.ended).code, 0);
    const next = await waiting.ended;
    figure(
      `a sale in flight: ${status} ${outcome}; asked while it stopped: ${next.status} ${next.outcome} after ${seconds(next.ms)}`,
    );
    assert.notEqual(next.status, 0, "who asks meanwhile is answered, too");
  },
};

/** How often the package is changed under load, every other time back: a change takes a minute and more where all is emulated. */
const changes = Number(process.env["POSLINE_VM_CHANGES"] ?? 6);
const changeMsMax = 300_000;

/** The folder of the repository in the box: no web server is needed for what apt does with it. */
const shelf = "/srv/apt";

/** What a box has of a repository. */
const files = {
  key: "/etc/apt/keyrings/posline.gpg",
  source: "/etc/apt/sources.list.d/posline.list",
  upgrades: "/etc/apt/apt.conf.d/52posline",
  pin: "/etc/apt/preferences.d/posline",
} as const;

export const upgrade: BoxProof = {
  name: "upgrade",
  shows: `${changes} upgrades and ways back from a repository under load: no connection refused or lost, nothing twice, the box's own file stays`,
  async run({ box, figure }) {
    need(packages.repository);
    const { guest } = box;
    const config = await guest.sh("cat /etc/posline/posline.json");
    const old = await versionIn(box);
    const steps = fleetSteps(old);
    const tookMs: Record<"forth" | "back", number[]> = { forth: [], back: [] };
    try {
      await offer(box, steps.suite);
      await guest.write(files.source, steps.source);
      await guest.sh("apt-get -q update", changeMsMax);
      await heldBack(box, steps.origins, figure);
      await guest.write(files.upgrades, steps.upgrades);
      const load = await underLoad(box, "G", async () => {
        for (let n = 0; n < changes; n++) {
          const way = n % 2 === 0 ? "forth" : "back";
          const began = performance.now();
          if (way === "back") await guest.write(files.pin, steps.pin);
          // The first one as the timer runs it.
          const forth = n === 0 ? "unattended-upgrade" : "apt-get -qy install posline";
          const said = await guest.sh(way === "back" ? steps.back : forth, changeMsMax);
          tookMs[way].push(performance.now() - began);
          assert.equal((await versionIn(box)) === old, way === "back", `change ${n + 1} of ${changes}: ${said}`);
          await guest.sh(`rm -f ${files.pin}`);
          await soldMore(box, "G-", 8);
        }
      });
      assert.equal(await guest.sh("cat /etc/posline/posline.json"), config, "the configuration stays");
      assert.notEqual(
        await guest.sh("cat /etc/posline/posline.json.dpkg-dist"),
        config,
        "another one was shipped, and put beside it",
      );
      figure(`${changes} changes of ${old}: an upgrade ${spread(tookMs.forth)}; a way back ${spread(tookMs.back)}`);
      figure(told(load));
      assertNothingLost(box, load);
      figure(`each of ${load.sales.length} sales is at the terminal as its till was told: none twice, none lost`);
    } finally {
      await guest.sh(`rm -rf ${shelf} ${Object.values(files).join(" ")}`);
    }
  },
};

/** Without dpkg's options nothing is changed: the box's own posline.json isn't as shipped, and the newer version ships another. */
async function heldBack(box: Box, origins: string, figure: (text: string) => void): Promise<void> {
  const { guest } = box;
  const conffiles = await guest.sh("dpkg-query --control-show posline conffiles");
  assert.equal(conffiles, "/etc/posline/posline.json", "dpkg looks after the configuration");
  const old = await versionIn(box);
  await guest.write(files.upgrades, origins);
  await guest.sh("unattended-upgrade", changeMsMax);
  assert.equal(await versionIn(box), old, "a version with another configuration waits for somebody to answer");
  const said = await guest.sh("grep conffile /var/log/unattended-upgrades/unattended-upgrades.log | tail -1");
  assert.match(said, /posline/);
  figure(`without Dpkg::Options, unattended-upgrade leaves ${old}, and its log says: ${said}`);
}

/** What docs/fleet.md tells an operator to write and to run, for a repository in the box and this older version. */
function fleetSteps(old: string) {
  const fleet = page("docs/fleet.md");
  const find = (language: string, text: string) => {
    const block = blocks(language, fleet).find((each) => each.includes(text));
    if (block === undefined) throw new Error(`Cannot go on: docs/fleet.md has no block with ${text}`);
    return block.replaceAll(/\b\d+\.\d+\.\d+\b/g, old);
  };
  const [, source, suite] = /`(deb \[signed-by=.*) https:\S+ (\S+) main`/.exec(fleet) ?? [];
  if (source === undefined || suite === undefined) throw new Error("Cannot go on: docs/fleet.md has no source of apt's");
  const upgrades = find("text", "Origins-Pattern");
  return {
    suite,
    source: `${source} file:${shelf} ${suite} main\n`,
    upgrades,
    /** Its first line alone. */
    origins: upgrades.replace(/^Dpkg::Options .*\n/m, ""),
    pin: find("text", "Pin-Priority"),
    // The guest's agent is root, and nobody answers there.
    back: find("sh", "--allow-downgrades").replaceAll("sudo apt ", "apt-get -qy ").trim().replaceAll("\n", " && "),
  };
}

/** Puts a repository into the box that has the package as it is, and a newer one. */
async function offer({ guest }: Box, suite: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "posline-repository-"));
  try {
    const older = await packageOf("amd64");
    const repository = repositoryWith([older, newerPackage(older, folder)], suite, folder);
    must(["tar", "-C", repository, "-cf", join(folder, "apt.tar"), "."]);
    await guest.put(join(folder, "apt.tar"), "/root/apt.tar");
    await guest.sh(`mkdir -p ${shelf} && tar -C ${shelf} --no-same-owner -xf /root/apt.tar`);
    await guest.sh(`mkdir -p /etc/apt/keyrings && cp ${shelf}/posline.gpg ${files.key}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The package's version that is installed. */
const versionIn = ({ guest }: Box) => guest.sh("dpkg -s posline | sed -n 's/^Version: //p'");
