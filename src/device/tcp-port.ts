import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { TcpAddress } from "../config/device-name.ts";
import { addressesOf } from "../core/address.ts";
import { Deadline, nowMs, within } from "../core/clock.ts";
import { connectionFailure } from "../core/connection-error.ts";
import { codeOf, messageOf } from "../core/error-code.ts";
import { urlHost } from "../core/url-host.ts";
import { type Cause, isTelnet, noConnection, telnet, unsteady, webServer, wordsOf } from "./open-errors.ts";
import { type Connection, type ConnectionHandler, closeMs, give, OpenError, type OpenTransport } from "./transport.ts";

/**
 * A line over TCP as a transport: a terminal with a network port, or a serial device that ser2net, socat or a terminal server offers. A
 * connection is an opening, and one that is cut is an unplug. There is no lock, no drain and nothing to set: who else reaches the terminal,
 * and when its bytes leave on a wire beyond, only the far end knows.
 */

/** Milliseconds that the look-up of a name and the connecting may take: a first packet that was lost is sent again after one second. */
const connectMs = 2_500;

/** Milliseconds of silence before the system asks whether the far end is still there, which it then does each second, ten times. */
const keepAliveMs = 10_000;

/** First bytes that are kept: frames have bytes that are no text, so an answer is never among what is shown. */
const headBytes = 100;

/**
 * Milliseconds in which the far end's system takes bytes that were written. A far end that lost its power says nothing, and the system
 * would send them again for a quarter of an hour.
 */
const takenMs = 10_000;

/** Milliseconds from its opening within which the loss of a connection is no accident, if it happens `shortMax` times in a row. */
const shortMs = 5_000;
const shortMax = 3;

/** Milliseconds between two dialings of such a far end, doubling from the first to the longest. */
const slowMs = { first: 1_000, longest: 60_000 } as const;

/** Milliseconds that a connection must last before it is used, after one that was lost, and while the far end is dialled slowly. */
const lastsMs = { usual: 100, slow: 2_000 } as const;

/** Options of a line over TCP beside its address, for tests. */
export interface TcpPortOptions {
  readonly takenMs?: number;
}

/** Connections that the system may hold until they are accepted: each new one replaces the one before. */
const backlog = 4;

/** The address as a line's path has it. */
export function tcpPath({ host, port }: TcpAddress): string {
  return `tcp:${urlHost(host)}:${port}`;
}

/** Dials the far end, more slowly once its connections don't last. */
export function tcpPort(address: TcpAddress, options: TcpPortOptions = {}): OpenTransport {
  const path = tcpPath(address);
  const farEnd = new FarEnd();
  return async (handler) => {
    farEnd.refuse();
    const connection = new TcpConnection(await dialled(address, path), { path, farEnd }, handler, options);
    if (farEnd.lastsMs > 0) await connection.lasts(farEnd.lastsMs);
    return connection;
  };
}

/** The far end of a line over all its connections: two programs that push each other off one port would do so for ever. */
class FarEnd {
  /** Count of connections in a row that were lost soon. */
  #short = 0;
  /** Why the far end is dialled slowly; undefined if it isn't. */
  #why: Cause | undefined;
  #pauseMs: number = slowMs.first;
  #dueMs = 0;
  /** Milliseconds that the next connection must last before it is used. */
  lastsMs = 0;

  /** @throws OpenError until it is time to dial. */
  refuse(): void {
    if (this.#why !== undefined && nowMs() < this.#dueMs) throw new OpenError(this.#why);
  }

  /** Takes the loss of a connection. @returns why, in words: the first cause stays, so that the log has it once. */
  lost(why: string | Cause, { device, openedMs, wroteBytes, lastWords }: TcpConnection): string {
    const now = nowMs();
    this.lastsMs = lastsMs.usual;
    // A port that is in use, or whose device is away, says so, and may be free again at any moment.
    const isTurnedAway = lastWords !== "" && wroteBytes === 0;
    if (now - openedMs >= shortMs) {
      this.#short = 0;
      this.#why = undefined;
      this.#pauseMs = slowMs.first;
    } else if (!isTurnedAway) this.#short++;
    if (typeof why === "string" && this.#short < shortMax) return why;
    // What is used, and lost again, is in the log each time.
    if (this.#why !== undefined && wroteBytes > 0) this.#pauseMs = slowMs.longest;
    this.#why ??= typeof why === "string" ? unsteady(device, why) : why;
    this.lastsMs = lastsMs.slow;
    this.#dueMs = now + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, slowMs.longest);
    return wordsOf(this.#why);
  }
}

function dialled(address: TcpAddress, path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...address, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveMs });
    const failed = (error: Error) => {
      clearTimeout(limit);
      socket.destroy();
      reject(new OpenError(noConnection(path, codeOf(error), messageOf(error))));
    };
    const limit = setTimeout(() => failed(Object.assign(new Error("no answer"), { code: "ETIMEDOUT" })), connectMs);
    socket.once("error", failed);
    socket.once("connect", () => {
      clearTimeout(limit);
      socket.off("error", failed);
      resolve(socket);
    });
  });
}

/** A port on which the far end of a line is awaited. */
export interface TcpListener {
  readonly path: string;
  readonly open: OpenTransport;
  /** True while nobody is connected. */
  readonly isAlone: boolean;
  close(): Promise<void>;
}

/**
 * Listens for the far end of a line, which is one connection at a time: the newest. A box that lost its power comes again while its old
 * connection still looks alive for half a minute. While nobody awaits a connection, one that comes is cut.
 * @throws Error of the system if the port can't be had.
 */
export async function listenTcp(address: TcpAddress): Promise<TcpListener> {
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveMs, pauseOnConnect: true });
  server.listen({ host: addressesOf(address.host)[0], port: address.port, backlog });
  await once(server, "listening");
  // Port 0 is any free one.
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : address.port;
  return new ListeningTcp(server, tcpPath({ ...address, port }));
}

class ListeningTcp implements TcpListener {
  readonly path: string;
  readonly #server: Server;
  /** The connection that takes the place of the one before, once that one is given up. */
  #waiting: Socket | undefined;
  #taken: TcpConnection | undefined;
  #take: ((socket: Socket) => void) | undefined;

  constructor(server: Server, path: string) {
    this.#server = server;
    this.path = path;
    server.on("connection", (socket) => this.#came(socket));
    // A failure to accept one, as when the process has no descriptor left: the next one may be accepted.
    server.on("error", () => {});
  }

  get isAlone(): boolean {
    return this.#take !== undefined;
  }

  readonly open: OpenTransport = async (handler) => {
    const socket = await this.#next();
    this.#taken = new TcpConnection(socket, { path: this.path }, handler);
    return this.#taken;
  };

  close(): Promise<void> {
    this.#waiting?.destroy();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #next(): Promise<Socket> {
    const socket = this.#waiting;
    this.#waiting = undefined;
    if (socket?.destroyed === false) return Promise.resolve(socket);
    return new Promise((resolve) => {
      this.#take = resolve;
    });
  }

  #came(socket: Socket): void {
    // A connection that ends before it is taken, or while it is.
    socket.on("error", () => {});
    const take = this.#take;
    this.#take = undefined;
    if (take !== undefined) {
      take(socket);
    } else if (this.#taken?.isOpen === true) {
      this.#waiting?.destroy();
      this.#waiting = socket;
      this.#taken.replaced();
    } else {
      // Nobody awaits one, as while an emulated terminal is unplugged: what it sent would be carried out when its sender has given up.
      socket.destroy();
    }
  }
}

class TcpConnection implements Connection {
  readonly device: string;
  readonly isAccepted: boolean;
  readonly openedMs = nowMs();
  /** What was dialled; undefined if the connection was accepted. */
  readonly #farEnd: FarEnd | undefined;
  readonly #socket: Socket;
  readonly #handler: ConnectionHandler;
  /** Begins the reading, once the opener knows of the connection and has memory for its bytes. */
  #start: NodeJS.Immediate;
  #hasBegun = false;
  #open = true;
  #isWriting = false;
  /** Why the connection is lost. */
  #lostWhy: string | undefined;
  #closed: Promise<void> | undefined;
  /** The first bytes that came. */
  #head = Buffer.alloc(0);
  wroteBytes = 0;

  readonly #takenMs: number;
  /** Until when the far end is to have taken what was written, or answered. */
  readonly #taken = new Deadline(() => void this.#lookTaken());

  constructor(
    socket: Socket,
    { path, farEnd }: { readonly path: string; readonly farEnd?: FarEnd },
    handler: ConnectionHandler,
    options: TcpPortOptions = {},
  ) {
    this.#takenMs = options.takenMs ?? takenMs;
    this.#socket = socket;
    this.device = path;
    this.#farEnd = farEnd;
    this.isAccepted = farEnd === undefined;
    this.#handler = handler;
    socket.pause();
    socket.on("data", (bytes) => this.#heard(bytes));
    socket.on("error", (error) => {
      this.#lose(whyLost(error));
    });
    socket.on("end", () => this.#lose(`the far end closed the connection${this.lastWords}`));
    socket.on("close", () => this.#lose("the connection was closed"));
    this.#start = setImmediate(() => this.#begin());
  }

  /**
   * The system doesn't say how much of a write it has taken, so all of it counts as written from the beginning: a connection that is cut
   * then leaves an outcome unknown, and never called unsent.
   */
  write(pieces: readonly Buffer[]): void {
    const socket = this.#socket;
    const now = nowMs();
    if (!this.#taken.isSet) this.#taken.set(now + this.#takenMs, now);
    this.#isWriting = true;
    this.wroteBytes = 0;
    socket.cork();
    for (const piece of pieces) {
      this.wroteBytes += piece.length;
      if (piece !== pieces.at(-1)) socket.write(piece);
      else socket.write(piece, (error) => (error === undefined || error === null ? this.#wrote() : undefined));
    }
    socket.uncork();
  }

  /** False once it is closed, or its opener knows that it is lost. */
  get isOpen(): boolean {
    return this.#open;
  }

  /** Keeps the connection from its opener for so long, and drops what comes. @throws OpenError if it is lost meanwhile. */
  async lasts(ms: number): Promise<void> {
    clearImmediate(this.#start);
    this.#socket.resume();
    await sleep(ms);
    if (this.#lostWhy !== undefined) {
      await this.close();
      throw new OpenError(this.#lostWhy);
    }
    this.#socket.pause();
    this.#start = setImmediate(() => this.#begin());
  }

  /** Another connection takes the place of this one. */
  replaced(): void {
    this.#lose("a newer connection took its place");
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Ends after what was written, unless the far end doesn't take it; what is lost or half written is cut. */
  async #close(): Promise<void> {
    const isWhole = this.#open && !this.#isWriting;
    this.#open = false;
    this.#taken.dispose();
    clearImmediate(this.#start);
    const socket = this.#socket;
    if (isWhole && !socket.destroyed) {
      const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      socket.end();
      // What comes now is read, and dropped: bytes left unread would make the system cut the connection, and what was written with it.
      socket.resume();
      await within(closeMs, closed);
    }
    socket.destroy();
  }

  #begin(): void {
    this.#hasBegun = true;
    if (this.#lostWhy === undefined) this.#socket.resume();
    else this.#lose(this.#lostWhy);
  }

  /** Looks whether what was written has arrived, where the system says so; a terminal may take minutes to answer. */
  async #lookTaken(): Promise<void> {
    const { localPort, remotePort } = this.#socket;
    if (this.#open && (await untakenBytes(localPort, remotePort)) > 0) {
      this.#lose("the far end takes no bytes any more");
    }
  }

  #heard(bytes: Buffer): void {
    this.#taken.clear();
    const isHead = this.#head.length < headBytes;
    if (isHead) this.#head = Buffer.concat([this.#head, bytes]).subarray(0, headBytes);
    if (isHead && !this.isAccepted && isTelnet(this.#head)) this.#lose(telnet(this.device));
    if (this.#hasBegun) give(bytes, () => (this.#open ? this.#handler : undefined));
  }

  /** What a far end that is no terminal says before it closes: a web server's refusal, or ser2net's that the port is in use. */
  get lastWords(): string {
    const text = this.#head.toString("latin1").trim();
    if (/^HTTP\/1\.[01] \d/.test(text)) return `: ${wordsOf(webServer(this.device))}`;
    return this.#head.length < headBytes && /^[\x20-\x7e]+$/.test(text) ? `, and said ${JSON.stringify(text)}` : "";
  }

  #wrote(): void {
    this.#isWriting = false;
    if (this.#open) this.#handler.onWritten();
  }

  /** A loss before the opener knows of the connection is told once it does. */
  #lose(reason: string | Cause): void {
    if (!this.#open) return;
    this.#lostWhy ??= this.#farEnd?.lost(reason, this) ?? (typeof reason === "string" ? reason : wordsOf(reason));
    if (!this.#hasBegun) return;
    this.#open = false;
    this.#taken.dispose();
    this.#handler.onClosed(this.#lostWhy);
  }
}

/** Bytes of a connection that the far end's system has not confirmed; 0 where this system doesn't say. */
async function untakenBytes(localPort: number | undefined, remotePort: number | undefined): Promise<number> {
  const hex = (port = 0) => port.toString(16).toUpperCase().padStart(4, "0");
  // sl local_address rem_address st tx_queue:rx_queue
  const row = new RegExp(`:${hex(localPort)} [0-9A-F]+:${hex(remotePort)} \\w\\w ([0-9A-F]+):`);
  for (const table of ["tcp", "tcp6"]) {
    const found = row.exec(await readFile(`/proc/net/${table}`, "utf8").catch(() => ""));
    if (found?.[1] !== undefined) return Number.parseInt(found[1], 16);
  }
  return 0;
}

/** Why a connection was lost, in words. */
function whyLost(error: Error): string {
  const code = codeOf(error);
  if (code === "ECONNRESET" || code === "EPIPE") return "the connection was cut";
  if (code === "ETIMEDOUT") return "the far end answers no more";
  return `the connection failed: ${connectionFailure(error) ?? messageOf(error)}`;
}
