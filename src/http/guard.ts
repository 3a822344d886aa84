import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { ServiceName } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import { quotedName } from "../core/log-text.ts";
import { Secret } from "../envelope/sign.ts";

/**
 * Who may ask, decided from the headers before anything else is read.
 *
 * A service on localhost is within reach of every web page that the box's browser opens. Two doors are shut here. A page whose
 * name was rebound to 127.0.0.1 sends its own name as Host: only loopback names, the address the request arrived at and names
 * from the configuration are answered. And a page of another site sends its Origin: whatever the method and content type, since a
 * form needs no preflight, only configured origins are answered. An image or a link of such a page asks without an Origin, but
 * browsers then say where it comes from (Sec-Fetch-Site). Programs send neither and pass.
 */

export interface GuardRules {
  /** The service whose settings these are, for messages; undefined for the admin port, which has none. */
  readonly service: ServiceName | undefined;
  readonly allowHosts: readonly string[];
  readonly allowOrigins: readonly string[];
  readonly apiKey: string | undefined;
}

export class Guard {
  readonly #service: ServiceName | undefined;
  readonly #hosts: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;
  readonly #apiKey: Secret | undefined;
  /** The Host that was last found to be ours by its name alone: a till sends the same one every time. */
  #lastHost: string | undefined;

  constructor(rules: GuardRules) {
    this.#service = rules.service;
    this.#hosts = new Set(["localhost", ...rules.allowHosts.map((host) => host.toLowerCase())]);
    this.#origins = new Set(rules.allowOrigins);
    this.#apiKey = rules.apiKey === undefined ? undefined : new Secret(rules.apiKey);
  }

  /**
   * Looks at a request's Host and Origin.
   * @returns The origin to answer to; undefined when there is none.
   * @throws Fault `host` or `origin`.
   */
  admit(request: IncomingMessage): string | undefined {
    const { host, origin } = request.headers;
    if (host === undefined || (host !== this.#lastHost && !this.#isOurs(host, request))) {
      throw new Fault("host", `Cannot accept the request: ${this.#hostRefused(host)}`);
    }
    if (origin === undefined) {
      const site = request.headers["sec-fetch-site"];
      if (site === undefined || site === "none" || site === "same-origin") return undefined;
    } else if (this.#origins.has(origin)) {
      return origin;
    }
    throw new Fault("origin", `Cannot accept the request: ${this.#originRefused(request)}`);
  }

  /**
   * Looks at the API key, where one is configured (bank.md, Authentication).
   * @throws Fault `key`.
   */
  checkKey(request: IncomingMessage): void {
    if (this.#apiKey === undefined) return;
    const given = request.headers["x-api-key"];
    if (typeof given === "string" && this.#apiKey.matches(given)) return;
    const what = given === undefined ? "the header X-API-Key is missing" : "the X-API-Key is wrong";
    throw new Fault(
      "key",
      `Cannot accept the request: ${what}: send the apiKey of ${this.#service} in posline's configuration`,
    );
  }

  #hostRefused(host: string | undefined): string {
    if (host === undefined) return "the header Host is missing: use HTTP/1.1 with a Host";
    const name = hostName(host);
    if (name === undefined) return `Host ${quotedName(host)} is not a host name: use localhost`;
    const place = this.#service === undefined ? "the address" : `add ${quotedName(name)} to allowHosts of ${this.#service}`;
    return `Host ${quotedName(host)} is not allowed: use localhost, or ${place}`;
  }

  #originRefused({ headers }: IncomingMessage): string {
    const { origin } = headers;
    const isAdmin = this.#service === undefined;
    if (origin !== undefined) {
      const advice = isAdmin ? programsOnly : `add it to allowOrigins of ${this.#service}`;
      return `Origin ${quotedName(origin)} is not allowed: ${advice}`;
    }
    const site = quotedName(String(headers["sec-fetch-site"]));
    const advice = isAdmin ? programsOnly : `send it by fetch, and add the page to allowOrigins of ${this.#service}`;
    return `a web page of another site sent it (Sec-Fetch-Site ${site}) and names no Origin: ${advice}`;
  }

  #isOurs(host: string, request: IncomingMessage): boolean {
    const name = hostName(host);
    if (name === undefined) return false;
    if (this.#hosts.has(name) || isLoopback(name)) {
      this.#lastHost = host;
      return true;
    }
    // An address can't be rebound, only a name can.
    return isIP(name) !== 0 && name === request.socket.localAddress?.replace(/^::ffff:/, "");
  }
}

const programsOnly = "this port answers programs, not web pages";

/** The name in a Host header, lower case, without port and brackets; undefined when it is not a name. */
function hostName(host: string): string | undefined {
  const bracketed = /^\[([0-9a-f:.]+)\](?::\d{1,5})?$/i.exec(host);
  if (bracketed !== null) return bracketed[1]?.toLowerCase();
  const plain = /^([^:[\]/\\@?#\s]+)(?::\d{1,5})?$/.exec(host);
  return plain?.[1]?.toLowerCase();
}

function isLoopback(name: string): boolean {
  return name === "::1" || (name.startsWith("127.") && isIP(name) === 4);
}
