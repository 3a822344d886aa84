import { contracts, routeOf } from "../contract/contracts.ts";
import { closingRoutes, isDone, type SettlingRules, settlingRulesOf } from "../contract/settling.ts";
import type { ContractName } from "../core/call.ts";
import { isGoodEnd, type OperationEnd } from "../core/followed.ts";
import { localDay, localTime } from "../core/local-time.ts";
import { quoted } from "../core/shell-text.ts";
import type { JournalSnapshot } from "../journal/reader.ts";
import {
  isKeyOf,
  isSameOperation,
  isUnknown,
  type JournalOperation,
  joinOperations,
  type SentRecord,
  type SettledRecord,
  type StoredRecord,
  storedKey,
} from "../journal/record.ts";
import { type ExchangeLogEvent, readEvent } from "../logs/event.ts";
import { recalledSending } from "./recall.ts";
import { dayMs, togetherOf } from "./sending.ts";
import { terminalOf } from "./under-key.ts";

/**
 * What happened to an operation, in whole sentences: from the journal's records of it, and from the log's lines about its key, if there are
 * any. It says only what one of them says. How the operation ended is decided as for an answer (`sending.ts`), by the same records.
 */

/** A moment of it. */
export interface ExplainedMoment {
  readonly timeMs: number;
  readonly text: string;
}

export interface Explanation {
  readonly service: string;
  readonly route: string;
  readonly key: string | undefined;
  /** Minor units, as the request had it. */
  readonly amount: string | undefined;
  readonly currency: string | undefined;
  readonly moments: readonly ExplainedMoment[];
  /** `in flight`, how it is proven to have ended, `answered` or `refused` for what has no end of its own, or `unknown`. */
  readonly result: OperationEnd | "in flight" | "answered" | "refused" | "unknown";
  /** What proves that, or why nothing does. */
  readonly proof: string;
  readonly todo: string;
}

export interface ExplainOptions {
  readonly records: readonly StoredRecord[];
  /** All that was sent under the key, in order. */
  readonly operations: readonly JournalOperation[];
  /** A process writes the journal now, so that what has no outcome may be on its way. */
  readonly isWritten: boolean;
  /** The log's lines about the key. */
  readonly exchanges: readonly ExchangeLogEvent[];
  readonly contractOf: (service: string) => ContractName | undefined;
}

/** What tills were told about a key, as lines of the log. */
export interface ToldLines {
  readonly lines: readonly string[];
  /** What of it isn't known and why, as a sentence. */
  readonly lack: string | undefined;
}

export interface ExplainedKey {
  readonly operations: readonly Explanation[];
  /** What isn't shown, and what it proves if nothing is there: sentences. */
  readonly notes: readonly string[];
}

/**
 * What happened under a key.
 * @param asked A pay_id or documentExtID, or the id of a request.
 * @param toldOf Looks up what tills were told under the key since a time.
 */
export async function explainKey(
  asked: string,
  snapshot: JournalSnapshot,
  contractOf: ExplainOptions["contractOf"],
  toldOf: (key: string, sinceMs: number) => ToldLines | Promise<ToldLines>,
): Promise<ExplainedKey> {
  const { records, isWritten, bad } = snapshot;
  const key = storedKey(asked);
  const operations = joinOperations(records).filter(({ sent }) => isKeyOf(sent.key, asked) || sent.requestId === asked);
  const first = operations[0]?.sent;
  const { lines, lack } = await toldOf(first?.key ?? key, (first ?? records[0]?.record)?.timeMs ?? 0);
  const lacks = lack === undefined ? [] : [lack];
  const exchanges = lines.map((line) => readEvent(line)).filter((event) => event.kind === "exchange");
  // Of a request that was not sent itself, such as a repetition, only the log has the key.
  const named = exchanges.find((each) => each.requestId === asked && each.key !== undefined && each.key !== key)?.key;
  if (operations.length === 0 && named !== undefined) return explainKey(named, snapshot, contractOf, toldOf);
  if (operations.length === 0) return { operations: [], notes: [...nothingThere(asked, snapshot, exchanges), ...lacks] };
  const explained = explain({ records, operations, isWritten, exchanges, contractOf });
  const told = new Set(exchanges.filter((each) => !isOwnQuestion(each)).map(({ requestId }) => requestId));
  // The log is read by the key: of a call without one it has nothing to say.
  const ids = operations.flatMap(({ sent }) => (sent.key === undefined || told.has(sent.requestId) ? [] : [sent.requestId]));
  const untold = ids.map((id) => `The log has no answer to request ${id}: as far as it says, the till was told nothing.`);
  const damage = bad > 0 ? [`${bad} torn or spoiled records were left out.`] : [];
  return { operations: explained, notes: [...(lack === undefined ? untold : lacks), ...damage] };
}

/** What the lack of a record proves, and what it doesn't; what tills were told all the same, and what to do. */
function nothingThere(
  key: string,
  { records, bad }: JournalSnapshot,
  exchanges: readonly ExchangeLogEvent[],
): readonly string[] {
  const [oldest] = records;
  const since =
    oldest === undefined ? "with nothing" : `at ${localDay(oldest.record.timeMs)} ${localTime(oldest.record.timeMs, 0)}`;
  const damaged = bad > 0 || records.some(({ record }) => record.kind === "lacking");
  const but = damaged ? `, unless its record is among those that are missing (${bad} torn or spoiled)` : "";
  return [
    `Nothing of ${key} is in the journal, which begins ${since}: since then this box has sent nothing under this key that ` +
      `moves money, prints or changes state${but}.`,
    "It doesn't prove that nothing was sent by another box or program, before that, at the terminal itself, or while the journal " +
      "could not be written.",
    ...exchanges.map((each) => `${localDay(each.timeMs)} ${localTime(each.timeMs, 0)}  ${toldText(each, "")}`),
    "To do: Look for it at the terminal or in its report before anything is sent again, under whatever key. A call that was refused " +
      "because the line was down is in the log without its key.",
  ];
}

/**
 * True if the same call again is the same operation. What names an earlier payment, and not itself, is meant as often as it is sent: two equal
 * refunds of one QR payment are two.
 */
export function isNamedByKey({ service, route, key }: SentRecord, contractOf: ExplainOptions["contractOf"]): boolean {
  const contract = contractOf(service);
  return key !== undefined && (contract === undefined || settlingRulesOf(contract, route)?.ownKey !== false);
}

/** True if another operation was sent under its key, before a record if one is named: an answer to a question may tell of either. */
function isSharedKey(
  sent: SentRecord,
  { index, contractOf }: Pick<Explaining, "index" | "contractOf">,
  before = Number.POSITIVE_INFINITY,
): boolean {
  const contract = contractOf(sent.service);
  const isOther = ({ sequence, record }: StoredSent) =>
    sequence < before &&
    !isSameOperation(record, sent) &&
    (contract === undefined || settlingRulesOf(contract, record.route) !== undefined);
  return underKey(sent, index).some(isOther);
}

type StoredSent = Omit<StoredRecord, "record"> & { readonly record: SentRecord };

/** With what was sent, looked up. */
type Explaining = ExplainOptions & { readonly index: SentIndex };

/** What was sent, as each unknown operation asks for it: looked through once, since a full journal has thousands of those. */
export interface SentIndex {
  /** By key, of all services. */
  readonly byKey: ReadonlyMap<string | undefined, readonly StoredSent[]>;
  /** What closes a batch or a shift. */
  readonly closings: readonly StoredSent[];
}

export function sentIn(records: readonly StoredRecord[]): SentIndex {
  const byKey = new Map<string | undefined, StoredSent[]>();
  const closings: StoredSent[] = [];
  for (const { sequence, record } of records) {
    if (record.kind !== "sent") continue;
    const stored = { sequence, record };
    if (byKey.get(record.key)?.push(stored) === undefined) byKey.set(record.key, [stored]);
    if (closingRoutes.has(record.route)) closings.push(stored);
  }
  return { byKey, closings };
}

/** What one service has sent under the key of a record. */
const underKey = ({ service, key }: SentRecord, { byKey }: SentIndex) =>
  key === undefined ? [] : (byKey.get(key) ?? []).filter(({ record }) => record.service === service);

/** The currency of a record, or of the payment that it gives back, whose key it has. */
export const recordedCurrency = (sent: SentRecord, index: SentIndex) =>
  sent.currency ?? underKey(sent, index).find(({ record }) => record.currency !== undefined)?.record.currency;

/** All sendings of one operation, in order. */
export type Sendings = readonly [JournalOperation, ...JournalOperation[]];

/** An explanation for each operation, in the order of their first sending: a key may have several, by route or by body. */
export function explain(options: ExplainOptions): readonly Explanation[] {
  const groups: [JournalOperation, ...JournalOperation[]][] = [];
  for (const each of options.operations) {
    const same = groups.find(([first]) => isSameOperation(first.sent, each.sent));
    if (same === undefined || !isNamedByKey(each.sent, options.contractOf)) groups.push([each]);
    else same.push(each);
  }
  const explaining = { ...options, index: sentIn(options.records) };
  const all = groups.map((sendings) => explained(sendings, groups, explaining));
  const takenBack = (each: Explanation) => all.find((other) => tookBack(other, each, options.contractOf));
  return all.map((each) => ({ ...each, todo: takenBack(each) === undefined ? each.todo : noGoods }));
}

/** True if one operation has given back all that another one, under the same key, has sold. */
function tookBack(back: Explanation, sold: Explanation, contractOf: ExplainOptions["contractOf"]): boolean {
  const contract = contractOf(sold.service);
  const rulesOf = ({ route }: Explanation) => contract && settlingRulesOf(contract, route);
  const [ofBack, ofSold] = [rulesOf(back), rulesOf(sold)];
  const isOfSame =
    back.service === sold.service && sold.key !== undefined && back.key === sold.key && back.amount === sold.amount;
  const areDone = isDone(back.result, ofBack) && isDone(sold.result, ofSold);
  return isOfSame && areDone && ofBack?.counts === "refunded" && ofSold?.counts === "sold";
}

const noGoods = "It was carried out, and taken back afterwards under its key: no goods for it.";

function explained(sendings: Sendings, all: readonly Sendings[], options: Explaining): Explanation {
  const { service, route, key, amount, currency } = sendings[0].sent;
  const recorded = sendings.flatMap((each, index) => momentsOf(each, index, options));
  const told = exchangesOf(sendings, all, options.exchanges).map((each) => ({
    timeMs: each.timeMs,
    text: toldText(each, route),
  }));
  // The sort is stable: of one moment the record comes before what was told by it.
  const moments = [...recorded, ...told].sort((one, other) => one.timeMs - other.timeMs);
  return { service, route, key, amount, currency, moments, ...endingOf(sendings, options) };
}

/** Lines of its own requests, and of questions about its key; what another operation of that key was told is left out. */
function exchangesOf(
  sendings: Sendings,
  all: readonly Sendings[],
  exchanges: readonly ExchangeLogEvent[],
): readonly ExchangeLogEvent[] {
  const [{ sent }] = sendings;
  const isOwn = ({ requestId }: ExchangeLogEvent) => sendings.some((each) => each.sent.requestId === requestId);
  const others = all.flat().filter((each) => !sendings.includes(each));
  const isOther = (event: ExchangeLogEvent) => others.some((each) => each.sent.requestId === event.requestId);
  const isAlone = others.every((each) => each.sent.route !== sent.route);
  return exchanges.filter((event) => {
    if (event.service !== sent.service) return false;
    return isOwn(event) || (!isOther(event) && (event.route !== sent.route || isAlone));
  });
}

function momentsOf(operation: JournalOperation, place: number, options: Explaining): readonly ExplainedMoment[] {
  const { sequence, sent, ending, lost } = operation;
  const { records } = options;
  const which = place === 0 ? `Request ${sent.requestId}` : `The same call again, request ${sent.requestId},`;
  const isUnsent = ending?.outcome === "not-sent";
  const moments = [
    {
      timeMs: sent.timeMs,
      text: `${which} was recorded, to be sent to the terminal.${beforeText(sent.before)}`,
    },
  ];
  const started = records.find(({ sequence: at, record }) => lost && at > sequence && record.kind === "start");
  const again = "posline started again, without a record of how this ended: it had been stopped, or its journal had failed.";
  if (started !== undefined) moments.push({ timeMs: started.record.timeMs, text: again });
  for (const { record } of records) {
    if (record.kind !== "outcome" && record.kind !== "begun" && record.kind !== "settled") continue;
    if (record.sent !== sequence || (record.kind !== "outcome" && record.digest !== sent.digest)) continue;
    if (record.kind === "settled") {
      moments.push({ timeMs: record.timeMs, text: settledText(record) });
      continue;
    }
    const found = "The terminal was asked about it, and answered that it has it.";
    const unsent = "It was not sent: nothing left for the terminal.";
    const text = record.kind === "begun" ? found : isUnsent ? unsent : outcomeText(operation, options);
    moments.push({ timeMs: record.timeMs, text });
  }
  return moments;
}

function settledText({ by, result, note }: SettledRecord): string {
  if (by === "operator") return `A person recorded: ${result}${note === undefined ? "" : `, "${note}"`}.`;
  return `The terminal was asked about it, and its answer proves the end: ${result}.`;
}

function beforeText(before: JournalOperation["sent"]["before"]): string {
  if (before === undefined) return "";
  const ids = Object.entries(before).map(([name, value]) => `${name} ${value}`);
  return ids.length === 0
    ? " The terminal had nothing under this key before."
    : ` The terminal had ${ids.join(", ")} under this key before.`;
}

function outcomeText({ sequence, sent, ending }: JournalOperation, options: Explaining): string {
  const { contractOf } = options;
  const { outcome, status, code, begun, end, learned, left, message } = ending ?? {};
  const away = left === true ? " Nobody waited for it any more by then." : "";
  if (outcome === "unknown" && status === undefined) return `No valid answer to it came.${away}`;
  const meaning = contracts[contractOf(sent.service) ?? "bank"].codes.find((each) => each.code === code)?.meaning;
  const known = contractOf(sent.service) === undefined || meaning === undefined ? "" : ` (${meaning})`;
  const said = `The terminal answered ${status ?? "without a status"}${code === undefined ? "" : `, code ${code}${known}`}`;
  const named = learned === undefined ? "" : ` Its trans is ${learned}.`;
  const open = outcome === "unknown" ? ", which leaves open whether it was carried out" : "";
  const words = message === undefined ? "" : `, ${JSON.stringify(message)}`;
  return `${said}${words}${provesText(begun, end, isSharedKey(sent, options, sequence)) || open}.${named}${away}`;
}

function provesText(begun: boolean | undefined, end: OperationEnd | undefined, isShared: boolean): string {
  if (end !== undefined) return `, which is its end: ${end}`;
  if (begun === true && isShared) return ": it has an operation under this key, which may be the other one";
  if (begun === true) return ": it took it on, which doesn't say how it ends";
  return begun === false ? ": it refused it before anything was begun" : "";
}

const isOwnQuestion = ({ rest }: ExchangeLogEvent) => rest.some(([name]) => name === "background");

/** What a till was told, by the log, or what posline's own question was answered. */
function toldText(exchange: ExchangeLogEvent, own: string): string {
  const { requestId, route, outcome, status, code, httpStatus, message, left, rest } = exchange;
  const { result, reason } = Object.fromEntries(rest);
  const answer = `${status ?? "no status"}${code === undefined ? "" : `, code ${code}`}`;
  if (isOwnQuestion(exchange))
    return `posline asked ${route}: ${outcome === "answered" ? `the terminal answered ${answer}` : (message ?? "no answer came")}.`;
  const who = route === own ? "The till" : `The till, which asked ${route},`;
  const by = ` (request ${requestId}${httpStatus === undefined ? "" : `, HTTP ${httpStatus}`})`;
  const gone = left ? " It had disconnected, and may not know." : "";
  const why = message === undefined ? "" : `: ${message}`;
  if (result !== undefined) return `${who} was told: ${result}${by}${why}.${gone}`;
  const what = reason === "key-reused" ? "another request under this key" : "it";
  if (outcome === "not-sent") return `${who} was told that ${what} was not sent${by}${why}.${gone}`;
  if (outcome === "unknown") return `${who} was told that the outcome is unknown${by}${why}.${gone}`;
  return `${who} was given the terminal's answer: ${answer}${by}${why}.${gone}`;
}

type Ending = Pick<Explanation, "result" | "proof" | "todo">;

/** How an operation ended by all its sendings together, what proves that, and what to do. */
export function endingOf(
  sendings: Sendings,
  { index, isWritten, contractOf }: Pick<Explaining, "index" | "isWritten" | "contractOf">,
): Ending {
  const last = sendings.at(-1) ?? sendings[0];
  const { service, route, key, requestId } = last.sent;
  const contract = contractOf(service);
  if (isWritten && sendings.some(({ ending, lost }) => ending === undefined && !lost)) {
    return {
      result: "in flight",
      proof: "No outcome is recorded yet.",
      todo: "Wait: its answer, or the limit for it, is still to come.",
    };
  }
  const now = Date.now();
  const { end, isAccepted, standing } = togetherOf(sendings.map((each) => recalledSending(each, contract, now, now)));
  const rules = contract && settlingRulesOf(contract, route);
  const isShared = isSharedKey(last.sent, { index, contractOf });
  if (end !== undefined)
    return { result: end, proof: proofText(sendings, end), todo: todoAfter(end, { rules, key, isShared }) };
  if (sendings.every(({ ending }) => ending?.outcome === "not-sent"))
    return { result: "failed", proof: "Nothing was sent.", todo: todos.failed };
  if (contract !== undefined && rules === undefined && last.ending?.outcome === "answered") {
    const isGood = last.ending.status === "success";
    const todo = isGood ? "Nothing, as far as posline knows." : "Look at the terminal before it is sent again.";
    const proof = isGood
      ? "Its own answer is success, which is all that the contract has of it."
      : "The terminal's own answer refused it.";
    return { result: isGood ? "answered" : "refused", proof, todo };
  }
  // What is answered and goes on is remembered for a day; then the same call would be sent.
  const isKept = sendings.some(isUnknown) || now - last.sent.timeMs < dayMs;
  // Of several operations under one key the request's id names one.
  const isOfOthers = index.byKey.get(key)?.some(({ record }) => record.service !== service) === true;
  const isAlone = !isShared && !isOfOthers && isNamedByKey(last.sent, contractOf);
  const name = key !== undefined && isAlone ? key : requestId;
  const settle = isKept
    ? `, then record what you saw: posline journal settle ${quoted(name)} --as done --note "..." (or --as not-done)`
    : "";
  // What may have the key of a payment is asked about only if it was known before what that had.
  const isTold = rules?.baseline === undefined || sendings.some(({ sent }) => sent.before !== undefined);
  const isAskable = contract !== undefined && routeOf(contracts[contract], route)?.polling !== undefined;
  const { learns } = rules ?? {};
  const isNamed = learns === undefined || sendings.some(({ sent, ending }) => ending?.learned ?? sent.ask?.[learns]);
  const canAsk = isKept && !isShared && isTold && isAskable && isNamed && key !== undefined;
  const isTwice = standing.length > 1;
  const lacksPrint = rules?.print !== undefined && rules.print.code === last.ending?.code;
  const isBusy = isAccepted && !isShared && !isTwice && !lacksPrint;
  const isClosed = index.closings.some(
    ({ sequence, record }) => sequence > last.sequence && terminalOf(record) === terminalOf(last.sent),
  );
  const forgotten = isClosed ? " A batch or shift may have been closed since, so that the terminal may have forgotten it." : "";
  const begun = sendings.some(({ ending }) => ending?.begun === true);
  const why = whyUnknown({ isAskable, isShared, begun, isTwice, isAccepted });
  const ask = canAsk ? "send the same call again with Prefer: wait, which asks the terminal and sends nothing twice; or " : "";
  const wait = isBusy ? "wait while the terminal is busy with it; then " : "";
  return {
    result: "unknown",
    proof: `${why}${forgotten}`,
    todo: `Don't repeat it${key === undefined ? "" : " under a new key"}: ${wait}${ask}look at the terminal or its report${settle}`,
  };
}

type Doubt = Readonly<Record<"isAskable" | "isShared" | "begun" | "isTwice" | "isAccepted", boolean>>;

function whyUnknown({ isAskable, isShared, begun, isTwice, isAccepted }: Doubt): string {
  const sent = begun ? "begun, and may have been carried out" : "perhaps carried out, or never begun";
  if (!isAskable) return "The contract has no question about it: it may have been carried out.";
  if (isShared) return `Another operation used this key, so no answer proves whose end it tells: this one was ${sent}.`;
  if (isTwice) return "It was sent more than once, and only a good end would say what became of all.";
  if (isAccepted) return "The terminal took it on, and no answer so far says how it ended.";
  return "No answer proves how it ended: it may have been carried out.";
}

function proofText(sendings: readonly JournalOperation[], end: OperationEnd): string {
  const settled = sendings.findLast((each) => each.settled?.result === end)?.settled;
  if (settled?.by === "operator") return "A person recorded that.";
  if (settled !== undefined) return "The terminal's answer when it was asked about it proves that.";
  if (sendings.some(({ ending }) => ending?.end === end)) return "The terminal's own answer to it proves that.";
  if (sendings.every(({ ending }) => ending?.outcome === "not-sent")) return "Nothing was sent.";
  if (end === "failed" || !isGoodEnd(end)) return "The terminal's own answer refused it before anything was begun.";
  return "The records together prove that.";
}

/** True of a refund that was reversed: money may have gone back or not. */
export const isUnclear = (end: Ending["result"] | undefined, rules: SettlingRules | undefined) =>
  end === "reversed" && rules?.counts === "refunded" && !rules.takesBack;

const unclear =
  "The contract doesn't say what of a refund was reversed: look at the terminal or its report before another one is sent.";

/** What to do after each end. */
function todoAfter(
  end: OperationEnd,
  { rules, key, isShared }: { rules: SettlingRules | undefined; key: string | undefined; isShared: boolean },
): string {
  if (isUnclear(end, rules)) return unclear;
  if (end === "failed" && isShared)
    return "Nothing of this one was carried out; another operation has its key: look at that one.";
  const again =
    rules === undefined || key === undefined
      ? "Don't send it again: it would be done again."
      : "Within a day of it, a till that doesn't know may send the same call with Prefer: wait: nothing is done twice.";
  return isGoodEnd(end) && end !== "unprinted" ? `${todos[end]} ${again}` : todos[end];
}

const todos: Readonly<Record<OperationEnd, string>> = {
  approved: "Nothing: it was carried out.",
  closed: "Nothing: the document is there.",
  unprinted:
    "The document is there, and its print is missing: print a copy (/check_copy). Don't send it again under a new key.",
  declined: "It was not carried out: a new attempt needs a new key.",
  reversed: "The payment was taken back: a new sale needs a new key.",
  failed: "Nothing was carried out: the same call may be sent again, under the same key, once any cause named above is gone.",
};
