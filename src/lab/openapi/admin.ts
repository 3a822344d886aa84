import { adminDefaults } from "../../config/limits.ts";
import { faultReasons } from "../../core/fault.ts";
import type { JsonObject } from "../../core/json-object.ts";
import { urlHost } from "../../core/url-host.ts";
import { version } from "../../core/version.ts";
import { adminPaths } from "./admin-paths.ts";
import { camelCase, reachableHost, serverOf } from "./parts.ts";

/** The admin port as an OpenAPI 3.1 document, made of the table of its paths. */

export interface DescribedAdmin {
  readonly host: string;
  readonly port: number;
  /** The port's routes, as `GET /status`; undefined for all that any of posline's admin ports may answer. */
  readonly routes: readonly string[] | undefined;
}

/** An admin port of whose configuration nothing is known. */
export const usualAdmin: DescribedAdmin = { ...adminDefaults, routes: undefined };

export function adminDocument({ host, port, routes }: DescribedAdmin): JsonObject {
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const [name, operation] of Object.entries(adminPaths)) {
    if (routes !== undefined && !routes.some((route) => isAt(name, route))) continue;
    const [method = "", path = ""] = name.split(" ");
    const item = paths[path] ?? {};
    paths[path] = item;
    const { responses, ...rest } = operation;
    item[method.toLowerCase()] = {
      operationId: `${method.toLowerCase()}${camelCase(
        `/-${path
          .slice(1)
          .replace(/[{}]/g, "")
          .replace(/\.json$/, "")}`,
      )}`,
      ...rest,
      responses: { ...responses, default: { $ref: "#/components/responses/Refused" } },
    };
  }
  const server = serverOf(urlHost(reachableHost(host)), port, "The admin port");
  return {
    openapi: "3.1.0",
    info: {
      title: "posline: admin port",
      version,
      summary: "Health, status and what happens, for operators; the emulator's control where one runs",
      description:
        "What a till asks of its terminal goes to the services' own ports. Without the token, or a session of `posline page` in its place, " +
        "GET and HEAD are answered, and a POST that changes nothing; at emulated terminals all is. Answers may have more fields than stand here.",
      license: { name: "MIT", identifier: "MIT" },
    },
    // The server's URL is relative to the document's, so that it holds below a proxy's path as well.
    servers: routes === undefined ? [server] : [{ url: "..", description: "Where this document came from" }, server],
    security: [{}, { token: [] }],
    paths,
    components: {
      responses: {
        Refused: {
          description:
            "The request was refused (4xx, 503), or failed by a bug in posline (500); `error` says why and what to do",
          headers: {
            "X-Posline-Reason": {
              description: "Why, in one word of the services' list, where one of it fits",
              schema: { type: "string", enum: Object.keys(faultReasons) },
            },
          },
          content: {
            "application/json": {
              schema: { type: "object", required: ["error"], properties: { error: { type: "string" } } },
            },
          },
        },
      },
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "Of `admin.tokenFile`, or a session of `posline page`" },
      },
    },
  };
}

/** True if a route is the one of a row, whose path may have a parameter. */
export function isAt(name: string, route: string): boolean {
  const [before = "", after] = name.split(/\{\w+\}/);
  return after === undefined ? route === name : route.startsWith(before) && route.endsWith(after);
}
