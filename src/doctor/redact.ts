import { laterDigitsIn } from "../core/card-number.ts";
import { printable } from "../core/shell-text.ts";
import type { RedactedBytes } from "./finding.ts";

/**
 * Bytes of a line as anybody may see them: what a technician pastes into a ticket. Only posline's own probes and the answers
 * to them stand there whole; of all else the beginning, which tells what it is and is too short for a name, without what may be a
 * card's number: bytes that are no frame may begin with one.
 */

/** Bytes of a probe or its answer that are shown, and of anything else. */
const wholeBytesMax = 256;
const headBytesMax = 16;

/** Characters of a text that are shown. */
const textMax = 1_000;

/** Bytes of a checksum after the sign, which would confirm a guess at the secret as well as the sign does. */
const checksumBytes = 4;

export interface RedactOptions {
  readonly direction: RedactedBytes["direction"];
  readonly atMs: number;
  /** The bytes as text, if they may be shown whole. */
  readonly text?: string | undefined;
  /** Text to hide: a sign confirms a guess at the merchant's id. */
  readonly secret?: string | undefined;
}

export function redact(bytes: Buffer, { direction, atMs, text, secret }: RedactOptions): RedactedBytes {
  const hidden = hiddenIn(bytes, secret);
  const hex =
    text === undefined
      ? headOf(bytes, hidden)
      : hexOf(bytes.subarray(0, wholeBytesMax), { hidden, cut: bytes.length > wholeBytesMax });
  const shownText = text === undefined ? undefined : masked(text, secret).slice(0, textMax);
  return {
    direction,
    atMs: Math.round(atMs),
    bytes: bytes.length,
    hex,
    ...(shownText === undefined ? {} : { text: shownText }),
  };
}

/** The beginning of bytes that may be anything, in hexadecimal. */
export function headOf(bytes: Buffer, hidden: (at: number) => boolean = () => false): string {
  const head = bytes.subarray(0, headBytesMax);
  const isCard = laterDigitsIn(head);
  return hexOf(head, { hidden: (at) => hidden(at) || isCard(at), cut: bytes.length > headBytesMax });
}

function hexOf(bytes: Buffer, { hidden, cut }: { readonly hidden: (at: number) => boolean; readonly cut: boolean }): string {
  const pairs = Array.from(bytes, (byte, at) => (hidden(at) ? "**" : byte.toString(16).padStart(2, "0")));
  return (cut ? [...pairs, ".."] : pairs).join(" ");
}

/** Hides what must not be shown: the secret, and what a terminal would obey. Line breaks become a space. */
function masked(text: string, secret: string | undefined): string {
  const open = secret === undefined ? text : text.replaceAll(secret, "****");
  return printable(open.replace(/\p{Cc}/gu, " "));
}

function hiddenIn(bytes: Buffer, secret: string | undefined): (at: number) => boolean {
  const from: number[] = [];
  if (secret === undefined) return () => false;
  for (let at = bytes.indexOf(secret); at !== -1; at = bytes.indexOf(secret, at + 1)) from.push(at);
  const length = secret.length + checksumBytes;
  return (at) => from.some((start) => at >= start && at < start + length);
}
