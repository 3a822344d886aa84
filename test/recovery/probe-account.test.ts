import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { lineService } from "../../src/line/caller.ts";
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

test("ProbeAccount.expectNothingBefore() keeps a hundred at most, and nothing of one that answered or was never proven", () => {
  const night = accountOf({ isProven: true, staleAssumed: 90, sent: 30 });
  night.expectNothingBefore(1_000);
  assert.equal(night.staleAssumed, 100);
  const answered = accountOf({ isProven: true, staleAssumed: 17, sent: 18, answered: 18 });
  answered.expectNothingBefore(1_000);
  assert.equal(answered.stale, 0);
  const unproven = accountOf({ staleAssumed: 17, sent: 3 });
  unproven.expectNothingBefore(1_000);
  assert.equal(unproven.stale, 0);
});
