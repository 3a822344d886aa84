import type { NotReady, Status, UnknownOperation } from "./answers.ts";
import { make, makeEnglish } from "./dom.ts";
import { factsOf } from "./facts.ts";
import { dayAndTime, moneyOf, optionalText, type TextKey, text } from "./texts.ts";

/** Operations in doubt, and problems that posline finds by itself: two lists that change rarely. */

/**
 * Operations of unknown outcome, each with the contract's advice.
 * @param actsOf What can be asked about one, and done.
 */
export function doubtsOf(
  { journal, services }: Status,
  actsOf: (each: UnknownOperation, contract: string) => readonly HTMLElement[],
): readonly HTMLElement[] {
  const { unknown, readable } = journal;
  if (unknown === undefined) return [saying("journalOff")];
  const items = unknown.newest.map((each) => {
    const contract = services[each.service]?.contract ?? each.service;
    return doubtOf(each, contract, actsOf(each, contract));
  });
  const rest = unknown.total - unknown.newest.length;
  if (rest > 0)
    items.push(make("li", "", make("p", "", text("doubtMore", { n: rest })), command("sudo posline journal --unknown")));
  if (readable === false) items.push(saying("doubtNotKnown"));
  return items.length === 0 ? [saying("doubtNone", "fine")] : items;
}

function doubtOf(
  { time, service, route, key, amount, currency, cause }: UnknownOperation,
  contract: string,
  acts: readonly HTMLElement[],
): HTMLElement {
  const money = amount === undefined ? undefined : moneyOf(amount, currency);
  const facts = factsOf({ "fact.time": dayAndTime(new Date(time)), "fact.amount": money, "fact.key": key });
  const sign = make("span", "sign", "!");
  sign.ariaHidden = "true";
  const todo = optionalText(`todo.${contract}`) ?? text("todo");
  return make(
    "li",
    "doubt",
    sign,
    make("h3", "", `${service} ${route}`),
    facts,
    make("p", "todo", todo),
    makeEnglish("p", "cause", cause),
    ...acts,
  );
}

/** The reasons why posline isn't ready, and its notes. */
export function findingsOf({ reasons, notes }: Status): readonly HTMLElement[] {
  const items = [...reasons.map(findingOf), ...notes.map((note) => make("li", "note", makeEnglish("p", "", note)))];
  return items.length === 0 ? [saying("findingNone", "fine")] : items;
}

function findingOf({ what, line, service, reason, cure }: NotReady): HTMLElement {
  const name = service ?? line ?? "";
  const head = `${optionalText(`what.${what}`) ?? what} ${name}`.trim();
  return make("li", "finding", make("h3", "", head), makeEnglish("p", "reason", reason), makeEnglish("p", "cure", cure));
}

const saying = (key: TextKey, className = "") => make("li", className, make("p", "", text(key)));

/** A command to copy: one click selects all of it. */
const command = (line: string) => makeEnglish("code", "command", line);
