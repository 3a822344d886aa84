import { Socket } from "node:net";

/**
 * The services of systemd in plain JavaScript: open sockets, the notification of status, and the watchdog. All are optional: started by
 * hand, posline has none of them, and that isn't an error.
 *
 * This room knows systemd's protocol (sd_listen_fds(3), sd_notify(3), sd_watchdog_enabled(3)) and nothing of lines and services.
 */

/** The first descriptor that is passed (SD_LISTEN_FDS_START). */
const first = 3;

/** More sockets than any configuration could use: a higher number isn't systemd's. */
const descriptorsMax = 64;

/** Descriptors by the names that their units give them. */
export interface Descriptors {
  /** A connection to systemd's notification socket (`OpenFile=/run/systemd/notify:notify`), from systemd 253 on. */
  readonly notify: number | undefined;
  /** The Unix socket of unmasked taps (posline-tap.socket). */
  readonly tap: number | undefined;
  /** Other listening sockets, in no certain order. */
  readonly sockets: readonly number[];
}

/**
 * The descriptors that were passed to this very process; none when the variables were meant for a parent of it.
 * @throws Error when the variables make no sense.
 */
export function passedDescriptors(env: NodeJS.ProcessEnv, pid = process.pid): Descriptors {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES = "" } = env;
  if (LISTEN_FDS === undefined || LISTEN_PID !== String(pid)) return { notify: undefined, tap: undefined, sockets: [] };
  const count = Number(LISTEN_FDS);
  if (!Number.isInteger(count) || count < 0 || count > descriptorsMax) {
    throw new Error(`Cannot take over systemd's sockets: LISTEN_FDS is not a number from 0 to ${descriptorsMax}`);
  }
  const names = LISTEN_FDNAMES.split(":");
  const all = Array.from({ length: count }, (_, n) => ({ fd: first + n, name: names[n] }));
  return {
    notify: all.find(({ name }) => name === "notify")?.fd,
    tap: all.find(({ name }) => name === "tap")?.fd,
    sockets: all.filter(({ name }) => name !== "notify" && name !== "tap").map(({ fd }) => fd),
  };
}

/** A socket that is listened on, and where. */
export interface ListeningSocket {
  /** Has the socket's handle, for an HTTP server to take over (`listen(holder)`). It accepts nothing by itself. */
  readonly holder: Socket;
  readonly host: string;
  readonly port: number;
}

/**
 * Looks where a socket listens. systemd promises no order of them, and one unit gives all of its sockets the same name.
 * @throws Error when the descriptor is not a TCP socket.
 */
export function socketAt(fd: number): ListeningSocket {
  const holder = new Socket({ fd, readable: false, writable: false });
  const address = holder.address();
  if (!("port" in address)) {
    throw new Error(`Cannot take over descriptor ${fd} of systemd: it is not a TCP socket: check posline.socket`);
  }
  return { holder, host: address.address, port: address.port };
}
