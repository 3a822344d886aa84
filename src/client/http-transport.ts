import type { ServiceName } from "../core/call.ts";
import type { Outcome } from "../core/fault.ts";
import { parseObject } from "./exact-json.ts";
import type { HttpTarget } from "./http-target.ts";
import { type Answer, failed, type Transport, type TransportRequest } from "./transport.ts";

/**
 * Requests over HTTP, by `fetch` alone, so that it runs in a page as well. posline's own word for the outcome
 * (`X-Posline-Outcome`) decides where it is there; of a service that is reached directly, "not sent" is believed only where HTTP
 * proves it.
 */

export class HttpTransport implements Transport {
  readonly #targets: Readonly<Record<ServiceName, HttpTarget>>;
  readonly #fetch: typeof fetch;

  constructor(targets: Readonly<Record<ServiceName, HttpTarget>>, fetchWith: typeof fetch = fetch) {
    this.#targets = targets;
    // Called as a function of nothing: a browser's own fetch refuses to be anybody's method.
    this.#fetch = (input, init) => fetchWith(input, init);
  }

  async send(request: TransportRequest, signal: AbortSignal): Promise<Answer> {
    const { url, apiKey, replyBytesMax } = this.#targets[request.service];
    const address = `${url}${request.route}`;
    const parts = init(request, apiKey);
    try {
      // What fetch would throw of these parts can't be told from what it throws of the network
      new Request(address, parts);
    } catch {
      return failed("not-sent", `Cannot build the request for ${request.service} ${request.route}: mend its url or its key`);
    }
    if (signal.aborted || request.withdrawn?.aborted === true) {
      return failed("not-sent", "the caller had left before it was sent");
    }
    let response: Response;
    try {
      response = await this.#fetch(address, { ...parts, signal });
    } catch (error) {
      return failed(provesUnsent(error) ? "not-sent" : "unknown", wordsOf(error));
    }
    try {
      return answerOf(response, await textOf(response, replyBytesMax));
    } catch (error) {
      return { ...failed("unknown", `the answer broke off: ${wordsOf(error)}`), httpStatus: response.status };
    }
  }

  async close(): Promise<void> {}
}

function init({ service, method, body }: TransportRequest, apiKey: string | undefined): RequestInit {
  const headers: Record<string, string> = {};
  if (apiKey !== undefined) headers["X-API-Key"] = apiKey;
  // A redirect would have the request sent a second time, to somebody else
  const rules = { method, headers, redirect: "manual", credentials: "omit" } as const;
  if (body === undefined) return rules;
  headers["Content-Type"] = service === "fiscal" ? "application/x-www-form-urlencoded" : "application/json";
  return { ...rules, body };
}

async function textOf(response: Response, replyBytesMax: number): Promise<string> {
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
      throw new Error(`it is larger than ${replyBytesMax} bytes (replyBytesMax)`);
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
 * comes with, so a 4xx that carries an error is the service's answer as well, with a code or without. Any other 4xx, a conflict or
 * whatever a proxy makes of it, may come after the operation has begun.
 */
function outcomeByStatus(status: number, text: string): Outcome {
  const json = parseObject(text);
  if (status === 200) return json === undefined ? "unknown" : "answered";
  if (turnedAway.has(status)) return "not-sent";
  return status >= 400 && status < 500 && json?.["status"] === "error" ? "answered" : "unknown";
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
