import { type AddressInfo, Server } from "node:net";
import { Duplex } from "node:stream";

/**
 * TCP within this process: servers listen on ports that no other process has, and what is written to a connection comes as soon as what
 * is under way in this turn of the event loop is over. With `VirtualTime` a minute of HTTP then takes a millisecond. Nothing in the
 * source knows.
 */

const real = { listen: Server.prototype.listen, close: Server.prototype.close, address: Server.prototype.address };

type Listening = { readonly server: Server; readonly address: AddressInfo; readonly connections: Set<ConnectionEnd> };

export class VirtualNet {
  readonly #byPort = new Map<number, Listening>();
  /** Also those that don't listen any more, while connections of theirs are open. */
  readonly #byServer = new Map<Server, Listening>();

  /** Takes over the listening of this process, until `restore`. */
  constructor() {
    const net = this;
    const listen = function (this: Server, { port, host }: { readonly port: number; readonly host: string }, done: () => void) {
      net.#listen(this, { port, address: host, family: "IPv4" }, done);
      return this;
    };
    const close = function (this: Server, done?: () => void) {
      net.#close(this, done);
      return this;
    };
    const address = function (this: Server) {
      return net.#byServer.get(this)?.address ?? null;
    };
    // posline's servers listen at a host and a port, and are told when they do.
    Object.assign(Server.prototype, { listen, close, address });
  }

  restore(): void {
    Object.assign(Server.prototype, real);
  }

  /** The client's end of a new connection; it fails, as of a port on which nobody listens. */
  connect(port: number): Duplex {
    // As Node's sockets are: of a client's it closes the other half itself, of an HTTP server's it doesn't.
    const client = new ConnectionEnd({ allowHalfOpen: false });
    const listening = this.#byPort.get(port);
    if (listening === undefined) {
      // Once its user listens, which Node's client does in the next tick.
      process.nextTick(() => process.nextTick(() => client.destroy(connectionError("ECONNREFUSED"))));
      return client;
    }
    const { server, connections } = listening;
    const own = new ConnectionEnd();
    own.meet(client);
    connections.add(own);
    own.on("close", () => {
      connections.delete(own);
      this.#drained(listening);
    });
    server.emit("connection", own);
    return client;
  }

  /** The process that listens is killed: the kernel closes its ports, and resets its connections. */
  kill(): void {
    const all = [...this.#byServer.values()];
    this.#byPort.clear();
    this.#byServer.clear();
    for (const { server, connections } of all) {
      for (const each of connections) each.reset();
      // Node looks after its connections for ever otherwise.
      server.close();
    }
  }

  #listen(server: Server, address: AddressInfo, done: () => void): void {
    // A box without IPv6.
    const code = address.address === "::1" ? "EADDRNOTAVAIL" : this.#byPort.has(address.port) ? "EADDRINUSE" : undefined;
    if (code !== undefined) {
      process.nextTick(() => server.emit("error", connectionError(code)));
      return;
    }
    const listening = { server, address, connections: new Set<ConnectionEnd>() };
    this.#byPort.set(address.port, listening);
    this.#byServer.set(server, listening);
    server.once("listening", done);
    process.nextTick(() => server.emit("listening"));
  }

  #close(server: Server, done?: () => void): void {
    const listening = this.#byServer.get(server);
    if (done !== undefined) server.once("close", done);
    if (listening === undefined) {
      process.nextTick(() => server.emit("close"));
      return;
    }
    this.#byPort.delete(listening.address.port);
    this.#drained(listening);
  }

  /** A server that was closed has ended once its last connection has. */
  #drained({ server, address, connections }: Listening): void {
    if (connections.size > 0 || this.#byPort.get(address.port)?.server === server || !this.#byServer.has(server)) return;
    this.#byServer.delete(server);
    process.nextTick(() => server.emit("close"));
  }
}

/** One end of a connection; so much of a socket as Node's HTTP and posline use. */
class ConnectionEnd extends Duplex {
  readonly localAddress = "127.0.0.1";
  readonly remoteAddress = "127.0.0.1";
  bytesRead = 0;
  #other: ConnectionEnd | undefined;
  #hasEnded = false;

  /** Two ends become one connection. */
  meet(other: ConnectionEnd): void {
    this.#other = other;
    other.#other = this;
  }

  /** The other end finds it broken. */
  reset(): void {
    const other = this.#other;
    this.#hasEnded = true;
    this.destroy();
    process.nextTick(() => other?.destroy(connectionError("ECONNRESET")));
  }

  setTimeout(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  override _read(): void {
    // What was written is pushed as it comes: nothing here is long.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    const other = this.#other;
    if (other === undefined || other.destroyed) {
      done(connectionError("EPIPE"));
      return;
    }
    process.nextTick(() => other.#take(chunk));
    done();
  }

  override _final(done: () => void): void {
    this.#finish();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#finish();
    done(error);
  }

  #take(chunk: Buffer): void {
    if (this.destroyed || this.readableEnded) return;
    this.bytesRead += chunk.length;
    this.push(chunk);
  }

  /** Nothing comes from it any more. */
  #finish(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const other = this.#other;
    process.nextTick(() => {
      if (other?.destroyed === false) other.push(null);
    });
  }
}

const connectionError = (code: string) => Object.assign(new Error(code), { code });
