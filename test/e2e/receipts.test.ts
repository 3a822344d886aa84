import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ask, scratchFolder } from "../support/bridge-process.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { until } from "../support/until.ts";
import { blocks, page } from "./docs.ts";
import { fiscalForm } from "./emulating.ts";
import { compiledCSharp, noMono, pathOf, receiptPrograms, started } from "./till-programs.ts";

/** The programs of docs/tills that make a receipt of a card sale, against the emulated bridge that `npm start` runs. */

for (const { file, skip, make } of receiptPrograms) {
  test(`${file} sells by card and makes one receipt, and one that dies in between makes it later`, { skip }, async () => {
    const folder = scratchFolder();
    const bridge = new PoslineProcess(["serve", "--emulated"]);
    try {
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
    } finally {
      await bridge.ended("SIGTERM");
      folder.remove();
    }
  });
}

test("README's C# sells at an emulated bridge", { skip: noMono }, async () => {
  const folder = scratchFolder();
  const bridge = new PoslineProcess(["serve", "--emulated"]);
  try {
    const [text = ""] = blocks("csharp", page("README.md"));
    const using = ["System", "System.Linq", "System.Net.Http", "System.Text", "System.Threading.Tasks"];
    const program = `${using.map((name) => `using ${name};`).join("\n")}
      static class Program
      {
        static async Task<string> Sell() { ${text.replace(":8888", `:${await bridge.port("bank")}`)} }
        static void Main() { Console.WriteLine(Sell().Result); Environment.Exit(0); }
      }`;
    const file = join(folder.path, "readme.cs");
    writeFileSync(file, program);
    const { printed, complaint } = await started(await compiledCSharp(file, folder.path)).ended;
    assert.equal(printed, "approved", complaint);
    assert.ok(text.trim().split("\n").length <= 13, "some ten lines");
  } finally {
    await bridge.ended("SIGTERM");
    folder.remove();
  }
});

/** What the terminal calls the payments that a program has shown. */
const payments = (text: string) => [...text.matchAll(/"txn_id":"(\w+)"/g)].map(([, id]) => id);
