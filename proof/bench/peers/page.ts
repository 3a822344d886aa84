import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectDir } from "../machine.ts";

/** Tables and plots as the documentation takes them: Markdown, with pipes, and beside it the same as JSON. */

/** Where the pages go. */
export const outDir = join(projectDir, "out", "bench");

export interface Table {
  readonly caption: string;
  readonly columns: readonly string[];
  /** A cell that wasn't measured is undefined. */
  readonly rows: readonly (readonly (string | number | undefined)[])[];
}

/** Three digits of a figure, as a reader compares them: 0.123, 12.3, 123, 12,346. */
export function shown(value: number): string {
  if (!Number.isFinite(value)) return "";
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en");
  return value === 0 || Number.isInteger(value) ? String(value) : value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

function cell(value: string | number | undefined): string {
  if (value === undefined) return "";
  return (typeof value === "number" ? shown(value) : value).replaceAll("|", "\\|");
}

/** The table with its caption above. */
export function markdownOf({ caption, columns, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const numbers = columns.map((_, i) => rows.every((row) => typeof row[i] !== "string"));
  const rule = line(numbers.map((number) => (number ? "---:" : "---")));
  return [caption, "", line(columns), rule, ...rows.map((row) => line(columns.map((_, i) => cell(row[i]))))].join("\n");
}

/** What one section found. */
export interface Page {
  readonly name: string;
  readonly tables: readonly Table[];
  /** What can't be seen in the tables: what wasn't measured and why, and whether the machine was quiet. */
  readonly notes: readonly string[];
  /** SVG by file name. */
  readonly plots?: Readonly<Record<string, string>>;
}

/** Writes NAME.md, NAME.json and the plots; prints the tables too. */
export function writePage({ name, tables, notes, plots = {} }: Page): void {
  mkdirSync(outDir, { recursive: true });
  const text = [...tables.map(markdownOf), notes.map((note) => `- ${note}`).join("\n")]
    .filter((part) => part !== "")
    .join("\n\n");
  writeFileSync(join(outDir, `${name}.md`), `${text}\n`);
  writeFileSync(join(outDir, `${name}.json`), `${JSON.stringify({ tables, notes }, undefined, 2)}\n`);
  for (const [file, svg] of Object.entries(plots)) writeFileSync(join(outDir, file), svg);
  console.log(`${text}\n`);
}
