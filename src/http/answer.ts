import { randomBytes } from "node:crypto";
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Contract } from "../contract/contract.ts";
import type { Reply } from "../core/call.ts";
import { Fault, type Outcome } from "../core/fault.ts";
import { type FaultBody, faultBody, faultHttpStatus } from "../envelope/fault.ts";
import { preflightMaxAgeS } from "./limits.ts";

/**
 * What is written back: the terminal's bytes, or a fault as `envelope/fault.ts` writes it. Every answer says whether the request
 * was sent (`X-Posline-Outcome`), which one it answers (`X-Request-Id`) and where the time went (`Server-Timing`).
 */

/** What an answer needs to know of its request. */
export interface Asked {
  readonly response: ServerResponse;
  /** Without its query; undefined when no request could be read. */
  readonly path: string | undefined;
  readonly requestId: string;
  readonly origin: string | undefined;
  /** True when the connection ends with this answer. */
  readonly last: boolean;
}

/** What was answered, for the log. */
export interface Answered extends Pick<FaultBody, "status" | "code"> {
  readonly httpStatus: number;
  readonly bytes: number;
}

/** On every answer of every port: no browser may take it for anything but its type says, and nobody may keep it. */
export const safetyHeaders = { "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store" } as const;

const safetyList = Object.entries(safetyHeaders).flat();

/** Headers that a page may read beside the usual ones. */
const exposed = "X-Posline-Outcome, X-Request-Id, Server-Timing, Retry-After";

export class Answers {
  readonly #contract: Contract;
  readonly #faultStatus: 200 | undefined;

  constructor(contract: Contract, faultStatus: 200 | undefined) {
    this.#contract = contract;
    this.#faultStatus = faultStatus;
  }

  /** Writes a service's answer, byte for byte; gives its bytes. */
  reply(asked: Asked, reply: Reply): number {
    let bytes = 0;
    for (const piece of reply.payload) bytes += piece.length;
    const { response } = asked;
    response.writeHead(200, this.#headers(asked, "answered", bytes, reply.queueMs, reply.lineMs));
    const last = reply.payload.length - 1;
    for (let i = 0; i < last; i++) response.write(reply.payload[i]);
    response.end(reply.payload[last]);
    return bytes;
  }

  /** Writes a fault. */
  fault(asked: Asked, fault: Fault): Answered {
    const { answered, headers, payload } = this.#faultParts(asked, fault);
    const { response } = asked;
    if (!response.headersSent) response.writeHead(answered.httpStatus, headers).end(payload);
    // Half of another answer went out: only a cut connection tells the caller that it is no whole one.
    else if (!response.writableEnded) response.destroy();
    return answered;
  }

  /** Writes a fault on a bare connection, where no HTTP message came to its end, and ends it. */
  broken(socket: Socket, asked: Omit<Asked, "response">, fault: Fault): Answered {
    const { answered, headers, payload } = this.#faultParts({ ...asked, last: true }, fault);
    let head = `HTTP/1.1 ${answered.httpStatus} ${STATUS_CODES[answered.httpStatus]}\r\n`;
    for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
    socket.end(Buffer.concat([Buffer.from(`${head}\r\n`), payload]));
    return answered;
  }

  /** Answers a preflight of an allowed origin. */
  preflight(request: IncomingMessage, { response, last }: Asked, origin: string): void {
    const headers = [
      ...["Access-Control-Allow-Origin", origin],
      ...["Access-Control-Allow-Methods", "GET, POST"],
      ...["Access-Control-Allow-Headers", "Content-Type, X-API-Key, X-Request-Id"],
      ...["Access-Control-Max-Age", String(preflightMaxAgeS)],
      ...["Vary", "Origin"],
      ...safetyList,
    ];
    // Older browsers ask before a public page reaches a private address.
    if (request.headers["access-control-request-private-network"] === "true") {
      headers.push("Access-Control-Allow-Private-Network", "true");
    }
    if (last) headers.push("Connection", "close");
    response.writeHead(204, headers).end();
  }

  #faultParts(asked: Omit<Asked, "response">, fault: Fault) {
    const { word, status, code, payload } = faultBody(this.#contract, asked.path, fault);
    const httpStatus = faultHttpStatus(this.#contract, word, fault, this.#faultStatus);
    const { queueMs = 0, lineMs = 0, retryAfterS, allow } = fault.details;
    const headers = this.#headers(asked, fault.outcome, payload.length, queueMs, lineMs);
    if (retryAfterS !== undefined) headers.push("Retry-After", String(retryAfterS));
    if (allow !== undefined) headers.push("Allow", allow.join(", "));
    const answered: Answered = { httpStatus, status, code, bytes: payload.length };
    return { answered, headers, payload };
  }

  #headers(asked: Omit<Asked, "response">, outcome: Outcome, bytes: number, queueMs: number, lineMs: number): string[] {
    const headers = [
      "Content-Type",
      this.#contract.replyContentType,
      "Content-Length",
      String(bytes),
      "X-Posline-Outcome",
      outcome,
      "X-Request-Id",
      asked.requestId,
      "Server-Timing",
      `queue;dur=${hundredths(queueMs)}, line;dur=${hundredths(lineMs)}`,
      ...safetyList,
    ];
    if (asked.origin !== undefined) {
      headers.push("Access-Control-Allow-Origin", asked.origin, "Vary", "Origin", "Access-Control-Expose-Headers", exposed);
    }
    if (asked.last) headers.push("Connection", "close");
    return headers;
  }
}

/** Milliseconds to two places: shorter to write than by toFixed, on a path that each answer takes. */
function hundredths(ms: number): number {
  return Math.round(ms * 100) / 100;
}

/** What is wrong with a connection, by the code of its error. */
export function brokenFault(errorCode: string | undefined): Fault {
  if (errorCode === "HPE_HEADER_OVERFLOW") return new Fault("headers", "Cannot accept the request: its headers are too large");
  if (errorCode === "ERR_HTTP_REQUEST_TIMEOUT") return new Fault("slow", "Cannot accept the request: it came too slowly");
  return new Fault("http", "Cannot accept the request: it is no HTTP/1.1 request");
}

/** What a request id may look like when the sender brings it; anything else could forge lines of a log. */
const idForm = /^[A-Za-z0-9._-]{1,64}$/;

/** Makes ids that are unique on a box: the process's own beginning and a count. */
export function requestIds(): (given: string | string[] | undefined) => string {
  const start = randomBytes(4).toString("hex");
  let count = 0;
  return (given) => (typeof given === "string" && idForm.test(given) ? given : `${start}-${(++count).toString(36)}`);
}
