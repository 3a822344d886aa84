import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ask, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { gate } from "../support/promises.ts";
import { answering, type Behaviour, probeReply, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

/** SIGHUP: the real bundle takes another configuration while it serves. */

const noPorts = {
  POSLINE_FISCAL_PORT: undefined,
  POSLINE_BANK_PORT: undefined,
  POSLINE_QR_PORT: undefined,
  POSLINE_ADMIN_PORT: undefined,
};

interface Bench {
  readonly bridge: PoslineProcess;
  readonly terminal: Terminal;
  readonly configOf: (changes?: { line?: object; bank?: object; services?: object; lines?: object }) => object;
  readonly port: number;
  /** Writes a configuration, says SIGHUP, and waits for what is logged of it. */
  reload(config: unknown): Promise<Readonly<Record<string, unknown>>>;
  /** Writes a drop-in of that configuration. */
  writeDropIn(text: string): void;
}

async function withBench(
  behaviour: Behaviour,
  body: (bench: Bench) => Promise<void>,
  more: (folder: string) => object = () => ({}),
): Promise<void> {
  const folder = scratchFolder();
  const file = join(folder.path, "posline.json");
  const terminal = new Terminal(join(folder.path, "tty"), behaviour);
  const [port = 0] = await freePorts(1);
  const configOf: Bench["configOf"] = ({ line = {}, bank = {}, services = {}, lines = {} } = {}) => ({
    lines: { till: { path: terminal.link, queueCallsMax: 1, ...line }, ...lines },
    services: { bank: { line: "till", port, ...bank }, ...services },
    ...more(folder.path),
  });
  writeFileSync(file, JSON.stringify(configOf()));
  const bridge = new PoslineProcess(["serve", "--config", file], { env: noPorts });
  const reload: Bench["reload"] = async (config) => {
    const from = bridge.log.length;
    writeFileSync(file, typeof config === "string" ? config : JSON.stringify(config));
    bridge.child.kill("SIGHUP");
    return bridge.until(
      () => bridge.log.slice(from).find(({ msg }) => String(msg).startsWith("the configuration was ")),
      "the reload to be told of",
    );
  };
  try {
    await bridge.logged((line) => line["state"] === "idle", "the line to be clean");
    const writeDropIn = (text: string) => {
      mkdirSync(join(folder.path, "posline.d"), { recursive: true });
      writeFileSync(join(folder.path, "posline.d", "a.json"), text);
    };
    await body({ bridge, terminal, configOf, port, reload, writeDropIn });
  } finally {
    await bridge.ended("SIGTERM");
    terminal.unplug();
  }
}

const good = '{"status":"success"}';
const statesOf = (bridge: PoslineProcess, from: number) =>
  bridge.log.slice(from).flatMap(({ state }) => (typeof state === "string" ? [state] : []));

test("SIGHUP refuses a configuration that can't be used, with the reason, and the old one stays", async () => {
  await withBench(
    answering(() => good),
    async ({ bridge, configOf, port, reload }) => {
      const from = bridge.log.length;
      const bad: readonly [unknown, RegExp][] = [
        [configOf({ line: { baudrate: 9600 } }), /lines\.till\.baudrate/],
        ["{ no json", /Cannot use the configuration/],
        [configOf({ bank: { line: "tell" } }), /tell/],
      ];
      for (const [config, reason] of bad) {
        const told = await reload(config);
        assert.equal(told["msg"], "the configuration was not reloaded: the one in use stays");
        assert.equal(told["level"], "error");
        assert.match(String(told["error"]), reason);
        assert.equal((await ask(port, "POST", "/terminals", "")).status, 200);
      }
      assert.deepEqual(statesOf(bridge, from), []);
    },
  );
});

test("SIGHUP lets the exchange in flight end under the old settings of its line, and the next go out under the new ones", async () => {
  const release = gate();
  const behaviour: Behaviour = async (asked, terminal) => {
    const answer = answering(() => good);
    if (asked.text.startsWith("/sale")) await release.passed;
    await answer(asked, terminal);
  };
  await withBench(behaviour, async ({ bridge, terminal, configOf, port, reload }) => {
    const sale = ask(port, "POST", "/sale", '{"pay_id":"A-1","amount":100,"currency_name":"EUR"}');
    await until(() => terminal.calls.some(({ text }) => text.startsWith("/sale")), "the sale to be on the line");
    // One may wait: the one that is refused proves that the other does.
    const others = [ask(port, "POST", "/terminals", ""), ask(port, "POST", "/check", '{"pay_id":"A-0"}')];
    assert.match((await Promise.race(others)).text, /1 calls are waiting, which is the limit/);
    const from = bridge.log.length;
    await reload(configOf({ line: { queueCallsMax: 3 } }));
    const refused = await Promise.all(others);
    assert.ok(refused.every(({ headers }) => headers["x-posline-outcome"] === "not-sent"));
    assert.equal(refused.filter(({ text }) => text.includes("the configuration was changed")).length, 1);
    const meanwhile = await ask(port, "POST", "/terminals", "");
    assert.equal(meanwhile.headers["x-posline-outcome"], "not-sent");
    assert.match(meanwhile.text, /is still finishing under the old configuration|not opened yet/);
    release.open();
    const answered = await sale;
    assert.equal(answered.headers["x-posline-outcome"], "answered");
    assert.equal(answered.text, good);
    await bridge.logged((line) => line["state"] === "idle", "the line to be clean again", from);
    assert.equal((await ask(port, "POST", "/terminals", "")).status, 200);
    assert.equal(terminal.inFlightMax, 1);
  });
});

test("SIGHUP brings services and lines, takes them away, and moves them to other ports", async () => {
  await withBench(
    answering(() => good),
    async ({ bridge, configOf, port, reload }) => {
      const other = new Terminal(
        join(scratchFolder().path, "tty"),
        answering(() => '{"status":"success","from":"other"}'),
      );
      try {
        const [qrPort = 0, moved = 0] = await freePorts(2);
        const from = bridge.log.length;
        await reload(
          configOf({ lines: { scanner: { path: other.link } }, services: { qr: { line: "scanner", port: qrPort } } }),
        );
        await bridge.logged(({ line, state }) => line === "scanner" && state === "idle", "the new line", from);
        assert.match((await ask(qrPort, "POST", "/check", '{"pay_id":"1"}')).text, /other/);
        await reload(configOf({ bank: { port: moved } }));
        assert.equal((await ask(moved, "POST", "/terminals", "")).status, 200);
        await assert.rejects(ask(port, "POST", "/terminals", ""), /ECONNREFUSED/);
        await assert.rejects(ask(qrPort, "POST", "/check", "{}"), /ECONNREFUSED/);
        // Two lines have nothing of each other: the first was never closed.
        assert.ok(!bridge.log.slice(from).some(({ line, state }) => line === "till" && state !== undefined));
      } finally {
        other.unplug();
      }
    },
  );
});

test("SIGHUP exchanges two terminals, and neither's sale is taken for the other's of the same key, sent before or after", async () => {
  const [otherPort = 0, adminPort = 0] = await freePorts(2);
  await withBench(
    // Its sales are lost, and it has none of them.
    answering(({ text }) => (text.startsWith("/sale") ? undefined : '{"status":"error","code":-15}')),
    async ({ bridge, terminal, configOf, port, reload }) => {
      const approved = '{"status":"success","data":{"status":"APPROVED","txn_id":"T-2"}}';
      const second = new Terminal(
        `${terminal.link}-2`,
        answering(({ text }) => (text.startsWith("/check") ? approved : good)),
      );
      try {
        const bank = { replyTimeoutMs: { "/sale": 3001 } };
        const services = { bank2: { contract: "bank", line: "till2", port: otherPort } };
        await reload(configOf({ bank, services, lines: { till2: { path: second.link } } }));
        const sells = (at: number, amount: number, pay_id = "1001") =>
          ask(at, "POST", "/sale", JSON.stringify({ pay_id, amount }), { prefer: "wait=7" });
        const wordOf = ({ headers }: Awaited<ReturnType<typeof sells>>) => headers["x-posline-result"];
        assert.equal(wordOf(await sells(otherPort, 200)), "approved");
        assert.equal(wordOf(await sells(otherPort, 300, "1002")), "approved");
        assert.equal(wordOf(await sells(port, 100)), "unknown");
        const from = bridge.log.length;
        const lines = { till2: { path: terminal.link } };
        await reload(configOf({ bank, services, line: { path: second.link }, lines }));
        await until(() => statesOf(bridge, from).filter((state) => state === "idle").length >= 2, "both lines to be clean");
        const again = await sells(port, 100);
        assert.deepEqual([wordOf(again), again.text.includes("T-2")], ["unknown", false], again.text);
        const status = await ask(adminPort, "GET", "/status", "");
        assert.match(status.text, /it was sent over another device, or by another contract, than its service has now/);
        const later = await sells(port, 400, "1002");
        assert.deepEqual([later.status, wordOf(later), later.headers["x-posline-reason"]], [422, undefined, "key-reused"]);
        assert.match(later.text, /with the pay_id \\"1002\\" was sent by service bank2 at .* use a new pay_id/);
        assert.equal(wordOf(await sells(port, 400, "1003")), "approved");
      } finally {
        second.unplug();
      }
    },
    (folder) => {
      const journal = join(folder, "journal");
      mkdirSync(journal, { recursive: true });
      return { journal: { folder: journal }, admin: { port: adminPort } };
    },
  );
});

test("SIGHUP is refused where it takes a service away of which a sale is on the line, unknown, or followed and without an end", async () => {
  let answersSale = false;
  const sales: string[] = [];
  await withBench(
    (asked, terminal) => {
      const { framing, text } = asked;
      if (text.startsWith("/sale")) sales.push(text);
      if (text.startsWith("/sale") && !answersSale) return;
      const isOurs = text.startsWith("/sale") || text.startsWith("/check");
      return terminal.reply(framing, isOurs ? '{"status":"success"}' : (probeReply(asked) ?? good));
    },
    async ({ configOf, port, reload }) => {
      const renamed = { ...configOf(), services: { "bank-1": { contract: "bank", line: "till", port } } };
      const saleOf = (key: string) => `{"pay_id":"${key}","amount":100,"currency_name":"EUR"}`;
      const refused = async (key: string) => {
        const why = `services\\.bank was taken away or renamed, and how /sale ${key} of it ended is unknown: wait for its end, settle it`;
        assert.match(JSON.stringify(await reload(renamed)), new RegExp(why));
      };
      await reload(configOf({ bank: { replyTimeoutMs: { "/sale": 3001 } } }));
      const asking = ask(port, "POST", "/sale", saleOf("A-1"));
      await until(() => sales.length === 1, "the sale on the line");
      await refused("A-1");
      assert.equal((await asking).status, 504);
      await refused("A-1");
      answersSale = true;
      const pending = await ask(port, "POST", "/sale", saleOf("A-2"), { prefer: "wait=2" });
      assert.equal(pending.headers["x-posline-result"], "pending");
      await refused("A-1");
    },
    (folder) => ({ journal: { folder: join(folder, "journal"), resolve: false } }),
  );
});
