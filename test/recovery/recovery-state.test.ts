import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContractName } from "../../src/core/call.ts";
import { staleProbesMax as leftOver } from "../../src/recovery/limits.ts";
import type { KnownAnswers } from "../../src/recovery/probe-account.ts";
import type { Question } from "../../src/recovery/questions.ts";
import type { Recovery } from "../../src/recovery/recovery.ts";
import { probeReplies } from "../support/terminal.ts";
import { asksOn, bothAsked, knowsNothing, lateReplyMs, Proof, probeIntervalMs, serviceAsked } from "./proof.ts";

/**
 * Tests src/recovery/recovery.ts.
 *
 * What a recovery hands on: to a replay, all that it knows; to the line that follows on its device, how the services answer.
 */

test("Recovery.state leaves out what is as usual, and sets it where it is given a state without", () => {
  const begun = new Proof(["bank"]).recovery.state;
  const unusual = (recovery: Recovery) => {
    const { drawn, drainMs, drainUntilMs } = recovery.state;
    return [drawn, drainMs, drainUntilMs];
  };
  for (const name of ["drawn", "drainMs", "drainUntilMs"]) assert.equal(name in begun, false, name);
  const { now, recovery: used } = new Proof(["bank"]);
  used.seed(5);
  used.outlastStale(now);
  assert.deepEqual(unusual(used), [5, lateReplyMs, now + 3 * lateReplyMs]);
  const { recovery: other } = new Proof(["bank"]);
  other.state = used.state;
  assert.deepEqual(unusual(other), unusual(used));
  other.state = begun;
  assert.deepEqual(other.state, begun);
});

test("Recovery goes on from the state of a line with other services by what it has of them", () => {
  const { state } = new Proof(["bank", "qr", "fiscal"]).recovery;
  const { recovery } = new Proof(["bank"]);
  recovery.state = { ...state, proven: ["qr", "bank"] };
  assert.deepEqual(
    [recovery.owing, recovery.idleProbed.map(({ service }) => service), recovery.state.accounts.length],
    [["bank"], ["bank"], 1],
  );
});

test("Recovery draws its questions by xorshift, the second one by numbers from 2^31 on, and no seed makes it stand still", () => {
  const recovery = bothAsked(700, 0);
  const drawn = [recovery.state.drawn];
  const asked: Question[] = [];
  // Whether it answers is asked first, without a draw.
  for (let draws = 0; draws < 6; draws++) {
    asked.push(...asksOn(recovery, [], 1));
    drawn.push(recovery.state.drawn);
  }
  // The first numbers of xorshift32 with 13, 17 and 5, from 1.
  assert.deepEqual(drawn, [undefined, undefined, 270_369, 67_634_689, 2_647_435_461, 307_599_695, 2_398_689_233]);
  assert.deepEqual(asked, ["probe", "probe", "probe", "second", "probe", "second"]);
  assert.equal(bothAsked(700, 2 ** 32 - 1).state.drawn, 2 ** 32 - 1);
});

test("Recovery goes on from another's state with the same probes until the same end, at each step of a life", () => {
  const services = ["fiscal", "bank", "qr"] as const;
  const proof = new Proof(services);
  const twin = new Proof(services);
  const steps = [
    () => proof.ask(),
    () => proof.askAfter(probeIntervalMs),
    () => proof.hear("length", '{"status":"error"}'),
    () => proof.answer("fiscal"),
    () => {
      for (let text = proof.ask(); text !== undefined; text = proof.ask()) proof.answer(serviceAsked(text));
    },
    // Fiscal's first probe had no answer, so there may be more to come than a process may leave.
    () => {
      proof.now += lateReplyMs;
      assert.ok(proof.recovery.settleBySilence(proof.now) && proof.clean);
    },
    () => proof.recovery.heardStale("length", JSON.parse(probeReplies.connection), proof.now),
    () => proof.fail("qr", "probe"),
    () => proof.askAfter(probeIntervalMs),
    () => proof.askAfter(probeIntervalMs),
    () => proof.answer("qr"),
    () => proof.fail("bank"),
    () => proof.recovery.suspectFraming("stx"),
  ];
  const untilClean = (each: Proof) => {
    const asked: string[] = [];
    for (let text = each.ask(); text !== undefined; text = each.ask()) {
      asked.push(serviceAsked(text));
      each.answer(serviceAsked(text));
    }
    return [asked, each.recovery.dueMs(true), each.recovery.state];
  };
  for (const step of steps) {
    step();
    const { state } = proof.recovery;
    const other = new Proof(services);
    for (const each of [twin, other]) {
      each.now = proof.now;
      each.recovery.state = JSON.parse(JSON.stringify(state));
      assert.deepEqual(each.recovery.state, state);
    }
    const origin = new Proof(services);
    origin.now = proof.now;
    origin.recovery.state = state;
    assert.deepEqual(untilClean(other), untilClean(origin));
  }
  const begun = new Proof(services).recovery.state;
  twin.recovery.state = begun;
  assert.deepEqual(twin.recovery.state, begun);
});

test("Recovery hands on that a service answers both questions, and that older answers contradicted it, where it can be asked", () => {
  const recovery = bothAsked(leftOver);
  asksOn(recovery, Array<Question>(leftOver + 5).fill("probe"), leftOver + 1);
  const [known] = recovery.known;
  assert.ok(known !== undefined);
  assert.deepEqual([known.isBehind, known.offersSecond, known.answersSecond], [true, true, true]);
  const next = new Proof(["bank"]);
  next.recovery.inherit([known]);
  const { questions } = next.recovery.state.accounts[0] ?? {};
  assert.deepEqual([questions?.isBehind, questions?.offersSecond, questions?.answersSecond], [true, true, true]);
  const unsigned = new Proof(["fiscal"], false);
  unsigned.recovery.inherit([{ ...known, service: "fiscal" }]);
  assert.equal(unsigned.recovery.state.accounts[0]?.questions?.offersSecond, false);
});

test("Recovery.inherit() makes it as patient as the line before was, with whom it can ask, and once with whom it can't any more", () => {
  const bank = { ...knowsNothing, service: "bank", isProven: true };
  const silentFor = (proof: Proof, service: ContractName) => {
    const { now } = proof;
    proof.fail(service);
    while (!proof.recovery.settleBySilence(proof.now) && proof.now < now + 1e6) proof.now += 1_000;
    return proof.now - now;
  };
  const asked = new Proof(["bank"]);
  asked.recovery.inherit([bank, { ...bank, service: "gone" }]);
  assert.deepEqual(
    [asked.recovery.known, silentFor(asked, "bank"), silentFor(asked, "bank")],
    [[{ ...bank, assumed: leftOver, owesCall: false, secondsOut: 0 }], 300_000, 300_000],
  );
  const unsigned = new Proof(["fiscal"], false);
  unsigned.recovery.inherit([{ ...bank, service: "fiscal" }]);
  assert.deepEqual([silentFor(unsigned, "fiscal"), silentFor(unsigned, "fiscal")], [300_000, lateReplyMs]);
  const wrong = new Proof(["bank"]);
  wrong.recovery.inherit([{ ...bank, isProven: false, answersProbes: true }]);
  assert.deepEqual([silentFor(wrong, "bank"), silentFor(wrong, "bank")], [300_000, lateReplyMs]);
});

test("Recovery.inherit() counts what may still come to the line before, and knows who answers with something else, and who was given up", () => {
  const bank = { ...knowsNothing, service: "bank", isProven: true };
  const left = new Proof(["bank"]);
  left.recovery.inherit([{ ...bank, stillOut: 3 }]);
  left.recovery.begin(left.now);
  let answers = 0;
  for (; !left.recovery.answered.includes("bank") && left.recovery.owes; answers++) left.exchange("bank");
  assert.equal(answers, leftOver + 3 + 1, "each may be one of those");
  const odd = new Proof(["bank"]);
  odd.recovery.inherit([{ ...bank, isOdd: true, answeredProbes: true }]);
  assert.deepEqual(
    [odd.recovery.idleProbed, odd.recovery.known[0]?.isOdd],
    [[], true],
    "it isn't asked while the line is idle",
  );
  odd.ask();
  const askedMs = odd.now;
  odd.now += 10 * lateReplyMs - 1;
  assert.equal(odd.recovery.settleBySilence(odd.now), false);
  odd.ask();
  assert.ok(odd.now > askedMs);
  odd.now += lateReplyMs - 1;
  assert.equal(odd.recovery.settleBySilence(odd.now), false, "its answer to the last probe would pass for a call's");
  const silentMs = (known: readonly KnownAnswers[]) => {
    const proof = new Proof(["bank"]);
    const { now } = proof;
    proof.recovery.inherit(known);
    proof.settle();
    return proof.now - now;
  };
  const givenUp = { ...bank, isGivenUp: true };
  assert.deepEqual([silentMs([givenUp]), silentMs([givenUp, bank])], [lateReplyMs, 10 * lateReplyMs]);
});

/** The recovery of this service, to which the line before handed this on. */
function inheriting(service: ContractName, known: Partial<KnownAnswers>, isSigned = true): Recovery {
  const { recovery } = new Proof([service], isSigned);
  recovery.inherit([{ ...knowsNothing, service, ...known }]);
  return recovery;
}

test("Recovery.known says that a service was proven to the line before, where this one can't ask it", () => {
  const proven = inheriting("fiscal", { isProven: true }, false);
  const [account] = proven.state.accounts;
  assert.deepEqual([proven.known[0]?.isProven, account?.isProven, account?.answersProbes], [true, false, true]);
  const unknown = inheriting("fiscal", {}, false);
  assert.deepEqual(
    [unknown.known[0]?.isProven, unknown.known[0]?.answersProbes, unknown.state.accounts[0]?.staleAssumed],
    [false, false, 0],
  );
  assert.equal(inheriting("bank", { isProven: true }).known[0]?.isProven, true);
});

test("Recovery.inherit() asks while the line is idle who is proven and answers as it should", () => {
  const idleProbed = (known: Partial<KnownAnswers>) => inheriting("bank", known).idleProbed.map(({ service }) => service);
  assert.deepEqual(idleProbed({ isProven: true }), ["bank"]);
  assert.deepEqual(idleProbed({ isProven: true, isOdd: true }), []);
  assert.deepEqual(idleProbed({}), []);
});

test("Recovery.inherit() adds what was assumed by the line before, and no less than at any start", () => {
  const assumed = (known: Partial<KnownAnswers>) => inheriting("bank", known).state.accounts[0]?.staleAssumed;
  assert.deepEqual([assumed({}), assumed({ assumed: 3 }), assumed({ assumed: 40 })], [leftOver, leftOver, 40]);
});

test("Recovery hands on that a call had no answer, and how often one that never answered was asked in vain", () => {
  const proof = new Proof(["bank"]);
  for (let time = 0; time < 3; time++) {
    while (!proof.recovery.settleBySilence(proof.now)) {
      proof.now = proof.recovery.dueMs(true);
      proof.ask();
    }
    proof.fail("bank");
  }
  const [known] = proof.recovery.known;
  assert.ok(known !== undefined);
  // Some are known of still: those of the last lateReplyMs.
  const asked = leftOver + 7 + 2 * 6;
  assert.deepEqual([known.owesCall, (known.assumed ?? 0) + known.stillOut >= asked], [true, true]);
  const next = new Proof(["bank"]);
  next.recovery.inherit([known]);
  const { owesCall, staleAssumed = 0, staleKnown = 0 } = next.recovery.state.accounts[0] ?? {};
  assert.deepEqual([owesCall, staleAssumed + staleKnown >= asked], [true, true]);
});
