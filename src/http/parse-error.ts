import type { IncomingMessage } from "node:http";
import { durationText } from "../core/duration.ts";
import { Fault } from "../core/fault.ts";
import { headersBytesMax, headersMs, requestMs } from "./limits.ts";

/**
 * Words for bytes that came in place of HTTP: Node's parser names only its own states, and the reader of the answer wants to know which
 * setting of which program to change.
 */

/** An error of Node's parser, or of its clocks. */
export interface ParseError extends Error {
  readonly code?: string;
  /** The parser's own word. */
  readonly reason?: string;
  /** The bytes of the read that failed. */
  readonly rawPacket?: Buffer;
  /** How many of these bytes the parser had taken. */
  readonly bytesParsed?: number;
}

/** A request of which not all came. */
export interface CutShort {
  readonly request: IncomingMessage;
  /** Bytes that came of its body. */
  readonly requestBytes: number;
}

/** The fault of what came in place of a whole request. */
export function parseErrorFault(error: ParseError, cutShort: CutShort | undefined): Fault {
  if (error.code === "HPE_HEADER_OVERFLOW") {
    return new Fault("headers", `Cannot accept the request: its headers ${headersTooLarge(error, headersBytesMax)}`);
  }
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") {
    const limits = `${durationText(headersMs)} for the headers, ${durationText(requestMs)} for the whole request`;
    const came = cutShort === undefined ? "" : `: ${bytesCame(cutShort)} came`;
    return new Fault("slow", `Cannot accept the request: it was not complete in time (${limits})${came}`);
  }
  if (error.code === "HPE_INVALID_EOF_STATE") {
    const after = cutShort === undefined ? "before a whole request had come" : `after ${bytesCame(cutShort)}`;
    return new Fault("http", `Cannot accept the request: the connection ended ${after}`);
  }
  const { rawPacket } = error;
  const other = rawPacket === undefined ? undefined : otherProtocols.find(({ is }) => is(rawPacket));
  const state = other?.state ?? `it is not an HTTP/1.1 request (${flawOf(error)})`;
  return new Fault("http", `Cannot accept the request: ${state}`);
}

/** How much of a body came, and the announced length, which shows a `Content-Length` that counts something else than bytes. */
function bytesCame({ request, requestBytes }: CutShort): string {
  const announced = request.headers["content-length"];
  if (announced === undefined) return `${requestBytes} bytes of its body`;
  return `${requestBytes} of the ${announced} bytes that Content-Length announces`;
}

/** Protocols that are sent to a plain port by mistake, told by their first bytes. */
const otherProtocols: readonly { readonly is: (bytes: Buffer) => boolean; readonly state: string }[] = [
  { is: isTls, state: "it begins with a TLS handshake, and this port speaks plain HTTP: use http in place of https" },
  {
    is: (bytes) => beginsWith(bytes, "PROXY ") || beginsWith(bytes, "\r\n\r\n\0\r\nQUIT\n"),
    state:
      "it begins with a line of the PROXY protocol, which posline doesn't read: switch it off in the proxy (send-proxy, proxy_protocol)",
  },
  {
    is: (bytes) => beginsWith(bytes, "PRI * HTTP/2"),
    state: "it begins as HTTP/2 does, and this port speaks HTTP/1.1: set the client to HTTP/1.1",
  },
];

/** True if bytes begin as a record of TLS does, or of SSL 3. */
export function isTls(bytes: Buffer): boolean {
  const [type = 0, version] = bytes;
  return type >= 0x14 && type <= 0x17 && version === 3;
}

const beginsWith = (bytes: Buffer, text: string) => bytes.toString("latin1", 0, text.length) === text;

/** Says in brackets why a message is not HTTP/1.1. The parser stops at a wrong byte, or right after it. */
export function flawOf({ message, reason = message, code, rawPacket, bytesParsed = 0 }: ParseError): string {
  for (const at of [bytesParsed - 1, bytesParsed]) {
    const [before, byte] = [rawPacket?.[at - 1], rawPacket?.[at]];
    if (byte === lineFeed && before !== carriageReturn && /CR|header/.test(reason))
      return "a line ends with LF alone, and must end with CR LF";
    if (code === "HPE_INVALID_CHUNK_SIZE" && (byte === space || byte === tab)) return "there are blanks beside a chunk's size";
  }
  return reason;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const tab = 0x09;

/** Names the largest of headers that are too large, as far as it is among the bytes of the last read. */
export function headersTooLarge({ rawPacket }: ParseError, bytesMax: number): string {
  const largest = rawPacket === undefined ? undefined : largestHeader(rawPacket);
  return `are larger than ${bytesMax} bytes, which is the limit${largest === undefined ? "" : `: the largest is ${largest}`}`;
}

/** A header's name; a client may write anything there, and the log takes it. */
const headerName = /^[\w!#$%&'*+.^`|~-]{1,64}(?=:)/;

function largestHeader(packet: Buffer): string | undefined {
  let name: string | undefined;
  let bytes = 0;
  for (const line of packet.toString("latin1").split("\r\n")) {
    // An empty line ends the headers: a body follows, or another request.
    if (line === "") break;
    if (line.length <= bytes) continue;
    bytes = line.length;
    // A line without a name is the first line, with its URL, or the rest of a header that began before this read.
    name = headerName.exec(line)?.[0] ?? (/^[A-Z]+ \S*/.test(line) ? "the URL in its first line" : undefined);
  }
  return name;
}
