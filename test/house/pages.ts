import { readFileSync } from "node:fs";
import { pages, root } from "../e2e/docs.ts";
import { meanWords, sentencesOf, wordsOfPage, wordsOfSentence } from "./prose.ts";

/** The most words that README, the pages beside it, docs/ and the changelog may have together: what somebody reads in some three hours. */
export const wordsMax = 36_000;

/** How many lines a page is to have, those of several pages together. A page that isn't named has no target. */
const targets: readonly { readonly pages: readonly string[]; readonly lines: number }[] = [
  { pages: ["README.md"], lines: 140 },
  { pages: ["CONTRIBUTING.md", "SECURITY.md"], lines: 40 },
  { pages: ["docs/client.md"], lines: 120 },
  { pages: ["docs/typescript.md"], lines: 90 },
  { pages: ["docs/configuration.md"], lines: 150 },
  { pages: ["docs/install.md"], lines: 120 },
  { pages: ["docs/container.md"], lines: 35 },
  { pages: ["docs/monitoring.md"], lines: 150 },
  { pages: ["docs/journal.md"], lines: 90 },
  { pages: ["docs/support.md"], lines: 100 },
  { pages: ["docs/limits.md"], lines: 60 },
  { pages: ["docs/remote-tills.md"], lines: 50 },
  { pages: ["docs/proxy.md"], lines: 90 },
  { pages: ["docs/troubleshooting.md"], lines: 180 },
  { pages: ["docs/fleet.md"], lines: 110 },
  { pages: ["docs/gateway.md", "docs/tap.md", "docs/emulator.md"], lines: 240 },
  { pages: ["docs/architecture.md"], lines: 210 },
  { pages: ["docs/development.md"], lines: 190 },
  { pages: ["docs/proof.md"], lines: 150 },
  { pages: ["docs/tills/README.md"], lines: 60 },
  { pages: ["docs/rehearse.md"], lines: 120 },
  { pages: ["docs/certify.md"], lines: 40 },
  { pages: ["docs/network-lines.md"], lines: 45 },
  { pages: ["docs/recovery.md"], lines: 130 },
  { pages: ["docs/settling.md"], lines: 105 },
  { pages: ["docs/keys.md"], lines: 75 },
  { pages: ["docs/refunds.md"], lines: 110 },
  { pages: ["docs/security.md"], lines: 70 },
  { pages: ["docs/day.md"], lines: 70 },
  { pages: ["docs/stray-bytes.md"], lines: 45 },
  { pages: ["docs/decisions.md"], lines: 450 },
  { pages: ["CHANGELOG.md"], lines: 30 },
];

/** README, the pages beside it, docs/ and the changelog. */
const all: ReadonlyMap<string, string> = new Map([
  ...pages,
  ["CHANGELOG.md", readFileSync(new URL("CHANGELOG.md", root), "utf8")],
]);

const linesOf = (path: string) => (all.get(path) ?? "").trimEnd().split("\n").length;

/** The lines that a page may have, with those of the pages that share its target; marked where it is missed by more than a tenth. */
function targetOf(path: string): string {
  const target = targets.find((each) => each.pages.includes(path));
  if (target === undefined) return "";
  const lines = target.pages.filter((each) => all.has(each)).reduce((sum, each) => sum + linesOf(each), 0);
  const words = target.pages.length === 1 ? `${target.lines}` : `${target.lines} for ${target.pages.length} pages`;
  return lines > target.lines * 1.1 ? `${words}, missed` : words;
}

/** A table of all pages, a row each: lines beside their target, words, sentences. */
export function pageRows(): readonly (readonly string[])[] {
  const rows = [...all].map(([path, text]) => {
    const sentences = sentencesOf(text);
    const longest = Math.max(0, ...sentences.map(wordsOfSentence));
    return [path, linesOf(path), targetOf(path), wordsOfPage(text), meanWords(sentences).toFixed(1), longest].map(String);
  });
  const words = [...all.values()].reduce((sum, text) => sum + wordsOfPage(text), 0);
  return [
    ["page", "lines", "target", "words", "mean sentence", "longest"],
    ["---", "---", "---", "---", "---", "---"],
    ...rows,
    ["**all**", "", "", `${words} of at most ${wordsMax}`, "", ""],
  ];
}
