import type { Reply } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import { isObject, isTexts, type JsonObject } from "../core/json-object.ts";
import { bytesOf } from "../core/pieces.ts";
import { readReply } from "../envelope/reply.ts";
import type { LineEffect } from "../line/events.ts";
import { isConsole } from "../recovery/liveness.ts";
import type { LineService } from "../recovery/probe-account.ts";
import type { Discard, Frame, Framing } from "../wire/decoded.ts";
import { codeClass, statusClass } from "./decision.ts";
import { maskPayload, maskUnframed } from "./mask.ts";
import type { RecordedFrame } from "./recording.ts";

/**
 * Frames of a terminal as a recording shows them: masked, and so that the engine reads in them what it read. Where the mask would
 * change that, what the engine reads stands in place of the bytes.
 */

/** A frame as it is kept in memory. */
export interface KeptFrame {
  readonly framing: Framing;
  readonly wireBytes: number;
  readonly payload: Buffer;
}

/** What the engine reads in a frame. */
interface Reading {
  readonly unread: string | undefined;
  readonly status: string;
  readonly code: number | string;
  /** The services whose probe it may answer. */
  readonly answers: string;
}

function readingOf(payload: readonly Buffer[], framing: Framing, services: readonly LineService[]): Reading {
  const read = readReply(payload);
  if (typeof read === "string") return { unread: read, status: "", code: "", answers: "" };
  const answering = services.filter((each) => each.framing === framing && each.isProbeAnswer(read.json));
  return {
    unread: undefined,
    status: statusClass(read.status),
    code: codeClass(read.code),
    answers: answering.map(({ service }) => service).join(),
  };
}

const isAlike = (one: Reading, other: Reading) => JSON.stringify(one) === JSON.stringify(other);

/** A frame that is kept whole, as it is shown. */
export function shownFrame(
  { framing, wireBytes, payload }: KeptFrame,
  services: readonly LineService[],
  secrets: readonly string[],
): RecordedFrame {
  const shown = { kind: "frame", framing, payloadBytes: payload.length, wireBytes } as const;
  const echoed = services.find(({ probe }) => probe !== undefined && bytesOf(probe) === wireBytes && holds(probe, payload));
  if (echoed !== undefined) return { ...shown, echoOf: echoed.service };
  const masked = maskPayload([payload], secrets);
  const reading = readingOf([payload], framing, services);
  if (!isAlike(reading, readingOf([masked], framing, services))) return { ...shown, ...stoodFor([payload]) };
  const text = masked.toString("utf8");
  return Buffer.from(text).equals(masked) ? { ...shown, text } : { ...shown, base64: masked.toString("base64") };
}

const holds = (probe: readonly Buffer[], payload: Buffer) => Buffer.concat(probe).includes(payload);

/**
 * A frame of which only what the engine reads is kept, since it is long.
 * @param reply What it was read as, where it was a call's reply: to read megabytes again would hold all lines up.
 */
export function keptReading({ framing, payload, payloadBytes, wireBytes }: Frame, reply: Reply | undefined): RecordedFrame {
  const reading = reply === undefined ? stoodFor(payload) : { like: likeOf(reply) };
  return { kind: "frame", framing, payloadBytes, wireBytes, ...reading };
}

/** A call's reply among what follows from a frame. */
export function replyIn(effects: readonly LineEffect[], { payload }: Frame): Reply | undefined {
  for (const effect of effects) {
    if (effect.do !== "settle" || effect.ending instanceof Fault) continue;
    if (effect.ending.payload === payload) return effect.ending;
  }
  return undefined;
}

function likeOf({ status, code }: Pick<Reply, "status" | "code">): JsonObject {
  return {
    ...(status === undefined ? {} : { status: statusClass(status) }),
    ...(code === undefined ? {} : { code: typeof codeClass(code) === "number" ? code : longCode }),
  };
}

/** What reads as a payload does, and has no more in it than that. */
function stoodFor(payload: readonly Buffer[]): Pick<RecordedFrame, "like" | "unread"> {
  const read = readReply(payload);
  if (typeof read === "string") return { unread: read };
  const { json, status, code } = read;
  const { operations, data } = json;
  return {
    like: {
      ...likeOf({ status, code }),
      ...(isTexts(operations) ? { operations: [] } : {}),
      ...(isObject(data) ? { data: shapeOf(data) } : {}),
    },
  };
}

/** Any number of more digits than a code has. */
const longCode = 99_999;

/** The fields by which the contracts know a probe's answer, empty. */
function shapeOf({ operations, systems }: JsonObject): JsonObject {
  return {
    ...(isTexts(operations) ? { operations: [] } : {}),
    ...(Array.isArray(systems) ? { systems: [] } : {}),
  };
}

/** What a computer's console says first, in place of what this one said. */
const prompt = Buffer.from("Password:").toString("hex");

/** Bytes that became no frame, masked; that it was a console's prompt stays known, since the engine goes by it. */
export function shownDiscard(discard: Discard): Discard {
  const head = isConsole(discard.head) ? prompt : maskUnframed(Buffer.from(discard.head, "hex")).toString("hex");
  return { ...discard, head };
}
