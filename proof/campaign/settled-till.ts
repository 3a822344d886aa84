import fc from "fast-check";
import type { ContractName, ServiceName } from "../../src/core/call.ts";
import { magicAmounts } from "../../src/lab/emulator/faults/magic-amounts.ts";
import { between, type Drawn, often, one } from "./draw.ts";
import { bodyOf } from "./request-body.ts";
import { type Named, servicesOf } from "./settled-terminal.ts";

/** What the tills of a campaign do: the operations, and when their tills crash, call twice or try again. Drawn by a seed. */

/** `refund-shared` sends the sale's own key again, as some tills do. `qr-palm` names its payment itself. */
export const kinds = ["sale", "refund", "refund-shared", "preauth", "fiscal", "qr", "qr-palm"] as const;

export type Kind = (typeof kinds)[number];

const endings = magicAmounts.map(({ digits }) => digits);

const onceInTen = between(0, 9).map((n) => n === 0);

/** One operation of a till. */
const script = (lines: number) =>
  fc.record({
    // Sales of each contract most.
    kind: one<Kind>(...kinds, "sale", "sale", "fiscal", "fiscal", "qr-palm"),
    // Of the lines, from 1.
    line: between(1, lines),
    // The last two digits of its amount, by which the emulator decides what goes wrong: a normal course more often than each fault alone.
    ending: often([1, fc.constant(0)], [2, one(...endings)]),
    waitS: between(1, 8),
    // After how many milliseconds the till crashes, sending by sending; undefined: it stays.
    leavesMs: fc.array(fc.option(between(1, 4_000), { nil: undefined, freq: 3 }), { minLength: 1, maxLength: 3 }),
    // Milliseconds from an answer to the same call.
    gapMs: between(0, 800),
    // It is called twice at once.
    isDouble: onceInTen,
    // Its first call doesn't ask to be followed.
    isPlainFirst: onceInTen,
    // How often it is tried anew once it is proven that nothing was carried out.
    tries: between(1, 3),
  });

export type Script = Drawn<ReturnType<typeof script>>;

/** The operations of a campaign. Every fault is among the first ones, in a changed order. */
export function scriptsOf(count: number, lines: number, seed: number): readonly Script[] {
  const [order = []] = fc.sample(fc.shuffledSubarray(endings, { minLength: endings.length }), { seed, numRuns: 1 });
  const drawn = fc.sample(script(lines), { seed, numRuns: count });
  return drawn.map((each, index) => ({ ...each, ending: order[index] ?? each.ending }));
}

/** Milliseconds from one kill of posline to the next. */
export const killGapsOf = (seed: number) => fc.sample(between(3_000, 15_000), { seed, numRuns: 1_000 });

/** Connections that are cut, each at a moment when an operation is on it. */
export function cutsOf(lines: number, seed: number) {
  const cut = fc.record({
    // Milliseconds since the one before.
    gapMs: between(100, 4_000),
    line: between(1, lines),
    // Milliseconds from the arrival of the next operation to the cut: its answer may be out by then.
    afterMs: fc.oneof(fc.constant(0), between(1, 20), between(20, 4_000)),
    // Milliseconds for which its terminal is away, as if it started again; 0: it can be dialled at once.
    awayMs: fc.oneof(fc.constant(0), between(100, 3_000)),
  });
  return fc.sample(cut, { seed, numRuns: 2_000 });
}

/** An operation as it goes out. */
export interface Sending extends Named {
  readonly service: ServiceName;
  readonly body: string;
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
  return { service, contract, route: routeOf[kind], key, body: bodyOf(contract, json(amount)) };
}
