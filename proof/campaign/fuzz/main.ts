import { parseArgs } from "node:util";
import { type Coverage, CoverageMeter } from "./coverage.ts";

/**
 * Fuzzes the readers in a process of its own, so that memory and coverage are theirs alone:
 *
 * `node --expose-gc --import tsx proof/campaign/fuzz/main.ts --seconds 60 --seed 1 [--target NAME]... [--frames N] [--coverage]`
 *
 * Prints a line of JSON for each target. `--only NUMBER` makes one input of a target again, and lets its error through.
 */

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
    target: { type: "string", multiple: true },
    frames: { type: "string", default: "0" },
    coverage: { type: "boolean", default: false },
    only: { type: "string" },
  },
});

/** What a run says of one target. */
export interface TargetReport {
  readonly name: string;
  readonly unit: string;
  readonly inputs: number;
  readonly bytes: number;
  readonly units: number;
  readonly seconds: number;
  readonly heldBytesMax: number;
  readonly heldBytes: number;
  readonly findings: readonly { readonly number: number; readonly error: string; readonly input: string }[];
  readonly coverage?: Coverage;
}

/** Share of the time in which coverage is counted: counting takes a third of the speed. */
const countedShare = 0.3;

const meter = new CoverageMeter();
if (values.coverage) await meter.start();
// Loaded only now, so that they are counted from their first line.
const { targets } = await import("./targets.ts");
const { fuzz, inputOf } = await import("./target.ts");
const { Random, seedOf } = await import("./random.ts");

const seed = Number(values.seed);
const wanted = targets.filter(({ name }) => values.target === undefined || values.target.includes(name));
if (wanted.length === 0) {
  console.error(
    `Cannot fuzz: there is no such target, choose from ${targets.map(({ name }) => JSON.stringify(name)).join(", ")}`,
  );
  process.exit(64);
}

if (values.only !== undefined) {
  const number = Number(values.only);
  for (const target of wanted) {
    const input = inputOf(target, seed, number);
    console.error(`${target.name}, input ${number}, ${input.length} bytes:\n${input.toString("latin1")}`);
    await target.check(input, new Random(seedOf(seed, `${target.name} check`, number)));
  }
  process.exit(0);
}

const ms = (Number(values.seconds) * 1_000) / wanted.length;
const coverages = new Map<string, Coverage>();
if (values.coverage) {
  const loaded = await meter.take();
  for (const target of wanted) {
    await fuzz(target, { seed, ms: ms * countedShare });
    coverages.set(target.name, (await meter.take()).of(target.sources, loaded));
  }
  await meter.stop();
}
for (const target of wanted) {
  const unitsMin = target.unit === "frames" && target.name.startsWith("decoder") ? Number(values.frames) : 0;
  const result = await fuzz(target, { seed, ms: values.coverage ? ms * (1 - countedShare) : ms, unitsMin });
  const { inputs, bytes, units, seconds, heldBytesMax, heldBytes } = result;
  const coverage = coverages.get(target.name);
  const report: TargetReport = {
    ...{ name: target.name, unit: target.unit, inputs, bytes, units, seconds, heldBytesMax, heldBytes },
    findings: result.findings.map(({ number, error, input }) => ({ number, error, input: input.toString("latin1") })),
    ...(coverage === undefined ? {} : { coverage }),
  };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
process.exit(0);
