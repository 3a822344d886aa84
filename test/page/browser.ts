import { existsSync, readFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import { createRequire } from "node:module";
import { test as plainTest, type TestContext } from "node:test";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { StreamDouble } from "./stream-double.ts";

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
export type Opened = { readonly page: Page; readonly complaints: string[]; close(): Promise<void> };

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

/** What a test in the browser has: all that it opens and starts ends with it. */
export interface Stage {
  /** The stand-in for posline, where the test starts it. */
  readonly double: StreamDouble;
  readonly open: typeof open;
  readonly posline: (args: readonly string[], env?: Readonly<Record<string, string | undefined>>) => PoslineProcess;
}

/** A test in the browser, skipped where there is none. */
export function test(name: string, play: (stage: Stage, t: TestContext) => Promise<void>): void {
  plainTest(name, { skip: noChromium }, async (t) => {
    const double = new StreamDouble();
    const ends: (() => Promise<unknown>)[] = [() => double.stop()];
    const stage: Stage = {
      double,
      open: async (url, options) => {
        const opened = await open(url, options);
        ends.push(() => opened.close());
        return opened;
      },
      posline: (args, env = {}) => {
        const started = new PoslineProcess(args, { env });
        ends.push(async () => started.child.exitCode ?? (await started.ended("SIGTERM")));
        return started;
      },
    };
    try {
      await play(stage, t);
    } finally {
      for (const end of ends.reverse()) await end();
    }
  });
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

/** A proxy that has posline below a path, and redirects the path without its slash, as nginx does; `cut` ends all that goes through. */
export async function proxyBelow(
  path: string,
  port: number,
): Promise<{ readonly url: string; cut(): void; close(): Promise<void> }> {
  const server: Server = createServer((incoming, outgoing) => {
    const url = incoming.url ?? "/";
    if (url === path) {
      outgoing.writeHead(301, { Location: `${path.slice(path.lastIndexOf("/") + 1)}/` }).end();
      return;
    }
    if (!url.startsWith(`${path}/`)) {
      outgoing.writeHead(404).end();
      return;
    }
    const { method, headers } = incoming;
    const onward = request(
      { host: "127.0.0.1", port, method, headers, path: url.slice(path.length), agent: false },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  });
  const [own = 0] = await freePorts(1);
  await new Promise<void>((resolve) => server.listen(own, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${own}${path}`,
    cut: () => {
      server.close();
      server.closeAllConnections();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe-core finds, by its rule and the first place. */
export async function findingsOf(page: Page): Promise<readonly string[]> {
  // By the debugger's protocol, which the page's policy doesn't bind.
  await page.evaluate(axe);
  return page.evaluate("axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))");
}
