import { parseArgs } from "node:util";
import { Random, seedOf } from "./random.ts";
import { fuzz, inputOf } from "./target.ts";
import { targets } from "./targets.ts";

/**
 * Fuzzes the readers in a process of its own, so that its memory is theirs alone:
 *
 * `node --expose-gc --import tsx proof/campaign/fuzz/main.ts --seconds 60 --seed 1 [--target NAME]... [--frames N]`
 *
 * Prints a line of JSON for each target. `--only NUMBER` makes one input of a target again, and lets its error through.
 */

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
    target: { type: "string", multiple: true },
    frames: { type: "string", default: "0" },
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
}

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
for (const target of wanted) {
  const unitsMin = target.unit === "frames" && target.name.startsWith("decoder") ? Number(values.frames) : 0;
  const result = await fuzz(target, { seed, ms, unitsMin });
  const { inputs, bytes, units, seconds, heldBytesMax, heldBytes } = result;
  const report: TargetReport = {
    ...{ name: target.name, unit: target.unit, inputs, bytes, units, seconds, heldBytesMax, heldBytes },
    findings: result.findings.map(({ number, error, input }) => ({ number, error, input: input.toString("latin1") })),
  };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
process.exit(0);
