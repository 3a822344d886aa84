import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DurationHistogram, durationBoundsMs } from "../../src/admin/duration-histogram.ts";

test("DurationHistogram counts each duration once, in the first bound that it doesn't exceed (property)", () => {
  const edges = durationBoundsMs.flatMap((bound) => [bound, bound + 0.001, bound - 0.001]);
  const durations = fc.array(fc.oneof(fc.constantFrom(...edges), fc.double({ min: 0, max: 500_000, noNaN: true })));
  fc.assert(
    fc.property(durations, (all) => {
      const histogram = new DurationHistogram();
      for (const ms of all) histogram.add(ms);
      const upTo = durationBoundsMs.map((bound) => all.filter((ms) => ms <= bound).length);
      assert.deepEqual(histogram.cumulative(), [...upTo, all.length]);
      const sum = all.reduce((total, ms) => total + ms, 0);
      assert.ok(Math.abs(histogram.sumMs - sum) < 1e-6 * Math.max(1, sum));
    }),
  );
});

test("durationBoundsMs rise, and reach the two minutes that a terminal may take for a sale", () => {
  assert.deepEqual(
    durationBoundsMs.toSorted((one, other) => one - other),
    durationBoundsMs,
  );
  assert.equal(durationBoundsMs.at(-1), 120_000);
});
