import { contracts } from "../../contract/contracts.ts";
import { requiredOf, schemasOf } from "../../contract/schema.ts";
import type { ContractName } from "../../core/call.ts";
import { isObject, type JsonObject, looseInteger } from "../../core/json-object.ts";
import { crc32 } from "../../wire/crc32.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import { type Asker, dataIn, type TerminalAnswer } from "./asker.ts";
import type { Row, Sentence, Sentences } from "./check.ts";

/** What a terminal answers to requests that change nothing: right ones, and wrong ones. */

export const codeText = ({ code }: TerminalAnswer) => (code === undefined ? "" : ` (code ${code})`);

/** Codes that call a request wrong by itself. */
const complaints: Readonly<Record<ContractName, readonly number[]>> = { bank: [-29], qr: [], fiscal: [1, 2, 3] };

/** Judges the refusal of a right request. What an operator chose for bank may be wrong, until a sale was taken. */
export function rightRefused({ contract: { service }, exchanges }: Asker, what: string, answer: TerminalAnswer): CaseResult {
  const why = `It refused ${what}${codeText(answer)}`;
  const isTaken = exchanges.some(({ route, answers: [first] }) => route === "/sale" && first?.status === "success");
  const isAccused = complaints[service].includes(Number(answer.code)) && (service !== "bank" || isTaken);
  return isAccused ? failed(`${why} as a wrong request, and it is a right one`) : untested(why);
}

type Asks = (asker: Asker) => Promise<TerminalAnswer>;

/** The code that a contract has for just this; elsewhere any will do. */
export type Codes = Readonly<Partial<Record<ContractName, number>>>;

/** A request that must be refused, in words behind "a request". */
export type Refusal = readonly [name: string, what: string, sentences: Sentences, asks: Asks, codes?: Codes];

export const refusalRow = ([name, what, sentences, asks, codes]: Refusal): Row => [
  name,
  `a request ${what}`,
  sentences,
  async (asker) => refusalFinding(await asks(asker), what, codes?.[asker.contract.service]),
];

export function refusalFinding(answer: TerminalAnswer, what: string, code?: number): CaseResult {
  if (answer.status !== "error") return failed(`It answered a request ${what} with status ${String(answer.status)}`);
  if (answer.code === undefined) return failed(`It refused a request ${what} without a code`);
  const why = `It refused a request ${what} with code ${answer.code}`;
  return code === undefined || code === answer.code ? passed(why) : failed(`${why}; the contract has ${code}`);
}

export const asks =
  (...asked: Parameters<Asker["ask"]>): Asks =>
  (asker) =>
    asker.ask(...asked);

/** How each service is asked about an operation. */
const questions: Readonly<Record<ContractName, readonly [route: string, body: (key: string) => JsonObject]>> = {
  bank: ["/check", (pay_id) => ({ pay_id })],
  qr: ["/check", (pay_id) => ({ pay_id, trans: "posline", pay_system: "posline" })],
  fiscal: ["/check_status", (documentExtID) => ({ documentExtID })],
};

/** Asks about what there is none of. */
const asksAbout =
  (key: string, written: (body: JsonObject) => string = JSON.stringify): Asks =>
  (asker) => {
    const [route, body] = questions[asker.contract.service];
    return asker.ask(route, written(body(key)));
  };

/** JSON of 4 KiB: white space means nothing in it. */
const long = (json: JsonObject) => JSON.stringify(json).replace("{", `{${" ".repeat(4_096)}`);

const cut = (json: JsonObject) => JSON.stringify(json).slice(0, 9);
const great = `{"documentID":${2n ** 63n - 1n}}`;
const notBase64 = asks("/check_status", undefined, { data: "*posline*" });
const unsigned = asks("/check_shift", {}, { sign: "" });

/** In letters of two bytes. */
const cyrillic = "\u0416".repeat(64);

export const qrError = "Errors: An error response has status 'error', code (typically 1) and message";
const qrEnd = "Endpoints, responses: final error gives status error, code, message.";
const fiscalError = "Errors: Every error response has status 'error', an integer code and optionally message.";
const unparseable = "Errors, rule 2: Unparseable JSON or Base64: code 2.";
const noDocument: Sentence = "Errors: 9 | DOCUMENT_NOT_FOUND | document not found";
export const absent: Sentences = { bank: "Errors: -15 | transaction not found", qr: qrEnd, fiscal: noDocument };
const noRoute: Sentences = { bank: "Errors: -80 | operation not supported", qr: qrError, fiscal: fiscalError };
export const absentCodes = { bank: -15, fiscal: 9 };
const badRequest = "Errors: -29 | invalid request parameters or body";
const missing = "Errors, rule 2: Missing required field: code 3.";
export const lacking: Sentences = { bank: badRequest, qr: "Endpoints: Request bodies (types; R = required)", fiscal: missing };
const cutOff: Sentences = { bank: badRequest, qr: qrError, fiscal: unparseable };

const refusals: readonly Refusal[] = [
  ["unknown-route", "on a route that there is none of", noRoute, asks("/posline_certify"), { bank: -80 }],
  ["broken-json", "whose JSON is cut off", cutOff, asksAbout("posline", cut), { bank: -29, fiscal: 2 }],
  ["unknown-key", "about a key that nothing has", absent, asksAbout("posline none"), absentCodes],
  ["letters", "with a key of 64 Cyrillic letters", absent, asksAbout(cyrillic), absentCodes],
  ["long", "of 4 KiB", absent, asksAbout("posline certify", long), absentCodes],
  ["great-id", "about document 2^63-1", { fiscal: noDocument }, asks("/check_status", great), { fiscal: 9 }],
  ["no-sign", "without a sign", { fiscal: "Authentication: Signature is mandatory for every request" }, unsigned],
  ["broken-base64", "whose data are no Base64", { fiscal: unparseable }, notBase64, { fiscal: 2 }],
];

/** The checks of answers that change nothing. */
export const answerRows: readonly Row[] = [
  ...refusals.map(refusalRow),
  ["nothing", "requests without what they need", lacking, withoutFields],
  ["prefix", "a route without its port", { qr: "Endpoints, Serial: The :<port> prefix is mandatory" }, withoutPort],
  ["form", "the same form in other words", { fiscal: "Endpoints: with or without a leading slash" }, otherForms],
  ["pairs", "its terminals and merchants", { bank: "Resources: authoritative source of valid routing pairs." }, routingPairs],
  ["wrong-sign", "a wrong sign, on each route", { fiscal: "Authentication: A signature failure returns code 1" }, wrongSigns],
];

/** Routes that refuse an empty body. */
export function needing({ service, routes }: Asker["contract"]): readonly string[] {
  const [question] = questions[service];
  return routes.flatMap(({ path }) =>
    path === question || requiredOf(schemasOf(service, path)?.request).length > 0 ? [path] : [],
  );
}

/** What isn't supported may be refused for that. */
async function withoutFields(asker: Asker): Promise<CaseResult> {
  const code = { bank: -29, qr: undefined, fiscal: 3 }[asker.contract.service];
  for (const route of needing(asker.contract)) {
    if (!(await asker.serves(route))) continue;
    const answer = await asker.ask(route, {});
    const refusal = refusalFinding(answer, `to ${route} without what it needs`, answer.code === -80 ? -80 : code);
    if (refusal.verdict !== "passed") return refusal;
  }
  return passed("It refused each");
}

/** A request that lacks fields as well may be refused for those first. */
async function wrongSigns(asker: Asker): Promise<CaseResult> {
  const key = { documentExtID: "posline certify" };
  const whole = new Map<string, JsonObject>([
    ["/check_shift", {}],
    ["/get_info", {}],
    ["/check_status", key],
    ["/abort", key],
    ["/check_copy", { documentID: Number.MAX_SAFE_INTEGER }],
  ]);
  const sign = Buffer.from("0".repeat(40)).toString("base64");
  for (const route of new Set([...whole.keys(), ...needing(contracts.fiscal)])) {
    if (!(await asker.serves(route))) continue;
    const answer = await asker.ask(route, whole.get(route) ?? {}, { sign });
    const isForFields = !whole.has(route) && answer.code === 3;
    const refusal = refusalFinding(answer, `to ${route} with a wrong sign`, isForFields ? 3 : 1);
    if (refusal.verdict !== "passed") return refusal;
  }
  return passed("It refused a wrong sign on each route");
}

async function routingPairs(asker: Asker): Promise<CaseResult> {
  const { terminals } = dataIn(await asker.ask("/terminals"));
  const listed = Array.isArray(terminals) ? terminals.filter(isObject) : [];
  const names = listed.map((each) => [each["terminal"], each["merchant"]].map(looseInteger).join("/"));
  if (names.some((name) => !/\d\/-?\d/.test(name)))
    return failed("It lists a terminal without the numbers of terminal and merchant");
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) return failed(`It lists the pair ${twice} twice`);
  return names.length === 0 ? untested("It lists no terminal") : passed(`It lists ${names.length} pairs`);
}

async function withoutPort(asker: Asker): Promise<CaseResult> {
  const { route, isAnswer } = asker.contract.probe;
  await asker.ask(route);
  const saying = { asked: `${route}, without the port that selects qr`, waitMs: asker.silentMs };
  const [answer] = (await asker.send(asker.frame([Buffer.from(route)]), saying)).answers;
  if (answer !== undefined && isAnswer(answer.json)) return failed(`qr answered ${route} without the port that selects it`);
  await asker.ask(route);
  return passed(answer === undefined ? "Without its port nothing is answered" : "Without its port another service is asked");
}

/** Other ways to write the same form, and one whose checksum has a byte 03, which is sent as 20. */
const forms: Readonly<Record<string, (asker: Asker, route: string) => string>> = {
  "as posline writes it": formOf,
  "whose command has no leading slash": (...asked) => formOf(...asked).replace(/command=(?:%2F|\/)/, "command="),
  "whose command comes last": (...asked) => formOf(...asked).replace(/^(command=[^&]*)&(.*)$/, "$2&$1"),
  "whose sign is percent-encoded": (...asked) => formOf(...asked).replace(/=+$/, encodeURIComponent),
  "with a byte 03 in its checksum": (...asked) => {
    let form = "";
    // One number in 64 has such a checksum.
    for (let posline = 0; !hasReserved(Buffer.from(form)); posline++) form = formOf(...asked, JSON.stringify({ posline }));
    return form;
  },
};

function formOf(asker: Asker, route: string, json?: string): string {
  return Buffer.concat(asker.payload(route, json)).toString();
}

function hasReserved(payload: Buffer): boolean {
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(payload, 0, payload.length));
  return sum.includes(3);
}

async function otherForms(asker: Asker): Promise<CaseResult> {
  const { route, isAnswer } = asker.contract.probe;
  for (const [how, written] of Object.entries(forms)) {
    const frame = asker.frame([Buffer.from(written(asker, route))]);
    const { json } = await asker.askRaw(frame, { asked: `${route}, ${how}`, waitMs: asker.answerMs(route) });
    if (!isAnswer(json)) return failed(`It doesn't answer a request ${how}`);
  }
  return passed("It answers each");
}
