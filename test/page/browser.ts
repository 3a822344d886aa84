import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** Debian's Chromium, without a window, and what the tests of the status page do with it. */

const program = "/usr/bin/chromium";

/** The reason to skip where it isn't there. */
export const noChromium = existsSync(program) ? false : `there is no ${program} here: sudo apt-get install chromium`;

let running: Promise<Browser> | undefined;

/** As root, Chromium has no sandbox; it loads nothing but posline's own page. */
function browser(): Promise<Browser> {
  running ??= chromium.launch({
    executablePath: program,
    args: ["--no-sandbox", "--disable-gpu", "--js-flags=--expose-gc", "--disable-dev-shm-usage"],
  });
  return running;
}

/** To be called after all tests of a file. */
export async function closeBrowser(): Promise<void> {
  await (await running)?.close();
}

/** A page, and everything that its console or its policy complained of. */
export interface Opened {
  readonly page: Page;
  readonly complaints: string[];
  close(): Promise<void>;
}

/** Opens an address in a context of its own: no cookie, no storage, no cache of another test. */
export async function open(url: string, options: BrowserContextOptions = {}): Promise<Opened> {
  const context = await (await browser()).newContext({ locale: "en-GB", viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(url);
  return { page, complaints, close: () => context.close() };
}

/** Text of an element, as a person reads it. */
export const textOf = async (page: Page, selector: string): Promise<string> =>
  ((await page.locator(selector).first().innerText()) ?? "").replace(/\s+/g, " ").trim();

/** Waits until an element has a text that fits. */
export async function untilText(page: Page, selector: string, fits: RegExp, msMax = 10_000): Promise<string> {
  await page
    .locator(selector)
    .filter({ hasText: fits })
    .first()
    .waitFor({ timeout: msMax })
    .catch(async (error: unknown) => {
      const found = await page.locator(selector).allInnerTexts();
      throw new Error(`Waited for ${fits} in ${selector}, which has ${JSON.stringify(found)}: ${String(error)}`);
    });
  return textOf(page, selector);
}
