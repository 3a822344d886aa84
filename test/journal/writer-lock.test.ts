import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer, Server } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, mock, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { JournalError } from "../../src/journal/errors.ts";
import { acquireWriterLock, isWriterLocked } from "../../src/journal/writer-lock.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { systemError } from "./sim-disk.ts";

const root = mkdtempSync(join(tmpdir(), "posline-writer-lock-"));
after(() => rmSync(root, { recursive: true }));
let count = 0;
function newFolder(name = String(count++)): string {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

test("acquireWriterLock() refuses a second holder until the first has released, and leaves nothing behind", async () => {
  const folder = newFolder();
  const lock = await acquireWriterLock(folder);
  assert.equal(await isWriterLocked(folder), true);
  await assert.rejects(
    acquireWriterLock(folder),
    (error) => error instanceof JournalError && /another process is using the journal/.test(error.message),
  );
  const [socket = "", ...others] = readdirSync(folder);
  assert.match(socket, /^journal\.lock\.[0-9a-f]{8}$/);
  assert.deepEqual(others, []);
  assert.equal(statSync(join(folder, socket)).mode & 0o777, 0o660);
  await lock.release();
  assert.deepEqual(readdirSync(folder), []);
  await (await acquireWriterLock(folder)).release();
});

test("acquireWriterLock() keeps no socket open once its lock is released, so that a disk that fails for long costs no descriptors", async () => {
  const folder = newFolder();
  const listen = mock.method(Server.prototype, "listen");
  const lock = await acquireWriterLock(folder);
  const [server] = listen.mock.calls.map(({ this: own }) => own as Server);
  listen.mock.restore();
  assert.equal(server?.listening, true);
  await lock.release();
  assert.equal(server.listening, false);
});

test("acquireWriterLock() gives the lock to one at most of many that come at once, and to the next one alone", async () => {
  for (let round = 0; round < 20; round++) {
    const folder = newFolder();
    if (round % 2 === 1) writeFileSync(join(folder, "journal.lock.00000000"), "left behind");
    const all = await Promise.allSettled(Array.from({ length: 4 }, () => acquireWriterLock(folder)));
    const held = all.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    assert.ok(held.length <= 1, `${held.length} have it`);
    assert.equal(readdirSync(folder).length, held.length);
    for (const lock of held) await lock.release();
    await (await acquireWriterLock(folder)).release();
    assert.deepEqual(readdirSync(folder), []);
  }
});

test("acquireWriterLock() takes over from a process that was killed, and not from one that was stopped", async () => {
  const folder = newFolder();
  const moduleUrl = new URL("../../src/journal/writer-lock.ts", import.meta.url).href;
  const code = `const { acquireWriterLock } = await import(${JSON.stringify(moduleUrl)}); await acquireWriterLock(${JSON.stringify(folder)});
    process.stdout.write("held"); setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    await once(child.stdout, "data");
    child.kill("SIGSTOP");
    await assert.rejects(acquireWriterLock(folder), JournalError);
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  assert.equal(readdirSync(folder).length, 1, "it had no time to tidy up");
  assert.equal(await isWriterLocked(folder), false);
  await (await acquireWriterLock(folder)).release();
});

test("acquireWriterLock() gives a socket its name when it answers, and removes what died before", async () => {
  const folder = newFolder();
  writeFileSync(join(folder, "journal.lock-new.00000000"), "left behind");
  const listen = mock.method(Server.prototype, "listen");
  const lock = await acquireWriterLock(folder);
  const [path] = listen.mock.calls[0]?.arguments ?? [];
  listen.mock.restore();
  assert.match(String(path), /\/journal\.lock-new\.[0-9a-f]{8}$/, "between bind and listen it would be taken for dead");
  const [name = "", ...others] = readdirSync(folder);
  assert.match(name, /^journal\.lock\.[0-9a-f]{8}$/);
  assert.deepEqual(others, []);
  assert.equal(await isWriterLocked(folder), true);
  await lock.release();
  assert.deepEqual(readdirSync(folder), []);
});

test("acquireWriterLock() tries again when its socket was removed before it answered", async () => {
  const folder = newFolder();
  const listen = Server.prototype.listen;
  const servers: Server[] = [];
  mock.method(Server.prototype, "listen", function (this: Server, path: string, done: () => void) {
    return listen.call(this, path, () => {
      if (servers.push(this) === 1) unlinkSync(path);
      done();
    });
  });
  try {
    const lock = await acquireWriterLock(folder);
    assertMapped(servers, [false, true], ({ listening }) => listening, "the first one is closed");
    assert.equal(await isWriterLocked(folder), true);
    await lock.release();
  } finally {
    mock.restoreAll();
  }
  assert.deepEqual(readdirSync(folder), []);
});

test("acquireWriterLock() tells of a socket that can't be given its name, and leaves nothing of it", async () => {
  const folder = newFolder();
  const listen = Server.prototype.listen;
  const planted: string[] = [];
  const servers: Server[] = [];
  mock.method(Server.prototype, "listen", function (this: Server, path: string, done: () => void) {
    servers.push(this);
    planted.push(basename(path).replace("-new", ""));
    mkdirSync(join(folder, planted.join()));
    return listen.call(this, path, done);
  });
  try {
    await assert.rejects(acquireWriterLock(folder), { code: "EISDIR" });
    assertMapped(servers, [false], ({ listening }) => listening);
  } finally {
    mock.restoreAll();
  }
  assert.deepEqual(readdirSync(folder), planted);
});

test("isWriterLocked() leaves no connection to a holder that is too busy to end it", async () => {
  const folder = newFolder();
  const holder = createServer({ allowHalfOpen: true });
  holder.listen(join(folder, "journal.lock.01234567"));
  await once(holder, "listening");
  const connected = once(holder, "connection");
  assert.equal(await isWriterLocked(folder), true);
  const [socket] = await connected;
  const isEnded = await Promise.race([once(socket.resume(), "end").then(() => true), pause(5_000, false)]);
  socket.destroy();
  holder.close();
  assert.equal(isEnded, true);
});

test("acquireWriterLock() works in a folder whose path is too long for a socket", async () => {
  const folder = newFolder(`${"long".repeat(20)}/${"longer".repeat(20)}`);
  const lock = await acquireWriterLock(folder);
  assert.equal(await isWriterLocked(folder), true);
  await assert.rejects(acquireWriterLock(folder), JournalError);
  await lock.release();
  assert.deepEqual(readdirSync(folder), []);
  const open = readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return [];
    }
  });
  assert.ok(!open.includes(folder), "it was reached through a descriptor, which is closed");
});

test("acquireWriterLock() tells of a folder that isn't there", async () => {
  await assert.rejects(acquireWriterLock(join(root, "absent")), { code: "ENOENT" });
});

test("acquireWriterLock() does without a socket where there can be none, as on FAT or a full disk, and tells of other errors", async (t) => {
  const folder = newFolder();
  t.after(() => mock.restoreAll());
  for (const [codes, isGiven] of [
    [["EPERM", "EOPNOTSUPP", "ENOTSUP", "EINVAL", "ENOSYS", "ENOSPC", "EDQUOT"], true],
    [["EACCES", "EMFILE", "ENOENT"], false],
  ] as const) {
    for (const code of codes) {
      mock.method(Server.prototype, "listen", function (this: Server) {
        setImmediate(() => this.emit("error", systemError(code)));
        return this;
      });
      if (isGiven) await (await acquireWriterLock(folder)).release();
      else await assert.rejects(acquireWriterLock(folder), { code });
      mock.restoreAll();
      assert.deepEqual(readdirSync(folder), []);
    }
  }
});
