import { payloadBytesMax, serviceDefaults } from "../config/limits.ts";
import type { ServiceName } from "../core/call.ts";
import { connectionFailure } from "../core/connection-error.ts";
import { isFaultReason, type Outcome } from "../core/fault.ts";
import { operationResults } from "../core/followed.ts";
import { parseExactObject } from "../settle/exact-json.ts";
import {
  type Answer,
  type FollowedAnswer,
  failedAnswer,
  type Transport,
  type TransportRequest,
  type UnreachableReason,
} from "../settle/transport.ts";

/**
 * Requests over HTTP, by `fetch` alone, so that it runs in a page as well. posline's own word for the outcome
 * (`X-Posline-Outcome`) decides where it is there; of a service that is reached directly, "not sent" is believed only where HTTP
 * proves it.
 */

/** Where a service listens, checked when the client is made: what no request could be built of must not be found out by a payment. */
export interface HttpTarget {
  /** Such as `http://127.0.0.1:8888`, without a slash at its end; a path in it goes before the route. */
  readonly url: string;
  /** Sent as `X-API-Key`. */
  readonly apiKey: string | undefined;
  /** Bytes of the largest answer that is read. */
  readonly replyBytesMax: number;
}

/** Ports that fetch refuses (Fetch standard, port blocking), and 0, at which nothing can listen. */
const refusedPorts: ReadonlySet<number> = new Set([
  ...[0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110],
  ...[111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540],
  ...[548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566],
  ...[6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080],
]);

/**
 * Checks an address, a key and a size. No message quotes the first two: an address may hold a password.
 * @throws TypeError for what no request can be built of.
 */
export function checkTarget(
  service: ServiceName,
  url: string,
  apiKey: string | undefined,
  replyBytesMax: number = serviceDefaults.replyBytesMax,
): HttpTarget {
  const { protocol, username, password, port, search, hash } = parseUrl(service, url);
  if (protocol !== "http:" && protocol !== "https:") {
    throw new TypeError(`Cannot call ${service}: its url must begin with http: or https:, not ${protocol}`);
  }
  if (username !== "" || password !== "") throw targetError(service, "its url contains a name or a password: leave them out");
  if (search !== "" || hash !== "") throw targetError(service, "its url contains a ? or a #: leave it and the rest out");
  if (port !== "" && refusedPorts.has(Number(port))) throw targetError(service, `fetch refuses port ${port}: use another`);
  // Header values end at the first and last visible character, and nothing but ASCII is the same to every server
  if (apiKey !== undefined && typeof apiKey !== "string") throw targetError(service, "its apiKey is not text");
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw targetError(service, "its apiKey may contain visible ASCII characters only: look for a space or a line break in it");
  }
  if (!Number.isInteger(replyBytesMax) || replyBytesMax < 1 || replyBytesMax > payloadBytesMax) {
    throw targetError(
      service,
      `its replyBytesMax must be a whole number from 1 to ${payloadBytesMax}, not ${String(replyBytesMax)}`,
    );
  }
  return { url: url.replace(/\/+$/, ""), apiKey, replyBytesMax };
}

function parseUrl(service: ServiceName, url: string): URL {
  if (typeof url !== "string") throw targetError(service, "its url is not text: use one such as http://127.0.0.1:8888");
  try {
    return new URL(url);
  } catch {
    // The error of URL has the whole of it
    throw targetError(service, "its url is not valid: use one such as http://127.0.0.1:8888");
  }
}

function targetError(service: ServiceName, what: string): TypeError {
  return new TypeError(`Cannot call ${service}: ${what}`);
}

export class HttpTransport implements Transport {
  readonly #targets: Readonly<Record<ServiceName, HttpTarget>>;
  readonly #fetch: typeof fetch;

  constructor(targets: Readonly<Record<ServiceName, HttpTarget>>, fetchWith: typeof fetch = fetch) {
    this.#targets = targets;
    // Called as a function of nothing: a browser's own fetch can't be called as a method.
    this.#fetch = (input, init) => fetchWith(input, init);
  }

  async send(request: TransportRequest, signal: AbortSignal): Promise<Answer> {
    const target = this.#targets[request.service];
    if (target === undefined) return failedAnswer("not-sent", `the client has no service ${request.service}`);
    const { url, apiKey, replyBytesMax } = target;
    const address = `${url}${request.route}`;
    const parts = requestInit(request, apiKey);
    try {
      // fetch throws the same error for a bad part as for a failed network, so the parts are tried first
      new Request(address, parts);
    } catch {
      return failedAnswer(
        "not-sent",
        `Cannot build the request for ${request.service} ${request.route}: check its url and its key`,
      );
    }
    if (signal.aborted || request.withdrawn?.aborted === true) {
      return failedAnswer("not-sent", "the request was cancelled before it was sent");
    }
    let response: Response;
    try {
      response = await this.#fetch(address, { ...parts, signal });
    } catch (error) {
      const unreachable = unreachableBy(error);
      if (unreachable === undefined) return failedAnswer("unknown", causeOf(error));
      return { ...failedAnswer("not-sent", `${unreachableText[unreachable]} ${url}`), unreachable };
    }
    try {
      return toAnswer(response, await readText(response, replyBytesMax));
    } catch (error) {
      return { ...failedAnswer("unknown", `the answer broke off: ${causeOf(error)}`), httpStatus: response.status };
    }
  }

  async close(): Promise<void> {}
}

function requestInit({ contract, method, body, waitS }: TransportRequest, apiKey: string | undefined): RequestInit {
  const headers: Record<string, string> = {};
  if (waitS !== undefined) headers["Prefer"] = `wait=${waitS}`;
  if (apiKey !== undefined) headers["X-API-Key"] = apiKey;
  // A redirect would have the request sent a second time, to somebody else
  const rules = { method, headers, redirect: "manual", credentials: "omit" } as const;
  if (body === undefined) return rules;
  headers["Content-Type"] = contract === "fiscal" ? "application/x-www-form-urlencoded" : "application/json";
  return { ...rules, body };
}

async function readText(response: Response, replyBytesMax: number): Promise<string> {
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

function toAnswer(response: Response, text: string): Answer {
  const { status, headers } = response;
  const outcome = outcomeInHeader(headers) ?? outcomeByStatus(status, text);
  const word = headers.get("X-Posline-Reason");
  const reason = isFaultReason(word) ? word : undefined;
  const retryAfterMs = retryAfterMsIn(headers);
  return { outcome, text, httpStatus: status, retryAfterMs, reason, failure: undefined, followed: followedIn(headers) };
}

function followedIn(headers: Headers): FollowedAnswer | undefined {
  const result = operationResults.find((each) => each === headers.get("X-Posline-Result"));
  if (result === undefined) return undefined;
  const answerOf = headers.get("X-Posline-Answer-Of") ?? undefined;
  const isGuarded = headers.get("X-Posline-Repeat-Guard") === null;
  return { result, answerOf, isGuarded, trans: headers.get("X-Posline-Trans") || undefined };
}

function outcomeInHeader(headers: Headers): Outcome | undefined {
  const word = headers.get("X-Posline-Outcome");
  return word === "answered" || word === "not-sent" || word === "unknown" ? word : undefined;
}

/** Statuses by which HTTP itself turns a request away. */
const rejectedStatuses: ReadonlySet<number> = new Set([401, 403, 404, 405, 408, 411, 413, 414, 415, 421, 429, 431]);

/**
 * The outcome where no header says it. 200 with a JSON object is an answer. The contracts leave open which status an error
 * comes with, so a 4xx that carries an error is the service's answer as well; with a status by which HTTP itself turns requests away, only
 * if it has a code, which tells it from a proxy's. Any other 4xx, a conflict or whatever a proxy makes of it, may come after the
 * operation has begun.
 */
function outcomeByStatus(status: number, text: string): Outcome {
  const json = parseExactObject(text);
  if (status === 200) return json === undefined ? "unknown" : "answered";
  const isOwn = json?.["status"] === "error" && typeof json["code"] === "number" && status !== 401;
  // Nothing is turned away that the body calls a success
  if (rejectedStatuses.has(status) && !isOwn && json?.["status"] !== "success") return "not-sent";
  return status >= 400 && status < 500 && json?.["status"] === "error" ? "answered" : "unknown";
}

/** Seconds; a date, which HTTP also allows, needs a clock that a kiosk may not have. */
function retryAfterMsIn(headers: Headers): number | undefined {
  const value = headers.get("Retry-After");
  return value !== null && /^\d{1,6}$/.test(value) ? Number(value) * 1000 : undefined;
}

/** Error codes from before a connection: nothing listens at the address, or the name has none. */
const connectErrorCodes: ReadonlyMap<unknown, UnreachableReason> = new Map([
  ["ECONNREFUSED", "refused"],
  ["ENOTFOUND", "no-address"],
  ["EAI_AGAIN", "no-address"],
]);

const unreachableText: Readonly<Record<UnreachableReason, string>> = {
  refused: "nothing listens at",
  "no-address": "there is no address for the name in",
};

/**
 * Why no connection could be made, where an error of fetch proves that no byte left. Node says why in `cause`; browsers never do, so
 * there it is unknown.
 */
function unreachableBy(error: unknown): UnreachableReason | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  // `errors` has one for each address of a name.
  const each: readonly unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  const reasons = each.map((one) => (one instanceof Error && "code" in one ? connectErrorCodes.get(one.code) : undefined));
  return reasons.includes(undefined) ? undefined : reasons[0];
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  const failure = connectionFailure(cause);
  if (failure !== undefined) return failure;
  return cause.message === "" && "code" in cause ? String(cause.code) : cause.message;
}
