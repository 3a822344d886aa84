import { HttpListener, type HttpListenerOptions } from "../http/listener.ts";
import type { ListeningSocket } from "../systemd/descriptors.ts";
import type { Listening } from "./served.ts";
import { unserved } from "./unserved.ts";

/**
 * The TCP ports of a bridge, each with the service that is reached there. A new configuration changes what is behind a port while
 * it listens, and opens and closes only those that it brings and takes away.
 *
 * Where systemd opened the sockets, posline opens and closes none: each is answered as long as the process lives, since a
 * connection that nobody takes hangs until its till gives up.
 */

/** A service that is to be reached at its configuration's address. */
export interface Wanted {
  readonly line: string;
  readonly options: HttpListenerOptions;
}

/** The configuration and systemd's sockets don't go together. Its code says that the configuration is to be mended. */
export class SocketsError extends Error {
  override readonly name = "SocketsError";
  readonly exitCode = 78;
}

interface Port {
  readonly listener: HttpListener;
  readonly listening: Listening;
}

/** Where a service is to be reached; any free port is another one for each service. */
type Place = string;

/** The ports of a configuration, all of which listen. */
export type PreparedPorts = ReadonlyMap<Place, { readonly port: Port; readonly wanted: Wanted }>;

export class BridgePorts {
  readonly #sockets: readonly ListeningSocket[];
  readonly #report: HttpListenerOptions["report"];
  #ports: ReadonlyMap<Place, Port> = new Map();
  /** systemd's sockets that no service has now. */
  readonly #unserved = new Map<Place, HttpListener>();
  readonly #closing = new Set<Promise<void>>();

  /**
   * @param sockets What systemd listens on; none when posline is to listen by itself.
   * @param report Of requests to ports that no service has.
   */
  constructor(sockets: readonly ListeningSocket[], report: HttpListenerOptions["report"]) {
    this.#sockets = sockets;
    this.#report = report;
  }

  get listening(): readonly Listening[] {
    return [...this.#ports.values()].map(({ listening }) => listening);
  }

  /**
   * Listens where a configuration wants it and nobody listens yet.
   * @throws Error when a port can't be had, and SocketsError where systemd has no such socket: then all is as before.
   */
  async prepare(all: readonly Wanted[]): Promise<PreparedPorts> {
    const prepared = new Map<Place, { port: Port; wanted: Wanted }>();
    const opened: HttpListener[] = [];
    try {
      for (const wanted of all) {
        const place = this.#placeOf(wanted);
        const { listener, listening } = this.#ports.get(place) ?? (await this.#open(wanted, opened));
        const { line, options } = wanted;
        const port = { listener, listening: { ...listening, service: options.contract.service, line } };
        prepared.set(place, { wanted, port });
      }
    } catch (error) {
      await Promise.all(opened.map((listener) => listener.close()));
      throw error;
    }
    return prepared;
  }

  /** Lets a configuration's services be reached, and no others. */
  take(prepared: PreparedPorts): void {
    for (const [place, { port, wanted }] of prepared) {
      port.listener.replace(wanted.options);
      this.#unserved.delete(place);
    }
    for (const [place, { listener }] of this.#ports) {
      if (prepared.has(place)) continue;
      if (this.#sockets.length === 0) this.#close(listener);
      else this.#unserved.set(place, listener);
    }
    this.#ports = new Map([...prepared].map(([place, { port }]) => [place, port]));
    for (const socket of this.#sockets) this.#answerUnserved(socket);
  }

  /** Stops accepting; settles when the last answers have gone out. */
  async close(): Promise<void> {
    for (const { listener } of this.#ports.values()) this.#close(listener);
    for (const listener of this.#unserved.values()) this.#close(listener);
    await Promise.all(this.#closing);
  }

  #answerUnserved({ holder, port }: ListeningSocket): void {
    const place = String(port);
    if (this.#ports.has(place)) return;
    const options = unserved(port, this.#report);
    const listener = this.#unserved.get(place);
    if (listener !== undefined) {
      listener.replace(options);
      return;
    }
    const first = new HttpListener(options);
    this.#unserved.set(place, first);
    // It listens already: there is nothing to wait for, and nothing that could fail.
    void first.listen({ holder });
  }

  #placeOf({ options: { config, contract } }: Wanted): Place {
    if (config.port === 0) return contract.service;
    return this.#sockets.length > 0 ? String(config.port) : `${config.host} ${config.port}`;
  }

  async #open({ line, options }: Wanted, opened: HttpListener[]): Promise<Port> {
    const { contract, config } = options;
    const portOf = (listener: HttpListener, { address, port }: { readonly address: string; readonly port: number }): Port => ({
      listener,
      listening: { service: contract.service, host: address, port, line },
    });
    if (this.#sockets.length === 0) {
      const listener = new HttpListener(options);
      const address = await listener.listen();
      opened.push(listener);
      return portOf(listener, address);
    }
    const socket = this.#sockets.find(({ port }) => port === config.port);
    if (socket === undefined) throw noSocket(`services.${contract.service}.port`, config.port, this.#sockets);
    const idle = this.#unserved.get(String(config.port));
    if (idle !== undefined) return portOf(idle, { address: socket.host, port: socket.port });
    const listener = new HttpListener(options);
    return portOf(listener, await listener.listen({ holder: socket.holder }));
  }

  #close(listener: HttpListener): void {
    const closed = listener.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}

/** systemd's sockets are others than the configuration's ports. */
export function noSocket(path: string, port: number, sockets: readonly ListeningSocket[]): SocketsError {
  const ports = sockets.map((each) => each.port).join(", ");
  return new SocketsError(
    `Cannot use the configuration: ${path} is ${port}, and systemd's posline.socket listens on ${ports}: set the port back, or add ` +
      `it there: sudo systemctl edit posline.socket, then sudo systemctl restart posline.socket posline`,
  );
}
