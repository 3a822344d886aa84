import { contracts } from "../../contract/contracts.ts";
import { settlingRulesOf } from "../../contract/settling.ts";
import { type JsonObject, looseInteger, objectIn } from "../../core/json-object.ts";
import { hasCode } from "../../settle/proof.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import { absentCodes, codeText, type Refusal, refusalRow, rightRefused } from "./answers.ts";
import type { Asker, TerminalAnswer } from "./asker.ts";
import type { Row, Sentence, Sentences } from "./check.ts";
import type { FollowedToEnd, RightBody } from "./operations.ts";
import { againRows, ended, endFinding, follow, having, namesEnd, orNothing, wrongRows } from "./operations.ts";

/** Receipts, returns and cash in the drawer. */

/** Each is for fiscal alone. */
const of = (fiscal: Sentence): Sentences => ({ fiscal });

const polled = of("Errors, recovery: do not resend; poll /check_status until docStatus 1.");
const retryKey = of("Endpoints, rule 2: is the retry key to find and reuse the same document.");

const cash: RightBody = async (asker, name) => ({ documentExtID: asker.key(name), amount: asker.sale.amount });
const sold: RightBody = async (asker, name) => receiptBody(asker, name);
const asked: RightBody = async (asker) => (await receipt(asker)).question[1];
const copy: RightBody = async (asker) => ({ documentID: (await endOfReceipt(asker)).json["documentID"] });
const rights = { "/deposit": cash, "/withdraw": cash, "/sale": sold, "/refund": sold, "/check_status": asked, "/abort": asked };

const wrongs = wrongRows({ ...rights, "/check_copy": copy, "/dates_report": async () => ({ dateFrom: "2026-11-28" }) }, [
  [
    "wrong-date",
    "from 28.11.2026 on",
    of("Errors: 14 | INVALID_DATE_FORMAT"),
    having("dateFrom", "28.11.2026"),
    { fiscal: 14 },
  ],
  ["of-nothing", "of 0 or less", of("Limits: amount in /deposit and /withdraw | greater than 0"), having("amount", 0, -1)],
  ["without-items", "without items", of("Limits: items in /sale and /refund | non-empty"), having("items", [])],
]);

const rows: readonly Row[] = [
  ["check-status", "a receipt, followed to docStatus 1", polled, (asker) => endFinding(asker, receipt(asker))],
  ...againRows(receipt),
  ...wrongs,
  ["check-copy", "a copy of the receipt", of("Endpoints: /check_copy requires documentID."), copyOfReceipt],
  ["return", "a return, followed to docStatus 1", polled, (asker) => endFinding(asker, returned(asker))],
  ["same-key", "a receipt and a return twice", of("Endpoints, rule 3: resending the same request"), documentsTwice],
  ["deposit-twice", "a deposit twice by its documentExtID", retryKey, (asker) => cashTwice(asker, "/deposit", 1)],
  ["withdraw-twice", "a withdrawal twice by its documentExtID", retryKey, (asker) => cashTwice(asker, "/withdraw", -1)],
  ["x-report", "an X report, not printed", of("Shift metrics: returned by /close_shift and /x_report"), xReport],
];

const refusals: readonly Refusal[] = [
  ["not-paid", "that is not paid", of("Errors: 8 | DOCUMENT_NOT_PAID"), badReceipt("unpaid", "cashAmount", -1)],
  ["change", "with change for a card", of("Errors: 11 | CHANGE_ONLY_FOR_CASH"), badReceipt("change", "cashlessAmount", 1)],
];

export const documents: readonly Row[] = [
  ...rows,
  ...refusals.map(refusalRow),
  ["close-shift", "the shift is closed, and opened again", of("States: shiftStatus 1 = open, 2 = closed."), shiftClosed],
];

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
    const followed = await follow(asker, [what, route, { ...receiptBody(asker, what), ...(await more()) }]);
    if (followed.end !== followed.start) return followed;
    const asked = await asker.ask(...followed.question);
    return { ...followed, polls: [asked], end: namesEnd(asker, asked) ? asked : undefined };
  });

function receipt(asker: Asker): Promise<FollowedToEnd> {
  return documentIn(asker, "receipt", "/sale", async () => ({}));
}

const endOfReceipt = async (asker: Asker) => ended(asker, await receipt(asker));

const parentOf = async (asker: Asker) => ({ parentDocID: documentOf(await endOfReceipt(asker)), ...employee });

const returned = (asker: Asker) => documentIn(asker, "return", "/refund", () => parentOf(asker));

async function documentsTwice(asker: Asker): Promise<CaseResult> {
  const sale = sameDocument(await endOfReceipt(asker), await asker.ask("/sale", receiptBody(asker)), "receipt");
  const { end } = (await returned(asker).catch(orNothing)) ?? {};
  if (sale.verdict === "failed" || end === undefined) return sale;
  const again = await asker.ask("/refund", { ...receiptBody(asker, "return"), ...(await parentOf(asker)) });
  const back = sameDocument(end, again, "return");
  return back.verdict === "failed" ? back : sale;
}

async function copyOfReceipt(asker: Asker): Promise<CaseResult> {
  const { documentID } = (await endOfReceipt(asker)).json;
  if (documentID === undefined) return untested("The receipt has no documentID to ask by");
  const copy = await asker.ask("/check_copy", { documentID });
  if (copy.code === absentCodes.fiscal) return failed(`It has no copy of its own document ${documentID}${codeText(copy)}`);
  if (copy.status === "error") return rightRefused(asker, "/check_copy", copy);
  const { documentID: other = documentID, items } = copy.json;
  if (String(other) !== String(documentID)) return failed(`Asked for document ${documentID}, it copied ${other}`);
  const { itemName: name = itemName } = objectIn(Array.isArray(items) && items[0]);
  return name === itemName ? passed(`It gave a copy of document ${other}`) : failed(`It copied ${itemName} as ${String(name)}`);
}

/** @param sign Of what becomes of the drawer's cash. */
async function cashTwice(asker: Asker, route: string, sign: 1 | -1): Promise<CaseResult> {
  const body = await cash(asker, route.slice(1));
  const before = await shiftField(asker, "cash");
  const made = await asker.ask(route, body);
  if (made.status === "error") return rightRefused(asker, route, made);
  const asked = await asker.ask("/check_status", { documentExtID: body["documentExtID"] });
  if (asked.code === absentCodes.fiscal) return failed(`Asked about its ${route}, it answered that there is none (code 9)`);
  const finding = sameDocument(made, await asker.ask(route, body), route);
  const changed = Number(await shiftField(asker, "cash")) - Number(before);
  if (!Number.isNaN(changed) && changed !== sign * asker.sale.amount)
    return failed(`Two times the same ${route} of ${asker.sale.amount} changed the cash by ${changed}`);
  return finding.verdict === "not tested" && !Number.isNaN(changed)
    ? passed(`It changed the cash by ${changed} once`)
    : finding;
}

const shiftField = async (asker: Asker, name: string) => looseInteger((await asker.ask("/check_shift")).json[name]);

/** It ends no shift, and counts what was sold in it. */
async function xReport(asker: Asker): Promise<CaseResult> {
  const { end } = (await receipt(asker).catch(orNothing)) ?? {};
  const before = await shiftField(asker, "shiftStatus");
  const report = await asker.ask("/x_report", { skipReceipt: true, ...employee });
  if (report.status === "error") return rightRefused(asker, "/x_report", report);
  const after = await shiftField(asker, "shiftStatus");
  if (after !== before) return failed(`It says shiftStatus ${after} after an X report, and said ${before} before`);
  const back = (await returned(asker).catch(orNothing))?.end;
  const counted = { saleCount: end, saleSum: end, moneyBackCount: back, moneyBackSum: back };
  const [none] =
    Object.entries(counted).find(([name, made]) => made !== undefined && looseInteger(report.json[name]) === 0) ?? [];
  return none === undefined ? passed("The shift goes on") : failed(`After a receipt and a return its X report says ${none} 0`);
}

/** Any other value of openOrdersOperation behaves as none. */
async function shiftClosed(asker: Asker): Promise<CaseResult> {
  const steps = { "/close_shift": { openOrdersOperation: "posline", ...employee }, "/open_shift": {} };
  for (const [route, body] of Object.entries(steps)) {
    const answer = await asker.ask(route, body);
    if (answer.status === "error") return rightRefused(asker, route, answer);
    const [status, wanted] = [await shiftField(asker, "shiftStatus"), route === "/open_shift" ? 1 : 2];
    if ((status ?? wanted) !== wanted) return failed(`After ${route} it says shiftStatus ${status}`);
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
