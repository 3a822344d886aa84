import { isUtf8 } from "node:buffer";
import type { Contract, Route } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { Problem } from "../contract/schema.ts";
import type { Amount, ContractName } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { formFlaw, jsonFlaw, type SentRequest } from "./body-flaw.ts";
import { notAnObject, parseBounded } from "./bounded-json.ts";
import { type Form, parseForm, unescapeValue } from "./form.ts";
import { keyOf, wholeOf } from "./json.ts";
import { isMultipart, parseMultipart } from "./multipart.ts";
import { signFits, signOf } from "./sign.ts";

/**
 * Reads a request from an HTTP message, writes it to a line and reads it from there (`http-request.ts` writes it as an HTTP message).
 *
 * The body passes through untouched. For bank and qr that is the JSON text; for fiscal the pairs `data` and `sign`, each as its sender
 * escaped it, and nothing else of the form: a `command` smuggled into an HTTP form must not reach the line.
 */

/** The part of a request that posline checks itself, beside what framing needs. */
export type Check = "envelope" | "contract" | "none";

/** Checks a body by its contract's schema. */
export type ValidateBody = (service: ContractName, route: string, body: JsonObject) => Problem | undefined;

export interface RequestRules {
  readonly check: Check;
  /** Fiscal: the secret behind the sign; without it a sign is only checked for being there. */
  readonly merchantId: string | undefined;
  /** Needed for `check: "contract"`. */
  readonly validate: ValidateBody | undefined;
}

/** The operation's id in a body, and the money that it names. */
interface NamedRequest {
  readonly key: string | undefined;
  readonly amount?: Amount | undefined;
}

/** A body fit for a call. */
export interface ReadRequest extends NamedRequest {
  readonly body: readonly Buffer[];
}

/** A body from a line, whose request isn't known. */
const sentAlone: SentRequest = { headers: {} };

/**
 * Reads the body of an HTTP request.
 * @param sent The request, which may tell why its body can't be read.
 * @throws Fault `malformed`, `missing`, `sign`, and of a contract's schema `date` and `amount`; nothing was sent.
 */
export function readHttpBody(
  contract: Contract,
  route: Route,
  pieces: readonly Buffer[],
  rules: RequestRules,
  sent: SentRequest = sentAlone,
): ReadRequest {
  const read = contract.envelope === "form" ? readForm : readText;
  return read({ contract, route, rules, sent }, pieces);
}

/** A request whose body is being read. */
interface Reading {
  readonly contract: Contract;
  readonly route: Route;
  readonly rules: RequestRules;
  readonly sent: SentRequest;
}

function readText(reading: Reading, pieces: readonly Buffer[]): ReadRequest {
  const { route, rules, sent } = reading;
  const text = wholeOf(pieces);
  if (isBlank(text)) {
    if (route.body === "none" || rules.check === "none") return { body: [], key: undefined };
    const place = sent.url?.includes("?") === true ? " as the body, since the URL's query isn't read" : "";
    throw new Fault("missing", `Cannot accept ${route.path}: the body is empty: send the operation's JSON object${place}`);
  }
  return { body: pieces, ...readJson(reading, text, "the body") };
}

function readForm(reading: Reading, pieces: readonly Buffer[]): ReadRequest {
  const { route, rules, sent } = reading;
  const text = wholeOf(pieces);
  if (route.body === "none" && isBlank(text)) return { body: [], key: undefined };
  const form = (isMultipart(text) ? parseMultipart(text) : undefined) ?? parseForm(text);
  checkPairs(route, form);
  if (form.data === undefined) throw missingData(route, formFlaw(text, "data", sent));
  if (form.sign === undefined) throw missingSign(route, formFlaw(text, "sign", sent));
  const body = [dataPair, form.data, signPair, form.sign];
  checkFrameable(route, form.data, form.sign);
  const data = unescapeValue(form.data);
  if (rules.check === "none") return { body, ...namesIn(reading, data) };
  const sign = unescapeValue(form.sign);
  const names = readData(reading, data);
  if (sign === "") throw missingSign(route);
  // A sign that is not Base64 might be read as another pair by a careless terminal: `sign=x;command=/refund`.
  if (!isBase64(sign)) throw new Fault("sign", `Cannot accept ${route.path}: sign is not Base64: rebuild it`);
  if (rules.merchantId !== undefined && !signFits({ data: form.data, sign: form.sign }, rules.merchantId)) {
    throw new Fault(
      "sign",
      `Cannot accept ${route.path}: sign does not match data and merchantId: check merchantId and rebuild sign`,
    );
  }
  return { body, ...names };
}

/** What was sent beside the form says nothing of the data in it. */
const readData = (reading: Reading, data: string) =>
  readJson({ ...reading, sent: sentAlone }, decodeData(reading.route, data), "the decoded data");

/** The operation's id and its money, if the data can be read. */
function namesIn(reading: Reading, data: string): NamedRequest {
  try {
    return readData(reading, data);
  } catch (error) {
    if (error instanceof Fault) return { key: undefined };
    throw error;
  }
}

/** True if there is nothing but white space. */
function isBlank(text: Buffer): boolean {
  return text.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d));
}

/**
 * Checks a request's JSON and gives the operation's id in it, and the money.
 *
 * Two parsers may read one text in two ways, and then the till sells one thing and the terminal another: a byte that is not UTF-8 becomes
 * another character, and of a field that is given twice one parser takes the first and another the last.
 */
function readJson({ contract, route, rules, sent }: Reading, text: Buffer, what: string): NamedRequest {
  const read = parseBounded(text, contract.decisive);
  if (rules.check !== "none") {
    const refuse = (state: string) => new Fault("malformed", `Cannot accept ${route.path}: ${what} ${state}`);
    if (read === notAnObject || !isUtf8(text)) throw refuse(jsonFlaw(text, sent));
    if (typeof read === "string") throw refuse(`is ${read}, which is the limit`);
    if (read.twice !== undefined) throw refuse(`has the field ${read.twice} twice: send it once`);
    checkAmounts(route, read.json);
    checkContract(contract, route, read.json, rules);
  }
  if (typeof read === "string") return { key: undefined };
  return { key: route.key === undefined ? undefined : keyOf(read.json[route.key]), amount: amountOf(read.json) };
}

/** The money at the top of a request, if no parser can read it otherwise: a text of digits is as good (seen in the field: types are loose). */
function amountOf({ amount, currency_name, currency }: JsonObject): Amount | undefined {
  const digits = typeof amount === "number" ? String(amount) : amount;
  if (typeof digits !== "string" || !/^\d{1,15}$/.test(digits)) return undefined;
  const letters = [currency_name, currency].find((each) => typeof each === "string" && /^[A-Za-z]{3}$/.test(each));
  return { digits, currency: letters === undefined ? undefined : String(letters).toUpperCase() };
}

const dataPair = Buffer.from("data=");
const signPair = Buffer.from("&sign=");

/** @param flaw Why the body has no such field. */
function missingField(route: Route, name: string, what: string, flaw?: string): Fault {
  const state = flaw ?? `the form has no ${name}: add ${name}, ${what}`;
  return new Fault("missing", `Cannot accept ${route.path}: ${state}`);
}

const missingData = (route: Route, flaw?: string) => missingField(route, "data", "the Base64 of the JSON object", flaw);
const missingSign = (route: Route, flaw?: string) =>
  missingField(route, "sign", "Base64 of the SHA-1 of data and merchantId", flaw);

function checkPairs(route: Route, form: Form): void {
  if (form.command !== undefined) {
    throw new Fault(
      "malformed",
      `Cannot accept ${route.path}: the form has a command: leave it out, over HTTP the path is the command`,
    );
  }
  if (form.repeated !== undefined) {
    throw new Fault("malformed", `Cannot accept ${route.path}: the form has ${form.repeated} twice: send it once`);
  }
}

/** A frame's text holds neither STX nor ETX nor another field; printable ASCII is all that a value needs. */
function checkFrameable(route: Route, ...values: readonly Buffer[]): void {
  for (const value of values) {
    if (!isPrintable(value)) {
      throw new Fault(
        "malformed",
        `Cannot accept ${route.path}: a value of the form has bytes outside printable ASCII: percent-encode them`,
      );
    }
  }
}

function isPrintable(value: Buffer): boolean {
  for (let i = 0; i < value.length; i++) {
    const byte = value[i] ?? 0;
    if (byte <= 0x20 || byte >= 0x7f) return false;
  }
  return true;
}

/** Base64, with the (escaped) line breaks that MIME encoders put into it: the sign covers them too, the terminal reads them. */
function isBase64(text: string): boolean {
  return base64.test(/\s/.test(text) ? text.replaceAll(/[\r\n\t ]/g, "") : text);
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/;

function decodeData(route: Route, data: string): Buffer {
  if (data === "") throw missingData(route);
  if (!isBase64(data))
    throw new Fault("malformed", `Cannot accept ${route.path}: data is not Base64: send the Base64 of the JSON object`);
  return Buffer.from(data, "base64");
}

/**
 * Refuses an amount that isn't a whole number: one terminal would round it, another cut it off, and `"15.00"` may be 15 or 1500. A text of
 * digits alone is taken (seen in the field: types are loose); signs and sizes are the terminal's business.
 */
function checkAmounts({ path, amounts }: Route, json: JsonObject): void {
  for (const amount of amounts) {
    const odd = oddAmount(json, amount.split("."));
    if (odd === undefined) continue;
    throw new Fault(
      "malformed",
      `Cannot accept ${path}: ${odd} is not a whole number: send it in minor units, without a fraction`,
    );
  }
}

/** The path of the first amount that isn't a whole number, `items[1].itemAmount`; null and empty ones are left out. */
function oddAmount(value: unknown, names: readonly string[], path = ""): string | undefined {
  const [name, ...rest] = names;
  if (name === undefined) return isWhole(value ?? "") ? undefined : path;
  if (Array.isArray(value)) {
    for (const [index, each] of value.entries()) {
      const odd = oddAmount(each, names, `${path}[${index}]`);
      if (odd !== undefined) return odd;
    }
    return undefined;
  }
  return isObject(value) ? oddAmount(value[name], rest, path === "" ? name : `${path}.${name}`) : undefined;
}

const isWhole = (value: unknown) => (typeof value === "string" ? /^[+-]?\d+$|^$/.test(value) : Number.isInteger(value));

function checkContract(contract: Contract, route: Route, body: JsonObject, rules: RequestRules): void {
  if (rules.check !== "contract" || rules.validate === undefined) return;
  const problem = rules.validate(contract.service, route.path, body);
  if (problem !== undefined) throw new Fault(problem.kind, problem.message);
}

/** Base64 of `{}`: the data of an unsigned /supported_operations on a line, where data is required (seen in the field). */
const emptyObject = "e30=";

/**
 * Writes a request as a line's payload. The body's pieces are passed on, not copied.
 * @param merchantId Signs a fiscal request that has no body of its own, on a route that takes none (/supported_operations): posline never
 * puts its own sign under anything that somebody else should have signed.
 * @throws Fault `missing` if a fiscal request has no body and its route needs one.
 */
export function toLine(
  contract: Contract,
  route: string,
  body: readonly Buffer[],
  merchantId: string | undefined,
): readonly Buffer[] {
  if (contract.envelope === "form") {
    if (body.length > 0) return [headOf(`command=${route}&`), ...body];
    if (routeOf(contract, route)?.body !== "none") {
      throw new Fault("missing", `Cannot send ${route}: it has no data and no sign: send both`);
    }
    return questionToLine(contract, route, merchantId);
  }
  const head = `${contract.linePrefix}${route}`;
  return body.length > 0 ? [headOf(`${head}\n`), ...body] : questionToLine(contract, route, merchantId);
}

/**
 * Writes a request of posline's own as a line's payload.
 * @param json The body, of a contract that writes it as text; undefined if it says nothing but its route.
 */
export function questionToLine(
  { envelope, linePrefix }: Contract,
  route: string,
  merchantId: string | undefined,
  json?: string,
): readonly Buffer[] {
  if (envelope === "text") return [headOf(`${linePrefix}${route}${json === undefined ? "" : `\n${json}`}`)];
  return [Buffer.from(`command=${route}&data=${emptyObject}&sign=${signOf(emptyObject, merchantId ?? "")}`)];
}

/** The bytes before a body, one text a route: made once, since each exchange needs them. */
function headOf(text: string): Buffer {
  let head = heads.get(text);
  if (head === undefined) {
    head = Buffer.from(text, "latin1");
    heads.set(text, head);
  }
  return head;
}

const heads = new Map<string, Buffer>();

/** A request as it was read from a line. */
export interface ReceivedRequest {
  readonly route: string;
  readonly body: readonly Buffer[];
}

/** A request in a length frame, and the prefix that selects its service. */
export interface TextRequest extends ReceivedRequest {
  /** The port before the route, as it was written: `:8887`; empty if there is none. */
  readonly prefix: string;
}

/**
 * Reads a fiscal request's payload from a line; `command` may lack its slash.
 * @returns undefined if it has no command, or a field twice: an invalid request (code 2).
 */
export function readFormLine(payload: Buffer): ReceivedRequest | undefined {
  const form = parseForm(payload);
  if (form.command === undefined || form.repeated !== undefined) return undefined;
  const command = unescapeValue(form.command);
  const route = command.startsWith("/") ? command : `/${command}`;
  const data = form.data === undefined ? [] : [dataPair, form.data];
  const sign = form.sign === undefined ? [] : [data.length > 0 ? signPair : signPair.subarray(1), form.sign];
  return { route, body: [...data, ...sign] };
}

/** The fault of a payload that `readFormLine` doesn't read, by its flaw (fiscal.md, Rules 2). */
export function formLineFault(payload: Buffer): Fault {
  const { command, data, sign, repeated } = parseForm(payload);
  const cannot = "Cannot read the request";
  if (repeated !== undefined) return new Fault("malformed", `${cannot}: the form has ${repeated} twice: send it once`);
  if (command === undefined && (data ?? sign) !== undefined) {
    return new Fault("missing", `${cannot}: the form has no command: add command, the operation's route`);
  }
  return new Fault("malformed", `${cannot}: it is not a form of command, data and sign`);
}

/**
 * Reads the payload of a length frame: `<route>` or `<route>\n<body>`, with `:<port>` before it if that selects a service.
 * @returns undefined if it begins with neither a route nor a port and a route.
 */
export function readTextLine(payload: Buffer): TextRequest | undefined {
  const lineEnd = payload.indexOf(0x0a);
  const head = payload.toString("utf8", 0, lineEnd === -1 ? payload.length : lineEnd).trim();
  const [, prefix = "", route] = /^(:\d{1,5})?(\/.*)$/s.exec(head) ?? [];
  if (route === undefined) return undefined;
  const body = lineEnd === -1 || lineEnd + 1 === payload.length ? [] : [payload.subarray(lineEnd + 1)];
  return { prefix, route, body };
}
