import type { Contract, Route } from "../contract/contract.ts";
import { contracts, routeOf } from "../contract/contracts.ts";
import { type SettlingRules, settlingRulesOf } from "../contract/settling.ts";
import { type ContractName, contractNames, type ServiceName } from "../core/call.ts";
import { isOperationEnd } from "../core/followed.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { parseExactObject, scalarText, writeExactObject } from "./exact-json.ts";
import { newKey } from "./key.ts";
import { freshState, phases, provenName, type SettleState } from "./state.ts";

/**
 * An operation written down, so that another process can follow it on: what was to be sent, to the letter, and what is known of
 * it. It is a JSON value without big integers, and holds no secret: no merchant's id, no key of a service. It does hold the
 * operation's body.
 */
export interface Token {
  readonly v: 1;
  /** By its name: its contract's, or one of its own. */
  readonly service: ServiceName;
  /** The service's contract, where its name doesn't say it. */
  readonly contract?: ContractName;
  /** With its leading slash. */
  readonly route: string;
  /** The body as JSON text: it goes out again exactly so. */
  readonly body: string;
  /** When it was made, as milliseconds since 1970. */
  readonly madeMs: number;
  /** The operation is sent by a bridge that follows it (`Prefer: wait`), and once more only by one. */
  readonly byBridge?: true;
  /**
   * Of a qr payment the transaction id by which it is confirmed, cancelled or refunded (qr.md, Endpoints: data.trans must be saved and
   * used): only while it is proven to be the right one.
   */
  readonly trans?: string;
  readonly known: SettleState;
}

/**
 * An operation before anything of it was sent: its body to the letter, with a key, and what is to be asked first.
 * @throws TypeError for an operation that can't be followed or a body that is not JSON.
 */
export function newToken(contract: Contract, path: string, body: object, name: ServiceName = contract.service): Token {
  const route = routeOf(contract, path);
  const rules = settlingRulesOf(contract.service, path);
  if (route === undefined || rules === undefined) {
    throw new TypeError(`Cannot settle ${path}: ${contract.service} has no operation of this name that can be followed`);
  }
  const keyField = keyFieldOf(route);
  const written = writeExactObject(body);
  const fields = parseExactObject(written) ?? {};
  const named = isNamed(body, fields, keyField, path);
  const text = named || !rules.ownKey ? written : writeExactObject({ ...fields, [keyField]: newKey() });
  const ask = rules.baseline !== undefined && named;
  const learned = rules.learns && (scalarText(fields[rules.learns]) ?? scalarText(parseExactObject(text)?.[keyField]));
  const known: SettleState = { ...freshState, ...(ask && { phase: "baseline", baseline: undefined }), learned };
  const spoken = name === contract.service ? {} : { contract: contract.service };
  return { v: 1, service: name, ...spoken, route: path, body: text, madeMs: Date.now(), known };
}

/** A token's operation with what is known of it by now. */
export function withKnown({ trans: _, ...token }: Token, known: SettleState): Token {
  const trans = provenName(known);
  return trans === undefined ? { ...token, known } : { ...token, trans, known };
}

/**
 * The field by which a body names its operation.
 * @throws TypeError for a route without one.
 */
export function keyFieldOf(route: Route): string {
  if (route.key === undefined) throw new TypeError(`Cannot settle ${route.path}: it has no key`);
  return route.key;
}

/**
 * Whether a body names its operation, as it is written.
 * @throws TypeError for a key that is given and can't name it: one made in its place would make each repetition another operation.
 */
function isNamed(body: object, fields: JsonObject, keyField: string, path: string): boolean {
  if (scalarText(fields[keyField]) !== undefined) return true;
  // What is not the body's own, as a getter of its class, isn't written.
  const given = fields[keyField] ?? Reflect.get(body, keyField);
  if (given === undefined || given === null || given === "") return false;
  throw new TypeError(`Cannot settle ${path}: its ${keyField} is not text: pass it as a field of the body's own, as a string`);
}

/** The contract of a token's service. */
export function contractOfToken({ service, contract }: Token): ContractName | undefined {
  return contract ?? contractNames.find((each) => each === service);
}

/** For how long a terminal is taken to remember an operation, in milliseconds: until its batch is closed, each day. */
const rememberedMs = 24 * 60 * 60 * 1_000;

/** Milliseconds by which a till's clock may have been set back since, as by a summer time, before it isn't believed. */
const setBackMsMax = 60 * 60 * 1_000;

/**
 * Whether the terminal may have forgotten a token's operation, so that "there is none" proves nothing of it and it isn't sent again; also where
 * the clock can't be believed.
 */
export function isOld({ madeMs }: Token, nowMs = Date.now()): boolean {
  return nowMs - madeMs >= rememberedMs || madeMs - nowMs >= setBackMsMax;
}

/** A token that was read, with what its fields stand for. */
export interface ParsedToken {
  readonly token: Token;
  readonly route: Route;
  readonly rules: SettlingRules;
  readonly body: JsonObject;
}

/**
 * Reads a token, wherever it was kept.
 * @throws TypeError saying what is wrong with it.
 */
export function readToken(value: unknown): ParsedToken {
  if (!isObject(value)) throw tokenError("it is not an object: pass the token itself, parsed if it was kept as text");
  const { v, service, contract: spoken, route: path, body: text, madeMs, known } = value;
  if (v !== 1) throw tokenError(`its v is ${String(v)}, and this client reads v 1`);
  const contract = contractNames.find((each) => each === (spoken ?? service));
  if (contract === undefined || typeof service !== "string") throw tokenError(`there is no service ${String(service)}`);
  const route = typeof path === "string" ? routeOf(contracts[contract], path) : undefined;
  const rules = route === undefined ? undefined : settlingRulesOf(contract, route.path);
  if (route === undefined || rules === undefined)
    throw tokenError(`${service} has no operation ${String(path)} to be followed`);
  const body = typeof text === "string" ? parseExactObject(text) : undefined;
  if (typeof text !== "string" || body === undefined) throw tokenError("its body is not the text of a JSON object");
  if (typeof madeMs !== "number") throw tokenError("its madeMs is not a number");
  const named = spoken === undefined ? {} : { contract };
  const sentBy = value["byBridge"] === true ? ({ byBridge: true } as const) : {};
  const token = { v, service, ...named, route: route.path, body: text, madeMs, ...sentBy, known: freshState } as const;
  return { token: withKnown(token, readState(known)), route, rules, body };
}

function readState(value: unknown): SettleState {
  if (!isObject(value)) throw tokenError("its known is not an object");
  const phase = phases.find((each) => each === value["phase"]);
  if (phase === undefined) throw tokenError(`its phase ${String(value["phase"])} is not known`);
  const { phase: _, refusal: _refusal, end: _end, ...plain } = freshState;
  const read = Object.entries(plain).map(([name, fresh]) => [name, readField(value, name, typeof fresh)] as const);
  const { refusal, end } = value;
  return {
    ...freshState,
    // Each of the type that it has in the fresh state
    ...Object.fromEntries(read),
    phase,
    refusal: isObject(refusal) ? { code: integer(refusal, "code"), message: text(refusal, "message") } : undefined,
    end: isOperationEnd(end) ? end : undefined,
  };
}

/** @param kind Of the fresh state's value: what is undefined there is text. */
function readField(from: JsonObject, name: string, kind: string): unknown {
  const value = from[name];
  if (kind === "boolean") {
    if (typeof value !== "boolean") throw tokenError(`its ${name} is neither true nor false`);
  } else if (kind === "number") {
    if ((integer(from, name) ?? -1) < 0) throw tokenError(`its ${name} is not a count`);
  } else text(from, name);
  return value;
}

function text(from: JsonObject, name: string): string | undefined {
  const value = from[name];
  if (value === undefined || typeof value === "string") return value;
  throw tokenError(`its ${name} is not text`);
}

function integer(from: JsonObject, name: string): number | undefined {
  const value = from[name];
  if (value === undefined || (typeof value === "number" && Number.isSafeInteger(value))) return value;
  throw tokenError(`its ${name} is not an integer`);
}

function tokenError(what: string): TypeError {
  return new TypeError(`Cannot resume: this is not a token of a settled operation: ${what}`);
}
