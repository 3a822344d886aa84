import { mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { nodeDisk } from "../../../src/journal/disk.ts";
import { type JournalRecord, writeRecord } from "../../../src/journal/record.ts";
import { openRing } from "../../../src/journal/ring.ts";
import { slotBytes } from "../../../src/journal/slot.ts";
import { askLine, productCommand, productMissing, startResponder } from "../bridges.ts";
import { benchCpu, freePort, pythonArgv } from "../machine.ts";
import { inWorkshop, type Running, type Workshop } from "../processes.ts";
import { atMost, type Bench, type Bound, inParts, lowerQuartile } from "../report.ts";
import { type Asked, askBy, type CallerFigures, type CallerRun } from "./callers.ts";
import { type Table, writePage } from "./page.ts";
import { quietness } from "./peers.ts";
import { plotSvg } from "./plot.ts";

/**
 * How the cost of an exchange grows with what a box has more of: callers that wait, lines, bytes of a reply, records in the journal. All
 * steps of one question are up at once and asked in turns on one core; of each one's rounds the quieter quarter is shown.
 */

const section = "cost";

/** What cost an exchange may have at the question's last step, in multiples of its first. */
const grownMost = atMost(1.2);

const journalBytes = 64 * 1024 * 1024;
/** One less than there are slots: the ring is as full as it can be. */
const journalRecordsMax = journalBytes / slotBytes - 1;

/** One step of a question: posline set up so, and asked so. */
interface Step {
  readonly size: number;
  readonly run: CallerRun;
  readonly start: (workshop: Workshop) => Promise<Asked>;
}

interface Question {
  readonly name: string;
  readonly caption: string;
  readonly unit: string;
  readonly steps: readonly Step[];
  /** Of the last step's processor time against the first one's. */
  readonly bound?: Bound;
}

type Setup = { readonly lines?: number; readonly replyBytes?: number; readonly journal?: string };

/** Starts posline with so many lines, a bank on each. */
async function startProduct(workshop: Workshop, setup: Setup = {}): Promise<Asked> {
  const { lines: count = 1, replyBytes, journal } = setup;
  const lines: Record<string, object> = {};
  const services: Record<string, object> = {};
  const ports: number[] = [];
  for (let i = 1; i <= count; i++) {
    const port = await freePort();
    const link = await startTerminal(workshop, port, replyBytes);
    // As many as wait here, and no call of theirs is refused for having waited too long.
    lines[`till${i}`] = { path: link, queueCallsMax: 1024, queueWaitMs: 60_000 };
    services[i === 1 ? "bank" : `bank-${i}`] = { contract: "bank", line: `till${i}`, port };
    ports.push(port);
  }
  const config = workshop.path(`posline-${ports[0]}.json`);
  const kept = journal === undefined ? false : { folder: journal, bytes: journalBytes };
  writeFileSync(config, JSON.stringify({ lines, services, journal: kept }));
  const process = workshop.start(`posline-${ports[0]}`, productCommand(config), { cpu: benchCpu });
  return { name: "posline", kind: "http", ports, process };
}

async function startTerminal(workshop: Workshop, port: number, replyBytes: number | undefined): Promise<string> {
  if (replyBytes === undefined) return (await startResponder(workshop, `line-${port}`))[0];
  const link = workshop.path(`line-${port}.line`);
  const responder = workshop.start(`line-${port}`, pythonArgv("responder.py", link, replyBytes), {
    cpu: benchCpu,
    talks: true,
  });
  await responder.line(10_000);
  return link;
}

/** A journal with so many records of sales that ended well, the newest of them now. */
async function preparedJournal(workshop: Workshop, records: number): Promise<string> {
  const folder = workshop.path(`journal-${records}`);
  mkdirSync(folder, { recursive: true });
  const { ring } = await openRing(nodeDisk, folder, journalBytes);
  const now = Date.now();
  const text = (sequence: number): string => {
    const timeMs = now - (records - sequence) * 100;
    const record: JournalRecord =
      sequence % 2 === 0
        ? { kind: "outcome", timeMs, sent: sequence - 1, outcome: "answered", status: "success", code: 0 }
        : {
            kind: "sent",
            timeMs,
            requestId: `prepared-${sequence}`,
            service: "bank",
            route: "/sale",
            key: `PREPARED-${sequence}`,
            amount: "1500",
            digest: "0".repeat(32),
          };
    return writeRecord(record);
  };
  const batch = 4096;
  for (let from = 1; from <= records; from += batch) {
    const length = Math.min(batch, records - from + 1);
    await ring.write(Array.from({ length }, (_, i) => ({ sequence: from + i, text: text(from + i) })));
  }
  await ring.close();
  return folder;
}

function questions(short: boolean): readonly Question[] {
  const count = short ? 200 : 600;
  // Each caller asks once before it counts: what its connection cost is no exchange's.
  const atLeast = (callers: number) => ({ callers, count: Math.max(count, 4 * callers), warmup: callers + 100 });
  return [
    {
      name: "callers",
      caption: "Callers that wait for one line",
      unit: "callers",
      steps: [1, 8, 64, 512].map((size) => ({ size, run: atLeast(size), start: (workshop) => startProduct(workshop) })),
      bound: grownMost,
    },
    {
      name: "lines",
      caption: "Lines of one process, a caller on each",
      unit: "lines",
      steps: [1, 2, 4, 8].map((size) => ({
        size,
        run: atLeast(size),
        start: (workshop) => startProduct(workshop, { lines: size }),
      })),
      bound: grownMost,
    },
    {
      name: "payload",
      caption: "Bytes of a reply",
      unit: "bytes",
      steps: [100, 1024, 10_240, 102_400, 1_048_576].map((size) => ({
        size,
        run: { callers: 1, count: Math.max(10, Math.min(count, Math.round(2e7 / size))), warmup: 10, replyBytes: size },
        start: (workshop) => startProduct(workshop, { replyBytes: size }),
      })),
    },
    {
      name: "journal",
      caption: `Records in the journal, at sales (${journalRecordsMax.toLocaleString("en")} are the most that it can hold)`,
      unit: "records",
      steps: [0, 10_000, journalRecordsMax].map((size) => ({
        size,
        run: { callers: 1, count: count / 2, warmup: 20, route: "/sale" },
        start: async (workshop) => startProduct(workshop, { journal: await preparedJournal(workshop, size) }),
      })),
    },
  ];
}

/** Milliseconds until it accepts connections. */
async function listening(port: number, process: Running, begun: number): Promise<number> {
  for (;;) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true)).once("error", () => resolve(false));
      socket.once("connect", () => socket.destroy());
    });
    if (open) return performance.now() - begun;
    if (performance.now() - begun > 20_000) throw new Error(`Cannot start posline: it doesn't listen\n${process.log()}`);
    await sleep(5);
  }
}

interface Answer {
  readonly question: Question;
  /** Step by step. */
  readonly figures: readonly { readonly size: number; readonly startMs: number; readonly rounds: readonly CallerFigures[] }[];
  readonly floor: readonly number[];
}

async function answerOf(question: Question, short: boolean): Promise<Answer> {
  return await inWorkshop(async (workshop) => {
    const figures: { size: number; startMs: number; rounds: CallerFigures[]; asked: Asked; run: CallerRun }[] = [];
    for (const { size, run, start } of question.steps) {
      const asked = await start(workshop);
      const startMs = await listening(asked.ports[0] ?? 0, asked.process, performance.now());
      // Every step's compiler has seen as much before anything counts.
      const large = (run.replyBytes ?? 0) > 100_000;
      await askBy(workshop, asked, { ...run, count: 20, warmup: large ? 100 : short ? 1000 : 4000 });
      figures.push({ size, startMs, rounds: [], asked, run });
    }
    const [link] = await startResponder(workshop, "floor");
    workshop.occupyOtherCpus();
    const floor: number[] = [];
    for (let round = 0; round < (short ? 3 : 24); round++) {
      // Its mean, not its median: what else the machine does shows in the slow ones.
      floor.push(1e6 / (await askLine(workshop, link, 500, 200)).perS);
      for (const step of figures) step.rounds.push(await askBy(workshop, step.asked, step.run));
    }
    return { question, figures, floor };
  });
}

const quiet = (rounds: readonly CallerFigures[], name: keyof CallerFigures) =>
  lowerQuartile(rounds.map((round) => round[name]));

function tableOf({ question, figures }: Answer): Table {
  return {
    caption: `${question.caption}: µs; memory in MiB`,
    columns: [question.unit, "p50", "p99", "processor time an exchange", "RSS", "start to listening (ms)"],
    rows: figures.map(({ size, startMs, rounds }) => [
      size.toLocaleString("en"),
      quiet(rounds, "p50Us"),
      quiet(rounds, "p99Us"),
      quiet(rounds, "processorUs"),
      quiet(rounds, "rssMiB"),
      startMs,
    ]),
  };
}

function plotOf({ question, figures }: Answer): string {
  const series = (["p50Us", "p99Us", "processorUs"] as const).map((name) => ({
    name: { p50Us: "p50", p99Us: "p99", processorUs: "processor time" }[name],
    // An empty journal has no place on a logarithmic axis; it stands at 1.
    points: figures.map(({ size, rounds }) => [Math.max(1, size), quiet(rounds, name)] as const),
  }));
  return plotSvg({ title: question.caption, x: question.unit, y: "µs", series });
}

export async function costSection({ report, short }: Bench): Promise<void> {
  const missing = productMissing();
  if (missing !== undefined) {
    report.skip(section, missing, true);
    return;
  }
  const answers: Answer[] = [];
  const notes: string[] = [];
  for (const question of questions(short)) {
    const answer = await answerOf(question, short);
    answers.push(answer);
    const parts = inParts(answer.floor, lowerQuartile);
    notes.push(
      `${question.name}: the harness alone took ${parts.map((us) => us.toFixed(1)).join(", ")} µs: ${quietness(parts)}`,
    );
    const [first, last] = [answer.figures.at(0), answer.figures.at(-1)];
    if (question.bound !== undefined && first !== undefined && last !== undefined) {
      const what = `processor time an exchange, ${last.size} ${question.unit} against ${first.size}`;
      const [ours, theirs] = [quiet(last.rounds, "processorUs"), quiet(first.rounds, "processorUs")];
      report.compare(section, what, { ours, theirs, unit: "µs", floor: parts }, question.bound);
    }
    console.error(`bench ${section}: ${question.name} done`);
  }
  notes.push(
    "p50 and p99 of callers that wait grow with their number, since a line carries one exchange at a time",
    `a million journal records can't be: the largest journal (64 MiB) holds ${(journalRecordsMax + 1).toLocaleString("en")}; the journal is synced to the disk twice a sale`,
  );
  const plots = Object.fromEntries(answers.map((answer) => [`cost-${answer.question.name}.svg`, plotOf(answer)]));
  writePage({ name: section, tables: answers.map(tableOf), notes, plots });
}
