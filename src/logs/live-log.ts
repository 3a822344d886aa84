import { setTimeout as pause } from "node:timers/promises";
import type { AdminTarget } from "../config/admin-target.ts";
import { connectionFailure } from "../core/connection-error.ts";
import { codeOf, messageOf } from "../core/error-code.ts";
import { parseObject } from "../envelope/json.ts";
import { EventStreamReader, type LiveEvent, logLineOf } from "./event-stream.ts";
import { SourceError } from "./log-file.ts";
import { terminalSafe } from "./terminal-text.ts";
import type { LogSink } from "./view.ts";

/** The log of a running posline as it happens, over its admin port: for boxes that have no journald. */

/** Events of before that are asked for: all that posline keeps. */
const recentMax = 512;

/** Milliseconds between two attempts to connect again. */
const retryMs = 1_000;

/** Milliseconds after which it gives up connecting again: a restart waits for the exchange in flight, 75 s at most. */
const giveUpMs = 120_000;

/** Milliseconds without a byte after which a connection is taken to be lost: posline sends a sign of life each 15 s. */
const silenceMs = 45_000;

/** Bytes of a refusal that are read, and characters that are shown: it is one sentence. */
const refusalBytesMax = 4_096;

export interface LiveLogOptions extends AdminTarget {
  readonly err: (text: string) => void;
}

/** The connection is lost, or was refused in a way that may pass. */
class ConnectionLost extends Error {}

export class LiveLog {
  readonly #options: LiveLogOptions;
  #lastId: string | undefined;
  /** Events of before that are still to come; undefined until that is known. */
  #missed: number | undefined;
  #isCaughtUp = false;

  constructor(options: LiveLogOptions) {
    this.#options = options;
  }

  /**
   * Shows what posline still keeps, then what comes, until `stop` aborts. A connection that is lost is made again, and what was missed
   * meanwhile comes first.
   * @throws SourceError when it can't be reached, at the start at once.
   */
  async read(sink: LogSink, stop: AbortSignal): Promise<void> {
    let lostMs: number | undefined;
    while (!stop.aborted) {
      try {
        await this.#follow(sink, stop, () => {
          if (lostMs !== undefined) this.#options.err("Connected again\n");
          lostMs = undefined;
        });
      } catch (error) {
        if (stop.aborted) return;
        const isFirst = this.#lastId === undefined;
        if (!(error instanceof ConnectionLost) || isFirst) throw asSourceError(error);
        if (lostMs === undefined) this.#options.err(`${error.message}: trying again for ${giveUpMs / 1_000} s\n`);
        lostMs ??= performance.now();
        if (performance.now() - lostMs > giveUpMs) throw asSourceError(error);
        await pause(retryMs, undefined, { signal: stop }).catch(() => {});
      }
    }
  }

  /** Follows one connection to its end, which is an error. */
  async #follow(sink: LogSink, stop: AbortSignal, connected: () => void): Promise<void> {
    const silent = new AbortController();
    const timer = setTimeout(() => silent.abort(), silenceMs);
    let isOpen = false;
    try {
      const body = await this.#open(AbortSignal.any([stop, silent.signal]));
      isOpen = true;
      connected();
      const reader = new EventStreamReader();
      for await (const chunk of body) {
        timer.refresh();
        reader.push(Buffer.from(chunk), (event) => {
          this.#tellLost(event);
          this.#lastId = event.id ?? this.#lastId;
          if (event.event === "hello") this.#missed ??= Number(event.data["missed"] ?? 0);
          else {
            const line = logLineOf(event);
            if (line !== undefined) sink.push(Buffer.from(`${line}\n`));
            if (this.#missed !== undefined) this.#missed--;
          }
          if (this.#isCaughtUp || (this.#missed ?? 1) > 0) return;
          this.#isCaughtUp = true;
          sink.caughtUp();
        });
      }
    } catch (error) {
      if (error instanceof SourceError || error instanceof ConnectionLost) throw error;
      throw isOpen ? new ConnectionLost(`The connection to ${this.#options.url} was lost`) : this.#lost(error);
    } finally {
      clearTimeout(timer);
    }
    throw new ConnectionLost(`The connection to ${this.#options.url} ended`);
  }

  /** Says where events are missing, of which posline keeps the newest alone. */
  #tellLost({ id, event }: LiveEvent): void {
    const [process, number] = numberedId(id);
    const [formerProcess, former] = numberedId(this.#lastId);
    if (number === undefined || former === undefined) return;
    // The head of a connection has the id of the event that it goes on behind; ids of a process that was started anew begin at 1.
    const lost = number - (event === "hello" ? 0 : 1) - (process === formerProcess ? former : 0);
    if (lost > 0) this.#options.err(`Lines may be missing here: posline no longer has ${lost} events of before\n`);
  }

  async #open(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const { url, headers } = this.#options;
    const from = this.#lastId;
    const answer = await fetch(new URL(from === undefined ? `events?recent=${recentMax}` : "events", url), {
      signal,
      redirect: "error",
      headers: {
        Accept: "text/event-stream",
        ...(from === undefined ? {} : { "Last-Event-ID": from }),
        ...headers,
      },
    });
    const { status, body } = answer;
    if (status === 200 && body !== null && /^text\/event-stream\b/.test(answer.headers.get("content-type") ?? "")) return body;
    const why = status === 200 ? "what answers there is not posline's admin port" : await refusalText(answer);
    const fix = status === 401 ? `${headers.Authorization === undefined ? ": name its file with --token-file" : ""}` : "";
    const message = `Cannot follow posline at ${url}: ${why}${fix}`;
    throw status >= 500 ? new ConnectionLost(message) : new SourceError(message);
  }

  #lost(error: unknown): ConnectionLost {
    const { url } = this.#options;
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    const isSilent = cause instanceof Error && cause.name === "AbortError";
    const why = isSilent ? `no answer within ${silenceMs / 1_000} s` : (connectionFailure(cause) ?? messageOf(cause));
    const fix =
      codeOf(cause) === "ECONNREFUSED"
        ? 'start it, or add "admin": {} to its configuration'
        : "check that this is the address of its admin port, and what is in between";
    return new ConnectionLost(`Cannot follow posline at ${url}: ${why}: ${fix}`);
  }
}

/** The parts of an event's id: whose it is, and its number there. */
function numberedId(id = ""): readonly [string | undefined, number | undefined] {
  const [, process, number] = /^([0-9a-f]+)-(\d{1,15})$/.exec(id) ?? [];
  return [process, number === undefined ? undefined : Number(number)];
}

/** What a refusal says of itself. */
async function refusalText(answer: Response): Promise<string> {
  const { status } = answer;
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of answer.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > refusalBytesMax) break;
  }
  // What isn't JSON is a proxy's page.
  const { error } = parseObject(text) ?? {};
  return typeof error === "string" ? terminalSafe(error) : `it answered with HTTP ${status}`;
}

const asSourceError = (error: unknown) => (error instanceof ConnectionLost ? new SourceError(error.message) : error);
