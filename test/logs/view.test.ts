import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { lineKeptBytesMax } from "../../src/logs/line-splitter.ts";
import { withoutColours } from "../../src/logs/terminal-text.ts";
import { LogView } from "../../src/logs/view.ts";
import { evil, obeyed } from "../support/evil-text.ts";
import { checksum, late, notSent, sale, shown, shownOf, stamp, trace, unknown } from "./sample.ts";

const keys = [
  "time",
  "level",
  "msg",
  "outcome",
  "service",
  "route",
  "key",
  "line",
  "state",
  "reason",
  "bytes",
  "head",
  "crcGot",
];
const value = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("exchange", "unknown", "answered", "warn", stamp.time, "bank", "/sale", "checksum", "fee8"),
  fc.jsonValue(),
);
/** Objects that are records of the log, or nearly. */
const record = fc
  .dictionary(
    fc.oneof(fc.constantFrom(...keys, "message", "host", "error", "leftOut", "left"), fc.string({ unit: "binary" })),
    value,
  )
  .chain((any) => fc.constantFrom(any, { ...stamp, msg: "exchange", outcome: "unknown", ...any }, { ...checksum, ...any }));
const line = fc.oneof(
  record.map((each) => JSON.stringify(each)),
  fc.string({ unit: "binary" }),
);
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((each) => Buffer.from(each)),
  fc.array(line, { maxLength: 5 }).map((lines) => Buffer.from(lines.join("\n"))),
);

/** Line ends apart, what commands a terminal: C0, DEL and C1, and what turns the direction of text round. */
const commands = /[^\P{Cc}\n]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

test("LogView never throws and never lets a control character through, whatever bytes come", () => {
  fc.assert(
    fc.property(bytes, fc.boolean(), fc.boolean(), fc.option(fc.nat(3), { nil: undefined }), (any, colour, json, last) => {
      const text = shownOf([any], { colour, json, last, criteria: { grep: "" } });
      const rest = withoutColours(text);
      assert.ok(colour || rest === text);
      assert.doesNotMatch(rest, commands);
    }),
    { numRuns: 500 },
  );
});

test("LogView shows the same however the bytes are cut", () => {
  const text = Buffer.from([sale, unknown, checksum, trace].map((each) => JSON.stringify(each)).join("\n"));
  const whole = shownOf([text]);
  fc.assert(
    fc.property(fc.array(fc.nat(text.length), { maxLength: 20 }), (cuts) => {
      const at = [0, ...cuts.toSorted((a, b) => a - b), text.length];
      const chunks = at.slice(1).map((end, n) => text.subarray(at[n], end));
      assert.equal(shownOf(chunks), whole);
    }),
    { numRuns: 100 },
  );
});

test("LogView finds a record behind half a line, as a power cut leaves it, by its outcome too", () => {
  const [first, second] = [JSON.stringify(sale), JSON.stringify(unknown)];
  for (const half of [
    first.slice(0, 90),
    "\0".repeat(50),
    `${first.slice(0, 30)}<4>`,
    "trace of a crash",
    first,
    '{"a":{"level":"',
  ]) {
    const line = `${half}${second}`;
    assert.equal(shown([line], { json: true }), half === first ? `${first}\n${second}\n` : `${second}\n`, half);
    assert.equal(shown([line], { criteria: { outcome: "unknown" } }), shown([unknown]), half);
  }
  // What isn't posline's stays whole.
  assert.equal(shown(['{"a":{"level":"info"}}']), '{"a":{"level":"info"}}\n');
});

test("LogView finds a record behind zeros, as a power cut leaves them in a file, however many, and shows none of them", () => {
  const [first, second] = [JSON.stringify(sale), JSON.stringify(unknown)];
  for (const zeros of [1, 511, 4_096, 70_000, 300_000]) {
    const bytes = Buffer.from(`${first}\n${"\0".repeat(zeros)}${second}\n`);
    const chunks = Array.from({ length: Math.ceil(bytes.length / 4_000) }, (_, at) =>
      bytes.subarray(at * 4_000, (at + 1) * 4_000),
    );
    assert.equal(shownOf(chunks), shown([sale, unknown]), `${zeros}`);
    // Also behind half a line.
    const half = shown([`trace of a crash${"\0".repeat(zeros)}${second}`], { json: true });
    assert.equal(half, `${second}\n`, `${zeros}`);
  }
});

test("LogView --json gives posline's own lines as they were, but for the priority", () => {
  const odd = `{"level":"info", "time":"${stamp.time}","msg":"x","n":1.00,"escaped":"\\u0041","key":"\u009b31m"}`;
  assert.equal(shown([`<4>${odd}`, trace, sale, ""], { json: true, terminal: false }), `${odd}\n${JSON.stringify(sale)}\n`);
});

test("LogView --json on a terminal escapes what would command it, and keeps the value", () => {
  const key = "\u009b31m\u202e\u007fé";
  const text = shown([{ ...sale, key }], { json: true });
  assert.doesNotMatch(text, commands);
  assert.deepEqual(JSON.parse(text), { ...sale, key });
});

test("LogView with a number of lines shows the last that are wanted, then whatever comes", () => {
  const out: string[] = [];
  const view = new LogView({
    criteria: { service: "bank" },
    last: 2,
    json: false,
    colour: false,
    terminal: false,
    out: (each) => out.push(each.toString()),
  });
  const push = (each: object) => view.push(Buffer.from(`${JSON.stringify(each)}\n`));
  for (let n = 1; n <= 500; n++) {
    push({ ...sale, key: `K-${n}` });
    push(notSent);
  }
  assert.deepEqual(out, []);
  view.caughtUp();
  const keysOf = (texts: readonly string[]) => texts.join("").match(/K-\d+/g);
  assert.deepEqual(keysOf(out.splice(0)), ["K-499", "K-500"]);
  push({ ...sale, key: "K-501" });
  push(late);
  assert.deepEqual(keysOf(out), ["K-501"]);
});

test("LogView with no lines shows none of what is there", () => {
  assert.equal(shown([sale, unknown], { last: 0 }), "");
  assert.equal(shown([sale, unknown], { last: 5 }), shown([sale, unknown]));
});

test("LogView keeps a bounded part of a line that doesn't end, and says how much more there was", () => {
  const chunk = Buffer.alloc(1024 * 1024, "\u0000x");
  const text = shownOf([...Array.from({ length: 20 }, () => chunk), Buffer.from(`\n${JSON.stringify(sale)}\n`)]);
  const [first = "", ...rest] = text.split("\n");
  assert.equal(
    first.length,
    lineKeptBytesMax + `… (${20 * chunk.length - lineKeptBytesMax} more bytes without a line end)`.length,
  );
  assert.ok(rest.some((each) => each.includes("A-1")));
});

test("LogView.endLine() ends a part of a line, so that what follows stands for itself", () => {
  const out: string[] = [];
  const options = { criteria: {}, last: undefined, json: false, colour: false, terminal: false };
  const view = new LogView({ ...options, out: (each) => out.push(each.toString()) });
  view.push(Buffer.from('{"level":"inf'));
  view.endLine();
  view.push(Buffer.from(`${JSON.stringify(sale)}\n`));
  assert.equal(out[0], '{"level":"inf\n');
  assert.match(String(out[1]), /A-1/);
});

test("LogView lets no C1 control, direction mark or invisible character of a key, a message or a trace through", () => {
  const lines = [
    { ...sale, key: evil },
    { ...notSent, message: evil },
    { ...late, reason: evil, line: evil },
  ];
  for (const json of [false, true]) {
    const text = shown([...lines, `at ${evil}`], { json });
    assert.doesNotMatch(withoutColours(text), obeyed);
    if (json) assert.equal(JSON.parse(text.split("\n")[0] ?? "").key, evil);
  }
});
