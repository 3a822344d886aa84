import assert from "node:assert/strict";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { isObject, type JsonObject } from "../../../src/core/json-object.ts";

/** An OpenAPI document as a till's tools read it: requests and answers are held against it. */

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** The document as JSON, once a validator of OpenAPI found nothing wrong with it. */
export async function validDocument(document: JsonObject): Promise<JsonObject> {
  const plain: unknown = JSON.parse(JSON.stringify(document));
  assert.ok(isObject(plain));
  const validator = new Validator();
  const { valid, errors } = await validator.validate({ ...plain });
  assert.ok(valid, JSON.stringify(errors, undefined, 2)?.slice(0, 4_000));
  assert.equal(validator.version, "3.1");
  assert.deepEqual([...refusedByTools(plain)], []);
  return plain;
}

/** What OpenAPI allows and tools refuse: a description of a server's variable (swagger-parser), a literal below 0 (oazapfts). */
function* refusedByTools(value: unknown, at = "#"): Generator<string> {
  if (typeof value !== "object" || value === null) return;
  for (const [name, child] of Object.entries(value)) {
    // Values of examples are no schemas.
    if (name === "examples") continue;
    const literals: readonly unknown[] = name === "enum" && Array.isArray(child) ? child : name === "const" ? [child] : [];
    if (literals.some((literal) => Number(literal) < 0)) yield `${at}/${name}`;
    if (name === "description" && /\/servers\/\d+\/variables\//.test(at)) yield `${at}/${name}`;
    yield* refusedByTools(child, `${at}/${name}`);
  }
}

const pointer = (...names: readonly string[]) =>
  names.map((name) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

/** A child of a part of the document, wherever it refers to. */
type Part = { readonly at: string; readonly value: JsonObject };

export class Documented {
  readonly document: JsonObject;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, formats: { int32: true, int64: true, "date-time": true } });

  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: JsonObject) {
    this.document = document;
    this.#ajv.addSchema({ ...document }, "document");
  }

  /** What is wrong with a request's body; of a form, its `data` and `sign` are fields. */
  requestProblems(method: string, path: string, type: string, body: unknown): readonly string[] {
    const schema = this.#find(["paths", path, method.toLowerCase(), "requestBody", "content", type, "schema"]);
    return schema === undefined ? [`${method} ${path} takes no ${type}`] : this.#problems(schema, body);
  }

  /** What is wrong with the payload within a form's `data`. */
  payloadProblems(path: string, payload: unknown): readonly string[] {
    const form = ["content", "application/x-www-form-urlencoded", "schema", "properties", "data", "contentSchema"];
    const schema = this.#find(["paths", path, "post", "requestBody", ...form]);
    return schema === undefined ? [`${path} has no contentSchema`] : this.#problems(schema, payload);
  }

  /** What is wrong with an answer: its status, its headers, its body. */
  answerProblems(method: string, path: string, { status, headers, text }: Answered): readonly string[] {
    const responses = this.#find(["paths", path, method.toLowerCase(), "responses"]);
    if (responses === undefined) return [`${method} ${path} is not described`];
    const response = this.#child(responses, String(status)) ?? this.#child(responses, "default");
    if (response === undefined) return [`${method} ${path} has no answer ${status}`];
    const type = (headers["content-type"] ?? "").split(";")[0] ?? "";
    const media = this.#child(this.#child(response, "content"), type);
    if (media === undefined) return [`${status} has no ${type}`];
    const schema = this.#child(media, "schema");
    const body: unknown = type === "application/json" ? JSON.parse(text) : text;
    return [...this.#headerProblems(response, headers), ...(schema === undefined ? [] : this.#problems(schema, body))];
  }

  /** The names of the headers that an answer may have. */
  headersOf(method: string, path: string, status: number): readonly string[] {
    const response = this.#find(["paths", path, method.toLowerCase(), "responses", String(status)]);
    return Object.keys(this.#child(response, "headers")?.value ?? {});
  }

  #headerProblems(response: Part, got: Readonly<Record<string, string>>): readonly string[] {
    const described = this.#child(response, "headers");
    const names = Object.keys(described?.value ?? {});
    const unknown = Object.keys(got).filter(
      (name) => name.startsWith("x-posline-") && !names.some((each) => each.toLowerCase() === name),
    );
    return [
      ...unknown.map((name) => `${name} is not described`),
      ...names.flatMap((name) => {
        const header = this.#child(described, name);
        const schema = this.#child(header, "schema");
        const value = got[name.toLowerCase()];
        if (value === undefined) return header?.value["required"] === true ? [`${name} is missing`] : [];
        const isNumber = schema?.value["type"] === "integer";
        return schema === undefined
          ? []
          : this.#problems(schema, isNumber ? Number(value) : value).map((each) => `${name}: ${each}`);
      }),
    ];
  }

  #problems({ at }: Part, value: unknown): readonly string[] {
    const validate = this.#validators.get(at) ?? this.#ajv.compile({ $ref: `document#${encodeURI(at)}` });
    this.#validators.set(at, validate);
    return validate(value) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  }

  #find(names: readonly string[]): Part | undefined {
    const [first = "", ...others] = names;
    const root: Part = { at: "", value: this.document };
    return others.reduce<Part | undefined>((part, name) => this.#child(part, name), this.#child(root, first));
  }

  #child(part: Part | undefined, name: string): Part | undefined {
    const value = part?.value[name];
    if (part === undefined || !isObject(value)) return undefined;
    const { $ref: ref } = value;
    if (typeof ref !== "string") return { at: `${part.at}${pointer(name)}`, value };
    return this.#find(ref.slice(2).split("/"));
  }
}

/** Each operation of a document. */
export function operationsOf(document: JsonObject): readonly { method: string; path: string; operation: JsonObject }[] {
  const { paths } = document;
  assert.ok(isObject(paths));
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(isObject(item) ? item : {}).flatMap(([method, operation]) =>
      isObject(operation) ? [{ method: method.toUpperCase(), path, operation }] : [],
    ),
  );
}
