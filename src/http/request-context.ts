import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Route } from "../contract/contract.ts";
import type { Amount, ServiceName } from "../core/call.ts";
import type { ExchangeRecord } from "../core/log.ts";
import { Presence } from "../core/presence.ts";
import { traceIdOf } from "../core/traceparent.ts";
import type { BodyState } from "./body.ts";
import type { AppliedSettings } from "./service-settings.ts";

/** The presence of a request's client: whether it is still connected. */
export class ClientPresence extends Presence {
  readonly #request: IncomingMessage;

  constructor(request: IncomingMessage) {
    super();
    this.#request = request;
  }

  override hangUp(): void {
    this.#request.socket.destroy();
  }
}

/** A request while it is being served. */
export interface RequestContext extends BodyState {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly settings: AppliedSettings;
  readonly requestId: string;
  readonly callId: string;
  /** The request's `traceparent`, if valid. */
  readonly trace: string | undefined;
  /** The path as requested, without its query. */
  readonly path: string;
  readonly client: Presence;
  origin: string | undefined;
  route: Route | undefined;
  key: string | undefined;
  amount: Amount | undefined;
  /** Milliseconds for which the client wants the operation followed; undefined if it doesn't. */
  followMs: number | undefined;
  /** True once the handler has the call: from then on only the handler's Fault may say that nothing was sent. */
  dispatched: boolean;
  /** True if the connection closes after the answer. */
  closesConnection: boolean;
}

/** Bytes that could not be parsed as a request. */
export interface UnparsedRequest {
  readonly requestId: string;
  readonly callId: string;
  readonly path: undefined;
  readonly origin: undefined;
  readonly closesConnection: true;
}

/** A request's ending, for the log. */
export type ExchangeResult = Pick<
  ExchangeRecord,
  "outcome" | "reason" | "result" | "end" | "httpStatus" | "status" | "code" | "queueMs" | "lineMs" | "replyBytes" | "message"
>;

/** A request's record in the log. */
export function exchangeRecord(
  service: ServiceName,
  received: RequestContext | UnparsedRequest,
  result: ExchangeResult,
): ExchangeRecord {
  const context = "request" in received ? received : undefined;
  return {
    requestId: received.requestId,
    callId: received.callId,
    traceId: context?.trace === undefined ? undefined : traceIdOf(context.trace),
    service,
    // An unknown path is the client's text and may hold anything: the message quotes it, masked and bounded.
    route: context?.route?.path ?? "?",
    key: context?.key,
    amount: context?.amount,
    outcome: result.outcome,
    reason: result.reason,
    result: result.result,
    end: result.end,
    httpStatus: result.httpStatus,
    status: result.status,
    code: result.code,
    queueMs: result.queueMs,
    lineMs: result.lineMs,
    requestBytes: context?.requestBytes ?? 0,
    replyBytes: result.replyBytes,
    left: context?.client.gone ?? false,
    message: result.message,
  };
}

/** The form of a client's request id; anything else could forge lines of a log. */
const idForm = /^[A-Za-z0-9._-]{1,64}$/;

/** A request's two names: one from the client, which may come twice, and one that no other request has. */
export type RequestIds = Pick<RequestContext, "requestId" | "callId">;

/**
 * Names requests. Each gets an id that is unique on a box, made of a random start for this listener and a count. Its request id is the one
 * that the client gave, else the id of its trace, which its next requests may have as well, else the unique id.
 */
export function requestIds(): (given: string | string[] | undefined, trace: string | undefined) => RequestIds {
  const start = randomBytes(4).toString("hex");
  let count = 0;
  return (given, trace) => {
    const callId = `${start}-${(++count).toString(36)}`;
    if (typeof given === "string" && idForm.test(given)) return { requestId: given, callId };
    return { requestId: trace === undefined ? callId : traceIdOf(trace), callId };
  };
}
