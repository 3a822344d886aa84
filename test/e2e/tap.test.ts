import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { contractNames } from "../../src/core/call.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { ask, type BridgeProcess, scratchFolder, startedBridge } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { secretsIn, seededSecrets } from "../support/secrets.ts";
import { Systemd } from "../support/systemd.ts";
import { type Asked, probeReply, Terminal } from "../support/terminal.ts";
import { patienceMs, until } from "../support/until.ts";
import { capinfos, fieldsOf, noTshark, tshark } from "../support/wireshark.ts";

/**
 * Tests src/cli/tap.ts, src/capture/tap-raw.ts, src/bridge/taps.ts, src/capture/pcapng.ts, src/capture/upper-pdu.ts, src/capture/frame-text.ts.
 *
 * * Taps of the real bundle while every route of every service is called, with secrets in every field that can carry them, towards the
 * terminal and back.
 */

const { card, sign, key, merchantId } = seededSecrets;

/** Every secret as text, in the three alignments of Base64, and in words for people. */
const seeds = {
  documentExtID: key,
  rrn: card,
  card_num: card,
  apiKey: sign,
  print_data: ["", " ", "  "].map((shift) => Buffer.from(`${shift}${JSON.stringify(seededSecrets)}`).toString("base64")),
  data: { txn_id: key, merchantId, holder: `${card}=${sign}`, [card]: 1 },
  message: `Card ${card} of ${merchantId}, operation ${key}, sign ${sign} and ${Buffer.from(card).toString("base64")}: declined`,
};

/** What a till sends: the seeds in three alignments of Base64, for a fiscal service. */
const bodies = ["", " ", "  "].map((shift) =>
  JSON.stringify({ pay_id: key, trans: key, documentID: 1, amount: 1000, items: [{}], shift, ...seeds }),
);

const signs: string[] = [];

function formOf(body: string): string {
  const data = Buffer.from(body).toString("base64");
  signs.push(signOf(data, merchantId));
  return `data=${encodeURIComponent(data)}&sign=${encodeURIComponent(signOf(data, merchantId))}`;
}

const folder = scratchFolder();
const pcapng = join(folder.path, "till.pcapng");
let bridge: BridgeProcess;
let terminal: Terminal;
let url: string;
let taps: { text: PoslineProcess; hex: PoslineProcess; file: PoslineProcess; pipe: PoslineProcess };
/** Frames of calls that went over the line. */
let calls = 0;

const tap = (...args: string[]) => new PoslineProcess(["tap", ...args]);
const isTapping = (process: PoslineProcess) =>
  process.until(() => (process.stderr.includes("Tapping") ? true : undefined), "the tap");

function answer(asked: Asked): string {
  const probe = probeReply(asked);
  return probe ?? JSON.stringify({ status: "error", code: -20, ...seeds });
}

before(async () => {
  terminal = new Terminal(join(folder.path, "tty"), (asked, self) => self.reply(asked.framing, answer(asked)));
  const service = { line: "till" };
  const config = {
    lines: { till: { path: terminal.link } },
    services: { bank: service, qr: service, fiscal: { ...service, merchantId } },
  };
  bridge = await startedBridge(config, { env: { POSLINE_ADMIN_PORT: "0" } });
  url = `http://127.0.0.1:${await bridge.port("admin")}`;
  taps = {
    text: tap("--url", url),
    hex: tap("--url", url, "--hex", "--line", "till"),
    file: tap("--url", url, "--write", pcapng),
    pipe: tap("--url", url, "--write", "-"),
  };
  for (const process of Object.values(taps)) await isTapping(process);
  for (const name of contractNames) {
    for (const route of contracts[name].routes) {
      for (const body of route.body === "none" ? [""] : bodies) {
        const text = name === "fiscal" && body !== "" ? formOf(body) : body;
        const { status } = await bridge.post(name, route.path, text);
        assert.equal(status, 200, `${name} ${route.path}`);
        calls++;
      }
    }
  }
  // Nobody asked for these: a frame with a wrong checksum, and a whole one.
  const wrong = terminal.frame("stx", JSON.stringify(seeds));
  wrong[wrong.length - 2] = (wrong.at(-2) ?? 0) ^ 1;
  const logged = bridge.log.length;
  await terminal.send(wrong);
  await taps.text.until(() => (/discard .*checksum wrong/.test(taps.text.stdout) ? true : undefined), "the discard");
  await bridge.state("till", "idle", logged);
  await terminal.reply("length", JSON.stringify(seeds));
  await taps.text.until(() => (/ late .*\n.*\n/.test(taps.text.stdout) ? true : undefined), "the late frame");
  for (const process of Object.values(taps)) assert.equal(await process.ended("SIGINT"), 0, process.stderr);
});

after(async () => {
  await bridge?.stop();
  terminal?.unplug();
});

test("posline tap shows each frame with what it was, and of its text what is harmless", () => {
  const { stdout } = taps.text;
  const heads = stdout.split("\n").filter((line) => /^\d\d:\d\d:\d\d\.\d{3} till /.test(line));
  assert.equal(heads.filter((line) => / -> \w+ \/\S+ request \d+ bytes checksum good id=/.test(line)).length, calls);
  assert.equal(heads.filter((line) => / <- \w+ \/\S+ reply \d+ bytes checksum good answered id=/.test(line)).length, calls);
  assert.match(stdout, /<- - discard \d+ bytes checksum wrong \(got [0-9a-f]{8}, crc32 [0-9a-f]{8}\)\n0{8} {2}02 /);
  assert.match(stdout, /^ {4}\{"status":"error","code":-20,"documentExtID":"x+",/m);
  assert.match(stdout, /^ {4}command=\/sale&data=\S+&sign=x+/m);
});

test("No seeded secret is in the text, the rows of hex, or the capture", () => {
  const all = [...Object.values(seededSecrets), ...signs];
  for (const seen of [taps.text.stdout, taps.hex.stdout, taps.pipe.stdout, readFileSync(pcapng)]) {
    assert.ok(seen.length > 10_000);
    assert.deepEqual(secretsIn(seen, all), []);
  }
  // The same search finds them where they are.
  assert.deepEqual(secretsIn(Buffer.from(formOf(bodies[1] ?? "")), [card]), [card]);
});

test("tshark decodes every frame with the plugin: verdict, request and reply linked, time, JSON", { skip: noTshark }, () => {
  const names = [
    ...["_ws.malformed", "_ws.col.Protocol", "posline.role", "posline.checksum", "posline.masked", "posline.service"],
    ...["posline.route", "posline.request_id", "posline.request_in", "posline.response_in", "posline.time", "json.key"],
    "frame.interface_name",
  ];
  const packets = fieldsOf(pcapng, names);
  assert.ok(packets.every((packet) => packet["_ws.malformed"] === "" && packet["_ws.col.Protocol"] === "posline"));
  assert.ok(packets.every((packet) => packet["posline.masked"] === "1" && packet["frame.interface_name"] === "till"));
  const requests = packets.filter((packet) => packet["posline.role"] === "0");
  assert.equal(requests.length, calls);
  for (const request of requests) {
    const reply = packets[Number(request["posline.response_in"]) - 1];
    const at = `${request["posline.service"]} ${request["posline.route"]}`;
    assert.equal(reply?.["posline.role"], "1", at);
    assert.equal(reply?.["posline.request_id"], request["posline.request_id"], at);
    assert.equal(packets[Number(reply?.["posline.request_in"]) - 1], request, at);
    assert.ok(Number(reply?.["posline.time"]) > 0, at);
    assert.equal(`${request["posline.checksum"]}${reply?.["posline.checksum"]}`, "11", at);
    assert.match(reply?.["json.key"] ?? "", /status/, at);
    if (
      contracts[request["posline.service"] as "bank"].routes.find(({ path }) => path === request["posline.route"])?.body !==
      "none"
    ) {
      assert.match(request["json.key"] ?? "", /pay_id/, at);
    }
  }
  const routes = contractNames.flatMap((name) => contracts[name].routes.map(({ path }) => `${name} ${path}`));
  const seen = new Set(requests.map((request) => `${request["posline.service"]} ${request["posline.route"]}`));
  assert.deepEqual([...seen].sort(), routes.sort());
});

test("tshark finds nothing malformed without the plugin, and says in words what each frame is", { skip: noTshark }, () => {
  const packets = fieldsOf(pcapng, ["_ws.malformed"], false);
  assert.ok(packets.length > 2 * calls);
  assert.ok(packets.every((packet) => packet["_ws.malformed"] === ""));
  assert.match(tshark(pcapng, ["-V"], false), /posline bank \/sale request \d+ bytes masked/);
});

test("capinfos finds no fault, and names the line", { skip: noTshark }, () => {
  const { code, text } = capinfos(pcapng);
  assert.equal(code, 0, text);
  assert.match(text, /File type: +Wireshark\/\.\.\. - pcapng/);
  assert.match(text, /Strict time order: +True/);
  assert.match(text, /Number of interfaces in file: 1[\s\S]*Name = till[\s\S]*Wireshark Upper PDU export/);
  assert.doesNotMatch(text, /cut short|error|appears to/i);
});

test("posline tap ends well when its reader does, and says so when posline does", async () => {
  const { child } = tap("--url", url, "--write", "-");
  child.stdout?.destroy();
  const exit = new Promise<number | null>((resolve) => child.on("exit", resolve));
  let ended: number | null | undefined;
  void exit.then((code) => {
    ended = code;
  });
  await until(async () => {
    await bridge.post("bank", "/terminals", "");
    return ended !== undefined;
  }, "the tap to end");
  assert.equal(ended, 0);
  const gone = tap("--url", "http://127.0.0.1:1");
  assert.equal(await gone.ended(), 69);
  assert.match(gone.stderr, /^Cannot tap http:\/\/127\.0\.0\.1:1\/tap: .*ECONNREFUSED.*: is posline running/);
});

test("posline tap refuses flags that don't go together", async () => {
  for (const [args, message] of [
    [["--line", "/dev/ttyUSB0"], /is a device: add --raw/],
    [["--raw", "--line", "/dev/null", "--unmask"], /--raw listens at a device itself/],
    [["--socket", "/run/x"], /add --unmask/],
    [["--unmask", "--url", url], /leave --url and --token-file out/],
    [["--hex", "--write", "x"], /--hex is for text/],
    [["--url", "ftp://x"], /Cannot tap: --url "ftp:\/\/x" is not the URL of an admin port/],
  ] as const) {
    const refused = tap(...args);
    assert.equal(await refused.ended(), 64, refused.stderr);
    assert.match(refused.stderr, message);
    assert.equal(refused.stdout, "");
  }
});

test("posline tap --unmask shows what is there over systemd's socket alone, and is logged", async (t) => {
  const socket = join(folder.path, "tap.sock");
  const away = tap("--unmask", "--socket", socket);
  assert.equal(await away.ended(), 69);
  assert.match(away.stderr, /posline-tap\.socket/);
  const unmasked = new Terminal(join(folder.path, "tty2"), (asked, self) => self.reply(asked.framing, answer(asked)));
  const [bank = 0] = await freePorts(1);
  const file = join(folder.path, "unmasked.json");
  const config = { lines: { till: { path: unmasked.link } }, services: { bank: { line: "till", port: bank } } };
  writeFileSync(file, JSON.stringify(config));
  const systemd = await Systemd.start({ how: "fd", ports: [bank, socket], args: ["serve", "--config", file] });
  t.after(() => systemd.end());
  t.after(() => unmasked.unplug());
  const open = tap("--unmask", "--socket", socket);
  await open.until(() => (open.stderr.includes("NOT masked") ? true : undefined), "the tap");
  await systemd.until(() => systemd.log.includes("an unmasked tap was connected"), "the log");
  await ask(bank, "POST", "/sale", bodies[0] ?? "");
  await open.until(() => (open.stdout.includes(" reply ") ? true : undefined), "the reply");
  assert.equal(await open.ended("SIGINT"), 0);
  assert.deepEqual(secretsIn(open.stdout), Object.values(seededSecrets));
  await systemd.until(() => systemd.log.includes("an unmasked tap was disconnected"), "the log");
});

test("posline tap --raw shows what a device sends with its settings and times, and writes it as a serial capture", async (t) => {
  const device = new Terminal(join(folder.path, "tty3"), () => {});
  t.after(() => device.unplug());
  const capture = join(folder.path, "raw.pcapng");
  for (const args of [[], ["--write", capture]]) {
    const raw = tap("--raw", "--line", device.link, ...args);
    await raw.until(() => (/^Listening on \S+ at 115200 8N1\n$/m.test(raw.stderr) ? true : undefined), "it to listen");
    await until(async () => {
      await device.send(Buffer.from("AT\r\n"));
      return args.length === 0 ? raw.stdout !== "" : statSync(capture).size > 100;
    }, "bytes");
    assert.equal(await raw.ended("SIGINT"), 0, raw.stderr);
    if (args.length === 0) assert.match(raw.stdout, /^0{8} {2}41 54 0d 0a.*\|AT\.\..*\| {2}\d\d:\d\d:\d\d\.\d{3}\n/);
  }
  if (noTshark !== false) return;
  const [first] = fieldsOf(capture, ["rtacser.eventtype", "data.data", "_ws.malformed", "frame.interface_name"]);
  assert.match(first?.["rtacser.eventtype"] ?? "", /2$/);
  assert.match(first?.["data.data"] ?? "", /^41540d0a/);
  assert.equal(first?.["_ws.malformed"], "");
  assert.equal(first?.["frame.interface_name"], device.link);
});

test("posline tap and tap --raw end by one signal also while their reader takes nothing", async (t) => {
  const device = new Terminal(join(folder.path, "tty5"), () => {});
  t.after(() => device.unplug());
  const raw = tap("--raw", "--line", device.link, "--write", "-");
  await raw.until(() => (raw.stderr.includes("Listening") ? true : undefined), "it to listen");
  raw.child.stdout?.pause();
  for (let n = 0; n < 300; n++) await device.send(Buffer.alloc(1_000, "A"));
  const framed = tap("--url", url, "--write", "-");
  await isTapping(framed);
  framed.child.stdout?.pause();
  const pay_id = "p".repeat(50_000);
  for (let n = 0; n < 8; n++) await bridge.post("bank", "/check", JSON.stringify({ pay_id }));
  for (const process of [raw, framed]) {
    process.child.kill("SIGTERM");
    const [code] = (await once(process.child, "exit", { signal: AbortSignal.timeout(patienceMs) })) as [number | null];
    assert.equal(code, 0, process.stderr);
  }
});
