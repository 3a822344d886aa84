import type { Route } from "../contract/contract.ts";
import { contracts } from "../contract/contracts.ts";
import type { OperationLog, OperationLogEntry } from "../contract/operation-log.ts";
import type { Call } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { isGoodEnd } from "../core/followed.ts";
import { version } from "../core/version.ts";
import { sentRecord } from "../journal/body-fields.ts";
import { type Disk, nodeDisk } from "../journal/disk.ts";
import { asUnknown, isSameOperation, type SentRecord, type SettledRecord, type UnknownOperation } from "../journal/record.ts";
import { type FoundRecords, type JournalReport, Recorder } from "../journal/recorder.ts";
import type { Fact } from "../settle/fact.ts";
import { type Copies, resent } from "./copies.ts";
import { Entry, type EntryBook } from "./entry.ts";
import { recall, rememberedOf, sendingsMax, tooMany, tooSmall } from "./recall.ts";
import {
  addFact,
  dayMs,
  endOfOne,
  isOld,
  isPersonsWord,
  noteOn,
  type Sending,
  type Together,
  togetherOf,
  unfailed,
} from "./sending.ts";
import { UnderKey } from "./under-key.ts";

/**
 * The operations of a box: the facts of each, as its journal has them. Before the first byte of a request that moves money, prints or
 * changes state its record is on the disk, and so is its outcome before its caller learns it; an operation without an outcome after a crash
 * is unknown. Nothing is ever sent again. `hearing.ts` judges what an answer proves.
 *
 * A disk that fails or hangs must not stop a shop: within `recordMs` each request goes on without a record, or is refused, as `onFailure`
 * says.
 */

export interface JournalOptions {
  /** Folder of the journal's file. */
  readonly folder: string;
  /** Bytes of the journal's file. */
  readonly bytes: number;
  /** Whether a request that can't be recorded is refused, or sent without a record. */
  readonly onFailure: "refuse" | "relay";
  readonly report: JournalReport;
  /** As in `RecorderOptions`. */
  readonly lastRecord?: string | undefined;
  /** Called with each operation whose caller learns that its outcome is unknown, and with one whose failure is taken back. */
  readonly onUnknown?: ((operation: UnknownOperation) => void) | undefined;
  /** The box's own disk, unless a test gives another. */
  readonly disk?: Disk | undefined;
}

/** How many operations of unknown outcome are listed, and how many of the newest are kept so that they can be settled. */
const listedMax = 100;
const keptMax = 1_000;

const reported = "reported as unknown";

/** The proven end of an operation. */
export type SettledEnd = Pick<SettledRecord, "result" | "by" | "note" | "rrn">;

export class Operations implements OperationLog {
  readonly #options: JournalOptions | undefined;
  /** undefined if no journal is kept. */
  readonly #recorder: Recorder | undefined;
  readonly #memory: UnderKey;
  #listed: readonly Sending[] = [];
  #unknownTotal = 0;
  readonly #followed = new Set<Sending>();
  readonly #book: EntryBook;
  /** undefined until the journal was first read. */
  #copies: Copies | undefined;
  /** True once it was reported that less than a day of operations is known. */
  #isTooMuch = false;
  readonly #listeners = new Set<() => void>();

  /** @param options undefined if no journal is kept: then this process knows its own sendings as long as it runs. */
  constructor(options?: JournalOptions) {
    this.#options = options;
    this.#memory = new UnderKey(rememberedOf(options?.bytes));
    this.#recorder = options === undefined ? undefined : this.#recorderOf(options);
    this.#book = {
      memory: this.#memory,
      recorder: this.#recorder,
      refusesUnrecorded: options?.onFailure === "refuse",
      recording: new Set(),
      isWhole: () => this.isWhole,
      isCopy: (call, route, record) => this.#copies?.has(call, route, () => record) === true,
      took: (sending, { followMs }) => {
        if (followMs !== undefined) this.followed(sending);
        this.#noteForgotten();
      },
      forget: (sending) => {
        this.#memory.remove(sending);
        this.#followed.delete(sending);
      },
      unknown: (sending) => this.#unknown(sending),
      changed: () => this.#changed(),
    };
  }

  #recorderOf({ disk = nodeDisk, folder, bytes, report, lastRecord }: JournalOptions): Recorder {
    const onFirstRead = (found: FoundRecords) => this.#found(found, report);
    const onReplaced = () => this.#memory.missing(0, nowMs());
    return new Recorder({ disk, folder, bytes, report, lastRecord, onFirstRead, onReplaced });
  }

  /** `ok`, or why the journal can't be written and what to do. */
  get state(): string {
    return this.#recorder?.failure ?? "ok";
  }

  /** False until the journal was first read: a disk may be away at the start. */
  get isReadable(): boolean {
    return this.#copies !== undefined;
  }

  /** True if all of the last day is known: an operation that isn't found was not sent. */
  get isWhole(): boolean {
    return this.isReadable && this.#memory.isWhole;
  }

  /** Count of operations of unknown outcome, also those too old for `unknown`. */
  get unknownTotal(): number {
    return this.#unknownTotal;
  }

  /** The operations of unknown outcome that can still be settled, in order of sending. */
  get listed(): readonly Sending[] {
    return this.#listed;
  }

  /** What a person may settle: what is unknown, and what the terminal took on without an end that is known. In order of sending. */
  get open(): readonly Sending[] {
    const isOpen = (each: Sending) => each.endedMs !== undefined && endOfOne(each) === undefined;
    return [...new Set([...this.#listed, ...this.#memory.all.filter(isOpen)])].sort((one, other) => one.order - other.order);
  }

  /** What a person has settled within the last day, and may correct. */
  get settledByPerson(): readonly Sending[] {
    return this.#memory.all.filter(isPersonsWord);
  }

  /** The newest unknown operations, for people. */
  unknown(): readonly UnknownOperation[] {
    return this.#listed.slice(-listedMax).map(({ sent, cause = reported }) => asUnknown(sent, cause));
  }

  /** Notes that a till follows the sending, and sends it again to learn how it ended. */
  followed(sending: Sending): void {
    sending.isFollowed = true;
    this.#followed.add(sending);
  }

  /** Operations whose end somebody wants to know: unknown, or followed by this process and without an end. After a day that is unknown. */
  wanted(): readonly Sending[] {
    for (const each of this.#followed) {
      const isOver = each.endedMs !== undefined && this.togetherOf(each).end !== undefined;
      if (!isOver && !isOld(each)) continue;
      this.#followed.delete(each);
      if (!isOver && each.cause === undefined) this.#unknown(each);
    }
    return [...new Set([...this.#followed, ...this.#listed])];
  }

  /** The marks of devices over which, within so many milliseconds, something went out without a known end. */
  owing(withinMs: number): ReadonlySet<string | undefined> {
    const sinceMs = nowMs() - withinMs;
    return new Set(this.listed.filter(({ atMs }) => atMs >= sinceMs).map(({ sent }) => sent.device));
  }

  /** Records that a new configuration must not forget: those without an end, in flight, or about to be. */
  unended(): readonly SentRecord[] {
    const inFlight = this.#memory.all.filter(({ endedMs }) => endedMs === undefined);
    return [...[...inFlight, ...this.wanted()].map(({ sent }) => sent), ...this.#book.recording];
  }

  /**
   * Calls `listener` when an operation becomes unknown, or an answer or a person says something of one. @returns a function that stops
   * that.
   */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Records that posline started. */
  async start(): Promise<void> {
    await this.#recorder?.add({ kind: "start", timeMs: Date.now(), version }).recorded;
  }

  /** Writes waiting records, as far as the disk takes them, and frees the folder for the next process. */
  async close(): Promise<void> {
    await this.#recorder?.close();
  }

  /** What stands under a key of a service, in order of sending. */
  under(service: string, key: string | undefined): readonly Sending[] {
    return this.#memory.of({ service, key });
  }

  /** Sendings of other services under a key, over a device. */
  underByOthers({ service, key }: Pick<SentRecord, "service" | "key">, device: string | undefined): readonly Sending[] {
    return device === undefined ? [] : unfailed(this.#memory.ofOthers({ service, key }, device));
  }

  /** All sendings of the operation of one sending, in order. */
  sendingsOf(sending: Sending): readonly Sending[] {
    const same = this.#memory.of(sending.sent).filter(({ sent }) => isSameOperation(sent, sending.sent));
    return same.includes(sending) ? same : [sending];
  }

  /** The sending of the operation that is asked about: the last that may have come to something, otherwise the last. */
  lastOf(sending: Sending): Sending {
    const all = this.sendingsOf(sending);
    return unfailed(all).at(-1) ?? all.at(-1) ?? sending;
  }

  togetherOf(sending: Sending): Together {
    return togetherOf(this.sendingsOf(sending));
  }

  lacksSince(sending: Sending): boolean {
    return this.#memory.lacksSince(sending);
  }

  wasClosedSince(sending: Sending): boolean {
    return this.#memory.wasClosedSince(sending);
  }

  refuseCopy(call: Call, route: Route): void {
    const recordOf = () => sentRecord(call, route, contracts[call.contract], undefined);
    if (this.#copies?.has(call, route, recordOf) === true) throw resent(call, route);
  }

  /** Begins the entry of a call that is about to be sent. Nothing is written yet. */
  begin(call: Call, route: Route, device?: string): OperationLogEntry {
    return new Entry(this.#book, call, route, device);
  }

  /** Notes that an answer to a question said that the terminal has the operation, which takes back that it failed. */
  begun(sending: Sending, fact: Fact): void {
    const { place, sent } = sending;
    const wasFailed = endOfOne(sending) === "failed";
    addFact(sending, fact);
    if (place !== undefined && this.#recorder !== undefined)
      noteOn(sending, this.#recorder.add({ kind: "begun", timeMs: Date.now(), sent: place, digest: sent.digest }));
    if (wasFailed) {
      if (sending.cause !== undefined) this.#list([...this.#listed, sending], 1);
      if (sending.isFollowed) this.#followed.add(sending);
      // Who was told "failed" must not go on to believe it.
      this.#tellUnknown(sending, sending.cause ?? reported);
    }
    this.#changed();
  }

  /**
   * Ends an operation by proof. If it has several sendings, a good end is said of all that are unknown; so is a person's word.
   * @returns true once that is on the disk; false if that isn't possible in time. Never rejects.
   */
  async settle(sending: Sending, end: SettledEnd): Promise<boolean> {
    const isOfAll = isGoodEnd(end.result) || end.by === "operator";
    // What was sent more than a day before or after is another operation.
    const isOfDay = ({ atMs }: Sending) => Math.abs(atMs - sending.atMs) < dayMs;
    const same = isOfAll ? this.#listed.filter((each) => isSameOperation(each.sent, sending.sent) && isOfDay(each)) : [];
    const recorded = [...new Set([sending, ...same])].map((each) => this.#close(each, end));
    this.#changed();
    return (await Promise.all(recorded)).every((each) => each);
  }

  /** Writes the end of one sending. A sending without a record has nothing that could be settled on the disk. */
  #close(sending: Sending, { result, by, note, rrn }: SettledEnd): Promise<boolean> {
    const { place, sent, callId } = sending;
    const { service, route, key, requestId, digest } = sent;
    const others = this.#listed.filter((each) => each !== sending);
    this.#list(others, others.length - this.#listed.length);
    addFact(sending, { is: "ended", atMs: nowMs(), end: result, by });
    if (result === "failed") this.#copies?.failed(sent);
    this.#options?.report.onSettled({ service, route, key, requestId, callId, result, by });
    if (place === undefined || this.#recorder === undefined) return Promise.resolve(true);
    const end = { result, by, note, rrn };
    const record = this.#recorder.add({ kind: "settled", timeMs: Date.now(), sent: place, digest, ...end });
    noteOn(sending, record);
    return record.recorded;
  }

  #unknown(sending: Sending): void {
    sending.cause = reported;
    this.#list([...this.#listed, sending], 1);
    this.#tellUnknown(sending, sending.cause);
  }

  /** Lists the sendings of unknown outcome, in order. @param more How many have come, also if they are too many to be listed. */
  #list(sendings: readonly Sending[], more: number): void {
    this.#listed = sendings.slice(-keptMax);
    this.#unknownTotal += more;
  }

  #tellUnknown({ sent, callId }: Sending, cause: UnknownOperation["cause"]): void {
    this.#options?.onUnknown?.({ ...asUnknown(sent, cause), callId });
  }

  /** Takes over the records of the first opening: a sending without an outcome there will never get one. */
  #found(found: FoundRecords, report: JournalReport): void {
    const { copies, listed, recent, followed, lacks, forgets } = recall(found, this.#memory);
    this.#copies = copies;
    if (lacks !== undefined) report.noticed(lacks);
    this.#noteForgotten(forgets);
    if (listed.length > 0) report.found(recent, listed.length - recent.length);
    // Sendings of this process may be listed already: the disk may have been away at first.
    this.#list([...listed, ...this.#listed], listed.length);
    for (const each of followed) this.followed(each);
    this.#changed();
  }

  /** Reports, once, that less than the last day is known. */
  #noteForgotten(notice = this.#memory.max < sendingsMax ? tooSmall : tooMany): void {
    if (this.#isTooMuch || this.#memory.isAll) return;
    this.#isTooMuch = true;
    this.#options?.report.noticed(notice);
  }
}

/** Opens the operations of a journal's folder. Never fails: a journal that can't be written says so, and tries again at each request. */
export async function openOperations(options?: JournalOptions): Promise<Operations> {
  const operations = new Operations(options);
  await operations.start();
  return operations;
}
