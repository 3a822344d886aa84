import { contracts } from "../../contract/contracts.ts";
import { settlingRulesOf } from "../../contract/settling.ts";
import type { ContractName } from "../../core/call.ts";
import { isObject, type JsonObject, looseInteger } from "../../core/json-object.ts";
import { hasCode } from "../../settle/proof.ts";
import { broken, type Finding, held, unseen } from "../report/judgement.ts";
import { asksOf, codeText, type Refusal, refusalCheck, shapeFinding, type Wrong } from "./answers.ts";
import { type Asker, CheckEnd, dataIn, type Sale, type TerminalAnswer } from "./asker.ts";
import { type CertifyCheck, checkOf, type Sentence } from "./check.ts";
import { ended, type FollowedToEnd, follow, namesEnd } from "./follow.ts";

/** What a terminal is asked with an amount: this moves money, and prints. One operation of a kind is judged by several checks. */

type Row = readonly [service: ContractName, name: string, title: string, sentence: Sentence, run: CertifyCheck["run"]];

const bankEnds: Sentence =
  "Endpoints, rule 1: status success with data.status APPROVED, or status error with data.status ERROR or REVERSED.";
const noProgress: Sentence = "States and transitions: IN_PROGRESS is never returned as data.status.";
const payId: Sentence = "What the service does: pay_id is the idempotency key and the state-recovery key.";
const noPrint: Sentence = "Status query request: omits print_data from the response when transaction data is returned";
const abort: Sentence = "Endpoints: attempts to stop the operation of pay_id; may return final transaction data";
const late: Sentence =
  "States and transitions: operation already approved | APPROVED | response may carry final transaction data";
const qrEnds: Sentence =
  "Endpoints, flow rule 2: Continue while the response is success without data; stop on a final rrn or status error.";
const trans: Sentence =
  "Endpoints, responses: data.trans carries it, and it must be saved and used in later /check, /cancel, /refund and /final_confirm requests.";
const selector: Sentence =
  "Payment system selector: pay_system is a case-sensitive string and must be sent exactly as configured.";
const polled: Sentence = "Errors, recovery: do not resend; poll /check_status until docStatus 1.";
const resent: Sentence =
  "Endpoints, rule 3: resending the same request with the same documentExtID returns the existing result or continues processing the same operation.";
const retryKey: Sentence = "Endpoints, rule 2: is the retry key to find and reuse the same document.";

const rows: readonly Row[] = [
  ["bank", "sale", "a sale, followed to its end", bankEnds, saleEnds],
  ["bank", "in-progress", "a sale in progress", noProgress, saleInProgress],
  ["bank", "same-key", "the same pay_id twice", payId, saleTwice],
  ["bank", "no-print-data", "no_print_data", noPrint, noPrintData],
  ["bank", "language", "language", "Status query request: language (string, optional)", languages],
  ["bank", "abort", "a sale is aborted", abort, saleAborted],
  ["bank", "abort-after-end", "an ended sale is aborted", late, abortedAfterEnd],
  ["qr", "payment", "a payment, followed to its end", qrEnds, paymentEnds],
  ["qr", "trans", "a payment's trans", trans, paymentsTrans],
  ["qr", "pay-system", "pay_system in another case", selector, systemInOtherCase],
  ["fiscal", "check-status", "a receipt, followed to docStatus 1", polled, receiptEnds],
  ["fiscal", "same-key", "a receipt twice by its documentExtID", resent, receiptTwice],
  ["fiscal", "check-copy", "a copy of the receipt", "Endpoints: /check_copy requires documentID.", copyOfReceipt],
  ["fiscal", "deposit-twice", "a deposit twice by its documentExtID", retryKey, depositTwice],
];

/** A sale that isn't refused is stopped again, as far as it can be. */
const badSale = (name: string, fields: JsonObject) => async (asker: Asker) => {
  const body = { ...bankBody(asker, name), ...fields };
  const answer = await asker.ask("/sale", body);
  if (answer.status !== "error") await asker.ask("/abort", { pay_id: body["pay_id"] });
  return answer;
};

const tips: Wrong = ["Tips and cashback", "with tips and cashback", badSale("tips", { tips: 1, cashback: 1 })];
const posline = badSale("currency", { currency_name: "POSLINE" });
const currency: Wrong = ["A currency that there is none of", "in a currency that there is none of", posline];
const nothing: Wrong = ["A deposit of 0", "to deposit 0", asksOf("/deposit", "documentExtID", "nothing", { amount: 0 })];
const itemless = asksOf("/sale", "documentExtID", "empty", { items: [] });
const empty: Wrong = ["A receipt without items", "for a receipt without items", itemless];
const notBoth: Sentence = "Financial operation request: tips and cashback must not both be greater than zero.";

const refusals: readonly Refusal[] = [
  ["bank", "tips-and-cashback", tips, undefined, notBoth],
  ["bank", "unknown-currency", currency, -47, "Errors: -47 | unsupported currency"],
  ["fiscal", "deposit-of-nothing", nothing, undefined, "Limits: amount in /deposit and /withdraw | greater than 0"],
  ["fiscal", "receipt-of-nothing", empty, undefined, "Limits: items in /sale and /refund | non-empty"],
];

/** The checks that sell. */
export const saleChecks: readonly CertifyCheck[] = [...rows.map((row) => checkOf(...row)), ...refusals.map(refusalCheck)].map(
  (check) => ({ ...check, sells: true }),
);

function saleOf({ sale }: Asker): Sale {
  if (sale === undefined) throw new CheckEnd(unseen("It needs an amount: --with-sales"));
  return sale;
}

// --- bank

function bankBody(asker: Asker, name: string): JsonObject {
  const { amount, currency } = saleOf(asker);
  return { pay_id: asker.key(name), amount, currency_name: currency };
}

const followBank = (asker: Asker, name: string, ask?: () => Promise<TerminalAnswer>) =>
  follow(asker, { what: "sale", name, route: "/sale", body: bankBody(asker, name) }, ask);

const bankSale = (asker: Asker): Promise<FollowedToEnd> => asker.once("bank sale", () => followBank(asker, "sale"));

const endOfSale = async (asker: Asker) => ended(await bankSale(asker));

/** What names a bank's operation in its result. */
const bankIdentity = (answer: TerminalAnswer) => [dataIn(answer)["txn_id"], dataIn(answer)["rrn"]].map(String).join(", rrn ");

const bankStatus = (answer: TerminalAnswer) => String(dataIn(answer)["status"]);

/** The sale's result as /check gives it with more fields in the question. */
const checkedAgain = (asker: Asker, fields: JsonObject = {}) => asker.ask("/check", { pay_id: asker.key("sale"), ...fields });

async function saleEnds(asker: Asker): Promise<Finding> {
  const end = await endOfSale(asker);
  const status = bankStatus(end);
  const fitting = status === "APPROVED" ? "success" : "error";
  if (end.status !== fitting) return broken(`It answered data.status ${status} with status ${String(end.status)}`);
  return shapeFinding(asker, "/check", end, `The sale ended ${status}`);
}

async function saleInProgress(asker: Asker): Promise<Finding> {
  await endOfSale(asker);
  const { start, polls } = await bankSale(asker);
  const open = [start, ...polls].filter((answer) => !namesEnd(asker, answer));
  const named = open.find((answer) => dataIn(answer)["status"] !== undefined);
  if (named !== undefined) return broken(`It answered data.status ${bankStatus(named)}, which is no end`);
  const refused = open.find(({ status }) => status !== "success");
  if (refused !== undefined) return broken(`It answered about a sale in progress with an error${codeText(refused)}`);
  return held(`In ${open.length} answers before the end data.status was in none`);
}

async function saleTwice(asker: Asker): Promise<Finding> {
  const end = await endOfSale(asker);
  const { end: again } = await followBank(asker, "sale");
  if (again === undefined) return unseen("The sale that was sent twice had not ended");
  const { txn_id, rrn } = dataIn(end);
  if (txn_id === undefined && rrn === undefined)
    return unseen("Its results have no txn_id and no rrn to tell one sale from two");
  const [first, second] = [bankIdentity(end), bankIdentity(again)];
  if (first === second) return held(`Sent twice under one pay_id, it is one operation: txn_id ${first}`);
  return broken(`Sent twice under one pay_id, it made two operations: txn_id ${first}, and txn_id ${second}`);
}

async function noPrintData(asker: Asker): Promise<Finding> {
  const end = await endOfSale(asker);
  const without = await checkedAgain(asker, { no_print_data: true });
  if (!namesEnd(asker, without)) return broken("Asked with no_print_data, it no longer tells the end");
  if (isObject(dataIn(without)["print_data"])) return broken("Asked with no_print_data, it answered with print_data");
  if (!isObject(dataIn(end)["print_data"])) return unseen("It has no print_data to leave out");
  return held("With no_print_data it leaves print_data out");
}

async function languages(asker: Asker): Promise<Finding> {
  const end = await endOfSale(asker);
  const status = bankStatus(end);
  for (const language of ["en", "ru", "xx"]) {
    const answer = await checkedAgain(asker, { language });
    if (bankStatus(answer) === status && answer.status === end.status) continue;
    return broken(`Asked in language ${language}, it answered ${bankStatus(answer)}; without a language ${status}`);
  }
  return held(`Asked in en, ru and xx, it answered ${status}`);
}

async function saleAborted(asker: Asker): Promise<Finding> {
  const followed = await followBank(asker, "abort", () => asker.ask("/abort", { pay_id: asker.key("abort") }));
  const status = bankStatus(ended(followed));
  const { meanwhile: abort } = followed;
  const isEnd = abort !== undefined && namesEnd(asker, abort);
  if (abort?.status === "error" && !isEnd) return unseen(`It refused /abort${codeText(abort)}`);
  if (isEnd && bankStatus(abort) !== status) return broken(`/abort said ${bankStatus(abort)}, and /check ${status}`);
  return held(`After /abort the sale ended ${status}`);
}

async function abortedAfterEnd(asker: Asker): Promise<Finding> {
  const status = bankStatus(await endOfSale(asker));
  if (status !== "APPROVED") return unseen(`The sale ended ${status}`);
  await asker.ask("/abort", { pay_id: asker.key("sale") });
  const after = bankStatus(await checkedAgain(asker));
  if (after !== "APPROVED") return broken(`After /abort of an approved sale /check said ${after}`);
  return held("After /abort of an approved sale it is still APPROVED");
}

// --- fiscal

function receiptBody(asker: Asker): JsonObject {
  const { amount } = saleOf(asker);
  const items = [{ itemId: "1", itemName: "posline certify", itemUnit: "pc", itemQty: 1000, itemAmount: amount }];
  return { documentExtID: asker.key("receipt"), items, payments: { cashAmount: amount } };
}

const documentOf = ({ json }: TerminalAnswer) => (json["documentID"] === undefined ? undefined : String(json["documentID"]));

/** The receipt as it was answered, and asked about: also if its first answer said that it is closed. */
const receipt = (asker: Asker): Promise<FollowedToEnd> =>
  asker.once("receipt", async () => {
    const operation = { what: "receipt", name: "receipt", route: "/sale", body: receiptBody(asker) };
    const followed = await follow(asker, operation);
    if (followed.end !== followed.start) return followed;
    const asked = await asker.ask("/check_status", { documentExtID: followed.key });
    return { ...followed, polls: [asked], end: namesEnd(asker, asked) ? asked : undefined };
  });

async function endOfReceipt(asker: Asker): Promise<TerminalAnswer> {
  const followed = await receipt(asker);
  const { start } = followed;
  return ended(followed, `It refused the receipt${codeText(start)}: ${String(start.json["message"] ?? "")}`);
}

async function receiptEnds(asker: Asker): Promise<Finding> {
  const end = await endOfReceipt(asker);
  const [made, id] = [documentOf((await receipt(asker)).start), documentOf(end)];
  if (made !== undefined && id !== made) return broken(`/sale made document ${made}, and /check_status says ${id}`);
  return shapeFinding(asker, "/check_status", end, `Document ${id ?? "without a number"} has docStatus 1`);
}

async function receiptTwice(asker: Asker): Promise<Finding> {
  const end = await endOfReceipt(asker);
  return sameDocument(end, await asker.ask("/sale", receiptBody(asker)), "receipt");
}

async function copyOfReceipt(asker: Asker): Promise<Finding> {
  const end = await endOfReceipt(asker);
  const id = documentOf(end);
  if (id === undefined) return unseen("The receipt has no documentID to ask by");
  const copy = await asker.ask("/check_copy", { documentID: end.json["documentID"] });
  if (copy.status === "error") return broken(`It has no copy of its own document ${id}${codeText(copy)}`);
  const shape = shapeFinding(asker, "/check_copy", copy, `It gave a copy of document ${id}`);
  const other = documentOf(copy) ?? id;
  return shape.verdict === "held" && other !== id ? broken(`Asked for document ${id}, it copied ${other}`) : shape;
}

async function depositTwice(asker: Asker): Promise<Finding> {
  const { amount } = saleOf(asker);
  const body = { documentExtID: asker.key("deposit"), amount };
  const before = await cashIn(asker);
  const made = await asker.ask("/deposit", body);
  if (made.status === "error") return unseen(`It refused the deposit${codeText(made)}`);
  const again = await asker.ask("/deposit", body);
  const after = await cashIn(asker);
  const grown = before === undefined || after === undefined ? undefined : after - before;
  if (grown !== undefined && grown !== amount) {
    return broken(`Two times the same deposit of ${amount} made the cash grow by ${grown}`);
  }
  const finding = sameDocument(made, again, "deposit");
  return finding.verdict === "not seen" && grown !== undefined ? held(`The cash grew by ${amount} once`) : finding;
}

/** Whether an error says that the document is still being made, or lacks its print alone. */
const isThere = (code: number | undefined) =>
  hasCode(contracts.fiscal.finals.pendingCodes, code) || code === settlingRulesOf("fiscal", "/sale")?.print?.code;

function sameDocument(made: TerminalAnswer, again: TerminalAnswer, what: string): Finding {
  if (again.status === "error" && !isThere(again.code)) {
    return broken(`Sent once more under its documentExtID, the ${what} was refused${codeText(again)}`);
  }
  const [first, second] = [documentOf(made), documentOf(again)];
  if (first === undefined || second === undefined) return unseen(`The answers have no documentID to tell one ${what} from two`);
  if (first !== second) return broken(`Two times the same ${what} made documents ${first} and ${second}`);
  return held(`Sent once more under its documentExtID, the ${what} is document ${first} still`);
}

/** The drawer's cash, if the terminal tells it. */
async function cashIn(asker: Asker): Promise<number | undefined> {
  const { json } = await asker.ask("/check_shift");
  return looseInteger(json["cash"]);
}

// --- qr

/** The first payment system that shows a code and can be asked about it. */
async function systemOf(asker: Asker): Promise<string> {
  const listed = dataIn(await asker.ask("/check_connection"))["systems"];
  const systems = Array.isArray(listed) ? listed.filter(isObject) : [];
  const usable = systems.find(
    ({ operations }) => Array.isArray(operations) && ["showqrcode", "check"].every((each) => operations.includes(each)),
  );
  if (typeof usable?.["name"] === "string") return usable["name"];
  throw new CheckEnd(unseen("/check_connection lists no payment system with showqrcode and check"));
}

function showBody(asker: Asker, system: string, name: string): JsonObject {
  const { amount, currency } = saleOf(asker);
  return { pay_id: asker.key(name), amount, currency, currency_name: currency, pay_system: system };
}

const qrPayment = (asker: Asker) =>
  asker.once("payment", async () => {
    const system = await systemOf(asker);
    const body = showBody(asker, system, "payment");
    return { system, ...(await follow(asker, { what: "payment", name: "payment", route: "/showqrcode", body })) };
  });

const endOfPayment = (payment: FollowedToEnd) => ended(payment, `It refused to show a payment${codeText(payment.start)}`);

async function paymentEnds(asker: Asker): Promise<Finding> {
  const payment = await qrPayment(asker);
  const end = endOfPayment(payment);
  const odd = payment.polls.find((answer) => answer !== end && (answer.json["data"] ?? null) !== null);
  if (odd !== undefined) return broken("In progress it answered with data, and without an rrn");
  const how = end.status === "error" ? `an error${codeText(end)}` : "an rrn";
  return shapeFinding(asker, "/check", end, `The payment ended with ${how}`);
}

async function paymentsTrans(asker: Asker): Promise<Finding> {
  const payment = await qrPayment(asker);
  const end = endOfPayment(payment);
  const { trans } = dataIn(payment.start);
  if (trans === undefined) return unseen("The payment system makes no trans");
  if (end.status === "error") return unseen("The payment was not paid");
  const again = await asker.ask("/check", { pay_id: payment.key, trans, pay_system: payment.system });
  const [first, second] = [dataIn(end)["rrn"], dataIn(again)["rrn"]];
  if (first === second) return held(`Asked by its trans, the payment has rrn ${String(first)} each time`);
  return broken(`Asked by its trans once more, the payment has rrn ${String(second)}, and had ${String(first)}`);
}

async function systemInOtherCase(asker: Asker): Promise<Finding> {
  const system = await systemOf(asker);
  const other = system === system.toLowerCase() ? system.toUpperCase() : system.toLowerCase();
  if (other === system) return unseen(`${system} has no upper or lower case`);
  const answer = await asker.ask("/showqrcode", showBody(asker, other, "case"));
  if (answer.status !== "error") return broken(`It took pay_system ${other} for ${system}`);
  return held(`It refused pay_system ${other} for ${system}`);
}
