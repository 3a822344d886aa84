import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { link, open, readFile, rename, rmdir, stat, unlink } from "node:fs/promises";
import { codeOf } from "../core/error-code.ts";
import { holdersOf, isKnown, isRunning, lockedFileOf, processOf, readLocks } from "./holders.ts";
import {
  driverLockedBy,
  heldBy,
  lockedBy,
  lockReturns,
  lockUnreadable,
  perhapsLockedBy,
  wronglyLockedBy,
} from "./open-errors.ts";
import { OpenError } from "./transport.ts";

/**
 * Our own lock on a device, taken before it is opened. A second opener sets the line's speed before the driver's lock stops it, which
 * breaks the exchange under way; so a device must not be opened to find out whether it is free.
 *
 * The lock is the file that minicom, ser2net and mgetty know (UUCP: `LCK..ttyUSB0` with the process id in ten columns). If there is no
 * folder for it that we may write in, only the kernel's list of locks is left to go by.
 *
 * Everybody may write into that folder, so anything under the name is looked at without trust: it is never waited for, no link is followed,
 * little of it is read, and nothing is written over. A file that names a living process is obeyed, no matter who made it, since two
 * programs on one device are worse than none; anything else is taken away, or left if that isn't allowed.
 */

/** A lock held. */
export interface Lock {
  /** The lock file; undefined if none could be made. */
  readonly file: string | undefined;
  release(): Promise<void>;
}

/** Lock files of this process. A file with our number that isn't listed here is left from a process that had the number before. */
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
    const found = await look(file);
    if (found.kind === "unreadable") throw new OpenError(lockUnreadable(device, file));
    if (found.kind === "lock" && isAlive(found.pid, file)) {
      const holder = await processOf(found.pid, proc);
      const isOwner = await runsAs(found, proc);
      const cause = isOwner === undefined ? perhapsLockedBy : isOwner ? lockedBy : wronglyLockedBy;
      throw new OpenError(cause(device, holder, file));
    }
    // The file's process is gone, or it is not a lock file. If we may not take it away, only the kernel's list of locks is left, as without
    // a folder.
    if (!(await takeAway(file, found))) return noLock;
  }
  throw new OpenError(lockReturns(device, file));
}

/** The kinds of things that may stand under a lock file's name. */
type Found =
  | { readonly kind: "lock"; readonly pid: number; readonly uid: number }
  /** A file without a process id, a link, a pipe, a socket or a device; or nothing any more. */
  | { readonly kind: "stray" | "folder" }
  /** A file that may name a process. */
  | { readonly kind: "unreadable" };

/** Bytes of a lock file that are read: the number is in the first ten columns, and some programs write their name after it. */
const readBytes = 64;

/** Linux gives no process a higher number (PID_MAX_LIMIT). */
const pidMax = 4_194_304;

/** Flags that open a file without waiting for the other end of a pipe, following a link, or making a terminal our own. */
const lookFlags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW | constants.O_NOCTTY;

async function look(file: string): Promise<Found> {
  try {
    const handle = await open(file, lookFlags);
    try {
      const facts = await handle.stat();
      if (facts.isDirectory()) return { kind: "folder" };
      if (!facts.isFile()) return { kind: "stray" };
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(readBytes), 0, readBytes, 0);
      const pid = pidIn(buffer.toString("latin1", 0, bytesRead));
      return pid === undefined ? { kind: "stray" } : { kind: "lock", pid, uid: facts.uid };
    } finally {
      await handle.close();
    }
  } catch (error) {
    // These mean: gone by now; a link; a socket; a device without a driver.
    const isStray = ["ENOENT", "ELOOP", "ENXIO", "ENODEV"].includes(codeOf(error) ?? "");
    return { kind: isStray ? "stray" : "unreadable" };
  }
}

/** The process id in a lock file's text; undefined if there is none in it. */
function pidIn(text: string): number | undefined {
  const pid = Number(/^\s*(\d{1,10})(?:\s|$)/.exec(text)?.[1] ?? 0);
  return pid > 0 && pid <= pidMax ? pid : undefined;
}

/**
 * Removes what is not a lock, and only that: between the look and the deed another process may have put its own lock there, which goes back
 * to its place. False if we may not.
 */
async function takeAway(file: string, found: Found): Promise<boolean> {
  const aside = besides(file);
  try {
    // A folder is never moved with what is in it.
    if (found.kind === "folder") await rmdir(file);
    else await rename(file, aside);
  } catch (error) {
    // Gone is as good: another process took it away.
    return codeOf(error) === "ENOENT";
  }
  if (found.kind === "folder") return true;
  const moved = await look(aside);
  const isLock = moved.kind === "unreadable" || (moved.kind === "lock" && isAlive(moved.pid, file));
  if (isLock) await link(aside, file).catch(() => {});
  await unlink(aside).catch(() => {});
  return true;
}

async function releaseFile(file: string): Promise<void> {
  if (!held.delete(file)) return;
  // Another process that thought it stale may have put another in its place.
  const found = await look(file);
  if (found.kind === "lock" && found.pid === process.pid) await unlink(file).catch(() => {});
}

/** Makes the file with its content in one step, so that nobody reads half a number. */
async function makeLockFile(file: string): Promise<"made" | "exists" | "no folder"> {
  const draft = besides(file);
  try {
    // Made here or not at all: a file or a link of that name is another program's.
    const handle = await open(draft, "wx", 0o644);
    try {
      // The service's umask would keep the number from the programs that it is written for.
      await handle.chmod(0o644);
      await handle.writeFile(`${String(process.pid).padStart(10)}\n`);
      await link(draft, file);
      return "made";
    } catch (error) {
      return codeOf(error) === "EEXIST" ? "exists" : "no folder";
    } finally {
      await handle.close();
      await unlink(draft).catch(() => {});
    }
  } catch {
    return "no folder";
  }
}

/** A name beside a lock file that nobody can have foreseen. */
function besides(file: string): string {
  return `${file}.${randomBytes(8).toString("hex")}`;
}

/** True if the process lives. The kernel is asked and not /proc, which hides other users' processes from a confined service. */
function isAlive(pid: number, file: string): boolean {
  return pid === process.pid ? held.has(file) : isKnown(pid);
}

/**
 * True if a process runs as the user whose lock file names it, so that it can have made the file; undefined if this user may not see that.
 */
async function runsAs(
  { pid, uid }: { readonly pid: number; readonly uid: number },
  proc: string,
): Promise<boolean | undefined> {
  const status = await readFile(`${proc}/${pid}/status`, "latin1").catch(() => "");
  // Real, effective, saved: a program may have its rights from its file.
  const uids = /^Uid:\s+(\d+)\s+(\d+)\s+(\d+)/m.exec(status)?.slice(1);
  return uids?.map(Number).includes(uid);
}

/** Looks whether a process holds the driver's lock (flock) of the device. */
async function refuseLocked(device: string, proc: string): Promise<void> {
  const [locks, node] = await Promise.all([readLocks(proc), stat(device)]);
  const file = lockedFileOf(node);
  const lock = locks.find((each) => each.kind === "FLOCK" && each.file === file);
  if (lock === undefined) return;
  if (await isRunning(lock.pid, proc)) throw new OpenError(driverLockedBy(device, await processOf(lock.pid, proc)));
  const holders = await holdersOf(device, proc);
  throw new OpenError(heldBy(device, holders.find(({ pid }) => pid !== process.pid) ?? holders[0]));
}
