import { error, ok, over, repeat, type Script } from "./scripted.ts";

/** What the tests of fiscal.settle share: documents, what a device says of them, and how they are followed over a script. */

export const sale = { documentExtID: "ORDER-1", items: [{ itemName: "Bread", itemAmount: 150 }] };
export const cash = { documentExtID: "CASH-1", amount: 500 };
export const closed = ok({ code: 0, documentID: 12, docStatus: 1 });
export const open = ok({ code: 0, documentID: 12, docStatus: 0 });
export const absent = error(9);
/** It isn't found each second, from the first after its start to the third that counts: from 30 s on. */
export const goneTo30s: Script = repeat(32, ["/check_status", absent]);

/** A refund asks first what is known under its key: nothing here, unless a test says otherwise. */
export async function settled(operation: "sale" | "refund" | "deposit" | "withdraw", script: Script, windowMs = 20_000) {
  const first: Script = operation === "refund" ? repeat(3, ["/check_status", absent]) : [];
  const world = over([...first, ...script]);
  const options = { ...world.options, windowMs, intervalMs: 1000 };
  const result = await (operation === "sale" || operation === "refund"
    ? world.client.fiscal.settle(operation, sale, options)
    : world.client.fiscal.settle(operation, cash, options));
  return { ...world, ...result, service: { seen: world.service.seen.slice(first.length) } };
}
