/**
 * Rows as the lines of a table, their columns two spaces apart.
 * @param least Characters that each column has at least. @param right Columns whose cells end below each other.
 */
export function tableLines(
  rows: readonly (readonly string[])[],
  { least = [], right = [] }: { readonly least?: readonly number[]; readonly right?: readonly number[] } = {},
): readonly string[] {
  const widths: number[] = [...least];
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, [...cell].length);
  const pad = (cell: string, at: number) => {
    const gap = " ".repeat((widths[at] ?? 0) - [...cell].length);
    return right.includes(at) ? `${gap}${cell}` : `${cell}${gap}`;
  };
  return rows.map((row) => row.map(pad).join("  ").trimEnd());
}
