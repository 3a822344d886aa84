import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ServiceAnswer } from "../../../src/emulator/answer.ts";
import { dataOf, innerOf, type ServiceUnderTest } from "../service-under-test.ts";
import { BankModel, type ModelOperation, totalsText } from "./bank-model.ts";
import { bank } from "./bank-till.ts";

/**
 * Tests src/emulator/bank/bank.ts.
 *
 * One step of a till, or of the context around it.
 */
type Step =
  | {
      readonly kind: "start";
      readonly route: string;
      readonly payId?: string;
      readonly amount: bigint;
      readonly rrn: number;
      readonly currency: string;
    }
  | { readonly kind: "check" | "abort"; readonly payId: string }
  | { readonly kind: "terminate" | "restart" }
  | { readonly kind: "wait"; readonly ms: number };

const payId = fc.constantFrom("P-0", "P-1", "P-2", "P-3", "P-4");

/** Small ones, so that they add up to each other, and ones beyond 2^53, which end alike. */
const amount = fc
  .tuple(
    fc.constantFrom(0n, 1n, 2n, 3n, 2n ** 62n / 100n),
    fc.constantFrom(50n, 0n, 3n, 5n, 20n, 21n, 22n, 30n, 54n, 44n, 61n, 65n),
  )
  .map(([hundreds, digits]) => hundreds * 100n + digits)
  .filter((each) => each > 0n);

const start = fc.record(
  {
    kind: fc.constant("start" as const),
    route: fc.constantFrom("/sale", "/preauth", "/confirm", "/cancel", "/refund", "/xreport", "/close-shift"),
    payId,
    amount,
    rrn: fc.nat(20),
    currency: fc.constantFrom("AZN", "AZN", "AZN", "EUR"),
  },
  { requiredKeys: ["kind", "route", "amount", "rrn", "currency"] },
);

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: start },
    { weight: 8, arbitrary: fc.record({ kind: fc.constant("check" as const), payId }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("abort" as const), payId }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("terminate" as const, "restart" as const) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(500, 1999, 2000, 9000) }) },
  ),
  { minLength: 20, maxLength: 80, size: "max" },
);

const summary = ({ status, code }: ServiceAnswer) => (code === undefined ? status : `${status} ${code}`);

/** What a final answer says, as the model puts it. */
function endIn(answer: ServiceAnswer): string {
  return [dataOf(answer)["status"], ...(answer.code === undefined ? [] : [answer.code])].join(" ");
}

class Run {
  readonly under = bank();
  readonly model = new BankModel(this.under.context.nowMs);
  /** The transactions that were seen, by what they stand for. */
  readonly #seen = new Map<ModelOperation, unknown>();

  step(step: Step): void {
    const { under, model } = this;
    switch (step.kind) {
      case "start":
        this.start(step);
        break;
      case "check":
      case "abort":
        this.#ask(`/${step.kind}`, step.payId);
        break;
      case "terminate":
        model.look();
        for (const each of model.operations) model.stop(each);
        under.accepted("/terminate");
        break;
      case "restart":
        under.restart();
        break;
      case "wait":
        under.context.nowMs += step.ms;
        model.nowMs += step.ms;
    }
  }

  start({ route, payId, amount, rrn, currency }: Step & { readonly kind: "start" }): void {
    const report = route === "/xreport" || route === "/close-shift";
    const learnt = [...this.model.learnt.keys()];
    const known = learnt.length === 0 ? "999" : learnt[rrn % learnt.length];
    const money = report ? {} : { amount, currency_name: currency };
    const link = ["/confirm", "/cancel", "/refund"].includes(route) ? { rrn: known } : {};
    const body = { ...(payId !== undefined && { pay_id: payId }), ...money, ...link };
    const answer = this.under.ask(route, body);
    assert.equal(summary(answer), this.model.start(route, body), route);
    assert.equal(answer["data"], undefined);
  }

  #ask(route: string, payId: string): void {
    const { model, under } = this;
    model.look();
    const operation = model.latest(payId);
    const answer = under.ask(route, { pay_id: payId });
    if (operation === undefined) {
      assert.equal(summary(answer), "error -15");
    } else if (route === "/abort" ? model.abort(operation) : !model.check(operation)) {
      assert.deepEqual(answer, { status: "success" });
    } else {
      this.#final(operation, answer);
    }
  }

  #final(operation: ModelOperation, answer: ServiceAnswer): void {
    const { txn_id, rrn } = dataOf(answer);
    assert.equal(endIn(answer), operation.end);
    assert.equal(innerOf(answer)["operation"], operation.route.slice(1));
    assert.equal(this.#seen.get(operation) ?? txn_id, txn_id, "one transaction for each operation");
    this.#seen.set(operation, txn_id);
    assert.equal(new Set(this.#seen.values()).size, this.#seen.size, "one operation for each transaction");
    if (operation.aborted) assert.equal(endIn(answer), "ERROR -21", "never approved when it was aborted");
    if (operation.end !== "APPROVED") return;
    if (operation.totals === undefined) this.model.learnt.set(String(rrn), operation);
    else assert.equal(reportedBy(answer), operation.totals);
  }

  /** What must hold of any history, at its end. */
  end(): void {
    this.step({ kind: "wait", ms: 60_000 });
    this.step({ kind: "start", route: "/xreport", payId: "X", amount: 0n, rrn: 0, currency: "" });
    this.step({ kind: "wait", ms: 2000 });
    this.step({ kind: "check", payId: "X" });
    assert.equal(this.model.latest("X")?.totals, totalsText(this.model.totals));
    for (const each of this.model.operations)
      assert.ok(each.stands <= each.amount && each.left >= 0n, "given back beyond what was paid");
    const keys = this.model.operations
      .filter((each) => each.payId !== undefined)
      .map(({ route, payId }) => `${route} ${payId}`);
    assert.equal(new Set(keys).size, keys.length, "two operations under one key");
    assert.equal(savedCount(this.under), this.model.operations.length);
  }
}

function savedCount(under: ServiceUnderTest): unknown {
  const { operations } = under.service.saved();
  return Array.isArray(operations) ? operations.length : undefined;
}

/** What a report's final answer adds up to. */
function reportedBy(answer: ServiceAnswer): string {
  const { totals } = innerOf(answer);
  assert.ok(Array.isArray(totals));
  return totalsText(totals.map(({ kind, currency, count, sum }) => [`${kind} ${currency}`, [BigInt(count), BigInt(sum)]]));
}

test("emulatedBank() answers as its model does, whatever a till asks in whatever order, restarted in the midst", () => {
  fc.assert(
    fc.property(steps, (each) => {
      const run = new Run();
      for (const step of each) run.step(step);
      run.end();
    }),
    { numRuns: Number(process.env["SAFETY_RUNS"] ?? 300) },
  );
});
