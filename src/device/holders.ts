import { readdir, readFile, readlink, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../core/error-code.ts";
import { isPty, numbersOf } from "./sysfs.ts";

/**
 * The processes that have a device open. Linux shows them in two places: the descriptors of each process, which only its user and root may
 * see, and the list of file locks, which everyone may. Looking never opens the device, since a second opening changes a live line.
 */

/** A process that has the device open. */
export interface Holder {
  readonly pid: number;
  /** The command name, as the kernel keeps it: at most 15 characters. */
  readonly name: string;
  /** The systemd service of posline's that the process runs in; absent for every other process. */
  readonly unit?: string;
  /** The process took a lock and has ended: another process, which has the descriptor from it, holds the device and can't be seen. */
  readonly ended?: true;
}

export interface Holders {
  readonly holders: readonly Holder[];
  /** True if other users' processes couldn't be looked into, so that an empty list proves nothing. */
  readonly hidden: boolean;
}

/** The processes that have the device open, as far as this user may see. */
export async function holdersOf(path: string, proc = "/proc"): Promise<Holder[]> {
  const found = (await lookForHolders([path], proc)).get(path);
  return [...(found?.holders ?? [])];
}

/** The holders of several devices, in one walk over the processes. */
export async function lookForHolders(paths: readonly string[], proc = "/proc"): Promise<Map<string, Holders>> {
  const byDevice = new Map<string, Set<number>>();
  const byNumber = new Map<number, Set<number>>();
  const devices = new Map<string, string>();
  for (const path of paths) {
    // A device that is gone keeps its name: a holder of the old node shows up with it.
    const device = await realpath(path).catch(() => path);
    const pids = byDevice.get(device) ?? new Set();
    devices.set(path, device);
    byDevice.set(device, pids);
    const number = await numberOf(device);
    if (number !== undefined) byNumber.set(number, pids);
  }
  const names = await readdir(proc).catch(() => []);
  const seen = await Promise.all(
    names.filter((name) => /^\d+$/.test(name)).map((pid) => lookInto(Number(pid), proc, byDevice, byNumber)),
  );
  const hidden = names.length === 0 || seen.includes(false) || (await hidesProcesses(proc));
  const opened = new Map(Array.from(byDevice, ([device, pids]) => [device, new Set(pids)]));
  await addLockHolders(byDevice, proc);
  const result = new Map<string, Holders>();
  for (const [path, device] of devices) {
    const pids = [...(byDevice.get(device) ?? [])].sort((one, other) => one - other);
    const holders = await Promise.all(
      pids.map(async (pid) => {
        const holder = await processOf(pid, proc);
        const ended = !(await isRunning(pid, proc));
        return { ...holder, name: holder.name || "unknown", ...(ended && { ended }) };
      }),
    );
    // What had the descriptor itself and has ended since has it no more; a lock's owner that has ended left it to somebody.
    const held = holders.filter(({ pid, ended }) => ended !== true || opened.get(device)?.has(pid) !== true);
    result.set(path, { holders: held, hidden });
  }
  return result;
}

/** Adds one process to the devices it has open; false when it may not be looked into. */
async function lookInto(
  pid: number,
  proc: string,
  byDevice: ReadonlyMap<string, Set<number>>,
  byNumber: ReadonlyMap<number, Set<number>>,
): Promise<boolean> {
  const folder = join(proc, String(pid), "fd");
  let descriptors: string[];
  try {
    descriptors = await readdir(folder);
  } catch (error) {
    return !(isDenied(error) && (await isProgram(pid, proc)));
  }
  for (const descriptor of descriptors) {
    const target = await readlink(join(folder, descriptor)).catch(() => "");
    // The kernel marks a node that was taken away while it is held: an unplugged adapter.
    const pids = byDevice.get(target.replace(/ \(deleted\)$/, ""));
    if (pids !== undefined) pids.add(pid);
    // A container may have given the device a name of its own.
    else if (target.startsWith("/dev/")) byNumber.get((await numberOf(join(folder, descriptor))) ?? Number.NaN)?.add(pid);
  }
  return true;
}

/** A character device's number, whatever its name; undefined of a pty, whose number another container's may have too. */
async function numberOf(path: string): Promise<number | undefined> {
  const node = await stat(path).catch(() => undefined);
  return node?.isCharacterDevice() !== true || isPty(node.rdev) ? undefined : node.rdev;
}

/**
 * True of a program. A kernel thread has no command line and never holds a tty; a process that has ended holds nothing either. A process
 * whose command line is hidden too may be a program (`hidepid=noaccess`).
 */
function isProgram(pid: number, proc: string): Promise<boolean> {
  return readFile(join(proc, String(pid), "cmdline"), "utf8").then((commandLine) => commandLine !== "", isDenied);
}

function isDenied(error: unknown): boolean {
  const code = codeOf(error);
  return code === "EACCES" || code === "EPERM";
}

/** True if the table leaves out other users' processes (`hidepid=invisible`, systemd's `ProtectProc=`); root sees them all the same. */
async function hidesProcesses(proc: string): Promise<boolean> {
  if (process.geteuid?.() === 0) return false;
  const mounts = await readFile(join(proc, "self", "mountinfo"), "latin1").catch(() => "");
  return /^[^\n]* - proc [^\n]*\bhidepid=(?!0|off)/m.test(mounts);
}

/** A lock of the kernel's list. */
export interface FileLock {
  /** `FLOCK` is the driver's kind; `POSIX` and `OFDLCK` are others'. */
  readonly kind: string;
  readonly pid: number;
  /** The file, as `lockedFileOf` names it. */
  readonly file: string;
}

/** The kernel's list of file locks; empty if it can't be read. */
export async function readLocks(proc = "/proc"): Promise<readonly FileLock[]> {
  const text = await readFile(join(proc, "locks"), "latin1").catch(() => "");
  // 1: FLOCK  ADVISORY  WRITE 1234 00:06:512 0 EOF
  const lines = text.matchAll(/^\d+: (\w+)\s+\w+\s+\w+\s+(\d+)\s+([0-9a-f]+:[0-9a-f]+:\d+)\s/gm);
  return Array.from(lines, ([, kind = "", pid, file = ""]) => ({ kind, pid: Number(pid), file }));
}

/** A file as the list names it: major and minor of its file system in hex, and the inode. */
export function lockedFileOf({ dev, ino }: { readonly dev: number; readonly ino: number }): string {
  const { major, minor } = numbersOf(dev);
  const hex = (value: bigint) => value.toString(16).padStart(2, "0");
  return `${hex(major)}:${hex(minor)}:${ino}`;
}

/** Adds the processes that hold a lock on a device: posline and most terminal programs take one. */
async function addLockHolders(byDevice: ReadonlyMap<string, Set<number>>, proc: string): Promise<void> {
  const locks = await readLocks(proc);
  if (locks.length === 0) return;
  for (const [device, pids] of byDevice) {
    const node = await stat(device).catch(() => undefined);
    if (node === undefined || !(node.isCharacterDevice() || node.isFile())) continue;
    const file = lockedFileOf(node);
    const owners = new Set(locks.filter((lock) => lock.file === file).map(({ pid }) => pid));
    const areRunning = await Promise.all([...owners].map((pid) => isRunning(pid, proc)));
    const running = [...owners].filter((_, index) => areRunning[index]);
    for (const pid of running.length + pids.size === 0 ? owners : running) pids.add(pid);
  }
}

/**
 * True if a process that is named as a lock's owner still runs: a lock stays with the descriptor, which a child may have taken over. The
 * kernel is asked too, since /proc hides other users' processes from a confined service.
 */
export async function isRunning(pid: number, proc: string): Promise<boolean> {
  // A process that its parent has not waited for is still listed, and can't be stopped any more.
  const state = await readFile(join(proc, String(pid), "status"), "latin1").catch(() => "");
  if (/^State:\s+[ZX]/m.test(state)) return false;
  const entry = await stat(join(proc, String(pid))).catch(() => undefined);
  return entry !== undefined || isKnown(pid);
}

/** True if the kernel knows a process of this number, whoever's it is. */
export function isKnown(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== "ESRCH";
  }
}

/** A process by its number; its name is empty if it can't be known. */
export async function processOf(pid: number, proc: string): Promise<Holder> {
  const read = (file: string) => readFile(join(proc, String(pid), file), "utf8").catch(() => "");
  const [name, group] = await Promise.all([read("comm"), read("cgroup")]);
  const unit = serviceIn(group);
  return { pid, name: name.trim(), ...(isPoslineUnit(unit) && { unit }) };
}

/**
 * The innermost service of a process's control group: `0::/system.slice/posline.service`. undefined in a user's own session, whose services
 * the system's systemctl doesn't know, and whose `user@1000.service` is all that the user runs.
 */
export function serviceIn(group: string): string | undefined {
  if (/\/user@\d+\.service(?=\/|$)/m.test(group)) return undefined;
  return [...group.matchAll(/\/([^/\n]+\.service)(?=\/|$)/gm)].at(-1)?.[1];
}

/** True if the unit is one of the package's services. */
export function isPoslineUnit(unit: string | undefined): unit is string {
  return unit !== undefined && /^posline(-gateway)?\.service$/.test(unit);
}
