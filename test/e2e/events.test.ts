import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { ask, BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { Watcher } from "../support/watcher.ts";

/** `GET /events` and `posline logs --live`, by the real bundle. */

const sale = (id: string) => JSON.stringify({ pay_id: id, amount: 1500, currency_name: "EUR" });
const post = async (posline: PoslineProcess, body: string, path = "/sale") =>
  ask(await posline.port("bank"), "POST", path, body);

/** The emulated bridge, on any ports. */
async function withEmulated(body: (posline: PoslineProcess, admin: number) => Promise<void>): Promise<void> {
  const posline = new PoslineProcess(["serve", "--emulated"]);
  try {
    await posline.logged((line) => line["state"] === "idle", "the line to be idle");
    await body(posline, await posline.port("admin"));
  } finally {
    await posline.ended("SIGTERM");
  }
}

test("GET /events shows a sale step by step, and goes on after Last-Event-ID", () =>
  withEmulated(async (posline, admin) => {
    const watcher = new Watcher(admin);
    await watcher.hello();
    assert.match(String(watcher.headers["content-type"]), /^text\/event-stream/);
    assert.equal((await post(posline, sale("A-1"))).status, 200);
    const { data } = await watcher.ended("A-1");
    assert.deepEqual(watcher.phases("A-1"), ["waiting", "sent", "written", "replying", "ended"]);
    for (const each of watcher.events.filter(({ event }) => event === "exchange"))
      assert.deepEqual([each.data["key"], each.data["amount"], each.data["currency"]], ["A-1", "1500", "EUR"]);
    assert.deepEqual(
      [data["service"], data["line"], data["route"], data["outcome"]],
      ["bank", "emulated", "/sale", "answered"],
    );
    const logged = await posline.logged((line) => line["key"] === "A-1", "the log's line");
    for (const name of ["requestId", "status", "code", "httpStatus", "queueMs", "lineMs"])
      assert.equal(data[name], logged[name]);
    const parts = ["requestMs", "terminalMs", "replyMs"].map((name) => Number(data[name]));
    assert.ok(Math.abs(parts.reduce((sum, part) => sum + part, 0) - Number(data["lineMs"])) <= 0.02, JSON.stringify(data));
    const { id } = watcher.events.at(-1) ?? {};
    watcher.leave();
    await post(posline, sale("A-2"));
    const again = new Watcher(admin, "/events", { "Last-Event-ID": id ?? "" });
    await again.ended("A-2");
    assert.deepEqual(again.phases("A-2"), ["waiting", "sent", "written", "replying", "ended"]);
    assert.equal(again.events.filter(({ event }) => event === "exchange").length, 5, "nothing twice");
    again.leave();
    const refused = new Watcher(admin, "/events?recent=512");
    await post(posline, "{}", "/sael");
    await refused.seen(({ data: { reason } }) => reason === "unknown-route", "a refused call's end");
    refused.leave();
  }));

test("GET /events ends each exchange that it began, posline's own questions too, of which log and counters have none", async (t) => {
  const scratch = scratchFolder();
  const approved = '{"status":"success","data":{"status":"APPROVED","txn_id":"T-1"}}';
  const running = '{"status":"success"}';
  const terminal = new Terminal(
    join(scratch.path, "tty"),
    answering(({ text }) => {
      if (text.startsWith("/check")) return text.includes("GOES-ON") ? running : approved;
      return text.includes("LOST") ? undefined : running;
    }),
  );
  const config = {
    lines: { till: { path: terminal.link } },
    services: { bank: { line: "till", replyTimeoutMs: 3_001 } },
    journal: { folder: scratch.path },
    admin: {},
  };
  const bridge = new BridgeProcess(config, { env: { POSLINE_ADMIN_PORT: "0" } });
  t.after(() => bridge.stop("SIGKILL"));
  t.after(() => terminal.unplug());
  await bridge.state("till", "idle");
  const admin = await bridge.port("admin");
  const watcher = new Watcher(admin);
  await watcher.hello();
  const exchanges = () => watcher.events.filter(({ event }) => event === "exchange").map(({ data }) => data);
  const phasesOf = (id: unknown) =>
    exchanges()
      .filter(({ requestId }) => requestId === id)
      .map(({ phase }) => phase);
  const questions = () => exchanges().filter(({ phase, route }) => phase === "sent" && route === "/check");

  // The journal's own question, after the outcome became unknown.
  assert.equal((await bridge.post("bank", "/sale", sale("LOST"))).status, 504);
  await watcher.seen(({ data: { state } }) => state === "settled", "the sale to be settled");
  const [resolving] = questions();
  assert.match(String(resolving?.["requestId"]), /^resolve-\d+$/);
  const { data: lost } = await watcher.ended("LOST");
  const { data: settled } = await watcher.seen(({ data: { state } }) => state === "settled", "its end");
  assert.deepEqual([resolving?.["about"], settled["callId"]], [lost["callId"], lost["callId"]]);
  assert.deepEqual([lost["result"], settled["result"]], [undefined, "approved"]);
  // Those of a call that is followed, while its till waits and after.
  const done = await bridge.post("bank", "/sale", sale("DONE"), { Prefer: "wait=30" });
  assert.deepEqual([done.text, done.headers["x-posline-answer-of"]], [approved, "/check"]);
  const pending = await bridge.post("bank", "/sale", sale("GOES-ON"), { Prefer: "wait=1" });
  assert.equal(pending.headers["x-posline-result"], "pending");
  const before = questions().length;
  await until(() => questions().length > before, "a question after the till's answer");

  const begun = () => new Set(exchanges().map(({ requestId }) => requestId));
  await until(() => [...begun()].every((id) => phasesOf(id).at(-1) === "ended"), "the end of all that began");
  for (const id of begun()) assert.equal(phasesOf(id).filter((phase) => phase === "ended").length, 1, String(id));
  const own = exchanges().filter(({ route }) => route === "/check");
  assert.ok(own.every(({ background }) => background === true));
  assert.ok(exchanges().every(({ route, background }) => route === "/check" || background === undefined));
  const followed = String(pending.headers["x-request-id"]);
  assert.ok(own.some(({ requestId }) => String(requestId).startsWith(`${followed}.`)));
  const ends = exchanges().filter(({ phase }) => phase === "ended");
  for (const { outcome, lineMs, requestMs, terminalMs, replyMs, ...end } of ends) {
    assert.equal(outcome, end["key"] === "LOST" ? "unknown" : "answered");
    const parts = [requestMs, terminalMs, replyMs].reduce((sum: number, part) => sum + Number(part), 0);
    assert.ok(Math.abs(parts - Number(lineMs)) <= 0.02, JSON.stringify({ end, lineMs, parts }));
  }
  assert.ok(!bridge.log.some(({ route }) => route === "/check"), "no line of the log");
  const metrics = (await ask(admin, "GET", "/metrics", "")).text;
  assert.match(metrics, /^posline_exchanges_total\{service="bank",route="\/check",outcome="answered"\} 0$/m);
  watcher.leave();
});

const token = "T-0123456789abcdef";

/** An emulated bank with these settings of its admin port. */
function emulatedWith(folder: string, admin: object): PoslineProcess {
  const config = join(folder, "posline.json");
  const lines = { till: { path: "/dev/absent0" } };
  writeFileSync(config, JSON.stringify({ lines, services: { bank: { line: "till" } }, admin }));
  const env = { POSLINE_FISCAL_PORT: undefined, POSLINE_QR_PORT: undefined };
  return new PoslineProcess(["serve", "--emulated", "--config", config], { env });
}

test("posline logs --live shows what was and what comes, across a restart, and ends with 0 when it is interrupted", async (t) => {
  const [admin = 0] = await freePorts(1);
  const serve = () => new PoslineProcess(["serve", "--emulated"], { env: { POSLINE_ADMIN_PORT: String(admin) } });
  const lines = (logs: PoslineProcess) => logs.stdout.split("\n").filter((line) => line !== "");
  let posline = serve();
  const logs: PoslineProcess[] = [];
  const follow = (...flags: string[]) => {
    const started = new PoslineProcess(["logs", "--live", "--url", `http://localhost:${admin}`, ...flags]);
    logs.push(started);
    return started;
  };
  t.after(async () => {
    for (const each of logs) if (each.child.exitCode === null) await each.ended("SIGKILL");
  });
  t.after(() => posline.ended("SIGTERM"));
  await posline.logged((line) => line["state"] === "idle", "the line to be idle");
  for (const id of ["L-1", "L-2", "L-3"]) await post(posline, sale(id));
  const all = follow("-n", "2", "--service", "bank");
  const json = follow("--json", "--key", "L-4");
  await all.until(() => (lines(all).length === 2 ? true : undefined), "the last two");
  assert.match(lines(all).join("\n"), /^[\d-]+ [\d:.]+ {2}bank {5}\/sale +L-2 .*answered success.*\n.*L-3 .* ms {2}requestMs=/);
  await json.until(() => (json.stderr === "" ? true : undefined), "nothing wrong");
  await post(posline, sale("L-4"));
  for (const each of [all, json]) await each.until(() => (/L-4/.test(each.stdout) ? true : undefined), "the next");
  await posline.ended("SIGTERM");
  await all.until(() => (/trying again for 120 s/.test(all.stderr) ? true : undefined), "the loss");
  posline = serve();
  await all.until(() => (/Connected again/.test(all.stderr) ? true : undefined), "the connection");
  await posline.logged((line) => line["state"] === "idle", "the line to be idle");
  await post(posline, sale("L-5"));
  await all.until(() => (/L-5/.test(all.stdout) ? true : undefined), "what comes after");
  assert.equal(await all.ended("SIGINT"), 0);
  assert.equal(await json.ended("SIGINT"), 0);
  assert.deepEqual(
    lines(json).map((line) => [JSON.parse(line).msg, JSON.parse(line).key, JSON.parse(line).outcome]),
    [["exchange", "L-4", "answered"]],
  );
});

test("posline logs --live says why it can't follow, and how to", async (t) => {
  const scratch = scratchFolder();
  const tokenFile = join(scratch.path, "token");
  writeFileSync(tokenFile, token, { mode: 0o600 });
  const run = async (...flags: string[]) => {
    const logs = new PoslineProcess(["logs", "--live", ...flags]);
    return { code: await logs.ended(), stderr: logs.stderr };
  };
  const posline = emulatedWith(scratch.path, { tokenFile });
  t.after(() => posline.ended("SIGTERM"));
  const url = `http://127.0.0.1:${await posline.port("admin")}`;
  const without = await run("--url", url);
  assert.equal(without.code, 69);
  assert.match(without.stderr, /^Cannot follow posline at http:.*: the header Authorization is missing.*--token-file\n$/);
  const [nobody = 0] = await freePorts(1);
  const nowhere = await run("--url", `http://127.0.0.1:${nobody}`);
  assert.equal(nowhere.code, 69);
  assert.match(nowhere.stderr, /: nothing listens there: start it, or add "admin": \{\} to its configuration\n$/);
  const bank = await run("--url", `http://127.0.0.1:${await posline.port("bank")}`);
  assert.equal(bank.code, 69);
  const closing = createServer((socket) => socket.once("data", () => socket.end())).listen(0, "127.0.0.1");
  await once(closing, "listening");
  const address = closing.address();
  assert.ok(typeof address === "object" && address !== null);
  const cut = await run("--url", `http://127.0.0.1:${address.port}`);
  closing.close();
  assert.equal(cut.code, 69);
  assert.match(cut.stderr, /: the connection was closed before the answer was complete: check that this is the address /);
  assert.equal((await run("--url", "ftp://x")).code, 64);
  assert.equal((await run("--url", url, "--unit", "posline")).code, 64);
  assert.equal((await run("--url", url, "--token-file", join(scratch.path, "absent"))).code, 78);
  const logs = new PoslineProcess(["logs", "--live", "--url", url, "--token-file", tokenFile]);
  await logs.until(() => (/IDLE/.test(logs.stdout) ? true : undefined), "what there is");
  assert.equal(await logs.ended("SIGTERM"), 0);
});
