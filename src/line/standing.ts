import type { LineConfig } from "../config/config.ts";
import { barrierIntervalMs } from "../config/limits.ts";
import type { ServiceName } from "../core/call.ts";
import type { JsonObject } from "../core/json-object.ts";
import type { Discard, Frame } from "../wire/decoded.ts";
import { wordsOf } from "./causes.ts";
import type { LineRequest } from "./exchange.ts";
import { Liveness, type ServiceLiveness } from "./liveness.ts";
import type { Peer } from "./peer.ts";
import { Recovery } from "./recovery.ts";
import type { LineReport } from "./report.ts";
import type { LineState } from "./states.ts";
import { LineStatus } from "./status.ts";

/**
 * How a line stands: its state together with who owes it an answer and who was heard, so that none changes without the others. Each
 * thing that can happen to a line has one method here, which says what it makes of them. It sends nothing and has no clock.
 */
export class Standing {
  readonly #recovery: Recovery;
  readonly #status: LineStatus;
  readonly #liveness: Liveness;
  readonly #idleProbeMs: number;
  /** When a call, an opening or a recovery was last under way. */
  #busyMs = 0;
  /** When each service was last probed while the line was idle. */
  readonly #probedMs = new Map<ServiceName, number>();
  #isProbing = false;
  /** Whose barrier was asked last. */
  #asked: Peer | undefined;
  #tried = false;
  readonly #report: LineReport;

  constructor(line: string, config: LineConfig, peers: readonly Peer[], report: LineReport) {
    const { lateReplyMs, idleProbeMs } = config;
    this.#recovery = new Recovery(peers, { lateReplyMs, barrierIntervalMs });
    this.#status = new LineStatus((state, reason) => report.state(state, reason));
    this.#liveness = new Liveness({ name: line, config }, peers, report);
    this.#idleProbeMs = idleProbeMs;
    this.#report = report;
  }

  get state(): LineState {
    return this.#status.state;
  }

  /** Why it is in its state, for people; while a service is silent, that, and what to do. */
  reason(now: number): string {
    const trouble = this.#isOpen ? this.#liveness.trouble(now) : undefined;
    return trouble === undefined ? this.#status.reason : wordsOf(trouble);
  }

  get #isOpen(): boolean {
    return this.state !== "down" && this.state !== "closed";
  }

  get recovering(): boolean {
    return this.#status.state === "recovering";
  }

  /** How each service of the line does. */
  liveness(now: number): readonly ServiceLiveness[] {
    return this.#liveness.view(now);
  }

  /** What holds up a call that waits. */
  whyWaiting(now: number): string {
    if (this.state === "down") return "its device is still being opened";
    if (!this.recovering) return "it is busy";
    const trouble = this.#liveness.trouble(now);
    if (trouble !== undefined) return `it is recovering (${wordsOf(trouble)})`;
    return `it is recovering (${this.#status.reason}; ${this.#recovery.owing.join(", ")} may still owe an answer)`;
  }

  // --- the device

  opened(now: number): void {
    this.#tried = true;
    this.#status.take("up", "the device opened");
    this.#recovery.begin(now);
    this.#liveness.opened();
    this.#busyMs = now;
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

  /** @param isProbe It is an idle line's own question, for which nobody waits. */
  sent(isProbe = false): void {
    this.#isProbing = isProbe;
    this.#status.take("send");
  }

  /** Whether what is in flight is such a question. */
  get isProbing(): boolean {
    return this.#isProbing && this.state === "awaiting";
  }

  replied(request: LineRequest, now: number): void {
    this.#status.take("frame");
    this.#liveness.heard(request.service, now);
    if (!this.#isProbing) this.#busyMs = now;
    if (!request.barrierShaped) this.#recovery.replied(request.service);
  }

  /** The reply was told: if an answer is owed all the same, the line recovers before the next call. */
  told(now: number): void {
    if (this.#recovery.owes) this.#outOfStep(now);
  }

  /** Sent, and no good reply: the service owes an answer, so the line must be proven clean. */
  failed(request: LineRequest, kind: "timeout" | "broken", why: string, now: number): void {
    this.#recovery.owe(request.service, request.barrierShaped);
    if (kind === "timeout") this.#liveness.unanswered(request.service, now);
    this.#status.take("fail", why);
    this.#recovery.begin(now);
  }

  /** Whether a frame that came while a request was out can't be its reply. `json` is undefined when it is no JSON object. */
  isStray(frame: Frame, json: JsonObject | undefined, request: LineRequest): boolean {
    if (json !== undefined && this.#recovery.isProbeAnswer(frame.framing, json, request)) return true;
    return frame.framing !== request.framing;
  }

  /** Whether an error that came while a request was out may as well answer a barrier from before it; asked once of each. */
  isDoubtful(frame: Frame, now: number): boolean {
    return this.#recovery.mayAnswerStaleProbe(frame.framing, now);
  }

  // --- what nobody asked for

  /** A whole frame for nobody, other than a left-over barrier answer, says that question and answer are out of step. */
  strayed(frame: Frame, json: JsonObject | undefined, now: number): void {
    this.#report.late(frame);
    this.#liveness.strayed("late", now);
    const explained = json !== undefined && this.#recovery.heardStale(frame.framing, json, now);
    if (!explained) this.#recovery.suspectFraming(frame.framing);
    if (this.#status.state === "awaiting") this.#status.take("stray");
    else if (explained) this.#status.take("frame");
    else this.#outOfStep(now);
  }

  /** Bytes came and became no frame. */
  discarded(discard: Discard, now: number): void {
    this.#liveness.discarded(discard, now);
    // While a call awaits its reply, they are taken for that.
    if (this.#status.state !== "idle" || discard.checksum === undefined) return;
    // As good a stray as a whole one: it answered something.
    this.#recovery.suspectFraming(discard.checksum.crc32 === undefined ? "length" : "stx");
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
    const { kind, service } = this.#recovery.heard(frame.framing, json, now);
    if (service === undefined)
      this.#liveness.strayed(json !== undefined ? "late" : this.#isEcho(frame) ? "echo" : "noise", now);
    else this.#liveness.heard(service, now);
    if (kind !== "answer") this.#report.late(frame);
    else if (json !== undefined) this.#report.barrier(service, json);
    this.#status.take(kind === "answer" ? "frame" : "stray");
  }

  /** When there is something to do while recovering, unless something is heard before. */
  dueMs(still: boolean): number {
    return this.#recovery.dueMs(still);
  }

  /** Settles by silence what can be; otherwise gives the service whose barrier to send, if it is time for one. */
  due(still: boolean, now: number): Peer | undefined {
    if (!still || !this.#recovery.settleBySilence(now)) {
      const next = this.#recovery.probeDue(now);
      if (next !== undefined) this.#liveness.unanswered(next.service, now);
      this.#asked = next ?? this.#asked;
      return next;
    }
    this.lookClean(still, now, "it was silent for so long that no late answer is expected: calls are sent, answered or not");
    return undefined;
  }

  /** Whether a frame is the barrier that was asked last, come back. */
  #isEcho({ payload }: Frame): boolean {
    return this.#asked?.barrier !== undefined && Buffer.concat(this.#asked.barrier).includes(Buffer.concat(payload));
  }

  /** Ends the recovery if nobody owes an answer any more; true when it did. */
  lookClean(still: boolean, now: number, why: string): boolean {
    if (!still || !this.recovering || !this.#recovery.isClean(now)) return false;
    this.#status.take("clean", why);
    this.#busyMs = now;
    return true;
  }

  // --- idle

  /**
   * When to probe while the line is idle, so that a terminal that was switched off is known of before the next sale. Only a service
   * that has answered a probe before is asked: the silence of another would hold up whoever calls meanwhile, and prove nothing.
   */
  get probeDueMs(): number {
    let due = Number.POSITIVE_INFINITY;
    if (this.#idleProbeMs === 0 || this.state !== "idle") return due;
    for (const { service } of this.#recovery.proven) due = Math.min(due, this.#probeDueMs(service));
    return due;
  }

  /** The service to probe now, if it is time for one; the caller sends it. */
  probeDue(now: number): Peer | undefined {
    const peer = this.#recovery.proven.find(({ service }) => now >= this.#probeDueMs(service));
    if (peer !== undefined) this.#probedMs.set(peer.service, now);
    return peer;
  }

  #probeDueMs(service: ServiceName): number {
    return Math.max(this.#busyMs, this.#probedMs.get(service) ?? 0) + this.#idleProbeMs;
  }

  // --- who is there

  /** When a silent service is to be reported. */
  get reportDueMs(): number {
    return this.#liveness.reportDueMs;
  }

  reportDue(now: number): void {
    this.#liveness.reportDue(now);
  }
}
