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
interface Visit extends Held {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly caller: Presence;
  origin: string | undefined;
  route: Route | undefined;
  key: string | undefined;
  /** True once the handler has it: from then on only a Fault may say that nothing was sent. */
  handed: boolean;
  /** True when the connection ends with the answer. */
  last: boolean;
}

/** What became of a visit, for the log. */
type Ending = Pick<
  ExchangeRecord,
  "outcome" | "httpStatus" | "status" | "code" | "queueMs" | "lineMs" | "replyBytes" | "message"
>;

export class HttpListener {
  readonly #options: HttpListenerOptions;
  readonly #guard: Guard;
  readonly #answers: Answers;
  readonly #bodies: BodyReader;
  readonly #newId = requestIds();
  readonly #server: Server;
  /** Every connection with its requests that aren't answered yet, in the order in which they came. */
  readonly #visits = new Map<Socket, Visit[]>();
  /** Connections that were told that they are broken. */
  readonly #told = new WeakSet<Socket>();
  #closing = false;

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
        // A request without Host is answered by the guard, in the service's own words; two of them become one that is no name.
        requireHostHeader: false,
        joinDuplicateHeaders: true,
      },
      (request, response) => this.#serve(request, response),
    );
    this.#server.maxConnections = limits.connectionsMax;
    this.#server.on("connection", (socket: Socket) => {
      this.#visits.set(socket, []);
      socket.on("close", () => this.#left(socket));
    });
    this.#server.on("checkContinue", (request, response) => this.#serve(request, response, true));
    this.#server.on("checkExpectation", (request, response) => this.#serve(request, response));
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
    this.#closing = true;
    // Browsers open connections ahead of need; one that has asked nothing yet isn't waited for.
    for (const socket of this.#visits.keys()) if (socket.bytesRead === 0) socket.destroy();
    await closed;
  }

  #serve(request: IncomingMessage, response: ServerResponse, continueAsked = false): void {
    const visit: Visit = {
      request,
      response,
      requestId: this.#newId(request.headers["x-request-id"]),
      caller: present(),
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
    this.#visits.get(request.socket)?.push(visit);
    response.on("finish", () => this.#finished(visit));
    try {
      if (!this.#admit(visit)) return;
      if (continueAsked) response.writeContinue();
      this.#bodies.read(
        request,
        visit,
        (pieces) => void this.#call(visit, pieces),
        (fault) => this.#failed(visit, fault),
      );
    } catch (error) {
      this.#failed(visit, error);
    }
  }

  /** Decides from the headers; false when the request is answered by them. */
  #admit(visit: Visit): boolean {
    const { request } = visit;
    visit.origin = this.#guard.admit(request);
    if (request.method === "OPTIONS" && visit.origin !== undefined) {
      this.#mayEnd(visit);
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
      this.#mayEnd(visit);
      const { status, code, queueMs, lineMs } = reply;
      const replyBytes = this.#answers.reply(visit, reply);
      this.#report(visit, { outcome: "answered", httpStatus: 200, status, code, queueMs, lineMs, replyBytes, message: undefined });
    } catch (error) {
      this.#failed(visit, error);
    }
  }

  #failed(visit: Visit, error: unknown): void {
    const fault = error instanceof Fault ? error : this.#bug(error, visit.handed);
    this.#mayEnd(visit);
    this.#reportFault(visit, fault, this.#answers.fault(visit, fault));
  }

  #bug(error: unknown, handed: boolean): Fault {
    this.#options.report.error(error);
    return handed
      ? new Fault("broken", `Cannot answer: posline failed within: ${checkFirst[this.#options.contract.service]}`)
      : new Fault("unavailable", "Cannot accept the request: posline failed within: nothing was sent");
  }

  /** The connection ends with its last answer while the service shuts down. */
  #mayEnd(visit: Visit): void {
    visit.last = this.#closing && this.#visits.get(visit.request.socket)?.length === 1;
  }

  /** The answer has gone out. */
  #finished(visit: Visit): void {
    this.#bodies.release(visit);
    const { socket } = visit.request;
    const visits = this.#visits.get(socket);
    if (visits === undefined) return;
    visits.splice(visits.indexOf(visit), 1);
    if (this.#closing && visits.length === 0) socket.end();
  }

  /** The connection is gone, with everybody who waited on it: also behind another request, where its response hears nothing. */
  #left(socket: Socket): void {
    const visits = this.#visits.get(socket) ?? [];
    this.#visits.delete(socket);
    for (const visit of visits) {
      this.#bodies.release(visit);
      visit.caller.gone = true;
      visit.caller.onGone?.();
    }
  }

  /** What came is no HTTP, or too slow or too large for it. */
  #broken(error: NodeJS.ErrnoException, socket: Socket): void {
    const visits = this.#visits.get(socket) ?? [];
    if (this.#told.has(socket)) {
      // What follows the broken part is dropped until the connection ends.
      if (error.code?.startsWith("HPE_") !== true) socket.destroy();
      return;
    }
    const [visit, ...others] = visits;
    // While a request of this connection is under way, a fault would be taken for its answer. One whose body is cut short isn't.
    const underWay = others.length > 0 || (visit !== undefined && (visit.whole || visit.response.headersSent));
    if (underWay || !socket.writable || error.code === "ECONNRESET") {
      socket.destroy();
      return;
    }
    this.#told.add(socket);
    setTimeout(() => socket.destroy(), limits.lingerMs).unref();
    const asked = visit ?? { requestId: this.#newId(undefined), origin: undefined, last: true };
    const fault = brokenFault(error.code);
    if (visit !== undefined) this.#bodies.release(visit);
    this.#reportFault(visit ?? asked, fault, this.#answers.broken(socket, asked, fault));
  }

  #reportFault(visit: Reported, fault: Fault, answered: Answered): void {
    const { httpStatus, code, bytes } = answered;
    const { queueMs = 0, lineMs = 0 } = fault.details;
    const { outcome, message } = fault;
    this.#report(visit, { outcome, httpStatus, status: "error", code, queueMs, lineMs, replyBytes: bytes, message });
  }

  #report(visit: Reported, ending: Ending): void {
    this.#options.report.exchange({
      requestId: visit.requestId,
      service: this.#options.contract.service,
      // An unknown path is the sender's text, not ours: it may hold anything.
      route: visit.route?.path ?? "?",
      key: visit.key,
      outcome: ending.outcome,
      httpStatus: ending.httpStatus,
      status: ending.status,
      code: ending.code,
      queueMs: ending.queueMs,
      lineMs: ending.lineMs,
      requestBytes: visit.requestBytes ?? 0,
      replyBytes: ending.replyBytes,
      left: visit.caller?.gone ?? false,
      message: ending.message,
    });
  }
}

function pathOf(url: string): string {
  const query = url.indexOf("?");
  return query === -1 ? url : url.slice(0, query);
}
