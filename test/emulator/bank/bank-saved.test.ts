import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../src/core/json-object.ts";
import { emulatedBank } from "../../../src/emulator/bank/bank.ts";
import { emulatedQr } from "../../../src/emulator/qr/qr.ts";
import { StateError } from "../../../src/emulator/state-reader.ts";
import { ServiceUnderTest, TestContext, throughText } from "../service-under-test.ts";
import { approved, bank, sale } from "./bank-till.ts";

/**
 * Tests src/emulator/bank/bank.ts, src/emulator/state-reader.ts.
 *
 * A bank with a sale, a refund that runs, a closed batch and a request that came to nothing.
 */
function bankState(): JsonObject {
  const under = bank();
  const rrn = approved(under, "/sale", { ...sale, terminal: 1n });
  under.accepted("/close-shift", { pay_id: "Z" });
  under.context.nowMs += 2000;
  under.accepted("/sale", { ...sale, pay_id: "P-2" });
  under.context.nowMs += 2000;
  under.accepted("/refund", { ...sale, pay_id: "P-3", rrn });
  under.refused("/sale", { ...sale, pay_id: "P-4", amount: 5n });
  return throughText(under.service.saved());
}

function qrState(): JsonObject {
  const under = new ServiceUnderTest("qr", emulatedQr);
  const show = { pay_id: "Q-1", amount: 1000n, currency: "944", currency_name: "AZN", pay_system: "QRPAY" };
  under.ask("/showqrcode", show);
  under.ask("/showqrcode", { ...show, pay_id: "Q-2", pay_system: "PALM" });
  return throughText(under.service.saved());
}

/** The state with another value at a path, such as `operations.1.amount`; undefined takes away what is there. */
function withValue(state: unknown, path: string, value: unknown): JsonObject {
  // A copy of what parseExact read, changed by hand as a person might
  const copy = structuredClone(state) as Record<string, unknown>;
  const names = path.split(".");
  const last = names.pop() ?? "";
  let place = copy;
  // The paths below name objects and lists
  for (const name of names) place = place[name] as Record<string, unknown>;
  if (value === undefined) delete place[last];
  else place[last] = value;
  return copy;
}

const services = { bank: { make: emulatedBank, state: bankState() }, qr: { make: emulatedQr, state: qrState() } };

const rows: readonly (readonly ["bank" | "qr", path: string, value: unknown, message: string])[] = [
  ["bank", "count", undefined, "bank.count: must be an integer"],
  ["bank", "count", 1n, "bank.operations[1].number: must not be greater than 1"],
  ["bank", "count", -1n, "bank.count: must not be less than 0"],
  ["bank", "count", 2n ** 60n, "bank.count: must not be greater than 9007199254740991"],
  ["bank", "failed", {}, "bank.failed: must be a list"],
  ["bank", "failed.0", 1n, "bank.failed[0]: must be a string"],
  ["bank", "failed", Array.from({ length: 4097 }, () => "x"), "bank.failed: must have no more than 4096 entries"],
  ["bank", "operations", undefined, "bank.operations: must be a list"],
  ["bank", "operations.0", 7n, "bank.operations[0]: must be an object"],
  ["bank", "operations.1.number", 1n, "bank.operations[1].number: must not be less than 2"],
  ["bank", "operations.0.begunMs", "1", "bank.operations[0].begunMs: must be an integer"],
  ["bank", "operations.0.checks", undefined, "bank.operations[0].checks: must be an integer"],
  ["bank", "operations.0.asked", 1.5, "bank.operations[0].asked: must be an integer"],
  ["bank", "operations.0.ended", 1n, "bank.operations[0].ended: must be true or false"],
  ["bank", "operations.0.route", "/check", "bank.operations[0].route: must be one of /sale, /preauth, /confirm"],
  ["bank", "operations.0.end", "paid", "bank.operations[0].end: must be one of approved, declined, cancelled"],
  ["bank", "operations.0.abortTooLate", 1n, "bank.operations[0].abortTooLate: must be true or false"],
  ["bank", "operations.0.payId", 1n, "bank.operations[0].payId: must be a string"],
  ["bank", "operations.0.merchant", 3n, "bank.operations[0].merchant: must be one of the terminal's"],
  ["bank", "operations.0.rrn", "", "bank.operations[0].rrn: must be a string"],
  ["bank", "operations.3.amount", "1000", "bank.operations[3].amount: must be an integer"],
  ["bank", "operations.3.amount", 0n, "bank.operations[3].amount: must not be less than 1"],
  ["bank", "operations.3.currency", "CHF", "bank.operations[3].currency: must be one of EUR, USD"],
  ["bank", "operations.3.original", 4n, "bank.operations[3].original: must not be greater than 3"],
  ["bank", "operations.3.original", undefined, "bank.operations[3].original: must be an integer"],
  ["bank", "operations.1.totals", undefined, "bank.operations[1].totals: must be an object"],
  ["bank", "batches.0.terminal", 9n, "bank.batches[0].terminal: must be one of 1, 2"],
  ["bank", "batches.0.batch", null, "bank.batches[0].batch: must be an integer"],
  ["bank", "batches.0.totals.0.kind", "void", "bank.batches[0].totals[0].kind: must be one of sale, refund"],
  ["bank", "batches.0.totals.0.sum", -1n, "bank.batches[0].totals[0].sum: must not be less than 0"],
  ["bank", "selected", 9n, "bank.selected: must be a terminal that exists"],
  ["qr", "count", undefined, "qr.count: must be an integer"],
  ["qr", "operations.0.system", "OTHER", "qr.operations[0].system: must be one of QRPAY, PALM, QRBASIC"],
  ["qr", "operations.0.trans", undefined, "qr.operations[0].trans: must be a string"],
  ["qr", "operations.1.trans", 1n, "qr.operations[1].trans: must be a string"],
  ["qr", "operations.0.payId", undefined, "qr.operations[0].payId: must be a string"],
  ["qr", "operations.0.currency", 944n, "qr.operations[0].currency: must be a string"],
  ["qr", "operations.0.rrn", null, "qr.operations[0].rrn: must be a string"],
  ["qr", "operations.0.amount", 0n, "qr.operations[0].amount: must not be less than 1"],
  ["qr", "operations.0.givenBack", 1001n, "qr.operations[0].givenBack: must not be greater than 1000"],
  ["qr", "operations.0.cancelled", null, "qr.operations[0].cancelled: must be true or false"],
];

for (const [name, path, value, message] of rows) {
  const shown = Array.isArray(value)
    ? `${value.length} entries`
    : typeof value === "bigint"
      ? `${value}n`
      : JSON.stringify(value);
  test(`restore() of ${name} refuses ${path} = ${shown}, and changes nothing`, () => {
    const { make, state } = services[name];
    const service = make(new TestContext());
    service.restore(state);
    assert.throws(
      () => service.restore(withValue(state, path, value)),
      (error) => error instanceof StateError && error.message.startsWith(message),
      message,
    );
    assert.deepEqual(service.saved(), state);
  });
}

test("saved() is what its own text reads back as, and doesn't change with what it was taken from", () => {
  const under = bank();
  under.accepted("/sale", sale);
  const saved = under.service.saved();
  const before = throughText(saved);
  assert.deepEqual(saved, before);
  under.accepted("/check", { pay_id: "P-1" });
  assert.deepEqual(saved, before);
});
