import type { LedgerEntry } from "../emulator/ledger.ts";
import { type CaseResult, failed, passed, secondsText, untested } from "../report/judgement.ts";
import { brokenBy, paymentSplit } from "./contract-rules.ts";
import { type DeedStep, deeds, type Word, words } from "./scenario.ts";
import type { RunEnd } from "./till.ts";

/** What the till said of a deed at last. */
export interface ResultHeard {
  readonly atMs: number;
  /** undefined: no word of the list. */
  readonly word: Word | undefined;
  /** What it said, as a person would tell it: `approved`, `nothing (exit code 2)`. */
  readonly text: string;
  readonly how: RunEnd["how"];
}

/** An operation of the terminal's ledger that began, or grew, while the till was asked for a deed; with the amount by which it grew. */
export interface Began extends LedgerEntry {
  readonly service: string;
  readonly atMs: number;
  /** When an answer could tell its end first. */
  readonly endedMs: number;
}

/** A deed that the till was asked for, and the three ledgers of it. */
export interface AskResult {
  readonly ask: DeedStep;
  /** Minor units. */
  readonly amount: bigint;
  readonly said: readonly ResultHeard[];
  readonly began: readonly Began[];
  /** Why what was to go wrong never came to; undefined if it did. */
  readonly untested: string | undefined;
  /** What the till called that does more than read: `bank /sale`. */
  readonly called: readonly string[];
  /** How often the till asked for operations in its busiest second. */
  readonly questionsPerSecond: number;
}

/** Words of a till, and ends in the terminal's ledger. */
const doneEnds: ReadonlySet<string> = new Set(["approved", "closed", "unprinted"]);
/** Routes that a till may call beside those of a deed: they begin nothing. What they end is seen in the ledger. */
const besides: ReadonlySet<string> = new Set([
  ...["bank /abort", "bank /terminate"],
  ...["fiscal /abort", "fiscal /open_shift"],
  // "Optional after payment" (qr contract, Endpoints, responses)
  "qr /final_confirm",
]);

/** Questions in a second from which a till is in other calls' way: the contracts recommend one in a second or two. */
const questionsPerSecondMax = 10;

const undoneWords: ReadonlySet<Word> = new Set(["declined", "reversed", "failed"]);

/**
 * Judges a till. Four rules, in this order: it begins each deed once at most, and nothing else; its word is true; it comes to an end; and the
 * end is the one that could be known. What the till can't do, and what never went wrong as planned, is not tested, unless a rule was broken.
 */
export function findingOf(results: readonly AskResult[]): CaseResult {
  for (const [index, result] of results.entries()) {
    const { ask } = result;
    const same = results.slice(0, index).filter((each) => each.ask.key === ask.key && each.ask.deed === ask.deed);
    const earlier = same.flatMap(({ began }) => began);
    const originals = results.filter((each) => each.ask.key === ask.of);
    const broken =
      begunTwice(result, earlier) ??
      calledBeside(result) ??
      falseWord(result, earlier) ??
      otherOriginal(result, originals) ??
      endless(result);
    if (broken !== undefined) return broken;
  }
  const unsupported = results.find(({ said }) => said.some(({ word }) => word === "unsupported"));
  if (unsupported !== undefined) return untested(`The till can't do ${unsupported.ask.deed}: it says unsupported`);
  const asked = results.filter(({ ask }) => ask.ends !== undefined);
  const unclear = asked.flatMap(({ said }) => said).find(({ how }) => how === "unclear");
  if (unclear !== undefined) return untested(`The till's last line, ${unclear.text}, is none of ${words.join(", ")}`);
  for (const result of results) {
    const broken = otherEnd(result);
    if (broken !== undefined) return broken;
  }
  for (const result of results) {
    const told = articleTold(result, results);
    if (told !== undefined) return told;
  }
  for (const { untested: why } of results) if (why !== undefined) return untested(why);
  return passed(
    results.map(toldText).join(" "),
    results.map(hurried).find((note) => note !== undefined),
  );
}

/**
 * Money or paper beside what was asked for.
 * @param earlier What began when the same deed was asked for before: what was done of it isn't to be done again.
 */
function begunTwice({ ask, amount, began }: AskResult, earlier: readonly Began[]): CaseResult | undefined {
  const { contract, routes } = deeds[ask.deed];
  const { again } = brokenBy[contract];
  const asked = `Asked for one ${ask.deed} of ${amountText(amount)}, the till began`;
  if (began.some(({ service, route }) => service !== contract || !routes.includes(route)))
    return failed(`${asked} what nobody asked for: ${entriesText(began)}`, again);
  const all = [...earlier.filter((each) => doneEnds.has(each.end) && each.amount === amount), ...began];
  if (began.length === 0 || all.length < 2) return undefined;
  return failed(`${asked} ${all.length}: ${entriesText(all)}`, again);
}

/** A batch or shift closed, a report or copy printed, of which the ledger has nothing. A copy is right if the paper is missing. */
function calledBeside({ ask, amount, called }: AskResult): CaseResult | undefined {
  const { contract, routes } = deeds[ask.deed];
  const isUnprinted = ask.trouble?.kind === "outcome" && ask.trouble.outcome === "not-printed";
  const right = [...routes.map((route) => `${contract} ${route}`), ...(isUnprinted ? ["fiscal /check_copy"] : [])];
  const other = called.find((each) => !besides.has(each) && !right.includes(each));
  if (other === undefined) return undefined;
  return failed(`Asked for one ${ask.deed} of ${amountText(amount)}, the till called ${other}, which nobody asked for`);
}

/** Given back is another than was asked for, or a payment by card or QR is booked as cash. */
function otherOriginal({ ask, began }: AskResult, originals: readonly AskResult[]): CaseResult | undefined {
  const ids = originals.flatMap((each) => each.began.map(({ id }) => id));
  const other = began.find(({ of }) => of !== undefined && !ids.includes(of));
  if (other !== undefined)
    return failed(`Asked for the ${ask.deed} of one, the till gave back another: ${entriesText([other])}`);
  const isPaid = originals.some((each) => deeds[each.ask.deed].contract !== "fiscal");
  const cash = began.find((each) => isPaid && (each.cash ?? 0n) > 0n)?.cash;
  const what = `The till booked ${amountText(cash ?? 0n)} as cash that were not paid in cash`;
  return cash === undefined ? undefined : failed(what, paymentSplit);
}

/** @param earlier What began when the same deed was asked for before: its word may be of that. */
function falseWord({ ask, amount, said, began }: AskResult, earlier: readonly Began[]): CaseResult | undefined {
  const { early, blind } = brokenBy[deeds[ask.deed].contract];
  const done = began.filter(({ end }) => doneEnds.has(end));
  const right = [...earlier.filter(({ end }) => doneEnds.has(end)), ...done].filter((each) => each.amount === amount);
  for (const { word, atMs } of said) {
    if (word === undefined) continue;
    const told = `The till said ${word} at ${secondsText(atMs)}`;
    if (doneEnds.has(word) && right.length === 0) {
      const why = `${told}; asked was ${amountText(amount)}, and the terminal ${has(began)}`;
      // Of another amount the scenario has its own sentence.
      return failed(why, done.length > 0 ? undefined : early);
    }
    if (doneEnds.has(word) && right.every(({ endedMs }) => endedMs > atMs)) {
      return failed(`${told}, while it still went on; later the terminal ${has(right)}`, early);
    }
    if (word === "closed" && right.some(({ end }) => end === "unprinted")) {
      return failed(`${told}; the terminal has the document, and printed no paper`);
    }
    if (undoneWords.has(word) && done.length > 0) return failed(`${told}; the terminal ${has(done)}`, blind);
  }
  return undefined;
}

function endless({ ask, said }: AskResult): CaseResult | undefined {
  const last = said.find(({ how }) => how === "stopped");
  if (last === undefined) return undefined;
  return failed(`The till had not ended the ${ask.deed} after ${secondsText(last.atMs)}`);
}

function hurried({ ask, questionsPerSecond }: AskResult): string | undefined {
  if (questionsPerSecond <= questionsPerSecondMax) return undefined;
  return `Of the ${ask.deed} the till asked ${questionsPerSecond} times within a second: once is enough`;
}

/** The end could be known, and the till has another one or none. */
function otherEnd({ ask, amount, said, began, called }: AskResult): CaseResult | undefined {
  const wrong = said.find(({ word }) => ask.ends !== undefined && (word === undefined || !ask.ends.includes(word)));
  if (wrong === undefined) return undefined;
  const isStopped = called.includes("bank /abort") && began.some(({ end }) => end === "cancelled");
  // A till may end what takes too long, if it waits for how that ends.
  if (isStopped && undoneWords.has(wrong.word ?? "unknown")) return untested(`The till stopped the ${ask.deed} by /abort`);
  const told = `The till said ${wrong.text} at ${secondsText(wrong.atMs)}`;
  const what = `${ask.deed} of ${amountText(amount)} whose end could be known`;
  return failed(`${told}, of a ${what}; the terminal ${has(began)}`, brokenBy[deeds[ask.deed].contract].blind);
}

/** What became of the article that the till was to sell. One of its own says nothing, unless the till sold another as named. */
function articleTold(result: AskResult, results: readonly AskResult[]): CaseResult | undefined {
  const { article } = result.ask;
  if (article === undefined) return undefined;
  const named = soldAsNamed(result);
  if (named === undefined) {
    if (!results.some(soldAsNamed)) return untested("The till sold another article than POSLINE_ITEM");
    const names = result.began.flatMap(({ articles = [] }) => articles.map(({ name = "" }) => name));
    return failed(`Asked for an article named ${article.name}, the till sold ${names.join(", ")}`);
  }
  if (named.quantity === article.quantity) return undefined;
  return failed(`Asked for ${article.quantity} thousandths of the article, the till sold ${named.quantity}`);
}

const soldAsNamed = ({ ask: { article }, began }: AskResult) =>
  began.flatMap(({ articles = [] }) => articles).find(({ name }) => name === article?.name);

const toldText = ({ ask, said, began }: AskResult) =>
  `Of the ${ask.deed} the till said ${said.map(({ text }) => text).join(" and ")}; the terminal ${has(began)}.`;

const has = (began: readonly Began[]) => (began.length === 0 ? "has nothing of it" : `has ${entriesText(began)}`);

const entriesText = (began: readonly Began[]) =>
  began
    .map(({ route, amount, end, atMs }) => `${route} of ${amountText(amount)}, ${end}, begun at ${secondsText(atMs)}`)
    .join("; ");

/** Minor units with two decimals, as most currencies have: `15.31`. */
export function amountText(amount: bigint): string {
  const digits = String(amount).padStart(3, "0");
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}
