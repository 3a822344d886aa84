import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { scratchFolder } from "../../support/bridge-process.ts";
import { bundle, PoslineProcess } from "../../support/posline-process.ts";
import { until } from "../../support/until.ts";

/** How `serve`, `emulate` and `gateway` write their log: `src/cli/run-service.ts`. */

const anyPort = { POSLINE_FISCAL_PORT: "0", POSLINE_BANK_PORT: "0", POSLINE_QR_PORT: "0", POSLINE_ADMIN_PORT: "0" };

/** Runs a command on a terminal of its own until its log has begun, and ends it. */
const onTerminal = `
import os, pty, select, signal, subprocess, sys, time
mine, its = pty.openpty()
child = subprocess.Popen(sys.argv[1:], stdin=its, stdout=its, stderr=its)
os.close(its)
text, end, asked = b"", time.monotonic() + 15, False
while time.monotonic() < end:
    if select.select([mine], [], [], 0.1)[0]:
        try:
            text += os.read(mine, 65536)
        except OSError:
            break
    if not asked and (b"admin listens" in text or b"relays" in text):
        child.send_signal(signal.SIGINT)
        asked = True
child.kill()
child.wait()
sys.stdout.buffer.write(text)
`;

for (const [name, words] of [
  ["serve", ["serve", "--emulated"]],
  ["emulate", ["emulate"]],
  ["gateway", ["gateway", "--line", "/dev/nonexistent"]],
] as const) {
  test(`posline ${name} writes its log as text at a terminal, and NDJSON with --log-format json`, () => {
    const run = (...flags: readonly string[]) => {
      const args = ["-c", onTerminal, process.execPath, bundle, ...words, ...flags];
      return spawnSync("python3", args, { encoding: "utf8", env: { ...process.env, ...anyPort, NO_COLOR: "1", TERM: "xterm" } })
        .stdout;
    };
    const text = run();
    assert.match(text, /^--- \d{4}-\d\d-\d\d\r\n\d\d:\d\d:\d\d\.\d{3} {2}\w+ {2,}/m);
    assert.match(text, /posline {2}posline (?:serves|emulates|relays) {2}version=/);
    assert.doesNotMatch(text, /^\{/m);
    const lines = run("--log-format", "json")
      .split("\r\n")
      .filter((line) => line.startsWith("{"));
    assert.ok(lines.map((line) => JSON.parse(line)).some(({ msg }) => /^posline \w+s$/.test(msg)));
  });
}

test("posline serve says at a terminal once why it can't start, and elsewhere in the log and on standard error", async (t) => {
  const taken = createServer().listen(0, "127.0.0.1");
  t.after(() => taken.close());
  await once(taken, "listening");
  const address = taken.address();
  const port = String(typeof address === "object" ? address?.port : assert.fail("it has a port"));
  const env = { ...process.env, ...anyPort, POSLINE_BANK_PORT: port, NO_COLOR: "1", TERM: "xterm" };
  const words = [process.execPath, bundle, "serve", "--emulated"];
  const run = promisify(execFile);
  const why = new RegExp(`Cannot listen on 127\\.0\\.0\\.1:${port}`, "g");
  const { stdout } = await run("python3", ["-c", onTerminal, ...words], { env });
  assert.equal(stdout.match(why)?.length, 1, stdout);
  const elsewhere = new PoslineProcess(["serve", "--emulated"], { env: { POSLINE_BANK_PORT: port } });
  assert.equal(await elsewhere.ended(), 69);
  assert.equal(elsewhere.stderr.match(why)?.length, 1, elsewhere.stderr);
  assert.equal(elsewhere.stdout.match(why)?.length, 1, elsewhere.stdout);
});

test("posline serve --log-format text writes text where it is no terminal, and NDJSON without the flag", async () => {
  const asText = new PoslineProcess(["serve", "--emulated", "--log-format", "text"]);
  await asText.until(() => (asText.stdout.includes("admin listens") ? true : undefined), "the log");
  assert.equal(await asText.ended("SIGTERM"), 0);
  assert.match(asText.stdout, /^--- \d{4}-\d\d-\d\d\n\d\d:\d\d:\d\d\.\d{3} {2}/);
  const asJson = new PoslineProcess(["serve", "--emulated"]);
  await asJson.port("bank");
  assert.equal(await asJson.ended("SIGTERM"), 0);
  for (const line of asJson.stdout.trim().split("\n")) JSON.parse(line);
});

test("posline serve reads its configuration again after a SIGHUP that came while it started: the file was read before", async () => {
  const folder = scratchFolder();
  const file = join(folder.path, "posline.json");
  const write = (level: string) =>
    writeFileSync(
      file,
      JSON.stringify({
        lines: { till: { path: "/dev/ttyS0" } },
        services: { bank: { line: "till" } },
        journal: { folder: folder.path },
        log: { level },
      }),
    );
  write("info");
  const env = { POSLINE_FISCAL_PORT: undefined, POSLINE_QR_PORT: undefined };
  const posline = new PoslineProcess(["serve", "--emulated", "--config", file], { env });
  const status = `/proc/${posline.child.pid}/status`;
  // The last digit of the caught signals is odd once SIGHUP is among them; bash, which starts it, catches none.
  await until(() => /^SigCgt:.*[13579bdf]$/m.test(readFileSync(status, "utf8")), "posline to catch SIGHUP");
  write("debug");
  posline.child.kill("SIGHUP");
  await posline.logged(({ msg }) => msg === "the configuration was reloaded", "the reload");
  assert.equal(await posline.ended("SIGTERM"), 0);
});
