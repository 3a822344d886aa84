import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { noSuchRoute, routeOf } from "../contract/contracts.ts";
import { settlingRulesOf } from "../contract/settling.ts";
import type { Call } from "../core/call.ts";
import { checkFirst, Fault, nothingSent } from "../core/fault.ts";
import { readTraceparent } from "../core/traceparent.ts";
import { readHttpBody } from "../envelope/request.ts";
import { type ParseError, parseErrorFault } from "./parse-error.ts";
import { followMsOf } from "./prefer.ts";
import {
  ClientPresence,
  type ExchangeResult,
  exchangeRecord,
  type RequestContext,
  requestIds,
  type UnparsedRequest,
} from "./request-context.ts";
import { type RequestTarget, requestTarget } from "./request-target.ts";
import type { ResponseSummary } from "./response-writer.ts";
import { BoundedServer, type ListeningAt, type ListenOn, type RequestTimeouts } from "./server.ts";
import { type AppliedSettings, applySettings, type ServiceSettings } from "./service-settings.ts";

/**
 * The server of one service: calls enter by HTTP here. The listener knows the service's table and envelope, and hands each good request to
 * a handler; it doesn't know whether a line, the network or an emulator answers.
 */

export interface HttpListenerOptions extends ServiceSettings {
  /** How long a request may take to arrive; the values of `limits` unless a test, which can't wait that long, gives others. */
  readonly timeouts?: Partial<RequestTimeouts>;
}

export class HttpListener {
  #settings: AppliedSettings;
  readonly #newIds = requestIds();
  readonly #server: BoundedServer<RequestContext>;

  constructor(options: HttpListenerOptions) {
    this.#settings = applySettings(options);
    this.#server = new BoundedServer<RequestContext>(
      {
        onRequest: (request, response, continueAsked) => this.#onRequest(request, response, continueAsked),
        onClientGone: (context) => this.#onClientGone(context),
        onParseError: (socket, error, context) => this.#onParseError(socket, error, context),
        onError: (error) => this.#settings.report.error(error),
      },
      options.timeouts,
    );
  }

  /**
   * Begins to listen, on its own port or on sockets that somebody else opened.
   * @throws Error when an address can't be had, with the system's code.
   */
  listen(on: ListenOn = this.#settings.config): Promise<ListeningAt> {
    return this.#server.listen(on);
  }

  /**
   * A connection from within this process, by which it is asked as by any other; the Host must be a loopback name.
   * @throws Error if it is closed.
   */
  connect(): Duplex {
    return this.#server.connect();
  }

  /**
   * Takes requests by other settings from now on, or for another service, on the connections that are open as well. Requests that
   * began before end by the settings under which they began. The address stays.
   */
  replace(settings: ServiceSettings): void {
    this.#settings = applySettings(settings, this.#settings);
  }

  /** Stops accepting; settles when the last answer was sent. */
  close(): Promise<void> {
    return this.#server.close();
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, continueAsked: boolean): void {
    const settings = this.#settings;
    const trace = readTraceparent(request.headers["traceparent"]);
    const target = requestTarget(request.url);
    const context: RequestContext = {
      settings,
      request,
      response,
      ...this.#newIds(request.headers["x-request-id"], trace),
      trace,
      path: target.path,
      client: new ClientPresence(request),
      origin: undefined,
      route: undefined,
      key: undefined,
      amount: undefined,
      followMs: undefined,
      requestBytes: 0,
      heldBytes: 0,
      bodyDone: false,
      dispatched: false,
      closesConnection: false,
    };
    this.#server.connections.requestStarted(context);
    // A box without a battery clock doesn't know the date, and must not claim one (RFC 9110, 6.6.1).
    response.sendDate = false;
    response.on("finish", () => this.#onFinished(context));
    try {
      this.#server.connections.refuseOverLimit(context);
      if (!this.#admit(context, target)) return;
      // A followed call may have been sent before, and then is only asked about: its follower decides.
      if (context.followMs === undefined) refuseNow(context, announcedBytes(request));
      settings.bodies.read(
        request,
        context,
        (pieces) => void this.#dispatch(context, pieces),
        (fault) => this.#failed(context, fault),
      );
      if (continueAsked) response.writeContinue();
    } catch (error) {
      this.#failed(context, error);
    }
  }

  /** Checks the headers; false if the request was answered by them alone. */
  #admit(context: RequestContext, target: RequestTarget): boolean {
    const {
      request,
      path,
      settings: { contract, guard, responses, isFollowed },
    } = context;
    context.origin = guard.admit(request, target);
    if (request.method === "OPTIONS") {
      context.closesConnection = this.#server.connections.closesAfter(context);
      responses.writeOptions(request, context);
      return false;
    }
    guard.checkKey(request);
    const route = routeOf(contract, path);
    if (route === undefined) throw new Fault("route", `Cannot accept the request: ${noSuchRoute(contract, path)}`);
    context.route = route;
    if (isFollowed === true && settlingRulesOf(contract.service, route.path) !== undefined) {
      context.followMs = followMsOf(request.headers["prefer"]);
    }
    if (route.methods.some((method) => method === request.method)) return true;
    const methods = route.methods.join(" or ");
    throw new Fault("method", `Cannot accept the request: ${path} takes ${methods}, not ${request.method}`, {
      allow: route.methods,
    });
  }

  async #dispatch(context: RequestContext, pieces: readonly Buffer[]): Promise<void> {
    const {
      route,
      requestId,
      callId,
      trace,
      client,
      request,
      settings: { contract, service, rules, handler, responses },
    } = context;
    try {
      if (route === undefined) throw new Error("Cannot serve the request: its route is not known yet");
      // Looked at again, since the body may have taken its time: a call that is refused anyway isn't parsed.
      if (context.followMs === undefined) refuseNow(context, context.requestBytes);
      const { body, key, amount } = readHttpBody(contract, route, pieces, rules, request);
      context.key = key;
      context.amount = amount;
      context.dispatched = true;
      const call: Call = {
        service,
        contract: contract.service,
        route: route.path,
        body,
        requestId,
        callId,
        trace,
        key,
        amount,
        caller: client,
        followMs: context.followMs,
      };
      const reply = await handler(call);
      context.closesConnection = this.#server.connections.closesAfter(context);
      const { status, code, queueMs, lineMs } = reply;
      const replyBytes = responses.writeReply(context, reply);
      this.#report(context, {
        outcome: "answered",
        result: reply.followed?.result,
        end: reply.end,
        httpStatus: 200,
        status,
        code,
        queueMs,
        lineMs,
        replyBytes,
        message: undefined,
      });
    } catch (error) {
      this.#failed(context, error);
    } finally {
      context.settings.bodies.release(context);
    }
  }

  #failed(context: RequestContext, error: unknown): void {
    const fault = error instanceof Fault ? error : faultOfBug(error, context);
    context.closesConnection = this.#server.connections.closesAfter(context);
    this.#reportFault(context, fault, context.settings.responses.writeFault(context, fault));
  }

  /** Ends the context of a request, since its answer was sent. */
  #onFinished(context: RequestContext): void {
    context.settings.bodies.release(context);
    this.#server.connections.responseFinished(context);
  }

  /** Handles a client that closed the connection, or its side of it, before the answer was sent. */
  #onClientGone(context: RequestContext): void {
    // A body that the handler has is held until the handler ends: others may wait for the same call, or it is on the line. While our side
    // is open, a whole request is still to be handed on.
    if (!context.dispatched && context.request.socket.destroyed) context.settings.bodies.release(context);
    context.client.leave();
  }

  /** Answers bytes that are not HTTP, or a request that is too slow or too large. */
  #onParseError(socket: Socket, error: ParseError, context: RequestContext | undefined): void {
    const fault = parseErrorFault(error, context);
    if (context !== undefined) {
      context.settings.bodies.release(context);
      this.#failed(context, fault);
      return;
    }
    const received: UnparsedRequest = {
      ...this.#newIds(undefined, undefined),
      path: undefined,
      origin: undefined,
      closesConnection: true,
    };
    this.#reportFault(received, fault, this.#settings.responses.writeFaultTo(socket, received, fault));
  }

  #reportFault(
    received: RequestContext | UnparsedRequest,
    { outcome, reason, message, details }: Fault,
    summary: ResponseSummary,
  ): void {
    const { queueMs = 0, lineMs = 0, followed } = details;
    const { httpStatus, status, code, bytes } = summary;
    const result = followed?.result;
    this.#report(received, { outcome, reason, result, httpStatus, status, code, queueMs, lineMs, replyBytes: bytes, message });
  }

  /** Reports an exchange; a log that fails must not change an answer. */
  #report(received: RequestContext | UnparsedRequest, result: ExchangeResult): void {
    const { service, report } = "settings" in received ? received.settings : this.#settings;
    try {
      report.exchange(exchangeRecord(service, received, result));
    } catch (error) {
      report.error(error);
    }
  }
}

/**
 * Refuses a call before its body is read: while a line is down or full, bodies would be read and parsed only to be refused.
 * @throws Fault if any call of its route, with a body of that length, would be refused now.
 */
function refuseNow({ route, settings: { refusal } }: RequestContext, bodyBytes: number | undefined): void {
  const fault = refusal?.(route?.path ?? "", bodyBytes);
  if (fault !== undefined) throw fault;
}

/** The length of a body that is still to come; undefined if only its end will tell. */
function announcedBytes({ headers }: IncomingMessage): number | undefined {
  return headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : undefined;
}

/** An error that is not a Fault is a bug of posline's. */
function faultOfBug(error: unknown, { dispatched, settings: { contract, report } }: RequestContext): Fault {
  report.error(error);
  return dispatched
    ? new Fault("broken", `Cannot answer: internal error in posline, please report it. ${checkFirst[contract.service]}`)
    : new Fault("unavailable", `Cannot accept the request: internal error in posline, please report it. ${nothingSent}`);
}
