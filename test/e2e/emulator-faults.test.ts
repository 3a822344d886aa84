import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { type ContractName, contractNames } from "../../src/core/call.ts";
import { Emulator } from "../../src/emulator/emulator.ts";
import { magicAmounts } from "../../src/emulator/faults/magic-amounts.ts";
import { parseWireFault, type WireFault, wireFaultKinds } from "../../src/emulator/faults/wire-fault.ts";
import { merchantId } from "../line/lines.ts";
import { Bench, type Ended, time } from "./faulty-line.ts";

/**
 * The bridge against an emulator that goes wrong: whatever befalls an answer, the till is told the truth about its own call and
 * nothing of another's, and the line comes back.
 */

after(() => time.restore());

const harmless: readonly string[] = ["pieces", "noise", "twice", "reserved-crc"];

const faults: readonly { readonly name: string; readonly fault: WireFault; readonly answered: boolean }[] = [
  ...wireFaultKinds
    .filter((kind) => kind !== "late")
    .map((kind) => ({ name: kind, fault: parseWireFault(kind), answered: harmless.includes(kind) })),
  { name: "late within the time-out", fault: { kind: "late", ms: 5_000 }, answered: true },
  { name: "late beyond the time-out", fault: { kind: "late", ms: 15_000 }, answered: false },
  { name: "pieces that take longer than a frame may", fault: { kind: "pieces", pauseMs: 6_000 }, answered: false },
];

for (const { name, fault, answered } of faults) {
  for (const service of contractNames) {
    test(`the bridge tells the truth of a ${service} answer: ${name}; the line comes back, no call gets another's answer`, async () => {
      for (const services of [contractNames, [service]]) {
        const bench = new Bench({ services });
        await bench.idle();
        bench.terminal.faults = [fault];
        const spoilt = bench.send(service);
        // Two wait behind it.
        const behind = [bench.send(service), bench.send(services[0] ?? service)];
        await bench.end(spoilt, ...behind);
        for (const each of [spoilt, ...behind]) bench.assertTrue(each);
        if (answered) assert.equal(spoilt.text?.trimEnd(), bench.terminal.carriedOut.get(spoilt.id), spoilt.fault?.message);
        else assert.equal(spoilt.fault?.outcome, "unknown");
        assert.equal(bench.terminal.carriedOut.has(spoilt.id), true);
        await bench.idle();
        // Long enough for all that is under way to come.
        await time.advance(30_000);
        await bench.idle();
        const later = services.map((each) => bench.send(each));
        await bench.end(...later);
        for (const each of later) assert.equal(each.text, bench.terminal.carriedOut.get(each.id), each.fault?.message);
        await bench.stop();
      }
    });
  }
}

/** A sale of an amount, and how a till asks for it when its outcome is unknown (contracts: recovery rules). */
interface Sold {
  readonly sale: (amount: number) => object;
  readonly ask: string;
  /** Whether an answer says that the sale was carried out. */
  readonly isDone: (answer: {
    readonly docStatus?: number;
    readonly data?: { readonly status?: string; readonly trans?: string };
  }) => boolean;
}

const sales: Readonly<Record<ContractName, Sold>> = {
  fiscal: {
    sale: (amount) => ({ documentExtID: "A", items: [{ itemAmount: amount }], payments: { cashAmount: amount } }),
    ask: "/check_status",
    isDone: ({ docStatus }) => docStatus === 1,
  },
  bank: {
    sale: (amount) => ({ pay_id: "A", amount, currency_name: "EUR" }),
    ask: "/check",
    isDone: ({ data }) => data?.status === "APPROVED",
  },
  qr: {
    sale: (amount) => ({ pay_id: "A", amount, currency: "978", currency_name: "EUR", pay_system: "QRPAY" }),
    // Without trans nobody can ask /check: the same request shows the same payment again.
    ask: "/showqrcode",
    isDone: ({ data }) => data?.trans !== undefined,
  },
};

for (const { digits, effect } of magicAmounts) {
  if (!("fault" in effect)) continue;
  const { kind } = effect.fault;
  for (const service of contractNames) {
    test(`Emulator carries out a ${service} sale that ends in ${digits}, and a till learns so in spite of ${kind}`, async () => {
      const bench = new Bench({ emulator: new Emulator({ merchantId }) });
      await bench.idle();
      const { sale, ask, isDone } = sales[service];
      const body = sale(1_000 + digits);
      const sold = bench.send(service, undefined, body);
      await bench.end(sold);
      if (kind === "late" || harmless.includes(kind)) assert.equal(JSON.parse(sold.text ?? "{}").status, "success");
      else assert.equal(sold.fault?.outcome, "unknown");
      // A bank terminal that is asked says first that it is at it.
      for (const last of [false, true]) {
        await time.advance(5_000);
        await bench.idle();
        const asked = bench.send(service, ask, body);
        await bench.end(asked);
        if (last) assert.ok(isDone(JSON.parse(asked.text ?? "{}")), asked.text ?? asked.fault?.message);
      }
      await bench.stop();
    });
  }
}

// More than the default, and other ones each time, when the line is changed: FAULTS_RUNS=1500 takes ten seconds.
const campaign = process.env["FAULTS_RUNS"];
const seed = campaign === undefined ? { seed: 20_261_120 } : {};

const baudRates = [115_200, 4_000_000];

for (const baudRate of baudRates) {
  test(`the bridge never gives a call another call's answer, whatever befalls them one after the other at ${baudRate}`, async () => {
    const fault = fc.oneof(
      fc.constant(undefined),
      fc.constantFrom(...wireFaultKinds).map((kind) => parseWireFault(kind)),
      fc.integer({ min: 1, max: 20_000 }).map((ms): WireFault => ({ kind: "late", ms })),
      fc.integer({ min: 1, max: 6_000 }).map((pauseMs): WireFault => ({ kind: "pieces", pauseMs })),
      fc.integer({ min: 1, max: 5_000 }).map((ms): WireFault => ({ kind: "unplug", ms })),
    );
    const probeFault = fc.constantFrom(...wireFaultKinds).map((kind) => parseWireFault(kind));
    const step = fc.record({
      service: fc.constantFrom(...contractNames),
      fault,
      probeFault: fc.option(probeFault, { nil: undefined, freq: 2 }),
      // One after the other as a till does, or some time later, whatever became of the one before.
      pauseMs: fc.option(fc.integer({ min: 0, max: 12_000 }), { nil: undefined, freq: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => live(steps, baudRate)),
      { numRuns: Number(campaign ?? 60), ...seed, includeErrorInReport: true },
    );
  });
}

interface Step {
  readonly service: ContractName;
  readonly fault: WireFault | undefined;
  readonly probeFault: WireFault | undefined;
  /** Milliseconds before the next; undefined: until it has ended. */
  readonly pauseMs: number | undefined;
}

/** Lives through calls, and through what befalls their answers. */
async function live(steps: readonly Step[], baudRate: number): Promise<void> {
  const bench = new Bench({ baudRate });
  await bench.idle();
  bench.terminal.faults = steps.map(({ fault }) => fault);
  bench.terminal.probeFaults = steps.map(({ probeFault }) => probeFault);
  const all: Ended[] = [];
  for (const { service, pauseMs } of steps) {
    const sent = bench.send(service);
    all.push(sent);
    if (pauseMs === undefined) await bench.end(sent);
    else await time.advance(pauseMs);
  }
  await bench.end(...all);
  for (const each of all) bench.assertTrue(each);
  bench.terminal.faults = [];
  bench.terminal.probeFaults = [];
  // A device that was lost has to open again.
  await time.advance(10_000);
  await bench.idle();
  const last = bench.send("bank");
  await bench.end(last);
  bench.assertTrue(last);
  assert.notEqual(last.fault?.outcome, "not-sent");
  await bench.stop();
}
