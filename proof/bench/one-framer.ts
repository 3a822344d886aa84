import { crc16 as usualCrc16, crc32 as usualCrc32 } from "crc";
import { crc16 } from "../../src/wire/crc16.ts";
import { crc32 } from "../../src/wire/crc32.ts";
import type { Decoded, Decoder, Framing } from "../../src/wire/decoded.ts";
import { decoderOf, frameOf, payloadBytesMax } from "./frames.ts";
import { median } from "./report.ts";
import { type UsualDecoder, usualLengthDecoder, usualStxDecoder } from "./usual-decoder.ts";

/**
 * One comparison in a process of its own, in turns: ours, theirs, ours, and so on. What the compiler learnt from another piece
 * size or framing would otherwise be measured with it, up to twice the time, and a process in production has one line's habits.
 *
 * Usage: one-framer.ts ROUNDS (length|stx) PIECE_BYTES, or one-framer.ts ROUNDS (crc16|crc32).
 * Prints {"ours", "theirs"}: median µs a frame.
 */

const payloadBytes = 350;
const frameCount = 400;
/** The first rounds are the compiler's. */
const warmUpMs = 200;

/** Text that differs from frame to frame. */
function payloadOf(i: number): Buffer {
  const head = `{"status":"success","data":{"txn_id":"${i}","rrn":"${(i * 7919) % 1_000_000}","note":"`;
  return Buffer.from(`${head.padEnd(payloadBytes - 3, "0123456789abcdefghij")}"}}`);
}

function cut(stream: Buffer, bytes: number): Buffer[] {
  return Array.from({ length: Math.ceil(stream.length / bytes) }, (_, i) => stream.subarray(i * bytes, (i + 1) * bytes));
}

/** Looks at the length first, as one does: to iterate over no element costs as much as to take a byte in. */
function framesOf(found: readonly Decoded[]): number {
  if (found.length === 0) return 0;
  let frames = 0;
  for (const decoded of found) if (decoded.kind === "frame") frames++;
  return frames;
}

/** As the line does it, with the kernel's part played by a copy. */
function spaceAll(decoder: Decoder, chunks: readonly Buffer[]): number {
  let frames = 0;
  for (const chunk of chunks) {
    for (let from = 0; from < chunk.length; ) {
      const space = decoder.space();
      const n = Math.min(space.length, chunk.length - from);
      if (n <= 16) for (let i = 0; i < n; i++) space[i] = chunk[from + i] ?? 0;
      else chunk.copy(space, 0, from, from + n);
      from += n;
      frames += framesOf(decoder.advance(n));
    }
  }
  return frames;
}

function usualAll(decoder: UsualDecoder, chunks: readonly Buffer[]): number {
  let frames = 0;
  for (const chunk of chunks) frames += decoder.push(chunk).length;
  return frames;
}

/** The median time of each in µs for one of the `units` of work in a run. */
function inTurns(ours: () => void, theirs: () => void, units: number, rounds: number): { ours: number; theirs: number } {
  const times = { ours: [] as number[], theirs: [] as number[] };
  const timed = (work: () => void) => {
    const begun = performance.now();
    work();
    return ((performance.now() - begun) * 1000) / units;
  };
  const warmUntil = performance.now() + warmUpMs;
  while (times.ours.length < rounds) {
    const pair = [timed(ours), timed(theirs)] as const;
    if (performance.now() < warmUntil) continue;
    times.ours.push(pair[0]);
    times.theirs.push(pair[1]);
  }
  return { ours: median(times.ours), theirs: median(times.theirs) };
}

function decoders(framing: Framing, pieceBytes: number, rounds: number) {
  const stream = Buffer.concat(Array.from({ length: frameCount }, (_, i) => frameOf(framing, payloadOf(i))));
  const chunks = cut(stream, pieceBytes);
  const ours = decoderOf(framing);
  const theirs = framing === "length" ? usualLengthDecoder(payloadBytesMax) : usualStxDecoder(payloadBytesMax);
  const all = (frames: number) => {
    if (frames !== frameCount) throw new Error(`Cannot compare ${framing} decoders: ${frames} of ${frameCount} frames came`);
  };
  return inTurns(
    () => all(spaceAll(ours, chunks)),
    () => all(usualAll(theirs, chunks)),
    frameCount,
    rounds,
  );
}

function checksums(ours: (bytes: Buffer) => number, theirs: (bytes: Buffer) => number, rounds: number) {
  const payload = payloadOf(1);
  if (ours(payload) !== theirs(payload)) throw new Error("Cannot compare checksums: they differ");
  const runs = 2000;
  let sum = 0;
  const repeat = (checksum: (bytes: Buffer) => number) => () => {
    for (let i = 0; i < runs; i++) sum += checksum(payload);
  };
  const times = inTurns(repeat(ours), repeat(theirs), runs, rounds);
  if (sum === 0) throw new Error("Cannot compare checksums: nothing was summed");
  return times;
}

const [roundsText, what, pieceBytes] = process.argv.slice(2);
const rounds = Number(roundsText);
const measures: Record<string, () => { ours: number; theirs: number }> = {
  crc16: () =>
    checksums(
      (bytes) => crc16("arc", bytes, 0, bytes.length, 0),
      (bytes) => usualCrc16(bytes),
      rounds,
    ),
  crc32: () =>
    checksums(
      (bytes) => crc32(bytes, 0, bytes.length, 0),
      (bytes) => usualCrc32(bytes),
      rounds,
    ),
  length: () => decoders("length", Number(pieceBytes), rounds),
  stx: () => decoders("stx", Number(pieceBytes), rounds),
};
console.log(JSON.stringify(measures[what ?? ""]?.()));
