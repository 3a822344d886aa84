import { emulatedMerchantId } from "../../src/config/overrides.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { ask, scratchFolder } from "../support/bridge-process.ts";
import { bundle, PoslineProcess } from "../support/posline-process.ts";

/** What the tests of emulators share: processes that end with their test file, and what a till asks of them. */

export const folder = scratchFolder();
const running: PoslineProcess[] = [];

/** To be called after all tests of a file. */
export async function endAll(): Promise<void> {
  for (const each of running) if (each.child.exitCode === null) await each.ended("SIGKILL");
}

export function posline(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
  file = bundle,
): PoslineProcess {
  const started = new PoslineProcess(args, { env, file });
  running.push(started);
  return started;
}

export const saleOf = (payId: string, amount = 1500) => JSON.stringify({ pay_id: payId, amount, currency_name: "EUR" });
export const post = (port: number, path: string, body: string, headers: Record<string, string> = {}) =>
  ask(port, "POST", path, body, headers);

/** What the bank says of an operation that has ended: the first question may find it in progress. */
export async function resultOf(port: number, payId: string): Promise<string> {
  await post(port, "/check", JSON.stringify({ pay_id: payId }));
  return (await post(port, "/check", JSON.stringify({ pay_id: payId }))).text;
}

export function fiscalForm(json: object): string {
  const data = Buffer.from(JSON.stringify(json)).toString("base64");
  return `data=${encodeURIComponent(data)}&sign=${encodeURIComponent(signOf(data, emulatedMerchantId))}`;
}

export const receipt = (documentExtID: string) => ({
  documentExtID,
  items: [{ itemId: "1", itemName: "Coffee", itemQty: 1000, itemAmount: 1500, itemTaxes: [{ taxPrc: 1800 }] }],
  payments: { cashAmount: 1500 },
});
