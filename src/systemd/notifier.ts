import { spawn } from "node:child_process";
import { writeSync } from "node:fs";
import type { Environment } from "./descriptors.ts";

/**
 * Notifies systemd of the service's status (sd_notify(3)). Node can't write to a datagram socket; two ways round it need no native addon,
 * of which such services' installations have died: systemd 253 and later hands over a descriptor that is connected already, and
 * before that its own `systemd-notify` does it, some 10 ms of another process each time.
 */

/** Milliseconds that `systemd-notify` may take: it does one system call. */
const timeoutMs = 5_000;

/** Sends notifications, as lines of `NAME=value`. */
export interface Notifier {
  /** True when systemd listens. */
  readonly listens: boolean;
  /** Sends one; settles when it is sent, or has failed, which isn't an error. */
  tell(lines: readonly string[]): Promise<void>;
}

/**
 * @param fd The descriptor that systemd passed, if it did.
 * @param failed Called when a notification couldn't be sent, with the reason.
 */
export function notifier(env: Environment, fd: number | undefined, failed: (reason: string) => void): Notifier {
  if (fd !== undefined) return { listens: true, tell: async (lines) => write(fd, lines, failed) };
  const { NOTIFY_SOCKET } = env;
  if (NOTIFY_SOCKET === undefined || NOTIFY_SOCKET === "") return { listens: false, tell: async () => {} };
  // One after the other: READY must not come after the STATUS that follows it.
  let last = Promise.resolve();
  /** What the last one says while it waits: the same again would say no more, and a slow box would fall behind with its pings. */
  let waiting: string | undefined;
  return {
    listens: true,
    tell: (lines) => {
      const text = lines.join("\n");
      if (text === waiting) return last;
      waiting = text;
      last = last.then(() => {
        if (waiting === text) waiting = undefined;
        return run(lines, NOTIFY_SOCKET, failed);
      });
      return last;
    },
  };
}

function write(fd: number, lines: readonly string[], failed: (reason: string) => void): void {
  try {
    writeSync(fd, lines.join("\n"));
  } catch (error) {
    failed(String(error));
  }
}

function run(lines: readonly string[], socket: string, failed: (reason: string) => void): Promise<void> {
  return new Promise((resolve) => {
    const end = (reason?: string) => {
      if (reason !== undefined) failed(reason);
      resolve();
    };
    // Its own process would be taken for the one that speaks: systemd believes it by NotifyAccess=all.
    const child = spawn("systemd-notify", [...lines], { env: { ...process.env, NOTIFY_SOCKET: socket }, stdio: "ignore" });
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    timer.unref();
    child.on("error", (error) => {
      clearTimeout(timer);
      end(`systemd-notify could not be run: ${error.message}`);
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      end(code === 0 ? undefined : `systemd-notify failed (${code === null ? "timeout" : `exit code ${code}`})`);
    });
  });
}
