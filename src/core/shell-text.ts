/** Text that goes to a terminal, and words that are pasted into a shell. */

/** Text as a terminal may show it: what others say of themselves (tills, adapters, files) carries no control character there. */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, "\uFFFD");
}

/** A path or a name as a shell takes it for one word. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
