import assert from "node:assert/strict";
import { test } from "node:test";
import { meanWords, sentencesOf, wordsOfPage, wordsOfSentence } from "./prose.ts";

const fence = "```";

test("wordsOfPage() counts prose, headings and tables, and neither code blocks, comments, marks nor targets of links", () => {
  assert.equal(wordsOfPage("# Two words\n\nThree more words."), 5);
  assert.equal(wordsOfPage("| a | b |\n| --- | --- |\n| one two | `x y` |"), 6);
  assert.equal(wordsOfPage(`One.\n\n${fence}sh\nnpm start\n${fence}\n\n- ${fence.slice(1)}\n\nTwo.`), 2);
  assert.equal(wordsOfPage(`1. One.\n\n   ${fence}sh\n   npm start\n   ${fence}\n\nTwo.`), 3);
  assert.equal(wordsOfPage("<!-- printed from\nsomewhere -->\n\nSee [the page](docs/page.md) - now.\n\n[1]: #one"), 4);
});

test("sentencesOf() ends a sentence at a full stop before white space, and at the end of its block", () => {
  assert.deepEqual(sentencesOf("A call waits 2.4 s: then it\nis sent. posline asks! Why?"), [
    "A call waits 2.4 s: then it is sent.",
    "posline asks!",
    "Why?",
  ]);
  assert.deepEqual(sentencesOf("It ends (so far.) Then more\n\nand another"), [
    "It ends (so far.)",
    "Then more",
    "and another",
  ]);
  assert.deepEqual(sentencesOf("Ports, e.g. 8008, and so on ... and on."), ["Ports, e.g. 8008, and so on ... and on."]);
});

test("sentencesOf() takes each list item by itself, and leaves out headings, tables and code blocks", () => {
  const text = `# A title. Two\n\nFirst:\n- an item\n  of two lines. And more\n- another\n\n| a | b. C |\n\n${fence}\nx. y.\n${fence}\n`;
  assert.deepEqual(sentencesOf(text), ["First:", "an item of two lines.", "And more", "another"]);
  assert.deepEqual(sentencesOf("1. One.\n2. Two.\n\n> Quoted."), ["One.", "Two.", "Quoted."]);
});

test("wordsOfSentence() counts a code span as one word and a link by its text", () => {
  const [sentence = "", ...others] = sentencesOf("Run `npm start. Then stop` and [read the page](page.md#a-title) - once.");
  assert.deepEqual(others, []);
  assert.equal(wordsOfSentence(sentence), 7);
});

test("meanWords() is the mean over sentences", () => {
  assert.equal(meanWords(["One two three.", "One."]), 2);
  assert.equal(meanWords([]), 0);
});
