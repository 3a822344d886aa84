import { readFileSync } from "node:fs";
import { pages, root } from "../e2e/docs.ts";
import { meanWords, sentencesOf, wordsOfPage, wordsOfSentence } from "./prose.ts";

/** The most words that README, the pages beside it, docs/ and the changelog may have together: what somebody reads in some three hours. */
export const wordsMax = 36_000;

/** README, the pages beside it, docs/ and the changelog. */
const all: ReadonlyMap<string, string> = new Map([
  ...pages,
  ["CHANGELOG.md", readFileSync(new URL("CHANGELOG.md", root), "utf8")],
]);

const linesOf = (path: string) => (all.get(path) ?? "").trimEnd().split("\n").length;

/** A table of all pages, a row each: lines, words, sentences. */
export function pageRows(): readonly (readonly string[])[] {
  const rows = [...all].map(([path, text]) => {
    const sentences = sentencesOf(text);
    const longest = Math.max(0, ...sentences.map(wordsOfSentence));
    return [path, linesOf(path), wordsOfPage(text), meanWords(sentences).toFixed(1), longest].map(String);
  });
  const words = [...all.values()].reduce((sum, text) => sum + wordsOfPage(text), 0);
  return [
    ["page", "lines", "words", "mean sentence", "longest"],
    ["---", "---", "---", "---", "---"],
    ...rows,
    ["**all**", "", `${words} of at most ${wordsMax}`, "", ""],
  ];
}
