import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { productCommand, productMissing, startResponder } from "./bridges.ts";
import { freePort, memoryMiB, pythonArgv } from "./machine.ts";
import { figuresOf, inWorkshop, type Workshop } from "./processes.ts";
import { atMost, type Bench, inParts, median, type Report } from "./report.ts";

/** How long the product takes to listen on its three ports, and what it holds when idle, against the least Node server. */

const section = "start";
const startOverMs = 60;
const idleOverMiB = 9;

type Program = { readonly name: string; readonly argv: readonly string[]; readonly ports: readonly number[] };

/** By program, round by round. */
type Figures = ReadonlyMap<string, readonly number[]>;

async function bareProgram(workshop: Workshop): Promise<Program> {
  const port = await freePort();
  const script = workshop.path("bare.mjs");
  const source = `import { createServer } from "node:http";
createServer((request, response) => response.end("hello\\n")).listen(${port}, "127.0.0.1");
`;
  writeFileSync(script, source);
  return { name: "bare", argv: [process.execPath, script], ports: [port] };
}

async function productProgram(workshop: Workshop): Promise<Program> {
  const [path] = await startResponder(workshop, "start");
  const ports = [await freePort(), await freePort(), await freePort()];
  const [fiscal, bank, qr] = ports;
  const services = {
    // The sign is known, so that a fiscal probe can be sent and the line settles as in production.
    fiscal: { line: "till", port: fiscal, merchantId: "MERCHANT-1" },
    bank: { line: "till", port: bank },
    qr: { line: "till", port: qr },
  };
  const config = workshop.path("start.json");
  writeFileSync(config, JSON.stringify({ lines: { till: { path, baudRate: 115_200 } }, services }));
  return { name: "posline", argv: productCommand(config), ports };
}

/** What each program took, in ms, round by round. */
async function startTimes(workshop: Workshop, programs: readonly Program[], rounds: number): Promise<Figures> {
  const run = workshop.start("start", pythonArgv("start.py", rounds), { talks: true });
  run.child.stdin?.end(JSON.stringify(programs));
  const times = await run.line(rounds * programs.length * 2000 + 20_000);
  return new Map(programs.map(({ name }) => [name, figuresOf(times, name)]));
}

/** RssAnon after three idle seconds: judged rather than RSS, most of which is the node binary's own pages. */
async function idleMiB(workshop: Workshop, programs: readonly Program[], rounds: number): Promise<Figures> {
  const figures = new Map<string, number[]>();
  for (let round = 0; round < rounds; round++) {
    const running = programs.map((program) => workshop.start(program.name, program.argv));
    await sleep(3500);
    for (const one of running) {
      figures.set(one.name, [...(figures.get(one.name) ?? []), memoryMiB(one.pid, "RssAnon")]);
      await one.stop();
    }
  }
  return figures;
}

/** The least server is what is compared with and the floor: there is nothing of ours in it. */
function addOver(report: Report, what: string, figures: Figures, { unit, most }: { unit: string; most: number }): void {
  const bare = figures.get("bare") ?? [];
  const theirs = median(bare);
  const ours = median(figures.get("posline") ?? []);
  const judged = { value: ours - theirs, unit: "" } as const;
  report.add({ section, what, ours, theirs, unit, judged, bound: atMost(most), floor: inParts(bare, median) });
}

export async function start({ report, short }: Bench): Promise<void> {
  const missing = productMissing();
  if (missing !== undefined) report.skip(section, missing, true);
  await inWorkshop(async (workshop) => {
    const bare = await bareProgram(workshop);
    const programs = missing === undefined ? [bare, await productProgram(workshop)] : [bare];
    const times = await startTimes(workshop, programs, short ? 15 : 31);
    const idle = await idleMiB(workshop, programs, short ? 2 : 5);
    if (missing !== undefined) {
      report.baseline(section, "start to listening", median(times.get("bare") ?? []), "ms");
      report.baseline(section, "idle RssAnon", median(idle.get("bare") ?? []), "MiB");
      return;
    }
    addOver(report, "start to listening, ms over bare node:http", times, { unit: "ms", most: startOverMs });
    addOver(report, "idle RssAnon, MiB over bare node:http", idle, { unit: "MiB", most: idleOverMiB });
  });
}
