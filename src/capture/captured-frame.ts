import { parseObject } from "../envelope/json.ts";
import type { Framing } from "../wire/decoded.ts";

/**
 * What was seen on a line, one frame at a time, and how it travels from a running posline to `posline tap`: as a line of JSON, its
 * payload in Base64.
 */

/**
 * What a frame was to its line. `ended`: no frame; a request that was sent ended without a usable reply. `discard`: bytes that
 * became no frame.
 */
export const frameRoles = ["request", "reply", "probe", "probe answer", "late", "discard", "ended"] as const;

export type FrameRole = (typeof frameRoles)[number];

export const frameOutcomes = ["answered", "not-sent", "unknown"] as const;

export const checksumVerdicts = ["none", "good", "wrong"] as const;

export interface CapturedFrame {
  /** Milliseconds since 1970, with a fraction: the moment at which the line engine had it. */
  readonly timeMs: number;
  readonly line: string;
  /** Seen from posline: `out` to the terminal. */
  readonly direction: "out" | "in";
  readonly role: FrameRole;
  /** Missing where nobody knows whose it is. */
  readonly service?: string | undefined;
  readonly route?: string | undefined;
  readonly requestId?: string | undefined;
  readonly framing?: Framing | undefined;
  /** Bytes on the wire, framing included; 0 where there were none. */
  readonly wireBytes: number;
  /** Whether the checksum that came was right; what is written always is. `none`: there was none to look at. */
  readonly checksum: (typeof checksumVerdicts)[number];
  /** A wrong one, and what each reading of it gives: `got 1a2b, arc 3c4d, umts 5e6f`. */
  readonly sums?: string | undefined;
  readonly outcome?: (typeof frameOutcomes)[number] | undefined;
  /** Why it was discarded, or ended so. */
  readonly reason?: string | undefined;
  readonly masked: boolean;
  /** Without framing and checksum. Of a discard the first bytes, at most 16. */
  readonly payload: Buffer;
}

/** The frame as a line of JSON, with its line end. */
export function writeCaptured({ payload, ...frame }: CapturedFrame): string {
  return `${JSON.stringify({ ...frame, payload: payload.toString("base64") })}\n`;
}

/** The last moment that a `Date` can have. */
const timeMsMax = 8.64e15;

/** Characters of a text: posline's own have some hundred, and a capture's fields hold 64 kB. */
const textCharsMax = 1_000;

/** Whether it is a number of bytes that a capture can hold. */
const isBytes = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >>> 0 === value;

/** Reads such a line; undefined where it isn't one. Another version of posline may know other fields. */
export function readCaptured(line: string): CapturedFrame | undefined {
  const value = parseObject(line);
  if (value === undefined) return undefined;
  const { timeMs, wireBytes, payload, masked } = value;
  const text = (name: string) => {
    const found = value[name];
    return typeof found === "string" ? found.slice(0, textCharsMax) : undefined;
  };
  const oneOf = <T extends string>(name: string, words: readonly T[]): T | undefined =>
    words.find((word) => word === value[name]);
  const role = oneOf("role", frameRoles);
  const direction = oneOf("direction", ["out", "in"]);
  if (typeof timeMs !== "number" || !(timeMs >= 0 && timeMs <= timeMsMax)) return undefined;
  if (!isBytes(wireBytes) || typeof payload !== "string") return undefined;
  if (role === undefined || direction === undefined) return undefined;
  return {
    timeMs,
    line: text("line") ?? "",
    direction,
    role,
    service: text("service"),
    route: text("route"),
    requestId: text("requestId"),
    framing: oneOf("framing", ["length", "stx"]),
    wireBytes,
    checksum: oneOf("checksum", checksumVerdicts) ?? "none",
    sums: text("sums"),
    outcome: oneOf("outcome", frameOutcomes),
    reason: text("reason"),
    // What doesn't say so isn't trusted to be.
    masked: masked === true,
    payload: Buffer.from(payload, "base64"),
  };
}
