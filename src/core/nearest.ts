/** The least number of letters to insert, delete, replace or swap with their neighbour to turn one word into another. */
function distance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) {
        best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return last[to.length] ?? 0;
}

/** The known word that `word` was most likely meant to be, ignoring case; undefined if none is close. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  // A word that is far longer than any known one isn't a typo, and would cost its length times theirs to measure.
  if (word.length > 64) return undefined;
  let found: string | undefined;
  let least = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const steps = distance(word.toLowerCase(), candidate.toLowerCase());
    if (steps < least) {
      least = steps;
      found = candidate;
    }
  }
  return found;
}

/** The words after "unknown key:" in a message: the word that was meant, or else all there are. */
export function suggestion(word: string, known: readonly string[]): string {
  const meant = nearest(word, known);
  return meant === undefined ? `use one of ${known.join(", ")}` : `did you mean ${meant}?`;
}
