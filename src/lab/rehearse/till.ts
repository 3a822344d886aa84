import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { type Deed, isWord, type Word } from "./scenario.ts";

/** The till that is rehearsed, as a command: run through the shell once for each deed. */

/** What a deed is to be done with. */
export interface Order {
  readonly do: Deed;
  readonly key: string;
  /** Minor units, in digits. */
  readonly amount: string;
  /** The key of the deed that it gives back, or that it is the receipt of; empty if there is none. */
  readonly of: string;
}

export interface RunEnd {
  readonly word: Word | undefined;
  readonly text: string;
  /** `ended` by itself; `stopped`, since it went on for too long; `unclear`: what it said at last is no word. */
  readonly how: "ended" | "stopped" | "unclear";
}

export interface TillRun {
  readonly ended: Promise<RunEnd>;
  /** Ends it and all that it began, as a power cut does; `ended` stays open. */
  kill(): void;
}

/** The words of exit codes, as `--words` gives them: exit code to word. */
export type ExitWords = ReadonlyMap<number, Word>;

/** Thrown if the command itself can't be rehearsed: what it does isn't a till's. */
export class TillError extends Error {
  override readonly name = "TillError";
}

/** Milliseconds after its end in which a till's last words are read, if what it left behind holds its output open. */
const readMs = 500;

/** A till prints a word and a body; one that prints more is no till. */
const printedBytesMax = 1024 * 1024;

/** The shell's exit codes for what it doesn't find, or may not run. */
const shellFailures: ReadonlySet<number> = new Set([126, 127]);

/** Marks every process of a run, so that one that left its process group is found. */
const markVariable = "POSLINE_REHEARSAL_RUN";

/** What a terminal, an editor or Windows puts around words: colours, the mark of a file's beginning, the zeros of UTF-16. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken away
const dress = /\x1b\[[\d;]*[A-Za-z]|[\0\uFEFF\uFFFD]/g;

/** The command with a deed's values in place of `{do}`, `{key}`, `{amount}` and `{of}`: none has a character that a shell reads. */
export function commandFor(command: string, order: Order): string {
  const values: Readonly<Record<string, string>> = { ...order };
  return command.replace(/\{(do|key|amount|of)\}/g, (_, name: string) => values[name] || "''");
}

export interface RunOptions {
  readonly command: string;
  readonly order: Order;
  readonly env: Readonly<Record<string, string>>;
  readonly exitWords: ExitWords;
  /** Milliseconds after which it is ended. */
  readonly patienceMs: number;
  /** The word that the till has sent meanwhile. */
  readonly sent: () => Word | undefined;
}

/** @throws TillError if the shell can't parse the command. */
export function checkSyntax(command: string): void {
  const { status, stderr } = spawnSync("sh", ["-n", "-c", command], { encoding: "utf8" });
  if (status !== 0 && status !== null) throw new TillError(`the shell can't parse it: ${stderr.trim()}`);
}

/** Runs the till once. `ended` rejects with TillError. */
export function runTill({ command, order, env, exitWords, patienceMs, sent }: RunOptions): TillRun {
  // A command that isn't told what to do can only sell.
  if (order.do !== "sale" && !command.includes("{do}")) return unsupported("its command has no {do}");
  const mark = randomUUID();
  const shellCommand = commandFor(command, order);
  const child = spawn("sh", ["-c", shellCommand], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...environment(), ...env, [markVariable]: mark },
  });
  let isKilled = false;
  let printed = "";
  let complaint = "";
  let bytes = 0;
  const end = () => endAll(child.pid, mark);
  const ended = new Promise<RunEnd>((resolve, reject) => {
    const limit = setTimeout(() => {
      end();
      resolve({ word: undefined, text: "nothing", how: "stopped" });
    }, patienceMs);
    const over = (what: () => void) => {
      clearTimeout(limit);
      end();
      if (!isKilled) what();
    };
    const take = (text: string) => {
      bytes += Buffer.byteLength(text);
      if (bytes <= printedBytesMax) return;
      over(() => reject(new TillError(`it printed more than ${printedBytesMax / 1024 / 1024} MiB: a till prints one word`)));
    };
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      printed = (printed + text).slice(-65_536);
      take(text);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaint = (complaint + text).slice(-2_048);
      take(text);
    });
    child.on("error", (error) => over(() => reject(new TillError(`it can't be run: ${error.message}`))));
    // What it left behind may hold its output open, so the command's own end counts, once what it printed could be read.
    child.on("exit", (code, signal) => {
      const told = () =>
        over(() => {
          if (code !== null && shellFailures.has(code)) {
            reject(new TillError(`the shell can't run it: ${complaint.trim() || `exit code ${code}`}`));
          } else resolve(endOf({ printed, complaint, code, signal }, exitWords, sent()));
        });
      const late = setTimeout(told, readMs);
      child.once("close", () => {
        clearTimeout(late);
        told();
      });
    });
  });
  ended.catch(() => {});
  return {
    ended,
    kill: () => {
      isKilled = true;
      end();
    },
  };
}

export const unsupported = (why: string): TillRun => ({
  ended: Promise.resolve({ word: "unsupported", text: `unsupported (${why})`, how: "ended" }),
  kill: () => {},
});

interface Ending {
  readonly printed: string;
  readonly complaint: string;
  readonly code: number | null;
  readonly signal: string | null;
}

function endOf({ printed, complaint, code, signal }: Ending, exitWords: ExitWords, sent: Word | undefined): RunEnd {
  const last = printed.replace(dress, "").trimEnd().split("\n").at(-1)?.trim() ?? "";
  const byCode = code === null ? undefined : exitWords.get(code);
  const plain = last.toLowerCase();
  const word = sent ?? byCode ?? (isWord(plain) ? plain : undefined);
  if (word !== undefined) return { word, text: word, how: "ended" };
  const status = signal === null ? `exit code ${code}` : signal;
  const what = last === "" ? "nothing" : `"${last.slice(0, 80)}"`;
  // One that crashed, or said nothing, came to no end of its own. Another may have said it in words that aren't read here.
  const hasCrashed = signal !== null || (code !== 0 && complaint !== "");
  return { word: undefined, text: `${what} (${status})`, how: last === "" || hasCrashed ? "ended" : "unclear" };
}

/** posline's own environment is none of the till's business: its ports, its credentials. */
function environment(): Record<string, string> {
  const kept = Object.entries(process.env).flatMap(([name, value]) =>
    name.startsWith("POSLINE_") || value === undefined ? [] : [[name, value] as const],
  );
  return Object.fromEntries(kept);
}

/** Kills a run's process group, and those of its processes that left it. */
function endAll(pid: number | undefined, mark: string): void {
  if (pid !== undefined) killed(-pid);
  for (const name of processes()) if (environmentOf(name).includes(`${markVariable}=${mark}`)) killed(Number(name));
}

function killed(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** Where there is no /proc, the process group is all that can be ended. */
function processes(): readonly string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return "";
  }
}
