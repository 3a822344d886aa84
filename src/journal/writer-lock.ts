import { randomBytes, randomInt } from "node:crypto";
import { chmod, open, readdir, rename, unlink } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { codeOf } from "../core/error-code.ts";
import { JournalError } from "./errors.ts";

/**
 * The single-writer lock: one process at a time writes a journal. It listens on a socket in the journal's folder,
 * `journal.lock.` and a random number; a process that can connect to it knows that the writer lives. The kernel closes the
 * socket with its process, however that ends, so unlike a process id it is never mistaken for another's, in whatever container
 * or namespace either of them runs.
 *
 * Each makes its own socket first and looks for others then; one that finds another alive gives up. So of two that start
 * together the later one to look sees the other, and at most one gets the lock. Names are never used again, so a stale socket
 * is removed without harm. A socket is renamed only once it listens: until then others would think it stale.
 */

export interface WriterLock {
  release(): Promise<void>;
}

const prefix = "journal.lock.";

/** The prefix of a socket's name until it listens. */
const newPrefix = "journal.lock-new.";

/** How often the folder is looked at when another process is there: it may have come at the same moment, and give up too. */
const attempts = 3;

/** Milliseconds between two looks, at random so that two that came together don't meet again. */
const pauseMs = { min: 5, max: 50 } as const;

/**
 * Takes the lock of a folder's journal.
 * @throws JournalError when another process has it; the system's error when the folder can't be written.
 */
export async function acquireWriterLock(folder: string): Promise<WriterLock> {
  for (let attempt = 1; ; attempt++) {
    // Checked before, too, so that a second process doesn't disturb the holder.
    const own = (await hasOthers(folder)) ? undefined : await makeSocket(folder);
    if (own === "none") return { release: async () => {} };
    if (own !== undefined) {
      const lock = { release: () => remove(own) };
      if (!(await hasOthers(folder, own.name))) return lock;
      await lock.release();
    }
    if (attempt === attempts) {
      throw new JournalError(`another process is using the journal in ${folder}: stop it, or set another journal.folder`);
    }
    await pause(randomInt(pauseMs.min, pauseMs.max));
  }
}

/** Whether a process holds the writer lock of a folder at this moment. */
export function isWriterLocked(folder: string): Promise<boolean> {
  return hasOthers(folder);
}

/** Whether there is a live socket beside this one; stale ones are removed. */
async function hasOthers(folder: string, own?: string): Promise<boolean> {
  for (const name of await readdir(folder)) {
    const isNew = name.startsWith(newPrefix);
    if ((!isNew && !name.startsWith(prefix)) || name === own) continue;
    if (!(await isAlive(folder, name))) await unlink(`${folder}/${name}`).catch(() => {});
    // A socket that has no name yet has not looked for others, and will.
    else if (!isNew) return true;
  }
  return false;
}

function isAlive(folder: string, name: string): Promise<boolean> {
  return withShortPath(folder, name, (path) => {
    return new Promise((resolve) => {
      const socket = connect(path);
      socket.on("connect", () => {
        socket.destroy();
        resolve(true);
      });
      // A process that refuses entry is alive, and so is one that is too busy to accept.
      socket.on("error", (error) => resolve(!["ECONNREFUSED", "ENOENT", "ENOTSOCK"].includes(codeOf(error) ?? "")));
    });
  });
}

interface Socket {
  readonly folder: string;
  readonly name: string;
  readonly server: Server;
}

/** Errors that mean that no socket can be made, though the folder can be written. */
const unsupported: ReadonlySet<string> = new Set(["EPERM", "EOPNOTSUPP", "ENOTSUP", "EINVAL", "ENOSYS", "ENOSPC", "EDQUOT"]);

/**
 * Makes a socket; "none" where that can't be: on a file system that has none (FAT), which no two services share, and on a full
 * disk, where a journal that is there can still be written, and must be. undefined when another process removed it as stale
 * before it listened.
 */
async function makeSocket(folder: string): Promise<Socket | "none" | undefined> {
  const random = randomBytes(4).toString("hex");
  const [name, newName] = [`${prefix}${random}`, `${newPrefix}${random}`];
  const server = createServer((socket) => socket.destroy());
  try {
    await withShortPath(folder, newName, (path) => {
      return new Promise<void>((resolve, reject) => {
        server.on("error", reject);
        server.listen(path, resolve);
      });
    });
  } catch (error) {
    if (unsupported.has(codeOf(error) ?? "")) return "none";
    throw error;
  }
  server.unref();
  try {
    // For users who may read the journal: they connect to see whether it is being written.
    await chmod(`${folder}/${newName}`, 0o660).catch(() => {});
    await rename(`${folder}/${newName}`, `${folder}/${name}`);
    return { folder, name, server };
  } catch (error) {
    await remove({ folder, name: newName, server });
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function remove({ folder, name, server }: Socket): Promise<void> {
  await unlink(`${folder}/${name}`).catch(() => {});
  await new Promise((resolve) => server.close(resolve));
}

/** Bytes of a socket's path that the system takes (sockaddr_un has 108). */
const pathBytesMax = 100;

/** A path that is too long for a socket is reached through its folder's descriptor. */
async function withShortPath<T>(folder: string, name: string, use: (path: string) => Promise<T>): Promise<T> {
  const path = `${folder}/${name}`;
  if (Buffer.byteLength(path) <= pathBytesMax) return use(path);
  const handle = await open(folder, "r");
  try {
    return await use(`/proc/self/fd/${handle.fd}/${name}`);
  } finally {
    await handle.close();
  }
}
