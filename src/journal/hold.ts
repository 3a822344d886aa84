import { randomBytes, randomInt } from "node:crypto";
import { chmod, open, readdir, rename, unlink } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { codeOf } from "../core/error-code.ts";
import { JournalError } from "./reasons.ts";

/**
 * One process at a time writes a journal. Who has it listens on a socket in its folder, `journal.lock.` and a random number;
 * whoever can connect to it knows that somebody lives there. The kernel closes the socket with its process, however that ends,
 * so unlike a process id it is never mistaken for another's, in whatever container or namespace either of them runs.
 *
 * Each makes its own socket first and looks for others then; who finds another one alive gives up. So of two that come together
 * the later one to look sees the other, and at most one has it. Names are never used again, so a dead one is removed without
 * harm. A socket gets its name when it answers, since between its making and that anybody would take it for dead.
 */

export interface Hold {
  release(): Promise<void>;
}

const prefix = "journal.lock.";

/** What a socket is called until it answers. */
const newPrefix = "journal.lock-new.";

/** How often the folder is looked at when another process is there: it may have come at the same moment, and give up too. */
const attempts = 3;

/** Milliseconds between two looks, at random so that two that came together don't meet again. */
const pauseMs = { min: 5, max: 50 } as const;

/**
 * Takes the hold of a folder's journal.
 * @throws JournalError when another process has it; the system's error when the folder can't be written.
 */
export async function takeHold(folder: string): Promise<Hold> {
  for (let attempt = 1; ; attempt++) {
    // Looked at before, too: who comes second is no trouble to who has it.
    const mine = (await othersIn(folder)) ? undefined : await makeSocket(folder);
    if (mine === "none") return { release: async () => {} };
    if (mine !== undefined) {
      const hold = { release: () => remove(mine) };
      if (!(await othersIn(folder, mine.name))) return hold;
      await hold.release();
    }
    if (attempt === attempts) {
      throw new JournalError(`another process keeps the journal in ${folder}: stop that one, or give this one another folder`);
    }
    await pause(randomInt(pauseMs.min, pauseMs.max));
  }
}

/** Whether a process keeps the journal of a folder at this moment. */
export function isHeld(folder: string): Promise<boolean> {
  return othersIn(folder);
}

/** Whether there is a live socket beside this one; dead ones are removed. */
async function othersIn(folder: string, mine?: string): Promise<boolean> {
  for (const name of await readdir(folder)) {
    const isNew = name.startsWith(newPrefix);
    if ((!isNew && !name.startsWith(prefix)) || name === mine) continue;
    if (!(await answers(folder, name))) await unlink(`${folder}/${name}`).catch(() => {});
    // One that has no name yet has not looked for others, and will.
    else if (!isNew) return true;
  }
  return false;
}

function answers(folder: string, name: string): Promise<boolean> {
  return withShortPath(folder, name, (path) => {
    return new Promise((resolve) => {
      const socket = connect(path);
      socket.on("connect", () => {
        socket.destroy();
        resolve(true);
      });
      // Who refuses entry is there, and so is who is too busy to answer.
      socket.on("error", (error) => resolve(!["ECONNREFUSED", "ENOENT", "ENOTSOCK"].includes(codeOf(error) ?? "")));
    });
  });
}

interface Socket {
  readonly folder: string;
  readonly name: string;
  readonly server: Server;
}

/** What means that no socket can be made, though the folder can be written. */
const unable: ReadonlySet<string> = new Set(["EPERM", "EOPNOTSUPP", "ENOTSUP", "EINVAL", "ENOSYS", "ENOSPC", "EDQUOT"]);

/**
 * Makes a socket; "none" where that can't be: on a file system that has none (FAT), which no two services share, and on a full
 * disk, where a journal that is there can still be written, and must be. undefined when another took it for dead too soon.
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
    if (unable.has(codeOf(error) ?? "")) return "none";
    throw error;
  }
  server.unref();
  try {
    // For whoever may read the journal, and so asks whether it is being written.
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
