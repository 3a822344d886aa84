import type { Contract } from "../contract/contract.ts";
import { parseForm, unescapeValue } from "./form.ts";
import { wholeOf } from "./json.ts";

/** The bytes in a call's body that should be a JSON object: fiscal has them in the form's `data`. Empty if there are none. */
export function bodyBytes({ envelope }: Contract, body: readonly Buffer[]): Buffer {
  const whole = wholeOf(body);
  if (envelope !== "form") return whole;
  const { data } = parseForm(whole);
  return data === undefined ? Buffer.alloc(0) : Buffer.from(unescapeValue(data), "base64");
}

/** The bytes of `bodyBytes` as text; a byte that isn't UTF-8 becomes U+FFFD. */
export function bodyText(contract: Contract, body: readonly Buffer[]): string {
  return bodyBytes(contract, body).toString("utf8");
}
