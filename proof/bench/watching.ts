import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Asked, askBy, askLine } from "./callers.ts";
import { benchDir, freePort, lineCpu } from "./machine.ts";
import { startProduct, startResponder } from "./peer.ts";
import { figureOf, inWorkshop, type Running, type Workshop } from "./processes.ts";
import { atMost, type Bench } from "./report.ts";
import { inTurns } from "./turns.ts";

/**
 * What watching costs: the round trip of a bridge with a status page's stream, a tap and a scrape each second attached, beside one
 * that nobody watches, in turn; and how often an idle box wakes up with a scrape each 15 s, and without.
 */

const section = "watching";

const tsx = fileURLToPath(import.meta.resolve("tsx"));

/** Milliseconds between two scrapes of an idle box: Prometheus' usual interval. */
const scrapeMs = 15_000;

type Watched = { readonly bridge: Asked; readonly process: Running; readonly admin: string };

async function startWatched(workshop: Workshop, name: string): Promise<Watched> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const [link] = await startResponder(workshop, name);
  const lines = { till: { path: link, baudRate: 115_200 } };
  const config = { lines, services: { bank: { line: "till", port } }, admin: { port: adminPort } };
  const process = startProduct(workshop, name, config);
  return { bridge: { name, kind: "http", targets: [port], process }, process, admin: `http://127.0.0.1:${adminPort}/` };
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
  await inWorkshop(async (workshop) => {
    const alone = await startWatched(workshop, "alone");
    const watched = await startWatched(workshop, "watched");
    const warmup = short ? 2_000 : 6_000;
    for (const { bridge } of [alone, watched]) await askBy(workshop, bridge, { callers: 1, count: 10, warmup });
    const idleMs = short ? scrapeMs : 4 * scrapeMs;
    const { pid } = alone.process;
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
    const measure = (watching: Watched) => () => askBy(workshop, watching.bridge, { callers: 1, count, warmup: 200 });
    const rounds = await inTurns(short ? 9 : 32, {
      floor: () => askLine(workshop, floorLink, count),
      ...{ alone: measure(alone), watched: measure(watched) },
    });
    const [ours, theirs] = [rounds.quiet("watched", "p50Us"), rounds.quiet("alone", "p50Us")];
    report.compare(
      section,
      "p50 with a page, a tap and a 1 s scrape attached, against nobody watching",
      { ours, theirs, unit: "µs", floor: rounds.parts("floor", "p50Us") },
      atMost(1.15),
    );
  });
}
