import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { test } from "node:test";
import { scratchFolder } from "../support/bridge-process.ts";
import { bundle } from "../support/posline-process.ts";

/** `posline logs` as a process of its own, with its sources: a file, what a shell pipes in, and a journalctl of the test's. */

const record = (key: string, more: object = {}) =>
  JSON.stringify({
    level: "info",
    time: "2026-11-20T10:33:08.336Z",
    requestId: `r-${key}`,
    service: "bank",
    route: "/sale",
    key,
    outcome: "answered",
    httpStatus: 200,
    status: "success",
    queueMs: 0,
    lineMs: 8.7,
    msg: "exchange",
    ...more,
  });
const unknown = (key: string) => record(key, { level: "warn", outcome: "unknown", httpStatus: 504, message: "no reply" });
const sample = `<6>${record("A-1")}\n<4>${unknown("A-2")}\n    at trace (posline.cjs:1)\n`;

type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** Runs a shell's command with `posline` in it; the bundle's times are UTC. */
function shell(command: string, env: Readonly<Record<string, string>> = {}): ChildProcess {
  const path = `${env["PATH"] ?? ""}:${process.env["PATH"] ?? ""}`;
  return spawn("bash", ["-c", `posline() { "${process.execPath}" "${bundle}" "$@"; }; ${command}`], {
    env: { TZ: "UTC", ...env, PATH: path },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function textOf(stream: Readable | null): Promise<string> {
  let text = "";
  for await (const chunk of stream ?? []) text += String(chunk);
  return text;
}

async function ended(child: ChildProcess): Promise<Ended> {
  const closed = once(child, "close");
  const [stdout, stderr] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
  await closed;
  return { code: child.exitCode, stdout, stderr };
}

/** A folder with a log in it, gone after the test. */
async function withLog(use: (folder: string, file: string) => Promise<void>): Promise<void> {
  const folder = scratchFolder();
  const file = join(folder.path, "posline.log");
  writeFileSync(file, sample);
  try {
    await use(folder.path, file);
  } finally {
    folder.remove();
  }
}

const shownSale = "2026-11-20 10:33:08.336  bank     /sale     A-1       answered success        0+8.7 ms\n";
const shownUnknown =
  "2026-11-20 10:33:08.336  bank     /sale     A-2       UNKNOWN 504             0+8.7 ms  no reply  [r-A-2]\n";

test("posline logs FILE shows it, and - and a pipe are standard input", () =>
  withLog(async (_, file) => {
    const expected = { code: 0, stdout: `${shownSale}${shownUnknown}    at trace (posline.cjs:1)\n`, stderr: "" };
    assert.deepEqual(await ended(shell(`posline logs ${file}`)), expected);
    assert.deepEqual(await ended(shell(`cat ${file} | posline logs`)), expected);
    assert.deepEqual(await ended(shell(`posline logs - < ${file}`)), expected);
  }));

test("posline logs reads a file of 300 MB without a line end in bounded memory", () =>
  withLog(async (folder) => {
    const file = join(folder, "binary");
    const probe = join(folder, "probe.cjs");
    writeFileSync(probe, 'process.on("exit", () => process.stderr.write(String(process.resourceUsage().maxRSS)));');
    const make = `head -c 1M /dev/urandom > ${file}; truncate -s 300M ${file}`;
    const { code, stderr } = await ended(
      shell(`${make}; NODE_OPTIONS=--require=${probe} posline logs ${file} > ${folder}/out`),
    );
    assert.equal(code, 0);
    // Kilobytes; some 50,000 of them are Node's own.
    assert.ok(Number(stderr) < 150_000, stderr);
    assert.doesNotMatch(readFileSync(join(folder, "out"), "utf8"), /[^\P{Cc}\n]/u);
  }));

test("posline logs -f shows what comes to a file, and ends with 0 on Ctrl-C", () =>
  withLog(async (_, file) => {
    const child = spawn(process.execPath, [bundle, "logs", file, "-f", "-n", "1", "--service", "bank"], {
      env: { TZ: "UTC", PATH: process.env["PATH"] ?? "" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let text = "";
    for await (const chunk of child.stdout) {
      text += String(chunk);
      if (text === shownUnknown) appendFileSync(file, `${record("A-1")}\n`);
      if (text.includes("A-1")) child.kill("SIGINT");
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, "close");
    assert.equal(text, shownUnknown + shownSale);
    assert.deepEqual([child.exitCode, child.signalCode], [0, null]);
  }));

/** A journalctl that notes its arguments, and does what the test says. */
function fakeJournalctl(folder: string, body: string): { readonly env: Record<string, string>; calls(): string[][] } {
  const notes = join(folder, "calls");
  writeFileSync(join(folder, "journalctl"), `#!/bin/bash\nprintf '%s\\x1f' "$@" >> ${notes}; echo >> ${notes}\n${body}\n`, {
    mode: 0o755,
  });
  const calls = () =>
    existsSync(notes)
      ? readFileSync(notes, "utf8")
          .split("\n")
          .slice(0, -1)
          .map((line) => line.split("\u001f").slice(0, -1))
      : [];
  return { env: { PATH: folder }, calls };
}

const base = ["-o", "cat", "-u", "posline", "--no-pager"];
const journal = `echo '-- Journal begins at Fri 2026-11-20 --'; echo '${record("A-1")}'; echo '${unknown("A-2")}'`;

test("posline logs asks journalctl for the unit, and shows what it gives without its own words", () =>
  withLog(async (folder) => {
    const { env, calls } = fakeJournalctl(folder, journal);
    const expected = { code: 0, stdout: shownSale + shownUnknown, stderr: "" };
    assert.deepEqual(await ended(shell("posline logs", env)), expected);
    assert.deepEqual(await ended(shell("posline logs -n 2 --unit 'a b; $(id)'", env)), expected);
    assert.deepEqual(await ended(shell("posline logs --since 2026-11-20T10:33:08Z -n 5", env)), expected);
    assert.equal((await ended(shell("posline logs -n 1 --key A-1", env))).stdout, shownSale);
    assert.deepEqual(calls(), [
      base,
      ["-o", "cat", "-u", "a b; $(id)", "--no-pager", "-n", "2"],
      [...base, `--since=@${Date.parse("2026-11-20T10:33:08Z") / 1_000}`],
      base,
    ]);
  }));

test("posline logs -f has journalctl follow, and filters the last lines of what is there itself", () =>
  withLog(async (folder) => {
    const cursor = `s=${"0123456789abcdef".repeat(2)};i=1f;b=00;m=1;t=2;x=3`;
    const body = `case " $* " in *--show-cursor*) ${journal}; echo '-- cursor: ${cursor}';; *-f*) echo '${unknown("A-3")}';; esac`;
    const { env, calls } = fakeJournalctl(folder, body);
    const shownLast = shownUnknown.replaceAll("A-2", "A-3");
    assert.equal((await ended(shell("posline logs -f", env))).stdout, shownLast);
    assert.equal((await ended(shell("posline logs -f --outcome unknown", env))).stdout, shownUnknown + shownLast);
    assert.equal((await ended(shell("posline logs -f --since 2026-11-20T10:00Z", env))).stdout, shownLast);
    assert.deepEqual(calls(), [
      [...base, "-f", "-n", "10"],
      [...base, "--show-cursor"],
      [...base, "-f", "--no-tail", `--after-cursor=${cursor}`],
      [...base, "-f", "--no-tail", `--since=@${Date.parse("2026-11-20T10:00:00Z") / 1_000}`],
    ]);
  }));

test("posline logs says what to do where the journal can't be read", () =>
  withLog(async (folder, file) => {
    const hint =
      "Hint: You are currently not seeing messages from other users and the system.\\n      Users in groups 'adm' can see.";
    const forbidden =
      /^Cannot read the journal of posline: (.+) may not: sudo usermod -aG systemd-journal \1, and log in again; or sudo posline logs\n$/;
    const none = fakeJournalctl(folder, "echo 'No journal files were opened due to insufficient permissions.' >&2; exit 1");
    const refused = await ended(shell("posline logs", none.env));
    assert.deepEqual([refused.code, refused.stdout], [69, ""]);
    assert.match(refused.stderr, forbidden);
    // One that sees its own journal alone would wait for ever.
    const own = fakeJournalctl(folder, `printf "${hint}\\n" >&2; exec sleep 600`);
    const waiting = await ended(shell("posline logs -f", own.env));
    assert.deepEqual([waiting.code, waiting.stdout], [69, ""]);
    assert.match(waiting.stderr, forbidden);
    const failing = fakeJournalctl(folder, "printf 'Failed to \\033[31mseek\\n' >&2; exit 1");
    assert.deepEqual(await ended(shell("posline logs", failing.env)), {
      code: 69,
      stdout: "",
      stderr:
        "journalctl: Failed to \uFFFD[31mseek\nCannot read the journal: journalctl ended with 1: what it said stands above\n",
    });
    const quiet = fakeJournalctl(folder, "echo '-- No entries --'");
    assert.equal((await ended(shell("posline logs", quiet.env))).stderr, "The journal of posline has nothing\n");
    const nowhere = await ended(shell(`PATH=/nowhere; posline logs`));
    assert.equal(nowhere.code, 69);
    assert.equal(
      nowhere.stderr,
      "Cannot read the journal: there is no journalctl on this box: name the file the log goes to: posline logs FILE, or use --live\n",
    );
    const usage = await ended(shell(`posline logs ${file} --unit x; posline logs --since soon; posline logs -n -1`));
    assert.equal(usage.code, 64);
    assert.match(
      usage.stderr,
      /^Cannot show the log: --unit .*\nCannot show the log: --since "soon" is not a time: .*\nCannot show the log: --lines -1 .*\n$/,
    );
  }));
