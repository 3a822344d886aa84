import * as Type from "./typebox.ts";

/**
 * The parts that the contracts' schemas share: the two schemas of a route, and the scalars, in two voices. A till's word must have the type
 * that the contract writes down. A terminal's word is read leniently, because real ones send numbers as strings, strings as numbers, and
 * null for nothing: there the first branch is the contract's own type and the others are accepted besides. Neither bounds an int64: a value
 * beyond 2^53 is checked as the nearest double, and the bytes that travel are never touched.
 */

/** The schemas of one route. */
export interface RouteSchemas {
  /** The JSON business payload; undefined for a route whose body is "none". */
  readonly request: Type.TSchema | undefined;
  readonly reply: Type.TSchema;
}

const int32Min = -(2 ** 31);
const int32Max = 2 ** 31 - 1;

/** How the fiscal contract writes a document time (What the service does, rule 7). */
const docTimePattern = "^\\d{4}-\\d{2}-\\d{2} \\d{2}:\\d{2}:\\d{2}$";

/** How the fiscal contract writes the dates of a report's range (What the service does, rule 7). */
const datePattern = "^\\d{4}-\\d{2}-\\d{2}$";

/** The form of a date that each pattern asks for, in words for a message. */
export const dateForms: ReadonlyMap<string, string> = new Map([
  [docTimePattern, "yyyy-MM-dd HH:mm:ss"],
  [datePattern, "yyyy-MM-dd"],
]);

/** A whole number in a string, as some terminals write int64. */
const digits = Type.String({ pattern: "^-?\\d+$" });

export const say = {
  text: (description: string) => Type.String({ description }),
  docTime: (description: string) => Type.String({ description, pattern: docTimePattern }),
  date: (description: string) => Type.String({ description, pattern: datePattern }),
  flag: (description: string) => Type.Boolean({ description }),
  int32: (description: string) => Type.Integer({ description, format: "int32", minimum: int32Min, maximum: int32Max }),
  int64: (description: string) => Type.Integer({ description, format: "int64" }),
  int64Positive: (description: string) => Type.Integer({ description, format: "int64", exclusiveMinimum: 0 }),
};

export const hear = {
  text: (description: string) => Type.Union([Type.String(), Type.Number(), Type.Null()], { description }),
  int32: (description: string) => Type.Union([Type.Integer({ format: "int32" }), digits, Type.Null()], { description }),
  int64: (description: string) => Type.Union([Type.Integer({ format: "int64" }), digits, Type.Null()], { description }),
  /** The fiscal isShiftOpen: documented as the string 'true' or 'false'. */
  flagText: (description: string) =>
    Type.Union([Type.String({ enum: ["true", "false"] }), Type.Boolean(), Type.Null()], { description }),
  /** `status`, the one scalar that isn't read leniently: every decision hangs on it. */
  status: (description: string) => Type.Enum(["success", "error"], { description }),
};

/** Keywords that ask for more only if status is "success": an error never carries a route's data. */
export function whenSuccess(then: Readonly<Record<string, unknown>>) {
  return { if: { properties: { status: { const: "success" } }, required: ["status"] }, then };
}

/** Keywords that ask for fields within `data`. */
export function inData(...names: readonly string[]) {
  return { required: ["data"], properties: { data: { type: "object", required: names } } };
}
