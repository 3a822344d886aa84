import { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { AdminConfig } from "../config/config.ts";
import { Fault } from "../core/fault.ts";
import { quotedName } from "../core/log-text.ts";
import { BodyReader, type BodyState } from "./body.ts";
import type { PendingRequest } from "./connections.ts";
import { Guard } from "./guard.ts";
import * as limits from "./limits.ts";
import type { PageKey } from "./page-key.ts";
import { type ParseError, parseErrorFault } from "./parse-error.ts";
import { type RequestTarget, requestTarget } from "./request-target.ts";
import { optionsHeaders, originHeaders, safetyHeaders } from "./response-writer.ts";
import { BoundedServer, type ListeningAt, type ListenOn, type RequestTimeouts } from "./server.ts";
import { type StreamAnswer, Streams } from "./streams.ts";

/**
 * The admin port: JSON and long-lived streams for operators, beside the services and under the same guard, limits and timeouts. A page
 * of another site must not control a till's emulator, any more than its terminal. It knows paths, text and bytes, and not what is
 * behind them.
 */

/** Bytes of a request's body: requests to this port are short. */
export const adminBodyBytesMax = 64 * 1024;

/** A route's answer. */
export interface AdminAnswer {
  readonly status: number;
  readonly text: string;
  /** Media type, if not JSON. */
  readonly contentType?: string;
  /** More headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Facts about a request that a route may know beside the body. */
export interface AdminRequest {
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** @throws Fault `key` if who asks may change nothing. */
  readonly checkChange: () => void;
}

/** Answers one route, from the request's body as text: once, or with a stream that goes on. */
export type AdminRoute = (body: string, request: AdminRequest) => AdminAnswer | StreamAnswer | Promise<AdminAnswer>;

/** The port's address, and who may ask: only this box's programs by default. */
export type AdminSettings = Pick<AdminConfig, "host" | "port"> & Partial<AdminConfig>;

export interface AdminListenerOptions {
  readonly config: AdminSettings;
  /** Routes by method and path, as in `GET /emulator`; a route that takes GET takes HEAD as well. */
  readonly routes: Readonly<Record<string, AdminRoute>>;
  /** The `routes` that need neither token nor session. */
  readonly tokenless?: readonly string[];
  /** Without a session of this key, or the token, only what takes GET is answered; undefined if all is. */
  readonly pageKey?: PageKey | undefined;
  /** The `routes` that take POST and look themselves at who asks for a change. */
  readonly asking?: readonly string[];
  /** The status page's files by path, which need no token either: see `page-files.ts`. */
  readonly files?: ReadonlyMap<string, AdminAnswer>;
  /** A bug: something failed that should not. */
  readonly error: (error: unknown) => void;
  /** A watcher was dropped because it read too slowly; `dropped` counts them. */
  readonly dropped?: (() => void) | undefined;
  /** How long a request may take to arrive; the values of `limits` unless a test, which can't wait that long, gives others. */
  readonly timeouts?: Partial<RequestTimeouts>;
}

/** A request while it is being served. */
interface ServedRequest extends BodyState, PendingRequest {
  /** Headers that let a page of an allowed origin read the answer. */
  origin: Readonly<Record<string, string>>;
}

export class AdminListener {
  readonly #options: AdminListenerOptions;
  #routes: ReadonlyMap<string, AdminRoute>;
  readonly #guard: Guard;
  readonly #bodies = new BodyReader(adminBodyBytesMax, limits.bodiesMax * adminBodyBytesMax);
  readonly #server: BoundedServer<ServedRequest>;
  readonly #streams: Streams;

  constructor(options: AdminListenerOptions) {
    this.#options = options;
    const { pageKey, config } = options;
    const { allowHosts = [], allowOrigins = [], token } = config;
    this.#guard = new Guard({ service: undefined, allowHosts, allowOrigins, apiKey: undefined, token, pageKey });
    this.#routes = new Map(Object.entries(options.routes));
    this.#streams = new Streams(() => options.dropped?.());
    this.#server = new BoundedServer<ServedRequest>(
      {
        onRequest: (request, response, continueAsked) => this.#onRequest(request, response, continueAsked),
        onClientGone: (pending) => {
          if (pending.request.socket.destroyed) this.#bodies.release(pending);
          this.#streams.gone(pending.response);
        },
        onParseError: (socket, error, pending) => this.#onParseError(socket, error, pending),
        onError: (error) => options.error(error),
      },
      options.timeouts,
    );
  }

  /**
   * Begins to listen, on its own port or on sockets that somebody else opened.
   * @throws Error when an address can't be had, with the system's code.
   */
  listen(on: ListenOn = this.#options.config): Promise<ListeningAt> {
    return this.#server.listen(on);
  }

  /** Answers by these routes from now on. */
  replace(routes: AdminListenerOptions["routes"]): void {
    this.#routes = new Map(Object.entries(routes));
  }

  /** Count of present watchers, and of those that were dropped. */
  get streams(): Pick<Streams, "size" | "dropped"> {
    return this.#streams;
  }

  /** Ends at once, streams included: every other complete request has its answer already, or asks for something that may be missed once. */
  async close(): Promise<void> {
    await this.#streams.end();
    await this.#server.end();
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, continueAsked: boolean): void {
    const pending: ServedRequest = {
      request,
      response,
      requestBytes: 0,
      heldBytes: 0,
      bodyDone: false,
      origin: {},
    };
    this.#server.connections.requestStarted(pending);
    // A box without a battery clock doesn't know the date, and must not claim one (RFC 9110, 6.6.1).
    response.sendDate = false;
    response.on("finish", () => {
      this.#bodies.release(pending);
      this.#server.connections.responseFinished(pending);
    });
    try {
      this.#server.connections.refuseOverLimit(pending);
      const target = requestTarget(request.url);
      const origin = this.#guard.admit(request, target);
      if (origin !== undefined) pending.origin = originHeaders(origin);
      if (request.method === "OPTIONS") {
        response.writeHead(204, optionsHeaders(request, origin, "GET")).end();
        return;
      }
      // HEAD is answered as GET would be; Node leaves its body out.
      const name = `${request.method === "HEAD" ? "GET" : request.method} ${target.path}`;
      const isReading = name.startsWith("GET ");
      const file = isReading ? this.#options.files?.get(name.slice("GET ".length)) : undefined;
      if (file === undefined && this.#options.tokenless?.includes(name) !== true) {
        this.#guard.checkToken(request);
        if (!isReading && this.#options.asking?.includes(name) !== true) this.#guard.checkChange(request);
      }
      const route = file === undefined ? this.#routeOf(name, request, target) : () => file;
      this.#bodies.read(
        request,
        pending,
        (pieces) => void this.#answer(pending, target, route, Buffer.concat(pieces).toString("utf8")),
        (fault) => this.#refuse(pending, fault),
      );
      if (continueAsked) response.writeContinue();
    } catch (error) {
      this.#refuse(pending, error);
    }
  }

  /** @param wanted Method and path, as in the table of routes. */
  #routeOf(wanted: string, { method }: IncomingMessage, { path }: RequestTarget): AdminRoute {
    const route = this.#routes.get(wanted);
    if (route !== undefined) return route;
    const names = [...this.#routes.keys()];
    const allow = names.filter((name) => name.endsWith(` ${path}`)).map((name) => name.slice(0, name.indexOf(" ")));
    if (allow.length === 0) {
      throw new Fault(
        "route",
        `Cannot accept the request: this port has no path ${quotedName(path)}: use ${names.join(" or ")}`,
      );
    }
    throw new Fault("method", `Cannot accept the request: ${path} takes ${allow.join(" or ")}, not ${method}`, {
      allow: allow.flatMap((each) => (each === "GET" ? ["GET", "HEAD"] : [each])),
    });
  }

  async #answer(pending: ServedRequest, { query }: RequestTarget, route: AdminRoute, body: string): Promise<void> {
    const { request, response, origin } = pending;
    try {
      const { headers: asked } = request;
      const checkChange = () => this.#guard.checkChange(request);
      const answered = route(body, { query: new URLSearchParams(query), headers: asked, checkChange });
      const answer = answered instanceof Promise ? await answered : answered;
      if ("start" in answer) {
        this.#streams.begin(request, response, answer, origin);
        return;
      }
      const { status, text, contentType, headers } = answer;
      this.#write(pending, status, text, { ...headers, ...(contentType === undefined ? {} : { "Content-Type": contentType }) });
    } catch (error) {
      this.#refuse(pending, error);
    }
  }

  #refuse(pending: ServedRequest, error: unknown): void {
    if (pending.response.headersSent) {
      if (!(error instanceof Fault)) this.#options.error(error);
      return;
    }
    if (error instanceof Fault) {
      const { retryAfterS } = error;
      const { allow } = error.details;
      this.#write(pending, error.httpStatus, errorText(error.message), {
        "X-Posline-Reason": error.reason,
        ...(error.kind === "key" ? challenge : {}),
        ...(allow === undefined ? {} : { Allow: allow.join(", ") }),
        ...(retryAfterS === undefined ? {} : { "Retry-After": String(retryAfterS) }),
      });
    } else {
      this.#options.error(error);
      this.#write(pending, 500, errorText("Cannot answer: internal error in posline: please report it"), {});
    }
  }

  #write(pending: ServedRequest, status: number, text: string, more: Readonly<Record<string, string>>): void {
    const { response, origin } = pending;
    const headers = {
      "Content-Type": "application/json",
      "Content-Length": String(Buffer.byteLength(text)),
      ...safetyHeaders,
      ...origin,
      ...more,
      ...(this.#server.connections.closesAfter(pending) ? { Connection: "close" } : {}),
    };
    response.writeHead(status, headers).end(text);
  }

  /** Answers bytes that are not HTTP, or a request that is too slow or too large. */
  #onParseError(socket: Socket, error: ParseError, pending: ServedRequest | undefined): void {
    const fault = parseErrorFault(error, pending);
    if (pending !== undefined) {
      this.#bodies.release(pending);
      this.#refuse(pending, fault);
      return;
    }
    const text = errorText(fault.message);
    const head = [
      `HTTP/1.1 ${fault.httpStatus} ${STATUS_CODES[fault.httpStatus]}`,
      "Content-Type: application/json",
      `Content-Length: ${Buffer.byteLength(text)}`,
      ...Object.entries(safetyHeaders).map(([name, value]) => `${name}: ${value}`),
      "Connection: close",
    ];
    socket.end(`${head.join("\r\n")}\r\n\r\n${text}`);
  }
}

function errorText(message: string): string {
  return `${JSON.stringify({ error: message })}\n`;
}

/** The header by which a browser asks for the token; programs read the message. */
const challenge = { "WWW-Authenticate": 'Bearer realm="posline", Basic realm="posline"' } as const;
