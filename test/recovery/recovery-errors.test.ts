import assert from "node:assert/strict";
import { test } from "node:test";
import { drainMs } from "../../src/recovery/limits.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { probeReplies } from "../support/terminal.ts";
import { hung, knowsNothing, lateReplyMs, Proof, probeIntervalMs, serviceAsked } from "./proof.ts";

/** Tests src/recovery/recovery.ts. About errors, and what they may be about. */

/** Two of a framing: bank answers what it is asked with errors, and silence has settled it; of qr some answers may come. */
function besideErring(): Proof {
  const proof = new Proof(["bank", "qr"]).prove();
  proof.recovery.replied("qr");
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", answeredProbes: true }]);
  proof.recovery.replied("bank");
  for (let time = 0; time < 3; time++) proof.recovery.owe("qr", "probe");
  return proof;
}

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
