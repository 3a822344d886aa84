import { operationResults } from "../../core/followed.ts";
import type { JsonObject } from "../../core/json-object.ts";

/** The parts that several places of a document share: its components, each there once, and headers that every answer has. */

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

const requestIdForm = "^[A-Za-z0-9._-]{1,64}$";

export const headers = {
  requestId: {
    description: "The request's name in the log and the journal: the one that came with it, or one made for it",
    required: true,
    schema: { type: "string", pattern: requestIdForm },
  },
  serverTiming: {
    description: "Milliseconds that the request waited (queue) and was on the line (line)",
    schema: { type: "string" },
    example: "queue;dur=0, line;dur=8.7",
  },
  retryAfter: {
    description: "Seconds to wait before sending again, where waiting helps",
    schema: { type: "integer", minimum: 1 },
  },
  result: {
    description:
      "With `Prefer: wait`: how the operation stands. After `pending`, `unknown` or without this header, send the same call again: it is " +
      "only asked about. After `failed` nothing was carried out, and the same call may be sent again",
    schema: { type: "string", enum: operationResults },
  },
  trans: {
    description:
      "With `Prefer: wait`, of a payment: the transaction id by which it is confirmed, cancelled or refunded, also after a restart. Without " +
      "this header none is proven",
    schema: { type: "string" },
    example: "EMU000000000001",
  },
  answerOf: {
    description: "With `Prefer: wait`: the route whose answer this is, where not its own",
    schema: { type: "string" },
    example: "/check",
  },
  polls: {
    description: "With `Prefer: wait`: how often posline has asked the terminal about the operation",
    schema: { type: "integer", minimum: 0 },
  },
  repeatGuard: {
    description:
      "With `Prefer: wait`: the same call again is recognised only while this one is followed, since no journal is there to know it by, or " +
      "its record may be missing. Without this header it is recognised for 24 hours",
    schema: { const: "off" },
  },
  preferenceApplied: {
    description:
      "With `Prefer: wait`: the operation is followed. Without this header it isn't, and the answer is as without `Prefer`",
    schema: { const: "wait" },
  },
  joined: {
    description: "The answer of an identical call that waited or was out at the time: both are one exchange",
    schema: { const: "1" },
  },
} as const;

/** Headers that a request may have, on each route. */
export const parameters = {
  requestId: {
    name: "X-Request-Id",
    in: "header",
    description:
      "The request's name in the log and the journal. Without one that fits, the id of its trace is used, or one is made; the answer has it",
    schema: { type: "string", pattern: requestIdForm },
  },
  traceparent: {
    name: "traceparent",
    in: "header",
    description: "W3C Trace Context, version 00: the log has the trace's id. Anything else is ignored",
    schema: { type: "string", pattern: "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$" },
  },
  prefer: {
    name: "Prefer",
    in: "header",
    description:
      "`wait=SECONDS`, 600 at most: posline follows the operation to its end for that long, and says how it ended in `X-Posline-Result`. " +
      "The body needs its key then",
    schema: { type: "string", pattern: "^wait=[0-9]{1,6}$" },
    example: "wait=60",
  },
} as const;

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
