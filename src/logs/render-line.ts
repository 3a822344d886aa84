import { joined, restOf, subject } from "./columns.ts";
import type { LineEvent } from "./event.ts";
import { type Paint, plain, type Tone } from "./paint.ts";

/** What a line tells of itself, with what follows from it. */
export function renderLine(event: LineEvent, paint: Paint): string {
  const { line, rest } = event;
  return joined([subject("line"), paint("strong", plain(line)), told(event, paint), paint("faint", restOf(rest))]);
}

function told(event: LineEvent, paint: Paint): string {
  const { message, state, reason, framing, bytes, head, crc } = event;
  if (state !== undefined) return joined([paint(tones[state] ?? "odd", plain(state).toUpperCase()), plain(reason ?? "")]);
  const said = message === "line" ? "" : plain(message);
  if (head === undefined && crc === undefined) {
    const what = [framing, bytes === undefined ? undefined : `${bytes} bytes`]
      .filter((part) => part !== undefined)
      .join(" frame, ");
    return joined([framing === undefined ? "" : paint("odd", "LATE"), said, plain(reason ?? ""), plain(what)]);
  }
  const facts = [
    reason,
    bytes === undefined ? undefined : `${bytes} bytes`,
    crc && crcText(crc),
    head && `head ${headText(head)}`,
  ];
  const known = facts.filter((fact) => fact !== undefined && fact !== "");
  const hint = hintOf(event);
  return joined([
    paint("odd", "DISCARD"),
    `${said}: ${plain(known.join(", "))}`,
    hint === undefined ? "" : paint("strong", plain(hint)),
  ]);
}

const tones: Readonly<Record<string, Tone>> = {
  down: "bad",
  recovering: "odd",
  idle: "good",
  awaiting: "good",
  open: "good",
  closed: "faint",
};

function crcText({ got, arc, umts, crc32 }: NonNullable<LineEvent["crc"]>): string {
  const readings = [arc && `arc gives ${arc}`, umts && `umts gives ${umts}`, crc32 && `crc32 gives ${crc32}`];
  return [`crc ${got} came`, ...readings.filter((reading) => reading !== undefined && reading !== "")].join(", ");
}

/** The bytes one by one, and as text where they are some. */
function headText(head: string): string {
  const bytes = head.match(/[0-9a-f]{2}/gi);
  if (bytes === null || bytes.join("") !== head) return head;
  const text = bytes.map((byte) => String.fromCharCode(Number.parseInt(byte, 16))).join("");
  const spaced = bytes.join(" ");
  return /[ -~]{2}/.test(text) ? `${spaced} |${text.replace(/[^ -~]/g, ".")}|` : spaced;
}

/** What the bytes give away. */
function hintOf({ reason, crc, head = "", line }: LineEvent): string | undefined {
  if (reason === "checksum" && crc !== undefined) {
    const other = (["arc", "umts"] as const).find((reading) => crc[reading]?.toLowerCase() === crc.got.toLowerCase());
    // A frame that fits the configured reading isn't discarded, so it is always the other one.
    if (other !== undefined) return `the terminal reads CRC16 as ${other}: set "crc16": "${other}" for line ${line}`;
    return "neither reading fits: look for a wrong speed, parity or a bad cable";
  }
  // AT, +++ and the probe of QCDM modems.
  if (/^(?:4154|2b2b2b|7e0078f07e)/i.test(head)) {
    return "a modem's commands: does ModemManager probe the port? posline doctor tells";
  }
  return undefined;
}
