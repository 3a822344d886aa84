import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { lingerMs, waitingRequestsMax } from "./limits.ts";

/** A request, as far as its connection needs to know it. */
export interface Entered {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** False until its body is there to its end. */
  readonly whole: boolean;
}

/** What to do with a connection on which something broken came. */
export type Verdict = "answer" | "end" | "nothing";

interface Connection<V> {
  /** Its requests that aren't answered yet, in the order in which they came. */
  readonly visits: V[];
  /** The request that was answered before it had come to its end, if that was the last one. */
  cutShort: IncomingMessage | undefined;
  /** The request that came while as many waited as may; its answer is the connection's last. */
  oneTooMany: V | undefined;
}

/**
 * The connections of one server, each with its requests that aren't answered yet.
 *
 * A response behind another one of its connection (pipelining) isn't told by Node when the connection closes, so who left is
 * known here, by connection, and not by response.
 */
export class Connections<V extends Entered> {
  readonly #connections = new Map<Socket, Connection<V>>();
  /** Connections that were told that they are broken. */
  readonly #told = new WeakSet<Socket>();
  #closing = false;

  /** @param left Called with each request whose connection closed before its answer went out. */
  opened(socket: Socket, left: (visit: V) => void): void {
    const visits: V[] = [];
    this.#connections.set(socket, { visits, cutShort: undefined, oneTooMany: undefined });
    socket.on("close", () => {
      this.#connections.delete(socket);
      for (const visit of visits) left(visit);
    });
  }

  entered(visit: V): void {
    const connection = this.#connections.get(visit.request.socket);
    if (connection === undefined) return;
    const { visits } = connection;
    visits.push(visit);
    // Those that are answered, and that nothing holds up, are only about to go out.
    const first = visits.findIndex(({ response }) => !response.writableEnded);
    if (visits.length - first > waitingRequestsMax) connection.oneTooMany = visit;
  }

  /** Whether a request came while as many of its connection waited as may: it is to be refused. */
  isOneTooMany(visit: V): boolean {
    return this.#connections.get(visit.request.socket)?.oneTooMany === visit;
  }

  /** Whether nothing more may come on a connection: its last request is already refused. */
  isFull(socket: Socket): boolean {
    return this.#connections.get(socket)?.oneTooMany !== undefined;
  }

  /** The answer has gone out. */
  finished(visit: V): void {
    const { request } = visit;
    const { socket } = request;
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    const { visits } = connection;
    const at = visits.indexOf(visit);
    if (at !== -1) visits.splice(at, 1);
    connection.cutShort = request.complete ? undefined : request;
    if (this.#closing && visits.length === 0) socket.end();
  }

  /** Whether the connection ends with this request's answer: with that of one too many, and while the service shuts down with its last. */
  endsWith(visit: V): boolean {
    const connection = this.#connections.get(visit.request.socket);
    if (connection === undefined) return false;
    return connection.oneTooMany === visit || (this.#closing && connection.visits.length === 1);
  }

  /** From now on each connection ends with its last answer. */
  close(): void {
    this.#closing = true;
  }

  /** Cuts those on which nothing ever came: browsers open some ahead of need. */
  endUnused(): void {
    for (const socket of this.#connections.keys()) if (socket.bytesRead === 0) socket.destroy();
  }

  /**
   * Something broken came. A fault may be written only where nobody can take it for the answer to a request that is under way,
   * and only once; what follows is dropped until the connection ends.
   * @returns What to do, and the request that was cut short by it, if one was.
   */
  broke(socket: Socket, code: string | undefined): { readonly verdict: Verdict; readonly visit: V | undefined } {
    const { visits = [], cutShort } = this.#connections.get(socket) ?? {};
    const [visit, ...others] = visits;
    const fromParser = code?.startsWith("HPE_") === true;
    if (this.#told.has(socket)) return { verdict: fromParser ? "nothing" : "end", visit };
    const underWay = others.length > 0 || visit?.whole === true;
    if (underWay || !socket.writable || code === "ECONNRESET") return { verdict: "end", visit };
    this.#told.add(socket);
    setTimeout(() => socket.destroy(), lingerMs).unref();
    const answered = visit === undefined ? cutShort?.complete === false : visit.response.headersSent;
    if (!answered) return { verdict: "answer", visit };
    // It has its answer already (too large, not allowed): that one only needs time to be read, and a second one would be taken
    // for the answer to another request.
    socket.end();
    return { verdict: "nothing", visit };
  }
}
