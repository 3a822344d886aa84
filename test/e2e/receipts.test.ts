import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ask, scratchFolder } from "../support/bridge-process.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { until } from "../support/until.ts";
import { blocks, page } from "./docs.ts";
import { fiscalForm } from "./emulating.ts";
import { compiledCSharp, noMono, noPhp, pathOf, receiptPrograms, started } from "./till-programs.ts";

/** The programs of docs/tills that make a receipt of a card sale, against the emulated bridge that `npm start` runs. */

for (const { file, skip, make } of receiptPrograms) {
  test(`${file} sells by card and makes one receipt, and one that dies in between makes it later`, { skip }, async (t) => {
    const folder = scratchFolder();
    const bridge = new PoslineProcess(["serve", "--emulated"]);
    t.after(() => bridge.ended("SIGTERM"));
    const program = await make(pathOf(file), folder.path);
    const [bank, fiscal] = [await bridge.port("bank"), await bridge.port("fiscal")];
    const run = (amount: string, fiscalPort = fiscal) => {
      const addresses = [bank, fiscalPort].map((port) => `http://localhost:${port}`);
      return started([...program, `R-${amount}`, amount, "MERCHANT-1", ...addresses]);
    };
    const ends: readonly (readonly [string, string, number])[] = [
      ["1500", "approved\nclosed", 0],
      ["1515", "approved\nunprinted\ncopied", 0],
      ["1520", "declined", 1],
      ["1510", "approved\nfailed", 4],
    ];
    for (const [amount, printed, code] of ends) {
      const [first, again] = [await run(amount).ended, await run(amount).ended];
      assert.deepEqual([first.printed, first.code], [printed, code], first.complaint);
      assert.deepEqual([again.printed, again.code], [printed, code], again.complaint);
      assert.deepEqual(payments(again.complaint), payments(first.complaint), "the card was charged once");
    }
    const usage = await run("").ended;
    assert.equal(usage.code, 64);
    assert.match(usage.complaint, /^Usage: .* MERCHANT-1$/);

    // Nobody listens on port 1: the card is charged, and no receipt is made before this one is killed.
    const killed = run("1600", 1);
    await until(() => payments(killed.complaint).length > 0, "the sale to be approved");
    killed.kill();
    const later = await run("1600").ended;
    assert.deepEqual([later.printed, later.code], ["approved\nclosed", 0], later.complaint);
    assert.deepEqual(payments(later.complaint), payments(killed.complaint), "the card was charged once");
    const found = await ask(fiscal, "POST", "/check_status", fiscalForm({ documentExtID: "R-1600-R" }));
    assert.equal(JSON.parse(found.text).docStatus, 1);
  });
}

/** Methods that a page shows, in a program that calls one of them. */
async function calling(methods: string, call: string, folder: string): Promise<readonly string[]> {
  const using = ["System", "System.Linq", "System.Net.Http", "System.Text", "System.Threading.Tasks"];
  const file = join(folder, "shown.cs");
  writeFileSync(
    file,
    `${using.map((name) => `using ${name};`).join("\n")}
    static class Program
    {
      ${methods}
      static void Main() { Console.WriteLine(${call}.Result); Environment.Exit(0); }
    }`,
  );
  return compiledCSharp(file, folder);
}

test("README's C# sells at an emulated bridge", { skip: noMono }, async (t) => {
  const folder = scratchFolder();
  const bridge = new PoslineProcess(["serve", "--emulated"]);
  t.after(() => bridge.ended("SIGTERM"));
  const [text = ""] = blocks("csharp", page("README.md"));
  const method = text.replace(":8888", `:${await bridge.port("bank")}`);
  const { printed, complaint } = await started(await calling(method, 'Sell("A-1", 1500)', folder.path)).ended;
  assert.equal(printed, "approved", complaint);
});

/** Refunds as refunds.md shows them: how each method is called with an address and a body. */
const refunding = [
  {
    language: "csharp",
    skip: noMono,
    make: (method: string, address: string, body: string, folder: string) =>
      calling(method, `Refund(new HttpClient(), ${JSON.stringify(address)}, ${JSON.stringify(body)})`, folder),
  },
  {
    language: "php",
    skip: noPhp,
    make: (method: string, address: string, body: string, folder: string) => {
      const file = join(folder, "shown.php");
      writeFileSync(file, `<?php\n${method}\necho refund('${address}', json_decode('${body}', true));`);
      return ["php", file];
    },
  },
];

for (const { language, skip, make } of refunding) {
  test(`refunds.md's ${language} refunds a payment by card once, and one by QR by what the page says`, { skip }, async (t) => {
    const folder = scratchFolder();
    const bridge = new PoslineProcess(["serve", "--emulated"]);
    t.after(() => bridge.ended("SIGTERM"));
    const [method = ""] = blocks(language, page("docs/refunds.md"));
    const wait = { Prefer: "wait=60" };
    const refund = async (port: number, body: object) => {
      const program = await make(method, `http://localhost:${port}/refund`, JSON.stringify(body), folder.path);
      const { printed, complaint } = await started(program).ended;
      return `${printed}${complaint}`;
    };
    const bank = await bridge.port("bank");
    const sale = { pay_id: "A-1", amount: 1500, currency_name: "EUR" };
    const sold = JSON.parse((await ask(bank, "POST", "/sale", JSON.stringify(sale), wait)).text);
    const byCard = { ...sale, pay_id: "A-1-B", rrn: sold.data.rrn };
    assert.deepEqual([await refund(bank, byCard), await refund(bank, byCard)], ["approved", "approved"]);
    assert.equal(await refund(bank, { ...byCard, pay_id: "A-1-C", rrn: "999999999999" }), "failed");
    const qr = await bridge.port("qr");
    const code = { pay_id: "Q-1", amount: 1500, currency: "978", pay_system: "QRPAY" };
    const shown = await ask(qr, "POST", "/showqrcode", JSON.stringify({ ...code, currency_name: "EUR" }), wait);
    const named = { trans: shown.headers["x-posline-trans"], rrn: JSON.parse(shown.text).data.rrn };
    assert.equal(await refund(qr, { ...code, ...named }), "approved");
    assert.equal(await refund(qr, { ...code, ...named, amount: 700, trans: "Q-1" }), "look at the terminal");
  });
}

/** What the terminal calls the payments that a program has shown. */
const payments = (text: string) => [...text.matchAll(/"txn_id":"(\w+)"/g)].map(([, id]) => id);
