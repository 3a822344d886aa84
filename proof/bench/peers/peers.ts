import { askLine, type Pace, startResponder } from "../bridges.ts";
import { benchCpu, freePort, pinned } from "../machine.ts";
import { figureOf, inWorkshop, type Running, type Workshop } from "../processes.ts";
import { atMost, type Bench, type Bound, inParts, lowerQuartile, movedPercent } from "../report.ts";
import { type Asked, askBy, type CallerFigures, type CallerRun } from "./callers.ts";
import { type Table, writePage } from "./page.ts";
import { type Peer, peers } from "./peer.ts";
import { plotSvg } from "./plot.ts";

/**
 * What the usual ways cost, beside posline: each on a pty of its own with the same responder, all up at once and asked in turns on
 * one core, so that what else the machine does falls on all of them. Of each one's short rounds the quieter quarter is shown.
 */

const section = "peers";
const callerCounts = [1, 8, 64] as const;

/** So long is asked in a run, in s: what a relay of 44 ms a call and one of 50 µs have in common is the time. */
const runS = { short: 0.25, full: 0.5 };
const exchangesMax = 2000;

/** The reply timeout of every bridge here; nothing is late. */
const replyTimeoutMs = 30_000;

interface Speed extends Pace {
  /** A run's exchanges: the first six and the last one don't count. */
  readonly exchanges: number;
  readonly rounds: number;
}

function speeds(short: boolean): readonly Speed[] {
  const warm = { pieceBytes: 8, warmUpExchanges: short ? 300 : 3000 };
  return [
    { ...warm, baudRate: 9600, exchanges: short ? 12 : 20, rounds: short ? 1 : 2 },
    { ...warm, baudRate: 115_200, exchanges: 48, rounds: short ? 1 : 5 },
    { ...warm, pieceBytes: 64, baudRate: 921_600, exchanges: short ? 100 : 300, rounds: short ? 1 : 5 },
  ];
}

interface Started extends Asked {
  readonly peer: Peer;
  readonly responder: Running;
}

async function startPeer(workshop: Workshop, peer: Peer, pace?: Pace): Promise<Started> {
  const port = await freePort();
  const [link, responder] = await startResponder(workshop, `${peer.name}-${port}`, pace);
  const argv = peer.argv({ workshop, link, port, baudRate: pace?.baudRate ?? 115_200, replyTimeoutMs });
  const process = workshop.start(`${peer.name}-${port}`, argv, { cpu: benchCpu });
  return { name: peer.name, kind: peer.kind, ports: [port], process, peer, responder };
}

/** By peer and count of callers, round by round. */
type Rounds = Map<string, CallerFigures[]>;

const keyOf = (name: string, callers: number) => `${name} ${callers}`;

/** What the quieter quarter came to: the lower one, of rates the upper one. */
function quiet(rounds: readonly CallerFigures[] | undefined, name: keyof CallerFigures): number | undefined {
  if (rounds === undefined || rounds.length === 0) return undefined;
  const values = rounds.map((round) => round[name]);
  return name === "perS" ? 1 / lowerQuartile(values.map((perS) => 1 / perS)) : lowerQuartile(values);
}

async function roundTrips(measured: readonly Peer[], short: boolean): Promise<{ rounds: Rounds; floor: number[] }> {
  return await inWorkshop(async (workshop) => {
    const started: (Started & { count: number })[] = [];
    for (const peer of measured) {
      const one = await startPeer(workshop, peer);
      // Lets a compiler see the path, and shows how many exchanges fit into a run.
      const { perS } = await askBy(workshop, one, { callers: 1, count: 40, warmup: 0 });
      const fast = perS > 100;
      if (fast) await askBy(workshop, one, { callers: 8, count: 10, warmup: short ? 2000 : 6000 });
      const count = Math.min(exchangesMax, Math.max(20, Math.round(perS * (short ? runS.short : runS.full))));
      started.push({ ...one, count });
    }
    const [link] = await startResponder(workshop, "floor");
    workshop.occupyOtherCpus();
    const rounds: Rounds = new Map();
    const floor: number[] = [];
    for (let round = 0; round < (short ? 3 : 16); round++) {
      // Its mean, not its median: what else the machine does shows in the slow ones.
      floor.push(1e6 / (await askLine(workshop, link, 500, 200)).perS);
      for (const callers of callerCounts) {
        for (const one of started) {
          const run: CallerRun = {
            callers,
            count: Math.max(one.count, 2 * callers),
            warmup: one.count > 1000 ? callers + 100 : 0,
          };
          // Who takes 44 ms a call isn't asked 64 times over in every round: its figures don't move.
          if (one.count < 100 && round % 4 > 0) continue;
          const key = keyOf(one.name, callers);
          rounds.set(key, [...(rounds.get(key) ?? []), await askBy(workshop, one, run)]);
        }
      }
    }
    return { rounds, floor };
  });
}

type Burst = { readonly fullPercent: number; readonly processorUs: number };

async function burst(workshop: Workshop, one: Started, count: number): Promise<Burst> {
  const { processorUs } = await askBy(workshop, one, { callers: 4, count, warmup: 0 });
  return { fullPercent: 100 * figureOf(await one.responder.line(5000), "full"), processorUs };
}

/** By peer and baud rate: how full the line was, and what an exchange cost. */
async function fullLines(measured: readonly Peer[], short: boolean): Promise<Map<string, Burst>> {
  const found = new Map<string, Burst>();
  for (const speed of speeds(short)) {
    await inWorkshop(async (workshop) => {
      const started: Started[] = [];
      for (const peer of measured) {
        const one = await startPeer(workshop, peer, speed);
        // What ser2net as shipped needs for it, at 44 ms each, is no warm-up.
        const warmUp = peer.name === "ser2net-shipped" ? 20 : speed.warmUpExchanges;
        await askBy(workshop, one, { callers: 4, count: warmUp, warmup: 0 });
        if (warmUp < speed.warmUpExchanges) continue;
        started.push(one);
      }
      const bursts = new Map<string, Burst[]>();
      const keep = async (one: Started) => {
        const { name } = one;
        const figures = await burst(workshop, one, speed.exchanges);
        bursts.set(name, [...(bursts.get(name) ?? []), figures]);
      };
      for (let round = 0; round < speed.rounds; round++) {
        // At 9600 baud every core is idle, so all lines run at once; faster ones take turns.
        if (speed.baudRate < 20_000) await Promise.all(started.map(keep));
        else for (const one of started) await keep(one);
      }
      for (const [name, rounds] of bursts) {
        const fullPercent = 100 - lowerQuartile(rounds.map((round) => 100 - round.fullPercent));
        const processorUs = lowerQuartile(rounds.map((round) => round.processorUs));
        found.set(keyOf(name, speed.baudRate), { fullPercent, processorUs });
      }
    });
  }
  return found;
}

function tables(measured: readonly Peer[], rounds: Rounds, bursts: Map<string, Burst>): Table[] {
  const figure = (peer: Peer, callers: number, name: keyof CallerFigures) => quiet(rounds.get(keyOf(peer.name, callers)), name);
  return [
    {
      caption:
        "Round trip, everything on one core: µs, requests/s, processor time an exchange (µs), memory with 64 callers (MiB)",
      columns: ["", "p50", "p99", "/s, 1 caller", "/s, 8", "/s, 64", "p99, 64", "processor", "RSS"],
      rows: measured.map((peer) => [
        peer.title,
        figure(peer, 1, "p50Us"),
        figure(peer, 1, "p99Us"),
        ...callerCounts.map((callers) => figure(peer, callers, "perS")),
        figure(peer, 64, "p99Us"),
        figure(peer, 1, "processorUs"),
        figure(peer, 64, "rssMiB"),
      ]),
    },
    {
      caption:
        "A line with four callers waiting, in % of the time that it carries bytes; processor time an exchange (µs) at 115200 baud",
      columns: ["", "9600", "115200, 8-byte pieces", "921600, 64-byte pieces", "processor"],
      rows: measured.map((peer) => {
        const at = (baudRate: number) => bursts.get(keyOf(peer.name, baudRate));
        const percent = (baudRate: number) => at(baudRate)?.fullPercent.toFixed(2);
        return [peer.title, percent(9600), percent(115_200), percent(921_600), at(115_200)?.processorUs];
      }),
    },
  ];
}

/** What docs/proof.md says of them; a peer that wasn't measured is not compared with. */
const bounds: readonly { readonly name: keyof CallerFigures; readonly theirs: string; readonly bound: Bound }[] = [
  { name: "p50Us", theirs: "socat", bound: atMost(1.5) },
  { name: "p99Us", theirs: "socat", bound: atMost(4) },
  { name: "p50Us", theirs: "bare", bound: atMost(1.6) },
  ...["ser2net-shipped", "ser2net-tuned", "node-red", "fastify", "python"].map((theirs) => ({
    name: "p50Us" as const,
    theirs,
    bound: atMost(1),
  })),
];

export async function peersSection({ report, short }: Bench): Promise<void> {
  const notes: string[] = [];
  const note = (text: string) => {
    notes.push(text);
    console.error(`bench ${section}: ${text}`);
  };
  if (!pinned) note("taskset isn't there: processes wander between cores, compare with care");
  const measured = peers.filter((peer) => {
    const missing = peer.missing();
    if (missing === undefined) return true;
    note(`not measured: ${peer.title}: ${missing}`);
    if (peer.name === "posline") report.skip(section, missing, true);
    return false;
  });
  const { rounds, floor } = await roundTrips(measured, short);
  const bursts = await fullLines(measured, short);
  const parts = inParts(floor, lowerQuartile);
  for (const { name, theirs, bound } of bounds) {
    const [ours, other] = ["posline", theirs].map((peer) => quiet(rounds.get(keyOf(peer, 1)), name));
    if (ours === undefined || other === undefined) continue;
    const what = `${name === "p50Us" ? "p50" : "p99"} against ${theirs}`;
    report.compare(section, what, { ours, theirs: other, unit: "µs", floor: parts }, bound);
  }
  const [ours, stream] = ["posline", "fastify"].map((peer) => bursts.get(keyOf(peer, 115_200))?.processorUs);
  if (ours !== undefined && stream !== undefined) {
    const figures = { ours, theirs: stream, unit: "µs", floor: parts };
    report.compare(section, "processor time at 115200 in 8-byte pieces against serialport's stream", figures, atMost(0.5));
  }
  note("ser2net as shipped is left out of the line's second table: it waits for more characters longer than a reply takes");
  note(`the harness alone took ${parts.map((us) => us.toFixed(1)).join(", ")} µs in the parts of the run: ${quietness(parts)}`);
  const rate = (peer: Peer) =>
    callerCounts.flatMap((callers) => {
      const perS = quiet(rounds.get(keyOf(peer.name, callers)), "perS");
      return perS === undefined ? [] : [[callers, perS] as const];
    });
  const series = measured.map((peer) => ({ name: peer.title, points: rate(peer) }));
  const plots = { "peers-rate.svg": plotSvg({ title: "Requests/s by callers", x: "callers", y: "requests/s", series }) };
  writePage({ name: section, tables: tables(measured, rounds, bursts), notes, plots });
}

/** Whether the machine was quiet while the harness alone took this in each part. */
export function quietness(parts: readonly number[]): string {
  const moved = movedPercent(parts);
  return moved > 15 ? `it moved by ${moved.toFixed(0)} %, too noisy to judge` : "quiet enough to judge";
}
