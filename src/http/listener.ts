import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { ServiceConfig } from "../config/config.ts";
import type { Contract } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { Call, Handler } from "../core/call.ts";
import { checkFirst, Fault } from "../core/fault.ts";
import type { ExchangeRecord } from "../core/log.ts";
import { type RequestRules, readHttpBody } from "../envelope/request.ts";
import { type Answered, Answers, brokenFault, requestIds } from "./answer.ts";
import { BodyReader } from "./body.ts";
import { Connections } from "./connections.ts";
import { Guard } from "./guard.ts";
import * as limits from "./limits.ts";
import { type Ending, recordOf, type Stray, type Visit, Visitor } from "./visit.ts";

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
  /** How long a request may take to come, where not as `limits` says: a test can't wait that long. */
  readonly patience?: { readonly headersMs: number; readonly requestMs: number; readonly checkConnectionsMs: number };
}

export class HttpListener {
  readonly #options: HttpListenerOptions;
  readonly #guard: Guard;
  readonly #answers: Answers;
  readonly #bodies: BodyReader;
  readonly #newId = requestIds();
  readonly #server: Server;
  readonly #connections = new Connections();

  constructor(options: HttpListenerOptions) {
    this.#options = options;
    const { config, contract, patience = limits } = options;
    this.#guard = new Guard({ allowHosts: config.allowHosts, allowOrigins: config.allowOrigins, apiKey: config.apiKey });
    this.#answers = new Answers(contract, config.faultStatus);
    this.#bodies = new BodyReader(config.bodyBytesMax, limits.bodiesMax * config.bodyBytesMax);
    this.#server = createServer(
      {
        maxHeaderSize: limits.headersBytesMax,
        headersTimeout: patience.headersMs,
        requestTimeout: patience.requestMs,
        keepAliveTimeout: limits.keepAliveMs,
        connectionsCheckingInterval: patience.checkConnectionsMs,
        noDelay: true,
        // A request without Host is answered by the guard, in the service's own words; two of them become one that is no name.
        requireHostHeader: false,
        joinDuplicateHeaders: true,
      },
      (request, response) => this.#serve(request, response),
    );
    this.#server.maxConnections = limits.connectionsMax;
    this.#server.on("connection", (socket: Socket) => this.#connections.opened(socket, (visit) => this.#left(visit)));
    this.#server.on("checkContinue", (request, response) => this.#serve(request, response, true));
    this.#server.on("checkExpectation", (request, response) => this.#serve(request, response));
    // A server that isn't given other streams has sockets.
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
    this.#connections.close();
    await closed;
  }

  #serve(request: IncomingMessage, response: ServerResponse, continueAsked = false): void {
    const visit: Visit = {
      request,
      response,
      requestId: this.#newId(request.headers["x-request-id"]),
      caller: new Visitor(request),
      origin: undefined,
      route: undefined,
      key: undefined,
      requestBytes: 0,
      heldBytes: 0,
      whole: false,
      over: false,
      handed: false,
      last: false,
    };
    this.#connections.entered(visit);
    // A box without a battery clock doesn't know the date, and must not claim one (RFC 9110, 6.6.1).
    response.sendDate = false;
    response.on("finish", () => this.#finished(visit));
    try {
      if (!this.#admit(visit)) return;
      this.#bodies.read(
        request,
        visit,
        (pieces) => void this.#call(visit, pieces),
        (fault) => this.#failed(visit, fault),
      );
      if (continueAsked) response.writeContinue();
    } catch (error) {
      this.#failed(visit, error);
    }
  }

  /** Decides from the headers; false when the request is answered by them. */
  #admit(visit: Visit): boolean {
    const { request } = visit;
    visit.origin = this.#guard.admit(request);
    if (request.method === "OPTIONS" && visit.origin !== undefined) {
      visit.last = this.#connections.endsWith(visit);
      this.#answers.preflight(request, visit, visit.origin);
      return false;
    }
    this.#guard.checkKey(request);
    const path = pathOf(request.url ?? "/");
    const route = routeOf(this.#options.contract, path);
    if (route === undefined) {
      throw new Fault("route", `Cannot accept the request: ${this.#options.contract.service} has no such route`);
    }
    visit.route = route;
    if (route.methods.some((method) => method === request.method)) return true;
    const methods = route.methods.join(" or ");
    throw new Fault("method", `Cannot accept the request: ${path} takes ${methods}`, { allow: route.methods });
  }

  async #call(visit: Visit, pieces: readonly Buffer[]): Promise<void> {
    const { contract, rules, handler } = this.#options;
    const { route, requestId, caller } = visit;
    try {
      if (route === undefined) throw new Error("Cannot serve the request: its route is not known yet");
      const { body, key } = readHttpBody(contract, route, pieces, rules);
      visit.key = key;
      visit.handed = true;
      const call: Call = { service: contract.service, route: route.path, body, requestId, key, caller };
      const reply = await handler(call);
      visit.last = this.#connections.endsWith(visit);
      const { status, code, queueMs, lineMs } = reply;
      const replyBytes = this.#answers.reply(visit, reply);
      this.#report(visit, {
        outcome: "answered",
        httpStatus: 200,
        status,
        code,
        queueMs,
        lineMs,
        replyBytes,
        message: undefined,
      });
    } catch (error) {
      this.#failed(visit, error);
    }
  }

  #failed(visit: Visit, error: unknown): void {
    const fault = error instanceof Fault ? error : this.#bug(error, visit.handed);
    visit.last = this.#connections.endsWith(visit);
    this.#reportFault(visit, fault, this.#answers.fault(visit, fault));
  }

  #bug(error: unknown, handed: boolean): Fault {
    this.#options.report.error(error);
    return handed
      ? new Fault("broken", `Cannot answer: posline failed within: ${checkFirst[this.#options.contract.service]}`)
      : new Fault("unavailable", "Cannot accept the request: posline failed within: nothing was sent");
  }

  /** The answer has gone out. */
  #finished(visit: Visit): void {
    this.#bodies.release(visit);
    this.#connections.finished(visit);
  }

  /** The connection is gone before the answer. */
  #left(visit: Visit): void {
    this.#bodies.release(visit);
    visit.caller.gone = true;
    visit.caller.onGone?.();
  }

  /** What came is no HTTP, or too slow or too large for it. */
  #broken(error: NodeJS.ErrnoException, socket: Socket): void {
    const { verdict, visit } = this.#connections.broke(socket, error.code);
    if (verdict === "end") socket.destroy();
    if (verdict !== "answer") return;
    const fault = brokenFault(error.code);
    if (visit !== undefined) this.#bodies.release(visit);
    const asked: Visit | Stray = visit ?? { requestId: this.#newId(undefined), origin: undefined, last: true };
    this.#reportFault(asked, fault, this.#answers.broken(socket, asked, fault));
  }

  #reportFault(visit: Visit | Stray, { outcome, message, details }: Fault, { httpStatus, code, bytes }: Answered): void {
    const { queueMs = 0, lineMs = 0 } = details;
    this.#report(visit, { outcome, httpStatus, status: "error", code, queueMs, lineMs, replyBytes: bytes, message });
  }

  /** A log that fails must not change an answer. */
  #report(visit: Visit | Stray, ending: Ending): void {
    try {
      this.#options.report.exchange(recordOf(this.#options.contract.service, visit, ending));
    } catch (error) {
      this.#options.report.error(error);
    }
  }
}

function pathOf(url: string): string {
  const query = url.indexOf("?");
  return query === -1 ? url : url.slice(0, query);
}
