import type { Action } from "../../src/client/settle-types.ts";
import type { ContractName } from "../../src/core/call.ts";
import { type CallResult, emptySummary } from "../../src/settle/call-result.ts";
import type { JudgedOperation } from "../../src/settle/judge.ts";
import { refusesStart } from "../../src/settle/proof.ts";
import { bad, good, unsentCall } from "../settle/judged.ts";

/**
 * A terminal and its line as bad as the contracts let them be: to each request it has a list of everything that may become of it. How an
 * operation ends is decided as late as can be, when an answer first says so.
 */

export type Is = "runs" | "good" | "bad" | "reversed";

/** What a start has begun: of qr a code, each with its own name. */
type Begun = { readonly name: string; readonly is: Is };

export class Terminal {
  /** At most one, but for qr, where a start that comes again may show another code. */
  readonly begun: readonly Begun[] = [];
  /** Starts that are on their way still, whose answers nobody will get. */
  readonly late: number = 0;
  /** A gateway doesn't see the operation yet: for half a minute after its sending (settling.ts, `absentsAfterMs`). */
  readonly isHidden: boolean = false;
  /** How often in a row what stands there was denied in passing: twice at most, or no number of questions would prove anything. */
  readonly denied: number = 0;
  /** It was answered with an error that its contract lists, and stands there: in plain sight (settling.ts, `absentsMin`). */
  readonly isPlain: boolean = false;
  /** An operation under the key from before. */
  readonly before: Is | undefined = undefined;
  /** A follow-up of somebody else's under the key, sent after the operation had ended well. */
  readonly later: Is | undefined = undefined;
  /** A day has passed, and it knows nothing of all that any more. */
  readonly hasForgotten: boolean = false;
  /** Its document lacks its print, which the answers to questions may say or leave out (fiscal.md, Document: all optional). */
  readonly isUnprinted: boolean = false;
  readonly copies: number = 0;
  /** Of qr: the start was answered with an error, and shows a code nonetheless. */
  readonly isDenied: boolean = false;
  /** A start has arrived. */
  readonly isReached: boolean = false;
}

/** One thing that may become of a request. */
export interface Happening {
  readonly what: string;
  readonly terminal: Terminal;
  readonly result: CallResult;
  /** How many of the lost, late and misleading answers it uses up. */
  readonly faults: number;
  /** A terminal that answers truly, and carries out what it is asked, may do that. */
  readonly isTrue: boolean;
  /** The start was carried out though an earlier one was. */
  readonly isTwice: boolean;
}

const may = (what: string, terminal: Terminal, result: CallResult, faults = 0, isTrue = false): Happening => ({
  ...{ what, terminal, result, faults, isTrue, isTwice: false },
});

/** An operation's kind: its rules, and what the tests know of it without asking them. */
export interface Kind {
  readonly name: string;
  readonly service: ContractName;
  readonly followed: JudgedOperation;
  /** Each start that arrives is carried out: bank.md, Endpoints, rule 4 and qr.md, Flow rule 3 forbid to send it again. */
  readonly isOnce: boolean;
  readonly isCash: boolean;
  /** It is sent again as often as its rules allow; else once. */
  readonly isRepeatedOften: boolean;
}

export const key = "K-1";
const ids = { before: "1", own: "2", later: "3" } as const;
const lost: CallResult = { outcome: "unknown", summary: emptySummary };

type Told = readonly [what: string, result: CallResult];

/** What may be said of what stands under the key; fiscal names a document's print as well. */
function wordsOf({ service }: Kind, is: Is, id: string, isUnprinted = false): readonly Told[] {
  const open: Told = ["it goes on", good(service === "fiscal" ? { docStatus: 0, documentID: id } : {})];
  if (is === "runs") return service === "fiscal" ? [open, ["it goes on (44)", bad(44)]] : [open];
  if (service === "qr") return [is === "good" ? ["it is paid", good({ data: { rrn: "7" } })] : ["it has failed", bad(1)]];
  if (service === "bank") {
    const status = { good: "APPROVED", bad: "ERROR", reversed: "REVERSED" }[is];
    return [[status, is === "good" ? good({ data: { txn_id: id, status } }) : bad(-20, { data: { txn_id: id, status } })]];
  }
  const document = { docStatus: 1, documentID: id };
  const closed: Told = ["the document is closed", good(document)];
  if (!isUnprinted) return [closed];
  const error: Told = ["the document is closed, with a printError", good({ ...document, printError: 3 })];
  return [["the document is closed, and not printed (15)", bad(15, { ...document, printError: 3 })], error, closed];
}

/** How what stands so may be found. */
function endsOf({ service }: Kind, is: Is): readonly Is[] {
  if (is !== "runs") return [is];
  return service === "bank" ? ["runs", "good", "bad", "reversed"] : ["runs", "good", "bad"];
}

/** A fiscal document that failed is removed (fiscal.md, States and transitions). */
function withEnd({ service }: Kind, terminal: Terminal, at: number, is: Is): Terminal {
  const begun = terminal.begun.map((each, index) => (index === at ? { ...each, is } : each));
  return { ...terminal, begun: is === "bad" && service === "fiscal" ? [] : begun };
}

/** Errors to a start; with a wrong sign nothing else goes wrong. Whatever an earlier start has begun stays: a request is looked at first. */
function refusals(kind: Kind, t: Terminal): readonly Happening[] {
  const { rules } = kind.followed;
  const { listed, open } = codesOf(kind);
  const codes = [...rules.refusals.slice(0, 1), ...listed, ...rules.resendCodesInDoubt];
  // Of qr a second refusal of the same start is believed, which has no other proof (src/settle/judge.ts, `afterFailure`)
  const all = [...codes, ...(t.isDenied ? [] : open)].map((code) => may(`is refused with ${code}`, t, bad(code)));
  return [...all, ...rules.signCodes.map((code) => may(`is refused with ${code}`, t, bad(code), 2))];
}

/** One code that the contract lists for what isn't begun, and codes that leave everything open. */
function codesOf({ service, followed: { contract, rules } }: Kind) {
  const { finals, codes, faultCodes } = contract;
  const special = [0, faultCodes.broken, rules.print?.code, ...finals.pendingCodes, ...finals.absentCodes];
  const isSpecial = (code: number) => special.includes(code) || refusesStart(rules, code);
  const listed = codes.flatMap(({ code }) => (isSpecial(code) ? [] : code)).slice(0, 1);
  return { listed, open: service === "qr" ? [1] : [99, faultCodes.broken] };
}

/** What may become of a start that arrives, and its answer. */
function arrivals(kind: Kind, before: Terminal): readonly Happening[] {
  const t: Terminal = { ...before, isReached: true };
  const isAnew = t.begun.length === 0 || kind.isOnce || t.hasForgotten;
  // A number that its sale has as well: it is taken for the sale once more (fiscal.md, Endpoints, rule 3)
  const known = t.before === undefined || t.before === "runs" ? [] : wordsOf(kind, t.before, ids.before);
  const taken = known.map(([what, said]) =>
    may(`is taken for the earlier one: ${what}`, t, kind.service === "bank" ? good() : said),
  );
  const begun =
    kind.service === "qr"
      ? codesShown(kind, t, isAnew, !before.isReached)
      : [false, true].flatMap((isHidden) => carriedOut(kind, t, isAnew, isHidden));
  return [...refusals(kind, t), ...taken, ...begun].map((each) => {
    const isTwice = isAnew && t.begun.length > 0 && each.terminal.begun !== t.begun;
    return { ...each, what: `the start arrives, and ${each.what}`, isTwice };
  });
}

function codesShown({ followed: { asks, rules } }: Kind, t: Terminal, isAnew: boolean, isFirst: boolean): readonly Happening[] {
  if (!asks) {
    const done = { ...t, begun: [{ name: key, is: "good" }] } as const;
    return [
      may("is carried out", done, good(rules.successShowsEnd ? { data: { rrn: "9" } } : {}), 0, true),
      may("is carried out, and is answered with 1", done, bad(1)),
      ...(rules.successShowsEnd ? [may("is answered as a payment that goes on", t, good())] : []),
    ];
  }
  const shown = isAnew ? [] : t.begun.map(({ name }) => name);
  // qr.md, Resources: a system makes the names, or makes none. An error shows no code, so that a repetition of one that did shows the same
  // (src/settle/judge.ts, `learned`)
  const fresh = isAnew ? [key, "T-1"] : shown.length < 2 && shown[0] !== key && !t.isDenied ? ["T-2"] : [];
  const isPaid = t.begun.some(({ is }) => is === "good");
  return [...shown, ...(isPaid ? [] : fresh)].flatMap((name) => {
    const after = { ...t, begun: shown.includes(name) ? t.begun : [...t.begun, { name, is: "runs" as const }] };
    const answer = good(name === key ? {} : { data: { trans: name } });
    const told = may(`shows the code ${name}`, after, answer, 0, isAnew || shown.includes(name));
    const denied = { ...after, isDenied: true };
    if (isFirst) return [told, may(`shows the code ${name}, and is answered with 1`, denied, bad(1))];
    return isAnew ? [told] : [told, may(`shows the code ${name}, and doesn't name it once more`, after, good())];
  });
}

/** Of bank and fiscal. @param isHidden Out of sight, if it is new. */
function carriedOut(kind: Kind, t: Terminal, isAnew: boolean, isHidden: boolean): readonly Happening[] {
  if (!isAnew && isHidden !== t.isHidden) return [];
  const { listed, open } = codesOf(kind);
  const how = `${isAnew ? "is carried out" : "finds its operation"}${isHidden ? ", out of sight" : ""}`;
  const begun: Terminal = isAnew ? { ...t, begun: [{ name: "", is: "runs" }], isHidden, isPlain: false, denied: 0 } : t;
  const is = begun.begun[0]?.is;
  // Nobody knows what another maker's gateway does behind a receipt's code 5 (docs/limits.md): it doesn't hide the document for long
  const opens = open.filter((code) => !isHidden || !kind.followed.rules.resendCodes.includes(code));
  const found = opens.map((code) => may(`${how}, and is answered with ${code}`, begun, bad(code)));
  if (isAnew && !isHidden)
    found.push(...listed.map((code) => may(`${how}, and is answered with ${code}`, { ...begun, isPlain: true }, bad(code))));
  if (kind.service === "bank") return [...found, may(how, begun, good(), 0, !isHidden)];
  if (is === "runs")
    found.push(...wordsOf(kind, is, ids.own).map(([what, said]) => may(`${how}: ${what}`, begun, said, 0, !isHidden)));
  for (const isUnprinted of is === "good" ? [t.isUnprinted] : [false, true]) {
    const closed = { ...withEnd(kind, begun, 0, "good"), isUnprinted };
    // Of cash only code 15 tells of its print (fiscal.md, Endpoints: its success has no printError, nor a docStatus)
    const words = wordsOf(kind, "good", ids.own, isUnprinted).slice(0, kind.isCash ? 1 : 2);
    for (const [what, said] of words) {
      const answer = kind.isCash && !isUnprinted ? good({ documentID: ids.own }) : said;
      found.push(may(`${how}: ${what}`, closed, answer, 0, is === "good"));
    }
  }
  return found;
}

/** What may become of a request. @param name The name that is asked for (qr). */
export function happenings(kind: Kind, t: Terminal, action?: Action, name?: string): readonly Happening[] {
  if (action === "start") return starts(kind, t);
  if (action === "ask") return questions(kind, t, name);
  if (action === undefined) return [];
  const printed = { ...t, copies: t.copies + 1 };
  return [
    may("the copy isn't asked for, for now", t, unsentCall(true)),
    may("the copy isn't asked for, for good", t, unsentCall(false)),
    may("the copy is printed", printed, good(), 0, true),
    may("the copy is refused", t, bad(5)),
    may("the copy's request is lost", t, lost, 1),
    may("the copy is printed, and its answer is lost", printed, lost, 1),
  ];
}

function starts(kind: Kind, t: Terminal): readonly Happening[] {
  const arrived = arrivals(kind, t).map((each) => ({ ...each, isTrue: each.isTrue && each.faults === 0 }));
  const instead = (what: string, result: CallResult) =>
    arrived.map((each) => ({ ...each, what: `${each.what}; ${what}`, result, faults: 1, isTrue: false }));
  return [
    may("the start isn't sent, for now", t, unsentCall(true)),
    may("the start isn't sent, for good", t, unsentCall(false)),
    ...kind.followed.rules.signCodes.map((code) => may("the start isn't sent, for its sign", t, unsentCall(false, code), 2)),
    may("the start is lost on its way", t, lost, 1),
    may("the start is late, and given up", { ...t, late: t.late + 1 }, lost, 1),
    ...[...arrived, ...instead("the answer is lost", lost), ...instead('a gateway says "unknown"', gatewaysWord(kind))],
  ];
}

/** A late start arrives, and nobody gets its answer. */
export function lateArrivals(kind: Kind, t: Terminal): readonly Happening[] {
  if (t.late === 0) return [];
  return arrivals(kind, { ...t, late: t.late - 1 }).map((each) => ({ ...each, what: `${each.what} late`, result: lost }));
}

/** As posline's own gateway says that it doesn't know, and others may (src/settle/proof.ts, `saysNothing`). */
const gatewaysWord = ({ followed: { contract, asks } }: Kind): CallResult =>
  contract.service === "qr" && asks ? good({ message: "no answer" }) : bad(contract.faultCodes.broken, { outcome: "unknown" });

function questions(kind: Kind, t: Terminal, name: string | undefined): readonly Happening[] {
  const { contract, keyField } = kind.followed;
  const [[, other] = ["", good()]] = wordsOf(kind, "good", "9");
  const another = good({ ...("reply" in other && other.reply), [keyField]: "OTHER" });
  return [
    may("the question isn't sent", t, unsentCall(true)),
    may("the question has no answer", t, lost, 1),
    may('the question is answered "unknown" by a gateway', t, gatewaysWord(kind), 1),
    may("the question is answered about another key", t, another, 1),
    ...(kind.service === "qr"
      ? [may("the question is answered about another trans", t, good({ data: { trans: "T-9", rrn: "9" } }), 1)]
      : []),
    ...(contract.finals.errorIsFinal
      ? []
      : [may("the question is refused", { ...t, denied: 0 }, bad(contract.faultCodes.broken), 1)]),
    ...truths(kind, t, name),
  ];
}

/** What a question may find. */
function truths(kind: Kind, t: Terminal, name: string | undefined): readonly Happening[] {
  const found: Happening[] = [];
  const add = (who: string, terminal: Terminal, words: readonly Told[], isTrue = true) =>
    found.push(...words.map(([what, said]) => may(`the question finds ${who}: ${what}`, terminal, said, 0, isTrue)));
  const none: readonly Told[] = [["there is none", bad(kind.followed.contract.finals.absentCodes[0] ?? 1)]];
  if (t.hasForgotten) add("nothing any more", t, none);
  else if (t.later !== undefined)
    for (const later of endsOf(kind, t.later)) {
      add("a later one", { ...t, later }, wordsOf(kind, later, ids.later));
      // Its transaction's id may be left out (bank.md, Transaction result)
      if (later === "reversed")
        add("a later one", { ...t, later }, [["REVERSED", bad(-20, { data: { status: later.toUpperCase() } })]]);
    }
  if (t.hasForgotten || t.later !== undefined) return found;
  const at = t.begun.findIndex((each) => kind.service !== "qr" || each.name === name);
  const own = t.begun[at];
  const isPaidElsewhere = t.begun.some(({ is }, index) => is === "good" && index !== at);
  for (const is of own === undefined ? [] : endsOf(kind, own.is)) {
    const ended = withEnd(kind, { ...t, isHidden: false, denied: 0 }, at, is);
    if (is !== "good" || !isPaidElsewhere)
      add("it", ended, ended.begun.length === 0 ? none : wordsOf(kind, is, ids.own, t.isUnprinted));
  }
  const isDeniable = t.isHidden || (!t.isPlain && t.denied < 2 && kind.service !== "qr");
  const isTrue = own === undefined;
  if (!isTrue && !isDeniable) return found;
  const denying = isTrue || t.isHidden ? t : { ...t, denied: t.denied + 1 };
  if (t.before === undefined) add("nothing", denying, none, isTrue);
  for (const is of t.before === undefined ? [] : endsOf(kind, t.before)) {
    const isGone = is === "bad" && kind.service === "fiscal";
    add(
      "the earlier one",
      { ...denying, before: isGone ? undefined : is },
      isGone ? none : wordsOf(kind, is, ids.before),
      isTrue,
    );
  }
  if (t.before !== undefined && t.denied < 2 && !t.isHidden) add("nothing", { ...t, denied: t.denied + 1 }, none, false);
  return found;
}

/** Half a minute passes: what was on its way has come or is gone, and each gateway sees what there is. */
export const halfMinuteLater = (t: Terminal): Terminal => (t.late > 0 || t.isHidden ? { ...t, late: 0, isHidden: false } : t);

export const aDayLater = (t: Terminal): Terminal => ({ ...halfMinuteLater(t), hasForgotten: true });

/** fiscal.md, Endpoints: an abort that succeeds removes the document if it is open and seen. */
export const aborted = (kind: Kind, t: Terminal): Terminal =>
  t.isHidden || t.begun[0]?.is !== "runs" ? t : withEnd(kind, t, 0, "bad");

/** Whether the operation was carried out, may still be, or was taken back. */
export function stands({ service }: Kind, { begun, late }: Terminal): boolean {
  // The same key is the same operation; but where a system makes the names, a late start may show another code
  const isKnown = begun.length > 0 && (service !== "qr" || begun[0]?.name === key);
  return (late > 0 && !isKnown) || begun.some(({ is }) => is !== "bad");
}
