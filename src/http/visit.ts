import type { IncomingMessage, ServerResponse } from "node:http";
import type { Route } from "../contract/contract.ts";
import type { Presence, ServiceName } from "../core/call.ts";
import type { ExchangeRecord } from "../core/log.ts";
import type { Held } from "./body.ts";
import type { Terms } from "./terms.ts";

/** Whoever sent a request. A class, so that no request costs a closure. */
export class Visitor implements Presence {
  gone = false;
  onGone: (() => void) | undefined = undefined;
  readonly #request: IncomingMessage;

  constructor(request: IncomingMessage) {
    this.#request = request;
  }

  hangUp(): void {
    this.#request.socket.destroy();
  }
}

/** A request while it is being served. */
export interface Visit extends Held {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly terms: Terms;
  readonly requestId: string;
  /** As it was asked for, without its query. */
  readonly path: string;
  readonly caller: Presence;
  origin: string | undefined;
  route: Route | undefined;
  key: string | undefined;
  /** True once the handler has it: from then on only the handler's Fault may say that nothing was sent. */
  handed: boolean;
  /** True when the connection ends with the answer. */
  last: boolean;
}

/** What came that isn't even a request. */
export interface Stray {
  readonly requestId: string;
  readonly path: undefined;
  readonly origin: undefined;
  readonly last: true;
}

/** What became of a request, for the log. */
export type Ending = Pick<
  ExchangeRecord,
  "outcome" | "httpStatus" | "status" | "code" | "queueMs" | "lineMs" | "replyBytes" | "message"
>;

/** A request's line in the log. */
export function recordOf(service: ServiceName, visit: Visit | Stray, ending: Ending): ExchangeRecord {
  const known = "request" in visit ? visit : undefined;
  return {
    requestId: visit.requestId,
    service,
    // An unknown path is the sender's text, not ours: it may hold anything.
    route: known?.route?.path ?? "?",
    key: known?.key,
    outcome: ending.outcome,
    httpStatus: ending.httpStatus,
    status: ending.status,
    code: ending.code,
    queueMs: ending.queueMs,
    lineMs: ending.lineMs,
    requestBytes: known?.requestBytes ?? 0,
    replyBytes: ending.replyBytes,
    left: known?.caller.gone ?? false,
    message: ending.message,
  };
}
