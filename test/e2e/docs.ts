import { readdirSync, readFileSync } from "node:fs";

/** The documentation as the tests read it: README, the two pages beside it, and those of docs/. */

export const root = new URL("../../", import.meta.url);

const paths = [
  ...["README.md", "CONTRIBUTING.md", "SECURITY.md"],
  ...readdirSync(new URL("docs", root), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

/** The text of every page, by its path in the project. */
export const pages: ReadonlyMap<string, string> = new Map(
  paths.map((path) => [path, readFileSync(new URL(path, root), "utf8")]),
);

/** All pages as one text, for what may stand in any of them. */
export const documentation = [...pages.values()].join("\n");

/**
 * The text of one page.
 * @throws Error when there is no such page.
 */
export function page(path: string): string {
  const text = pages.get(path);
  if (text === undefined) throw new Error(`Cannot read ${path}: there is no such page`);
  return text;
}

/** The fenced blocks of a language; one in a list stands further right. */
export function blocks(language: string, text = documentation): string[] {
  const found = text.matchAll(new RegExp(`^( *)\`\`\`${language}\\n([\\s\\S]*?)^\\1\`\`\``, "gm"));
  return [...found].map(([, indent = "", block = ""]) => block.replaceAll(new RegExp(`^${indent}`, "gm"), ""));
}

/** Every line that is to be pasted into a shell. */
export const commands: readonly string[] = blocks("sh").flatMap((block) => block.trim().split("\n"));

/** The programs that those lines run, each with its arguments: what a pipe joins, and without sudo. */
export const runs: readonly string[] = commands.flatMap((line) => line.split(" | ")).map((run) => run.replace(/^sudo /, ""));
