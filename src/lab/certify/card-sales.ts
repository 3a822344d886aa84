import { setTimeout as pause } from "node:timers/promises";
import { isObject, type JsonObject } from "../../core/json-object.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import { codeText, type Refusal, refusalRow, shapeFinding } from "./answers.ts";
import { type Asker, CheckEnd, dataIn, type TerminalAnswer } from "./asker.ts";
import { type Row, type Sentence, sellingChecks } from "./check.ts";
import { ended, type FollowedToEnd, follow, namesEnd } from "./follow.ts";

/** Card operations: each is started, and followed to its result. */

const bankEnds: Sentence =
  "Endpoints, rule 1: status success with data.status APPROVED, or status error with data.status ERROR or REVERSED.";
const noProgress: Sentence = "States and transitions: IN_PROGRESS is never returned as data.status.";
const payId: Sentence = "What the service does: pay_id is the idempotency key and the state-recovery key.";
const noPrint: Sentence = "Status query request: omits print_data from the response when transaction data is returned";
const abort: Sentence = "Endpoints: attempts to stop the operation of pay_id; may return final transaction data";
const late: Sentence =
  "States and transitions: operation already approved | APPROVED | response may carry final transaction data";
const noCurrency: Sentence = "Errors: -47 | unsupported currency";
const masked: Sentence = "Transaction result: card_num (string, masked)";
const notBoth: Sentence = "Financial operation request: tips and cashback must not both be greater than zero.";
const pair: Sentence =
  "Terminal and merchant resolution, rule 3: When both are sent they must be a valid pair in the current configuration.";
const noPair = { terminal: 2 ** 31 - 1, merchant: 2 ** 31 - 1 };

const rows: readonly Row[] = [
  ["bank", "sale", "a sale, followed to its end", bankEnds, (asker) => bankEnd(asker, "/sale")],
  ["bank", "in-progress", "a sale in progress", noProgress, saleInProgress],
  ["bank", "same-key", "the same pay_id twice", payId, saleTwice],
  ["bank", "second-start", "the same pay_id twice at once", payId, secondStart],
  ["bank", "card-number", "the card's number", masked, cardNumber],
  ["bank", "no-print-data", "no_print_data", noPrint, noPrintData],
  ["bank", "language", "language", "Status query request: language (string, optional)", languages],
  ["bank", "abort", "a sale is aborted", abort, saleAborted],
  ["bank", "abort-after-end", "an ended sale is aborted", late, abortedAfterEnd],
  ["bank", "refund", "a refund, followed to its end", bankEnds, (asker) => bankEnd(asker, "/refund", "/sale")],
  ["bank", "cancel", "a sale is cancelled", bankEnds, saleCancelled],
  ["bank", "preauth", "a preauthorisation, followed to its end", bankEnds, (asker) => bankEnd(asker, "/preauth")],
  ["bank", "confirm", "its confirmation, followed to its end", bankEnds, (asker) => bankEnd(asker, "/confirm", "/preauth")],
  ["bank", "xreport", "an X report, followed to its end", bankEnds, (asker) => bankEnd(asker, "/xreport")],
];

/** A sale that isn't refused is stopped again, as far as it can be. */
const badSale = (name: string, fields: JsonObject) => async (asker: Asker) => {
  const body = { ...bankBody(asker, name), ...fields };
  const answer = await asker.ask("/sale", body);
  if (answer.status !== "error") await asker.ask("/abort", { pay_id: body["pay_id"] });
  return answer;
};

const afterSale = async (asker: Asker) => {
  await endOfSale(asker);
  return asker.ask("/check", { pay_id: asker.key("another") });
};

const refusals: readonly Refusal[] = [
  ["bank", "tips-and-cashback", "with tips and cashback", badSale("tips", { tips: 1, cashback: 1 }), undefined, notBoth],
  ["bank", "no-pair", "for no pair of terminal and merchant", badSale("pair", noPair), undefined, pair],
  [
    "bank",
    "unknown-currency",
    "in a currency that there is none of",
    badSale("currency", { currency_name: "POSLINE" }),
    -47,
    noCurrency,
  ],
  ["bank", "other-key", "about another pay_id than the last sale's", afterSale, -15, "Errors: -15 | transaction not found"],
];

const dayRows: readonly Row[] = [
  ["bank", "close-shift", "the day is closed, followed to its end", bankEnds, (asker) => bankEnd(asker, "/close-shift")],
];

export const cardSales = sellingChecks([...rows, ...refusals.map(refusalRow)], dayRows);

function bankBody(asker: Asker, name: string): JsonObject {
  const { amount, currency } = asker.sale;
  return { pay_id: asker.key(name), amount, currency_name: currency };
}

const followBank = (asker: Asker, name: string, ask?: () => Promise<TerminalAnswer>) =>
  follow(asker, { what: "sale", name, route: "/sale", body: bankBody(asker, name) }, ask);

/** Routes whose requests have no amount. */
const reports = ["/xreport", "/close-shift"];

/** One operation of a route, whose key has the route's name. @param of The route of what it refers to. */
const operationOf = (asker: Asker, route: string, of?: string): Promise<FollowedToEnd> =>
  asker.once(route, async () => {
    const name = route.slice(1);
    const original = of === undefined ? undefined : ended(await operationOf(asker, of));
    if (original !== undefined && bankStatus(original) !== "APPROVED")
      throw new CheckEnd(untested(`${of} ended ${bankStatus(original)}`));
    const body = reports.includes(route) ? { pay_id: asker.key(name) } : bankBody(asker, name);
    const { rrn } = original === undefined ? {} : dataIn(original);
    return follow(asker, { what: name, name, route, body: { ...body, ...(rrn !== undefined && { rrn }) } });
  });

const bankSale = (asker: Asker): Promise<FollowedToEnd> => operationOf(asker, "/sale");

const endOfSale = async (asker: Asker) => ended(await bankSale(asker));

/** What names a bank's operation in its result. */
const bankIdentity = (answer: TerminalAnswer) => [dataIn(answer)["txn_id"], dataIn(answer)["rrn"]].map(String).join(", rrn ");

const bankStatus = (answer: TerminalAnswer) => String(dataIn(answer)["status"]);

/** The sale's result as /check gives it with more fields in the question. */
const checkedAgain = (asker: Asker, fields: JsonObject = {}) => asker.ask("/check", { pay_id: asker.key("sale"), ...fields });

async function bankEnd(asker: Asker, route: string, of?: string): Promise<CaseResult> {
  const end = ended(await operationOf(asker, route, of));
  return endFinding(asker, end, `${route} ended ${bankStatus(end)}`);
}

/** Judges a result: its status fits, and it has what a result has. */
function endFinding(asker: Asker, end: TerminalAnswer, why: string): CaseResult {
  const status = bankStatus(end);
  const fitting = status === "APPROVED" ? "success" : "error";
  if (end.status !== fitting) return failed(`It answered data.status ${status} with status ${String(end.status)}`);
  return shapeFinding(asker, "/check", end, why);
}

async function saleInProgress(asker: Asker): Promise<CaseResult> {
  const { start, polls } = await bankSale(asker);
  const open = [start, ...polls].filter((answer) => !namesEnd(asker, answer));
  const named = open.find((answer) => dataIn(answer)["status"] !== undefined);
  if (named !== undefined) return failed(`It answered data.status ${bankStatus(named)}, which is no end`);
  await endOfSale(asker);
  const refused = open.find(({ status }) => status !== "success");
  if (refused !== undefined) return failed(`It answered about a sale in progress with an error${codeText(refused)}`);
  return passed(`In ${open.length} answers before the end data.status was in none`);
}

async function saleTwice(asker: Asker): Promise<CaseResult> {
  const end = await endOfSale(asker);
  const { end: again } = await followBank(asker, "sale");
  if (again === undefined) return untested("The sale that was sent twice had not ended");
  const { txn_id, rrn } = dataIn(end);
  if (txn_id === undefined && rrn === undefined)
    return untested("Its results have no txn_id and no rrn to tell one sale from two");
  const [first, second] = [bankIdentity(end), bankIdentity(again)];
  if (first === second) return passed(`Sent twice under one pay_id, it is one operation: txn_id ${first}`);
  return failed(`Sent twice under one pay_id, it made two operations: txn_id ${first}, and txn_id ${second}`);
}

async function secondStart(asker: Asker): Promise<CaseResult> {
  const body = bankBody(asker, "twice");
  const followed = await followBank(asker, "twice", () => asker.ask("/sale", body));
  const ends = [ended(followed), await asker.ask("/check", { pay_id: followed.key })];
  if (followed.meanwhile !== undefined && namesEnd(asker, followed.meanwhile)) ends.push(followed.meanwhile);
  const [one, ...others] = ends.map(bankIdentity);
  const other = others.find((each) => each !== one);
  if (other !== undefined) return failed(`Started twice under one pay_id, it made two operations: txn_id ${one}, and ${other}`);
  return passed(`Started twice under one pay_id, it is one operation: txn_id ${one}`);
}

async function cardNumber(asker: Asker): Promise<CaseResult> {
  const { card_num: number } = dataIn(await endOfSale(asker));
  if (typeof number !== "string") return untested("Its result has no card_num");
  return /\d{12,}/.test(number)
    ? failed("Its result has the card's number, which isn't masked")
    : passed("The card's number is masked");
}

/** Under the pay_id of the sale that it cancels. */
async function saleCancelled(asker: Asker): Promise<CaseResult> {
  const sold = ended(await followBank(asker, "cancel"));
  if (bankStatus(sold) !== "APPROVED") return untested(`The sale ended ${bankStatus(sold)}`);
  const answer = await asker.ask("/cancel", { ...bankBody(asker, "cancel"), rrn: dataIn(sold)["rrn"] });
  if (answer.status === "error" && !namesEnd(asker, answer)) return untested(`It refused /cancel${codeText(answer)}`);
  for (let count = 0; count < cancelPolls; count++) {
    const now = await asker.ask("/check", { pay_id: asker.key("cancel") });
    if (namesEnd(asker, now) && (bankStatus(now) === "REVERSED" || bankIdentity(now) !== bankIdentity(sold)))
      return endFinding(asker, now, `After /cancel it answers ${bankStatus(now)}`);
    if (now.status === "error" && !namesEnd(asker, now))
      return failed(`After /cancel it answers about the sale with an error${codeText(now)}`);
    await pause(asker.pace.pollMs);
  }
  return passed("After /cancel it still answers with the sale's result");
}

/** Questions after /cancel. What moves a sale to REVERSED, the contract doesn't say. */
const cancelPolls = 5;

async function noPrintData(asker: Asker): Promise<CaseResult> {
  const end = await endOfSale(asker);
  const without = await checkedAgain(asker, { no_print_data: true });
  if (!namesEnd(asker, without)) return failed("Asked with no_print_data, it no longer tells the end");
  if (isObject(dataIn(without)["print_data"])) return failed("Asked with no_print_data, it answered with print_data");
  if (!isObject(dataIn(end)["print_data"])) return untested("It has no print_data to leave out");
  return passed("With no_print_data it leaves print_data out");
}

async function languages(asker: Asker): Promise<CaseResult> {
  const end = await endOfSale(asker);
  const status = bankStatus(end);
  for (const language of ["en", "ru", "xx"]) {
    const answer = await checkedAgain(asker, { language });
    if (bankStatus(answer) === status && answer.status === end.status) continue;
    return failed(`Asked in language ${language}, it answered ${bankStatus(answer)}; without a language ${status}`);
  }
  return passed(`Asked in en, ru and xx, it answered ${status}`);
}

async function saleAborted(asker: Asker): Promise<CaseResult> {
  const followed = await followBank(asker, "abort", () => asker.ask("/abort", { pay_id: asker.key("abort") }));
  const status = bankStatus(ended(followed));
  const { meanwhile: abort } = followed;
  const isEnd = abort !== undefined && namesEnd(asker, abort);
  if (abort?.status === "error" && !isEnd) return untested(`It refused /abort${codeText(abort)}`);
  if (isEnd && bankStatus(abort) !== status) return failed(`/abort said ${bankStatus(abort)}, and /check ${status}`);
  return passed(`After /abort the sale ended ${status}`);
}

async function abortedAfterEnd(asker: Asker): Promise<CaseResult> {
  const status = bankStatus(await endOfSale(asker));
  if (status !== "APPROVED") return untested(`The sale ended ${status}`);
  await asker.ask("/abort", { pay_id: asker.key("sale") });
  const after = bankStatus(await checkedAgain(asker));
  if (after !== "APPROVED") return failed(`After /abort of an approved sale /check said ${after}`);
  return passed("After /abort of an approved sale it is still APPROVED");
}
