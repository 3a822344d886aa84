import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { silenceMs } from "../../src/config/limits.ts";
import { certificate, key } from "../http/certificate.ts";
import { type Answer, type Identity, Upstream } from "../http/upstream.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { ask, scratchFolder } from "../support/bridge-process.ts";
import { type LogLine, PoslineProcess } from "../support/posline-process.ts";
import { Till } from "../support/till.ts";
import { Watcher } from "../support/watcher.ts";

/** `posline gateway` as a process of its own, between a till on a tty and real HTTP servers. */

const folder = scratchFolder();
const ends: (() => unknown)[] = [];
after(async () => {
  for (const end of ends.reverse()) await end();
});
let count = 0;

type Shop = { readonly till: Till; readonly upstream: Upstream; readonly gateway: PoslineProcess };

const noPorts = { POSLINE_FISCAL_PORT: undefined, POSLINE_BANK_PORT: undefined, POSLINE_QR_PORT: undefined };

type Wishes = { readonly identity?: Identity; readonly env?: Readonly<Record<string, string>> };

/** A till, a gateway, and one server for all three services. */
async function shopOf(answer?: Answer, { identity, env = {} }: Wishes = {}): Promise<Shop> {
  const link = join(folder.path, `tty${count++}`);
  const till = new Till(link);
  const upstream = await Upstream.start(answer, identity);
  const { url } = upstream;
  const upstreams = ["--upstream-fiscal", `${url}/fiscal`, "--upstream-bank", `${url}/bank`, "--upstream-qr", `${url}/qr`];
  const gateway = new PoslineProcess(["gateway", "--line", link, ...upstreams], { env });
  ends.push(
    () => till.unplug(),
    () => upstream.stop(),
    () => gateway.ended("SIGKILL"),
  );
  await gateway.logged((line) => line["state"] === "open", "the line to open");
  // What may have lain in the line before it opened is not taken: a frame is answered once a silence has ended that.
  while (till.answers.length === 0) {
    await till.send(till.frame("stx", "nothing"));
    await Promise.race([till.answer(0), new Promise((resolve) => setTimeout(resolve, 250))]);
  }
  till.answers.length = 0;
  return { till, upstream, gateway };
}

const exchangeOf = (gateway: PoslineProcess, fits: (line: LogLine) => boolean) =>
  gateway.logged((line) => line["msg"] === "exchange" && fits(line), "the exchange's line");

const byPath: Answer = ({ path }, response) => response.end(`{ "status":"success",  "code":0,"path":"${path}" }`);

test("posline gateway's events have the end of each call, and the state of its line", async () => {
  const { till, gateway } = await shopOf(byPath);
  const watcher = new Watcher(await gateway.port("admin"), "/events?recent=512");
  ends.push(() => watcher.leave());
  await till.ask("length", '/sale\n{"pay_id":"E-1","amount":1}');
  const { data } = await watcher.ended("E-1");
  assert.deepEqual(watcher.phases("E-1"), ["ended"]);
  assert.deepEqual([data["service"], data["outcome"], data["requestMs"]], ["bank", "answered", undefined]);
  const logged = await exchangeOf(gateway, ({ key: id }) => id === "E-1");
  assert.deepEqual([data["requestId"], data["lineMs"]], [logged["requestId"], logged["lineMs"]]);
  const { data: line } = await watcher.seen(({ event }) => event === "line", "the line");
  assert.deepEqual([line["state"], line["line"]], ["open", data["line"]]);
});

test("posline gateway tells the services of one line apart, and asks each at its upstream", async () => {
  const { till, upstream, gateway } = await shopOf(byPath);
  const bank = await till.ask("length", '/sale\n{"pay_id":"A-1","amount":1}');
  assert.equal(bank, '{ "status":"success",  "code":0,"path":"/bank/sale" }');
  const qr = await till.ask("length", ':8887/check\n{"pay_id":"Q-1","trans":"T","pay_system":"P"}');
  assert.equal(qr, '{ "status":"success",  "code":0,"path":"/qr/check" }');
  const data = Buffer.from('{"documentExtID":"F-1"}').toString("base64");
  const fiscal = await till.ask("stx", `command=check_status&data=${data}&sign=AAAA`);
  assert.equal(fiscal, '{ "status":"success",  "code":0,"path":"/fiscal/check_status" }');
  for (const [service, route, key] of [
    ["bank", "/sale", "A-1"],
    ["qr", "/check", "Q-1"],
    ["fiscal", "/check_status", "F-1"],
  ]) {
    const line = await exchangeOf(gateway, (each) => each["service"] === service);
    assert.deepEqual(
      [line["route"], line["key"], line["outcome"], line["status"], line["code"]],
      [route, key, "answered", "success", 0],
    );
    assert.ok(Number(line["requestBytes"]) > 0 && Number(line["replyBytes"]) > 0 && Number(line["lineMs"]) > 0);
    assert.ok(Number(line["queueMs"]) >= 0);
    assert.ok(upstream.heard.some(({ headers }) => headers["x-request-id"] === line["requestId"]));
  }
  assert.equal(await gateway.ended("SIGTERM"), 0);
});

test("posline gateway takes the port in front of a route for the service, and logs why a request is for none", async () => {
  const { till, upstream, gateway } = await shopOf(byPath);
  const askedOf = async (text: string) => JSON.parse(await till.ask("length", text)).path;
  assert.equal(await askedOf(':8888/sale\n{"pay_id":"A-1","amount":1.5}'), "/bank/sale");
  const data = Buffer.from('{"documentExtID":"F-1"}').toString("base64");
  assert.equal(JSON.parse(await till.ask("stx", `command=/check_status&data=${data}&sign=AAAA`)).path, "/fiscal/check_status");
  assert.equal(upstream.heard.at(-1)?.body, `data=${encodeURIComponent(data)}&sign=AAAA`);
  // What is wrong with an amount is its upstream's to say, and its operation has a name all the same.
  const sale = await exchangeOf(gateway, ({ service }) => service === "bank");
  assert.deepEqual([sale["route"], sale["key"]], ["/sale", "A-1"]);
  await till.send(till.frame("length", ':9001/sale\n{"pay_id":"A-2","amount":1}'));
  const unknown = await gateway.logged(({ framing }) => framing === "length", "the refusal");
  assert.equal(unknown["msg"], "a request was refused: it is for no service of this line");
  const services = "bank (:8888), qr (:8887) in frames with a length";
  assert.equal(unknown["reason"], `:9001 selects no service of this line, which has ${services}`);
  assert.equal(await askedOf("/terminals"), "/bank/terminals");
  assert.deepEqual([till.answers.length, upstream.heard.length], [3, 3]);
  assert.equal(await gateway.ended("SIGTERM"), 0);
});

test("posline gateway's /metrics count requests, and bytes and frames each way", async () => {
  const { till, gateway } = await shopOf(byPath);
  const admin = await gateway.port("admin");
  const count = async (series: string) => {
    const { text } = await ask(admin, "GET", "/metrics", "");
    const found = new RegExp(`^posline_${series} (\\d+)$`, "m").exec(text);
    assert.ok(found, `there is no ${series}`);
    return Number(found[1]);
  };
  const each = ["received_bytes", "received_frames", "sent_bytes", "sent_frames"].map(
    (name) => `line_${name}_total{line="till"}`,
  );
  const before = await Promise.all(each.map(count));
  const request = '/sale\n{"pay_id":"A-1","amount":1}';
  const answer = await till.ask("length", request);
  const after = await Promise.all(each.map(count));
  assert.deepEqual(
    after.map((value, n) => value - (before[n] ?? 0)),
    [till.frame("length", request).length, 1, till.frame("length", answer).length, 1],
  );
  assert.equal(await count('exchanges_total{service="bank",route="/sale",outcome="answered"}'), 1);
  assert.equal(await count('exchange_line_seconds_count{service="bank"}'), 1);
  await gateway.ended("SIGTERM");
});

test("posline gateway that stood still sends nothing that its till gave up meanwhile, and goes on", async () => {
  const link = join(folder.path, "stale-tty");
  const till = new Till(link);
  const upstream = await Upstream.start(byPath);
  const file = join(folder.path, "stale.json");
  const bank = { line: "till", upstream: upstream.url, replyTimeoutMs: 3_001 };
  writeFileSync(file, JSON.stringify({ lines: { till: { path: link } }, services: { bank } }));
  const gateway = new PoslineProcess(["gateway", "--config", file], { env: noPorts });
  ends.push(
    () => till.unplug(),
    () => upstream.stop(),
    () => gateway.ended("SIGKILL"),
  );
  await gateway.logged((line) => line["state"] === "open", "the line to open");
  await new Promise((resolve) => setTimeout(resolve, 2 * silenceMs));
  await till.ask("length", "/check\n{}");
  gateway.child.kill("SIGSTOP");
  await till.send(till.frame("length", '/sale\n{"pay_id":"A"}'));
  // Longer than its till waits, which is 5 s more than `replyTimeoutMs`.
  await new Promise((resolve) => setTimeout(resolve, 9_000));
  gateway.child.kill("SIGCONT");
  const sale = await exchangeOf(gateway, (line) => line["route"] === "/sale");
  assert.deepEqual(
    [sale["outcome"], sale["reason"], sale["left"], sale["key"], sale["replyBytes"]],
    ["not-sent", "waited-too-long", true, "A", 0],
  );
  assert.match(
    String(sale["message"]),
    /posline stood still, or the call waited [\d.]+ s for another request\. Nothing was sent/,
  );
  assert.equal(await till.ask("length", "/check\n{}"), till.answers[0]);
  assert.equal(await gateway.ended("SIGTERM"), 0);
  assert.equal(till.answers.length, 2);
  assertMapped(upstream.heard, ["/check", "/check"], ({ path }) => path);
});

test("posline gateway lets the request in flight end on SIGTERM, answers it and exits with 0", async () => {
  let release = () => {};
  const { till, upstream, gateway } = await shopOf((_, response) => {
    release = () => response.end('{"status":"success"}');
  });
  await till.send(till.frame("length", '/sale\n{"pay_id":"A"}'));
  await upstream.hears(1);
  gateway.child.kill("SIGTERM");
  await gateway.logged((line) => String(line["msg"]).startsWith("stopping"), "it to stop");
  release();
  assert.equal(await till.answer(0), '{"status":"success"}');
  assert.equal(await gateway.ended(), 0);
});

test("posline gateway exits with 75 on a second signal, with a request in flight", async () => {
  const { till, upstream, gateway } = await shopOf(() => {});
  await till.send(till.frame("length", "/sale\n{}"));
  await upstream.hears(1);
  gateway.child.kill("SIGTERM");
  await gateway.logged((line) => String(line["msg"]).startsWith("stopping"), "it to stop");
  assert.equal(await gateway.ended("SIGINT"), 75);
});

test("posline gateway waits for a device that isn't there, and says so once", async () => {
  const gateway = new PoslineProcess(["gateway", "--line", join(folder.path, "absent")]);
  const line = await gateway.logged((each) => each["state"] === "down", "the line to be down");
  assert.match(String(line["reason"]), /there is no device/);
  assertMapped(
    gateway.log.filter((each) => each["msg"] === "asking"),
    ["http://127.0.0.1:8008", "http://127.0.0.1:8888", "http://127.0.0.1:8887"],
    (each) => each["path"],
  );
  assert.equal(await gateway.ended("SIGTERM"), 0);
  assert.equal(gateway.log.filter((each) => each["state"] === "down").length, 1);
});

test("posline gateway reads lines, upstreams and the API key from a file, and exits with 78 where one is missing", async () => {
  const link = join(folder.path, "file-tty");
  const till = new Till(link);
  const upstream = await Upstream.start(byPath);
  ends.push(
    () => till.unplug(),
    () => upstream.stop(),
  );
  const file = join(folder.path, "gateway.json");
  const fileOf = (bank: object) =>
    writeFileSync(file, JSON.stringify({ lines: { till: { path: link } }, services: { bank: { line: "till", ...bank } } }));
  fileOf({});
  const wrong = new PoslineProcess(["gateway", "--config", file], { env: noPorts });
  assert.equal(await wrong.ended(), 78);
  assert.match(wrong.stderr, /services\.bank\.upstream: missing: add the URL .*, or use --upstream-bank/);
  fileOf({ upstream: upstream.url, apiKey: "KEY" });
  const gateway = new PoslineProcess(["gateway", "--config", file], { env: noPorts });
  await gateway.logged((line) => line["state"] === "open", "the line to open");
  await new Promise((resolve) => setTimeout(resolve, 100));
  await till.ask("length", "/check\n{}");
  assert.equal(upstream.heard[0]?.headers["x-api-key"], "KEY");
  assert.equal(await gateway.ended("SIGTERM"), 0);
  assert.doesNotMatch(gateway.stdout, /KEY/);
});

test("posline gateway that is reloaded ends what is in flight, refuses with the reason what comes meanwhile, and goes on", async () => {
  const link = join(folder.path, "reload-tty");
  const till = new Till(link);
  const sales: ServerResponse[] = [];
  const upstream = await Upstream.start((heard, response) => {
    if (heard.path === "/sale") sales.push(response);
    else byPath(heard, response);
  });
  const file = join(folder.path, "reload.json");
  const fileOf = (replyTimeoutMs: number) => {
    const bank = { line: "till", upstream: upstream.url, replyTimeoutMs };
    writeFileSync(file, JSON.stringify({ lines: { till: { path: link } }, services: { bank } }));
  };
  fileOf(20_000);
  const gateway = new PoslineProcess(["gateway", "--config", file], { env: noPorts });
  ends.push(
    () => till.unplug(),
    () => upstream.stop(),
    () => gateway.ended("SIGKILL"),
  );
  const opened = () => gateway.log.filter((line) => line["state"] === "open").length;
  const opens = (count: number) => gateway.until(() => (opened() >= count ? true : undefined), "the line to open");
  const quiet = () => new Promise((resolve) => setTimeout(resolve, 200));
  await opens(1);
  for (const [n, meanwhile, answer] of [
    [1, undefined, /^{"n":1}$/],
    [
      2,
      "/check\n{}",
      /Cannot send \/check: the configuration was changed\. Nothing was sent: it may be sent again, unless an earlier try is in doubt/,
    ],
  ] as const) {
    // What comes right after an opening may be older than it.
    await quiet();
    till.answers.length = 0;
    await till.send(till.frame("length", '/sale\n{"pay_id":"A"}'));
    await upstream.hears(n);
    fileOf(20_000 + n);
    gateway.child.kill("SIGHUP");
    const reloads = () => gateway.log.filter(({ msg }) => msg === "the configuration was reloaded").length;
    await gateway.until(() => (reloads() >= n ? true : undefined), "the reload");
    if (meanwhile !== undefined) await till.send(till.frame("length", meanwhile));
    await quiet();
    sales[n - 1]?.end(`{"n":${n}}`);
    assert.match(await till.answer(0), answer);
    await opens(n + 1);
  }
  await quiet();
  till.answers.length = 0;
  assert.equal(await till.ask("length", "/check\n{}"), '{ "status":"success",  "code":0,"path":"/check" }');
  assert.equal(await gateway.ended("SIGTERM"), 0);
  assert.equal(sales.length, 2);
});

test("posline gateway asks an upstream over TLS, and sends nothing to one whose certificate it doesn't trust", async () => {
  const identity = { key, cert: certificate };
  const trusted = join(folder.path, "authority.pem");
  writeFileSync(trusted, certificate);
  const good = await shopOf(byPath, { identity, env: { NODE_EXTRA_CA_CERTS: trusted } });
  assert.equal(await good.till.ask("length", "/check\n{}"), '{ "status":"success",  "code":0,"path":"/bank/check" }');
  const bad = await shopOf(byPath, { identity });
  const answer = JSON.parse(await bad.till.ask("length", "/sale\n{}"));
  assert.match(answer.message, /can't be reached \(self-signed certificate, .*\. Nothing was sent/);
  assert.equal(bad.upstream.heard.length, 0);
});
