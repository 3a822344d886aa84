import { type IncomingMessage, request } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { connectionFailure } from "../core/connection-error.ts";
import { durationText } from "../core/duration.ts";
import { type FaultReason, isFaultReason } from "../core/fault.ts";
import { bytesOf, GatheredPieces } from "../core/pieces.ts";
import { compressionIn } from "../envelope/body-flaw.ts";
import * as limits from "./limits.ts";
import { flawOf, headersTooLarge, isTls, type ParseError } from "./parse-error.ts";

/**
 * A request to an upstream, in two steps. First a connection on which nothing was written yet: made apart from the request, so that a
 * failure here is known to come before any byte of it went out, by TLS too, where Node would write while the handshake runs. Then the
 * request and its response on that connection: a failure here comes after the request began to go out.
 */

/** The upstream can't be reached, and nothing was sent. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

/**
 * Connects to an upstream.
 * @param timeoutMs For the name, the connection and, with `https:`, the handshake and the check of the certificate.
 * @throws Unreachable
 */
export function connectTo(upstream: URL, timeoutMs: number, stop: AbortSignal): Promise<Socket> {
  const socket = upstream.protocol === "https:" ? startTls(upstream) : connect(addressOf(upstream, 80));
  // An error without a listener would end the process. Until the connection stands errors end the waiting; afterwards the request handles
  // them.
  socket.on("error", () => {});
  return new Promise((resolve, reject) => {
    const settle = (failure: string | undefined) => {
      clearTimeout(timer);
      stop.removeEventListener("abort", stopped);
      socket.off("error", failed);
      socket.off("close", closed);
      if (failure === undefined) {
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(new Unreachable(failure));
    };
    const timer = setTimeout(() => settle(`connecting took longer than ${durationText(timeoutMs)}`), timeoutMs);
    const stopped = () => settle("posline is shutting down");
    const failed = (error: Error) => settle(reasonOf(error));
    const closed = () => settle("it closed the connection");
    socket.once("error", failed);
    socket.once("close", closed);
    socket.once(upstream.protocol === "https:" ? "secureConnect" : "connect", () => settle(undefined));
    stop.addEventListener("abort", stopped);
    if (stop.aborted) stopped();
  });
}

function addressOf({ hostname, port }: URL, usualPort: number) {
  // An IPv6 address stands in brackets in a URL, and nowhere else.
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return {
    host,
    port: port === "" ? usualPort : Number(port),
    noDelay: true,
    autoSelectFamilyAttemptTimeout: limits.addressMs,
  };
}

/** The certificate is checked against the authorities that Node knows. */
function startTls(upstream: URL): Socket {
  const address = addressOf(upstream, 443);
  // An address is not a name for a server to choose its certificate by.
  const servername = isIP(address.host) === 0 ? address.host : "";
  return connectTls({ ...address, servername, ALPNProtocols: ["http/1.1"] });
}

/** Reasons in words that are known only of an upstream that is being connected to. */
const ownReasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there: is the service running?",
  ECONNRESET: "it closed the connection",
  EPIPE: "it closed the connection",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS: should upstream begin with http:?",
};

function reasonOf(error: Error): string {
  const code = "code" in error ? String(error.code) : "";
  const reason = ownReasons[code] ?? connectionFailure(error);
  if (reason !== undefined) return reason;
  // OpenSSL's own messages are its source lines; its code says as much.
  return code.startsWith("ERR_SSL_") ? code : `${error.message}${code === "" ? "" : `, ${code}`}`;
}

/** A request, and the connection on which it goes out. */
export interface OutgoingRequest {
  readonly connection: Socket;
  /** Value of the `Host` header. */
  readonly host: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: readonly Buffer[];
  /** Bytes of the response's body. */
  readonly responseBytesMax: number;
  /** Milliseconds until the response's last byte. */
  readonly timeoutMs: number;
  readonly stop: AbortSignal;
}

/** A whole response. */
export interface UpstreamResponse {
  readonly status: number;
  /** The outcome that a posline upstream states (`X-Posline-Outcome`). */
  readonly outcome: string | undefined;
  /** The reason that it states, if it does (`X-Posline-Reason`). */
  readonly reason: FaultReason | undefined;
  /** The compression that the response names, quoted; undefined if none. */
  readonly compression: string | undefined;
  readonly payload: readonly Buffer[];
}

type NoResponseReason = Extract<FaultReason, "no-reply" | "reply-corrupt" | "reply-too-large" | "connection-lost" | "stopping">;

/** No whole response came; the message says why. */
export class NoResponse extends Error {
  override readonly name = "NoResponse";
  readonly reason: NoResponseReason;

  constructor(reason: NoResponseReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Sends a request and waits for the whole response; the connection is of no more use afterwards.
 * @throws NoResponse
 */
export function sendRequest(outgoing: OutgoingRequest): Promise<UpstreamResponse> {
  const { connection, host, method, path, headers, body, responseBytesMax, timeoutMs, stop } = outgoing;
  return new Promise((resolve, reject) => {
    const end = (finish: () => void) => {
      clearTimeout(timer);
      stop.removeEventListener("abort", stopped);
      finish();
      connection.destroy();
    };
    const fail = (reason: NoResponseReason, why: string) => end(() => reject(new NoResponse(reason, why)));
    const timer = setTimeout(() => fail("no-reply", "no answer came in time"), timeoutMs);
    const stopped = () => fail("stopping", "posline shut down before the answer came");
    stop.addEventListener("abort", stopped);
    const bytes = bytesOf(body);
    const clientRequest = request({
      createConnection: () => connection,
      method,
      path,
      headers: { Host: host, ...headers, ...(method === "GET" ? {} : { "Content-Length": String(bytes) }) },
      maxHeaderSize: limits.responseHeadersBytesMax,
    });
    let responded = false;
    clientRequest.on("response", (response) => {
      responded = true;
      readResponse(response, responseBytesMax, (whole) => end(() => resolve(whole)), fail);
    });
    clientRequest.on("error", (error: ParseError) => {
      if (error.code?.startsWith("HPE_") === true) fail("reply-corrupt", `the upstream's answer ${unreadable(error)}`);
      // Once the upstream responds, the end of the response counts: an upstream that refuses a body needn't read all of it.
      else if (!responded) fail("connection-lost", `the connection to the upstream failed (${error.message})`);
    });
    clientRequest.on("close", () => {
      if (!responded) fail("connection-lost", "the upstream closed the connection");
    });
    for (const piece of body) clientRequest.write(piece);
    clientRequest.end();
  });
}

/** Says why Node's parser doesn't take an answer, for the end of a sentence. */
function unreadable(error: ParseError): string {
  if (error.code === "HPE_HEADER_OVERFLOW") return `has headers that ${headersTooLarge(error, limits.responseHeadersBytesMax)}`;
  if (error.rawPacket !== undefined && isTls(error.rawPacket)) return "is TLS: should upstream begin with https:?";
  return `is not HTTP/1.1 (${flawOf(error)})`;
}

/** Reads a whole response, or reports why it failed. Only the first of the two counts: a promise settles once. */
function readResponse(
  response: IncomingMessage,
  bytesMax: number,
  done: (whole: UpstreamResponse) => void,
  fail: (reason: NoResponseReason, why: string) => void,
): void {
  const payload = new GatheredPieces();
  let bytes = 0;
  response.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > bytesMax) fail("reply-too-large", `the answer is larger than ${bytesMax} bytes (replyBytesMax)`);
    else payload.add(piece);
  });
  response.on("end", () => {
    const { "x-posline-outcome": outcome, "x-posline-reason": reason } = response.headers;
    done({
      status: response.statusCode ?? 0,
      outcome: typeof outcome === "string" ? outcome : undefined,
      reason: isFaultReason(reason) ? reason : undefined,
      compression: compressionIn(response.headers["content-encoding"]),
      payload: payload.all,
    });
  });
  const cut = () => fail("connection-lost", "the answer broke off");
  response.on("error", cut);
  response.on("close", cut);
}
