import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Fault, nothingSent } from "../core/fault.ts";
import { lingerMs, waitingRequestsMax } from "./limits.ts";

/** A request that is not answered yet, as far as its connection needs to know it. */
export interface PendingRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** True once its body was read to its end. */
  readonly bodyComplete: boolean;
}

/** What to do with a connection after an error of the HTTP parser: write a fault and end it, cut it, or drop what comes. */
export type ParseErrorAction = "answer" | "end" | "nothing";

interface ConnectionState<R> {
  /** Its requests that aren't answered yet, in the order in which they came. */
  readonly pending: R[];
  /** The last request, if it was answered before all of it was received. */
  answeredEarly: IncomingMessage | undefined;
  /** The request that exceeded `waitingRequestsMax`; its answer is the connection's last. */
  overLimit: R | undefined;
  /** Its answers are all written, and only its client holds them up: the socket's own timeout runs. */
  isLimited: boolean;
}

/**
 * The connections of one server, each with its requests that aren't answered yet.
 *
 * A response behind another one of its connection (pipelining) isn't notified by Node when the connection closes, so who left is
 * tracked here by connection, and not by response.
 */
export class Connections<R extends PendingRequest> {
  readonly #connections = new Map<Socket, ConnectionState<R>>();
  /** Connections whose parse error was dealt with already. */
  readonly #failed = new WeakSet<Socket>();
  #closing = false;

  /** @param clientGone Called with each request whose connection closed before its answer went out. */
  opened(socket: Socket, clientGone: (request: R) => void): void {
    const pending: R[] = [];
    this.#connections.set(socket, { pending, answeredEarly: undefined, overLimit: undefined, isLimited: false });
    socket.on("close", () => {
      this.#connections.delete(socket);
      for (const each of pending) clientGone(each);
    });
  }

  /** A request came on a connection. */
  requestStarted(started: R): void {
    const connection = this.#connections.get(started.request.socket);
    if (connection === undefined) return;
    const { pending } = connection;
    pending.push(started);
    if (connection.isLimited) {
      // The terminal may need longer for this one.
      connection.isLimited = false;
      started.request.socket.setTimeout(0);
    }
    if (pending.length <= waitingRequestsMax) return;
    // Those that are answered, and that nothing holds up, are only about to go out.
    const first = pending.findIndex(({ response }) => !response.writableEnded);
    if (pending.length - first > waitingRequestsMax) connection.overLimit = started;
  }

  /**
   * Refuses a request that exceeds `waitingRequestsMax` of its connection.
   * @throws Fault `unavailable`; its answer has to close the connection, as `closesAfter` says.
   */
  refuseOverLimit(pending: R): void {
    if (this.#connections.get(pending.request.socket)?.overLimit !== pending) return;
    const state = `${waitingRequestsMax} requests of its connection already wait, which is the limit`;
    throw new Fault("unavailable", `Cannot accept the request: ${state}. ${nothingSent}`, { reason: "too-many-requests" });
  }

  /** Whether a connection takes no more requests: one over the limit is already refused. */
  isFull(socket: Socket): boolean {
    return this.#connections.get(socket)?.overLimit !== undefined;
  }

  /** The answer to a request was sent. */
  responseFinished(finished: R): void {
    const { request } = finished;
    const { socket } = request;
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    const { pending } = connection;
    const at = pending.indexOf(finished);
    if (at !== -1) pending.splice(at, 1);
    connection.answeredEarly = request.complete ? undefined : request;
    if (this.#closing && pending.length === 0) socket.end();
  }

  /** Whether a request's answer closes its connection: one over the limit does, and while the service shuts down the last one. */
  closesAfter(pending: R): boolean {
    const connection = this.#connections.get(pending.request.socket);
    if (connection === undefined) return false;
    return connection.overLimit === pending || (this.#closing && connection.pending.length === 1);
  }

  /** From now on each connection ends with its last answer. */
  close(): void {
    this.#closing = true;
  }

  /** Cuts each connection, all of whose answers are written, as soon as its client has taken nothing for so many milliseconds. */
  limitAnswers(ms: number): void {
    for (const [socket, connection] of this.#connections) {
      const { pending, isLimited } = connection;
      if (isLimited || pending.length === 0 || !pending.every(({ response }) => response.writableEnded)) continue;
      connection.isLimited = true;
      // Node's HTTP server destroys the socket by it.
      socket.setTimeout(ms);
    }
  }

  /** Destroys the connections on which nothing was ever received: browsers open some ahead of need. */
  destroyUnused(): void {
    for (const socket of this.#connections.keys()) if (socket.bytesRead === 0) socket.destroy();
  }

  /**
   * What was received on a connection can't be parsed, or the connection failed. A fault may be written only where a client can't
   * take it for the answer to a request that is under way, and only once; what follows is dropped until the connection ends.
   * @returns What to do, and the request that was cut short by it, if one was.
   */
  parseError(
    socket: Socket,
    code: string | undefined,
  ): { readonly action: ParseErrorAction; readonly cutShort: R | undefined } {
    // A browser that connects ahead of need, a port scan, a health check: no request, so there is nothing to answer.
    if (socket.bytesRead === 0) return { action: "end", cutShort: undefined };
    const { pending = [], answeredEarly } = this.#connections.get(socket) ?? {};
    const [cutShort, ...others] = pending;
    const fromParser = code?.startsWith("HPE_") === true;
    if (this.#failed.has(socket)) return { action: fromParser ? "nothing" : "end", cutShort };
    const underWay = others.length > 0 || cutShort?.bodyComplete === true;
    if (underWay || !socket.writable || code === "ECONNRESET") return { action: "end", cutShort };
    this.#failed.add(socket);
    setTimeout(() => socket.destroy(), lingerMs).unref();
    const answered = cutShort === undefined ? answeredEarly?.complete === false : cutShort.response.headersSent;
    if (!answered) return { action: "answer", cutShort };
    // It has its answer already (too large, not allowed): that one only needs time to be read, and a second one would be taken
    // for the answer to another request.
    socket.end();
    return { action: "nothing", cutShort };
  }
}
