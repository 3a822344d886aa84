import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallResult } from "../../src/settle/call-result.ts";
import { type NextStep, nextStep } from "../../src/settle/machine.ts";
import type { FollowedOperation } from "../../src/settle/proof.ts";
import type { SettleState } from "../../src/settle/state.ts";
import { bad, fresh, good, operationOf, unsentCall } from "./judged.ts";

/** The rules of the settle machine one by one; the tests beside this file follow whole operations by them. */

const sale = operationOf("bank", "/sale");
const cancel = operationOf("bank", "/cancel");
const receipt = operationOf("fiscal", "/sale");
const deposit = operationOf("fiscal", "/deposit");
const payment = operationOf("qr", "/showqrcode");

const timeoutMs = 30_000;

function after(operation: FollowedOperation, state: Partial<SettleState>, result: CallResult, sinceStartMs = 0): NextStep {
  return nextStep(operation, { ...fresh, ...state }, result, sinceStartMs);
}

/** What goes on: the fields of the state that have changed, and the pause. */
function goesOn(
  operation: FollowedOperation,
  state: Partial<SettleState>,
  result: CallResult,
  sinceStartMs = 0,
): Partial<SettleState> & { readonly pause: string } {
  const before: SettleState = { ...fresh, ...state };
  const step = nextStep(operation, before, result, sinceStartMs);
  assert.ok("state" in step, `it ended: ${JSON.stringify(step)}`);
  const changed = Object.entries(step.state).filter(([name, value]) => value !== before[name as keyof SettleState]);
  return { ...Object.fromEntries(changed), pause: step.pause };
}

function ends(operation: FollowedOperation, state: Partial<SettleState>, result: CallResult, sinceStartMs = 0) {
  const step = nextStep(operation, { ...fresh, ...state }, result, sinceStartMs);
  assert.ok("verdict" in step, `it goes on: ${JSON.stringify(step)}`);
  return step;
}

// --- the start

test("nextStep() has a start that was turned away for now tried again, when it was said to", () => {
  const step = after(sale, {}, unsentCall(true));
  assert.deepEqual(step, { state: fresh, pause: "back-off", retryAfterMs: 700 });
});

test("nextStep() believes a refusal which proves that nothing was begun, and none while an earlier start is in doubt", () => {
  const { verdict, reply, summary } = ends(sale, {}, bad(-29));
  assert.deepEqual([verdict, reply?.["code"], summary?.code], ["declined", -29, -29]);
  assert.deepEqual(goesOn(sale, { doubt: true, absents: 1, refusals: 1 }, bad(-29, { message: "no" })), {
    phase: "refused",
    absents: 0,
    refusal: { code: -29, message: "no" },
    refusals: 2,
    earlierInDoubt: true,
    pause: "interval",
  });
  assert.equal(goesOn(receipt, { doubt: true, signedAgain: true }, bad(1)).phase, "refused");
});

test("nextStep() holds a start that was answered with an open error in doubt, but not one whose name is still to be learned", () => {
  assert.equal(goesOn(sale, {}, bad(-3)).doubt, true);
  assert.equal(goesOn(payment, {}, bad(1)).doubt, undefined);
});

// --- the name that only a start's answer gives

// --- the baseline

// --- the question

test("nextStep() counts from the beginning when anything else than an absence was answered", () => {
  const state = { phase: "lost", doubt: true, absents: 2 } as const;
  assert.deepEqual(goesOn(sale, state, good()), { phase: "accepted", absents: 0, learnedProven: true, pause: "interval" });
  assert.deepEqual(goesOn(sale, state, bad(-3)), { absents: 0, pause: "interval" });
  assert.equal(goesOn(receipt, state, bad(44)).phase, "accepted");
  assert.equal(goesOn(payment, { ...state, learned: "K-1" }, good({ message: "in doubt" })).learnedProven, undefined);
});

test("nextStep() believes an absence after three in a row, once the start's time-out is over: no millisecond sooner", () => {
  for (const phase of ["lost", "refused"] as const) {
    const state = { phase, doubt: true, absents: 2 };
    assert.equal(ends(cancel, state, bad(-15), timeoutMs).verdict, "declined");
    // Said while it may be on its way, it would leave one answer to decide.
    assert.deepEqual(goesOn(cancel, state, bad(-15), timeoutMs - 1), { absents: 0, pause: "interval" });
    assert.deepEqual(goesOn(cancel, { ...state, absents: 1 }, bad(-15), timeoutMs), { absents: 2, pause: "interval" });
  }
});

test("nextStep() believes one absence at once after an error that the contract lists, three after one that it has resent, and any other no sooner than after a loss", () => {
  for (const [operation, absent, own, gateways] of [
    [receipt, bad(9), [8], [16, 504, undefined]],
    [deposit, bad(9), [4, 7, 8, 11, 12, 13, 23], [5, 504, undefined]],
    [sale, bad(-15), [-20, -21, -54], [-3, -999, 504, undefined]],
    [cancel, bad(-15), [-20, -21, -54], [-3, 504, undefined]],
  ] as const) {
    const refused = (code: number | undefined) => ({ phase: "refused", refusal: { code, message: undefined } }) as const;
    for (const code of own) {
      const { verdict, summary } = ends(operation, refused(code), absent);
      assert.deepEqual([verdict, summary?.code], [operation.rules.refused, code]);
      // An earlier one may be on its way.
      const doubted = { ...refused(code), earlierInDoubt: true };
      assert.deepEqual(goesOn(operation, doubted, absent, timeoutMs - 1), { pause: "interval" });
    }
    for (const code of gateways) {
      assert.deepEqual(goesOn(operation, refused(code), absent, timeoutMs - 1), { pause: "interval" });
      assert.deepEqual(goesOn(operation, refused(code), absent, timeoutMs), { absents: 1, pause: "interval" });
      const { verdict } = ends(operation, { ...refused(code), absents: 2 }, absent, timeoutMs);
      assert.equal(verdict, operation.rules.refused);
    }
  }
  const resent = { phase: "refused", refusal: { code: 5, message: undefined } } as const;
  assert.deepEqual(goesOn(receipt, { ...resent, absents: 1 }, bad(9), 0), { absents: 2, pause: "interval" });
  assert.equal(ends(receipt, { ...resent, absents: 2 }, bad(9), 0).verdict, "failed");
});

test("nextStep() takes a start for lost for good once it was sent as often as it may be, and never found for as long as it may take", () => {
  for (const [operation, absent] of [
    [sale, bad(-15)],
    [receipt, bad(9)],
    [deposit, bad(9)],
  ] as const) {
    const state = { phase: "lost", doubt: true } as const;
    assert.equal(goesOn(operation, { ...state, resends: 2 }, absent, timeoutMs).phase, "ready");
    const sentEnough = { ...state, resends: 3, absents: 2 };
    assert.deepEqual(goesOn(operation, sentEnough, absent, timeoutMs - 1), { absents: 0, pause: "interval" });
    assert.equal(ends(operation, sentEnough, absent, timeoutMs).verdict, operation.rules.refused);
  }
});

test("nextStep() counts denials anew after each start: one before it says nothing of a document that this start closed", () => {
  const resent = { ...fresh, ...goesOn(deposit, { phase: "lost", doubt: true }, bad(9)) };
  const unprinted = { ...resent, ...goesOn(deposit, resent, bad(15)) };
  assert.deepEqual([resent.absents, unprinted.phase, unprinted.absents], [0, "accepted", 0]);
  assert.equal(goesOn(deposit, unprinted, bad(9), timeoutMs).absents, 1);
});

// --- printing
