import assert from "node:assert/strict";
import { test } from "node:test";
import { type Client, createHttpClient } from "../../src/client/client.ts";

/** Never called: the compiler reads it. A line that should not compile, and does, is an error. */
export async function compiled({ bank, fiscal, qr }: Client): Promise<void> {
  await bank.sale({ amount: 1, currency_name: "AZN" });
  await bank.sale({ pay_id: "P-1", amount: 1n, currency_name: "AZN", tips: 0 });
  // @ts-expect-error: amount is required
  await bank.sale({ currency_name: "AZN" });
  // @ts-expect-error: amounts are integers in minor units, not texts
  await bank.sale({ amount: "1.00", currency_name: "AZN" });
  // @ts-expect-error: a misspelt field
  await bank.sale({ amount: 1, currency_name: "AZN", payid: "P-1" });
  // @ts-expect-error: it takes no body
  await bank.terminals({ terminal: 1 });
  // @ts-expect-error: there is no such route
  await bank.checkStatus({ pay_id: "P-1" });

  const { data } = await bank.check({ pay_id: "P-1" });
  const status: string | number | bigint | null | undefined = data?.status;
  // @ts-expect-error: there may be no data
  const certain: string = data.status;
  const success: "success" = (await bank.closeShift({})).status;

  await fiscal.sale({ items: [{ itemName: "Bread", itemQty: 1000, itemAmount: 150n }] });
  // @ts-expect-error: items are required
  await fiscal.sale({ documentExtID: "ORDER-1" });
  const { documentID } = await fiscal.checkStatus({ documentExtID: "ORDER-1" });
  const id: number | bigint | string | null | undefined = documentID;
  // @ts-expect-error: an int64 is no number alone
  const rounded: number = documentID;
  const undocumented: unknown = (await fiscal.checkShift())["discount"];

  const { result } = await bank.settle("sale", { amount: 1, currency_name: "AZN" });
  const ended: "approved" | "declined" | "failed" | "reversed" | "unknown" | "not-sent" = result;
  // @ts-expect-error: a card is never "closed"
  const closed: "closed" = result;
  const document = await fiscal.settle("deposit", { amount: 500 });
  const fiscalResult: "closed" | "failed" | "unprinted" | "unknown" | "not-sent" = document.result;
  // @ts-expect-error: a shift is no operation that can be followed
  await fiscal.settle("openShift", {});
  await qr.settle("showqrcode", { amount: 1, currency: "944", currency_name: "AZN", pay_system: "A" });
  // @ts-expect-error: a refund names the payment that it refers to
  await qr.settle("refund", { trans: "T-1", rrn: "77", amount: 1, currency: "944", pay_system: "A" });

  void [status, certain, success, id, rounded, undocumented, ended, closed, fiscalResult];
}

/** Never called, as above: services of names of their own have the methods of their contract. */
export async function compiledNames(): Promise<void> {
  const url = "http://127.0.0.1:8889";
  const client = createHttpClient({ "bank-2": { contract: "bank", url, apiKey: "K" }, kiosk: { contract: "qr", url } });
  await client["bank-2"].sale({ amount: 1, currency_name: "AZN" });
  await client.bank.sale({ amount: 1, currency_name: "AZN" });
  await client.kiosk.settle("showqrcode", { amount: 1, currency: "944", currency_name: "AZN", pay_system: "A" });
  // @ts-expect-error: a bank has no such route
  await client["bank-2"].checkStatus({ documentExtID: "D" });
  // @ts-expect-error: no service has this name
  await client["bank-3"].sale({ amount: 1, currency_name: "AZN" });
  // @ts-expect-error: a name of its own says its contract
  createHttpClient({ "bank-2": { url } });
  // @ts-expect-error: no such contract
  createHttpClient({ "bank-2": { contract: "card", url } });
}

test("the client's types accept what the contracts have and nothing else (checked by the compiler)", () => {
  assert.equal(typeof compiled, "function");
  assert.equal(typeof compiledNames, "function");
});
