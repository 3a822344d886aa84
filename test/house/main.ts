import { readdirSync, readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { startBridge } from "../../src/bridge/bridge.ts";
import { loadLab } from "../../src/cli/lab.ts";
import { journalDefaults, lineDefaults } from "../../src/config/limits.ts";
import type { Log } from "../../src/core/log.ts";
import { ask, scratchFolder } from "../support/bridge-process.ts";
import { serviceConfigOf } from "../support/service-config.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { pageRows } from "./pages.ts";

/**
 * Facts about the house, printed by `npm run house`: how long the pages and their sentences are, how large the rooms, and how many
 * files a call runs through. The files are counted by coverage: a bridge in this process, with a terminal on a pty at the other end
 * of its line.
 */

const src = fileURLToPath(new URL("../../src/", import.meta.url));
const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
const linesOf = (names: readonly string[]) =>
  names.reduce((sum, name) => sum + readFileSync(join(src, name), "utf8").split("\n").length - 1, 0);

function row(what: string, ...figures: readonly (string | number)[]): void {
  console.log(`| ${[what, ...figures].join(" | ")} |`);
}

/** The files of src in which a function ran while `run` did. */
async function touchedBy(session: Session, run: () => Promise<unknown>): Promise<readonly string[]> {
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await session.post("Profiler.takePreciseCoverage");
  await run();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  await session.post("Profiler.stopPreciseCoverage");
  const ran = result.filter(({ functions }) => functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)));
  const paths = ran.flatMap(({ url }) => (url.startsWith("file:") ? [relative(src, fileURLToPath(url))] : []));
  return paths.filter((path) => files.includes(path)).sort();
}

const silent: Log = {
  exchange: () => {},
  line: () => {},
  process: () => {},
  state: "ok",
  dropped: { budget: 0, reader: 0 },
  setLevel: () => {},
  flush: () => {},
};

for (const cells of pageRows()) console.log(`| ${cells.join(" | ")} |`);
console.log("");

const folder = scratchFolder();
const terminal = new Terminal(
  join(folder.path, "tty"),
  answering(({ text }) => (text.includes("LOST") ? undefined : '{"status":"success"}')),
);
const bank = serviceConfigOf({ replyTimeoutMs: { "/sale": 3_001, "/check": 3_001 } });
const bridge = await startBridge({
  config: {
    lines: { till: { ...lineDefaults, path: terminal.link } },
    services: { bank },
    journal: { ...journalDefaults, folder: folder.path },
    log: { level: "info" },
  },
  log: silent,
  emulated: undefined,
  lab: loadLab,
  sockets: [],
});
const port = bridge.listening[0]?.port ?? 0;
const post = (route: string, key: string) =>
  ask(port, "POST", route, JSON.stringify({ pay_id: key, amount: 1, currency_name: "EUR" }));
const session = new Session();
try {
  session.connect();
  await session.post("Profiler.enable");
  // What happens at a first call alone isn't counted.
  for (const key of ["A", "B"]) for (const route of ["/sale", "/check"]) await post(route, key);
  const sale = await touchedBy(session, () => post("/sale", "C"));
  const check = await touchedBy(session, () => post("/check", "C"));
  const lost = await touchedBy(session, () => post("/check", "LOST"));
  const inLine = (names: readonly string[]) => names.filter((name) => name.startsWith("line/"));
  const rooms = [...new Set(files.filter((name) => name.includes("/")).map((name) => name.split("/")[0] ?? ""))].sort();
  row("room", "files", "lines");
  row("---", "---", "---");
  for (const room of rooms) {
    const own = files.filter((name) => name.startsWith(`${room}/`));
    row(room, own.length, linesOf(own));
  }
  row("**src**", files.length, linesOf(files));
  console.log(`\nMean lines of a file: ${Math.round(linesOf(files) / files.length)}`);
  console.log(
    `Files that a bank /sale runs through, journal included: ${sale.length}, of them in line/: ${inLine(sale).length}`,
  );
  console.log(`Files that a bank /check runs through: ${check.length}, of them in line/: ${inLine(check).length}`);
  console.log(
    `Files of line/ that a timeout of a reply runs through, beside those of a good reply: ${
      inLine(lost)
        .filter((name) => !check.includes(name))
        .join(", ") || "none"
    }`,
  );
  console.log(`Files of a /sale: ${sale.join(" ")}`);
} finally {
  session.disconnect();
  await bridge.stop();
  terminal.unplug();
}
process.exit();
