import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { silenceMs } from "../../src/config/limits.ts";
import { certificate, key } from "../http/certificate.ts";
import { type Answer, type Identity, Upstream } from "../http/upstream.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { type LogLine, PoslineProcess } from "../support/posline-process.ts";
import { Till } from "../support/till.ts";

/** `posline gateway` as a process of its own, between a till on a tty and real HTTP servers. */

const folder = scratchFolder();
const ends: (() => unknown)[] = [];
after(async () => {
  for (const end of ends.reverse()) await end();
  folder.remove();
});
let count = 0;

interface Shop {
  readonly till: Till;
  readonly upstream: Upstream;
  readonly gateway: PoslineProcess;
}

const noPorts = { POSLINE_FISCAL_PORT: undefined, POSLINE_BANK_PORT: undefined, POSLINE_QR_PORT: undefined };

interface Wishes {
  readonly identity?: Identity;
  readonly env?: Readonly<Record<string, string>>;
}

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

test("posline gateway tells an upstream that is down as not sent, and asks it again when it is back", async () => {
  const { till, upstream, gateway } = await shopOf(byPath);
  await upstream.stop();
  const down = JSON.parse(await till.ask("length", '/sale\n{"pay_id":"A"}'));
  assert.equal(down.code, -3);
  assert.match(down.message, /nothing listens there.*\. Nothing was sent, it is safe to send again/);
  const line = await exchangeOf(gateway, (each) => each["outcome"] === "not-sent");
  assert.deepEqual([line["status"], line["code"], line["key"]], ["error", -3, "A"]);
  await upstream.listen();
  assert.equal(await till.ask("length", "/check\n{}"), '{ "status":"success",  "code":0,"path":"/bank/check" }');
  await gateway.ended("SIGTERM");
});

test("posline gateway that stood still gives no answer that the till gave up meanwhile, and carries out no copy", async () => {
  const sales: ServerResponse[] = [];
  const { till, upstream, gateway } = await shopOf((heard, response) => {
    if (heard.path === "/bank/sale") sales.push(response);
    else byPath(heard, response);
  });
  const sale = till.frame("length", '/sale\n{"pay_id":"A"}');
  const check = till.frame("length", '/check\n{"pay_id":"B"}');
  for (const [count, again, answer] of [
    [1, check, '{ "status":"success",  "code":0,"path":"/bank/check" }'],
    [2, sale, '{"status":"success","n":2}'],
  ] as const) {
    till.answers.length = 0;
    await till.send(sale);
    await upstream.hears(count === 1 ? 1 : 3);
    gateway.child.kill("SIGSTOP");
    sales[count - 1]?.end(`{"status":"success","n":${count}}`);
    await till.send(again);
    // No sign tells that both lie in the kernel.
    await new Promise((resolve) => setTimeout(resolve, 100));
    gateway.child.kill("SIGCONT");
    assert.equal(await till.answer(0), answer);
  }
  await gateway.ended("SIGTERM");
  assert.equal(till.answers.length, 1);
  assert.deepEqual(
    upstream.heard.map(({ path }) => path),
    ["/bank/sale", "/bank/check", "/bank/sale"],
  );
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
  assert.deepEqual(
    upstream.heard.map(({ path }) => path),
    ["/check", "/check"],
  );
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
  assert.deepEqual(
    gateway.log.filter((each) => each["msg"] === "asking").map((each) => each["path"]),
    ["http://127.0.0.1:8008", "http://127.0.0.1:8888", "http://127.0.0.1:8887"],
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
    [2, "/check\n{}", /Cannot send \/check: the configuration was changed\. Nothing was sent, it is safe to send again/],
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
