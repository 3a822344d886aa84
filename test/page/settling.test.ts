import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { readJournal } from "../../src/journal/reader.ts";
import { joinOperations } from "../../src/journal/record.ts";
import { saleOf } from "../e2e/emulating.ts";
import { BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { keyOf } from "../support/session.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { closeBrowser, findingsOf, noChromium, open, textOf, untilText } from "./browser.ts";

/**
 * An operation in doubt on the status page of a posline with a real line: what happened to it, and the word of the person who looked.
 *
 * Tests src/page/settling.ts, src/page/story.ts.
 */

after(closeBrowser);

/** A bridge before a bank that answers no sale and says of each that it goes on; with what became of the sales. */
async function before(body: (admin: number, lose: Lose, settled: () => Promise<unknown>) => Promise<void>): Promise<void> {
  const folder = scratchFolder();
  const goesOn = '{"status":"success","data":{"status":"PENDING"}}';
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(({ text }) => (text.startsWith("/sale") ? undefined : goesOn)),
  );
  const services = { bank: { line: "till", replyTimeoutMs: { "/sale": 3_001 } } };
  const config = { lines: { till: { path: terminal.link } }, services, journal: { folder: folder.path }, admin: {} };
  const bridge = new BridgeProcess(config, { env: { POSLINE_ADMIN_PORT: "0" } });
  const lose = (key: string, amount: number) => bridge.post("bank", "/sale", saleOf(key, amount));
  const settled = async () => joinOperations((await readJournal(folder.path)).records).map((each) => each.settled ?? {});
  try {
    await bridge.state("till", "idle");
    await body(await bridge.port("admin"), lose, settled);
  } finally {
    await bridge.stop("SIGKILL");
    terminal.unplug();
  }
}

type Lose = (key: string, amount: number) => Promise<unknown>;

const unlocked = async (admin: number) => `http://localhost:${admin}/#code=${(await keyOf(admin))?.code()}`;
const fits = (page: Page) => page.evaluate("document.documentElement.scrollWidth <= innerWidth");
const said = async (page: Page) => [await textOf(page, "#settle-title"), await textOf(page, "#settle-facts")];

test(
  "page tells of a sale in doubt what happened, and records what a person saw, with a note and once it is confirmed",
  {
    skip: noChromium,
  },
  () =>
    before(async (admin, lose, settled) => {
      const locked = await open(`http://localhost:${admin}/`);
      const { page, complaints, close } = await open(await unlocked(admin), { viewport: { width: 360, height: 740 } });
      await lose("A-1", 12_500);
      await untilText(page, ".doubt", /Amount\s*125.00 EUR\s*Key\s*A-1/);
      const story =
        /Request \S+ was recorded.*No valid answer to it came.*till was told .* unknown.*in doubt: No answer proves/s;
      for (const place of [".doubt", ".exchange:has(.key:text('A-1'))"]) {
        if (place !== ".doubt") await page.locator(`${place} .what`).click();
        await page.locator(`${place} summary`).focus();
        await page.keyboard.press("Enter");
        await untilText(page, `${place} .story`, story);
      }
      // Its first question comes 2 s after the answer was given up; what is opened again is asked for again.
      await page.locator('.exchange[data-level="good"]:has-text("/check")').first().waitFor();
      for (const _ of [1, 2]) await page.locator(".doubt summary").click();
      await untilText(page, ".doubt .story", /posline asked \/check: the terminal answered success\./);
      assert.deepEqual([await findingsOf(page), await fits(page)], [[], true]);

      await page.locator(".doubt button:text-is('Paid')").click();
      assert.deepEqual(await said(page), ["Paid: bank /sale", "Amount 125.00 EUR Key A-1 Will be recorded approved"]);
      assert.deepEqual([await findingsOf(page), await fits(page)], [[], true]);
      for (const empty of ["", "  "]) {
        await page.fill("#settle-note", empty);
        await page.keyboard.press("Enter");
        await page.locator("#settle-note:focus:invalid").waitFor();
      }
      await page.keyboard.press("Escape");
      assert.deepEqual([await page.locator("#settle-dialog").isVisible(), await settled()], [false, [{}]]);
      await page.locator(".doubt button:text-is('Not paid')").click();
      assert.deepEqual(await said(page), ["Not paid: bank /sale", "Amount 125.00 EUR Key A-1 Will be recorded failed"]);
      await page.click("#settle-no");

      await untilText(locked.page, ".doubt", /A-1/);
      await locked.page.locator(".doubt button:text-is('Paid')").click();
      await untilText(locked.page, "#settle-refusal", /sudo posline page/);
      assert.equal(await locked.page.isDisabled("#settle-yes"), true);
      await locked.close();

      await page.locator(".doubt button:text-is('Paid')").click();
      await page.fill("#settle-note", " slip 0231 ");
      await page.route("**/journal/settle", (route) => route.abort());
      await page.click("#settle-yes");
      await untilText(page, "#settle-refusal", /gave no answer. It may be recorded all the same/);
      await page.unroute("**/journal/settle");
      complaints.length = 0;
      await page.click("#settle-yes");
      await untilText(page, "#settle-said", /^Recorded in the journal: bank \/sale A-1: approved$/);
      assert.equal(await page.evaluate("document.activeElement.id"), "settle-said");
      await untilText(page, "#doubts", /Nothing is in doubt/);
      const [{ timeMs, ...word }] = (await settled()) as [{ timeMs: number }];
      assert.deepEqual(word, { kind: "settled", ...{ result: "approved", by: "operator", note: "slip 0231" }, ...kept(word) });
      assert.deepEqual(complaints, []);
      await close();
    }),
);

/** What a record has to find its sending by. */
const kept = ({ sent, digest }: Record<string, unknown>) => ({ sent, digest });

test(
  "page shows why what a person saw can't be recorded where a key has several sales, and keeps the dialog and what is open",
  {
    skip: noChromium,
  },
  () =>
    before(async (admin, lose, settled) => {
      const { page, close } = await open(await unlocked(admin));
      await lose("A-1", 100);
      await page.locator(".doubt summary").click();
      await lose("A-1", 200);
      await page.locator(".doubt button:text-is('Not paid')").nth(1).waitFor();
      assert.equal(await page.locator(".doubt .story[open]").count(), 1, "the older one's");
      await page.locator(".doubt button:text-is('Not paid')").first().click();
      await page.fill("#settle-note", "not in the report");
      await page.keyboard.press("Enter");
      const refusal = /^Cannot settle "A-1": it names several operations \(requests \S+ of 100, \S+ of 200\)/;
      await untilText(page, "#settle-refusal", refusal);
      assert.equal(await page.inputValue("#settle-note"), "not in the report");
      assert.deepEqual([await findingsOf(page), await settled()], [[], [{}, {}]]);
      await close();
    }),
);
