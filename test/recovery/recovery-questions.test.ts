import assert from "node:assert/strict";
import { test } from "node:test";
import { staleProbesMax as leftOver, passedOverMax, rowMin } from "../../src/recovery/limits.ts";
import type { Question } from "../../src/recovery/questions.ts";
import type { Recovery } from "../../src/recovery/recovery.ts";
import { bothReplies, probeReplies } from "../support/terminal.ts";
import { asksOn, both, bothAsked, knowsNothing, lateReplyMs, Proof } from "./proof.ts";

/** Tests src/recovery/recovery.ts. About its two questions. */

/** Bank, proven, and then asked so often in vain. */
function askedInVain(times: number): Recovery {
  const recovery = bothAsked(leftOver);
  asksOn(recovery);
  recovery.owe("bank");
  recovery.begin(1_000_000);
  for (let now = 1_000_000, asked = 0; asked < times; now = recovery.dueMs(false)) {
    if (recovery.probeDue(now) !== undefined) asked++;
  }
  recovery.begin(1_000_000);
  return recovery;
}

/** Bank, which answers both questions, proven. */
function bothProven(): Recovery {
  const recovery = bothAsked(0);
  asksOn(recovery);
  return recovery;
}

/** A call of bank is lost then, and the first question goes out. */
function loseCall(recovery: Recovery, now: number): void {
  recovery.owe("bank");
  recovery.begin(now);
  assert.equal(recovery.probeDue(now)?.question, "probe");
}

/** Bank, proven, which then leaves out the second question. */
function secondLeftOut(): Recovery {
  const recovery = bothProven();
  for (const beganMs of [2_000_000, 2_030_000]) loseCall(recovery, beganMs);
  // The one before.
  recovery.heard("length", both.probe, 2_030_100);
  assert.equal(recovery.probeDue(recovery.dueMs(false))?.question, "second");
  return recovery;
}

test("Recovery takes a row of right answers for proof, where hundreds may come, and draws each question", () => {
  const recovery = bothAsked(700);
  const asked = asksOn(recovery);
  assert.equal(recovery.owes, false);
  assert.equal(asked.length, 1 + rowMin, "the first one, and the row");
  const seconds = asked.filter((each) => each === "second").length;
  assert.ok(seconds > 3 && seconds < rowMin - 3, `${seconds}`);
  assert.notDeepEqual(asksOn(bothAsked(700, 2)), asked, "another process draws others");
  assert.deepEqual(asksOn(bothAsked(700)), asked);
});

test("Recovery never takes older answers for a row, however many there are and of whichever question", () => {
  for (let seed = 1; seed <= 200; seed++) {
    for (const olderOf of [() => "probe", (n: number) => (n % 2 === 0 ? "probe" : "second")] as const) {
      const older = 20 + ((seed * 7) % 300);
      const backlog = Array.from({ length: older }, (_, n): Question => (olderOf(n) === "probe" ? "probe" : "second"));
      const recovery = bothAsked(2_000, seed);
      const asked = asksOn(recovery, backlog, older + rowMin - 1);
      assert.ok(recovery.owes, `seed ${seed}: ${asked.length} asked, ${older} older answers`);
    }
  }
});

test("Recovery needs a row at a start as well, however many older answers there are", () => {
  assert.equal(asksOn(bothAsked(leftOver)).length, 1 + rowMin);
  for (let seed = 1; seed <= 50; seed++) {
    // The process before asked 25 times, and this one counts seventeen.
    const recovery = bothAsked(leftOver, seed);
    asksOn(recovery, Array<Question>(25).fill("probe"), 25 + rowMin - 1);
    assert.ok(recovery.owes, `seed ${seed}`);
  }
});

test("Recovery asks the second question where the next answer decides, so that one more older answer than it counts is seen", () => {
  assert.deepEqual(asksOn(askedInVain(3)), ["probe", "probe", "probe", "second"]);
  const recovery = askedInVain(3);
  // Three and a copy.
  asksOn(recovery, Array<Question>(4).fill("probe"), 4);
  assert.ok(recovery.owes);
  assert.equal(recovery.state.accounts[0]?.questions?.isBehind, true);
});

test("Recovery asks its probe only of a service that doesn't list the second question", () => {
  const proof = new Proof(["bank"]);
  for (let n = 0; n <= leftOver; n++) {
    assert.match(proof.ask() ?? "", /supported_operations/);
    proof.answer("bank");
  }
  assert.equal(proof.recovery.owes, false);
});

test("Recovery counts on where a service lists the second question and leaves it out", () => {
  const proof = new Proof(["bank"]);
  let seconds = 0;
  for (let n = 0; n < 100 && proof.recovery.owes; n++) {
    proof.now = Math.max(proof.now, proof.recovery.dueMs(false));
    const text = proof.ask() ?? "";
    if (text.includes("/terminals")) seconds++;
    else proof.hear("length", bothReplies.bankSupported);
  }
  assert.deepEqual([proof.recovery.owes, seconds], [false, passedOverMax.ofUnknown]);
});

test("Recovery settles by one silence who only posline has asked all night, and lists the second question and leaves it out", () => {
  const proof = new Proof(["bank"]);
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", isProven: true, isGivenUp: true, assumed: 465 }]);
  proof.recovery.begin(proof.now);
  const beganMs = proof.now;
  while (!proof.recovery.settleBySilence(proof.now) && proof.now < beganMs + 3_600_000) {
    proof.now = proof.recovery.dueMs(true);
    if (proof.ask()?.includes("/supported_operations")) proof.hear("length", bothReplies.bankSupported);
  }
  assert.equal(proof.recovery.owes, false);
  assert.ok(proof.now - beganMs <= (passedOverMax.ofUnknown + 1) * lateReplyMs, `${proof.now - beganMs} ms`);
});

test("Recovery counts from the beginning a service that older answers contradict, and that refuses the second question from then on", () => {
  const recovery = bothAsked(leftOver);
  asksOn(recovery, Array<Question>(leftOver + 5).fill("probe"), leftOver + 1);
  const account = () => recovery.state.accounts[0];
  assert.equal(account()?.questions?.isBehind, true);
  let now = 2_000_000;
  for (let turn = 0; account()?.questions?.isBehind && turn < 100; turn++) {
    now = Math.max(now + 1, recovery.dueMs(false));
    const question = recovery.probeDue(now)?.question;
    if (question !== undefined)
      recovery.heard("length", question === "probe" ? both.probe : { status: "error", code: -80 }, now);
  }
  assert.deepEqual([account()?.questions?.isBehind, account()?.answered, account()?.staleAssumed], [false, 0, leftOver]);
  assert.ok(recovery.owes);
});

test("Recovery.isProbeAnswer() of either question's answer is true, but of a call that it may be the reply to", () => {
  const { recovery } = new Proof(["bank", "qr"]);
  const isProbeAnswer = (reply: object, shapedAs?: Question, service: "bank" | "qr" = "bank") =>
    recovery.isProbeAnswer("length", { ...reply }, { service, shapedAs });
  for (const [question, other] of [
    ["probe", "second"],
    ["second", "probe"],
  ] as const) {
    const reply = both[question];
    assert.deepEqual(
      [isProbeAnswer(reply), isProbeAnswer(reply, other), isProbeAnswer(reply, question, "qr")],
      [true, true, true],
    );
    assert.equal(isProbeAnswer(reply, question), false);
  }
});

test("Recovery.replied() of a call that is shaped as a question says nothing while older answers to that may come", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  const known = () => proof.recovery.state.accounts[0]?.staleKnown;
  proof.recovery.owe("bank", "probe");
  proof.recovery.replied("bank", "probe");
  assert.equal(known(), 1);
  proof.recovery.replied("bank");
  assert.equal(known(), 0);
  assert.equal(proof.recovery.heardStale("length", JSON.parse(probeReplies.bankSupported), proof.now), "out of step");
});

test("Recovery.owe() of a call that is shaped as a question makes what comes next no contradiction, and keeps idle questions to who answers", () => {
  const proof = new Proof(["bank", "qr"]).prove();
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", stillOut: 2 }]);
  proof.recovery.replied("bank");
  proof.recovery.owe("bank", "probe");
  assert.equal(proof.recovery.heardStale("length", JSON.parse(probeReplies.bankSupported), proof.now), "left over");
  assert.equal(proof.recovery.heardStale("length", JSON.parse(probeReplies.bankSupported), proof.now), "left over");
  const idle = () => proof.recovery.idleProbed.map(({ service }) => service).sort();
  assert.deepEqual(idle(), ["bank", "qr"], "it is proven");
});

test("Recovery.repliedIdle() learns from the answer whether the second question can be asked", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.repliedIdle("bank", JSON.parse(bothReplies.bankSupported), proof.now);
  assert.equal(proof.recovery.known[0]?.offersSecond, true);
  proof.recovery.repliedIdle("bank", JSON.parse(probeReplies.bankSupported), proof.now);
  assert.equal(proof.recovery.known[0]?.offersSecond, false);
});

test("Recovery has one owe again whose answer comes unasked while another one owes, where a silence was wrong, and not behind a row", () => {
  const owing = (isLost: boolean) => {
    const proof = new Proof(["bank", "qr"]).prove();
    proof.fail("bank", isLost ? undefined : "probe").ask();
    proof.settle();
    proof.fail("qr");
    assert.deepEqual([proof.answer("bank"), proof.recovery.owing.includes("bank")], ["late", isLost]);
    return proof;
  };
  owing(false);
  const proof = owing(true);
  proof.exchange("qr");
  assert.equal(proof.recovery.owes, true, "bank is asked as well");
});

test("Recovery.takeAmbiguous() is true of a call's reply in the second question's shape while an answer to an older one may come", () => {
  const terminals = { service: "bank", shapedAs: "second" } as const;
  const opened = { ...terminals, shapedAs: undefined };
  const recovery = secondLeftOut();
  recovery.settleBySilence(2_400_000);
  assert.equal(recovery.owes, false);
  const replies = (request: typeof terminals | typeof opened, reply = both.second) =>
    recovery.takeAmbiguous("length", request, reply, 2_900_000);
  assert.equal(replies(terminals, { status: "success" }), false, "another shape");
  assert.equal(replies(opened), false, "another call");
  assert.equal(replies(terminals), true);
  assert.equal(replies(terminals), false, "it came");
  for (const ends of [
    (each: Recovery) => each.replied("bank"),
    (each: Recovery) => {
      assert.equal(each.heardStale("length", both.second, 2_900_000), "out of step");
    },
  ]) {
    const ended = secondLeftOut();
    ended.settleBySilence(2_400_000);
    ends(ended);
    assert.equal(ended.takeAmbiguous("length", terminals, both.second, 2_900_000), false);
  }
  const next = bothAsked(0);
  next.inherit(secondLeftOut().known);
  assert.equal(next.takeAmbiguous("length", terminals, both.second, 2_900_000), true, "after a reload too");
  const never = new Proof(["bank"]).prove();
  assert.equal(never.recovery.takeAmbiguous("length", terminals, both.second, never.now), false, "nothing of it is asked");
});

test("Recovery asks the second question again where one behind it is answered, though older ones that are out fit that answer too", () => {
  const recovery = bothProven();
  loseCall(recovery, 2_000_000);
  recovery.owe("bank");
  recovery.begin(2_030_000);
  let now = 2_030_000;
  const ask = () => {
    now = Math.max(now, recovery.dueMs(false));
    return recovery.probeDue(now)?.question;
  };
  assert.deepEqual([ask(), ask(), ask()], ["probe", "probe", "probe"]);
  // One answer comes, the others are lost; so is the second question's.
  recovery.heard("length", both.probe, now + 3_000);
  assert.deepEqual([ask(), ask()], ["second", "probe"]);
  recovery.heard("length", both.probe, now + 3_000);
  const { questions } = recovery.state.accounts[0] ?? {};
  assert.deepEqual([recovery.owes, questions?.isBehind, questions?.passedOver], [true, false, 1]);
  assert.equal(ask(), "second");
  recovery.heard("length", both.second, now + 3_000);
  assert.equal(recovery.owes, false);
});

test("Recovery is proven by one question behind a call's late answer, of a terminal that has both", () => {
  const recovery = bothProven();
  loseCall(recovery, 2_000_000);
  recovery.heardBytes(2_001_000);
  recovery.heard("length", { status: "success", id: "late" }, 2_001_000);
  recovery.heard("length", both.probe, 2_001_100);
  assert.equal(recovery.owes, false);
});

test("Recovery takes the second question for the last one where answers were counted off unasked, and no copy for its answer", () => {
  const recovery = bothProven();
  recovery.owe("bank");
  recovery.begin(2_000_000);
  let now = 2_000_000;
  for (let time = 0; time < 3; time++) {
    now = recovery.dueMs(false);
    assert.ok(recovery.probeDue(now));
  }
  // The first answer proves it; two may come still, and one comes twice.
  recovery.heard("length", both.probe, now + 10);
  assert.equal(recovery.owes, false);
  for (let time = 0; time < 2; time++) assert.equal(recovery.heardStale("length", both.probe, now + 20), "left over");
  recovery.owe("bank");
  recovery.begin(now + 30_000);
  assert.equal(recovery.probeDue(now + 30_000)?.question, "second");
  recovery.heard("length", both.probe, now + 30_010);
  assert.equal(recovery.owes, true, "an older answer comes");
});

test("Recovery ignores an answer too many to the probe while the second question is to decide", () => {
  const recovery = bothProven();
  loseCall(recovery, 2_000_000);
  recovery.owe("bank");
  recovery.begin(2_030_000);
  for (let time = 0; time < 2; time++) assert.equal(recovery.probeDue(recovery.dueMs(false))?.question, "probe");
  const now = 2_050_000;
  for (let time = 0; time < 2; time++) {
    recovery.heard("length", both.probe, now);
    assert.equal(recovery.owes, true, "it may be the first one's answer twice");
  }
  assert.equal(recovery.probeDue(recovery.dueMs(false))?.question, "second");
  recovery.heard("length", both.second, now + 5_000);
  assert.equal(recovery.owes, false);
});
