import type { LineConfig } from "../config/config.ts";
import { payloadMsMin } from "../config/limits.ts";
import type { Contract } from "../contract/contract.ts";
import type { ServiceName } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { OpenTransport } from "../device/transport.ts";
import { textOf, wholeOf } from "../envelope/json.ts";
import { readReply } from "../envelope/reply.ts";
import { toLine } from "../envelope/request.ts";
import { silenceMsMax } from "../line/limits.ts";
import { ProbeLink, type ReceivedItem, type WaitResult } from "../line/probe-link.ts";
import { isRequest } from "../trouble/byte-patterns.ts";
import { type Crc16, otherReading } from "../wire/crc16.ts";
import { frameOf } from "../wire/framing.ts";
import type { RedactedBytes } from "./finding.ts";
import { redact } from "./redact.ts";

/** How long the doctor waits for answers. */
export interface ProbePace {
  /** Milliseconds that an answer may take to begin. */
  readonly answerMs: number;
  /** Milliseconds that an answer may take beyond that, once a frame has begun. */
  readonly frameMs: number;
  /** Milliseconds to wait for answers still missing before the line is left, by whether any service answered. */
  readonly lateMs: (anyAnswer: boolean) => number;
}

/** Milliseconds of silence that end what the device sent before: a terminal that works answers off pauses for less. */
const drainMs = 200;

/** Milliseconds that a probe's answer may take to begin; a later one is accepted too, and reported as late. */
export const probeAnswerMs = 3_000;

/** The pace of a line whose settings are believed: a late answer is waited for as long as posline itself would. */
export const usualPace = ({ lateReplyMs }: LineConfig): ProbePace => ({
  answerMs: probeAnswerMs,
  frameMs: 2 * payloadMsMin,
  lateMs: () => lateReplyMs,
});

/** The outcome of probing the services of one line, beside the answers. */
export interface ProbeResult {
  /** Bytes that came before the first probe: older than the connection, or unsolicited. */
  readonly before: Buffer;
  /** Why the line was lost meanwhile; undefined if it wasn't. */
  readonly lost: string | undefined;
  /** True if the line was silent when it was left: nothing is on its way. */
  readonly leftClean: boolean;
}

export interface ProbeOptions {
  readonly config: LineConfig;
  readonly open: OpenTransport;
  readonly probes: readonly ServiceProbe[];
  readonly progress: (text: string) => void;
  readonly pace?: ProbePace;
}

/**
 * Sends each service of a line its probe, one at a time, and leaves the line as it was found: an answer still missing is waited
 * for, so that the next user of the line doesn't take it for its own.
 * @throws OpenError saying why the line can't be opened, and what to do.
 */
export async function probeServices(options: ProbeOptions): Promise<ProbeResult> {
  const { config, open, probes, progress, pace = usualPace(config) } = options;
  const link = new ProbeLink(config, new Set(probes.map(({ contract }) => contract.framing)), pace.frameMs);
  const session = new ProbeSession(link, probes, pace);
  try {
    await link.open(open);
    const before = link.raw;
    for (const probe of probes) {
      progress(`probing ${probe.service}: ${probe.contract.probe.route}`);
      for (const crc16 of session.readingsFor(probe, config)) if (await session.send(probe, crc16)) break;
    }
    const leftClean = await session.leave(progress);
    return { before, lost: link.lost, leftClean };
  } finally {
    await link.close();
  }
}

/** The probes sent on one line, and which answer belongs to which. */
class ProbeSession {
  readonly #link: ProbeLink;
  readonly #probes: readonly ServiceProbe[];
  readonly #pace: ProbePace;
  /** Bytes of whole frames since the last probe, and of frames with a wrong checksum. */
  #framed = 0;
  #brokenBytes = 0;

  constructor(link: ProbeLink, probes: readonly ServiceProbe[], pace: ProbePace) {
    this.#link = link;
    this.#probes = probes;
    this.#pace = pace;
  }

  /**
   * The readings of CRC16 to probe with: the line's own first, then the other one; or the one that a service of this line has
   * answered by. An STX frame has a CRC-32, of which there is one kind.
   */
  *readingsFor({ contract }: ServiceProbe, { crc16 }: LineConfig): Generator<Crc16> {
    if (contract.framing === "stx") {
      yield crc16;
      return;
    }
    const proven = this.#probes.find((each) => each.contract.framing === "length" && each.answer !== undefined)?.answer;
    yield proven?.crc16 ?? crc16;
    if (proven === undefined) yield otherReading(crc16);
  }

  /** Sends a probe once; true when sending it once more is of no use. */
  async send(probe: ServiceProbe, crc16: Crc16): Promise<boolean> {
    const link = this.#link;
    await link.waitForFrameEnd();
    this.#clearReceived();
    const { answerMs } = this.#pace;
    const frame = probe.nextFrame(crc16);
    const dueMs = nowMs() + answerMs;
    probe.waitResult = await link.request(frame, this.#isAnswer, answerMs);
    this.#distribute(probe, false);
    while (probe.waitResult === "received" && probe.pending) {
      // An answer to an earlier probe came first: wait on for this one's.
      probe.waitResult = await link.wait(this.#isAnswer, Math.max(0, dueMs - nowMs()));
      this.#distribute(probe, false);
    }
    const noise = this.#takeUnframed(probe);
    // The other reading of CRC16 is of no use if the bytes are not frames at all.
    return !probe.pending || probe.waitResult !== "silence" || (noise && !probe.broken);
  }

  /** Waits for the answers still missing; true when the line is silent at the end. */
  async leave(progress: (text: string) => void): Promise<boolean> {
    const link = this.#link;
    const lateMs = this.#pace.lateMs(this.#probes.some(({ answer }) => answer !== undefined));
    const pending = () => this.#probes.filter((probe) => probe.pending);
    if (lateMs > 0 && pending().length > 0 && link.lost === undefined) {
      progress(`waiting up to ${Math.ceil(lateMs / 1_000)} s for late answers, so that the line is left clean`);
    }
    for (let last = pending().at(-1); last !== undefined && lateMs > 0; last = pending().at(-1)) {
      this.#clearReceived();
      const untilMs = Math.max(link.lastByteMs, ...pending().map(({ lastSentMs }) => lastSentMs)) + lateMs;
      const ending = await link.wait(this.#isAnswer, Math.max(0, untilMs - nowMs()));
      this.#distribute(last, true);
      if (ending !== "received") {
        this.#takeUnframed(last);
        break;
      }
    }
    if (link.lost !== undefined) return false;
    return link.silence(drainMs, silenceMsMax);
  }

  #clearReceived(): void {
    this.#link.clearReceived();
    this.#framed = 0;
    this.#brokenBytes = 0;
  }

  /** Notes the bytes that are not whole frames; true when some aren't frames with a wrong checksum either. */
  #takeUnframed(probe: ServiceProbe): boolean {
    const { raw, rawBytes, lastByteMs } = this.#link;
    const noise = rawBytes > this.#framed + this.#brokenBytes;
    probe.receivedBytes += rawBytes;
    if (rawBytes > this.#framed) probe.takeUnframed(raw, { bytes: rawBytes, atMs: lastByteMs, noise });
    return noise;
  }

  readonly #isAnswer = (received: ReceivedItem): boolean => this.#probeFor(received) !== undefined;

  /** The probe that a frame answers: an answer's shape tells, and an error belongs to the probe that has waited longest. */
  #probeFor(received: ReceivedItem): ServiceProbe | undefined {
    const pending = this.#probes.filter((probe) => probe.pending);
    return (
      pending.find((probe) => probe.kindOf(received) === "answer") ??
      pending.find((probe) => probe.kindOf(received) === "error")
    );
  }

  #distribute(current: ServiceProbe, late: boolean): void {
    for (const received of this.#link.received.splice(0)) {
      const { item } = received;
      if (item.kind === "frame") this.#framed += item.wireBytes;
      else if (item.checksum !== undefined) this.#brokenBytes += item.wireBytes;
      const probe = this.#probeFor(received);
      if (probe === undefined) current.takeUnrelated(received);
      else probe.takeAnswer(received, late || probe !== current);
    }
  }
}

/** A service's answer to its probe. */
export interface ProbeAnswer {
  /** `error`: an error came in place of the answer. */
  readonly kind: "answer" | "error";
  readonly json: JsonObject;
  /** The reading of CRC16 by which it is whole. */
  readonly crc16: Crc16;
  /** Milliseconds from the probe to this answer. */
  readonly ms: number;
}

/** The probe of one service: the read-only request whose answer has a shape of its own. This room sends nothing else. */
export class ServiceProbe {
  readonly service: ServiceName;
  readonly contract: Contract;
  /** The frames sent and received for this probe, in order. */
  readonly frames: RedactedBytes[] = [];
  /** The bytes of each sending, the reading that they were made with, and when. */
  readonly sent: { readonly crc16: Crc16; readonly bytes: Buffer; readonly atMs: number }[] = [];
  answer: ProbeAnswer | undefined;
  /** The answer came after its time. */
  late = false;
  waitResult: WaitResult = "silence";
  /** The beginning of what came in its time and is not a frame. */
  garbage: Buffer = Buffer.alloc(0);
  /** Count of bytes of any kind that came after this probe's sendings. */
  receivedBytes = 0;
  /** A whole frame came with a wrong checksum. */
  broken = false;
  /** Something came that the contract doesn't have: neither the answer nor an error. An answer to an earlier request looks so too. */
  odd = false;
  readonly #payload: readonly Buffer[];
  readonly #secret: string | undefined;

  constructor(contract: Contract, merchantId: string | undefined, service: ServiceName = contract.service) {
    this.service = service;
    this.contract = contract;
    this.#payload = toLine(contract, contract.probe.route, [], merchantId);
    this.#secret = contract.envelope === "form" ? /&sign=(.*)$/s.exec(textOf(this.#payload))?.[1] : undefined;
  }

  /** True if sent and not answered yet. */
  get pending(): boolean {
    return this.sent.length > 0 && this.answer === undefined;
  }

  /** When the probe was first sent: the times of its frames count from here. */
  get #beganMs(): number {
    return this.sent[0]?.atMs ?? 0;
  }

  /** When the probe was last sent. */
  get lastSentMs(): number {
    return this.sent.at(-1)?.atMs ?? 0;
  }

  /** Makes the frame of the next sending, and notes it. */
  nextFrame(crc16: Crc16): readonly Buffer[] {
    const frame = frameOf(this.contract.framing, this.#payload, crc16);
    const bytes = Buffer.concat(frame);
    this.sent.push({ crc16, bytes, atMs: nowMs() });
    this.frames.push(
      redact(bytes, {
        direction: "sent",
        atMs: this.lastSentMs - this.#beganMs,
        text: textOf(this.#payload),
        secret: this.#secret,
      }),
    );
    return frame;
  }

  /** The meaning of a frame to this probe: its own answer, an error that may answer anything, or neither. */
  kindOf({ item }: ReceivedItem): ProbeAnswer["kind"] | undefined {
    if (item.kind !== "frame" || item.framing !== this.contract.framing) return undefined;
    const read = readReply(item.payload);
    if (typeof read === "string") return undefined;
    if (this.contract.probe.isAnswer(read.json)) return "answer";
    return read.status === "error" ? "error" : undefined;
  }

  /** Takes a frame as this probe's answer. */
  takeAnswer(received: ReceivedItem, late: boolean): void {
    const kind = this.kindOf(received);
    const { item, crc16, atMs } = received;
    if (kind === undefined || item.kind !== "frame") return;
    const read = readReply(item.payload);
    const json = typeof read === "string" ? {} : read.json;
    // An answer by a reading belongs to the probe sent by it, unless the terminal checks no checksum.
    const probed = this.sent.findLast((sending) => sending.crc16 === crc16) ?? this.sent.at(-1);
    this.answer = { kind, json, crc16, ms: atMs - (probed?.atMs ?? atMs) };
    this.late = late || probed !== this.sent.at(-1);
    // An error may be the late answer to a sale, whose content must not be shown.
    this.#record(received, kind === "answer" ? textOf(item.payload) : undefined);
  }

  /** Takes what came in its time and is not an answer. */
  takeUnrelated(received: ReceivedItem): void {
    const { item, crc16 } = received;
    if (item.kind === "discard") {
      this.broken ||= item.checksum !== undefined;
      return;
    }
    const bytes = Buffer.concat(frameOf(item.framing, item.payload, crc16));
    // An echo of what was sent, or zeros that look like an empty frame, are nobody's answer.
    const isNobodys = item.payloadBytes === 0 || this.sent.some((sending) => sending.bytes.equals(bytes));
    if (!isNobodys && isRequest(wholeOf(item.payload))) this.garbage = bytes;
    else if (!isNobodys && item.framing === this.contract.framing) this.odd = true;
    else if (typeof readReply(item.payload) === "string" && this.garbage.length === 0) this.garbage = bytes;
    this.#record(received, undefined);
  }

  /**
   * Takes bytes that are not whole frames.
   * @param raw The first of them, and `bytes` how many came.
   * @param noise Some of them aren't frames with a wrong checksum either.
   */
  takeUnframed(
    raw: Buffer,
    { bytes, atMs, noise }: { readonly bytes: number; readonly atMs: number; readonly noise: boolean },
  ): void {
    // At a wrong speed a few zeros look like an empty frame: all bytes together tell more than those.
    if (noise && raw.length > this.garbage.length) this.garbage = raw;
    const shown = redact(raw, { direction: "received", atMs: atMs - this.#beganMs, secret: this.#secret });
    this.frames.push({ ...shown, bytes });
  }

  #record({ item, crc16, atMs }: ReceivedItem, text: string | undefined): void {
    if (item.kind !== "frame") return;
    const bytes = Buffer.concat(frameOf(item.framing, item.payload, crc16));
    this.frames.push(redact(bytes, { direction: "received", atMs: atMs - this.#beganMs, text, secret: this.#secret }));
  }
}
