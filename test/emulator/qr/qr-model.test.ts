import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { JsonObject } from "../../../src/core/json-object.ts";
import { emulatedQr } from "../../../src/emulator/qr/qr.ts";
import { dataOf, ServiceUnderTest } from "../service-under-test.ts";

/**
 * Tests src/emulator/qr/qr.ts.
 *
 * A payment as a till may picture it.
 */
interface Paid {
  readonly amount: bigint;
  readonly system: string;
  readonly dueMs: number;
  readonly good: boolean;
  trans: string | undefined;
  waits: number;
  ended: boolean;
  rrn: string | undefined;
  /** Given back, by what the requests asked for. */
  back: bigint;
  cancelled: boolean;
}

const payId = fc.constantFrom("Q-0", "Q-1", "Q-2");
const amount = fc.constantFrom(100n, 200n, 44n, 3n, 5n, 20n, 2n ** 62n - (2n ** 62n % 100n));
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("show" as const), payId, amount, system: fc.constantFrom("QRPAY", "PALM") }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("check" as const), payId, stray: fc.nat(9) }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constantFrom("refund" as const, "cancel" as const), payId, amount, share: fc.nat(3) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "restart" as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(500, 1999, 2000, 6000) }) },
);

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

class Run {
  readonly under = new ServiceUnderTest("qr", emulatedQr);
  readonly #payments = new Map<string, Paid>();
  readonly #failed = new Set<string>();
  readonly #references: unknown[] = [];
  #shown = 0;

  step(step: Step): void {
    switch (step.kind) {
      case "show":
        this.#show(step);
        break;
      case "check":
        this.#check(step);
        break;
      case "refund":
      case "cancel":
        this.#giveBack(step);
        break;
      case "restart":
        this.under.restart();
        break;
      case "wait":
        this.under.context.nowMs += step.ms;
    }
  }

  /** What must hold of any history, at its end. */
  end(): void {
    for (const { back, amount } of this.#payments.values()) assert.ok(back <= amount, "given back beyond what was paid");
    assert.equal(new Set(this.#references).size, this.#references.length, "every reference is given once");
    const { operations } = this.under.service.saved();
    assert.equal(Array.isArray(operations) && operations.length, this.#shown, "one payment for each pay_id");
  }

  #show({ payId, amount, system }: Step & { kind: "show" }): void {
    const body = { pay_id: payId, amount, currency: "944", currency_name: "AZN", pay_system: system };
    const answer = this.under.ask("/showqrcode", body);
    const known = this.#payments.get(payId);
    if (known !== undefined) {
      const same = known.amount === amount && known.system === system;
      assert.equal(answer.status, same ? "success" : "error");
      if (same && system === "QRPAY") known.trans = String(dataOf(answer)["trans"]);
      return;
    }
    if (this.#failsOnce(amount, `show ${payId}`)) {
      assert.equal(answer.code, 1);
      return;
    }
    assert.equal(answer.status, amount === 3n ? "error" : "success");
    const waits = amount === 44n ? 3 : 1;
    const trans = system === "PALM" ? payId : dataOf(answer)["trans"];
    const dueMs = this.under.context.nowMs + waits * 2000;
    const common = {
      amount,
      system,
      dueMs,
      waits,
      good: amount !== 20n,
      ended: false,
      rrn: undefined,
      back: 0n,
      cancelled: false,
    };
    this.#payments.set(payId, { ...common, trans: trans === undefined ? undefined : String(trans) });
    this.#shown += 1;
  }

  #check({ payId, stray }: Step & { kind: "check" }): void {
    const payment = this.#payments.get(payId);
    const body = { pay_id: payId, trans: payment?.trans ?? "T", pay_system: payment?.system ?? "PALM" };
    if (payment?.trans === undefined || stray === 0) {
      const pay_system = stray === 0 ? "QRBASIC" : body.pay_system;
      assert.equal(this.under.refused("/check", { ...body, pay_system }), 1, "not its own ids");
      return;
    }
    if (payment.dueMs <= this.under.context.nowMs) payment.ended = true;
    if (!payment.ended && payment.waits > 0) {
      payment.waits -= 1;
      this.under.accepted("/check", body);
      return;
    }
    payment.ended = true;
    const answer = this.under.ask("/check", body);
    assert.equal(answer.status, payment.good ? "success" : "error");
    if (!payment.good) return;
    const { rrn } = dataOf(answer);
    if (payment.rrn === undefined) this.#references.push(rrn);
    payment.rrn ??= String(rrn);
    assert.equal(rrn, payment.rrn);
  }

  #giveBack({ kind, payId, amount, share }: Step & { kind: "refund" | "cancel" }): void {
    const payment = this.#payments.get(payId);
    if (payment?.rrn === undefined) return;
    const left = payment.amount - payment.back;
    // Mostly what is left, or a part of it, and now and then any amount
    const wanted = [amount, left, left / 2n, left][share] ?? amount;
    if (wanted === 0n) return;
    const { trans, system, rrn } = payment;
    const body: JsonObject = { pay_id: payId, trans, pay_system: system, rrn, amount: wanted, currency: "944" };
    const answer = this.under.ask(`/${kind}`, body);
    const digits = wanted % 100n;
    if (wanted > left || payment.cancelled) {
      assert.equal(answer.code, 1);
      return;
    }
    if (this.#failsOnce(wanted, `${kind} ${payId} ${wanted}`) || [20n, 21n, 30n, 54n].includes(digits)) {
      assert.equal(answer.code, 1);
      return;
    }
    payment.back += wanted;
    payment.cancelled = kind === "cancel";
    assert.equal(answer.status, digits === 3n ? "error" : "success");
    if (digits !== 3n) this.#references.push(dataOf(answer)["rrn"]);
  }

  #failsOnce(amount: bigint, key: string): boolean {
    if (this.#failed.delete(key) || amount % 100n !== 5n) return false;
    this.#failed.add(key);
    return true;
  }
}

test("emulatedQr() answers as its model does, whatever a till asks in whatever order, restarted in the midst", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 80, size: "max" }), (steps) => {
      const run = new Run();
      for (const each of steps) run.step(each);
      run.end();
    }),
    { numRuns: Number(process.env["SAFETY_RUNS"] ?? 300) },
  );
});
