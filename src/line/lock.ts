import { link, readFile, rename, stat, unlink, writeFile } from "node:fs/promises";
import { codeOf } from "../core/error-code.ts";
import { driverLockedBy, lockedBy, lockReturns, type Process } from "./causes.ts";
import { OpenError } from "./conduit.ts";

/**
 * Our own lock on a device, taken before it is opened. A second opener sets the line's speed before the driver's lock stops it,
 * which breaks the exchange under way; so opening is no way to find out whether a device is free.
 *
 * It is the lock file that minicom, ser2net and mgetty know (UUCP: `LCK..ttyUSB0` with the process id in ten columns). Where
 * there is no folder for it that we may write in, the kernel's list of locks is all there is to go by.
 */

/** A lock held. */
export interface Lock {
  /** The lock file; undefined where none could be made. */
  readonly file: string | undefined;
  release(): Promise<void>;
}

/** Lock files this process holds: one with our number that isn't here is left from a process that had it before. */
const held = new Set<string>();

/**
 * Takes the lock of a device.
 * @param device Its real path, no link.
 * @throws OpenError naming the process that holds it.
 */
export async function takeLock(device: string, folder: string, proc = "/proc"): Promise<Lock> {
  const lock = await takeLockFile(device, folder, proc);
  try {
    await refuseLocked(device, proc);
  } catch (error) {
    await lock.release();
    throw error;
  }
  return lock;
}

const noLock: Lock = { file: undefined, release: async () => {} };

async function takeLockFile(device: string, folder: string, proc: string): Promise<Lock> {
  const file = `${folder}/LCK..${device.replace(/^\/dev\//, "").replaceAll("/", "_")}`;
  for (let attempt = 0; attempt < 3; attempt++) {
    const made = await makeLockFile(file);
    if (made === "made") {
      held.add(file);
      return { file, release: () => releaseFile(file) };
    }
    if (made === "no folder") return noLock;
    const pid = await readPid(file);
    if (pid !== undefined && isAlive(pid, file)) {
      throw new OpenError(lockedBy(device, await processOf(pid, proc), file));
    }
    // Its process is gone. Where we may not take its file away, the kernel's list of locks is all there is, as without a folder.
    if (!(await takeAway(file))) return noLock;
  }
  throw new OpenError(lockReturns(device, file));
}

/**
 * Takes a stale lock file away, and only that one: between the look and the deed another process may have put its own there,
 * which goes back to its place. False when we may not.
 */
async function takeAway(file: string): Promise<boolean> {
  const aside = `${file}.${process.pid}.stale`;
  try {
    await rename(file, aside);
  } catch (error) {
    // Somebody else took it away.
    return codeOf(error) === "ENOENT";
  }
  const pid = await readPid(aside);
  if (pid !== undefined && isAlive(pid, file)) await link(aside, file).catch(() => {});
  await unlink(aside).catch(() => {});
  return true;
}

async function releaseFile(file: string): Promise<void> {
  if (!held.delete(file)) return;
  // Somebody who thought it stale may have put another in its place.
  if ((await readPid(file)) === process.pid) await unlink(file).catch(() => {});
}

/** Makes the file with its content in one step, so that nobody reads half a number. */
async function makeLockFile(file: string): Promise<"made" | "exists" | "no folder"> {
  const draft = `${file}.${process.pid}`;
  try {
    await writeFile(draft, `${String(process.pid).padStart(10)}\n`, { mode: 0o644 });
  } catch {
    return "no folder";
  }
  try {
    await link(draft, file);
    return "made";
  } catch (error) {
    return codeOf(error) === "EEXIST" ? "exists" : "no folder";
  } finally {
    await unlink(draft).catch(() => {});
  }
}

/** The process id in a lock file; undefined when there is none in it. */
async function readPid(file: string): Promise<number | undefined> {
  const text = await readFile(file, "latin1").catch(() => "");
  const pid = Number.parseInt(text.trim(), 10);
  return Number.isInteger(pid) && pid > 0 ? pid : undefined;
}

/** Asked of the kernel and not of /proc, which hides other users' processes from a confined service. */
function isAlive(pid: number, file: string): boolean {
  if (pid === process.pid) return held.has(file);
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== "ESRCH";
  }
}

/** Looks whether a process holds the driver's lock (flock) of the device. */
async function refuseLocked(device: string, proc: string): Promise<void> {
  const [locks, { dev, ino }] = await Promise.all([readFile(`${proc}/locks`, "latin1").catch(() => ""), stat(device)]);
  // "2: FLOCK  ADVISORY  WRITE 812 00:05:95 0 EOF": process, device of the file system in hexadecimal, inode.
  for (const line of locks.split("\n")) {
    const [, kind, , , pid, file] = line.split(/\s+/);
    const [major, minor, inode] = (file ?? "").split(":");
    if (kind !== "FLOCK" || inode !== String(ino)) continue;
    if (deviceNumber(Number.parseInt(major ?? "", 16), Number.parseInt(minor ?? "", 16)) !== dev) continue;
    throw new OpenError(driverLockedBy(device, await processOf(Number(pid), proc)));
  }
}

/** Linux's dev_t as stat() reports it. */
function deviceNumber(major: number, minor: number): number {
  return (minor & 0xff) + major * 0x100 + (minor >>> 8) * 0x100000;
}

async function processOf(pid: number, proc: string): Promise<Process> {
  const name = await readFile(`${proc}/${pid}/comm`, "latin1").catch(() => "");
  return { pid, name: name.trim() };
}
