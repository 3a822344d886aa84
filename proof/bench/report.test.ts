import assert from "node:assert/strict";
import { test } from "node:test";
import { atLeast, atMost, type Bound, inParts, lowerQuartile, median, movedPercent, Report, verdictOf } from "./report.ts";

/** A row whose ratio is `value`, measured beside a harness that took this long in each round. */
function row(value: number, bound: Bound | undefined, rounds?: readonly number[]) {
  const report = new Report();
  const floor = rounds === undefined ? {} : { floor: inParts(rounds, lowerQuartile) };
  report.compare("roundtrip", "p50", { ours: value, theirs: 1, unit: "µs", ...floor }, bound);
  const [added] = report.rows;
  assert.ok(added !== undefined);
  return { row: added, report };
}

/** Sixteen rounds, of which each fourth has one loud one, as on a machine that does little else. */
const steady = Array.from({ length: 16 }, (_, round) => (round % 4 === 3 ? 180 : 100 + (round % 3)));

/** The same machine, which had something else to do in the run's third quarter. */
const disturbed = steady.map((us, round) => (round >= 8 && round < 12 ? us * 1.2 : us));

test("verdictOf() judges a row by its bound while the harness alone takes what it took", () => {
  assert.equal(verdictOf(row(1.4, atMost(1.5), steady).row), "ok");
  assert.equal(verdictOf(row(1.6, atMost(1.5), steady).row), "MISSED");
  assert.equal(verdictOf(row(1.7, atLeast(1.8), steady).row), "MISSED");
  assert.equal(verdictOf(row(1.6, atMost(1.5)).row), "MISSED", "without a floor");
  assert.equal(verdictOf(row(1.6, undefined, disturbed).row), undefined, "without a bound");
});

test("verdictOf() finds a row too noisy to judge, kept or missed, when the harness alone moved by more than 15 %", () => {
  for (const value of [1.4, 1.6]) assert.equal(verdictOf(row(value, atMost(1.5), disturbed).row), "too noisy to judge");
  const moved = (by: number) => steady.map((us, round) => (round < 12 ? us : us * by));
  assert.equal(verdictOf(row(1.4, atMost(1.5), moved(1.14)).row), "ok");
  assert.equal(verdictOf(row(1.4, atMost(1.5), moved(1.17)).row), "too noisy to judge");
});

test("inParts() is what a run's quarters came to, and a short run's halves, with every round in one of them", () => {
  const rounds = Array.from({ length: 31 }, (_, round) => round);
  assert.deepEqual(
    inParts(rounds, (part) => part.length).reduce((sum, n) => sum + n),
    31,
  );
  assert.deepEqual(inParts(rounds, median), [3.5, 11.5, 19, 26.5]);
  assert.deepEqual(inParts([1, 2, 5, 7], median), [1.5, 6]);
  assert.deepEqual(inParts([1], median), [1]);
  assert.deepEqual(inParts([], median), []);
});

test("movedPercent() is how far a floor's parts are apart", () => {
  assert.equal(movedPercent([]), 0);
  assert.equal(movedPercent([100]), 0);
  assert.ok(Math.abs(movedPercent([110, 100, 125, 105]) - 25) < 1e-9);
  assert.ok(movedPercent(inParts(steady, lowerQuartile)) < 3, "a loud round now and then moves nothing");
});

test("Report says in its table that a row was too noisy to judge, and counts it neither as kept nor as missed", () => {
  const { report } = row(1.6, atMost(1.5), disturbed);
  assert.match(report.table(), /≤ 1\.5x {2}too noisy to judge$/m);
  assert.doesNotMatch(report.table(), /\bok\b|MISSED/);
  assert.deepEqual(report.rowsThat("MISSED"), []);
  assert.equal(report.rowsThat("too noisy to judge").length, 1);
});
