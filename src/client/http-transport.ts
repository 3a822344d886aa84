import type { ServiceName } from "../core/call.ts";
import type { Outcome } from "../core/fault.ts";
import { integerOf, parseObject } from "./exact-json.ts";
import { type Answer, failed, type Transport, type TransportRequest } from "./transport.ts";

/**
 * Requests over HTTP, by `fetch` alone, so that it runs in a page as well. posline's own word for the outcome
 * (`X-Posline-Outcome`) decides where it is there; of a service that is reached directly, "not sent" is believed only where HTTP
 * proves it.
 */

/** Where a service listens. */
export interface HttpTarget {
  /** Such as `http://127.0.0.1:8888`; a path in it goes before the route. */
  readonly url: string;
  /** Sent as `X-API-Key`. */
  readonly apiKey: string | undefined;
}

/** Bytes of an answer that are read at most: posline passes 8 MiB on, and nothing honest is larger. */
const replyBytesMax = 8 * 1024 * 1024;

export class HttpTransport implements Transport {
  readonly #targets: Readonly<Record<ServiceName, HttpTarget>>;
  readonly #fetch: typeof fetch;

  constructor(targets: Readonly<Record<ServiceName, HttpTarget>>, fetchWith: typeof fetch = fetch) {
    this.#targets = targets;
    // Called as a function of nothing: a browser's own fetch refuses to be anybody's method.
    this.#fetch = (input, init) => fetchWith(input, init);
  }

  async send(request: TransportRequest, signal: AbortSignal): Promise<Answer> {
    const { url, apiKey } = this.#targets[request.service];
    let response: Response;
    try {
      response = await this.#fetch(`${url.replace(/\/+$/, "")}${request.route}`, {
        ...init(request, apiKey),
        signal,
        // A redirect would have the request sent a second time, to somebody else
        redirect: "manual",
        credentials: "omit",
      });
    } catch (error) {
      return failed(provesUnsent(error) ? "not-sent" : "unknown", wordsOf(error));
    }
    try {
      return answerOf(response, await textOf(response));
    } catch (error) {
      return { ...failed("unknown", `the answer broke off: ${wordsOf(error)}`), httpStatus: response.status };
    }
  }

  async close(): Promise<void> {}
}

function init({ service, method, body }: TransportRequest, apiKey: string | undefined): RequestInit {
  const headers: Record<string, string> = {};
  if (apiKey !== undefined) headers["X-API-Key"] = apiKey;
  if (body === undefined) return { method, headers };
  headers["Content-Type"] = service === "fiscal" ? "application/x-www-form-urlencoded" : "application/json";
  return { method, headers, body };
}

async function textOf(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > replyBytesMax) {
      await reader.cancel();
      throw new Error(`it is larger than ${replyBytesMax} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}

function answerOf(response: Response, text: string): Answer {
  const { status, headers } = response;
  const outcome = outcomeIn(headers) ?? outcomeByStatus(status, text);
  return { outcome, text, httpStatus: status, retryAfterMs: retryAfterIn(headers), reason: undefined };
}

function outcomeIn(headers: Headers): Outcome | undefined {
  const word = headers.get("X-Posline-Outcome");
  return word === "answered" || word === "not-sent" || word === "unknown" ? word : undefined;
}

/** Statuses by which HTTP itself turns a request away, whatever their body says. */
const turnedAway: ReadonlySet<number> = new Set([401, 403, 404, 405, 408, 411, 413, 414, 415, 421, 429, 431]);

/**
 * The outcome where nobody says it. 200 with a JSON object is an answer. The contracts leave open which status an error
 * comes with, so a 4xx that carries an error with a code is the service's answer as well: "not sent" would deny what it says.
 */
function outcomeByStatus(status: number, text: string): Outcome {
  const json = parseObject(text);
  if (status === 200) return json === undefined ? "unknown" : "answered";
  if (status < 400 || status >= 500) return "unknown";
  const isError = json?.["status"] === "error" && integerOf(json["code"]) !== undefined;
  return isError && !turnedAway.has(status) ? "answered" : "not-sent";
}

/** Seconds; a date, which HTTP also allows, needs a clock that a kiosk may not have. */
function retryAfterIn(headers: Headers): number | undefined {
  const value = headers.get("Retry-After");
  return value !== null && /^\d{1,6}$/.test(value) ? Number(value) * 1000 : undefined;
}

/** What is thrown before a connection stands: nobody answers at the address, or the name has none. */
const beforeConnecting: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"]);

/** Whether an error of fetch proves that no byte left. Node says why in `cause`; browsers never do, so there it is unknown. */
function provesUnsent(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  // One error for each address that a name has
  const each: readonly unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  return each.length > 0 && each.every((one) => one instanceof Error && "code" in one && beforeConnecting.has(one.code));
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return cause.message === "" && "code" in cause ? String(cause.code) : cause.message;
}
