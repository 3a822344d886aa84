import { validateExactly } from "../../contract/schema.ts";
import type { ContractName } from "../../core/call.ts";
import { isTexts, type JsonObject, looseInteger } from "../../core/json-object.ts";
import { failed, passed } from "../report/judgement.ts";
import { refusalFinding } from "./answers.ts";
import { type Asker, dataIn, type TerminalAnswer } from "./asker.ts";
import { type CertifyCheck, checkOf, type Sentence } from "./check.ts";

/** What each answer must keep, whatever was asked: judged of all that a service answered in the run. */

interface Told extends TerminalAnswer {
  readonly route: string;
  /** What was asked. */
  readonly body: JsonObject;
}

/** How an answer breaks a rule; undefined if it doesn't. */
type Rule = (told: Told, all: readonly Told[], service: ContractName) => string | undefined;

type KeptRow = readonly [name: string, title: string, sentences: Partial<Record<ContractName, Sentence>>, rule: Rule];

const statusAndCode: Sentence =
  "Endpoints, Response model: status (string 'success' or 'error', required), code (int32, 0 on success, required)";
const codeOrNull: Sentence = "Response envelope: code | integer or null";

const rows: readonly KeptRow[] = [
  ["fields", "The fields of its answers", { bank: codeOrNull, qr: codeOrNull, fiscal: statusAndCode }, fields],
  [
    "codes",
    "The codes of its answers",
    {
      bank: "Errors: A response with status 'error' carries code (integer) and message.",
      qr: "Errors: An error response has status 'error', code (typically 1) and message",
      fiscal: statusAndCode,
    },
    codes,
  ],
  ["in-progress", "data.status", { bank: "States and transitions: IN_PROGRESS is never returned as data.status." }, words],
  [
    "results",
    "The results of its operations",
    { bank: "Transaction result: auth (string, on approved), error (string, on error)" },
    results,
  ],
  ["card-number", "The card's number", { bank: "Transaction result: card_num (string, masked)" }, cardNumber],
  [
    "operations",
    "The operations that it lists",
    {
      bank: "Errors: -80 | operation not supported",
      fiscal: "Endpoints: operations: array of strings, route names without leading slash",
    },
    listed,
  ],
  ["own-key", "The key in its answers", { fiscal: "Document: documentExtID | string | external document id" }, ownKey],
  ["same-facts", "A document's numbers", { fiscal: "Document: fiscalNum | string | fiscal document number" }, sameFacts],
];

/** Requests with an empty body that lack what they need, so that nothing is begun. */
const incomplete = ["/sale", "/preauth", "/confirm", "/cancel", "/refund", "/check", "/abort"];

export const keptChecks = (service: ContractName): readonly CertifyCheck[] =>
  rows.flatMap(([name, title, { [service]: sentence }, rule]) =>
    sentence === undefined ? [] : [checkOf(service, name, title, sentence, (asker) => judge(asker, name, rule))],
  );

async function judge(asker: Asker, name: string, rule: Rule) {
  const { service, probe } = asker.contract;
  await asker.ask(probe.route);
  // What no route takes is refused the same way, so that these tell whether a route is there.
  for (const route of name === "operations" && service === "bank" ? incomplete : []) {
    const refusal = refusalFinding(await asker.ask(route, {}), `to ${route} without what it needs`);
    if (refusal.verdict !== "passed") return refusal;
  }
  const all = asker.exchanges.flatMap(({ route, body, answers: [answer] }) =>
    route === undefined || answer === undefined ? [] : [{ ...answer, route, body }],
  );
  for (const told of all) {
    const problem = rule(told, all, service);
    if (problem !== undefined) return failed(`Asked ${told.route}, it ${problem}`);
  }
  return passed(`${all.length} answers keep it`);
}

/** Fields of a success that the contract doesn't call optional, and those that it leaves out. */
const returned: Readonly<Record<string, readonly string[]>> = {
  "/open_shift": ["shiftID", "fiscalID", "shiftOpenAt"],
  "/check_shift": ["isShiftOpen", "shiftStatus"],
  "/get_info": ["fiscalData"],
};
const leftOut: Readonly<Record<string, readonly string[]>> = { "/x_report": ["fiscalShiftID", "fiscalShiftNum"] };

function fields({ route, json, status }: Told, _all: readonly Told[], service: ContractName): string | undefined {
  const problem = validateExactly(service, route, json);
  if (problem !== undefined) return `answered what the contract has otherwise: ${problem.message}`;
  if (service !== "fiscal") return undefined;
  const names = status === "success" ? (returned[route] ?? []) : [];
  const lacking = names.find((name) => json[name] === undefined);
  if (lacking !== undefined) return `answered without ${lacking}`;
  const more = leftOut[route]?.find((name) => json[name] !== undefined);
  if (more !== undefined) return `answered with ${more}, which that route leaves out`;
  const time = ["docTime", "printTime"].find((name) => !/^(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?$/.test(String(json[name] ?? "")));
  if (time !== undefined) return `answered with a ${time} that isn't written as yyyy-MM-dd HH:mm:ss`;
  const { isShiftOpen, shiftStatus } = json;
  const isOpen = isShiftOpen === undefined ? undefined : String(isShiftOpen) === "true";
  if (isOpen === undefined || shiftStatus === undefined || isOpen === (looseInteger(shiftStatus) === 1)) return undefined;
  return `answered with isShiftOpen ${isOpen} and shiftStatus ${shiftStatus}`;
}

function codes({ status, json, code }: Told, _all: readonly Told[], service: ContractName): string | undefined {
  if (status === "error") return code === undefined || code === 0 ? `answered an error with code ${json["code"]}` : undefined;
  return service === "fiscal" && code !== 0 ? `answered a success with code ${json["code"]}` : undefined;
}

const ends = ["APPROVED", "ERROR", "REVERSED"];

/** Codes that say how an operation ended: cancelled, declined, timed out. */
const endCodes = [-21, -20, -54];

function words(told: Told): string | undefined {
  const { status } = dataIn(told);
  return status === undefined || ends.includes(String(status)) ? undefined : `answered data.status ${status}, which is no end`;
}

function results(told: Told): string | undefined {
  const { route, status, code } = told;
  const data = dataIn(told);
  if (route === "/check" && status === "error" && endCodes.includes(Number(code)) && data["status"] === undefined)
    return `answered with code ${code} how an operation ended, and without its data`;
  // A report's result isn't shown; a card is in those of the others.
  if (data["status"] !== "APPROVED" || data["card_num"] === undefined) return undefined;
  const lacking = ["txn_id", "rrn", "auth"].find((name) => data[name] === undefined);
  return lacking && `answered that it is approved, and without its ${lacking}`;
}

function cardNumber(told: Told): string | undefined {
  return /\d{12,}/.test(String(dataIn(told)["card_num"])) ? "answered with the card's number, which isn't masked" : undefined;
}

/** What is listed is supported, and nothing else. */
function listed({ route, status, code }: Told, all: readonly Told[], service: ContractName): string | undefined {
  const told = all.find((each) => each.route === "/supported_operations" && each.status === "success");
  const operations = told === undefined ? undefined : (dataIn(told)["operations"] ?? told.json["operations"]);
  if (!isTexts(operations) || route === "/supported_operations" || route === "/posline_certify") return undefined;
  const isListed = operations.includes(route.slice(1));
  // Fiscal has no code for an operation that isn't supported.
  const isTaken = service === "bank" ? code !== -80 : status === "success" || isListed;
  if (isListed === isTaken) return undefined;
  return `answered ${isTaken ? "what it doesn't list" : "that there is none, and lists it"}`;
}

function ownKey({ route, json, body }: Told): string | undefined {
  const [asked, answered] = [body["documentExtID"], json["documentExtID"]];
  if (route === "/abort" || asked === undefined || (answered ?? asked) === asked) return undefined;
  return `answered with documentExtID ${answered}, and not the one that it was asked with`;
}

function sameFacts({ json }: Told, all: readonly Told[]): string | undefined {
  if (json["documentID"] === undefined) return undefined;
  const same = all.filter((each) => each.json["documentID"] === json["documentID"]);
  const odd = ["fiscalID", "fiscalNum", "documentExtID"].find(
    (name) => new Set(same.flatMap((each) => each.json[name] ?? [])).size > 1,
  );
  return odd && `answered another ${odd} than before for document ${json["documentID"]}`;
}
