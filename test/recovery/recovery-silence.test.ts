import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContractName } from "../../src/core/call.ts";
import { staleProbesMax as leftOver } from "../../src/recovery/limits.ts";
import { answeredSo, answers, knowsNothing, lateReplyMs, Proof, probeIntervalMs, serviceAsked } from "./proof.ts";

/** Tests src/recovery/recovery.ts. About silence. */

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

test("Recovery.dueMs() leaves silence out while something is half heard", () => {
  const proof = new Proof(["fiscal"], false);
  proof.ask();
  proof.now += lateReplyMs + 1;
  assert.ok(proof.recovery.dueMs(true) <= proof.now);
  proof.ask();
  assert.ok(proof.recovery.dueMs(false) > proof.now);
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

test("Recovery takes a service whose probe was answered for heard, though a silence had settled it before", () => {
  const proof = new Proof(["bank"]).prove().fail("bank");
  proof.settle();
  assert.equal(proof.recovery.isSilent("bank"), true);
  proof.fail("bank");
  for (let answers = 0; proof.recovery.owes && answers < 50; answers++) proof.exchange("bank");
  assert.deepEqual([proof.recovery.owes, proof.recovery.isSilent("bank")], [false, false]);
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
