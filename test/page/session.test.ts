import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { keyOf } from "../support/session.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { closeBrowser, findingsOf, noChromium, open, textOf, untilText } from "./browser.ts";

/**
 * The status page of a posline with a real line, opened with and without the code that `posline page` prints.
 *
 * Tests src/page/admin-port.ts, src/page/terminal-tests.ts.
 */

after(closeBrowser);

const [ask, sale] = [".terminal .test button:nth-child(1)", ".terminal .test button:nth-child(2)"];

/** A bridge before a bank, with the sales that reached it. */
async function before(body: (admin: number, sold: readonly string[]) => Promise<void>): Promise<void> {
  const folder = scratchFolder();
  const sold: string[] = [];
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(({ text }) => {
      if (text.startsWith("/sale")) sold.push(text);
      return '{"status":"success"}';
    }),
  );
  const lines = { till: { path: terminal.link } };
  const config = { lines, services: { bank: { line: "till" } }, journal: { folder: folder.path }, admin: {} };
  const bridge = new BridgeProcess(config, { env: { POSLINE_ADMIN_PORT: "0" } });
  try {
    await bridge.state("till", "idle");
    await body(await bridge.port("admin"), sold);
  } finally {
    await bridge.stop("SIGKILL");
    terminal.unplug();
  }
}

test(
  "page without a code tests, and says at its button for a test sale by which command it is unlocked",
  { skip: noChromium },
  () =>
    before(async (admin, sold) => {
      const { page, complaints, close } = await open(`http://localhost:${admin}/`);
      await page.click(ask);
      await untilText(page, ".terminal .words", /^Answered in/);
      await page.click(sale);
      await untilText(page, ".terminal .words", /sudo posline page/);
      assert.equal(await page.locator("#sale-dialog").isVisible(), false);
      assert.equal(await textOf(page, "#session-words"), "");
      await page.selectOption("#language", "de");
      await untilText(page, ".terminal .words", /Dieser Knopf.*sudo posline page/);
      assert.deepEqual([sold, complaints, await findingsOf(page)], [[], [], []]);
      await close();
    }),
);

test(
  "page with the code sells once its tab has exchanged it, keeps none in its address, and in another tab it is over",
  { skip: noChromium },
  () =>
    before(async (admin, sold) => {
      const address = `http://localhost:${admin}/#code=${(await keyOf(admin))?.code()}`;
      const { page, complaints, close } = await open(address);
      await untilText(page, "#session-words", /^This page may sell/);
      assert.equal(page.url(), `http://localhost:${admin}/`);
      assert.equal(await page.evaluate("document.cookie"), "");
      await page.reload();
      await untilText(page, "#session-words", /^This page may sell/);
      await page.click(sale);
      await page.fill("#sale-currency", "EUR");
      await page.click("#sale-yes");
      await until(() => sold.length === 1, "the test sale");
      assert.deepEqual([complaints, await findingsOf(page)], [[], []]);
      const other = await open(address);
      await untilText(other.page, "#session-words", /^The code in the address was used/);
      // A newer code opens the page that is there.
      await other.page.goto(`http://localhost:${admin}/#code=${(await keyOf(admin))?.code()}`);
      await untilText(other.page, "#session-words", /^This page may sell/);
      await close();
      await other.close();
    }),
);
