import { test } from "node:test";
import fc from "fast-check";
import { garbling, Life, oddFirmware, recordedStep, type World, worldOf } from "./worlds.ts";

/**
 * Tests src/line/engine.ts, src/recovery/recovery.ts.
 *
 * * The one promise that everything hangs on, tried against a terminal that does its worst within what a terminal may do: it
 * answers in order, and while it owes an answer it is never silent for as long as `lateReplyMs`. It may hang and answer all at
 * once, lose requests and replies, garble them, answer errors, serve its services apart, be unplugged, and be of a version that
 * answers probes with something of its own; posline may be restarted in the midst of it. No call ever gets another call's reply.
 */

// More than the default when the rules of recovery are changed: SAFETY_RUNS=40000 takes two minutes.
// The default worlds are always the same, so that nobody's change is stopped by another's; a campaign draws new ones.
const campaign = process.env["SAFETY_RUNS"];
const numRuns = Number(campaign ?? 400);
const seed = campaign === undefined ? { seed: 20_261_120 } : {};

/** The process before left three answers; the first call's own late answer is behind them. */
const restartedInHang: World = {
  fates: [1_500, 1, 1, 1, 1, 1, 4_000, 1, 1].map((ms) => ({ kind: "answer", delayMs: ms })),
  steps: [
    { do: "wait", ms: 7_508 },
    { do: "restart" },
    { do: "call", service: "qr", kind: "money", timeoutMs: 3_001 },
    { do: "call", service: "qr", kind: "money", timeoutMs: 3_001 },
    { do: "wait", ms: 3_764 },
  ],
  apart: true,
  signed: true,
  slowWhenQueued: true,
  probes: false,
  second: "answered",
};

/** The same with more of them, which come one by one. */
const restartedOverMany: World = {
  fates: [7_509, 1, 1, 1, 1_500].map((ms) => ({ kind: "answer", delayMs: ms })),
  steps: [
    { do: "wait", ms: 20_081 },
    { do: "restart" },
    { do: "call", service: "qr", kind: "money", timeoutMs: 4_220 },
    { do: "call", service: "qr", kind: "money", timeoutMs: 3_001 },
  ],
  apart: true,
  signed: true,
  slowWhenQueued: true,
  probes: false,
  second: "answered",
};

/** And with a terminal that answers for the second time while the second call is out. */
const restartedOverSlow: World = {
  ...restartedOverMany,
  fates: [2_001, 14_006, 1].map((ms) => ({ kind: "answer", delayMs: ms })),
  steps: [
    { do: "wait", ms: 30_064 },
    { do: "restart" },
    { do: "call", service: "bank", kind: "money", timeoutMs: 3_001 },
    { do: "call", service: "bank", kind: "money", timeoutMs: 3_001 },
  ],
};

/** The process before was stopped while its call was out, behind answers to its probes. */
const restartedInCall: World = {
  ...restartedOverMany,
  fates: [2_006, 1, 1, 1].map((ms) => ({ kind: "answer", delayMs: ms })),
  steps: [
    { do: "call", service: "qr", kind: "money", timeoutMs: 3_001 },
    { do: "wait", ms: 12_301 },
    { do: "restart" },
    { do: "call", service: "qr", kind: "money", timeoutMs: 3_001 },
  ],
};

test("Line never gives a call another call's reply, over a terminal that hangs, loses and garbles", () => {
  fc.assert(
    fc.property(worldOf(garbling, true), (world) => new Life(world).run()),
    {
      numRuns,
      ...seed,
      includeErrorInReport: true,
      examples: [[restartedInHang], [restartedOverMany], [restartedOverSlow], [restartedInCall]],
    },
  );
});

test("Line never gives a call another call's reply, over a terminal that also answers probes with errors", () => {
  fc.assert(
    fc.property(worldOf([...garbling, "error"], false), (world) => new Life(world).run()),
    { numRuns, ...seed, includeErrorInReport: true },
  );
});

test("Line never gives a call another call's reply, nor sends a refused one, while calls are recorded before they go out", () => {
  fc.assert(
    fc.property(worldOf(garbling, true, { steps: recordedStep }), (world) => new Life(world).run()),
    { numRuns, ...seed, includeErrorInReport: true },
  );
});

test("Line never gives a call another call's reply, over a terminal that answers probes with a success of another shape", () => {
  fc.assert(
    fc.property(
      fc.oneof(worldOf(garbling, true, { odd: oddFirmware }), worldOf([...garbling, "error"], false, { odd: oddFirmware })),
      (world) => new Life(world).run(),
    ),
    { numRuns, ...seed, includeErrorInReport: true },
  );
});
