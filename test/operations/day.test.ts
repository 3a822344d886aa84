import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Ways } from "../../src/bridge/ways.ts";
import { runDay } from "../../src/cli/day.ts";
import { runExplain } from "../../src/cli/explain.ts";
import type { ServiceConfig } from "../../src/config/config.ts";
import type { ContractName, Handler } from "../../src/core/call.ts";
import { UsageError } from "../../src/core/exit.ts";
import { Fault } from "../../src/core/fault.ts";
import { isObject, type JsonObject } from "../../src/core/json-object.ts";
import { version } from "../../src/core/version.ts";
import { parseObject, textOf } from "../../src/envelope/json.ts";
import { nodeDisk } from "../../src/journal/disk.ts";
import { journalFile } from "../../src/journal/errors.ts";
import { type JournalRecord, writeRecord } from "../../src/journal/record.ts";
import { openRing } from "../../src/journal/ring.ts";
import { slotBytes } from "../../src/journal/slot.ts";
import { Emulator } from "../../src/lab/emulator/emulator.ts";
import { type Operations, openOperations } from "../../src/operations/operations.ts";
import { pairsOf, pairWithinMs, type Side } from "../../src/operations/pairs.ts";
import { closeAll, serve } from "../http/served.ts";
import { callOf, routeTo, Told } from "../journal/records.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { serviceConfigOf } from "../support/service-config.ts";

/**
 * Tests src/cli/day.ts, src/operations/pairs.ts.
 *
 * A shop's day over the emulator, through the journal and the ways of a bridge: the emulator's ledger is the truth.
 */

const root = mkdtempSync(join(tmpdir(), "posline-day-"));
after(() => rmSync(root, { recursive: true }));
after(closeAll);

const newFolder = () => mkdtempSync(join(root, "f"));

const journalIn = (folder: string, bytes = 64 * 1024) =>
  openOperations({ folder, bytes, onFailure: "refuse", report: new Told() });

interface CallSettings {
  /** What is lost: the answer, or the request. */
  readonly loss?: "answer" | "request" | undefined;
  readonly followMs?: number | undefined;
}

class Shop {
  readonly emulator = new Emulator();
  readonly #handlers = new Map<ContractName, Handler>();
  /** What is lost of a call, by its route and request: others go on meanwhile. */
  readonly #losses = new Map<string, CallSettings["loss"]>();

  constructor(operations: Operations, folder: string) {
    const ways = new Ways({ operations, folder, resolve: "observe", error: assert.ifError });
    const services: Record<string, ServiceConfig> = {};
    for (const contract of ["bank", "fiscal"] as const) {
      const exchange: Handler = async (call) => {
        const entry = call.route.startsWith("/check") ? undefined : operations.begin(call, routeTo(call.route, contract));
        await entry?.sent();
        const loss = this.#losses.get(`${call.route} ${call.requestId}`);
        const reply = loss === "request" ? undefined : this.emulator.answer(call).reply;
        const isLost = reply === undefined || loss === "answer";
        await entry?.ended(isLost ? { outcome: "unknown" } : { outcome: "answered", ...reply });
        if (isLost) throw new Fault("timeout", "No valid reply", { reason: "no-reply" });
        return reply;
      };
      const config = serviceConfigOf({ contract, merchantId: "M" });
      services[contract] = config;
      this.#handlers.set(contract, ways.handlerOf({ service: contract, config }, exchange));
    }
    ways.take({ lines: {}, services, journal: false, log: { level: "info" } }, [{ name: "till", state: "idle", waiting: 0 }]);
  }

  /** What a port of the bridge hands its calls to. */
  fiscal(): Handler {
    return this.#handlers.get("fiscal") ?? assert.fail();
  }

  /** Calls a service; undefined if no answer came. */
  async call(service: ContractName, route: string, json: JsonObject, { loss, followMs }: CallSettings = {}) {
    const text = JSON.stringify(json);
    const body = service === "fiscal" ? `data=${encodeURIComponent(Buffer.from(text).toString("base64"))}&sign=eA==` : text;
    const { pay_id, documentExtID, amount, currency_name } = json;
    const money = amount === undefined ? {} : { amount: { digits: String(amount), currency: String(currency_name) } };
    const call = { ...callOf(String(pay_id ?? documentExtID), { service, body }), route, ...money, followMs };
    this.#losses.set(`${route} ${call.requestId}`, loss);
    const answered = this.#handlers.get(service)?.(call);
    const reply = await answered?.catch(() => undefined);
    return reply && parseObject(textOf(reply.payload));
  }

  /** Asks until a payment has ended. @returns its number. */
  async ended(pay_id: string): Promise<unknown> {
    await this.call("bank", "/check", { pay_id });
    const { data } = (await this.call("bank", "/check", { pay_id })) ?? {};
    return isObject(data) ? data["rrn"] : undefined;
  }

  receipt(route: string, documentExtID: string, amount: number, rrn: unknown, how?: CallSettings, cash = 0) {
    const card = rrn === undefined ? {} : { extraPayments: [{ amount, trxParams: { rrn } }] };
    const payments = { cashAmount: cash, cashlessAmount: rrn === undefined ? amount - cash : 0 };
    const items = [{ itemName: "Tea", itemAmount: amount }];
    return this.call("fiscal", route, { documentExtID, items, payments, ...card }, how);
  }
}

async function day(folder: string | undefined, args: Parameters<typeof runDay>[0] = {}) {
  let out = "";
  const io = { env: {}, file: join(root, "absent.json"), out: (text: string) => (out += text), err: () => {} };
  const until = new Date(Date.now() + 60_000).toISOString();
  const code = await runDay({ folder, since: "1h", until, ...args }, io);
  return { code, out, told: args.json === true ? JSON.parse(out) : undefined };
}

/** A row of the JSON, of a service or of what is open. */
type Row = Readonly<
  Record<"service" | "key" | "is" | "todo", string> & Record<"sold" | "refunded", Record<"count" | "sum", string>>
>;

const routes = { sold: "/sale", refunded: "/refund" } as const;

const troubles = ["declined", "asked", "lost", "never", "in doubt", "no receipt", "receipt lost", "no payment"] as const;

test("runDay() has the sums of 1,000 operations to the cent, and names each difference from the ledger by its key", async () => {
  const folder = newFolder();
  const journal = await journalIn(folder, 4 * 1024 * 1024);
  const shop = new Shop(journal, folder);
  await shop.call("fiscal", "/open_shift", {});
  const [open, sales] = [new Map<string, string>(), new Map<string, JsonObject>()];
  const paired = { byRrn: 0, byAmount: 0 };
  const refunds: Promise<unknown>[] = [];
  for (let at = 0; at < 480; at++) {
    const trouble = at % 10 === 7 ? troubles[Math.floor(at / 10) % troubles.length] : undefined;
    const [key, document, currency_name] = [`S-${at}`, `D-${at}`, at % 3 === 0 ? "USD" : "EUR"];
    const amount = (at + 10) * 100 + (trouble === "declined" ? 20 : trouble === "in doubt" ? 3 : 7);
    const loss = trouble === "asked" || trouble === "lost" ? "answer" : trouble === "never" ? "request" : undefined;
    const sale = { pay_id: key, amount, currency_name };
    sales.set(key, sale);
    if (trouble !== "no payment") await shop.call("bank", "/sale", sale, { loss });
    const isOpen = trouble === "lost" || trouble === "never" || trouble === "in doubt";
    const rrn = isOpen || trouble === "no payment" ? undefined : await shop.ended(key);
    if (isOpen) open.set(key, "unknown");
    if (trouble === "no receipt") open.set(key, "payment without a receipt");
    if (trouble === "no payment") open.set(document, "receipt without a payment");
    if (trouble === "receipt lost") open.set(document, "unknown");
    if (isOpen || trouble === "declined" || trouble === "no receipt") continue;
    const named = at % 2 === 0 ? rrn : undefined;
    await shop.receipt("/sale", document, amount, named, { loss: trouble === "receipt lost" ? "answer" : undefined });
    if (trouble === undefined || trouble === "asked") paired[named === undefined ? "byAmount" : "byRrn"]++;
    if (at % 10 === 1) await shop.receipt("/sale", `C-${at}`, 507, undefined, {}, 507);
    if (at % 50 !== 1) continue;
    // Of what refers to a sale posline proves the end only if it was followed.
    const followMs = at % 100 === 1 ? 60_000 : undefined;
    if (followMs === undefined) open.set(`R-${at}`, "unknown").set(`B-${at}`, "unknown");
    else paired.byAmount++;
    const back = at * 100 + 107;
    refunds.push(shop.call("bank", "/refund", { pay_id: `R-${at}`, amount: back, currency_name, rrn }, { followMs }));
    refunds.push(shop.receipt("/refund", `B-${at}`, back, undefined, { followMs }));
  }
  await Promise.all(refunds);
  shop.emulator.advance(600_000);
  const { code, told } = await day(folder, { json: true });
  assert.equal(code, 75);
  assert.deepEqual(new Map(told.open.map(({ key, is }: Row) => [key, is])), open);
  assert.deepEqual(told.paired, paired);
  for (const service of ["bank", "fiscal"] as const)
    for (const column of ["sold", "refunded"] as const) {
      const ledger = shop.emulator.services[service].ledger();
      const good = ledger.filter(({ route, end }) => routes[column] === route && /approved|closed/.test(end));
      const known = good.filter(({ key = "" }) => open.get(key) !== "unknown");
      const rows: readonly Row[] = told.services.filter((row: Row) => row.service === service);
      const of = (name: "count" | "sum") => rows.reduce((total, row) => total + BigInt(row[column][name]), 0n);
      const truth = known.reduce((total, { amount }) => total + amount, 0n);
      assert.deepEqual([of("count"), of("sum")], [BigInt(known.length), truth], `${service} ${column}`);
      assert.ok(known.length > 4 && good.length > known.length, "what is unknown is all that differs");
    }
  // What is open ends by what is to be done about it.
  const { key, todo } = told.open.find(({ key: name }: Row) => /^S-.*7$/.test(name) && open.get(name) === "unknown");
  assert.match(todo, /: send the same call again with Prefer: wait/);
  await shop.call("bank", "/sale", sales.get(key) ?? {}, { followMs: 60_000 });
  await journal.close();
  const after: readonly Row[] = (await day(folder, { json: true })).told.open;
  assert.equal(after.find((each) => each.key === key)?.is, "payment without a receipt", "it is no longer unknown");
});

/** Runs it for a folder, with the exit code and all that it has to say. */
async function says(folder: string, code: number, ...said: readonly RegExp[]): Promise<void> {
  const told = await day(folder);
  for (const each of said) assert.match(told.out, each);
  assert.equal(told.code, code);
}

test("runDay() reads a journal that is being written, whose last operation is in flight and then lost", async () => {
  const folder = newFolder();
  const journal = await journalIn(folder);
  await says(folder, 0, /^nothing was sold/m, /^sums are in minor units, .* what was sold at the terminal itself/m);
  await journal.begin(callOf("A\u009b 1"), routeTo()).sent();
  await says(folder, 0, /^1 in flight/m);
  await journal.close();
  await says(folder, 75, /\/sale A\uFFFD 1 {2}100 {2}unknown: .*\n.* posline journal settle 'A\uFFFD 1' --as done/);
  assert.equal((await day(folder, { service: "fiscal" })).code, 0);
});

test("runDay() says what a full, a damaged, a cut and an older journal lacks, and refuses what is none", async () => {
  const put = async (bytes: number, records: readonly JournalRecord[]) => {
    const folder = newFolder();
    const { ring } = await openRing(nodeDisk, folder, bytes);
    for (const [at, record] of records.entries()) await ring.write([{ sequence: at + 1, text: writeRecord(record) }]);
    await ring.close();
    return folder;
  };
  /** A sale at a place, and its end. */
  const sale = (at: number, key: string, more = {}): readonly JournalRecord[] => {
    const sent = { requestId: "r", service: "bank", route: "/sale", key, digest: key, amount: "100", ...more };
    const end = { sent: at, digest: key, result: "approved", by: "operator" } as const;
    return [
      { kind: "sent", timeMs: Date.now() - 1_000, ...sent },
      { kind: "settled", timeMs: Date.now(), ...end },
    ];
  };
  const sales = Array.from({ length: 200 }, (_, at) => sale(2 * at + 1, `K${at}`)).flat();
  const lacks = /^records until .* are overwritten or missing/m;
  await says(await put(64 * 1024, sales), 75, lacks);
  const damaged = await put(512 * 1024, sales);
  await says(damaged, 0, /^bank +not recorded +200 +20000 /m);
  const bytes = readFileSync(journalFile(damaged));
  writeFileSync(journalFile(damaged), bytes.fill(0xff, 100 * slotBytes, 108 * slotBytes));
  await says(damaged, 75, lacks, /^bank +not recorded +195 +19500 .* 1 +100$/m);
  await says(await put(64 * 1024, [{ kind: "lacking", timeMs: Date.now() }, ...sale(2, "A")]), 75, lacks);
  const older = await put(64 * 1024, [...sale(1, "A"), ...sale(3, "D", { service: "fiscal", amount: undefined })]);
  await says(older, 0, /^fiscal +not recorded +1 +not recorded /m, /^payments and receipts aren't compared: 1 of them/m);
  const again = await put(64 * 1024, [...sale(1, "A", { timeMs: Date.now() - 26 * 3_600_000 }), ...sale(3, "A")]);
  await says(
    again,
    75,
    /^bank +not recorded +1 +100 /m,
    /bank \/sale A .* sent again a day later: The same call had been sent/m,
  );
  writeFileSync(journalFile(damaged), Buffer.alloc(64 * 1024));
  for (const folder of [damaged, newFolder()]) await says(folder, 69, /^$/);
  await assert.rejects(day(damaged, { since: "soon" }), UsageError);
  await assert.rejects(day(damaged, { since: "now", until: "1h" }), UsageError);
});

test("runDay() counts no cancel of a reservation as refunded, and tells no abort beside the sale that it was to stop", async () => {
  const folder = newFolder();
  const journal = await journalIn(folder);
  const shop = new Shop(journal, folder);
  const card = { pay_id: "P-1", amount: 500, currency_name: "EUR" };
  await shop.call("bank", "/preauth", card);
  const rrn = await shop.ended("P-1");
  await shop.call("bank", "/cancel", { ...card, rrn }, { followMs: 60_000 });
  await shop.call("bank", "/sale", { ...card, pay_id: "P-2", amount: 520 }, { followMs: 60_000 });
  await shop.call("bank", "/abort", { pay_id: "P-2" }, { loss: "answer" });
  await journal.close();
  const { told } = await day(folder, { json: true, service: "bank" });
  assert.deepEqual([told.services.map(({ refunded }: Row) => refunded.count), told.open], [[0], []]);
});

test("runDay() counts a sale that was sent twice once, and two equal refunds of one payment by QR twice", async () => {
  const folder = newFolder();
  const journal = await journalIn(folder);
  const shop = new Shop(journal, folder);
  const sale = { pay_id: "P-1", amount: 500, currency_name: "EUR" };
  for (let time = 0; time < 2; time++) await shop.call("bank", "/sale", sale);
  await shop.ended("P-1");
  await shop.call("bank", "/preauth", { ...sale, pay_id: "P-2" });
  await shop.call("bank", "/sale", { ...sale, pay_id: "P-3", currency_name: "XXX" });
  await shop.call("bank", "/xreport", { pay_id: "P-4" });
  const unsent = journal.begin(callOf("P-5"), routeTo());
  await unsent.sent();
  await unsent.ended({ outcome: "not-sent" });
  await journal.begin({ ...callOf("P-6"), service: "kiosk" }, routeTo()).sent();
  for (const rrn of ["1", "2"]) {
    const entry = journal.begin({ ...callOf("Q-1", { service: "qr" }), route: "/refund" }, routeTo("/refund", "qr"));
    await entry.sent();
    const payload = [Buffer.from(JSON.stringify({ status: "success", data: { rrn } }))];
    await entry.ended({ outcome: "answered", status: "success", payload });
  }
  await journal.close();
  const { told } = await day(folder, { json: true });
  assert.equal(told.services.map(({ sold, refunded }: Row) => `${sold.count} ${refunded.count}`).join(), "1 0,0 0,0 2");
  assert.equal(told.open.map(({ key, is }: Row) => `${key} ${is}`).join(), "P-2 unknown,P-6 unknown");
  assert.deepEqual([told.services[1].notDone.count, told.uncounted], [1, ["kiosk"]]);
});

test("runDay() writes a page of the day, or refuses it before the journal is read, and leaves an older page as it is", async () => {
  const folder = newFolder();
  const report = join(folder, "day.html");
  const journal = await journalIn(folder);
  const entry = journal.begin(callOf("<b>&pay"), routeTo());
  await entry.sent();
  await entry.ended({ outcome: "unknown" });
  const { code, out } = await day(folder, { report });
  await journal.close();
  const page = readFileSync(report, "utf8");
  assert.equal(code, 75);
  assert.deepEqual(
    [/^bank .* 1 +100$/m.test(out), /<th>UNKNOWN<\/th>/.test(page), /<td>1<\/td><td>100<\/td><\/tr>/.test(page)],
    [true, true, true],
  );
  for (const each of [
    "bank /sale &lt;b&gt;&amp;pay  100  unknown: ",
    "posline journal settle",
    hostname(),
    `posline ${version}`,
  ])
    assert.ok(page.includes(each), each);
  const [period = ""] = out.split("\n");
  assert.ok(page.includes(`<h2>${period}</h2>`) && !page.includes("<b>&"));
  assert.equal((await day(newFolder(), { report })).code, 69);
  assert.equal(readFileSync(report, "utf8"), page);
  assert.equal((await day(newFolder(), { report: `${report}.new` })).code, 69);
  assert.ok(!existsSync(`${report}.new`), "nothing empty is left");
  for (const wrong of [folder, join(folder, "absent", "day.html")])
    await assert.rejects(day(newFolder(), { report: wrong }), UsageError);
});

test("runDay() asks fiscal's running posline for what prints and changes nothing, and compares its sums with the journal's", async () => {
  const folder = newFolder();
  const journal = await journalIn(folder);
  const shop = new Shop(journal, folder);
  const { port, calls } = await serve("fiscal", { config: { merchantId: "M", check: "contract" }, handler: shop.fiscal() });
  const config = join(folder, "posline.json");
  const services = { fiscal: { line: "till", port, merchantId: "M" }, bank: { line: "till" } };
  writeFileSync(config, JSON.stringify({ lines: { till: { path: "/dev/null" } }, services, journal: { folder } }));
  const asks = async (code: number, ...said: readonly RegExp[]) => {
    const told = await day(undefined, { until: undefined, config, ask: true });
    for (const each of said) assert.match(told.out, each);
    assert.equal(told.code, code, told.out);
  };
  await shop.receipt("/sale", "D-1", 700, undefined, {}, 700);
  await asks(
    0,
    /^fiscal sold: 1, sum 700 in the journal; 1, sum 700 at the terminal: agree$/m,
    /\.\.\.\/xreport has its totals/,
  );
  assert.deepEqual(new Set(calls.map(({ route }) => route)), new Set(["/check_shift", "/x_report"]));
  const body = Buffer.concat(calls.at(-1)?.body ?? []).toString();
  const data = Buffer.from(new URLSearchParams(body).get("data") ?? "", "base64").toString();
  assert.deepEqual(JSON.parse(data), { skipReceipt: true, skipReceiptPrint: true });
  const sale = JSON.stringify({
    documentExtID: "T-1",
    items: [{ itemName: "Tea", itemAmount: 90 }],
    payments: { cashAmount: 90 },
  });
  const form = `data=${encodeURIComponent(Buffer.from(sale).toString("base64"))}&sign=eA==`;
  shop.emulator.answer(callOf("T-1", { service: "fiscal", body: form }));
  await asks(75, /: differ by 1, sum 90$/m, /^fiscal refunded: 0, sum 0 .*: agree$/m, /^fiscal: its shift is open since 20/m);
  const { told } = await day(undefined, { until: undefined, config, ask: true, json: true });
  assert.deepEqual([told.asked[0].agrees, told.asked[0].report.saleSum], [false, 790]);
  const huge = sale.replace("T-1", "T-2").replaceAll("90", "9007199254740993");
  const hugeForm = `data=${encodeURIComponent(Buffer.from(huge).toString("base64"))}&sign=eA==`;
  shop.emulator.answer(callOf("T-2", { service: "fiscal", body: hugeForm }));
  await asks(75, /: differ by 2, sum 9007199254741083$/m);
  await shop.call("fiscal", "/close_shift", {});
  await asks(75, /^fiscal: the terminal's sums aren't known: .*the shift is not open/m);
  await closeAll();
  await asks(75, /^fiscal: the terminal's sums aren't known: .*127\.0\.0\.1.*/m, /^fiscal .* 1 +700 /m);
  for (const wrong of [{ until: "now" }, { directory: folder }, { folder }, { service: "bank" }])
    await assert.rejects(day(undefined, { until: undefined, config, ask: true, ...wrong }), UsageError);
  await journal.close();
});

test("runDay() and runExplain() read journals of several boxes, and say which can't be read and which has the key", async () => {
  const directory = newFolder();
  for (const [box, amount] of [
    ["kiosk-1", 500],
    ["kiosk-2", 700],
  ] as const) {
    const folder = newFolder();
    const journal = await journalIn(folder);
    const shop = new Shop(journal, folder);
    await shop.call("bank", "/sale", { pay_id: `P-${amount}`, amount, currency_name: "EUR" });
    await shop.ended(`P-${amount}`);
    await journal.close();
    cpSync(journalFile(folder), join(directory, box, "journal"));
  }
  mkdirSync(join(directory, "kiosk-3"));
  cpSync(join(directory, "kiosk-2"), join(directory, "kiosk-4"), { recursive: true });
  writeFileSync(join(directory, "kiosk-4", "journal"), Buffer.alloc(64 * 1024, 0xff));
  const { code, out } = await day(undefined, { directory });
  assert.equal(code, 75);
  assert.match(out, /^kiosk-1, 20.*\n.*\nbank +EUR +1 +500 .*\nnothing is open\nthe journal holds records from 20.* to 20/m);
  assert.match(out, /^kiosk-3, 20.*\nCannot read the journal in \S+kiosk-3: there is no journal/m);
  assert.match(out, /^kiosk-4, 20.*\nCannot read \S+kiosk-4\/journal: it is not a journal/m);
  assert.match(out, /^all boxes, 20.*\n.*\nbank +EUR +2 +1200 /m);
  const { told } = await day(undefined, { directory, json: true });
  assert.deepEqual(
    [
      told.services[0].sold.sum,
      ...told.boxes.map(({ box, failure }: Row & { box: string; failure?: string }) => `${box} ${failure?.slice(0, 11)}`),
    ],
    ["1200", "kiosk-1 undefined", "kiosk-2 undefined", "kiosk-3 Cannot read", "kiosk-4 Cannot read"],
  );
  for (const [box, code] of [
    ["kiosk-3", 75],
    ["kiosk-4", 0],
  ] as const) {
    rmSync(join(directory, box), { recursive: true });
    let text = "";
    const io = { env: {}, file: join(root, "absent.json"), out: (more: string) => (text += more), err: () => {} };
    assert.equal(await runExplain({ key: "P-700", directory }, io), code, box);
    assert.match(text, /^kiosk-1: Nothing of P-700 is in the journal.*\nkiosk-2: /m);
    assert.match(text, /^kiosk-2: bank \/sale of 7\.00 EUR, key P-700\n.*\n(?:.*\n)* {2}Result: approved\./m);
    assert.match(text, /^kiosk-2: What tills were told is in that box's own log\.$/m);
  }
  assert.equal((await day(undefined, { directory: join(directory, "kiosk-1") })).code, 69);
});

test("pairsOf() pairs by number first, then by amount within 10 minutes, and nothing with another number or amount", () => {
  const side = (key: string, atMs: number, amount: string, rrn?: string): Side => {
    const sent = { kind: "sent", timeMs: atMs, requestId: "r", service: "s", route: "/sale", key, digest: key } as const;
    return { sent, counts: "sold", amount, rrn };
  };
  const payments = [side("A", 0, "1"), side("B", 5, "9", "7"), side("C", 9, "3", "8"), side("D", 9, "4")];
  payments.push(side("F", pairWithinMs + 9, "5"), side("E", 1, "5"), side("G", 3, "6", "9"));
  const receipts = [side("b", 6, "9", "7"), side("a", pairWithinMs, "1"), side("c", 9, "3", "6")];
  receipts.push(side("g", 4, "2", "9"), side("e", 9, "5"), side("f", 2 * pairWithinMs, "5"));
  const { byRrn, byAmount, ...left } = pairsOf(payments, [...receipts, side("d", 10 + pairWithinMs, "4")]);
  assert.deepEqual(
    [byRrn, byAmount, ...[...left.payments, ...left.receipts].map(({ key }) => key)],
    [1, 3, "G", "C", "D", "g", "c", "d"],
  );
});

test("pairsOf() takes a sale without a receipt and its taking back under the same key for a pair, once and by the same amount", () => {
  const side = (requestId: string, counts: Side["counts"], key: string | undefined, amount = "5"): Side => {
    const sent = { kind: "sent", timeMs: 0, requestId, service: "bank", route: "/x", key, digest: requestId } as const;
    return { sent, counts, amount, rrn: undefined };
  };
  const payments = [side("1", "sold", "A"), side("2", "refunded", "A"), side("3", "sold", "B"), side("4", "refunded", "C")];
  payments.push(side("5", "sold", "D"), side("6", "refunded", "D", "4"), side("7", "sold", "E"), side("8", "sold", "E"));
  payments.push(side("9", "refunded", "E"), side("10", "sold", undefined), side("11", "refunded", undefined));
  const left = pairsOf(payments, []);
  assertMapped(left.payments, ["3", "4", "5", "6", "8", "10", "11"], ({ requestId }) => requestId);
  assert.equal(pairsOf(payments.slice(0, 2), [side("r", "sold", "R")]).payments.length, 1, "a receipt takes the sale");
});
