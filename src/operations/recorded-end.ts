import { contracts, routeOf } from "../contract/contracts.ts";
import { closingRoutes, type SettlingRules, settlingRulesOf } from "../contract/settling.ts";
import type { ContractName } from "../core/call.ts";
import { isGoodEnd, type OperationEnd } from "../core/followed.ts";
import { quoted } from "../core/shell-text.ts";
import { isSameOperation, isUnknown, type JournalOperation, type SentRecord, type StoredRecord } from "../journal/record.ts";
import { recalledSending } from "./recall.ts";
import { dayMs, togetherOf } from "./sending.ts";
import { terminalOf } from "./under-key.ts";

/**
 * Which of a journal's records are of one operation, how it ended by them, what proves that or why nothing does, and what is to do: for
 * `posline explain` and `posline day`.
 */

type ContractOf = (service: string) => ContractName | undefined;

/** How an operation ended. */
export interface RecordedEnd {
  /** `in flight`, how it is proven to have ended, `answered` or `refused` for what has no end of its own, or `unknown`. */
  readonly result: OperationEnd | "in flight" | "answered" | "refused" | "unknown";
  /** What proves that, or why nothing does. */
  readonly proof: string;
  readonly todo: string;
}

/** With what is known of the records around it. */
export interface RecordedEndOptions {
  readonly index: SentIndex;
  /** A process writes the journal now, so that what has no outcome may be on its way. */
  readonly isWritten: boolean;
  readonly contractOf: ContractOf;
}

/**
 * True if the same call again is the same operation. What names an earlier payment, and not itself, is meant as often as it is sent: two equal
 * refunds of one QR payment are two.
 */
function isNamedByKey({ service, route, key }: SentRecord, contractOf: ContractOf): boolean {
  const contract = contractOf(service);
  return key !== undefined && (contract === undefined || settlingRulesOf(contract, route)?.ownKey !== false);
}

/** True if another operation was sent under its key, at a place that counts: an answer to a question may tell of either. */
export function isSharedKey(
  sent: SentRecord,
  { index, contractOf }: Pick<RecordedEndOptions, "index" | "contractOf">,
  counts: (sequence: number) => boolean,
): boolean {
  const contract = contractOf(sent.service);
  const isOther = ({ sequence, record }: StoredSent) =>
    counts(sequence) &&
    !isSameOperation(record, sent) &&
    (contract === undefined || settlingRulesOf(contract, record.route) !== undefined);
  return underKey(sent, index).some(isOther);
}

type StoredSent = Omit<StoredRecord, "record"> & { readonly record: SentRecord };

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
export const underKey = ({ service, key }: SentRecord, { byKey }: SentIndex) =>
  key === undefined ? [] : (byKey.get(key) ?? []).filter(({ record }) => record.service === service);

/** The currency of a record, or of the payment that it gives back, whose key it has. */
export const recordedCurrency = (sent: SentRecord, index: SentIndex) =>
  sent.currency ?? underKey(sent, index).find(({ record }) => record.currency !== undefined)?.record.currency;

/** All sendings of one operation, in order. */
export type Sendings = readonly [JournalOperation, ...JournalOperation[]];

/** An operation's sendings, and those of the same call more than a day before, which was another operation. */
export interface OperationSendings {
  readonly sendings: Sendings;
  readonly earlier: Sendings | undefined;
}

/** Operations by their first sending: a key may have several, by route, by body, or by day, since after one the same call is sent again. */
export function operationsIn(all: readonly JournalOperation[], contractOf: ContractOf): readonly OperationSendings[] {
  const [seen, repeated] = [new Set<string>(), new Set<string>()];
  for (const { sent } of all) (seen.has(sent.digest) ? repeated : seen).add(sent.digest);
  const latest = new Map<string, [JournalOperation, ...JournalOperation[]]>();
  const found: OperationSendings[] = [];
  for (const each of all) {
    const { service, route, key, digest, timeMs } = each.sent;
    const isNamed = repeated.has(digest) && isNamedByKey(each.sent, contractOf);
    const name = isNamed ? [service, route, key, digest].join("\n") : "";
    const same = latest.get(name);
    if (same !== undefined && Math.abs(timeMs - (same.at(-1)?.sent.timeMs ?? 0)) < dayMs) same.push(each);
    else {
      const sendings: [JournalOperation] = [each];
      found.push({ sendings, earlier: same });
      if (isNamed) latest.set(name, sendings);
    }
  }
  return found;
}

/** True of a result by which nothing came of an operation. */
export const isNothingDone = (result: RecordedEnd["result"]) =>
  result === "failed" || result === "declined" || result === "refused";

/** What is to be said of one that was done, if the same call a day before may have been. */
export function doneAgain(
  result: RecordedEnd["result"] | undefined,
  earlier: RecordedEnd["result"] | undefined,
): Pick<RecordedEnd, "proof" | "todo"> | undefined {
  return earlier === undefined || isNothingDone(earlier) || !isGoodEnd(result) ? undefined : twice;
}

const twice = {
  proof: "The same call had been sent more than a day before, and didn't fail; then it was sent again.",
  todo: "Compare with the terminal's report: it may have been done twice, or be the one of before.",
} as const;

/** How an operation ended by all its sendings together, what proves that, and what to do. */
export function endingOf(sendings: Sendings, { index, isWritten, contractOf }: RecordedEndOptions): RecordedEnd {
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
  // If it was known before what its key had, its end is told from that, not from what came later.
  const isToldApart = rules?.baseline !== undefined && last.sent.before !== undefined;
  const isShared = isSharedKey(last.sent, { index, contractOf }, (at) => !isToldApart || at > last.sequence);
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
  // What is answered and goes on is remembered for a day; then the same call would be sent, and what is unknown isn't asked about.
  const isOfDay = now - last.sent.timeMs < dayMs;
  const isKept = sendings.some(isUnknown) || isOfDay;
  // Of several operations under one key the request's id names one.
  const isOfOthers = index.byKey.get(key)?.some(({ record }) => record.service !== service) === true;
  const isAlone = !isShared && !isOfOthers && isNamedByKey(last.sent, contractOf);
  const name = key !== undefined && isAlone ? key : requestId;
  const settle = isKept
    ? `, then record what you saw: sudo posline journal settle ${settling(name)} (or --as not-done)`
    : "; after a day the same call is sent again, too";
  // What may have the key of a payment is asked about only if it was known before what that had.
  const isTold = rules?.baseline === undefined || sendings.some(({ sent }) => sent.before !== undefined);
  const isAskable = contract !== undefined && routeOf(contracts[contract], route)?.polling !== undefined;
  const { learns } = rules ?? {};
  const isNamed = learns === undefined || sendings.some(({ sent, ending }) => ending?.learned ?? sent.ask?.[learns]);
  const canAsk = isOfDay && !isShared && isTold && isAskable && isNamed && key !== undefined;
  const isTwice = standing.length > 1;
  const lacksPrint = rules?.print !== undefined && rules.print.code === last.ending?.code;
  const isBusy = isAccepted && !isShared && !isTwice && !lacksPrint;
  const isClosed = index.closings.some(
    ({ sequence, record }) => sequence > last.sequence && terminalOf(record) === terminalOf(last.sent),
  );
  const forgotten = isClosed ? " A batch or shift may have been closed since, so that the terminal may have forgotten it." : "";
  const begun = sendings.some(({ ending }) => ending?.begun === true);
  if (route === "/abort")
    return {
      result: "unknown",
      proof: "The end of what it was to stop says if it came in time.",
      todo: `Look at the operation that has its key${settle}`,
    };
  const why = whyUnknown({ isAskable, isShared, begun, isTwice, isAccepted });
  const ask = canAsk ? "send the same call again with Prefer: wait, which asks the terminal and sends nothing twice; or " : "";
  const wait = isBusy ? "wait while the terminal shows that it is busy with it; then " : "";
  const shift = contract === "fiscal" && key === undefined && route.endsWith("_shift") ? " (/check_shift tells)" : "";
  return {
    result: "unknown",
    proof: `${why}${forgotten}`,
    todo: `Don't repeat it${!isAskable ? "" : " under a new key"}: ${wait}${ask}look at the terminal or its report${shift}${settle}`,
  };
}

/** What names an operation to `journal settle`: behind --, what begins with a hyphen is no flag. */
const settling = (name: string) =>
  name.startsWith("-") ? `--as done --note "..." -- ${quoted(name)}` : `${quoted(name)} --as done --note "..."`;

type Doubt = Readonly<Record<"isAskable" | "isShared" | "begun" | "isTwice" | "isAccepted", boolean>>;

function whyUnknown({ isAskable, isShared, begun, isTwice, isAccepted }: Doubt): string {
  const sent = begun ? "begun, and may have been carried out" : "perhaps carried out, or never begun";
  if (!isAskable) return "The contract has no question about it by a key: it may have been carried out.";
  if (isShared) return `Another operation used this key, so no answer proves whose end it tells: this one was ${sent}.`;
  if (isTwice) return "It was sent more than once, and only a good end would say what became of all.";
  if (isAccepted) return "The terminal took it on, and no answer so far says how it ended.";
  return "No answer proves how it ended: it may have been carried out.";
}

function proofText(sendings: readonly JournalOperation[], end: OperationEnd): string {
  const settled = sendings.findLast((each) => each.settled?.result === end)?.settled;
  if (settled?.by === "operator") return "A person recorded that.";
  if (settled?.result === "failed") return "The terminal was asked about it, and said that there is none.";
  if (settled !== undefined) return "The terminal's answer when it was asked about it proves that.";
  if (sendings.some(({ ending }) => ending?.end === end)) return "The terminal's own answer to it proves that.";
  if (sendings.every(({ ending }) => ending?.outcome === "not-sent")) return "Nothing was sent.";
  if (end === "failed" || !isGoodEnd(end)) return "The terminal's own answer refused it before anything was begun.";
  return "The records together prove that.";
}

/** True of a refund that was reversed: money may have gone back or not. */
export const isUnclear = (end: RecordedEnd["result"] | undefined, rules: SettlingRules | undefined) =>
  end === "reversed" && rules?.counts === "refunded" && !rules.takesBack;

const unclear =
  "The contract doesn't say what of a refund was reversed: look at the terminal or its report before another one is sent.";

/** What to do after each end. */
function todoAfter(
  end: OperationEnd,
  { rules, key, isShared }: { rules: SettlingRules | undefined; key: string | undefined; isShared: boolean },
): string {
  if (isUnclear(end, rules)) return unclear;
  if (end === "failed" && isShared && rules?.ownKey === true && rules.baseline === undefined)
    return "Nothing of this one was carried out; another operation has its key: look at that one.";
  const goods = rules?.counts === "sold" ? goodsToo : "";
  const again =
    rules === undefined || key === undefined
      ? "Don't send it again: it would be done again."
      : "Within a day of it, a till that doesn't know may send the same call with Prefer: wait: nothing is done twice.";
  return isGoodEnd(end) && end !== "unprinted" ? `${todos[end]}${goods} ${again}` : todos[end];
}

const goodsToo = " Finish it at the till, if that wasn't done.";

const todos: Readonly<Record<OperationEnd, string>> = {
  approved: "It was carried out.",
  closed: "The document is there.",
  unprinted:
    "The document is there, and its print was missing: print a copy (/check_copy with its documentID, which /check_status tells), " +
    "unless one was printed since. Don't send it again under a new key.",
  declined: "It was not carried out: a new attempt needs a new key.",
  reversed: "The payment was taken back: a new sale needs a new key.",
  failed: "Nothing was carried out: the same call may be sent again, under the same key, once any cause named above is gone.",
};
