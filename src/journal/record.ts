import { maskCardNumbers } from "../core/card-number.ts";
import type { Outcome } from "../core/fault.ts";
import { type Ids, isIds, isOperationEnd, type OperationEnd, type QuestionFields } from "../core/followed.ts";
import { isObject } from "../core/json-object.ts";
import { textBytesMax } from "./slot.ts";

/**
 * What stands in the journal, and how it is written: one JSON object a record, so that `strings` shows it where nothing else
 * can. No body stands in it, and no card number.
 */

/** A request is about to be sent. */
export interface SentRecord {
  readonly kind: "sent";
  /** Milliseconds since 1970, by the box's clock. */
  readonly timeMs: number;
  readonly requestId: string;
  readonly service: string;
  readonly route: string;
  /** pay_id or documentExtID. */
  readonly key?: string | undefined;
  /** The digits as the request has them; of a receipt the sum of its lines. */
  readonly amount?: string | undefined;
  /** The currency's three letters; absent where the request has none, and in records of an older posline. */
  readonly currency?: string | undefined;
  /** Of a receipt, the part that no drawer took, and the payment that it names. */
  readonly cashless?: string | undefined;
  readonly rrn?: string | undefined;
  /** The first half of the SHA-256 of the body, as hex. */
  readonly digest: string;
  /**
   * What the contract's question names the operation by, beside its key: absent where it can't be asked about by this record alone,
   * because a field was too long, has a card number in it, or isn't known.
   */
  readonly ask?: QuestionFields | undefined;
  /** What the terminal had under the key right before: `{}` for nothing. Written only beside `ask`, without which it says nothing. */
  readonly before?: Ids | undefined;
  /** The mark of the device that it was sent over. */
  readonly device?: string | undefined;
  /** Its till asked that it be followed to its end. */
  readonly followed?: true | undefined;
}

/** Whether both are sendings of one operation; one without a key is none but itself. */
export function isSameOperation(one: OperationName, other: OperationName): boolean {
  const { service, route, key, digest } = other;
  return key !== undefined && one.service === service && one.route === route && one.key === key && one.digest === digest;
}

type OperationName = Pick<SentRecord, "service" | "route" | "key" | "digest">;

/** What its caller got. */
export interface OutcomeRecord {
  readonly kind: "outcome";
  readonly timeMs: number;
  /** The sequence number of its `sent`. */
  readonly sent: number;
  readonly outcome: Outcome;
  readonly status?: string | undefined;
  readonly code?: number | undefined;
  /**
   * What the answer proves of the operation: that the terminal has it, or that it refused it before anything was begun; undefined if it
   * proves neither, or there is no answer.
   */
  readonly begun?: boolean | undefined;
  /** The name by which the contract asks about the operation, where only its answer gave it (qr: `trans`). */
  readonly learned?: string | undefined;
  /** Its end, where the contract has a success for that. */
  readonly end?: OperationEnd | undefined;
  /** The words of an error, where the contract has no question by which more could be learned. */
  readonly message?: string | undefined;
  /** The client had disconnected by then, and may not know the outcome. */
  readonly left?: boolean | undefined;
}

/** How an operation is proven to have ended, where that was learned after its outcome. */
export interface SettledRecord {
  readonly kind: "settled";
  readonly timeMs: number;
  /** The sequence number of its `sent`. */
  readonly sent: number;
  /** The digest of its `sent`: in a file that was replaced, another operation may have that number. */
  readonly digest: string;
  readonly result: OperationEnd;
  /** By an answer of the terminal, or by the person who looked at it. */
  readonly by: "answer" | "operator";
  /** What that person wrote. */
  readonly note?: string | undefined;
  /** The payment's number, by which a receipt may name it. */
  readonly rrn?: string | undefined;
}

/** An answer to a question said that the terminal has an operation whose own answer is lost. */
export interface BegunRecord {
  readonly kind: "begun";
  readonly timeMs: number;
  /** The sequence number of its `sent`, and that one's digest, as of a `settled`. */
  readonly sent: number;
  readonly digest: string;
}

/** posline started: what was sent before it and has no outcome will never get one. */
export interface StartRecord {
  readonly kind: "start";
  readonly timeMs: number;
  readonly version: string;
}

/** Written to learn whether the disk works again when nothing else waits; it says nothing, and no reader is given it. */
export interface ProbeRecord {
  readonly kind: "probe";
  readonly timeMs: number;
}

/** Records before this one may be lost that callers were answered by: their file was cut or taken away, or a page of it can't be read. */
export interface LackingRecord {
  readonly kind: "lacking";
  readonly timeMs: number;
}

export type JournalRecord = SentRecord | OutcomeRecord | BegunRecord | SettledRecord | StartRecord | LackingRecord;

/** A record with its place in the order of all. */
export interface StoredRecord {
  readonly sequence: number;
  readonly record: JournalRecord;
}

/** Characters of a text from outside; the longest of all records then fits into a slot (keys are at most 64 by the envelope). */
const charactersMax = {
  requestId: 64,
  service: 16,
  route: 48,
  key: 64,
  amount: 32,
  rrn: 32,
  status: 16,
  version: 32,
  note: 100,
  message: 100,
} as const;

/** A text from outside as it may be kept: no card number, no control character, no half of a character, and not endless. */
function kept(text: string, name: keyof typeof charactersMax): string {
  const max = charactersMax[name];
  // In this order: a card number that is cut can't be recognised any more.
  const masked = maskCardNumbers(text);
  const cut = masked.length > max ? `${masked.slice(0, max - 1)}…` : masked;
  return Buffer.from(cut, "utf8")
    .toString("utf8")
    .replace(/\p{Cc}/gu, "\uFFFD");
}

const keptOf = (text: string | undefined, name: keyof typeof charactersMax) =>
  text === undefined ? undefined : kept(text, name);

/** An operation's key as it is stored; a stored key stays the same. */
export const storedKey = (key: string): string => kept(key, "key");

/** Whether a stored key is that of a text as a till wrote it, of which the envelope may have cut the end, or as it is shown. */
export const isKeyOf = (stored: string | undefined, text: string): boolean =>
  stored === storedKey(text) || stored === storedKey(text.slice(0, charactersMax.key));

/** Whether a text would be stored as it is: neither cut nor masked. */
export const isStoredWhole = (text: string): boolean => storedKey(text) === text;

/** A record's text. */
export function writeRecord(record: JournalRecord | ProbeRecord): string {
  const time = new Date(record.timeMs).toISOString();
  if (record.kind === "probe" || record.kind === "lacking") return JSON.stringify({ kind: record.kind, time });
  if (record.kind === "start") return JSON.stringify({ kind: "start", time, version: kept(record.version, "version") });
  if (record.kind === "outcome") {
    const { sent, outcome, status, code, begun, learned, end, left, message } = record;
    // Codes are int32 (fiscal contract, Response model); what is longer is not a code and might be anything.
    const safe = code !== undefined && (code | 0) === code ? code : undefined;
    const isLeft = left === true ? true : undefined;
    const said = { status: keptOf(status, "status"), code: safe, begun, learned, end, message: keptOf(message, "message") };
    return JSON.stringify({ kind: "outcome", time, sent, outcome, ...said, left: isLeft });
  }
  if (record.kind === "begun") return JSON.stringify({ kind: "begun", time, sent: record.sent, digest: record.digest });
  if (record.kind === "settled") {
    const { sent, digest, result, by, note, rrn } = record;
    const words = { note: keptOf(note, "note"), rrn: keptOf(rrn, "rrn") };
    return JSON.stringify({ kind: "settled", time, sent, digest, result, by, ...words });
  }
  const counted = sentText(record, time);
  if (fits(counted)) return counted;
  // What is only counted by goes first.
  const { currency: _c, cashless: _p, rrn: _r, ...uncounted } = record;
  const whole = sentText(uncounted, time);
  if (fits(whole)) return whole;
  const alone = sentText({ ...uncounted, before: undefined }, time);
  if (fits(alone)) return alone;
  // Long words leave no room for all, and without what it is asked by its operation can't be asked about.
  const { ask: _, before: __, ...unasked } = uncounted;
  const text = sentText(unasked, time);
  return fits(text) ? text : sentText({ ...unasked, device: undefined }, time);
}

const fits = (text: string) => Buffer.byteLength(text) <= textBytesMax;

function sentText(sent: SentRecord, time: string): string {
  const { requestId, service, route, key, amount, currency, cashless, rrn, digest, ask, before, device, followed } = sent;
  return JSON.stringify({
    kind: "sent",
    time,
    id: kept(requestId, "requestId"),
    service: kept(service, "service"),
    route: kept(route, "route"),
    key: key === undefined ? undefined : storedKey(key),
    amount: keptOf(amount, "amount")?.replace(/[^\d.eE+-]/g, "?"),
    currency: currency?.slice(0, 3),
    cashless: keptOf(cashless, "amount"),
    rrn: keptOf(rrn, "rrn"),
    digest,
    device,
    followed,
    ask,
    before: ask === undefined ? undefined : before,
  });
}

/** Reads what `writeRecord` wrote; undefined for a record of a kind that a later posline writes. */
export function readRecord(text: string): JournalRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const [time, version, sent, outcome] = [value["time"], value["version"], value["sent"], value["outcome"]];
  const timeMs = typeof time === "string" ? Date.parse(time) : Number.NaN;
  if (Number.isNaN(timeMs)) return undefined;
  if (value["kind"] === "lacking") return { kind: "lacking", timeMs };
  if (value["kind"] === "start") return { kind: "start", timeMs, version: typeof version === "string" ? version : "" };
  if (value["kind"] === "sent") return readSent(value, timeMs);
  if (value["kind"] === "begun") return readBegun(value, timeMs);
  if (value["kind"] === "settled") return readSettled(value, timeMs);
  if (value["kind"] !== "outcome" || typeof sent !== "number" || !isOutcome(outcome)) return undefined;
  const { status, code, begun, learned, end, message } = value;
  return {
    kind: "outcome",
    timeMs,
    sent,
    outcome,
    status: typeof status === "string" ? status : undefined,
    code: typeof code === "number" ? code : undefined,
    ...(typeof begun === "boolean" ? { begun } : {}),
    ...(typeof learned === "string" ? { learned } : {}),
    ...(isOperationEnd(end) ? { end } : {}),
    ...(typeof message === "string" ? { message } : {}),
    ...(value["left"] === true ? { left: true } : {}),
  };
}

function readSent(value: Readonly<Record<string, unknown>>, timeMs: number): SentRecord | undefined {
  const text = (name: string) => {
    const found = value[name];
    return typeof found === "string" ? found : undefined;
  };
  const [requestId, service, route] = [text("id"), text("service"), text("route")];
  if (requestId === undefined || service === undefined || route === undefined) return undefined;
  const digest = text("digest") ?? "";
  const ask = readAsk(value["ask"]);
  const [key, amount, device] = [text("key"), text("amount"), text("device")];
  const over = device === undefined ? {} : { device };
  const [currency, cashless, rrn] = [text("currency"), text("cashless"), text("rrn")];
  const counted = { ...(currency && { currency }), ...(cashless && { cashless }), ...(rrn && { rrn }) };
  const followed = value["followed"] === true ? ({ followed: true } as const) : {};
  const sent = {
    kind: "sent",
    timeMs,
    requestId,
    service,
    route,
    key,
    amount,
    digest,
    ...over,
    ...counted,
    ...followed,
  } as const;
  if (ask === undefined) return sent;
  const { before } = value;
  return isIds(before) ? { ...sent, ask, before } : { ...sent, ask };
}

/** What tells a transaction from others, as it may be kept: whole, or not at all. */
export function keptIds(ids: Ids | undefined): Ids | undefined {
  const isKept = Object.values(ids ?? {}).every((text) => isStoredWhole(text));
  return isKept ? ids : undefined;
}

function readAsk(value: unknown): SentRecord["ask"] {
  if (!isObject(value)) return undefined;
  const fields: Record<string, string | number> = {};
  for (const [name, field] of Object.entries(value)) {
    // posline writes no number that a question couldn't hold as it is.
    if (typeof field !== "string" && (typeof field !== "number" || !Number.isSafeInteger(field))) return undefined;
    fields[name] = field;
  }
  return fields;
}

function readBegun({ sent, digest }: Readonly<Record<string, unknown>>, timeMs: number): BegunRecord | undefined {
  return typeof sent === "number" && typeof digest === "string" ? { kind: "begun", timeMs, sent, digest } : undefined;
}

function readSettled(value: Readonly<Record<string, unknown>>, timeMs: number): SettledRecord | undefined {
  const { sent, digest, result, by, note, rrn } = value;
  if (typeof sent !== "number" || typeof digest !== "string" || !isOperationEnd(result)) return undefined;
  if (by !== "answer" && by !== "operator") return undefined;
  const named = typeof rrn === "string" ? { rrn } : {};
  const settled = { kind: "settled", timeMs, sent, digest, result, by, ...named } as const;
  return typeof note === "string" ? { ...settled, note } : settled;
}

const isOutcome = (value: unknown): value is Outcome => value === "answered" || value === "not-sent" || value === "unknown";

/** An operation, of its one or two records: what was sent, and how it ended. */
export interface JournalOperation {
  /** The sequence number of its first record. */
  readonly sequence: number;
  readonly sent: SentRecord;
  /** What its caller got; undefined while it is in flight, and for ever when posline ended before. */
  readonly ending:
    | Pick<OutcomeRecord, "outcome" | "status" | "code" | "begun" | "learned" | "end" | "left" | "message">
    | undefined;
  /** posline ended before there was an outcome: it started anew after this was sent. */
  readonly lost: boolean;
  /** The answer to a question said that the terminal has it. */
  readonly isFound: boolean;
  /** How it is proven to have ended, where that was learned later. */
  readonly settled?: Pick<SettledRecord, "timeMs" | "result" | "by" | "note" | "rrn">;
}

/**
 * Joins records into operations, in the order of their sending. An outcome whose sending was overwritten says nothing, and so does
 * what settled it.
 */
export function joinOperations(records: readonly StoredRecord[]): readonly JournalOperation[] {
  const endings = new Map<number, NonNullable<JournalOperation["ending"]>>();
  const settled = new Map<number, SettledRecord>();
  const begun = new Map<number, BegunRecord>();
  let started = 0;
  for (const { sequence, record } of records) {
    if (record.kind === "outcome") endings.set(record.sent, record);
    else if (record.kind === "settled") settled.set(record.sent, record);
    else if (record.kind === "begun") {
      begun.set(record.sent, record);
      // The terminal's own word takes it back.
      if (settled.get(record.sent)?.result === "failed") settled.delete(record.sent);
    } else if (record.kind === "start") started = sequence;
  }
  return records.flatMap(({ sequence, record }) => {
    if (record.kind !== "sent") return [];
    const ending = endings.get(sequence);
    const isFound = begun.get(sequence)?.digest === record.digest;
    const operation = { sequence, sent: record, ending, lost: ending === undefined && sequence < started, isFound };
    const end = settled.get(sequence);
    return [end?.digest === record.digest ? { ...operation, settled: end } : operation];
  });
}

/** Whether the journal can't say how an operation ended, of one that is not in flight. */
export function isUnknown({ ending, settled }: JournalOperation): boolean {
  return settled === undefined && (ending === undefined || ending.outcome === "unknown");
}

/** An operation of which the journal alone can't say whether it was carried out. */
export interface UnknownOperation {
  /** When it was sent, as ISO 8601. */
  readonly time: string;
  readonly requestId: string;
  /** The id that no other call has; undefined where an earlier process sent it. */
  readonly callId?: string | undefined;
  readonly service: string;
  readonly route: string;
  readonly key: string | undefined;
  readonly amount: string | undefined;
  readonly currency?: string | undefined;
  readonly cause: "no outcome recorded" | "reported as unknown";
}

/** An operation as one whose outcome is unknown. */
export function asUnknown(sent: SentRecord, cause: UnknownOperation["cause"]): UnknownOperation {
  const { timeMs, requestId, service, route, key, amount, currency } = sent;
  return { time: new Date(timeMs).toISOString(), requestId, service, route, key, amount, currency, cause };
}
