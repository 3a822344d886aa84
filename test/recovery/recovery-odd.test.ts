import assert from "node:assert/strict";
import { test } from "node:test";
import { staleProbesMax as leftOver } from "../../src/recovery/limits.ts";
import { probeReplies } from "../support/terminal.ts";
import {
  answeredSo,
  answers,
  knowsNothing,
  lateReplyMs,
  odd,
  Proof,
  probeIntervalMs,
  serviceAsked,
  withOneTooMany,
} from "./proof.ts";

/** Tests src/recovery/recovery.ts. About services that answer with something else. */

test("Recovery.heardStale() says that answers which silence had given up come after all, so that as many are expected again", () => {
  const supported = JSON.parse(probeReplies.bankSupported);
  const proof = new Proof(["bank"]);
  for (let time = 0; time < 3; time++) assert.ok(proof.askAfter(proof.recovery.dueMs(false) - proof.now));
  proof.now += lateReplyMs;
  assert.ok(proof.recovery.settleBySilence(proof.now));
  assert.equal(proof.recovery.heardStale("length", supported, proof.now), "out of step");
  assert.equal(proof.recovery.state.accounts[0]?.staleAssumed, leftOver + 3 - 1);
});

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

test("Recovery expects nothing any more of whom silence settled, at whatever fraction of a millisecond that began", () => {
  const stale = new Set<number | undefined>();
  for (let number = 0; number < 100; number++) {
    const proof = new Proof(["bank"]);
    // Behind 2 to the 20th numbers are half as fine: lateReplyMs on and back again isn't the same.
    proof.now = 1_042_000 + number / 7_777;
    answeredSo(proof, odd, 3);
    proof.now = proof.recovery.dueMs(true);
    assert.ok(proof.recovery.settleBySilence(proof.now));
    stale.add(proof.recovery.state.accounts[0]?.staleKnown);
  }
  assert.deepEqual([...stale], [0]);
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

test("Recovery.heardStale() of a service that answers oddly begins no idle questions to it", () => {
  const proof = new Proof(["bank"]);
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", isOdd: true, answeredProbes: true, stillOut: 2 }]);
  proof.recovery.heardStale("length", JSON.parse(probeReplies.bankSupported), proof.now);
  assert.deepEqual(proof.recovery.idleProbed, []);
  assert.equal(proof.recovery.isProven("bank"), true);
});

test("Recovery.replied() makes it patient again with one that has ever answered wrongly", () => {
  const proof = new Proof(["bank"]);
  proof.recovery.inherit([{ ...knowsNothing, service: "bank", answeredProbes: true }]);
  assert.equal(proof.recovery.known[0]?.answersProbes, false);
  proof.recovery.replied("bank");
  assert.equal(proof.recovery.known[0]?.answersProbes, true);
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
