import assert from "node:assert/strict";
import { test } from "node:test";
import { type DoctorArguments, type Look, renderJson, runDoctor } from "../../src/cli/doctor.ts";
import type { DoctorOptions, DoctorReport } from "../../src/doctor/doctor.ts";
import type { Finding, RedactedBytes } from "../../src/doctor/finding.ts";
import { evil, obeyed } from "../support/evil-text.ts";

const bad: Finding = {
  check: "holder",
  level: "bad",
  what: "/dev/ttyUSB0 is in use by process 812 (minicom)",
  cure: "stop it: sudo kill 812",
  line: "till",
};
const report: DoctorReport = {
  file: "/etc/posline/posline.json",
  lines: [{ name: "till", path: "/dev/ttyUSB0", baudRate: 115_200, format: "8N1" }],
  findings: [
    { check: "node", level: "ok", what: "Node 20.20.2" },
    { check: "clock", level: "warn", what: "the clock says 1970", cause: "no battery", cure: "set it" },
    bad,
    {
      check: "answer",
      level: "skipped",
      what: "terminal not tested",
      line: "till",
      frames: [{ direction: "sent", atMs: 0, bytes: 2, hex: "00 01", text: "/x" }],
    },
  ],
  verdict: "bad",
  first: bad,
};
const plain: Look = { unicode: false, colour: false };

/** What is printed of a report whose findings come one after the other. */
async function render(told: DoctorReport, look: Look, args: DoctorArguments = {}): Promise<string> {
  const out: string[] = [];
  const examine = async ({ onFinding, onLine }: DoctorOptions) => {
    const give = (line: string | undefined) => {
      for (const each of told.findings) if (each.line === line) onFinding?.(each);
    };
    give(undefined);
    for (const line of told.lines) {
      onLine?.(line);
      give(line.name);
    }
    return told;
  };
  await runDoctor(args, { examine, look, out: (text) => out.push(text), err: () => {} });
  return out.join("");
}

test("posline doctor shows the box, then each line, with why and what to do under each finding, and what comes first", async () => {
  assert.equal(
    await render(report, plain),
    [
      ...["this box", "+ node          Node 20.20.2", "! clock         the clock says 1970"],
      ...["                why: no battery", "                do:  set it", "", "line till: /dev/ttyUSB0, 115200 8N1"],
      "X holder        /dev/ttyUSB0 is in use by process 812 (minicom)",
      ...["                do:  stop it: sudo kill 812", "- answer        terminal not tested"],
      ...["                > sent 2 bytes at 0 ms", "                  00 01", "                  /x", ""],
      ...["1 problem was found, 1 warning.", "First: line till: /dev/ttyUSB0 is in use by process 812 (minicom)"],
      ...["  stop it: sudo kill 812", "Nothing was changed. Only probes were sent, which only read.", ""],
    ].join("\n"),
  );
});

test("posline doctor uses signs and colours only where the terminal knows them", async () => {
  const text = await render(report, { unicode: true, colour: true });
  assert.ok(text.includes("\u001b[32m✔\u001b[0m node"));
  assert.ok(text.includes("\u001b[31m✘\u001b[0m holder"));
  assert.match(text, /→ sent/);
  assert.doesNotMatch(await render(report, plain), /[^\x20-\x7e\n]/);
});

test("posline doctor says that no problem was found, and that nothing was sent", async () => {
  const text = await render({ ...report, findings: [], verdict: "ok", first: undefined }, plain);
  assert.match(text, /\nNo problem was found\.\nNothing was changed, and nothing was sent\.\n$/);
});

test("posline doctor that found no problem says what it did not check", async () => {
  const skipped = (check: string, what: string, cure?: string): Finding => ({
    ...{ check, level: "skipped", what, line: "till" },
    ...(cure === undefined ? {} : { cure }),
  });
  const findings: readonly Finding[] = [
    { check: "time sync", level: "skipped", what: "whether the clock follows a time server isn't known" },
    skipped("holder", "no process has it open, as far as this user can see", "sudo posline doctor"),
    skipped("answer", "terminal not tested", "sudo posline doctor"),
  ];
  const unchecked = [
    ...["Not checked:", "  whether the clock follows a time server isn't known"],
    ...["  line till: no process has it open, as far as this user can see", "  line till: terminal not tested"],
    ...["Nothing was changed, and nothing was sent.", ""],
  ];
  const none = await render({ ...report, findings, verdict: "ok", first: undefined }, plain);
  assert.ok(none.endsWith(["", "No problem was found.", ...unchecked].join("\n")), none);
  const warning: Finding = { check: "clock", level: "warn", what: "the clock says 1970", cure: "set it" };
  const warned = await render({ ...report, findings: [warning, ...findings], verdict: "ok", first: warning }, plain);
  const head = ["No problem was found, 1 warning.", "First: the clock says 1970", "  set it"];
  assert.ok(warned.endsWith(["", ...head, ...unchecked].join("\n")), warned);
  const narrow = await render({ ...report, findings, verdict: "ok", first: undefined }, { ...plain, columns: 40 });
  const wrapped = [
    "Not checked:",
    "  whether the clock follows a time",
    "  server isn't known",
    "  line till: no process has it open, as",
  ];
  assert.ok(narrow.includes(wrapped.join("\n")), narrow);
});

test("posline doctor --json prints one object with all findings", () => {
  const told = JSON.parse(renderJson(report, new Date("2026-11-20T10:00:00Z")));
  assert.deepEqual(told, { time: "2026-11-20T10:00:00.000Z", ...report });
});

test("posline doctor exits with 0, 69 or 78 by what it found, and tells on standard error what it waits for", async () => {
  for (const [verdict, code] of [
    ["ok", 0],
    ["bad", 69],
    ["config", 78],
  ] as const) {
    const out: string[] = [];
    const err: string[] = [];
    const exit = await runDoctor(
      { line: "till", json: true },
      {
        examine: async ({ wanted, progress }) => {
          assert.equal(wanted.line, "till");
          progress?.("asking bank");
          return { ...report, verdict };
        },
        look: plain,
        out: (text) => out.push(text),
        err: (text) => err.push(text),
      },
    );
    assert.equal(exit, code);
    assert.equal(JSON.parse(out.join("")).verdict, verdict);
    assert.deepEqual(err, ["asking bank ...\n"]);
  }
});

test("posline doctor lets no C1 control, direction mark or invisible character through, nor as JSON, nor while it waits", async () => {
  const frames: RedactedBytes[] = [{ direction: "received", atMs: 1, bytes: 1, hex: "41", text: evil }];
  const finding: Finding = { ...bad, what: evil, cause: evil, cure: evil, frames };
  const lines = [{ name: evil, path: evil, baudRate: 9_600, format: "8N1" }];
  const told: DoctorReport = { ...report, lines, findings: [finding], first: finding };
  assert.doesNotMatch(await render(told, plain), obeyed);
  const json = renderJson(told, new Date(0));
  assert.doesNotMatch(json, obeyed);
  assert.equal(JSON.parse(json).findings[0].what, evil);
  const err: string[] = [];
  const examine = async ({ progress }: DoctorOptions) => {
    progress?.(evil);
    return told;
  };
  await runDoctor({}, { examine, look: plain, out: () => {}, err: (text) => err.push(text) });
  assert.equal(err.length, 1);
  assert.doesNotMatch(err.join(), obeyed);
});

test("posline doctor prints each finding when it is made", async () => {
  const out: string[] = [];
  const examine = async ({ onFinding, onLine }: DoctorOptions) => {
    assert.deepEqual(out, ["this box\n"]);
    onLine?.({ name: "till", path: "/dev/ttyUSB0", baudRate: 9_600, format: "8N1" });
    onFinding?.(bad);
    assert.match(
      out.join(""),
      /^this box\n\nline till: .*\nX holder {8}\/dev\/ttyUSB0 is in use by .*\n.*do: {2}stop it: sudo kill 812\n$/,
    );
    return report;
  };
  await runDoctor({}, { examine, look: plain, out: (text) => out.push(text), err: () => {} });
  assert.match(out.join(""), /First: line till: \/dev\/ttyUSB0 is in use/);
});

test("posline doctor wraps at the terminal's width with a hanging indent, and numbers causes and cures row by row", async () => {
  const silence: Finding = {
    check: "silence",
    level: "bad",
    what: "not one byte came back, though the line was open for all of the time that an answer may take",
    cause: "1. the terminal is off, asleep or still starting; 2. the cable is not plugged in, or is of the wrong kind",
    cure: "1. switch it on; 2. check the cable",
  };
  const told: DoctorReport = { ...report, lines: [], findings: [silence], first: silence };
  const text = await render(told, { ...plain, columns: 60 });
  assert.equal(
    text.slice(0, text.indexOf("\n\n")),
    [
      ...["this box", "X silence       not one byte came back, though the line was"],
      ...["                open for all of the time that an answer may", "                take"],
      ...["                why: 1. the terminal is off, asleep or still", "                        starting"],
      ...["                     2. the cable is not plugged in, or is", "                        of the wrong kind"],
      ...["                do:  1. switch it on", "                     2. check the cable"],
    ].join("\n"),
  );
  assert.ok(
    text.split("\n").every((row) => row.length <= 60),
    text,
  );
  const narrow = await render(told, { ...plain, columns: 10 });
  assert.ok(
    narrow.split("\n").every((row) => row.length <= 60),
    "a narrower one doesn't lead to a word a row",
  );
  assert.ok(
    narrow.split("\n").some((row) => row.length > 32),
    narrow,
  );
});

test("posline doctor shows bytes of failures only, and of all frames with --frames", async () => {
  const frames: RedactedBytes[] = [{ direction: "sent", atMs: 0, bytes: 2, hex: "00 01" }];
  const answers: Finding[] = [
    { check: "answer", level: "ok", what: "bank answered", frames },
    { check: "answer", level: "note", what: "qr: 2 bytes came", frames },
  ];
  const told: DoctorReport = { ...report, lines: [], findings: answers, verdict: "ok", first: undefined };
  assert.equal((await render(told, plain)).match(/> sent 2 bytes/g)?.length, 1);
  assert.equal((await render(told, plain, { frames: true })).match(/> sent 2 bytes/g)?.length, 2);
});

test("posline doctor counts one cause once, and ends with the setting that a scan found", async () => {
  const port = { check: "port", level: "bad", cure: "sudo systemctl disable --now nginx" } as const;
  const setting = '"till": { "path": "/dev/ttyUSB0", "baudRate": 9600, "crc16": "umts" }';
  const scan: Finding = { check: "scan", level: "bad", what: "it answers at 9600 baud", cure: "use it", line: "till", setting };
  const findings: Finding[] = [{ ...port, what: "bank's port is taken" }, { ...port, what: "qr's port is taken" }, scan];
  const text = await render({ ...report, findings, first: findings[0] }, { ...plain, columns: 30 });
  assert.match(text, /^2 problems were found\.$/m);
  assert.ok(text.endsWith(`\n\n${setting}\n`), text);
});
