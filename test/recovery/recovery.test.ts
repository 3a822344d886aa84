import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContractName } from "../../src/core/call.ts";
import { drainMs, staleProbesMax as leftOver, passedOverMax, rowMin } from "../../src/recovery/limits.ts";
import type { Question } from "../../src/recovery/questions.ts";
import type { Recovery } from "../../src/recovery/recovery.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { bothReplies, probeReplies } from "../support/terminal.ts";
import { answers, asksOn, both, bothAsked, knowsNothing, lateReplyMs, Proof, probeIntervalMs, serviceAsked } from "./proof.ts";

test("Recovery starts with every service owing", () => {
  const proof = new Proof(["fiscal", "bank", "qr"]);
  assert.deepEqual(proof.recovery.owing, ["fiscal", "bank", "qr"]);
  assert.equal(proof.clean, false);
});

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

test("Recovery settles by silence no sooner than lateReplyMs after the last byte of the last probe, where answers come otherwise", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank");
  // Until it is asked no more: so many of its answers may still come.
  while (proof.ask() !== undefined) {
    proof.hear("length", '{"status":"success"}');
    proof.now += 4_000;
    proof.recovery.wrote(proof.now);
  }
  proof.now += lateReplyMs - 1;
  assert.equal(proof.recovery.settleBySilence(proof.now), false);
  proof.now += 1;
  assert.equal(proof.recovery.settleBySilence(proof.now), true);
});

test("Recovery is clean at once when each probe was answered", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank").ask();
  proof.answer("bank");
  assert.equal(proof.clean, true);
});

test("Recovery asks one service after the other, each at once after the last answer", () => {
  const proof = new Proof(["fiscal", "bank", "qr"]);
  const asked: string[] = [];
  for (let time = 0; time < 3 * (leftOver + 1); time++) {
    const text = proof.ask() ?? "";
    const service = serviceAsked(text);
    asked.push(service);
    proof.answer(service);
  }
  assert.deepEqual([...new Set(asked)].sort(), ["bank", "fiscal", "qr"]);
  assert.equal(proof.ask(), undefined);
  assert.equal(proof.recovery.owes, false);
});

test("Recovery asks again after probeIntervalMs, not before", () => {
  const proof = new Proof(["bank"]);
  assert.ok(proof.ask());
  assert.equal(proof.recovery.dueMs(true), proof.now + probeIntervalMs);
  assert.equal(proof.askAfter(probeIntervalMs - 1), undefined);
  assert.ok(proof.askAfter(1));
});

test("Recovery takes no other service's probe answer for proof", () => {
  const proof = new Proof(["bank", "qr"]).prove();
  proof.fail("bank").ask();
  assert.equal(proof.answer("qr"), "late");
  assert.deepEqual(proof.recovery.owing, ["bank"]);
});

test("Recovery takes a probe answer of another framing for late", () => {
  const proof = new Proof(["fiscal", "bank"]).prove();
  proof.fail("fiscal").ask();
  assert.equal(proof.hear("length", probeReplies.supported), "late");
  assert.deepEqual(proof.recovery.owing, ["fiscal"]);
});

test("Recovery proves nothing by the answer to a probe of an earlier recovery", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank");
  // Three probes into a terminal that hangs; one is answered, and that is proof, with two on their way.
  for (const ms of [0, probeIntervalMs, probeIntervalMs]) assert.ok(proof.askAfter(ms));
  proof.answer("bank");
  proof.now += drainMs;
  assert.equal(proof.clean, true);
  // The next call fails as well: two answers that come now may be of probes from before it.
  proof.fail("bank").ask();
  proof.answer("bank");
  proof.exchange("bank");
  assert.equal(proof.recovery.owes, true);
  proof.exchange("bank");
  assert.equal(proof.recovery.owes, false);
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

test("Recovery settles by silence a service that never answered a probe, after lateReplyMs without a byte", () => {
  const proof = new Proof(["fiscal"], false);
  assert.equal(proof.ask(), undefined, "it can't be signed, so it isn't asked");
  proof.now += lateReplyMs - 1;
  assert.equal(proof.recovery.settleBySilence(proof.now), false);
  proof.recovery.heardBytes(proof.now);
  proof.now += lateReplyMs - 1;
  assert.equal(proof.recovery.settleBySilence(proof.now), false);
  proof.now += 1;
  assert.equal(proof.recovery.settleBySilence(proof.now), true);
  assert.equal(proof.clean, true);
});

test("Recovery doesn't settle by lateReplyMs of silence a service that has answered a probe before", () => {
  const proof = new Proof(["bank"]).prove();
  proof.fail("bank");
  const beganMs = proof.now;
  const asked: number[] = [];
  for (; proof.recovery.dueMs(true) < beganMs + 10 * lateReplyMs; proof.now = proof.recovery.dueMs(true)) {
    assert.equal(proof.recovery.settleBySilence(proof.now), false);
    if (proof.ask() !== undefined) asked.push((proof.now - beganMs) / 1_000);
  }
  // Each waits for half as long again as the line has waited: a terminal that thinks isn't swamped.
  assert.deepEqual(asked.map(Math.round), [0, 2, 4, 6, 9, 14, 20, 30, 46, 68, 98, 128, 158, 188, 218, 248, 278]);
  assert.equal(asked.length, leftOver);
  proof.now = beganMs + 10 * lateReplyMs;
  assert.equal(proof.recovery.settleBySilence(proof.now), true);
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

test("Recovery asks no more after three errors in place of the answer, and lets silence settle", () => {
  const proof = new Proof(["bank"]);
  for (let time = 0; time < 3; time++) {
    assert.ok(proof.askAfter(probeIntervalMs));
    assert.equal(proof.hear("length", '{"status":"error","code":-80}'), "late");
  }
  assert.equal(proof.askAfter(probeIntervalMs), undefined);
  proof.now += lateReplyMs;
  assert.equal(proof.recovery.settleBySilence(proof.now), true);
});

test("Recovery goes on asking a service that answered before, though it answers errors while it is busy", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank");
  for (let time = 0; time < 20; time++) {
    assert.ok(proof.askAfter(probeIntervalMs));
    proof.hear("length", '{"status":"error","code":-3}');
  }
  assert.ok(proof.askAfter(probeIntervalMs));
  proof.answer("bank");
  assert.equal(proof.recovery.owes, false);
});

test("Recovery.suspectFraming() makes every service of the framing owe, unless one does already", () => {
  const proof = new Proof(["fiscal", "bank", "qr"]).prove();
  proof.recovery.suspectFraming("length");
  assert.deepEqual(proof.recovery.owing, ["bank", "qr"]);
  const other = new Proof(["bank", "qr"]).prove();
  other.fail("bank").recovery.suspectFraming("length");
  assert.deepEqual(other.recovery.owing, ["bank"]);
});

test("Recovery.heard() of a frame that nobody owes makes its services owe", () => {
  const proof = new Proof(["fiscal", "bank"]).prove();
  proof.fail("fiscal");
  assert.equal(proof.hear("length", '{"status":"success"}'), "late");
  assert.deepEqual(proof.recovery.owing, ["fiscal", "bank"]);
});

test("Recovery.isProbeAnswer() is true for a probe's answer, except to a call of that very route and service", () => {
  const { recovery } = new Proof(["bank", "qr"]);
  const answer = JSON.parse(probeReplies.bankSupported);
  assert.equal(recovery.isProbeAnswer("length", answer, { service: "bank", shapedAs: undefined }), true);
  assert.equal(recovery.isProbeAnswer("length", answer, { service: "qr", shapedAs: "probe" }), true);
  assert.equal(recovery.isProbeAnswer("length", answer, { service: "bank", shapedAs: "probe" }), false);
  assert.equal(recovery.isProbeAnswer("length", { status: "success" }, { service: "bank", shapedAs: undefined }), false);
});

test("Recovery.dueMs() leaves silence out while something is half heard", () => {
  const proof = new Proof(["fiscal"], false);
  proof.ask();
  proof.now += lateReplyMs + 1;
  assert.ok(proof.recovery.dueMs(true) <= proof.now);
  proof.ask();
  assert.ok(proof.recovery.dueMs(false) > proof.now);
});

test("Recovery.isDoubtful() is true of an error while an answer to a probe of this process may still come, and counts it off", () => {
  const proof = new Proof(["fiscal", "bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank");
  for (const ms of [0, probeIntervalMs, probeIntervalMs]) assert.ok(proof.askAfter(ms));
  proof.answer("bank");
  proof.now += drainMs;
  assert.equal(proof.clean, true);
  assert.equal(proof.errs("fiscal", "stx"), false, "of another framing");
  assert.equal(proof.errs("bank"), true, "the first of two");
  assert.equal(proof.errs("bank"), true, "the second");
  assert.equal(proof.errs("bank"), false, "both are accounted for");
});

test("Recovery.isDoubtful() counts nothing off while either of two services may be meant", () => {
  const proof = new Proof(["bank", "qr"]).prove();
  for (const service of ["bank", "qr"] as const) proof.recovery.replied(service);
  proof.fail("bank").fail("qr");
  for (const ms of [0, probeIntervalMs, probeIntervalMs, probeIntervalMs]) assert.ok(proof.askAfter(ms));
  proof.answer("bank");
  proof.answer("qr");
  for (let time = 0; time < 4; time++) assert.equal(proof.errs("bank"), true);
});

test("Recovery.isDoubtful() is false after a good reply, and after lateReplyMs without a byte", () => {
  for (const reply of [true, false]) {
    const proof = new Proof(["bank"]).prove();
    proof.recovery.replied("bank");
    proof.fail("bank");
    for (const ms of [0, probeIntervalMs]) assert.ok(proof.askAfter(ms));
    proof.answer("bank");
    if (reply) proof.recovery.replied("bank");
    proof.now += reply ? drainMs : lateReplyMs;
    assert.equal(proof.errs("bank"), false);
  }
});

test("Recovery.isDoubtful() is false after a start whose every probe was answered, and true once one answer too many came", () => {
  const proof = new Proof(["bank"]).prove();
  assert.equal(proof.errs("bank"), false);
  assert.equal(proof.recovery.heardStale("length", JSON.parse(probeReplies.bankSupported), proof.now), "left over");
  assert.equal(proof.errs("bank"), true);
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

test("Recovery.dueMs() is the end of the silence where that comes before the next probe, later for who has answered before", () => {
  const unproven = new Proof(["fiscal"], false);
  const beganMs = unproven.now;
  assert.equal(unproven.recovery.dueMs(true), beganMs + lateReplyMs, "it has no probe");
  assert.equal(unproven.recovery.dueMs(false), Number.POSITIVE_INFINITY);
  const proven = new Proof(["bank"]).prove().fail("bank");
  const failedMs = proven.now;
  proven.askAfter(10 * lateReplyMs - 500);
  assert.equal(proven.recovery.dueMs(true), failedMs + 10 * lateReplyMs);
  const both = new Proof(["fiscal", "bank"], false);
  for (let text = both.ask(); text !== undefined; text = both.ask()) both.answer("bank");
  both.fail("bank");
  const bothMs = both.now;
  both.askAfter(lateReplyMs - 500);
  assert.equal(both.recovery.dueMs(true), bothMs + lateReplyMs, "the first of two");
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

test("Recovery.heard() takes an error for the refusal of the probe that was sent last, and a service that refused thrice isn't asked", () => {
  const proof = new Proof(["bank", "qr", "fiscal"]);
  const heard = (framing: Framing, status = "error") => proof.recovery.heard(framing, { status }, proof.now);
  const late = { kind: "late", service: undefined };
  assert.deepEqual(heard("length"), late, "nothing is asked yet");
  assert.equal(serviceAsked(proof.ask() ?? ""), "bank");
  assert.equal(serviceAsked(proof.askAfter(probeIntervalMs) ?? ""), "qr");
  assert.deepEqual(heard("length"), late, "one may be a call's answer");
  assert.deepEqual(heard("length"), { kind: "refusal", service: "qr" });
  assert.deepEqual(heard("stx"), late, "fiscal isn't asked yet");
  assert.deepEqual(heard("length", "success"), late);
  const ask = (times: number) => Array.from({ length: times }, () => serviceAsked(proof.askAfter(probeIntervalMs) ?? ""));
  assert.deepEqual(ask(3), ["fiscal", "bank", "qr"], "what comes at once needn't answer probes, however much");
  heard("length");
  assert.deepEqual(ask(4), ["fiscal", "bank", "fiscal", "bank"]);
  heard("length");
  assert.deepEqual(heard("length"), { kind: "refusal", service: "bank" });
});

test("Recovery.heard() says whose answer came before it was asked", () => {
  const { recovery, now } = new Proof(["bank"]);
  assert.deepEqual(recovery.heard("length", JSON.parse(probeReplies.bankSupported), now), { kind: "late", service: "bank" });
});

test("Recovery.takeAmbiguous() is true for less than lateReplyMs after the last stale answer", () => {
  for (const [ms, may] of [
    [lateReplyMs - 1, true],
    [lateReplyMs, false],
  ] as const) {
    const proof = new Proof(["bank"]).prove();
    proof.now += 20_000;
    assert.equal(proof.recovery.heardStale("length", JSON.parse(probeReplies.bankSupported), proof.now), "left over");
    proof.now += ms;
    assert.equal(proof.errs("bank"), may);
  }
});

test("Recovery.takeAmbiguous() is false after an answer that nothing was left over for", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.recovery.heardStale("length", JSON.parse(probeReplies.bankSupported), proof.now);
  assert.equal(proof.errs("bank"), false);
  assert.equal(proof.recovery.heardStale("length", { status: "success" }, proof.now), undefined, "no probe's answer");
});

test("Recovery is as patient with a service whose first answer came late, when the line was clean or it owed nothing, as with any that answers", () => {
  const supported = JSON.parse(probeReplies.bankSupported);
  for (const late of [
    ({ recovery, now }: Proof) => assert.equal(recovery.heardStale("length", supported, now), "out of step"),
    ({ recovery, now }: Proof) => assert.equal(recovery.heard("length", supported, now).kind, "late"),
  ]) {
    const proof = new Proof(["bank"]);
    assert.ok(proof.ask());
    proof.now += lateReplyMs;
    assert.ok(proof.recovery.settleBySilence(proof.now));
    assert.equal(proof.recovery.isProven("bank"), false);
    late(proof);
    assert.deepEqual([proof.recovery.isProven("bank"), proof.recovery.idleProbed.length], [true, 1]);
    proof.recovery.replied("bank");
    proof.fail("bank");
    assert.equal(proof.recovery.settleBySilence(proof.now + 10 * lateReplyMs - 1), false);
    assert.ok(proof.recovery.settleBySilence(proof.now + 10 * lateReplyMs));
  }
});

test("Recovery takes the late answer to a till's own question for no proof of a service that it can't ask", () => {
  const proof = new Proof(["fiscal"], false);
  proof.now += lateReplyMs;
  assert.ok(proof.recovery.settleBySilence(proof.now));
  assert.equal(proof.recovery.heardStale("stx", JSON.parse(probeReplies.supported), proof.now), "left over");
  assert.deepEqual([proof.recovery.isProven("fiscal"), proof.recovery.idleProbed], [false, []]);
});

/** One that hung, and may answer so many questions yet. */
function hung(services: readonly ContractName[], asked = 5): Proof {
  const proof = new Proof(services).prove();
  for (const service of services) proof.recovery.replied(service);
  proof.fail("bank");
  for (let time = 0; time < asked; time++) {
    proof.now = proof.recovery.dueMs(false);
    assert.ok(proof.ask());
  }
  proof.now += 11 * lateReplyMs;
  assert.ok(proof.recovery.settleBySilence(proof.now));
  return proof;
}

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

test("Recovery.heardStale() says that answers which silence had given up come after all, so that as many are expected again", () => {
  const supported = JSON.parse(probeReplies.bankSupported);
  const proof = new Proof(["bank"]);
  for (let time = 0; time < 3; time++) assert.ok(proof.askAfter(proof.recovery.dueMs(false) - proof.now));
  proof.now += lateReplyMs;
  assert.ok(proof.recovery.settleBySilence(proof.now));
  assert.equal(proof.recovery.heardStale("length", supported, proof.now), "out of step");
  assert.equal(proof.recovery.state.accounts[0]?.staleAssumed, leftOver + 3 - 1);
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

/** Two of a framing: bank answers what it is asked with errors, and silence has settled it; of qr some answers may come. */
function besideErring(): Proof {
  const proof = new Proof(["bank", "qr"]).prove();
  proof.recovery.replied("qr");
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", answeredProbes: true }]);
  proof.recovery.replied("bank");
  for (let time = 0; time < 3; time++) proof.recovery.owe("qr", "probe");
  return proof;
}

test("Recovery counts no error off a service's answers where another of its framing has answered with errors before", () => {
  const stale = ({ recovery }: Proof) => recovery.state.accounts[1]?.staleKnown;
  const proof = besideErring();
  assert.ok(proof.errs("qr"));
  assert.equal(stale(proof), 3, "it may be the other one's");
  proof.recovery.begin(proof.now);
  assert.ok(proof.ask());
  for (let time = 0; time < 3; time++) proof.hear("length", '{"status":"error","code":-3}');
  assert.deepEqual([proof.recovery.state.accounts[1]?.refusals, proof.recovery.state.accounts[1]?.errors], [3, 0]);
  const alone = new Proof(["qr"]).prove();
  alone.recovery.replied("qr");
  alone.recovery.owe("qr", "probe");
  assert.ok(alone.errs("qr"));
  assert.equal(alone.recovery.state.accounts[0]?.staleKnown, 0, "alone it can only be its own");
});

test("Recovery.takeAmbiguous() of the first error after a silence, where a service of its framing may have answered so", () => {
  const first = (proof: Proof, isSuccess = false) => (isSuccess ? proof.succeeds("bank") : proof.errs("bank"));
  assert.equal(first(hung(["bank"])), false, "it answers its probes rightly");
  const beside = () => {
    const proof = new Proof(["bank", "qr"]);
    proof.recovery.inherit([{ ...knowsNothing, service: "bank", isProven: true }]);
    proof.now += 1_000_000;
    assert.ok(proof.recovery.settleBySilence(proof.now));
    return proof;
  };
  // The other one was asked, and nobody knows how it answers.
  const proof = beside();
  assert.equal(proof.recovery.state.accounts[1]?.isProven, false);
  proof.recovery.owe("qr", "probe");
  assert.deepEqual([first(proof), first(proof, true)], [true, false]);
  proof.recovery.replied("bank");
  proof.now += lateReplyMs;
  assert.equal(first(proof), false, "it was heard since");
});

test("Recovery.owe() of a service that isn't on the line changes nothing", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.owe("qr");
  assert.equal(proof.clean, true);
});

test("Recovery goes on asking who answers until it is proven, whoever is silent beside it", () => {
  const proof = new Proof(["bank", "qr"]);
  assert.equal(serviceAsked(proof.ask() ?? ""), "bank");
  assert.equal(serviceAsked(proof.askAfter(probeIntervalMs) ?? ""), "qr");
  proof.answer("qr");
  for (let answers = 0; proof.recovery.owing.includes("qr") && answers < 20; answers++) {
    proof.now += 10;
    assert.equal(serviceAsked(proof.ask() ?? ""), "qr");
    proof.answer("qr");
  }
  assert.deepEqual(proof.recovery.owing, ["bank"]);
});

test("Recovery.takeAmbiguous() is true for less than lateReplyMs after the last probe that silence settled", () => {
  for (const [ms, may] of [
    [lateReplyMs - 1, true],
    [lateReplyMs, false],
  ] as const) {
    const proof = new Proof(["bank"]).prove();
    proof.recovery.replied("bank");
    proof.fail("bank");
    const silentSinceMs = proof.now;
    proof.ask();
    const lastMs = silentSinceMs + 10 * lateReplyMs - 500;
    proof.now = lastMs;
    assert.ok(proof.ask());
    proof.now += 500;
    assert.equal(proof.recovery.settleBySilence(proof.now), true);
    proof.now = lastMs + ms;
    assert.equal(proof.errs("bank"), may);
  }
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

test("Recovery.begin() counts anew: answers that came before it prove nothing after it", () => {
  const proof = new Proof(["bank"]);
  for (let time = 0; time < leftOver; time++) {
    proof.exchange("bank");
  }
  proof.recovery.begin(proof.now);
  for (let time = 0; time < leftOver; time++) {
    proof.exchange("bank");
    assert.equal(proof.recovery.owes, true);
  }
  proof.exchange("bank");
  assert.equal(proof.recovery.owes, false);
});

/** A bank that has answered, while one answer more is known to be possible than a process may leave behind. */
function withOneTooMany(): Proof {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  for (let unplugs = 0; unplugs <= leftOver; unplugs++) proof.fail("bank").ask();
  proof.fail("bank");
  for (let answers = 0; answers <= leftOver + 1; answers++) proof.exchange("bank");
  assert.deepEqual(proof.recovery.answered, ["bank"]);
  return proof;
}

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

test("Recovery counts errors in place of answers as answers that came, but for one, which may be the call's, and but for others' errors", () => {
  for (const [services, stale] of [
    [["bank"], 1],
    [["bank", "qr"], 5],
  ] as const) {
    const proof = new Proof(services).prove();
    for (const service of services) {
      proof.recovery.replied(service);
      proof.fail(service);
    }
    for (let time = 0; time < 10; time++) {
      proof.now = proof.recovery.dueMs(false);
      assert.ok(proof.ask());
      proof.hear("length", '{"status":"error","code":-3}');
    }
    proof.recovery.begin(proof.now);
    const { accounts } = proof.recovery.state;
    assert.deepEqual(
      accounts.map(({ staleKnown }) => staleKnown),
      services.map(() => stale),
    );
  }
});

test("Recovery at start is clean though probes were lost: what is merely assumed of the process before isn't counted against it", () => {
  const proof = new Proof(["bank"]);
  for (let lost = 0; lost < 5; lost++) {
    proof.now = proof.recovery.dueMs(false);
    assert.ok(proof.ask());
  }
  for (let answers = 0; answers <= leftOver; answers++) proof.exchange("bank");
  proof.now += drainMs;
  assert.equal(proof.clean, true);
});

test("Recovery asks a terminal that takes 18 s for each answer no more than it works off", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank", "probe");
  // It has this many requests to work off; each answer takes its 18 s.
  let queued = 0;
  let answers = 0;
  let answerAtMs = proof.now + 18_000;
  let most = 0;
  while (proof.recovery.owes && answers < 30) {
    proof.now = Math.min(proof.recovery.dueMs(false), answerAtMs);
    if (proof.ask() !== undefined) queued++;
    most = Math.max(most, queued);
    if (proof.now < answerAtMs) continue;
    answerAtMs += 18_000;
    answers++;
    queued--;
    proof.answer("bank");
  }
  assert.equal(answers, 2);
  assert.ok(most <= 7, `${most} probes wait`);
});

test("Recovery asks at once again where the last answer came promptly, however many were lost before", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  for (let time = 0; time < 5; time++) proof.recovery.owe("bank", "probe");
  for (let lost = 0; lost < 6; lost++) {
    proof.now = proof.recovery.dueMs(false);
    assert.ok(proof.ask());
  }
  proof.now += 10;
  proof.answer("bank");
  assert.ok(proof.ask(), "at once");
  assert.equal(
    proof.recovery.dueMs(false),
    proof.now + probeIntervalMs,
    "and after the shortest interval when that is lost too",
  );
});

test("Recovery.begin() doesn't take the time without a device for silence: what was asked before it may still come", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank").ask();
  proof.now += 2 * lateReplyMs;
  proof.recovery.begin(proof.now);
  proof.exchange("bank");
  assert.equal(proof.recovery.owes, true);
  proof.exchange("bank");
  assert.equal(proof.recovery.owes, false);
});

test("Recovery knows that probes of the silence which settled a service may still be answered, with an error too", () => {
  const proof = new Proof(["bank"]);
  const beganMs = proof.now;
  proof.ask();
  proof.now = beganMs + lateReplyMs - 350;
  assert.ok(proof.ask());
  proof.now = beganMs + lateReplyMs;
  assert.equal(proof.recovery.settleBySilence(proof.now), true);
  assert.equal(proof.errs("bank"), true, "the second");
  assert.equal(proof.errs("bank"), false, "the first was asked before the silence");
});

test("Recovery keeps no more than a hundred times of probes, however long a line hums that nobody answers on", () => {
  const proof = new Proof(["bank"]);
  for (let asked = 0; asked < 120; asked++) {
    proof.now = proof.recovery.dueMs(false);
    assert.ok(proof.ask());
    proof.recovery.heardBytes(proof.now);
  }
  const [account] = proof.recovery.state.accounts;
  assert.equal(account?.sent, 120);
  assert.equal(account.unanswered.length, 100);
  assert.equal(account.unanswered.at(-1), proof.now);
});

test("Recovery asks a terminal that works off its answers slowly once a silence's time where the next process couldn't bear more", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  for (let unplugs = 0; unplugs < leftOver - 4; unplugs++) proof.fail("bank").ask();
  proof.fail("bank");
  // 13 are out.
  for (const ms of [0, probeIntervalMs]) assert.ok(proof.askAfter(ms));
  assert.equal(proof.recovery.dueMs(false), proof.now + lateReplyMs, "two less than it may leave");
  proof.now += 12_000;
  proof.answer("bank");
  assert.equal(proof.recovery.dueMs(false), proof.now + 6_000, "it wasn't prompt: half of what the line has waited");
  assert.ok(proof.askAfter(6_000));
  assert.equal(proof.recovery.dueMs(false), proof.now + lateReplyMs);
  proof.answer("bank");
  assert.ok(proof.ask(), "it answers at once, so it has nothing left to work off");
});

test("Recovery.takeAmbiguous() counts nothing off another service's answers: the error may be the call's own", () => {
  const proof = new Proof(["bank", "qr"]).prove();
  for (const service of ["bank", "qr"] as const) proof.recovery.replied(service);
  proof.fail("qr");
  for (const ms of [0, probeIntervalMs]) assert.ok(proof.askAfter(ms));
  proof.answer("qr");
  for (let errors = 0; errors < 3; errors++) {
    assert.equal(proof.errs("bank"), true);
  }
  assert.equal(proof.errs("qr"), true);
  assert.equal(proof.errs("qr"), false, "its one is accounted for");
});

test("Recovery counts no error as an answer of a service while another of its framing has left-over answers", () => {
  const proof = new Proof(["bank", "qr"]).prove();
  for (const service of ["bank", "qr"] as const) proof.recovery.replied(service);
  proof.fail("qr");
  for (const ms of [0, probeIntervalMs, probeIntervalMs]) assert.ok(proof.askAfter(ms));
  proof.answer("qr");
  proof.fail("bank");
  for (const ms of [0, probeIntervalMs, probeIntervalMs]) {
    assert.ok(proof.askAfter(ms));
    proof.hear("length", '{"status":"error","code":-3}');
  }
  proof.recovery.begin(proof.now);
  const [bank] = proof.recovery.state.accounts;
  assert.deepEqual([bank?.service, bank?.staleKnown], ["bank", 3]);
});

const odd = '{"status":"success"}';

/** A bank that was asked and answered so, this often, at the shortest interval. */
function answeredSo(proof: Proof, text: string, times: number): Proof {
  for (let time = 0; time < times; time++) {
    assert.ok(proof.askAfter(probeIntervalMs), `probe ${time + 1}`);
    proof.hear("length", text);
  }
  return proof;
}

test("Recovery gives up asking who answers with something that isn't the answer, and counts none of it off what may come", () => {
  const proof = answeredSo(new Proof(["bank"]), odd, 3);
  assert.equal(proof.askAfter(probeIntervalMs), undefined);
  assert.equal(proof.recovery.state.accounts[0]?.sent, 3);
  assert.equal(proof.recovery.state.accounts[0]?.errors, 0);
  const mixed = answeredSo(answeredSo(new Proof(["bank"]), odd, 1), '{"status":"error"}', 2);
  assert.equal(mixed.askAfter(probeIntervalMs), undefined, "errors and others together");
});

test("Recovery.heard() says of the second frame that is neither answer nor error that the service answers oddly", () => {
  const proof = new Proof(["bank"]);
  const heard = () => proof.recovery.heard("length", undefined, proof.now);
  assert.deepEqual(heard(), { kind: "late", service: undefined }, "nothing is asked yet");
  proof.ask();
  assert.deepEqual(heard(), { kind: "late", service: undefined }, "it may be a call's");
  assert.deepEqual(heard(), { kind: "odd", service: "bank" });
  proof.fail("bank").ask();
  assert.deepEqual(heard(), { kind: "late", service: undefined }, "another recovery");
});

test("Recovery settles by silence nobody who answered wrongly before lateReplyMs is over since its last probe", () => {
  for (const text of [odd, '{"status":"error","code":-80}']) {
    const proof = new Proof(["bank"]);
    proof.ask();
    proof.hear("length", text);
    const heardMs = proof.now;
    proof.now = heardMs + lateReplyMs - 10;
    assert.ok(proof.ask());
    proof.now = heardMs + lateReplyMs;
    assert.equal(proof.recovery.settleBySilence(proof.now), false);
    assert.equal(proof.recovery.dueMs(true), heardMs + 2 * lateReplyMs - 10);
    assert.equal(proof.askAfter(probeIntervalMs), undefined, "another probe would be waited for in turn");
    proof.now = heardMs + 2 * lateReplyMs - 11;
    assert.equal(proof.recovery.settleBySilence(proof.now), false);
    proof.now++;
    assert.equal(proof.recovery.settleBySilence(proof.now), true);
    assert.equal(proof.clean, true);
    assert.equal(proof.recovery.state.accounts[0]?.staleKnown, 0);
  }
});

test("Recovery waits so for the other services of a framing too, whose answers those may have been, and in later recoveries", () => {
  const proof = new Proof(["bank", "qr", "fiscal"], false);
  proof.ask();
  proof.askAfter(probeIntervalMs);
  proof.hear("length", odd);
  const heardMs = proof.now;
  proof.now = heardMs + lateReplyMs - 10;
  assert.equal(serviceAsked(proof.ask() ?? ""), "bank");
  proof.now = heardMs + lateReplyMs;
  assert.equal(proof.recovery.settleBySilence(proof.now), true);
  assert.deepEqual(proof.recovery.owing, ["bank"], "fiscal has another framing, and qr's probe is older");
  const later = answeredSo(new Proof(["bank"]), odd, 3);
  later.now += lateReplyMs;
  assert.ok(later.recovery.settleBySilence(later.now));
  later.fail("bank");
  const failedMs = later.now;
  later.now = failedMs + lateReplyMs - 10;
  assert.ok(later.ask());
  later.now = failedMs + lateReplyMs;
  assert.equal(later.recovery.settleBySilence(later.now), false);
});

test("Recovery is as patient with one silence as with any other's who was given up asking, unless another of its framing owes", () => {
  for (const [services, patience] of [
    [["bank", "fiscal"], 1],
    [["bank", "qr"], 10],
  ] as const) {
    const proof = new Proof(services).prove();
    for (const service of services) proof.recovery.replied(service);
    for (const service of services) proof.fail(service);
    for (let text = proof.ask(); text !== undefined; text = proof.askAfter(probeIntervalMs)) {
      if (serviceAsked(text) === "fiscal") proof.answer("fiscal");
      else proof.hear("length", odd);
    }
    const heardMs = proof.now - probeIntervalMs;
    proof.now = heardMs + patience * lateReplyMs - 1;
    assert.equal(proof.recovery.settleBySilence(proof.now), false);
    proof.now++;
    assert.equal(proof.recovery.settleBySilence(proof.now), true);
    assert.equal(proof.clean, true);
  }
});

test("Recovery gives up on who is proven after ten times as many, or as soon as it would ask only once in lateReplyMs", () => {
  const failed = () => {
    const proof = new Proof(["bank"]).prove();
    proof.recovery.replied("bank");
    return proof.fail("bank");
  };
  const erring = answeredSo(failed(), '{"status":"error"}', 30);
  assert.equal(erring.askAfter(probeIntervalMs), undefined);
  const odder = answeredSo(failed(), odd, leftOver - 3);
  assert.equal(odder.askAfter(probeIntervalMs), undefined);
  assert.equal(odder.askAfter(lateReplyMs), undefined);
  assert.equal(odder.recovery.settleBySilence(odder.now), true);
});

test("Recovery asks again who was given up, where the line isn't silent all the same, and is proven by an answer", () => {
  const proof = answeredSo(new Proof(["bank"]), odd, 3);
  const askedMs = proof.now;
  for (; proof.now < askedMs + 2 * lateReplyMs; proof.now += 10_000) {
    proof.hear("length", odd);
    assert.equal(proof.ask(), undefined);
    assert.equal(proof.recovery.dueMs(false), askedMs + 2 * lateReplyMs);
  }
  for (let answers = 0; answers <= leftOver; answers++) proof.exchange("bank");
  assert.equal(proof.recovery.owes, false);
});

test("Recovery.takeAmbiguous() is true of a success where a service with left-over answers answers oddly, until one in shape", () => {
  const may = (proof: Proof) => proof.succeeds("bank");
  const proof = withOneTooMany();
  assert.equal(may(proof), false);
  for (let time = 0; time < 2; time++) proof.hear("length", odd);
  assert.equal(may(proof), true);
  assert.equal(proof.recovery.state.accounts[0]?.isOdd, true);
  assert.deepEqual(proof.recovery.idleProbed, [], "it isn't asked while the line is idle");
  proof.answer("bank");
  assert.equal(may(proof), false);
  assert.deepEqual(
    proof.recovery.idleProbed.map(({ service }) => service),
    ["bank"],
  );
});

test("Recovery.state has nothing of odd answers where there were none, and forgets them where it is given a state without", () => {
  const proof = answeredSo(new Proof(["bank"]), '{"status":"error"}', 2);
  const old = JSON.parse(JSON.stringify(proof.recovery.state));
  assert.doesNotMatch(JSON.stringify(old), /odd/i);
  proof.hear("length", odd);
  proof.hear("length", odd);
  assert.match(JSON.stringify(proof.recovery.state), /"odd":2,.*"isOdd":true/);
  proof.recovery.state = old;
  assert.deepEqual(JSON.parse(JSON.stringify(proof.recovery.state)), old);
});

test("Recovery.idleProbed has a service that was silent from its first reply on, until it leaves a question unanswered or answers wrongly", () => {
  const asked = ({ recovery }: Proof) => recovery.idleProbed.map(({ service }) => service);
  const replied = () => {
    const proof = new Proof(["bank"]);
    proof.now += lateReplyMs;
    assert.ok(proof.recovery.settleBySilence(proof.now));
    assert.deepEqual(asked(proof), []);
    proof.recovery.replied("bank");
    assert.deepEqual([asked(proof), proof.recovery.isProven("bank")], [["bank"], false]);
    return proof;
  };
  const silent = replied().fail("bank", "probe");
  assert.deepEqual(asked(silent), []);
  silent.now += lateReplyMs;
  assert.ok(silent.recovery.settleBySilence(silent.now));
  silent.recovery.replied("bank");
  assert.deepEqual(asked(silent), [], "it was asked once");
  const wrong = replied();
  wrong.recovery.repliedIdle("bank", { status: "error" }, wrong.now);
  assert.deepEqual(asked(wrong), []);
  assert.equal(wrong.recovery.state.accounts[0]?.answersProbes, true);
  const proven = replied();
  proven.recovery.repliedIdle("bank", JSON.parse(answers.bank[1]), proven.now);
  assert.deepEqual([asked(proven), proven.recovery.isProven("bank")], [["bank"], true]);
  proven.recovery.repliedIdle("bank", { status: "error" }, proven.now);
  assert.deepEqual(asked(proven), ["bank"], "an error of one that is proven may pass");
});

test("Recovery.isSilentAlone() of who is silent beside others, until it is heard, or another one is silent or back after a silence", () => {
  const asked = ({ recovery }: Proof) => {
    const listed = recovery.idleProbed.map(({ service }) => service);
    return listed.filter((service) => !recovery.isSilentAlone(service)).sort();
  };
  const silent = (proof: Proof, service: ContractName) => {
    proof.fail(service).now += 10 * lateReplyMs;
    assert.ok(proof.recovery.settleBySilence(proof.now));
    return proof;
  };
  const proof = silent(new Proof(["fiscal", "bank"]).prove(), "bank");
  assert.deepEqual(asked(proof), ["bank", "fiscal"], "the other one replied before that, and may be off as well");
  proof.recovery.replied("fiscal");
  assert.deepEqual(asked(proof), ["fiscal"]);
  proof.recovery.replied("bank");
  assert.deepEqual(asked(proof), ["bank", "fiscal"]);
  silent(proof, "bank").recovery.replied("fiscal");
  assert.deepEqual(asked(proof), ["fiscal"]);
  silent(proof, "fiscal");
  assert.deepEqual(asked(proof), ["bank", "fiscal"], "all are silent");
  proof.recovery.repliedIdle("fiscal", JSON.parse(answers.fiscal[1]), proof.now);
  assert.deepEqual(asked(proof), ["bank", "fiscal"], "the terminal may be on again");
  proof.recovery.repliedIdle("fiscal", JSON.parse(answers.fiscal[1]), proof.now);
  assert.deepEqual(asked(proof), ["fiscal"]);
  assert.deepEqual(asked(silent(new Proof(["bank"]).prove(), "bank")), ["bank"], "it is alone");
  const wrong = answeredSo(new Proof(["fiscal", "bank"]).prove().fail("bank"), '{"status":"error"}', 1);
  wrong.now += 11 * lateReplyMs;
  assert.ok(wrong.recovery.settleBySilence(wrong.now));
  assert.deepEqual(asked(wrong), ["bank", "fiscal"], "it answers, if wrongly");
});

test("Recovery asks services that only posline has asked no more, once they answer, until a silence settles both", () => {
  const proof = new Proof(["bank", "qr"]);
  const given = { ...knowsNothing, isProven: true, isGivenUp: true, assumed: 80 };
  proof.recovery.inherit([
    { ...given, service: "bank" },
    { ...given, service: "qr" },
  ]);
  proof.recovery.begin(proof.now);
  // The quicker one first: its next question would come right before the silence is long enough.
  assert.equal(proof.recovery.probeDue(proof.now)?.lineService.service, "bank");
  proof.now += 20;
  proof.answer("bank");
  assert.equal(proof.recovery.probeDue(proof.now)?.lineService.service, "qr");
  proof.now += 60;
  proof.answer("qr");
  const dueMs = proof.recovery.dueMs(true);
  assert.equal(dueMs, proof.now + lateReplyMs);
  proof.now = dueMs;
  assert.ok(proof.recovery.settleBySilence(proof.now));
  assert.equal(proof.recovery.owes, false);
});

test("Recovery asks a service that only posline has asked again after three silences, where its line is never silent", () => {
  const proof = new Proof(["bank"]);
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", isProven: true, isGivenUp: true, assumed: 80 }]);
  proof.recovery.begin(proof.now);
  proof.exchange("bank");
  const answeredMs = proof.now;
  proof.humUntilAsked();
  assert.equal(proof.now, answeredMs + 3 * lateReplyMs);
});

test("Recovery hands on no more than was asked, after a silence settled it", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank");
  let asked = 0;
  while (!proof.recovery.settleBySilence(proof.now)) {
    proof.now = proof.recovery.dueMs(true);
    if (proof.ask() !== undefined) asked++;
  }
  const [bank] = proof.recovery.known;
  assert.ok(asked > 5, `${asked} were asked`);
  assert.equal((bank?.stillOut ?? 0) + (bank?.assumed ?? 0), asked);
});

test("Recovery.outlastStale() ends after a silence, or three on a line that is never silent, and then an error is a call's again", () => {
  const silentFor = (humsMs: number) => {
    const proof = new Proof(["bank", "qr"]).prove();
    proof.recovery.replied("bank");
    proof.recovery.owe("bank");
    proof.recovery.begin(proof.now);
    for (let lost = 0; lost < 3; lost++) proof.askAfter(10_000);
    proof.answer("bank");
    assert.ok(!proof.recovery.owes);
    assert.ok(proof.errs("bank"));
    const beganMs = proof.now;
    proof.recovery.outlastStale(proof.now);
    while (!proof.clean) {
      if (proof.now < beganMs + humsMs) proof.recovery.heardBytes(proof.now);
      proof.now += 1_000;
    }
    const tookMs = proof.now - beganMs;
    proof.recovery.heardBytes(proof.now);
    assert.ok(proof.errs("bank"), "it hasn't ended yet");
    proof.recovery.end(proof.now);
    assert.equal(proof.errs("bank"), false);
    return tookMs;
  };
  assert.deepEqual([silentFor(0), silentFor(20_000), silentFor(200_000)], [30_000, 49_000, 90_000]);
});

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

test("Recovery believes one silence of who was given up, until a call of it is lost, or it answers", () => {
  const proof = new Proof(["bank"]).prove();
  const silentMs = (owe: () => void) => {
    owe();
    proof.recovery.begin(proof.now);
    const { now } = proof;
    proof.settle();
    return proof.now - now;
  };
  const lost = () => proof.recovery.owe("bank");
  const unanswered = () => proof.recovery.owe("bank", "probe");
  assert.deepEqual([silentMs(unanswered), silentMs(unanswered)], [10 * lateReplyMs, lateReplyMs]);
  assert.equal(proof.recovery.known[0]?.isGivenUp, true);
  assert.deepEqual([silentMs(lost), silentMs(unanswered)], [10 * lateReplyMs, lateReplyMs]);
  proof.recovery.replied("bank");
  assert.equal(silentMs(unanswered), 10 * lateReplyMs);
  silentMs(unanswered);
  proof.recovery.owe("bank", "probe");
  assert.equal(proof.recovery.known[0]?.isGivenUp, true, "only posline has asked it since");
  proof.recovery.owe("bank");
  assert.equal(proof.recovery.known[0]?.isGivenUp, false, "a customer's card may be waited for");
});

test("Recovery.awaitPause() is clean after a pause, and counts what was asked before it, where anybody owes", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.recovery.awaitPause(proof.now);
  assert.deepEqual([proof.clean, proof.recovery.dueMs(true)], [false, proof.now + drainMs]);
  proof.now += drainMs;
  assert.equal(proof.clean, true);
  proof.fail("bank").ask();
  proof.recovery.awaitPause(proof.now);
  assert.deepEqual([proof.recovery.state.accounts[0]?.staleKnown, proof.recovery.state.accounts[0]?.sent], [1, 0]);
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

test("Recovery.replied() of such a call counts as any other's reply where none may come", () => {
  const proof = new Proof(["bank"]);
  proof.settle();
  assert.equal(proof.recovery.isSilent("bank"), true);
  proof.recovery.replied("bank", "probe");
  assert.equal(proof.recovery.isSilent("bank"), false);
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

test("Recovery.isSilent() and isProven() are false of a service that isn't on the line, and its replies change nothing", () => {
  const proof = new Proof(["bank"]).prove();
  const { state } = proof.recovery;
  assert.deepEqual(
    [proof.recovery.isSilent("gone"), proof.recovery.isProven("gone"), proof.recovery.isProven("bank")],
    [false, false, true],
  );
  proof.recovery.replied("gone");
  proof.recovery.repliedIdle("gone", {}, proof.now);
  assert.deepEqual(proof.recovery.state, state);
});

test("Recovery asks no service before probeIntervalMs, or the answer, after it asked another", () => {
  const proof = new Proof(["bank", "qr"]);
  assert.match(proof.ask() ?? "", /supported_operations/);
  assert.equal(proof.askAfter(probeIntervalMs - 1), undefined);
  assert.match(proof.askAfter(1) ?? "", /check_connection/);
});

test("Recovery.wrote() counts the time of late answers from the last byte of the question on", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.replied("bank");
  proof.fail("bank").ask();
  proof.now += 5_000;
  proof.recovery.wrote(proof.now);
  assert.equal(proof.recovery.probedMs, proof.now);
  const { silentSinceMs } = proof.recovery.state;
  proof.now += 1_000;
  proof.exchange("bank");
  proof.exchange("bank");
  proof.recovery.wrote(proof.now);
  assert.ok(proof.recovery.state.silentSinceMs > silentSinceMs, "of a call: silence is counted from there");
  assert.equal(proof.recovery.probedMs, proof.now);
});

test("Recovery stops no other service's idle questions with those of one that isn't asked any", () => {
  const proof = new Proof(["bank", "qr", "fiscal"]).prove();
  const idle = () => proof.recovery.idleProbed.map(({ service }) => service).sort();
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", isOdd: true }]);
  for (let odd = 0; odd < 4; odd++) {
    proof.fail("bank").ask();
    proof.hear("length", '{"status":"success"}');
    proof.ask();
    proof.hear("length", '{"status":"success"}');
  }
  assert.deepEqual(idle(), ["fiscal", "qr"]);
});

test("Recovery.heardStale() of a service that answers oddly begins no idle questions to it", () => {
  const proof = new Proof(["bank"]);
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", isOdd: true, answeredProbes: true, stillOut: 2 }]);
  proof.recovery.heardStale("length", JSON.parse(probeReplies.bankSupported), proof.now);
  assert.deepEqual(proof.recovery.idleProbed, []);
  assert.equal(proof.recovery.isProven("bank"), true);
});

test("Recovery.repliedIdle() learns from the answer whether the second question can be asked", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.repliedIdle("bank", JSON.parse(bothReplies.bankSupported), proof.now);
  assert.equal(proof.recovery.known[0]?.offersSecond, true);
  proof.recovery.repliedIdle("bank", JSON.parse(probeReplies.bankSupported), proof.now);
  assert.equal(proof.recovery.known[0]?.offersSecond, false);
});

test("Recovery.replied() makes it patient again with one that has ever answered wrongly", () => {
  const proof = new Proof(["bank"]);
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", answeredProbes: true }]);
  assert.equal(proof.recovery.known[0]?.answersProbes, false);
  proof.recovery.replied("bank");
  assert.equal(proof.recovery.known[0]?.answersProbes, true);
});

test("Recovery asks again who was to settle by silence, after twice that silence, where the line is never silent", () => {
  const proof = new Proof(["bank"]);
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", isProven: true, assumed: 2_000 }]);
  proof.recovery.begin(proof.now);
  const account = () => proof.recovery.state.accounts[0];
  while (account()?.awaitsSilence !== true) {
    proof.now = Math.max(proof.now + 500, proof.recovery.dueMs(false));
    if (proof.ask() !== undefined) proof.answer("bank");
  }
  const answeredMs = proof.now;
  proof.humUntilAsked();
  assert.equal(proof.now, answeredMs + 2 * 10 * lateReplyMs);
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

test("Recovery takes a service whose probe was answered for heard, though a silence had settled it before", () => {
  const proof = new Proof(["bank"]).prove().fail("bank");
  proof.settle();
  assert.equal(proof.recovery.isSilent("bank"), true);
  proof.fail("bank");
  for (let answers = 0; proof.recovery.owes && answers < 50; answers++) proof.exchange("bank");
  assert.deepEqual([proof.recovery.owes, proof.recovery.isSilent("bank")], [false, false]);
});

test("Recovery.settleBySilence() keeps in mind that a service answers wrongly, where it did so in this recovery", () => {
  const answersProbes = (errors: number) => {
    const proof = new Proof(["bank"]);
    proof.recovery.inherit([{ ...knowsNothing, service: "bank", isProven: true, answeredProbes: true }]);
    proof.recovery.replied("bank");
    proof.fail("bank");
    for (let n = 0; n < errors; n++) {
      proof.now = Math.max(proof.now, proof.recovery.dueMs(false));
      proof.ask();
      proof.hear("length", '{"status":"error"}');
    }
    proof.settle();
    return proof.recovery.known[0]?.answersProbes;
  };
  assert.deepEqual([answersProbes(0), answersProbes(2)], [false, true]);
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

test("Recovery believes a silence of lateReplyMs where only posline asked, and not where a call was sent, whatever its reply looks like", () => {
  for (const [shapedAs, silenceMs] of [
    ["probe", lateReplyMs],
    ["second", 10 * lateReplyMs],
    [undefined, 10 * lateReplyMs],
  ] as const) {
    const proof = new Proof(["fiscal"]).prove();
    proof.fail("fiscal", "probe").settle();
    const { now } = proof.fail("fiscal", shapedAs);
    assert.equal(proof.settle().now - now, silenceMs, shapedAs);
  }
});

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

test("Recovery.repliedIdle() leaves nothing older once idle questions were answered for ten times lateReplyMs and nothing came unasked", () => {
  const supported = JSON.parse(probeReplies.bankSupported);
  const proof = hung(["bank"]);
  const possible = () => {
    const { staleAssumed = 0, staleKnown = 0 } = proof.recovery.state.accounts[0] ?? {};
    return staleAssumed + staleKnown;
  };
  const idleFor = (ms: number) => {
    proof.now += ms;
    proof.recovery.repliedIdle("bank", supported, proof.now);
  };
  const before = possible();
  assert.ok(before > 1);
  idleFor(60_000);
  idleFor(10 * lateReplyMs - 1);
  assert.equal(possible(), before);
  assert.equal(proof.recovery.heardStale("length", supported, proof.now), "out of step", "one comes: that was too early");
  idleFor(60_000);
  idleFor(10 * lateReplyMs);
  assert.equal(possible(), 0);
  assert.equal(proof.recovery.heardStale("length", supported, proof.now), "out of step", "it comes all the same");
  assert.ok(possible() > 0, "so do the others");
});
