import type { Amount } from "../core/call.ts";
import type { ExchangeName, ExchangeParts, ExchangePhase } from "../core/exchange-phase.ts";
import { type ExchangeRecord, exchangeFields, type LineFields, lineFields } from "../core/log-fields.ts";
import { logged, loggedSentence } from "../core/log-text.ts";
import { printableJson } from "../core/shell-text.ts";
import type { SettledOperationSource, UnknownOperationSource } from "./status-sources.ts";

/**
 * The events of `GET /events`. An event is kept as it was published, and becomes text only if somebody watches; its texts are bounded and
 * masked as in the log, field by field.
 */

/** An exchange that isn't over. */
interface OpenExchange {
  readonly event: "exchange";
  readonly exchange: ExchangeName;
  readonly phase: ExchangePhase;
}

interface EndedExchange {
  readonly event: "exchange";
  readonly phase: "ended";
  readonly line: string;
  readonly record: ExchangeRecord;
  /** The parts of its time, if it was sent. */
  readonly parts: ExchangeParts | undefined;
  /** True if posline asked by itself: the log has no line of it. */
  readonly background?: boolean;
}

export type PublishedEvent =
  | OpenExchange
  | EndedExchange
  | { readonly event: "line" | "discard" | "late"; readonly fields: LineFields }
  | {
      readonly event: "service";
      readonly line: string;
      readonly service: string;
      readonly state: "heard" | "unheard";
      readonly reason?: string;
      readonly cure?: string;
    }
  | { readonly event: "operation"; readonly operation: UnknownOperationSource | SettledOperationSource }
  | { readonly event: "ready"; readonly ready: boolean; readonly reasons: readonly unknown[] };

/** An event as text of the stream: id and data on lines of their own, the data on one of them. */
export function eventText(id: string, timeMs: number, published: PublishedEvent): string {
  return sseText(id, published.event, { time: new Date(timeMs).toISOString(), ...dataOf(published) });
}

/** The text of one event. JSON has no line break between values unless it is asked to. */
export function sseText(id: string, event: string, data: object): string {
  return `id: ${id}\nevent: ${event}\ndata: ${printableJson(JSON.stringify(data))}\n\n`;
}

function dataOf(published: PublishedEvent): object {
  switch (published.event) {
    case "exchange":
      return published.phase === "ended" ? endedData(published) : openData(published);
    case "line":
    case "discard":
    case "late":
      return lineFields(published.fields);
    case "service": {
      const { line, service, state, reason, cure } = published;
      return { line, service, state, reason: reason && loggedSentence(reason), cure: cure && loggedSentence(cure) };
    }
    case "operation":
      return operationData(published.operation);
    case "ready":
      return { ready: published.ready, reasons: published.reasons };
  }
}

function openData({ exchange, phase }: OpenExchange): object {
  const { requestId, callId = requestId, service, line, route, key, amount, about, background } = exchange;
  return {
    requestId: logged(requestId),
    callId: logged(callId),
    service,
    line,
    route,
    key: maybeLogged(key),
    ...amountFields(amount),
    phase,
    background: background || undefined,
    about: maybeLogged(about),
  };
}

const maybeLogged = (text: string | undefined) => (text === undefined ? undefined : logged(text));

/** The money as the request named it; a card number in its place is masked. */
const amountFields = (amount: Amount | undefined) => ({ amount: maybeLogged(amount?.digits), currency: amount?.currency });

/** The data of an ended exchange as the log has it, except for the numbers of bytes. */
function endedData({ line, record, parts, background }: EndedExchange): object {
  const { requestId, service, route, requestBytes: _request, replyBytes: _reply, ...rest } = exchangeFields(record);
  return {
    requestId,
    callId: logged(record.callId ?? record.requestId),
    service,
    line,
    route,
    phase: "ended",
    background: background || undefined,
    about: maybeLogged(record.about),
    ...amountFields(record.amount),
    ...rest,
    result: rest.result ?? record.end,
    requestMs: parts && hundredths(parts.requestMs),
    terminalMs: parts && hundredths(parts.terminalMs),
    replyMs: parts && hundredths(parts.replyMs),
  };
}

function operationData(operation: UnknownOperationSource | SettledOperationSource): object {
  const { requestId, callId, service, route, key } = operation;
  const named = {
    requestId: maybeLogged(requestId),
    callId: maybeLogged(callId),
    service,
    route,
    key: maybeLogged(key),
  };
  if ("result" in operation) return { ...named, state: "settled", result: operation.result };
  const { amount, currency, cause } = operation;
  return { ...named, amount: maybeLogged(amount), currency, state: "unknown", cause };
}

const hundredths = (ms: number) => Math.round(ms * 100) / 100;
