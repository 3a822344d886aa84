import { execFile, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Browser, chromium } from "playwright-core";
import { freePorts } from "../support/free-port.ts";
import { closeAndRun } from "../support/posline-process.ts";
import { root } from "./docs.ts";

/** The tills of docs/tills: how each is made ready, and run with a key and an amount. */

/** A till's process, with one sale. */
export interface RunningTill {
  /** Resolves when it has ended by itself, with what it printed and its exit code; never when it was killed. */
  readonly ended: Promise<TillEnd>;
  /** kill -9. */
  kill(): unknown;
}

export interface TillEnd {
  readonly printed: string;
  /** Its standard error. */
  readonly complaint: string;
  readonly code: number | null;
}

export interface TillProgram {
  readonly file: string;
  /** Why it can't be run here; false when it can. */
  readonly skip: string | false;
  /**
   * Makes it ready for one shop, one after the other.
   * @param folder For what is made from it; beside it there is space for what its shops share.
   * @param port Where it finds posline: the address that it is given.
   */
  ready(folder: string, port: number): Promise<ReadyTill>;
}

export interface ReadyTill {
  /** The origin of its page, where it is one. */
  readonly origin?: string;
  start(sale: Sale): RunningTill;
  /** With these arguments, a key and an amount where they are right. */
  startWith(words: readonly string[]): RunningTill;
  end(): Promise<void>;
  /** As `posline rehearse` runs it. */
  readonly command: string;
}

interface Sale {
  readonly key: string;
  /** Its last two digits decide how it ends (docs/emulator.md). */
  readonly amount: number;
}

const run = promisify(execFile);
const tills = new URL("docs/tills/", root);
const browserPath = "/usr/bin/chromium";

/** How a program says its version, which shows that it is there and works: Debian's package has it. */
const without = (debian: string, program: string, ...version: readonly string[]) =>
  spawnSync(program, version).status === 0 ? false : `there is no ${program} here: sudo apt-get install ${debian}`;

const monoPackages = "mono-mcs libmono-system-net-http4.0-cil";
export const noMono = existsSync("/usr/lib/mono/4.5/System.Net.Http.dll")
  ? without(monoPackages, "mcs", "--version")
  : `there is no Mono with its HttpClient here: sudo apt-get install ${monoPackages}`;

export const noPhp = without("php-cli php-curl", "php", "-r", "exit(function_exists('curl_init') ? 0 : 1);");

/** By Mono, which Debian has; it has no .NET. */
export async function compiledCSharp(file: string, folder: string): Promise<readonly string[]> {
  const program = join(folder, "program.exe");
  await run("mcs", ["-warnaserror", "-r:System.Net.Http", `-out:${program}`, file]);
  return ["mono", program];
}

/** The programs that make a receipt of a sale: how each is made ready. */
export const receiptPrograms = [
  { file: "receipt.py", skip: without("python3", "python3", "--version"), make: (file: string) => ["python3", file] },
  { file: "receipt.cs", skip: noMono, make: compiledCSharp },
];

export const pathOf = (file: string) => fileURLToPath(new URL(file, tills));

export const programs: readonly TillProgram[] = [
  command("till.sh", without("curl", "curl", "--version"), (file) => ["sh", file]),
  command("till.py", without("python3", "python3", "--version"), (file) => ["python3", file]),
  command("till.php", noPhp, (file) => ["php", file]),
  // Compiled once: to compile it for each sale takes a second of processor time.
  command("Till.java", without("default-jdk-headless", "javac", "-version"), async (file, folder) => {
    await run("javac", ["-d", folder, file]);
    return ["java", "-XX:TieredStopAtLevel=1", "-cp", folder, "Till"];
  }),
  command("till.go", without("golang-go", "go", "version"), async (file, folder) => {
    const env = { ...process.env, GOCACHE: join(folder, "../cache"), GO111MODULE: "off" };
    await run("go", ["build", "-o", join(folder, "till"), file], { env });
    return [join(folder, "till")];
  }),
  command("till.cs", noMono, compiledCSharp),
  {
    file: "till.html",
    skip: existsSync(browserPath) ? false : `there is no ${browserPath} here: sudo apt-get install chromium`,
    ready: readyPage,
  },
];

/** @param make Gives the words by which it is run. */
function command(
  file: string,
  skip: string | false,
  make: (path: string, folder: string) => readonly string[] | Promise<readonly string[]>,
): TillProgram {
  return {
    file,
    skip,
    ready: async (folder, port) => {
      const program = await make(pathOf(file), folder);
      const startWith = (words: readonly string[]) => started([...program, ...words]);
      const start = ({ key, amount }: Sale) => startWith([key, String(amount), `http://localhost:${port}`]);
      return { startWith, start, end: async () => {}, command: `${program.join(" ")} {key} {amount} $POSLINE_BANK_URL` };
    },
  };
}

/** Runs a program; what it has complained of so far can be read. */
export function started(words: readonly string[]): RunningTill & { readonly complaint: string } {
  const child = spawn("bash", ["-c", closeAndRun, "bash", ...words], { stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  let complaint = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint += text;
  });
  const ended = new Promise<{ printed: string; complaint: string; code: number }>((resolve) => {
    child.on("close", (code) => {
      if (code !== null) resolve({ printed: printed.trim(), complaint: complaint.trim(), code });
    });
  });
  return {
    ended,
    kill: () => child.kill("SIGKILL"),
    get complaint() {
      return complaint;
    },
  };
}

/**
 * The page, on a server of its own, in a browser without a window. A tab that is closed stands for a killed till. As a command it is curl,
 * which asks the same server for what a tab shows in the end: to start a Node for each sale takes longer than the sale.
 */
async function readyPage(_: string, port: number): Promise<ReadyTill> {
  const [pagePort = 0] = await freePorts(1);
  const text = readFileSync(new URL("till.html", tills), "utf8");
  // As root Chromium has no sandbox; it loads nothing but this page.
  const browser = await chromium.launch({
    executablePath: browserPath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
  const origin = `http://localhost:${pagePort}`;
  const server = createServer(({ url = "" }, response) => {
    const query = /^\/sold(\?.*)/.exec(url)?.[1];
    if (query === undefined) {
      response.setHeader("Content-Type", "text/html").end(text);
      return;
    }
    const { ended, kill } = shown(browser, `${origin}/till.html${query}`);
    response.on("close", () => response.writableFinished || kill());
    ended.then(
      ({ printed, complaint }) => response.end(`${printed}${complaint}`),
      (error: unknown) => response.end(String(error)),
    );
  });
  server.listen(pagePort, "localhost");
  const startWith = ([key, amount]: readonly string[]) => {
    const address = `http://localhost:${port}`;
    const asked = new URLSearchParams({
      ...(key === undefined ? {} : { key }),
      ...(amount === undefined ? {} : { amount }),
      address,
    });
    return shown(browser, `${origin}/till.html?${asked}`);
  };
  return {
    ...{ origin, startWith },
    command: `curl -sG ${origin}/sold -d key={key} -d amount={amount} --data-urlencode "address=$POSLINE_BANK_URL"`,
    start: ({ key, amount }) => startWith([key, String(amount)]),
    end: async () => {
      await browser.close();
      server.close();
    },
  };
}

/** What a page shows in the end, with the exit code that a program would have. */
function shown(browser: Browser, url: string): RunningTill {
  const page = browser.newPage();
  let isKilled = false;
  const text = page.then(async (open) => {
    await open.goto(url);
    const output = open.locator("output").filter({ hasText: /./ });
    await output.waitFor({ timeout: 0 });
    const printed = await output.innerText();
    await open.close();
    const word = /^[a-z]+$/.test(printed);
    return { printed: word ? printed : "", complaint: word ? "" : printed, code: word ? Number(printed !== "approved") : 2 };
  });
  const ended = text.catch((error: unknown) => (isKilled ? new Promise<never>(() => {}) : Promise.reject(error)));
  const kill = () => {
    isKilled = true;
    void page.then((open) => open.close());
  };
  return { ended, kill };
}
