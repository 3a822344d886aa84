import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { takeLock } from "../../src/device/lock.ts";
import { OpenError } from "../../src/device/transport.ts";
import { needs } from "../support/lacking.ts";

/** Lock files in a folder that anybody may write to. The device is one that nobody locks. */

const root = mkdtempSync(join(tmpdir(), "posline-lock-"));
chmodSync(root, 0o755);
after(() => rmSync(root, { recursive: true, force: true }));
const device = "/dev/null";
const isRoot = process.geteuid?.() === 0;
/** The folder's and the files' owner where this user may give them away, and the user that then looks at them. */
const [stranger, nobody] = [12_345, 65_534];

/** A folder of its own, and the lock file's name in it. */
function newFolder(): { readonly folder: string; readonly file: string } {
  const folder = mkdtempSync(join(root, "run-lock-"));
  return { folder, file: join(folder, "LCK..null") };
}

/** A look at a lock that hangs is a failure of its own, whatever else waits. */
async function taken(folder: string, proc?: string): ReturnType<typeof takeLock> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("the lock was waited for")), 3_000);
  });
  try {
    return await Promise.race([takeLock(device, folder, proc), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function refusal(folder: string, proc?: string): Promise<{ readonly cause: string; readonly cure: string }> {
  const error = await taken(folder, proc).then(
    () => assert.fail("the lock was taken"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof OpenError && error.why !== undefined, String(error));
  return error.why;
}

/** Runs something as a user that is not root, whoever runs the tests. */
async function asNobody<T>(run: () => Promise<T>): Promise<T> {
  if (isRoot) process.seteuid?.(nobody);
  try {
    return await run();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

async function deadPid(): Promise<number> {
  const gone = spawn(process.execPath, ["--version"], { stdio: "ignore" });
  await once(gone, "exit");
  return gone.pid ?? 0;
}

const victim = join(root, "victim");
const dead = await deadPid();

/** What is no lock of a living process, by what it is. */
const strays: Readonly<Record<string, (file: string) => void>> = {
  "a FIFO": (file) => assert.equal(spawnSync("mkfifo", [file]).status, 0),
  "a link to a device without an end": (file) => symlinkSync("/dev/zero", file),
  "a link to a file with a living process": (file) => symlinkSync(victim, file),
  "a dangling link": (file) => symlinkSync(join(root, "nowhere"), file),
  "a link to itself": (file) => symlinkSync(file, file),
  "an empty folder": (file) => mkdirSync(file),
  "a sparse giant": (file) => {
    writeFileSync(file, "");
    truncateSync(file, 10 * 1024 ** 3);
  },
  "an empty file": (file) => writeFileSync(file, ""),
  "a text": (file) => writeFileSync(file, "not a number\n"),
  "a number with more behind it": (file) => writeFileSync(file, `${process.ppid}x\n`),
  "a number that begins late": (file) => writeFileSync(file, `${" ".repeat(64)}${process.ppid}\n`),
  "0": (file) => writeFileSync(file, "0\n"),
  "-1, every process": (file) => writeFileSync(file, "-1\n"),
  "a negative number": (file) => writeFileSync(file, `-${process.ppid}\n`),
  "a number above all processes": (file) => writeFileSync(file, "4194305\n"),
  "a number above all integers": (file) => writeFileSync(file, `${"9".repeat(30)}\n`),
  "a number beyond 2^32 that wraps to a living process": (file) => writeFileSync(file, `${2 ** 32 + process.ppid}\n`),
  "our own number from before": (file) => writeFileSync(file, `${String(process.pid).padStart(10)}\n`),
  "a process that is gone": (file) => writeFileSync(file, `${String(dead).padStart(10)} minicom till\n`),
};

test("takeLock() takes the place of whatever is no lock of a living process, and waits for none", needs("mkfifo"), async () => {
  writeFileSync(victim, `${process.ppid}\n`);
  for (const [name, make] of Object.entries(strays)) {
    const { folder, file } = newFolder();
    make(file);
    const lock = await taken(folder).catch((error: unknown) => assert.fail(`${name}: ${String(error)}`));
    assert.equal(lock.file, file, name);
    assert.equal(readFileSync(file, "utf8"), `${String(process.pid).padStart(10)}\n`, name);
    assert.ok(lstatSync(file).isFile(), name);
    assert.deepEqual(readdirSync(folder), ["LCK..null"], name);
    await lock.release();
    assert.deepEqual(readdirSync(folder), [], name);
  }
  assert.equal(readFileSync(victim, "utf8"), `${process.ppid}\n`);
});

test("takeLock() takes the place of a socket, and of a device where one may be made", async () => {
  const { folder, file } = newFolder();
  const server = createServer().listen(file);
  await once(server, "listening");
  await (await taken(folder)).release();
  server.close();
  if (spawnSync("mknod", [file, "c", "1", "5"]).status === 0) await (await taken(folder)).release();
  assert.deepEqual(readdirSync(folder), []);
});

test("takeLock() reads little of a giant file", async () => {
  const { folder, file } = newFolder();
  writeFileSync(file, "");
  truncateSync(file, 300 * 1024 ** 2);
  const before = process.resourceUsage().maxRSS;
  await (await taken(folder)).release();
  assert.ok(process.resourceUsage().maxRSS - before < 100 * 1024, `${process.resourceUsage().maxRSS - before} kB`);
});

test("takeLock() goes on without a lock file where what is there may not be taken away", needs("mkfifo", "chown"), async () => {
  for (const [name, make] of Object.entries(strays)) {
    const { folder, file } = newFolder();
    make(file);
    chmodSync(folder, 0o1777);
    if (isRoot) {
      chownSync(folder, stranger, stranger);
      spawnSync("chown", ["-h", String(stranger), file]);
    }
    const lock = await asNobody(() => taken(folder)).catch((error: unknown) => assert.fail(`${name}: ${String(error)}`));
    // Who isn't root has made it, and may take it away.
    assert.equal(lock.file, isRoot ? undefined : file, name);
    await lock.release();
    assert.equal(lstatSync(file, { throwIfNoEntry: false }) !== undefined, isRoot, name);
    assert.equal(readdirSync(folder).length, isRoot ? 1 : 0, name);
  }
});

test("takeLock() leaves a folder with something in it where it is, and goes on", async () => {
  const { folder, file } = newFolder();
  mkdirSync(file);
  writeFileSync(join(file, "diary"), "dear");
  const lock = await taken(folder);
  assert.equal(lock.file, undefined);
  assert.deepEqual([readdirSync(folder), readdirSync(file)], [["LCK..null"], ["diary"]]);
});

test("takeLock() writes over nothing that lies where a draft might, and follows no link there", async () => {
  const { folder, file } = newFolder();
  const [diary, link, inTheWay] = [join(root, "diary"), `${file}.${process.pid}`, `${file}.${process.pid}.stale`];
  writeFileSync(diary, "dear");
  writeFileSync(file, "stale\n");
  symlinkSync(diary, link);
  mkdirSync(inTheWay);
  const lock = await taken(folder);
  assert.equal(lock.file, file);
  await lock.release();
  assert.equal(readFileSync(diary, "utf8"), "dear");
  assert.ok(lstatSync(link).isSymbolicLink() && existsSync(inTheWay));
  assert.equal(readdirSync(folder).length, 2);
});

test("takeLock() makes a file that every program may read, whatever the service's umask", async (t) => {
  const { folder, file } = newFolder();
  const before = process.umask(0o077);
  t.after(() => process.umask(before));
  const lock = await taken(folder);
  assert.equal(lstatSync(file).mode & 0o777, 0o644);
  await lock.release();
});

test("takeLock() never advises to kill the first process or the one that started posline: the file is to go", async () => {
  for (const pid of [1, process.ppid]) {
    const { folder, file } = newFolder();
    chmodSync(folder, 0o1777);
    writeFileSync(file, `${String(pid).padStart(10)}\n`);
    for (const user of [(run: () => ReturnType<typeof refusal>) => run(), asNobody]) {
      const { cause, cure } = await user(() => refusal(folder));
      assert.match(cause, new RegExp(`^${file} says that process ${pid}\\b.* uses ${device}`));
      assert.match(cure, new RegExp(`^sudo rm ${file}, unless `));
      assert.doesNotMatch(cure, /kill|stop/);
    }
    assert.deepEqual(readdirSync(folder), ["LCK..null"]);
  }
});

test("takeLock() names the process to stop only where its user made the file", needs("sleep"), async () => {
  const child = spawn("sleep", ["60"]);
  try {
    await once(child, "spawn");
    const { pid = 0 } = child;
    const { folder, file } = newFolder();
    writeFileSync(file, `${pid}\n`);
    const proc = (status: string | undefined) => {
      const table = mkdtempSync(join(root, "proc-"));
      mkdirSync(join(table, String(pid)));
      writeFileSync(join(table, String(pid), "comm"), "cron\n");
      if (status !== undefined) writeFileSync(join(table, String(pid), "status"), `Name:\tcron\nUid:\t${status}\n`);
      return table;
    };
    const uid = lstatSync(file).uid;
    assert.deepEqual(await refusal(folder), {
      cause: `${device} is in use by process ${pid} (sleep)`,
      cure: `stop it: sudo kill ${pid}; or, if it doesn't use the device, sudo rm ${file}`,
    });
    // A program that has its rights from its file.
    assert.match((await refusal(folder, proc(`777\t${uid}\t${uid}\t${uid}`))).cure, /^stop it: sudo kill/);
    assert.deepEqual(await refusal(folder, proc("777\t777\t777\t777")), {
      cause: `${file} says that process ${pid} (cron) uses ${device}, which is doubtful`,
      cure: `sudo rm ${file}, unless sudo posline ports shows that the process has the device`,
    });
    // systemd hides other users' processes from the service.
    assert.deepEqual(await refusal(folder, proc(undefined)), {
      cause: `${file} says that process ${pid} (cron) uses ${device}`,
      cure: `sudo posline ports shows whether it does: if not, sudo rm ${file}; if so, stop it: sudo kill ${pid}`,
    });
    assert.deepEqual(readdirSync(folder), ["LCK..null"]);
  } finally {
    child.kill();
  }
});

test("takeLock() obeys a lock file that it may not read, and says how to look", async () => {
  const { folder, file } = newFolder();
  chmodSync(folder, 0o777);
  writeFileSync(file, `${dead}\n`);
  chmodSync(file, 0);
  assert.deepEqual(await asNobody(() => refusal(folder)), {
    cause: `${file} says that ${device} is in use, but cannot be read`,
    cure: `sudo posline ports shows who has the device: if nobody has, sudo rm ${file}`,
  });
  assert.deepEqual(readdirSync(folder), ["LCK..null"]);
});
