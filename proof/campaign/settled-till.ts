import fc from "fast-check";
import type { ContractName, ServiceName } from "../../src/core/call.ts";
import { magicAmounts } from "../../src/lab/emulator/faults/magic-amounts.ts";
import { bodyOf } from "./request-body.ts";
import { type Named, servicesOf } from "./settled-terminal.ts";

/** What the tills of a campaign do: the operations, and when their tills crash, call twice or try again. Drawn by a seed. */

/** `refund-shared` sends the sale's own key again, as some tills do. `qr-palm` names its payment itself. */
export const kinds = ["sale", "refund", "refund-shared", "preauth", "fiscal", "qr", "qr-palm"] as const;

export type Kind = (typeof kinds)[number];

/** One operation of a till. */
export interface Script {
  readonly kind: Kind;
  /** Of the lines, from 1. */
  readonly line: number;
  /** The last two digits of its amount, by which the emulator decides what goes wrong. */
  readonly ending: number;
  readonly waitS: number;
  /** After how many milliseconds the till crashes, sending by sending; undefined: it stays. */
  readonly leavesMs: readonly (number | undefined)[];
  /** Milliseconds from an answer to the same call. */
  readonly gapMs: number;
  /** It is called twice at once. */
  readonly isDouble: boolean;
  /** Its first call doesn't ask to be followed. */
  readonly isPlainFirst: boolean;
  /** How often it is tried anew once it is proven that nothing was carried out. */
  readonly tries: number;
}

const endings = magicAmounts.map(({ digits }) => digits);

/** A normal course more often than each fault alone. */
const ending = fc.oneof({ weight: 1, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.constantFrom(...endings) });

const leaveMs = fc.option(fc.integer({ min: 1, max: 4_000 }), { nil: undefined, freq: 3 });

const script = (lines: number): fc.Arbitrary<Script> =>
  fc.record({
    // Sales of each contract most.
    kind: fc.constantFrom<Kind>(...kinds, "sale", "sale", "fiscal", "fiscal", "qr-palm"),
    line: fc.integer({ min: 1, max: lines }),
    ending,
    waitS: fc.integer({ min: 1, max: 8 }),
    leavesMs: fc.array(leaveMs, { minLength: 1, maxLength: 3 }),
    gapMs: fc.integer({ min: 0, max: 800 }),
    isDouble: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    isPlainFirst: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    tries: fc.integer({ min: 1, max: 3 }),
  });

/** The operations of a campaign. Every fault is among the first ones, in a changed order. */
export function scriptsOf(count: number, lines: number, seed: number): readonly Script[] {
  const [order = []] = fc.sample(fc.shuffledSubarray(endings, { minLength: endings.length }), { seed, numRuns: 1 });
  const drawn = fc.sample(script(lines), { seed, numRuns: count });
  return drawn.map((each, index) => ({ ...each, ending: order[index] ?? each.ending }));
}

/** Milliseconds from one kill of posline to the next. */
export function killGapsOf(seed: number): readonly number[] {
  return fc.sample(fc.integer({ min: 3_000, max: 15_000 }), { seed, numRuns: 1_000 });
}

/** A connection that is cut, at a moment when an operation is on it. */
export interface Cut {
  /** Milliseconds since the one before. */
  readonly gapMs: number;
  readonly line: number;
  /** Milliseconds from the arrival of the next operation to the cut: its answer may be out by then. */
  readonly afterMs: number;
  /** Milliseconds for which its terminal is away, as if it started again; 0: it can be dialled at once. */
  readonly awayMs: number;
}

export function cutsOf(lines: number, seed: number): readonly Cut[] {
  const cut = fc.record({
    gapMs: fc.integer({ min: 100, max: 4_000 }),
    line: fc.integer({ min: 1, max: lines }),
    afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 20 }), fc.integer({ min: 20, max: 4_000 })),
    awayMs: fc.oneof(fc.constant(0), fc.integer({ min: 100, max: 3_000 })),
  });
  return fc.sample(cut, { seed, numRuns: 2_000 });
}

/** An operation as it goes out. */
export interface Sending extends Named {
  readonly service: ServiceName;
  readonly body: string;
  /** Another body under the same key. */
  readonly otherBody: string;
}

const contractOf: Readonly<Record<Kind, ContractName>> = {
  sale: "bank",
  refund: "bank",
  "refund-shared": "bank",
  preauth: "bank",
  fiscal: "fiscal",
  qr: "qr",
  "qr-palm": "qr",
};

const routeOf: Readonly<Record<Kind, string>> = {
  sale: "/sale",
  refund: "/refund",
  "refund-shared": "/refund",
  preauth: "/preauth",
  fiscal: "/sale",
  qr: "/showqrcode",
  "qr-palm": "/showqrcode",
};

/** The sale that a refund refers to. */
export type Original = { readonly key: string; readonly rrn: string };

export function sendingOf({ kind, line, ending: digits }: Script, index: number, original: Original): Sending {
  const contract = contractOf[kind];
  const service = Object.entries(servicesOf(line)).find(([, each]) => each === contract)?.[0] ?? contract;
  const key = kind === "refund-shared" ? original.key : `${kind.toUpperCase()}-${index}`;
  const json = (amount: number): object => {
    const bank = { pay_id: key, amount, currency_name: "EUR" };
    const qr = { pay_id: key, amount, currency: "978", currency_name: "EUR" };
    switch (kind) {
      case "refund":
      case "refund-shared":
        return { ...bank, rrn: original.rrn };
      case "fiscal": {
        const payments = digits % 2 === 0 ? { cashlessAmount: amount } : { cashAmount: amount };
        return { documentExtID: key, items: [{ itemAmount: amount }], payments };
      }
      case "qr":
        return { ...qr, pay_system: "QRPAY" };
      case "qr-palm":
        return { ...qr, pay_system: "PALM", trans: `T-${index}` };
      default:
        return bank;
    }
  };
  const amount = 1_000 + 100 * (index % 90) + digits;
  const bodies = { body: bodyOf(contract, json(amount)), otherBody: bodyOf(contract, json(amount + 100)) };
  return { service, contract, route: routeOf[kind], key, ...bodies };
}
