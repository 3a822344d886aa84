import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { lineService } from "../../src/line/caller.ts";
import { inStep } from "../../src/recovery/limits.ts";
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

/** Asked and answered so: the pauses before the questions, and how long each answer takes. */
function askedInStep(account: ProbeAccount, pauses: readonly number[], tookMs = 300): ProbeAccount {
  let now = 1_000_000;
  account.ask(now, limits);
  now += tookMs;
  account.take(now, limits);
  for (const pausedMs of pauses) {
    now += pausedMs;
    account.ask(now, limits);
    now += tookMs;
    account.take(now, limits);
  }
  return account;
}

const hundreds = () => accountOf({ isProven: true, staleAssumed: 700 });
const { pauseMs, slackMs, answerMs } = inStep;
const pauses = [pauseMs, 2 * pauseMs, pauseMs, 2 * pauseMs, pauseMs, 2 * pauseMs];

test("ProbeAccount.take() takes answers in step with questions behind pauses for proof that nothing is left over, however much was assumed", () => {
  const account = askedInStep(hundreds(), pauses);
  assert.deepEqual([account.stale, account.hasAnswered], [0, true]);
  assert.equal(askedInStep(hundreds(), pauses.slice(2)).hasAnswered, false, "two too few");
  const slower = pauses.map((ms) => ms + slackMs);
  assert.equal(askedInStep(hundreds(), slower).hasAnswered, true, "another question came between");
  const without = (more: number) => pauses.map((ms, index) => (index === 1 ? ms + more : ms));
  assert.equal(askedInStep(hundreds(), without(-1)).steps, 4, "a pause too short: from the beginning");
  const again = [pauseMs, 2 * pauseMs + slackMs + 1, ...pauses.slice(1)];
  assert.equal(askedInStep(hundreds(), again.slice(0, -1)).steps, 5, "a pause too long counts nothing");
  assert.equal(askedInStep(hundreds(), again).hasAnswered, true, "nor against it");
  assert.equal(askedInStep(hundreds(), pauses, answerMs).steps, 0, "answers too late");
});

test("ProbeAccount counts steps from the beginning after an answer that wasn't asked for, and a wrong one", () => {
  for (const disturb of [
    (account: ProbeAccount, now: number) => account.take(now, limits),
    (account: ProbeAccount, now: number) => account.answerWrongly(now, { isError: true, isAlone: true }),
  ]) {
    const account = askedInStep(hundreds(), pauses.slice(0, 4));
    assert.equal(account.steps, 4);
    disturb(account, account.answeredAtMs + 500);
    assert.equal(account.steps, 0);
  }
});
