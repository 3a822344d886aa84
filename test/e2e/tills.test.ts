import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { root } from "./docs.ts";
import { programs, type ReadyTill, type TillProgram } from "./till-programs.ts";
import { TillProxy } from "./till-proxy.ts";
import { schedule } from "./till-schedule.ts";
import { type SoldTill, type TillEnd, TillShop } from "./till-shop.ts";

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

test("a till of docs/tills is 34 lines at most, without imports and lone braces", () => {
  for (const { file } of programs) {
    const lines = readFileSync(new URL(`docs/tills/${file}`, root), "utf8").split("\n");
    const own = lines.filter(
      (line) => !/^\s*[{}]?\s*$|^\s*(\/\/|#|\/\*\*|""")|^(import|using [A-Z]|from|package)\b|^\t"[a-z/]+"$|^\)$/.test(line),
    );
    assert.ok(own.length <= 34, `${file} has ${own.length} lines`);
  }
});

test("each till of docs/tills ends every sale with the terminal's own word, and none is carried out twice", {
  concurrency: true,
}, async (t) => {
  const folder = scratchFolder();
  // All before the first tty is opened, which a browser would inherit.
  const stands = await Promise.all(programs.map((program) => standsOf(program, folder.path)));
  const locked = lockedBridge(stands.flat());
  const emulated = new PoslineProcess(["serve", "--emulated"]);
  try {
    const others = { locked: await locked.port("bank"), emulated: await emulated.port("bank") };
    const each = (program: TillProgram, index: number) =>
      t.test(program.file, { skip: program.skip }, (context) => sellAll(context, program.file, stands[index] ?? [], others));
    await Promise.all(programs.map(each));
  } finally {
    await locked.stop();
    await emulated.ended("SIGTERM");
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

/** The ports of bridges beside the shops' own. */
interface Others {
  readonly locked: number;
  /** Of the bridge that `npm start` runs. */
  readonly emulated: number;
}

/** The whole schedule of one till. */
async function sellAll(
  context: TestContext,
  file: string,
  stands: readonly Stand[],
  { locked, emulated }: Others,
): Promise<void> {
  const began = performance.now();
  const [first] = stands;
  if (first === undefined) throw new Error(`Cannot run ${file}: it was not made ready`);
  await refusedOnce(first, locked);
  await toldUsage(first);
  await soldInAnyLetters(first);
  await soldOnceItCanBe(first);
  await stoppedUnguarded(first);
  await soldToEmulated(first, emulated);
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

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

/** How a till ends whose calls get these answers, the last one again and again, and how many calls it made. */
async function soldTo({ till, port }: Stand, answers: readonly Answer[]): Promise<TillEnd & { readonly calls: number }> {
  const page = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "*",
    "Access-Control-Allow-Headers": "*",
  };
  let calls = 0;
  const service = createServer((request, response) => {
    if (request.method === "OPTIONS") return response.writeHead(204, page).end();
    const { status, headers, body = Buffer.from('{"status":"error"}') } = answers[calls++] ?? answers.at(-1) ?? never();
    return request.resume().on("end", () => response.writeHead(status, { ...page, ...headers }).end(body));
  }).listen(port, "127.0.0.1");
  await once(service, "listening");
  try {
    return { ...(await till.start({ key: "A-stub", amount: 100 }).ended), calls };
  } finally {
    service.closeAllConnections();
    service.close();
    await once(service, "close");
  }
}

function never(): never {
  throw new Error("Cannot answer: no answer was given");
}

const said = (status: number, word: string, more: Readonly<Record<string, string>> = {}): Answer => ({
  status,
  headers: { "X-Posline-Result": word, ...more },
});

const off = { "X-Posline-Repeat-Guard": "off" };

/** A terminal's texts are relayed byte for byte, in whatever letters they are: the word decides. */
async function soldInAnyLetters(stand: Stand): Promise<void> {
  // "При" as a terminal writes it in windows-1251.
  const body = Buffer.from('{"message":"\xcf\xf0\xe8"}', "latin1");
  const { printed, complaint, code } = await soldTo(stand, [{ ...said(200, "approved"), body }]);
  assert.deepEqual([printed, code], ["approved", 0], complaint);
}

/** Beside a 503 `failed` says that nothing was sent yet; elsewhere it is an end. */
async function soldOnceItCanBe(stand: Stand): Promise<void> {
  const unsent = said(503, "failed", { "Retry-After": "1" });
  const { printed, complaint, code, calls } = await soldTo(stand, [unsent, unsent, said(200, "approved")]);
  assert.deepEqual([printed, code, calls], ["approved", 0, 3], complaint);
  for (const status of [200, 502]) {
    const end = await soldTo(stand, [said(status, "failed"), said(200, "approved")]);
    assert.deepEqual([end.printed, end.code, end.calls], ["failed", 1, 1], end.complaint);
  }
}

/** Where no journal knows the call, nothing is sent again while its end isn't known; an end is one all the same. */
async function stoppedUnguarded(stand: Stand): Promise<void> {
  for (const word of ["unknown", "pending"]) {
    const { printed, complaint, code, calls } = await soldTo(stand, [said(502, word, off), said(200, "approved", off)]);
    assert.deepEqual([printed, code, calls], ["", stand.till.origin === undefined ? 3 : 2, 1], complaint);
    assert.equal(complaint, `${word}, and no journal: ask /check, and do not sell again before`);
  }
  const { printed, code } = await soldTo(stand, [
    said(503, "failed", { ...off, "Retry-After": "1" }),
    said(200, "approved", off),
  ]);
  assert.deepEqual([printed, code], ["approved", 0]);
}

/** What its developer tries first: the emulated bridge, whose journal knows a sale that is sent again. */
async function soldToEmulated({ till }: Stand, port: number): Promise<void> {
  // A page's origin would have to be in the configuration, and there is none.
  if (till.origin !== undefined) return;
  const key = `E-${port}-${performance.now()}`;
  const sell = (amount: number, of = key) => till.startWith([of, String(amount), `http://localhost:${port}`]).ended;
  for (const _ of ["first", "again"]) {
    const { printed, complaint, code } = await sell(1500);
    assert.deepEqual([printed, code], ["approved", 0], complaint);
    assert.match(complaint, /"status":"APPROVED"/);
  }
  assert.equal((await sell(1600)).code, 2, "the key has another amount");
  const declined = await sell(1520, `${key}-declined`);
  assert.deepEqual([declined.printed, declined.code], ["declined", 1], declined.complaint);
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
