import assert from "node:assert/strict";
import { test } from "node:test";
import { type LineView, summaryOf } from "../../src/process/summary.ts";

const line = (state: LineView["state"], name = "till", reason = "why"): LineView => ({ name, state, reason });

test("summaryOf counts lines by how they do, and says the reason of the first that isn't up", () => {
  assert.equal(summaryOf([line("idle")]), "1 line up");
  assert.equal(summaryOf([line("idle"), line("awaiting"), line("open")]), "3 lines up");
  assert.equal(summaryOf([line("idle"), line("idle"), line("recovering", "qr")]), "2 lines up, 1 recovering (qr: why)");
  assert.equal(
    summaryOf([line("recovering", "a"), line("down", "b", "there is no device"), line("idle")]),
    "1 line up, 1 recovering, 1 down (b: there is no device)",
  );
  assert.equal(summaryOf([line("down")]), "1 down (till: why)");
  assert.equal(summaryOf([]), "0 lines up");
});

test("summaryOf says of clean lines which terminal is not heard, after what is down", () => {
  const unheard = { ...line("idle", "b"), unheard: "not one byte comes back" };
  assert.equal(summaryOf([line("idle"), unheard]), "2 lines up (b: not one byte comes back)");
  assert.equal(summaryOf([unheard, line("down", "c", "there is no device")]), "1 line up, 1 down (c: there is no device)");
});
