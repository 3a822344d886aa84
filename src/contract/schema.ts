import type { ContractName } from "../core/call.ts";
import { isObject } from "../core/json-object.ts";
import { bankSchemas } from "./schema-bank.ts";
import { fiscalSchemas } from "./schema-fiscal.ts";
import { dateForms, type RouteSchemas } from "./schema-parts.ts";
import { qrSchemas } from "./schema-qr.ts";
import { Check, Errors, type TSchema } from "./typebox.ts";

/**
 * The bodies of the contracts as JSON Schema, by service and route. Objects are open, since unknown fields are normal and
 * travel on. A bridge that only relays never loads this file: import it when `check: "contract"`, OpenAPI or a client asks.
 *
 * Values are checked by interpretation, not by compiled code: a request takes tens of microseconds on its way to a line that
 * takes milliseconds, and nothing here then depends on being allowed to make code at run time.
 */

export const schemas: Readonly<Record<ContractName, Readonly<Record<string, RouteSchemas>>>> = {
  fiscal: fiscalSchemas,
  bank: bankSchemas,
  qr: qrSchemas,
};

/** The first thing wrong with a body. The kind is the fault to answer with; the message holds paths and rules, never a value. */
export interface Problem {
  readonly kind: "missing" | "malformed" | "date" | "amount";
  readonly message: string;
}

/** The kind and words of a problem, without its place. */
interface Finding {
  readonly kind: Problem["kind"];
  readonly words: string;
}

type SchemaError = ReturnType<typeof Errors>[1][number];

const indexes = new Map(Object.entries(schemas).map(([service, routes]) => [service, new Map(Object.entries(routes))]));

/** The schemas of a route, or undefined if the service has no such route. */
export function schemasOf(service: ContractName, route: string): RouteSchemas | undefined {
  return indexes.get(service)?.get(route);
}

/** Checks a request's business payload against its route. A field that is null or an empty text counts as absent. */
export function validateRequest(service: ContractName, route: string, value: unknown): Problem | undefined {
  return problem(schemasOf(service, route)?.request, withoutEmpty(value), `accept ${route}`);
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (!isObject(value)) return value;
  const said = Object.entries(value).filter(([, each]) => each !== null && each !== "");
  return Object.fromEntries(said.map(([name, each]) => [name, withoutEmpty(each)]));
}

/** Checks a service's reply against the route that it answers. */
export function validateReply(service: ContractName, route: string, value: unknown): Problem | undefined {
  return problem(schemasOf(service, route)?.reply, value, `take the reply to ${route}`);
}

/** Checks a reply by the types that the contract itself writes down. */
export function validateExactly(service: ContractName, route: string, value: unknown): Problem | undefined {
  return problem(exactly(schemasOf(service, route)?.reply), value, `take the reply to ${route}`);
}

/** A schema without the types that are accepted besides the contract's own, which comes first; what the contract doesn't show is free. */
function exactly(schema: unknown): TSchema {
  if (!isObject(schema) || String(schema["description"]).endsWith("(not in the contract)")) return {};
  const { anyOf, properties, items } = schema;
  const own = Array.isArray(anyOf) && anyOf.filter((each, index) => index === 0 || each.type === "null").map(exactly);
  const fields = isObject(properties) && Object.entries(properties).map(([name, each]) => [name, exactly(each)] as const);
  return {
    ...schema,
    ...(own && { anyOf: own }),
    ...(fields && { properties: Object.fromEntries(fields) }),
    ...(items !== undefined && { items: exactly(items) }),
  };
}

function problem(schema: TSchema | undefined, value: unknown, action: string): Problem | undefined {
  if (schema === undefined || Check(schema, value)) {
    return undefined;
  }
  const [, errors] = Errors(schema, value);
  // An error within a branch of a choice comes before the choice itself, which can be said in one sentence
  const first = errors.find((error) => !/\/anyOf\/\d+(\/|$)/.test(error.schemaPath));
  const finding = first === undefined ? other("the body") : findingOf(schema, first);
  return { kind: finding.kind, message: `Cannot ${action}: ${finding.words}` };
}

function findingOf(schema: TSchema, error: SchemaError): Finding {
  const path = pathOf(error.instancePath);
  const place = path === "" ? "the body" : path;
  const dateForm = dateFormOf(schema, path);
  if (dateForm !== undefined) return { kind: "date", words: `${place} must be written as ${dateForm}` };
  switch (error.keyword) {
    case "required": {
      const name = error.params.requiredProperties[0] ?? "a field";
      return { kind: "missing", words: `${path === "" ? name : `${path}.${name}`} is missing` };
    }
    case "minItems":
      return { kind: "missing", words: `${place} must not be empty` };
    case "type":
      return { kind: "malformed", words: `${place} must be of type ${String(error.params.type)}` };
    case "enum":
      return { kind: "malformed", words: `${place} must be one of ${error.params.allowedValues.join(", ")}` };
    case "exclusiveMinimum":
      return { kind: "amount", words: `${place} must be greater than ${error.params.limit}` };
    case "minimum":
    case "maximum":
      return { kind: "malformed", words: `${place} must be ${error.params.comparison} ${error.params.limit}` };
    case "anyOf":
      return path === "" ? choice(schema) : other(place);
    case "not":
      return exclusion(schema);
    case "if":
      return { kind: "missing", words: "what the route returns on success is missing" };
    default:
      return other(place);
  }
}

function other(place: string): Finding {
  return { kind: "malformed", words: `${place} is not what the contract documents` };
}

/** The rule "at least one of these fields" (fiscal /check_status). */
function choice(schema: TSchema): Finding {
  const branches = "anyOf" in schema && Array.isArray(schema.anyOf) ? schema.anyOf : [];
  return { kind: "missing", words: `${branches.flatMap(requiredOf).join(" or ")} is missing` };
}

/** The rule "not both greater than zero" (bank tips and cashback). */
function exclusion(schema: TSchema): Finding {
  const names = "not" in schema ? requiredOf(schema.not) : [];
  return { kind: "malformed", words: `${names.join(" and ")} must not both be greater than 0` };
}

/** The fields that a schema requires. */
export function requiredOf(branch: unknown): readonly string[] {
  const listed = typeof branch === "object" && branch !== null && "required" in branch ? branch.required : undefined;
  return Array.isArray(listed) ? listed.map(String) : [];
}

/** The form of a date, if a field at the top of a request is one; undefined otherwise. */
function dateFormOf(schema: TSchema, field: string): string | undefined {
  const fields = "properties" in schema && isObject(schema.properties) ? schema.properties : {};
  const property = fields[field];
  return isObject(property) ? dateForms.get(String(property["pattern"])) : undefined;
}

/** `/items/0/itemQty` as people write it: `items[0].itemQty`. Only declared fields are ever named so. */
function pathOf(pointer: string): string {
  return pointer
    .slice(1)
    .replaceAll(/(^|\/)(\d+)(?=\/|$)/g, "[$2]")
    .replaceAll("/", ".");
}
