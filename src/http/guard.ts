import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { Fault } from "../core/fault.ts";
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
  readonly allowHosts: readonly string[];
  readonly allowOrigins: readonly string[];
  readonly apiKey: string | undefined;
}

export class Guard {
  readonly #hosts: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;
  readonly #apiKey: Secret | undefined;
  /** The Host that was last found to be ours by its name alone: a till sends the same one every time. */
  #lastHost: string | undefined;

  constructor(rules: GuardRules) {
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
      const name = host === undefined ? "the request has no Host" : "its Host is no name of this service";
      throw new Fault("host", `Cannot accept the request: ${name}: ask for localhost, or add the name to allowHosts`);
    }
    if (origin === undefined) {
      const site = request.headers["sec-fetch-site"];
      if (site === undefined || site === "none" || site === "same-origin") return undefined;
    } else if (this.#origins.has(origin)) {
      return origin;
    }
    throw new Fault("origin", "Cannot accept the request: its Origin is not allowed: add it to allowOrigins");
  }

  /**
   * Looks at the API key, where one is configured (bank.md, Authentication).
   * @throws Fault `key`.
   */
  checkKey(request: IncomingMessage): void {
    if (this.#apiKey === undefined) return;
    const given = request.headers["x-api-key"];
    if (typeof given === "string" && this.#apiKey.matches(given)) return;
    const what = given === undefined ? "it has no X-API-Key" : "its X-API-Key is wrong";
    throw new Fault("key", `Cannot accept the request: ${what}: send the key that is configured`);
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
