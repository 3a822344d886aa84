import { chromium } from "playwright-core";

/** Runs till.html in a browser that is there: `page-till.ts BROWSER PAGE KEY AMOUNT ADDRESS`. Prints what the page shows in the end. */

const [browserUrl = "", pageUrl = "", key = "", amount = "", address = ""] = process.argv.slice(2);
const browser = await chromium.connect(browserUrl);
const page = await browser.newPage();
await page.goto(`${pageUrl}?${new URLSearchParams({ key, amount, address })}`);
const output = page.locator("output").filter({ hasText: /./ });
await output.waitFor({ timeout: 0 });
process.stdout.write(`${await output.innerText()}\n`);
await page.close();
await browser.close();
