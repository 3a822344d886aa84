import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { meanWords, sentencesOf, wordsOfSentence } from "../house/prose.ts";
import { root } from "./docs.ts";

/** Pages that hold the bounds of plain prose. `npm run house` prints the figures of all. */
const done: readonly string[] = [
  "docs/decisions.md",
  "CHANGELOG.md",
  "docs/monitoring.md",
  "docs/journal.md",
  "docs/support.md",
  "docs/limits.md",
  "docs/remote-tills.md",
  "docs/install.md",
  "docs/container.md",
  "docs/fleet.md",
  "docs/troubleshooting.md",
  "docs/gateway.md",
  "docs/tap.md",
  "docs/emulator.md",
  "docs/stray-bytes.md",
  "docs/development.md",
  "docs/proof.md",
  ...["README.md", "CONTRIBUTING.md", "SECURITY.md"],
  "docs/client.md",
  "docs/typescript.md",
  "docs/configuration.md",
  "docs/recovery.md",
  "docs/settling.md",
  "docs/architecture.md",
  "docs/tills/README.md",
];

/** The most words of a sentence, and of a page's sentences on average. */
const [sentenceWordsMax, meanWordsMax] = [35, 18];

for (const path of done) {
  test(`${path} has no sentence over ${sentenceWordsMax} words, and ${meanWordsMax} on average at most`, () => {
    const sentences = sentencesOf(readFileSync(new URL(path, root), "utf8"));
    assert.ok(sentences.length > 0, `${path} has no sentence`);
    for (const sentence of sentences) {
      const words = wordsOfSentence(sentence);
      assert.ok(words <= sentenceWordsMax, `${path}: ${words} words: ${sentence}`);
    }
    const mean = meanWords(sentences);
    assert.ok(mean <= meanWordsMax, `${path}: ${mean.toFixed(1)} words a sentence`);
  });
}
