import { int32Max, type RequestReader } from "../request-reader.ts";
import { rateMax, type WorldSettings } from "../world-schema.ts";
import { fiscalCodes } from "./request.ts";

/** The set-up of the emulated fiscal service: the kinds of money it takes, its departments and taxes. */

export type FiscalWorld = WorldSettings["fiscal"];

export type PaymentKind = FiscalWorld["payments"][number];

/**
 * Refuses a department that the shop doesn't have, if it has a list. The contract has no code for a value that isn't configured: here it is
 * 2, with which no till sends the same again.
 */
export function checkDepartment(fields: RequestReader, { departments }: FiscalWorld): void {
  const [code, name] = [fields.optionalId("departmentCode"), fields.optionalId("departmentName")];
  if (departments === "any" || (code === undefined && name === undefined)) return;
  if (departments.some((each) => fits(each.departmentCode, code) && fits(each.departmentName, name))) return;
  fields.refuse("the department is not configured", "send one of the world's, or none");
}

/** The rate of a line's tax (Tax object): that of the shop's tax that it names; undefined for a mere code where any will do. */
export function rateOf(tax: RequestReader, { taxes }: FiscalWorld): bigint | undefined {
  const code = tax.optionalId("taxCode");
  const rate = tax.optionalAmount("taxPrc", int32Max);
  if (rate !== undefined && rate > rateMax) {
    tax.refuse(`${tax.named("taxPrc")} is more than ${rateMax}, which is 100 %`, "send percent x100");
  }
  if (taxes === "any" || (code === undefined && rate === undefined)) return rate;
  const found = taxes.find((each) => fits(each.taxCode, code) && fits(BigInt(each.taxPrc), rate));
  if (found !== undefined) return BigInt(found.taxPrc);
  const names = ["taxCode", "taxPrc"].map((name) => tax.named(name)).join(" and ");
  return tax.refuse(`${names} are no tax that is configured`, "send one of the world's");
}

/** True if a request's value is the configured one, or if it has none. */
const fits = <T>(configured: T | undefined, sent: T | undefined) => sent === undefined || configured === sent;

/** Refuses a kind of money that isn't taken (Errors: 7). */
export function checkPayment(kind: PaymentKind, fields: RequestReader, { payments }: FiscalWorld): void {
  if (payments.includes(kind)) return;
  const cure = payments.length === 0 ? "this shop takes no money" : `choose one of ${payments.join(", ")}`;
  fields.refuse(`${kind} is not taken`, cure, fiscalCodes.paymentTypeNotSupported);
}
