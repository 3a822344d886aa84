import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { lineService } from "../../src/line/caller.ts";
import { inStep, rows, staleProbesMax } from "../../src/recovery/limits.ts";
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
const { pausesMs, slackMs, answerMs, triesMax } = inStep;
const [{ alikeMs }, loose] = rows;
const pauses = [...pausesMs, ...pausesMs];

test("ProbeAccount.take() takes answers in step with questions behind pauses for proof that nothing is left over, however much was assumed", () => {
  const account = askedInStep(hundreds(), pauses);
  assert.deepEqual([account.stale, account.hasAnswered], [0, true]);
  assert.equal(askedInStep(hundreds(), pauses.slice(0, -1)).hasAnswered, false, "one too few");
  const slower = pauses.map((ms) => ms + slackMs);
  assert.equal(askedInStep(hundreds(), slower).hasAnswered, true, "another question came between");
  const without = (more: number) => pauses.map((ms, index) => (index === 2 ? ms + more : ms));
  assert.equal(askedInStep(hundreds(), without(-1)).inStep.steps, 3, "a pause too short: from the beginning");
  const again = [pauses[0] ?? 0, (pauses[1] ?? 0) + slackMs + 1, ...pauses.slice(1)];
  assert.equal(askedInStep(hundreds(), again.slice(0, -1)).inStep.steps, 5, "a pause too long counts nothing");
  assert.equal(askedInStep(hundreds(), again).hasAnswered, true, "nor against it");
  assert.equal(askedInStep(hundreds(), pauses, answerMs).inStep.steps, 0, "answers too late");
});

test("ProbeAccount.take() counts no row of answers that take unlike", () => {
  const took = (ms: readonly number[]) => {
    const account = hundreds();
    let now = 1_000_000;
    for (const [index, tookMs] of ms.entries()) {
      account.ask(now, limits);
      now += tookMs;
      account.take(now, limits);
      now += pausesMs[index % pausesMs.length] ?? 0;
    }
    return account;
  };
  assert.equal(took([900, 300, 600, 300, 600, 450, 300]).hasAnswered, true);
  const unlike = [900, 300, 600, 300, 600, 450, 300 + alikeMs + 1];
  assert.deepEqual([took(unlike).hasAnswered, took(unlike).inStep.steps], [false, 6], "not enough for such a spread");
  const more = [...unlike, 300, 300 + loose.alikeMs];
  assert.equal(took(more).hasAnswered, false);
  assert.equal(took([...more, 300]).hasAnswered, true, "each pause three times");
  for (const [ms, steps] of [
    [[900, 1_200, 600, 1_200 - loose.alikeMs - 1], 0],
    [[900, 1_200, 600, 1_200 - loose.alikeMs], 3],
  ] as const) {
    assert.equal(took(ms).inStep.steps, steps, ms.join());
  }
});

test("ProbeAccount counts answers, without pauses, once it was asked in step in vain for so often, or waits for a silence that is sooner", () => {
  for (const [left, countsOn] of [
    [700, true],
    [1_100, false],
  ] as const) {
    const account = accountOf({ isProven: true, staleAssumed: left });
    let now = 1_000_000;
    for (let time = 0; time <= triesMax; time++) {
      assert.equal(account.inStep.isHopeless, time === triesMax, `${time}`);
      for (const pausedMs of [0, ...pausesMs]) {
        now += time === triesMax ? 0 : pausedMs;
        account.ask(now, limits);
        now += 300;
        account.take(now, limits);
        const waitMs = countsOn ? 0 : 11 * limits.lateReplyMs;
        assert.equal(
          account.dueMs,
          now + (time === triesMax && pausedMs > 0 ? waitMs : account.dueMs - now),
          `${left}: ${time}`,
        );
      }
      account.inStep.breakOff();
      account.inStep.breakOff();
    }
  }
});

test("ProbeAccount counts steps from the beginning after an answer that wasn't asked for, and a wrong one", () => {
  for (const disturb of [
    (account: ProbeAccount, now: number) => account.take(now, limits),
    (account: ProbeAccount, now: number) => account.answerWrongly(now, { isError: true, isAlone: true }),
  ]) {
    const account = askedInStep(hundreds(), pauses.slice(0, 4));
    assert.equal(account.inStep.steps, 4);
    disturb(account, account.answeredAtMs + 500);
    assert.equal(account.inStep.steps, 0);
  }
});

test("ProbeAccount.renew() begins with nothing asked and nothing heard, and keeps what may still come and what is known of its answers", () => {
  const begun = accountOf({}).state;
  const account = accountOf({ isOdd: true, answersProbes: true, isProven: true, staleKnown: 3, answeredAtMs: 7 });
  account.ask(1_000, limits);
  account.take(1_100, limits);
  account.ask(9_000, limits);
  account.ask(11_000, limits);
  for (const now of [12_000, 13_000]) account.answerWrongly(now, { isError: true, isAlone: true });
  account.answerWrongly(14_000, { isError: false, isAlone: true });
  account.inStep.steps = 2;
  account.inStep.brokenOff = 2;
  account.stepDueMs = 9;
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

test("ProbeAccount.take() asks at once where all that was assumed is counted sooner than asking in step takes, else behind a pause", () => {
  const soon = (left: number, tookMs: number) => {
    const account = accountOf({ isProven: true, staleAssumed: left });
    account.ask(1_000, limits);
    account.take(1_000 + tookMs, limits);
    return account.dueMs === 1_000 + tookMs;
  };
  const stepsMs = pauses.reduce((sum, ms) => sum + ms, 0);
  assert.deepEqual([soon(1 + stepsMs / 1_000, 1_000), soon(2 + stepsMs / 1_000, 1_000)], [true, false]);
});

test("ProbeAccount.take() counts on at once where a first answer was slow and the next ones aren't", () => {
  const account = accountOf({ isProven: true, staleAssumed: 20 });
  account.ask(1_000_000, limits);
  account.ask(1_003_000, limits);
  account.take(1_003_100, limits);
  assert.equal(account.dueMs, 1_003_100 + (pausesMs[0] ?? 0), "it took 3.1 s from the first question");
  account.ask(1_006_600, limits);
  account.take(1_006_610, limits);
  assert.equal(account.dueMs, 1_006_610);
});

test("ProbeAccount is no longer asked in step once so many answers came too late, then asked at once or not before a silence is over", () => {
  for (const [left, waitMs] of [
    [90, 0],
    [500, 11 * limits.lateReplyMs],
  ] as const) {
    const account = accountOf({ isProven: true, staleAssumed: left });
    let now = 1_000_000;
    for (let time = 1; time <= triesMax; time++) {
      account.ask(now, limits);
      now += answerMs;
      account.take(now, limits);
      assert.equal(account.dueMs, now + (time === triesMax ? waitMs : (pausesMs[0] ?? 0)), `${left}: ${time}`);
      now = account.dueMs;
    }
  }
});
