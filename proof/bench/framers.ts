import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { copiedPayloadBytes } from "./copies.ts";
import { benchCpu, benchDir, onCpu, projectDir } from "./machine.ts";
import { figureOf } from "./processes.ts";
import { atLeast, atMost, type Bench } from "./report.ts";

/**
 * Decoders and checksums against the usual way of doing the same: 350-byte payloads in pieces of several sizes.
 *
 * Ours is fed as the line feeds it, by space and advance, with the kernel's part played by a copy and a view made for every piece, however
 * small. That is kind to theirs, which pays for no allocation of the chunks.
 */

const section = "framers";

/** In bytes. */
const pieces = [1, 16, 64, 4096] as const;

/** How many times faster than the usual way ours must be. */
const bound = atLeast(1);

function measured(...args: readonly (string | number)[]): { ours: number; theirs: number; unit: string; faster: true } {
  const script = join(benchDir, "one-framer.ts");
  const [command = "", ...rest] = onCpu(benchCpu, [process.execPath, "--import", "tsx", script, ...args.map(String)]);
  const json = execFileSync(command, rest, { encoding: "utf8", cwd: projectDir, timeout: 60_000 });
  return { ours: figureOf(json, "ours"), theirs: figureOf(json, "theirs"), unit: "µs", faster: true };
}

export async function framers({ report, short }: Bench): Promise<void> {
  const rounds = short ? 21 : 201;
  for (const framing of ["length", "stx"] as const) {
    for (const bytes of pieces)
      report.compare(section, `${framing} frame in pieces of ${bytes}`, measured(rounds, framing, bytes), bound);
    report.figure(section, `${framing}: payload bytes copied in decoding`, copiedPayloadBytes(framing), "B", atMost(0));
  }
  report.compare(section, "CRC-16 of 350 bytes against npm crc", measured(rounds, "crc16"), bound);
  report.compare(section, "CRC-32 of 350 bytes against npm crc", measured(rounds, "crc32"), bound);
}
