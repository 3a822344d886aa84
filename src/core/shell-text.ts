/** Text that goes to a terminal, and words that are pasted into a shell. */

/**
 * Characters that a terminal obeys (control characters, C1 too), that break or turn a line round (line separators, direction marks), or
 * that nobody sees (zero-width and other format characters): in a key, a name or a message from outside they could forge or hide the text
 * beside it.
 */
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Whether text may be coloured: it goes to a terminal that knows colours, and nobody has switched them off. */
export function hasColours(env: NodeJS.ProcessEnv, isTerminal: boolean): boolean {
  return isTerminal && !env["NO_COLOR"] && env["TERM"] !== "dumb";
}

/** Text as a terminal may show it: the words of tills, adapters and files carry no such character there. */
export function printable(text: string): string {
  return text.replace(unsafe, "\uFFFD");
}

/** A text of several lines as a terminal may show it, with its line breaks. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/**
 * A JSON text of the same value that a terminal may show: within its strings such characters are escaped (`\u009b`). The line
 * breaks and tabs between values stay.
 */
export function printableJson(json: string): string {
  // Most texts are plain ASCII, and the log asks for each of its lines. Below a space JSON has only those breaks and tabs.
  if (Buffer.byteLength(json) === json.length && !json.includes("\x7f")) return json;
  return json.replace(unsafe, (found) => (/[\t\n\r]/.test(found) ? found : escaped(found)));
}

/** Escapes by UTF-16 units, as JSON does: a character beyond U+FFFF takes two escapes. */
function escaped(text: string): string {
  return text
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}

/** A path or a name as a shell takes it for one word. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Characters that a message quotes: more than any flag or device path has. */
const quotedLengthMax = 120;

/** What was typed, as a terminal may show it, and bounded. */
export function inQuotes(word: string): string {
  const shown = word.length > quotedLengthMax ? `${word.slice(0, quotedLengthMax)}...` : word;
  return `"${printable(shown)}"`;
}
