import type { Contract } from "../contract/contract.ts";
import { routeOf } from "../contract/contracts.ts";
import { settlingRulesOf } from "../contract/settling.ts";
import { type Ids, isGoodEnd, isNothing, type OperationEnd } from "../core/followed.ts";
import { scalarText } from "./exact-json.ts";
import type { Fact, Said } from "./fact.ts";
import { type FollowedOperation, hasCode, isSameId } from "./proof.ts";

/**
 * The judge: the facts of an operation go in, and out comes how it ended, or what to do next. It has no clock and no memory, and sends
 * nothing: whoever has the same list comes to the same word. The contracts' rules are data (`contract/settling.ts`); docs/keys.md says
 * in sentences what is decided here.
 */

/** An operation under its rules, and who follows it. */
export interface JudgedOperation extends FollowedOperation {
  /** It is sent once at most, and nothing is printed: by the bridge. */
  readonly isSentOnce: boolean;
  /** What stands under its key is asked before it is sent, as its rules say; else whoever sends it has done so. */
  readonly asksFirst: boolean;
  /** The name by which it is asked about until an answer gives one (qr: `trans`); undefined if its body says all. */
  readonly ownName: string | undefined;
  /** Milliseconds between two questions by which "there is none" counts twice. */
  readonly intervalMs: number;
}

/** Who follows operations, with its rules: the client asks before each start, the bridge sends once, and has asked before. */
const followers = {
  client: { isSentOnce: false, asksFirst: true },
  bridge: { isSentOnce: true, asksFirst: false },
} as const;

/**
 * An operation under its contract's rules; undefined if the contract has no end of it to follow.
 * @param fieldOf A field of its body.
 */
export function judgedOperation(
  contract: Contract,
  path: string,
  by: keyof typeof followers,
  fieldOf: (name: string) => unknown,
): JudgedOperation | undefined {
  const { key: keyField, polling } = routeOf(contract, path) ?? {};
  const rules = settlingRulesOf(contract.service, path);
  if (keyField === undefined || rules === undefined) return undefined;
  const key = fieldOf(keyField);
  const ownName = rules.learns && (scalarText(fieldOf(rules.learns)) ?? scalarText(key));
  // The client's own questions are an interval apart; the bridge hears those of tills as well.
  const intervalMs = by === "bridge" ? (polling?.intervalMs.min ?? 0) : 0;
  return { contract, rules, keyField, key, asks: polling !== undefined, ownName, intervalMs, ...followers[by] };
}

/** What is known after a list of facts. */
export interface Known {
  /** `not-sent`: nothing was ever sent, and won't be. undefined: nothing is proven. */
  readonly end: OperationEnd | "not-sent" | undefined;
  /** An error's code and words that say why it came to nothing. */
  readonly why: Pick<Said, "code" | "message"> | undefined;
  readonly next: "start" | "ask" | "print" | "wait" | "none";
  /** Before that. `interval`: between two questions. `back-off`: something didn't get through. */
  readonly pause: "none" | "interval" | "back-off";
  /** The service has it. */
  readonly isAccepted: boolean;
  /** The name by which it is asked about (qr: `trans`), unless its body says it; and whether it is proven to be the payment's. */
  readonly name: string | undefined;
  readonly isNameProven: boolean;
  /** An earlier start may have been answered with another name, under which it may go on: so the failure of one doesn't end it. */
  readonly hasOtherNames: boolean;
  /** Another start than the last may have come to something. */
  readonly doubt: boolean;
  readonly lastDoubt: boolean;
  /** Starts that have left, or may have. */
  readonly starts: number;
  readonly isOut: boolean;
  /** When the last one came to an end. */
  readonly startMs: number;
  /** The last start's answer, if it was an error that leaves open whether it has begun; and how many in a row were. */
  readonly refusal: Said | undefined;
  readonly refusals: number;
  readonly isSignedAgain: boolean;
  /** What stood under its key before: `{}` for nothing, undefined if not known. */
  readonly before: Ids | undefined;
  /** What its end was told by. */
  readonly ids: Ids | undefined;
  /** How often in a row it was said that there is none, and when the question was asked that counted last. */
  readonly nones: number;
  readonly noneMs: number | undefined;
  readonly isAborted: boolean;
  readonly isStopped: boolean;
  readonly isUnprinted: boolean;
  /** Others follow it on, who may print. */
  readonly isLeft: boolean;
}

const nothingKnown: Known = {
  end: undefined,
  why: undefined,
  next: "start",
  pause: "none",
  isAccepted: false,
  name: undefined,
  isNameProven: false,
  hasOtherNames: false,
  doubt: false,
  lastDoubt: false,
  starts: 0,
  isOut: false,
  startMs: 0,
  refusal: undefined,
  refusals: 0,
  isSignedAgain: false,
  before: {},
  ids: undefined,
  nones: 0,
  noneMs: undefined,
  isAborted: false,
  isStopped: false,
  isUnprinted: false,
  isLeft: false,
};

/** Nothing is known, and nothing was sent. */
export function unknownYet({ rules: { baseline }, asksFirst, ownName: name }: JudgedOperation): Known {
  if (baseline === undefined) return name === undefined ? nothingKnown : { ...nothingKnown, name };
  return { ...nothingKnown, name, before: undefined, next: asksFirst ? "ask" : "start" };
}

/** What all facts of an operation prove together. */
export function judge(operation: JudgedOperation, facts: readonly Fact[]): Known {
  return facts.reduce((known, fact) => after(operation, known, fact), unknownYet(operation));
}

/** A list with one more fact, or without those that the new one has made void: it doesn't grow while nothing is learned. */
export function withFact(operation: JudgedOperation, facts: readonly Fact[], fact: Fact): readonly Fact[] {
  const known = judge(operation, [...facts, fact]);
  const last = facts.at(-1)?.is;
  const sentAt = facts.findLastIndex(({ is }) => is === "sent");
  const isVoid = (each: Fact, at: number) =>
    (known.nones === 0 && at > sentAt && sentAt >= 0 && each.is === "told" && each.said.says === "none") ||
    (at === facts.length - 1 && ((fact.is === "unsent" && last === "sent") || (fact.is === "resumed" && last === "resumed")));
  const kept = facts.filter((each, at) => !isVoid(each, at));
  for (const list of [kept, [...kept, fact]]) if (isSameKnown(judge(operation, list), known)) return list;
  return [...facts, fact];
}

/** Whether the same is known; the pause before the next request is no knowledge. */
function isSameKnown({ pause: _, ...one }: Known, other: Known): boolean {
  const isSame = (value: unknown, name: keyof Known) =>
    value === other[name] || JSON.stringify(value) === JSON.stringify(other[name]);
  // Its own fields
  return Object.entries(one).every(([name, value]) => isSame(value, name as keyof Known));
}

/** How it is proven to have ended, once it was sent. */
export const provenEnd = ({ end }: Known): OperationEnd | undefined => (end === "not-sent" ? undefined : end);

/** Nothing of it can have begun: not sent any more, it has ended in nothing. */
export function nothingBegun({ end, doubt, refusals, isAccepted, isOut }: Known): boolean {
  return end === undefined && !doubt && refusals === 0 && !isAccepted && !isOut;
}

/** What is known after one more fact. */
export function after(operation: JudgedOperation, known: Known, fact: Fact): Known {
  if (fact.is === "aborted") return { ...known, isAborted: true };
  // An end stays; but that nothing was done is taken back by what the service has nonetheless.
  if (known.end !== undefined && fact.is !== "ended" && !(fact.is === "told" && known.end === "failed"))
    return afterEnd(known, fact);
  switch (fact.is) {
    case "new":
      return { ...known, before: {}, next: "start" };
    case "earlier":
      return { ...known, doubt: true, hasOtherNames: true };
    case "sent":
      return afterSending(known, fact.before);
    case "unsent":
      return afterUnsent(operation, known, fact);
    case "answered":
      return afterAnswer(operation, { ...known, isOut: false, startMs: fact.atMs }, fact.said);
    case "told":
      if (known.starts === 0) return beforeSending(operation, known, fact.said, fact.atMs);
      // What was asked before its own answer came says nothing of it
      if (known.isOut || fact.atMs < known.startMs) return known;
      return afterTold(operation, known, fact);
    case "word":
      return afterWord(operation, known, fact);
    case "ended":
      return ended(known, fact.end);
    case "resumed": {
      // What was about to be sent may have been since
      const mayHaveLeft = known.isOut || known.next === "start";
      const left = { isOut: false, doubt: true, starts: Math.max(1, known.starts), next: "ask" } as const;
      const anew = { nones: 0, noneMs: undefined, startMs: fact.atMs };
      return ask(operation, { ...known, ...(mayHaveLeft && left), ...anew });
    }
    case "stopped":
      if (nothingBegun(known)) return unsent({ ...known, isStopped: true }, { message: "it was stopped before it was sent" });
      return ask(operation, { ...known, isStopped: true });
    case "left": {
      const over = { starts: Math.max(1, known.starts), isOut: false, isStopped: true, isLeft: true };
      return ask(operation, { ...known, ...over, doubt: known.doubt || !known.isAccepted });
    }
    default:
      return known;
  }
}

/** What becomes of a document that is closed: its copy. */
function afterEnd(known: Known, fact: Fact): Known {
  switch (fact.is) {
    case "copy":
    case "left":
      return { ...known, why: undefined, next: "none" };
    case "uncopied":
      return { ...known, next: "print", pause: "back-off" };
    case "copied":
      return fact.ok ? { ...known, end: "closed" } : known;
    default:
      return known;
  }
}

function ended(known: Known, end: OperationEnd, { code, message, ids }: Partial<Said> = {}): Known {
  const why = code === undefined && message === undefined ? undefined : { code, message };
  return { ...known, end, why, ids: ids ?? known.ids, next: "none" };
}

/** Nothing was sent, and nothing will be; or what was sent came to nothing. */
function unsent(known: Known, why: Known["why"]): Known {
  return { ...known, end: known.starts === 0 ? "not-sent" : "failed", why, next: "none" };
}

const mayResend = ({ isSentOnce, rules }: JudgedOperation, { isStopped, starts }: Known) =>
  !isStopped && !isSentOnce && starts <= rules.resendsMax;

/** A question is asked next. */
function ask({ asks }: JudgedOperation, known: Known): Known {
  if (known.end !== undefined) return known;
  if (known.next === "start" && nothingBegun(known)) return known;
  return { ...known, next: known.isOut ? "wait" : asks ? "ask" : "none", pause: "interval" };
}

/** The same request is sent once more, if it may be. */
function resend(operation: JudgedOperation, known: Known): Known {
  return mayResend(operation, known) ? { ...known, next: "start", pause: "none" } : ask(operation, known);
}

// --- before it is sent

/**
 * What is known under the key before anything is sent. Whatever runs there must have ended, or its end would be taken for ours. That there
 * is nothing counts as often as after a start: who has lost sight of it in passing, as a gateway may, would let it pass for ours as well.
 */
function beforeSending(operation: JudgedOperation, known: Known, said: Said, askedMs: number): Known {
  const { rules } = operation;
  if (said.says === "none" || (said.ids === undefined && hasCode(rules.baseline ?? [], said.code))) {
    const seen = counted(operation, known, askedMs);
    return seen.nones < rules.absentsMin
      ? ask(operation, seen)
      : { ...seen, before: {}, nones: 0, next: "start", pause: "none" };
  }
  if (said.says === "nothing") return ask(operation, known);
  if (said.ids !== undefined) return { ...known, before: said.ids, nones: 0, next: "start", pause: "none" };
  // Refused is the question alone: of the operation, which isn't sent, nothing is said
  return said.says === "refused" ? unsent(known, said) : ask(operation, { ...known, nones: 0 });
}

/** "There is none" counts once an interval: a till's own question may come right behind another. */
function counted({ intervalMs }: JudgedOperation, known: Known, askedMs: number): Known {
  const isAgain = known.nones > 0 && known.noneMs !== undefined && askedMs < known.noneMs + intervalMs;
  return isAgain ? known : { ...known, nones: known.nones + 1, noneMs: askedMs };
}

function afterSending(known: Known, before: Ids | null | undefined): Known {
  return {
    ...known,
    ...(before !== undefined && { before: before ?? undefined }),
    // What was accepted before, and is sent again, may have been carried out twice
    doubt: known.doubt || known.isAccepted,
    lastDoubt: known.doubt || known.isAccepted,
    ...{ starts: known.starts + 1, isOut: true, next: "wait", pause: "none" },
  };
}

function afterUnsent(
  operation: JudgedOperation,
  known: Known,
  { passing, isSign, code, message }: Fact & { is: "unsent" },
): Known {
  const { isStopped, isSignedAgain } = known;
  const back: Known = { ...known, isOut: false, starts: known.starts - Number(known.isOut) };
  const next = back.starts === 0 && back.before === undefined && operation.asksFirst ? "ask" : "start";
  if (!isStopped && passing) return { ...back, next, pause: "back-off" };
  if (!isStopped && isSign && !isSignedAgain) return { ...back, isSignedAgain: true, next, pause: "none" };
  // An earlier start that was lost, or refused by an error that leaves it open, isn't undone by this one
  return nothingBegun(back) ? unsent(back, { code, message }) : ask(operation, { ...back, next: "ask" });
}

// --- the answer to the operation itself

function afterAnswer(operation: JudgedOperation, known: Known, said: Said): Known {
  const { rules } = operation;
  if (said.says === "nothing") return ask(operation, { ...known, doubt: true, refusal: undefined, next: "ask" });
  const named = learned(operation, known, said);
  const { doubt, isSignedAgain } = named;
  switch (said.says) {
    case "end":
      // The document that stood under the key before is another's (fiscal.md: a refund under the number of its sale)
      if (
        said.end === undefined ||
        (rules.success === "followed" && said.ids !== undefined && !isOwn(operation, named, said.ids))
      )
        return accepted(operation, named);
      // A document that was closed by an earlier delivery may be without its print.
      return said.unprinted ? accepted(operation, named, true) : ended(named, said.end, said);
    case "going":
      return accepted(operation, named, said.unprinted);
    case "sign":
      if (!isSignedAgain && mayResend(operation, named)) return { ...named, isSignedAgain: true, next: "start", pause: "none" };
      break;
    case "resend":
      if (mayResend(operation, named)) return { ...named, doubt: true, next: "start", pause: "interval" };
      break;
    case "none":
      if (doubt && hasCode(rules.resendCodesInDoubt, said.code) && mayResend(operation, named))
        return { ...named, next: "start", pause: "interval" };
      break;
    default:
  }
  const isRefused = said.says === "refused" || said.says === "sign";
  if (isRefused && !doubt && !named.isAccepted) return ended(named, "failed", said);
  if (named.isAccepted) return ask(operation, { ...named, next: "ask" });
  // Where the query can't name a start that failed (qr), a second refusal of the same start has to prove it instead
  const inDoubt = doubt || (!isRefused && rules.learns === undefined);
  return ask(operation, { ...named, refusal: said, refusals: named.refusals + 1, doubt: inDoubt, next: "ask" });
}

function accepted(operation: JudgedOperation, known: Known, unprinted = false): Known {
  const isUnprinted = known.isUnprinted || unprinted;
  return ask(operation, { ...known, isAccepted: true, isUnprinted, nones: 0, refusals: 0, next: "ask" });
}

/**
 * A success without a name says that the system makes none, so the till's own is right; but not where an earlier start may have been answered
 * with one, or where a repetition may go unnamed. An earlier start that was refused has shown no code of another name.
 */
function learned({ rules }: JudgedOperation, known: Known, { name, says }: Said): Known {
  if (rules.learns === undefined) return known;
  if (name !== undefined) return nameIs(known, name);
  return says === "going" && !known.doubt && known.refusals === 0 && !known.isAccepted
    ? { ...known, isNameProven: true }
    : known;
}

function nameIs(known: Known, name: string): Known {
  // An earlier start may have shown a code of another name, which may be paid: that this one fails is no end then.
  const isOnly = !known.doubt || (name === known.name && !known.hasOtherNames);
  return { ...known, name, isNameProven: isOnly, hasOtherNames: !isOnly };
}

// --- the answer to a question

function afterTold(operation: JudgedOperation, known: Known, { said, atMs, name: asked }: Fact & { is: "told" }): Known {
  // By what name it was asked, a record doesn't say: then none is proven.
  const name = asked ?? known.name;
  const isProven = known.isNameProven && name === known.name;
  const named = { name, isNameProven: isProven || asked !== undefined };
  if (said.says === "nothing" || (said.says === "none" && known.end !== undefined)) return ask(operation, known);
  if (said.says === "none") return afterNone(operation, known, said, atMs);
  const seen = { ...known, nones: 0, noneMs: undefined };
  switch (said.says) {
    case "end":
      if (said.end === undefined || said.end === known.end || !isOwn(operation, known, said.ids)) return ask(operation, seen);
      return afterFound(operation, { ...seen, ...named }, said.end, said);
    case "going": {
      const back = { ...seen, end: undefined, why: undefined };
      return accepted(operation, { ...back, ...(!seen.hasOtherNames && named) }, said.unprinted);
    }
    case "failed":
      return known.end === undefined ? afterFailure(operation, seen, said, isProven) : known;
    default:
      return ask(operation, seen);
  }
}

function afterFound({ rules, isSentOnce }: JudgedOperation, known: Known, end: OperationEnd, said: Said): Known {
  const found = ended(known, end, said);
  const lacksPrint = rules.print !== undefined && (known.isUnprinted || said.unprinted === true);
  if (!lacksPrint) return found;
  // A number that has lost digits as it was read can't name the document.
  const isPrinted = !isSentOnce && !known.isLeft && said.ids?.[rules.print.key] !== undefined;
  return { ...found, end: "unprinted", isUnprinted: true, next: isPrinted ? "print" : "none", pause: "none" };
}

/** "There is none." */
function afterNone(operation: JudgedOperation, known: Known, said: Said, askedMs: number): Known {
  const { rules } = operation;
  // Something was known under this key before, or may have been: that it is gone says nothing of ours, and it may be found again.
  if (!isNothing(known.before)) return ask(operation, known);
  const { isAccepted, isAborted, refusal, lastDoubt } = known;
  const mayBeGone =
    !isAccepted || rules.absentWhenAccepted === "refused" || (isAborted && rules.absentWhenAborted === "refused");
  if (!mayBeGone) return ask(operation, { ...known, nones: 0, noneMs: undefined });
  const isLost = !isAccepted && refusal === undefined;
  if (isLost && mayResend(operation, known)) return resend(operation, known);
  const end = (seen: Known): Known => ended(seen, "failed", refusal ?? said);
  // An earlier delivery may be on its way still, or the one that was answered so
  const isDenied = !isAccepted && refusal !== undefined && !lastDoubt;
  if (isDenied && refusal.says !== "error" && refusal.says !== "resend") return end(known);
  // What is said while it may be on its way doesn't count: it would leave one answer to decide later, which may be a passing one. What the
  // contract has resent must not be held up by half a minute
  const isOnItsWay = askedMs - known.startMs < rules.absentsAfterMs && !(isDenied && refusal.says === "resend");
  if (isOnItsWay) return ask(operation, { ...known, nones: 0, noneMs: askedMs });
  const seen = counted(operation, known, askedMs);
  return seen.nones >= rules.absentsMin ? end(seen) : ask(operation, seen);
}

/**
 * An error by which the service ends an operation (qr). It proves an end only when the query is known to have named the right one;
 * else the same start with the same key, which is the same payment, gives the name, or refuses it again.
 */
function afterFailure(operation: JudgedOperation, known: Known, said: Said, isProven: boolean): Known {
  if (isProven) return ended(known, "declined", said);
  if (known.isAccepted) return ask(operation, known);
  if (known.refusal !== undefined && known.refusals > 1 && !known.doubt) return ended(known, "declined", known.refusal);
  return resend(operation, known);
}

/** Whether an end can only be this operation's own: it differs from what stood under the key before. */
function isOwn(operation: JudgedOperation, { before }: Known, ids: Ids | undefined): boolean {
  if (before === undefined) return false;
  return isNothing(before) || differ(operation, before, ids);
}

/**
 * Whether two descriptions are surely of two transactions or documents. Where both have the service's own id, that and the status
 * decide; what one of them leaves out proves nothing.
 */
export function differ({ contract }: Pick<FollowedOperation, "contract">, one: Ids = {}, other: Ids = {}): boolean {
  const id = contract.envelope === "form" ? "documentID" : "txn_id";
  const both = Object.keys(one).filter((name) => other[name] !== undefined);
  const compared = both.includes(id) ? both.filter((name) => name === id || name === "status") : both;
  return compared.some((name) => !isSameId(one[name] ?? "", other[name] ?? ""));
}

// --- a bridge's word

function afterWord(operation: JudgedOperation, known: Known, { word, isGuarded, trans }: Fact & { is: "word" }): Known {
  const { rules } = operation;
  const isNamed = rules.learns !== undefined && trans !== undefined;
  const named = isNamed ? nameIs(known, trans) : known;
  // A bridge that recognises the same call knows all its names; a good end proves the one that it names
  const isProven = isNamed && (isGuarded || named.isNameProven || isGoodEnd(word));
  const told = isNamed ? { ...named, isNameProven: isProven, hasOtherNames: named.hasOtherNames && !isGuarded } : known;
  if (word === "pending") return accepted(operation, told);
  if (word === "unknown") return ask(operation, told);
  // An earlier call may have shown another code, which may be paid: the failure of this one is no end then (qr.md, Flow rules 3), and a
  // third code would be shown to a customer who has paid the first.
  const isOfSecondCode = rules.learns !== undefined && !isGuarded && known.starts > 1 && !isGoodEnd(word);
  return isOfSecondCode ? ask(operation, { ...told, isStopped: true, next: "ask" }) : ended(told, word);
}
