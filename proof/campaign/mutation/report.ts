import { dirname } from "node:path";
import type { NumberedMutant } from "./build.ts";
import { equivalentOf } from "./equivalents.ts";

export interface Result {
  readonly mutant: NumberedMutant;
  /** `unreached`: no test runs the code at all, which counts as survived. */
  readonly verdict: "killed" | "timeout" | "survived" | "unreached";
  /** The test that failed. */
  readonly by: string;
  readonly ms: number;
}

interface FolderScore {
  readonly folder: string;
  readonly mutants: number;
  readonly equivalent: number;
  readonly sampled: number;
  readonly killed: number;
  readonly timeout: number;
  readonly survived: number;
  readonly unreached: number;
  /** Killed of those sampled, in percent: a mutant that never ends is noticed too. */
  readonly score: number;
  readonly processS: number;
}

interface Circumstances {
  readonly seed: number;
  readonly seconds: number;
  readonly controls: number;
  readonly failedControls: readonly string[];
}

export interface Summary extends Circumstances {
  readonly folders: readonly FolderScore[];
  readonly survivors: readonly string[];
  readonly results: readonly Result[];
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > 90 ? `${line.slice(0, 89)}…` : line;
}

/** Counts the results by folder. */
export function report(all: readonly NumberedMutant[], results: readonly Result[], circumstances: Circumstances): Summary {
  const folders = [...new Set(all.map(({ file }) => dirname(file)))].map((folder) => {
    const mutants = all.filter(({ file }) => dirname(file) === folder);
    const its = results.filter(({ mutant }) => dirname(mutant.file) === folder);
    const count = (verdict: Result["verdict"]) => its.filter((each) => each.verdict === verdict).length;
    const noticed = count("killed") + count("timeout");
    return {
      folder,
      mutants: mutants.length,
      equivalent: mutants.filter((mutant) => equivalentOf(mutant) !== undefined).length,
      sampled: its.length,
      killed: count("killed"),
      timeout: count("timeout"),
      survived: count("survived"),
      unreached: count("unreached"),
      score: its.length === 0 ? 0 : Math.round((1_000 * noticed) / its.length) / 10,
      processS: Math.round(its.reduce((sum, { ms }) => sum + ms, 0) / 1_000),
    };
  });
  const survivors = results
    .filter(({ verdict }) => verdict === "survived" || verdict === "unreached")
    .sort((one, other) => one.mutant.id - other.mutant.id)
    .map(({ mutant: { file, line, from, to }, verdict }) => {
      const change = to === "" ? `without ${oneLine(from)}` : `${oneLine(from)} → ${oneLine(to)}`;
      return `${file}:${line}: ${change}${verdict === "unreached" ? " (reached by no test)" : ""}`;
    });
  return { ...circumstances, folders, survivors, results };
}

/** The survivors, then a table by folder. */
export function printReport({ folders, survivors, seed, seconds, controls, failedControls }: Summary): void {
  for (const survivor of survivors) console.log(survivor);
  const rows = folders.map(
    ({ folder, mutants, equivalent, sampled, killed, timeout, survived, unreached, score, processS }) =>
      `| ${[folder, mutants, equivalent, sampled, killed, timeout, survived, unreached, `${score} %`, processS].join(" | ")} |`,
  );
  console.log("\n| folder | mutants | equivalent | sampled | killed | timeout | survived | unreached | score | process s |");
  console.log(`|---|---|---|---|---|---|---|---|---|---|\n${rows.join("\n")}`);
  console.log(`\nseed ${seed}, ${Math.round(seconds)} s; ${controls} control runs, ${failedControls.length} failed`);
  for (const failed of failedControls) console.log(`control failed: ${failed}`);
}
