import { writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { productCommand, productMissing } from "./bridges.ts";
import { benchDir, freePort } from "./machine.ts";
import { inWorkshop, type Running, type Workshop } from "./processes.ts";
import { atMost, type Bench, inParts, median, type Report } from "./report.ts";

/**
 * What the faults of one line cost the others: six services on four lines, 60 clients, and in turns a round in which every terminal
 * is well and one in which the terminal of one line goes wrong in every way (terminal.ts). The load is the same in both: each
 * client pauses between its calls. The others' p99 is compared with their own in the rounds without.
 */

const section = "isolation";

/** Which line each service is on. Fiscal needs signed forms, and says no more of isolation than the others do. */
const services = {
  bank: { line: "desk", contract: "bank" },
  qr: { line: "desk", contract: "qr" },
  "bank-2": { line: "bar", contract: "bank" },
  "qr-2": { line: "bar", contract: "qr" },
  "bank-3": { line: "terrace", contract: "bank" },
  "bank-4": { line: "kiosk", contract: "bank" },
} as const;

type Service = keyof typeof services;
type LineName = (typeof services)[Service]["line"];

const lines: readonly LineName[] = ["desk", "bar", "terrace", "kiosk"];
const faultyLine: LineName = "bar";
const clients = 60;
/** Milliseconds between two calls of a client, on average: about a thousand calls a second in all, far from what the box can do. */
const pauseMs = 60;
/** Milliseconds that a call to the faulty line may take; it waits, or has no reply, for no longer than its settings allow. */
const callMsMax = 30_000;
/** Milliseconds that the faulty line may take to be proven clean once its terminal is well. */
const recoverMsMax = 60_000;

/** Milliseconds of each answered call, by line; of the faulty line also how many weren't. */
type Round = { readonly ms: Readonly<Record<LineName, number[]>>; unanswered: number };

const newRound = (): Round => ({ ms: { desk: [], bar: [], terrace: [], kiosk: [] }, unanswered: 0 });

interface Bridge {
  readonly process: Running;
  /** The faulty line's. */
  readonly terminal: Running;
  readonly ports: Readonly<Record<string, number>>;
  readonly adminPort: number;
}

async function startBridge(workshop: Workshop): Promise<Bridge> {
  const paths = lines.map((line) => workshop.path(line));
  const tsx = fileURLToPath(import.meta.resolve("tsx"));
  const terminals = paths.map((path, n) =>
    workshop.start(`terminal-${lines[n]}`, [process.execPath, "--import", tsx, join(benchDir, "terminal.ts"), path], {
      talks: true,
    }),
  );
  for (const each of terminals) await each.line(20_000);
  const terminal = terminals[lines.indexOf(faultyLine)];
  if (terminal === undefined) throw new Error(`Cannot go on: there is no terminal of ${faultyLine}`);
  const ports: Record<string, number> = {};
  for (const name of Object.keys(services)) ports[name] = await freePort();
  const adminPort = await freePort();
  const config = workshop.path("posline.json");
  // The faulty line's calls give up soon, so that many faults fit into a round.
  const replyTimeoutMs = { "/check": 3_100 };
  writeFileSync(
    config,
    JSON.stringify({
      lines: Object.fromEntries(lines.map((line, n) => [line, { path: paths[n], lateReplyMs: 4_000 }])),
      services: Object.fromEntries(
        Object.entries(services).map(([name, { line, contract }]) => [
          name,
          { ...(name === contract ? {} : { contract }), line, port: ports[name], replyTimeoutMs },
        ]),
      ),
      admin: { port: adminPort },
      journal: false,
    }),
  );
  const bridge = { process: workshop.start("posline", productCommand(config)), terminal, ports, adminPort };
  await ready(bridge);
  return bridge;
}

/** Waits until every line is clean and every terminal heard. */
async function ready({ adminPort, process: bridge }: Bridge): Promise<void> {
  const until = performance.now() + recoverMsMax;
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${adminPort}/readyz`).catch(() => undefined);
    if (answer?.status === 200) return;
    if (performance.now() > until) {
      throw new Error(`Cannot go on: posline isn't ready after ${recoverMsMax} ms\n${await answer?.text()}\n${bridge.log()}`);
    }
    await sleep(50);
  }
}

/** One call; resolves to its milliseconds, or to undefined where the terminal's answer didn't come. */
function call(agent: Agent, port: number, body: string): Promise<number | undefined> {
  const beganMs = performance.now();
  return new Promise((resolve) => {
    const options = { host: "127.0.0.1", port, method: "POST", path: "/check", agent, timeout: callMsMax };
    const asking = request(options, (response) => {
      const isAnswered = response.headers["x-posline-outcome"] === "answered";
      response.resume();
      response.on("end", () => resolve(isAnswered ? performance.now() - beganMs : undefined));
      response.on("error", () => resolve(undefined));
    });
    asking.on("timeout", () => asking.destroy());
    asking.on("error", () => resolve(undefined));
    asking.end(body);
  });
}

/** The clients of all services, each of which has one call in flight, until the healthy lines have had this many. */
async function runRound({ ports }: Bridge, calls: number): Promise<Round> {
  const round = newRound();
  const names = Object.keys(services) as Service[]; // Of the table's own keys
  let left = calls;
  const all = Array.from({ length: clients }, async (_, n) => {
    const name = names[n % names.length] ?? "bank";
    const { line } = services[name];
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    // Spread over a pause, so that the clients don't come all at once.
    await sleep((n / clients) * pauseMs);
    for (let i = 0; left > 0; i++) {
      if (line !== faultyLine) left--;
      const ms = await call(agent, ports[name] ?? 0, JSON.stringify({ pay_id: `${name}-${n}-${i}`, trans: `${n}-${i}` }));
      if (ms !== undefined) round.ms[line].push(ms);
      else if (line === faultyLine) round.unanswered++;
      else throw new Error(`Cannot go on: a call of ${name} on the healthy line ${line} was not answered`);
      await sleep(pauseMs * (0.5 + ((n * 7 + i * 3) % 11) / 10));
    }
    agent.destroy();
  });
  await Promise.all(all);
  return round;
}

async function setTerminal({ terminal }: Bridge, what: "faults" | "well"): Promise<void> {
  terminal.child.stdin?.write(`${what}\n`);
  await terminal.line(5_000);
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function add(report: Report, well: readonly Round[], faulty: readonly Round[]): void {
  const of = (rounds: readonly Round[], line: LineName) => rounds.flatMap(({ ms }) => ms[line]);
  for (const line of lines) {
    const isFaulty = line === faultyLine;
    const count = of(well, line).length + of(faulty, line).length;
    for (const [name, share] of [
      ["p50", 0.5],
      ["p99", 0.99],
    ] as const) {
      const what = `${line}${isFaulty ? " (the faulty one)" : ""}: ${name} with faults against without, ${count} calls`;
      const ours = percentile(of(faulty, line), share);
      const theirs = percentile(of(well, line), share);
      // What else the machine did shows in the rounds without faults.
      const floor = inParts(
        well.map(({ ms }) => percentile(ms[line], 0.5)),
        median,
      );
      report.compare(section, what, { ours, theirs, unit: "ms", floor }, !isFaulty && share > 0.9 ? atMost(1.2) : undefined);
    }
  }
  const unanswered = faulty.reduce((sum, round) => sum + round.unanswered, 0);
  report.figure(section, `${faultyLine}: calls that faults left without an answer`, unanswered, "", undefined);
}

export async function isolation({ report, short }: Bench): Promise<void> {
  const missing = productMissing();
  if (missing !== undefined) return report.skip(section, missing, true);
  await inWorkshop(async (workshop) => {
    const bridge = await startBridge(workshop);
    const [rounds, calls] = short ? [2, 400] : [16, 1_250];
    const well: Round[] = [];
    const faulty: Round[] = [];
    // The compiler's turn; it isn't counted.
    await runRound(bridge, short ? 400 : 2_500);
    for (let round = 0; round < rounds; round++) {
      well.push(await runRound(bridge, calls));
      await setTerminal(bridge, "faults");
      faulty.push(await runRound(bridge, calls));
      await setTerminal(bridge, "well");
      await ready(bridge);
    }
    add(report, well, faulty);
  });
}
