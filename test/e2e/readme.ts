import { readFileSync } from "node:fs";

/** README as the tests read it. */

export const root = new URL("../../", import.meta.url);
export const readme = readFileSync(new URL("README.md", root), "utf8");

/** The fenced blocks of a language; one in a list stands further right. */
export function blocks(language: string): string[] {
  const found = readme.matchAll(new RegExp(`^( *)\`\`\`${language}\\n([\\s\\S]*?)^\\1\`\`\``, "gm"));
  return [...found].map(([, indent = "", text = ""]) => text.replaceAll(new RegExp(`^${indent}`, "gm"), ""));
}

/** Every line that is to be pasted into a shell. */
export const commands: readonly string[] = blocks("sh").flatMap((block) => block.trim().split("\n"));

/** The programs that those lines run, each with its arguments: what a pipe joins, and without sudo. */
export const runs: readonly string[] = commands.flatMap((line) => line.split(" | ")).map((run) => run.replace(/^sudo /, ""));
