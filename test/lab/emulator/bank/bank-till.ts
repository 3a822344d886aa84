import assert from "node:assert/strict";
import type { JsonObject } from "../../../../src/core/json-object.ts";
import type { ServiceAnswer } from "../../../../src/lab/emulator/answer.ts";
import { emulatedBank } from "../../../../src/lab/emulator/bank/bank.ts";
import { dataOf, ServiceUnderTest } from "../service-under-test.ts";

export const bank = () => new ServiceUnderTest("bank", (context) => emulatedBank(context));

export const sale = { pay_id: "P-1", amount: 1000n, currency_name: "AZN" };

/** Asks until an operation has ended, and returns the final answer. */
export function finalOf(under: ServiceUnderTest, payId: string): ServiceAnswer {
  for (let asked = 0; asked < 20; asked += 1) {
    const answer = under.ask("/check", { pay_id: payId });
    if (dataOf(answer)["status"] !== undefined) return answer;
  }
  return assert.fail("the operation never ended");
}

export const statusAtEnd = (under: ServiceUnderTest, payId: string) => dataOf(finalOf(under, payId))["status"];

/** Begins an operation, sees it approved, and returns its rrn. */
export function approved(under: ServiceUnderTest, route: string, body: JsonObject): string {
  under.accepted(route, body);
  const data = dataOf(finalOf(under, String(body["pay_id"])));
  assert.equal(data["status"], "APPROVED");
  return String(data["rrn"]);
}
