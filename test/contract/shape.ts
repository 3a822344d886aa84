import assert from "node:assert/strict";
import type { DocumentedField } from "./markdown.ts";

/** A look into our schemas as plain JSON Schema, as every reader but TypeBox sees them. */

export interface Shape {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
  readonly [keyword: string]: unknown;
}

/** A schema without what only TypeBox sees in it. */
export function shapeOf(schema: unknown): Shape {
  // What TypeBox makes is JSON Schema, whose keywords have these types
  return JSON.parse(JSON.stringify(schema)) as Shape;
}

/** The schema as documented: of a lenient choice the first branch, which is the contract's own. */
function documented(shape: Shape): Shape {
  const [first] = shape.type === undefined ? (shape.anyOf ?? []) : [];
  return first ?? shape;
}

export function propertyOf(shape: Shape, ...path: readonly string[]): Shape {
  let at = documented(shape);
  for (const name of path) {
    const next = name === "[]" ? at.items : at.properties?.[name];
    assert.ok(next, `${path.join(".")} leads nowhere at ${name}`);
    at = documented(next);
  }
  return at;
}

function typeOf(shape: Shape): string | undefined {
  const own = documented(shape);
  return own.type === "integer" ? own.format : (own.type ?? typeof own.enum?.[0]);
}

/** Holds an object's fields against the documented ones, both ways: names, types and required marks where stated. */
export function assertFields(
  shape: Shape,
  stated: readonly DocumentedField[],
  what: string,
  lenient: { readonly optional?: readonly string[]; readonly besides?: readonly string[] } = {},
): void {
  const own = documented(shape);
  const properties = own.properties ?? {};
  const names = [...new Set([...stated.map((field) => field.name), ...(lenient.besides ?? [])])];
  assert.deepEqual(Object.keys(properties).sort(), names.sort(), `${what}: fields`);
  for (const field of stated) {
    const property = properties[field.name];
    assert.ok(property);
    if (field.type !== undefined) {
      assert.equal(typeOf(property), field.type, `${what}: type of ${field.name}`);
    }
    const required = lenient.optional?.includes(field.name) === true ? false : field.required;
    if (required !== undefined) {
      assert.equal(own.required?.includes(field.name) ?? false, required, `${what}: required mark of ${field.name}`);
    }
  }
}

/** Every property of a schema at any depth, with its path. */
export function* walk(shape: Shape, path = ""): Generator<readonly [string, Shape]> {
  for (const branch of [documented(shape)]) {
    for (const [name, property] of Object.entries(branch.properties ?? {})) {
      yield [`${path}.${name}`, property];
      yield* walk(property, `${path}.${name}`);
    }
    if (branch.items !== undefined) {
      yield* walk(branch.items, `${path}[]`);
    }
  }
}
