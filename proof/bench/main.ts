import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { lineEfficiency } from "./efficiency.ts";
import { framers } from "./framers.ts";
import { growth } from "./growth.ts";
import { isolation } from "./isolation.ts";
import { largeReply } from "./large-reply.ts";
import { benchDir } from "./machine.ts";
import { nodes } from "./nodes.ts";
import { costSection } from "./peers/cost.ts";
import { fleetSection } from "./peers/fleet.ts";
import { lateSection } from "./peers/late.ts";
import { peersSection } from "./peers/peers.ts";
import { type Bench, movedPercent, Report, type SectionName } from "./report.ts";
import { roundtrip } from "./roundtrip.ts";
import { start } from "./start.ts";
import { watching } from "./watching.ts";

/**
 * `npm run bench -- [--short] [--check] [--peers] [section...]`: how posline compares with the usual ways of doing the same, measured
 * side by side in one run, so that the ratios hold on any machine.
 *
 * Prints a table and writes out/bench/results.json. `--short` takes about a minute. `--check` exits with 1 when a bound
 * is missed or something that should have been measured wasn't; without it nothing is asserted. A row isn't judged when what the
 * harness takes without any bridge moved while it was measured: then the machine had something else to do.
 *
 * `--peers` measures the sections of proof/bench/peers instead and writes their tables and plots into out/bench.
 */

const sections: Record<SectionName, (bench: Bench) => Promise<void>> = {
  framers,
  roundtrip,
  line: lineEfficiency,
  large: largeReply,
  start,
  growth,
  nodes,
  isolation,
  watching,
  peers: peersSection,
  late: lateSection,
  cost: costSection,
  fleet: fleetSection,
};

/** Those of `--peers`: they take 20 minutes, and are run for the documentation only. */
const ofPeers: readonly SectionName[] = ["peers", "late", "cost", "fleet"];

function isSection(name: string): name is SectionName {
  return Object.hasOwn(sections, name);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    short: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
  },
});
const usual = Object.keys(sections).filter((name) => ofPeers.every((other) => other !== name));
const wanted = positionals.length > 0 ? positionals : values.peers ? ofPeers : usual;
const bench: Bench = { report: new Report(), short: values.short };

for (const name of wanted) {
  if (!isSection(name)) {
    console.error(`Cannot measure ${name}: there is no such section, choose from ${Object.keys(sections).join(" ")}`);
    process.exit(64);
  }
}
for (const name of wanted.filter(isSection)) {
  const begun = performance.now();
  try {
    await sections[name](bench);
  } catch (error) {
    bench.report.skip(name, error instanceof Error ? error.message : String(error), true);
  }
  console.error(`bench ${name}: done in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
}

const { report } = bench;
console.log(report.table());
const out = join(benchDir, "../../out/bench");
mkdirSync(out, { recursive: true });
report.write(join(out, "results.json"), values.short ? "short" : "full");
const missed = report.rowsThat("MISSED");
for (const row of missed) console.log(`missed: ${row.section}: ${row.what}`);
const noisy = report.rowsThat("too noisy to judge");
for (const { section, what, floor = [] } of noisy) {
  console.log(`too noisy to judge: ${section}: ${what}: the harness alone moved by ${movedPercent(floor).toFixed(0)} %`);
}
for (const { section, why } of report.skipped) console.log(`not measured: ${section}: ${why.split("\n")[0]}`);
const unmeasured = noisy.length > 0 || report.skipped.some(({ failure }) => failure);
if (values.check && (missed.length > 0 || unmeasured)) process.exitCode = 1;
