import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { ServiceConfig } from "../config/config.ts";
import type { Contract, Route } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import { type Call, type Handler, type Presence, present } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import type { ExchangeRecord } from "../core/log.ts";
import { type RequestRules, readHttpBody } from "../envelope/request.ts";
import { Answers, requestIds } from "./answer.ts";
import { BodyReader } from "./body.ts";
import { Guard } from "./guard.ts";
import * as limits from "./limits.ts";

/**
 * Where calls enter by HTTP: one server per service. It knows the service's table and envelope, and hands each good request to a
 * handler; it doesn't know whether a line, the network or an emulator answers.
 */

export interface HttpListenerOptions {
  readonly contract: Contract;
  readonly config: ServiceConfig;
  readonly rules: RequestRules;
  readonly handler: Handler;
  readonly report: {
    exchange(record: ExchangeRecord): void;
    /** Something failed that should not: a bug. */
    error(error: unknown): void;
  };
}

/** A request while it is being served. */
interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly path: string;
  readonly caller: Presence;
  origin: string | undefined;
  key: string | undefined;
  requestBytes: number;
}

export class HttpListener {
  readonly #options: HttpListenerOptions;
  readonly #guard: Guard;
  readonly #answers: Answers;
  readonly #bodies: BodyReader;
  readonly #newId = requestIds();
  readonly #server: Server;
  /** Connections with requests that aren't answered yet, and how many. */
  readonly #serving = new Map<Socket, number>();

  constructor(options: HttpListenerOptions) {
    this.#options = options;
    const { config, contract } = options;
    this.#guard = new Guard({ allowHosts: config.allowHosts, allowOrigins: config.allowOrigins, apiKey: config.apiKey });
    this.#answers = new Answers(contract, config.faultStatus);
    this.#bodies = new BodyReader(config.bodyBytesMax, limits.bodiesMax * config.bodyBytesMax);
    this.#server = createServer(
      {
        maxHeaderSize: limits.headersBytesMax,
        headersTimeout: limits.headersMs,
        requestTimeout: limits.requestMs,
        keepAliveTimeout: limits.keepAliveMs,
        connectionsCheckingInterval: limits.checkConnectionsMs,
        noDelay: true,
        // A request without Host is answered by the guard, in the service's own words.
        requireHostHeader: false,
      },
      (request, response) => this.#serve(request, response),
    );
    this.#server.maxConnections = limits.connectionsMax;
    this.#server.on("checkContinue", (request, response) => this.#serve(request, response));
    this.#server.on("clientError", (error, socket) => this.#broken(error, socket as Socket));
  }

  /**
   * Begins to listen, on its own port or on a socket that somebody else opened.
   * @throws Error when the address can't be had, with the system's code.
   */
  listen(
    on: { readonly host: string; readonly port: number } | { readonly fd: number } = this.#options.config,
  ): Promise<AddressInfo> {
    const address = "fd" in on ? { fd: on.fd } : { host: on.host, port: on.port };
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(address, () => {
        this.#server.off("error", reject);
        this.#server.on("error", (error) => this.#options.report.error(error));
        // A server that listens on TCP has an address of this form.
        resolve(this.#server.address() as AddressInfo);
      });
    });
  }

  /** Stops accepting; settles when the last answer has gone out. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#answers.closing = true;
    this.#server.closeIdleConnections();
    await closed;
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const visit: Visit = {
      request,
      response,
      requestId: this.#newId(request.headers["x-request-id"]),
      path: pathOf(request.url ?? "/"),
      caller: present(),
      origin: undefined,
      key: undefined,
      requestBytes: 0,
    };
    const { socket } = request;
    this.#serving.set(socket, (this.#serving.get(socket) ?? 0) + 1);
    response.on("close", () => {
      const others = (this.#serving.get(socket) ?? 1) - 1;
      if (others === 0) this.#serving.delete(socket);
      else this.#serving.set(socket, others);
      if (response.writableFinished) return;
      visit.caller.gone = true;
      visit.caller.onGone?.();
    });
    this.#admit(visit);
  }

  #admit(visit: Visit): void {
    try {
      visit.origin = this.#guard.admit(visit.request);
      if (visit.request.method === "OPTIONS" && visit.origin !== undefined) {
        this.#answers.preflight(visit.request, visit.response, visit.origin);
        return;
      }
      this.#guard.checkKey(visit.request);
      const route = this.#routeOf(visit);
      this.#bodies.read(
        visit.request,
        visit.response,
        (pieces, bytes) => this.#call(visit, route, pieces, bytes),
        (fault) => this.#failed(visit, fault),
      );
    } catch (error) {
      this.#failed(visit, error);
    }
  }

  #routeOf({ path, request }: Visit): Route {
    const { contract } = this.#options;
    const route = routeOf(contract, path);
    if (route === undefined) throw new Fault("route", `Cannot accept the request: ${contract.service} has no such route`);
    if (route.methods.some((method) => method === request.method)) return route;
    const methods = route.methods.join(" or ");
    throw new Fault("method", `Cannot accept the request: ${path} takes ${methods}`, { allow: route.methods });
  }

  async #call(visit: Visit, route: Route, pieces: readonly Buffer[], bytes: number): Promise<void> {
    visit.requestBytes = bytes;
    try {
      const { body, key } = readHttpBody(this.#options.contract, route, pieces, this.#options.rules);
      visit.key = key;
      const call: Call = {
        service: this.#options.contract.service,
        route: route.path,
        body,
        requestId: visit.requestId,
        key,
        caller: visit.caller,
      };
      const reply = await this.#options.handler(call);
      const replyBytes = this.#answers.reply(visit, reply);
      this.#options.report.exchange({
        ...this.#recordOf(visit),
        outcome: "answered",
        httpStatus: 200,
        status: reply.status,
        code: reply.code,
        queueMs: reply.queueMs,
        lineMs: reply.lineMs,
        replyBytes,
        message: undefined,
      });
    } catch (error) {
      this.#failed(visit, error);
    }
  }

  #failed(visit: Visit, error: unknown): void {
    if (!(error instanceof Fault)) this.#options.report.error(error);
    const fault =
      error instanceof Fault
        ? error
        : new Fault("broken", "Cannot answer: posline failed within: outcome unknown: check first");
    const { httpStatus, code, bytes } = this.#answers.fault(visit, fault);
    this.#options.report.exchange({
      ...this.#recordOf(visit),
      outcome: fault.outcome,
      httpStatus,
      status: "error",
      code,
      queueMs: fault.details.queueMs ?? 0,
      lineMs: fault.details.lineMs ?? 0,
      replyBytes: bytes,
      message: fault.message,
    });
  }

  #recordOf(visit: Visit) {
    const { service } = this.#options.contract;
    // An unknown path is the sender's text, not ours: it may hold anything.
    const route = routeOf(this.#options.contract, visit.path)?.path ?? "?";
    const { requestId, key, requestBytes, caller } = visit;
    return { requestId, service, route, key, requestBytes, left: caller.gone };
  }

  /** What came is no HTTP, or too slow or too large for it. */
  #broken(error: NodeJS.ErrnoException, socket: Socket): void {
    // While a request of this connection is unanswered, these words would be taken for its answer.
    if (this.#serving.has(socket) || !socket.writable || error.code === "ECONNRESET") {
      socket.destroy();
      return;
    }
    const requestId = this.#newId(undefined);
    const { fault, httpStatus, code, bytes } = this.#answers.broken(error.code, socket, requestId);
    const { service } = this.#options.contract;
    const nothing = { key: undefined, queueMs: 0, lineMs: 0, requestBytes: 0, left: false };
    const said = { outcome: fault.outcome, httpStatus, status: "error", code, replyBytes: bytes, message: fault.message };
    this.#options.report.exchange({ requestId, service, route: "?", ...nothing, ...said });
  }
}

function pathOf(url: string): string {
  const query = url.indexOf("?");
  return query === -1 ? url : url.slice(0, query);
}
