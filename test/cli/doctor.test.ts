import assert from "node:assert/strict";
import { test } from "node:test";
import { render, renderJson, runDoctor } from "../../src/cli/doctor.ts";
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
      what: "the terminal isn't asked",
      line: "till",
      frames: [{ direction: "sent", atMs: 0, bytes: 2, hex: "00 01", text: "/x" }],
    },
  ],
  verdict: "bad",
  first: bad,
};
const plain = { unicode: false, colour: false };

test("posline doctor shows the box, then each line, with why and what to do under each finding, and what comes first", () => {
  assert.equal(
    render(report, plain),
    [
      "this box",
      "+ node          Node 20.20.2",
      "! clock         the clock says 1970",
      "                why: no battery",
      "                do:  set it",
      "",
      "line till: /dev/ttyUSB0, 115200 8N1",
      "X holder        /dev/ttyUSB0 is in use by process 812 (minicom)",
      "                do:  stop it: sudo kill 812",
      "- answer        the terminal isn't asked",
      "                > sent 2 bytes at 0 ms",
      "                  00 01",
      "                  /x",
      "",
      "1 thing stands in the way, 1 warning.",
      "First: line till: /dev/ttyUSB0 is in use by process 812 (minicom)",
      "  stop it: sudo kill 812",
      "Nothing was changed: all that was sent are the questions above, which only read.",
      "",
    ].join("\n"),
  );
});

test("posline doctor uses signs and colours only where the terminal knows them", () => {
  const text = render(report, { unicode: true, colour: true });
  assert.ok(text.includes("\u001b[32m✔\u001b[0m node"));
  assert.ok(text.includes("\u001b[31m✘\u001b[0m holder"));
  assert.match(text, /→ sent/);
  assert.doesNotMatch(render(report, plain), /[^\x20-\x7e\n]/);
});

test("posline doctor lets no control character of a device through", () => {
  const evil = { ...bad, what: "held by \u001b[2J", cause: "\u0007", cure: "\u001b]0;x\u0007" };
  const text = render({ ...report, findings: [evil], first: evil }, plain);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: their absence is what is tested
  assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f]/);
});

test("posline doctor says that nothing stands in the way, and that nothing was sent", () => {
  const text = render({ ...report, findings: [], verdict: "ok", first: undefined }, plain);
  assert.match(text, /\nNothing stands in the way\.\nNothing was changed, and nothing was sent\.\n$/);
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
  assert.doesNotMatch(render(told, plain), obeyed);
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
