import { localTime } from "../core/local-time.ts";
import { printable, printableLines } from "../core/shell-text.ts";
import type { CapturedFrame } from "./captured-frame.ts";

/** Frames and bytes as text for a terminal. */

/** Bytes in a row of a hex dump. */
export const rowBytes = 16;

/** A row of a hex dump, as `hexdump -C` writes it. */
export function hexRow(offset: number, bytes: Uint8Array): string {
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0"));
  const text = Array.from(bytes, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
  const columns = `${hex.slice(0, 8).join(" ")}  ${hex.slice(8).join(" ")}`.padEnd(3 * rowBytes + 2);
  return `${offset.toString(16).padStart(8, "0")}  ${columns}|${text}|\n`;
}

/** The rows of a hex dump. */
export function hexRows(bytes: Uint8Array): string {
  let rows = "";
  for (let at = 0; at < bytes.length; at += rowBytes) rows += hexRow(at, bytes.subarray(at, at + rowBytes));
  return rows;
}

/** A frame: a line that says what it is, then its payload as text, or as rows of hex. */
export function frameText(frame: CapturedFrame, hex: boolean): string {
  const { timeMs, line, direction, role, service, route, wireBytes, checksum, sums, outcome, reason, requestId, payload } =
    frame;
  const words = [
    localTime(timeMs),
    line,
    direction === "out" ? "->" : "<-",
    service ?? "-",
    route === "" ? undefined : route,
    role,
    wireBytes > 0 ? `${wireBytes} bytes` : undefined,
    checksum === "none" ? undefined : `checksum ${checksum}${sums === undefined ? "" : ` (${sums})`}`,
    outcome,
    // The verdict says it already.
    reason === "checksum" ? undefined : reason,
    requestId === undefined || requestId === "" ? undefined : `id=${requestId}`,
  ];
  const head = words.filter((word) => word !== undefined).join(" ");
  // What became no frame isn't text.
  return `${printable(head)}\n${hex || role === "discard" ? hexRows(payload) : payloadText(payload)}`;
}

function payloadText(payload: Buffer): string {
  if (payload.length === 0) return "";
  return `${printableLines(payload.toString("utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => `    ${line}`)
    .join("\n")}\n`;
}
