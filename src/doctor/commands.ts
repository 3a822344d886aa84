import { spawn } from "node:child_process";

/** What came of a command: its output, or why there is none. */
export type CommandResult =
  | { readonly ran: true; readonly code: number; readonly out: string }
  | { readonly ran: false; readonly why: string };

/** Runs a program of the box, without a shell, and only to be told something. */
export type Command = (program: string, args: readonly string[]) => Promise<CommandResult>;

/** Milliseconds a command may take: systemctl waits for a bus that may not answer. */
const commandMs = 3_000;

/** Bytes of output that are kept: what is asked for is a few lines. */
const outputBytesMax = 64 * 1024;

export const runCommand = (program: string, args: readonly string[], timeoutMs = commandMs): Promise<CommandResult> =>
  new Promise((resolve) => {
    let out = "";
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "ignore"],
      timeout: timeoutMs,
      killSignal: "SIGKILL",
      env: { ...process.env, LC_ALL: "C", SYSTEMD_COLORS: "0", SYSTEMD_PAGER: "" },
    });
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (out.length < outputBytesMax) out += text;
    });
    child.on("error", (error: NodeJS.ErrnoException) =>
      resolve({ ran: false, why: error.code === "ENOENT" ? `there is no ${program} here` : `${program}: ${error.message}` }),
    );
    child.on("close", (code, signal) =>
      resolve(
        code === null
          ? { ran: false, why: `${program} ended by ${String(signal)}, or took longer than ${timeoutMs} ms` }
          : { ran: true, code, out },
      ),
    );
  });
