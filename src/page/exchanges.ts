import type { ExchangeEvent } from "./answers.ts";
import { make, setText } from "./dom.ts";
import { durationOf, optionalText, text, timeOfDay } from "./texts.ts";

/**
 * The live list: the newest exchange first, each with a bar of where its time went. A row of the page is made once and used again for the
 * exchange that stands in that place now, so that a day of exchanges takes no more memory than the first hundred.
 */

/** Rows in the list, and line times in the curve. */
const exchangesMax = 100;

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
  /** True if the exchange was under way when the page lost sight of it. */
  isLost: boolean;
}

interface Row {
  readonly item: HTMLElement;
  readonly sign: HTMLElement;
  readonly time: HTMLElement;
  readonly what: HTMLElement;
  readonly outcome: HTMLElement;
  readonly parts: readonly HTMLElement[];
  readonly bar: HTMLElement;
  readonly total: HTMLElement;
  readonly message: HTMLElement;
}

export class Exchanges {
  readonly #list: HTMLElement;
  readonly #rows: Row[] = [];
  /** Exchanges by call, the newest last. */
  readonly #all = new Map<string, Exchange>();
  /** Milliseconds on the line of the exchanges that ended last, the newest last. */
  readonly lineTimes: number[] = [];

  constructor(list: HTMLElement) {
    this.#list = list;
  }

  /** True if an exchange of this service is on the line. */
  isBusy(service: string): boolean {
    for (const each of this.#all.values()) {
      const { phase } = each.event;
      if (isRunning(each) && each.event.service === service && phase !== "waiting") return true;
    }
    return false;
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** @param agoMs How long ago the event happened: the page is also told events from before it came. */
  take(event: ExchangeEvent, agoMs: number): void {
    const now = performance.now() - agoMs;
    let exchange = this.#all.get(event.callId);
    if (exchange === undefined) {
      exchange = { event, beganMs: now, partMs: now, spent: [0, 0, 0, 0], isLost: false };
      this.#all.set(event.callId, exchange);
      for (const oldest of this.#all.keys()) {
        if (this.#all.size <= exchangesMax) break;
        this.#all.delete(oldest);
      }
    } else {
      const before = exchange.event.phase;
      if (before !== "ended") exchange.spent[partOf[before]] += now - exchange.partMs;
      exchange.partMs = now;
      exchange.event = event;
      exchange.isLost = false;
    }
    if (event.phase !== "ended") return;
    const { queueMs = 0, lineMs = 0, requestMs, terminalMs, replyMs } = event;
    // Without its parts, an exchange's whole time on the line is the terminal's: the wire's share isn't known.
    const rest = Math.max(0, lineMs - (requestMs ?? 0) - (replyMs ?? 0));
    exchange.spent.splice(0, 4, queueMs, requestMs ?? 0, terminalMs ?? rest, replyMs ?? 0);
    if (lineMs > 0) this.lineTimes.push(lineMs);
    if (this.lineTimes.length > exchangesMax) this.lineTimes.shift();
  }

  /** Marks exchanges under way as lost: their end may have been missed, since posline has begun anew, or the page was away for too long. */
  loseSight(): void {
    for (const each of this.#all.values()) if (isRunning(each)) each.isLost = true;
  }

  /** Writes the list. @param isOld True if nothing is heard of posline: then no exchange is shown as under way. */
  show(isOld: boolean): void {
    const now = performance.now();
    let at = 0;
    for (const each of [...this.#all.values()].reverse()) showIn(this.#row(at++), each, now, isOld);
  }

  #row(at: number): Row {
    const row = this.#rows[at] ?? makeRow();
    if (at === this.#rows.length) {
      this.#rows.push(row);
      this.#list.append(row.item);
    }
    return row;
  }
}

const isRunning = ({ event, isLost }: Exchange) => event.phase !== "ended" && !isLost;

function makeRow(): Row {
  const sign = make("span", "sign");
  sign.ariaHidden = "true";
  const time = make("time");
  const what = make("span", "what");
  const outcome = make("span", "outcome");
  const pieces = parts.map((part) => make("span", part));
  const bar = make("span", "bar", ...pieces);
  bar.ariaHidden = "true";
  const total = make("span", "total");
  const message = make("p", "message");
  message.lang = "en";
  const track = make("span", "track", bar);
  return {
    item: make("li", "exchange", sign, time, what, outcome, track, total, message),
    sign,
    time,
    what,
    outcome,
    parts: pieces,
    bar,
    total,
    message,
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

/** Level, sign and words for the state of an exchange. */
function verdictOf({ event, isLost }: Exchange, isOld: boolean): readonly [string, string, string] {
  const { phase, outcome, reason, status, code } = event;
  if (phase !== "ended") {
    return isLost || isOld ? ["unclear", "?", text("lostSight")] : ["now", "▶", text(`phase.${phase}`)];
  }
  if (outcome === "unknown") return ["bad", "!", `${text("outcome.unknown")}${reasonText(reason)}`];
  if (outcome === "not-sent") return ["unclear", "–", `${text("outcome.not-sent")}${reasonText(reason)}`];
  const said = [status, code].filter((each) => each !== undefined && each !== "success" && each !== 0).join(" ");
  return said === ""
    ? ["good", "✓", text("outcome.answered")]
    : ["unclear", "✓", `${text("outcome.answered")}: ${said.replace("-", "−")}`];
}

const reasonText = (reason: string | undefined) =>
  reason === undefined ? "" : `: ${optionalText(`reason.${reason}`) ?? reason}`;
