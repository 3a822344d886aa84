import type { CallerFigures } from "../callers.ts";
import { type Burst, fullLines, type Speed } from "../efficiency.ts";
import { pinned } from "../machine.ts";
import { type Peer, peersHere } from "../peer.ts";
import { atMost, type Bench, movedPercent } from "../report.ts";
import { type Comparison, compareAll, keyOf, roundTrips } from "../roundtrip.ts";
import type { Rounds } from "../turns.ts";
import { type Table, writePage } from "./page.ts";
import { plotSvg } from "./plot.ts";

/** What all the usual ways cost, beside posline: the round trip by callers, and a full line by its speed. */

const section = "peers";
const callerCounts = [1, 8, 64] as const;

function speeds(short: boolean): readonly Speed[] {
  const warm = { pieceBytes: 8, warmUpExchanges: short ? 300 : 3000 };
  // A run's first six exchanges and its last one don't count.
  return [
    { ...warm, baudRate: 9600, exchanges: short ? 12 : 20, rounds: short ? 1 : 2 },
    { ...warm, baudRate: 115_200, exchanges: 48, rounds: short ? 1 : 5 },
    { ...warm, pieceBytes: 64, baudRate: 921_600, exchanges: short ? 100 : 300, rounds: short ? 1 : 5 },
  ];
}

function tables(measured: readonly Peer[], rounds: Rounds<CallerFigures>, bursts: ReadonlyMap<number, Rounds<Burst>>): Table[] {
  const figure = (peer: Peer, callers: number, name: keyof CallerFigures) => rounds.quiet(keyOf(peer.name, callers), name);
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
      rows: measured.map(({ name, title }) => {
        const at = (baudRate: number, figure: keyof Burst) => bursts.get(baudRate)?.quiet(name, figure) ?? Number.NaN;
        const percents = [9600, 115_200, 921_600].map((baudRate) => at(baudRate, "fullPercent"));
        const texts = percents.map((percent) => (Number.isNaN(percent) ? undefined : percent.toFixed(2)));
        return [title, ...texts, at(115_200, "processorUs")];
      }),
    },
  ];
}

/** What docs/proof.md says of them; a peer that wasn't measured is not compared with. */
const comparisons: readonly Comparison[] = [
  { figure: "p50Us", theirs: "socat", bound: atMost(1.5) },
  { figure: "p99Us", theirs: "socat", bound: atMost(4) },
  { figure: "p50Us", theirs: "bare", bound: atMost(1.6) },
  ...["ser2net-shipped", "ser2net-tuned", "node-red", "fastify", "python"].map((theirs) => ({
    ...{ figure: "p50Us" as const, theirs, bound: atMost(1) },
  })),
];

export async function peersSection({ report, short }: Bench): Promise<void> {
  const notes: string[] = [];
  const note = (text: string) => {
    notes.push(text);
    console.error(`bench ${section}: ${text}`);
  };
  if (!pinned) note("taskset isn't there: processes wander between cores, compare with care");
  const measured = peersHere(note);
  const rounds = await roundTrips(measured, callerCounts, short ? 3 : 16, short);
  const bursts = new Map<number, Rounds<Burst>>();
  for (const speed of speeds(short)) {
    const able = measured.filter(({ name }) => name !== "ser2net-shipped");
    bursts.set(speed.baudRate, await fullLines(able, speed));
  }
  compareAll(report, section, rounds, comparisons);
  const floor = rounds.parts("floor", "perS");
  const [ours, theirs] = ["posline", "fastify"].map((peer) => bursts.get(115_200)?.quiet(peer, "processorUs") ?? Number.NaN);
  if (ours !== undefined && theirs !== undefined) {
    const what = "processor time at 115200 in 8-byte pieces against serialport's stream";
    report.compare(section, what, { ours, theirs, unit: "µs", floor }, atMost(0.5));
  }
  note("ser2net as shipped is left out of the line's second table: it waits for more characters longer than a reply takes");
  note(harnessNote(floor));
  const series = measured.map(({ name, title }) => ({
    name: title,
    points: callerCounts.map((callers) => [callers, rounds.quiet(keyOf(name, callers), "perS")] as const),
  }));
  const plots = { "peers-rate.svg": plotSvg({ title: "Requests/s by callers", x: "callers", y: "requests/s", series }) };
  writePage({ name: section, tables: tables(measured, rounds, bursts), notes, plots });
}

/** What the harness alone took, by its exchanges a second in each part of the run, and whether the machine was quiet. */
export function harnessNote(perS: readonly number[]): string {
  const moved = movedPercent(perS);
  const quiet = moved > 15 ? `it moved by ${moved.toFixed(0)} %, too noisy to judge` : "quiet enough to judge";
  return `the harness alone took ${perS.map((each) => (1e6 / each).toFixed(1)).join(", ")} µs in the parts of the run: ${quiet}`;
}
