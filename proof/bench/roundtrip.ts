import { askBy, askLine, type CallerFigures } from "./callers.ts";
import { pinned } from "./machine.ts";
import { type Peer, peersHere, type Started, startPeer, startResponder } from "./peer.ts";
import { inWorkshop } from "./processes.ts";
import { atLeast, atMost, type Bench, type Bound, type Report, type SectionName } from "./report.ts";
import { inTurns, type Measures, type Rounds } from "./turns.ts";

/**
 * HTTP to pty to responder and back, everything on one core, so that the sum of all work is compared and no lucky placement. A client
 * right on a line, in turn with the bridges, gives the floor.
 */

const section = "roundtrip";

/** So long is asked in a run, in s: what a relay of 44 ms a call and one of 50 µs have in common is the time. */
const runS = { short: 0.25, full: 0.5 };
const exchangesMax = 2000;

export const keyOf = (name: string, callers: number) => `${name} ${callers}`;

const sales = "posline /sale";

/**
 * By peer and count of callers.
 * @param sells posline's sales are measured too, each under a key of its own: its questions are recorded and judged nowhere.
 */
export async function roundTrips(
  measured: readonly Peer[],
  callerCounts: readonly number[],
  rounds: number,
  short: boolean,
  sells = false,
): Promise<Rounds<CallerFigures>> {
  return await inWorkshop(async (workshop) => {
    const started: { readonly one: Started; readonly count: number; readonly isFast: boolean }[] = [];
    for (const peer of measured) {
      const one = await startPeer(workshop, peer);
      const cold = await askBy(workshop, one, { callers: 1, count: 40, warmup: 0 });
      const isFast = cold.perS > 100;
      // Lets a compiler see the path, and shows how many exchanges fit into a run.
      const warm = { callers: 1, count: 200, warmup: short ? 2000 : 6000 };
      const { perS } = isFast ? await askBy(workshop, one, warm) : cold;
      const count = Math.min(exchangesMax, Math.max(20, Math.round(perS * (short ? runS.short : runS.full))));
      started.push({ one, count, isFast });
    }
    const [link] = await startResponder(workshop, "floor");
    workshop.occupyOtherCpus();
    const measures = callerCounts.flatMap((callers) =>
      started.map(({ one, count, isFast }): readonly [string, Measures<CallerFigures>[string]] => {
        const run = { callers, count: Math.max(count, 2 * callers), warmup: isFast ? callers + 100 : 0 };
        // Who takes 44 ms a call isn't asked 64 times over in every round: its figures don't move.
        const isLeftOut = (round: number) => !isFast && round % 4 > 0;
        return [keyOf(one.name, callers), async (round) => (isLeftOut(round) ? undefined : askBy(workshop, one, run))];
      }),
    );
    const own = sells ? started.find(({ one }) => one.name === "posline") : undefined;
    if (own !== undefined) {
      const run = { callers: 1, count: 500, warmup: 100, route: "/sale" } as const;
      measures.push([keyOf(sales, 1), () => askBy(workshop, own.one, run)]);
    }
    return await inTurns(rounds, { floor: () => askLine(workshop, link), ...Object.fromEntries(measures) });
  });
}

/** A figure of posline's that is compared with a peer's. */
export interface Comparison {
  readonly figure: keyof CallerFigures;
  readonly theirs: string;
  readonly callers?: number;
  readonly bound: Bound;
}

const words = { p50Us: "p50", p99Us: "p99", perS: "requests/s", processorUs: "processor time", rssMiB: "RSS" } as const;

/** Adds what was measured of both. */
export function compareAll(report: Report, of: SectionName, rounds: Rounds<CallerFigures>, all: readonly Comparison[]): void {
  for (const { figure, theirs: peer, callers = 1, bound } of all) {
    const [ours, theirs] = ["posline", peer].map((name) => rounds.quiet(keyOf(name, callers), figure));
    if (ours === undefined || theirs === undefined || Number.isNaN(ours + theirs)) continue;
    const what = `${words[figure]}${callers > 1 ? `, ${callers} callers,` : ""} against ${peer}`;
    const unit = figure === "perS" ? "/s" : "µs";
    // The floor's mean, not its median: what else the machine does shows in the slow ones.
    report.compare(of, what, { ours, theirs, unit, floor: rounds.parts("floor", "perS") }, bound);
  }
}

const comparisons: readonly Comparison[] = [
  { figure: "p50Us", theirs: "socat", bound: atMost(1.5) },
  { figure: "p50Us", theirs: "ser2net-tuned", bound: atMost(0.75) },
  { figure: "p50Us", theirs: "fastify", bound: atMost(0.6) },
  { figure: "perS", theirs: "fastify", callers: 8, bound: atLeast(1.8) },
];

export async function roundtrip({ report, short }: Bench): Promise<void> {
  if (!pinned) report.skip(section, "taskset isn't there: processes wander between cores, compare with care");
  const measured = peersHere((why) => report.skip(section, why), ["posline", "socat", "ser2net-tuned", "fastify"]);
  const rounds = await roundTrips(measured, [1, 8], short ? 9 : 32, short, true);
  report.baseline(section, "p50, harness alone", rounds.quiet("floor", "p50Us"), "µs");
  compareAll(report, section, rounds, comparisons);
  const [ours, theirs] = [sales, "posline"].map((name) => rounds.quiet(keyOf(name, 1), "p50Us"));
  if (ours === undefined || theirs === undefined) return;
  const floor = rounds.parts("floor", "perS");
  const what = "p50 of /sale, a new key each, against its own /check";
  report.compare(section, what, { ours, theirs, unit: "µs", floor }, atMost(1.05));
}
