import { adminDefaults } from "../../config/limits.ts";
import type { JsonObject } from "../../core/json-object.ts";
import { urlHost } from "../../core/url-host.ts";
import { version } from "../../core/version.ts";
import described from "./admin.json" with { type: "json" };
import { reachableHost, serverOf } from "./parts.ts";

/** The admin port as an OpenAPI 3.1 document: `admin.json`, with the version, the port's address and the routes that it answers. */

export interface DescribedAdmin {
  readonly host: string;
  readonly port: number;
  /** The port's routes, as `GET /status`; undefined for all that any of posline's admin ports may answer. */
  readonly routes: readonly string[] | undefined;
}

/** An admin port of whose configuration nothing is known. */
export const usualAdmin: DescribedAdmin = { ...adminDefaults, routes: undefined };

export function adminDocument({ host, port, routes }: DescribedAdmin): JsonObject {
  const isAnswered = (method: string, path: string) =>
    routes === undefined || routes.some((route) => isAt(`${method.toUpperCase()} ${path}`, route));
  const paths = Object.entries(described.paths).flatMap(([path, item]) => {
    const operations = Object.entries(item).filter(([method]) => isAnswered(method, path));
    return operations.length === 0 ? [] : [[path, Object.fromEntries(operations)] as const];
  });
  const server = serverOf(urlHost(reachableHost(host)), port, "The admin port");
  return {
    ...described,
    info: { ...described.info, version },
    // The server's URL is relative to the document's, so that it holds below a proxy's path as well.
    servers: routes === undefined ? [server] : [{ url: "..", description: "Where this document came from" }, server],
    paths: Object.fromEntries(paths),
  };
}

/** True if a route is the one of a row, whose path may have a parameter. */
export function isAt(name: string, route: string): boolean {
  const [before = "", after] = name.split(/\{\w+\}/);
  return after === undefined ? route === name : route.startsWith(before) && route.endsWith(after);
}
