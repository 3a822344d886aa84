import type { JsonObject } from "../../core/json-object.ts";
import described from "./service.json" with { type: "json" };

/** The parts that several places of a document share: its components, each there once. */

const { headers, parameters } = described.components;

/** The components of one document, which other parts refer to by name. */
export class Components {
  readonly #byKind = new Map<string, Map<string, JsonObject>>();

  /** Refers to a component, made when it is first referred to: all components of one name are the same. */
  ref(kind: "schemas" | "responses" | "headers" | "parameters", name: string, make: () => JsonObject): JsonObject {
    const named = this.#byKind.get(kind) ?? new Map<string, JsonObject>();
    this.#byKind.set(kind, named);
    if (!named.has(name)) named.set(name, make());
    return { $ref: `#/components/${kind}/${name}` };
  }

  /** Refers to a header that `service.json` describes. */
  header(name: keyof typeof headers): JsonObject {
    return this.ref("headers", name, () => headers[name]);
  }

  /** Refers to a request's header that `service.json` describes. */
  parameter(name: keyof typeof parameters): JsonObject {
    return this.ref("parameters", name, () => parameters[name]);
  }

  json(): JsonObject {
    return Object.fromEntries([...this.#byKind].map(([kind, named]) => [kind, Object.fromEntries(named)]));
  }
}

/** `/check_status` as names are written in code: `checkStatus`. */
export function camelCase(path: string): string {
  return path.slice(1).replaceAll(/[-_/.]+([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** `/check_status` as `CheckStatus`. */
export function pascalCase(path: string): string {
  const name = camelCase(path);
  return name.slice(0, 1).toUpperCase() + name.slice(1);
}

/**
 * The server of a port, for tools that fill in a place of their own. The variables have no description: swagger-parser refuses one, since
 * its schema of OpenAPI 3.1 misspells that word.
 */
export function serverOf(host: string, port: number, what: string): JsonObject {
  return {
    url: "http://{host}:{port}",
    description: what,
    variables: { host: { default: host }, port: { default: String(port) } },
  };
}

/** An address that a client can use, for one that means all interfaces. */
export function reachableHost(host: string): string {
  return host === "0.0.0.0" || host === "::" ? "localhost" : host;
}
