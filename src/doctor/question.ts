import type { Contract } from "../contract/contract.ts";
import type { ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import type { JsonObject } from "../core/json-object.ts";
import { textOf } from "../envelope/json.ts";
import { readReply } from "../envelope/reply.ts";
import { toLine } from "../envelope/request.ts";
import type { Crc16 } from "../wire/crc16.ts";
import { frameOf } from "../wire/framing.ts";
import type { Ending, Heard } from "./conversation.ts";
import type { ShownBytes } from "./finding.ts";
import { shown } from "./shown.ts";

/** What a service answered. */
export interface Answer {
  /** Its own answer, or an error in its place. */
  readonly kind: "barrier" | "error";
  readonly json: JsonObject;
  /** The reading of CRC16 by which it is whole. */
  readonly crc16: Crc16;
  /** Milliseconds since the question that it answers. */
  readonly ms: number;
}

/**
 * One service and its barrier: the read-only request whose answer has a shape of its own. It is the only thing that this room
 * ever sends.
 */
export class Question {
  readonly contract: Contract;
  /** What went over the line for it, in order. */
  readonly frames: ShownBytes[] = [];
  /** The bytes of each sending, the reading that they were made with, and when. */
  readonly sent: { readonly crc16: Crc16; readonly bytes: Buffer; readonly atMs: number }[] = [];
  answer: Answer | undefined;
  /** Came only when it was no longer waited for. */
  late = false;
  ending: Ending = "silence";
  /** The beginning of what came in its time and is no frame. */
  garbage: Buffer = Buffer.alloc(0);
  /** A whole frame came with a wrong checksum. */
  broken = false;
  readonly #payload: readonly Buffer[];
  readonly #secret: string | undefined;

  constructor(contract: Contract, merchantId: string | undefined) {
    this.contract = contract;
    this.#payload = toLine(contract, contract.probe.route, [], merchantId);
    this.#secret = contract.envelope === "form" ? /&sign=(.*)$/s.exec(textOf(this.#payload))?.[1] : undefined;
  }

  get service(): ServiceName {
    return this.contract.service;
  }

  /** Asked, and not answered yet. */
  get pending(): boolean {
    return this.sent.length > 0 && this.answer === undefined;
  }

  /** When it was asked first: what is shown counts from here. */
  get #beganMs(): number {
    return this.sent[0]?.atMs ?? 0;
  }

  /** When it was asked last. */
  get askedMs(): number {
    return this.sent.at(-1)?.atMs ?? 0;
  }

  /** The frame of the next sending, which is noted. */
  next(crc16: Crc16): readonly Buffer[] {
    const frame = frameOf(this.contract.framing, this.#payload, crc16);
    const bytes = Buffer.concat(frame);
    this.sent.push({ crc16, bytes, atMs: nowMs() });
    this.frames.push(
      shown(bytes, {
        direction: "sent",
        atMs: this.askedMs - this.#beganMs,
        text: textOf(this.#payload),
        secret: this.#secret,
      }),
    );
    return frame;
  }

  /** What a frame is to this question: its own answer, an error that may be the answer to anything, or neither. */
  kindOf({ item }: Heard): Answer["kind"] | undefined {
    if (item.kind !== "frame" || item.framing !== this.contract.framing) return undefined;
    const read = readReply(item.payload);
    if (typeof read === "string") return undefined;
    if (this.contract.probe.isAnswer(read.json)) return "barrier";
    return read.status === "error" ? "error" : undefined;
  }

  /** Takes the answer. */
  take(heard: Heard, late: boolean): void {
    const kind = this.kindOf(heard);
    const { item, crc16, atMs } = heard;
    if (kind === undefined || item.kind !== "frame") return;
    const read = readReply(item.payload);
    const json = typeof read === "string" ? {} : read.json;
    // Who answers by a reading was asked by it, unless he looks at no checksum.
    const asked = this.sent.findLast((sending) => sending.crc16 === crc16) ?? this.sent.at(-1);
    this.answer = { kind, json, crc16, ms: atMs - (asked?.atMs ?? atMs) };
    this.late = late || asked !== this.sent.at(-1);
    // An error may be the late answer to a sale, whose content is nobody's affair.
    this.#show(heard, kind === "barrier" ? textOf(item.payload) : undefined);
  }

  /** Takes what came in its time and is no answer. */
  stray(heard: Heard): void {
    const { item, crc16 } = heard;
    if (item.kind === "discard") {
      this.broken ||= item.checksum !== undefined;
      return;
    }
    // A frame of no service's: what was sent, come back.
    if (typeof readReply(item.payload) === "string" && this.garbage.length === 0) {
      this.garbage = Buffer.concat(frameOf(item.framing, item.payload, crc16));
    }
    this.#show(heard, undefined);
  }

  /** Takes bytes that are no frame. */
  noise(raw: Buffer, atMs: number): void {
    if (this.garbage.length === 0) this.garbage = raw;
    this.frames.push(shown(raw, { direction: "received", atMs: atMs - this.#beganMs, secret: this.#secret }));
  }

  #show({ item, crc16, atMs }: Heard, text: string | undefined): void {
    if (item.kind !== "frame") return;
    const bytes = Buffer.concat(frameOf(item.framing, item.payload, crc16));
    this.frames.push(shown(bytes, { direction: "received", atMs: atMs - this.#beganMs, text, secret: this.#secret }));
  }
}
