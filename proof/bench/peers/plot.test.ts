import assert from "node:assert/strict";
import { test } from "node:test";
import { plotSvg } from "./plot.ts";

const plot = { title: "a < b", x: "callers", y: "µs" };

/** The places of a plot's dots, in pixels. */
function dots(svg: string): (readonly [number, number])[] {
  return [...svg.matchAll(/<circle cx="([\d.]+)" cy="([\d.]+)"/g)].map(([, x, y]) => [Number(x), Number(y)]);
}

test("plotSvg() places equal ratios at equal distances, larger values right and up, all within the picture", () => {
  const points = [
    [1, 10],
    [10, 100],
    [100, 1000],
  ] as const;
  const svg = plotSvg({ ...plot, series: [{ name: "p50", points }] });
  const [first, second, third] = dots(svg);
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  assert.ok(Math.abs(second[0] - first[0] - (third[0] - second[0])) < 0.2, "x");
  assert.ok(Math.abs(second[1] - first[1] - (third[1] - second[1])) < 0.2, "y");
  assert.ok(first[0] < third[0] && first[1] > third[1]);
  for (const [x, y] of dots(svg)) assert.ok(x >= 0 && x <= 640 && y >= 0 && y <= 360);
});

test("plotSvg() escapes its words, names each series, and refers to nothing outside", () => {
  const series = ["one", "a & b"].map((name) => ({ name, points: [[1, 1]] as const }));
  const svg = plotSvg({ ...plot, series });
  assert.match(svg, />a &lt; b</);
  assert.match(svg, />one</);
  assert.match(svg, />a &amp; b</);
  assert.doesNotMatch(svg, /<script|href|url\(/);
  assert.equal((svg.match(/<text/g) ?? []).length, (svg.match(/<\/text>/g) ?? []).length);
});

test("plotSvg() refuses what has no place on a logarithmic axis, and a plot of nothing", () => {
  for (const point of [
    [0, 1],
    [1, 0],
    [1, -1],
    [Number.NaN, 1],
  ] as const) {
    assert.throws(() => plotSvg({ ...plot, series: [{ name: "p50", points: [point] }] }), RangeError);
  }
  assert.throws(() => plotSvg({ ...plot, series: [] }), /there are no points/);
});
