import assert from "node:assert/strict";
import { mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runDoctor } from "../../src/cli/doctor.ts";
import { idleProbeMsMin } from "../../src/config/limits.ts";
import { type DoctorOptions, examine } from "../../src/doctor/doctor.ts";
import { echo, garbage, lateBy, loginPrompt, otherCrc, silent, wrongSpeed } from "../support/bad-terminals.ts";
import { BridgeProcess, scratchFolder } from "../support/bridge-process.ts";
import { type Behaviour, Terminal } from "../support/terminal.ts";

/**
 * What `posline doctor` says to fix first where a terminal doesn't answer as it should, beside the service that has the line, and
 * alone. A posline of its own and a pty each, all at once.
 */

interface Case {
  readonly name: string;
  readonly behaviour: Behaviour;
  /** What comes first while the service runs, by what it heard. */
  readonly beside: RegExp;
  /** What comes first when the doctor probes the terminal itself. */
  readonly alone: RegExp;
  /** What the terminal does then, where not the same. */
  readonly behaviourAlone?: Behaviour;
  readonly code?: number;
}

const notAnAnswer = /: bytes come that are not an answer: wrong speed, or another device\?/;

const cases: readonly Case[] = [
  {
    name: "silent",
    behaviour: silent,
    beside: /: the terminal does not answer, and not one byte comes back$/,
    alone: /: the terminal does not answer, and not one byte comes back$/,
  },
  {
    name: "garbage",
    behaviour: garbage,
    beside: notAnAnswer,
    alone: /: bytes come that are not an answer: wrong speed, or another device\?: 02 81 67 /,
  },
  {
    name: "other CRC",
    behaviour: otherCrc,
    beside: /: the terminal uses the CRC-16\/UMTS checksum$/,
    alone: /: the terminal uses the CRC-16\/UMTS checksum$/,
  },
  {
    name: "wrong speed",
    behaviour: wrongSpeed,
    beside: notAnAnswer,
    alone: /: bytes come that were sent at another speed than \d+ baud: /,
  },
  { name: "echo", behaviour: echo, beside: /: what was sent comes back/, alone: /: what was sent comes back: / },
  { name: "login prompt", behaviour: loginPrompt, beside: /: a login prompt comes/, alone: /: a login prompt comes: / },
  {
    name: "late",
    behaviour: lateBy(18_000),
    beside: /: the terminal does not answer, and not one byte comes back$/,
    behaviourAlone: lateBy(5_000),
    alone: /: bank answered \/supported_operations in [5-9]\.\d s at 115200 baud: 3 operations; that is late$/,
    code: 0,
  },
];

/**
 * The line `First: ...` of the doctor, and all that it printed. It is shown only these processes: this one holds the other end of each
 * pty, and its own end too, so the doctor would take it for a stranger that has the device.
 */
async function doctor(folder: string, config: object, { pids = [] as readonly number[], code = 69 }): Promise<Told> {
  const proc = mkdtempSync(join(folder, "proc-"));
  for (const name of ["net", "cmdline", ...pids.map(String)]) symlinkSync(`/proc/${name}`, join(proc, name));
  const file = join(proc, "posline.json");
  writeFileSync(file, JSON.stringify(config));
  const out: string[] = [];
  const places = { proc, env: {}, command: async () => ({ ran: false, why: "not asked" }) as const };
  const surroundings = {
    examine: (options: DoctorOptions) => examine({ ...options, places }),
    look: { unicode: false, colour: false },
    out: (text: string) => out.push(text),
    err: () => {},
  };
  const exit = await runDoctor({ config: file }, surroundings);
  const text = out.join("");
  assert.equal(exit, code, text);
  return { first: /^First: line till(: .*)$/m.exec(text)?.[1] ?? "", text };
}

type Told = { readonly first: string; readonly text: string };

async function diagnose({ behaviour, beside, alone, behaviourAlone = behaviour, code = 69 }: Case): Promise<void> {
  const folder = scratchFolder();
  const line = { idleProbeMs: idleProbeMsMin, queueWaitMs: 500, lateReplyMs: 10_000 };
  const busy = new Terminal(join(folder.path, "busy"), behaviour);
  const idle = new Terminal(join(folder.path, "idle"), behaviourAlone);
  const config = { services: { bank: { line: "till" } }, admin: {}, journal: false };
  const bridge = new BridgeProcess(
    { ...config, lines: { till: { path: busy.link, ...line } } },
    { env: { POSLINE_ADMIN_PORT: "0" } },
  );
  try {
    await bridge.logged(({ msg }) => msg === "bank does not answer", "bank to be reported");
    const services = { bank: { line: "till", port: await bridge.port("bank") } };
    const admin = { port: await bridge.port("admin") };
    const pids = [bridge.child.pid ?? 0];
    const served = { journal: false, lines: { till: { path: busy.link, ...line } }, services, admin };
    const up = await doctor(folder.path, served, { pids });
    assert.match(up.first, beside, up.text);
    assert.match(up.text, new RegExp(`why: posline \\(process ${bridge.child.pid}\\) says so of bank`));
    assert.match(up.text, /^1 problem was found/m, up.text);

    // Another configuration, of which that posline has nothing.
    const own = {
      journal: false,
      lines: { till: { path: idle.link, ...line } },
      services: { bank: { line: "till", port: 1 } },
    };
    const down = await doctor(folder.path, own, { pids, code });
    assert.match(down.first, alone, down.text);
    assert.match(down.text, code === 69 ? /^1 problem was found/m : /^No problem was found, 1 warning\.$/m, down.text);
    assert.doesNotMatch(down.text, /posline \(process/);
    if (behaviour !== silent) assert.doesNotMatch(down.text, /did not answer/);
  } finally {
    await bridge.stop();
    busy.unplug();
    idle.unplug();
  }
}

test("posline doctor says the right cause first of seven bad terminals, beside the service and alone", {
  timeout: 120_000,
}, async () => {
  const ended = await Promise.allSettled(cases.map(diagnose));
  for (const [index, end] of ended.entries()) {
    if (end.status === "rejected") throw new Error(`${cases[index]?.name}: ${end.reason}`, { cause: end.reason });
  }
});
