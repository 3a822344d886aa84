import assert from "node:assert/strict";
import { test } from "node:test";
import { drainMs, staleProbesMax as leftOver } from "../../src/recovery/limits.ts";
import { probeReplies } from "../support/terminal.ts";
import { answeredSo, hung, knowsNothing, lateReplyMs, odd, Proof, probeIntervalMs, serviceAsked } from "./proof.ts";

test("Recovery starts with every service owing", () => {
  const proof = new Proof(["fiscal", "bank", "qr"]);
  assert.deepEqual(proof.recovery.owing, ["fiscal", "bank", "qr"]);
  assert.equal(proof.clean, false);
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

test("Recovery.suspectFraming() makes every service of the framing owe, unless one does already", () => {
  const proof = new Proof(["fiscal", "bank", "qr"]).prove();
  proof.recovery.suspectFraming("length");
  assert.deepEqual(proof.recovery.owing, ["bank", "qr"]);
  const other = new Proof(["bank", "qr"]).prove();
  other.fail("bank").recovery.suspectFraming("length");
  assert.deepEqual(other.recovery.owing, ["bank"]);
});

test("Recovery.isProbeAnswer() is true for a probe's answer, except to a call of that very route and service", () => {
  const { recovery } = new Proof(["bank", "qr"]);
  const answer = JSON.parse(probeReplies.bankSupported);
  assert.equal(recovery.isProbeAnswer("length", answer, { service: "bank", shapedAs: undefined }), true);
  assert.equal(recovery.isProbeAnswer("length", answer, { service: "qr", shapedAs: "probe" }), true);
  assert.equal(recovery.isProbeAnswer("length", answer, { service: "bank", shapedAs: "probe" }), false);
  assert.equal(recovery.isProbeAnswer("length", { status: "success" }, { service: "bank", shapedAs: undefined }), false);
});

test("Recovery.heard() says whose answer came before it was asked", () => {
  const { recovery, now } = new Proof(["bank"]);
  assert.deepEqual(recovery.heard("length", JSON.parse(probeReplies.bankSupported), now), { kind: "late", service: "bank" });
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

test("Recovery.owe() of a service that isn't on the line changes nothing", () => {
  const proof = new Proof(["bank"]).prove();
  proof.recovery.owe("qr");
  assert.equal(proof.clean, true);
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

test("Recovery.replied() of such a call counts as any other's reply where none may come", () => {
  const proof = new Proof(["bank"]);
  proof.settle();
  assert.equal(proof.recovery.isSilent("bank"), true);
  proof.recovery.replied("bank", "probe");
  assert.equal(proof.recovery.isSilent("bank"), false);
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
