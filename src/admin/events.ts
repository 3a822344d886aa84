import { randomBytes } from "node:crypto";
import { localDay, localTime } from "../core/local-time.ts";
import { exchangeFields } from "../core/log-fields.ts";
import { logged } from "../core/log-text.ts";
import { eventText, type PublishedEvent, sseText } from "./published-event.ts";
import type { NotReady } from "./readiness.ts";

/**
 * `GET /events`: events as server-sent events, to each watcher. Publishing stands on the path of money and nearly always nobody watches, so
 * it only puts the event into a ring; text is made when it is sent, once for all watchers. Events published within `gatherMs` go out
 * together, since a write for each would cost the tills more than the events themselves.
 */

/** Events that are kept for a watcher that was away: a hundred exchanges or so. */
export const ringMax = 512;

/** Milliseconds for which events are gathered before they are sent: a screen that is drawn 40 times a second shows no more. */
const gatherMs = 25;

/** Events after which a gathering is sent sooner, so that none is overwritten in the ring before. */
const gatheredMax = 128;

/** Milliseconds between two signs of life: proxies cut connections that are silent for a minute, and some for half of one. */
export const heartbeatMs = 15_000;

/** Bytes sent at most of the events that a watcher missed, the newest ones: as many as may wait for a watcher. */
const missedBytesMax = 256 * 1024;

export interface EventsOptions {
  readonly version: string;
  /** The reasons of /readyz: looked at when something else is sent, and at each heartbeat, while somebody watches. */
  readonly notReady: () => readonly NotReady[];
  /** A bug: something failed that should not. */
  readonly error: (error: unknown) => void;
}

/** The stream of a watcher's text; see `http/streams`. */
interface Watcher {
  write(text: string): void;
  end(): void;
}

/** The part of a request that the stream reads. */
interface EventsRequest {
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export class Events {
  readonly #options: EventsOptions;
  /** Tells this process's ids from another's, also on a box whose clock starts from the same moment at each boot. */
  readonly #startMs = Date.now();
  readonly #start = this.#startMs.toString(16) + randomBytes(2).toString("hex");
  readonly #ring: (PublishedEvent | undefined)[] = new Array(ringMax).fill(undefined);
  readonly #times = new Float64Array(ringMax);
  /** Count of events published so far, and so the last one's number. */
  #count = 0;
  /** The number of the last event that the watchers were sent. */
  #sent = 0;
  readonly #watchers = new Set<Watcher>();
  #gathering: NodeJS.Timeout | undefined;
  #isHurried = false;
  #heartbeat: NodeJS.Timeout | undefined;
  /** The reasons found at the last look. */
  #lastVerdict: string | undefined;

  constructor(options: EventsOptions) {
    this.#options = options;
  }

  /** The admin port's routes, by method and path. */
  get routes() {
    return { "GET /events": (_: string, request: EventsRequest) => this.#answer(request) };
  }

  /** Takes an event, which must not be changed any more. It returns at once and never throws. */
  publish(event: PublishedEvent): void {
    const at = this.#count % ringMax;
    this.#ring[at] = event;
    this.#times[at] = Date.now();
    this.#count++;
    if (this.#watchers.size === 0) return;
    this.#gathering ??= setTimeout(() => this.#guarded(() => this.#send()), gatherMs).unref();
    if (this.#count - this.#sent < gatheredMax || this.#isHurried) return;
    this.#isHurried = true;
    setImmediate(() => this.#guarded(() => this.#send()));
  }

  /**
   * What is kept of a key since a time, as lines of the log: exchanges that ended, and posline's own questions about them, by the
   * exchange's request.
   * @returns with a sentence of what isn't kept, if anything.
   */
  logOf(key: string, sinceMs: number): { readonly lines: readonly string[]; readonly lack: string | undefined } {
    const calls = new Map<string | undefined, string>();
    const lines: string[] = [];
    const first = Math.max(0, this.#count - ringMax);
    for (let at = first; at < this.#count; at++) {
      const event = this.#ring[at % ringMax];
      if (event?.event !== "exchange") continue;
      if (event.phase !== "ended") {
        const { callId, requestId, key: named = "" } = event.exchange;
        if (logged(named) === key) calls.set(callId ?? requestId, logged(requestId));
        continue;
      }
      const { background, record } = event;
      const fields = exchangeFields(record);
      const requestId =
        calls.get(record.about) ?? (fields.key === key || fields.requestId === key ? fields.requestId : undefined);
      if (requestId === undefined) continue;
      const time = new Date(this.#times[at % ringMax] ?? 0).toISOString();
      lines.push(JSON.stringify({ time, level: "info", msg: "exchange", ...fields, background, requestId }));
    }
    const keptMs = first === 0 ? this.#startMs : (this.#times[first % ringMax] ?? 0);
    if (keptMs <= sinceMs) return { lines, lack: undefined };
    const since = `${localDay(keptMs)} ${localTime(keptMs, 0)}`;
    return {
      lines,
      lack: `What tills were told before ${since} isn't shown: the status page remembers the last ${ringMax} events`,
    };
  }

  /** Sends the rest; the watchers' connections end with the port. */
  close(): void {
    this.#guarded(() => this.#send());
    for (const watcher of [...this.#watchers]) watcher.end();
  }

  #answer({ query, headers }: EventsRequest) {
    const recent = query.get("recent");
    if (recent !== null && !/^\d{1,9}$/.test(recent)) {
      const error = `Cannot send events: recent must be a whole number from 0 to ${ringMax}, not ${JSON.stringify(recent.slice(0, 64))}`;
      return { status: 400, text: `${JSON.stringify({ error })}\n` };
    }
    const lastId = headers["last-event-id"] ?? query.get("lastEventId") ?? undefined;
    const after = lastId === undefined ? undefined : this.#numberOf(String(lastId));
    return {
      contentType: "text/event-stream",
      start: (watcher: Watcher) => this.#begin(watcher, after, Number(recent ?? 0)),
    };
  }

  /** The number of an id, or 0 if it isn't one of this process: then all that is kept is news. */
  #numberOf(id: string): number {
    const [, start, number] = /^([0-9a-f]+)-(\d{1,15})$/.exec(id) ?? [];
    const known = start === this.#start && Number(number) <= this.#count;
    return known ? Number(number) : 0;
  }

  /** Sends a new watcher the events that it missed, and from then on each new one. */
  #begin(watcher: Watcher, after: number | undefined, recent: number): () => void {
    this.#look();
    // The other watchers are brought to the same place first.
    this.#send();
    const missed = this.#missed(after ?? this.#count - recent);
    // The greeting's id is where the watcher stands, so that one that is cut off before its first event misses nothing either.
    const hello = { version: this.#options.version, pid: process.pid, time: new Date().toISOString(), missed: missed.length };
    watcher.write(sseText(this.#idOf(this.#count - missed.length), "hello", hello) + missed.join(""));
    this.#watchers.add(watcher);
    this.#heartbeat ??= setInterval(() => this.#guarded(() => this.#beat()), heartbeatMs).unref();
    return () => this.#over(watcher);
  }

  #over(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    if (this.#watchers.size > 0) return;
    clearInterval(this.#heartbeat);
    this.#heartbeat = undefined;
    this.#ungather();
  }

  #ungather(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
  }

  #beat(): void {
    this.#look();
    for (const watcher of [...this.#watchers]) watcher.write(": heartbeat\n\n");
  }

  /** Runs a timer's work. It must not end the process: a sale may be in flight. */
  #guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#options.error(error);
    }
  }

  /** Publishes whether posline is ready, if that has changed. Texts may count seconds, so they aren't compared. */
  #look(): void {
    const reasons = this.#options.notReady();
    const now = JSON.stringify(reasons.map(({ what, line, service, state }) => [what, line, service, state]));
    if (now === this.#lastVerdict) return;
    this.#lastVerdict = now;
    this.publish({ event: "ready", ready: reasons.length === 0, reasons });
  }

  /** Sends the events since the last time to all watchers. */
  #send(): void {
    this.#isHurried = false;
    this.#ungather();
    if (this.#watchers.size > 0 && this.#count > this.#sent) this.#look();
    // Events that the look published go out with the rest.
    this.#ungather();
    const from = Math.max(this.#sent, this.#count - ringMax);
    this.#sent = this.#count;
    if (this.#watchers.size === 0 || from === this.#count) return;
    let text = "";
    for (let number = from + 1; number <= this.#count; number++) text += this.#textOf(number);
    for (const watcher of [...this.#watchers]) watcher.write(text);
  }

  /** The newest of the events after a number, as far as they are kept and not too large together. */
  #missed(after: number): readonly string[] {
    const texts: string[] = [];
    const oldest = Math.max(after, this.#count - ringMax, 0);
    for (let number = this.#count, bytes = 0; number > oldest; number--) {
      const text = this.#textOf(number);
      bytes += Buffer.byteLength(text);
      if (bytes > missedBytesMax) break;
      texts.push(text);
    }
    return texts.reverse();
  }

  #textOf(number: number): string {
    const at = (number - 1) % ringMax;
    const event = this.#ring[at];
    return event === undefined ? "" : eventText(this.#idOf(number), this.#times[at] ?? 0, event);
  }

  #idOf(number: number): string {
    return `${this.#start}-${number}`;
  }
}
