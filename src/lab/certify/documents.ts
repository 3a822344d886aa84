import { contracts } from "../../contract/contracts.ts";
import { settlingRulesOf } from "../../contract/settling.ts";
import { type JsonObject, looseInteger, objectIn } from "../../core/json-object.ts";
import { hasCode } from "../../settle/proof.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import { asks, asksOf, codeText, noDocument, type Refusal, refusalRow, refused, shapeFinding, shown } from "./answers.ts";
import { type AskedEnd, againRows } from "./asked-again.ts";
import type { Asker, TerminalAnswer } from "./asker.ts";
import { type Row, type Sentence, sellingChecks } from "./check.ts";
import { ended, type FollowedToEnd, follow, namesEnd } from "./follow.ts";
import { having, type RightBody, wrongRows } from "./wrong-bodies.ts";

/** Receipts, returns and cash in the drawer. */

const polled: Sentence = "Errors, recovery: do not resend; poll /check_status until docStatus 1.";
const resent: Sentence =
  "Endpoints, rule 3: resending the same request with the same documentExtID returns the existing result or continues processing the same operation.";
const retryKey: Sentence = "Endpoints, rule 2: is the retry key to find and reuse the same document.";
const metrics: Sentence = "Shift metrics: returned by /close_shift and /x_report; all optional";
const shiftStates: Sentence = "States and transitions: Shift states: shiftStatus 1 = open, 2 = closed.";
const notZero: Sentence = "Limits: amount in /deposit and /withdraw | greater than 0";
const notEmpty: Sentence = "Limits: items in /sale and /refund | non-empty";
const notPaid: Sentence = "Errors: 8 | DOCUMENT_NOT_PAID | document not fully paid";
const change: Sentence = "Errors: 11 | CHANGE_ONLY_FOR_CASH | change allowed only for cash";
const badDate: Sentence = "Errors: 14 | INVALID_DATE_FORMAT | invalid date format (for example in /dates_report)";

const rows: readonly Row[] = [
  ["fiscal", "check-status", "a receipt, followed to docStatus 1", polled, receiptEnds],
  ...againRows("fiscal", "/check_status", "documentExtID", askedReceipt),
  ["fiscal", "check-copy", "a copy of the receipt", "Endpoints: /check_copy requires documentID.", copyOfReceipt],
  ["fiscal", "return", "a return, followed to docStatus 1", polled, returnEnds],
  ["fiscal", "same-key", "a receipt and a return twice by their documentExtID", resent, documentsTwice],
  ["fiscal", "deposit-twice", "a deposit twice by its documentExtID", retryKey, (asker) => cashTwice(asker, "/deposit", 1)],
  [
    "fiscal",
    "withdraw-twice",
    "a withdrawal twice by its documentExtID",
    retryKey,
    (asker) => cashTwice(asker, "/withdraw", -1),
  ],
  ["fiscal", "x-report", "an X report, not printed", metrics, xReport],
];

const cash: RightBody = async (asker, name) => ({ documentExtID: asker.key(name), amount: asker.sale.amount });
const sold: RightBody = async (asker, name) => receiptBody(asker, name);

const wrongs = wrongRows("fiscal", { "/deposit": cash, "/withdraw": cash, "/sale": sold, "/refund": sold }, [
  ["of-nothing", "of 0 or less", notZero, having("amount", 0, -1)],
  ["without-items", "without items", notEmpty, having("items", [])],
]);

const refusals: readonly Refusal[] = [
  ["fiscal", "not-paid", "for a receipt that is not paid", badReceipt("unpaid", "cashAmount", -1), undefined, notPaid],
  ["fiscal", "change", "for a receipt with change for a card", badReceipt("change", "cashlessAmount", 1), undefined, change],
  ["fiscal", "wrong-date", "for a report from 28.11.2026 on", asks("/dates_report", { dateFrom: "28.11.2026" }), 14, badDate],
  [
    "fiscal",
    "no-copy",
    "for a copy of document 2^53-1",
    asks("/check_copy", { documentID: Number.MAX_SAFE_INTEGER }),
    9,
    noDocument,
  ],
  ["fiscal", "abort-unknown", "to abort what there is none of", asksOf("/abort", "documentExtID", "none"), 9, noDocument],
];

const dayRows: readonly Row[] = [["fiscal", "close-shift", "the shift is closed, and opened again", shiftStates, shiftClosed]];

export const documents = sellingChecks([...rows, ...wrongs, ...refusals.map(refusalRow)], dayRows);

/** In letters of two bytes. */
const itemName = "posline certify \u0416";

/** Of some requests: the others go without it. */
const employee = { employeeName: "posline certify" };

function receiptBody(asker: Asker, name = "receipt", field = "cashAmount", tooMuch = 0): JsonObject {
  const { amount } = asker.sale;
  const items = [{ itemId: "1", itemName, itemUnit: "pc", itemQty: 1000, itemAmount: amount }];
  return { documentExtID: asker.key(name), items, payments: { [field]: amount + tooMuch } };
}

/** A receipt that is paid by too little or too much. */
function badReceipt(name: string, field: string, tooMuch: number) {
  return (asker: Asker) => asker.ask("/sale", receiptBody(asker, name, field, tooMuch));
}

const documentOf = ({ json }: TerminalAnswer) => (json["documentID"] === undefined ? undefined : String(json["documentID"]));

/** A document as it was answered, and asked about: also if its first answer said that it is closed. */
const documentIn = (asker: Asker, what: string, route: string, more: () => Promise<JsonObject>): Promise<FollowedToEnd> =>
  asker.once(what, async () => {
    const followed = await follow(asker, { what, name: what, route, body: { ...receiptBody(asker, what), ...(await more()) } });
    if (followed.end !== followed.start) return followed;
    const asked = await asker.ask("/check_status", { documentExtID: followed.key });
    return { ...followed, polls: [asked], end: namesEnd(asker, asked) ? asked : undefined };
  });

const receipt = (asker: Asker) => documentIn(asker, "receipt", "/sale", async () => ({}));

const endOfReceipt = async (asker: Asker) => ended(asker, await receipt(asker));

async function askedReceipt(asker: Asker): Promise<AskedEnd> {
  return { end: await endOfReceipt(asker), body: { documentExtID: asker.key("receipt") } };
}

async function receiptEnds(asker: Asker): Promise<CaseResult> {
  return documentFinding(asker, await receipt(asker));
}

const parentOf = async (asker: Asker) => ({ parentDocID: documentOf(await endOfReceipt(asker)), ...employee });

const returned = (asker: Asker) => documentIn(asker, "return", "/refund", () => parentOf(asker));

async function returnEnds(asker: Asker): Promise<CaseResult> {
  return documentFinding(asker, await returned(asker));
}

function documentFinding(asker: Asker, followed: FollowedToEnd): CaseResult {
  const end = ended(asker, followed);
  const [made, id] = [documentOf(followed.start), documentOf(end)];
  if (made !== undefined && id !== made) return failed(`It made document ${made}, and /check_status says ${id}`);
  return shapeFinding(asker, "/check_status", end, `Document ${id ?? "without a number"} has docStatus 1`);
}

async function documentsTwice(asker: Asker): Promise<CaseResult> {
  const end = await endOfReceipt(asker);
  const sale = sameDocument(end, await asker.ask("/sale", receiptBody(asker)), "receipt");
  const back = sale.verdict === "failed" ? undefined : await returned(asker).catch(() => undefined);
  if (back?.end === undefined) return sale;
  const again = await asker.ask("/refund", { ...receiptBody(asker, "return"), ...(await parentOf(asker)) });
  const refund = sameDocument(back.end, again, "return");
  return refund.verdict === "failed" ? refund : sale;
}

async function copyOfReceipt(asker: Asker): Promise<CaseResult> {
  const end = await endOfReceipt(asker);
  const id = documentOf(end);
  if (id === undefined) return untested("The receipt has no documentID to ask by");
  const copy = await asker.ask("/check_copy", { documentID: end.json["documentID"] });
  if (copy.status === "error") return failed(`It has no copy of its own document ${id}${codeText(copy)}`);
  const shape = shapeFinding(asker, "/check_copy", copy, `It gave a copy of document ${id}`);
  const other = documentOf(copy) ?? id;
  const { items } = copy.json;
  const name = objectIn(Array.isArray(items) ? items[0] : undefined)["itemName"] ?? itemName;
  if (name !== itemName) return failed(`It copied an item of the name ${itemName} as ${String(name)}`);
  return shape.verdict === "passed" && other !== id ? failed(`Asked for document ${id}, it copied ${other}`) : shape;
}

/** @param sign Of what becomes of the drawer's cash. */
async function cashTwice(asker: Asker, route: string, sign: 1 | -1): Promise<CaseResult> {
  const { amount } = asker.sale;
  const body = { documentExtID: asker.key(route.slice(1)), amount };
  const before = await cashIn(asker);
  const made = await asker.ask(route, body);
  if (made.status === "error") return refused(asker, route, made);
  const { code } = await asker.ask("/check_status", { documentExtID: body.documentExtID });
  if (code === 9) return failed(`Asked about its ${route}, it answered that there is none (code 9)`);
  const again = await asker.ask(route, body);
  const after = await cashIn(asker);
  const changed = before === undefined || after === undefined ? undefined : sign * (after - before);
  if (changed !== undefined && changed !== amount)
    return failed(`Two times the same ${route} of ${amount} changed the cash by ${sign * changed}`);
  const finding = sameDocument(made, again, route);
  return finding.verdict === "not tested" && changed !== undefined
    ? passed(`${route} changed the cash by ${amount} once`)
    : finding;
}

/** It ends no shift, and counts what was sold in it. */
async function xReport(asker: Asker): Promise<CaseResult> {
  const isSold = (await receipt(asker).catch(() => undefined))?.end !== undefined;
  const before = await shiftStatus(asker);
  const report = await asker.ask("/x_report", { skipReceipt: true, ...employee });
  if (report.status === "error") return refused(asker, "/x_report", report);
  const after = await shiftStatus(asker);
  if (after !== before) return failed(`It says shiftStatus ${after} after an X report, and said ${before} before`);
  const none = ["saleCount", "saleSum"].find((name) => isSold && looseInteger(report.json[name]) === 0);
  if (none !== undefined) return failed(`After a receipt its X report says ${none} 0`);
  return shapeFinding(asker, "/x_report", report);
}

const shiftStatus = async (asker: Asker) => String((await asker.ask("/check_shift")).json["shiftStatus"]);

/** Any other value of openOrdersOperation behaves as none. */
async function shiftClosed(asker: Asker): Promise<CaseResult> {
  const closed = await shown(asker, "/close_shift", { openOrdersOperation: "posline", ...employee });
  if (closed.verdict !== "passed") return closed;
  for (const [route, number] of [
    ["", 2],
    ["/open_shift", 1],
  ] as const) {
    const opened = route === "" ? closed : await shown(asker, route, {});
    if (opened.verdict !== "passed") return opened;
    const status = await shiftStatus(asker);
    if (looseInteger(status) !== number) return failed(`After ${route || "/close_shift"} it says shiftStatus ${status}`);
  }
  return passed("The shift was closed, and is open again");
}

/** Whether an error says that the document is still being made, or lacks its print alone. */
const isThere = (code: number | undefined) =>
  hasCode(contracts.fiscal.finals.pendingCodes, code) || code === settlingRulesOf("fiscal", "/sale")?.print?.code;

function sameDocument(made: TerminalAnswer, again: TerminalAnswer, what: string): CaseResult {
  if (again.status === "error" && !isThere(again.code)) {
    return failed(`Sent once more under its documentExtID, the ${what} was refused${codeText(again)}`);
  }
  const [first, second] = [documentOf(made), documentOf(again)];
  if (first === undefined || second === undefined)
    return untested(`The answers have no documentID to tell one ${what} from two`);
  if (first !== second) return failed(`Two times the same ${what} made documents ${first} and ${second}`);
  return passed(`Sent once more under its documentExtID, the ${what} is document ${first} still`);
}

/** The drawer's cash, if the terminal tells it. */
async function cashIn(asker: Asker): Promise<number | undefined> {
  const { json } = await asker.ask("/check_shift");
  return looseInteger(json["cash"]);
}
