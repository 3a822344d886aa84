import { writeFileSync } from "node:fs";
import { cpus, release } from "node:os";

/** What was measured, against what, and whether it keeps its bound: collected by the sections, printed as one table. */

export type SectionName =
  | "framers"
  | "roundtrip"
  | "line"
  | "large"
  | "start"
  | "growth"
  | "nodes"
  | "isolation"
  | "watching"
  | "peers"
  | "late"
  | "cost"
  | "fleet";

/** The judged figure must be at least or at most this. */
export type Bound = { readonly side: "least" | "most"; readonly value: number };

/** One line of the table. */
export interface Row {
  readonly section: SectionName;
  readonly what: string;
  /** The two figures side by side, in `unit`; undefined where there is only one. */
  readonly ours: number | undefined;
  readonly theirs: number | undefined;
  readonly unit: string;
  /** The figure that the bound judges: a ratio, or `ours` itself. */
  readonly judged: { readonly value: number; readonly unit: "x" | "%" | "" } | undefined;
  readonly bound: Bound | undefined;
  /** What the harness alone came to in each part of the run; where it moved, the row isn't judged. */
  readonly floor?: readonly number[];
}

/** A floor that moved by more than this, in %, was moved by something else that the machine did, and so was all beside it. */
const floorMovedMost = 15;

export type Verdict = "ok" | "MISSED" | "too noisy to judge";

export function atLeast(value: number): Bound {
  return { side: "least", value };
}

export function atMost(value: number): Bound {
  return { side: "most", value };
}

/** What the row came to; undefined where it has no bound. */
export function verdictOf({ bound, judged, floor = [] }: Row): Verdict | undefined {
  if (bound === undefined || judged === undefined) return undefined;
  if (movedPercent(floor) > floorMovedMost) return "too noisy to judge";
  const kept = bound.side === "least" ? judged.value >= bound.value : judged.value <= bound.value;
  return kept ? "ok" : "MISSED";
}

/** How far a floor's parts are apart, in % of the least. */
export function movedPercent(floor: readonly number[]): number {
  return floor.length < 2 ? 0 : 100 * (Math.max(...floor) / Math.min(...floor) - 1);
}

/** What the rounds of a run came to, part by part: by quarters, a short run by halves. */
export function inParts(rounds: readonly number[], figure: (values: readonly number[]) => number): number[] {
  const parts = Math.min(rounds.length < 16 ? 2 : 4, rounds.length);
  const border = (part: number) => Math.round((part * rounds.length) / parts);
  return Array.from({ length: parts }, (_, part) => figure(rounds.slice(border(part), border(part + 1))));
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/**
 * The value that a quarter of the rounds stayed below: what a timing is when the machine leaves it alone. For timings that have
 * two modes by where the kernel put a wake-up, where a median is a matter of luck.
 */
export function lowerQuartile(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[(sorted.length - 1) >> 2] ?? Number.NaN;
}

function shown(value: number | undefined, unit: string): string {
  if (value === undefined) return "";
  const digits = Math.abs(value) >= 1000 ? 0 : Math.abs(value) >= 100 ? 1 : 2;
  return `${value.toFixed(digits)}${unit === "" || unit === "%" || unit === "x" ? unit : ` ${unit}`}`;
}

function cells(row: Row): string[] {
  const unit = row.judged?.unit ?? "";
  const bound = row.bound === undefined ? "" : `${row.bound.side === "least" ? "≥" : "≤"} ${row.bound.value}${unit}`;
  return [
    row.section,
    row.what,
    shown(row.ours, row.unit),
    shown(row.theirs, row.unit),
    shown(row.judged?.value, unit),
    bound,
    verdictOf(row) ?? "",
  ];
}

export class Report {
  readonly rows: Row[] = [];
  /** What could not be measured, and why. */
  readonly skipped: { readonly section: SectionName; readonly why: string; readonly failure: boolean }[] = [];

  add(row: Row): void {
    this.rows.push(row);
  }

  /** Two medians measured side by side; `ratio` is ours ÷ theirs, or theirs ÷ ours when the bound is on "times faster". */
  compare(
    section: SectionName,
    what: string,
    figures: {
      readonly ours: number;
      readonly theirs: number;
      readonly unit: string;
      readonly faster?: boolean;
      readonly floor?: readonly number[];
    },
    bound: Bound | undefined,
  ): void {
    const { ours, theirs, unit, floor = [] } = figures;
    const value = figures.faster === true ? theirs / ours : ours / theirs;
    this.add({ section, what, ours, theirs, unit, judged: { value, unit: "x" }, bound, floor });
  }

  /** One figure, judged by itself when it has a bound. */
  figure(section: SectionName, what: string, ours: number, unit: string, bound: Bound | undefined): void {
    const judged = bound === undefined ? undefined : { value: ours, unit: unit === "%" ? ("%" as const) : ("" as const) };
    this.add({ section, what, ours, theirs: undefined, unit, judged, bound });
  }

  /** A figure of another program alone, for orientation. */
  baseline(section: SectionName, what: string, theirs: number, unit: string): void {
    this.add({ section, what, ours: undefined, theirs, unit, judged: undefined, bound: undefined });
  }

  /** Something that this machine can't measure; with `failure`, something that it should have measured. */
  skip(section: SectionName, why: string, failure = false): void {
    this.skipped.push({ section, why, failure });
    console.error(`bench ${section}: skipped: ${why}`);
  }

  /** The rows that came to this. */
  rowsThat(verdict: Verdict): Row[] {
    return this.rows.filter((row) => verdictOf(row) === verdict);
  }

  table(): string {
    const lines = [["section", "what", "ours", "theirs", "ratio", "bound", ""], ...this.rows.map(cells)];
    const widths = [0, 1, 2, 3, 4, 5, 6].map((i) => Math.max(...lines.map((line) => (line[i] ?? "").length)));
    const left = (i: number) => i < 2 || i > 4;
    return lines
      .map((line) => line.map((cell, i) => (left(i) ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join("  "))
      .map((line) => line.trimEnd())
      .join("\n");
  }

  write(path: string, mode: string): void {
    const machine = {
      node: process.version,
      arch: process.arch,
      kernel: release(),
      cpus: cpus().length,
      cpu: cpus()[0]?.model,
    };
    const rows = this.rows.map((row) => ({ ...row, verdict: verdictOf(row) }));
    writeFileSync(path, `${JSON.stringify({ mode, machine, rows, skipped: this.skipped }, undefined, 2)}\n`);
  }
}

/** What every section is given. */
export interface Bench {
  readonly report: Report;
  /** Measure less, for about a minute in all. */
  readonly short: boolean;
}
