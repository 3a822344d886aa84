import type { Contract, Route } from "../contract/contract.ts";
import { adviceAfter } from "../contract/recovery.ts";
import { checkFirst } from "../core/fault.ts";
import type { JsonObject } from "../core/json-object.ts";
import { type CallFailure, NotSentError, RejectedError, UnknownError } from "./errors.ts";
import { integerOf, parseObject, textOf, writeObject } from "./exact-json.ts";
import { signedForm } from "./form.ts";
import { type Answer, failed, type Transport, type TransportRequest } from "./transport.ts";
import type { CallOptions } from "./types.ts";

/** One service as a till sees it: a body goes out in the service's envelope, and what comes back is read once. */

/** What became of a request that was tried. */
export type Delivery =
  | { readonly outcome: "answered"; readonly success: boolean; readonly reply: JsonObject; readonly words: Words }
  | {
      readonly outcome: "not-sent";
      /** True when waiting helps, false when the request has to be mended. */
      readonly passing: boolean;
      readonly retryAfterMs: number | undefined;
      readonly words: Words;
    }
  | { readonly outcome: "unknown"; readonly words: Words };

/** What an answer says of itself. */
export interface Words {
  readonly code: number | undefined;
  readonly message: string | undefined;
  readonly httpStatus: number | undefined;
}

/** The fiscal merchant's id, or where to look it up; asked for each request, so that one that was corrected takes effect. */
export type MerchantId = string | (() => string | Promise<string>);

export interface ServiceOptions {
  readonly contract: Contract;
  readonly transport: Transport;
  readonly merchantId: MerchantId | undefined;
  /** Milliseconds, in place of the default, for all routes. */
  readonly timeoutMs: number | undefined;
}

/** Milliseconds that a call may wait in the bridge for its line (`queueWaitMs`), and that its way there and back may take. */
const queueWaitMs = 15_000;
const wayMs = 5_000;

/** The longest that a timer can be set to; one set to more would ring at once. */
const timerMsMax = 2 ** 31 - 1;

export class Service {
  readonly contract: Contract;
  readonly #transport: Transport;
  readonly #merchantId: MerchantId | undefined;
  readonly #timeoutMs: number | undefined;

  constructor({ contract, transport, merchantId, timeoutMs }: ServiceOptions) {
    this.contract = contract;
    this.#transport = transport;
    this.#merchantId = merchantId;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Sends one request, once, and gives its answer.
   * @throws NotSentError, UnknownError or RejectedError; TypeError for a body that is no JSON.
   */
  async call(route: Route, body: object | undefined, options: CallOptions = {}): Promise<JsonObject> {
    const text = route.body === "none" ? undefined : writeObject(body ?? {});
    const delivery = await this.deliver(route, text, options);
    if (delivery.outcome === "answered" && delivery.success) return delivery.reply;
    throw this.#errorOf(route, delivery);
  }

  /** Sends one request, once, and tells what became of it. */
  async deliver(route: Route, json: string | undefined, { signal, timeoutMs, withdrawn }: CallOptions): Promise<Delivery> {
    const limitMs = timeoutMs ?? this.#timeoutMs ?? route.replyTimeoutMs + queueWaitMs + wayMs;
    let body = json;
    try {
      if (json !== undefined && this.contract.envelope === "form") body = await this.#signed(json, limitMs, signal);
    } catch (error) {
      return unsent(`Cannot sign the request: ${error instanceof Error ? error.message : String(error)}`, error === overdue);
    }
    // It may have been left or withdrawn while it was being signed
    if (signal?.aborted === true || withdrawn?.aborted === true) return unsent("the caller had left before it was sent", true);
    const method = json === undefined && route.methods.includes("GET") ? "GET" : "POST";
    const request = { service: this.contract.service, route: route.path, method, body } as const;
    const withdrawable = withdrawn === undefined ? request : { ...request, withdrawn };
    return read(this.contract, route, await within(limitMs, signal, (limit) => this.#sent(withdrawable, limit)));
  }

  /** The signed form. Looking the merchant's id up may take as long as it likes, so it has the limit of an answer. */
  async #signed(json: string, limitMs: number, signal: AbortSignal | undefined): Promise<string> {
    const given = this.#merchantId;
    const lookUp = async (limit: AbortSignal) =>
      typeof given === "function" ? Promise.race([given(), onAbort(limit, () => Promise.reject(overdue))]) : given;
    const id = typeof given === "function" ? await within(limitMs, signal, lookUp) : given;
    if (id === undefined) throw new Error("there is no merchantId: give it to the client");
    return signedForm(json, id);
  }

  /** Ends with the limit, whatever the transport does. */
  #sent(request: TransportRequest, limit: AbortSignal): Promise<Answer> {
    const ended = onAbort(limit, async () => {
      // A transport that can say that nothing was sent says it at once
      for (let turn = 0; turn < turnsToAnswer; turn++) await undefined;
      return failed("unknown", String(limit.reason));
    });
    // A transport that fails in a way of its own proves nothing
    const sent = this.#transport
      .send(request, limit)
      .catch((error: unknown) => failed("unknown", `the transport failed: ${String(error)}`));
    return Promise.race([sent, ended]);
  }

  #errorOf(route: Route, delivery: Delivery): NotSentError | UnknownError | RejectedError {
    const { service } = this.contract;
    const { path } = route;
    const { code, httpStatus } = delivery.words;
    const message = delivery.words.message ?? `${service} ${path}: ${delivery.outcome}, code ${code ?? "none"}`;
    const failure = (advice: string): CallFailure => ({ service, route: path, code, message, httpStatus, advice });
    switch (delivery.outcome) {
      case "not-sent": {
        const advice = delivery.passing
          ? "send it again after a while"
          : "mend the request or the settings, then send it again";
        return new NotSentError(failure(advice), delivery.passing, delivery.retryAfterMs);
      }
      case "unknown":
        return new UnknownError(
          failure(route.effect === "none" ? "nothing was changed by asking: ask again" : checkFirst[service]),
        );
      case "answered":
        return new RejectedError(failure(adviceAfter(service, path, code)), delivery.reply);
    }
  }
}

/** Turns of the microtask queue that a transport's proof may take to arrive after the abort. */
const turnsToAnswer = 50;

function onAbort<T>(signal: AbortSignal, then: () => T | Promise<T>): Promise<T> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(then()));
  });
}

/** Does something under a limit that is aborted after so many milliseconds, or when the caller leaves. */
async function within<T>(
  limitMs: number,
  signal: AbortSignal | undefined,
  work: (limit: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(`no answer came within ${limitMs} ms`), Math.min(limitMs, timerMsMax));
  const leave = () => limit.abort("the caller left before the answer");
  signal?.addEventListener("abort", leave);
  try {
    const working = work(limit.signal);
    if (signal?.aborted === true) leave();
    return await working;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
}

/** The merchant's id was still being looked up when the limit came. */
const overdue = new Error("the merchantId was still being looked up when the time was over or the caller left");

function unsent(message: string, passing: boolean): Delivery {
  const words = { code: undefined, message, httpStatus: undefined };
  return { outcome: "not-sent", passing, retryAfterMs: undefined, words };
}

/**
 * Reads what a transport brought. An answer without a status of the contract is no answer: its outcome is unknown. So it is with an
 * error whose HTTP status says that it may be a framework's or a proxy's (the route's `errorStatusMax`).
 */
function read(contract: Contract, route: Route, { outcome, text, httpStatus, retryAfterMs, reason }: Answer): Delivery {
  const reply = text === undefined ? undefined : parseObject(text);
  const status = reply?.["status"];
  const words = { code: integerOf(reply?.["code"]), message: textOf(reply?.["message"]) ?? reason, httpStatus };
  if (outcome === "not-sent") {
    return { outcome, passing: isPassing(contract, words, retryAfterMs), retryAfterMs, words };
  }
  const isTheirs = status === "success" || (status === "error" && (httpStatus ?? 200) <= route.errorStatusMax);
  if (outcome === "answered" && reply !== undefined && isTheirs) {
    return { outcome, success: status === "success", reply, words };
  }
  const message = outcome === "answered" ? "the answer is none that the contract knows" : words.message;
  return { outcome: "unknown", words: { ...words, message } };
}

/** Statuses of a request that is turned away for now: too slow, too many. */
const passingStatuses: ReadonlySet<number> = new Set([408, 429]);

/**
 * Whether the same request may get through later. A service may be set to put all faults into 200 (`faultStatus`): then the code
 * tells, and one that may mean both counts as passing, since trying again harms nothing.
 */
function isPassing(contract: Contract, { code, httpStatus }: Words, retryAfterMs: number | undefined): boolean {
  if (retryAfterMs !== undefined) return true;
  if (httpStatus !== undefined && httpStatus >= 400) return httpStatus >= 500 || passingStatuses.has(httpStatus);
  const { malformed, missing, sign, route, unavailable } = contract.faultCodes;
  return code === undefined || code === unavailable || ![malformed, missing, sign, route].includes(code);
}

/** The route's method name: `/check_status` is `checkStatus`. */
export function methodName(path: string): string {
  return path.slice(1).replaceAll(/[_-]([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The methods of a service, one for each route of its contract. */
export function methodsOf(service: Service): Record<string, (...given: readonly unknown[]) => Promise<JsonObject>> {
  return Object.fromEntries(
    service.contract.routes.map((route) => [
      methodName(route.path),
      (...given: readonly unknown[]) => {
        const [body, options] = route.body === "none" ? [undefined, given[0]] : given;
        // What TypeScript's callers give is checked where the methods are typed; the type says no more here
        return service.call(route, body as object | undefined, options as CallOptions | undefined);
      },
    ]),
  );
}
