import { contracts, routeOf } from "../contract/contracts.ts";
import { isDone, settlingRulesOf } from "../contract/settling.ts";
import { isGoodEnd, type OperationEnd } from "../core/followed.ts";
import { localDay, localTime } from "../core/local-time.ts";
import type { JournalSnapshot } from "../journal/reader.ts";
import {
  isKeyOf,
  type JournalOperation,
  joinOperations,
  type SentRecord,
  type SettledRecord,
  type StoredRecord,
  storedKey,
} from "../journal/record.ts";
import { type ExchangeLogEvent, readEvent } from "../logs/event.ts";
import {
  doneAgain,
  endingOf,
  isNothingDone,
  isSharedKey,
  type OperationSendings,
  operationsIn,
  type RecordedEnd,
  type RecordedEndOptions,
  type Sendings,
  sentIn,
} from "./recorded-end.ts";

/**
 * What happened to an operation, in whole sentences: from the journal's records of it, and from the log's lines about its key, if there are
 * any. It says only what one of them says.
 */

/** A moment of it. */
export interface ExplainedMoment {
  readonly timeMs: number;
  readonly text: string;
}

export interface Explanation extends RecordedEnd {
  readonly service: string;
  readonly route: string;
  readonly key: string | undefined;
  /** Minor units, as the request had it. */
  readonly amount: string | undefined;
  readonly currency: string | undefined;
  readonly moments: readonly ExplainedMoment[];
}

export interface ExplainOptions extends Omit<RecordedEndOptions, "index"> {
  readonly records: readonly StoredRecord[];
  /** All that was sent under the key, in order. */
  readonly operations: readonly JournalOperation[];
  /** The log's lines about the key. */
  readonly exchanges: readonly ExchangeLogEvent[];
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
  const [explained, others] = explainedWith({ records, operations, isWritten, exchanges, contractOf });
  const told = new Set(exchanges.filter((each) => !isOwnQuestion(each)).map(({ requestId }) => requestId));
  // The log is read by the key: of a call without one it has nothing to say.
  const ids = operations.flatMap(({ sent }) => (sent.key === undefined || told.has(sent.requestId) ? [] : [sent.requestId]));
  const untold = ids.map(
    (id) =>
      `The log has no answer to request ${id}: it doesn't reach back so far, the line was lost with the process, or the till was told nothing.`,
  );
  const damage = bad > 0 ? [`${bad} torn or spoiled records were left out.`] : [];
  return { operations: explained, notes: [...others.map(lineText), ...(lack === undefined ? untold : lacks), ...damage] };
}

const lineText = (each: ExchangeLogEvent) => `${localDay(each.timeMs)} ${localTime(each.timeMs, 0)}  ${toldText(each, "")}`;

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
      "could not be written; a call that waits for the line may be sent yet.",
    ...exchanges.map(lineText),
    !damaged && exchanges.length > 0 && exchanges.every(({ outcome }) => outcome === "not-sent")
      ? "To do: What was not sent may be sent again."
      : "To do: Look for it at the terminal or in its report before anything is sent again, under whatever key. A call that was " +
        "refused because the line was down may be in the log without its key.",
  ];
}

/** An explanation for each operation, in the order of their first sending. */
export function explain(options: ExplainOptions): readonly Explanation[] {
  return explainedWith(options)[0];
}

/** The same, and the log's lines that are of none of them. */
function explainedWith(options: ExplainOptions): readonly [readonly Explanation[], others: readonly ExchangeLogEvent[]] {
  const { operations, records, exchanges, contractOf } = options;
  const explaining = { ...options, index: sentIn(records) };
  const found = operationsIn(operations, contractOf);
  const lines = linesBy(found, exchanges, contractOf);
  const all = found.map(({ sendings }) => explained(sendings, lines.get(sendings) ?? [], explaining));
  const whole = all.map((each, at) => {
    const earlier = all[found.findIndex(({ sendings }) => sendings === found[at]?.earlier)];
    const todo = takenBack(each, all, contractOf);
    return { ...each, ...(todo !== undefined && { todo }), ...doneAgain(each.result, earlier?.result) };
  });
  return [whole, lines.get(undefined) ?? []];
}

/** What to do with one that was done, if another operation under its key has taken it back, or may have. */
function takenBack(
  done: Explanation,
  all: readonly Explanation[],
  contractOf: ExplainOptions["contractOf"],
): string | undefined {
  const { service, key, amount, result } = done;
  const contract = contractOf(service);
  const rulesOf = ({ route }: Explanation) => contract && settlingRulesOf(contract, route);
  if (key === undefined || !isGoodEnd(result) || rulesOf(done)?.counts === "refunded") return undefined;
  const backs = all.filter(
    (each) =>
      each.service === service && each.key === key && rulesOf(each)?.counts === "refunded" && !isNothingDone(each.result),
  );
  if (backs.length === 0) return undefined;
  const isAll = backs.some((each) => isDone(each.result, rulesOf(each)) && each.amount === amount);
  return `It was carried out, and ${isAll ? "taken back afterwards under its key: no goods for it." : maybeBack}`;
}

const maybeBack = "perhaps taken back under its key: look at that before goods are handed out.";

function explained(
  sendings: Sendings,
  exchanges: readonly ExchangeLogEvent[],
  options: ExplainOptions & RecordedEndOptions,
): Explanation {
  const { service, route, key, amount, currency } = sendings[0].sent;
  const recorded = sendings.flatMap((each, index) => momentsOf(each, index, options));
  const told = exchanges.map((each) => ({ timeMs: each.timeMs, text: toldText(each, route) }));
  // What is told again and again, as to a till that polls, is told once, and at last.
  const isAgain = (at: number, by: 1 | -1) => unnamed(told[at]?.text) === unnamed(told[at + by]?.text);
  const shown = told.filter((_, at) => !(isAgain(at, -1) && isAgain(at, 1)));
  // The sort is stable: of one moment the record comes before what was told by it.
  const moments = [...recorded, ...shown].sort((one, other) => one.timeMs - other.timeMs);
  return { service, route, key, amount, currency, moments, ...endingOf(sendings, options) };
}

const unnamed = (text = "") => text.replace(/ \(request [^,)]*/, "");

/**
 * The log's lines of each operation: of its own requests; of repetitions, which have its route, if no other operation under the key has; and
 * of questions and aborts, if its contract has a question about it. Those of none are told apart (`undefined`).
 */
function linesBy(
  all: readonly OperationSendings[],
  exchanges: readonly ExchangeLogEvent[],
  contractOf: ExplainOptions["contractOf"],
): ReadonlyMap<Sendings | undefined, readonly ExchangeLogEvent[]> {
  const found = new Map<Sendings | undefined, ExchangeLogEvent[]>();
  for (const event of exchanges) {
    const of = all.map(({ sendings }) => sendings).filter(([{ sent }]) => sent.service === event.service);
    const own = of.filter((each) => each.some(({ sent }) => sent.requestId === event.requestId));
    const repeated = of.filter(([{ sent }]) => sent.route === event.route);
    const asked = of.filter(([{ sent }]) => isAskedBy(event.route ?? "", sent, contractOf));
    const those = [own, repeated.length > 1 ? [] : repeated, asked].find(({ length }) => length > 0) ?? [undefined];
    for (const each of those) if (found.get(each)?.push(event) === undefined) found.set(each, [event]);
  }
  return found;
}

/** True if a route asks about an operation, or asks to stop it. */
function isAskedBy(asked: string, { service, route }: SentRecord, contractOf: ExplainOptions["contractOf"]): boolean {
  const contract = contractOf(service);
  const question = contract && routeOf(contracts[contract], route)?.polling?.route;
  return contract === undefined || asked === question || (asked === "/abort" && question !== undefined);
}

function momentsOf(
  operation: JournalOperation,
  place: number,
  options: ExplainOptions & RecordedEndOptions,
): readonly ExplainedMoment[] {
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
  const said = result === "failed" ? "said that there is none" : "its answer proves the end";
  return `The terminal was asked about it, and ${said}: ${result}.`;
}

function beforeText(before: JournalOperation["sent"]["before"]): string {
  if (before === undefined) return "";
  const ids = Object.entries(before).map(([name, value]) => `${name} ${value}`);
  return ids.length === 0
    ? " The terminal had nothing under this key before."
    : ` The terminal had ${ids.join(", ")} under this key before.`;
}

function outcomeText({ sequence, sent, ending }: JournalOperation, options: ExplainOptions & RecordedEndOptions): string {
  const { contractOf } = options;
  const { outcome, status, code, begun, end, learned, left, message } = ending ?? {};
  const away = left === true ? " By then its till's wait was over, or it had left." : "";
  if (outcome === "unknown" && status === undefined) return `No valid answer to it came.${away}`;
  const meaning = contracts[contractOf(sent.service) ?? "bank"].codes.find((each) => each.code === code)?.meaning;
  const known = contractOf(sent.service) === undefined || meaning === undefined ? "" : ` (${meaning})`;
  const said = `The terminal answered ${status ?? "without a status"}${code === undefined ? "" : `, code ${code}${known}`}`;
  const named = learned === undefined ? "" : ` Its trans is ${learned}.`;
  const open = outcome === "unknown" ? ", which leaves open whether it was carried out" : "";
  const words = message === undefined ? "" : `, ${JSON.stringify(message)}`;
  return `${said}${words}${
    provesText(
      begun,
      end,
      isSharedKey(sent, options, (at) => at < sequence),
    ) || open
  }.${named}${away}`;
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
  const because = code === undefined || code === 0 ? "" : `, code ${code}`;
  if (result !== undefined) return `${who} was told: ${result}${because}${by}${why}.${gone}`;
  const what = reason === "key-reused" ? "another request under this key" : "it";
  if (outcome === "not-sent") return `${who} was told that ${what} was not sent${by}${why}.${gone}`;
  if (outcome === "unknown") return `${who} was told that the outcome is unknown${by}${why}.${gone}`;
  return `${who} was given the terminal's answer: ${answer}${by}${why}.${gone}`;
}
