import { createHash } from "node:crypto";
import type { Contract, Route } from "../contract/contract.ts";
import { contracts } from "../contract/contracts.ts";
import type { Call } from "../core/call.ts";
import { maskCardNumbers } from "../core/card-number.ts";
import { Fault, nothingSent, type Outcome, retryAfterS } from "../core/fault.ts";
import { version } from "../core/version.ts";
import { bodyFields } from "./body-fields.ts";
import { type Disk, nodeDisk } from "./disk.ts";
import { asUnknown, joinOperations, type SentRecord, type StoredRecord, type UnknownOperation } from "./record.ts";
import { type JournalReport, Recorder } from "./recorder.ts";
import type { Recording } from "./write-queue.ts";

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

/** One call in the journal. */
export interface JournalEntry {
  /** @throws Fault `unavailable` when it can't be recorded and the policy is to refuse it. */
  sent(): Promise<void>;
  /** Never rejects. */
  ended(ending: JournalEnding): Promise<void>;
}

export interface JournalEnding {
  readonly outcome: Outcome;
  readonly status?: string | undefined;
  readonly code?: number | undefined;
  /** The client had disconnected by then. */
  readonly left?: boolean | undefined;
}

/** How many operations of unknown outcome are listed: the newest. */
const unknownMax = 100;

/** Characters of a body's digest: 64 bits tell a shop's requests apart. */
const digestCharacters = 16;

export class Journal {
  readonly #onFailure: JournalOptions["onFailure"];
  readonly #recorder: Recorder;
  readonly #report: JournalReport;
  readonly #onUnknown: JournalOptions["onUnknown"];
  #unknown: UnknownOperation[] = [];
  #unknownTotal = 0;

  constructor({ folder, bytes, onFailure, report, onUnknown, disk = nodeDisk }: JournalOptions) {
    this.#onFailure = onFailure;
    this.#report = report;
    this.#onUnknown = onUnknown;
    this.#recorder = new Recorder({ disk, folder, bytes, report, onFirstRead: (records) => this.#found(records) });
  }

  /** `ok`, or why it can't be written and what to do. */
  get state(): string {
    return this.#recorder.failure ?? "ok";
  }

  /** How many operations of unknown outcome there are, also those too old for `unknown`. */
  get unknownTotal(): number {
    return this.#unknownTotal;
  }

  /** The newest operations of unknown outcome, the last one last. */
  unknown(): readonly UnknownOperation[] {
    return this.#unknown;
  }

  /** Records that posline started. */
  async start(): Promise<void> {
    await this.#recorder.add({ kind: "start", timeMs: Date.now(), version }).recorded;
  }

  /** Begins the entry of a call that is about to be sent. Nothing is written yet. */
  begin(call: Call, route: Route): JournalEntry {
    const contract = contracts[call.contract];
    const record = sentRecord(call, route, contract);
    let sent: Recording | undefined;
    return {
      sent: async () => {
        sent = this.#recorder.add(record);
        if ((await sent.recorded) || this.#onFailure === "relay") return;
        // A record that was never begun to be written says nothing, and must not take the place of one that does.
        if (this.#recorder.withdraw(sent)) sent = undefined;
        throw new Fault("unavailable", this.#refusal(route), {
          reason: "not-recorded",
          retryAfterS: retryAfterS["not-recorded"],
        });
      },
      ended: async (ending) => {
        if (ending.outcome === "unknown") this.#add(asUnknown(record, "reported as unknown"));
        if (sent === undefined) return;
        await this.#recorder.add({ kind: "outcome", timeMs: Date.now(), sent, ...ending }).recorded;
      },
    };
  }

  /** Writes what waits, as far as the disk takes it, and gives the folder to the next one. */
  close(): Promise<void> {
    return this.#recorder.close();
  }

  #refusal({ path }: Route): string {
    return `Cannot send ${path}: it can't be recorded in the journal (${this.state}). ${nothingSent}`;
  }

  /** What was there at the first opening: what had no outcome will never get one. */
  #found(records: readonly StoredRecord[]): void {
    const recent: UnknownOperation[] = [];
    const unknown = joinOperations(records).flatMap(({ sent, ending, lost }) => {
      if (ending !== undefined) return ending.outcome === "unknown" ? [asUnknown(sent, "reported as unknown")] : [];
      const operation = asUnknown(sent, "no outcome recorded");
      // What was lost before the last start was reported at that start.
      if (!lost) recent.push(operation);
      return [operation];
    });
    if (unknown.length > 0) this.#report.found(recent, unknown.length - recent.length);
    // Since posline began, others may have come: the disk may have been away at first.
    this.#unknown = [...unknown, ...this.#unknown].slice(-unknownMax);
    this.#unknownTotal += unknown.length;
  }

  #add(operation: UnknownOperation): void {
    this.#unknown = [...this.#unknown, operation].slice(-unknownMax);
    this.#unknownTotal++;
    this.#onUnknown?.(operation);
  }
}

/** Opens the journal of a folder. It doesn't fail: one that can't be written says so, and tries again at each request. */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const journal = new Journal(options);
  await journal.start();
  return journal;
}

function sentRecord(call: Call, route: Route, contract: Contract): SentRecord {
  const { requestId, service, body } = call;
  // Where nothing is checked the key hasn't been read yet.
  const fields = bodyFields(contract, call.key === undefined ? route.key : undefined, body);
  const key = call.key ?? fields.key;
  const hash = createHash("sha256");
  for (const piece of body) hash.update(piece);
  return {
    kind: "sent",
    timeMs: Date.now(),
    requestId: maskCardNumbers(requestId),
    service,
    route: route.path,
    key: key === undefined ? undefined : maskCardNumbers(key),
    amount: fields.amount,
    digest: hash.digest("hex").slice(0, digestCharacters),
  };
}
