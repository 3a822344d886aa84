import assert from "node:assert/strict";
import { test } from "node:test";
import {
  actionOf,
  nothingBegun,
  phases,
  type SettleState,
  stateAfterStop,
  stateAtResume,
  stateLeftToOthers,
  stateToAskAbout,
  stateWithoutEffect,
} from "../../src/settle/state.ts";
import { fresh } from "./judged.ts";

const inPhase = (phase: SettleState["phase"], more: Partial<SettleState> = {}): SettleState => ({ ...fresh, ...more, phase });

test("actionOf() sends what is ready, prints what is to be printed, and asks about all else", () => {
  assert.deepEqual(
    phases.map((phase) => `${phase} ${actionOf(inPhase(phase))}`),
    ["baseline ask", "ready start", "lost ask", "accepted ask", "refused ask", "printing print", "unsent ask"],
  );
});

test("stateAtResume() takes what was about to be sent for sent, and a copy for asked for", () => {
  assert.deepEqual(stateAtResume(inPhase("ready")), inPhase("lost", { doubt: true }));
  assert.deepEqual(
    stateAtResume(inPhase("printing", { unprinted: true })),
    inPhase("accepted", { unprinted: true, copied: true }),
  );
  for (const phase of phases.filter((each) => each !== "ready" && each !== "printing"))
    assert.deepEqual(stateAtResume(inPhase(phase)), inPhase(phase));
});

test("stateAtResume() counts denials anew: an answer that found the operation since may not have been stored", () => {
  for (const phase of phases) assert.equal(stateAtResume(inPhase(phase, { absents: 2 })).absents, 0);
});

test("stateLeftToOthers() may have been sent and printed since: it is neither any more", () => {
  const left = { isSentOnce: true, copied: true };
  for (const phase of ["baseline", "ready"] as const)
    assert.deepEqual(stateLeftToOthers(inPhase(phase)), inPhase("lost", { doubt: true, ...left }));
  for (const phase of phases.filter((each) => each !== "baseline" && each !== "ready"))
    assert.deepEqual(stateLeftToOthers(inPhase(phase)), inPhase(phase, left));
});

test("nothingBegun() holds only before the first start, and after none that leaves anything open", () => {
  assert.deepEqual(
    phases.filter((phase) => nothingBegun(inPhase(phase))),
    ["baseline", "ready"],
  );
  for (const open of [{ doubt: true }, { refusals: 1 }]) assert.equal(nothingBegun(inPhase("ready", open)), false);
});

test("stateAfterStop() leaves what wasn't begun as it is, and has what may have begun asked about", () => {
  assert.deepEqual(stateAfterStop(inPhase("ready")), inPhase("ready", { askOnly: true }));
  assert.deepEqual(
    stateAfterStop(inPhase("ready", { doubt: true, absents: 2 })),
    inPhase("lost", { doubt: true, askOnly: true }),
  );
  assert.deepEqual(stateAfterStop(inPhase("accepted", { absents: 2 })), inPhase("accepted", { absents: 2, askOnly: true }));
});

test("stateToAskAbout() remembers whether the start was answered with an error", () => {
  assert.deepEqual(stateToAskAbout(inPhase("ready", { refusals: 1, absents: 1 })), inPhase("refused", { refusals: 1 }));
  assert.deepEqual(stateToAskAbout(inPhase("ready", { absents: 1 })), inPhase("lost"));
});

test("stateWithoutEffect() tells one that was refused from one that was never sent", () => {
  const refusal = { code: -29, message: "no" };
  assert.deepEqual(stateWithoutEffect(fresh, true, refusal), inPhase("refused", { refusal, isSentOnce: true }));
  assert.deepEqual(stateWithoutEffect(fresh, false, refusal), inPhase("unsent", { refusal, isSentOnce: true }));
});
