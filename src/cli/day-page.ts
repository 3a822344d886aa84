import { escaped } from "../core/markup.ts";

/** What is shown of a box, as text and as a page. */
export interface DayPart {
  readonly heading: string;
  /** Rows of the table, its titles first. */
  readonly rows: readonly (readonly string[])[];
  readonly open: readonly string[];
  readonly notes: readonly string[];
}

/** `posline day --report`: a page without scripts, of which a usual day fits on a sheet of A4. */
export function dayPage(facts: Readonly<Record<string, string>>, parts: readonly DayPart[]): string {
  const row = (cells: readonly string[], at: number) => {
    const tag = at === 0 ? "th" : "td";
    return `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join("")}</tr>`;
  };
  const list = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? "" : `<h3>${title}</h3>\n<ul>\n${lines.map((each) => `<li>${escaped(each)}</li>\n`).join("")}</ul>\n`;
  const shown = ({ heading, rows, open, notes }: DayPart) =>
    `<h2>${escaped(heading)}</h2>\n<div tabindex="0"><table>\n${rows.map(row).join("\n")}\n</table></div>\n` +
    `${list("What to do", open)}${list("What to know", notes)}`;
  const told = Object.entries(facts).map(([name, value]) => `${name}: <b>${escaped(value)}</b><br>\n`);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>posline day, ${escaped(parts[0]?.heading ?? "")}</title>
<style>
:root { color-scheme: light dark; font: 0.9rem/1.4 system-ui, sans-serif; }
body { margin: 1rem auto; padding: 0 1rem; max-width: 56rem; overflow-wrap: anywhere; }
div { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; white-space: nowrap; }
th, td { padding: 0.2rem 0.4rem; border-bottom: 1px solid; text-align: right; font-variant-numeric: tabular-nums; }
tr > :nth-child(-n + 2) { text-align: left; }
li { white-space: pre-line; break-inside: avoid; }
@page { size: A4; margin: 12mm; }
@media print { body { margin: 0; padding: 0; font-size: 8.5pt; } table { white-space: normal; } }
</style>
<h1>The day</h1>
<p>${told.join("")}</p>
${parts.map(shown).join("")}</html>
`;
}
