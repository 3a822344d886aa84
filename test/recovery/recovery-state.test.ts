import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { lineService } from "../../src/line/caller.ts";
import { staleProbesMax } from "../../src/recovery/limits.ts";
import type { KnownAnswers } from "../../src/recovery/probe-account.ts";
import { Recovery } from "../../src/recovery/recovery.ts";
import { bothReplies } from "../support/terminal.ts";

/**
 * Tests src/recovery/recovery.ts.
 *
 * What a recovery hands on: to a replay, all that it knows; to the line that follows on its device, how the services answer.
 */

const lateReplyMs = 30_000;

function recoveryOf(services: readonly ContractName[], quiet = false): Recovery {
  const rules = { crc16: "arc", quiet, merchantId: undefined } as const;
  const recovery = new Recovery(
    services.map((service) => lineService(contracts[service], rules)),
    { lateReplyMs, probeIntervalMs: 2_000 },
  );
  recovery.begin(1_000);
  return recovery;
}

const accountOf = (recovery: Recovery) => recovery.state.accounts[0];

const bankKnown: KnownAnswers = {
  ...{ service: "bank", isProven: false, isOdd: false, answersProbes: false, answeredProbes: false, isGivenUp: false },
  ...{ isBehind: false, offersSecond: false, answersSecond: false, stillOut: 0 },
};

test("Recovery.state leaves out what is as usual, and sets it where it is given a state without", () => {
  const begun = recoveryOf(["bank"]).state;
  const unusual = (recovery: Recovery) => {
    const { drawn, drainMs, drainUntilMs } = recovery.state;
    return [drawn, drainMs, drainUntilMs];
  };
  for (const name of ["drawn", "drainMs", "drainUntilMs"]) assert.equal(name in begun, false, name);
  const used = recoveryOf(["bank"]);
  used.seed(5);
  used.outlastStale(1_000);
  assert.deepEqual(unusual(used), [5, lateReplyMs, 1_000 + 3 * lateReplyMs]);
  const other = recoveryOf(["bank"]);
  other.state = used.state;
  assert.deepEqual(unusual(other), unusual(used));
  other.state = begun;
  assert.deepEqual(other.state, begun);
});

test("Recovery goes on from the state of a line with other services by what it has of them", () => {
  const { state } = recoveryOf(["bank", "qr", "fiscal"]);
  const bank = recoveryOf(["bank"]);
  bank.state = { ...state, proven: ["qr", "bank"] };
  assert.deepEqual(
    [bank.owing, bank.idleProbed.map(({ service }) => service), bank.state.accounts.length],
    [["bank"], ["bank"], 1],
  );
});

test("Recovery draws its questions by xorshift, the second one by numbers from 2^31 on, and no seed makes it stand still", () => {
  const drawnFrom = (seed: number, times = 5) => {
    const recovery = recoveryOf(["bank"]);
    recovery.seed(seed);
    recovery.inherit([{ ...bankKnown, isProven: true, offersSecond: true, answersSecond: true, assumed: 700 }]);
    recovery.begin(1_000);
    const numbers = [recovery.state.drawn];
    let seconds = 0;
    for (let now = 1_000, time = 0; time < times; time++) {
      now = Math.max(now, recovery.dueMs(false));
      const question = recovery.probeDue(now)?.question;
      if (question === "second") seconds++;
      numbers.push(recovery.state.drawn);
      const reply = question === "second" ? bothReplies.terminals : bothReplies.bankSupported;
      recovery.heard("length", JSON.parse(reply), now);
      if (!recovery.owes) break;
    }
    return { numbers, seconds };
  };
  // The first numbers of xorshift32 with 13, 17 and 5, from 1.
  assert.deepEqual(drawnFrom(0).numbers, [undefined, 270_369, 67_634_689, 2_647_435_461, 307_599_695, 2_398_689_233]);
  assert.equal(drawnFrom(0).seconds, 2);
  assert.equal(drawnFrom(2 ** 32 - 1).numbers[0], 2 ** 32 - 1);
});

test("Recovery.known says that a service was proven to the line before, where this one can't ask it", () => {
  const quiet = recoveryOf(["bank"], true);
  quiet.inherit([{ ...bankKnown, isProven: true }]);
  assert.deepEqual(
    [quiet.known[0]?.isProven, accountOf(quiet)?.isProven, accountOf(quiet)?.answersProbes],
    [true, false, true],
  );
  const unknown = recoveryOf(["bank"], true);
  unknown.inherit([bankKnown]);
  assert.deepEqual(
    [unknown.known[0]?.isProven, unknown.known[0]?.answersProbes, accountOf(unknown)?.staleAssumed],
    [false, false, 0],
  );
  const proven = recoveryOf(["bank"]);
  proven.inherit([{ ...bankKnown, isProven: true }]);
  assert.equal(proven.known[0]?.isProven, true);
});

test("Recovery.inherit() asks while the line is idle who is proven and answers as it should", () => {
  const idleProbed = (known: Partial<KnownAnswers>) => {
    const recovery = recoveryOf(["bank", "qr"]);
    recovery.inherit([{ ...bankKnown, ...known }]);
    return recovery.idleProbed.map(({ service }) => service);
  };
  assert.deepEqual(idleProbed({ isProven: true }), ["bank"]);
  assert.deepEqual(idleProbed({ isProven: true, isOdd: true }), []);
  assert.deepEqual(idleProbed({}), []);
});

test("Recovery.inherit() adds what was assumed by the line before, and no less than at any start", () => {
  const assumed = (known: Partial<KnownAnswers>) => {
    const recovery = recoveryOf(["bank"]);
    recovery.inherit([{ ...bankKnown, ...known }]);
    return accountOf(recovery)?.staleAssumed;
  };
  assert.deepEqual([assumed({}), assumed({ assumed: 3 }), assumed({ assumed: 40 })], [staleProbesMax, staleProbesMax, 40]);
});
