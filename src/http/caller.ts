import type { Contract } from "../contract/contract.ts";
import { noSuchRoute, routeOf } from "../contract/contracts.ts";
import type { Call, Reply } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { durationText } from "../core/duration.ts";
import { Fault } from "../core/fault.ts";
import { version } from "../core/version.ts";
import { toHttp } from "../envelope/http-request.ts";
import { connectTo, NoResponse, sendRequest, Unreachable } from "./caller-request.ts";
import { faultTexts, interpretResponse } from "./caller-response.ts";
import * as limits from "./limits.ts";

/**
 * Sends calls by HTTP to an upstream that has the service: one that a terminal's maker runs, or another posline.
 *
 * Each call has a connection of its own. On a kept connection, an upstream that ends it just as the request goes out looks like an upstream
 * that took the request and died, so a sale that never arrived would be reported as unknown, or, worse, be sent again. A connection that
 * nothing was written to settles it: until it stands, nothing was sent; after that the outcome is unknown until an answer says otherwise.
 * Nothing is ever sent twice.
 */

export interface HttpCallerOptions {
  readonly contract: Contract;
  /** The service's base URL, `http:` or `https:`; a path in it goes before each route. */
  readonly upstream: string;
  /** Milliseconds by route, from the call's arrival to the last byte of its answer. */
  readonly replyTimeoutMs: Readonly<Record<string, number>>;
  /** Bytes of the largest answer that is taken. */
  readonly replyBytesMax: number;
  /** API key, sent as `X-API-Key`. */
  readonly apiKey: string | undefined;
  /** Ends calls in flight; their outcome is then unknown. */
  readonly stop?: AbortSignal;
}

/**
 * Makes a handler that asks one service over HTTP.
 * @returns a function of a call and the milliseconds that it has waited already, which shorten its wait here.
 */
export function httpCaller(options: HttpCallerOptions): (call: Call, waitedMs?: number) => Promise<Reply> {
  const { contract, stop = new AbortController().signal } = options;
  const upstream = new URL(options.upstream);
  return async (call, waitedMs = 0) => {
    const message = toHttp(contract, call);
    const route = routeOf(contract, message.path);
    if (route === undefined) throw new Fault("route", `Cannot send the request: ${noSuchRoute(contract, call.route)}`);
    const texts = faultTexts(contract, route, call);
    const startedMs = nowMs();
    const timeoutMs = options.replyTimeoutMs[route.path] ?? route.replyTimeoutMs;
    const dueMs = startedMs + timeoutMs - waitedMs;
    if (dueMs - startedMs < limits.responseMsMin)
      throw texts.notSent(
        "waited-too-long",
        `posline stood still, or the call waited ${durationText(waitedMs)} for another request`,
      );
    if (call.caller.gone) throw texts.notSent("caller-left", "the till no longer waits for the answer");
    try {
      const connection = await connectTo(upstream, Math.min(limits.connectMs, dueMs - startedMs), stop);
      const refusal = call.caller.gone
        ? texts.notSent("caller-left", "the till no longer waits for the answer")
        : dueMs - nowMs() < limits.responseMsMin
          ? texts.notSent("upstream-unreachable", `connecting to the upstream ${upstream.host} took too long`)
          : undefined;
      if (refusal !== undefined) {
        connection.destroy();
        throw refusal;
      }
      const response = await sendRequest({
        connection,
        host: upstream.host,
        method: message.method,
        path: `${upstream.pathname.replace(/\/+$/, "")}${message.path}`,
        headers: headersOf(call, message.contentType, options.apiKey),
        body: message.body,
        responseBytesMax: options.replyBytesMax,
        timeoutMs: Math.max(1, dueMs - nowMs()),
        stop,
      });
      return { ...interpretResponse(response, texts), queueMs: 0, lineMs: nowMs() - startedMs };
    } catch (error) {
      if (error instanceof Unreachable)
        throw texts.notSent("upstream-unreachable", `the upstream ${upstream.host} can't be reached (${error.message})`);
      if (!(error instanceof NoResponse)) throw error;
      throw texts.unknown(
        error.reason,
        error.reason === "no-reply" ? `no answer came within ${durationText(timeoutMs)}` : error.message,
      );
    }
  };
}

function headersOf(call: Call, contentType: string | undefined, apiKey: string | undefined): Readonly<Record<string, string>> {
  return {
    Accept: "application/json",
    // Without this header any encoding may come.
    "Accept-Encoding": "identity",
    "User-Agent": `posline/${version}`,
    "X-Request-Id": call.requestId,
    ...(call.trace === undefined ? {} : { traceparent: call.trace }),
    ...(contentType === undefined ? {} : { "Content-Type": contentType }),
    ...(apiKey === undefined ? {} : { "X-API-Key": apiKey }),
  };
}
