import type { Contract, Route } from "../contract/contract.ts";
import { contracts, routeOf } from "../contract/contracts.ts";
import { type SettlingRules, settlingRulesOf } from "../contract/settling.ts";
import { type ContractName, contractNames, type ServiceName } from "../core/call.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { parseExactObject, scalarText, writeExactObject } from "../settle/exact-json.ts";
import { areFacts, type Fact } from "../settle/fact.ts";
import { type JudgedOperation, judge, judgedOperation, type Known } from "../settle/judge.ts";
import { newKey } from "./key.ts";

/**
 * An operation written down, so that another process can follow it on: what was to be sent, to the letter, and what is known of
 * it. It is a JSON value without big integers, and holds no secret: no merchant's id, no key of a service. It does hold the
 * operation's body.
 */
export interface Token {
  readonly v: 2;
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
  /** All that is known of it (`judge.ts`); their times are milliseconds since 1970. */
  readonly facts: readonly Fact[];
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
  const madeMs = Date.now();
  const spoken = name === contract.service ? {} : { contract: contract.service };
  return { v: 2, service: name, ...spoken, route: path, body: text, madeMs, facts: named ? [] : [{ is: "new", atMs: madeMs }] };
}

/** A token with all facts, and the name that they prove (qr). */
export function tokenWith({ trans: _, ...token }: Token, facts: readonly Fact[], { isNameProven, name }: Known): Token {
  return isNameProven && name !== undefined ? { ...token, trans: name, facts } : { ...token, facts };
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
export function isTokenOld({ madeMs }: Token, nowMs = Date.now()): boolean {
  return nowMs - madeMs >= rememberedMs || madeMs - nowMs >= setBackMsMax;
}

/** A token that was read, with what its fields stand for. */
export interface ParsedToken {
  readonly token: Token;
  readonly route: Route;
  readonly rules: SettlingRules;
  readonly body: JsonObject;
  readonly operation: JudgedOperation;
  /** All that its facts prove. */
  readonly known: Known;
}

/**
 * Reads a token, wherever it was kept.
 * @throws TypeError saying what is wrong with it.
 */
export function readToken(value: unknown): ParsedToken {
  if (!isObject(value)) throw tokenError("it is not an object: pass the token itself, parsed if it was kept as text");
  const { v, service, contract: spoken, route: path, body: text, madeMs, facts } = value;
  if (v !== 2) throw tokenError(`its v is ${String(v)}, and this client reads v 2`);
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
  const sentBy: Pick<Token, "byBridge"> = value["byBridge"] === true ? { byBridge: true } : {};
  if (!areFacts(facts)) throw tokenError("its facts are not those that a client writes");
  const token = { v, service, ...named, route: route.path, body: text, madeMs, ...sentBy, facts } as const;
  const asked = judgedOperation(contracts[contract], route.path, "client", (name) => body[name]);
  if (asked === undefined) throw tokenError(`${service} has no operation ${route.path} to be followed`);
  // What a bridge knows under its key, the bridge asks.
  const operation = { ...asked, asksFirst: sentBy.byBridge !== true };
  const known = judge(operation, facts);
  return { token: tokenWith(token, facts, known), route, rules, body, operation, known };
}

function tokenError(what: string): TypeError {
  return new TypeError(`Cannot resume: this is not a token of a settled operation: ${what}`);
}
