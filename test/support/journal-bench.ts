import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { BridgeProcess, scratchFolder } from "./bridge-process.ts";
import { PoslineProcess } from "./posline-process.ts";
import { answering, type Behaviour, Terminal } from "./terminal.ts";

/** A bank bridge with a journal, as processes, and a terminal that outlives them. */

export interface Bench {
  readonly terminal: Terminal;
  readonly folder: string;
  start(): Promise<BridgeProcess>;
  /** `posline journal` with these flags, as rows of JSON, and its exit code. */
  journal(...flags: string[]): Promise<{ readonly rows: readonly Record<string, unknown>[]; readonly code: number | null }>;
}

export const sale = (id: string) => JSON.stringify({ pay_id: id, amount: 1500, currency_name: "EUR" });
export const good = answering(() => '{"status":"success","code":0}');

export async function withBench(behaviour: Behaviour, body: (bench: Bench) => Promise<void>, more: object = {}): Promise<void> {
  const scratch = scratchFolder();
  const folder = join(scratch.path, "state");
  mkdirSync(folder);
  const terminal = new Terminal(join(scratch.path, "tty"), behaviour);
  const bridges: BridgeProcess[] = [];
  const config = {
    lines: { till: { path: terminal.link } },
    services: { bank: { line: "till" } },
    journal: { bytes: 65_536, ...more },
    admin: { host: "127.0.0.1" },
  };
  const start = async () => {
    const env = { STATE_DIRECTORY: folder, CACHE_DIRECTORY: scratch.path, POSLINE_ADMIN_PORT: "0" };
    const bridge = new BridgeProcess(config, { env });
    bridges.push(bridge);
    await bridge.state("till", "idle");
    return bridge;
  };
  const journal: Bench["journal"] = async (...flags) => {
    const command = new PoslineProcess(["journal", "--folder", folder, "--json", ...flags]);
    const code = await command.ended();
    return { rows: command.log, code };
  };
  try {
    await body({ terminal, folder, start, journal });
  } finally {
    for (const bridge of bridges) await bridge.stop("SIGKILL");
    terminal.unplug();
    scratch.remove();
  }
}
