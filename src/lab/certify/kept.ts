import { isUtf8 } from "node:buffer";
import { validateExactly } from "../../contract/schema.ts";
import type { ContractName } from "../../core/call.ts";
import { isObject, isTexts, type JsonObject, looseInteger, objectIn } from "../../core/json-object.ts";
import { parseObject } from "../../envelope/json.ts";
import { type CaseResult, failed, passed } from "../report/judgement.ts";
import { needing, qrError } from "./answers.ts";
import { type AskedQuestion, type Asker, dataIn, type TerminalAnswer } from "./asker.ts";
import { both, type Row, type Sentence, type Sentences } from "./check.ts";
import { oneInFlight, stx } from "./transport.ts";

/** What each answer must keep, whatever was asked: judged of all that a service answered in the run. */

/** An answer, and what was asked and came with it. */
type Told = Omit<AskedQuestion, "answers"> & TerminalAnswer & { readonly service: ContractName; readonly count: number };

/** How an answer breaks a rule, in words behind "it answered"; undefined or false if it doesn't. */
type Rule = (told: Told, all: readonly Told[]) => string | false | undefined;

const model: Sentence = "Endpoints, Response model: status (string 'success' or 'error', required), code (int32, 0 on success";
const code: Sentence = "Response envelope: code | integer or null";
const statuses = both("Response envelope: status | string 'success' or 'error' | always", model);
const bankError: Sentence = "Errors: carries code (integer) and message.";
const open: Sentences = { bank: "States: IN_PROGRESS is never returned", qr: "States: status success without data" };
const names: Sentences = {
  qr: "System entry: operations is the authoritative list of currently available actions",
  bank: "Errors: -80 | operation not supported",
  fiscal: "Endpoints: operations: array of strings",
};

const rules: readonly (readonly [name: string, title: string, sentences: Sentences, rule: Rule])[] = [
  ["nothing-around", "no byte around an answer, and none unasked", both("Serial: No ACK/NACK layer", stx), nothingAround],
  ["one-answer", "one answer to a request", oneInFlight, ({ count, isSeveral }) => count > 1 && !isSeveral && `${count} times`],
  ["json", "each answer is one JSON object in UTF-8, with a status", statuses, oneObject],
  ["fields", "the fields of its answers", { bank: code, qr: code, fiscal: model }, fields],
  ["codes", "the codes of its answers", { bank: bankError, qr: qrError, fiscal: model }, codes],
  ["in-progress", "what is in progress", open, progress],
  ["results", "the results of its operations", { bank: "Transaction result: auth (string, on approved)" }, results],
  ["operations", "the operations that it lists", names, listed],
  ["own-key", "the key in its answers", { fiscal: "Document: documentExtID | string | external document id" }, ownKey],
  ["same-facts", "a document's numbers", { fiscal: "Document: fiscalNum | string | fiscal document number" }, sameFacts],
];

export const keptRows = rules.map(
  ([name, title, sentences, rule]): Row => [name, title, sentences, (asker) => judge(asker, rule)],
);

async function judge(asker: Asker, rule: Rule): Promise<CaseResult> {
  const { contract, exchanges } = asker;
  const { service, routes } = contract;
  await asker.once("all", async () => {
    for (const route of needing(contract)) await asker.ask(route, {});
    for (const { path, effect } of routes) if (effect === "none" && !needing(contract).includes(path)) await asker.ask(path);
  });
  const all = exchanges.flatMap(({ answers, ...asked }) =>
    answers.slice(0, 1).map((answer): Told => ({ ...asked, ...answer, service, count: answers.length })),
  );
  for (const told of all) {
    const problem = rule(told, all);
    if (typeof problem === "string") return failed(`Asked ${told.asked}, it answered ${problem}`);
  }
  return passed(`${all.length} answers keep it`);
}

/** Of a terminal that repeats its answers, what comes around them may be a copy: it is accused of that alone. */
function nothingAround({ strayBytes, strayHead, unaskedBytes }: Told, all: readonly Told[]) {
  if (all.some(({ count, isSeveral }) => count > 1 && !isSeveral)) return undefined;
  if (strayBytes > 0) return `with ${strayBytes} bytes beside that belong to no frame (it began with ${strayHead})`;
  return unaskedBytes > 0 && `after ${unaskedBytes} bytes that came unasked`;
}

function oneObject({ payload, status }: Told) {
  if (!isUtf8(payload)) return "what is not UTF-8";
  if (parseObject(payload.toString("utf8")) === undefined) return "what is not one JSON object";
  return status !== "success" && status !== "error" && "without a status of success or error";
}

/** Fields of a success that the contract doesn't call optional, and those that it leaves out. */
const returned: Readonly<Record<string, readonly string[]>> = {
  "/open_shift": ["shiftID", "fiscalID", "shiftOpenAt"],
  "/check_shift": ["isShiftOpen", "shiftStatus"],
  "/get_info": ["fiscalData"],
};
const leftOut: Readonly<Record<string, readonly string[]>> = { "/x_report": ["fiscalShiftID", "fiscalShiftNum"] };

function fields({ service, route = "", json, status }: Told) {
  const problem = validateExactly(service, route, json);
  if (problem !== undefined) return `what the contract has otherwise: ${problem.message}`;
  const slashed = namesIn(json).find((name) => name.startsWith("/"));
  if (slashed !== undefined) return `${slashed} with a slash`;
  if (service !== "fiscal") return undefined;
  const lacking = status === "success" && returned[route]?.find((name) => json[name] === undefined);
  if (lacking) return `without ${lacking}`;
  const more = leftOut[route]?.find((name) => json[name] !== undefined);
  if (more !== undefined) return `with ${more}, which that route leaves out`;
  const time = ["docTime", "printTime"].find((name) => !/^(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?$/.test(String(json[name] ?? "")));
  if (time !== undefined) return `a ${time} that isn't written as yyyy-MM-dd HH:mm:ss`;
  const { isShiftOpen, shiftStatus } = json;
  const isSame = (String(isShiftOpen) === "true") === (looseInteger(shiftStatus) === 1);
  return isShiftOpen !== undefined && !isSame && `isShiftOpen ${isShiftOpen} and shiftStatus ${shiftStatus}`;
}

/** The operations that an answer lists, of whichever payment system. */
function namesIn({ operations, data, systems }: JsonObject): readonly string[] {
  const inner = [data, ...(Array.isArray(systems) ? systems : [])].filter(isObject).flatMap(namesIn);
  return isTexts(operations) ? [...operations, ...inner] : inner;
}

function codes({ service, status, json, code: number }: Told) {
  if (status === "error") return (number ?? 0) === 0 && `an error with code ${json["code"]}`;
  return service === "fiscal" && number !== 0 && `a success with code ${json["code"]}`;
}

function progress({ service, route, json, status: told }: Told) {
  const { rrn, status = "ERROR" } = objectIn(json["data"]);
  const isOpen = route === "/check" && told === "success" && (json["data"] ?? null) !== null && !rrn;
  if (service === "qr") return isOpen && "data, and no rrn";
  return !["APPROVED", "ERROR", "REVERSED"].includes(String(status)) && `data.status ${status}, which is no end`;
}

/** Codes that say how an operation ended: cancelled, declined, timed out. */
const endCodes = [-21, -20, -54];

function results(told: Told) {
  const { route, status, body, code: number } = told;
  const data = dataIn(told);
  if (route === "/check" && status === "error" && endCodes.includes(Number(number)) && data["status"] === undefined)
    return `code ${number}, by which an operation has ended, without its data`;
  const isFitting = (data["status"] === "APPROVED") === (status === "success");
  if (data["status"] !== undefined && !isFitting) return `data.status ${data["status"]} with status ${status}`;
  if (body["no_print_data"] === true && isObject(data["print_data"])) return "print_data, asked with no_print_data";
  if (/^\d{12,}/.test(String(data["card_num"]))) return "a card's number that isn't masked";
  // A report's result isn't shown; a card is in those of the others.
  const isCard = data["status"] === "APPROVED" && data["card_num"] !== undefined;
  const lacking = isCard && ["txn_id", "rrn", "auth"].find((name) => data[name] === undefined);
  return lacking && `that it is approved, without its ${lacking}`;
}

/** What is listed is supported, and nothing else. Fiscal has no code for what isn't supported. */
function listed({ service, route, status, body, code: number }: Told, all: readonly Told[]) {
  if (service === "qr") {
    const told = all.find((each) => each.route === "/check_connection" && each.status === "success");
    const { systems } = told === undefined ? {} : dataIn(told);
    const own = (Array.isArray(systems) ? systems : []).filter(isObject).find(({ name }) => name === body["pay_system"]);
    return (
      own !== undefined && status === "success" && !namesIn(own).includes(String(route).slice(1)) && "what it doesn't list"
    );
  }
  const told = all.find((each) => each.route === "/supported_operations" && each.status === "success");
  const operations = told && namesIn(told.json);
  if (operations === undefined || route === undefined || route === told?.route || route === "/posline_certify")
    return undefined;
  const isListed = operations.includes(route.slice(1));
  const isTaken = service === "bank" ? number !== -80 : status === "success" || isListed;
  return isListed !== isTaken && (isTaken ? "what it doesn't list" : "that there is none, and lists it");
}

function ownKey({ route, json, body }: Told) {
  const [asked, answered] = [body["documentExtID"], json["documentExtID"]];
  return route !== "/abort" && asked !== undefined && (answered ?? asked) !== asked && `documentExtID ${answered} for ${asked}`;
}

/** Of all that was said of a document, by its number or by its key. */
function sameFacts({ json, body }: Told, all: readonly Told[]) {
  for (const [key, one, names] of [
    ["documentID", json, ["fiscalID", "fiscalNum"]],
    ["documentExtID", body, ["documentID"]],
  ] as const) {
    const same = one[key] === undefined ? [] : all.filter((each) => (one === json ? each.json : each.body)[key] === one[key]);
    const odd = names.find((name) => new Set(same.flatMap((each) => each.json[name] ?? [])).size > 1);
    if (odd !== undefined) return `another ${odd} than before for ${key} ${one[key]}`;
  }
  return undefined;
}
