import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { routeOf } from "../contract/contracts.ts";
import type { Call } from "../core/call.ts";
import { checkFirst, Fault } from "../core/fault.ts";
import { readHttpBody } from "../envelope/request.ts";
import { type Answered, brokenFault, requestIds } from "./answer.ts";
import { waitingRequestsMax } from "./limits.ts";
import { BoundedServer, type ListenOn, type Patience } from "./server.ts";
import { type Settings, type Terms, termsOf } from "./terms.ts";
import { type Ending, recordOf, type Stray, type Visit, Visitor } from "./visit.ts";

/**
 * Where calls enter by HTTP: one server per service. It knows the service's table and envelope, and hands each good request to a
 * handler; it doesn't know whether a line, the network or an emulator answers.
 */

export interface HttpListenerOptions extends Settings {
  /** How long a request may take to come, where not as `limits` says: a test can't wait that long. */
  readonly patience?: Patience;
}

export class HttpListener {
  #terms: Terms;
  readonly #newId = requestIds();
  readonly #server: BoundedServer<Visit>;

  constructor(options: HttpListenerOptions) {
    this.#terms = termsOf(options);
    this.#server = new BoundedServer<Visit>(
      {
        serve: (request, response, continueAsked) => this.#serve(request, response, continueAsked),
        left: (visit) => this.#left(visit),
        broken: (socket, errorCode, visit) => this.#broken(socket, errorCode, visit),
        error: (error) => this.#terms.report.error(error),
      },
      options.patience,
    );
  }

  /**
   * Begins to listen, on its own port or on a socket that somebody else opened.
   * @throws Error when the address can't be had, with the system's code.
   */
  listen(on: ListenOn = this.#terms.config): Promise<AddressInfo> {
    return this.#server.listen(on);
  }

  /**
   * Takes requests by other settings from now on, or for another service, on the connections that are open as well. Requests that
   * began before end by the settings under which they began. The address stays.
   */
  replace(settings: Settings): void {
    this.#terms = termsOf(settings, this.#terms);
  }

  /** Stops accepting; settles when the last answer has gone out. */
  close(): Promise<void> {
    return this.#server.close();
  }

  #serve(request: IncomingMessage, response: ServerResponse, continueAsked: boolean): void {
    const terms = this.#terms;
    const visit: Visit = {
      terms,
      request,
      response,
      requestId: this.#newId(request.headers["x-request-id"]),
      path: pathOf(request.url ?? "/"),
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
    this.#server.connections.entered(visit);
    // A box without a battery clock doesn't know the date, and must not claim one (RFC 9110, 6.6.1).
    response.sendDate = false;
    response.on("finish", () => this.#finished(visit));
    try {
      if (this.#server.connections.isOneTooMany(visit)) throw tooManyWaiting();
      if (!this.#admit(visit)) return;
      refuseNow(terms);
      terms.bodies.read(
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
    const {
      request,
      path,
      terms: { contract, guard, answers },
    } = visit;
    visit.origin = guard.admit(request);
    if (request.method === "OPTIONS" && visit.origin !== undefined) {
      visit.last = this.#server.connections.endsWith(visit);
      answers.preflight(request, visit, visit.origin);
      return false;
    }
    guard.checkKey(request);
    const route = routeOf(contract, path);
    if (route === undefined) {
      throw new Fault("route", `Cannot accept the request: ${contract.service} has no such route`);
    }
    visit.route = route;
    if (route.methods.some((method) => method === request.method)) return true;
    const methods = route.methods.join(" or ");
    throw new Fault("method", `Cannot accept the request: ${path} takes ${methods}`, { allow: route.methods });
  }

  async #call(visit: Visit, pieces: readonly Buffer[]): Promise<void> {
    const {
      route,
      requestId,
      caller,
      terms: { contract, rules, handler, answers },
    } = visit;
    try {
      if (route === undefined) throw new Error("Cannot serve the request: its route is not known yet");
      // Once more, since the body may have taken its time: nobody parses what is refused anyway.
      refuseNow(visit.terms);
      const { body, key } = readHttpBody(contract, route, pieces, rules);
      visit.key = key;
      visit.handed = true;
      const call: Call = { service: contract.service, route: route.path, body, requestId, key, caller };
      const reply = await handler(call);
      visit.last = this.#server.connections.endsWith(visit);
      const { status, code, queueMs, lineMs } = reply;
      const replyBytes = answers.reply(visit, reply);
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
    const fault = error instanceof Fault ? error : bug(error, visit);
    visit.last = this.#server.connections.endsWith(visit);
    this.#reportFault(visit, fault, visit.terms.answers.fault(visit, fault));
  }

  /** The answer has gone out. */
  #finished(visit: Visit): void {
    visit.terms.bodies.release(visit);
    this.#server.connections.finished(visit);
  }

  /** The connection is gone before the answer. */
  #left(visit: Visit): void {
    visit.terms.bodies.release(visit);
    visit.caller.gone = true;
    visit.caller.onGone?.();
  }

  /** What came is no HTTP, or too slow or too large for it. */
  #broken(socket: Socket, errorCode: string | undefined, visit: Visit | undefined): void {
    const fault = brokenFault(errorCode);
    const { answers, bodies } = visit?.terms ?? this.#terms;
    if (visit !== undefined) bodies.release(visit);
    const asked: Visit | Stray = visit ?? { requestId: this.#newId(undefined), path: undefined, origin: undefined, last: true };
    this.#reportFault(asked, fault, answers.broken(socket, asked, fault));
  }

  #reportFault(visit: Visit | Stray, { outcome, message, details }: Fault, answered: Answered): void {
    const { queueMs = 0, lineMs = 0 } = details;
    const { httpStatus, status, code, bytes } = answered;
    this.#report(visit, { outcome, httpStatus, status, code, queueMs, lineMs, replyBytes: bytes, message });
  }

  /** A log that fails must not change an answer. */
  #report(visit: Visit | Stray, ending: Ending): void {
    const { contract, report } = "terms" in visit ? visit.terms : this.#terms;
    try {
      report.exchange(recordOf(contract.service, visit, ending));
    } catch (error) {
      report.error(error);
    }
  }
}

/** @throws Fault when any call would be refused now. */
function refuseNow({ refusal }: Terms): void {
  const fault = refusal?.();
  if (fault !== undefined) throw fault;
}

function tooManyWaiting(): Fault {
  const state = `${waitingRequestsMax} requests of its connection wait for their answers, which is the limit`;
  return new Fault("unavailable", `Cannot accept the request: ${state}: nothing was sent, it is safe to send again`, {
    retryAfterS: 1,
  });
}

/** What is no fault is posline's own mistake. */
function bug(error: unknown, { handed, terms: { contract, report } }: Visit): Fault {
  report.error(error);
  return handed
    ? new Fault("broken", `Cannot answer: posline failed within: ${checkFirst[contract.service]}`)
    : new Fault("unavailable", "Cannot accept the request: posline failed within: nothing was sent");
}

function pathOf(url: string): string {
  const query = url.indexOf("?");
  return query === -1 ? url : url.slice(0, query);
}
