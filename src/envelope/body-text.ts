import type { Contract } from "../contract/contract.ts";
import { parseForm, unescapeValue } from "./form.ts";
import { textOf } from "./json.ts";

/** The text in a call's body that should be a JSON object: fiscal has it in the form's `data`. Empty where there is none. */
export function bodyText({ envelope }: Contract, body: readonly Buffer[]): string {
  if (envelope !== "form") return textOf(body);
  const { data } = parseForm(Buffer.concat(body));
  return data === undefined ? "" : Buffer.from(unescapeValue(data), "base64").toString("utf8");
}
