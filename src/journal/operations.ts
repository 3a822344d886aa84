import type { OutcomeRecord, SentRecord, Stored } from "./record.ts";

/** The records of a journal as operations: what was sent, and how it ended. */

export interface Operation {
  /** The sequence number of its first record. */
  readonly sequence: number;
  readonly sent: SentRecord;
  /** What its caller was told; undefined while it is in flight, and for ever when posline ended before. */
  readonly ending: Pick<OutcomeRecord, "outcome" | "status" | "code" | "left"> | undefined;
  /** posline ended before there was an outcome: it started anew after this was sent. */
  readonly lost: boolean;
}

/** Joins records into operations, in the order of their sending. An outcome whose sending was overwritten tells nothing. */
export function operationsOf(records: readonly Stored[]): readonly Operation[] {
  const endings = new Map<number, NonNullable<Operation["ending"]>>();
  let started = 0;
  for (const { sequence, record } of records) {
    if (record.kind === "outcome") endings.set(record.sent, record);
    else if (record.kind === "start") started = sequence;
  }
  return records.flatMap(({ sequence, record }) => {
    if (record.kind !== "sent") return [];
    const ending = endings.get(sequence);
    return [{ sequence, sent: record, ending, lost: ending === undefined && sequence < started }];
  });
}

/** An operation of which nobody can say by the journal alone whether it was carried out. */
export interface UnknownOperation {
  /** When it was sent, as ISO 8601. */
  readonly time: string;
  readonly requestId: string;
  readonly service: string;
  readonly route: string;
  readonly key: string | undefined;
  readonly amount: string | undefined;
  readonly cause: "no outcome recorded" | "told as unknown";
}

/** An operation as one whose outcome is unknown. */
export function asUnknown(sent: SentRecord, cause: UnknownOperation["cause"]): UnknownOperation {
  const { timeMs, requestId, service, route, key, amount } = sent;
  return { time: new Date(timeMs).toISOString(), requestId, service, route, key, amount, cause };
}
