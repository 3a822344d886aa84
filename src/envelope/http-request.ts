import type { Contract } from "../contract/contract.ts";
import { noSuchRoute, routeOf } from "../contract/contracts.ts";
import type { Call } from "../core/call.ts";
import { Fault } from "../core/fault.ts";

/** Writes a call as an HTTP message, on its way to a service that is reached over the network. */

/** A request as HTTP writes it, without the connection's headers. */
export interface HttpRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** undefined for a GET. */
  readonly contentType: string | undefined;
  readonly body: readonly Buffer[];
}

const contentTypes = { form: "application/x-www-form-urlencoded", text: "application/json" } as const;

/**
 * Writes a call as an HTTP request: GET if the contract has one and there is nothing to say, POST otherwise.
 *
 * Bank and qr: the body's pieces are passed on untouched. Fiscal: `+ / =` in a value, which a line's sender may leave raw, are escaped,
 * since a standard reader of forms takes `+` for a space. A sign over the value with its escapes undone holds, and so does one over the
 * escapes as sent if the sender escapes all three.
 * @throws Fault `route` if the contract has no such route: a path is never made of bytes from a line.
 */
export function toHttp(contract: Contract, call: Pick<Call, "route" | "body">): HttpRequest {
  const route = routeOf(contract, call.route);
  if (route === undefined) throw new Fault("route", `Cannot send the request: ${noSuchRoute(contract, call.route)}`);
  const { path, methods } = route;
  if (call.body.length === 0 && methods.includes("GET")) return { method: "GET", path, contentType: undefined, body: [] };
  const body = contract.envelope === "form" ? escapedForm(call.body) : call.body;
  return { method: "POST", path, contentType: contentTypes[contract.envelope], body };
}

/** The form with every value fully escaped; the first `=` ends a pair's name. Read byte for byte, whatever it holds. */
function escapedForm(pieces: readonly Buffer[]): readonly Buffer[] {
  const pairs = Buffer.concat(pieces).toString("latin1").split("&");
  return [Buffer.from(pairs.map(escapedPair).join("&"), "latin1")];
}

function escapedPair(pair: string): string {
  const valueStart = pair.indexOf("=") + 1;
  return pair.slice(0, valueStart) + pair.slice(valueStart).replaceAll(/[+/=]/g, encodeURIComponent);
}
