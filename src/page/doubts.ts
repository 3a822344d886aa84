import type { NotReady, Status, UnknownOperation } from "./answers.ts";
import { make, makeEnglish } from "./dom.ts";
import { dayAndTime, optionalText, text } from "./texts.ts";

/** What is in doubt, and what posline finds wrong by itself: two lists that change rarely, and are then made anew. */

/** Operations of unknown outcome, each with what its contract says to do. */
export function doubtsOf({ journal, services }: Status): readonly HTMLElement[] {
  const { unknown } = journal;
  if (unknown === undefined) return [make("li", "", make("p", "", text("journalOff")))];
  if (unknown.total === 0) return [make("li", "fine", make("p", "", text("doubtNone")))];
  const items = unknown.newest.map((each) => doubtOf(each, services[each.service]?.contract ?? each.service));
  const rest = unknown.total - unknown.newest.length;
  if (rest > 0)
    items.push(make("li", "", make("p", "", text("doubtMore", { n: rest })), command("sudo posline journal --unknown")));
  return items;
}

function doubtOf({ time, service, route, key, amount, cause }: UnknownOperation, contract: string): HTMLElement {
  const facts = make("dl", "facts");
  const add = (name: string, value: string | undefined) => {
    if (value !== undefined) facts.append(make("div", "", make("dt", "", name), make("dd", "", value)));
  };
  add(text("fact.time"), dayAndTime(new Date(time)));
  add(text("fact.amount"), amount);
  add(text("fact.key"), key);
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
  );
}

/** The reasons why posline isn't ready, its notes, and a journal that can't be written. */
export function findingsOf({ reasons, notes, journal }: Status): readonly HTMLElement[] {
  const items = [...reasons.map(findingOf), ...notes.map((note) => make("li", "note", makeEnglish("p", "", note)))];
  const isReported = reasons.some(({ what }) => what === "journal");
  if (journal.state !== "ok" && journal.state !== "off" && !isReported) {
    items.push(make("li", "finding", make("h3", "", text("journalFails")), makeEnglish("p", "reason", journal.state)));
  }
  return items.length === 0 ? [make("li", "fine", make("p", "", text("findingNone")))] : items;
}

function findingOf({ what, line, service, reason, cure }: NotReady): HTMLElement {
  const name = service ?? line ?? "";
  const head = `${optionalText(`what.${what}`) ?? what} ${name}`.trim();
  return make("li", "finding", make("h3", "", head), makeEnglish("p", "reason", reason), makeEnglish("p", "cure", cure));
}

/** A command to copy: one click selects all of it. */
const command = (line: string) => makeEnglish("code", "command", line);
