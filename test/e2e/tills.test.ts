import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { root } from "./docs.ts";
import { programs, type ReadyTill, type TillProgram } from "./till-programs.ts";
import { TillProxy } from "./till-proxy.ts";
import { schedule } from "./till-schedule.ts";
import { type SoldTill, TillShop } from "./till-shop.ts";

/**
 * The example tills of docs/tills through a schedule of mishaps, the same for each: the real bundle with a journal, a tty, and the
 * emulator. `TILLS_SALES=200` before the command is the whole of it; `TILLS_SEED` draws other amounts and times.
 */

const salesCount = Number(process.env["TILLS_SALES"] ?? 12);
const seed = Number(process.env["TILLS_SEED"] ?? 18);

/** The sales of a till are shared out to so many shops, each with a bridge of its own: most of the time is waiting. */
const shopsOfEach = 3;

/** A till with one of its shops' ports. */
interface Stand {
  readonly till: ReadyTill;
  readonly port: number;
}

test("a till of docs/tills is 28 lines at most, without its imports", () => {
  for (const file of [...programs.map((each) => each.file), "till.cs"]) {
    const lines = readFileSync(new URL(`docs/tills/${file}`, root), "utf8").split("\n");
    const own = lines.filter(
      (line) => !/^\s*$|^\s*(\/\/|#|\/\*\*|""")|^(import|using [A-Z]|from|package)\b|^\t"[a-z/]+"$|^\)$/.test(line),
    );
    assert.ok(own.length <= 28, `${file} has ${own.length} lines`);
  }
});

test("each till of docs/tills ends every sale with the terminal's own word, and none is carried out twice", {
  concurrency: true,
}, async (t) => {
  const folder = scratchFolder();
  // All before the first tty is opened, which a browser would inherit.
  const stands = await Promise.all(programs.map((program) => standsOf(program, folder.path)));
  const locked = lockedBridge(stands.flat());
  try {
    const lockedPort = await locked.port("bank");
    const each = (program: TillProgram, index: number) =>
      t.test(program.file, { skip: program.skip }, (context) =>
        sellAll(context, program.file, stands[index] ?? [], lockedPort),
      );
    await Promise.all(programs.map(each));
  } finally {
    await locked.stop();
    await Promise.all(stands.flat().map(({ till }) => till.end()));
    folder.remove();
  }
});

async function standsOf({ file, skip, ready }: TillProgram, folder: string): Promise<readonly Stand[]> {
  const stands: Stand[] = [];
  if (skip !== false) return stands;
  for (const port of await freePorts(shopsOfEach)) {
    const own = join(folder, file, String(port));
    mkdirSync(own, { recursive: true });
    stands.push({ till: await ready(own, port), port });
  }
  return stands;
}

/** A bridge that demands an API key, which the examples don't send. */
function lockedBridge(stands: readonly Stand[]): BridgeProcess {
  const allowOrigins = stands.flatMap(({ till: { origin } }) => (origin === undefined ? [] : [origin]));
  const bank = { line: "till", apiKey: "no-till-has-it", allowOrigins };
  return new BridgeProcess({ lines: { till: { path: "/dev/null" } }, services: { bank } });
}

/** The whole schedule of one till. */
async function sellAll(context: TestContext, file: string, stands: readonly Stand[], locked: number): Promise<void> {
  const began = performance.now();
  const [first] = stands;
  if (first === undefined) throw new Error(`Cannot run ${file}: it was not made ready`);
  await refusedOnce(first, locked);
  await toldUsage(first);
  await soldInAnyLetters(first);
  const planned = schedule(salesCount, seed);
  const shops = await Promise.all(
    stands.map(({ till, port }, index) =>
      sellInShop(
        till,
        port,
        planned.filter((_, nth) => nth % shopsOfEach === index),
      ),
    ),
  );
  const sold = shops.flatMap((each) => each.sold);
  assert.deepEqual(
    sold.map(wrong).filter((text) => text !== undefined),
    [],
  );
  const words = [...new Set(sold.map(({ printed }) => printed))];
  assert.ok(words.includes("approved") && words.length > 1, "sales ended in more than one way");
  const [calls, kills] = [shops.reduce((sum, each) => sum + each.calls, 0), shops.reduce((sum, each) => sum + each.kills, 0)];
  assert.ok(calls > salesCount && kills > 1, "calls were repeated, and processes killed");
  const counts = words.map((word) => `${sold.filter(({ printed }) => printed === word).length} ${word}`).join(", ");
  const seconds = Math.round((performance.now() - began) / 1_000);
  context.diagnostic(
    `${file}: ${salesCount} sales (${counts}), ${calls} calls, ${kills} kills, ${seconds} s: 0 wrong, 0 double`,
  );
}

/** What no repetition can help ends at once, with the reason. */
async function refusedOnce({ till, port }: Stand, locked: number): Promise<void> {
  const way = new TillProxy(port, locked);
  await way.listen();
  try {
    const { printed, complaint, code } = await till.start({ key: "A-locked", amount: 100 }).ended;
    assert.deepEqual([printed, code, way.calls], ["", 2, 1]);
    assert.match(complaint, /401[\s\S]*the header X-API-Key is missing/);
  } finally {
    way.close();
  }
}

/** A terminal's texts are relayed byte for byte, in whatever letters they are: the word decides. */
async function soldInAnyLetters({ till, port }: Stand): Promise<void> {
  const headers = { "X-Posline-Result": "approved", "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "*" };
  const service = createServer((request, response) => {
    if (request.method === "OPTIONS") return response.writeHead(204, { ...headers, "Access-Control-Allow-Headers": "*" }).end();
    // "При" as a terminal writes it in windows-1251.
    return request
      .resume()
      .on("end", () => response.writeHead(200, headers).end(Buffer.from('{"message":"\xcf\xf0\xe8"}', "latin1")));
  }).listen(port, "127.0.0.1");
  await once(service, "listening");
  try {
    const { printed, complaint, code } = await till.start({ key: "A-letters", amount: 100 }).ended;
    assert.deepEqual([printed, code], ["approved", 0], complaint);
  } finally {
    service.closeAllConnections();
    service.close();
    await once(service, "close");
  }
}

/** What is no sale is not sent, and ends with the usage. */
async function toldUsage({ till, port }: Stand): Promise<void> {
  const way = new TillProxy(port, 0);
  await way.listen();
  try {
    for (const words of [[], ["A-usage"], ["A-usage", "15.00"], ["A-usage", "many"]]) {
      const { printed, complaint, code } = await till.startWith(words).ended;
      // A page has no exit code.
      assert.deepEqual([printed, code], ["", till.origin === undefined ? 64 : 2], `${words.join(" ")}: ${complaint}`);
      assert.match(complaint, /^Usage: .*A-1\b.*1500$/);
    }
    assert.equal(way.calls, 0);
  } finally {
    way.close();
  }
}

async function sellInShop(till: ReadyTill, port: number, planned: ReturnType<typeof schedule>) {
  const shop = await TillShop.open(port, till.origin === undefined ? [] : [till.origin]);
  const sold: SoldTill[] = [];
  try {
    for (const sale of planned) sold.push(await shop.sell(sale, (each) => till.start(each)));
    // The key of another sale: no repetition helps, and nothing is said of the sale that has it.
    for (const { key, amount } of planned.slice(0, 1)) {
      const { printed, code } = await till.start({ key, amount: amount + 1 }).ended;
      assert.deepEqual([printed, code], ["", 2]);
    }
    // Again at the end: nothing has come to the terminal since.
    for (const { sale, ledger } of sold) assert.deepEqual(shop.terminal.endsOf(sale.key), ledger);
    assert.deepEqual(shop.terminal.doubled, []);
    return { sold, calls: shop.proxy.calls, kills: shop.kills };
  } finally {
    await shop.close();
  }
}

/** What is wrong with a sale that ended; undefined where till and terminal agree. */
function wrong({ sale, printed, complaint, code, ledger }: SoldTill): string | undefined {
  const [end, ...more] = ledger;
  const expected = end === undefined ? "failed" : (wordOf[end] ?? end);
  if (more.length === 0 && printed === expected && code === (expected === "approved" ? 0 : 1)) return undefined;
  const mishaps = JSON.stringify(sale.mishaps);
  return `${sale.key} of ${sale.amount}, ${mishaps}: printed "${printed}" (${code}), the terminal has "${ledger}". ${complaint}`;
}

/** posline's word for an end, where the terminal's is another. */
const wordOf: Readonly<Record<string, string>> = { cancelled: "declined", "card-timeout": "declined" };
