import { spawnSync } from "node:child_process";

/** Options of tests that need these programs: where one is missing they are skipped, and it is named. */
export function needs(...programs: readonly string[]): { readonly skip: string | false } {
  const missing = programs.filter((program) => spawnSync(program, ["--version"]).error !== undefined);
  return { skip: missing.length > 0 && `there is no ${missing.join(", ")} here` };
}
