import assert from "node:assert/strict";
import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { LogHealth } from "../../src/core/log.ts";
import { openLog } from "../../src/core/log.ts";
import { JournaldOutput } from "../../src/core/log-output.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { needs } from "../support/lacking.ts";
import { until } from "../support/until.ts";
import { record } from "./written.ts";

/** Tests src/core/log-output.ts: what becomes of lines where the log's reader goes. */

const script = fileURLToPath(new URL("logging.ts", import.meta.url));

/** A process that logs each line it is given, and says how its log is when it is asked. */
class Logging {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  #said = "";

  constructor(...args: readonly string[]) {
    const words = ["--import", "tsx", script, "serve", "0", ...args];
    this.child = spawn(process.execPath, words, { stdio: ["pipe", "pipe", "pipe"] });
    this.child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#said += text;
    });
  }

  ready(): Promise<void> {
    return until(() => this.#said.includes("ready"), "the process to log");
  }

  async log(...lines: readonly string[]): Promise<void> {
    for (const line of lines) {
      this.child.stdin.write(`${line}\n`);
      await until(() => this.#said.includes(`did ${line}\n`), `${line} to be logged`);
    }
  }

  async health(): Promise<LogHealth> {
    this.#said = "";
    await this.log("health");
    return JSON.parse(this.#said.split("\n")[0] ?? "");
  }

  /** Waits until its log is in a state. */
  async until(fits: (health: LogHealth) => boolean): Promise<LogHealth> {
    for (;;) {
      const health = await this.health();
      if (fits(health)) return health;
    }
  }

  async end(): Promise<void> {
    const exited = once(this.child, "exit");
    this.child.stdin.end();
    assert.deepEqual(await exited, [7, null]);
  }
}

/** journald, as far as it takes streams of lines. */
class FakeJournald {
  readonly path: string;
  /** What came by each connection. */
  readonly streams: string[] = [];
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  private constructor(path: string) {
    this.path = path;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      // As journald does, which says nothing.
      socket.end();
      const at = this.streams.push("") - 1;
      this.#open.add(socket);
      socket.setEncoding("utf8").on("data", (text: string) => {
        this.streams[at] += text;
      });
      socket.on("error", () => {});
    });
  }

  static async start(path: string): Promise<FakeJournald> {
    const journald = new FakeJournald(path);
    journald.#server.listen(path);
    await once(journald.#server, "listening");
    return journald;
  }

  /** The whole lines behind the header of a connection, without their priority. */
  lines(at: number): Record<string, unknown>[] {
    const lines = (this.streams[at] ?? "").split("\n").slice(7, -1);
    for (const line of lines) assert.match(line, /^<[0-7]>\{/);
    return lines.map((line) => JSON.parse(line.slice(3)));
  }

  async stop(): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
    rmSync(this.path, { force: true });
  }
}

test("Log counts the lines of a reader that went away, and its state says so", async () => {
  const logging = new Logging();
  await logging.ready();
  assert.deepEqual(await logging.health(), { state: "ok", dropped: { budget: 0, reader: 0 } });
  logging.child.stdout.destroy();
  await logging.log("one", "two", "three");
  const { state, dropped } = await logging.until((health) => health.dropped.reader === 3);
  assert.equal(state, "the log's reader went away (EPIPE): lines are dropped: restart posline with a reader");
  assert.equal(dropped.budget, 0);
  await logging.log("four");
  await logging.until((health) => health.dropped.reader === 4);
  await logging.end();
});

test(
  "Log writes to a pipe's next reader, from a whole line on, and says how many lines the one before missed",
  needs("mkfifo"),
  () => {
    const folder = scratchFolder();
    const path = join(folder.path, "fifo");
    execFileSync("mkfifo", [path]);
    const reader = () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const first = reader();
    const log = openLog("info", { fd: openSync(path, constants.O_WRONLY | constants.O_NONBLOCK), journald: false });
    const tell = (key: string) => log.exchange({ ...record, key, outcome: "unknown", message: "m".repeat(2_000) });
    // More than a pipe holds, so that it stops within a line.
    for (let n = 0; n < 40; n++) tell(`early ${n}`);
    log.flush();
    assert.equal(log.dropped.reader, 0);
    const took = readSync(first, Buffer.alloc(1_000_000));
    closeSync(first);
    tell("nobody's");
    log.flush();
    const missed = log.dropped.reader;
    assert.ok(missed > 1 && missed <= 41, `${missed} missed, ${took} bytes taken`);
    const second = reader();
    tell("late");
    log.flush();
    const bytes = Buffer.alloc(1_000_000);
    const lines = bytes.toString("utf8", 0, readSync(second, bytes)).trimEnd().split("\n");
    const told: Record<string, unknown>[] = lines.map((line) => JSON.parse(line));
    assertMapped(
      told,
      [
        ["late", undefined, "exchange"],
        [undefined, missed, "log lines were dropped: the reader went away (EPIPE)"],
      ],
      ({ key, dropped, msg }) => [key, dropped, msg],
    );
    assert.equal(log.state, "ok");
    assert.equal(log.dropped.reader, missed);
  },
);

test("Log connects to journald anew as often as it goes away, loses none of its lines, and says that some may be missing", async () => {
  const folder = scratchFolder();
  const path = join(folder.path, "stdout");
  const logging = new Logging("journald", path);
  await logging.ready();
  await logging.log("a1");
  await once(logging.child.stdout, "data");
  // journald is stopped: the stream that systemd made is dead, and nobody listens.
  logging.child.stdout.destroy();
  await logging.log("a2", "a3");
  const away = await logging.until(({ state }) => state !== "ok");
  assert.match(
    away.state,
    /^journald takes no lines \(\w+\): lines are held up to 1 MiB, then dropped: systemctl status systemd-journald$/,
  );
  assert.deepEqual(away.dropped, { budget: 0, reader: 0 });
  const again = "journald went away, and is there again: lines just before this one may be missing";
  for (const [first, second] of [
    ["a2", "a3"],
    ["b2", "b3"],
    ["c2", "c3"],
  ] as const) {
    const journald = await FakeJournald.start(path);
    await until(() => journald.lines(0).length === 3, "the lines that were held");
    await logging.log(`${first} is there`);
    await until(() => journald.lines(0).length === 4, "the next line");
    assert.match(journald.streams[0] ?? "", /^posline\n\n6\n1\n0\n0\n0\n<4>\{/);
    assertMapped(journald.lines(0), [again, first, second, `${first} is there`], ({ msg }) => msg);
    assert.equal(journald.streams.length, 1);
    assert.deepEqual(await logging.health(), { state: "ok", dropped: { budget: 0, reader: 0 } });
    await journald.stop();
    const next = { a2: ["b2", "b3"], b2: ["c2", "c3"], c2: [] }[first];
    await logging.log(...next);
    if (next.length > 0) await logging.until(({ state }) => state !== "ok");
  }
  await logging.end();
});

test("Log holds a bounded number of lines for a journald that takes none, and counts and tells the others", async () => {
  const folder = scratchFolder();
  const path = join(folder.path, "stdout");
  const logging = new Logging("journald", path);
  await logging.ready();
  logging.child.stdout.destroy();
  await logging.log("flood");
  const { dropped } = await logging.until((health) => health.dropped.reader > 0);
  const journald = await FakeJournald.start(path);
  await until(() => journald.lines(0).some((line) => "dropped" in line), "the number of those that were dropped");
  const lines = journald.lines(0);
  assert.equal(lines.at(-1)?.["dropped"], dropped.reader);
  // The first tells that the connection was made anew, the last how many were dropped.
  assert.equal(lines.length - 2 + dropped.reader, 10_000);
  await journald.stop();
  await logging.end();
});

test("JournaldOutput gives back what a write that met the end of its connection had taken", async () => {
  const folder = scratchFolder();
  const path = join(folder.path, "stdout");
  const server = createServer({ allowHalfOpen: true }).listen(path);
  const accepted = once(server, "connection");
  const returned: string[] = [];
  const output = new JournaldOutput({
    ...{ path, identifier: "i", firstLine: () => "first\n" },
    returned: (bytes) => returned.push(bytes.toString()),
  });
  const [socket] = await accepted;
  const [header] = await once(socket, "data");
  assert.equal(String(header), "i\n\n6\n1\n0\n0\n0\nfirst\n");
  socket.destroy();
  assert.equal(output.write(Buffer.from("two\nthree\n")), 10);
  await until(() => returned.length > 0, "its return");
  assert.deepEqual(returned, ["two\nthree\n"]);
  const again = once(server, "connection");
  assert.throws(() => output.write(Buffer.from("four\n")), { code: "EAGAIN" });
  const [next] = await again;
  await once(next, "data");
  await until(() => takes(output, "four\n"), "the connection to be made");
  assert.equal(String((await once(next, "data"))[0]), "four\n");
  assert.equal(returned.length, 1);
  next.destroy();
  server.close();
});

function takes(output: JournaldOutput, text: string): boolean {
  try {
    return output.write(Buffer.from(text)) === text.length;
  } catch {
    return false;
  }
}
