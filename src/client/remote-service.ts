import type { Contract, Route } from "../contract/contract.ts";
import { adviceWhenUnknown } from "../contract/contracts.ts";
import { adviceAfter } from "../contract/settling.ts";
import type { ServiceName } from "../core/call.ts";
import { durationText } from "../core/duration.ts";
import { messageOf } from "../core/error-code.ts";
import { type JsonObject, looseInteger } from "../core/json-object.ts";
import { merchantIdProblem, signedForm } from "../envelope/signed-form.ts";
import { type AnswerSummary, type CallResult, emptySummary } from "../settle/call-result.ts";
import { checkOptions, timerMsMax } from "../settle/clock.ts";
import { parseExactObject, scalarText, writeExactObject } from "../settle/exact-json.ts";
import { isQuestion, leavesOpen } from "../settle/proof.ts";
import { type Answer, failedAnswer, type Transport, type TransportRequest } from "../settle/transport.ts";
import { type CallFailure, NotSentError, RejectedError, UnknownError } from "./errors.ts";

/** A service as a till sees it: a body goes out in the service's envelope, and what comes back is read once. */

/** The fiscal merchant's id, or where to look it up; asked for each request, so that one that was corrected takes effect. */
export type MerchantId = string | (() => string | Promise<string>);

/** How one call is made. */
export interface CallOptions {
  /** Ends the waiting: the call then rejects with UnknownError, for what was sent can't be taken back. */
  readonly signal?: AbortSignal;
  /** Milliseconds to wait for the answer; by default a little longer than the bridge itself waits for the terminal. */
  readonly timeoutMs?: number;
  /** From its abort on it isn't sent any more; one that has left is waited for. */
  readonly withdrawn?: AbortSignal | undefined;
  /** Seconds for which the bridge is asked to follow the operation. */
  readonly waitS?: number | undefined;
}

export interface RemoteServiceOptions {
  readonly contract: Contract;
  /** The service's name, where not its contract's. */
  readonly name?: ServiceName;
  readonly transport: Transport;
  readonly merchantId: MerchantId | undefined;
  /** Milliseconds, in place of the default, for all routes. */
  readonly timeoutMs: number | undefined;
}

/** Milliseconds that a call may wait in the bridge for its line (`queueWaitMs`), and that its way there and back may take. */
const queueWaitMs = 15_000;
const roundTripMs = 5_000;

export class RemoteService {
  readonly contract: Contract;
  readonly name: ServiceName;
  readonly #transport: Transport;
  readonly #merchantId: MerchantId | undefined;
  readonly #timeoutMs: number | undefined;

  /** @throws TypeError for a time in which no answer can come. */
  constructor({ contract, name = contract.service, transport, merchantId, timeoutMs }: RemoteServiceOptions) {
    this.contract = contract;
    this.name = name;
    this.#transport = transport;
    this.#merchantId = merchantId;
    checkTimeoutMs(name, timeoutMs);
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Sends one request, once, and gives its answer.
   * @throws NotSentError, UnknownError or RejectedError; TypeError, before anything is sent, for a body that is not JSON, and for options
   * that can't be kept to.
   */
  async call(route: Route, body: object | undefined, options: CallOptions = {}): Promise<JsonObject> {
    checkOptions(`call ${this.name}`, options, ["signal"]);
    const text = route.body === "none" ? undefined : writeExactObject(body ?? {});
    const result = await this.tryCall(route, text, options);
    if (result.outcome === "answered" && result.success) return result.reply;
    throw this.#toError(route, text, result);
  }

  /** Sends one request, once, and says what became of it. */
  async tryCall(
    route: Route,
    json: string | undefined,
    { signal, timeoutMs, withdrawn, waitS }: CallOptions,
  ): Promise<CallResult> {
    checkTimeoutMs(this.name, timeoutMs);
    const limitMs = timeoutMs ?? this.#timeoutMs ?? route.replyTimeoutMs + queueWaitMs + roundTripMs;
    let body = json;
    try {
      if (json !== undefined && this.contract.envelope === "form") body = await this.#signed(json, limitMs, signal);
    } catch (error) {
      return notSent(`Cannot sign the request: ${messageOf(error)}`, error === merchantIdTimeout);
    }
    // The call may have been left or withdrawn while it was being signed.
    if (signal?.aborted === true || withdrawn?.aborted === true)
      return notSent("the request was cancelled before it was sent", true);
    const method = json === undefined && route.methods.includes("GET") ? "GET" : "POST";
    const { name: service, contract } = this;
    const plain = { service, contract: contract.service, route: route.path, method, body, waitS } as const;
    const request = withdrawn === undefined ? plain : { ...plain, withdrawn };
    return readAnswer(contract, route, await withTimeout(limitMs, signal, (limit) => this.#send(request, limit)));
  }

  /** The signed form. Looking the merchant's id up may take as long as it likes, so it has the limit of an answer. */
  async #signed(json: string, limitMs: number, signal: AbortSignal | undefined): Promise<string> {
    const source = this.#merchantId;
    const lookUp = async (limit: AbortSignal) =>
      typeof source === "function" ? Promise.race([source(), onAbort(limit, () => Promise.reject(merchantIdTimeout))]) : source;
    const id = typeof source === "function" ? await withTimeout(limitMs, signal, lookUp) : source;
    if (id === undefined || id === null) throw new Error("merchantId is missing: pass it to the client");
    const problem = merchantIdProblem(id);
    if (problem !== undefined) throw new Error(`merchantId ${problem}`);
    return signedForm(json, id);
  }

  /** Ends with the limit, whatever the transport does. */
  #send(request: TransportRequest, limit: AbortSignal): Promise<Answer> {
    const ended = onAbort(limit, async () => {
      // A transport that can say that nothing was sent says it at once
      for (let turn = 0; turn < microtasksToAnswer; turn++) await undefined;
      return failedAnswer("unknown", String(limit.reason));
    });
    // A transport that fails in a way of its own proves nothing
    const answered = this.#transport
      .send(request, limit)
      .catch((error: unknown) => failedAnswer("unknown", `the transport failed: ${String(error)}`));
    return Promise.race([answered, ended]);
  }

  /** @param json Its body. */
  #toError(route: Route, json: string | undefined, result: CallResult): NotSentError | UnknownError | RejectedError {
    const { name: service, contract } = this;
    const { path } = route;
    const { code, httpStatus, reason } = result.summary;
    const message = result.summary.message ?? `${service} ${path}: ${result.outcome}, code ${code ?? "none"}`;
    const failure = (advice: string): CallFailure => ({ service, route: path, code, message, httpStatus, reason, advice });
    const key = route.key === undefined || json === undefined ? undefined : scalarText(parseExactObject(json)?.[route.key]);
    if (result.outcome === "unknown") return new UnknownError(failure(adviceWhenUnknown(contract, route, key)));
    if (result.outcome === "not-sent") {
      const advice = result.passing ? "send it again later" : "fix the request or the settings, then send it again";
      return new NotSentError(failure(advice), result.passing, result.retryAfterMs, result.unreachable);
    }
    const isOpen = leavesOpen(contract, path, result.reply, code);
    const { malformed, missing, sign } = contract.faultCodes;
    const isWrong = code !== undefined && [malformed, missing, sign].includes(code);
    const asksFurther = isOpen && isQuestion(contract, path) && !isWrong;
    const advice = asksFurther ? askFurther : adviceAfter(contract.service, route, code, key);
    return new RejectedError(failure(advice), result.reply, isOpen);
  }
}

/** After an answer to a question that isn't an end. */
const askFurther = "this doesn't say how the operation ends: ask again";

/** Turns of the microtask queue that a transport's proof may take to arrive after the abort. */
const microtasksToAnswer = 50;

function onAbort<T>(signal: AbortSignal, then: () => T | Promise<T>): Promise<T> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(then()));
  });
}

/** Does something under a limit that is aborted after so many milliseconds, or when the caller leaves. */
async function withTimeout<T>(
  limitMs: number,
  signal: AbortSignal | undefined,
  work: (limit: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const leave = () => limit.abort("the request was cancelled before the answer came");
  // Before the timer, which would keep the process where this is no signal
  signal?.addEventListener("abort", leave);
  const timer = setTimeout(() => limit.abort(`no answer came within ${durationText(limitMs)}`), Math.min(limitMs, timerMsMax));
  try {
    const working = work(limit.signal);
    if (signal?.aborted === true) leave();
    return await working;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
}

/** A request that is sent with no time for its answer is given up at once, while it is carried out. */
function checkTimeoutMs(service: ServiceName, timeoutMs: unknown): void {
  if (timeoutMs === undefined || timeoutMs === null || (typeof timeoutMs === "number" && timeoutMs > 0)) return;
  const state = typeof timeoutMs === "number" ? String(timeoutMs) : "not a number";
  throw new TypeError(`Cannot call ${service}: timeoutMs is ${state}: use milliseconds above 0`);
}

/** The merchant's id was still being looked up when the limit came. */
const merchantIdTimeout = new Error("looking up the merchantId took too long, or the request was cancelled");

function notSent(message: string, passing: boolean): CallResult {
  const summary = { ...emptySummary, message };
  return { outcome: "not-sent", passing, retryAfterMs: undefined, summary };
}

/**
 * Reads what a transport brought. An answer without a status of the contract is not an answer: its outcome is unknown. So it is with an
 * error whose HTTP status says that it may be a framework's or a proxy's (the route's `errorStatusMax`).
 */
function readAnswer(contract: Contract, route: Route, answer: Answer): CallResult {
  const { outcome, text, httpStatus, retryAfterMs, reason, failure, unreachable, followed } = answer;
  const reply = text === undefined ? undefined : parseExactObject(text);
  const status = reply?.["status"];
  const message = scalarText(reply?.["message"]) ?? failure ?? saidByStatus(answer, reply);
  const summary = { code: looseInteger(reply?.["code"]), message, httpStatus, reason, followed };
  if (outcome === "not-sent") {
    return { outcome, passing: isPassing(contract, summary, retryAfterMs), retryAfterMs, unreachable, summary };
  }
  const isServiceAnswer = status === "success" || (status === "error" && (httpStatus ?? 200) <= route.errorStatusMax);
  if (outcome === "answered" && reply !== undefined && isServiceAnswer) {
    return { outcome, success: status === "success", reply, summary };
  }
  if (outcome !== "answered") return { outcome: "unknown", summary };
  return { outcome: "unknown", summary: { ...summary, message: "the answer is not one that the contract defines" } };
}

/** What is said of an answer that says nothing itself, such as a page of a proxy or of what else listens at the address. */
function saidByStatus({ outcome, httpStatus }: Answer, reply: JsonObject | undefined): string | undefined {
  if (httpStatus === undefined) return undefined;
  if (outcome === "not-sent") return `the request was turned away with HTTP status ${httpStatus}`;
  if (outcome === "answered" || typeof reply?.["status"] === "string") return undefined;
  return `what came with HTTP status ${httpStatus} is not an answer of the service: check the address, and what is in between`;
}

/** Statuses of a request that is turned away for now: too slow, too many. */
const passingStatuses: ReadonlySet<number> = new Set([408, 429]);

/**
 * Whether the same request may get through later. A service may be set to put all faults into 200 (`faultStatus`): then the code
 * tells, and one that may mean both counts as passing, since trying again harms nothing.
 */
function isPassing(contract: Contract, { code, httpStatus, reason }: AnswerSummary, retryAfterMs: number | undefined): boolean {
  // The terminal must be seen to first.
  if (reason === "cannot-ask") return false;
  if (retryAfterMs !== undefined) return true;
  if (httpStatus !== undefined && httpStatus >= 400) return httpStatus >= 500 || passingStatuses.has(httpStatus);
  const { faultCodes, faultsInOk } = contract;
  const lasting = [...faultsInOk, "route" as const].map((kind) => faultCodes[kind]);
  return code === undefined || code === faultCodes.unavailable || !lasting.includes(code);
}

/** The route's method name: `/check_status` is `checkStatus`. */
export function methodName(path: string): string {
  return path.slice(1).replaceAll(/[_-]([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The methods of a service, one for each route of its contract. */
export function methodsOf(service: RemoteService): Record<string, (...given: readonly unknown[]) => Promise<JsonObject>> {
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
