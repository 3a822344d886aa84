import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ask, askLine, type Bridge, type ClientFigures, productCommand, productMissing, startResponder } from "./bridges.ts";
import { benchCpu, benchDir, freePort, lineCpu } from "./machine.ts";
import { figureOf, inWorkshop, type Workshop } from "./processes.ts";
import { atMost, type Bench, inParts, lowerQuartile } from "./report.ts";

/**
 * What watching costs: the round trip of a bridge with a status page's stream, a tap and a scrape each second attached, beside one
 * that nobody watches, in turn; and how often an idle box wakes up with a scrape each 15 s, and without.
 */

const section = "watching";

const tsx = fileURLToPath(import.meta.resolve("tsx"));

/** Milliseconds between two scrapes of an idle box: Prometheus' usual interval. */
const scrapeMs = 15_000;

type Watched = { readonly bridge: Bridge; readonly admin: string };

async function startWatched(workshop: Workshop, name: string): Promise<Watched> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const [link, responder] = await startResponder(workshop, name);
  const config = workshop.path(`${name}.json`);
  const lines = { till: { path: link, baudRate: 115_200 } };
  writeFileSync(config, JSON.stringify({ lines, services: { bank: { line: "till", port } }, admin: { port: adminPort } }));
  const process = workshop.start(name, productCommand(config), { cpu: benchCpu });
  return { bridge: { kind: "posline", port, responder, process }, admin: `http://127.0.0.1:${adminPort}/` };
}

/** How often a process gave the processor back and was woken again, all threads together. */
function wakeUps(pid: number): number {
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8");
    return sum + Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1] ?? 0);
  }, 0);
}

/** Wake-ups a second while nothing happens but what is given. */
async function idleWakeUps(pid: number, ms: number, each: () => Promise<unknown>): Promise<number> {
  const before = wakeUps(pid);
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs) {
    await each();
    await sleep(Math.min(scrapeMs, untilMs - performance.now()));
  }
  return (1_000 * (wakeUps(pid) - before)) / ms;
}

export async function watching({ report, short }: Bench): Promise<void> {
  const missing = productMissing();
  if (missing !== undefined) return report.skip(section, missing, true);
  await inWorkshop(async (workshop) => {
    const alone = await startWatched(workshop, "alone");
    const watched = await startWatched(workshop, "watched");
    const warmup = short ? 2_000 : 6_000;
    for (const { bridge } of [alone, watched]) await ask(workshop, bridge, { clients: 1, count: 10, warmup });
    const idleMs = short ? scrapeMs : 4 * scrapeMs;
    const pid = alone.bridge.process.pid;
    const scrape = () => fetch(new URL("/metrics", alone.admin)).then((answer) => answer.text());
    await scrape();
    const without = await idleWakeUps(pid, idleMs, async () => {});
    const scraped = await idleWakeUps(pid, idleMs, scrape);
    report.baseline(section, "wake-ups a second, idle", without, "/s");
    report.figure(section, "wake-ups a second more with a scrape each 15 s", scraped - without, "/s", atMost(1));

    const argv = [process.execPath, "--import", tsx, join(benchDir, "watchers.ts"), watched.admin];
    const watchers = workshop.start("watchers", argv, { cpu: lineCpu, talks: true });
    figureOf(await watchers.line(20_000), "ready");
    const [floorLink] = await startResponder(workshop, "floor");
    workshop.occupyOtherCpus();
    const count = short ? 500 : 1_000;
    const floor: number[] = [];
    const p50: Record<"alone" | "watched", number[]> = { alone: [], watched: [] };
    const measure = async ({ bridge }: Watched): Promise<ClientFigures> =>
      ask(workshop, bridge, { clients: 1, count, warmup: 200 });
    for (let round = 0; round < (short ? 9 : 32); round++) {
      floor.push((await askLine(workshop, floorLink, count, 200)).p50Us);
      p50.alone.push((await measure(alone)).p50Us);
      p50.watched.push((await measure(watched)).p50Us);
    }
    report.compare(
      section,
      "p50 with a page, a tap and a 1 s scrape attached, against nobody watching",
      { ours: lowerQuartile(p50.watched), theirs: lowerQuartile(p50.alone), unit: "µs", floor: inParts(floor, lowerQuartile) },
      atMost(1.15),
    );
  });
}
