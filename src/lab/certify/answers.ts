import { contracts } from "../../contract/contracts.ts";
import { requiredOf, schemasOf, validateReply } from "../../contract/schema.ts";
import type { ContractName } from "../../core/call.ts";
import { isObject, isTexts, type JsonObject, looseInteger } from "../../core/json-object.ts";
import { crc32 } from "../../wire/crc32.ts";
import { type CaseResult, failed, passed, untested } from "../report/judgement.ts";
import { type Asker, dataIn, type TerminalAnswer } from "./asker.ts";
import { type CertifyCheck, checkOf, type Row, type Sentence } from "./check.ts";

/** What a terminal answers to requests that change nothing: right ones, and wrong ones. */

/** Requests that are right, on routes that only read. */
const readings: readonly (readonly [service: ContractName, route: string, sentence: Sentence])[] = [
  ["bank", "/supported_operations", "Endpoints: operations: array of strings (route names without slash"],
  ["bank", "/terminals", "Endpoints: terminals: array of terminal objects"],
  [
    "qr",
    "/check_connection",
    "Endpoints, responses: /check_connection: status success, data.systems = array of system entries.",
  ],
  ["fiscal", "/supported_operations", "Endpoints: operations: array of strings, route names without leading slash"],
  ["fiscal", "/check_shift", "Endpoints: shiftID, isShiftOpen, shiftStatus, shiftOpenAt, cash"],
  ["fiscal", "/get_info", "Endpoints: fiscalData: raw JSON value, contents not shown"],
];

const readingRow = ([service, route, sentence]: (typeof readings)[number]): Row => [
  service,
  route.slice(1).replaceAll("_", "-"),
  `the answer of ${route}`,
  sentence,
  (asker) => shown(asker, route),
];

/** Judges what a route answers that only shows. */
export async function shown(asker: Asker, route: string, body?: JsonObject): Promise<CaseResult> {
  const answer = await asker.ask(route, body);
  if (answer.status === "error") return refused(asker, route, answer);
  return shapeFinding(asker, route, answer);
}

/** Judges an answer by its route's schema; `why` is said if it has what that route has. */
export function shapeFinding(
  { contract }: Asker,
  route: string,
  { json }: TerminalAnswer,
  why = `Its answer to ${route} has what that route has`,
): CaseResult {
  const problem = validateReply(contract.service, route, json);
  if (problem !== undefined) return failed(problem.message);
  const slashed = namesIn(json).find((name) => name.startsWith("/"));
  return slashed === undefined ? passed(why) : failed(`Its answer to ${route} names ${slashed} with a slash`);
}

/** The operations that an answer lists, of whichever payment system. */
function namesIn({ operations, data, systems }: JsonObject): readonly string[] {
  const inner = [data, ...(Array.isArray(systems) ? systems : [])].filter(isObject).flatMap(namesIn);
  return isTexts(operations) ? [...operations, ...inner] : inner;
}

/** Codes that call a request wrong by itself. */
const complaints: Readonly<Record<ContractName, readonly number[]>> = { bank: [-29], qr: [], fiscal: [1, 2, 3] };

/** Judges the refusal of a right request. What an operator chose for bank may be wrong, until a sale was taken. */
export function refused({ contract: { service }, exchanges }: Asker, what: string, answer: TerminalAnswer): CaseResult {
  const why = `It refused ${what}${codeText(answer)}`;
  const isTaken = exchanges.some(({ route, answers: [first] }) => route === "/sale" && first?.status === "success");
  const isAccused = complaints[service].includes(Number(answer.code)) && (service !== "bank" || isTaken);
  return isAccused ? failed(`${why} as a wrong request, and it is a right one`) : untested(why);
}

export const codeText = ({ code }: TerminalAnswer) => (code === undefined ? "" : ` (code ${code})`);

/** A request that must be refused, in words behind "a request". */
export type Refusal = readonly [
  service: ContractName,
  name: string,
  what: string,
  asks: (asker: Asker) => Promise<TerminalAnswer>,
  /** That by which the contract has it refused; undefined if any will do. */
  code: number | undefined,
  sentence: Sentence,
];

export const refusalRow = ([service, name, what, asks, code, sentence]: Refusal): Row => [
  service,
  name,
  `a request ${what}`,
  sentence,
  async (asker) => refusalFinding(await asks(asker), what, code),
];

export function refusalFinding(answer: TerminalAnswer, what: string, code?: number): CaseResult {
  if (answer.status !== "error") return failed(`It answered a request ${what} with status ${String(answer.status)}`);
  if (answer.code === undefined) return failed(`It refused a request ${what} without a code`);
  const refused = `It refused a request ${what} with code ${answer.code}`;
  return code === undefined || code === answer.code ? passed(refused) : failed(`${refused}; the contract has ${code}`);
}

export const asks =
  (...asked: Parameters<Asker["ask"]>): Refusal[3] =>
  (asker) =>
    asker.ask(...asked);

/** Asks with a key of this run. */
export const asksOf =
  (route: string, field: string, name: string, fields: JsonObject = {}): Refusal[3] =>
  (asker) =>
    asker.ask(route, { [field]: asker.key(name), ...fields });

const zeros = Buffer.from("0".repeat(40)).toString("base64");

/** 64 characters of two bytes each. */
const cyrillic = "\u0416".repeat(64);

/** JSON of 4 KiB: white space means nothing in it. */
const long = (json: JsonObject) => JSON.stringify(json).replace("{", `{${" ".repeat(4_096)}`);

const qrError = "Errors: An error response has status 'error', code (typically 1) and message";
const qrEnd = "Endpoints, responses: final error gives status error, code, message.";
const fiscalError = "Errors: Every error response has status 'error', an integer code and optionally message.";
const unparseable = "Errors, rule 2: Unparseable JSON or Base64: code 2.";
const required = "Endpoints, request bodies: pay_id string R; trans string R; pay_system string R";
const mandatory = "Authentication: Signature is mandatory for every request, on both transports.";
const badRequest = "Errors: -29 | invalid request parameters or body";
const noTransaction = "Errors: -15 | transaction not found";
export const noDocument = "Errors: 9 | DOCUMENT_NOT_FOUND | document not found";
const missing = "Errors, rule 2: Missing required field: code 3.";

const noRoute = "on a route that there is none of";
const ofLength = "of 4 KiB";
const ofLetters = "with a key of 64 Cyrillic letters";
const { route: secondRoute, body: secondBody } = contracts.qr.secondProbe;
const noPayment = { trans: "posline", pay_system: "posline" };
const status = "/check_status";

const refusals: readonly Refusal[] = [
  ["bank", "unknown-route", noRoute, asks("/posline_certify"), -80, "Errors: -80 | operation not supported"],
  ["bank", "broken-json", "whose body is cut-off JSON", asks("/check", '{"pay_id":'), -29, badRequest],
  ["bank", "missing-field", "without its pay_id", asks("/check", {}), -29, "Status query request: pay_id (string, required)"],
  ["bank", "abort-nothing", "to abort without a pay_id", asks("/abort", {}), -29, "Abort request: pay_id (string, required)"],
  ["bank", "unknown-key", "about a pay_id that nothing has", asksOf("/check", "pay_id", "none"), -15, noTransaction],
  ["bank", "letters", ofLetters, asks("/check", { pay_id: cyrillic }), -15, noTransaction],
  ["bank", "long", ofLength, asks("/check", long({ pay_id: "posline certify" })), -15, noTransaction],
  ["qr", "unknown-route", noRoute, asks("/posline_certify"), undefined, qrError],
  ["qr", "broken-json", "whose body is cut-off JSON", asks("/check", '{"pay_id":'), undefined, qrError],
  ["qr", "missing-field", "without its trans and its pay_system", asksOf("/check", "pay_id", "none"), undefined, required],
  ["qr", "cancel-nothing", "to cancel nothing", asks("/cancel", {}), undefined, qrError],
  ["qr", "refund-nothing", "to give nothing back", asks("/refund", {}), undefined, qrError],
  ["qr", "unknown-key", "about a payment that there is none of", asks(secondRoute, secondBody), undefined, qrEnd],
  ["qr", "letters", ofLetters, asks("/check", { pay_id: cyrillic, ...noPayment }), undefined, qrEnd],
  ["qr", "long", ofLength, asks("/check", long({ pay_id: "posline certify", ...noPayment })), undefined, qrEnd],
  ["fiscal", "unknown-route", noRoute, asks("/posline_certify"), undefined, fiscalError],
  ["fiscal", "no-sign", "without a sign", asks("/check_shift", {}, { sign: "" }), undefined, mandatory],
  ["fiscal", "broken-json", "whose data are cut-off JSON", asks(status, '{"documentExtID":'), 2, unparseable],
  ["fiscal", "broken-base64", "whose data are no Base64", asks(status, undefined, { data: "*posline*" }), 2, unparseable],
  ["fiscal", "missing-field", "about a document without either of its ids", asks(status, {}), 3, missing],
  ["fiscal", "copy-of-nothing", "for a copy without its documentID", asks("/check_copy", {}), 3, missing],
  ["fiscal", "abort-nothing", "to abort without a documentExtID", asks("/abort", {}), 3, missing],
  ["fiscal", "unknown-document", "about a document of another id", asksOf(status, "documentExtID", "none"), 9, noDocument],
  ["fiscal", "great-id", "about document 2^63-1", asks(status, `{"documentID":${2n ** 63n - 1n}}`), 9, noDocument],
  ["fiscal", "letters", ofLetters, asks(status, { documentExtID: cyrillic }), 9, noDocument],
  ["fiscal", "long", ofLength, asks(status, long({ documentExtID: "posline certify" })), 9, noDocument],
];

const prefix = "Endpoints, Serial: The :<port> prefix is mandatory and selects the target service";
const slash = "Endpoints, Serial: command (required, the route with or without a leading slash)";
const pairs = "Resources: The list of terminal and merchant pairs is the authoritative source of valid routing pairs.";
const signFailure = "Authentication: A signature failure returns code 1 (AUTH_ERROR).";
const reserved = "Endpoints, Serial frame: After the CRC is calculated, any CRC byte equal to 0x03 is replaced by 0x20.";

const own: readonly Row[] = [
  ["qr", "prefix", "a route without its port", prefix, withoutPort],
  ["fiscal", "form", "the same form in other words", slash, otherForms],
  ["fiscal", "reserved-checksum", "a checksum that has a byte 03", reserved, reservedChecksum],
  ["bank", "pairs", "the pairs of terminal and merchant", pairs, routingPairs],
  ["fiscal", "wrong-sign", "a wrong sign, on each route", signFailure, wrongSigns],
];

/** Requests that lack what they need, or name nothing that is there, so that nothing is begun: others print, or close a day. */
const harmless: Readonly<Record<string, JsonObject>> = {
  "/check_shift": {},
  "/get_info": {},
  "/sale": {},
  "/refund": {},
  "/deposit": {},
  "/withdraw": {},
  [status]: { documentExtID: "posline certify" },
  "/check_copy": { documentID: Number.MAX_SAFE_INTEGER },
  "/abort": { documentExtID: "posline certify" },
};

async function routingPairs(asker: Asker): Promise<CaseResult> {
  const { terminals } = dataIn(await asker.ask("/terminals"));
  const listed = Array.isArray(terminals) ? terminals.filter(isObject) : [];
  const odd = listed.find(
    ({ terminal, merchant }) => looseInteger(terminal) === undefined || looseInteger(merchant) === undefined,
  );
  if (odd !== undefined) return failed("It lists a terminal without the numbers of terminal and merchant");
  const names = listed.map(({ terminal, merchant }) => `${String(terminal)}/${String(merchant)}`);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) return failed(`It lists the pair ${twice} twice`);
  return names.length === 0 ? untested("It lists no terminal") : passed(`It lists ${names.length} pairs`);
}

/** A request that lacks fields as well may be refused for those first. */
async function wrongSigns(asker: Asker): Promise<CaseResult> {
  for (const [route, body] of Object.entries(harmless)) {
    const answer = await asker.ask(route, body, { sign: zeros });
    const lacksFields = requiredOf(schemasOf("fiscal", route)?.request).length > 0 && Object.keys(body).length === 0;
    const refusal = refusalFinding(answer, `to ${route} with a wrong sign`, lacksFields && answer.code === 3 ? 3 : 1);
    if (refusal.verdict !== "passed") return refusal;
  }
  return passed("It refused a wrong sign on each route");
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

/** Other ways to write the same form. */
const forms: readonly (readonly [how: string, written: (form: string) => string])[] = [
  ["as posline writes it", (form) => form],
  ["whose command has no leading slash", (form) => form.replace(/command=(?:%2F|\/)/, "command=")],
  ["whose command comes last", (form) => form.replace(/^(command=[^&]*)&(.*)$/, "$2&$1")],
];

async function otherForms(asker: Asker): Promise<CaseResult> {
  const { route, isAnswer } = asker.contract.probe;
  for (const [how, written] of forms) {
    const payload = Buffer.from(written(Buffer.concat(asker.payload(route)).toString()));
    const { json } = await asker.askRaw(asker.frame([payload]), { asked: `${route}, ${how}`, waitMs: asker.answerMs(route) });
    if (!isAnswer(json)) return failed(`It doesn't answer a request ${how}`);
  }
  return passed("It answers each");
}

async function reservedChecksum(asker: Asker): Promise<CaseResult> {
  const { route } = asker.contract.probe;
  const frame = asker.frame(withReservedChecksum(asker, route));
  const asked = `${route}, with a byte 03 in its checksum`;
  const answer = await asker.askRaw(frame, { asked, waitMs: asker.answerMs(route) });
  const what = "a request whose checksum has a byte 03, sent as 20";
  return answer.status === "error" ? failed(`It refused ${what}${codeText(answer)}`) : passed(`It took ${what}`);
}

/** One number in 64 has such a checksum. */
function withReservedChecksum(asker: Asker, route: string): readonly Buffer[] {
  for (let number = 0; number < 10_000; number++) {
    const payload = asker.payload(route, JSON.stringify({ posline: number }));
    const whole = Buffer.concat(payload);
    const sum = Buffer.alloc(4);
    sum.writeUInt32BE(crc32(whole, 0, whole.length, 0));
    if (sum.includes(3)) return payload;
  }
  throw new Error("Cannot make a request whose checksum has a byte 03");
}

/** The checks of answers that change nothing. */
export const answerChecks: readonly CertifyCheck[] = [...readings.map(readingRow), ...refusals.map(refusalRow), ...own].map(
  (row) => checkOf(...row),
);
