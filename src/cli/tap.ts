import { ByteLengthParser } from "@serialport/parser-byte-length";
import { ConfigError, type LineConfig } from "../config/config.ts";
import { type Flags, loadConfig } from "../config/load.ts";
import { printable, printableLines } from "../core/shell-text.ts";
import type { Connection } from "../device/transport.ts";
import { defineCommand } from "./command.ts";
import { sourceFlags } from "./config.ts";
import { exitCodes } from "./exit.ts";

/**
 * `posline tap --raw`: the bytes that a device sends, as a hex dump. It opens the device for itself, so it refuses one that a
 * bridge holds.
 */

const rowBytes = 16;

/** Milliseconds of silence after which a row that isn't full is shown: the end of a frame must not wait for the next one. */
const rowWaitMs = 200;

export interface TapArguments extends Flags {
  readonly raw?: boolean | undefined;
}

/** One row of a hex dump, as `hexdump -C` writes it. */
export function hexRow(offset: number, bytes: Uint8Array): string {
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0"));
  const text = Array.from(bytes, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
  const columns = `${hex.slice(0, 8).join(" ")}  ${hex.slice(8).join(" ")}`.padEnd(3 * rowBytes + 1);
  return `${offset.toString(16).padStart(8, "0")}  ${columns}|${text}|\n`;
}

/** Turns bytes as they come into rows. A row ends when it is full or the line fell silent. */
export class HexDump {
  readonly #out: (row: string) => void;
  #rows = new ByteLengthParser({ length: rowBytes });
  #pending = 0;
  #offset = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(out: (row: string) => void) {
    this.#out = out;
    this.#listen();
  }

  push(bytes: Buffer): void {
    clearTimeout(this.#timer);
    this.#pending += bytes.length;
    this.#rows.write(bytes);
    this.#timer = setTimeout(() => this.end(), rowWaitMs);
  }

  /** Shows what is left of the last row. */
  end(): void {
    clearTimeout(this.#timer);
    if (this.#pending === 0) return;
    this.#rows.end();
    this.#rows = new ByteLengthParser({ length: rowBytes });
    this.#listen();
  }

  #listen(): void {
    this.#rows.on("data", (row: Buffer) => {
      this.#out(hexRow(this.#offset, row));
      this.#offset += row.length;
      this.#pending -= row.length;
    });
  }
}

/** @returns the exit code: 0 after Ctrl-C, 69 when the device can't be opened or is lost, 78 for the configuration. */
export async function runTap(args: TapArguments): Promise<number> {
  let line: LineConfig | undefined;
  try {
    const { config } = await loadConfig({ env: process.env, flags: args });
    [line] = Object.values(config.lines);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${printableLines(error.message)}\n`);
    return error.exitCode;
  }
  if (line === undefined || args.raw !== true) {
    process.stderr.write("Cannot tap: write posline tap --raw --line DEVICE, for example --line /dev/ttyUSB0\n");
    return exitCodes.usage;
  }
  return listen(line);
}

async function listen(line: LineConfig): Promise<number> {
  const { serialPort } = await import("../device/serial-port.ts");
  const dump = new HexDump((row) => process.stdout.write(row));
  const space = Buffer.alloc(4_096);
  let opening: Connection | undefined;
  const ended = new Promise<number>((resolve) => {
    process.on("SIGINT", () => resolve(exitCodes.ok));
    process.on("SIGTERM", () => resolve(exitCodes.ok));
    const handler = {
      space: () => space,
      // The row keeps its bytes longer than this memory does.
      onBytes: (n: number) => dump.push(Buffer.from(space.subarray(0, n))),
      onWritten: () => {},
      onClosed: (reason: string) => {
        process.stderr.write(`Cannot go on: ${printable(reason)}\n`);
        resolve(exitCodes.unavailable);
      },
    };
    serialPort(line)(handler).then(
      (opened) => {
        opening = opened;
      },
      (error: unknown) => {
        process.stderr.write(`Cannot tap: ${printable(error instanceof Error ? error.message : String(error))}\n`);
        resolve(exitCodes.unavailable);
      },
    );
  });
  const code = await ended;
  dump.end();
  await opening?.close();
  return code;
}

export const tapCommand = defineCommand({
  name: "tap",
  describe: "Show the bytes that a serial device sends",
  flags: {
    ...sourceFlags,
    raw: { type: "boolean", describe: "Required: show them as a hex dump, without looking for frames" },
  },
  run: (args: TapArguments) => runTap(args),
});
