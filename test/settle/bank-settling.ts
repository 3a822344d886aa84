import { error, ok, over, repeat, type Script } from "./scripted.ts";

/** What the tests of bank.settle share: an operation, what a terminal says of it, and how it is followed over a script. */

export const body = { pay_id: "P-1", amount: 1500, currency_name: "AZN" };
export const data = (status: string, more: object = {}) => ({ txn_id: "7", status, rrn: "77", auth: "1", ...more });
export const approved = ok({ data: data("APPROVED") });
export const declined = error(-20, { data: data("ERROR") });
export const reversed = error(-1, { data: data("REVERSED") });
export const absent = error(-15);

/** Nothing is known under its key before it is sent. */
export const absentBefore: Script = repeat(3, ["/check", absent]);
/** "Not found" each second from the first after a start to the third that counts: from 30 s on, when its time-out is over (Limits). */
export const absentTo30s = repeat(32, ["/check", absent]);
/** The same of one that is resumed, which asks at once. */
export const absentFrom0To30s = repeat(33, ["/check", absent]);

export async function settled(
  operation: "sale" | "preauth" | "confirm" | "cancel" | "refund" | "xreport" | "closeShift",
  script: Script,
  windowMs = 20_000,
) {
  const world = over(script);
  const result = await world.client.bank.settle(operation, body, { ...world.options, windowMs, intervalMs: 1000 });
  return { ...world, ...result };
}
