import { constants, fstatSync, openSync, writeSync } from "node:fs";
import { createConnection, Socket } from "node:net";
import { isatty } from "node:tty";

/** The outputs of log lines: a descriptor, or a connection to journald. Neither ever blocks. */

export interface LogOutput {
  /**
   * @returns the count of bytes that it took.
   * @throws Error with the system's code if it takes none now, or never will again.
   */
  write(bytes: Buffer): number;
}

/** The descriptor in a form that never blocks, if its reader may stop: a pipe, a socket or a terminal. */
export function descriptorOutput(fd: number): LogOutput {
  try {
    const stat = fstatSync(fd);
    // Opening a socket on it is how Node can be made to set it non-blocking; at its exit it restores what it found on 1 and 2.
    if (stat.isFIFO() || stat.isSocket()) return new DescriptorOutput(fd, new Socket({ fd, readable: false }).unref());
    // A terminal is shared with the shell that started this process, so it gets an opening of its own.
    const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
    if (isatty(fd)) return new DescriptorOutput(openSync(`/proc/self/fd/${fd}`, flags));
  } catch {
    // A terminal that can't be opened anew is written as it is.
  }
  return new DescriptorOutput(fd);
}

class DescriptorOutput implements LogOutput {
  readonly #fd: number;
  /** Kept, since a socket that is collected closes its descriptor. */
  readonly socket: Socket | undefined;

  constructor(fd: number, socket?: Socket) {
    this.#fd = fd;
    this.socket = socket;
  }

  write(bytes: Buffer): number {
    return writeSync(this.#fd, bytes);
  }
}

export interface JournaldOptions {
  /** journald's socket for streams. */
  readonly path: string;
  /** The stream's name in journald: SYSLOG_IDENTIFIER. */
  readonly identifier: string;
  /** The first line of each connection. */
  readonly firstLine: () => string;
  /** Called with bytes that were taken and did not reach journald whole. */
  readonly returned: (bytes: Buffer) => void;
}

/**
 * A connection to journald of posline's own, as systemd makes one for the standard output of a service. That one is dead once journald was
 * stopped, and nobody makes another. This one is made again as often as it is lost.
 */
export class JournaldOutput implements LogOutput {
  readonly #options: JournaldOptions;
  #socket: Socket;
  /** Why the last connection could not be made; undefined if it was. */
  #refusal: string | undefined;

  constructor(options: JournaldOptions) {
    this.#options = options;
    this.#socket = this.#connect();
  }

  write(bytes: Buffer): number {
    const socket = this.#socket.writable ? this.#socket : this.#connect();
    // The socket isn't connected yet, or journald takes none.
    if (socket.writableLength > 0) throw Object.assign(new Error("journald takes none"), { code: this.#refusal ?? "EAGAIN" });
    socket.write(bytes, (error) => {
      if (error) this.#options.returned(bytes);
    });
    return bytes.length;
  }

  #connect(): Socket {
    const { path, identifier, firstLine } = this.#options;
    // journald shuts its own direction down at once, so only a write shows that it is gone.
    const socket = createConnection({ path, allowHalfOpen: true }).unref();
    this.#socket = socket;
    let isMade = false;
    socket.on("connect", () => {
      isMade = true;
      this.#refusal = undefined;
    });
    // A connection that stood and ended leaves no refusal: the next is made at once.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (!isMade) this.#refusal = error.code;
    });
    // systemd's stream protocol: identifier, unit (journald finds it by itself), priority of lines without a prefix, whether lines have
    // one, and three places where else they may go.
    socket.write(`${identifier}\n\n6\n1\n0\n0\n0\n${firstLine()}`);
    return socket;
  }
}

/** The byte that ends a line. */
export const lineEnd = 0x0a;

/** How many lines end in these bytes. */
export function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(lineEnd); at !== -1; at = bytes.indexOf(lineEnd, at + 1)) lines++;
  return lines;
}
