import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContextOptions, Page } from "playwright-core";
import { post, saleOf } from "../e2e/emulating.ts";
import { BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { closeBrowser, open } from "./browser.ts";

/**
 * Pictures of the status page, to be looked at: `node --import tsx test/page/shots.ts FOLDER`. Light, dark, on a phone, a line down,
 * an operation in doubt, in German, and posline gone.
 */

const out = process.argv[2] ?? "";
if (out === "") throw new Error("Cannot take pictures: name the folder for them");
mkdirSync(out, { recursive: true });

const phone = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2 };
const german = { locale: "de-DE" };
const dark = { colorScheme: "dark" } as const;

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function shot(
  name: string,
  url: string,
  options: BrowserContextOptions,
  before: (page: Page) => Promise<unknown> = () => wait(600),
) {
  const { page, complaints, close } = await open(url, options);
  await page
    .locator("#main:not([hidden])")
    .waitFor({ timeout: 5_000 })
    .catch((error: unknown) => console.log(name, complaints, String(error)));
  await before(page);
  await page.screenshot({ path: join(out, `${name}.png`), fullPage: true });
  console.log(name, complaints);
  await close();
}

/** A few exchanges of all kinds, and one that is under way. */
async function busy(emulated: PoslineProcess): Promise<void> {
  const bank = await emulated.port("bank");
  const qr = await emulated.port("qr");
  for (let i = 1; i <= 12; i++) {
    await post(bank, "/sale", saleOf(`pay-${i}`, i % 5 === 0 ? 1520 : 1500));
    await post(bank, "/check", JSON.stringify({ pay_id: `pay-${i}` }));
    await wait(i * 7);
  }
  await post(qr, "/check_connection", "");
  await post(bank, "/check", "{}");
  await post(bank, "/sael", "{}");
  void post(bank, "/sale", saleOf("slow", 1532)).catch(() => {});
  await wait(1_500);
}

const emulated = new PoslineProcess(["serve", "--emulated"]);
const folder = scratchFolder();
const terminal = new Terminal(
  join(folder.path, "tty"),
  answering(({ text }) => (text.includes("LOST") ? undefined : '{"status":"success"}')),
);
let bridge: BridgeProcess | undefined;
try {
  const url = `http://127.0.0.1:${await emulated.port("admin")}/`;
  await shot("empty", url, {});
  await shot("light", url, {}, () => busy(emulated));
  await shot("dark", url, dark, () => busy(emulated));
  await shot("phone", url, phone, () => busy(emulated));
  await shot("german", url, german);
  await shot("german-phone-dark", url, { ...german, ...phone, ...dark });

  const shop = new BridgeProcess(
    {
      lines: { till: { path: terminal.link }, kiosk: { path: "/dev/ttyUSB7" } },
      services: { bank: { line: "till", replyTimeoutMs: { "/sale": 3_001 } }, qr: { line: "kiosk" } },
      journal: { folder: folder.path },
    },
    { env: { POSLINE_ADMIN_PORT: "0" } },
  );
  bridge = shop;
  await shop.state("till", "idle");
  const real = `http://127.0.0.1:${await shop.port("admin")}/`;
  await shot("line-down", real, {});
  const lose = async () => {
    await shop.post("bank", "/sale", saleOf("pay-4711"));
    await shop.post("bank", "/sale", saleOf("LOST-4712", 12_500)).catch(() => {});
    await wait(1_500);
  };
  const opened = async (page: Page) => {
    await page.locator(".doubt summary").first().click();
    await page.locator(".exchange:has(.key:not(:empty)) .what").first().click();
    await page.locator(".exchange summary").first().click();
    await wait(600);
  };
  const settling = async (page: Page) => {
    await page.locator(".doubt button").last().click();
    await page.fill("#settle-note", "slip 0231 is in the drawer");
  };
  await shot("doubt", real, {}, lose);
  await shot("doubt-opened", real, {}, opened);
  await shot("doubt-dark", real, dark, opened);
  await shot("doubt-german-phone", real, { ...german, ...phone }, opened);
  await shot("settling", real, {}, settling);
  await shot("settling-german-phone-dark", real, { ...german, ...phone, ...dark }, settling);
  await shot("gone", real, {}, async () => {
    await wait(500);
    await shop.ended("SIGKILL");
    await wait(1_500);
  });
} finally {
  await bridge?.stop();
  await emulated.ended("SIGTERM");
  await closeBrowser();
  terminal.unplug();
}
