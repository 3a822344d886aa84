import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Json, JsonSocket } from "./json-socket.ts";
import type { Machine } from "./machine.ts";

/** What is done inside the box, through its guest agent. */

/** How a command in the guest ended. */
export type Ended = { readonly code: number; readonly out: string };

/** A command that runs in the guest. */
export interface Job {
  readonly pid: number;
  /** How it ended, once it has. */
  readonly ended: Promise<Ended>;
}

const pieceBytes = 1 << 20;

export class Guest {
  readonly #machine: Machine;

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  /** Starts a shell command. */
  async start(command: string, limitMs = 120_000): Promise<Job> {
    const agent = this.#agent;
    const argument = { path: "/bin/bash", arg: ["-c", `exec 2>&1; ${command}`], "capture-output": true };
    const pid = numberIn(await agent.ask("guest-exec", argument), "pid");
    const ended = endOf(agent, pid, command, limitMs);
    // Whoever started it may look at its end later, or never.
    ended.catch(() => {});
    return { pid, ended };
  }

  /** Runs a shell command to its end. */
  async run(command: string, limitMs?: number): Promise<Ended> {
    return (await this.start(command, limitMs)).ended;
  }

  /**
   * Runs a shell command that must not fail.
   * @returns what it printed, without the last newline.
   */
  async sh(command: string, limitMs?: number): Promise<string> {
    const { code, out } = await this.run(command, limitMs);
    if (code !== 0) throw new Error(`Cannot run in the guest: ${command}: exit code ${code}\n${out.slice(-2000)}`);
    return out;
  }

  /** Runs a shell command until it says this. */
  async until(command: string, wanted: RegExp, limitMs = 60_000): Promise<string> {
    const untilMs = performance.now() + limitMs;
    for (;;) {
      const { out } = await this.run(command);
      if (wanted.test(out)) return out;
      if (performance.now() > untilMs)
        throw new Error(`Cannot go on: ${command} doesn't say ${wanted} but\n${out.slice(-2000)}`);
      await sleep(200);
    }
  }

  /** Writes a file. */
  async write(path: string, contents: Buffer | string): Promise<void> {
    const bytes = Buffer.from(contents);
    const handle = numberIn({ handle: await this.#agent.ask("guest-file-open", { path, mode: "w" }) }, "handle");
    for (let from = 0; from < bytes.length; from += pieceBytes) {
      const piece = bytes.subarray(from, from + pieceBytes).toString("base64");
      await this.#agent.ask("guest-file-write", { handle, "buf-b64": piece });
    }
    await this.#agent.ask("guest-file-close", { handle });
  }

  /** Copies a file from here into it. */
  put(from: string, to: string): Promise<void> {
    return this.write(to, readFileSync(from));
  }

  get #agent(): JsonSocket {
    return this.#machine.agent;
  }
}

async function endOf(agent: JsonSocket, pid: number, command: string, limitMs: number): Promise<Ended> {
  const untilMs = performance.now() + limitMs;
  for (;;) {
    const status = await agent.ask("guest-exec-status", { pid });
    if (isObject(status) && status["exited"] === true) {
      const data = status["out-data"];
      const code = status["exitcode"];
      return {
        // Killed by a signal, it has no exit code.
        code: typeof code === "number" ? code : -1,
        out: Buffer.from(typeof data === "string" ? data : "", "base64")
          .toString()
          .trimEnd(),
      };
    }
    if (performance.now() > untilMs) throw new Error(`Cannot run in the guest: ${command}: not done after ${limitMs} ms`);
    await sleep(30);
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null;
}

/** A number in an answer of the agent's. */
function numberIn(answer: unknown, name: string): number {
  const value = isObject(answer) ? answer[name] : undefined;
  if (typeof value !== "number") throw new Error(`Cannot read ${name}: the agent answered ${JSON.stringify(answer)}`);
  return value;
}
