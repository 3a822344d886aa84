import type { Contract } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import type { Call, Reply } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
import { version } from "../core/version.ts";
import { toHttp } from "../envelope/http-request.ts";
import { judge } from "./caller-answer.ts";
import { connectTo, Unreachable } from "./caller-connection.ts";
import { converse, Unanswered } from "./caller-exchange.ts";
import { wordsFor } from "./caller-words.ts";
import * as limits from "./limits.ts";

/**
 * Where calls leave by HTTP, for an upstream that has the service: one that a terminal's maker runs, or another posline.
 *
 * Each call has a connection of its own. On one that is kept, an upstream that ends it just as the request goes out looks like
 * an upstream that took the request and died, so a sale that never arrived would be told as unknown, or, worse, be sent again. A
 * connection that nothing was written to settles it: until it stands, nothing was sent; after that the outcome is unknown until
 * an answer says otherwise. Nothing is ever sent twice.
 */

export interface HttpCallerOptions {
  readonly contract: Contract;
  /** The service's base URL, `http:` or `https:`; a path in it goes before each route. */
  readonly upstream: string;
  /** Milliseconds by route, from the call's coming to the last byte of its answer. */
  readonly replyTimeoutMs: Readonly<Record<string, number>>;
  /** Bytes of the largest answer that is taken. */
  readonly replyBytesMax: number;
  /** Sent as `X-API-Key`. */
  readonly apiKey: string | undefined;
  /** Ends what is in flight; its outcome is then unknown. */
  readonly stop?: AbortSignal;
}

/**
 * A handler that asks one service over HTTP.
 *
 * @returns what takes a call and for how many milliseconds it has waited already: whoever asked doesn't wait any longer for that.
 */
export function httpCaller(options: HttpCallerOptions): (call: Call, waitedMs?: number) => Promise<Reply> {
  const { contract, stop = new AbortController().signal } = options;
  const upstream = new URL(options.upstream);
  return async (call, waitedMs = 0) => {
    const message = toHttp(contract, call);
    const route = routeOf(contract, message.path);
    if (route === undefined) throw new Fault("route", `Cannot send ${call.route}: ${contract.service} has no such route`);
    const words = wordsFor(contract, route);
    const beganMs = nowMs();
    const timeoutMs = options.replyTimeoutMs[route.path] ?? route.replyTimeoutMs;
    const dueMs = beganMs + timeoutMs - waitedMs;
    if (dueMs - beganMs < limits.askMsMin) throw words.unsent(`it waited ${Math.round(waitedMs)} ms behind another request`);
    if (call.caller.gone) throw words.unsent("whoever asked has left");
    try {
      const connection = await connectTo(upstream, Math.min(limits.connectMs, dueMs - beganMs), stop);
      if (call.caller.gone) {
        connection.destroy();
        throw words.unsent("whoever asked has left");
      }
      const answer = await converse({
        connection,
        host: upstream.host,
        method: message.method,
        path: `${upstream.pathname.replace(/\/+$/, "")}${message.path}`,
        headers: headersOf(call, message.contentType, options.apiKey),
        body: message.body,
        answerBytesMax: options.replyBytesMax,
        timeoutMs: Math.max(1, dueMs - nowMs()),
        stop,
      });
      return { ...judge(answer, words), queueMs: 0, lineMs: nowMs() - beganMs };
    } catch (error) {
      if (error instanceof Unreachable) throw words.unsent(`its upstream ${upstream.host} can't be reached (${error.message})`);
      if (!(error instanceof Unanswered)) throw error;
      if (error.kind === "timeout") throw words.unknown("timeout", `no answer came within ${timeoutMs} ms`);
      throw words.unknown("broken", error.message);
    }
  };
}

function headersOf(call: Call, contentType: string | undefined, apiKey: string | undefined): Readonly<Record<string, string>> {
  return {
    Accept: "application/json",
    "User-Agent": `posline/${version}`,
    "X-Request-Id": call.requestId,
    ...(contentType === undefined ? {} : { "Content-Type": contentType }),
    ...(apiKey === undefined ? {} : { "X-API-Key": apiKey }),
  };
}
