import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isKept, type Row } from "./part.ts";

/** What a campaign found: one table, the same as JSON, and plots. */

export interface PartRows {
  readonly part: string;
  readonly seconds: number;
  readonly rows: readonly Row[];
}

/** Where JSON, plots and recordings go. */
export const outDir = new URL("../../out/campaign", import.meta.url).pathname;

function shown(value: number): string {
  return Number.isInteger(value) ? value.toLocaleString("en-US") : value.toFixed(2);
}

function cellsOf(part: string, row: Row): readonly string[] {
  const { what, value, unit, bound, note = "" } = row;
  const limit = bound === undefined ? "" : `${bound.side === "least" ? "≥" : "≤"} ${shown(bound.value)}`;
  const verdict = bound === undefined ? "" : isKept(row) ? "ok" : "MISSED";
  return [part, what, `${shown(value)}${unit === "" ? "" : ` ${unit}`}`, limit, verdict, note];
}

export function tableOf(all: readonly PartRows[]): string {
  const lines = [
    ["part", "what", "value", "bound", "", ""],
    ...all.flatMap(({ part, rows }) => rows.map((row) => cellsOf(part, row))),
  ];
  const widths = [0, 1, 2, 3, 4, 5].map((i) => Math.max(...lines.map((line) => (line[i] ?? "").length)));
  const padded = (cell: string, i: number) =>
    i === 2 || i === 3 ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0);
  return lines.map((line) => line.map(padded).join("  ").trimEnd()).join("\n");
}

/** Writes results.json and a plot for each row that has one. */
export function writeOut(all: readonly PartRows[], settings: object, folder: string = outDir): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "results.json"), `${JSON.stringify({ ...settings, parts: all }, undefined, 2)}\n`);
  for (const { part, rows } of all) {
    for (const { what, plot } of rows) {
      if (plot === undefined || plot.points.length < 2) continue;
      const name = `${part}-${what.replace(/[^a-z0-9]+/gi, "-").toLowerCase()}.svg`;
      writeFileSync(join(folder, name), svgOf(what, plot));
    }
  }
}

const size = { width: 720, height: 320, left: 80, right: 20, top: 36, bottom: 44 } as const;

/** One line in a frame with its extremes as labels: it must be readable in a pull request, and need nothing. */
function svgOf(title: string, { x, y, points }: NonNullable<Row["plot"]>): string {
  const xs = points.map(([each]) => each);
  const ys = points.map(([, each]) => each);
  const [xMin, xMax, yMax] = [Math.min(...xs), Math.max(...xs), Math.max(...ys, Number.MIN_VALUE)];
  const { width, height, left, right, top, bottom } = size;
  const atX = (value: number) => left + ((value - xMin) / Math.max(xMax - xMin, Number.MIN_VALUE)) * (width - left - right);
  const atY = (value: number) => height - bottom - (value / yMax) * (height - top - bottom);
  const line = points.map(([px, py]) => `${atX(px).toFixed(1)},${atY(py).toFixed(1)}`).join(" ");
  const label = (lx: number, ly: number, anchor: string, text: string) =>
    `<text x="${lx}" y="${ly}" text-anchor="${anchor}">${escaped(text)}</text>`;
  const base = height - bottom;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="white"/>`,
    `<path d="M${left} ${top}V${base}H${width - right}" fill="none" stroke="#888"/>`,
    `<polyline points="${line}" fill="none" stroke="#0b62a4" stroke-width="2"/>`,
    label(left, 20, "start", title),
    label(left - 6, top + 4, "end", shown(yMax)),
    label(left - 6, base, "end", "0"),
    label(left - 6, (top + base) / 2, "end", y),
    label(left, base + 16, "middle", shown(xMin)),
    label(width - right, base + 16, "end", shown(xMax)),
    label((left + width) / 2, base + 32, "middle", x),
    "</svg>\n",
  ].join("\n");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
