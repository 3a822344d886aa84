import type { Amount } from "./call.ts";
import type { FaultReason, Outcome } from "./fault.ts";
import type { OperationEnd, OperationResult } from "./followed.ts";
import { logged, loggedHead, loggedSentence } from "./log-text.ts";

/**
 * The fields that the log may have. Each record is written out field by field here, never as it was passed: an object that brings more than
 * its type says, by a mistake elsewhere, still leaves the rest behind.
 */

/** A request and its ending. */
export interface ExchangeRecord {
  readonly requestId: string;
  /** The call's `callId`; for watchers, and not in the log. */
  readonly callId?: string | undefined;
  /** The money that the request names, the call whose operation it asks about, and the end that its answer alone proves: as `callId`. */
  readonly amount?: Amount | undefined;
  readonly about?: string | undefined;
  readonly end?: OperationEnd | undefined;
  /** The id of the call's W3C trace, if it has one. */
  readonly traceId?: string | undefined;
  readonly service: string;
  readonly route: string;
  /** pay_id or documentExtID. */
  readonly key: string | undefined;
  readonly outcome: Outcome;
  /** The reason, if the request was not answered. */
  readonly reason?: FaultReason | undefined;
  /** The operation's state, if it was followed. */
  readonly result?: OperationResult | undefined;
  /** The HTTP status; undefined for an answer that went over a line. */
  readonly httpStatus: number | undefined;
  /** `status` and `code` of the answer, the terminal's or posline's. */
  readonly status: string | undefined;
  readonly code: number | undefined;
  readonly queueMs: number;
  readonly lineMs: number;
  readonly requestBytes: number;
  readonly replyBytes: number;
  /** True if the caller left before the answer. */
  readonly left: boolean;
  /** Why the request failed, if it did. Of the client's text it quotes a refused path, Host or Origin at most (`quotedName`). */
  readonly message: string | undefined;
}

/** Fields of a line's records, beside its exchanges. */
export interface LineFields {
  readonly line: string;
  readonly state?: string;
  readonly reason?: string;
  /** The node behind the configured name. */
  readonly device?: string;
  readonly count?: number;
  readonly bytes?: number;
  readonly framing?: string;
  /** The first bytes of a discard, at most 16, as hex; of their digits six are logged. */
  readonly head?: string;
  readonly crcGot?: string;
  readonly crcArc?: string;
  readonly crcUmts?: string;
  readonly crc32?: string;
}

/** Fields of records about the process. */
export interface ProcessFields {
  readonly service?: string;
  readonly host?: string;
  readonly port?: number;
  readonly version?: string;
  readonly line?: string;
  readonly path?: string;
  readonly device?: string;
  readonly folder?: string;
  readonly signal?: string;
  readonly count?: number;
  readonly requestId?: string;
  readonly route?: string;
  /** pay_id or documentExtID. */
  readonly key?: string;
  /** The amount as the request had it; a text if a number can't hold it. */
  readonly amount?: number | string;
  readonly error?: string;
}

const round = (ms: number) => Math.round(ms * 100) / 100;

/** A status is a word; a terminal that puts anything else there isn't quoted. */
const statusForm = /^[A-Za-z_-]{1,16}$/;

export function exchangeFields(record: ExchangeRecord) {
  const { traceId, key, status, code, message } = record;
  return {
    requestId: logged(record.requestId),
    traceId: traceId === undefined ? undefined : logged(traceId),
    service: record.service,
    route: record.route,
    key: key === undefined ? undefined : logged(key),
    outcome: record.outcome,
    reason: record.reason,
    result: record.result,
    httpStatus: record.httpStatus,
    status: status === undefined || statusForm.test(status) ? status : "?",
    // Codes are int32 (fiscal.md, Response model); a longer number is not a code and might be anything.
    code: code !== undefined && (code | 0) === code ? code : undefined,
    queueMs: round(record.queueMs),
    lineMs: round(record.lineMs),
    requestBytes: record.requestBytes,
    replyBytes: record.replyBytes,
    left: record.left ? true : undefined,
    message: message === undefined ? undefined : loggedSentence(message),
  };
}

export function lineFields(fields: LineFields) {
  const { line, state, reason, device, count, bytes, framing, head, crcGot, crcArc, crcUmts, crc32 } = fields;
  return {
    line: logged(line),
    state,
    reason: reason === undefined ? undefined : loggedSentence(reason),
    device: device === undefined ? undefined : logged(device),
    count,
    bytes,
    framing,
    head: head === undefined ? undefined : loggedHead(head),
    crcGot,
    crcArc,
    crcUmts,
    crc32,
  };
}

export function processFields(fields: ProcessFields) {
  const { port, count, amount, error } = fields;
  const named = (name: Exclude<keyof ProcessFields, "port" | "count" | "amount">) => {
    const text = fields[name];
    return text === undefined ? undefined : logged(text);
  };
  return {
    service: named("service"),
    host: named("host"),
    port,
    version: named("version"),
    line: named("line"),
    path: named("path"),
    device: named("device"),
    folder: named("folder"),
    signal: named("signal"),
    count,
    requestId: named("requestId"),
    route: named("route"),
    key: named("key"),
    amount: typeof amount === "string" ? logged(amount) : amount,
    error: error === undefined ? undefined : loggedSentence(error),
  };
}
