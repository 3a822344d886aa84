import type { Route } from "../contract/contract.ts";
import { contracts, routeOf } from "../contract/contracts.ts";
import { type Recovery, recoveryOf } from "../contract/recovery.ts";
import { type ServiceName, serviceNames } from "../core/call.ts";
import { isObject, type JsonObject } from "../core/json-object.ts";
import { parseObject } from "./exact-json.ts";
import { type Known, phases } from "./known.ts";

/**
 * An operation written down, so that another process can follow it on: what was to be sent, to the letter, and what is known of
 * it. It is a JSON value without big integers, and holds no secret: no merchant's id, no key of a service. It does hold the
 * operation's body.
 */
export interface Token {
  readonly v: 1;
  readonly service: ServiceName;
  /** With its leading slash. */
  readonly route: string;
  /** The body as JSON text: it goes out again exactly so. */
  readonly body: string;
  readonly known: Known;
}

/** A token that was read, with what its words stand for. */
export interface ReadToken {
  readonly token: Token;
  readonly route: Route;
  readonly recovery: Recovery;
  readonly body: JsonObject;
}

/**
 * Reads a token, wherever it was kept.
 * @throws TypeError saying what is wrong with it.
 */
export function readToken(value: unknown): ReadToken {
  if (!isObject(value)) throw wrong("it is no object: pass the token itself, parsed where it was kept as text");
  const { v, service: name, route: path, body: text, known } = value;
  if (v !== 1) throw wrong(`it has v ${String(v)}, and this client reads v 1`);
  const service = serviceNames.find((each) => each === name);
  if (service === undefined) throw wrong(`there is no service ${String(name)}`);
  const route = typeof path === "string" ? routeOf(contracts[service], path) : undefined;
  const recovery = route === undefined ? undefined : recoveryOf(service, route.path);
  if (route === undefined || recovery === undefined) throw wrong(`${service} has no operation ${String(path)} to be followed`);
  const body = typeof text === "string" ? parseObject(text) : undefined;
  if (typeof text !== "string" || body === undefined) throw wrong("its body is no text of a JSON object");
  return { token: { v, service, route: route.path, body: text, known: readKnown(known) }, route, recovery, body };
}

function readKnown(value: unknown): Known {
  if (!isObject(value)) throw wrong("it does not say what is known");
  const phase = phases.find((each) => each === value["phase"]);
  if (phase === undefined) throw wrong(`it has an unknown phase ${String(value["phase"])}`);
  const { refusal } = value;
  return {
    phase,
    doubt: flag(value, "doubt"),
    baseline: text(value, "baseline"),
    resends: count(value, "resends"),
    signedAgain: flag(value, "signedAgain"),
    absents: count(value, "absents"),
    learned: text(value, "learned"),
    learnedProven: flag(value, "learnedProven"),
    unprinted: flag(value, "unprinted"),
    copied: flag(value, "copied"),
    refusal: isObject(refusal) ? { code: integer(refusal, "code"), message: text(refusal, "message") } : undefined,
    refusals: count(value, "refusals"),
    askOnly: flag(value, "askOnly"),
  };
}

function flag(from: JsonObject, name: string): boolean {
  const value = from[name];
  if (typeof value !== "boolean") throw wrong(`its ${name} is neither true nor false`);
  return value;
}

function count(from: JsonObject, name: string): number {
  const value = integer(from, name);
  if (value === undefined || value < 0) throw wrong(`its ${name} is no count`);
  return value;
}

function integer(from: JsonObject, name: string): number | undefined {
  const value = from[name];
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isSafeInteger(value)) throw wrong(`its ${name} is no integer`);
  return value;
}

function text(from: JsonObject, name: string): string | undefined {
  const value = from[name];
  if (value !== undefined && typeof value !== "string") throw wrong(`its ${name} is no text`);
  return value;
}

function wrong(what: string): TypeError {
  return new TypeError(`Cannot resume: this is no token of a settled operation: ${what}`);
}
