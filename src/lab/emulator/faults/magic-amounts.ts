import type { WireFault } from "./wire-fault.ts";

/**
 * An operation's outcome by the last two digits of its amount, as payment sandboxes do it. The table in docs/emulator.md is printed from
 * here. Every amount whose digits aren't listed takes its normal course: approved, closed, printed.
 */

/** A way for an operation to go other than well, by name; `checks` is how many questions about it are answered "in progress" first. */
export interface EmulatedOutcome {
  readonly name:
    | "in-doubt"
    | "internal-error"
    | "not-fiscalized"
    | "not-printed"
    | "declined"
    | "cancelled"
    | "abort-too-late"
    | "no-terminal"
    | "reversed"
    | "card-timeout"
    | "update-required"
    | "blocked"
    | "not-supported"
    | "slow";
  readonly checks?: number;
}

/** A row of the table. */
export interface MagicAmount {
  /** The amount's last two digits. */
  readonly digits: number;
  /** The operation's outcome, or the fault of the reply on its way. */
  readonly effect: { readonly outcome: EmulatedOutcome } | { readonly fault: WireFault };
  /** The row's words in the documentation's table, per service; undefined if the service takes no notice. */
  readonly words: { readonly bank?: string; readonly qr?: string; readonly fiscal?: string } | { readonly all: string };
}

/** @param checks How many questions are answered "in progress", or the letter that stands for it. */
const slowWords = (checks: number | "N") => ({
  bank: `in progress for ${checks} /check, then approved`,
  qr: `in progress for ${checks} /check, then paid`,
  fiscal: `code 44, then docStatus 0 for ${checks} /check_status, then closed`,
});

const slow = (digits: number, checks: number): MagicAmount => ({
  digits,
  effect: { outcome: { name: "slow", checks } },
  words: slowWords(checks),
});

const wire = (digits: number, fault: WireFault, all: string): MagicAmount => ({ digits, effect: { fault }, words: { all } });

/** 61 to 69: the last digit says how often. */
const slowByLastDigit: readonly MagicAmount[] = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((checks) => slow(60 + checks, checks));

const singles: readonly MagicAmount[] = [
  {
    digits: 3,
    effect: { outcome: { name: "in-doubt" } },
    words: {
      bank: "code -3, though it runs on and is approved",
      qr: "code 1, though it runs on and is paid",
      fiscal: "code 5, though the document is closed",
    },
  },
  {
    digits: 5,
    effect: { outcome: { name: "internal-error" } },
    words: {
      bank: "code -3, nothing is begun; the same request succeeds next time",
      qr: "code 1, nothing is begun; the same request succeeds next time",
      fiscal: "code 5, rolled back; the same request succeeds next time",
    },
  },
  { digits: 10, effect: { outcome: { name: "not-fiscalized" } }, words: { fiscal: "code 10, no document is kept" } },
  {
    digits: 15,
    effect: { outcome: { name: "not-printed" } },
    words: { fiscal: "code 15 with printError; the document is closed and kept" },
  },
  {
    digits: 20,
    effect: { outcome: { name: "declined" } },
    words: { bank: "ERROR, code -20", qr: "error: declined", fiscal: "code 8 when paid by card" },
  },
  {
    digits: 21,
    effect: { outcome: { name: "cancelled" } },
    words: { bank: "ERROR, code -21", qr: "error: cancelled by the customer", fiscal: "code 8 when paid by card" },
  },
  {
    digits: 22,
    effect: { outcome: { name: "abort-too-late" } },
    words: { bank: "in progress for 5 /check, then approved, though /abort was answered with success" },
  },
  { digits: 23, effect: { outcome: { name: "no-terminal" } }, words: { fiscal: "code 23 when paid by card" } },
  {
    digits: 30,
    effect: { outcome: { name: "reversed" } },
    words: { bank: "REVERSED", qr: "error: reversed", fiscal: "code 8 when paid by card" },
  },
  wire(31, { kind: "no-answer" }, "carried out, and never answered"),
  wire(32, { kind: "late", ms: 5_000 }, "answered 5 s late"),
  wire(33, { kind: "after-next" }, "answered when the next request has come"),
  wire(34, { kind: "corrupt" }, "the answer has a wrong checksum"),
  wire(35, { kind: "truncated" }, "the answer breaks off in the middle"),
  wire(36, { kind: "wrong-length" }, "the answer's length is wrong (fiscal: its end is lost)"),
  wire(37, { kind: "pieces", ms: 300 }, "the answer comes in pieces, 300 ms apart"),
  wire(38, { kind: "noise" }, "noise comes before the answer: `AT+CPIN?`"),
  wire(41, { kind: "twice", ms: 0 }, "answered twice"),
  wire(42, { kind: "unplug", ms: 2_000 }, "carried out, and unplugged for 2 s instead of an answer"),
  wire(43, { kind: "reserved-crc" }, "the answer's checksum holds 02 or 03"),
  slow(44, 3),
  { digits: 51, effect: { outcome: { name: "update-required" } }, words: { bank: "code -100, nothing is begun" } },
  { digits: 52, effect: { outcome: { name: "blocked" } }, words: { bank: "code -101, nothing is begun" } },
  { digits: 53, effect: { outcome: { name: "not-supported" } }, words: { bank: "code -80, nothing is begun" } },
  {
    digits: 54,
    effect: { outcome: { name: "card-timeout" } },
    words: { bank: "ERROR, code -54", qr: "error: nobody paid in time", fiscal: "code 8 when paid by card" },
  },
];

export const magicAmounts: readonly MagicAmount[] = [...singles, ...slowByLastDigit];

const byDigits = new Map(magicAmounts.map((each) => [BigInt(each.digits), each]));

/** The row of an amount in minor units; undefined if it takes its normal course. */
export function magicAmountOf(amount: bigint): MagicAmount | undefined {
  return byDigits.get((amount < 0n ? -amount : amount) % 100n);
}

/** An effect's name with its number, as flags and the control API write it: `slow:3`, `late:5000`. */
export function effectName(effect: MagicAmount["effect"]): string {
  if ("outcome" in effect) {
    const { name, checks } = effect.outcome;
    return checks === undefined ? name : `${name}:${checks}`;
  }
  const { fault } = effect;
  return "ms" in fault ? `${fault.kind}:${fault.ms}` : fault.kind;
}

/** An amount's last two digits, as they are written. */
export const digitsOf = ({ digits }: MagicAmount) => String(digits).padStart(2, "0");

/** The table as Markdown, for docs/emulator.md. */
export function magicAmountsTable(): string {
  const row = (ending: string, name: string, words: MagicAmount["words"]) => {
    const texts = "all" in words ? [words.all, "the same", "the same"] : [words.bank, words.qr, words.fiscal];
    return `| **${ending}** | \`${name}\` | ${texts.map((text) => text ?? "").join(" | ")} |`;
  };
  return [
    "| ending | name | bank | qr | fiscal |",
    "| --- | --- | --- | --- | --- |",
    ...singles.map((each) => row(digitsOf(each), effectName(each.effect), each.words)),
    row("6N", "slow:N", slowWords("N")),
  ].join("\n");
}
