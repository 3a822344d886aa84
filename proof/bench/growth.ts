import { setTimeout as sleep } from "node:timers/promises";
import { ask, productMissing, startBridge } from "./bridges.ts";
import { memoryMiB } from "./machine.ts";
import { inWorkshop } from "./processes.ts";
import { atMost, type Bench } from "./report.ts";

/** What the product's memory grows by under load, once the first exchanges have brought it to its working size. */

const section = "growth";

export async function growth({ report, short }: Bench): Promise<void> {
  const missing = productMissing();
  if (missing !== undefined) {
    report.skip(section, missing, true);
    return;
  }
  await inWorkshop(async (workshop) => {
    const exchanges = short ? 10_000 : 100_000;
    const bridge = await startBridge(workshop, "posline");
    const rss: number[] = [];
    for (let part = 0; part < 2; part++) {
      await ask(workshop, bridge, { clients: 4, count: exchanges, warmup: 0, limitMs: 300_000 });
      await sleep(1000);
      rss.push(memoryMiB(bridge.process.pid, "VmRSS"));
    }
    const [first = Number.NaN, second = Number.NaN] = rss;
    const shown = exchanges.toLocaleString("en");
    report.figure(section, `RSS after ${shown} exchanges`, first, "MiB", undefined);
    // A short run is still filling the heap to the size at which it is collected, so it proves nothing.
    report.figure(section, `RSS growth over the next ${shown}`, second - first, "MiB", short ? undefined : atMost(2));
  });
}
