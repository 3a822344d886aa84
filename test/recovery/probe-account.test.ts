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

test("ProbeAccount awaits a silence also where lost answers make the next question wait for longer than one took", () => {
  const account = hundreds({ staleAssumed: 40 });
  let now = 1_000_000;
  for (let lost = 0; lost < 6; lost++) {
    account.ask(now, limits);
    now += limits.lateReplyMs;
  }
  for (let answers = 1; answers <= pacedMin; answers++) {
    assert.equal(account.awaitsSilence, false);
    account.ask(now, limits);
    now += limits.probeIntervalMs + 1_000;
    account.take(now, limits);
    assert.equal(account.dueMs - now, limits.lateReplyMs, "others may still come");
  }
  assert.equal(account.awaitsSilence, true);
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

test("ProbeAccount.state of a new one, and that it is as new where it is given that, whatever it was before", () => {
  const fresh = accountOf({});
  const zero = { sent: 0, answered: 0, sentAtMs: 0, answeredAtMs: 0, errors: 0, dueMs: 0, waitsSinceMs: 0, refusals: 0 };
  const known = { isProven: false, staleKnown: 0, staleAssumed: staleProbesMax, isAssumedRight: false };
  assert.deepEqual(fresh.state, { service: "bank", ...zero, unanswered: [], ...known });
  const changed = accountOf({
    ...{
      firstAnswerMs: 1,
      awaitsSilence: true,
      odd: 1,
      isOdd: true,
      answersProbes: true,
      answeredProbes: true,
      isSilent: true,
    },
    ...{ isGivenUp: true, isBesideOthers: true, isTried: true, isAsked: true, evidence: 1, wasProven: true, staleBefore: 1 },
  });
  changed.questions.isBehind = true;
  changed.state = fresh.state;
  assert.deepEqual({ ...changed }, { ...fresh, lineService: changed.lineService });
});

test("ProbeAccount.question() is the second one where the next answer is one more than may come, which says so, and drawn only for a row", () => {
  const account = accountOf({ isProven: true, staleAssumed: 0, staleKnown: 2 });
  account.questions.offersSecond = true;
  const drawn = () => assert.fail("it is not drawn");
  const asked = [];
  for (let answers = 0; answers < 3; answers++) {
    const { question, isDrawn } = account.question(drawn);
    asked.push(question);
    assert.equal(isDrawn, false);
    account.ask(1_000_000, limits, question);
    assert.equal(account.questions.open.at(-1)?.isDrawn, false);
    account.take(1_000_010, limits, question);
  }
  assert.deepEqual([asked, account.hasAnswered], [["probe", "probe", "second"], true]);
  const none = accountOf({ isProven: true, staleAssumed: 0 });
  none.questions.offersSecond = true;
  assert.equal(none.question(drawn).question, "probe", "nothing may be left over");
});

test("ProbeAccount.wrote() moves the moment of the last question that is out, and of no other", () => {
  const account = accountOf({});
  account.ask(1_000, limits);
  account.ask(3_000, limits);
  assert.deepEqual([account.wrote(1_000, 3_500), account.wrote(3_000, 3_600)], [false, true]);
  assert.deepEqual(account.unanswered, [1_000, 3_600]);
});

test("ProbeAccount.take() takes an answer for prompt that came before the next question was due, and asks on at once then", () => {
  const dueAfter = (tookMs: number) => {
    const account = accountOf({ isProven: true, staleAssumed: 0, staleKnown: 9 });
    account.ask(1_000_000, limits);
    account.ask(1_002_000, limits);
    account.take(1_002_000 + tookMs, limits);
    return account.dueMs - (1_002_000 + tookMs);
  };
  assert.equal(dueAfter(limits.probeIntervalMs - 1), 0);
  assert.equal(dueAfter(limits.probeIntervalMs), limits.probeIntervalMs, "the oldest one's: another is out");
});

test("ProbeAccount.take() without a question since the last answer counts, and is no prompt answer", () => {
  const account = accountOf({ isProven: true, staleAssumed: 0, staleKnown: 9 });
  account.ask(100, limits);
  account.ask(200, limits);
  account.take(300, limits);
  account.take(400, limits);
  assert.deepEqual([account.answered, account.unanswered, account.dueMs], [2, [], 400]);
});

test("ProbeAccount.take() of one answer more than may come, to a question that was not due, calls for a row", () => {
  const after = (answered: number, question: "probe" | "second") => {
    const account = accountOf({ isProven: true, staleAssumed: 0, staleKnown: 1, answered });
    account.questions.offersSecond = true;
    account.ask(1_000, limits, "second");
    // A copy of the answer before has taken the question away.
    account.questions.open = [];
    account.take(1_010, limits, question);
    return [account.questions.isBehind, account.hasAnswered];
  };
  assert.deepEqual(after(1, "probe"), [true, false]);
  assert.deepEqual(after(0, "probe"), [false, false], "one may come");
});

test("ProbeAccount that has no more to count than usual is asked on at once, also where only posline has asked it", () => {
  const dueMs = (staleKnown: number) => {
    const account = accountOf({ isProven: true, isGivenUp: true, staleAssumed: 0, staleKnown });
    account.ask(1_000_000, limits);
    account.take(1_000_010, limits);
    return account.dueMs - 1_000_010;
  };
  assert.deepEqual([dueMs(staleProbesMax), dueMs(staleProbesMax + 1)], [0, 3 * limits.lateReplyMs]);
});

test("ProbeAccount whose older answers can't be told any more counts anew what it has out, and what was wrong before counts nothing off", () => {
  const account = accountOf({
    isProven: true,
    staleAssumed: 0,
    staleKnown: 4,
    answered: 3,
    errors: 2,
    sent: 9,
    unanswered: [1, 2],
  });
  Object.assign(account.questions, {
    offersSecond: true,
    isBehind: true,
    passedOver: 2,
    open: [{ question: "second", isDrawn: true }],
  });
  account.isGivenUp = true;
  account.answerWrongly(1_000, { isError: true, isAlone: true });
  assert.equal(account.isGivenUp, false, "it answers");
  assert.deepEqual([account.answered, account.errors, account.sent, account.staleAssumed], [0, 0, 2, staleProbesMax]);
  assert.deepEqual([account.stillOut, account.questions.needsRow], [2 + 4 + staleProbesMax, false]);
});

test("ProbeAccount.answerWrongly() counts each error but the first off what may come, and takes its question away", () => {
  const account = accountOf({ isProven: true, staleAssumed: 0, staleKnown: 5 });
  for (const now of [1_000, 3_000, 5_000]) account.ask(now, limits);
  const left = [];
  for (let errors = 0; errors < 3; errors++) {
    account.answerWrongly(6_000, { isError: true, isAlone: true });
    left.push([account.stillOut, account.unanswered.length]);
  }
  assert.deepEqual(left, [
    [8, 3],
    [7, 2],
    [6, 1],
  ]);
});

test("ProbeAccount answers wrongly once two wrong answers each followed a question of their own, and not by what came beside a right one", () => {
  const account = accountOf({ isProven: true, staleAssumed: 0 });
  const wrong = () => account.answerWrongly(9_000, { isError: true, isAlone: true });
  account.ask(1_000, limits);
  wrong();
  wrong();
  assert.deepEqual([account.evidence, account.answersProbes], [1, false], "one question");
  account.ask(3_000, limits);
  account.take(3_010, limits);
  wrong();
  assert.equal(account.evidence, 1, "the question had its answer");
  account.ask(5_000, limits);
  wrong();
  assert.deepEqual([account.evidence, account.answersProbes, account.answeredProbes], [2, true, true]);
});

test("ProbeAccount.isAnswering is true of one that answered and was asked nothing since", () => {
  const account = accountOf({});
  const seen = [account.isAnswering];
  account.ask(1_000, limits);
  seen.push(account.isAnswering);
  account.take(1_010, limits);
  seen.push(account.isAnswering);
  account.ask(2_000, limits);
  seen.push(account.isAnswering);
  assert.deepEqual(seen, [false, false, true, false]);
});

test("ProbeAccount.isUnknown is true while it can be asked, and neither answered, wrongly or not, nor was tried", () => {
  const unknown = (state: Partial<ProbeAccount>) => accountOf(state).isUnknown;
  assert.equal(unknown({}), true);
  for (const state of [{ isProven: true }, { answeredProbes: true }, { isTried: true }]) assert.equal(unknown(state), false);
  assert.equal(unknown({ lineService: { ...accountOf({}).lineService, probe: undefined } }), false);
});

test("ProbeAccount.isStaleKnown is true of assumed answers only once they began to come", () => {
  const known = (state: Partial<ProbeAccount>) => accountOf({ staleAssumed: 0, ...state }).isStaleKnown;
  assert.deepEqual(
    [known({ staleKnown: 1 }), known({ staleAssumed: 1 }), known({ staleAssumed: 1, isAssumedRight: true })],
    [true, false, true],
  );
  assert.equal(known({ isAssumedRight: true }), false, "all of them came");
});

test("ProbeAccount.expectNothingBefore() forgets a row and what began to come, and is unsure only of what may still come unseen", () => {
  const settled = (state: Partial<ProbeAccount>) => {
    const account = accountOf({ staleAssumed: 0, isAssumedRight: true, ...state });
    Object.assign(account.questions, { offersSecond: true, isBehind: true, row: 3 });
    account.expectNothingBefore(1_000);
    const { questions, isAssumedRight, staleAssumed, staleBefore } = account;
    assert.deepEqual([questions.row, questions.isBehind, isAssumedRight], [0, false, false]);
    return [questions.isUnsure, staleAssumed, staleBefore];
  };
  assert.deepEqual(settled({ sent: 2 }), [true, 0, 2], "it has never answered");
  assert.deepEqual(settled({ sent: 2, isProven: true }), [false, 2, 0], "it may hang");
  assert.deepEqual(settled({ isProven: true }), [false, 0, 0]);
  assert.deepEqual(settled({}), [false, 0, 0], "it was asked nothing");
  assert.deepEqual(settled({ sent: 2, answeredProbes: true }), [false, 2, 0], "so may one that answers wrongly");
  assert.deepEqual(
    settled({ sent: 2, answeredProbes: true, refusals: 1 }),
    [true, 0, 2],
    "but for what it answered so just now",
  );
});

test("ProbeAccount.replied() leaves nothing, and knows of how much that was, where it was known or the service silent", () => {
  const replied = (state: Partial<ProbeAccount>) => {
    const account = accountOf({ staleAssumed: 0, ...state });
    account.questions.isUnsure = true;
    account.replied();
    assert.deepEqual([account.stale, account.questions.isUnsure], [0, false]);
    return account.staleBefore;
  };
  assert.deepEqual(
    [replied({ staleKnown: 3 }), replied({ staleAssumed: 3 }), replied({ staleAssumed: 3, isSilent: true })],
    [3, 0, 3],
  );
});

test("ProbeAccount.contradicts() brings back what a reply or a silence had done away with, once, and calls for a row", () => {
  const account = accountOf({ staleAssumed: 0, staleBefore: 5 });
  account.questions.offersSecond = true;
  assert.equal(account.contradicts(), true);
  assert.deepEqual([account.staleAssumed, account.staleBefore, account.questions.isBehind], [5, 0, true]);
  account.setStale(0);
  assert.equal(account.contradicts(), false);
  assert.equal(accountOf({ staleAssumed: 0, staleKnown: 1, staleBefore: 5 }).contradicts(), false, "one is expected");
});

test("ProbeAccount.proved() forgets what was given up, owed and counted off, and keeps as many second questions as are out", () => {
  const account = accountOf({
    unheard: 9,
    isCountedOff: true,
    owesCall: true,
    idleSinceMs: 5,
    secondsOut: 3,
    unanswered: [1, 2],
  });
  account.proved();
  const { unheard, isCountedOff, owesCall, idleSinceMs, secondsOut } = account;
  assert.deepEqual([unheard, isCountedOff, owesCall, idleSinceMs, secondsOut], [0, false, false, 0, 2]);
});

test("ProbeAccount.expectNothingBefore() owes no call only where it answered, and adds what it gives up to what was never heard", () => {
  const settled = (state: Partial<ProbeAccount>) => {
    const account = accountOf({ staleAssumed: 0, isCountedOff: true, owesCall: true, unheard: 3, sent: 4, ...state });
    account.expectNothingBefore(1_000);
    assert.equal(account.isCountedOff, false);
    return [account.owesCall, account.unheard];
  };
  assert.deepEqual(settled({}), [true, 7], "it never answered");
  assert.deepEqual(settled({ unanswered: [2_000] }), [true, 6], "one question came after that");
  assert.deepEqual(settled({ isProven: true }), [true, 3], "it may hang: its answers stay assumed");
  assert.deepEqual(settled({ isProven: true, answered: 4 }), [false, 3]);
});

test("ProbeAccount.secondsOut is one less with each answer to a second question, asked for or not, and with no other", () => {
  const account = accountOf({ isProven: true, staleAssumed: 0, staleKnown: 9, secondsOut: 3 });
  account.questions.answersSecond = true;
  const left = [];
  for (const question of ["probe", "second"] as const) {
    account.ask(1_000, limits);
    account.take(1_010, limits, question);
    left.push(account.secondsOut);
  }
  for (const question of [undefined, "probe", "second"] as const) {
    account.staleCame(question);
    left.push(account.secondsOut);
  }
  assert.deepEqual(left, [3, 2, 2, 2, 1]);
  account.staleCame("second");
  account.staleCame("second");
  assert.deepEqual([account.secondsOut, account.mayAnswerSecond], [0, false]);
});

test("ProbeAccount.ask() forgets how many were given up: what comes from now on may be asked for", () => {
  const account = accountOf({ staleAssumed: 0, staleBefore: 5 });
  account.ask(1_000, limits);
  assert.equal(account.contradicts(), false);
});

test("ProbeAccount.take() takes the probe's answer behind the second question that decides for a copy, and asks that again once it was passed over", () => {
  const decides = () => {
    const account = accountOf({ isProven: true, staleAssumed: 0, staleKnown: 1, answered: 1 });
    Object.assign(account.questions, { offersSecond: true, answersSecond: true });
    account.ask(1_000_000, limits, "probe");
    account.ask(1_001_000, limits, "second");
    return account;
  };
  const alone = decides();
  alone.take(1_004_000, limits, "probe");
  assert.deepEqual([alone.answered, alone.questions.passedOver], [1, 0], "nothing was asked behind it");
  const behind = decides();
  behind.ask(1_002_000, limits, "probe");
  behind.ask(1_003_000, limits, "probe");
  behind.take(1_006_000, limits, "probe");
  assert.deepEqual([behind.answered, behind.questions.passedOver, behind.dueMs], [1, 1, 1_006_000]);
});

test("ProbeAccount.take() of a row's last answer counts from there, with one second question for each that is out", () => {
  const account = hundreds({ errors: 3, secondsOut: 5 });
  Object.assign(account.questions, { offersSecond: true, answersSecond: true, isBehind: true });
  account.ask(1_000_000, limits, "second", true);
  for (let answers = 0; answers < rowMin; answers++) {
    account.ask(1_000_000, limits, "second", true);
    account.take(1_000_010, limits, "second");
  }
  const { answered, errors, sent, secondsOut, unanswered, questions } = account;
  assert.deepEqual([answered, errors, sent, secondsOut, unanswered.length], [1, 0, 2, 1, 1]);
  assert.deepEqual([questions.row, questions.isBehind], [0, false]);
});

test("ProbeAccount that makes a row is asked on after its pause until more than hastyMax answers came", () => {
  const dueMs = (answered: number) => {
    const account = hundreds({ answered });
    Object.assign(account.questions, { offersSecond: true, answersSecond: true });
    account.ask(1_006_000, limits, "probe", true);
    account.take(1_006_010, limits, "probe");
    return account.dueMs - 1_006_010;
  };
  assert.deepEqual([dueMs(hastyMax - 1) < limits.lateReplyMs, dueMs(hastyMax)], [true, limits.lateReplyMs]);
});

test("ProbeAccount.repliedIdle() leaves what was given up possible for one that was never proven, and what a long ease proves gone as well", () => {
  const account = accountOf({ staleAssumed: 0, staleBefore: 4 });
  account.repliedIdle(1_000, limits);
  assert.deepEqual([account.staleBefore, account.idleSinceMs], [4, 1_000]);
  account.isProven = true;
  account.repliedIdle(1_000 + limits.lateReplyMs, limits);
  assert.deepEqual([account.staleBefore, account.idleSinceMs], [0, 1_000]);
  account.setStale(7);
  account.repliedIdle(1_000 + 10 * limits.lateReplyMs - 1, limits);
  assert.equal(account.stale, 7);
  account.repliedIdle(1_000 + 11 * limits.lateReplyMs, limits);
  assert.deepEqual([account.stale, account.staleBefore, account.idleSinceMs], [0, 7, 0]);
});

test("ProbeAccount.repliedIdle() proves nothing where questions follow each other sooner than a late answer may come", () => {
  const account = accountOf({ isProven: true, staleAssumed: 0, staleKnown: 2 });
  let now = 1_000;
  for (; now < 20 * limits.lateReplyMs; now += limits.lateReplyMs - 1) account.repliedIdle(now, limits);
  assert.equal(account.stale, 2);
});
