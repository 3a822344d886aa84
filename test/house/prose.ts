/**
 * How long a page of the documentation is, and how long its sentences are. Markdown goes in as text, numbers come out.
 *
 * What isn't read as a sentence is left out of sentences: fenced code, HTML comments, headings and tables. A sentence ends at `.`,
 * `!` or `?` before white space, or with its paragraph or list item. So "2.4 s" ends none, and neither does a colon or a semicolon.
 */

/** A page without what nobody reads as text: code blocks, HTML, the targets of links. */
function readable(markdown: string): string {
  return markdown
    .replaceAll(/^( *)```[\s\S]*?^\1```$/gm, "")
    .replaceAll(/<!--[\s\S]*?-->/g, "")
    .replaceAll(/<\/?[a-z][^>\n]*>/gi, "")
    .replaceAll(/^\[[^\]]+\]: \S+$/gm, "")
    .replaceAll(/!?\[((?:\\.|[^\]\\])*)\]\([^)]*\)/g, "$1");
}

const isWord = (token: string) => /[\p{L}\p{N}]/u.test(token);

/** What stands between white space and has a letter or a digit. */
export const wordsIn = (text: string): number => text.split(/\s+/).filter(isWord).length;

/** The words of a page, tables and headings included. */
export const wordsOfPage = (markdown: string): number => wordsIn(readable(markdown));

/** Abbreviations that end with a full stop and no sentence; an ellipsis is another. */
const endsNone = /(?:^|[\s(])(?:e\.g\.|i\.e\.|vs\.|etc\.|\.{2,})$/;

function sentencesOfBlock(block: string): readonly string[] {
  // Code within a sentence is one word, whatever stands in it, and what was code ends no sentence.
  const text = block.replaceAll(/(`+)[\s\S]*?\1/g, (code) => code.replaceAll(/\s+/g, "\u00a0").replaceAll(/[.!?]/g, "\u2024"));
  const found: string[] = [];
  let begun = "";
  for (const piece of text.split(/(?<=[.!?][)\]"'*_]*)[ \n]+/)) {
    begun = begun === "" ? piece : `${begun} ${piece}`;
    if (endsNone.test(piece)) continue;
    found.push(begun);
    begun = "";
  }
  if (begun !== "") found.push(begun);
  return found.map((sentence) =>
    sentence
      .replaceAll("\u2024", ".")
      .replaceAll(/[ \n]+/g, " ")
      .trim(),
  );
}

/** The number of words of a sentence: a code span is one. */
export const wordsOfSentence = (sentence: string): number => sentence.split(/[ \n\t]+/).filter(isWord).length;

/** The sentences of a page, of its paragraphs, list items and quotes. */
export function sentencesOf(markdown: string): readonly string[] {
  const lines = readable(markdown)
    .split("\n")
    .map((line) => (/^\s*(?:#+ |\|)/.test(line) ? "" : line.replace(/^[\s>]+/, "")));
  const blocks = lines.join("\n").split(/\n\n+|\n(?=(?:[-*+]|\d+\.) )/);
  return blocks
    .map((block) => block.trim().replace(/^(?:[-*+]|\d+\.) +/, ""))
    .flatMap(sentencesOfBlock)
    .filter(isWord);
}

/** The mean length of sentences in words; 0 of none. */
export function meanWords(sentences: readonly string[]): number {
  return sentences.length === 0 ? 0 : sentences.reduce((sum, each) => sum + wordsOfSentence(each), 0) / sentences.length;
}
