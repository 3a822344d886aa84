import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { meanWords, sentencesOf, wordsOfSentence } from "../house/prose.ts";
import { pages, root } from "./docs.ts";

/** The most words of a sentence, and of a page's sentences on average. */
const [sentenceWordsMax, meanWordsMax] = [35, 18];

for (const path of [...pages.keys(), "CHANGELOG.md"]) {
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
