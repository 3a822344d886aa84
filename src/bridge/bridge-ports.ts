import type { Duplex } from "node:stream";
import type { Config, ServiceConfig } from "../config/config.ts";
import { exposedSocket, needsToken } from "../config/exposure.ts";
import { adminDefaults } from "../config/limits.ts";
import { meet } from "../config/rules.ts";
import { hostOfAddresses, isLoopback } from "../core/address.ts";
import type { ServiceName } from "../core/call.ts";
import { codeOf } from "../core/error-code.ts";
import { loopTurns } from "../core/loop-turns.ts";
import { urlHost } from "../core/url-host.ts";
import { HttpListener, type HttpListenerOptions } from "../http/listener.ts";
import type { Listening } from "../process/served.ts";
import type { ListeningSocket } from "../systemd/descriptors.ts";
import { unserved } from "./unserved.ts";

/**
 * The TCP ports of a bridge, each with the service that is reached there. A new configuration changes what is behind a port while
 * it listens, and opens and closes only those that it brings and takes away.
 *
 * Where systemd opened the sockets, posline opens and closes none: each is answered as long as the process lives, since a
 * connection that isn't accepted hangs until its till gives up.
 */

/** A service that is to be reached at its configuration's address. */
export interface WantedPort {
  readonly line: string;
  readonly options: HttpListenerOptions;
}

/**
 * Turns of the event loop in which what lies in a port's backlog is accepted before the port is closed: Node accepts one connection in a
 * turn. It would be reset, and its till not know whether its request had been sent.
 */
const acceptTurns = 32;

/** The configuration doesn't match systemd's sockets. Its exit code says that the configuration must be fixed. */
export class SocketsError extends Error {
  override readonly name = "SocketsError";
  readonly exitCode = 78;
}

interface Port {
  readonly listener: HttpListener;
  readonly listening: Listening;
  readonly config: HttpListenerOptions["config"];
}

/** Where a service is to be reached; any free port is another one for each service. */
type Address = string;

/** The ports of a configuration, all of which listen. */
export type PreparedPorts = ReadonlyMap<Address, { readonly port: Port; readonly wanted: WantedPort }>;

export class BridgePorts {
  readonly #sockets: readonly ListeningSocket[];
  readonly #report: HttpListenerOptions["report"];
  #ports: ReadonlyMap<Address, Port> = new Map();
  /** systemd's sockets that no service has now. */
  readonly #unserved = new Map<Address, HttpListener>();
  readonly #closing = new Set<Promise<void>>();
  #accepted = Promise.resolve();

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
   * A connection to a service from within this process.
   * @throws Error if it doesn't listen.
   */
  connect(service: ServiceName): Duplex {
    const port = [...this.#ports.values()].find(({ listening }) => listening.service === service);
    if (port === undefined) throw new Error(`there is no ${service} any more`);
    return port.listener.connect();
  }

  /**
   * What systemd's sockets expose to the network, though the configuration has the service on loopback. It works, so it is a warning.
   */
  get warnings(): readonly string[] {
    return [...this.#ports.values()].flatMap(({ listening: { service, port }, config }) => {
      const open = this.#sockets.find((socket) => socket.port === port && !isLoopback(socket.host));
      return open === undefined || !isLoopback(config.host) ? [] : [exposedSocket(service, open, config)];
    });
  }

  /**
   * Opens the ports of a configuration that aren't open yet.
   * @throws Error when a port can't be opened, and SocketsError where systemd has no socket for a service alone: then nothing has changed.
   */
  async prepare(all: readonly WantedPort[]): Promise<PreparedPorts> {
    const prepared = new Map<Address, { port: Port; wanted: WantedPort }>();
    const opened: HttpListener[] = [];
    // A configuration may take a port back at once.
    await this.#accepted;
    try {
      for (const wanted of all) {
        const place = this.#placeOf(wanted);
        const before = prepared.get(place);
        if (before !== undefined) throw samePort(wanted, before.wanted);
        const { listener, listening } = this.#ports.get(place) ?? (await this.#open(wanted, opened));
        const { line, options } = wanted;
        const port = { listener, listening: { ...listening, service: nameOf(wanted), line }, config: options.config };
        prepared.set(place, { wanted, port });
      }
    } catch (error) {
      await Promise.all(opened.map((listener) => listener.close()));
      throw error;
    }
    return prepared;
  }

  /** Closes what was opened for a configuration that won't be used. */
  async discard(prepared: PreparedPorts): Promise<void> {
    const made = [...prepared].filter(([place]) => !this.#ports.has(place) && !this.#unserved.has(place));
    await Promise.all(made.map(([, { port }]) => port.listener.close()));
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
    for (const port of new Set(this.#sockets.map((socket) => socket.port))) this.#answerUnserved(port);
  }

  /** Settles once no port that was taken away listens any more. */
  get closed(): Promise<void> {
    return this.#accepted;
  }

  /** Stops accepting; settles when the last answers have gone out. */
  async close(): Promise<void> {
    for (const { listener } of this.#ports.values()) this.#close(listener);
    for (const listener of this.#unserved.values()) this.#close(listener);
    await Promise.all(this.#closing);
  }

  #answerUnserved(port: number): void {
    const place = String(port);
    if (this.#ports.has(place)) return;
    const options = unserved(port, this.#report);
    const listener = this.#unserved.get(place);
    if (listener === undefined) this.#unserved.set(place, this.#takeOver(port, options));
    else listener.replace(options);
  }

  #placeOf(wanted: WantedPort): Address {
    const { config } = wanted.options;
    if (config.port === 0) return nameOf(wanted);
    return this.#sockets.length > 0 ? String(config.port) : `${config.host} ${config.port}`;
  }

  async #open({ line, options }: WantedPort, opened: HttpListener[]): Promise<Port> {
    const { contract, config, service = contract.service } = options;
    if (this.#sockets.length === 0) {
      const listener = new HttpListener(options);
      const at = await listener.listen().catch((error: unknown) => {
        throw this.#refusalByOwn(service, config, error) ?? error;
      });
      opened.push(listener);
      return { listener, listening: { service, ...at, line }, config };
    }
    const { port } = config;
    const sockets = this.#sockets.filter((socket) => socket.port === port);
    if (sockets.length === 0) throw noSocket(`services.${service}.port`, port, this.#sockets);
    const host = hostOfAddresses(sockets.map((socket) => socket.host));
    const listener = this.#unserved.get(String(port)) ?? this.#takeOver(port, options);
    return { listener, listening: { service, host, port, line }, config };
  }

  /**
   * Why an address can't be had that posline itself has, by another host: 127.0.0.1 and 0.0.0.0 can't both listen. To close the one
   * before the other listens would turn calls away, and leave none where that one can't be had.
   */
  #refusalByOwn(service: ServiceName, { host, port }: Pick<ServiceConfig, "host" | "port">, error: unknown): Error | undefined {
    const own = this.listening.find((each) => each.port === port && meet(each.host, host));
    if (own === undefined || codeOf(error) !== "EADDRINUSE") return undefined;
    const [wanted, there] = [host, own.host].map((each) => `${urlHost(each)}:${port}`);
    return new Error(
      `Cannot reload: services.${service} is to listen on ${wanted}, and posline itself listens on ${there}, so the change of the ` +
        "host needs a restart: restart posline, or undo the change",
    );
  }

  /** Answers on systemd's sockets of a port. They listen already: there is nothing to wait for, and nothing that could fail. */
  #takeOver(port: number, options: HttpListenerOptions): HttpListener {
    const listener = new HttpListener(options);
    const holders = this.#sockets.filter((socket) => socket.port === port).map(({ holder }) => holder);
    void listener.listen({ holders });
    return listener;
  }

  /** systemd's sockets stay open: what posline hasn't accepted there waits for the next process. */
  #close(listener: HttpListener): void {
    if (this.#sockets.length === 0) this.#accepted = loopTurns(acceptTurns);
    const closed = this.#accepted.then(() => listener.close()).finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}

const nameOf = ({ options: { contract, service = contract.service } }: WantedPort): ServiceName => service;

/**
 * Two services with addresses of their own on one port. Only systemd's sockets are told apart by the port alone; addresses that meet
 * are refused by the configuration's own rules.
 */
function samePort(wanted: WantedPort, other: WantedPort): SocketsError {
  return new SocketsError(
    `Cannot use the configuration: services.${nameOf(wanted)}.port is ${wanted.options.config.port}, which services.${nameOf(other)} ` +
      "has: all sockets of posline.socket with one port lead to one service, whatever their addresses: give each service a port of its own",
  );
}

/** systemd's sockets are others than the configuration's ports. */
function noSocket(path: string, port: number, sockets: readonly ListeningSocket[]): SocketsError {
  const ports = [...new Set(sockets.map((each) => each.port))].join(", ");
  return new SocketsError(
    `Cannot use the configuration: ${path} is ${port}, but systemd's posline.socket listens on ${ports}: change the port back, or add ` +
      `it to posline.socket: sudo systemctl edit posline.socket, then sudo systemctl restart posline.socket posline`,
  );
}

/**
 * The sockets of systemd's that are the admin port's.
 * @throws SocketsError when systemd has none where it is configured, or one that the network reaches and that asks for no token.
 */
export function socketsForAdmin(
  { admin }: Pick<Config, "admin">,
  sockets: readonly ListeningSocket[],
): readonly ListeningSocket[] {
  const own = sockets.filter(({ port }) => port === (admin ?? adminDefaults).port);
  if (own.length === 0 && admin !== undefined && sockets.length > 0) throw noSocket("admin.port", admin.port, sockets);
  const open = own.find(({ host }) => !isLoopback(host));
  if (open !== undefined && admin?.token === undefined) {
    throw new SocketsError(
      `Cannot use the configuration: posline.socket opens the admin port on ${open.host}, where it ${needsToken}; or listen on ` +
        `127.0.0.1:${open.port}: sudo systemctl edit posline.socket, then sudo systemctl restart posline.socket posline`,
    );
  }
  return own;
}
