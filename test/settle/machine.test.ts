import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallResult } from "../../src/settle/call-result.ts";
import { type NextStep, nextStep } from "../../src/settle/machine.ts";
import type { FollowedOperation } from "../../src/settle/proof.ts";
import type { SettleState } from "../../src/settle/state.ts";
import { answered, bad, fresh, good, lostCall, operationOf, unsentCall } from "./judged.ts";

/** The rules of the settle machine one by one; the tests beside this file follow whole operations by them. */

const sale = operationOf("bank", "/sale");
const cancel = operationOf("bank", "/cancel");
const receipt = operationOf("fiscal", "/sale");
const refund = operationOf("fiscal", "/refund");
const deposit = operationOf("fiscal", "/deposit");
const payment = operationOf("qr", "/showqrcode");
const givingBack = operationOf("qr", "/refund");

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

test("nextStep() ends a start that was turned away for good, unless an earlier one is in doubt", () => {
  const { verdict, reply, summary } = ends(sale, {}, unsentCall(false));
  assert.deepEqual([verdict, reply, summary?.message], ["declined", undefined, "turned away"]);
  assert.deepEqual(goesOn(sale, { doubt: true, absents: 2 }, unsentCall(false)), {
    phase: "lost",
    absents: 0,
    pause: "interval",
  });
  assert.deepEqual(goesOn(sale, { refusals: 1, absents: 2 }, unsentCall(false)), {
    phase: "refused",
    absents: 0,
    pause: "interval",
  });
});

test("nextStep() has a sign that was refused before the sending built anew once, and only by that code", () => {
  assert.deepEqual(goesOn(receipt, {}, unsentCall(false, 1)), { signedAgain: true, pause: "none" });
  assert.equal(ends(receipt, { signedAgain: true }, unsentCall(false, 1)).verdict, "failed");
  assert.equal(ends(receipt, {}, unsentCall(false, 2)).verdict, "failed");
});

test("nextStep() tries nothing again once it was stopped: what wasn't begun has ended, and what may have is asked about", () => {
  for (const turnedAway of [unsentCall(true), unsentCall(false, 1)]) {
    assert.equal(ends(receipt, { askOnly: true }, turnedAway).verdict, "failed");
    assert.deepEqual(goesOn(receipt, { askOnly: true, doubt: true, absents: 1 }, turnedAway), {
      phase: "lost",
      absents: 0,
      pause: "interval",
    });
  }
});

test("nextStep() asks about a start that was lost, and ends at once what has no question", () => {
  assert.deepEqual(goesOn(sale, { absents: 2 }, lostCall), { phase: "lost", doubt: true, absents: 0, pause: "interval" });
  const { verdict, reply, summary } = ends(givingBack, {}, lostCall);
  assert.deepEqual([verdict, reply, summary?.message], ["unknown", undefined, "no answer came"]);
});

test("nextStep() takes an answer that names another key for no answer to this start", () => {
  const other = good({ pay_id: "K-2" });
  assert.deepEqual(goesOn(sale, {}, other), { phase: "lost", doubt: true, pause: "interval" });
  assert.equal(ends(givingBack, {}, other).verdict, "unknown");
});

test("nextStep() follows what a success only accepts, and begins every count anew", () => {
  const counted = { absents: 2, refusals: 1 };
  for (const accepted of [good(), good({ data: { status: "APPROVED" } })]) {
    const step = goesOn(sale, counted, accepted);
    assert.deepEqual(step, { phase: "accepted", absents: 0, refusals: 0, pause: "interval" });
  }
  assert.equal(ends(deposit, {}, good()).verdict, "closed");
  assert.deepEqual(goesOn(deposit, {}, good({ docStatus: 0 })), { phase: "accepted", pause: "interval" });
});

test("nextStep() doesn't close a refund by the document that stood under its key before", () => {
  const baseline = JSON.stringify({ documentID: "12", docStatus: "1" });
  const own = goesOn(refund, { baseline, absents: 1 }, good({ docStatus: 1, documentID: 12 }));
  assert.deepEqual(own, { phase: "accepted", absents: 0, pause: "interval" });
  const { verdict, reply } = ends(refund, { baseline }, good({ docStatus: 1, documentID: 13 }));
  assert.deepEqual([verdict, reply?.["documentID"]], ["closed", 13]);
});

test("nextStep() asks about a document that is closed and not on paper", () => {
  const unprinted = { phase: "accepted", unprinted: true, pause: "interval" };
  assert.deepEqual(goesOn(receipt, {}, good({ docStatus: 1, documentID: 12, printError: 3 })), unprinted);
  assert.deepEqual(goesOn(receipt, {}, bad(15)), unprinted);
  // No code is not the code of a print that failed, where the contract has none.
  assert.deepEqual(goesOn(sale, {}, bad(undefined, { message: "no" })), {
    phase: "refused",
    doubt: true,
    refusal: { code: undefined, message: "no" },
    refusals: 1,
    pause: "interval",
  });
});

test("nextStep() says after an error of what can't be asked about that it isn't known, and what to do", () => {
  const silent = ends(givingBack, {}, bad(1));
  assert.equal(silent.verdict, "unknown");
  assert.match(silent.summary?.message ?? "", /^refused: .*look it up before sending it again/);
  assert.deepEqual(silent.reply, bad(1).reply);
  assert.match(ends(givingBack, {}, bad(1, { message: "no money" })).summary?.message ?? "", /^no money: /);
});

test("nextStep() takes a code of progress for an acceptance", () => {
  assert.deepEqual(goesOn(receipt, { absents: 1 }, bad(44)), { phase: "accepted", absents: 0, pause: "interval" });
});

test("nextStep() has a start with a wrong sign sent once more, but not when it was stopped", () => {
  assert.deepEqual(goesOn(receipt, {}, bad(1)), { signedAgain: true, pause: "none" });
  assert.equal(ends(receipt, { signedAgain: true }, bad(1)).verdict, "failed");
  assert.equal(ends(receipt, { askOnly: true }, bad(1)).verdict, "failed");
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

test("nextStep() sends again after a code that says so, three times, and what it left behind is in doubt from then", () => {
  assert.deepEqual(goesOn(receipt, {}, bad(5)), { doubt: true, resends: 1, pause: "interval" });
  assert.equal(goesOn(receipt, { resends: 2 }, bad(5)).resends, 3);
  assert.equal(goesOn(receipt, { resends: 3 }, bad(5)).phase, "refused");
  assert.equal(goesOn(receipt, { askOnly: true }, bad(5)).phase, "refused");
  assert.equal(goesOn(receipt, {}, bad(9)).phase, "refused");
  assert.deepEqual(goesOn(receipt, { doubt: true }, bad(9)), { resends: 1, pause: "interval" });
});

test("nextStep() holds a start that was answered with an open error in doubt, but not one whose name is still to be learned", () => {
  assert.equal(goesOn(sale, {}, bad(-3)).doubt, true);
  assert.equal(goesOn(payment, {}, bad(1)).doubt, undefined);
});

// --- the name that only a start's answer gives

test("nextStep() learns a payment's name from its start, from an error too, and then knows it for sure", () => {
  const learned = { learned: "T-1", learnedProven: true, pause: "interval" };
  assert.deepEqual(goesOn(payment, { learned: "K-1" }, good({ data: { trans: "T-1" } })), { ...learned, phase: "accepted" });
  assert.equal(goesOn(payment, { learned: "K-1" }, bad(1, { data: { trans: "T-1" } })).learned, "T-1");
});

test("nextStep() takes the till's own name for the right one after a success without another, unless an earlier start may have had one", () => {
  const own = { learned: "K-1" };
  assert.equal(goesOn(payment, own, good()).learnedProven, true);
  assert.equal(goesOn(payment, own, bad(1)).learnedProven, undefined);
  assert.equal(goesOn(payment, own, good({ message: "it may have been carried out" })).learnedProven, undefined);
  assert.equal(goesOn(payment, { ...own, doubt: true }, good()).learnedProven, undefined);
  assert.equal(goesOn(sale, {}, good({ data: { trans: "T-1" } })).learned, undefined);
});

// --- the baseline

test("nextStep() sends once it knows what has ended under its key, or that nothing is there", () => {
  const asked = { phase: "baseline", baseline: undefined } as const;
  for (const absents of [0, 1]) {
    assert.deepEqual(goesOn(cancel, { ...asked, absents }, bad(-15)), { absents: absents + 1, pause: "interval" });
  }
  const denied = { ...asked, absents: 2 } as const;
  assert.deepEqual(goesOn(cancel, denied, bad(-15)), { phase: "ready", baseline: "", absents: 0, pause: "none" });
  // Three times in a row: it runs, and a lost question says nothing.
  assert.deepEqual(goesOn(cancel, denied, good()), { absents: 0, pause: "interval" });
  assert.deepEqual(goesOn(cancel, denied, lostCall), { pause: "interval" });
  const known = good({ data: { txn_id: "7", status: "APPROVED" } });
  assert.deepEqual(goesOn(cancel, asked, known), {
    phase: "ready",
    baseline: '{"txn_id":"7","status":"APPROVED"}',
    pause: "none",
  });
  for (const open of [good(), bad(-3), lostCall]) assert.deepEqual(goesOn(cancel, asked, open), { pause: "interval" });
});

test("nextStep() sends nothing when the question before the start is refused, and asks again when it is turned away for now", () => {
  const asked = { phase: "baseline", baseline: undefined } as const;
  const { verdict, reply, summary } = ends(cancel, asked, bad(-29));
  assert.deepEqual([verdict, reply?.["code"], summary?.code], ["declined", -29, -29]);
  const turnedAway = ends(cancel, asked, unsentCall(false));
  assert.deepEqual([turnedAway.verdict, turnedAway.reply], ["declined", undefined]);
  const step = after(cancel, asked, unsentCall(true));
  assert.deepEqual(step, { state: { ...fresh, ...asked }, pause: "back-off", retryAfterMs: 700 });
});

// --- the question

test("nextStep() asks again when a question is turned away, lost, or answered about another", () => {
  const state = { phase: "lost", doubt: true, absents: 2 } as const;
  for (const passing of [true, false]) {
    const step = after(sale, state, unsentCall(passing));
    assert.deepEqual(step, { state: { ...fresh, ...state }, pause: "back-off", retryAfterMs: passing ? 700 : undefined });
  }
  for (const nothing of [lostCall, good({ pay_id: "K-2", data: { status: "APPROVED" } })])
    assert.deepEqual(goesOn(sale, state, nothing), { pause: "interval" });
});

test("nextStep() takes an answer that names another payment for none, an end and an error alike", () => {
  const state = { phase: "accepted", learned: "T-1", learnedProven: true } as const;
  for (const other of [good({ data: { trans: "T-2", rrn: "7" } }), bad(1, { data: { trans: "T-2" } })])
    assert.deepEqual(goesOn(payment, state, other), { pause: "interval" });
  assert.equal(ends(payment, state, good({ data: { trans: "T-1", rrn: "7" } })).verdict, "approved");
  assert.equal(ends(payment, state, bad(1, { data: { trans: "T-1" } })).verdict, "declined");
});

test("nextStep() counts from the beginning when anything else than an absence was answered", () => {
  const state = { phase: "lost", doubt: true, absents: 2 } as const;
  assert.deepEqual(goesOn(sale, state, good()), { phase: "accepted", absents: 0, learnedProven: true, pause: "interval" });
  assert.deepEqual(goesOn(sale, state, bad(-3)), { absents: 0, pause: "interval" });
  assert.equal(goesOn(receipt, state, bad(44)).phase, "accepted");
  assert.equal(goesOn(payment, { ...state, learned: "K-1" }, good({ message: "in doubt" })).learnedProven, undefined);
});

test("nextStep() ends by an end that can only be its own", () => {
  const ended = good({ data: { txn_id: "7", status: "APPROVED" } });
  const { verdict, reply, summary } = ends(cancel, { phase: "lost" }, ended);
  assert.deepEqual([verdict, reply, summary], ["approved", ended.reply, ended.summary]);
  const before = { phase: "lost", baseline: '{"txn_id":"7","status":"APPROVED"}', absents: 1 } as const;
  assert.deepEqual(goesOn(cancel, before, ended), { absents: 0, pause: "interval" });
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

test("nextStep() believes one absence at once after the terminal's own refusal, and no sooner after one that may be a gateway's", () => {
  for (const [operation, absent, own, gateways] of [
    [receipt, bad(9), [8, 16], [5, 504, undefined]],
    [deposit, bad(9), [4, 7, 8, 11, 12, 13, 23], [5, 504, undefined]],
    [sale, bad(-15), [-20, -21, -54], [-3, 504, undefined]],
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

test("nextStep() takes an absence for no proof where something stood under the key, or where that isn't known for sure", () => {
  const state = { phase: "lost", doubt: true, absents: 5 } as const;
  assert.deepEqual(goesOn(cancel, { ...state, baseline: '{"txn_id":"7"}' }, bad(-15), timeoutMs), { pause: "interval" });
  assert.deepEqual(goesOn(cancel, { ...state, baseline: undefined }, bad(-15), timeoutMs), { pause: "interval" });
});

test("nextStep() sends a lost start again that isn't found, three times, and never once it was stopped", () => {
  const state = { phase: "lost", doubt: true } as const;
  assert.deepEqual(goesOn(sale, state, bad(-15)), { phase: "ready", absents: 1, resends: 1, pause: "none" });
  assert.equal(goesOn(sale, { ...state, resends: 2 }, bad(-15)).resends, 3);
  assert.deepEqual(goesOn(sale, { ...state, resends: 3 }, bad(-15), timeoutMs), { absents: 1, pause: "interval" });
  assert.deepEqual(goesOn(sale, { ...state, askOnly: true }, bad(-15), timeoutMs), { absents: 1, pause: "interval" });
});

test("nextStep() keeps the error of a start that came to nothing as the reason", () => {
  const refusal = { code: -3, message: "no connection" };
  const { summary } = ends(sale, { phase: "refused", absents: 2, refusal }, bad(-15, { message: "not found" }), timeoutMs);
  assert.deepEqual([summary?.code, summary?.message, summary?.httpStatus], [-3, "no connection", 200]);
  const plain = ends(cancel, { phase: "lost", absents: 2 }, bad(-15, { message: "not found" }), timeoutMs);
  assert.deepEqual([plain.summary?.code, plain.summary?.message], [-15, "not found"]);
});

test("nextStep() goes on asking about what was accepted and isn't found, unless its contract takes it back", () => {
  const state = { phase: "accepted", absents: 2 } as const;
  assert.deepEqual(goesOn(sale, state, bad(-15), timeoutMs), { absents: 0, pause: "interval" });
  assert.deepEqual(goesOn(sale, { ...state, isAborted: true }, bad(-15), timeoutMs), { absents: 0, pause: "interval" });
  assert.deepEqual(goesOn(receipt, state, bad(9)), { absents: 0, pause: "interval" });
  // Nothing more is sent of it, and nobody took it away.
  assert.deepEqual(goesOn(receipt, { ...state, askOnly: true }, bad(9), timeoutMs), { absents: 0, pause: "interval" });
  assert.equal(ends(receipt, { ...state, isAborted: true }, bad(9), timeoutMs).verdict, "failed");
  assert.deepEqual(goesOn(receipt, { ...state, isAborted: true }, bad(9), timeoutMs - 1), { absents: 0, pause: "interval" });
  assert.deepEqual(goesOn(receipt, { ...state, absents: 1, isAborted: true }, bad(9), timeoutMs), {
    absents: 2,
    pause: "interval",
  });
  assert.equal(ends(deposit, state, bad(9), timeoutMs).verdict, "failed");
  assert.deepEqual(goesOn(deposit, { ...state, absents: 1 }, bad(9), timeoutMs), { absents: 2, pause: "interval" });
  // A gateway says 44 of a deposit that it lost sight of
  assert.deepEqual(goesOn(deposit, state, bad(9), timeoutMs - 1), { absents: 0, pause: "interval" });
});

test("nextStep() ends a payment by an error only where it was surely asked about by its right name", () => {
  const guessed = { learned: "K-1", doubt: true } as const;
  const proven = ends(payment, { ...guessed, phase: "lost", learnedProven: true }, bad(1));
  assert.deepEqual([proven.verdict, proven.reply?.["code"]], ["declined", 1]);
  assert.deepEqual(goesOn(payment, { ...guessed, phase: "accepted" }, bad(1)), { pause: "interval" });
  assert.deepEqual(goesOn(payment, { ...guessed, phase: "lost" }, bad(1)), { phase: "ready", resends: 1, pause: "none" });
  const refusal = { code: 1, message: "no" };
  const refused = { learned: "K-1", phase: "refused", refusal } as const;
  assert.equal(goesOn(payment, { ...refused, refusals: 1 }, bad(1)).phase, "ready");
  assert.equal(goesOn(payment, { ...refused, refusals: 2, doubt: true }, bad(1)).phase, "ready");
  const twice = ends(payment, { ...refused, refusals: 2 }, bad(1, { message: "unknown payment" }));
  assert.deepEqual([twice.verdict, twice.summary?.message], ["declined", "no"]);
  // An error that comes from a service whose errors end nothing
  assert.deepEqual(goesOn(sale, { phase: "accepted" }, bad(-3)), { pause: "interval" });
});

// --- printing

test("nextStep() has the copy of a closed document printed once, where it was said that it isn't on paper", () => {
  const closed = good({ docStatus: 1, documentID: 12 });
  const unprinted = good({ docStatus: 1, documentID: 12, printError: 4 });
  assert.equal(ends(receipt, { phase: "accepted" }, closed).verdict, "closed");
  for (const [state, document] of [
    [{ phase: "accepted", unprinted: true }, closed],
    [{ phase: "accepted" }, unprinted],
  ] as const) {
    const step = after(receipt, state, document);
    assert.deepEqual(step, {
      state: { ...fresh, phase: "printing", unprinted: true },
      pause: "none",
      document: document.reply,
    });
    assert.equal(ends(receipt, { ...state, copied: true }, document).verdict, "unprinted");
  }
  const nameless = ends(receipt, { phase: "accepted", unprinted: true }, good({ docStatus: 1 }));
  assert.deepEqual([nameless.verdict, nameless.reply?.["docStatus"]], ["unprinted", 1]);
  // As read from the digits 1e20: the request that names it can't be written.
  const inexact = good({ docStatus: 1, documentID: 1e20 });
  assert.equal(ends(receipt, { phase: "accepted", unprinted: true }, inexact).verdict, "unprinted");
  assert.equal(ends(receipt, { phase: "lost" }, answered({ status: "error", code: 15, docStatus: 1 })).verdict, "unprinted");
});

test("nextStep() asks for the copy again only while it was turned away for now", () => {
  const state = { phase: "printing", unprinted: true } as const;
  const again = after(receipt, state, unsentCall(true));
  assert.deepEqual(again, { state: { ...fresh, ...state }, pause: "back-off", retryAfterMs: 700 });
  for (const [result, verdict] of [
    [good(), "closed"],
    [bad(15), "unprinted"],
    [lostCall, "unprinted"],
    [unsentCall(false), "unprinted"],
  ] as const) {
    const end = ends(receipt, state, result);
    assert.deepEqual([end.verdict, end.reply, end.summary], [verdict, undefined, result.summary]);
  }
});
