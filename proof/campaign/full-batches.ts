import fc from "fast-check";
import { VirtualNet } from "../../test/support/virtual-net.ts";
import { VirtualTime } from "../../test/support/virtual-time.ts";
import { Forked } from "./forked.ts";
import { emptyFullTally, FullLife, type FullTally, fullWorld } from "./full-life.ts";
import type { PartOptions, Row } from "./part.ts";

/** Full worlds, in a process of their own, since its clock is replaced. */

export type FullBatches = { readonly tally: FullTally; readonly broken: readonly string[]; readonly seconds: number };

const livesInBatch = 4;
const brokenMax = 3;

const clock = performance.now.bind(performance);

export async function runFullBatches(seed: number, forMs: number): Promise<FullBatches> {
  const beganMs = clock();
  const place = { time: new VirtualTime(), net: new VirtualNet() };
  const tally = emptyFullTally();
  const broken: string[] = [];
  for (let batch = 0; clock() < beganMs + forMs && broken.length < brokenMax; batch++) {
    const property = fc.asyncProperty(fullWorld, (world) => new FullLife(world, place, tally).run());
    // The first runs of a check are drawn small, one value in two: so each second batch isn't, and has long lives.
    const options = { seed: seed * 100_003 + batch, numRuns: livesInBatch, unbiased: batch % 2 === 1 };
    const { counterexample, errorInstance } = await fc.check(property, options);
    if (counterexample === null) continue;
    const timeline: string[] = [];
    const [world] = counterexample;
    const end = await new FullLife(world, place, emptyFullTally(), (text) => timeline.push(text)).run().then(
      () => `it breaks only with what came before it: ${String(errorInstance)}`,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    broken.push([end, ...timeline, JSON.stringify(world)].join("\n"));
  }
  place.net.restore();
  place.time.restore();
  return { tally, broken, seconds: (clock() - beganMs) / 1_000 };
}

export async function fullRows({ seed }: PartOptions, forMs: number): Promise<readonly Row[]> {
  const { tally, broken, seconds } = await new Forked<FullBatches>("full-child.ts", [seed, forMs]).message();
  for (const each of broken) console.error(`broken: ${each}`);
  const count = (what: string, value: number, note = ""): Row => ({ what: `full worlds: ${what}`, value, unit: "", note });
  return [
    {
      ...count("promises broken", broken.length, broken[0]?.split("\n")[0] ?? "of line, journal, followed calls and questions"),
      bound: { side: "most", value: 0 },
    },
    { ...count("exchanges", tally.exchanges), bound: { side: "least", value: 1 } },
    { what: "full worlds: exchanges a second", value: tally.exchanges / seconds, unit: "/s", note: "one process" },
    count("lives", tally.lives),
    count("calls", tally.calls),
    count("answered", tally.answered),
    count("not sent", tally.notSent),
    count("unknown", tally.unknown),
    count("till left", tally.left),
    count("process killed", tally.killed, "these five make up all calls"),
    count("answers with a payment's trans", tally.named, "each held against the code that was paid, or shown"),
    count("restarts", tally.restarts, "by SIGTERM, kill and power cut"),
    count("reloads", tally.reloads),
    count("operations settled in the journal", tally.settled),
    count(
      "operations told how the last of several ended",
      tally.lastOfSeveral,
      "sent again without the header, and carried out again, against the contract: nobody can tell them apart",
    ),
    count("sales twice, unrecorded", tally.unrecordedTwice, 'journal.onFailure "relay", its disk failing: nobody can know'),
    count(
      "sales twice, record lost",
      tally.lostTwice,
      "a page of the journal went bad, and answers said that no repetition is recognised",
    ),
    count(
      "words of another operation, record lost",
      tally.lostOthers,
      "sent before it under its key, by another route or for another amount, and forgotten",
    ),
  ];
}
