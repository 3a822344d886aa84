import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { answering, Terminal } from "../../../test/support/terminal.ts";
import { need, packages } from "../host.ts";
import { type foreign, foreignNode } from "../image.ts";
import { packageOf, unpacked } from "../packages.ts";
import { type BareProof, seconds } from "../proof.ts";

/** The package of another processor, under user-mode emulation: its bundle and its native part relay over a pty. */

export const arm: BareProof = {
  name: "arm",
  shows: "arm64 and armhf: the bundle and the native part of the package start under emulation, and relay over a pty",
  isShort: true,
  isBare: true,
  isBeside: true,
  async run({ figure }) {
    need(packages.arm);
    for (const architecture of ["arm64", "armhf"] as const) figure(await relayed(architecture));
  },
};

const answer = '{"status":"success","data":{"status":"APPROVED","rrn":9007199254740993}}';
const startMs = 120_000;

async function relayed(architecture: keyof typeof foreign): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "posline-arm-"));
  const bundle = join(unpacked(await packageOf(architecture), join(folder, "package")), "usr/lib/posline/posline.cjs");
  const terminal = new Terminal(
    join(folder, "device"),
    answering(() => answer),
  );
  const [command = "", ...args] = await foreignNode(architecture);
  const port = 20_000 + (process.pid % 20_000);
  const env = {
    PATH: process.env["PATH"],
    ...{ POSLINE_BANK_PORT: String(port), POSLINE_QR_PORT: String(port + 1), POSLINE_FISCAL_PORT: String(port + 2) },
    ...{ POSLINE_ADMIN_PORT: String(port + 3) },
  };
  const began = performance.now();
  const child = spawn(command, [...args, bundle, "serve", "--line", terminal.link], { env, stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (log += text));
  try {
    const text = await asked(`http://127.0.0.1:${port}/check`, () => {
      if (child.exitCode !== null) throw new Error(`Cannot relay: ${command} ended with exit code ${child.exitCode}\n${log}`);
    });
    assert.equal(text, answer);
    const kind = /"version":"([^"]+)"/.exec(log)?.[1];
    return `${architecture}: posline ${kind} under ${command}: relayed ${seconds(performance.now() - began)} after its start`;
  } finally {
    child.kill("SIGKILL");
    terminal.unplug();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Asks until it is answered. */
async function asked(url: string, assertRunning: () => void): Promise<string> {
  const until = performance.now() + startMs;
  while (performance.now() < until) {
    assertRunning();
    try {
      const answered = await fetch(url, { method: "POST", body: '{"pay_id":"A-1"}' });
      const text = await answered.text();
      if (answered.status === 200) return text;
    } catch {
      // It doesn't listen yet.
    }
    await sleep(200);
  }
  throw new Error(`Cannot relay: not answered within ${seconds(startMs)}`);
}
