import { writeSync } from "node:fs";
import { ByteLengthParser } from "@serialport/parser-byte-length";
import type { LineConfig } from "../config/config.ts";
import { isTcpPath } from "../config/device-name.ts";
import { codeOf, messageOf } from "../core/error-code.ts";
import { exitCodes } from "../core/exit.ts";
import { localTime } from "../core/local-time.ts";
import { printable } from "../core/shell-text.ts";
import { version } from "../core/version.ts";
import type { Connection } from "../device/transport.ts";
import { hexRow, rowBytes } from "./frame-text.ts";
import { PcapngWriter, rtacSerial } from "./pcapng.ts";

/**
 * `posline tap --raw`: the bytes that a device sends, as a hex dump or as a capture. It opens the device for itself, so it refuses one
 * that a bridge holds.
 */

/** Milliseconds of silence after which a row that isn't full is shown: the end of a frame must not wait for the next one. */
const rowWaitMs = 200;

/** Turns bytes as they come into rows, each with the time of its end. A row ends when it is full or the line fell silent. */
export class HexDump {
  readonly #out: (row: string) => void;
  #rows = new ByteLengthParser({ length: rowBytes });
  #pending = 0;
  #offset = 0;
  #cameMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(out: (row: string) => void) {
    this.#out = out;
    this.#listen();
  }

  push(bytes: Buffer): void {
    clearTimeout(this.#timer);
    this.#cameMs = Date.now();
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
      this.#out(`${hexRow(this.#offset, row).trimEnd()}  ${localTime(this.#cameMs)}\n`);
      this.#offset += row.length;
      this.#pending -= row.length;
    });
  }
}

/** Bytes of the header that a piece of a serial line has in a capture (LINKTYPE_RTAC_SERIAL). */
const rtacHeaderBytes = 12;

/** Its event: the first byte of a piece was received. */
const dataReceived = 2;

/** A piece of a serial line as LINKTYPE_RTAC_SERIAL has it: time since the start, event, control lines (not known), bytes. */
export function rtacPiece(sinceStartMs: number, bytes: Buffer): Buffer {
  const head = Buffer.alloc(rtacHeaderBytes);
  head.writeUInt32BE(Math.floor(sinceStartMs / 1_000), 0);
  head.writeUInt32BE(Math.round((sinceStartMs % 1_000) * 1_000), 4);
  head[8] = dataReceived;
  return Buffer.concat([head, bytes]);
}

/** Takes what a device sends. */
interface RawOutput {
  push(bytes: Buffer): void;
  end(): void;
}

/**
 * Listens until it is signalled to stop.
 * @param fd Where a capture is written to, in place of rows on standard output.
 * @returns the exit code: 0 after Ctrl-C or when nobody reads any more, 69 when the device can't be opened or is lost.
 */
export async function listenRaw(line: LineConfig, fd: number | undefined): Promise<number> {
  const { openerOf } = await import("../device/opener.ts");
  const space = Buffer.alloc(4_096);
  let opening: Promise<Connection> | undefined;
  let isOver = false;
  let output: RawOutput | undefined;
  const ended = new Promise<number>((resolve) => {
    onSignal(() => endSoon(resolve, exitCodes.ok));
    process.stdout.on("error", () => resolve(exitCodes.ok));
    const stop = (code: number) => endSoon(resolve, code);
    output = fd === undefined ? new HexDump((row) => process.stdout.write(row)) : captureTo(fd, line.path, stop);
    const handler = {
      space: () => space,
      // The row keeps its bytes longer than this memory does.
      onBytes: (n: number) => output?.push(Buffer.from(space.subarray(0, n))),
      onWritten: () => {},
      onClosed: (reason: string) => {
        process.stderr.write(`Cannot go on: ${printable(reason)}\n`);
        resolve(exitCodes.unavailable);
      },
    };
    opening = openerOf(line)(handler);
    opening.then(
      () => {
        if (!isOver) process.stderr.write(`Listening on ${printable(line.path)}${settingsOf(line)}\n`);
      },
      (error: unknown) => {
        process.stderr.write(`Cannot tap: ${printable(messageOf(error))}\n`);
        resolve(exitCodes.unavailable);
      },
    );
  });
  const code = await ended;
  isOver = true;
  output?.end();
  // The device may be open only now: left open, it would keep the process.
  const opened = await opening?.catch(() => undefined);
  await opened?.close();
  return code;
}

/** Milliseconds for which a reader may still take what waits for it: one that has stopped would keep the process for ever. */
const lastTakenMs = 1_000;

/** Ends a tap, at the latest when what its reader has not taken by then is given up. */
export function endSoon(end: (code: number) => void, code: number): void {
  end(code);
  setTimeout(() => process.exit(code), lastTakenMs).unref();
}

/** Calls what ends a tap at Ctrl-C, and when it is told to. */
export function onSignal(end: () => void): void {
  process.on("SIGINT", end);
  process.on("SIGTERM", end);
}

/** As technicians write them: `115200 8N1`; nothing of a line over TCP, which has none here. */
function settingsOf({ path, baudRate, dataBits, parity, stopBits }: LineConfig): string {
  if (isTcpPath(path)) return "";
  return ` at ${baudRate} ${dataBits}${parity.charAt(0).toUpperCase()}${stopBits}`;
}

/** Bytes of a capture that may wait for their reader: an hour of a line at 115200 baud. */
const waitingBytesMax = 64 * 1024 * 1024;

function captureTo(fd: number, device: string, stop: (code: number) => void): RawOutput {
  const writer = new PcapngWriter(rtacSerial, `posline ${version}`);
  const startMs = Date.now();
  const put = (block: Buffer) => {
    try {
      // A file takes all at once. A pipe may be full: what listens to it, such as Wireshark, takes seconds to start.
      if (fd !== 1) writeSync(fd, block);
      else if (process.stdout.writableLength <= waitingBytesMax) process.stdout.write(block);
      else throw new Error(`its reader leaves ${waitingBytesMax} bytes waiting`);
    } catch (error) {
      stop(endOfWriting(error));
    }
  };
  put(writer.start());
  return {
    push: (bytes) => {
      const timeMs = Date.now();
      put(writer.packet({ line: device, timeMs, direction: "in", bytes: rtacPiece(timeMs - startMs, bytes) }));
    },
    end: () => {},
  };
}

/** The exit code when a capture can't be written: a reader that was closed is the usual end of a live capture. */
export function endOfWriting(error: unknown): number {
  if (codeOf(error) === "EPIPE") return exitCodes.ok;
  process.stderr.write(`Cannot write the capture: ${printable(String(error))}\n`);
  return exitCodes.unavailable;
}
