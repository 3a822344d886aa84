import {
  abortOnlyTries,
  askedByTrans,
  key,
  noBlindResend,
  ofBank,
  ofFiscal,
  onlyFinal,
  polledUntilClosed,
  qrNoResend,
  sameExtId,
  saveTrans,
  shownUntilFinal,
  unprinted,
  untilFinal,
} from "./contract-rules.ts";
import type { DeedStep, Scenario, Trouble } from "./scenario.ts";

/** The scenarios, in the order in which they are played: what is plain first. */

const sale = (
  trouble: Trouble | undefined,
  ...ends: readonly ("approved" | "declined" | "reversed" | "failed")[]
): DeedStep => ({
  deed: "sale",
  key: "a",
  ...(trouble === undefined ? {} : { trouble }),
  ends,
});

const unpaid = ["declined", "reversed", "failed"] as const;

const tillKilled: Trouble = { kind: "till-killed" };
const noAnswer: Trouble = { kind: "fault", fault: "no-answer" };
const lost: Trouble = { kind: "lost" };
const outcome = (name: string): Trouble => ({ kind: "outcome", outcome: name });

/** Milliseconds for which an answer is late: longer than posline waits in a rehearsal. */
const lateMs = 7_000;

const dayMs = 86_400_000;

export const scenarios: readonly Scenario[] = [
  {
    name: "approved",
    title: "Approved",
    rule: onlyFinal,
    listed: "sale, approved",
    steps: [sale(undefined, "approved")],
  },
  {
    name: "declined",
    title: "Declined",
    rule: onlyFinal,
    listed: "sale, declined by the issuer",
    steps: [sale(outcome("declined"), ...unpaid)],
  },
  {
    name: "reversed",
    title: "Reversed",
    rule: onlyFinal,
    listed: "reversal",
    steps: [sale(outcome("reversed"), ...unpaid)],
  },
  {
    name: "cancelled-by-customer",
    title: "Cancelled by the customer",
    rule: onlyFinal,
    listed: "sale, cancelled at the PIN pad",
    steps: [sale(outcome("cancelled"), ...unpaid)],
  },
  {
    name: "card-timeout",
    title: "No card comes in time (-54)",
    rule: onlyFinal,
    listed: "sale, no card presented",
    steps: [sale(outcome("card-timeout"), ...unpaid)],
  },
  {
    name: "refused-at-start",
    title: "The terminal needs an update (-100), is blocked (-101), and can't sell (-80)",
    rule: ofBank(
      "Errors",
      "Unknown codes are handled as non-retriable; when the financial state is uncertain, recover it via /check.",
    ),
    steps: [
      sale(outcome("update-required"), ...unpaid),
      { ...sale(outcome("blocked"), ...unpaid), key: "b" },
      { ...sale(outcome("not-supported"), ...unpaid), key: "c" },
    ],
  },
  {
    name: "unauthorized",
    title: "posline wants an API key that the till hasn't got (401)",
    rule: ofBank("Errors", "HTTP 401 applies to API key failures."),
    settings: { apiKey: "a-key-of-which-the-till-was-not-told" },
    steps: [{ deed: "sale", key: "a" }],
  },
  {
    name: "no-answer-carried-out",
    title: "No answer, carried out",
    rule: untilFinal,
    listed: "communication failure after authorisation",
    steps: [sale(noAnswer, "approved")],
  },
  {
    name: "no-answer-not-carried-out",
    title: "No answer, not carried out",
    rule: untilFinal,
    listed: "communication failure before authorisation",
    steps: [sale(lost, ...unpaid, "approved")],
  },
  {
    name: "late-answer",
    title: "An answer later than the wait",
    rule: untilFinal,
    listed: "time-out of the response",
    steps: [sale({ kind: "fault", fault: `late:${lateMs}` }, "approved")],
  },
  {
    name: "corrupt-answer",
    title: "A corrupt answer",
    rule: ofBank("Endpoints, Serial transport", "a received response frame with a bad CRC counts as not received."),
    steps: [sale({ kind: "fault", fault: "corrupt" }, "approved")],
  },
  {
    name: "cable-pulled",
    title: "The cable is pulled and put back",
    rule: untilFinal,
    listed: "loss of the connection to the terminal",
    steps: [sale({ kind: "fault", fault: "unplug:2000" }, "approved")],
  },
  {
    name: "line-recovering",
    title: "The line is recovering (503)",
    rule: noBlindResend,
    steps: [sale({ kind: "silence", ms: 6_000 }, "approved")],
  },
  {
    name: "cable-out",
    title: "The cable is out when the sale comes (503)",
    rule: noBlindResend,
    steps: [sale({ kind: "cable", ms: 4_000 }, "approved")],
  },
  {
    name: "connection-cut",
    title: "The connection to posline is cut with the sale out",
    rule: untilFinal,
    listed: "loss of the network",
    steps: [sale({ kind: "connection-cut" }, "approved")],
  },
  {
    name: "posline-killed",
    title: "posline is killed with the sale out",
    rule: untilFinal,
    steps: [sale({ kind: "bridge-killed" }, "approved")],
  },
  {
    name: "till-killed",
    title: "The till is killed with the sale out, and run again",
    rule: key,
    listed: "power failure at the till",
    steps: [sale(tillKilled, "approved")],
  },
  {
    name: "twice-at-once",
    title: "The same call twice at once",
    rule: key,
    listed: "duplicate transaction",
    steps: [{ ...sale(undefined, "approved"), twice: true }],
  },
  {
    name: "key-reused",
    title: "The same key for another amount",
    rule: key,
    steps: [sale(undefined, "approved"), { deed: "sale", key: "a", amount: "second" }],
  },
  {
    name: "new-day",
    title: "A new day, and the same amount",
    rule: key,
    listed: "first sale after the day's end",
    steps: [sale(undefined, "approved"), dayMs, { deed: "sale", key: "b", ends: ["approved"] }],
  },
  {
    name: "slow",
    title: "The customer takes his time",
    rule: onlyFinal,
    steps: [sale(outcome("slow:4"), "approved")],
  },
  {
    name: "slower",
    title: "The customer takes half a minute",
    rule: onlyFinal,
    steps: [sale(outcome("slow:28"), "approved")],
  },
  {
    name: "patient",
    title: "The customer takes more than three minutes",
    rule: onlyFinal,
    isThorough: true,
    steps: [sale(outcome("slow:99"), "approved")],
  },
  {
    name: "cable-away",
    title: "The cable is pulled with the sale out, and put back after a minute and a half",
    rule: untilFinal,
    isThorough: true,
    steps: [sale({ kind: "fault", fault: "unplug:90000" }, "approved")],
  },
  {
    name: "error-in-doubt",
    title: "An error at the start, and carried out all the same",
    rule: untilFinal,
    steps: [sale(outcome("in-doubt"), "approved")],
  },
  {
    name: "abort-in-time",
    title: "The customer would rather pay in cash",
    rule: abortOnlyTries,
    listed: "sale, cancelled by the cashier",
    steps: [{ deed: "abort", key: "a", trouble: outcome("slow:20"), seenBy: "/abort", ends: unpaid }],
  },
  {
    name: "abort-too-late",
    title: "The customer would rather pay in cash, and has paid by card",
    rule: abortOnlyTries,
    steps: [{ deed: "abort", key: "a", trouble: outcome("abort-too-late"), seenBy: "/abort", ends: ["approved"] }],
  },
  {
    name: "fault-status-200",
    title: "No answer, under faultStatus 200",
    rule: untilFinal,
    settings: { faultStatus: 200 },
    steps: [sale(noAnswer, "approved")],
  },
  {
    name: "huge-amount",
    title: "An amount beyond 2^53",
    rule: ofBank("Resources", "All money fields are integers in minor units (no decimal separators, no floats)."),
    steps: [{ ...sale(undefined, "approved"), amount: "huge" }],
  },
  {
    name: "given-back",
    title: "Sold, and given back",
    rule: ofBank("Endpoints, rule 4", "Do not blindly resend /confirm and /cancel after a timeout."),
    listed: "refund",
    steps: [sale(undefined, "approved"), { deed: "refund", key: "b", of: "a", trouble: noAnswer, ends: ["approved"] }],
  },
  {
    name: "refund-lost",
    title: "A refund that is lost on its way",
    rule: noBlindResend,
    steps: [sale(undefined, "approved"), { deed: "refund", key: "b", of: "a", trouble: lost, ends: [...unpaid, "approved"] }],
  },
  {
    name: "refund-refused",
    title: "A refund that is declined, then one of more than was paid",
    rule: onlyFinal,
    listed: "refund, declined",
    steps: [
      sale(undefined, "approved"),
      { deed: "refund", key: "b", of: "a", trouble: outcome("declined"), ends: unpaid },
      { deed: "refund", key: "c", of: "a", amount: "second", ends: unpaid },
    ],
  },
  {
    name: "refund-of-part",
    title: "Two sales, and a part of the first given back",
    rule: noBlindResend,
    listed: "partial refund",
    steps: [
      { ...sale(undefined, "approved"), amount: "second" },
      { ...sale(undefined, "approved"), key: "b" },
      { deed: "refund", key: "c", of: "a", ends: ["approved"] },
    ],
  },
  {
    name: "refund-till-killed",
    title: "The till is killed with the sale out, then with its refund out",
    rule: key,
    steps: [sale(tillKilled, "approved"), { deed: "refund", key: "b", of: "a", trouble: tillKilled, ends: ["approved"] }],
  },
  {
    name: "receipt-processing",
    title: "Code 44, then docStatus 0, then closed",
    rule: polledUntilClosed,
    steps: [{ deed: "receipt", key: "a", trouble: outcome("slow:12"), ends: ["closed"] }],
  },
  {
    name: "receipt-unprinted",
    title: "Code 15: closed, but not printed",
    rule: unprinted,
    listed: "printer out of paper",
    steps: [{ deed: "receipt", key: "a", trouble: outcome("not-printed"), ends: ["unprinted", "closed"] }],
  },
  {
    name: "receipt-lost-start",
    title: "A receipt whose start is lost (code 9)",
    rule: sameExtId,
    steps: [{ deed: "receipt", key: "a", trouble: lost, ends: ["closed", "failed"] }],
  },
  {
    name: "receipt-no-answer",
    title: "A receipt whose answer is lost",
    rule: sameExtId,
    steps: [{ deed: "receipt", key: "a", trouble: noAnswer, ends: ["closed"] }],
  },
  {
    name: "receipt-connection-cut",
    title: "The connection to posline is cut with the receipt out",
    rule: sameExtId,
    steps: [{ deed: "receipt", key: "a", trouble: { kind: "connection-cut" }, ends: ["closed"] }],
  },
  {
    name: "receipt-till-killed",
    title: "The till is killed with the receipt out, then with its return out",
    rule: sameExtId,
    steps: [
      { deed: "receipt", key: "a", trouble: tillKilled, ends: ["closed"] },
      { deed: "return", key: "b", of: "a", trouble: tillKilled, ends: ["closed"] },
    ],
  },
  {
    name: "receipt-errors",
    title: "Code 5, and closed all the same; then code 10, and nothing",
    rule: sameExtId,
    steps: [
      { deed: "receipt", key: "a", trouble: outcome("in-doubt"), ends: ["closed"] },
      { deed: "receipt", key: "b", trouble: outcome("not-fiscalized"), ends: [...unpaid, "closed"] },
    ],
  },
  {
    name: "receipt-exact",
    title: "A receipt beyond 2^53, for 0.001 of an article with four-byte letters",
    rule: ofFiscal(
      "Authentication",
      "sign = Base64 of ... the string (data parameter exactly as sent, followed by merchantId).",
    ),
    steps: [
      { deed: "receipt", key: "b", article: { name: "Tea", quantity: 1_001n }, ends: ["closed"] },
      { deed: "receipt", key: "a", amount: "huge", article: { name: "𝕋𝕖𝕒 茶 🍵 Чай", quantity: 1n }, ends: ["closed"] },
    ],
  },
  {
    name: "receipt-fails-after-payment",
    title: "Paid, then the receipt fails",
    rule: ofFiscal("Errors, recovery", "Code 5 on /sale or /refund: resend with the same documentExtID."),
    steps: [
      sale(undefined, "approved"),
      { deed: "receipt", key: "b", of: "a", trouble: outcome("internal-error") },
      { deed: "receipt", key: "b", of: "a", ends: ["closed"] },
    ],
  },
  {
    name: "return",
    title: "Two receipts, and the return of the first",
    rule: sameExtId,
    steps: [
      { deed: "receipt", key: "a", ends: ["closed"] },
      { deed: "receipt", key: "c", amount: "second", ends: ["closed"] },
      { deed: "return", key: "b", of: "a", trouble: noAnswer, ends: ["closed"] },
    ],
  },
  {
    name: "cash-in-doubt",
    title: "Cash whose answer is lost, that is lost itself, and beyond 2^53 with the till killed",
    rule: ofFiscal(
      "Errors, recovery",
      "Timeout on /deposit or /withdraw: call /check_status first; only on code 9 resend with the same documentExtID, amount and operation type.",
    ),
    steps: [
      { deed: "cash-in", key: "a", trouble: noAnswer, ends: ["closed"] },
      { deed: "cash-in", key: "b", trouble: lost, ends: ["closed", "failed"] },
      { deed: "cash-in", key: "c", amount: "huge", trouble: tillKilled, ends: ["closed"] },
    ],
  },
  {
    name: "qr-given-back",
    title: "Paid by QR twice, then a part of the first given back",
    rule: saveTrans,
    steps: [
      { deed: "qr", key: "a", amount: "second", ends: ["approved"] },
      { deed: "qr", key: "c", ends: ["approved"] },
      { deed: "qr-refund", key: "b", of: "a", ends: ["approved"] },
    ],
  },
  {
    name: "qr-no-answer",
    title: "Paid by QR beyond 2^53, and an answer to /check is lost",
    rule: askedByTrans,
    steps: [{ deed: "qr", key: "a", amount: "huge", trouble: noAnswer, at: "/check", ends: ["approved"] }],
  },
  {
    name: "qr-declined",
    title: "A QR payment that is declined",
    rule: shownUntilFinal,
    steps: [{ deed: "qr", key: "a", trouble: outcome("declined"), ends: unpaid }],
  },
  {
    name: "qr-till-killed",
    title: "The till is killed with a QR payment out, then with its refund out",
    rule: qrNoResend,
    steps: [
      { deed: "qr", key: "a", amount: "second", trouble: tillKilled, ends: ["approved"] },
      { deed: "qr-refund", key: "b", of: "a", trouble: tillKilled },
    ],
  },
  {
    name: "qr-refund-in-doubt",
    title: "A QR refund whose answer is lost, then one that is lost itself",
    rule: qrNoResend,
    steps: [
      { deed: "qr", key: "a", amount: "second", ends: ["approved"] },
      { deed: "qr-refund", key: "b", of: "a", trouble: noAnswer },
      { deed: "qr", key: "c", amount: "second", ends: ["approved"] },
      { deed: "qr-refund", key: "d", of: "c", trouble: lost },
    ],
  },
];

/** The scenarios as Markdown, for docs/rehearse.md; what happens in each, `--list` prints. */
export function scenarioTable(): string {
  const rows = scenarios.map(({ name, listed = "" }) => `| \`${name}\` | ${listed} |`);
  return ["| name | on acquirers' lists |", "| --- | --- |", ...rows].join("\n");
}

/** Those in which money is lost most often: a minute's worth of them. */
export const quick: readonly string[] = [
  ...["declined", "refused-at-start", "no-answer-carried-out", "no-answer-not-carried-out", "posline-killed", "till-killed"],
  ...["twice-at-once", "key-reused", "error-in-doubt", "refund-lost", "receipt-no-answer", "receipt-unprinted", "qr-no-answer"],
];
