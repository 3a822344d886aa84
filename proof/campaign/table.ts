import { isKept, type Row } from "./part.ts";

/** What a campaign found, as one table. */

export type PartRows = { readonly part: string; readonly seconds: number; readonly rows: readonly Row[] };

/** Where recordings go. */
export const outDir = new URL("../../out/campaign", import.meta.url).pathname;

function shown(value: number): string {
  return Number.isInteger(value) ? value.toLocaleString("en-US") : value.toFixed(2);
}

function cellsOf(part: string, row: Row): readonly string[] {
  const { what, value, unit = "", least, most, note = "" } = row;
  const limits = [least === undefined ? [] : `≥ ${shown(least)}`, most === undefined ? [] : `≤ ${shown(most)}`].flat();
  const [limit, verdict] = limits.length === 0 ? ["", ""] : [limits.join(" "), isKept(row) ? "ok" : "MISSED"];
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
