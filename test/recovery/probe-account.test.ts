import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { lineService } from "../../src/line/caller.ts";
import { hastyMax, pacedMin, rowAnswerMs, rowMin, staleProbesMax } from "../../src/recovery/limits.ts";
import { ProbeAccount } from "../../src/recovery/probe-account.ts";

const accountOf = (state: Partial<ProbeAccount>) => {
  const bank = lineService(contracts.bank, { crc16: "arc", quiet: false, merchantId: undefined });
  return Object.assign(new ProbeAccount(bank), state);
};

test("ProbeAccount.expectNothingBefore() keeps what a proven service may still answer that had answered less than may be left over", () => {
  // It answered 19 of 20 questions while 27 earlier answers were possible, and hangs.
  const hanging = accountOf({ isProven: true, staleKnown: 10, staleAssumed: 17, sent: 20, answered: 19, unanswered: [500] });
  hanging.expectNothingBefore(1_000);
  assert.deepEqual([hanging.staleKnown, hanging.staleAssumed], [0, 28]);
  const askedSince = accountOf({
    isProven: true,
    staleKnown: 10,
    staleAssumed: 17,
    sent: 20,
    answered: 19,
    unanswered: [1_500],
  });
  askedSince.expectNothingBefore(1_000);
  assert.deepEqual([askedSince.staleKnown, askedSince.staleAssumed], [1, 27]);
});

test("ProbeAccount.expectNothingBefore() keeps two thousand at most, and nothing of one that answered or was never proven", () => {
  const night = accountOf({ isProven: true, staleAssumed: 1_990, sent: 30 });
  night.expectNothingBefore(1_000);
  assert.equal(night.staleAssumed, 2_000);
  const answered = accountOf({ isProven: true, staleAssumed: 17, sent: 18, answered: 18 });
  answered.expectNothingBefore(1_000);
  assert.equal(answered.stale, 0);
  const unproven = accountOf({ staleAssumed: 17, sent: 3 });
  unproven.expectNothingBefore(1_000);
  assert.equal(unproven.stale, 0);
});

const limits = { lateReplyMs: 30_000, probeIntervalMs: 2_000 };

test("ProbeAccount.renew() begins with nothing asked and nothing heard, and keeps what may still come and what is known of its answers", () => {
  const begun = accountOf({}).state;
  const account = accountOf({ isOdd: true, answersProbes: true, isProven: true, staleKnown: 3, answeredAtMs: 7 });
  account.ask(1_000, limits);
  account.take(1_100, limits);
  account.ask(9_000, limits);
  account.ask(11_000, limits);
  for (const now of [12_000, 13_000]) account.answerWrongly(now, { isError: true, isAlone: true });
  account.answerWrongly(14_000, { isError: false, isAlone: true });
  account.awaitsSilence = true;
  const { isOdd, answersProbes, answeredProbes, isProven, staleKnown, answeredAtMs, waitsSinceMs } = account;
  account.ask(15_000, limits);
  account.renew();
  const kept = { isOdd, answersProbes, answeredProbes, isProven, staleKnown, answeredAtMs, waitsSinceMs };
  const changed = Object.entries(kept).filter(([name, value]) => value !== (name === "isOdd") || value);
  assert.deepEqual(account.state, { ...begun, ...Object.fromEntries(changed.filter(([, value]) => value !== false)) });
});

test("ProbeAccount isn't asked any more after three wrong answers where nearly as many may come as the next process takes for left over", () => {
  const refused = (times: number, staleKnown: number) => {
    const account = accountOf({ isProven: true, staleAssumed: 0, staleKnown });
    for (let time = 0; time < times; time++) account.answerWrongly(1_000, { isError: false, isAlone: false });
    return account.isProbingStopped;
  };
  const nearly = staleProbesMax - 3;
  assert.deepEqual([refused(3, nearly), refused(2, nearly), refused(3, nearly - 1)], [true, false, false]);
});

/** One that may have hundreds of answers to come, and can be asked its probe only. */
const hundreds = (state: Partial<ProbeAccount> = {}) => accountOf({ isProven: true, staleAssumed: 700, ...state });

test("ProbeAccount counts answers, or awaits a silence where that is sooner, once their pace is known", () => {
  for (const [paceMs, awaits] of [
    [400, false],
    [500, true],
  ] as const) {
    const account = hundreds();
    let now = 1_000_000;
    // The first one was slow: it was switched on meanwhile.
    account.ask(now, limits);
    now += 20_000;
    for (let answers = 1; answers <= pacedMin; answers++) {
      account.take(now, limits);
      assert.deepEqual([account.dueMs, account.awaitsSilence], [now, awaits && answers === pacedMin], `${paceMs}: ${answers}`);
      account.ask(now, limits);
      now += paceMs;
    }
    account.renew();
    assert.equal(account.awaitsSilence, false);
  }
});

test("ProbeAccount that only posline has asked isn't asked on, unless it has two questions", () => {
  const one = hundreds({ isGivenUp: true });
  one.ask(1_000_000, limits);
  one.take(1_000_010, limits);
  assert.equal(one.dueMs, 1_000_010 + 3 * limits.lateReplyMs);
  const two = hundreds({ isGivenUp: true });
  two.questions.offersSecond = true;
  two.ask(1_000_000, limits, "second", true);
  two.take(1_000_010, limits, "second");
  assert.equal(two.dueMs, 1_000_010);
});

test("ProbeAccount with two questions is asked after a pause where an answer was wrong, and once a silence's time after so many in vain", () => {
  const account = hundreds();
  Object.assign(account.questions, { offersSecond: true, answersSecond: true });
  account.ask(1_000_000, limits, "probe", true);
  account.take(1_000_010, limits, "second");
  assert.equal(account.dueMs, 1_000_010 + rowAnswerMs);
  account.answered = hastyMax;
  account.ask(1_006_000, limits, "probe", true);
  account.take(1_006_010, limits, "probe");
  assert.equal(account.dueMs, 1_006_010 + limits.lateReplyMs);
});

test("ProbeAccount that is asked for a row is asked again after rowAnswerMs, so that one answer is out at a time", () => {
  const account = hundreds();
  account.questions.offersSecond = true;
  account.ask(1_000_000, limits, "probe", true);
  assert.equal(account.dueMs, 1_000_000 + rowAnswerMs);
  account.ask(account.dueMs, limits, "second", true);
  account.take(1_000_000 + 2 * rowAnswerMs - 1, limits, "second");
  assert.deepEqual([account.questions.row, account.dueMs], [1, 1_000_000 + 2 * rowAnswerMs - 1], "it came promptly");
});

test("ProbeAccount.take() of the row's last answer leaves only what is out now", () => {
  const account = hundreds();
  Object.assign(account.questions, { offersSecond: true, answersSecond: true });
  let now = 1_000_000;
  account.ask(now, limits, "probe", true);
  for (let answers = 0; answers < rowMin; answers++) {
    assert.equal(account.hasAnswered, false);
    now += rowAnswerMs;
    account.ask(now, limits, "second", true);
    account.take(now + 10, limits, "second");
  }
  assert.deepEqual([account.hasAnswered, account.stale, account.stillOut, account.staleBefore], [true, 0, 1, 700]);
});
