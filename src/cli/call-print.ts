import { messageOf } from "../core/error-code.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { printable, printableJson } from "../core/shell-text.ts";
import { showExactObject } from "../settle/exact-json.ts";

/** What a service answered, on standard output. */

/** Values that are shown; the rest is counted. `--json` has all of it. */
const valuesMax = 40;

/**
 * As JSON, or on a terminal as lines. What a service says is escaped where a terminal would obey it; the value stays. One that can't be
 * printed, being nested too deeply, was sent and answered all the same: the exit code still says how that ended.
 */
export function printReply(reply: JsonObject, { json }: { readonly json?: boolean | undefined }): void {
  const readable = json !== true && process.stdout.isTTY === true;
  try {
    process.stdout.write(readable ? readableLines(reply) : `${printableJson(showExactObject(reply))}\n`);
  } catch (error) {
    process.stderr.write(`Cannot print the answer: ${messageOf(error)}\n`);
  }
}

/** Fields and values, one a line, nested ones indented. */
function readableLines(value: unknown): string {
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
