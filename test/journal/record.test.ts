import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readRecord, type SentRecord, writeRecord } from "../../src/journal/record.ts";
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
