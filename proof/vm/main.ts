import { parseArgs } from "node:util";
import { Box } from "./box.ts";
import { need, packages, Skipped } from "./host.ts";
import { foreignNode, imageOf } from "./image.ts";
import { packageOf } from "./packages.ts";
import { type Proof, seconds } from "./proof.ts";
import { arm } from "./proofs/arm.ts";
import { bookworm } from "./proofs/bookworm.ts";
import { clock } from "./proofs/clock.ts";
import { disk } from "./proofs/disk.ts";
import { drain } from "./proofs/drain.ts";
import { fleet } from "./proofs/fleet.ts";
import { gateway } from "./proofs/gateway.ts";
import { install } from "./proofs/install.ts";
import { killed, watchdog } from "./proofs/killed.ts";
import { network, ser2net } from "./proofs/network.ts";
import { absent, power } from "./proofs/power.ts";
import { reload } from "./proofs/reload.ts";
import { remove } from "./proofs/remove.ts";
import { restart, upgrade } from "./proofs/restart.ts";
import { setup } from "./proofs/setup.ts";
import { unplug } from "./proofs/unplug.ts";

/**
 * `npm run test:vm`: what only a real systemd, a real udev and a real ttyUSB0 can show. A clean Debian box is booted in QEMU, which
 * needs no hardware's help; the package is installed in it; and at the other end of its USB adapter's cable is posline's emulator.
 * One box is used for all, each proof beginning with the line clean.
 */

const proofs: readonly Proof[] = [
  ...[install, setup, unplug, reload, clock, restart, upgrade, watchdog, killed, disk, gateway, drain, network, ser2net],
  ...[absent, power, remove, bookworm, arm, fleet],
];

const usage = `npm run test:vm -- [--short] [--prepare] [--only NAME ...]
${proofs.map(({ name, shows, isShort }) => `  ${name.padEnd(10)} ${isShort === true ? "short" : "     "}  ${shows}`).join("\n")}`;

const { values } = parseArgs({
  options: {
    short: { type: "boolean" },
    prepare: { type: "boolean" },
    only: { type: "string", multiple: true },
    help: { type: "boolean" },
  },
});
const isShort = values.short === true;
const { only } = values;
const wanted = proofs.filter(({ name, isShort: short }) => only?.includes(name) ?? (!isShort || short === true));

if (values.help === true || wanted.length < (only?.length ?? 1)) {
  console.log(usage);
  process.exit(values.help === true ? 0 : 64);
}
process.exit(values.prepare === true ? await prepare() : await run());

/** How a proof ended; one is skipped where this machine, or Debian's mirror, hasn't got what it needs. */
type End = "shown" | "failed" | "skipped";

/** Makes what the short proofs are shown on, and keeps it: while something else is tested, it costs little time. */
async function prepare(): Promise<number> {
  need({ ...packages.machine, ...packages.arm });
  await imageOf("trixie");
  for (const architecture of ["arm64", "armhf"] as const) await foreignNode(architecture);
  return 0;
}

/** @returns the exit code: 1 when a proof failed. */
async function run(): Promise<number> {
  const began = performance.now();
  let box: Box | undefined;
  const beside = new Map<Proof, Promise<End>>();
  const ends: Record<End, string[]> = { shown: [], failed: [], skipped: [] };
  try {
    need(packages.machine);
    for (const proof of wanted) if (proof.isBare === true && proof.isBeside === true) beside.set(proof, shownLater(proof));
    for (const proof of wanted) {
      if (proof.isBare !== true) box ??= await installed();
      ends[await (beside.get(proof) ?? shown(proof, box, console.log))].push(proof.name);
    }
  } catch (error) {
    if (!(error instanceof Skipped)) throw error;
    console.log(`test:vm is skipped: ${error.message}`);
    return 0;
  } finally {
    await Promise.all([...beside.values(), box?.remove()]);
  }
  const { shown: fine, failed, skipped } = ends;
  const others = [
    ...(failed.length > 0 ? [`FAILED: ${failed.join(", ")}`] : []),
    ...(skipped.length > 0 ? [`skipped: ${skipped.join(", ")}`] : []),
  ];
  console.log(
    `\n${wanted.length} proofs in ${seconds(performance.now() - began)}: ${[`${fine.length} shown`, ...others].join("; ")}`,
  );
  return failed.length === 0 ? 0 : 1;
}

/** A box that was clean, with the package in it. */
async function installed(): Promise<Box> {
  const [image, file] = await Promise.all([imageOf("trixie"), packageOf("amd64")]);
  const box = new Box(image);
  const { guest } = box;
  const bootMs = await box.machine.boot();
  const [systemd] = (await guest.sh("systemctl --version")).split("\n");
  console.log(`Debian trixie, ${systemd}, Linux ${await guest.sh("uname -r")}: booted in ${seconds(bootMs)}`);
  await guest.put(file, "/root/posline.deb");
  const began = performance.now();
  await guest.sh("dpkg -i /root/posline.deb </dev/null", 300_000);
  console.log(`dpkg -i ${seconds(performance.now() - began)}`);
  return box;
}

/** Runs one proof while the others' box is made, and says in the end what there is to say. */
async function shownLater(proof: Proof): Promise<End> {
  const said: string[] = [];
  const end = await shown(proof, undefined, (text) => said.push(text));
  console.log(said.join("\n"));
  return end;
}

/** Runs one proof, and says its figures. */
async function shown(proof: Proof, box: Box | undefined, say: (text: string) => void): Promise<End> {
  const began = performance.now();
  say(`\n${proof.name}: ${proof.shows}`);
  const figure = (text: string) => say(`  ${text}`);
  try {
    if (proof.isBare === true) {
      await proof.run({ isShort, figure });
    } else if (box !== undefined) {
      if (proof.isFirst !== true) await box.ready();
      await proof.run({ box, isShort, figure });
    }
    say(`  ok, ${seconds(performance.now() - began)}`);
    return "shown";
  } catch (error) {
    if (error instanceof Skipped) {
      say(`  skipped after ${seconds(performance.now() - began)}: ${error.message}`);
      return "skipped";
    }
    say(`  FAILED after ${seconds(performance.now() - began)}: ${error instanceof Error ? error.stack : String(error)}`);
    if (proof.isBare !== true && box !== undefined) say(await box.log());
    return "failed";
  }
}
