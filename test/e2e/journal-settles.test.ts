import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ask, BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { Pty } from "../support/pty.ts";
import { answering, type Behaviour, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

/**
 * Tests src/bridge/ways.ts, src/cli/journal-settle.ts.
 *
 * The journal settles, by the real bundle: by what the terminal answers after a crash, and by the person who looked at it.
 */

const sale = (id: string, amount = 1500) => JSON.stringify({ pay_id: id, amount, currency_name: "EUR" });

const adminToken = "T-0123456789abcdef0123";

interface Bench {
  start(): Promise<BridgeProcess>;
  /** `posline journal` with these words, what it wrote and its exit code. */
  journal(...words: string[]): Promise<{ readonly out: string; readonly err: string; readonly code: number | null }>;
}

/** A bridge over a device, whose journal outlives it. */
async function withBench(
  path: string,
  body: (bench: Bench) => Promise<void>,
  { journal = {}, service = "bank" }: { readonly journal?: object; readonly service?: "bank" | "qr" } = {},
): Promise<void> {
  const scratch = scratchFolder();
  const folder = join(scratch.path, "state");
  mkdirSync(folder);
  const bridges: BridgeProcess[] = [];
  const tokenFile = join(scratch.path, "token");
  writeFileSync(tokenFile, adminToken, { mode: 0o600 });
  const config = {
    lines: { till: { path } },
    services: { [service]: { line: "till" } },
    journal: { bytes: 65_536, ...journal },
    // As where the network scrapes it: commands must reach it on this box, and show its token.
    admin: { host: "0.0.0.0", tokenFile },
  };
  const file = join(scratch.path, "posline.json");
  writeFileSync(file, JSON.stringify(config));
  /** Of the bridge that was started last: another program may take a port in between. */
  let adminPort = "0";
  const start = async () => {
    const bridge = new BridgeProcess(config, { env: { STATE_DIRECTORY: folder, POSLINE_ADMIN_PORT: "0" } });
    bridges.push(bridge);
    await bridge.state("till", "idle");
    adminPort = String(await bridge.port("admin"));
    return bridge;
  };
  const run: Bench["journal"] = async (...words) => {
    const ports = { POSLINE_FISCAL_PORT: undefined, POSLINE_BANK_PORT: undefined, POSLINE_QR_PORT: undefined };
    const env = { ...ports, POSLINE_ADMIN_PORT: adminPort };
    const command = new PoslineProcess(["journal", ...words, "--folder", folder, "--config", file], { env });
    const code = await command.ended();
    return { out: command.stdout, err: command.stderr, code };
  };
  try {
    await body({ start, journal: run });
  } finally {
    for (const bridge of bridges) await bridge.stop("SIGKILL");
  }
}

const unknownIn = async (bridge: BridgeProcess) =>
  JSON.parse((await ask(await bridge.port("admin"), "GET", "/status", "", { Authorization: `Bearer ${adminToken}` })).text)
    .journal.unknown;

test("journal settles a sale that was carried out and never answered before kill -9, within seconds of the next start", async (t) => {
  const scratch = scratchFolder();
  const ends: { readonly near: Pty; readonly far: Pty } = {
    near: new Pty((bytes) => void ends.far.write(bytes)).linkAt(join(scratch.path, "bridge")),
    far: new Pty((bytes) => void ends.near.write(bytes)).linkAt(join(scratch.path, "emulator")),
  };
  const emulator = new PoslineProcess(["emulate", "--line", join(scratch.path, "emulator"), "--no-http"]);
  const sales = () => emulator.log.filter(({ msg, route }) => msg === "exchange" && route === "/sale");
  t.after(() => emulator.ended("SIGKILL"));
  t.after(() => ends.near.unplug());
  t.after(() => ends.far.unplug());
  await withBench(join(scratch.path, "bridge"), async ({ start, journal }) => {
    const first = await start();
    // Amounts ending in 31 are carried out, and never answered.
    const lost = first.post("bank", "/sale", sale("LOST-1", 1531)).catch(() => "lost");
    await until(() => sales().length === 1, "the sale to be carried out");
    await first.stop("SIGKILL");
    assert.equal(await lost, "lost");
    assert.equal((await journal("--unknown")).code, 75);

    const second = await start();
    const settled = await second.logged(({ msg }) => /is settled/.test(String(msg)), "the sale to be settled");
    assert.deepEqual([settled["level"], settled["msg"]], ["info", "bank /sale LOST-1 is settled: approved"]);
    assert.equal((await unknownIn(second)).total, 0);
    await until(async () => (await journal("--unknown")).code === 0, "the record to be on the disk");
    const [row] = (await journal("--json")).out
      .trim()
      .split("\n")
      .map((each) => JSON.parse(each));
    assert.deepEqual([row.key, row.outcome, row.result, row.by], ["LOST-1", "settled", "approved", "answer"]);
    assert.equal(sales().length, 1, "it was sent once");
    await second.stop("SIGTERM");
    const third = await start();
    assert.equal((await unknownIn(third)).total, 0, "and stays settled");
    assert.ok(!third.log.some(({ msg }) => /outcome is unknown/.test(String(msg))));
  });
});

/** Answers no sale, and no question either: only a person can say what became of it. */
const mute: Behaviour = (asked, terminal) => {
  if (!asked.text.includes('"pay_id"')) return answering(() => '{"status":"success"}')(asked, terminal);
};

test("journal settle records what the person saw, with posline running and stopped, and says what it lacks", async (t) => {
  const scratch = scratchFolder();
  const terminal = new Terminal(join(scratch.path, "tty"), mute);
  t.after(() => terminal.unplug());
  await withBench(
    terminal.link,
    async ({ start, journal }) => {
      const first = await start();
      void first.post("bank", "/sale", sale("A")).catch(() => {});
      await until(() => terminal.calls.length === 1, "A to be on the line");
      await first.stop("SIGKILL");
      assert.equal((await journal("--unknown")).code, 75);

      const nothing = await journal("settle", "ABSENT", "--as", "done", "--note", "x");
      assert.deepEqual([nothing.code, nothing.out], [69, ""]);
      assert.match(nothing.err, /^Cannot settle "ABSENT": no operation of this key is unknown/);
      for (const [words, said] of [
        [["settle"], /name the operation by its pay_id or documentExtID/],
        [["settle", "A"], /add --as done or --as not-done/],
        [["settle", "A", "--as", "done"], /add --note/],
        [["--note", "x"], /--note is for posline journal settle/],
      ] as const) {
        const { code, err } = await journal(...words);
        assert.deepEqual([code, said.test(err)], [64, true], err);
      }
      // Nobody writes the journal: the command does.
      const stopped = await journal("settle", "A", "--as", "done", "--note", "slip 4111111111111111 is there");
      assert.deepEqual([stopped.code, stopped.out, stopped.err], [0, "bank /sale A of 1500 is settled: done\n", ""]);
      const [row] = (await journal("--json")).out
        .trim()
        .split("\n")
        .map((each) => JSON.parse(each));
      assert.deepEqual([row.result, row.by, row.note], ["approved", "operator", "slip 411111******1111 is there"]);

      const second = await start();
      assert.equal((await unknownIn(second)).total, 0);
      assert.ok(!second.log.some(({ msg }) => /outcome is unknown/.test(String(msg))));
      void second.post("bank", "/sale", sale("B")).catch(() => {});
      await until(() => terminal.calls.some(({ text }) => text.includes('"B"')), "B to be on the line");
      await second.stop("SIGKILL");
      const third = await start();
      const listed = await journal("--unknown");
      assert.match(listed.out, /\nB: posline does not ask: journal\.resolve is "observe"\n1 operation: 1 unknown\n/);
      // posline writes its journal alone: it is asked to.
      const running = await journal("settle", "B", "--as", "not-done", "--note", "no slip");
      assert.deepEqual(
        [running.code, running.out, running.err],
        [0, "bank /sale B of 1500 is settled: not-done: if the same call comes again, it is sent\n", ""],
      );
      await third.logged(({ msg }) => msg === "bank /sale B is settled: failed", "the log's line");
      assert.deepEqual(await unknownIn(third), { total: 0, newest: [] });
      assert.equal((await journal("--unknown")).code, 0);
      const corrected = await journal("settle", "B", "--as", "done", "--note", "x");
      assert.deepEqual([corrected.code, corrected.out], [0, "bank /sale B of 1500 is settled: done\n"], "the last word counts");
    },
    { journal: { resolve: "observe" } },
  );
});

test("a refund whose answer proves nothing is listed with why, is sent once, and stays so until a person says what became of it", async (t) => {
  const scratch = scratchFolder();
  const bare = '{"status":"success"}';
  const error = '{"status":"error","code":1,"message":"try later"}';
  const terminal = new Terminal(
    join(scratch.path, "tty"),
    answering(({ text }) => (text.includes('"pay_id":"BARE"') ? bare : error)),
  );
  const refund = (key: string) =>
    JSON.stringify({ pay_id: key, trans: "T", rrn: "1", amount: 500, currency: "978", pay_system: "PALM" });
  const prefer = { Prefer: "wait=5" };
  t.after(() => terminal.unplug());
  await withBench(
    terminal.link,
    async ({ start, journal }) => {
      const first = await start();
      for (const [key, text] of [
        ["BARE", bare],
        ["ERROR", error],
      ] as const) {
        const answer = await first.post("qr", "/refund", refund(key), prefer);
        // The terminal's own bytes; the word is that nothing is proven (qr.md, Endpoints: on success data.rrn).
        assert.deepEqual([answer.text, answer.headers["x-posline-result"]], [text, "unknown"]);
      }
      const listed = await journal("--unknown");
      assert.equal(listed.code, 75);
      assert.match(listed.out, /\nBARE: posline does not ask: qr has no question about \/refund\n/);
      assert.match(listed.out, /\nERROR: posline does not ask: .*\n2 operations: 2 unknown\n/);
      assert.equal((await unknownIn(first)).total, 2);
      await first.stop();
      const second = await start();
      assert.equal((await unknownIn(second)).total, 2);
      for (const key of ["BARE", "ERROR"]) {
        const again = await second.post("qr", "/refund", refund(key), prefer);
        assert.deepEqual([again.status, again.headers["x-posline-result"]], [502, "unknown"]);
        assert.equal((await journal("settle", key, "--as", "done", "--note", "in the report")).code, 0);
      }
      assert.equal((await journal("--unknown")).code, 0);
      assert.equal(terminal.calls.length, 2);
    },
    { service: "qr" },
  );
});
