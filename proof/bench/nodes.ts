import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { ask, askLine, type Bridge, productMissing, startBridge, startResponder } from "./bridges.ts";
import { cacheDir } from "./machine.ts";
import { inWorkshop } from "./processes.ts";
import { atMost, type Bench, inParts, lowerQuartile, type Report } from "./report.ts";

/** The product's round trip on each Node that it supports, side by side. */

const section = "nodes";
const majors = [20, 22, 24, 26];
const apartMost = 1.3;

/** Where the node binary of this major version lies, fetched once from npm into the cache. */
function nodeBinary(major: number, report: Report, fetch: boolean): string | undefined {
  if (process.version.startsWith(`v${major}.`)) return process.execPath;
  // The package that the npm package `node` installs by a script; asked for by itself, no script needs to run.
  const name = `node-linux-${process.arch}`;
  const prefix = join(cacheDir, `node-${major}`);
  const binary = join(prefix, "node_modules", name, "bin", "node");
  if (!existsSync(binary) && fetch) {
    mkdirSync(prefix, { recursive: true });
    try {
      const argv = [
        ...["install", "--prefix", prefix, "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"],
        `${name}@${major}`,
      ];
      execFileSync("npm", argv, { stdio: "pipe", timeout: 180_000 });
    } catch (error) {
      const message = error instanceof Error ? (error.message.split("\n")[1] ?? error.message) : String(error);
      report.skip(section, `Node ${major} can't be installed from npm: ${message}`);
      return undefined;
    }
  }
  if (existsSync(binary)) return binary;
  report.skip(section, `Node ${major} isn't in the cache yet: the full mode fetches it`);
  return undefined;
}

export async function nodes({ report, short }: Bench): Promise<void> {
  const missing = productMissing();
  if (missing !== undefined) report.skip(section, missing, true);
  const binaries = majors.flatMap((major) => {
    const nodePath = nodeBinary(major, report, !short);
    return nodePath === undefined ? [] : [{ major, nodePath }];
  });
  if (missing !== undefined) return;
  await inWorkshop(async (workshop) => {
    const bridges: { major: number; bridge: Bridge; p50Us: number[] }[] = [];
    for (const { major, nodePath } of binaries) {
      const bridge = await startBridge(workshop, "posline", { nodePath });
      await ask(workshop, bridge, { clients: 1, count: 10, warmup: 6000 });
      bridges.push({ major, bridge, p50Us: [] });
    }
    const [link] = await startResponder(workshop, "floor");
    const floor: number[] = [];
    workshop.occupyOtherCpus();
    for (let round = 0; round < (short ? 20 : 40); round++) {
      floor.push((await askLine(workshop, link, 250, 200)).p50Us);
      for (const { bridge, p50Us } of bridges) {
        p50Us.push((await ask(workshop, bridge, { clients: 1, count: short ? 250 : 500, warmup: 200 })).p50Us);
      }
    }
    const fastest = Math.min(...bridges.map(({ p50Us }) => lowerQuartile(p50Us)));
    for (const { major, p50Us } of bridges) {
      const figures = { ours: lowerQuartile(p50Us), theirs: fastest, unit: "µs", floor: inParts(floor, lowerQuartile) };
      report.compare(section, `p50 on Node ${major} against the fastest`, figures, atMost(apartMost));
    }
  });
}
