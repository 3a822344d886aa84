import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ask, scratchFolder } from "../../../test/support/bridge-process.ts";
import { freePorts } from "../../../test/support/free-port.ts";
import { bundle } from "../../../test/support/posline-process.ts";
import { nullModem } from "../../../test/support/till.ts";
import { until } from "../../../test/support/until.ts";

/**
 * The box of a soak: the real bundle as a bridge, with two lines, a journal and an admin port, and behind each line the bundle as an
 * emulator. Their logs go to files, as under a service manager. Processes are started before any pty is opened, so that none inherits
 * one and would keep it open.
 */

const lineNames = ["till", "bar"] as const;
export type LineName = (typeof lineNames)[number];

/** Milliseconds that posline waits for an answer: less than the emulator's late ones take. */
const replyTimeoutMs = 4_000;

const insideModule = fileURLToPath(new URL("./inside.mjs", import.meta.url));

/** How often the box is plugged until it is ready, and milliseconds for each time: on a busy machine node itself takes some of them. */
const readyTries = 4;
const readyMs = 15_000;

/** Bytes of the journal: its ring is gone round many times. */
const ringBytes = 1024 * 1024;

/** What only the bridge's process itself can tell: `inside.mjs` is loaded into it. */
interface Inside {
  /** Timers that keep the process alive. */
  readonly timers: number;
  readonly heapBytes: number;
}

/** What the bridge's process holds. */
export interface Sample extends Inside {
  readonly rssBytes: number;
  /** Memory of its own, without what is mapped from files: heap, buffers, stacks. */
  readonly anonymousBytes: number;
  readonly descriptors: number;
  readonly threads: number;
  readonly journalBytes: number;
}

/** Lines of a bridge's log that must never be there. */
export const complaintsIn = (log: string) =>
  log.split("\n").filter((line) => /internal error|"level":"(?:error|fatal)"|^\s+at /.test(line));

export class Box {
  readonly #folder = scratchFolder("posline-soak-");
  readonly #children: ChildProcess[] = [];
  readonly #cables = new Map<LineName, { unplug(): void }>();
  #reloads = 0;
  #ports: readonly number[] = [];
  #bridge: ChildProcess | undefined;

  readonly ports = () => ({
    bank: this.#port(0),
    fiscal: this.#port(1),
    bank2: this.#port(2),
    qr: this.#port(3),
    admin: this.#port(4),
  });

  #port(index: number): number {
    return this.#ports[index] ?? 0;
  }

  get pid(): number {
    return this.#bridge?.pid ?? 0;
  }

  get hasEnded(): boolean {
    return this.#bridge?.exitCode !== null || this.#bridge.signalCode !== null;
  }

  path(name: string): string {
    return join(this.#folder.path, name);
  }

  async start(): Promise<void> {
    this.#ports = await freePorts(5);
    mkdirSync(this.path("journal"));
    this.#writeConfig();
    this.#bridge = this.#spawn("bridge", ["serve", "--config", this.path("posline.json")], ["--import", insideModule]);
    const played = { till: ["bank", "fiscal"], bar: ["bank", "qr"] } as const;
    for (const line of lineNames) {
      const services = played[line].flatMap((service) => ["--service", service]);
      this.#spawn(line, ["emulate", "--line", this.path(`${line}-far`), "--no-http", "--no-admin", ...services]);
      this.plug(line);
    }
    await this.#ready();
  }

  /** Another program's posline may hold the lock of a pty's number, which the system gives away again at once: then it takes another. */
  async #ready(): Promise<void> {
    const { admin } = this.ports();
    const isReady = async () => (await ask(admin, "GET", "/readyz", "").catch(() => undefined))?.status === 200;
    for (let left = readyTries - 1; ; left--) {
      try {
        return await until(isReady, "the bridge to be ready", readyMs);
      } catch (error) {
        if (left === 0) throw error;
        for (const line of lineNames) this.unplug(line);
        for (const line of lineNames) this.plug(line);
      }
    }
  }

  /** Other settings each time, so that a reload has something to do. */
  #writeConfig(): void {
    const { bank, fiscal, bank2, qr, admin } = this.ports();
    const service = (line: LineName, port: number) => ({ line, port, replyTimeoutMs });
    const config = {
      lines: Object.fromEntries(
        lineNames.map((line) => [line, { path: this.path(`${line}-near`), queueCallsMax: 64 - (this.#reloads % 2) }]),
      ),
      services: {
        bank: service("till", bank),
        fiscal: { ...service("till", fiscal), merchantId: "MERCHANT-1" },
        "bank-2": { contract: "bank", ...service("bar", bank2) },
        qr: service("bar", qr),
      },
      admin: { port: admin },
      journal: { folder: this.path("journal"), bytes: ringBytes },
    };
    writeFileSync(this.path("posline.json"), JSON.stringify(config));
  }

  #spawn(name: string, args: readonly string[], nodeFlags: readonly string[] = []): ChildProcess {
    const log = openSync(this.path(`${name}.log`), "a");
    const env = { PATH: process.env["PATH"] ?? "", SOAK_INSIDE: this.path("inside.json") };
    const child = spawn(process.execPath, [...nodeFlags, bundle, ...args], { stdio: ["ignore", log, log], env });
    closeSync(log);
    this.#children.push(child);
    return child;
  }

  plug(line: LineName): void {
    this.#cables.set(line, nullModem(this.path(`${line}-near`), this.path(`${line}-far`)));
  }

  unplug(line: LineName): void {
    this.#cables.get(line)?.unplug();
  }

  reload(): void {
    this.#reloads++;
    this.#writeConfig();
    this.#bridge?.kill("SIGHUP");
  }

  async sample(): Promise<Sample> {
    const inside = await this.#inside();
    const status = readFileSync(`/proc/${this.pid}/status`, "utf8");
    const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? Number.NaN);
    return {
      ...inside,
      rssBytes: field("VmRSS") * 1024,
      anonymousBytes: field("RssAnon") * 1024,
      descriptors: readdirSync(`/proc/${this.pid}/fd`).length,
      threads: field("Threads"),
      journalBytes: this.#journalBytes(),
    };
  }

  async #inside(): Promise<Inside> {
    const file = this.path("inside.json");
    rmSync(file, { force: true });
    this.#bridge?.kill("SIGUSR2");
    await until(() => existsSync(file), "the bridge's own figures", readyMs);
    // What inside.mjs wrote.
    return JSON.parse(readFileSync(file, "utf8")) as Inside;
  }

  /** All files of the journal's folder. */
  #journalBytes(): number {
    const folder = this.path("journal");
    return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  }

  /** What the bridge logged of itself that must never be there. */
  complaints(): readonly string[] {
    return complaintsIn(readFileSync(this.path("bridge.log"), "utf8"));
  }

  async stop(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const limit = setTimeout(() => child.kill("SIGKILL"), 10_000);
      await ended;
      clearTimeout(limit);
    }
    for (const line of lineNames) this.unplug(line);
    this.#folder.remove();
  }
}
