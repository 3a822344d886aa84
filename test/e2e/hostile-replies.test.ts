import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { entriesMax } from "../../src/envelope/bounded-json.ts";
import { type BridgeProcess, scratchFolder, startedBridge } from "../support/bridge-process.ts";
import { type Asked, answering, Terminal } from "../support/terminal.ts";

/**
 * Replies made to take memory or time, through the real bundle with a heap of 64 MB: each is passed on or reported as unknown, the process
 * lives, and no other line waits for long.
 */

/** For how long the process may do nothing else, as a multiple of what JSON.parse alone takes for a text of the same size. */
const stallMax = 6;

/** How often a reply is sent again that took longer: on a machine whose cores are shared, time of its own is no constant either. */
const triesMax = 5;

const yardstick = Buffer.from(`"${"\\u00e9".repeat(8_388_608 / 6)}"`);

/** Milliseconds of this process for the yardstick, now: how fast the machine is changes from second to second. */
function yardstickMs(): number {
  const began = process.cpuUsage();
  JSON.parse(yardstick.toString());
  const { user, system } = process.cpuUsage(began);
  return (user + system) / 1_000;
}

/**
 * Loaded into the process: for how long no timer ran, and how much of that the process itself worked, since a busy machine lets anybody
 * wait. Told at SIGUSR2, and forgotten.
 */
const stallMeter = `
let worst = { wallMs: 0, busyMs: 0 }, last = performance.now(), used = process.cpuUsage();
setInterval(() => {
  const now = performance.now(), { user, system } = process.cpuUsage(used);
  const wallMs = now - last, busyMs = Math.min(wallMs, (user + system) / 1000);
  worst = { wallMs: Math.max(worst.wallMs, wallMs), busyMs: Math.max(worst.busyMs, busyMs) };
  last = now;
  used = process.cpuUsage();
}, 2).unref();
process.on("SIGUSR2", () => {
  process.stderr.write("stall " + JSON.stringify({ ...worst, rssMb: process.memoryUsage.rss() / 1e6 }) + "\\n");
  worst = { wallMs: 0, busyMs: 0 };
});
`;

type Stall = { readonly wallMs: number; readonly busyMs: number; readonly rssMb: number };

async function stallOf(bridge: BridgeProcess): Promise<Stall> {
  const from = bridge.stderr.length;
  bridge.child.kill("SIGUSR2");
  return bridge.until(() => {
    const told = /^stall (.*)\n/m.exec(bridge.stderr.slice(from))?.[1];
    return told === undefined ? undefined : (JSON.parse(told) as Stall);
  }, "its longest stall");
}

const head = '{"status":"success","code":0,';

/** As many items as fit, between what stands around them. */
function filled(bytes: number, open: string, item: string, close: string): string {
  const count = Math.floor((bytes - head.length - open.length - close.length + 1) / (item.length + 1));
  return `${head}${open}${`${item},`.repeat(count - 1)}${item}${close}`;
}

function manyKeys(bytes: number, open: string, close: string): string {
  const keys: string[] = [];
  for (let size = head.length + open.length + close.length, i = 0; size < bytes - 12; i++) {
    keys.push(`"${i.toString(36)}":0`);
    size += (keys.at(-1)?.length ?? 0) + 1;
  }
  return `${head}${open}${keys.join(",")}${close}`;
}

/** Replies of so many bytes: what makes a parser slow or large. None of those that are unknown has the form of a reply. */
const kinds: readonly [name: string, text: (bytes: number) => string, outcome?: "unknown"][] = [
  ["open brackets", (bytes) => "[".repeat(bytes), "unknown"],
  ["open brackets within an object", (bytes) => `${head}"a":${"[".repeat(bytes - head.length - 4)}`, "unknown"],
  ["objects within each other", (bytes) => `${head}${'"a":{'.repeat(bytes / 5 - 10)}`, "unknown"],
  ["lists nested 60 deep", (bytes) => filled(bytes, '"a":[', "[".repeat(60) + "]".repeat(60), "]}"), "unknown"],
  ["empty lists", (bytes) => filled(bytes, '"a":[', "[]", "]}"), "unknown"],
  ["small objects", (bytes) => filled(bytes, '"a":[', '{"a":1}', "]}"), "unknown"],
  ["digits", (bytes) => filled(bytes, '"a":[', "1", "]}"), "unknown"],
  ["one long number", (bytes) => `${head}"a":1${"9".repeat(bytes - head.length - 6)}}`],
  ["one long number as its code", (bytes) => `${head}"code":-1.${"9".repeat(bytes - head.length - 14)}}`],
  ["numbers beyond all range", (bytes) => filled(bytes, '"a":[', `1e${"9".repeat(200)}`, "]}")],
  ["keys", (bytes) => manyKeys(bytes, '"a":{', "}}"), "unknown"],
  ["the same key", (bytes) => filled(bytes, "", '"data":{}', "}"), "unknown"],
  ["a text of escapes", (bytes) => `${head}"a":"${"\\u00e9".repeat((bytes - head.length - 10) / 6)}"}`],
  ["a message of escapes", (bytes) => `${head}"message":"${"\\n".repeat((bytes - head.length - 20) / 2)}"}`],
  ["a text of backslashes", (bytes) => `${head}"a":"${"\\".repeat(2 * Math.floor((bytes - head.length - 20) / 2))}"}`],
  ["empty texts", (bytes) => filled(bytes, '"a":[', '""', "]}"), "unknown"],
  ["white space", (bytes) => `${head}"a":${" ".repeat(bytes - head.length - 8)}1}`],
  ["a text that breaks off", (bytes) => `${head}"a":"${"x".repeat(bytes - head.length - 5)}`, "unknown"],
  ["objects that break off", (bytes) => filled(bytes, '"a":[', "{}", ""), "unknown"],
];

/** As many entries as are taken, each of the most memory and time; an item takes one entry and one for each that opens in it. */
const fullest: readonly [name: string, open: string, item: (i: number) => string, close: string, entries: number][] = [
  ["empty lists", '"a":[', () => "[]", "]}", 2],
  ["empty objects", '"a":[', () => "{}", "]}", 2],
  ["objects with keys of their own", '"a":[', (i) => `{"k${i.toString(36)}":0}`, "]}", 2],
  ["keys", '"a":{', (i) => `"${i.toString(36)}":0`, "}}", 1],
  ["keys at the top", "", (i) => `"${i.toString(36)}":0`, "}", 1],
  ["the same key at the top", "", () => '"data":{}', "}", 2],
  ["the same key, escaped", "", () => '"d\\u0061ta":[]', "}", 2],
  ["texts", '"a":[', (i) => `"${i}"`, "]}", 1],
  ["operations", '"operations":[', () => '["a"]', "]}", 2],
  ["payment systems", '"data":{"systems":[', () => '{"name":"A","operations":[]}', "]}}", 4],
];

function full(open: string, item: (i: number) => string, close: string, entries: number): string {
  const items = Array.from({ length: Math.floor((entriesMax - 10) / entries) }, (_, i) => item(i));
  return `${head}${open}${items.join(",")}${close}`;
}

/** The largest reply that may be configured. */
const bytes = 8_388_608;

const cases = [
  ...kinds.map(([name, text, outcome = "answered"]) => {
    const reply = text(bytes);
    assert.ok(reply.length > bytes - 400 && reply.length <= bytes, `${name}: ${reply.length} bytes`);
    return { name: `8 MiB of ${name}`, reply, outcome };
  }),
  ...fullest.map(([name, open, item, close, entries]) => ({
    name: `as many ${name} as are taken`,
    reply: full(open, item, close, entries),
    outcome: "answered",
  })),
];

const folder = scratchFolder();
let reply = "";
// With a body, which posline's own question has not.
const answer = ({ text }: Asked) => (text.startsWith("/terminals\n") ? reply : '{"status":"success","data":{"rrn":"1"}}');
let terminal: Terminal;
let bridge: BridgeProcess;

before(async () => {
  const meter = join(folder.path, "stall.cjs");
  writeFileSync(meter, stallMeter);
  terminal = new Terminal(join(folder.path, "tty"), answering(answer));
  bridge = await startedBridge(
    {
      lines: { till: { path: terminal.link, baudRate: 4_000_000 } },
      services: { bank: { line: "till", replyBytesMax: bytes } },
    },
    { env: { NODE_OPTIONS: `--max-old-space-size=64 --require=${meter}` } },
  );
  // What the first requests of a process take isn't what its replies take.
  for (let i = 0; i < 5; i++) await bridge.post("bank", "/check", '{"pay_id":"A"}');
});

after(async () => {
  await bridge.stop();
  terminal.unplug();
});

for (const { name, reply: sent, outcome } of cases) {
  test(`bridge with a heap of 64 MB tells ${name} as ${outcome}, within ${stallMax} times what JSON.parse takes for 8 MiB`, async (t) => {
    reply = sent;
    let ratio = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < triesMax && ratio >= stallMax; tries++) {
      await stallOf(bridge);
      const answered = await bridge.post("bank", "/terminals", "{}");
      const stall = await stallOf(bridge);
      ratio = stall.busyMs / yardstickMs();
      const ms = `${stall.wallMs.toFixed()} ms, ${stall.busyMs.toFixed()} of its own`;
      t.diagnostic(`stalled ${ms}: ${ratio.toFixed(2)} times JSON.parse; ${stall.rssMb.toFixed()} MB`);
      assert.equal(answered.headers["x-posline-outcome"], outcome);
      assert.equal(answered.status, outcome === "answered" ? 200 : 502);
      if (outcome === "answered") assert.ok(answered.text === reply, "byte for byte");
      // The line is served on, by the same process.
      assert.equal((await bridge.post("bank", "/sale", '{"pay_id":"A","amount":1}')).status, 200);
    }
    assert.ok(ratio < stallMax, `it did nothing else for ${ratio} times what JSON.parse takes`);
  });
}
