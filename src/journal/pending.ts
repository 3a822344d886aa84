import type { OutcomeRecord, ProbeRecord, SentRecord, StartRecord } from "./record.ts";

/** A record on its way to the disk. */

/** An outcome refers to its sending, whose number is known once that is written. */
export type Unplaced = SentRecord | StartRecord | ProbeRecord | (Omit<OutcomeRecord, "sent"> & { readonly sent: Recording });

/** A record that was given to be written, as whoever gave it sees it. */
export interface Recording {
  /** True once it is on the disk; false when that can't be had in time. Never rejects. */
  readonly recorded: Promise<boolean>;
}

export class Pending implements Recording {
  readonly record: Unplaced;
  readonly recorded: Promise<boolean>;
  /** When it has been waited for long enough. */
  readonly dueMs: number;
  /** Nobody waits for it any more. */
  released = false;
  /** Its number in the order of all, once it was first written; it may be on the disk from then on. */
  sequence: number | undefined;
  #release: (recorded: boolean) => void = () => {};

  constructor(record: Unplaced, dueMs: number) {
    this.record = record;
    this.dueMs = dueMs;
    this.recorded = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  /** Lets go of whoever waits for it; the first time counts. */
  release(recorded: boolean): void {
    this.released = true;
    this.#release(recorded);
  }
}

/** The number of what was given to be written, once it has one. */
export const sequenceOf = (recording: Recording) => (recording instanceof Pending ? recording.sequence : undefined);

/** What is written to learn whether the disk works; nobody waits for it. */
export function probe(): Pending {
  const pending = new Pending({ kind: "probe", timeMs: Date.now() }, Number.POSITIVE_INFINITY);
  pending.release(false);
  return pending;
}
