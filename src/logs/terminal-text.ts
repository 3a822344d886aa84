import { printable, printableJson } from "../core/shell-text.ts";

/** Text for a terminal: posline's own colours, and text from outside that can't send it commands. */

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
export type Colourer = (tone: Tone, text: string) => string;

export const coloured: Colourer = (tone, text) => (text === "" ? "" : `\u001b[${codes[tone]}m${text}\u001b[0m`);
export const uncoloured: Colourer = (_, text) => text;

/** The text without the colours that `coloured` put there. */
export function withoutColours(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape is what is looked for
  return text.replace(/\u001b\[[\d;]*m/g, "");
}

/** Text from outside as it may be shown: nothing in it commands a terminal. A key or a crash's trace could forge the text beside it. */
export function terminalSafe(text: string): string {
  return printable(text.replaceAll("\t", "    "));
}

/** A JSON text that may be shown, of the same value: escaped within its strings, and with spaces between them. */
export function terminalSafeJson(json: string): string {
  return printableJson(json.replace(/[\t\r\n]/g, " "));
}
