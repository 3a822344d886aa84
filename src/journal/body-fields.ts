import type { Contract, Route } from "../contract/contract.ts";
import { settlingRulesOf } from "../contract/settling.ts";
import type { Call } from "../core/call.ts";
import { maskCardNumbers } from "../core/card-number.ts";
import type { QuestionFields } from "../core/followed.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { bodyDigest } from "../envelope/body-digest.ts";
import { bodyText } from "../envelope/body-text.ts";
import { keyOf, parseObject } from "../envelope/json.ts";
import { isInexact, scalarText } from "../settle/exact-json.ts";
import { isStoredWhole, keptIds, type SentRecord, storedKey } from "./record.ts";

/** The fields of a record that only the body of its request has. */
export interface BodyFields {
  readonly amount: string | undefined;
  /** Its pay_id or documentExtID. */
  readonly key: string | undefined;
  /** What the contract's question about it names it by, beside a key that is a string; undefined where it can't be asked about. */
  readonly ask?: QuestionFields;
  /** Of a receipt. */
  readonly receipt?: Pick<SentRecord, "amount" | "cashless" | "rrn">;
}

/** A call's record, with the fields that only its body has. */
export function sentRecord(call: Call, route: Route, contract: Contract, device: string | undefined): SentRecord {
  const { requestId, service, body } = call;
  // Where nothing is checked the key hasn't been read yet.
  const fields = bodyFields(contract, call.key === undefined ? route.key : undefined, body, route);
  const key = call.key ?? fields.key;
  return {
    kind: "sent",
    timeMs: Date.now(),
    requestId: maskCardNumbers(requestId),
    service,
    route: route.path,
    // As it will be read: so what is found in memory is what is found after a restart.
    key: key === undefined ? undefined : storedKey(key),
    amount: fields.amount,
    currency: call.amount?.currency,
    ...fields.receipt,
    digest: bodyDigest(body),
    ask: fields.ask,
    // Only where its key may be that of another, as it is of what refers to a sale.
    before: settlingRulesOf(call.contract, route.path)?.baseline === undefined ? undefined : keptIds(call.decided?.before),
    device,
    followed: call.followMs === undefined ? undefined : true,
  };
}

/**
 * Reads them from a body, which may be anything where nothing is checked.
 *
 * The amount keeps its digits as the till wrote them: a number would round it beyond 2^53. So for it the text is walked, not parsed.
 * @param asked The route, where the fields of its question are wanted as well.
 */
export function bodyFields(
  contract: Contract,
  keyField: string | undefined,
  body: readonly Buffer[],
  asked?: Route,
): BodyFields {
  const text = bodyText(contract, body);
  const amount = amountIn(text);
  const isParsed = keyField !== undefined || asked?.polling !== undefined;
  const json = isParsed ? parseObject(text) : undefined;
  const ask = json === undefined || asked === undefined ? undefined : questionFields(asked, json);
  const receipt = json && asked?.receipt && receiptFields(asked.receipt, json);
  const key = keyField === undefined ? undefined : keyOf(json?.[keyField]);
  return { amount, key, ...(ask && { ask }), ...(receipt && { receipt }) };
}

function receiptFields({ sum, cashless, rrn }: NonNullable<Route["receipt"]>, json: JsonObject) {
  const amount = sumOf(valuesAt(json, sum.split(".")));
  const parts = cashless.flatMap((path) => valuesAt(json, path.split(".")));
  const paid = sumOf(parts.filter((part) => part !== undefined && part !== null));
  const number = valuesAt(json, rrn.split(".")).map(scalarText).find(isText);
  return { amount, ...(paid !== undefined && { cashless: paid }), ...(number !== undefined && { rrn: number }) };
}

const isText = (text: string | undefined) => text !== undefined;

/** The values that names lead to, through lists. */
function valuesAt(value: unknown, [name, ...rest]: readonly string[]): readonly unknown[] {
  if (name === undefined) return [value];
  return [value].flat().flatMap((each) => (isObject(each) ? valuesAt(each[name], rest) : []));
}

/** To the digit; undefined where one of them isn't known to it. An int64 has 19 digits. */
function sumOf(values: readonly unknown[]): string | undefined {
  const texts = values.map((value) => (isInexact(value) ? undefined : scalarText(value)));
  const isWhole = texts.every((text) => text !== undefined && /^-?\d{1,19}$/.test(text));
  return isWhole ? String(texts.reduce((sum, text) => sum + BigInt(text ?? 0), 0n)) : undefined;
}

/**
 * The key is left out where it is a string: the record has it already. A number stays one, since a terminal that compares strictly
 * would say of another type that it knows no such operation. One field that can't be stored as it is makes the question impossible.
 */
function questionFields({ key, polling }: Route, json: JsonObject): QuestionFields | undefined {
  if (key === undefined || polling === undefined) return undefined;
  const fields: Record<string, string | number> = {};
  for (const name of polling.keys) {
    const value = json[name];
    if (value === undefined || value === null || value === "") {
      if (name === key) return undefined;
      continue;
    }
    if (typeof value !== "string" && (typeof value !== "number" || !Number.isSafeInteger(value))) return undefined;
    // Bytes that are no UTF-8, where nothing is checked: the terminal has them, and would be asked by others.
    if (!isStoredWhole(String(value)) || String(value).includes("\uFFFD")) return undefined;
    if (name !== key || typeof value === "number") fields[name] = value;
  }
  return fields;
}

/** Behind the field's name; a number in quotes is as good (seen in the field: types are loose). */
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

/** As a number, for what two tills or two versions of one write otherwise; undefined where it is none. */
export function amountOf(digits: string | undefined): number | undefined {
  const amount = Number(digits ?? "");
  return digits === undefined || digits === "" || !Number.isFinite(amount) ? undefined : amount;
}

/** The place behind a string's closing quote; the text's end when it has none. */
function stringEnd(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at++) {
    if (json[at] === "\\") at++;
    else if (json[at] === '"') return at + 1;
  }
  return json.length;
}
