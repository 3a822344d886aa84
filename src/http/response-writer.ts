import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Contract } from "../contract/contract.ts";
import type { Reply } from "../core/call.ts";
import type { Fault } from "../core/fault.ts";
import type { Followed } from "../core/followed.ts";
import { bytesOf } from "../core/pieces.ts";
import { type FaultBody, faultBody, faultHttpStatus } from "../envelope/fault.ts";
import { preflightMaxAgeS, transCharsMax } from "./limits.ts";

/**
 * Writes answers: the terminal's bytes, or a fault as `envelope/fault.ts` writes it. Every answer says whether the request was sent
 * (`X-Posline-Outcome`) and a fault why not or what failed (`X-Posline-Reason`), which one it answers (`X-Request-Id`) and where the time
 * went (`Server-Timing`).
 */

/** A response to write, and facts about its request that shape it. */
export interface ResponseTarget {
  readonly response: ServerResponse;
  /** The path without its query; undefined if no request could be read. */
  readonly path: string | undefined;
  readonly requestId: string;
  readonly origin: string | undefined;
  /** True if the connection closes after this response. */
  readonly closesConnection: boolean;
}

/** A written response, for the log. */
export interface ResponseSummary extends Pick<FaultBody, "status" | "code"> {
  readonly httpStatus: number;
  readonly bytes: number;
}

/** Headers of every answer of every port: no browser may take it for another type than it says, and nothing may cache it. */
export const safetyHeaders = { "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store" } as const;

const safetyList = Object.entries(safetyHeaders).flat();

/**
 * Headers that let a page of an allowed origin read an answer, also to a request with the browser's credentials, of which posline reads
 * none.
 */
export const originHeaders = (origin: string) => ({
  "Access-Control-Allow-Origin": origin,
  "Access-Control-Allow-Credentials": "true",
  Vary: "Origin",
});

/**
 * Headers that answer OPTIONS: for an allowed origin it is a preflight. The page may send any headers, since tracing tools and libraries
 * add their own.
 * @param methods Methods that the page may use.
 */
export function optionsHeaders({ headers }: IncomingMessage, origin: string | undefined, methods: string) {
  if (origin === undefined) return safetyHeaders;
  const asked = headers["access-control-request-headers"];
  return {
    ...originHeaders(origin),
    "Access-Control-Allow-Methods": methods,
    ...(asked === undefined ? {} : { "Access-Control-Allow-Headers": asked }),
    "Access-Control-Max-Age": String(preflightMaxAgeS),
    Vary: "Origin, Access-Control-Request-Headers",
    // Older browsers ask before a public page reaches a private address.
    ...(headers["access-control-request-private-network"] === "true" ? { "Access-Control-Allow-Private-Network": "true" } : {}),
    ...safetyHeaders,
  };
}

/** Headers that a page may read beside the usual ones. */
const exposed =
  "X-Posline-Outcome, X-Posline-Reason, X-Posline-Result, X-Posline-Trans, X-Posline-Answer-Of, X-Posline-Polls, " +
  "X-Posline-Repeat-Guard, X-Posline-Joined, Preference-Applied, X-Request-Id, Server-Timing, Retry-After";

const answered = ["X-Posline-Outcome", "answered"] as const;

const outcomeHeaders = ({ outcome, reason }: Fault) => ["X-Posline-Outcome", outcome, "X-Posline-Reason", reason];

const joined = ["X-Posline-Joined", "1"] as const;

/** Headers that the answer to a followed call has beside the terminal's bytes. */
function followedHeaders({ result, answerOf, polls, isGuarded, trans }: Followed): string[] {
  return [
    ...["Preference-Applied", "wait", "X-Posline-Result", result, "X-Posline-Polls", String(polls)],
    // A `trans` is given as it is, or not at all: a rewritten one would name nothing to the terminal.
    ...(trans !== undefined && fitsHeader(trans) ? ["X-Posline-Trans", trans] : []),
    ...(answerOf === undefined ? [] : ["X-Posline-Answer-Of", answerOf]),
    // Without a journal the same call again would be sent again.
    ...(isGuarded ? [] : ["X-Posline-Repeat-Guard", "off"]),
  ];
}

/** True if a text from outside can be a header's value, to the letter: readers of headers take blanks off its ends. */
function fitsHeader(text: string): boolean {
  return text.length <= transCharsMax && /^[\x20-\x7e]+$/.test(text) && text.trim() === text;
}

export class ResponseWriter {
  readonly #contract: Contract;
  readonly #faultStatus: 200 | undefined;

  constructor(contract: Contract, faultStatus: 200 | undefined) {
    this.#contract = contract;
    this.#faultStatus = faultStatus;
  }

  /** Writes a service's answer, byte for byte; returns the count of bytes. */
  writeReply(target: ResponseTarget, reply: Reply): number {
    const bytes = bytesOf(reply.payload);
    const { response } = target;
    const headers = this.#headers(target, answered, bytes, reply.queueMs, reply.lineMs);
    if (reply.followed !== undefined) headers.push(...followedHeaders(reply.followed));
    if (reply.followed?.isLasting === true) headers.push("X-Posline-Reason", "no-question");
    if (reply.isJoined === true) headers.push(...joined);
    response.writeHead(200, headers);
    writePayload(response, reply.payload, bytes);
    return bytes;
  }

  /** Writes a fault. */
  writeFault(target: ResponseTarget, fault: Fault): ResponseSummary {
    const { summary, headers, payload } = this.#faultParts(target, fault);
    const { response } = target;
    if (!response.headersSent) response.writeHead(summary.httpStatus, headers).end(payload);
    // A cut connection is all that shows the client that an answer is incomplete, of which half went out.
    else if (!response.writableEnded) response.destroy();
    return summary;
  }

  /** Writes a fault on a bare connection, where no whole HTTP request was received, and ends it. */
  writeFaultTo(socket: Socket, target: Omit<ResponseTarget, "response">, fault: Fault): ResponseSummary {
    const { summary, headers, payload } = this.#faultParts({ ...target, closesConnection: true }, fault);
    let head = `HTTP/1.1 ${summary.httpStatus} ${STATUS_CODES[summary.httpStatus]}\r\n`;
    for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
    socket.end(Buffer.concat([Buffer.from(`${head}\r\n`), payload]));
    return summary;
  }

  /** Answers OPTIONS, by its headers alone. */
  writeOptions(request: IncomingMessage, { response, origin, closesConnection }: ResponseTarget): void {
    const headers = optionsHeaders(request, origin, "GET, POST");
    response.writeHead(204, { ...headers, ...(closesConnection ? { Connection: "close" } : {}) }).end();
  }

  #faultParts(target: Omit<ResponseTarget, "response">, fault: Fault) {
    const { word, status, code, payload } = faultBody(this.#contract, target.path, fault);
    const httpStatus = faultHttpStatus(this.#contract, word, fault, this.#faultStatus);
    const { queueMs = 0, lineMs = 0, allow, followed, isJoined } = fault.details;
    const headers = this.#headers(target, outcomeHeaders(fault), payload.length, queueMs, lineMs);
    if (fault.retryAfterS !== undefined) headers.push("Retry-After", String(fault.retryAfterS));
    if (allow !== undefined) headers.push("Allow", allow.join(", "));
    if (followed !== undefined) headers.push(...followedHeaders(followed));
    if (isJoined === true) headers.push(...joined);
    const summary: ResponseSummary = { httpStatus, status, code, bytes: payload.length };
    return { summary, headers, payload };
  }

  #headers(
    target: Omit<ResponseTarget, "response">,
    outcome: readonly string[],
    bytes: number,
    queueMs: number,
    lineMs: number,
  ): string[] {
    const headers = [
      "Content-Type",
      this.#contract.replyContentType,
      "Content-Length",
      String(bytes),
      ...outcome,
      "X-Request-Id",
      target.requestId,
      "Server-Timing",
      `queue;dur=${hundredths(queueMs)}, line;dur=${hundredths(lineMs)}`,
      ...safetyList,
    ];
    if (target.origin !== undefined) {
      headers.push(...Object.entries(originHeaders(target.origin)).flat(), "Access-Control-Expose-Headers", exposed);
    }
    if (target.closesConnection) headers.push("Connection", "close");
    return headers;
  }
}

/**
 * Bytes up to which a payload leaves in one text with its headers, each byte a character of Latin-1: Node writes one text at once, but
 * makes a list of several pieces first, which takes longer than to copy so few bytes.
 */
const shortBytes = 4096;

/** Writes a payload after its headers, byte for byte. */
function writePayload(response: ServerResponse, payload: readonly Buffer[], bytes: number): void {
  const [only] = payload;
  if (only !== undefined && payload.length === 1 && bytes <= shortBytes) {
    const { socket } = response;
    // Written before the end is, or Node makes a list of the payload and of an empty text after it.
    socket?.cork();
    response.write(only.toString("latin1"), "latin1");
    socket?.uncork();
    response.end();
    return;
  }
  const last = payload.length - 1;
  for (let i = 0; i < last; i++) response.write(payload[i]);
  response.end(payload[last]);
}

/** Milliseconds to two places: shorter to write than by toFixed, on a path that each answer takes. */
function hundredths(ms: number): number {
  return Math.round(ms * 100) / 100;
}
