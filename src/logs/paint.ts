/** What reaches a terminal: colours of posline's own making, and text that can't command it. */

/** Colours by what they say. */
export type Tone = "good" | "odd" | "bad" | "loud" | "faint" | "strong";

const codes: Readonly<Record<Tone, string>> = {
  good: "32",
  odd: "33",
  bad: "31",
  loud: "1;97;41",
  faint: "2",
  strong: "1",
};

/** Colours a text, or leaves it as it is. */
export type Paint = (tone: Tone, text: string) => string;

export const coloured: Paint = (tone, text) => (text === "" ? "" : `\u001b[${codes[tone]}m${text}\u001b[0m`);
export const uncoloured: Paint = (_, text) => text;

/** The text without the colours that `coloured` put there. */
export function withoutColours(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape is what is looked for
  return text.replace(/\u001b\[[\d;]*m/g, "");
}

/**
 * Control characters, line separators, and the marks that turn the direction of text round: a key or a crash's trace could hide
 * or forge what stands beside it.
 */
const commanding = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Text from outside as it may be shown: nothing in it commands a terminal. */
export function plain(text: string): string {
  return text.replaceAll("\t", "    ").replace(commanding, "\uFFFD");
}

/** A JSON text that may be shown, of the same value: escaped within its strings, and with spaces between them. */
export function plainJson(json: string): string {
  return json.replace(commanding, (mark) =>
    mark === "\t" || mark === "\r" || mark === "\n" ? " " : `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
