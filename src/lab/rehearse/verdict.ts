import type { LedgerEntry } from "../emulator/ledger.ts";
import { broken, type Finding, held, secondsText, unseen } from "../report/judgement.ts";
import { type Ask, deeds, type Word } from "./scenario.ts";

/** What the till said of a deed at last. */
export interface ResultHeard {
  readonly atMs: number;
  /** undefined: no word of the list. */
  readonly word: Word | undefined;
  /** What it said, as a person would tell it: `approved`, `nothing (exit code 2)`. */
  readonly text: string;
  /** False if it was ended since it went on for too long. */
  readonly hasEnded: boolean;
}

/** An operation of the terminal's ledger that began, or grew, while the till was asked for a deed; with the amount by which it grew. */
export interface Began extends LedgerEntry {
  readonly service: string;
  readonly atMs: number;
}

/** A deed that the till was asked for, and the three ledgers of it. */
export interface AskResult {
  readonly ask: Ask;
  /** Minor units. */
  readonly amount: bigint;
  readonly said: readonly ResultHeard[];
  readonly began: readonly Began[];
  /** Why what was to go wrong never came to; undefined if it did. */
  readonly unseen: string | undefined;
}

const doneEnds: ReadonlySet<string> = new Set(["approved", "closed", "unprinted"]);
const doneWords: ReadonlySet<Word> = new Set(["approved", "closed", "unprinted"]);
const undoneWords: ReadonlySet<Word> = new Set(["declined", "reversed", "failed"]);

/**
 * Judges a till. Four rules, in this order: it begins each deed once at most, and nothing else; its word is true; it comes to an end; and the
 * end is the one that could be known. What the till can't do, and what never went wrong as planned, is not seen, unless a rule was broken.
 */
export function findingOf(results: readonly AskResult[]): Finding {
  for (const result of results) {
    const why = begunTwice(result) ?? falseWord(result) ?? endless(result);
    if (why !== undefined) return broken(why);
  }
  const unsupported = results.find(({ said }) => said.some(({ word }) => word === "unsupported"));
  if (unsupported !== undefined) return unseen(`The till can't do ${unsupported.ask.deed}: it says unsupported`);
  for (const result of results) {
    const why = otherEnd(result);
    if (why !== undefined) return broken(why);
  }
  for (const result of results) {
    const told = articleTold(result);
    if (told !== undefined) return told;
  }
  for (const { unseen: why } of results) if (why !== undefined) return unseen(why);
  return held(results.map(toldText).join(" "));
}

/** Money or paper beside what was asked for. */
function begunTwice({ ask, amount, began }: AskResult): string | undefined {
  const { routes } = deeds[ask.deed];
  const others = began.filter(({ route }) => !routes.includes(route));
  const [other] = others;
  if (other !== undefined) {
    return `Asked for one ${ask.deed} of ${amountText(amount)}, the till began what nobody asked for: ${entriesText(began)}`;
  }
  if (began.length < 2) return undefined;
  return `Asked for one ${ask.deed} of ${amountText(amount)}, the till began ${began.length}: ${entriesText(began)}`;
}

function falseWord({ ask, amount, said, began }: AskResult): string | undefined {
  const done = began.filter(({ end }) => doneEnds.has(end));
  const right = done.filter((each) => each.amount === amount);
  for (const { word, atMs } of said) {
    if (word === undefined) continue;
    const told = `The till said ${word} at ${secondsText(atMs)}`;
    if (doneWords.has(word) && right.length === 0) {
      return `${told}; asked was ${amountText(amount)}, and the terminal ${has(began)}`;
    }
    if (word === "closed" && right.some(({ end }) => end === "unprinted")) {
      return `${told}; the terminal has the document, and printed no paper`;
    }
    if (undoneWords.has(word) && done.length > 0) return `${told}; the terminal ${has(done)}`;
  }
  return ask.twice !== true ? undefined : contradiction(said);
}

/** Two runs at once of which one says that it was done, and the other that it wasn't. */
function contradiction(said: readonly ResultHeard[]): string | undefined {
  const known = said.flatMap(({ word }) => (word === undefined ? [] : [word]));
  const differ = known.some((word) => doneWords.has(word)) && known.some((word) => undoneWords.has(word));
  return differ ? `Of two runs at once the till said ${known.join(" and ")} of the same deed` : undefined;
}

function endless({ ask, said }: AskResult): string | undefined {
  const last = said.find(({ hasEnded }) => !hasEnded);
  return last === undefined ? undefined : `The till had not ended the ${ask.deed} after ${secondsText(last.atMs)}`;
}

/** The end could be known, and the till has another one or none. */
function otherEnd({ ask, amount, said, began }: AskResult): string | undefined {
  const { ends } = ask;
  if (ends === undefined) return undefined;
  const wrong = said.find(({ word }) => word === undefined || !ends.includes(word));
  if (wrong === undefined) return undefined;
  const told = `The till said ${wrong.text} at ${secondsText(wrong.atMs)}`;
  return `${told}, of a ${ask.deed} of ${amountText(amount)} whose end could be known; the terminal ${has(began)}`;
}

/** What became of the article that the till was to sell. One of its own says nothing. */
function articleTold({ ask: { article }, began }: AskResult): Finding | undefined {
  if (article === undefined) return undefined;
  const sold = began.flatMap(({ articles = [] }) => articles);
  const named = sold.find(({ name }) => name === article.name);
  if (named === undefined) return unseen("The till sold another article than POSLINE_ITEM");
  if (named.quantity === article.quantity) return undefined;
  return broken(`Asked for ${article.quantity} thousandths of the article, the till sold ${named.quantity}`);
}

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
