import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../../src/core/json-object.ts";
import { emulatedBank } from "../../../../src/lab/emulator/bank/bank.ts";
import { writeExact } from "../../../../src/lab/emulator/exact-json.ts";
import { rememberedBytesMax, rememberedMax } from "../../../../src/lab/emulator/service-context.ts";
import { dataOf, innerOf, ServiceUnderTest } from "../service-under-test.ts";

/** Tests src/lab/emulator/bank/bank.ts. */

const bank = () => new ServiceUnderTest("bank", (context) => emulatedBank(context));

const sale = { pay_id: "P-1", amount: 1000n, currency_name: "AZN" };

/** Ends whatever is in progress, and returns what /check says of one operation. */
function finalOf(under: ServiceUnderTest, payId: string) {
  under.context.nowMs += 60_000;
  return under.ask("/check", { pay_id: payId });
}

/** The inner data of a report. */
function reported(under: ServiceUnderTest, route: string, payId: string, more: JsonObject = {}) {
  under.accepted(route, { pay_id: payId, ...more });
  const { batch, totals } = innerOf(finalOf(under, payId));
  return { batch, totals };
}

test("in-doubt: the start answers -3, and the operation runs on and is approved", () => {
  const under = bank();
  assert.equal(under.refused("/sale", { ...sale, amount: 1003n }), -3);
  under.accepted("/sale", { ...sale, amount: 1003n });
  under.accepted("/check", { pay_id: "P-1" });
  assert.equal(dataOf(under.ask("/check", { pay_id: "P-1" }))["status"], "APPROVED");
  assert.deepEqual(under.context.begun, ["/sale"]);
});

for (const named of [true, false]) {
  test(`internal-error: nothing begins, and the same request ${named ? "with" : "without"} pay_id succeeds next time`, () => {
    const under = bank();
    const { pay_id, ...unnamed } = { ...sale, amount: 1005n };
    const body = named ? { ...unnamed, pay_id } : unnamed;
    assert.equal(under.refused("/sale", body), -3);
    assert.equal(under.refused("/check", { pay_id }), -15);
    under.restart();
    under.accepted("/sale", body);
    under.context.nowMs += 2000;
    assert.deepEqual(reported(under, "/xreport", "X").totals, [{ kind: "sale", currency: "AZN", count: 1n, sum: 1005n }]);
    if (!named) assert.equal(under.refused("/sale", body), -3, "another one, which can't be told from the first");
  });
}

test("a forced outcome goes for reports too", () => {
  const under = bank();
  under.context.next = { name: "card-timeout" };
  under.accepted("/xreport", { pay_id: "X" });
  assert.equal(finalOf(under, "X").code, -54);
});

test("/abort ends what is in progress as ERROR -21, which is never approved after it", () => {
  const under = bank();
  under.accepted("/sale", { ...sale, amount: 44n });
  under.accepted("/check", { pay_id: "P-1" });
  under.accepted("/abort", { pay_id: "P-1" });
  const final = under.ask("/check", { pay_id: "P-1" });
  assert.deepEqual([final.status, final.code, dataOf(final)["status"]], ["error", -21, "ERROR"]);
  under.accepted("/sale", { ...sale, amount: 44n });
  assert.deepEqual(finalOf(under, "P-1"), final);
  assert.deepEqual(under.ask("/abort", { pay_id: "P-1" }), final, "ended otherwise: its final");
});

test("/abort that comes too late is answered as ever, and /check tells that the operation was approved, over a restart too", () => {
  const under = bank();
  under.context.next = { name: "abort-too-late" };
  under.accepted("/sale", sale);
  for (let asked = 0; asked < 5; asked += 1) {
    assert.deepEqual(under.ask("/abort", { pay_id: "P-1" }), { status: "success" });
    under.restart();
    assert.deepEqual(under.ask("/check", { pay_id: "P-1" }), { status: "success" });
  }
  const final = under.ask("/check", { pay_id: "P-1" });
  assert.deepEqual([final.status, dataOf(final)["status"]], ["success", "APPROVED"]);
  assert.deepEqual(under.ask("/abort", { pay_id: "P-1" }), final);
});

test("/abort of what is approved answers its final data as /check does", () => {
  const under = bank();
  under.accepted("/sale", sale);
  under.context.nowMs += 2000;
  const answer = under.ask("/abort", { pay_id: "P-1" });
  assert.equal(dataOf(answer)["status"], "APPROVED");
  assert.deepEqual(under.ask("/check", { pay_id: "P-1" }), answer);
  const { print_data, ...withoutPrint } = dataOf(answer);
  assert.deepEqual(dataOf(under.ask("/abort", { pay_id: "P-1", no_print_data: true })), withoutPrint);
});

test("/terminate ends all that is in progress as ERROR -21, and nothing else", () => {
  const under = bank();
  under.accepted("/sale", { ...sale, pay_id: "ENDED" });
  under.context.nowMs += 2000;
  under.accepted("/sale", { ...sale, pay_id: "A" });
  under.accepted("/sale", { ...sale, pay_id: "B" });
  under.accepted("/terminate");
  assert.equal(under.ask("/check", { pay_id: "A" }).code, -21);
  assert.equal(under.ask("/check", { pay_id: "B" }).code, -21);
  assert.equal(dataOf(under.ask("/check", { pay_id: "ENDED" }))["status"], "APPROVED");
});

test("/xreport adds up what is approved by kind and currency; /close-shift does too, and begins a new batch", () => {
  const under = bank();
  under.accepted("/sale", { ...sale, amount: 2n ** 62n });
  under.accepted("/sale", { ...sale, pay_id: "P-2", amount: 2n ** 62n });
  under.accepted("/sale", { ...sale, pay_id: "P-3", currency_name: "EUR" });
  under.accepted("/sale", { ...sale, pay_id: "P-4", amount: 1020n });
  const rrn = String(dataOf(finalOf(under, "P-3"))["rrn"]);
  under.accepted("/refund", { ...sale, pay_id: "P-5", amount: 300n, currency_name: "EUR", rrn });
  const totals = [
    { kind: "sale", currency: "EUR", count: 1n, sum: 1000n },
    { kind: "sale", currency: "AZN", count: 2n, sum: 2n ** 63n },
    { kind: "refund", currency: "EUR", count: 1n, sum: 300n },
  ];
  under.context.nowMs += 2000;
  assert.deepEqual(reported(under, "/xreport", "X-1"), { batch: 1n, totals });
  assert.deepEqual(reported(under, "/close-shift", "Z-1"), { batch: 1n, totals });
  assert.deepEqual(reported(under, "/xreport", "X-2"), { batch: 2n, totals: [] });
  assert.deepEqual(innerOf(under.ask("/check", { pay_id: "Z-1" }))["totals"], totals, "a report stays as it was");
});

test("/close-shift that is not approved closes nothing, and closes its own terminal only", () => {
  const under = bank();
  under.accepted("/sale", sale);
  under.context.nowMs += 2000;
  under.context.next = { name: "declined" };
  under.accepted("/close-shift", { pay_id: "Z-1" });
  assert.equal(finalOf(under, "Z-1").code, -20);
  under.restart();
  reported(under, "/close-shift", "Z-2", { terminal: 2n });
  const totals = [{ kind: "sale", currency: "AZN", count: 1n, sum: 1000n }];
  assert.deepEqual(reported(under, "/xreport", "X", { terminal: 1n }), { batch: 1n, totals });
});

test("a restart in the midst changes nothing", () => {
  // Ends in 44: three questions
  const under = bank();
  under.accepted("/sale", { ...sale, amount: 2n ** 60n + 68n });
  under.accepted("/check", { pay_id: "P-1" });
  under.restart();
  under.accepted("/check", { pay_id: "P-1" });
  under.accepted("/sale", { ...sale, amount: 2n ** 60n + 68n });
  under.accepted("/check", { pay_id: "P-1" });
  assert.equal(dataOf(under.ask("/check", { pay_id: "P-1" }))["status"], "APPROVED");
  assert.deepEqual(under.context.begun, ["/sale"]);
});

test("reset() forgets everything", () => {
  const under = bank();
  const fresh = under.service.saved();
  under.accepted("/sale", { ...sale, terminal: 2n });
  finalOf(under, "P-1");
  under.service.reset();
  assert.deepEqual(under.service.saved(), fresh);
  assert.equal(under.refused("/check", { pay_id: "P-1" }), -15);
});

test("no more than rememberedMax operations are remembered: the oldest is forgotten", () => {
  const under = bank();
  for (let number = 1; number <= rememberedMax; number += 1) {
    under.service.answer("/sale", { ...sale, pay_id: `P-${number}` });
  }
  under.accepted("/check", { pay_id: "P-1" });
  under.accepted("/sale", { ...sale, pay_id: "ONE-MORE" });
  assert.equal(under.refused("/check", { pay_id: "P-1" }), -15);
  under.accepted("/check", { pay_id: "P-2" });
  under.context.nowMs += 2000;
  const sum = BigInt(rememberedMax) * 1000n;
  const totals = [{ kind: "sale", currency: "AZN", count: BigInt(rememberedMax), sum }];
  assert.deepEqual(reported(under, "/xreport", "X").totals, totals, "what is forgotten while it runs never ends");
  under.restart();
  assert.equal(dataOf(under.ask("/check", { pay_id: "ONE-MORE" }))["status"], "APPROVED");
});

test("internal-error is remembered for no more than rememberedMax requests", () => {
  const under = bank();
  for (let number = 0; number <= rememberedMax; number += 1) {
    under.service.answer("/sale", { ...sale, pay_id: `P-${number}`, amount: 1005n });
  }
  under.restart();
  assert.equal(under.refused("/sale", { ...sale, pay_id: "P-0", amount: 1005n }), -3);
  under.accepted("/sale", { ...sale, pay_id: `P-${rememberedMax}`, amount: 1005n });
});

/** As long as a request may be, and with it an id in it. */
const longId = (number: number) => `${number}-${"P".repeat(250_000)}`;

test("no more than rememberedBytesMax are remembered, however long the ids are, and a restart forgets no more", () => {
  const under = bank();
  const latest = 2 * Math.ceil(rememberedBytesMax / 250_000);
  for (let number = 0; number <= latest; number += 1) {
    under.service.answer("/sale", { ...sale, pay_id: longId(number) });
    under.service.answer("/sale", { ...sale, pay_id: `F${longId(number)}`, amount: 1005n });
  }
  assert.ok(writeExact(under.service.saved()).length < 1.1 * rememberedBytesMax);
  assert.equal(under.refused("/check", { pay_id: longId(0) }), -15);
  under.accepted("/check", { pay_id: longId(latest) });
  const before = writeExact(under.service.saved());
  under.restart();
  assert.equal(writeExact(under.service.saved()), before);
  under.accepted("/sale", { ...sale, pay_id: `F${longId(latest)}`, amount: 1005n });
});
