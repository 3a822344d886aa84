import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Fault, nothingSent } from "../core/fault.ts";
import { lingerMs, waitingRequestsMax } from "./limits.ts";

/** A request that is not answered yet, as far as its connection needs to know it. */
export interface PendingRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The treatment of a connection after an error of the HTTP parser: write a fault, cut it, or leave it to its answers. */
export type ParseErrorAction = "answer" | "end" | "nothing";

interface ConnectionState<R> {
  /** The connection's requests that aren't answered yet, in order. */
  readonly pending: R[];
  /** The last request, if it was answered before all of it was received. */
  answeredEarly: IncomingMessage | undefined;
  /** Set once the connection takes no more requests. `last` is the request whose answer is its last, if any waits for one. */
  ending: { readonly last: R | undefined } | undefined;
  /** True if all answers are written, and only the client holds them up: the socket's own timeout runs. */
  isLimited: boolean;
}

/**
 * The connections of one server, each with its requests that aren't answered yet.
 *
 * A call that was carried out is answered, whatever else comes on its connection. Bytes that aren't HTTP, a request too many and the end of
 * the client's side all do the same: from then on the connection takes no request, and it ends with the answer to the last one.
 *
 * If a connection closes, Node tells only its first waiting response (pipelining), so callers that left are tracked here by connection.
 */
export class Connections<R extends PendingRequest> {
  readonly #connections = new Map<Socket, ConnectionState<R>>();
  #closing = false;

  /**
   * @param clientGone Called with each request whose client closed the connection, or shut down its side of it, before the answer went
   * out: the two can't be told apart until something is written.
   */
  opened(socket: Socket, clientGone: (request: R) => void): void {
    const pending: R[] = [];
    const connection: ConnectionState<R> = { pending, answeredEarly: undefined, ending: undefined, isLimited: false };
    this.#connections.set(socket, connection);
    socket.on("end", () => {
      connection.ending ??= { last: pending.at(-1) };
      for (const each of pending) clientGone(each);
    });
    socket.on("close", () => {
      this.#connections.delete(socket);
      for (const each of pending) clientGone(each);
    });
  }

  /** Notes a request on its connection. */
  requestStarted(started: R): void {
    const connection = this.#connections.get(started.request.socket);
    if (connection === undefined) return;
    const { pending } = connection;
    pending.push(started);
    if (connection.isLimited) {
      // The terminal may take longer for this answer than a client may stand still.
      connection.isLimited = false;
      started.request.socket.setTimeout(0);
    }
    if (pending.length <= waitingRequestsMax) return;
    // Answered requests that nothing holds up are only about to go out.
    const first = pending.findIndex(({ response }) => !response.writableEnded);
    if (pending.length - first <= waitingRequestsMax) return;
    connection.ending = { last: started };
    dropWhatComes(started.request.socket);
  }

  /**
   * Refuses a request that exceeds `waitingRequestsMax` of its connection.
   * @throws Fault `unavailable`; its answer has to close the connection, as `closesAfter` says.
   */
  refuseOverLimit(pending: R): void {
    if (this.#connections.get(pending.request.socket)?.ending?.last !== pending) return;
    const state = `${waitingRequestsMax} requests of its connection already wait, which is the limit`;
    throw new Fault("unavailable", `Cannot accept the request: ${state}. ${nothingSent}`, { reason: "too-many-requests" });
  }

  /** True if a connection takes no more requests. */
  isEnding(socket: Socket): boolean {
    return this.#connections.get(socket)?.ending !== undefined;
  }

  /** Notes that the answer to a request was sent. */
  responseFinished(finished: R): void {
    const { request } = finished;
    const { socket } = request;
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    const { pending } = connection;
    const at = pending.indexOf(finished);
    if (at !== -1) pending.splice(at, 1);
    connection.answeredEarly = request.complete ? undefined : request;
    if ((this.#closing || connection.ending !== undefined) && pending.length === 0) socket.end();
  }

  /** True if a request's answer closes its connection: as its last one, or because the service shuts down. */
  closesAfter(pending: R): boolean {
    const connection = this.#connections.get(pending.request.socket);
    if (connection === undefined) return false;
    return connection.ending?.last === pending || (this.#closing && connection.pending.length === 1);
  }

  /** Ends each connection with its last answer from now on. */
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
   * Handles a connection that failed, or whose bytes can't be parsed. A fault may be written only if a client can't take it for the answer
   * to a request that came whole, and only once; later bytes are dropped until the connection ends.
   * @returns The action to take, and the request that was cut short, if one was.
   */
  parseError(socket: Socket): { readonly action: ParseErrorAction; readonly cutShort: R | undefined } {
    // A browser that connects ahead of need, a port scan, a health check: no request, so there is nothing to answer.
    if (socket.bytesRead === 0 || !socket.writable) return { action: "end", cutShort: undefined };
    const connection = this.#connections.get(socket);
    if (connection === undefined || connection.ending !== undefined) return { action: "nothing", cutShort: undefined };
    const { pending, answeredEarly } = connection;
    const last = pending.at(-1);
    connection.ending = { last };
    dropWhatComes(socket);
    if (last === undefined) {
      if (answeredEarly?.complete !== false) return { action: "answer", cutShort: undefined };
      // The request has its answer already (too large, not allowed), and a second one would be taken for the answer to another request.
      socket.end();
      return { action: "nothing", cutShort: undefined };
    }
    const { request, response } = last;
    const isAnswered = request.complete || response.headersSent;
    return isAnswered ? { action: "nothing", cutShort: undefined } : { action: "answer", cutShort: last };
  }
}

/**
 * Reads and drops bytes that still come on a connection, since they are no request any more. The system would reset a connection that is
 * closed with unread bytes in it, and an answer on its way would be lost. So the connection ends only on our side, and is closed a moment
 * later.
 */
function dropWhatComes(socket: Socket): void {
  // Node's parser is one of the listeners.
  socket.removeAllListeners("data");
  socket.on("data", () => {});
  // Node calls this after an answer with `Connection: close`.
  socket.destroySoon = () => socket.end();
  socket.once("finish", () => setTimeout(() => socket.destroy(), lingerMs).unref());
}
