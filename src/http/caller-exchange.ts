import { type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import * as limits from "./limits.ts";

/** One request and its answer on a connection of their own. Whatever fails here failed after the request began to go out. */

export interface Conversation {
  readonly connection: Socket;
  /** For the `Host` header. */
  readonly host: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: readonly Buffer[];
  /** Bytes of the answer's body. */
  readonly answerBytesMax: number;
  /** Milliseconds to the answer's last byte. */
  readonly timeoutMs: number;
  readonly stop: AbortSignal;
}

/** A whole answer. */
export interface HttpAnswer {
  readonly status: number;
  /** What a posline says became of the call (`X-Posline-Outcome`). */
  readonly outcome: string | undefined;
  readonly payload: readonly Buffer[];
}

/** No whole answer came; the message says why. */
export class Unanswered extends Error {
  override readonly name = "Unanswered";
  readonly kind: "timeout" | "broken";

  constructor(kind: "timeout" | "broken", message: string) {
    super(message);
    this.kind = kind;
  }
}

/**
 * Asks and waits for the whole answer; the connection is of no more use afterwards.
 * @throws Unanswered
 */
export function converse(conversation: Conversation): Promise<HttpAnswer> {
  const { connection, host, method, path, headers, body, answerBytesMax, timeoutMs, stop } = conversation;
  return new Promise((resolve, reject) => {
    const end = (finish: () => void) => {
      clearTimeout(timer);
      stop.removeEventListener("abort", stopped);
      finish();
      connection.destroy();
    };
    const fail = (kind: Unanswered["kind"], why: string) => end(() => reject(new Unanswered(kind, why)));
    const timer = setTimeout(() => fail("timeout", "no answer came in time"), timeoutMs);
    const stopped = () => fail("broken", "posline shut down before it came");
    stop.addEventListener("abort", stopped);
    const bytes = body.reduce((sum, piece) => sum + piece.length, 0);
    const asking = request({
      createConnection: () => connection,
      method,
      path,
      headers: { Host: host, ...headers, ...(method === "GET" ? {} : { "Content-Length": String(bytes) }) },
      maxHeaderSize: limits.answerHeadersBytesMax,
    });
    let answers = false;
    asking.on("response", (response) => {
      answers = true;
      read(response, answerBytesMax, (answer) => end(() => resolve(answer)), fail);
    });
    // Once it answers, the answer's own end counts: whoever refuses a body needn't read all of it.
    asking.on("error", (error) => {
      if (!answers) fail("broken", `the connection to the upstream failed (${error.message})`);
    });
    asking.on("close", () => {
      if (!answers) fail("broken", "the upstream ended the connection");
    });
    for (const piece of body) asking.write(piece);
    asking.end();
  });
}

/** Reads a whole answer, and tells a failure of it. Whatever comes first counts: a promise settles once. */
function read(
  response: IncomingMessage,
  bytesMax: number,
  done: (answer: HttpAnswer) => void,
  fail: (kind: "broken", why: string) => void,
): void {
  const payload: Buffer[] = [];
  let bytes = 0;
  response.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > bytesMax) fail("broken", `the answer is larger than ${bytesMax} bytes (replyBytesMax)`);
    else payload.push(piece);
  });
  response.on("end", () => {
    const outcome = response.headers["x-posline-outcome"];
    done({ status: response.statusCode ?? 0, outcome: typeof outcome === "string" ? outcome : undefined, payload });
  });
  const cut = () => fail("broken", "the answer was cut in the middle");
  response.on("error", cut);
  response.on("close", cut);
}
