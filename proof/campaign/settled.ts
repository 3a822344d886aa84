import { type Part, type PartOptions, partMs, type Row } from "./part.ts";
import { World, type WorldResult } from "./settled-world.ts";

/**
 * Operations that are followed to their end, over the real bundle and the emulator with all its faults, through reloads and kill -9; over
 * ptys, or over TCP through cut connections too.
 */

/** Of so many worlds posline is killed in all but one. */
const unkilledEach = 3;

/** Operations of a long run, unless its time is over before. */
const operations = 2_000;

export const settled = partOver({ name: "settled", isOverTcp: false, atOnce: 6 });

export const tcp = partOver({ name: "tcp", isOverTcp: true, atOnce: 12 });

interface Way {
  readonly name: string;
  readonly isOverTcp: boolean;
  /** Worlds at one time: each mostly waits for its lines. */
  readonly atOnce: number;
}

function partOver({ name, isOverTcp, atOnce }: Way): Part {
  const run = async (options: PartOptions) => {
    const { seed, short } = options;
    const share = short ? 4 : Math.ceil(operations / atOnce);
    // That there is none counts 30 s after a start that may be lost, and a busy machine takes its time.
    const patience = short ? { patienceMs: 8_000, lastPatienceMs: 60_000 } : { patienceMs: 40_000, lastPatienceMs: 100_000 };
    const begins = { operations: share, tills: 4, isOverTcp, beginMs: partMs(options), ...patience };
    const worlds = Array.from({ length: short ? 1 : atOnce }, (_, index) =>
      new World({ seed: seed + 1_000 * index, isKilled: index % unkilledEach !== unkilledEach - 1, ...begins }).run(),
    );
    return rowsOf(await Promise.all(worlds));
  };
  return { name, run };
}

/** Figures of worlds, and what they broke. */
export function rowsOf(worlds: readonly WorldResult[]): readonly Row[] {
  const sum = (figure: (world: WorldResult) => number) => worlds.reduce((total, world) => total + figure(world), 0);
  const most = (figure: (world: WorldResult) => number) => Math.round(Math.max(...worlds.map(figure)));
  const counted = (of: (world: WorldResult) => ReadonlyMap<string, number>) => {
    const all = new Map<string, number>();
    for (const world of worlds) for (const [name, count] of of(world)) all.set(name, (all.get(name) ?? 0) + count);
    return [...all].map(([name, count]) => `${count} ${name}`).join("; ");
  };
  const total = (of: (world: WorldResult) => ReadonlyMap<string, number>) =>
    sum((world) => [...of(world).values()].reduce((all, count) => all + count, 0));
  const broken = worlds.flatMap((world) => world.broken.map((each) => `seed ${world.seed}: ${each}`));
  return [
    { what: "worlds", value: worlds.length },
    { what: "operations", value: sum((world) => world.operations), least: 1 },
    { what: "calls of tills", value: sum((world) => world.calls), note: counted(({ words }) => words) },
    { what: "arrivals at terminals", value: sum((world) => world.arrivals), least: 1 },
    { what: "kill -9", value: sum((world) => world.kills) },
    { what: "cut connections", value: sum((world) => world.cuts) },
    { what: "reloads", value: total(({ reloads }) => reloads), note: counted(({ reloads }) => reloads) },
    { what: "longest time beyond a call's wait", value: most(({ longestMs }) => longestMs), unit: "ms" },
    { what: "longest time until ready after a reload", value: most(({ notReadyMs }) => notReadyMs), unit: "ms" },
    { what: "broken promises", value: broken.length, most: 0, note: broken.join("\n") },
    { what: "operations without an end", value: total(({ open }) => open), note: counted(({ open }) => open) },
    {
      what: "unknown in the journal",
      value: total(({ unknown }) => unknown),
      note: counted(({ unknown }) => unknown),
    },
  ];
}
