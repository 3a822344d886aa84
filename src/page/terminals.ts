import type { ServiceStatus, Status } from "./answers.ts";
import { make, makeEnglish, setText } from "./dom.ts";
import { agoText, text, timeOfDay } from "./texts.ts";

/** The state of each terminal: a card for each service, in words that can be read across a counter. */

/** A card's level, from good to bad. `old`: nothing was heard for a while, and the last state may be over. */
type Level = "good" | "now" | "wait" | "bad" | "old";

/** Each state of a terminal with its level and sign; its words are in the files of texts. */
const states = {
  ready: ["good", "✓"],
  busy: ["now", "▶"],
  checking: ["wait", "…"],
  unproven: ["wait", "?"],
  silent: ["bad", "✕"],
  down: ["bad", "✕"],
  closed: ["bad", "✕"],
  stopping: ["bad", "✕"],
  old: ["old", "?"],
} as const satisfies Record<string, readonly [Level, string]>;

type TerminalState = Exclude<keyof typeof states, "old">;

interface Card {
  readonly item: HTMLElement;
  readonly sign: HTMLElement;
  readonly word: HTMLElement;
  readonly heard: HTMLElement;
  readonly advice: HTMLElement;
  /** Posline's own reason and cure, in English. */
  readonly details: HTMLElement;
  detailsText: string;
}

/** The data that the cards are made of. */
export interface TerminalsNow {
  readonly status: Status;
  /** When the status came, by `performance.now()`. */
  readonly askedMs: number;
  /** Since when nothing is heard of posline; undefined if it is. */
  readonly lostSince: Date | undefined;
  /** When each service replied last by the stream, by `performance.now()`. */
  readonly repliedMs: ReadonlyMap<string, number>;
  readonly isBusy: (service: string) => boolean;
}

export class Terminals {
  readonly #list: HTMLElement;
  readonly #cards = new Map<string, Card>();

  readonly #testsOf: (service: string) => HTMLElement;

  /** @param testsOf Makes the tests in a service's card. */
  constructor(list: HTMLElement, testsOf: (service: string) => HTMLElement) {
    this.#list = list;
    this.#testsOf = testsOf;
  }

  /** Writes the cards. @returns how many there are, and how many of them are ready for the next request. */
  show(now: TerminalsNow): { readonly count: number; readonly ready: number } {
    const services = Object.entries(now.status.services);
    let ready = 0;
    for (const [name, service] of services) {
      const known = stateOf(name, service, now);
      if (known === "ready" || known === "busy" || known === "unproven") ready++;
      showIn(this.#card(name), { name, service, known, now });
    }
    for (const [name, { item }] of this.#cards) {
      if (Object.hasOwn(now.status.services, name)) continue;
      item.remove();
      this.#cards.delete(name);
    }
    return { count: services.length, ready };
  }

  #card(name: string): Card {
    const known = this.#cards.get(name);
    if (known !== undefined) return known;
    const [sign, word, heard, advice, details] = [
      make("span", "sign"),
      make("p", "word"),
      make("p", "heard"),
      make("p", "advice"),
      make("div", "details"),
    ];
    sign.ariaHidden = "true";
    const item = make("li", "terminal", sign, make("h3", "", name), word, heard, advice, details, this.#testsOf(name));
    const card = { item, sign, word, heard, advice, details, detailsText: "" };
    this.#cards.set(name, card);
    this.#list.append(item);
    return card;
  }
}

/** The state of a service's terminal, as far as the last status knows. */
function stateOf(name: string, { line, heard }: ServiceStatus, { status, isBusy }: TerminalsNow): TerminalState {
  if (status.state === "stopping") return "stopping";
  const state = status.lines[line]?.state;
  if (state === "down" || state === "closed") return state;
  if (state === "recovering" || state === undefined) return "checking";
  if (heard?.state === "unheard") return heard.reason === undefined ? "checking" : "silent";
  if (isBusy(name)) return "busy";
  return heard?.state === "unproven" ? "unproven" : "ready";
}

interface Shown {
  readonly name: string;
  readonly service: ServiceStatus;
  readonly known: TerminalState;
  readonly now: TerminalsNow;
}

function showIn(card: Card, { name, service, known, now }: Shown): void {
  const { lostSince } = now;
  const [level, sign] = states[lostSince === undefined ? known : "old"];
  card.item.dataset["level"] = level;
  setText(card.sign, sign);
  setText(card.word, text(`terminal.${lostSince === undefined ? known : "old"}`));
  if (lostSince !== undefined) {
    setText(card.heard, text("wasAt", { state: text(`terminal.${known}`), time: timeOfDay(lostSince) }));
    setText(card.advice, "");
    card.details.hidden = true;
    return;
  }
  setText(card.heard, heardText(name, service, now));
  setText(card.advice, text(`advice.${known}`));
  const { reason, cure } = detailsOf(known, name, service, now);
  card.details.hidden = reason === undefined;
  const detailsText = `${reason}\n${cure}`;
  if (reason === undefined || card.detailsText === detailsText) return;
  card.detailsText = detailsText;
  card.details.replaceChildren(makeEnglish("p", "reason", reason), makeEnglish("p", "cure", cure ?? ""));
}

function heardText(name: string, { heard }: ServiceStatus, { askedMs, repliedMs }: TerminalsNow): string {
  if (heard === undefined) return "";
  const byStatus = heard.agoMs === undefined ? Number.NEGATIVE_INFINITY : askedMs - heard.agoMs;
  const lastMs = Math.max(byStatus, repliedMs.get(name) ?? Number.NEGATIVE_INFINITY);
  return lastMs === Number.NEGATIVE_INFINITY ? text("heardNever") : text("heard", { ago: agoText(performance.now() - lastMs) });
}

/** Posline's reason and cure, if something is wrong. */
function detailsOf(known: TerminalState, name: string, service: ServiceStatus, { status }: TerminalsNow) {
  if (known === "ready" || known === "busy" || known === "unproven") return {};
  const found = status.reasons.find(
    (each) => each.service === name || (each.service === undefined && each.line === service.line) || each.what === "process",
  );
  return found ?? { reason: service.heard?.reason ?? status.lines[service.line]?.reason, cure: service.heard?.cure };
}
