import { Agent, type IncomingHttpHeaders, request } from "node:http";
import type { Duplex } from "node:stream";
import { textOf } from "../../src/envelope/json.ts";
import type { VirtualNet } from "../../test/support/virtual-net.ts";

/** How tills of the full worlds reach their box: by Node's HTTP client, over the world's own network. */

export interface TillRequest {
  readonly port: number;
  readonly path: string;
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Aborted, its till has left. */
  readonly signal?: AbortSignal | undefined;
  /** The connections that its till keeps; each request has one of its own where it keeps none. */
  readonly kept?: KeptConnections | undefined;
}

/** Connections of a till that are used again. */
export class KeptConnections extends Agent {
  readonly #net: VirtualNet;

  constructor(net: VirtualNet) {
    super({ keepAlive: true });
    this.#net = net;
  }

  override createConnection({ port }: { readonly port?: number | string | null | undefined }): Duplex {
    return this.#net.connect(Number(port));
  }
}

export interface TillAnswer {
  readonly httpStatus: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Asks over a connection. @throws Error where no whole answer comes, with the system's code. */
export function askBox(net: VirtualNet, { port, path, method = "POST", headers, body = "", signal, kept }: TillRequest) {
  return new Promise<TillAnswer>((resolve, reject) => {
    const sized = { Host: `127.0.0.1:${port}`, ...headers, "Content-Length": Buffer.byteLength(body) };
    const over = kept === undefined ? { createConnection: () => net.connect(port) } : { agent: kept, port };
    const asked = request({ method, path, headers: sized, signal, ...over }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => pieces.push(piece));
      answer.on("error", reject);
      answer.on("end", () => {
        resolve({ httpStatus: answer.statusCode ?? 0, headers: answer.headers, text: textOf(pieces) });
      });
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

export interface FetchOptions {
  readonly net: VirtualNet;
  /** The port of the service by now, whatever the client's settings say. */
  portNow(): number;
  /** Told of each request before it is sent. */
  asking(path: string): void;
}

/** The same as `fetch`, for the typed client. */
export const fetchOver =
  ({ net, portNow, asking }: FetchOptions): typeof fetch =>
  async (input, { method = "GET", headers, body, signal } = {}) => {
    const sent = { method, headers: Object.fromEntries(new Headers(headers)) };
    const path = new URL(String(input)).pathname;
    const text = typeof body === "string" ? body : undefined;
    asking(path);
    try {
      const answer = await askBox(net, { ...sent, port: portNow(), path, body: text, signal: signal ?? undefined });
      const pairs = Object.entries(answer.headers).map(([name, value]): [string, string] => [name, String(value)]);
      return new Response(answer.text, { status: answer.httpStatus, headers: pairs });
    } catch (error) {
      signal?.throwIfAborted();
      throw new TypeError("fetch failed", { cause: error });
    }
  };
