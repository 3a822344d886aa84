import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { endingWithUs, onCpu, onlyOnCpu, otherCpus, pythonArgv } from "./machine.ts";

/** Other processes: started in groups of their own, waited for with a limit, and ended with the section that started them. */

/** A number out of a JSON object that one of our scripts printed. */
export function figureOf(json: string, name: string): number {
  const value: unknown = JSON.parse(json);
  const figure = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  if (typeof figure !== "number") throw new Error(`Cannot read ${name}: the script printed ${json}`);
  return figure;
}

/** A list of numbers out of the same. */
export function figuresOf(json: string, name: string): readonly number[] {
  const value: unknown = JSON.parse(json);
  const figures = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  if (Array.isArray(figures) && figures.every((figure) => typeof figure === "number")) return figures;
  throw new Error(`Cannot read ${name}: the script printed ${json}`);
}

/** A process that is measured or helps to measure. */
export class Running {
  readonly name: string;
  readonly child: ChildProcess;
  /** How it ended, once it has. */
  readonly ended: Promise<string>;
  readonly #logPath: string;
  readonly #lines: string[] = [];
  #wake: (() => void) | undefined;
  #ended: string | undefined;

  constructor(name: string, child: ChildProcess, logPath: string) {
    this.name = name;
    this.child = child;
    this.#logPath = logPath;
    this.ended = new Promise((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("exit", (code, signal) => resolve(`ended with ${signal ?? `exit code ${code}`}`));
    });
    void this.ended.then((how) => {
      this.#ended = how;
      this.#wake?.();
    });
    let rest = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      this.#lines.push(...lines);
      this.#wake?.();
    });
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error(`Cannot measure ${this.name}: it could not be started`);
    return this.child.pid;
  }

  /** The next line of its output. */
  async line(limitMs: number): Promise<string> {
    const until = performance.now() + limitMs;
    for (;;) {
      const line = this.#lines.shift();
      if (line !== undefined) return line;
      const leftMs = until - performance.now();
      if (this.#ended !== undefined || leftMs <= 0) {
        throw new Error(`Cannot go on with ${this.name}: ${this.#ended ?? `silent for ${limitMs} ms`}\n${this.log()}`);
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
  }

  /** The end of what it wrote to its log. */
  log(): string {
    return readFileSync(this.#logPath, "utf8").slice(-2000);
  }

  /** Ends it and all that it started. */
  async stop(): Promise<void> {
    for (const [signal, limitMs] of [
      ["SIGTERM", 2000],
      ["SIGKILL", 2000],
    ] as const) {
      if (this.#ended !== undefined) break;
      this.signal(signal);
      const until = performance.now() + limitMs;
      while (this.#ended === undefined && performance.now() < until) await sleep(10);
    }
  }

  signal(signal: NodeJS.Signals): void {
    try {
      if (this.child.pid !== undefined) process.kill(-this.child.pid, signal);
    } catch {
      // It has gone already.
    }
  }
}

/** Ours without what would configure the product. */
const plainEnvironment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("POSLINE_")));

const open = new Set<Workshop>();
process.on("exit", () => {
  for (const workshop of open) workshop.abandon();
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

/** What one section starts and writes, and takes away when it ends. */
export class Workshop {
  readonly dir = mkdtempSync(join(tmpdir(), "posline-bench-"));
  readonly #running: Running[] = [];

  constructor() {
    open.add(this);
  }

  path(name: string): string {
    return join(this.dir, name);
  }

  /** Starts a process. Its output goes to a file, as a service's does; with `talks`, stdout is read line by line. */
  start(name: string, argv: readonly string[], options: { readonly cpu?: number; readonly talks?: boolean } = {}): Running {
    const [command, ...args] = endingWithUs(options.cpu === undefined ? argv : onCpu(options.cpu, argv));
    const logPath = this.path(`${name}-${this.#running.length}.log`);
    const log = openSync(logPath, "a");
    const stdio = ["pipe", options.talks === true ? "pipe" : log, log] as const;
    const child = spawn(command ?? "", args, { detached: true, stdio: [...stdio], cwd: this.dir, env: plainEnvironment });
    child.stdin?.on("error", () => {});
    closeSync(log);
    const running = new Running(name, child, logPath);
    this.#running.push(running);
    return running;
  }

  /** Keeps all other cores from going idle, so that the kernel's work for a pinned measurement stays with it. */
  occupyOtherCpus(): void {
    for (const cpu of otherCpus) this.start("spinner", onlyOnCpu(cpu, pythonArgv("spinner.py")));
  }

  async close(): Promise<void> {
    await Promise.all(this.#running.map((running) => running.stop()));
    this.abandon();
  }

  /** The same at once, when the process is about to exit. */
  abandon(): void {
    for (const running of this.#running) running.signal("SIGKILL");
    rmSync(this.dir, { recursive: true, force: true });
    open.delete(this);
  }
}

/** Runs one section's work and cleans up after it, whatever happens. */
export async function inWorkshop<T>(work: (workshop: Workshop) => Promise<T>): Promise<T> {
  const workshop = new Workshop();
  try {
    return await work(workshop);
  } finally {
    await workshop.close();
  }
}
