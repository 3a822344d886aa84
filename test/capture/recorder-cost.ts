import { LineRecorder } from "../../src/capture/recorder.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { lineService } from "../../src/line/caller.ts";
import { LineEngine } from "../../src/line/engine.ts";
import type { LineEffect, LineEvent } from "../../src/line/events.ts";
import { Exchange } from "../../src/line/exchange.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { configOf, requestFor } from "../line/lines.ts";

/**
 * What the flight recorder adds to an event of a line: `node --import tsx test/capture/recorder-cost.ts`. A million events of sales
 * that are recorded in the journal, each of five events, given to a line's engine; then the recorder sees them.
 */

const sales = 200_000;
const config = configOf({ idleProbeMs: 0 });
const services = [lineService(contracts.bank, { crc16: "arc", quiet: false, merchantId: undefined })];
const reply = Buffer.from(
  JSON.stringify({ status: "success", code: 0, data: { rrn: "012345678901", receipt: "-".repeat(300), amount: 12_345 } }),
);
const received = (payload: Buffer): LineEvent => ({
  at: "received",
  items: [
    { kind: "frame", framing: "length", payload: [payload], payloadBytes: payload.length, wireBytes: payload.length + 6 },
  ],
  receiving: { phase: "idle", heardMs: 1, burstUntilMs: 0 },
});

let now = 1_000;

/** An engine whose line has been proven clean. */
function cleanEngine(): LineEngine {
  const engine = new LineEngine({ name: "till", config, services });
  const give = (event: LineEvent, afterMs: number) => {
    now += afterMs;
    engine.handle(event, now);
  };
  for (const at of ["opened", "drained"] as const) give({ at }, 1);
  for (let n = 0; n < 4; n++) {
    for (const at of ["tick", "wrote"] as const) give({ at }, 2_500);
    give(received(Buffer.from('{"status":"success","operations":["/sale"]}')), 1);
  }
  give({ at: "tick" }, 1_000);
  if (engine.state !== "idle") throw new Error(`the line is ${engine.state}`);
  return engine;
}

type See = (event: LineEvent, effects: readonly LineEffect[], now: number, engine: LineEngine) => void;

/** @returns nanoseconds an event. */
function measure(see: See): number {
  const engine = cleanEngine();
  const give = (event: LineEvent) => see(event, engine.handle(event, now), now, engine);
  const began = process.hrtime.bigint();
  for (let n = 0; n < sales; n++) {
    now += 0.25;
    const request = { ...requestFor(`b7c1f0-${n}`), beforeSend: async () => {} };
    const frame = frameOf("length", request.payload, "arc");
    const exchange = new Exchange("till", request, frame, { cameMs: now, waitUntilMs: now + 15_000 });
    give({ at: "call", exchange });
    give({ at: "recorded", exchange });
    give({ at: "wrote" });
    give({ at: "received", items: [], receiving: { phase: "in-frame", heardMs: now, burstUntilMs: 0 } });
    give(received(reply));
  }
  return Number(process.hrtime.bigint() - began) / (5 * sales);
}

const rounds = 5;
const without: number[] = [];
const withIt: number[] = [];
for (let round = 0; round < rounds; round++) {
  without.push(measure(() => {}));
  const recorder = new LineRecorder({ name: "till", config, services });
  withIt.push(measure((event, effects, at, engine) => recorder.observe(event, effects, at, engine)));
}
const least = (values: readonly number[]) => Math.min(...values);
const added = least(withIt) - least(without);
process.stdout.write(
  `an event without the recorder ${least(without).toFixed(0)} ns, with it ${least(withIt).toFixed(0)} ns: ` +
    `${added.toFixed(0)} ns more, ${(5 * added).toFixed(0)} ns an exchange\n`,
);
