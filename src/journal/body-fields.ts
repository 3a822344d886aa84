import type { Contract } from "../contract/contract.ts";
import { parseForm, unescapeValue } from "../envelope/form.ts";
import { keyOf, parseObject, textOf } from "../envelope/json.ts";

/** The fields of a record that only the body of its request has. */
export interface BodyFields {
  readonly amount: string | undefined;
  /** Its pay_id or documentExtID. */
  readonly key: string | undefined;
}

/**
 * Reads them from a body, which may be anything where nothing is checked.
 *
 * The amount keeps its digits as the till wrote them: a number would round it beyond 2^53. So the text is walked, not parsed.
 */
export function bodyFields(contract: Contract, keyField: string | undefined, body: readonly Buffer[]): BodyFields {
  const text = jsonOf(contract, body);
  return { amount: amountIn(text), key: keyField === undefined ? undefined : keyOf(parseObject(text)?.[keyField]) };
}

/** The text that should be a JSON object; empty when there is none. */
function jsonOf(contract: Contract, body: readonly Buffer[]): string {
  if (contract.envelope !== "form") return textOf(body);
  const { data } = parseForm(Buffer.concat(body));
  return data === undefined ? "" : Buffer.from(unescapeValue(data), "base64").toString("utf8");
}

/** Behind the field's name; a number in quotes is as good (FIELD-NOTES: types are loose). */
const value = /^\s*:\s*("?)(-?\d[\d.eE+-]{0,30})\1\s*[,}]/;

/** Characters behind the name that are looked at: white space is bounded, too. */
const valueCharactersMax = 128;

/** The digits of `amount` in the object itself, not in one within it; the last one, as JSON is read. */
export function amountIn(json: string): string | undefined {
  let depth = 0;
  let found: string | undefined;
  for (let at = 0; at < json.length; ) {
    const character = json[at];
    if (character === '"') {
      const end = stringEnd(json, at);
      if (depth === 1 && end - at === 8 && json.startsWith('"amount"', at)) {
        found = value.exec(json.slice(end, end + valueCharactersMax))?.[2] ?? found;
      }
      at = end;
      continue;
    }
    if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") depth--;
    at++;
  }
  return found;
}

/** The place behind a string's closing quote; the text's end when it has none. */
function stringEnd(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at++) {
    if (json[at] === "\\") at++;
    else if (json[at] === '"') return at + 1;
  }
  return json.length;
}
