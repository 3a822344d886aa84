import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { signOf } from "../../src/envelope/sign.ts";

/** Bodies as a till sends them. */

export const merchantId = "MERCHANT-1";

export function bodyOf(contract: ContractName, json: object): string {
  const text = JSON.stringify(json);
  if (contracts[contract].envelope !== "form") return text;
  const data = Buffer.from(text).toString("base64");
  return `data=${encodeURIComponent(data)}&sign=${encodeURIComponent(signOf(data, merchantId))}`;
}
