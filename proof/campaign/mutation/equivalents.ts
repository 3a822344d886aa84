import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type NumberedMutant, root } from "./build.ts";

/** A mutant that no test can tell from the original, by nature, with the reason. */
export interface Equivalent {
  readonly file: string;
  /** The source's line, trimmed, where it begins: numbers of lines don't last. */
  readonly line: string;
  readonly from: string;
  /** What it becomes; `*` for each change of `from`. */
  readonly to: string;
  readonly reason: string;
}

// Written by hand, and checked by the test beside this folder: each entry must fit a mutant.
export const equivalents = JSON.parse(
  readFileSync(new URL("./equivalents.json", import.meta.url), "utf8"),
) as readonly Equivalent[];

const linesByFile = new Map<string, readonly string[]>();

/** The line of source in which a mutant begins, trimmed. */
export function sourceLine({ file, line }: NumberedMutant): string {
  const lines = linesByFile.get(file) ?? readFileSync(join(root, file), "utf8").split("\n");
  linesByFile.set(file, lines);
  return lines[line - 1]?.trim() ?? "";
}

/** The entry that explains this mutant. */
export function equivalentOf(mutant: NumberedMutant): Equivalent | undefined {
  return equivalents.find(
    ({ file, line, from, to }) =>
      file === mutant.file && line === sourceLine(mutant) && from === mutant.from && (to === "*" || to === mutant.to),
  );
}
