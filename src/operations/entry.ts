import type { Route } from "../contract/contract.ts";
import { contracts } from "../contract/contracts.ts";
import type { OperationLogEnding, OperationLogEntry } from "../contract/operation-log.ts";
import { settlingRulesOf } from "../contract/settling.ts";
import type { Call } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { Fault, nothingSent } from "../core/fault.ts";
import type { OperationEnd } from "../core/followed.ts";
import { sentRecord } from "../journal/body-fields.ts";
import { isSameOperation, type SentRecord } from "../journal/record.ts";
import type { Recorder } from "../journal/recorder.ts";
import type { PendingRecord } from "../journal/write-queue.ts";
import type { Fact } from "../settle/fact.ts";
import { provenEnd } from "../settle/judge.ts";
import { resent } from "./copies.ts";
import { ownAnswer, recordedOf } from "./own-answer.ts";
import { isAbort } from "./recall.ts";
import { addFact, knownOfOne, mayHaveBegun, newSending, noteOn, operationOf, type Sending, unfailed } from "./sending.ts";
import type { UnderKey } from "./under-key.ts";

/** What an entry writes to: the operations of its box. */
export interface EntryBook {
  readonly memory: UnderKey;
  /** undefined if no journal is kept. */
  readonly recorder: Recorder | undefined;
  /** Whether a call that can't be recorded is refused. */
  readonly refusesUnrecorded: boolean;
  /** Records being written, whose calls are sent next. */
  readonly recording: Set<SentRecord>;
  /** True if all of the last day is known. */
  isWhole(): boolean;
  isCopy(call: Call, route: Route, record: SentRecord): boolean;
  /** Takes note of a sending that goes out now. */
  took(sending: Sending, call: Call): void;
  /** Takes a sending out of which nothing has begun. */
  forget(sending: Sending): void;
  unknown(sending: Sending): void;
  changed(): void;
}

/**
 * Where a call is, from its turn on the line to its end, and what a call of `OperationLogEntry` leads to:
 *
 * | state | `sent`                                                     | `ended`                                               |
 * |-------|------------------------------------------------------------|-------------------------------------------------------|
 * | begun | out; copy, if the one that it copies may be carried out;   | over: never sent; a `sent` that still waits for its   |
 * |       | begun, if it may not be sent                               | record sends nothing                                  |
 * | out   | called once                                                | over: its outcome is its answer's, or unknown         |
 * | copy  | called once                                                | over: not sent; an answer is about what it copies     |
 * | over  | over                                                       | called once                                           |
 */
type EntryState = "begun" | "out" | "copy" | "over";

/**
 * The entry of one call. Its record is on the disk before the call goes out, and its outcome before its caller learns it. A call that ends
 * while its record is being written doesn't go out any more.
 */
export class Entry implements OperationLogEntry {
  readonly #book: EntryBook;
  readonly #call: Call;
  readonly #route: Route;
  readonly #record: SentRecord;
  #state: EntryState = "begun";
  #place: PendingRecord | undefined;
  #sending: Sending | undefined;
  /** The last sending before this one. */
  #orderBefore = 0;
  #takeBackClose = () => {};

  constructor(book: EntryBook, call: Call, route: Route, device: string | undefined) {
    this.#book = book;
    this.#call = call;
    this.#route = route;
    this.#record = sentRecord(call, route, contracts[call.contract], device);
  }

  async sent(): Promise<void> {
    const { memory, recorder, recording, refusesUnrecorded } = this.#book;
    this.#orderBefore = memory.lastOrder;
    this.#place = recorder?.add(this.#record);
    recording.add(this.#record);
    const isRecorded = (await this.#place?.recorded) ?? true;
    recording.delete(this.#record);
    if (this.#book.isCopy(this.#call, this.#route, this.#record)) {
      if (this.#state === "begun") this.#state = "copy";
      throw resent(this.#call, this.#route);
    }
    if (this.#call.decided?.stands() === false) throw notSent(this.#route, sentMeanwhile);
    if (this.#state === "begun") this.#goesOut();
    if (isRecorded || !refusesUnrecorded) return;
    // A record of which nothing was written yet says nothing, and must not take the place of one that does.
    if (this.#place !== undefined && recorder?.withdraw(this.#place) === true) this.#place = undefined;
    throw notSent(this.#route, `it can't be recorded in the journal (${recorder?.failure ?? "ok"})`);
  }

  /** The sending is taken only now: an answer that came until here is about earlier ones. */
  #goesOut(): void {
    const { memory } = this.#book;
    const sending = this.#newSending(memory.nextOrder(), undefined);
    memory.add(sending);
    this.#takeBackClose = memory.closes(this.#record, sending.order);
    this.#book.took(sending, this.#call);
    this.#sending = sending;
    this.#state = "out";
  }

  #newSending(order: number, endedMs: number | undefined): Sending {
    const { callId = this.#call.requestId, decided, contract } = this.#call;
    const [place, atMs] = [this.#place, nowMs()];
    return newSending(this.#record, {
      callId,
      place,
      order,
      atMs,
      endedMs,
      contract,
      names: decided?.names,
      facts: this.#first(atMs),
    });
  }

  /** That it is sent, with what may have been sent before and what is known under its key by then. */
  #first(atMs: number): readonly Fact[] {
    const { contract, route, decided } = this.#call;
    const { memory, recorder } = this.#book;
    const rules = settlingRulesOf(contract, route);
    const under = rules === undefined ? [] : memory.of(this.#record);
    const isOwn = ({ sent }: Sending) => isSameOperation(sent, this.#record);
    const others = unfailed(under.filter((each) => !isOwn(each)));
    const alone = rules?.baseline !== undefined || others.length > 0 ? null : {};
    const sent: Fact = { is: "sent", atMs, before: decided === undefined ? alone : (decided.before ?? null) };
    // An unknown earlier sending may exist: then a refusal of this one doesn't end that.
    const isInDoubt =
      under.some((each) => isOwn(each) && mayHaveBegun(each)) || (recorder !== undefined && !this.#book.isWhole());
    return isInDoubt ? [{ is: "earlier", atMs }, sent] : [sent];
  }

  async ended(answer: OperationLogEnding): Promise<OperationEnd | undefined> {
    const { memory, recorder } = this.#book;
    // The answer to a copy is about the sending before.
    const { payload, ...told } = this.#state === "copy" ? { ...answer, outcome: "not-sent" as const } : answer;
    this.#state = "over";
    this.#sending ??= this.#newSending(0, nowMs());
    const sending = this.#sending;
    sending.place = this.#place;
    sending.endedMs = nowMs();
    const { followMs } = this.#call;
    const operation = told.outcome === "not-sent" ? undefined : operationOf(sending);
    const said = operation && ownAnswer(operation, this.#call, { ...told, payload });
    if (said !== undefined) addFact(sending, { is: "answered", atMs: sending.endedMs, said });
    const known = operation && knownOfOne(sending, operation);
    const isOpen = known !== undefined && known.end === undefined;
    const provesNothing = followMs !== undefined && isOpen && !known.isAccepted;
    const ending = provesNothing && told.outcome === "answered" ? { ...told, outcome: "unknown" as const } : told;
    // A till that follows its operation is told so by a word, which stays.
    const isRefused = followMs === undefined && (said?.says === "refused" || said?.says === "sign");
    const fields = isRefused ? { begun: false } : operation && said && known && recordedOf(operation, said, known);
    if (isAbort(this.#record, ending)) memory.stopped(this.#record, this.#orderBefore);
    if (ending.outcome === "not-sent" || isRefused) {
      this.#book.forget(sending);
      this.#takeBackClose();
    }
    if (ending.outcome === "unknown") this.#book.unknown(sending);
    if (this.#place !== undefined && recorder !== undefined) {
      const outcome = recorder.add({ kind: "outcome", timeMs: Date.now(), sent: this.#place, ...ending, ...fields });
      noteOn(sending, outcome);
      await outcome.recorded;
    }
    this.#book.changed();
    return isRefused ? undefined : known && provenEnd(known);
  }
}

const sentMeanwhile = "another operation was sent under its key meanwhile: send the same call again, and that is asked about";

/** The fault of a call that isn't sent because of the journal; `state` says why. */
function notSent({ path }: Route, state: string): Fault {
  return new Fault("unavailable", `Cannot send ${path}: ${state}. ${nothingSent}`, { reason: "not-recorded" });
}
