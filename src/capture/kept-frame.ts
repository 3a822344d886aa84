import type { Reply } from "../core/call.ts";
import { Fault } from "../core/fault.ts";
import { isObject, isTexts, type JsonObject } from "../core/json-object.ts";
import { readReply } from "../envelope/reply.ts";
import type { LineEffect } from "../line/events.ts";
import type { LineService } from "../recovery/standing.ts";
import { isConsole } from "../trouble/byte-patterns.ts";
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
  /** The services that it may answer a question of posline's own for, and which one. */
  readonly answers: string;
}

function readingOf(payload: readonly Buffer[], framing: Framing, services: readonly LineService[]): Reading {
  const read = readReply(payload);
  if (typeof read === "string") return { unread: read, status: "", code: "", answers: "" };
  const answering = services.flatMap(({ service, framing: its, questionOf }) => {
    const question = its === framing ? questionOf(read.json) : undefined;
    return question === undefined ? [] : [`${service} ${question}`];
  });
  return {
    unread: undefined,
    status: statusClass(read.status),
    code: codeClass(read.code),
    answers: answering.join(),
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
  const masked = maskPayload([payload], secrets);
  const reading = readingOf([payload], framing, services);
  if (!isAlike(reading, readingOf([masked], framing, services))) return { ...shown, ...stoodFor([payload]) };
  const text = masked.toString("utf8");
  return Buffer.from(text).equals(masked) ? { ...shown, text } : { ...shown, base64: masked.toString("base64") };
}

/**
 * A frame of which only what the engine reads is kept, since it is long or came back.
 * @param reply What it was read as, where it was a call's reply: to read megabytes again would hold all lines up.
 */
export function keptReading(
  { framing, payload, payloadBytes, wireBytes, isEcho }: Frame,
  reply: Reply | undefined,
): RecordedFrame {
  const reading = isEcho ? { isEcho } : reply === undefined ? stoodFor(payload) : { like: likeOf(reply) };
  return { kind: "frame", framing, payloadBytes, wireBytes, ...reading };
}

/** A call's reply among what follows from a frame. */
export function replyIn(effects: readonly LineEffect[], { payload }: Frame): Reply | undefined {
  for (const effect of effects) {
    if (effect.do !== "end" || effect.ending instanceof Fault) continue;
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
  const { isShiftOpen, documentID, data } = json;
  return {
    like: {
      ...likeOf({ status, code }),
      ...shapeOf(json),
      ...(isShiftOpen === undefined || documentID !== undefined ? {} : { isShiftOpen: "?" }),
      ...(isObject(data) ? { data: shapeOf(data) } : {}),
    },
  };
}

/** Any number of more digits than a code has. */
const longCode = 99_999;

/** The fields by which the contracts know the answers to posline's own questions, with no more in them than is looked for. */
function shapeOf({ operations, systems, terminals }: JsonObject): JsonObject {
  return {
    ...(isTexts(operations) ? { operations: [] } : {}),
    ...(Array.isArray(systems) ? { systems: [] } : {}),
    ...(Array.isArray(terminals) ? { terminals: [] } : {}),
  };
}

/** What a computer's console says first, in place of what this one said. */
const prompt = Buffer.from("Password:").toString("hex");

/** Bytes that became no frame, masked; that it was a console's prompt stays known, since the engine goes by it. */
export function shownDiscard(discard: Discard): Discard {
  const head = Buffer.from(discard.head, "hex");
  return { ...discard, head: isConsole(head) ? prompt : maskUnframed(head).toString("hex") };
}
