import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

/** This machine: its cores, its programs, its ports, and what /proc says of a process. */

export const benchDir = import.meta.dirname;
export const projectDir = join(benchDir, "..", "..");
/** Where built or downloaded things that outlive a run are kept: inside node_modules, so that imports resolve from it. */
export const cacheDir = join(projectDir, "node_modules", ".cache", "posline-bench");

/** The path of a program, or undefined when this machine hasn't got it. */
export function found(program: string): string | undefined {
  for (const dir of [...(process.env["PATH"] ?? "").split(":"), "/usr/sbin", "/sbin"]) {
    try {
      const path = join(dir, program);
      execFileSync("test", ["-x", path]);
      return path;
    } catch {
      // Not in this one.
    }
  }
  return undefined;
}

function allowedCpus(): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  return list.split(",").flatMap((range) => {
    const [from, to] = range.split("-").map(Number);
    return Array.from({ length: (to ?? from ?? 0) - (from ?? 0) + 1 }, (_, i) => (from ?? 0) + i);
  });
}

const taskset = found("taskset");
const cpus = allowedCpus();
/** Where all that is compared runs together. */
export const benchCpu = cpus.at(-1) ?? 0;
/** Where a line's own clock runs, away from what it measures; the same core when there is only one. */
export const lineCpu = cpus.at(0) ?? 0;
export const pinned = taskset !== undefined;
/** The cores that a pinned measurement leaves alone. */
export const otherCpus = pinned ? cpus.filter((cpu) => cpu !== benchCpu) : [];

/** Before what else the machine does, where we may. */
const ahead = ((): readonly string[] => {
  try {
    const niceness = execFileSync("nice", ["-n", "-12", "nice"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return niceness.trim() === "-12" ? ["nice", "-n", "-12"] : [];
  } catch {
    return [];
  }
})();

/** The command, kept on one core where taskset is there. taskset execs, so the process id stays. */
export function onlyOnCpu(cpu: number, argv: readonly string[]): readonly string[] {
  return taskset === undefined ? argv : [taskset, "-c", String(cpu), ...argv];
}

/** The same for what is measured: ahead of everything else. */
export function onCpu(cpu: number, argv: readonly string[]): readonly string[] {
  return aheadOfAll(onlyOnCpu(cpu, argv));
}

/** The command, ahead of everything else on any core. */
export function aheadOfAll(argv: readonly string[]): readonly string[] {
  return [...ahead, ...argv];
}

const setpriv = found("setpriv");

/** The command, which the kernel ends with us, even when we are killed; where setpriv is there. */
export function endingWithUs(argv: readonly string[]): readonly string[] {
  return setpriv === undefined ? argv : [setpriv, "--pdeathsig", "KILL", ...argv];
}

let python: string | undefined;
/** The interpreter itself, past any version manager's shim. */
export function pythonArgv(script: string, ...args: readonly (string | number)[]): readonly string[] {
  python ??= execFileSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" }).trim();
  return [python, "-B", join(benchDir, script), ...args.map(String)];
}

let nextPort = 18_000 + (process.pid % 1000) * 10;
/** A TCP port that nobody has, below the range the kernel picks from: a poll of one of those could connect to itself. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = nextPort++;
    const free = await new Promise<boolean>((resolve) => {
      const server = createServer();
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

/** Processor time that a process has used, all its threads, in ms. */
export function processorMs(pid: number): number {
  let ns = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    ns += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]);
  }
  return ns / 1e6;
}

/** A memory figure of a process in MiB. */
export function memoryMiB(pid: number, name: "VmRSS" | "RssAnon"): number {
  const kB = new RegExp(`^${name}:\\s*(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kB === undefined) throw new Error(`Cannot read ${name} of process ${pid}: /proc has no such line`);
  return Number(kB) / 1024;
}
