import type { IncomingMessage, ServerResponse } from "node:http";
import { Fault } from "../core/fault.ts";
import { safetyHeaders } from "./response-writer.ts";

/**
 * Long-lived answers: data goes out as it is written, until either end closes. A watcher must never cost a till anything, so the number of
 * watchers is bounded, and the bytes that wait for a slow one; that one is dropped.
 */

/** Watchers at one time: a page, a tap, a log and a scrape on two or three screens. Each takes a socket and the bytes that wait for it. */
export const streamsMax = 8;

/** Bytes that may wait for one watcher before it is dropped: some 700 events, minutes of a busy till. */
export const waitingBytesMax = 256 * 1024;

/** Seconds after which a refused watcher may try again: by then a page that was closed has let go of its place. */
const watcherRetryAfterS = 5;

/** Milliseconds of silence after which the system asks whether the other end is still there. */
const keepAliveAfterMs = 30_000;

/** A long-lived answer while it lasts. Neither function ever throws. */
export interface AdminStream {
  /** Sends text or bytes; does nothing once the answer is over. A watcher for which too much waits is dropped. */
  write(piece: string | Uint8Array): void;
  /** Ends the answer, after what was written. */
  end(): void;
}

/** A route's answer that goes on. */
export interface StreamAnswer {
  readonly contentType: string;
  /**
   * Begins the answer.
   * @returns a function that is called once it is over, whichever end closed it.
   */
  start(stream: AdminStream): () => void;
}

export class Streams {
  readonly #onDropped: () => void;
  /** The answers under way, each with the function that ends it. */
  readonly #streams = new Map<ServerResponse, () => void>();
  #dropped = 0;

  /** @param onDropped Called after each watcher that was dropped for being slow. */
  constructor(onDropped: () => void) {
    this.#onDropped = onDropped;
  }

  /** Count of the answers under way. */
  get size(): number {
    return this.#streams.size;
  }

  /** Count of watchers dropped for being slow since the port opened. */
  get dropped(): number {
    return this.#dropped;
  }

  /**
   * Answers a request with a long-lived answer.
   * @param headers Headers beside those that every answer has.
   * @throws Fault `unavailable` if there are as many as may be.
   */
  begin(
    request: IncomingMessage,
    response: ServerResponse,
    answer: StreamAnswer,
    headers: Readonly<Record<string, string>>,
  ): void {
    if (this.#streams.size >= streamsMax) {
      const state = `${this.#streams.size} watchers are connected, which is the limit: close one of them`;
      throw new Fault("unavailable", `Cannot watch: ${state}`, {
        reason: "too-many-requests",
        retryAfterS: watcherRetryAfterS,
      });
    }
    request.socket.setKeepAlive(true, keepAliveAfterMs);
    // A proxy (nginx) would otherwise hold events back until it has many.
    response.writeHead(200, { "Content-Type": answer.contentType, ...safetyHeaders, ...headers, "X-Accel-Buffering": "no" });
    if (request.method === "HEAD") {
      response.end();
      return;
    }
    // An error is followed by the closing, which says the same.
    response.on("error", () => {});
    let isOver = false;
    let over: (() => void) | undefined;
    const finish = () => {
      if (isOver) return;
      isOver = true;
      this.#streams.delete(response);
      over?.();
    };
    const stream: AdminStream = {
      write: (piece) => {
        if (isOver) return;
        // Looked at before the writing: a piece that is written only now has had no time to leave.
        if (response.writableLength <= waitingBytesMax) response.write(piece);
        else {
          finish();
          response.destroy();
          this.#dropped++;
          this.#onDropped();
        }
      },
      end: () => {
        if (isOver) return;
        finish();
        response.end();
      },
    };
    this.#streams.set(response, finish);
    response.on("close", finish);
    try {
      over = answer.start(stream);
    } catch (error) {
      finish();
      response.destroy();
      throw error;
    }
    // The answer may have ended while it began.
    if (isOver) over();
  }

  /** Ends the answer of a client that closed the connection, or its side of it. Node says so only of the first answer of a connection. */
  gone(response: ServerResponse): void {
    const finish = this.#streams.get(response);
    if (finish === undefined) return;
    finish();
    response.end();
  }

  /** Ends all answers. Once it settles, written data has left for the system, as far as the other ends read. */
  async end(): Promise<void> {
    for (const [response, finish] of [...this.#streams]) {
      finish();
      response.end();
    }
    // The last piece is handed to the system at the end of this turn.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
