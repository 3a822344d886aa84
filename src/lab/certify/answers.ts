import { contracts } from "../../contract/contracts.ts";
import { validateReply } from "../../contract/schema.ts";
import type { ContractName } from "../../core/call.ts";
import { isObject, type JsonObject } from "../../core/json-object.ts";
import { crc32 } from "../../wire/crc32.ts";
import { broken, type Finding, held, unseen } from "../report/judgement.ts";
import type { Asker, TerminalAnswer } from "./asker.ts";
import { type CertifyCheck, checkOf, type Sentence } from "./check.ts";

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

const readingChecks = readings.map(([service, route, sentence]) =>
  checkOf(service, route.slice(1).replaceAll("_", "-"), `the answer of ${route}`, sentence, async (asker) => {
    const answer = await asker.ask(route);
    if (answer.status === "error") return unseen(`It answers ${route} with an error${codeText(answer)}`);
    return shapeFinding(asker, route, answer);
  }),
);

/** Judges an answer by its route's schema; `why` is said if it has what that route has. */
export function shapeFinding(
  { contract }: Asker,
  route: string,
  { json }: TerminalAnswer,
  why = `Its answer to ${route} has what that route has`,
): Finding {
  const problem = validateReply(contract.service, route, json);
  if (problem !== undefined) return broken(problem.message);
  const slashed = namesIn(json).find((name) => name.startsWith("/"));
  return slashed === undefined ? held(why) : broken(`Its answer to ${route} names ${slashed} with a slash`);
}

/** The operations that an answer lists. */
function namesIn({ operations, data }: JsonObject): readonly string[] {
  const listed = operations ?? (isObject(data) ? data["operations"] : undefined);
  return Array.isArray(listed) ? listed.filter((name): name is string => typeof name === "string") : [];
}

export const codeText = ({ code }: TerminalAnswer) => (code === undefined ? "" : ` (code ${code})`);

type Asks = (asker: Asker) => Promise<TerminalAnswer>;

/** A request that must be refused: what is wrong with it is said behind "a request". */
export type Wrong = readonly [title: string, what: string, asks: Asks];

/** The code is the one by which the contract has it refused; undefined if any will do. */
export type Refusal = readonly [
  service: ContractName,
  name: string,
  wrong: Wrong,
  code: number | undefined,
  sentence: Sentence,
];

export const refusalCheck = ([service, name, [title, what, asks], code, sentence]: Refusal): CertifyCheck =>
  checkOf(service, name, title, sentence, async (asker) => {
    const answer = await asks(asker);
    if (answer.status !== "error") return broken(`It answered a request ${what} with status ${String(answer.status)}`);
    if (answer.code === undefined) return broken(`It refused a request ${what} without a code`);
    const refused = `It refused a request ${what} with code ${answer.code}`;
    return code === undefined || code === answer.code ? held(refused) : broken(`${refused}; the contract has ${code}`);
  });

const asks =
  (...asked: Parameters<Asker["ask"]>): Asks =>
  (asker) =>
    asker.ask(...asked);

/** Asks with a key of this run. */
export const asksOf =
  (route: string, field: string, name: string, fields: JsonObject = {}): Asks =>
  (asker) =>
    asker.ask(route, { [field]: asker.key(name), ...fields });

const zeros = Buffer.from("0".repeat(40)).toString("base64");

const route: Wrong = ["A route that there is none of", "on a route that there is none of", asks("/posline_certify")];
const cutOff: Wrong = ["A body that is no JSON", "whose body is cut-off JSON", asks("/check", '{"pay_id":')];
const noPayId: Wrong = ["A required field is missing", "without its pay_id", asks("/check", {})];
const noneOf = asksOf("/check", "pay_id", "none");
const unknownId: Wrong = ["A pay_id that nothing has", "about a pay_id that nothing has", noneOf];
const noTrans: Wrong = ["A required field is missing", "without its trans and its pay_system", noneOf];
const { route: second, body: secondBody } = contracts.qr.secondProbe;
const noPayment: Wrong = ["a payment that there is none of", "about a payment that there is none of", asks(second, secondBody)];
const wrongSign: Wrong = ["A wrong sign", "with a wrong sign", asks("/check_shift", {}, { sign: zeros })];
const noSign: Wrong = ["No sign", "without a sign", asks("/check_shift", {}, { sign: "" })];
const status = "/check_status";
const cutOffData: Wrong = ["Data that are no JSON", "whose data are cut-off JSON", asks(status, '{"documentExtID":')];
const noBase64: Wrong = ["Data that are no Base64", "whose data are no Base64", asks(status, undefined, { data: "*posline*" })];
const noId: Wrong = ["A required field is missing", "about a document without either of its ids", asks(status, {})];
const noneOfIds = asksOf(status, "documentExtID", "none");
const unknownDocument: Wrong = ["A documentExtID that nothing has", "about a documentExtID that nothing has", noneOfIds];

const qrError = "Errors: An error response has status 'error', code (typically 1) and message";
const fiscalError = "Errors: Every error response has status 'error', an integer code and optionally message.";
const unparseable = "Errors, rule 2: Unparseable JSON or Base64: code 2.";
const required = "Endpoints, request bodies: pay_id string R; trans string R; pay_system string R";
const mandatory = "Authentication: Signature is mandatory for every request, on both transports.";

const refusals: readonly Refusal[] = [
  ["bank", "unknown-route", route, -80, "Errors: -80 | operation not supported"],
  ["bank", "broken-json", cutOff, -29, "Errors: -29 | invalid request parameters or body"],
  ["bank", "missing-field", noPayId, -29, "Status query request: pay_id (string, required)"],
  ["bank", "unknown-key", unknownId, -15, "Errors: -15 | transaction not found"],
  ["qr", "unknown-route", route, undefined, qrError],
  ["qr", "broken-json", cutOff, undefined, qrError],
  ["qr", "missing-field", noTrans, undefined, required],
  ["qr", "unknown-key", noPayment, undefined, "Endpoints, responses: final error gives status error, code, message."],
  ["fiscal", "unknown-route", route, undefined, fiscalError],
  ["fiscal", "wrong-sign", wrongSign, 1, "Authentication: A signature failure returns code 1 (AUTH_ERROR)."],
  ["fiscal", "no-sign", noSign, undefined, mandatory],
  ["fiscal", "broken-json", cutOffData, 2, unparseable],
  ["fiscal", "broken-base64", noBase64, 2, unparseable],
  ["fiscal", "missing-field", noId, 3, "Errors, rule 2: Missing required field: code 3."],
  ["fiscal", "unknown-document", unknownDocument, 9, "Errors: 9 | DOCUMENT_NOT_FOUND | document not found"],
];

const prefix = "Endpoints, Serial: The :<port> prefix is mandatory and selects the target service";
const slash = "Endpoints, Serial: command (required, the route with or without a leading slash)";
const reserved = "Endpoints, Serial frame: After the CRC is calculated, any CRC byte equal to 0x03 is replaced by 0x20.";

const own: readonly CertifyCheck[] = [
  checkOf("qr", "prefix", "a route without its port", prefix, withoutPort),
  checkOf("fiscal", "command-without-slash", "command without a leading slash", slash, withoutSlash),
  checkOf("fiscal", "reserved-checksum", "a checksum that has a byte 03", reserved, reservedChecksum),
];

async function withoutPort(asker: Asker): Promise<Finding> {
  const { route, isAnswer } = asker.contract.probe;
  await asker.ask(route);
  const saying = { asked: `${route}, without the port that selects qr`, waitMs: asker.silentMs };
  const [answer] = (await asker.send(asker.frame([Buffer.from(route)]), saying)).answers;
  if (answer !== undefined && isAnswer(answer.json)) return broken(`qr answered ${route} without the port that selects it`);
  await asker.ask(route);
  return held(answer === undefined ? "Without its port nothing is answered" : "Without its port another service is asked");
}

async function withoutSlash(asker: Asker): Promise<Finding> {
  const { route, isAnswer } = asker.contract.probe;
  const slashed = await asker.ask(route);
  const bare = await asker.ask(route.slice(1));
  if (isAnswer(slashed.json) && isAnswer(bare.json)) return held("It answers both");
  return broken(`It doesn't answer a command ${isAnswer(slashed.json) ? "without" : "with"} a leading slash`);
}

async function reservedChecksum(asker: Asker): Promise<Finding> {
  const { route } = asker.contract.probe;
  const frame = asker.frame(withReservedChecksum(asker, route));
  const asked = `${route}, with a byte 03 in its checksum`;
  const answer = await asker.askRaw(frame, { asked, waitMs: asker.answerMs(route) });
  const what = "a request whose checksum has a byte 03, sent as 20";
  return answer.status === "error" ? broken(`It refused ${what}${codeText(answer)}`) : held(`It took ${what}`);
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
export const answerChecks: readonly CertifyCheck[] = [...readingChecks, ...refusals.map(refusalCheck), ...own];
