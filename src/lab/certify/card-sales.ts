import { setTimeout as pause } from "node:timers/promises";
import { type JsonObject, objectIn } from "../../core/json-object.ts";
import { hasCode } from "../../settle/proof.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import { codeText, rightRefused } from "./answers.ts";
import { type Asker, CheckEnd, dataIn, type TerminalAnswer } from "./asker.ts";
import type { Row, Sentence, Sentences } from "./check.ts";
import type { FollowedToEnd, RightBody, WrongRow } from "./operations.ts";
import { againRows, ended, endFinding, follow, having, namesEnd, orNothing, wrongRows } from "./operations.ts";

/** Card operations: each is started, and followed to its result. */

/** Each is for bank alone. */
const of = (bank: Sentence): Sentences => ({ bank });

const ends = of(
  "Endpoints, rule 1: status success with data.status APPROVED, or status error with data.status ERROR or REVERSED.",
);
const payId = of("What the service does: pay_id is the idempotency key and the state-recovery key.");
const abort = of("Endpoints: attempts to stop the operation of pay_id; may return final transaction data");

const toItsEnd = (route: string): Row => [
  route.slice(1),
  `${route}, followed to its end`,
  ends,
  (asker) => endFinding(asker, operationOf(asker, route)),
];

const rows: readonly Row[] = [
  toItsEnd("/sale"),
  [
    "no-terminal",
    "a sale that names no terminal",
    of("Terminal and merchant resolution, rule 1: else the first configured terminal"),
    unnamed,
  ],
  ["second-start", "the same pay_id twice at once", payId, secondStart],
  ...againRows(sale),
  ["abort", "a sale is aborted", abort, saleAborted],
  ["abort-after-end", "an ended sale is aborted", of("States: operation already approved | APPROVED"), abortedAfterEnd],
  toItsEnd("/refund"),
  ["cancel", "a sale is cancelled", ends, saleCancelled],
  ...["/preauth", "/confirm", "/xreport"].map(toItsEnd),
  ["same-key", "the same pay_id twice", payId, startedAgain],
];

/** The route of what an operation refers to. */
const originals: Readonly<Record<string, string>> = { "/refund": "/sale", "/cancel": "/sale", "/confirm": "/preauth" };

const cardRoutes = ["/sale", "/preauth", "/confirm", "/cancel", "/refund"];

const rightBody = (route: string): RightBody => {
  return async (asker, name) => ({ ...bankBody(asker, name), ...(await pairIn(asker)), ...(await referring(asker, route)) });
};

/** A pair of terminal and merchant, by default the first. */
async function pairIn(asker: Asker, at = 0): Promise<JsonObject> {
  const { terminals } = dataIn(await asker.ask("/terminals"));
  const { terminal, merchant } = objectIn(Array.isArray(terminals) && terminals.at(at));
  return { terminal, merchant };
}

/** No terminal, no merchant of one, and the terminal's number with 2^32 more. */
const noPairs = (body: JsonObject) => {
  const none = 2 ** 31 - 1;
  if (body["terminal"] === undefined) return [];
  const others = [{ terminal: none, merchant: none }, { merchant: none }, { terminal: Number(body["terminal"]) + 2 ** 32 }];
  return others.map((other) => ({ ...body, ...other }));
};

/** After something for which a terminal may need its host. */
const endPolls = 5;

/** A terminal may ask its host first: what it took, it may refuse in the end. What goes on is stopped. */
async function taken(asker: Asker, { pay_id }: JsonObject): Promise<TerminalAnswer | undefined> {
  for (let count = 0; count < endPolls; count++) {
    const now = await asker.ask("/check", { pay_id });
    if (namesEnd(asker, now)) return hasCode([-16, -29, -47, -80], now.code) ? now : undefined;
    await pause(asker.pace.pollMs);
  }
  await asker.ask("/abort", { pay_id });
  return undefined;
}

const asked: RightBody = async (asker) => (await sale(asker)).question[1];
const started = Object.fromEntries(cardRoutes.map((route) => [route, rightBody(route)]));
const rights = { ...started, "/check": asked, "/abort": asked };

const noCurrency = having("currency_name", "POSLINE");
const noOriginals = having("rrn", "0".repeat(12));
const tipped = (body: JsonObject) => (body["amount"] === undefined ? [] : [{ ...body, tips: 1, cashback: 1 }]);

const wrongs: readonly WrongRow[] = [
  ["no-original", "for an unknown rrn", of("Errors: -16 | original transaction not found"), noOriginals, { bank: -16 }],
  ["no-pair", "for no pair", of("Terminal and merchant resolution, rule 3: they must be a valid pair"), noPairs],
  ["tips-and-cashback", "with tips and cashback", of("Limits: tips and cashback | not both greater than zero"), tipped],
  ["unknown-currency", "in no currency", of("Errors: -47 | unsupported currency"), noCurrency, { bank: -47 }],
];

export const cardSales: readonly Row[] = [...rows, ...wrongRows(rights, wrongs, taken), toItsEnd("/close-shift")];

function bankBody(asker: Asker, name: string): JsonObject {
  const { amount, currency } = asker.sale;
  return { pay_id: asker.key(name), amount, currency_name: currency };
}

const followBank = (asker: Asker, name: string, ask?: () => Promise<TerminalAnswer>) =>
  follow(asker, [name, "/sale", bankBody(asker, name)], ask);

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
  const body = cardRoutes.includes(route)
    ? bankBody(asker, name)
    : { pay_id: asker.key(name), ...(route === "/xreport" && (await pairIn(asker, -1))) };
  return route === "/sale" ? body : { ...body, ...optional, ...(await referring(asker, route)) };
}

/** One operation of a route, whose key has the route's name. */
const operationOf = (asker: Asker, route: string): Promise<FollowedToEnd> =>
  asker.once(route, async () => follow(asker, [route.slice(1), route, await bodyOf(asker, route)]));

function sale(asker: Asker): Promise<FollowedToEnd> {
  return operationOf(asker, "/sale");
}

/** What names a bank's operation in its result. */
const bankIdentity = (answer: TerminalAnswer) => `txn_id ${dataIn(answer)["txn_id"]}, rrn ${dataIn(answer)["rrn"]}`;
const noIdentity = "txn_id undefined, rrn undefined";

const bankStatus = (answer: TerminalAnswer) => String(dataIn(answer)["status"]);

/** Each operation that came about is started once more. A cancellation has the key of its sale, and a report tells no two apart. */
async function startedAgain(asker: Asker): Promise<CaseResult> {
  const same: string[] = [];
  for (const route of ["/sale", "/refund", "/preauth", "/confirm"]) {
    const { end } = (await operationOf(asker, route).catch(orNothing)) ?? {};
    if (end === undefined || bankIdentity(end) === noIdentity) continue;
    const { end: again } = await follow(asker, [route.slice(1), route, await bodyOf(asker, route)]);
    const [first, second] = [end, again ?? end].map(bankIdentity);
    if (first !== second) return failed(`${route} sent twice under one pay_id made two operations: ${first}, and ${second}`);
    same.push(route);
  }
  if (same.length === 0) return untested("No result has a txn_id or an rrn to tell one operation from two");
  return passed(`Sent twice under one pay_id, each is one operation: ${same.join(", ")}`);
}

/** Only what names no terminal is accused: what else is wrong with it, is so with the first pair as well. */
async function unnamed(asker: Asker): Promise<CaseResult> {
  const { start } = await sale(asker);
  if (start.status !== "error") return passed("It took a sale that names none");
  const named = { ...bankBody(asker, "named"), ...(await pairIn(asker)) };
  const { status } = (await follow(asker, ["named", "/sale", named])).start;
  return status === "error"
    ? untested(`It refused the sale${codeText(start)}`)
    : failed("It takes a sale for the first terminal, and none without");
}

async function secondStart(asker: Asker): Promise<CaseResult> {
  const { key, meanwhile, ...followed } = await followBank(asker, "twice", () => asker.ask("/sale", bankBody(asker, "twice")));
  const told = [ended(asker, { key, meanwhile, ...followed }), await asker.ask("/check", { pay_id: key }), meanwhile];
  const ends = told.flatMap((each) => (each !== undefined && namesEnd(asker, each) ? [bankIdentity(each)] : []));
  if (new Set(ends).size > 1) return failed(`Started twice under one pay_id, it made two operations: ${ends.join("; ")}`);
  return passed(`Started twice under one pay_id, it is one operation: ${ends[0]}`);
}

/** Under the pay_id of the sale that it cancels. */
async function saleCancelled(asker: Asker): Promise<CaseResult> {
  const sold = ended(asker, await followBank(asker, "cancel"));
  if (bankStatus(sold) !== "APPROVED") return untested(`The sale ended ${bankStatus(sold)}`);
  const answer = await asker.ask("/cancel", { ...bankBody(asker, "cancel"), rrn: dataIn(sold)["rrn"] });
  if (answer.status === "error" && !namesEnd(asker, answer)) return rightRefused(asker, "/cancel", answer);
  for (let count = 0; count < endPolls; count++) {
    const now = await asker.ask("/check", { pay_id: asker.key("cancel") });
    if (namesEnd(asker, now) && (bankStatus(now) === "REVERSED" || bankIdentity(now) !== bankIdentity(sold)))
      return passed(`After /cancel it answers ${bankStatus(now)}`);
    if (now.status === "error" && !namesEnd(asker, now))
      return failed(`After /cancel it answers about the sale with an error${codeText(now)}`);
    await pause(asker.pace.pollMs);
  }
  return passed("After /cancel it still answers with the sale's result");
}

async function saleAborted(asker: Asker): Promise<CaseResult> {
  const followed = await followBank(asker, "abort", () => asker.ask("/abort", { pay_id: asker.key("abort") }));
  const end = ended(asker, followed);
  const { meanwhile = end } = followed;
  const [told, status] = [meanwhile, end].map(bankStatus);
  if (namesEnd(asker, meanwhile) && told !== status) return failed(`/abort said ${told}, and /check ${status}`);
  if (meanwhile.status === "error" && !namesEnd(asker, meanwhile)) return rightRefused(asker, "/abort", meanwhile);
  return passed(`After /abort the sale ended ${status}`);
}

/** Neither it nor the next sale is stopped. Code -21 is cancelled by user: that may be so once. */
async function abortedAfterEnd(asker: Asker): Promise<CaseResult> {
  const { question, ...followed } = await sale(asker);
  const status = bankStatus(ended(asker, { question, ...followed }));
  if (status !== "APPROVED") return untested(`The sale ended ${status}`);
  for (const name of ["after-abort", "after-abort-2"]) {
    await asker.ask("/abort", question[1]);
    await asker.ask("/abort", { pay_id: asker.key("none") });
    const after = bankStatus(await asker.ask(...question));
    if (after !== status) return failed(`After /abort of an approved sale /check said ${after}`);
    if (ended(asker, await followBank(asker, name)).code !== -21)
      return passed("It is still APPROVED, and the next one goes on");
  }
  return failed("Twice a sale after aborts of others was cancelled (code -21)");
}
