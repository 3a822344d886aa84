import type { ExchangeEvent, OperationEvent } from "./answers.ts";
import { make, setText } from "./dom.ts";
import { factsOf } from "./facts.ts";
import { dayAndTime, durationOf, moneyOf, optionalText, text, timeOfDay } from "./texts.ts";

/**
 * The live list: the newest exchange first, or the newest whose key has what was typed, each with a bar of where its time went. A row of the
 * page stays with its exchange, so that a focus does, and is used again for another one once that one has left the list: a day of exchanges
 * takes no more memory than what is kept.
 */

/** Rows in the list, and line times in the curve. */
const rowsMax = 100;

/** Exchanges among which a key is found: a busy shop's day. */
const exchangesMax = 10_000;

const parts = ["queue", "request", "terminal", "reply"] as const;

/** The part of an exchange's bar, by its phase. */
const partOf = { waiting: 0, sent: 1, written: 2, replying: 3 } as const;

interface Exchange {
  /** The exchange's last event. */
  event: ExchangeEvent;
  /** By `performance.now()`: when the exchange began, as far as the page knows, and when it reached its present part. */
  readonly beganMs: number;
  partMs: number;
  /** Milliseconds in each part, as far as is known. */
  readonly spent: [number, number, number, number];
  /** The time of its first event. */
  readonly came: string;
  /** True if the exchange was under way when the page lost sight of it. */
  isLost: boolean;
  /** The result that was learned of its operation after its end. */
  learned: string | undefined;
}

interface Row {
  exchange: Exchange | undefined;
  readonly item: HTMLElement;
  readonly sign: HTMLElement;
  readonly time: HTMLElement;
  /** Opens the row. */
  readonly what: HTMLButtonElement;
  readonly outcome: HTMLElement;
  readonly key: HTMLElement;
  readonly amount: HTMLElement;
  readonly parts: readonly HTMLElement[];
  readonly bar: HTMLElement;
  readonly total: HTMLElement;
  readonly message: HTMLElement;
  readonly facts: HTMLElement;
  readonly story: HTMLElement;
}

export class Exchanges {
  readonly #list: HTMLElement;
  readonly #rows: Row[] = [];
  /** The kept exchanges, the newest last, and by call. */
  readonly #all: Exchange[] = [];
  readonly #byCall = new Map<string, Exchange>();
  readonly #running = new Set<Exchange>();
  /** Milliseconds on the line of the exchanges that ended last, the newest last. */
  readonly lineTimes: number[] = [];
  /** The exchange whose row is open. */
  #opened: Exchange | undefined;
  #wanted = "";
  readonly #changed: () => void;
  readonly #storyOf: (key: string) => HTMLElement | undefined;

  /** @param changed Called when a row is opened or closed. @param storyOf What happened under a key, if this posline tells it. */
  constructor(list: HTMLElement, changed: () => void, storyOf: (key: string) => HTMLElement | undefined) {
    this.#list = list;
    this.#changed = changed;
    this.#storyOf = storyOf;
  }

  /** True if an exchange of this service is on the line. */
  isBusy(service: string): boolean {
    for (const { event } of this.#running) if (event.service === service && event.phase !== "waiting") return true;
    return false;
  }

  /** Count of the exchanges that are kept. */
  get count(): number {
    return this.#all.length;
  }

  /** Shows only exchanges whose key has this in it; all if it is empty. */
  find(wanted: string): void {
    this.#wanted = wanted.trim().toLowerCase();
  }

  /** @param agoMs How long ago the event happened: the page is also told events from before it came. */
  take(event: ExchangeEvent, agoMs: number): void {
    const now = performance.now() - agoMs;
    let exchange = this.#byCall.get(event.callId);
    if (exchange === undefined) {
      exchange = {
        event,
        came: event.time,
        beganMs: now,
        partMs: now,
        spent: [0, 0, 0, 0],
        isLost: false,
        learned: undefined,
      };
      this.#all.push(exchange);
      this.#byCall.set(event.callId, exchange);
      if (this.#all.length > exchangesMax) this.#forgetOldest();
    } else {
      const before = exchange.event.phase;
      if (before !== "ended") exchange.spent[partOf[before]] += now - exchange.partMs;
      exchange.partMs = now;
      exchange.event = event;
      exchange.isLost = false;
    }
    if (event.phase !== "ended") {
      this.#running.add(exchange);
      return;
    }
    this.#running.delete(exchange);
    const { queueMs = 0, lineMs = 0, requestMs, terminalMs, replyMs } = event;
    // Without its parts, an exchange's whole time on the line is the terminal's: the wire's share isn't known.
    const rest = Math.max(0, lineMs - (requestMs ?? 0) - (replyMs ?? 0));
    exchange.spent.splice(0, 4, queueMs, requestMs ?? 0, terminalMs ?? rest, replyMs ?? 0);
    if (lineMs > 0) this.lineTimes.push(lineMs);
    if (this.lineTimes.length > rowsMax) this.lineTimes.shift();
  }

  /** Takes what became known of an operation after its own answer. */
  learn({ callId = "", state, result }: OperationEvent): void {
    const exchange = this.#byCall.get(callId);
    if (exchange !== undefined) exchange.learned = state === "unknown" ? "unknown" : result;
  }

  #forgetOldest(): void {
    const oldest = this.#all.shift();
    if (oldest === undefined) return;
    this.#byCall.delete(oldest.event.callId);
    this.#running.delete(oldest);
  }

  /** Marks exchanges under way as lost: their end may have been missed, since posline has begun anew, or the page was away for too long. */
  loseSight(): void {
    for (const each of this.#running) each.isLost = true;
    this.#running.clear();
  }

  /**
   * Writes the list.
   * @param isOld True if nothing is heard of posline: then no exchange is shown as under way.
   * @returns how many rows it has.
   */
  show(isOld: boolean): number {
    const now = performance.now();
    const shown = new Set(this.#newest(({ event }) => event.key?.toLowerCase().includes(this.#wanted) ?? this.#wanted === ""));
    const kept = new Map<Exchange, Row>();
    const free: Row[] = [];
    for (const row of this.#rows) {
      if (row.exchange !== undefined && shown.has(row.exchange)) kept.set(row.exchange, row);
      else free.push(row);
    }
    let place = this.#list.firstElementChild;
    for (const exchange of shown) {
      const row = kept.get(exchange) ?? free.pop() ?? this.#newRow();
      row.exchange = exchange;
      if (row.item === place) place = row.item.nextElementSibling;
      else this.#list.insertBefore(row.item, place);
      showIn(row, exchange, now, isOld);
      this.#showFacts(row, exchange);
    }
    for (const { item } of free) item.remove();
    return shown.size;
  }

  /** The newest exchanges that fit, as many as there are rows, the newest first. */
  #newest(fits: (each: Exchange) => boolean): readonly Exchange[] {
    const found: Exchange[] = [];
    for (let at = this.#all.length - 1; at >= 0 && found.length < rowsMax; at--) {
      const each = this.#all[at];
      if (each !== undefined && fits(each)) found.push(each);
    }
    return found;
  }

  #newRow(): Row {
    const row = makeRow();
    this.#rows.push(row);
    row.what.addEventListener("click", () => {
      this.#opened = row.exchange === this.#opened ? undefined : row.exchange;
      this.#changed();
    });
    return row;
  }

  #showFacts({ what, facts, story }: Row, exchange: Exchange): void {
    const isOpen = exchange === this.#opened;
    const of = (isOpen && exchange.event.key) || "";
    if (story.dataset["of"] !== of) {
      story.dataset["of"] = of;
      const told = of === "" ? undefined : this.#storyOf(of);
      story.replaceChildren(...(told === undefined ? [] : [told]));
    }
    what.ariaExpanded = String(isOpen);
    facts.hidden = !isOpen;
    if (!isOpen) return;
    const asked = this.#newest(({ event }) => event.about === exchange.event.callId);
    const made = factsIn(exchange, [...asked].reverse());
    if (made.innerHTML !== facts.innerHTML) facts.replaceChildren(...made.children);
  }
}

/** What an open row says. @param questions What posline asked about its operation. */
function factsIn({ event, came, spent, learned }: Exchange, questions: readonly Exchange[]): HTMLElement {
  const { requestId, phase, time, outcome, httpStatus, result } = event;
  const isEnded = phase === "ended";
  const status = httpStatus === undefined ? "" : `, HTTP ${httpStatus}`;
  const word = resultText(learned ?? result);
  const asked = questions.map(
    (each) => `${timeOfDay(new Date(each.event.time))} ${each.event.route} ${verdictOf(each, false)[2]}`,
  );
  return factsOf({
    "fact.requestId": requestId,
    "fact.came": dayAndTime(new Date(came)),
    "fact.ended": isEnded ? dayAndTime(new Date(time)) : undefined,
    "fact.times": isEnded ? text("bar", partTimes(spent)) : undefined,
    "fact.outcome": outcome === undefined ? undefined : `${text(`outcome.${outcome}`)}${status}`,
    "fact.result": word,
    "fact.asked": asked.length > 0 ? asked.join("\n") : outcome === "unknown" ? text("askedNone") : undefined,
  });
}

/** A result's word; undefined for a word that is not known yet. */
const resultText = (result: string | undefined) => (result === undefined ? undefined : optionalText(`result.${result}`));

const isRunning = ({ event, isLost }: Exchange) => event.phase !== "ended" && !isLost;

function makeRow(): Row {
  const sign = make("span", "sign");
  sign.ariaHidden = "true";
  const time = make("time");
  const what = make("button", "what");
  what.type = "button";
  const outcome = make("span", "outcome");
  const key = make("span", "key");
  const amount = make("span", "amount");
  const pieces = parts.map((part) => make("span", part));
  const bar = make("span", "bar", ...pieces);
  bar.ariaHidden = "true";
  const total = make("span", "total");
  const message = make("p", "message");
  message.lang = "en";
  const track = make("span", "track", bar);
  const facts = make("dl", "facts");
  const story = make("div", "message");
  return {
    exchange: undefined,
    item: make("li", "exchange", sign, time, what, outcome, key, amount, track, total, message, facts, story),
    sign,
    time,
    what,
    outcome,
    key,
    amount,
    parts: pieces,
    bar,
    total,
    message,
    facts,
    story,
  };
}

function showIn(row: Row, exchange: Exchange, now: number, isOld: boolean): void {
  const { event, spent } = exchange;
  const ended = event.phase === "ended";
  const running = isRunning(exchange) && !isOld;
  const [level, sign, words] = verdictOf(exchange, isOld);
  row.item.dataset["level"] = level;
  setText(row.sign, sign);
  setText(row.time, timeOfDay(new Date(event.time)));
  setText(row.what, `${event.service} ${event.route}`);
  setText(row.outcome, words);
  setText(row.key, event.key ?? "");
  setText(row.amount, event.amount === undefined ? "" : moneyOf(event.amount, event.currency));
  setText(row.message, ended && event.outcome !== "answered" ? (event.message ?? "") : "");
  const totalMs = ended ? (event.queueMs ?? 0) + (event.lineMs ?? 0) : now - exchange.beganMs;
  setText(row.total, ended || running ? durationOf(totalMs) : "");
  row.bar.style.width = `${barShare(ended || running ? totalMs : 0) * 100}%`;
  const current = running && event.phase !== "ended" ? partOf[event.phase] : undefined;
  row.parts.forEach((piece, index) => {
    const ms = (spent[index] ?? 0) + (index === current ? now - exchange.partMs : 0);
    piece.style.flexGrow = String(Math.max(0, ms));
    piece.dataset["now"] = String(index === current);
  });
  row.item.title = ended ? text("bar", partTimes(spent)) : "";
}

const partTimes = ([queue, request, terminal, reply]: Exchange["spent"]) => ({
  queue: durationOf(queue),
  request: durationOf(request),
  terminal: durationOf(terminal),
  reply: durationOf(reply),
});

/** The length of a bar: by the logarithm, so that both 5 ms and a timeout of 30 s can be seen. */
const barShare = (ms: number) => (ms <= 0 ? 0 : Math.min(1, Math.log10(1 + ms) / Math.log10(120_000)));

/** Level and sign of each result. */
const results: Readonly<Record<string, readonly [string, string]>> = {
  approved: ["good", "✓"],
  closed: ["good", "✓"],
  declined: ["unclear", "–"],
  failed: ["unclear", "–"],
  reversed: ["unclear", "–"],
  unprinted: ["wait", "!"],
  pending: ["wait", "…"],
};

/** Level, sign and words for the state of an exchange. */
function verdictOf({ event, isLost, learned }: Exchange, isOld: boolean): readonly [string, string, string] {
  const { phase, outcome, reason, status, code } = event;
  if (phase !== "ended") {
    return isLost || isOld ? ["unclear", "?", text("lostSight")] : ["now", "▶", text(`phase.${phase}`)];
  }
  const result = learned ?? event.result;
  const known = result !== undefined && Object.hasOwn(results, result) ? results[result] : undefined;
  const isSaid = learned === undefined && outcome === "answered";
  const said = isSaid ? [status, code].filter((each) => each !== undefined && each !== "success" && each !== 0).join(" ") : "";
  const details = said === "" ? "" : `: ${said.replace("-", "−")}`;
  if (result === "unknown" || (outcome === "unknown" && known === undefined))
    return ["bad", "!", `${text("outcome.unknown")}${reasonText(reason)}`];
  if (outcome === "not-sent" && learned === undefined)
    return ["unclear", "–", `${text("outcome.not-sent")}${reasonText(reason)}`];
  if (known !== undefined) return [...known, `${resultText(result)}${details}`];
  return [details === "" ? "good" : "unclear", "✓", `${text("outcome.answered")}${details}`];
}

const reasonText = (reason: string | undefined) =>
  reason === undefined ? "" : `: ${optionalText(`reason.${reason}`) ?? reason}`;
