import { printableKey } from "../core/json-syntax.ts";
import { nearest, suggestion } from "../core/nearest.ts";

/**
 * Checks a value against the schema's subset of JSON Schema and reports every problem with its path and its fix. Invalid parts
 * are left out of the value that is returned, so that the rules across settings still see the rest, and one run of posline
 * reports everything there is to fix.
 */

/** The keywords that the configuration's schema uses; the walk below knows each of them. */
export interface Node {
  readonly type?: "object" | "array" | "string" | "integer" | "boolean";
  readonly enum?: readonly (string | number | boolean)[];
  readonly anyOf?: readonly Node[];
  readonly properties?: Readonly<Record<string, Node>>;
  readonly patternProperties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: false | Node;
  readonly propertyNames?: { readonly enum?: readonly string[]; readonly pattern?: string; readonly $comment?: string };
  readonly required?: readonly string[];
  readonly minProperties?: number;
  readonly items?: Node;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly maxLength?: number;
  readonly writeOnly?: boolean;
  readonly description?: string;
  readonly $comment?: string;
}

const typeNames = {
  object: "an object",
  array: "a list",
  string: "a text",
  integer: "a whole number",
  boolean: "true or false",
  number: "a number",
  null: "null",
};

function typeOf(value: unknown): keyof typeof typeNames {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  if (typeof value === "string" || typeof value === "boolean") return typeof value === "string" ? "string" : "boolean";
  return "object";
}

/** The value as a message may show it: not when it is or may hold a secret. */
function shown(value: unknown, node: Node): string {
  const type = typeOf(value);
  if (node.writeOnly === true || type === "object" || type === "array") return typeNames[type];
  // A user's name and password in a URL, which no setting takes, are a secret wherever they stand; a path has none.
  const text = (type === "string" ? JSON.stringify(value) : String(value)).replace(/^(".*?:\/\/|"(?!\/)).*@/su, "$1****@");
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** The value as a message may show it, with its type, so that the text "9600" isn't taken for a number. */
function shownWithType(value: unknown, node: Node): string {
  const text = shown(value, node);
  return typeof value === "string" && node.writeOnly !== true ? `the text ${text}` : text;
}

/** `"a", "b" or "c"`. */
function choiceOf(values: readonly (string | number | boolean)[]): string {
  const texts = values.map((one) => JSON.stringify(one));
  return texts.length === 1 ? texts.join("") : `${texts.slice(0, -1).join(", ")} or ${texts.at(-1)}`;
}

const why = (node: { readonly $comment?: string }) => (node.$comment === undefined ? "" : `: ${node.$comment}`);

/** What `walk` returns for a value that is invalid as a whole. */
const refused: unique symbol = Symbol("refused");

/**
 * Adds every problem of `value` to `problems`.
 * @returns the value without its invalid parts; undefined when nothing of it is left.
 */
export function check(node: Node, value: unknown, path: string, problems: string[]): unknown {
  const kept = walk(node, value, path, problems);
  return kept === refused ? undefined : kept;
}

function walk(node: Node, value: unknown, path: string, problems: string[]): unknown {
  const refuse: Refuse = (text) => {
    problems.push(`${path === "" ? "the file" : path}: ${text}`);
    return refused;
  };
  const type = typeOf(value);
  if (node.anyOf !== undefined) {
    const arms = node.anyOf.filter((one) => one.type === type);
    // typeOf said "object", and it is neither null nor a list.
    if (arms.length > 1) return walkNamed(arms, value as Record<string, unknown>, path, problems);
    const [arm] = arms;
    if (arm !== undefined) return walk(arm, value, path, problems);
    const names = node.anyOf.map((one) => typeNames[one.type ?? "object"]).join(" or ");
    return refuse(`must be ${names}, not ${shownWithType(value, node)}`);
  }
  if (node.enum !== undefined) {
    // A value of any type may be asked for; `includes` compares without conversion.
    if ((node.enum as readonly unknown[]).includes(value)) return value;
    return refuse(`must be ${choiceOf(node.enum)}, not ${shown(value, node)}${why(node)}`);
  }
  if (node.type !== undefined && node.type !== type)
    return refuse(`must be ${typeNames[node.type]}, not ${shownWithType(value, node)}`);
  if (typeof value === "number") return inBounds(node, value) ? value : refuse(outside(node, value));
  if (typeof value === "string") return fits(node, value) ? value : refuse(misfit(node, value));
  if (Array.isArray(value)) return list(node, value, path, problems, refuse);
  // typeOf said "object", and it is neither null nor a list.
  if (type === "object") return members(node, value as Record<string, unknown>, path, problems, refuse);
  return value;
}

/** Checks an object of several kinds, of which each names itself in the same required key. */
function walkNamed(arms: readonly Node[], value: Record<string, unknown>, path: string, problems: string[]): unknown {
  const [first] = arms;
  const key = first?.required?.find((each) => first.properties?.[each]?.enum !== undefined) ?? "";
  const namesOf = (arm: Node) => arm.properties?.[key]?.enum ?? [];
  const arm = arms.find((one) => namesOf(one).some((name) => name === value[key]));
  if (arm !== undefined) return walk(arm, value, path, problems);
  const choice = choiceOf(arms.flatMap(namesOf));
  const name = path.slice(path.lastIndexOf(".") + 1);
  const meant = nearest(name, arms.flatMap(namesOf).map(String));
  const hint = meant === undefined ? "" : `, or did you mean ${path.slice(0, path.lastIndexOf(".") + 1)}${meant}?`;
  const state = Object.hasOwn(value, key)
    ? `must be ${choice}, not ${shown(value[key], {})}`
    : `missing: it is ${choice}${hint}`;
  problems.push(`${path}.${key}: ${state}`);
  return refused;
}

function inBounds(node: Node, value: number): boolean {
  return value >= (node.minimum ?? -Infinity) && value <= (node.maximum ?? Infinity);
}

function outside(node: Node, value: number): string {
  return `must be from ${node.minimum} to ${node.maximum}, not ${value}${why(node)}`;
}

function fits(node: Node, value: string): boolean {
  if (node.maxLength !== undefined && [...value].length > node.maxLength) return false;
  return node.pattern === undefined || new RegExp(node.pattern, "u").test(value);
}

function misfit(node: Node, value: string): string {
  if (value === "") return `must not be empty${why(node)}`;
  return node.writeOnly === true ? `not valid${why(node)}` : `${shown(value, node)} is not valid${why(node)}`;
}

type Refuse = (text: string) => typeof refused;

function list(node: Node, values: readonly unknown[], path: string, problems: string[], refuse: Refuse): unknown {
  if (node.maxItems !== undefined && values.length > node.maxItems) {
    return refuse(`has ${values.length} entries, and at most ${node.maxItems} are allowed`);
  }
  const { items } = node;
  if (items === undefined) return values;
  return values.map((value, index) => walk(items, value, `${path}[${index}]`, problems)).filter((value) => value !== refused);
}

function members(node: Node, value: Record<string, unknown>, path: string, problems: string[], refuse: Refuse): unknown {
  const prefix = path === "" ? "" : `${path}.`;
  const entries = Object.entries(value);
  for (const key of node.required ?? []) {
    if (!Object.hasOwn(value, key)) problems.push(`${prefix}${key}: missing${missingWhy(node.properties?.[key])}`);
  }
  if (node.minProperties !== undefined && entries.length < node.minProperties) refuse(`must not be empty${why(node)}`);
  const kept: [string, unknown][] = [];
  for (const [key, member] of entries) {
    const named = prefix + printableKey(key);
    const wrongName = nameProblem(node, key);
    if (wrongName !== undefined) {
      problems.push(`${named}: ${wrongName}`);
      continue;
    }
    const inner = memberNode(node, key);
    if (inner === undefined) {
      problems.push(`${named}: unknown key: ${suggestion(key, Object.keys(node.properties ?? {}))}`);
      continue;
    }
    const result = walk(inner, member, named, problems);
    if (result !== refused) kept.push([key, result]);
  }
  return Object.fromEntries(kept);
}

const missingWhy = (node: Node | undefined) => {
  if (node === undefined) return "";
  return node.$comment !== undefined ? why(node) : `: ${node.description ?? "it is required"}`.replace(/\.$/, "");
};

function nameProblem(node: Node, key: string): string | undefined {
  const names = node.propertyNames;
  if (names?.enum !== undefined && !names.enum.includes(key)) return `unknown route: ${suggestion(key, names.enum)}`;
  if (names?.pattern !== undefined && !new RegExp(names.pattern, "u").test(key)) return `not a valid name${why(names)}`;
  return undefined;
}

function memberNode(node: Node, key: string): Node | undefined {
  const { properties } = node;
  if (properties !== undefined && Object.hasOwn(properties, key)) return properties[key];
  for (const [pattern, inner] of Object.entries(node.patternProperties ?? {})) {
    if (new RegExp(pattern, "u").test(key)) return inner;
  }
  return node.additionalProperties === false ? undefined : node.additionalProperties;
}
