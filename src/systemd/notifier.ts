import { spawn } from "node:child_process";
import { writeSync } from "node:fs";

/**
 * Notifies systemd of the service's status (sd_notify(3)). Node can't write to a datagram socket, and two ways round need no native addon,
 * which has killed installations of such services: systemd 253 and later hands over a connected descriptor; before that systemd's own
 * `systemd-notify` does it, some 10 ms of another process each time.
 */

/** Milliseconds that `systemd-notify` may take: it does one system call. */
const timeoutMs = 5_000;

/** Sends notifications, as lines of `NAME=value`. */
export interface Notifier {
  /** True when systemd listens. */
  readonly listens: boolean;
  /** Sends one notification; settles when it is sent or has failed. A failure isn't an error. */
  tell(lines: readonly string[]): Promise<void>;
}

/**
 * @param fd The descriptor that systemd passed, if it did.
 * @param failed Called when a notification couldn't be sent, with the reason.
 */
export function notifier(env: NodeJS.ProcessEnv, fd: number | undefined, failed: (reason: string) => void): Notifier {
  if (fd !== undefined) return { listens: true, tell: async (lines) => write(fd, lines, failed) };
  const { NOTIFY_SOCKET } = env;
  if (NOTIFY_SOCKET === undefined || NOTIFY_SOCKET === "") return { listens: false, tell: async () => {} };
  // Notifications go one after the other: READY must not come after the STATUS that follows it.
  let last = Promise.resolve();
  /** The text of the notification that waits. An equal one says no more and is dropped, or a slow box would fall behind with its pings. */
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
    // systemd-notify would be taken for the speaker by its own process id; NotifyAccess=all makes systemd believe it.
    const env = { ...process.env, NOTIFY_SOCKET: socket };
    const bounds = { timeout: timeoutMs, killSignal: "SIGKILL" } as const;
    const child = spawn("systemd-notify", [...lines], { env, stdio: "ignore", ...bounds });
    child.on("error", (error) => end(`systemd-notify could not be run: ${error.message}`));
    child.on("close", (code) =>
      end(code === 0 ? undefined : `systemd-notify failed (${code === null ? "timeout" : `exit code ${code}`})`),
    );
  });
}
