import type { Contract, Route } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import { type Recovery, recoveryOf } from "../contract/recovery.ts";
import { parseObject, textOf, writeObject } from "./exact-json.ts";
import { newKey } from "./key.ts";
import type { Known } from "./known.ts";
import type { Token } from "./token.ts";

/**
 * An operation before anything of it was sent: its body to the letter, with a key, and what is to be asked first.
 * @throws TypeError for an operation that can't be followed or a body that is no JSON.
 */
export function newToken(contract: Contract, path: string, body: object): Token {
  const route = routeOf(contract, path);
  const recovery = route === undefined ? undefined : recoveryOf(contract.service, path);
  if (route === undefined || recovery === undefined) {
    throw new TypeError(`Cannot settle ${path}: ${contract.service} has no such operation`);
  }
  const keyField = keyOf(route);
  const given = new Map<string, unknown>(Object.entries(body));
  const named = textOf(given.get(nameField(route, recovery, body))) !== undefined;
  const keyed = named || !recovery.ownKey ? body : { ...body, [keyField]: newKey() };
  const text = writeObject(keyed);
  const ask = recovery.baseline && named;
  const known: Known = {
    phase: ask ? "baseline" : "ready",
    doubt: false,
    baseline: ask ? undefined : "",
    resends: 0,
    signedAgain: false,
    absents: 0,
    learned:
      recovery.learns === undefined ? undefined : (textOf(given.get(recovery.learns)) ?? textOf(fieldOf(text, keyField))),
    learnedProven: false,
    unprinted: false,
    copied: false,
    refusal: undefined,
    refusals: 0,
    askOnly: false,
  };
  return { v: 1, service: contract.service, route: path, body: text, known };
}

function keyOf(route: Route): string {
  if (route.key === undefined) throw new TypeError(`Cannot settle ${route.path}: it has no key`);
  return route.key;
}

/** The field by which a body names its operation: the key's, or one in its place. */
export function nameField(route: Route, recovery: Recovery, body: object): string {
  const given = new Map<string, unknown>(Object.entries(body));
  const keyField = keyOf(route);
  return [keyField, ...recovery.aliases].find((field) => textOf(given.get(field)) !== undefined) ?? keyField;
}

function fieldOf(text: string, field: string): unknown {
  return parseObject(text)?.[field];
}
