import assert from "node:assert/strict";
import { test } from "node:test";
import { durationText } from "../../src/core/duration.ts";

test("durationText() writes milliseconds below a second, seconds to a tenth above, and minutes and hours of what is long", () => {
  for (const [ms, text] of [
    [0, "0 ms"],
    [50.4, "50 ms"],
    [999, "999 ms"],
    [1_000, "1 s"],
    [1_549, "1.5 s"],
    [30_000, "30 s"],
    [600_000, "600 s"],
    [605_000, "10 min"],
    [7_140_000, "119 min"],
    [7_200_000, "2 h"],
  ] as const) {
    assert.equal(durationText(ms), text);
  }
});
