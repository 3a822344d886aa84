import { availableParallelism } from "node:os";
import type { Batches } from "./batches.ts";
import { Forked } from "./forked.ts";
import { writeFound } from "./found.ts";
import { fullCounts } from "./full-life.ts";
import { lineCounts } from "./line-life.ts";
import { type Part, type PartOptions, partMs, type Row } from "./part.ts";
import { addTo, type Counts, emptyTallyOf, type TallyOf, tallyRows } from "./tally.ts";

/**
 * Random worlds, of two kinds. Worlds of lines are synchronous and run by the million: engine, queue, frame reader and terminals. Full
 * worlds have the journal, the followers and the line's own driver as well, whose promises need the event loop: those run by the ten
 * thousand. A fifth of the time is theirs.
 */
const kinds = {
  lines: { module: "./line-worlds.ts", counts: lineCounts, share: 0.8, processesMax: 8, prefix: "" },
  full: { module: "./full-worlds.ts", counts: fullCounts, share: 0.2, processesMax: 1, prefix: "full worlds: " },
} as const;

async function rowsOf(name: keyof typeof kinds, options: PartOptions): Promise<readonly Row[]> {
  const { seed, short } = options;
  const { module, share, processesMax, prefix } = kinds[name];
  const counts: Counts = kinds[name].counts;
  const processes = short ? 1 : Math.min(availableParallelism(), processesMax);
  const beganMs = performance.now();
  const all = await Promise.all(
    Array.from({ length: processes }, (_, index) =>
      new Forked<Batches<TallyOf<Counts>>>("child.ts", [module, seed, index, processes, partMs(options) * share]).message(),
    ),
  );
  const seconds = (performance.now() - beganMs) / 1_000;
  const tally = emptyTallyOf(counts);
  for (const each of all) addTo(tally, each.tally);
  const broken = all.flatMap((each) => each.broken);
  for (const [index, each] of broken.entries()) writeFound(each, `worlds-${name}-${seed}-${index + 1}`);
  return [
    {
      ...{ what: `${prefix}promises broken`, value: broken.length, most: 0 },
      note: broken[0]?.message ?? "what breaks one is shrunk, and written to out/campaign",
    },
    {
      what: `${prefix}exchanges a second`,
      value: (tally["exchanges"] ?? 0) / seconds,
      unit: "/s",
      note: `${processes} processes`,
    },
    ...tallyRows(counts, tally, prefix),
  ];
}

export const worlds: Part = {
  name: "worlds",
  run: async (options) => [...(await rowsOf("lines", options)), ...(await rowsOf("full", options))],
};
