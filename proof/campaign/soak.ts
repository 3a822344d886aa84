import { get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "../../test/support/bridge-process.ts";
import { Random } from "./fuzz/random.ts";
import type { Part, Row } from "./part.ts";
import { Box, type Sample } from "./soak/box.ts";
import { Tills } from "./soak/tills.ts";
import { floors, type Points, riseOf, secondHalf } from "./soak/trend.ts";

/**
 * Soak: the real bundle at full pace, with a fault every few seconds. Nothing that it holds may grow: a line is laid through the second
 * half of each figure.
 */

/** Seconds of a short run. */
const shortS = 12;

/** Milliseconds between two samples, in a long run and in a short one. */
const sampleMs = { long: 5_000, short: 500 } as const;

/** Samples of which the lowest counts, two minutes of a long run: V8 collects all of its heap about once in that time. */
const floorSize = 24;

/** Megabytes that memory may rise in the second half of a long run: what V8's heap moves by, without anything being kept. */
const riseMbMax = 8;

/**
 * Timers that may be more at one time than at another: those of operations whose till has left, which are followed for three minutes each. That
 * none is kept is seen after the load.
 */
const riseTimersMax = 20;

/** Descriptors that may be more at one time than at another: of tills that come and go. That none is kept is seen after the load. */
const riseDescriptorsMax = 5;

/** Megabytes by which the journal may rise: none, but for what least squares round. */
const journalRiseMbMax = 0.001;

/** Minutes from which memory is judged: before, it still warms up. */
const judgedMinutes = 20;

/**
 * Milliseconds for which the idle connections of the tills may be kept, and what waits for the terminal goes on: an operation whose till has
 * left is followed for three minutes.
 */
const quietMs = 200_000;

type Taken = { readonly seconds: number; readonly sample: Sample };

export const soak: Part = {
  name: "soak",
  run: async ({ minutes, seed, short }) => {
    const box = new Box();
    try {
      await box.start();
      const before = await box.sample();
      const tills = new Tills(box, new Random(seed));
      const running = tills.run();
      const samples = await watched(box, short ? shortS : minutes * 60, short ? sampleMs.short : sampleMs.long);
      tills.stop();
      await running;
      const isQuiet = ({ descriptors, timers }: Sample) => descriptors <= before.descriptors && timers <= before.timers;
      let after = await box.sample();
      for (let waited = 0; waited < quietMs && !isQuiet(after); waited += 100) {
        await sleep(100);
        after = await box.sample();
      }
      return [...tillRows(tills, box), ...leftRows(before, after), ...trendRows(samples, !short && minutes >= judgedMinutes)];
    } finally {
      await box.stop();
    }
  },
};

/** Samples for so long, each with a scrape; a watcher of events comes and goes. */
async function watched(box: Box, seconds: number, everyMs: number): Promise<readonly Taken[]> {
  const begun = performance.now();
  const samples: Taken[] = [];
  const { admin } = box.ports();
  while (performance.now() - begun < seconds * 1_000) {
    if (box.hasEnded) throw new Error(`The bridge ended:\n${box.complaints().join("\n")}`);
    const watcher = get({ host: "127.0.0.1", port: admin, path: "/events", agent: false }, (response) =>
      response.resume().on("error", () => {}),
    );
    watcher.on("error", () => {});
    await sleep(everyMs);
    watcher.destroy();
    await ask(admin, "GET", "/metrics", "");
    samples.push({ seconds: (performance.now() - begun) / 1_000, sample: await box.sample() });
  }
  return samples;
}

function tillRows({ answered, notSent, unknown, left, faults, wrong }: Tills, box: Box): readonly Row[] {
  const complaints = box.complaints();
  const noted = (texts: readonly string[]) => texts.slice(0, 3).join("; ").slice(0, 600);
  return [
    { what: "calls answered", value: answered, least: 1 },
    { what: "calls not sent", value: notSent },
    { what: "calls of unknown outcome", value: unknown },
    { what: "callers that left", value: left },
    { what: "faults", value: faults },
    { what: "answers that no till should see", value: wrong.length, most: 0, note: noted(wrong) },
    { what: "errors in the bridge's log", value: complaints.length, most: 0, note: noted(complaints) },
  ];
}

/** What is left of the load once it is over. */
function leftRows(before: Sample, after: Sample): readonly Row[] {
  const more = (what: string, figure: (sample: Sample) => number): Row => ({
    what: `${what} more than before the load`,
    value: figure(after) - figure(before),
    most: 0,
  });
  return [
    more("descriptors", ({ descriptors }) => descriptors),
    more("threads", ({ threads }) => threads),
    more("timers", ({ timers }) => timers),
  ];
}

/** What must not rise, and by how much it may; where V8 collects or tills come and go, the lowest of some samples counts. */
const trends: readonly {
  readonly what: string;
  readonly unit?: string;
  readonly of: (sample: Sample) => number;
  readonly riseMax: number;
  readonly isSteady?: true;
}[] = [
  { what: "RSS", unit: "MB", of: ({ rssBytes }) => rssBytes / 1e6, riseMax: riseMbMax },
  { what: "memory of its own", unit: "MB", of: ({ anonymousBytes }) => anonymousBytes / 1e6, riseMax: riseMbMax },
  { what: "heap", unit: "MB", of: ({ heapBytes }) => heapBytes / 1e6, riseMax: riseMbMax },
  { what: "timers", of: ({ timers }) => timers, riseMax: riseTimersMax },
  { what: "descriptors", of: ({ descriptors }) => descriptors, riseMax: riseDescriptorsMax },
  { what: "journal", unit: "MB", of: ({ journalBytes }) => journalBytes / 1e6, riseMax: journalRiseMbMax, isSteady: true },
];

function trendRows(samples: readonly Taken[], isJudged: boolean): readonly Row[] {
  return trends.map(({ what, unit = "", of, riseMax, isSteady = false }) => {
    const all: Points = samples.map(({ seconds, sample }) => [seconds, of(sample)]);
    const most = Math.max(...all.map(([, value]) => value));
    return {
      what: `${what}: rise in the second half`,
      value: riseOf(secondHalf(isSteady ? all : floors(all, floorSize))),
      ...{ unit, most: isJudged || isSteady ? riseMax : undefined },
      note: `from ${shown(all[0]?.[1])} to ${shown(all.at(-1)?.[1])}, at most ${shown(most)}`,
    };
  });
}

const shown = (value = Number.NaN) => (Number.isInteger(value) ? String(value) : value.toFixed(1));
