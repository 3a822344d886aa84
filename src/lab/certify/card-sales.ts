import { setTimeout as pause } from "node:timers/promises";
import { isObject, type JsonObject, objectIn } from "../../core/json-object.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import { codeText, type Refusal, refusalRow, refused, shapeFinding } from "./answers.ts";
import { type AskedEnd, againRows } from "./asked-again.ts";
import { type Asker, CheckEnd, dataIn, type TerminalAnswer } from "./asker.ts";
import { type Row, type Sentence, sellingChecks } from "./check.ts";
import { ended, type FollowedToEnd, follow, namesEnd } from "./follow.ts";
import { having, type RightBody, wrongRows } from "./wrong-bodies.ts";

/** Card operations: each is started, and followed to its result. */

const bankEnds: Sentence =
  "Endpoints, rule 1: status success with data.status APPROVED, or status error with data.status ERROR or REVERSED.";
const payId: Sentence = "What the service does: pay_id is the idempotency key and the state-recovery key.";
const noPrint: Sentence = "Status query request: omits print_data from the response when transaction data is returned";
const abort: Sentence = "Endpoints: attempts to stop the operation of pay_id; may return final transaction data";
const late: Sentence =
  "States and transitions: operation already approved | APPROVED | response may carry final transaction data";
const notBoth: Sentence = "Financial operation request: tips and cashback must not both be greater than zero.";
const pair: Sentence =
  "Terminal and merchant resolution, rule 3: When both are sent they must be a valid pair in the current configuration.";
const noOriginal: Sentence = "Errors: -16 | original transaction not found";

const rows: readonly Row[] = [
  ["bank", "sale", "a sale, followed to its end", bankEnds, (asker) => bankEnd(asker, "/sale")],
  ["bank", "second-start", "the same pay_id twice at once", payId, secondStart],
  ...againRows("bank", "/check", "pay_id", askedSale),
  ["bank", "no-print-data", "no_print_data", noPrint, noPrintData],
  ["bank", "abort", "a sale is aborted", abort, saleAborted],
  ["bank", "abort-after-end", "an ended sale is aborted", late, abortedAfterEnd],
  ["bank", "abort-of-others", "a sale after aborts of others", abort, saleAfterAborts],
  ["bank", "refund", "a refund, followed to its end", bankEnds, (asker) => bankEnd(asker, "/refund")],
  ["bank", "cancel", "a sale is cancelled", bankEnds, saleCancelled],
  ["bank", "preauth", "a preauthorisation, followed to its end", bankEnds, (asker) => bankEnd(asker, "/preauth")],
  ["bank", "confirm", "its confirmation, followed to its end", bankEnds, (asker) => bankEnd(asker, "/confirm")],
  ["bank", "xreport", "an X report, followed to its end", bankEnds, (asker) => bankEnd(asker, "/xreport")],
  ["bank", "same-key", "the same pay_id twice", payId, startedAgain],
  ["bank", "no-original", "an rrn that there is none of", noOriginal, withoutOriginal],
];

/** The route of what an operation refers to. */
const originals: Readonly<Record<string, string>> = { "/refund": "/sale", "/cancel": "/sale", "/confirm": "/preauth" };

const rightBody =
  (route: string): RightBody =>
  async (asker, name) => ({ ...bankBody(asker, name), ...(await referring(asker, route)) });

const rights = Object.fromEntries(
  ["/sale", "/preauth", "/confirm", "/cancel", "/refund"].map((route) => [route, rightBody(route)]),
);

/** What a wrong request has begun is stopped again, as far as it can be. */
const stopped = (asker: Asker, { pay_id }: JsonObject) => asker.ask("/abort", { pay_id });

const wrongs = wrongRows(
  "bank",
  rights,
  [
    ["tips-and-cashback", "with tips and cashback", notBoth, (body) => [{ ...body, tips: 1, cashback: 1 }]],
    ["unknown-currency", "in no currency", "Errors: -47 | unsupported currency", having("currency_name", "POSLINE"), -47],
  ],
  stopped,
);

const refusals: readonly Refusal[] = [
  ["bank", "no-pair", "for no pair of terminal and merchant", saleForNoPair, undefined, pair],
  ["bank", "abort-unknown", "to abort what there is none of", abortUnknown, -15, "Errors: -15 | transaction not found"],
];

const dayRows: readonly Row[] = [
  ["bank", "close-shift", "the day is closed, followed to its end", bankEnds, (asker) => bankEnd(asker, "/close-shift")],
];

export const cardSales = sellingChecks([...rows, ...wrongs, ...refusals.map(refusalRow)], dayRows);

function bankBody(asker: Asker, name: string): JsonObject {
  const { amount, currency } = asker.sale;
  return { pay_id: asker.key(name), amount, currency_name: currency };
}

const followBank = (asker: Asker, name: string, ask?: () => Promise<TerminalAnswer>) =>
  follow(asker, { what: "sale", name, route: "/sale", body: bankBody(asker, name) }, ask);

/** Routes whose requests have no amount. */
const reports = ["/xreport", "/close-shift"];

/** Optional fields that change nothing: the first sale goes without them. */
const optional = { language: "en", no_printing: false, txn_config: {} };

/** The rrn of what a route refers to. @throws CheckEnd if that wasn't approved. */
async function referring(asker: Asker, route: string): Promise<JsonObject> {
  const of = originals[route];
  if (of === undefined) return {};
  const original = ended(asker, await operationOf(asker, of));
  const { rrn } = dataIn(original);
  if (bankStatus(original) !== "APPROVED") throw new CheckEnd(untested(`${of} ended ${bankStatus(original)}`));
  if (rrn === undefined) throw new CheckEnd(untested(`${of} has no rrn to refer to`));
  return { rrn };
}

async function bodyOf(asker: Asker, route: string): Promise<JsonObject> {
  const name = route.slice(1);
  const body = reports.includes(route) ? { pay_id: asker.key(name) } : bankBody(asker, name);
  return route === "/sale" ? body : { ...body, ...optional, ...(await referring(asker, route)) };
}

/** One operation of a route, whose key has the route's name. */
const operationOf = (asker: Asker, route: string): Promise<FollowedToEnd> =>
  asker.once(route, async () => {
    const name = route.slice(1);
    return follow(asker, { what: name, name, route, body: await bodyOf(asker, route) });
  });

const endOfSale = async (asker: Asker) => ended(asker, await operationOf(asker, "/sale"));

async function askedSale(asker: Asker): Promise<AskedEnd> {
  return { end: await endOfSale(asker), body: { pay_id: asker.key("sale") } };
}

/** What names a bank's operation in its result. */
const bankIdentity = (answer: TerminalAnswer) => [dataIn(answer)["txn_id"], dataIn(answer)["rrn"]].map(String).join(", rrn ");

const bankStatus = (answer: TerminalAnswer) => String(dataIn(answer)["status"]);

async function bankEnd(asker: Asker, route: string): Promise<CaseResult> {
  const { start, polls, ...followed } = await operationOf(asker, route);
  const end = ended(asker, { start, polls, ...followed });
  const odd = [start, ...polls].find((answer) => answer.status !== "success" && !namesEnd(asker, answer));
  if (odd !== undefined) return failed(`It answered about a ${route} in progress with an error${codeText(odd)}`);
  return endFinding(asker, end, `${route} ended ${bankStatus(end)}`);
}

/** Judges a result: its status fits, and it has what a result has. */
function endFinding(asker: Asker, end: TerminalAnswer, why: string): CaseResult {
  const status = bankStatus(end);
  const fitting = status === "APPROVED" ? "success" : "error";
  if (end.status !== fitting) return failed(`It answered data.status ${status} with status ${String(end.status)}`);
  return shapeFinding(asker, "/check", end, why);
}

/** Each operation that came about is started once more. A cancellation has the key of its sale, and a report tells no two apart. */
async function startedAgain(asker: Asker): Promise<CaseResult> {
  const same: string[] = [];
  for (const route of ["/sale", "/refund", "/preauth", "/confirm"]) {
    const { end, isRefused } = await operationOf(asker, route).catch(() => ({ end: undefined, isRefused: true }));
    if (end === undefined || isRefused) continue;
    const { txn_id, rrn } = dataIn(end);
    if (txn_id === undefined && rrn === undefined) continue;
    const name = route.slice(1);
    const { end: again } = await follow(asker, { what: name, name, route, body: await bodyOf(asker, route) });
    if (again === undefined) continue;
    const [first, second] = [bankIdentity(end), bankIdentity(again)];
    if (first !== second)
      return failed(`${route} sent twice under one pay_id made two operations: txn_id ${first}, and ${second}`);
    same.push(route);
  }
  if (same.length === 0) return untested("No result has a txn_id or an rrn to tell one operation from two");
  return passed(`Sent twice under one pay_id, each is one operation: ${same.join(", ")}`);
}

async function secondStart(asker: Asker): Promise<CaseResult> {
  const body = bankBody(asker, "twice");
  const followed = await followBank(asker, "twice", () => asker.ask("/sale", body));
  const ends = [ended(asker, followed), await asker.ask("/check", { pay_id: followed.key })];
  if (followed.meanwhile !== undefined && namesEnd(asker, followed.meanwhile)) ends.push(followed.meanwhile);
  const [one, ...others] = ends.map(bankIdentity);
  const other = others.find((each) => each !== one);
  if (other !== undefined) return failed(`Started twice under one pay_id, it made two operations: txn_id ${one}, and ${other}`);
  return passed(`Started twice under one pay_id, it is one operation: txn_id ${one}`);
}

/** Under the pay_id of the sale that it cancels. */
async function saleCancelled(asker: Asker): Promise<CaseResult> {
  const sold = ended(asker, await followBank(asker, "cancel"));
  if (bankStatus(sold) !== "APPROVED") return untested(`The sale ended ${bankStatus(sold)}`);
  const answer = await asker.ask("/cancel", { ...bankBody(asker, "cancel"), rrn: dataIn(sold)["rrn"] });
  if (answer.status === "error" && !namesEnd(asker, answer)) return refused(asker, "/cancel", answer);
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
  const { end, body } = await askedSale(asker);
  const without = await asker.ask("/check", { ...body, no_print_data: true });
  if (!namesEnd(asker, without)) return failed("Asked with no_print_data, it no longer tells the end");
  if (isObject(dataIn(without)["print_data"])) return failed("Asked with no_print_data, it answered with print_data");
  if (!isObject(dataIn(end)["print_data"])) return untested("It has no print_data to leave out");
  return passed("With no_print_data it leaves print_data out");
}

async function saleAborted(asker: Asker): Promise<CaseResult> {
  const followed = await followBank(asker, "abort", () => asker.ask("/abort", { pay_id: asker.key("abort") }));
  const end = ended(asker, followed);
  const status = bankStatus(end);
  const { meanwhile: answer } = followed;
  const isEnd = answer !== undefined && namesEnd(asker, answer);
  if (answer?.status === "error" && !isEnd) return untested(`It refused /abort${codeText(answer)}`);
  if (isEnd && bankStatus(answer) !== status) return failed(`/abort said ${bankStatus(answer)}, and /check ${status}`);
  return endFinding(asker, end, `After /abort the sale ended ${status}`);
}

async function abortedAfterEnd(asker: Asker): Promise<CaseResult> {
  const { end, body } = await askedSale(asker);
  if (bankStatus(end) !== "APPROVED") return untested(`The sale ended ${bankStatus(end)}`);
  await asker.ask("/abort", body);
  const after = bankStatus(await asker.ask("/check", body));
  if (after !== "APPROVED") return failed(`After /abort of an approved sale /check said ${after}`);
  return passed("After /abort of an approved sale it is still APPROVED");
}

/** Code -21: cancelled by user. That may be so once. */
async function saleAfterAborts(asker: Asker): Promise<CaseResult> {
  const { body } = await askedSale(asker);
  for (const name of ["after-abort", "after-abort-2"]) {
    await asker.ask("/abort", body);
    await abortUnknown(asker);
    const end = ended(asker, await followBank(asker, name));
    if (end.code !== -21) return passed(`A sale after aborts of others ended ${bankStatus(end)}`);
  }
  return failed("Twice a sale after aborts of others was cancelled (code -21)");
}

function abortUnknown(asker: Asker): Promise<TerminalAnswer> {
  return asker.ask("/abort", { pay_id: asker.key("none") });
}

/** It may be refused, or end without success: a terminal may have to ask its host. */
async function withoutOriginal(asker: Asker): Promise<CaseResult> {
  for (const [route] of Object.entries(originals)) {
    const name = `no-original-${route.slice(1)}`;
    const body = { ...bankBody(asker, name), rrn: "0".repeat(12) };
    const followed = await follow(asker, { what: `${route} of no original`, name, route, body });
    const { end, isRefused, start } = followed;
    if (isRefused && start.code !== -16 && start.code !== -80)
      return failed(`It refused ${route} of no original${codeText(start)}; the contract has -16`);
    if (!isRefused && bankStatus(end ?? ended(asker, followed)) === "APPROVED")
      return failed(`It approved ${route} of an rrn that there is none of`);
  }
  return passed("It refused them");
}

/** No terminal, no merchant of one, and the first terminal's number with 2^32 more. */
async function saleForNoPair(asker: Asker): Promise<TerminalAnswer> {
  const { terminals } = dataIn(await asker.ask("/terminals"));
  const { terminal, merchant } = objectIn(Array.isArray(terminals) ? terminals[0] : undefined);
  const none = 2 ** 31 - 1;
  const pairs = [
    { terminal: none, merchant: none },
    { terminal, merchant: none },
    { terminal: Number(terminal) + 2 ** 32, merchant },
  ];
  let answer: TerminalAnswer | undefined;
  for (const [index, fields] of pairs.entries()) {
    const body = { ...bankBody(asker, `pair-${index}`), ...fields };
    answer = await asker.ask("/sale", body);
    if (answer.status === "error") continue;
    await stopped(asker, body);
    return answer;
  }
  return answer ?? asker.ask("/terminals");
}
