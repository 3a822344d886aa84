import assert from "node:assert/strict";
import { test } from "node:test";
import { drainMs, staleProbesMax as leftOver } from "../../src/recovery/limits.ts";
import type { Question } from "../../src/recovery/questions.ts";
import { probeReplies } from "../support/terminal.ts";
import { hung, knowsNothing, lateReplyMs, Proof, probeIntervalMs, withOneTooMany } from "./proof.ts";

/** Tests src/recovery/recovery.ts. About answers that are left over. */

test("Recovery at start takes a silence's worth of probe answers for left over, and the next for proof", () => {
  const proof = new Proof(["bank"]);
  for (let answered = 1; answered <= leftOver; answered++) {
    assert.match(proof.ask() ?? "", /\/supported_operations/);
    assert.equal(proof.answer("bank"), "bank");
    assert.equal(proof.recovery.owes, true, `after ${answered}`);
  }
  proof.exchange("bank");
  assert.equal(proof.recovery.owes, false);
});

test("Recovery waits for left-over answers before it is clean, and anew after each byte", () => {
  const proof = new Proof(["bank"]);
  for (let time = 0; time <= leftOver; time++) {
    proof.exchange("bank");
  }
  proof.now += drainMs - 1;
  assert.equal(proof.clean, false);
  assert.equal(proof.answer("bank"), "late");
  proof.now += drainMs - 1;
  assert.equal(proof.clean, false);
  proof.now += 1;
  assert.equal(proof.clean, true);
});

test("Recovery waits for left-over answers from the last byte of its last probe on, which a slow device may accept late", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank").ask();
  assert.notEqual(proof.askAfter(probeIntervalMs), undefined);
  proof.answer("bank");
  proof.now += drainMs * 10;
  proof.recovery.wrote(proof.now);
  assert.equal(proof.clean, false);
  proof.now += drainMs - 1;
  assert.equal(proof.clean, false);
  proof.now += 1;
  assert.equal(proof.clean, true);
});

test("Recovery.replied() forgets what is left over: it was answered before", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank").ask();
  proof.answer("bank");
  assert.equal(proof.recovery.owes, false);
});

test("Recovery counts a caller's own request of the probe's route as left over", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank", "probe").ask();
  proof.answer("bank");
  assert.equal(proof.recovery.owes, true, "it may be the answer to the caller's");
  proof.exchange("bank");
  assert.equal(proof.recovery.owes, false);
});

test("Recovery.begin() after an unplug counts what was asked before it as left over", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank").ask();
  proof.recovery.begin(proof.now);
  proof.exchange("bank");
  assert.equal(proof.recovery.owes, true);
  proof.exchange("bank");
  assert.equal(proof.recovery.owes, false);
});

test("Recovery.heard() takes an answer from before the first probe off what is left over", () => {
  const proof = new Proof(["bank"]);
  for (let time = 0; time < leftOver; time++) assert.equal(proof.answer("bank"), "late");
  proof.exchange("bank");
  assert.equal(proof.recovery.owes, false);
});

test("Recovery after a silence of a service that had never answered counts as after a start, where it answers after all", () => {
  const proof = new Proof(["bank"]);
  const beganMs = proof.now;
  let asked = 0;
  for (; proof.recovery.dueMs(true) < beganMs + lateReplyMs; asked++) {
    proof.now = proof.recovery.dueMs(true);
    assert.ok(proof.ask());
  }
  assert.equal(asked, 7);
  proof.now = beganMs + lateReplyMs;
  assert.equal(proof.recovery.settleBySilence(proof.now), true);
  // A call is sent, and fails. One that answers after all may have been asked by the process before as well: all of that is counted anew.
  proof.fail("bank");
  for (let time = 0; time <= leftOver + asked; time++) {
    proof.exchange("bank");
    assert.equal(proof.recovery.owes, true);
  }
  proof.exchange("bank");
  assert.equal(proof.recovery.owes, false);
});

test("Recovery.heard() of a frame that nobody owes makes its services owe", () => {
  const proof = new Proof(["fiscal", "bank"]).prove();
  proof.fail("fiscal");
  assert.equal(proof.hear("length", '{"status":"success"}'), "late");
  assert.deepEqual(proof.recovery.owing, ["fiscal", "bank"]);
});

test("Recovery takes a silence's worth of answers for left over until a call's own reply came", () => {
  const proof = new Proof(["bank"]);
  const answersUntilClean = () => {
    let count = 0;
    for (; proof.recovery.owes; count++) {
      proof.exchange("bank");
    }
    return count;
  };
  assert.equal(answersUntilClean(), leftOver + 1);
  proof.recovery.owe("bank");
  assert.equal(answersUntilClean(), leftOver + 1);
  proof.recovery.replied("bank");
  proof.recovery.owe("bank");
  assert.equal(answersUntilClean(), 1);
});

test("Recovery.dueMs() is drainMs after the last byte where only left-over answers may come, and at once after a new opening", () => {
  const proof = new Proof(["bank"]);
  for (let time = 0; time <= leftOver; time++) {
    proof.exchange("bank");
  }
  assert.equal(proof.recovery.dueMs(true), proof.now + drainMs);
  assert.equal(proof.recovery.dueMs(false), Number.POSITIVE_INFINITY);
  assert.equal(proof.clean, false);
  proof.recovery.begin(proof.now);
  assert.equal(proof.recovery.dueMs(true), proof.now);
  assert.equal(proof.clean, true);
});

test("Recovery.heardStale() says that the reply before it was none, where a terminal answers older questions behind it", () => {
  const supported = JSON.parse(probeReplies.bankSupported);
  const proof = hung(["bank"]);
  proof.recovery.replied("bank");
  assert.equal(proof.recovery.state.accounts[0]?.staleBefore, 5);
  assert.equal(proof.recovery.heardStale("length", supported, proof.now), "out of step");
  assert.equal(proof.recovery.state.accounts[0]?.staleAssumed, 4, "the others may come as well");
  assert.ok(proof.errs("bank"), "so an error may be one of them");
  assert.equal(proof.recovery.heardStale("length", supported, proof.now), "left over", "it is known by now");
  for (const ask of [
    ({ recovery, now }: Proof) => recovery.repliedIdle("bank", supported, now),
    ({ recovery }: Proof) => recovery.owe("bank", "probe"),
    (each: Proof) => each.fail("bank", "probe").ask(),
  ]) {
    const asked = hung(["bank"]);
    asked.recovery.replied("bank");
    ask(asked);
    assert.equal(asked.recovery.heardStale("length", supported, asked.now), "left over", "it may be the answer to that");
  }
});

test("Recovery.heardStale() says that a service hung, which silence had settled before it ever answered, though such an answer may come", () => {
  const supported = JSON.parse(probeReplies.bankSupported);
  const settled = () => {
    const proof = new Proof(["bank"]);
    proof.ask();
    proof.askAfter(lateReplyMs - 1_000);
    proof.now += 1_000;
    assert.equal(proof.recovery.settleBySilence(proof.now), true);
    assert.equal(proof.recovery.known[0]?.stillOut, 1);
    return proof;
  };
  const hangs = settled();
  assert.equal(hangs.recovery.heardStale("length", supported, hangs.now), "out of step");
  const answers = settled();
  answers.recovery.owe("bank", "probe");
  answers.recovery.replied("bank");
  answers.recovery.owe("bank", "probe");
  assert.equal(answers.recovery.heardStale("length", supported, answers.now), "left over", "it has replied since");
});

test("Recovery counts each probe that was asked on a line that never fell silent as left over", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank");
  const beganMs = proof.now;
  const asked = 8;
  for (let count = 0; count < asked; count++) {
    proof.now = proof.recovery.dueMs(false);
    assert.ok(proof.ask());
    proof.recovery.heardBytes(proof.now);
  }
  assert.ok(proof.now - beganMs > lateReplyMs);
  proof.recovery.begin(proof.now);
  for (let count = 0; count < asked; count++) {
    proof.exchange("bank");
    assert.equal(proof.recovery.owes, true);
  }
  proof.exchange("bank");
  assert.equal(proof.recovery.owes, false);
});

test("Recovery isn't clean while more answers may come than the next process takes for left over, and asks for no more", () => {
  const proof = withOneTooMany();
  const answeredMs = proof.now;
  assert.equal(proof.recovery.owes, true);
  assert.equal(proof.askAfter(10 * probeIntervalMs), undefined, "an answer more would say nothing");
  assert.equal(proof.recovery.dueMs(true), answeredMs + lateReplyMs);
  assert.equal(proof.recovery.dueMs(false), Number.POSITIVE_INFINITY);
  // One that comes now is one less.
  const twin = new Proof(["bank"]);
  twin.recovery.state = proof.recovery.state;
  twin.now = proof.now;
  twin.answer("bank");
  assert.equal(twin.recovery.owes, false);
  // Silence says that none comes: nothing is left over, and the next proof is the first answer.
  proof.now = answeredMs + lateReplyMs;
  assert.equal(proof.recovery.settleBySilence(proof.now), true);
  assert.equal(proof.clean, true);
  proof.fail("bank").exchange("bank");
  assert.equal(proof.clean, true);
});

test("Recovery waits for left-over answers on a line that hums for three silences from the last one", () => {
  const proof = withOneTooMany();
  const answeredMs = proof.now;
  for (proof.now += 20_000; proof.now < answeredMs + 3 * lateReplyMs; proof.now += 20_000) {
    proof.recovery.heardBytes(proof.now);
    assert.equal(proof.recovery.settleBySilence(proof.now), false);
  }
  assert.equal(proof.recovery.dueMs(true), answeredMs + 3 * lateReplyMs);
  proof.now = answeredMs + 3 * lateReplyMs;
  assert.equal(proof.recovery.settleBySilence(proof.now), true);
  assert.equal(proof.recovery.owes, false);
  // Nothing was silent, so all of them may still come.
  assert.equal(proof.recovery.state.accounts[0]?.staleKnown, leftOver + 1);
});

test("Recovery.begin() waits as briefly for left-over answers as ever, though they were to be outlasted before", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.outlastStale(proof.now);
  proof.recovery.begin(proof.now);
  assert.equal(proof.clean, true);
  proof.recovery.awaitPause(proof.now);
  proof.now += drainMs;
  assert.equal(proof.clean, true);
  const state = new Proof(["bank"]).recovery.state;
  assert.deepEqual([proof.recovery.state.drainMs, proof.recovery.state.drainUntilMs], [state.drainMs, state.drainUntilMs]);
});

test("Recovery.end() takes a silence for proof only where left-over answers were outlasted, and once", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.owe("bank", "probe");
  const still = () => proof.recovery.known[0]?.stillOut;
  assert.equal(still(), 1);
  proof.recovery.end(proof.now);
  assert.equal(still(), 1, "nothing was outlasted");
  proof.recovery.outlastStale(proof.now);
  proof.recovery.end(proof.now + lateReplyMs);
  assert.equal(still(), 0);
  proof.recovery.owe("bank", "probe");
  proof.recovery.end(proof.now + 2 * lateReplyMs);
  assert.equal(still(), 1, "it has ended already");
});

test("Recovery.outlastStale() starts afresh: what was asked before it may still come", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank").ask();
  proof.recovery.outlastStale(proof.now);
  assert.deepEqual([proof.recovery.state.accounts[0]?.staleKnown, proof.recovery.state.accounts[0]?.sent], [1, 0]);
});

test("Recovery.settleBySilence() of one that answered all but what is left over takes that for still possible, and it for heard", () => {
  const proof = new Proof(["bank", "qr"]).prove();
  // All are silent for long, and then only qr is.
  for (const service of ["bank", "qr"] as const) {
    proof.fail(service);
    proof.settle();
  }
  assert.equal(proof.recovery.isSilent("bank"), true);
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", isProven: true, isGivenUp: true, assumed: 80 }]);
  proof.fail("bank", "probe");
  proof.exchange("bank");
  assert.equal(proof.recovery.answered.length, 0, "it may be an older one's");
  proof.settle();
  assert.equal(proof.recovery.isSilent("bank"), false, "it answers");
});

test("Recovery.settleBySilence() on a line that hums counts what was asked as left over", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", stillOut: leftOver + 1 }]);
  proof.fail("bank");
  for (let lost = 0; lost < 2; lost++) assert.notEqual(proof.askAfter(lateReplyMs), undefined);
  for (let answers = 0; answers < leftOver + 2; answers++) proof.exchange("bank");
  assert.deepEqual([proof.recovery.answered, proof.recovery.known[0]?.stillOut], [["bank"], leftOver + 2]);
  for (let hums = 0; hums < 90; hums++) {
    assert.equal(proof.recovery.settleBySilence(proof.now), false);
    proof.recovery.heardBytes(proof.now);
    proof.now += 1_000;
  }
  assert.equal(proof.recovery.settleBySilence(proof.now), true);
  assert.equal(proof.recovery.known[0]?.stillOut, leftOver + 2);
});

test("Recovery.heardStale() is out of step where a silence settled what owed a call, until it is replied to or proven", () => {
  const supported = JSON.parse(probeReplies.bankSupported);
  const settled = (shapedAs?: Question) => {
    const proof = new Proof(["bank", "qr"]).prove();
    proof.recovery.replied("bank");
    proof.fail("bank", shapedAs).ask();
    return proof.settle();
  };
  const stale = (proof: Proof) => proof.recovery.heardStale("length", supported, proof.now);
  assert.equal(stale(settled()), "out of step");
  assert.equal(stale(settled("second")), "out of step", "a call that may print for long");
  assert.equal(stale(settled("probe")), "left over", "nobody waits for another answer");
  const replied = settled();
  replied.recovery.replied("bank");
  replied.fail("bank", "probe").ask();
  assert.equal(stale(replied.settle()), "left over", "it was replied to since");
  const proven = settled();
  proven.fail("bank", "probe");
  while (proven.recovery.owes) proven.exchange("bank");
  assert.equal(stale(proven), "left over", "it was proven since");
});
