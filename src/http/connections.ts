import type { Socket } from "node:net";
import { lingerMs } from "./limits.ts";
import type { Visit } from "./visit.ts";

/** What to do with a connection on which something broken came. */
export type Verdict = "answer" | "end" | "nothing";

/**
 * The connections of one server, each with its requests that aren't answered yet, in the order in which they came.
 *
 * A response behind another one of its connection (pipelining) isn't told by Node when the connection closes, so who left is
 * known here, by connection, and not by response.
 */
export class Connections {
  readonly #visits = new Map<Socket, Visit[]>();
  /** Connections that were told that they are broken. */
  readonly #told = new WeakSet<Socket>();
  #closing = false;

  /** @param left Called with each request whose connection closed before its answer went out. */
  opened(socket: Socket, left: (visit: Visit) => void): void {
    const visits: Visit[] = [];
    this.#visits.set(socket, visits);
    socket.on("close", () => {
      this.#visits.delete(socket);
      for (const visit of visits) left(visit);
    });
  }

  entered(visit: Visit): void {
    this.#visits.get(visit.request.socket)?.push(visit);
  }

  /** The answer has gone out. */
  finished(visit: Visit): void {
    const { socket } = visit.request;
    const visits = this.#visits.get(socket);
    if (visits === undefined) return;
    visits.splice(visits.indexOf(visit), 1);
    if (this.#closing && visits.length === 0) socket.end();
  }

  /** Whether the connection ends with this request's answer: while the service shuts down, with its last one. */
  endsWith(visit: Visit): boolean {
    return this.#closing && this.#visits.get(visit.request.socket)?.length === 1;
  }

  /** From now on each connection ends with its last answer. Browsers open some ahead of need: these aren't waited for. */
  close(): void {
    this.#closing = true;
    for (const socket of this.#visits.keys()) if (socket.bytesRead === 0) socket.destroy();
  }

  /**
   * Something broken came. A fault may be written only where nobody can take it for the answer to a request that is under way,
   * and only once; what follows is dropped until the connection ends.
   * @returns What to do, and the request that was cut short by it, if one was.
   */
  broke(socket: Socket, code: string | undefined): { readonly verdict: Verdict; readonly visit: Visit | undefined } {
    const [visit, ...others] = this.#visits.get(socket) ?? [];
    const fromParser = code?.startsWith("HPE_") === true;
    if (this.#told.has(socket)) return { verdict: fromParser ? "nothing" : "end", visit };
    const underWay = others.length > 0 || visit?.whole === true;
    if (underWay || !socket.writable || code === "ECONNRESET") return { verdict: "end", visit };
    this.#told.add(socket);
    setTimeout(() => socket.destroy(), lingerMs).unref();
    // It has its answer already (too large, not allowed): that one only needs time to be read.
    return { verdict: visit?.response.headersSent ? "nothing" : "answer", visit };
  }
}
