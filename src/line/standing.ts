import { barrierIntervalMs } from "../config/limits.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { Discard, Frame } from "../wire/decoded.ts";
import type { LineRequest } from "./exchange.ts";
import type { Peer } from "./peer.ts";
import { Recovery } from "./recovery.ts";
import type { LineReport } from "./report.ts";
import type { LineState } from "./states.ts";
import { LineStatus } from "./status.ts";

/**
 * How a line stands: its state together with who owes it an answer, so that neither changes without the other. Each thing that
 * can happen to a line has one method here, which says what it makes of both. It sends nothing and has no clock.
 */
export class Standing {
  readonly #recovery: Recovery;
  readonly #status: LineStatus;
  #tried = false;
  readonly #report: LineReport;

  constructor(peers: readonly Peer[], lateReplyMs: number, report: LineReport) {
    this.#recovery = new Recovery(peers, { lateReplyMs, barrierIntervalMs });
    this.#status = new LineStatus((state, reason) => report.state(state, reason));
    this.#report = report;
  }

  get state(): LineState {
    return this.#status.state;
  }

  /** Why it is in its state, for people. */
  get reason(): string {
    return this.#status.reason;
  }

  get recovering(): boolean {
    return this.#status.state === "recovering";
  }

  /** What holds up a call that waits. */
  get whyWaiting(): string {
    if (this.state === "down") return "its device is still being opened";
    if (!this.recovering) return "it is busy";
    return `it is recovering (${this.#status.reason}; ${this.#recovery.owing.join(", ")} may still owe an answer)`;
  }

  // --- the device

  opened(now: number): void {
    this.#tried = true;
    this.#status.take("up", "the device opened");
    this.#recovery.begin(now);
  }

  /** The silence came that an opening begins with. */
  hushed(still: boolean, now: number): void {
    if (!this.lookClean(still, now, "the line is silent, and nobody owes an answer")) this.#recovery.begin(now);
  }

  /** It could not be opened, and is tried again. */
  failedToOpen(reason: string): void {
    this.#tried = true;
    this.#status.explain(reason);
  }

  /** Whether there is no device, as far as anybody knows: before the first attempt has ended, nobody does. */
  get isAway(): boolean {
    return this.#tried && this.state === "down";
  }

  /** The device is gone. `out` is the request that it may have heard and not answered. */
  lost(reason: string, out: LineRequest | undefined): void {
    if (out !== undefined) this.#recovery.owe(out.service, out.barrierShaped);
    this.#status.take("down", reason);
  }

  closed(reason: string): void {
    this.#status.take("close", reason);
  }

  // --- a call

  sent(): void {
    this.#status.take("send");
  }

  replied(request: LineRequest): void {
    this.#status.take("frame");
    if (!request.barrierShaped) this.#recovery.replied(request.service);
  }

  /** The reply was told: if an answer is owed all the same, the line recovers before the next call. */
  told(now: number): void {
    if (this.#recovery.owes) this.#outOfStep(now);
  }

  /** Sent, and no good reply: the service owes an answer, so the line must be proven clean. */
  failed(request: LineRequest, why: string, now: number): void {
    this.#recovery.owe(request.service, request.barrierShaped);
    this.#status.take("fail", why);
    this.#recovery.begin(now);
  }

  /** Whether a frame that came while a request was out can't be its reply. `json` is undefined when it is no JSON object. */
  isStray(frame: Frame, json: JsonObject | undefined, request: LineRequest): boolean {
    if (json !== undefined && this.#recovery.isLeftOver(frame.framing, json, request)) return true;
    return frame.framing !== request.framing;
  }

  /** Whether an error that came while a request was out may as well answer a barrier from before it; asked once of each. */
  isDoubtful(frame: Frame, now: number): boolean {
    return this.#recovery.isDoubtful(frame.framing, now);
  }

  // --- what nobody asked for

  /** A whole frame for nobody, other than a left-over barrier answer, says that question and answer are out of step. */
  strayed(frame: Frame, json: JsonObject | undefined, now: number): void {
    this.#report.late(frame);
    const explained = json !== undefined && this.#recovery.heardLeftOver(frame.framing, json, now);
    if (!explained) this.#recovery.oweUnlessExplained(frame.framing);
    if (this.#status.state === "awaiting") this.#status.take("stray");
    else if (explained) this.#status.take("frame");
    else this.#outOfStep(now);
  }

  /** Bytes came while no request was out, and became no frame. */
  discarded(discard: Discard, now: number): void {
    if (this.#status.state !== "idle" || discard.checksum === undefined) return;
    // As good a stray as a whole one: it answered something.
    this.#recovery.oweUnlessExplained(discard.checksum.crc32 === undefined ? "length" : "stx");
    this.#outOfStep(now);
  }

  #outOfStep(now: number): void {
    this.#status.take("stray", "a frame came that nobody asked for");
    this.#recovery.begin(now);
  }

  // --- recovering

  /** Bytes came, of whatever kind. */
  heardBytes(now: number): void {
    if (this.recovering) this.#recovery.heardBytes(now);
  }

  /** A whole frame came while recovering. */
  framed(frame: Frame, json: JsonObject | undefined, now: number): void {
    const heard = this.#recovery.heard(frame.framing, json, now);
    if (heard === "late") this.#report.late(frame);
    else if (json !== undefined) this.#report.barrier(heard, json);
    this.#status.take(heard === "late" ? "stray" : "frame");
  }

  /** When there is something to do while recovering, unless something is heard before. */
  dueMs(still: boolean): number {
    return this.#recovery.dueMs(still);
  }

  /** Settles by silence what can be; otherwise gives the barrier to send, if it is time for one. */
  due(still: boolean, now: number): readonly Buffer[] | undefined {
    if (!still || !this.#recovery.settleBySilence(now)) return this.#recovery.barrierDue(now);
    this.lookClean(still, now, "it was silent for long, so no answer is expected any more");
    return undefined;
  }

  /** Ends the recovery if nobody owes an answer any more; true when it did. */
  lookClean(still: boolean, now: number, why: string): boolean {
    if (!still || !this.recovering || !this.#recovery.isClean(now)) return false;
    this.#status.take("clean", why);
    return true;
  }
}
