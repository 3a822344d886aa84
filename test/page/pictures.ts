import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { saleOf } from "../e2e/emulating.ts";
import { BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { closeBrowser, open, untilText } from "./browser.ts";

/**
 * The pictures of README and docs, of the running product: `node --import tsx test/page/pictures.ts docs/images`. The status page, light and
 * dark, while a sale whose answer was lost is asked about; and the report of a till that takes the success of a start for paid. To be looked
 * at after each change of a page.
 */

const out = process.argv[2] ?? "";
if (out === "") throw new Error("Cannot take pictures: name the folder for them");
mkdirSync(out, { recursive: true });

/** The sale whose answer is lost; its card is still in the terminal when posline asks. */
const lost = "R-1047-20261127";

const folder = scratchFolder();
const schemes = ["light", "dark"] as const;
const success = () => '{"status":"success"}';
const card = new Terminal(
  join(folder.path, "card"),
  answering(({ text }) => (text.startsWith("/sale") && text.includes(lost) ? undefined : success())),
);
const kiosk = new Terminal(join(folder.path, "qr"), answering(success));
const bridge = new BridgeProcess(
  {
    lines: { till: { path: card.link }, kiosk: { path: kiosk.link } },
    services: { bank: { line: "till", replyTimeoutMs: { "/sale": 3_001 } }, qr: { line: "kiosk" } },
    journal: { folder: folder.path },
  },
  { env: { POSLINE_ADMIN_PORT: "0" } },
);
try {
  await bridge.state("till", "idle");
  await bridge.state("kiosk", "idle");
  const url = `http://127.0.0.1:${await bridge.port("admin")}/`;
  const pages = await Promise.all(
    schemes.map((colorScheme) => open(url, { colorScheme, viewport: { width: 1040, height: 900 } })),
  );
  for (const key of ["R-1045-20261127", "R-1046-20261127"]) await bridge.post("bank", "/sale", saleOf(key, 4250));
  await bridge.post("qr", "/check_connection", "");
  await bridge.post("bank", "/sale", saleOf(lost, 12_500));
  // Its first question comes 2 s after the answer was given up.
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  for (const [nth, { page }] of pages.entries()) {
    await untilText(page, "#main", new RegExp(lost));
    await untilText(page, "body", /All terminals are ready. One operation is in doubt/);
    const box = await page.getByRole("heading", { name: "Counters since the start" }).boundingBox();
    const height = Math.floor(box?.y ?? 0) - 12;
    await page.screenshot({
      path: join(out, `status-${schemes[nth]}.png`),
      clip: { x: 0, y: 0, width: 1040, height },
      fullPage: true,
    });
  }
  for (const { close } of pages) await close();
  await reportPictures();
} finally {
  await bridge.stop();
  await closeBrowser();
  card.unplug();
  kiosk.unplug();
}

async function reportPictures(): Promise<void> {
  const till = readFileSync(new URL("../support/tills/polling.py", import.meta.url), "utf8");
  writeFileSync(join(folder.path, "till.py"), till.replace("        word = end()\n", '        word = "approved"\n'));
  const report = join(folder.path, "rehearsal.html");
  const names = [
    ...["approved", "declined", "no-answer-carried-out", "cable-pulled", "posline-killed", "till-killed"],
    "abort-too-late",
  ];
  const scenarios = names.flatMap((name) => ["--scenario", name]);
  const command = "TILL_FOLDER=state python3 till.py sale {key} {amount}";
  const flags = ["rehearse", "--till", command, ...scenarios, "--report", report];
  await new PoslineProcess(flags, { folder: folder.path }).ended(undefined, 120_000);
  for (const colorScheme of schemes) {
    const { page, close } = await open(pathToFileURL(report).href, { colorScheme, viewport: { width: 900, height: 760 } });
    await page.screenshot({ path: join(out, `rehearsal-${colorScheme}.png`) });
    await close();
  }
}
