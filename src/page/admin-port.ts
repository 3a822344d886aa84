import { addressOf } from "./dom.ts";
import { text } from "./texts.ts";

/**
 * The page's requests to the port that it came from: answers, and the stream of events. All addresses are relative, so that it works below
 * any path of a proxy. If the port wants a token, the person is asked for it once; it is kept for this tab alone. The address that
 * `posline page` prints has a code, which is exchanged for a session: that stands in the token's place, and changes need it.
 *
 * The stream is read by `fetch`, and not by the browser's EventSource: that one can't send a token, and hides the heartbeat, which is the
 * only sign that a quiet connection is alive.
 */

const tokenKey = "posline-token";

/** Milliseconds in which an answer must be there: the port is on the same box, or in the same network. */
export const portAnswerMs = 10_000;

/** Milliseconds without a byte after which a stream counts as lost: the heartbeat comes every 15 s. */
const silentMs = 20_000;

/** Milliseconds before a stream is opened again. */
const reopenMs = 1_000;

/** Characters of one line of the stream: posline's events have some hundreds. */
const lineCharsMax = 1_048_576;

/** Asks the person for the token. */
export type AskToken = (wasWrong: boolean) => Promise<string>;

/** The port changes nothing for this page, which has no session, or one that is over. */
export class Locked extends Error {}

export interface StreamEvent {
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
}

export class AdminPort {
  readonly #askToken: AskToken;
  #token = keptToken();
  /** Set while the person is being asked: every answer that needs the token waits for the same one. */
  #asking: Promise<void> | undefined;
  /** True if changes need a session: the port has a file with its key, or should have. */
  #isGuarded = false;
  #isCodeOver = false;

  constructor(askToken: AskToken) {
    this.#askToken = askToken;
  }

  /** Learns the paths of this port, and whether changes need a session. */
  async paths(): Promise<readonly string[]> {
    const { paths, keyFile } = await this.json<{ paths: readonly string[]; keyFile?: string | null }>("page/paths.json");
    this.#isGuarded = keyFile !== undefined;
    return paths;
  }

  /** Exchanges the code in the page's address, which keeps it no longer. */
  async enter(): Promise<void> {
    const [, code] = /^#code=(.+)$/.exec(location.hash) ?? [];
    if (code === undefined) return;
    history.replaceState(undefined, "", location.pathname);
    this.#isCodeOver = false;
    try {
      this.#keep((await this.json<{ session: string }>("page/session", { code })).session);
    } catch {
      this.#isCodeOver = true;
    }
  }

  /** True if this page can change nothing. */
  get isLocked(): boolean {
    return this.#isGuarded && this.#token === undefined;
  }

  /** What came of the code in the page's address; undefined where changes need none, and if there was none. */
  get session(): "may" | "over" | undefined {
    return this.isLocked ? (this.#isCodeOver ? "over" : undefined) : this.#isGuarded ? "may" : undefined;
  }

  /**
   * Fetches a JSON answer.
   * @throws Error if nothing, or something else, is answered in time.
   */
  async json<T>(path: string, body?: object, ms = portAnswerMs): Promise<T> {
    const request = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await this.#fetch(path, request, () => AbortSignal.timeout(ms));
    const answer = await response.text();
    if (response.status === 401) {
      this.#token = undefined;
      throw new Locked(text("locked"));
    }
    if (!response.ok) throw new Error(errorIn(answer) ?? `HTTP ${response.status}`);
    // The answer has this shape: page and port are of one version.
    return JSON.parse(answer) as T;
  }

  /**
   * Follows the stream for ever: `event` with each event, `alive` with each sign of life, and `lost` if there is none. `isFull` says that
   * posline answers, but has as many watchers as it takes.
   */
  async follow(seen: { event(event: StreamEvent): void; alive(): void; lost(isFull: boolean): void }): Promise<never> {
    let lastId = "";
    for (;;) {
      let isFull = false;
      const abort = new AbortController();
      let silence = setTimeout(() => abort.abort(), silentMs);
      const alive = () => {
        clearTimeout(silence);
        silence = setTimeout(() => abort.abort(), silentMs);
        seen.alive();
      };
      try {
        const headers: Record<string, string> = lastId === "" ? {} : { "Last-Event-ID": lastId };
        const response = await this.#fetch("events?recent=100", { headers }, () => abort.signal);
        if (response.ok && response.body !== null) {
          for await (const event of eventsOf(response.body, alive)) {
            if (event.id !== "") lastId = event.id;
            seen.event(event);
          }
        } else {
          isFull = response.headers.get("X-Posline-Reason") === "too-many-requests";
          await response.body?.cancel();
        }
      } catch {
        // After any error the stream is lost and opened again.
      } finally {
        clearTimeout(silence);
      }
      seen.lost(isFull);
      await new Promise((resolve) => setTimeout(resolve, reopenMs));
    }
  }

  async #fetch(path: string, request: RequestInit, signal: () => AbortSignal): Promise<Response> {
    for (;;) {
      const token = this.#token;
      const headers = { ...request.headers, ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }) };
      // With credentials allowed, the browser itself would ask the person for a password.
      const response = await fetch(addressOf(path), { ...request, headers, credentials: "omit", signal: signal() });
      // What a port that asks for no token refuses so is a change.
      if (response.status !== 401 || request.method === "POST") return response;
      await response.body?.cancel();
      // Another request may have got a new one in the meantime.
      if (this.#token !== token) continue;
      this.#asking ??= this.#newToken(token !== undefined);
      await this.#asking;
    }
  }

  async #newToken(wasWrong: boolean): Promise<void> {
    let token = await this.#askToken(wasWrong);
    while (!isToken(token)) token = await this.#askToken(true);
    this.#asking = undefined;
    this.#keep(token);
  }

  #keep(token: string): void {
    this.#token = token;
    try {
      sessionStorage.setItem(tokenKey, token);
    } catch {
      // A browser that stores nothing for this page: the token is asked for again at the next load.
    }
  }
}

/** True if it may be a token: no token has other characters, and most of those can't be sent in a header. */
const isToken = (given: string) => /^[\x21-\x7e]+$/.test(given);

function keptToken(): string | undefined {
  try {
    return sessionStorage.getItem(tokenKey) ?? undefined;
  } catch {
    return undefined;
  }
}

function errorIn(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: unknown }; // Looked at below.
    return typeof error === "string" ? error : undefined;
  } catch {
    return undefined;
  }
}

/** The events of a stream (WHATWG HTML, 9.2.6), of which posline writes `id`, `event`, one `data`, and comments. */
async function* eventsOf(body: ReadableStream<Uint8Array>, alive: () => void): AsyncGenerator<StreamEvent> {
  let rest = "";
  let id = "";
  let event = "";
  let data = "";
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > lineCharsMax) throw new Error(`a line of the stream has more than ${lineCharsMax} characters`);
    for (const line of lines) {
      if (line === "") {
        if (data !== "") yield { id, event, data: JSON.parse(data) };
        id = "";
        event = "";
        data = "";
      } else if (line.startsWith("id: ")) id = line.slice(4);
      else if (line.startsWith("event: ")) event = line.slice(7);
      else if (line.startsWith("data: ")) data = line.slice(6);
    }
  }
}
