import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { after } from "node:test";
import type { Page } from "playwright-core";
import { merchantId, SetupBox } from "../setup/setup-box.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { keyOf } from "../support/session.ts";
import { closeBrowser, findingsOf, test, textOf, untilText } from "./browser.ts";

/**
 * The setup in the status page, in a real browser before a real posline: its helper's box is a folder, its terminal is on a pty, and this
 * test does what systemd does.
 *
 * Tests src/page/setup.ts, src/setup/setup-relay.ts, src/cli/setup-json.ts.
 */

after(closeBrowser);

const active = "LoadState=loaded\nActiveState=active\n";

/** A box whose terminal isn't plugged in, its posline, and the helper. */
class SetUpBox {
  readonly #folder = scratchFolder();
  readonly #socket = join(this.#folder.path, "setup.sock");
  readonly box: SetupBox;
  readonly #helper: Server;
  #bridge: PoslineProcess | undefined;
  admin = 0;

  constructor(services: ConstructorParameters<typeof SetupBox>[0]["services"]) {
    this.box = new SetupBox(
      { services, baudRate: 115_200, crc16: "arc" },
      {
        command: async () => ({ ran: true, code: 0, out: active }),
        act: async (_program, [verb]) => {
          if (verb === "restart") await this.restart();
          else this.#bridge?.child.kill("SIGHUP");
          return { ran: true, code: 0, out: "" };
        },
      },
    );
    this.#helper = createServer({ allowHalfOpen: true }, (socket) => {
      const run = this.box.runJson({ input: socket, output: socket });
      // Its page was told.
      void run.catch(() => {}).finally(() => socket.end());
    }).listen(this.#socket);
  }

  async start(): Promise<void> {
    const [fiscal, bank, qr, admin = 0] = await freePorts(4);
    const service = (port: number | undefined) => ({ line: "till", host: "127.0.0.1", port });
    this.box.write(
      JSON.stringify({
        lines: { till: { path: "/dev/serial/by-id/NAME-THE-DEVICE-by-posline-setup" } },
        services: { fiscal: service(fiscal), bank: service(bank), qr: service(qr) },
        journal: { folder: this.#folder.path },
        admin: { port: admin },
      }),
    );
    this.admin = admin;
    await this.#serve();
  }

  /** What posline page prints. */
  async address(): Promise<string> {
    return `http://localhost:${this.admin}/#code=${(await keyOf(this.admin))?.code()}`;
  }

  /** As systemd does for a secret, which posline reads at its start. */
  async restart(): Promise<void> {
    assert.equal(await this.#bridge?.ended("SIGTERM"), 0);
    await this.#serve();
  }

  async #serve(): Promise<void> {
    const own = ["FISCAL", "BANK", "QR", "ADMIN"].map((name) => [`POSLINE_${name}_PORT`, undefined]);
    const { file } = this.box;
    const env = { ...Object.fromEntries(own), CREDENTIALS_DIRECTORY: join(file, "../credentials") };
    this.#bridge = new PoslineProcess(["serve", "--config", file, "--setup-socket", this.#socket], { env });
    await this.#bridge.port("admin");
  }

  async remove(): Promise<void> {
    await this.#bridge?.ended("SIGTERM");
    this.#helper.close();
    this.box.remove();
    this.#folder.remove();
  }
}

const picture = async (page: Page, name: string) => {
  const folder = process.env["SETUP_PICTURES"];
  if (folder !== undefined) await page.screenshot({ path: join(folder, `setup-${name}.png`), fullPage: true });
};

test("page sets up a terminal that is plugged in while it waits, with the merchant's id, and ends with each terminal's test", async ({
  open,
}, t) => {
  const box = new SetUpBox(["fiscal", "bank", "qr"]);
  t.after(() => box.remove());
  await box.start();
  const { page } = await open(await box.address());
  await untilText(page, "#setup-words", /asks before it writes/);
  await picture(page, "begin");
  await page.click("#setup-begin");
  await untilText(page, "#setup-words", /^Plug the terminal in and switch it on/);
  await picture(page, "plug");
  assert.deepEqual(await findingsOf(page), []);
  box.box.plug();
  await untilText(page, "#setup-words", /merchant id of fiscal/, 60_000);
  assert.match(await textOf(page, "#setup-said"), /fiscal answered/);
  await picture(page, "merchant-id");
  await page.fill("#setup-id", merchantId);
  await page.click("#setup-yes");
  await untilText(page, "#setup-words", /^This would change/, 30_000);
  assert.match(await textOf(page, "#setup-diff"), /"path": .*usb-0403_6001_A50285BI-if00-port0/);
  await picture(page, "write");
  assert.deepEqual(await findingsOf(page), []);
  await page.click("#setup-yes");
  // For the secret; the new posline knows of no setup.
  await untilText(page, "#setup-words", /^posline was restarted/, 30_000);
  for (const nth of [0, 1, 2]) {
    await untilText(page, `.terminal:nth-child(${nth + 1}) .words`, /^Answered in/, 60_000);
  }
  await untilText(page, "#verdict-words", /^All terminals are ready/, 30_000);
  await picture(page, "tested");
});

test("page on a phone, in German: the same file for a terminal with a bank alone, taken without a restart; and Don't write leaves it", async ({
  open,
}, t) => {
  const box = new SetUpBox(["bank"]);
  t.after(() => box.remove());
  await box.start();
  const before = box.box.text;
  const { page } = await open(await box.address(), {
    viewport: { width: 360, height: 740 },
    locale: "de-DE",
    colorScheme: "dark",
  });
  await page.click("#setup-begin");
  await untilText(page, "#setup-words", /^Bitte das Terminal anstecken/);
  box.box.plug();
  await untilText(page, "#setup-words", /^Das würde sich ändern/, 60_000);
  assert.equal(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
  assert.deepEqual(await findingsOf(page), []);
  await picture(page, "phone");
  await page.click("#setup-no");
  await untilText(page, "#setup-said", /Nothing was written$/);
  assert.deepEqual([box.box.text, box.box.dropIn], [before, undefined]);
  // It is plugged in now, so it is named.
  await page.click("#setup-begin");
  await page.click("#setup-yes");
  await untilText(page, "#setup-words", /^Das würde sich ändern/, 60_000);
  // Another tab sees the same question.
  const other = await open(`http://localhost:${box.admin}/`);
  await untilText(other.page, "#setup-words", /^This would change/);
  await other.close();
  await page.click("#setup-yes");
  await untilText(page, "#setup-words", /^Geschrieben/, 30_000);
  await untilText(page, ".terminal .words", /^Antwort/, 60_000);
});
