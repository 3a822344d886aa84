import assert from "node:assert/strict";
import { test } from "node:test";
import { durationText } from "../../src/core/duration.ts";

test("durationText() writes milliseconds below a second, and seconds to a tenth above", () => {
  for (const [ms, text] of [
    [0, "0 ms"],
    [50.4, "50 ms"],
    [999, "999 ms"],
    [1_000, "1 s"],
    [1_549, "1.5 s"],
    [30_000, "30 s"],
    [600_000, "600 s"],
  ] as const) {
    assert.equal(durationText(ms), text);
  }
});
