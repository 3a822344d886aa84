import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { canonicalAddress, isLoopback } from "../core/address.ts";
import type { ServiceName } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import { quotedName } from "../core/log-text.ts";
import { Secret } from "../envelope/sign.ts";
import type { PageKey } from "./page-key.ts";
import type { RequestTarget } from "./request-target.ts";

/**
 * Decides from the headers, before anything else is read, whether a request may ask.
 *
 * A service on localhost is within reach of every web page that the box's browser opens. Two doors are shut here. A page whose name was
 * rebound to 127.0.0.1 sends its own name as Host: only loopback names, the address the request arrived at and names from the configuration
 * are answered. A whole URL in the request's first line must have the same name. And a page of another site sends its Origin:
 * whatever the method and content type, since a form needs no preflight, only configured origins are answered. An image or a link of such a
 * page asks without an Origin, but browsers then say where it comes from (Sec-Fetch-Site). Programs send neither and pass. No browser
 * speaks HTTP/1.0, and health checks that do, from this box, need no Host either.
 *
 * The admin port has a page of its own, whose origin is the very Host that it was asked by, and which may do all that a program may; the
 * origins of its configuration may read. A link from elsewhere may open it, since a person who follows it reads the page himself.
 *
 * A Host is chosen by the caller, and behind a proxy every caller's address is this box's: both keep pages of browsers out, and prove nothing
 * of a program. So a change needs the admin token, or the session that only somebody on this box can have (`page-key.ts`).
 */

export interface GuardRules {
  /** The service that the settings belong to, for messages; undefined for the admin port, which has none. */
  readonly service: ServiceName | undefined;
  readonly allowHosts: readonly string[];
  readonly allowOrigins: readonly string[];
  readonly apiKey: string | undefined;
  /** The token that each request to the admin port must carry; undefined if none is configured. */
  readonly token?: string | undefined;
  /** Whose sessions count as the token, and without which nothing is changed; undefined if a change needs neither. */
  readonly pageKey?: PageKey | undefined;
}

export class Guard {
  readonly #service: ServiceName | undefined;
  readonly #hosts: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;
  readonly #apiKey: Secret | undefined;
  readonly #token: Secret | undefined;
  readonly #pageKey: PageKey | undefined;
  /** The last Host that was found to be ours by its name alone: a till sends the same one every time. */
  #lastHost: string | undefined;

  constructor(rules: GuardRules) {
    this.#service = rules.service;
    this.#hosts = new Set(["localhost", ...rules.allowHosts.map((host) => host.toLowerCase())]);
    this.#origins = new Set(rules.allowOrigins);
    this.#apiKey = rules.apiKey === undefined ? undefined : new Secret(rules.apiKey);
    this.#token = rules.token === undefined ? undefined : new Secret(rules.token);
    this.#pageKey = rules.pageKey;
  }

  /**
   * Looks at a request's Host, the host of its URL and its Origin.
   * @param target What its first line asks for.
   * @returns The origin to answer to; undefined when there is none.
   * @throws Fault `http`, `host` or `origin`.
   */
  admit(request: IncomingMessage, target: RequestTarget): string | undefined {
    const { host, origin } = request.headers;
    const { authority = host } = target;
    if (authority !== host && authority?.includes("@") === true) {
      throw new Fault("host", "Cannot accept the request: its URL has a user or a password: leave them out");
    }
    if (authority !== undefined && host !== undefined && authority.toLowerCase() !== host.toLowerCase()) {
      const names = `its first line names ${quotedName(authority)}, and its Host ${quotedName(host)}`;
      throw new Fault("http", `Cannot accept the request: ${names}: send one name in both`);
    }
    for (const named of authority === host ? [host] : [host, authority]) {
      if (named === undefined ? !isPlainProbe(request) : named !== this.#lastHost && !this.#isOurs(named, request)) {
        throw new Fault("host", `Cannot accept the request: ${this.#hostRefused(named)}`);
      }
    }
    if (origin === undefined) {
      const site = request.headers["sec-fetch-site"];
      if (site === undefined || site === "none" || site === "same-origin") return undefined;
      if (this.#isAdmin && isFollowedLink(request)) return undefined;
    } else if (this.#origins.has(origin)) {
      if (this.#isAdmin && !isReading(request)) throw new Fault("origin", `Cannot accept the request: ${readsOnly(origin)}`);
      return origin;
    } else if (this.#isAdmin && [`http://${host}`, `https://${host}`].some((own) => isOrigin(own, origin))) {
      // A proxy with TLS passes on the Host that the page was asked by, so such an origin is the page's own; it may name the usual port.
      return undefined;
    }
    throw new Fault("origin", `Cannot accept the request: ${this.#originRefused(request)}`);
  }

  /**
   * Checks the API key, if one is configured (bank.md, Authentication).
   * @throws Fault `key`.
   */
  checkKey(request: IncomingMessage): void {
    if (this.#apiKey === undefined) return;
    const given = request.headers["x-api-key"];
    if (typeof given === "string" && this.#apiKey.matches(given)) return;
    const what = given === undefined ? "the header X-API-Key is missing" : "the X-API-Key is wrong";
    throw new Fault(
      "key",
      `Cannot accept the request: ${what}: send the apiKey of ${this.#service} in posline's configuration (posline call: ` +
        "--api-key-file FILE; root may read the service's, /etc/posline/credentials/api-key)",
    );
  }

  /**
   * Checks the admin port's token, if one is configured: a bearer token, or the password that a browser asks for, since a page can give
   * none to an EventSource.
   * @throws Fault `key`.
   */
  checkToken({ headers }: IncomingMessage): void {
    if (this.#token === undefined || this.#isKnown(headers)) return;
    const state = headers.authorization === undefined ? "the header Authorization is missing" : wrongToken;
    throw new Fault("key", `Cannot accept the request: ${state}: ${sendToken}, or give the token as password to your browser`);
  }

  /**
   * Checks that who changes something has the token, or is on this box.
   * @throws Fault `key`.
   */
  checkChange({ headers }: IncomingMessage): void {
    if (this.#pageKey === undefined || this.#isKnown(headers)) return;
    const state = headers.authorization === undefined ? "a change needs more than a Host that is allowed" : wrongToken;
    throw new Fault(
      "key",
      `Cannot accept the request: ${state}: open the address that sudo posline page prints, or ${sendToken}`,
    );
  }

  #isKnown({ authorization = "" }: IncomingHttpHeaders): boolean {
    const given = tokenIn(authorization);
    return given !== undefined && (this.#token?.matches(given) === true || this.#pageKey?.isSession(given) === true);
  }

  get #isAdmin(): boolean {
    return this.#service === undefined;
  }

  /** The owner of the settings, as the configuration names it. */
  get #owner(): string {
    return this.#service ?? "admin";
  }

  #hostRefused(host: string | undefined): string {
    if (host === undefined) return "the header Host is missing: send it, such as Host: localhost";
    const name = hostName(host);
    if (name === undefined) return `Host ${quotedName(host)} is not a host name: use localhost`;
    return `Host ${quotedName(host)} is not allowed: use localhost, or add ${quotedName(name)} to allowHosts of ${this.#owner}`;
  }

  #originRefused({ headers }: IncomingMessage): string {
    const { origin } = headers;
    if (origin === "null" || origin?.startsWith("file:") === true) {
      const fix = "serve the page over http or https, from localhost for instance";
      return `Origin ${quotedName(origin)} is not allowed, as any page in a sandbox or a file has it: ${fix}, and add its origin to allowOrigins of ${this.#owner}`;
    }
    if (origin !== undefined) return `Origin ${quotedName(origin)} is not allowed: add it to allowOrigins of ${this.#owner}`;
    const site = quotedName(String(headers["sec-fetch-site"]));
    const advice = `send it by fetch, and add the page to allowOrigins of ${this.#owner}`;
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
    return isIP(name) !== 0 && name === canonicalAddress(request.socket.localAddress ?? "");
  }
}

/** True of HTTP/1.0 from this box, without the headers that a browser sends: a health check. */
function isPlainProbe({ httpVersion, headers, socket }: IncomingMessage): boolean {
  return httpVersion === "1.0" && headers.origin === undefined && isLoopback(socket.remoteAddress ?? "");
}

/** True if an address has this origin, which leaves out the usual port. */
const isOrigin = (address: string, origin: string) => URL.canParse(address) && new URL(address).origin === origin;

/** A page may read what its origin is allowed to, and ask whether it may. */
const isReading = ({ method = "" }: IncomingMessage) => ["GET", "HEAD", "OPTIONS"].includes(method);

const readsOnly = (origin: string) =>
  `Origin ${quotedName(origin)} may only read: send this from posline's own page, or from a program`;

/**
 * True of a link that somebody followed, which shows the page to nobody else; false of what a page loads into itself, such as an image or a
 * frame.
 */
function isFollowedLink({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
}

const wrongToken = "what Authorization has is wrong, or over";
const sendToken = 'send "Authorization: Bearer TOKEN" with the token of admin.tokenFile';

/** The token in an Authorization header: a bearer token, or a password, whatever the user's name. */
function tokenIn(authorization: string): string | undefined {
  const [, scheme = "", value = ""] = /^(bearer|basic) +([\x21-\x7e]+)$/i.exec(authorization) ?? [];
  if (scheme.toLowerCase() === "bearer") return value;
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(value, "base64").toString("utf8")) ?? [];
  return password;
}

/** The name in a Host header, lower case, without port, brackets and the root's dot; undefined if it is not a name. */
function hostName(host: string): string | undefined {
  const [, address, name] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]/\\@?#\s]+?)\.?)(?::\d{0,5})?$/i.exec(host) ?? [];
  return address === undefined ? name?.toLowerCase() : canonicalAddress(address.toLowerCase());
}
