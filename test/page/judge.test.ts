import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import type { Judged, Judgement } from "../../src/lab/report/judgement.ts";
import { junitOf } from "../../src/lab/report/junit.ts";
import { reportOf } from "../../src/lab/report/report.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { closeBrowser, findingsOf, test, textOf, untilText } from "./browser.ts";

/**
 * Tests src/lab/report/report.ts, src/lab/report/junit.ts, src/lab/rehearse/port.ts, src/lab/rehearse/screen-page.ts.
 *
 * The report of a judgement, and the page of a rehearsal for a till with a screen, in Chromium.
 */

const folder = scratchFolder();
after(async () => {
  await closeBrowser();
});

/** What axe-core finds, and by how many pixels the page is wider than the screen. */
const flawsOf = async (page: Page): Promise<unknown> => [
  await findingsOf(page),
  await page.evaluate("document.documentElement.scrollWidth - innerWidth"),
];

/** Would be a tag, an entity or the end of an attribute; and what XML has no place for. */
const evilText = `<script>alert(1)</script> & "quoted" 'too' ]]> \u0000\u001b\ud800 茶`;

const rule = { from: "bank.md, Endpoints, rule 3", says: `do not assume failure ${evilText}` };
const judged = (name: string, verdict: Judged["verdict"]): Judged => ({
  ...{ name, title: `${name} ${evilText}`, rule, verdict, why: `The till said ${evilText}`, tookMs: 12_345 },
  moments: [{ atMs: 9_800, who: "terminal", text: `/sale: begins 15.31; ${evilText}` }],
});
const judgement: Judgement = {
  ...{
    subject: `python3 till.py ${evilText}`,
    by: "posline rehearse",
    version: "0.1.0",
    began: new Date(0),
    setup: { seed: "7" },
  },
  cases: [judged("a", "passed"), judged("b", "failed"), judged("c", "not tested")],
};

for (const [look, colorScheme, width] of [
  ["light", "light", 1280],
  ["dark", "dark", 1280],
  ["phone", "dark", 360],
] as const) {
  test(`report (${look}): axe-core finds nothing, nothing is wider than the screen, and no text is taken for a tag`, async ({
    open,
  }) => {
    const file = join(folder.path, "report.html");
    writeFileSync(file, reportOf(judgement));
    const { page, complaints } = await open(pathToFileURL(file).href, { colorScheme, viewport: { width, height: 900 } });
    assert.deepEqual(await flawsOf(page), [[], 0]);
    assert.equal(await textOf(page, ".counts"), "1 passed, 1 failed, 1 not tested");
    assert.equal(await page.locator("script, img, iframe").count(), 0);
    const verdicts = await page.locator("tbody .verdict").allTextContents();
    assert.deepEqual(verdicts, ["failed", "not tested", "passed"], "what is broken comes first");
    assert.deepEqual(complaints, []);
  });
}

test("report prints on paper: more than one page, in the colours of paper", async ({ open }) => {
  const file = join(folder.path, "long.html");
  const cases = Array.from({ length: 32 }, (_, index) => judged(`case-${index}`, "failed"));
  writeFileSync(file, reportOf({ ...judgement, cases }));
  const { page } = await open(pathToFileURL(file).href, { colorScheme: "dark" });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  assert.equal(await page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)");
  const pdf = await page.pdf({ format: "A4" });
  assert.ok((pdf.toString("latin1").match(/\/Type\s*\/Page\b/g) ?? []).length > 2);
});

test("junit is XML whatever the texts are, with a testcase for each case by its name", async ({ open }) => {
  const { page } = await open("about:blank");
  const parsed = await page.evaluate(
    `(() => {
      const xml = new DOMParser().parseFromString(${JSON.stringify(junitOf(judgement))}, "application/xml");
      const cases = [...xml.querySelectorAll("testcase")];
      return [xml.querySelector("parsererror")?.textContent, ...cases.map((each) => [each.getAttribute("name"), each.firstElementChild?.tagName])];
    })()`,
  );
  // The browser's null arrives as nothing.
  assert.deepEqual(parsed, [undefined, ["a", undefined], ["b", "failure"], ["c", "skipped"]]);
});

test("rehearse --page says what to do, shows what happens, and takes what the screen says", async ({ open }) => {
  const posline = new PoslineProcess(["rehearse", "--page", "--scenario", "declined"]);
  const url = await posline.until(() => /http:\/\/127\.0\.0\.1:\d+/.exec(posline.stderr)?.[0], "its page");
  const { page, complaints } = await open(url);
  const task = await untilText(page, "#task", /^Sell \d+\.\d\d by card$/);
  const bank = /bank is at (\S+)/.exec(await textOf(page, "#addresses"))?.[1] ?? "";
  const amount = Number(task.replaceAll(/\D/g, ""));
  const sale = JSON.stringify({ pay_id: "P-1", amount, currency_name: "EUR" });
  await fetch(`${bank}/sale`, { method: "POST", headers: { Prefer: "wait=60" }, body: sale });
  await untilText(page, "#moments", /\/sale P-1: begins|\/sale: begins/);
  assert.deepEqual(await flawsOf(page), [[], 0]);
  const foreign = await fetch(`${url}/said`, {
    method: "POST",
    headers: { Origin: "http://elsewhere.example" },
    body: "approved",
  });
  assert.equal(foreign.status, 403);
  assert.equal((await fetch(`${url}/said`, { method: "POST", body: "paid" })).status, 400);
  await page.getByText("Not paid").click();
  await untilText(page, "#note", /It is over|Noted/);
  assert.equal(await posline.ended(undefined, 30_000), 0, posline.stdout);
  assert.match(posline.stdout, /^passed +declined/m);
  assert.deepEqual(
    complaints.filter((each) => !/ERR_(?:CONNECTION|INCOMPLETE|EMPTY)/.test(each)),
    [],
  );
});
