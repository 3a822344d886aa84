import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type JournalRecord, joinOperations, readRecord, type SentRecord, writeRecord } from "../../src/journal/record.ts";
import { textBytesMax } from "../../src/journal/slot.ts";
import { outcomes } from "./records.ts";

test("writeRecord() fits into a slot whatever the till's words are, and readRecord() reads it", () => {
  const words = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.constantFrom(...["漢", "\u2028", '"', "\\", "\u0000", "\ud800", "😀"].map((character) => character.repeat(200))),
  );
  fc.assert(
    fc.property(words, words, words, fc.constantFrom(...outcomes), fc.integer(), (key, amount, status, outcome, code) => {
      const sent = { kind: "sent", timeMs: 1_700_000_000_000, requestId: "r".repeat(64), service: "fiscal" } as const;
      const written = writeRecord({
        ...sent,
        route: `/${"x".repeat(60)}`,
        key,
        amount,
        digest: "0123456789abcdef",
        device: "89abcdef",
      });
      assert.ok(Buffer.byteLength(written) <= textBytesMax, `${Buffer.byteLength(written)} bytes`);
      assert.equal(readRecord(written)?.kind, "sent");
      const ended = writeRecord({ kind: "outcome", timeMs: 1, sent: Number.MAX_SAFE_INTEGER, outcome, status, code });
      assert.ok(Buffer.byteLength(ended) <= textBytesMax);
      assert.equal(readRecord(ended)?.kind, "outcome");
    }),
  );
});

test("writeRecord() leaves out what the operation is asked by before the device that it was sent over", () => {
  const sent = {
    kind: "sent",
    timeMs: 1,
    requestId: "r",
    service: "bank",
    route: "/sale",
    digest: "d",
    device: "89abcdef",
  } as const;
  const read = readRecord(writeRecord({ ...sent, key: "漢".repeat(64), ask: { pay_id: "漢".repeat(64) } }));
  assert.ok(read?.kind === "sent");
  assert.deepEqual([read.ask, read.device], [undefined, "89abcdef"]);
});

test("writeRecord() keeps a key and an amount as they are, and neither card number nor control character", () => {
  const sent = { kind: "sent", timeMs: 0, requestId: "r", service: "bank", route: "/sale", digest: "d" } as const;
  const back = (key: string, amount?: string) => {
    const read = readRecord(writeRecord({ ...sent, key, amount }));
    return read?.kind === "sent" ? [read.key, read.amount] : undefined;
  };
  assert.deepEqual(back("pay-1", "9007199254740993"), ["pay-1", "9007199254740993"]);
  assert.deepEqual(back("4111111111111111"), ["411111******1111", undefined]);
  assert.deepEqual(back("a\u001b[2Jb"), ["a\uFFFD[2Jb", undefined]);
  assert.equal(back("k".repeat(70))?.[0], `${"k".repeat(63)}…`);
});

test("readRecord() leaves out what an operation is asked by where a question couldn't hold it: posline doesn't write that", () => {
  const start =
    '{"kind":"sent","time":"2026-01-01T00:00:00.000Z","id":"r","service":"bank","route":"/sale","key":"7","digest":"d"';
  const askIn = (field: string) => (readRecord(`${start},"ask":{"pay_id":${field}}}`) as SentRecord).ask;
  assert.deepEqual(askIn("7"), { pay_id: 7 });
  for (const field of ["1e999", "9007199254740993", "1.5", "null"]) assert.equal(askIn(field), undefined, field);
});

test("readRecord() reads all that writeRecord() keeps of an outcome and of a start", () => {
  const outcome = { kind: "outcome", timeMs: 1, sent: 7, outcome: "answered", status: "error" } as const;
  const back = (more: { readonly code: number; readonly left?: boolean }) => readRecord(writeRecord({ ...outcome, ...more }));
  assert.deepEqual(back({ code: -3, left: true }), { ...outcome, code: -3, left: true });
  assert.deepEqual(back({ code: 15, left: false }), { ...outcome, code: 15 });
  assert.deepEqual(back({ code: 2 ** 31 }), { ...outcome, code: undefined }, "no contract has such a code");
  const start = { kind: "start", timeMs: 1, version: "1.2.3" } as const;
  assert.deepEqual(readRecord(writeRecord(start)), start);
});

test("readRecord() knows no record in another text, and leaves out what a later posline may write", () => {
  for (const other of ["", "[]", "null", "{}", '{"kind":"sent"}', '{"kind":"new","time":"2026-01-01T00:00:00.000Z"}']) {
    assert.equal(readRecord(other), undefined);
  }
});

const sent = {
  kind: "sent",
  timeMs: 1,
  requestId: "r",
  service: "bank",
  route: "/sale",
  key: "K",
  amount: "1",
  digest: "d",
} as const;
const start = { kind: "start", timeMs: 1, version: "v" } as const;
const outcome = { kind: "outcome", timeMs: 1, sent: 7, outcome: "answered", status: "error", code: 44 } as const;
const begun = { kind: "begun", timeMs: 1, sent: 7, digest: "d" } as const;
const lacking = { kind: "lacking", timeMs: 1 } as const;
const settled = { kind: "settled", timeMs: 1, sent: 7, digest: "d", result: "closed", by: "operator", note: "n" } as const;

test("writeRecord() keeps each text whole up to its length, and cuts a longer one with a mark", () => {
  for (const [record, field, most] of [
    [sent, "requestId", 64],
    [sent, "service", 16],
    [sent, "route", 48],
    [sent, "key", 64],
    [sent, "amount", 32],
    [start, "version", 32],
    [outcome, "status", 16],
    [settled, "note", 100],
  ] as const) {
    const back = (text: string) =>
      Object.entries(readRecord(writeRecord({ ...record, [field]: text })) ?? {}).find(([name]) => name === field)?.[1];
    const mark = field === "amount" ? "?" : "…";
    assert.deepEqual(
      [back("1".repeat(most)), back("1".repeat(most + 1))],
      ["1".repeat(most), `${"1".repeat(most - 1)}${mark}`],
    );
  }
});

test("writeRecord() keeps what a day counts by, and leaves that out before what an operation is asked by", () => {
  const counted = { currency: "EUR", cashless: "5", rrn: "123456789012" };
  assert.deepEqual(readRecord(writeRecord({ ...sent, ...counted })), { ...sent, ...counted });
  const long = { ...sent, key: "漢".repeat(64), requestId: "r".repeat(64), ask: { terminal: "t".repeat(40) } };
  assert.deepEqual(readRecord(writeRecord({ ...long, ...counted })), readRecord(writeRecord(long)));
  assert.deepEqual((readRecord(writeRecord(long)) as SentRecord).ask, long.ask);
  assert.deepEqual(readRecord(writeRecord({ ...settled, rrn: "7" })), { ...settled, rrn: "7" });
});

test("writeRecord() keeps a code of 32 bits with its sign, and no other", () => {
  for (const [code, kept] of [
    [44, 44],
    [-29, -29],
    [2 ** 31 - 1, 2 ** 31 - 1],
    [-(2 ** 31), -(2 ** 31)],
    [2 ** 31, undefined],
    [-(2 ** 31) - 1, undefined],
    [1.5, undefined],
  ] as const) {
    const read = readRecord(writeRecord({ ...outcome, code }));
    assert.equal(read?.kind === "outcome" && read.code, kept, `${code}`);
  }
});

test("readRecord() takes no field of another type, and no record that lacks what every one has", () => {
  const changed = (record: JournalRecord, more: object) =>
    readRecord(JSON.stringify({ ...JSON.parse(writeRecord(record)), ...more }));
  for (const field of ["key", "amount"])
    assert.deepEqual(changed(sent, { [field]: 7 }), { ...sent, [field]: undefined }, field);
  assert.deepEqual(changed(sent, { device: 7 }), sent);
  assert.deepEqual(changed(sent, { digest: 7 }), { ...sent, digest: "" });
  for (const ask of [7, "T", null, []]) assert.deepEqual(changed(sent, { ask }), sent);
  assert.deepEqual(changed({ ...sent, ask: {} }, { before: { txn_id: 1 } }), { ...sent, ask: {} });
  for (const field of ["id", "service", "route"]) assert.equal(changed(sent, { [field]: 7 }), undefined, field);
  assert.deepEqual(changed(outcome, { status: 7, code: "44" }), { ...outcome, status: undefined, code: undefined });
  for (const odd of [{ begun: "yes" }, { begun: null }, { learned: 7 }, { end: "pending" }, { end: 7 }, { left: "yes" }])
    assert.deepEqual(changed(outcome, odd), outcome, JSON.stringify(odd));
  for (const odd of [{ sent: "7" }, { outcome: "maybe" }, { outcome: undefined }])
    assert.equal(changed(outcome, odd), undefined);
  assert.deepEqual(changed(start, { version: 7 }), { ...start, version: "" });
  for (const record of [sent, start, outcome, settled, begun, lacking]) {
    assert.deepEqual(changed(record, {}), record);
    for (const time of [7, "yesterday", undefined])
      assert.equal(changed(record, { time }), undefined, `${record.kind} ${time}`);
  }
  for (const odd of [{ sent: "7" }, { digest: 7 }]) {
    assert.equal(changed(begun, odd), undefined);
    assert.equal(changed(settled, odd), undefined);
  }
  for (const by of ["answer", "operator"] as const) assert.deepEqual(changed({ ...settled, by }, {}), { ...settled, by });
  const { note: _, ...unnoted } = settled;
  assert.deepEqual(changed(settled, { note: 7 }), unnoted);
});

test("readRecord() reads what an answer proved, as it was written", () => {
  for (const more of [{ begun: true, learned: "T-1" }, { begun: false }, { end: "approved" }, { left: true }] as const)
    assert.deepEqual(readRecord(writeRecord({ ...outcome, ...more })), { ...outcome, ...more });
});

test("joinOperations() says of what has no outcome that posline ended before it, where it started since", () => {
  const operations = joinOperations([
    { sequence: 1, record: start },
    { sequence: 2, record: sent },
    { sequence: 3, record: sent },
    { sequence: 4, record: { ...outcome, sent: 3 } },
    { sequence: 5, record: start },
    { sequence: 6, record: sent },
  ]);
  assert.deepEqual(
    operations.map(({ sequence, lost }) => [sequence, lost]),
    [
      [2, true],
      [3, false],
      [6, false],
    ],
  );
});

test("joinOperations() takes it back that an operation failed, and nothing else, once the terminal has it", () => {
  const joined = (...after: readonly JournalRecord[]) => {
    const records = [sent, ...after].map((record, at) => ({ sequence: 7 + at, record }));
    const [operation] = joinOperations(records);
    return [operation?.isFound, operation?.settled?.result];
  };
  const failed = { ...settled, result: "failed" } as const;
  assert.deepEqual(joined(failed), [false, "failed"]);
  assert.deepEqual(joined(failed, begun), [true, undefined]);
  assert.deepEqual(joined(begun, failed), [true, "failed"]);
  assert.deepEqual(joined(settled, begun), [true, "closed"]);
  assert.deepEqual(joined({ ...begun, digest: "another" }), [false, undefined]);
});
