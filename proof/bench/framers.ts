import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { copiedPayloadBytes } from "./copies.ts";
import { aheadOfAll, benchDir, projectDir } from "./machine.ts";
import { figureOf } from "./processes.ts";
import { atLeast, atMost, type Bench, type Bound } from "./report.ts";

/**
 * Decoders and checksums against the usual way of doing the same: 350-byte payloads in pieces of several sizes.
 *
 * Both decoders are handed the same chunks. That is unfair to ours, which copies them to where the kernel would have written
 * them, and kind to theirs, which pays for no allocation of the chunks. The rows "by space and advance" are how the line feeds
 * ours, with the kernel's part played by a copy and a view made for every piece, however small.
 */

const section = "framers";

/** Pieces in bytes, with how many times faster than the usual way ours must be. */
const pieces: readonly { readonly bytes: number; readonly bound: Bound | undefined }[] = [
  { bytes: 1, bound: atLeast(5) },
  { bytes: 16, bound: atLeast(3) },
  { bytes: 64, bound: undefined },
  { bytes: 4096, bound: atLeast(2) },
];

function measured(...args: readonly (string | number)[]): { ours: number; theirs: number; unit: string; faster: true } {
  const script = join(benchDir, "one-framer.ts");
  const [command = "", ...rest] = aheadOfAll([process.execPath, "--import", "tsx", script, ...args.map(String)]);
  const json = execFileSync(command, rest, { encoding: "utf8", cwd: projectDir, timeout: 60_000 });
  return { ours: figureOf(json, "ours"), theirs: figureOf(json, "theirs"), unit: "µs", faster: true };
}

export async function framers({ report, short }: Bench): Promise<void> {
  const rounds = short ? 21 : 201;
  for (const framing of ["length", "stx"] as const) {
    for (const { bytes, bound } of pieces) {
      const what = `${framing} frame in pieces of ${bytes}`;
      report.compare(section, what, measured(rounds, framing, bytes, "push"), bound);
      report.compare(section, `${what}, by space and advance`, measured(rounds, framing, bytes, "space"), undefined);
    }
    report.figure(section, `${framing}: payload bytes copied in decoding`, copiedPayloadBytes(framing), "B", atMost(0));
  }
  report.compare(section, "CRC-16 of 350 bytes against npm crc", measured(rounds, "crc16"), atLeast(3));
  report.compare(section, "CRC-32 of 350 bytes against npm crc", measured(rounds, "crc32"), undefined);
}
