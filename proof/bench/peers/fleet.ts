import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { slotBytes } from "../../../src/journal/slot.ts";
import { productCommand, productMissing, startResponder } from "../bridges.ts";
import { benchCpu, freePort, projectDir } from "../machine.ts";
import { inWorkshop, type Workshop } from "../processes.ts";
import type { Bench } from "../report.ts";
import { askBy } from "./callers.ts";
import { writePage } from "./page.ts";

/** What one box of a fleet brings to the engines that carry the fleet: bytes, which no load of the machine changes. */

const section = "fleet";

async function fetched(port: number, path: string): Promise<Buffer> {
  return await new Promise((resolve, reject) => {
    const request = get({ host: "127.0.0.1", port, path, timeout: 5000 }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("end", () => resolve(Buffer.concat(pieces)));
    });
    request.once("error", reject);
    request.once("timeout", () => request.destroy(new Error(`Cannot fetch ${path}: no answer within 5 s`)));
  });
}

/** The Debian packages that `npm run deb` made, by name with their bytes. */
function packages(): [string, number][] {
  const out = join(projectDir, "out");
  const names = existsSync(out) ? readdirSync(out).filter((name) => name.endsWith(".deb")) : [];
  return names.map((name) => [name, statSync(join(out, name)).size]);
}

/** Waits until somebody listens on a port. */
async function listens(port: number): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await fetched(port, "/healthz");
      return;
    } catch (error) {
      if (tries === 50) throw error;
      await sleep(200);
    }
  }
}

/** A box as the package sets it up, with a line and three services, of which each was asked. */
async function scrapeOfThree(workshop: Workshop): Promise<Buffer> {
  const [bank, fiscal, qr, admin] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const config = workshop.path("three.json");
  const services = {
    bank: { line: "till", port: bank },
    fiscal: { line: "till", port: fiscal, merchantId: "MERCHANT-1" },
    qr: { line: "till", port: qr },
  };
  writeFileSync(
    config,
    JSON.stringify({ lines: { till: { path: "/dev/ttyUSB0" } }, services, journal: false, admin: { port: admin } }),
  );
  workshop.start("three", [...productCommand(config), "--emulated"], { cpu: benchCpu });
  await listens(admin);
  for (const port of [bank, fiscal, qr]) await fetched(port, "/supported_operations");
  return await fetched(admin, "/metrics");
}

export async function fleetSection({ report, short }: Bench): Promise<void> {
  const missing = productMissing();
  if (missing !== undefined) {
    report.skip(section, missing, true);
    return;
  }
  await inWorkshop(async (workshop) => {
    const port = await freePort();
    const [link] = await startResponder(workshop, "fleet");
    const config = workshop.path("posline.json");
    const settings = {
      lines: { till: { path: link } },
      services: { bank: { line: "till", port } },
      journal: { folder: workshop.path("journal") },
    };
    writeFileSync(config, JSON.stringify(settings));
    const process = workshop.start("posline", productCommand(config), { cpu: benchCpu });
    const asked = { name: "posline", kind: "http", ports: [port], process } as const;
    await askBy(workshop, asked, { callers: 1, count: 10, warmup: 0 });
    const log = (): Buffer => {
      const name = readdirSync(workshop.dir).find((file) => file.startsWith("posline-") && file.endsWith(".log"));
      return readFileSync(workshop.path(name ?? "posline.log"));
    };
    const before = log().length;
    const exchanges = short ? 200 : 2000;
    await askBy(workshop, asked, { callers: 4, count: exchanges, warmup: 0, route: "/sale" });
    const lines = log().subarray(before);
    const scrape = await scrapeOfThree(workshop);
    const made = packages();
    const notes = made.length > 0 ? [] : ["no package was made here: npm run deb"];
    const rows: [string, number][] = [
      ["a scrape of /metrics", scrape.length],
      ["the same under gzip (posline sends it plain)", gzipSync(scrape).length],
      ["time series in it", scrape.toString("utf8").match(/^[a-z]/gm)?.length ?? 0],
      ["log, for each plain sale", lines.length / exchanges],
      ["the same, gzip as journal upload sends it", gzipSync(lines).length / exchanges],
      ["journal of money, for each plain sale, computed: two records of its ring", 2 * slotBytes],
      ["the same for a followed sale, computed: three records; a fourth where its own answer was lost", 3 * slotBytes],
      ...made.map(([name, bytes]): [string, number] => [name, bytes]),
    ];
    for (const [what, bytes] of rows) report.figure(section, what, bytes, "", undefined);
    writePage({ name: section, tables: [{ caption: "One box, in bytes", columns: ["", "bytes"], rows }], notes });
  });
}
