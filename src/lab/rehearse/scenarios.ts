import type { Rule } from "../report/judgement.ts";
import {
  abortOnlyTries,
  askedByTrans,
  key,
  noBlindResend,
  ofBank,
  ofFiscal,
  onlyFinal,
  polledUntilClosed,
  qrKeys,
  qrNoResend,
  sameExtId,
  saveTrans,
  shownUntilFinal,
  unprinted,
  untilFinal,
} from "./contract-rules.ts";
import type { Deed, DeedStep, Scenario, Trouble, Word } from "./scenario.ts";

/** The scenarios, in the order in which they are printed: what is plain first. */

/** A scenario: its name, what happens in it, the sentence that it is about, and its steps. */
type Row = readonly [name: string, title: string, rule: Rule, ...steps: Scenario["steps"]];

/** @param ends As in `DeedStep`. Its key is a, unless `more` says otherwise. */
const ask = (
  deed: Deed,
  ends: Word | readonly Word[] | undefined,
  trouble?: Trouble,
  more: Partial<DeedStep> = {},
): DeedStep => ({ deed, key: "a", ends: typeof ends === "string" ? [ends] : ends, trouble, ...more });

const sale = (ends: Word | readonly Word[] | undefined, trouble?: Trouble, more?: Partial<DeedStep>) =>
  ask("sale", ends, trouble, more);

const unpaid = ["declined", "reversed", "failed"] as const;

/** Nobody can know which: only a false word is wrong. */
const anyTrue = undefined;

const tillKilled: Trouble = { kind: "till-killed" };
const connectionCut: Trouble = { kind: "connection-cut" };
const lost: Trouble = { kind: "lost" };
const cableOut: Trouble = { kind: "cable", ms: 4_000 };
const outcome = (name: string): Trouble => ({ kind: "outcome", outcome: name });
const fault = (name: string): Trouble => ({ kind: "fault", fault: name });
const noAnswer = fault("no-answer");

const dayMs = 86_400_000;

const unknownCodes = ofBank(
  "Errors",
  "Unknown codes are handled as non-retriable; when the financial state is uncertain, recover it via /check.",
);
const apiKeyFailures = ofBank("Errors", "HTTP 401 applies to API key failures.");
const badCrc = ofBank("Endpoints, Serial transport", "a received response frame with a bad CRC counts as not received.");
const minorUnits = ofBank("Resources", "All money fields are integers in minor units (no decimal separators, no floats).");
const noResendOfCancel = ofBank("Endpoints, rule 4", "Do not blindly resend /confirm and /cancel after a timeout.");
const signed = ofFiscal(
  "Authentication",
  "sign = Base64 of ... the string (data parameter exactly as sent, followed by merchantId).",
);
const code5 = ofFiscal("Errors, recovery", "Code 5 on /sale or /refund: resend with the same documentExtID.");
const cashAskedFirst = ofFiscal(
  "Errors, recovery",
  "Timeout on /deposit or /withdraw: call /check_status first; only on code 9 resend with the same documentExtID, amount and operation type.",
);

const rows: readonly Row[] = [
  ["approved", "Approved", onlyFinal, sale("approved")],
  ["declined", "Declined", onlyFinal, sale(unpaid, outcome("declined"))],
  ["reversed", "Reversed", onlyFinal, sale(unpaid, outcome("reversed"))],
  ["cancelled-by-customer", "Cancelled by the customer", onlyFinal, sale(unpaid, outcome("cancelled"))],
  ["card-timeout", "No card comes in time (-54)", onlyFinal, sale(unpaid, outcome("card-timeout"))],
  [
    "refused-at-start",
    "The terminal needs an update (-100), is blocked (-101), and can't sell (-80)",
    unknownCodes,
    sale(unpaid, outcome("update-required")),
    sale(unpaid, outcome("blocked"), { key: "b" }),
    sale(unpaid, outcome("not-supported"), { key: "c" }),
  ],
  ["unauthorized", "posline wants an API key that the till hasn't got (401)", apiKeyFailures, sale(anyTrue)],
  ["no-answer-carried-out", "No answer, carried out", untilFinal, sale("approved", noAnswer)],
  ["no-answer-not-carried-out", "No answer, not carried out", untilFinal, sale([...unpaid, "approved"], lost)],
  // Later than posline waits in a rehearsal.
  ["late-answer", "An answer later than the wait", untilFinal, sale("approved", fault("late:7000"))],
  ["corrupt-answer", "A corrupt answer", badCrc, sale("approved", fault("corrupt"))],
  ["cable-pulled", "The cable is pulled and put back", untilFinal, sale("approved", fault("unplug:2000"))],
  ["line-recovering", "The line is recovering (503)", noBlindResend, sale("approved", { kind: "silence", ms: 6_000 })],
  [
    "cable-out",
    "The cable is out when the sale comes (503), and the till is run once more after it",
    noBlindResend,
    sale("approved", cableOut),
    sale("approved"),
  ],
  ["connection-cut", "The network goes with the sale out", untilFinal, sale("approved", connectionCut)],
  ["posline-killed", "posline is killed with the sale out", untilFinal, sale("approved", { kind: "bridge-killed" })],
  ["till-killed", "The till is killed with the sale out, and run again", key, sale("approved", tillKilled)],
  ["twice-at-once", "The same call twice at once", key, sale("approved", undefined, { twice: true })],
  ["key-reused", "The same key for another amount", key, sale("approved"), sale(anyTrue, undefined, { amount: "second" })],
  ["new-day", "A new day, and the same amount", key, sale("approved"), dayMs, sale("approved", undefined, { key: "b" })],
  ["slow", "The customer takes his time, and no abort is in time", onlyFinal, sale("approved", outcome("abort-too-late"))],
  ["slower", "The customer takes a minute", onlyFinal, sale("approved", outcome("slow:36"))],
  ["patient", "The customer takes more than three minutes", onlyFinal, sale("approved", outcome("slow:99"))],
  [
    "cable-away",
    "The cable is pulled with the sale out, and put back after a minute",
    untilFinal,
    sale("approved", fault("unplug:66000")),
  ],
  ["error-in-doubt", "An error at the start, and carried out all the same", untilFinal, sale("approved", outcome("in-doubt"))],
  [
    "abort-in-time",
    "The customer would rather pay in cash",
    abortOnlyTries,
    ask("abort", unpaid, outcome("slow:20"), { seenBy: "/abort" }),
  ],
  [
    "abort-too-late",
    "The customer would rather pay in cash, and has paid by card",
    abortOnlyTries,
    ask("abort", "approved", outcome("abort-too-late"), { seenBy: "/abort" }),
  ],
  ["fault-status-200", "No answer, under faultStatus 200", untilFinal, sale("approved", noAnswer)],
  ["huge-amount", "An amount beyond 2^53", minorUnits, sale("approved", undefined, { amount: "huge" })],
  [
    "given-back",
    "Sold, and given back",
    noResendOfCancel,
    sale("approved"),
    ask("refund", "approved", noAnswer, { key: "b", of: "a" }),
  ],
  [
    "refund-lost",
    "A refund that is lost on its way",
    noBlindResend,
    sale("approved"),
    ask("refund", [...unpaid, "approved"], lost, { key: "b", of: "a" }),
  ],
  [
    "refund-refused",
    "A refund that is declined, then one of more than was paid",
    onlyFinal,
    sale("approved"),
    ask("refund", unpaid, outcome("declined"), { key: "b", of: "a" }),
    ask("refund", unpaid, undefined, { key: "c", of: "a", amount: "second" }),
  ],
  [
    "refund-of-part",
    "Two sales, and a part of the first given back while the network goes",
    noBlindResend,
    sale("approved", undefined, { amount: "second" }),
    sale("approved", undefined, { key: "b" }),
    ask("refund", "approved", connectionCut, { key: "c", of: "a" }),
  ],
  [
    "refund-till-killed",
    "The till is killed with the sale out, then with its refund out",
    key,
    sale("approved", tillKilled),
    ask("refund", "approved", tillKilled, { key: "b", of: "a" }),
  ],
  [
    "receipt-processing",
    "Code 44, then docStatus 0, then closed",
    polledUntilClosed,
    ask("receipt", "closed", outcome("slow:12")),
  ],
  [
    "receipt-unprinted",
    "Code 15: closed, but not printed",
    unprinted,
    ask("receipt", ["unprinted", "closed"], outcome("not-printed")),
  ],
  ["receipt-lost-start", "A receipt whose start is lost (code 9)", sameExtId, ask("receipt", ["closed", "failed"], lost)],
  ["receipt-no-answer", "A receipt whose answer is lost", sameExtId, ask("receipt", "closed", noAnswer)],
  [
    "receipt-connection-cut",
    "The network goes with the receipt out, then with its return out",
    sameExtId,
    ask("receipt", "closed", connectionCut),
    ask("return", "closed", connectionCut, { key: "b", of: "a" }),
  ],
  [
    "receipt-till-killed",
    "The till is killed with the receipt out, then with its return out",
    sameExtId,
    ask("receipt", "closed", tillKilled),
    ask("return", "closed", tillKilled, { key: "b", of: "a" }),
  ],
  [
    "receipt-errors",
    "Code 5, and closed all the same; then code 10, and nothing",
    sameExtId,
    ask("receipt", "closed", outcome("in-doubt")),
    ask("receipt", [...unpaid, "closed"], outcome("not-fiscalized"), { key: "b" }),
  ],
  [
    "receipt-exact",
    "A receipt beyond 2^53, for 0.001 of an article with four-byte letters",
    signed,
    ask("receipt", "closed", undefined, { key: "b", article: { name: "Tea", quantity: 1_001n } }),
    ask("receipt", "closed", undefined, { amount: "huge", article: { name: "𝕋𝕖𝕒 茶 🍵 Чай", quantity: 1n } }),
  ],
  [
    "receipt-fails-after-payment",
    "Paid, then the receipt fails",
    code5,
    sale("approved"),
    ask("receipt", anyTrue, outcome("internal-error"), { key: "b", of: "a" }),
    ask("receipt", "closed", undefined, { key: "b", of: "a" }),
  ],
  [
    "return",
    "Two receipts, and the return of the first",
    sameExtId,
    ask("receipt", "closed"),
    ask("receipt", "closed", undefined, { key: "c", amount: "second" }),
    ask("return", "closed", noAnswer, { key: "b", of: "a" }),
  ],
  [
    "cash-in-doubt",
    "Cash whose answer is lost, that is lost itself, and beyond 2^53 with the till killed",
    cashAskedFirst,
    ask("cash-in", "closed", noAnswer),
    ask("cash-in", ["closed", "failed"], lost, { key: "b" }),
    ask("cash-in", "closed", tillKilled, { key: "c", amount: "huge" }),
  ],
  [
    "cash-in-outage",
    "Cash while the network goes, then while the cable is out",
    cashAskedFirst,
    ask("cash-in", "closed", connectionCut),
    ask("cash-in", "closed", cableOut, { key: "b" }),
  ],
  [
    "qr-given-back",
    "Paid by QR twice, the second time while the network goes, then a part of the first given back",
    saveTrans,
    ask("qr", "approved", undefined, { amount: "second" }),
    ask("qr", "approved", connectionCut, { key: "c" }),
    ask("qr-refund", "approved", undefined, { key: "b", of: "a" }),
  ],
  [
    "qr-no-answer",
    "Paid by QR beyond 2^53, and an answer to /check is lost",
    askedByTrans,
    ask("qr", "approved", noAnswer, { amount: "huge", at: "/check" }),
  ],
  ["qr-declined", "A QR payment that is declined", shownUntilFinal, ask("qr", unpaid, outcome("declined"))],
  [
    "qr-repeated",
    "The same QR payment twice at once, then once more",
    qrKeys,
    ask("qr", "approved", undefined, { twice: true }),
    ask("qr", "approved"),
  ],
  [
    "qr-till-killed",
    "The till is killed with a QR payment out, then with its refund out",
    qrNoResend,
    ask("qr", "approved", tillKilled, { amount: "second" }),
    ask("qr-refund", anyTrue, tillKilled, { key: "b", of: "a" }),
  ],
  [
    "qr-refund-in-doubt",
    "A QR refund whose answer is lost, then one that is lost itself",
    qrNoResend,
    ask("qr", "approved", undefined, { amount: "second" }),
    ask("qr-refund", anyTrue, noAnswer, { key: "b", of: "a" }),
    ask("qr", "approved", undefined, { key: "c", amount: "second" }),
    ask("qr-refund", anyTrue, lost, { key: "d", of: "c" }),
  ],
];

/** What acquirers' lists call them. */
const listed: Readonly<Record<string, string>> = {
  approved: "sale, approved",
  declined: "sale, declined by the issuer",
  reversed: "reversal",
  "cancelled-by-customer": "sale, cancelled at the PIN pad",
  "card-timeout": "sale, no card presented",
  "no-answer-carried-out": "communication failure after authorisation",
  "no-answer-not-carried-out": "communication failure before authorisation",
  "late-answer": "time-out of the response",
  "cable-pulled": "loss of the connection to the terminal",
  "connection-cut": "loss of the network",
  "till-killed": "power failure at the till",
  "twice-at-once": "duplicate transaction",
  "new-day": "first sale after the day's end",
  "abort-in-time": "sale, cancelled by the cashier",
  "given-back": "refund",
  "refund-refused": "refund, declined",
  "refund-of-part": "partial refund",
  "receipt-unprinted": "printer out of paper",
};

/** What some of them have beside their steps. */
const more: Readonly<Record<string, Pick<Scenario, "settings" | "lasts">>> = {
  unauthorized: { settings: { apiKey: "a-key-of-which-the-till-was-not-told" } },
  "fault-status-200": { settings: { faultStatus: 200 } },
  patient: { lasts: "minutes" },
  "cable-away": { lasts: "a minute" },
  "no-answer-not-carried-out": { lasts: "a minute" },
  slower: { lasts: "a minute" },
  "refund-lost": { lasts: "a minute" },
  "receipt-lost-start": { lasts: "a minute" },
  "cash-in-doubt": { lasts: "a minute" },
};

export const scenarios: readonly Scenario[] = rows.map(([name, title, rule, ...steps]) => ({
  ...{ name, title, rule, steps, ...more[name] },
  ...(listed[name] !== undefined && { listed: listed[name] }),
}));

/** The scenarios as Markdown, for docs/rehearse.md; what happens in each, `--list` prints. */
export function scenarioTable(): string {
  const known = scenarios.filter((each) => each.listed !== undefined);
  const others = scenarios.filter((each) => each.listed === undefined).map(({ name }) => `\`${name}\``);
  const rows = known.map(({ name, listed: words }) => `| \`${name}\` | ${words} |`);
  return ["| name | on acquirers' lists |", "| --- | --- |", ...rows, `| ${others.join(", ")} | on none |`].join("\n");
}

/** Those in which money is lost most often: a minute's worth of them. */
export const quick: readonly string[] = [
  ...["declined", "refused-at-start", "no-answer-carried-out", "no-answer-not-carried-out", "posline-killed", "till-killed"],
  ...["twice-at-once", "key-reused", "error-in-doubt", "refund-lost", "receipt-no-answer", "receipt-unprinted", "qr-no-answer"],
];
