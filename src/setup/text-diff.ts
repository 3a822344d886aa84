/** Rows around a change that are shown beside it. */
const contextRows = 2;

/**
 * What changes between two texts, as rows that begin with `-`, `+` or two spaces: for files of a person's length, since each row of one is
 * compared with each of the other.
 */
export function textDiff(before: string, after: string): string {
  const [old, fresh] = [rowsOf(before), rowsOf(after)];
  const rows = allRows(old, fresh);
  const isNear = (at: number) =>
    rows.slice(Math.max(0, at - contextRows), at + contextRows + 1).some((row) => !row.startsWith("  "));
  return rows
    .filter((_, at) => isNear(at))
    .map((row) => `${row}\n`)
    .join("");
}

const rowsOf = (text: string) => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

function allRows(old: readonly string[], fresh: readonly string[]): readonly string[] {
  const common = commonCounts(old, fresh);
  const rows: string[] = [];
  let [at, to] = [0, 0];
  while (at < old.length || to < fresh.length) {
    const [gone, come] = [old[at], fresh[to]];
    if (gone !== undefined && gone === come) {
      rows.push(`  ${gone}`);
      at++;
      to++;
    } else if (gone !== undefined && (come === undefined || (common[at + 1]?.[to] ?? 0) >= (common[at]?.[to + 1] ?? 0))) {
      rows.push(`- ${gone}`);
      at++;
    } else {
      rows.push(`+ ${come}`);
      to++;
    }
  }
  return rows;
}

/** By a row's place in each text: the length of the longest row of rows that both have from there on. */
function commonCounts(old: readonly string[], fresh: readonly string[]): readonly (readonly number[])[] {
  const counts: number[][] = Array.from({ length: old.length + 1 }, () => Array.from({ length: fresh.length + 1 }, () => 0));
  for (let at = old.length - 1; at >= 0; at--) {
    for (let to = fresh.length - 1; to >= 0; to--) {
      const both = old[at] === fresh[to] ? 1 + (counts[at + 1]?.[to + 1] ?? 0) : 0;
      const row = counts[at];
      if (row !== undefined) row[to] = both || Math.max(counts[at + 1]?.[to] ?? 0, row[to + 1] ?? 0);
    }
  }
  return counts;
}
