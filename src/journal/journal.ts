import type { Contract, Route } from "../contract/contract.ts";
import { contracts } from "../contract/contracts.ts";
import type { OperationLogEnding, OperationLogEntry } from "../contract/operation-log.ts";
import { settlingRulesOf } from "../contract/settling.ts";
import type { Call } from "../core/call.ts";
import { maskCardNumbers } from "../core/card-number.ts";
import { nowMs } from "../core/clock.ts";
import { isByOtherContract, isElsewhere } from "../core/device-mark.ts";
import { checkFirst, Fault, nothingSent } from "../core/fault.ts";
import {
  isGoodEnd,
  type OperationEnd,
  type OperationHistory,
  type OthersOperation,
  type PastOperation,
  type QuestionFields,
} from "../core/followed.ts";
import { version } from "../core/version.ts";
import { bodyDigest } from "../envelope/body-digest.ts";
import { type AnswerFields, answerFields, leavesUnknown } from "./answer-fields.ts";
import { bodyFields } from "./body-fields.ts";
import { type Disk, nodeDisk } from "./disk.ts";
import { type SequenceRange, tornMax } from "./reader.ts";
import { mayBecome, type RecentOperation, RecentOperations, recentMs } from "./recent-operations.ts";
import {
  asUnknown,
  isSameOperation,
  isUnknown,
  type JournalOperation,
  joinOperations,
  type SentRecord,
  type SettledRecord,
  type StoredRecord,
  storedKey,
  type UnknownOperation,
} from "./record.ts";
import { type FoundRecords, type JournalReport, Recorder } from "./recorder.ts";
import { mayBeRolledBack, nothingSaid, type PlaceInJournal, type Sending, saidBy, saidInRecord } from "./sending.ts";
import { batchMax, slotBytes } from "./slot.ts";
import type { PendingRecord } from "./write-queue.ts";

/**
 * The journal of money: a record on the disk of each request that moves money, prints or changes state, made before its first
 * byte goes out, and of its outcome, made before its caller learns it. So after a crash or a power cut it is known what had
 * been sent, and whether its caller knew: what has no outcome is reported as unknown. It is never sent again.
 *
 * A disk that fails or hangs must not stop a shop: within `recordMs` each request goes on without a record, or is refused,
 * as `onFailure` says; the failure is reported, and the next request tries the disk again, or a timer where none comes.
 */

export interface JournalOptions {
  /** Where its file is. */
  readonly folder: string;
  /** Bytes of its file. */
  readonly bytes: number;
  /** Whether requests that can't be recorded are refused, or sent without a record. */
  readonly onFailure: "refuse" | "relay";
  readonly report: JournalReport;
  /** Called with each operation whose outcome a caller learns to be unknown. */
  readonly onUnknown?: ((operation: UnknownOperation) => void) | undefined;
  /** The box's own unless a test has another. */
  readonly disk?: Disk | undefined;
}

/** An operation of unknown outcome that can still be settled. */
export interface OpenOperation {
  readonly sent: SentRecord;
  /** Where its record is; undefined where there is none. */
  readonly place: PlaceInJournal | undefined;
  readonly cause: UnknownOperation["cause"];
  /** Since when this process knows that it is unknown, on `nowMs`'s scale. */
  readonly sinceMs: number;
}

/** How far an operation has come that has not ended. */
export type Progress = Pick<PastOperation, "isAccepted" | "isStopped" | "isUnprinted" | "hasOtherNames" | "mayEndWell">;

/** What an answer says of an operation: its end, or that the terminal has it; undefined where it isn't about that one. */
export type SaidOf = (route: string, ask: QuestionFields | undefined) => OperationEnd | "begun" | undefined;

/** When a question was asked, on `nowMs`'s scale, and over which device, where its mark is known. */
export interface AskedWay {
  readonly askedMs: number;
  readonly device: string | undefined;
}

const noProgress: Progress = {
  isAccepted: false,
  isStopped: false,
  isUnprinted: false,
  hasOtherNames: false,
  mayEndWell: false,
};

/** How an operation is proven to have ended. */
export type SettledEnd = Pick<SettledRecord, "result" | "by" | "note">;

/** How many operations of unknown outcome are listed: the newest. */
const unknownMax = 100;

/** How many are kept, so that they can be settled: a box that leaves more has nobody who looks. */
const openMax = 1_000;

/** Records of an operation: its sending and its outcome. */
const recordsOfOne = 2;

/**
 * How many sendings are remembered at most, however large the journal is: one every 5 s all day, of some 1.3 kB each under a key of its own,
 * 21 MB.
 */
const recentMax = 16_384;

/**
 * Milliseconds after the start in which a request that was on the line when the process before ended isn't sent once more: browsers,
 * libcurl and Java repeat a POST by themselves when a kept connection ends without an answer, and systemd keeps the port open meanwhile.
 * A person takes longer, and has looked.
 */
const resentMs = 60_000;

export class Journal implements OperationHistory {
  readonly #onFailure: JournalOptions["onFailure"];
  readonly #recorder: Recorder;
  readonly #report: JournalReport;
  readonly #onUnknown: JournalOptions["onUnknown"];
  readonly #recent: RecentOperations;
  #open: OpenOperation[] = [];
  /** By the mark of a device, the services that have sent something over it. */
  readonly #servicesOver = new Map<string, Set<string>>();
  /** What is being recorded, and is sent then. */
  readonly #recording = new Set<SentRecord>();
  /** What was open, until it was settled as failed. */
  readonly #failed = new WeakMap<Sending, OpenOperation>();
  /** What was on the line when a process before ended, but for what is proven to have failed. */
  #cutOff: readonly SentRecord[] = [];
  /** When the journal was first read. */
  #foundMs = 0;
  #unknownTotal = 0;
  #isReadable = false;
  /** From when on nothing that is missing from it is of the last day. */
  #wholeFromMs = 0;
  /** How many sendings are remembered. */
  readonly #recentMax: number;
  /** It was reported that less than a day of operations is known. */
  #isTooMuch = false;
  #onOpened: () => void = () => {};

  constructor({ folder, bytes, onFailure, report, onUnknown, disk = nodeDisk }: JournalOptions) {
    this.#onFailure = onFailure;
    this.#report = report;
    this.#onUnknown = onUnknown;
    this.#recentMax = Math.min(Math.floor(bytes / slotBytes / recordsOfOne), recentMax);
    this.#recent = new RecentOperations(this.#recentMax);
    this.#recorder = new Recorder({
      ...{ disk, folder, bytes, report },
      onFirstRead: (found) => this.#found(found),
      onReplaced: () => {
        this.#wholeFromMs = nowMs() + recentMs;
      },
    });
  }

  /** `ok`, or why it can't be written and what to do. */
  get state(): string {
    return this.#recorder.failure ?? "ok";
  }

  /** False until it was first read: a disk may be away at the start. */
  get isReadable(): boolean {
    return this.#isReadable;
  }

  get isWhole(): boolean {
    return this.#isReadable && nowMs() >= Math.max(this.#wholeFromMs, this.#recent.allFromMs);
  }

  /** How many operations of unknown outcome there are, also those too old for `unknown`. */
  get unknownTotal(): number {
    return this.#unknownTotal;
  }

  /** The newest operations of unknown outcome, the last one last. */
  unknown(): readonly UnknownOperation[] {
    return this.#open.slice(-unknownMax).map(({ sent, cause }) => asUnknown(sent, cause));
  }

  /**
   * Operations whose tills may send them again to learn how they ended: of unknown outcome, in flight or about to be, or followed and
   * without an end.
   */
  unended(): readonly Pick<SentRecord, "service" | "route" | "key">[] {
    return [...this.#recent.unended(), ...this.#open.map(({ sent }) => sent), ...this.#recording];
  }

  /** The operations of unknown outcome that can still be settled, the last one last. */
  get open(): readonly OpenOperation[] {
    return this.#open;
  }

  /** Called whenever there are more of them. */
  set onOpened(opened: () => void) {
    this.#onOpened = opened;
  }

  /** Records that posline started. */
  async start(): Promise<void> {
    await this.#recorder.add({ kind: "start", timeMs: Date.now(), version }).recorded;
  }

  refuseCopy(call: Call, route: Route): void {
    if (this.#isCopy(call, route, () => sentRecord(call, route, contracts[call.contract], undefined))) throw resent(call);
  }

  /** Begins the entry of a call that is about to be sent. Nothing is written yet. */
  begin(call: Call, route: Route, device?: string): OperationLogEntry {
    const contract = contracts[call.contract];
    const record = sentRecord(call, route, contract, device);
    let sent: PendingRecord | undefined;
    let sending: Sending | undefined;
    let isResent = false;
    let isNotClosed: (() => void) | undefined;
    let lastOrder = 0;
    let isOver = false;
    return {
      sent: async () => {
        lastOrder = this.#recent.lastOrder;
        sent = this.#recorder.add(record);
        this.#recording.add(record);
        const isRecorded = await sent.recorded;
        this.#recording.delete(record);
        isResent = this.#isCopy(call, route, () => record);
        if (isResent) throw resent(call);
        refuseOutdated(call, this.#recent.lastOrderOf(record));
        // It waited with nothing known under its key; what was learned meanwhile would be taken for its own end.
        if (call.isFresh === true && this.#recent.hadAny(record)) {
          throw notRecorded(route.path, "the terminal is known by now to have another operation under its key");
        }
        // Only now: an answer that came until here is about what was sent before. What was refused meanwhile doesn't go out any more.
        sending = isOver ? undefined : this.#recent.add(record, sent);
        this.#noteDevice(record);
        this.#noteForgotten(this.#ofMemory);
        if (!isOver) isNotClosed = this.#recent.closes(record);
        if (sending !== undefined) call.onSent?.(sending.order);
        // Looked up when the call came; by now another may have been sent, or the journal have been read.
        if (call.followMs !== undefined && sending !== undefined) {
          const isByAmount = settlingRulesOf(call.contract, route.path)?.isByAmount === true;
          refuseRepeated(call, record, this.#recent.before(record, sending, isByAmount ? sending.amount : undefined));
        }
        if (isRecorded || this.#onFailure === "relay") return;
        // A record that was never begun to be written says nothing, and must not take the place of one that does.
        if (this.#recorder.withdraw(sent)) sent = undefined;
        throw notRecorded(route.path, `it can't be recorded in the journal (${this.state})`);
      },
      ended: async (answer) => {
        isOver = true;
        // What its caller is answered is about the one before.
        const { payload: _, ...told } = isResent ? { ...answer, outcome: "not-sent" as const } : answer;
        const answered = answerFields(call, answer, record.ask);
        const ending = leavesUnknown(call, told, answered) ? { ...told, outcome: "unknown" as const } : told;
        if (sending !== undefined) {
          if (hasBegun(ending, answered)) this.#recent.ended(sending, saidBy(record, { ...ending, ...answered }));
          else this.#recent.remove(record, sending);
        }
        if (!hasBegun(ending, answered)) isNotClosed?.();
        if (isAbort(record, ending)) this.#recent.stopped(record, lastOrder);
        if (ending.outcome === "unknown")
          this.#add({ sent: record, place: sent, cause: "reported as unknown", sinceMs: nowMs() });
        if (sent === undefined) return;
        const begun = ending.outcome === "answered" ? (answered.begun ?? null) : undefined;
        const outcome = this.#recorder.add({ kind: "outcome", timeMs: Date.now(), sent, ...ending, ...answered, begun });
        if (sending !== undefined) noteOn(sending, outcome);
        await outcome.recorded;
      },
    };
  }

  find(service: string, route: string, key: string, amount?: number): PastOperation | undefined {
    const sent = { service, route, key: storedKey(key) };
    const found = this.#recent.find(sent, amount);
    if (found === undefined) return undefined;
    const { sending, times: _, hadGoodEnd: __, ...known } = found;
    const { sentMs, digest, ask, device, place, notes } = sending;
    const isInFlight = sending.endedMs === undefined;
    const isRecorded = (typeof place === "number" || place.isWritten) && notes.every(({ isWritten }) => isWritten);
    const isFresh = sending.isFresh && this.#recent.aloneSinceMs({ ...sent, digest }) !== undefined;
    const isLast = this.#recent.isLast(sent, sending);
    const mayBeCleared = this.#recent.mayBeCleared(service, sending);
    return { ...known, sentMs, digest, ask, device, isInFlight, isRecorded, isFresh, isLast, mayBeCleared };
  }

  async recorded(service: string, route: string, key: string, amount?: number): Promise<void> {
    const notes = this.#recent.find({ service, route, key: storedKey(key) }, amount)?.sending.notes ?? [];
    await Promise.all(notes.map(({ recorded }) => recorded));
  }

  lastOrder(service: string, key: string): number {
    return this.#recent.lastOrderOf({ service, key: storedKey(key) });
  }

  othersOpen(service: string, route: string, key: string): "recent" | "old" | undefined {
    return this.#recent.othersOpen({ service, route, key: storedKey(key) });
  }

  hadAny(service: string, key: string): boolean {
    return this.#recent.hadAny({ service, key: storedKey(key) });
  }

  mayHaveOthers(service: string, device: string): boolean {
    if (!this.isWhole) return true;
    // Over whichever device: the same terminal may have had another path.
    return [...this.#servicesOver].some(
      ([mark, services]) => !isByOtherContract(mark, device) && [...services].some((each) => each !== service),
    );
  }

  findOthers(service: string, key: string, device: string): OthersOperation | undefined {
    for (const other of this.#servicesOver.get(device) ?? []) {
      const found = other === service ? undefined : this.#recent.lastOver({ service: other, key: storedKey(key) }, device);
      if (found !== undefined) return { service: other, sentMs: found.sentMs, order: found.order };
    }
    return undefined;
  }

  followed(service: string, route: string, key: string, amount?: number): void {
    const recent = this.#recent.find({ service, route, key: storedKey(key) }, amount);
    if (recent !== undefined) recent.sending.isFollowed = true;
  }

  accepted(service: string, route: string, key: string, order: number): void {
    const recent = this.#recent.find({ service, route, key: storedKey(key) });
    if (recent !== undefined && this.lastOrder(service, key) <= order) this.#begun(recent.sending);
  }

  settled(service: string, route: string, key: string, end: OperationEnd, order: number): void {
    const sent = { service, route, key: storedKey(key) };
    const recent = this.#recent.find(sent);
    if (recent !== undefined && this.lastOrder(service, key) <= order) this.#settled(sent, recent, end);
  }

  /** What is recorded stays: a later question may have been answered about something else. */
  #settled(
    sent: Pick<SentRecord, "service" | "route" | "key">,
    { sending, end: before }: RecentOperation,
    end: OperationEnd,
  ): void {
    if (!mayBecome(before, end)) return;
    const { digest, place } = sending;
    const request = { ...sent, digest };
    sending.settled = end;
    const open = this.#open.filter((each) => isSameOperation(each.sent, request));
    for (const each of open) void this.#close(each, { result: end, by: "answer" });
    if (open.some((each) => each.place === place)) return;
    noteOn(
      sending,
      this.#recorder.add({ kind: "settled", timeMs: Date.now(), sent: place, digest, result: end, by: "answer" }),
    );
    const { service, route, key } = sent;
    this.#report.onSettled({ service, route, key, requestId: undefined, result: end, by: "answer" });
  }

  /**
   * Since when a question by its key can only be answered about this operation, on `nowMs`'s scale; undefined where the last day has
   * another one under the key, or one is under way.
   */
  aloneSinceMs({ sent }: OpenOperation): number | undefined {
    return this.#recent.aloneSinceMs(sent);
  }

  /** Whether that the terminal knows of none proves nothing: a batch was closed since, or records since are missing. */
  mayBeCleared({ sent, place }: OpenOperation): boolean {
    const sending = place === undefined ? undefined : this.#recent.at(sent, place);
    return sending === undefined || this.#recent.mayBeCleared(sent.service, sending);
  }

  /** Only of the last one under its key: of another no question can be answered. */
  progressOf({ sent }: OpenOperation): Progress {
    const recent = this.#recent.find(sent);
    return recent?.sending.digest === sent.digest ? recent : noProgress;
  }

  /** The answer to a question said that the terminal has it. */
  begun({ sent }: OpenOperation): void {
    const recent = this.#recent.find(sent);
    if (recent?.sending.digest === sent.digest && !recent.isAccepted) this.#begun(recent.sending);
  }

  /** That it failed is taken back by the terminal's own word. */
  #begun(sending: Sending): void {
    const { place, digest, settled, said, isFound } = sending;
    if ((isFound || said.begun === true) && settled !== "failed") return;
    sending.isFound = true;
    noteOn(sending, this.#recorder.add({ kind: "begun", timeMs: Date.now(), sent: place, digest }));
    if (settled !== "failed") return;
    sending.settled = undefined;
    const open = this.#failed.get(sending);
    if (open === undefined) return;
    this.#list(open);
    this.#onOpened();
  }

  /**
   * A question by this key was answered by one who knows the operation.
   * @param routes Those whose key is their own, and whose question it is.
   * @param saidOf What the answer says of an operation of a route, that is asked about by these fields.
   */
  heardOf(service: string, key: string, routes: readonly string[], { askedMs, device }: AskedWay, saidOf: SaidOf): void {
    const sent = { service, key: storedKey(key) };
    const recent = this.#recent.only(sent);
    if (recent === undefined || (recent.end !== undefined && recent.end !== "failed")) return;
    const { route, endedMs, device: sentOver } = recent.sending;
    if (!routes.includes(route) || endedMs === undefined || endedMs > askedMs || isByOtherContract(sentOver, device)) return;
    if (device !== undefined && isElsewhere(sentOver, device) && this.mayHaveOthers(service, device)) return;
    if (device !== undefined && this.findOthers(service, key, device) !== undefined) return;
    // Of what the terminal has an end need not be known: that there is none proves nothing then, but of what may be rolled back.
    if (recent.isAccepted && recent.end === undefined && !mayBeRolledBack(route)) return;
    const said = saidOf(route, recent.sending.ask);
    if (said === "begun") this.#begun(recent.sending);
    else if (said === "closed" && recent.isUnprinted) this.#settled({ ...sent, route }, recent, "unprinted");
    else if (said !== undefined) this.#settled({ ...sent, route }, recent, said);
  }

  /**
   * An operation of unknown outcome is proven to have ended: it is recorded, with all that were sent before with the same body under
   * the same key, and none of them is listed any more.
   * @returns true once that is on the disk; false when that isn't possible in time. Never rejects.
   */
  async settle(operation: OpenOperation, end: SettledEnd): Promise<boolean> {
    const all = this.#open.filter((each) => each === operation || isSameOperation(each.sent, operation.sent));
    const recorded = Promise.all(all.map((each) => this.#close(each, end)));
    // The terminal's word is about the operation, also where it was sent once more since, and that was answered.
    const recent = this.#recent.find(operation.sent);
    const isIt = recent?.sending.digest === operation.sent.digest && end.by === "answer" && isGoodEnd(end.result);
    if (recent !== undefined && isIt) this.#settled(operation.sent, recent, end.result);
    return (await recorded).every((each) => each);
  }

  /** Writes what waits, as far as the disk takes it, and gives the folder to the next one. */
  close(): Promise<void> {
    return this.#recorder.close();
  }

  /** What was there at the first opening: what had no outcome will never get one. */
  #found({ records, sequences, slots, missing, isLacking }: FoundRecords): void {
    const recent: UnknownOperation[] = [];
    const open: OpenOperation[] = [];
    const sinceMs = nowMs();
    this.#foundMs = sinceMs;
    const operations = joinOperations(records);
    this.#cutOff = cutOff(operations, records);
    let ageMs = Number.POSITIVE_INFINITY;
    for (const operation of operations) {
      const { sequence, sent, ending, lost, settled, isFound } = operation;
      // What was sent later is no older, whatever the box's clock was then; of one that was ahead it says nothing.
      const behindMs = Date.now() - sent.timeMs;
      if (behindMs >= 0) ageMs = Math.min(ageMs, behindMs);
      if (ending === undefined || hasBegun(ending, ending)) {
        this.#noteDevice(sent);
        const said = ending === undefined ? nothingSaid : saidInRecord(sent, ending);
        this.#recent.closedOlder(sent, sequence);
        this.#recent.addOlder(sent, sequence, behindMs < 0 ? 0 : ageMs, { said, isFound, settled: settled?.result });
      }
      if (ending !== undefined && isAbort(sent, ending)) this.#recent.stopped(sent, sequence);
      if (!isUnknown(operation)) continue;
      const cause = ending === undefined ? "no outcome recorded" : "reported as unknown";
      // What was lost before the last start was reported at that start.
      if (ending === undefined && !lost) recent.push(asUnknown(sent, cause));
      open.push({ sent, place: sequence, cause, sinceMs });
    }
    this.#recent.sort();
    this.#isReadable = true;
    const onClock = (timeMs: number) => sinceMs + Math.min(0, timeMs - Date.now());
    const gaps = gapsIn(records, missing);
    for (const { before } of gaps) this.#recent.missing(before);
    if (isLacking) this.#recent.missing();
    const missingMs = isLacking ? Date.now() : Math.max(...gaps.map(({ timeMs }) => timeMs));
    this.#wholeFromMs = onClock(missingMs) + recentMs;
    if (sinceMs < this.#wholeFromMs)
      this.#report.noticed(
        "records of the last day are missing from the journal, as where a disk fails: for a day after them a repetition of what they were about " +
          "isn't recognised, and answers say X-Posline-Repeat-Guard: off. Check the disk (sudo dmesg | tail)",
      );
    const [oldest] = records;
    const isOverwritten = oldest !== undefined && wasOverwritten({ records, sequences, missing });
    const overwrittenMs = isOverwritten ? onClock(oldest.record.timeMs) : Number.NEGATIVE_INFINITY;
    this.#recent.forgotten(overwrittenMs);
    // A ring that has not gone round has overwritten nothing.
    const ofFile = (sequences.at(-1) ?? 0) < slots ? lostBefore : tooSmall;
    this.#noteForgotten(sinceMs < overwrittenMs + recentMs ? ofFile : this.#ofMemory);
    if (open.length > 0) this.#report.found(recent, open.length - recent.length);
    // Since posline began, others may have come: the disk may have been away at first.
    this.#open = [...open, ...this.#open].slice(-openMax);
    this.#unknownTotal += open.length;
    if (open.length > 0) this.#onOpened();
  }

  #noteDevice({ device, service }: SentRecord): void {
    if (device === undefined) return;
    const services = this.#servicesOver.get(device) ?? new Set();
    this.#servicesOver.set(device, services.add(service));
  }

  /** Reports, once, that less than the last day is known. */
  #noteForgotten(notice: string): void {
    if (this.#isTooMuch || nowMs() >= this.#recent.allFromMs) return;
    this.#isTooMuch = true;
    this.#report.noticed(notice);
  }

  /** Why not all of a day is remembered: of as many as the file holds, or of as many as posline ever does. */
  get #ofMemory(): string {
    return this.#recentMax < recentMax ? tooSmall : tooMany;
  }

  /** Whether the same was on the line when a process before ended, a moment ago, and may have been carried out. */
  #isCopy(call: Call, route: Route, recordOf: () => SentRecord): boolean {
    if (call.followMs !== undefined || route.urgent || this.#cutOff.length === 0 || nowMs() - this.#foundMs > resentMs)
      return false;
    const record = recordOf();
    return this.#cutOff.some((each) => isSameRequest(each, record));
  }

  /** An operation is proven to have ended: one that failed may be sent again at once. */
  #ended(sent: SentRequest, result: OperationEnd): void {
    if (result === "failed") this.#cutOff = this.#cutOff.filter((each) => !isSameRequest(each, sent));
  }

  #add(operation: OpenOperation): void {
    this.#list(operation);
    this.#onUnknown?.(asUnknown(operation.sent, operation.cause));
    this.#onOpened();
  }

  #list(operation: OpenOperation): void {
    this.#open = [...this.#open, operation].slice(-openMax);
    this.#unknownTotal++;
  }

  /** One of whose sending there is no record has nothing that could be settled on the disk. */
  #close(operation: OpenOperation, { result, by, note }: SettledEnd): Promise<boolean> {
    const { place, sent } = operation;
    const { service, route, key, requestId, digest } = sent;
    const sending = place === undefined ? undefined : this.#recent.at(sent, place);
    if (sending !== undefined) {
      sending.settled = result;
      if (result === "failed") this.#failed.set(sending, operation);
    }
    this.#open = this.#open.filter((each) => each !== operation);
    this.#unknownTotal--;
    this.#ended(sent, result);
    this.#report.onSettled({ service, route, key, requestId, result, by });
    if (place === undefined) return Promise.resolve(true);
    const record = this.#recorder.add({ kind: "settled", timeMs: Date.now(), sent: place, digest, result, by, note });
    if (sending !== undefined) noteOn(sending, record);
    return record.recorded;
  }
}

/** @param advice What to do about it. */
const forgets = (than: string, advice: string) =>
  `more operations were sent within a day than ${than}: a repetition of an older one isn't recognised, and answers say ` +
  `X-Posline-Repeat-Guard: off. ${advice}`;

const tooSmall = forgets("the journal holds", "Give the journal more room (journal.bytes, 67108864 at most)");

const tooMany = forgets(
  `the ${recentMax} that posline remembers`,
  "No setting raises that: give some of the terminals to another box",
);

/** Zeros in place of the first records look like what was never written in a file that was made larger. */
const lostBefore =
  "more operations were sent within a day than the journal held before it was made larger, or its first records are lost, as where a disk " +
  "fails: for a day a repetition of one that isn't there any more isn't recognised, and answers say X-Posline-Repeat-Guard: off. Where " +
  "journal.bytes was not changed, check the disk (sudo dmesg | tail)";

/** What was learned of a sending is being written; a sending is kept for a day, and what was written isn't. */
function noteOn(sending: Sending, record: PendingRecord): void {
  sending.notes = [...sending.notes, record];
  void record.recorded.then(() => {
    sending.notes = sending.notes.filter(({ isWritten }) => !isWritten);
  });
}

/** Opens the journal of a folder. It doesn't fail: one that can't be written says so, and tries again at each request. */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const journal = new Journal(options);
  await journal.start();
  return journal;
}

function sentRecord(call: Call, route: Route, contract: Contract, device: string | undefined): SentRecord {
  const { requestId, service, body } = call;
  // Where nothing is checked the key hasn't been read yet.
  const fields = bodyFields(contract, call.key === undefined ? route.key : undefined, body, route);
  const key = call.key ?? fields.key;
  return {
    kind: "sent",
    timeMs: Date.now(),
    requestId: maskCardNumbers(requestId),
    service,
    route: route.path,
    // As it will be read: so what is found in memory is what is found after a restart.
    key: key === undefined ? undefined : storedKey(key),
    amount: fields.amount,
    digest: bodyDigest(body),
    ask: fields.ask,
    fresh: call.isFresh,
    device,
  };
}

/** Whether a request that ended so may have begun something. */
function hasBegun({ outcome }: Pick<OperationLogEnding, "outcome">, { begun }: AnswerFields): boolean {
  return outcome !== "not-sent" && begun !== false;
}

/** Whether it took back what stands under its key: /abort bears the key of the operation that it ends. */
function isAbort(sent: SentRecord, { outcome, status }: OperationLogEnding): sent is SentRecord & { readonly key: string } {
  return sent.route === "/abort" && sent.key !== undefined && outcome === "answered" && status === "success";
}

type SentRequest = Pick<SentRecord, "service" | "route" | "digest">;

const isSameRequest = (one: SentRequest, other: SentRequest) =>
  one.service === other.service && one.route === other.route && one.digest === other.digest;

/**
 * What was sent and has no outcome, where nothing was carried out since a later start: what comes by itself comes before that. By the
 * records' order, since the box's clock may have been set. That it ended otherwise than by failing lifts nothing.
 */
function cutOff(operations: readonly JournalOperation[], records: readonly StoredRecord[]): readonly SentRecord[] {
  const starts = records.filter(({ record }) => record.kind === "start").map(({ sequence }) => sequence);
  const done = operations.findLast(({ ending }) => ending !== undefined && ending.outcome !== "not-sent")?.sequence ?? 0;
  const since = starts.findLast((start) => start < done) ?? 0;
  return operations
    .filter(({ sequence, ending, settled }) => ending === undefined && settled?.result !== "failed" && sequence > since)
    .map(({ sent }) => sent);
}

/**
 * Whether others stood there before the oldest one, also where the file has been made larger since: the first number of all is 1. Where its
 * place is spoilt it is missing; and a file that was begun in place of one that was taken away has a later one, and says what it lacks.
 */
function wasOverwritten({ records, sequences: [first = 0], missing }: Omit<FoundRecords, "isLacking" | "slots">): boolean {
  return first > 1 && missing[0]?.from !== 1 && !records.some(({ record }) => record.kind === "lacking");
}

/** Records that are missing. */
interface Gap {
  /** The number of the record that follows. */
  readonly before: number;
  /** When that was written, as milliseconds since 1970. */
  readonly timeMs: number;
}

/**
 * Where records are missing. What a power cut tore is none of these: it was in the last batch of its process, and nobody was
 * told anything by it; more than a few are a spoilt page. A request is sent only when its record's batch is on the disk. So
 * where a record tells how a request ended, and that request's own record stands in the gap or behind it, the gap's batch was on the disk.
 */
function gapsIn(records: readonly StoredRecord[], missing: readonly SequenceRange[]): readonly Gap[] {
  const gaps: Gap[] = records.flatMap(({ sequence: before, record: { kind, timeMs } }) =>
    kind === "lacking" ? [{ before, timeMs }] : [],
  );
  let at = records.length - 1;
  // The next start behind what is looked at; behind all it is this process's own.
  let start = (records.at(-1)?.sequence ?? 0) + 1;
  // The last sending of which a record between tells how it ended.
  let lastTold = 0;
  for (const { from, to } of missing.toReversed()) {
    for (let each = records[at]; each !== undefined && each.sequence > to; each = records[--at]) {
      const { sequence, record } = each;
      if (record.kind === "start") [start, lastTold] = [sequence, 0];
      else if ("sent" in record && typeof record.sent === "number") lastTold = Math.max(lastTold, record.sent);
    }
    const isTorn = to - from < tornMax && start <= from + batchMax && lastTold < from;
    const next = records[at + 1];
    if (!isTorn && next !== undefined) gaps.push({ before: next.sequence, timeMs: next.record.timeMs });
  }
  return gaps;
}

/** What a call is answered that was on the line when posline ended, and came once more by itself. */
function resent({ route, contract }: Call): Fault {
  const state = "the same request was on the line when posline stopped a moment ago, and its answer is lost";
  return new Fault("broken", `Cannot send ${route} once more: ${state}. ${checkFirst[contract]}`, { reason: "sent-before" });
}

/** @throws Fault where a call that is followed is about to be sent, and another was sent under its key that may have been carried out. */
function refuseRepeated({ route }: Call, { digest }: SentRecord, before: RecentOperation | undefined): void {
  if (before === undefined || before.end === "failed") return;
  const { sentMs, digest: sentBefore } = before.sending;
  const when = `was sent at ${new Date(sentMs).toISOString()}, after this call came or before the journal could be read`;
  const details = { sentBefore: true } as const;
  if (sentBefore !== digest) {
    throw new Fault(
      "reused",
      `Cannot send ${route}: another body with its key ${when}: ask about that one first. Nothing was sent`,
      details,
    );
  }
  const fault = notRecorded(route, `the same ${when}: send the same call again, and it is asked about`);
  throw new Fault(fault.kind, fault.message, { ...fault.details, ...details });
}

/** @throws Fault where something was sent under a call's key after the terminal was asked about that: the answer would be about it. */
function refuseOutdated({ route, askedAtOrder }: Call, lastOrder: number): void {
  if (askedAtOrder === undefined || lastOrder <= askedAtOrder) return;
  throw notRecorded(
    route,
    "another operation was sent under its key meanwhile: send the same call again, and that is asked about",
  );
}

/** Nothing goes out because of the journal; `state` says why. */
function notRecorded(path: string, state: string): Fault {
  return new Fault("unavailable", `Cannot send ${path}: ${state}. ${nothingSent}`, { reason: "not-recorded" });
}
