import { closeSync, createWriteStream, openSync } from "node:fs";
import type { Readable } from "node:stream";
import { readCaptured } from "../capture/captured-frame.ts";
import { frameText } from "../capture/frame-text.ts";
import { PcapngWriter, upperPdu } from "../capture/pcapng.ts";
import { endOfWriting, endSoon, listenRaw, onSignal } from "../capture/tap-raw.ts";
import { maskedFrames, UnavailableError, unmaskedFrames, unmaskSocket } from "../capture/tap-source.ts";
import { upperPduOf } from "../capture/upper-pdu.ts";
import { loadConfig } from "../config/load.ts";
import { type ArgumentsOf, defineCommand, type FlagTable } from "../core/command.ts";
import { exitCodes, UsageError } from "../core/exit.ts";
import { isTexts } from "../core/json-object.ts";
import { inQuotes, printable } from "../core/shell-text.ts";
import { version } from "../core/version.ts";
import { parseExactObject } from "../settle/exact-json.ts";

/**
 * `posline tap`: what goes over the lines of a running posline, as text or as a capture for Wireshark. With `--raw` it listens at a
 * device itself.
 */

export type TapArguments = ArgumentsOf<typeof flags>;

/** Characters that one frame may take: the largest reply in Base64, with room. */
const lineCharsMax = 32 * 1024 * 1024;

/**
 * Runs the command until it is signalled to stop, or nobody reads any more.
 * @returns the exit code: 0; 64 for flags that don't go together; 69 when posline or the device can't be reached, or went away; 78
 * for the configuration.
 */
export async function runTap(args: TapArguments): Promise<number> {
  checkFlags(args);
  return args.raw === true ? tapDevice(args) : follow(args);
}

function checkFlags({ raw, hex, write, url, tokenFile, unmask, socket, line }: TapArguments): void {
  const refuse = (state: string) => {
    throw new UsageError(`Cannot tap: ${state}`);
  };
  if (raw === true && (url ?? tokenFile ?? unmask ?? socket) !== undefined) {
    refuse("--raw listens at a device itself: leave --url, --token-file, --unmask and --socket out");
  }
  if (raw !== true && line !== undefined && /^(?:\/|usb:|tcp:)/.test(line)) {
    refuse(`--line ${JSON.stringify(line)} is a device: add --raw to listen at it, or name a line of the configuration`);
  }
  if (socket !== undefined && unmask !== true) refuse("--socket is where unmasked frames come from: add --unmask");
  if (unmask === true && (url ?? tokenFile) !== undefined) {
    refuse("--unmask reads a socket on this box: leave --url and --token-file out");
  }
  if (hex === true && write !== undefined) refuse("--hex is for text, and --write for a file: leave one of them out");
}

async function tapDevice({ write, ...flags }: TapArguments): Promise<number> {
  const { config } = await loadConfig({ env: process.env, flags });
  const [line] = Object.values(config.lines);
  if (line === undefined) throw new UsageError("Cannot tap: --raw needs a device: add --line, for example --line /dev/ttyUSB0");
  const fd = write === undefined ? undefined : openCapture(write);
  try {
    return await listenRaw(line, fd);
  } finally {
    if (fd !== undefined && fd > 2) closeSync(fd);
  }
}

/** A capture holds what a till and its terminal say to each other: nobody else on the box needs to read it. */
function openCapture(write: string): number {
  if (write === "-") return 1;
  try {
    return openSync(write, "w", 0o600);
  } catch (error) {
    throw new UnavailableError(`Cannot write ${JSON.stringify(write)}: ${String(error)}`);
  }
}

async function follow(args: TapArguments): Promise<number> {
  const { line: wanted, hex = false, write } = args;
  const { from, stream } = args.unmask === true ? await unmaskedFrames(args.socket) : await maskedFrames(args, wanted);
  const fd = write === undefined ? undefined : openCapture(write);
  const output = fd === undefined || fd === 1 ? process.stdout : createWriteStream("", { fd });
  const writer = new PcapngWriter(upperPdu, `posline ${version}`);
  if (fd !== undefined) output.write(writer.start());
  process.stderr.write(`Tapping ${from}${args.unmask === true ? ": frames are NOT masked" : ""}\n`);
  let isOver = false;
  const ended = new Promise<number>((resolve) => {
    onSignal(() => endSoon(resolve, exitCodes.ok));
    output.on("error", (error) => resolve(endOfWriting(error)));
    const gone = (why: string) => {
      if (isOver) return;
      process.stderr.write(`Cannot go on: posline ended the tap${why}\n`);
      resolve(exitCodes.unavailable);
    };
    stream.on("error", (error) => gone(`: ${printable(String(error))}`));
    stream.on("close", () => gone(": it stopped, or this reader was too slow"));
  });
  onLines(stream, (text) => {
    const frame = readCaptured(text);
    if (frame === undefined && wanted !== undefined) warnOfNoLine(text, wanted);
    if (frame === undefined || (wanted !== undefined && frame.line !== wanted)) return;
    const piece =
      fd === undefined
        ? frameText(frame, hex)
        : writer.packet({ line: frame.line, timeMs: frame.timeMs, direction: frame.direction, bytes: upperPduOf(frame) });
    if (!output.write(piece)) stream.pause();
  });
  output.on("drain", () => stream.resume());
  const code = await ended;
  isOver = true;
  stream.destroy();
  if (fd !== undefined && fd > 2) await new Promise<void>((resolve) => output.end(() => resolve()));
  return code;
}

/** A line that isn't there looks like one on which nothing goes. */
function warnOfNoLine(greeting: string, wanted: string): void {
  const lines = parseExactObject(greeting)?.["lines"];
  if (!isTexts(lines) || lines.includes(wanted)) return;
  const known = lines.map(inQuotes).join(", ");
  process.stderr.write(`There is no line ${inQuotes(wanted)}, so nothing is shown: use ${known}\n`);
}

function onLines(stream: Readable, take: (line: string) => void): void {
  let pending = "";
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    const lines = (pending + text).split("\n");
    pending = lines.pop() ?? "";
    if (pending.length > lineCharsMax) stream.destroy(new Error("a line is too long"));
    for (const line of lines) take(line);
  });
}

const flags = {
  config: {
    type: "string",
    example: "posline.json",
    describe: "Read the admin port from this configuration file (default /etc/posline/posline.json)",
  },
  line: { type: "string", example: "till", describe: "Only this line; with --raw the device to listen at" },
  hex: { type: "boolean", describe: "Show the bytes as rows of hex, not as text" },
  write: { type: "string", example: "till.pcapng", describe: "Write a capture for Wireshark to this file, or - for a pipe" },
  url: { type: "string", example: "http://127.0.0.1:8880", describe: "Address of the admin port (default: as configured)" },
  "token-file": { type: "string", example: "token", describe: "File with the admin port's token" },
  unmask: {
    type: "boolean",
    describe: "Show card data and secrets as they are, over posline-tap.socket alone; it is logged",
  },
  socket: { type: "string", example: unmaskSocket, describe: `Socket for --unmask (default ${unmaskSocket})` },
  raw: { type: "boolean", describe: "Listen at the device of --line itself, without looking for frames" },
  baud: { type: "whole", example: "9600", describe: "Speed of that device in baud (default 115200)" },
} as const satisfies FlagTable;

export const tapCommand = defineCommand({
  name: "tap",
  describe: "Show the frames on the lines of a running posline, or the bytes that a device sends",
  flags,
  run: runTap,
});
