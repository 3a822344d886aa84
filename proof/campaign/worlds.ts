import { availableParallelism } from "node:os";
import { Forked } from "./forked.ts";
import { foundIn, writeFound } from "./found.ts";
import { fullRows } from "./full-batches.ts";
import type { LineBatches } from "./line-batches.ts";
import { emptyTally, type LineTally } from "./line-life.ts";
import { type Part, type PartOptions, partMs, type Row } from "./part.ts";

/**
 * Random worlds, of two kinds. Worlds of lines are synchronous and run by the million: engine, queue, frame reader and terminals. Full
 * worlds have the journal, the followers and the line's own driver as well, whose promises need the event loop: those run by the ten
 * thousand. A fifth of the time is theirs.
 */

const fullShare = 0.2;

/** More processes than a box that builds has cores would only share them. */
const processesMax = 8;

function addTo(sum: LineTally, more: LineTally): void {
  for (const [name, value] of Object.entries(more)) {
    // A tally has numbers only; of times the longest counts.
    const key = name as keyof LineTally;
    sum[key] = key.endsWith("Ms") ? Math.max(sum[key], value) : sum[key] + value;
  }
}

async function lineRows({ seed, short }: PartOptions, forMs: number): Promise<readonly Row[]> {
  const processes = short ? 1 : Math.min(availableParallelism(), processesMax);
  const beganMs = performance.now();
  const all = await Promise.all(
    Array.from({ length: processes }, (_, index) =>
      new Forked<LineBatches>("child.ts", [seed, index, processes, forMs]).message(),
    ),
  );
  const seconds = (performance.now() - beganMs) / 1_000;
  const tally = emptyTally();
  const beyond = emptyTally();
  const broken: string[] = [];
  for (const each of all) {
    addTo(tally, each.tally);
    addTo(beyond, each.beyond);
    for (const world of each.broken) {
      const found = foundIn(world);
      const path = writeFound(found, `worlds-${seed}-${broken.length + 1}`);
      broken.push(found.message);
      console.error([`broken: ${found.message}`, ...found.timeline, `posline replay ${path}`].join("\n"));
    }
  }
  const exchanges = tally.exchanges + beyond.exchanges;
  const count = (what: string, value: number, note = ""): Row => ({ what, value, unit: "", note });
  return [
    {
      ...{ what: "promises broken", value: broken.length, unit: "", bound: { side: "most", value: 0 } },
      note: broken[0] ?? "of lines; each schedule that breaks one is shrunk and written as a recording",
    },
    {
      ...{ what: "exchanges", value: exchanges, unit: "", bound: { side: "least", value: 1 } },
      note: "requests of callers that a terminal heard whole",
    },
    { what: "exchanges a second", value: exchanges / seconds, unit: "/s", note: `${processes} processes` },
    count("lives of two lines", tally.lives + beyond.lives),
    count("steps drawn", tally.steps + beyond.steps),
    count("decisions", tally.events + beyond.events, "of engines, each checked"),
    count("probes", tally.probes + beyond.probes),
    count("calls", tally.calls + beyond.calls),
    count("calls answered", tally.answered + beyond.answered),
    count("calls not sent", tally.notSent + beyond.notSent),
    count("calls unknown", tally.unknown + beyond.unknown),
    count("calls whose process was killed", tally.killed + beyond.killed, "these four make up all calls"),
    count("unplugs", tally.unplugs + beyond.unplugs),
    count("kills", tally.kills + beyond.kills),
    count("SIGTERMs", tally.sigterms + beyond.sigterms),
    count(
      "tills' probe-shaped questions answered by an earlier probe's answer",
      tally.sameQuestion + beyond.sameQuestion,
      "read-only, and the same question",
    ),
    count("right answers in time among stray bytes", tally.strayed + beyond.strayed),
    count("of them not given to their call", tally.strayedLost + beyond.strayedLost, "with half of another answer beside them"),
    count("terminals that hung or were switched off", tally.away, "for seconds to hours, in worlds that last for days"),
    { what: "longest call", value: tally.longestMs / 1_000, unit: "s" },
    {
      what: "longest recovery",
      value: tally.recoveryMs / 1_000,
      unit: "s",
      note: "of a terminal that is well, and has nothing left to answer",
    },
    count(
      "answers that nobody can tell from others",
      beyond.undetectable,
      `copies after a pause, in ${beyond.exchanges} exchanges`,
    ),
    count(
      "first bare successes to a probe that a call got",
      tally.firstBareSuccess + beyond.firstBareSuccess,
      "of terminals that answered rightly until then, and what calls got behind them: nobody can tell them either",
    ),
    count(
      "first calls unknown of terminals that had begun to answer probes otherwise",
      tally.firstUnknown + beyond.firstUnknown,
      "their answers are taken for older ones, once",
    ),
  ];
}

export const worlds: Part = {
  name: "worlds",
  run: async (options) => {
    const ms = partMs(options);
    const ofLines = await lineRows(options, ms * (1 - fullShare));
    return [...ofLines, ...(await fullRows(options, ms * fullShare))];
  },
};
