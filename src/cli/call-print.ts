import { isObject } from "../core/json-object.ts";
import { printable } from "../core/shell-text.ts";

/** What a service answered, as lines for a person at a terminal. */

/** Values that are shown; the rest is counted. `--json` has all of it. */
const valuesMax = 40;

/** Fields and values, one a line, nested ones indented. */
export function readableLines(value: unknown): string {
  const rows = rowsOf(value, "");
  const more = rows.length - valuesMax;
  const shown = more > 0 ? [...rows.slice(0, valuesMax), `... and ${more} more lines: --json prints everything`] : rows;
  return shown.map((row) => `${row}\n`).join("");
}

function rowsOf(value: unknown, indent: string): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => itemRows(`${index + 1}.`, item, indent));
  if (!isObject(value)) return [`${indent}${scalar(value)}`];
  return Object.entries(value).flatMap(([name, item]) => itemRows(`${printable(name)}:`, item, indent));
}

function itemRows(label: string, item: unknown, indent: string): readonly string[] {
  const isNested = Array.isArray(item) ? item.length > 0 : isObject(item) && Object.keys(item).length > 0;
  return isNested ? [`${indent}${label}`, ...rowsOf(item, `${indent}  `)] : [`${indent}${label} ${scalar(item)}`];
}

function scalar(value: unknown): string {
  if (Array.isArray(value) || isObject(value)) return "none";
  return value === null || value === undefined ? "-" : printable(String(value));
}
