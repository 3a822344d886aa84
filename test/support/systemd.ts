import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { bundle } from "./posline-process.ts";
import { patienceMs } from "./until.ts";

const script = fileURLToPath(new URL("systemd.py", import.meta.url));

export interface SystemdOptions {
  /** `fd`: a connected notification socket is handed over. `socket`: it is only named, and `systemd-notify` is on this PATH. */
  readonly how: "fd" | "socket";
  readonly path?: string;
  readonly watchdogMs?: number;
  /** TCP ports to listen on, of 127.0.0.1 unless an address stands before it: `127.0.0.2:8888`. A path is the Unix socket of posline-tap.socket. */
  readonly ports: readonly (number | string)[];
  /** The command and its flags. */
  readonly args: readonly string[];
}

/** The bundle as systemd runs it: with its sockets, its notification socket and its watchdog. */
export class Systemd {
  readonly #child: ChildProcess;
  /** What the service told, each as lines of `NAME=value`. */
  readonly told: string[] = [];
  /** How each of its lives ended. */
  readonly ended: number[] = [];
  /** The service's log. */
  log = "";
  #listens = false;
  #said = "";
  #wake: (() => void)[] = [];

  private constructor({ how, watchdogMs = 0, path, ports, args }: SystemdOptions) {
    this.#child = spawn(
      "python3",
      [script, how, String(watchdogMs * 1_000), ports.join(","), process.execPath, bundle, ...args],
      { stdio: "pipe", env: { PATH: path ?? process.env["PATH"] ?? "" } },
    );
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => this.#hear(text));
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.log += text;
      for (const wake of this.#wake.splice(0)) wake();
    });
  }

  /** Starts it, and waits until the sockets listen. */
  static async start(options: SystemdOptions): Promise<Systemd> {
    const systemd = new Systemd(options);
    await systemd.until(() => systemd.#listens, "its sockets");
    return systemd;
  }

  /** Waits until something holds of what was told. */
  async until(done: () => boolean, what: string): Promise<void> {
    const due = performance.now() + patienceMs;
    while (!done()) {
      const left = due - performance.now();
      if (left <= 0) throw new Error(`Waited for ${what}: told ${JSON.stringify(this.told)}\n${this.log}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(left, 500));
        this.#wake.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  signal(number: number): void {
    this.#child.stdin?.write(`${number}\n`);
  }

  /** Starts the service anew, on the same sockets. */
  startAgain(): void {
    this.#child.stdin?.write("start\n");
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const closed = once(this.#child, "close");
    this.#child.stdin?.end();
    const limit = setTimeout(() => this.#child.kill("SIGKILL"), 10_000);
    await closed;
    clearTimeout(limit);
  }

  #hear(text: string): void {
    this.#said += text;
    const lines = this.#said.split("\n");
    this.#said = lines.pop() ?? "";
    for (const line of lines) {
      const { ports, told, ended }: { ports?: number[]; told?: string; ended?: number } = JSON.parse(line);
      if (ports !== undefined) this.#listens = true;
      if (told !== undefined) this.told.push(told);
      if (ended !== undefined) this.ended.push(ended);
    }
    for (const wake of this.#wake.splice(0)) wake();
  }
}
