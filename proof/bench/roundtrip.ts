import {
  ask,
  askLine,
  type Bridge,
  type BridgeKind,
  type ClientFigures,
  productMissing,
  startBridge,
  startResponder,
} from "./bridges.ts";
import { found, pinned } from "./machine.ts";
import { inWorkshop, type Workshop } from "./processes.ts";
import { atLeast, atMost, type Bench, type Bound, inParts, lowerQuartile, type Report } from "./report.ts";

/**
 * HTTP to pty to responder and back, everything on one core, so that the sum of all work is compared and no lucky placement.
 * All bridges are up for the whole section and take turns, so that what else the machine does falls on all of them. Of each
 * one's many short rounds the quieter quarter is compared. A client right on a line, in turn with them, gives the floor.
 */

const section = "roundtrip";

function kinds(report: Report): BridgeKind[] {
  const missing = productMissing();
  if (missing !== undefined) report.skip(section, missing, true);
  const relays = (["socat", "ser2net"] as const).filter((relay) => {
    const installed = found(relay) !== undefined;
    if (!installed) report.skip(section, `${relay} isn't installed, so nothing is compared with it`);
    return installed;
  });
  if (!pinned) report.skip(section, "taskset isn't there: processes wander between cores, compare with care");
  const ours = missing === undefined ? (["posline"] as const) : [];
  return [...ours, "fastify", ...relays.flatMap((relay) => (relay === "ser2net" ? [relay, "ser2netWide" as const] : [relay]))];
}

interface Figures {
  readonly of: Map<BridgeKind, ClientFigures[]>;
  /** The round trip of the harness alone, in µs, round by round. */
  readonly floor: number[];
}

function quiet(figures: Figures, kind: BridgeKind, name: keyof ClientFigures): number | undefined {
  const rounds = figures.of.get(kind)?.map((round) => round[name]);
  if (rounds === undefined) return undefined;
  return name === "perS" ? 1 / lowerQuartile(rounds.map((perS) => 1 / perS)) : lowerQuartile(rounds);
}

function compare(
  report: Report,
  figures: Figures,
  name: keyof ClientFigures,
  what: string,
  theirs: BridgeKind,
  bound?: Bound,
): void {
  const mine = quiet(figures, "posline", name);
  const other = quiet(figures, theirs, name);
  const unit = name === "perS" ? "/s" : "µs";
  if (other === undefined) return;
  if (mine === undefined) report.baseline(section, what, other, unit);
  else report.compare(section, what, { ours: mine, theirs: other, unit, floor: inParts(figures.floor, lowerQuartile) }, bound);
}

/** One round of the harness alone and of each bridge after the other, `rounds` times. */
async function interleave(
  bridges: readonly Bridge[],
  rounds: number,
  alone: () => Promise<ClientFigures>,
  measure: (bridge: Bridge) => Promise<ClientFigures>,
): Promise<Figures> {
  const figures: Figures = { of: new Map(), floor: [] };
  for (let round = 0; round < rounds; round++) {
    figures.floor.push((await alone()).p50Us);
    for (const bridge of bridges) {
      const before = figures.of.get(bridge.kind) ?? [];
      figures.of.set(bridge.kind, [...before, await measure(bridge)]);
    }
  }
  return figures;
}

export async function roundtrip({ report, short }: Bench): Promise<void> {
  const wanted = kinds(report);
  await inWorkshop(async (workshop) => {
    const bridges: Bridge[] = [];
    for (const kind of wanted) {
      const bridge = await startBridge(workshop, kind);
      // Starts one at a time, and lets the compiler see the path before anything counts.
      await ask(workshop, bridge, { clients: 1, count: 10, warmup: short ? 2000 : 6000 });
      bridges.push(bridge);
    }
    const [link] = await startResponder(workshop, "floor");
    workshop.occupyOtherCpus();
    const count = short ? 500 : 1000;
    const alone = () => askLine(workshop, link, count, 200);
    const rounds = short ? 9 : 32;
    const one = await interleave(bridges, rounds, alone, (bridge) => ask(workshop, bridge, { clients: 1, count, warmup: 200 }));
    report.baseline(section, "p50, harness alone", lowerQuartile(one.floor), "µs");
    compare(report, one, "p50Us", "p50 against socat's raw relay", "socat", atMost(1.5));
    compare(report, one, "p50Us", "p50 against ser2net, chardelay off", "ser2net", atMost(0.75));
    compare(report, one, "p50Us", "p50 against ser2net, buffers of a frame as well", "ser2netWide");
    compare(report, one, "p50Us", "p50 against fastify + serialport", "fastify", atMost(0.6));
    const own = bridges.find(({ kind }) => kind === "posline");
    if (own !== undefined) await sales(workshop, report, own, rounds);
    const servers = bridges.filter((bridge) => bridge.kind === "posline" || bridge.kind === "fastify");
    const eight = await interleave(servers, rounds, alone, (bridge) =>
      ask(workshop, bridge, { clients: 8, count: count * 2, warmup: 400 }),
    );
    compare(report, eight, "perS", "requests/s, 8 clients, against fastify", "fastify", atLeast(1.8));
  });
}

/** Sales, each under a key of its own, in turn with questions, which are recorded and judged nowhere. */
async function sales(workshop: Workshop, report: Report, bridge: Bridge, rounds: number): Promise<void> {
  const p50s = { ours: [] as number[], theirs: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    const run = { clients: 1, count: 500, warmup: 100 };
    p50s.theirs.push((await ask(workshop, bridge, run)).p50Us);
    p50s.ours.push((await ask(workshop, bridge, { ...run, sells: true })).p50Us);
  }
  const [ours, theirs] = [lowerQuartile(p50s.ours), lowerQuartile(p50s.theirs)];
  const floor = inParts(p50s.theirs, lowerQuartile);
  report.compare(
    section,
    "p50 of /sale, a new key each, against its own /check",
    { ours, theirs, unit: "µs", floor },
    atMost(1.05),
  );
}
