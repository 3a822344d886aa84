import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { emulatedMerchantId } from "../../src/config/overrides.ts";
import { checks } from "../../src/lab/certify/certification.ts";
import { freePorts } from "../support/free-port.ts";
import { Pty } from "../support/pty.ts";
import { endAll, folder, posline } from "./emulating.ts";

/** `posline certify` as its users meet it: the bundle at a pty or at a port, with the emulator at the other end, or nothing. */

after(endAll);

const merchantIdFile = join(folder.path, "merchant-id");
writeFileSync(merchantIdFile, `${emulatedMerchantId}\n`);

/** A cable between two serial ports. */
function cable(): { readonly ends: readonly [string, string]; readonly cut: () => void } {
  const near: Pty = new Pty((bytes) => far.write(bytes));
  const far: Pty = new Pty((bytes) => near.write(bytes));
  const cut = () => {
    near.unplug();
    far.unplug();
  };
  return { ends: [near.path, far.path], cut };
}

interface Certified {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The table's rows of the checks that didn't hold. */
  readonly others: readonly string[];
}

async function certify(...args: string[]): Promise<Certified> {
  const process = posline(["certify", ...args]);
  // It waits as long as a terminal may, which is longer than the other commands take.
  if (process.child.exitCode === null) await once(process.child, "close");
  const { stdout, stderr } = process;
  const rows = stdout.split("\n").filter((row) => /^(?:passed|FAILED|not tested) /.test(row));
  return { code: process.child.exitCode, stdout, stderr, others: rows.filter((row) => !row.startsWith("passed")) };
}

const withSales = ["--with-sales", "--amount", "100", "--currency", "EUR", "--yes", "--close-day"];

test("posline certify holds everything of posline emulate over a pty, and over tcp: without sales, and writes its reports", async (t) => {
  const { ends, cut } = cable();
  const [port] = await freePorts(1);
  const address = `tcp:127.0.0.1:${port}`;
  const [junit, report] = [join(folder.path, "verdicts.xml"), join(folder.path, "verdicts.html")];
  const emulate = ["emulate", "--no-http", "--no-admin", "--merchant-id-file", merchantIdFile, "--line"];
  const emulators = [posline([...emulate, ends[1]]), posline([...emulate, address])];
  t.after(() => Promise.all(emulators.map((each) => each.ended("SIGTERM"))));
  t.after(() => cut());
  await Promise.all(emulators.map((each) => each.logged(({ msg }) => msg === "line", "the line to open")));
  const signed = ["--merchant-id-file", merchantIdFile];
  const [onPty, onTcp] = await Promise.all([
    certify("--line", ends[0], "--services", "bank", ...withSales, "--junit", junit, "--report", report),
    certify("--line", address, "--services", "qr,fiscal", ...signed),
  ]);
  assert.deepEqual([onPty.others, onPty.stderr, onPty.code], [[], "", 0]);
  const ofBank = checks.filter(({ service }) => service === "bank").length;
  assert.match(onPty.stdout, new RegExp(`\n${ofBank} passed, 0 failed, 0 not tested\n`));
  assert.match(readFileSync(junit, "utf8"), new RegExp(`tests="${ofBank}" failures="0" errors="0" skipped="0"`));
  const page = readFileSync(report, "utf8");
  assert.match(page, /<h1>posline certify<\/h1>/);
  assert.match(page, /100 minor units of EUR/);
  assert.ok(!page.includes(emulatedMerchantId));
  assert.deepEqual([onTcp.others, onTcp.stderr, onTcp.code], [[], "", 0]);
  assert.ok(!onTcp.stdout.includes("qr-payment"), "nothing is sold without --with-sales");
});

test("posline certify calls everything not tested with nothing connected, with an echo and with noise, and exits with 75", async (t) => {
  const silent = new Pty(() => {});
  const echo: Pty = new Pty((bytes) => echo.write(bytes));
  const noisy: Pty = new Pty(() => noisy.write(Buffer.from("\x80\x00\xf8\x78\x00")));
  t.after(async () => {
    for (const each of [silent, echo, noisy]) each.unplug();
  });
  const lines = [silent, echo, noisy].map(({ path }) => path);
  const told = await Promise.all(lines.map((line) => certify("--line", line, "--services", "bank")));
  const asked = checks.filter(({ service, sells }) => service === "bank" && sells !== true).length;
  for (const { code, stdout, others } of told) {
    assert.equal(code, 75);
    assert.equal(others.length, asked);
    assert.match(stdout, new RegExp(`\n0 passed, 0 failed, ${asked} not tested\nNothing is claimed`));
  }
  const [nothing, echoed, noise] = told;
  assert.match(nothing?.stdout ?? "", /bank-answers .* Nothing was answered within 36 s/);
  assert.match(echoed?.stdout ?? "", /bank-answers .* the line echoes, and no terminal answers/);
  assert.match(noise?.stdout ?? "", /bank-answers .* bytes came that are no frame: the speed may be another one/);
});

test("posline certify says what is wrong with its flags, and with a line that can't be opened, before anything is sent", async () => {
  const bad = async (code: number, message: RegExp, ...args: string[]) => {
    const told = await certify(...args);
    assert.equal(told.code, code, told.stderr);
    assert.match(told.stderr, message);
    assert.equal(told.stdout, "");
  };
  await bad(64, /no line is named: add --line DEVICE/);
  await bad(64, /no check "bank-idel": did you mean "bank-idle"\?/, "--line", "/dev/null", "--check", "bank-idel");
  await bad(64, /move money, print or close the day: add --with-sales/, "--line", "/dev/null", "--check", "bank-sale");
  await bad(64, /--with-sales needs an amount/, "--line", "/dev/null", "--with-sales");
  await bad(
    64,
    /--amount is 0: use a whole number/,
    "--line",
    "/dev/null",
    "--with-sales",
    "--amount",
    "0",
    "--currency",
    "EUR",
  );
  await bad(64, /add --yes/, "--line", "/dev/null", "--with-sales", "--amount", "1", "--currency", "EUR");
  await bad(64, /--close-day is for sales/, "--line", "/dev/null", "--close-day");
  await bad(64, /--amount is for sales/, "--line", "/dev/null", "--amount", "1");
  await bad(69, /Cannot certify "\/dev\/no-such-tty": /, "--line", "/dev/no-such-tty");
  const [port] = await freePorts(1);
  await bad(69, /Cannot certify "tcp:127\.0\.0\.1:\d+": /, "--line", `tcp:127.0.0.1:${port}`);
  const listed = await certify("--list", "--services", "qr", "--with-sales");
  assert.equal(listed.code, 0);
  assert.match(listed.stdout, /^qr-answers +qr: It answers, in time\n/);
  assert.equal(listed.stdout.trim().split("\n").length, checks.filter(({ service }) => service === "qr").length);
});
