import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Judged, Moment } from "../judge/judgement.ts";
import { countsText } from "../judge/judgement.ts";
import { isWord, type Word } from "./scenario.ts";
import { screenPage } from "./screen-page.ts";

/**
 * The rehearsal's own port, on this machine only: a till may send its word there, and a person sees what to do at a till with a screen,
 * what happens meanwhile, and says what the screen shows in the end.
 */

/** What the page shows. */
export interface Shown {
  /** What is to be done, in large letters; empty between deeds. */
  readonly task: string;
  readonly note: string;
  readonly scenario: string;
  readonly counts: string;
  readonly addresses: Readonly<Record<string, string>>;
  readonly moments: readonly Moment[];
}

/** Moments that the page shows: the last. */
const momentsMax = 40;

/** Bytes of a word, with room to spare. */
const bodyBytesMax = 1_024;

export class RehearsalPort {
  readonly #server: Server;
  readonly #watching = new Set<ServerResponse>();
  readonly #words = new Map<string, Word>();
  #said: ((word: Word) => void) | undefined;
  #shown: Shown = { task: "", note: "It begins", scenario: "", counts: "", addresses: {}, moments: [] };
  #port = 0;

  constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response).catch(() => response.destroy()));
  }

  /** @throws Error of the system if the port can't be had. */
  async listen(port: number): Promise<void> {
    this.#server.listen({ host: "127.0.0.1", port });
    await once(this.#server, "listening");
    const address = this.#server.address();
    if (typeof address === "object" && address !== null) this.#port = address.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Where a till sends the word of a deed. */
  wordUrl(key: string): string {
    return `${this.url}/word/${key}`;
  }

  /** The word that a till sent of a deed, taken away. */
  takeWord(key: string): Word | undefined {
    const word = this.#words.get(key);
    this.#words.delete(key);
    return word;
  }

  /** Shows what is to be done; resolves with what the person says. */
  ask(task: string, note: string): Promise<Word> {
    this.show({ task, note });
    return new Promise((resolve) => {
      this.#said = resolve;
    });
  }

  show(more: Partial<Shown>): void {
    this.#shown = { ...this.#shown, ...more };
    for (const each of this.#watching) this.#tell(each);
  }

  note(moment: Moment): void {
    this.show({ moments: [...this.#shown.moments, moment].slice(-momentsMax) });
  }

  judged(all: readonly Judged[]): void {
    this.show({ counts: countsText(all), task: "", note: "", moments: [] });
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = "", headers } = request;
    const own = [this.url, `http://localhost:${this.#port}`];
    // Another page in the browser may neither read nor say anything here.
    const isForeign = headers.origin !== undefined && !own.includes(headers.origin);
    if (isForeign || !own.includes(`http://${headers.host}`)) return answer(response, 403, "Only for this machine\n");
    if (method === "GET" && url === "/") return answer(response, 200, screenPage, "text/html; charset=utf-8");
    if (method === "GET" && url === "/events") {
      response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
      this.#watching.add(response);
      response.on("close", () => this.#watching.delete(response));
      return this.#tell(response);
    }
    const key = /^\/word\/([A-Za-z0-9-]+)$/.exec(url)?.[1];
    if (method !== "POST" || (url !== "/said" && key === undefined)) return answer(response, 404, "There is no such page\n");
    const word = (await bodyOf(request)).trim();
    if (!isWord(word)) return answer(response, 400, `${JSON.stringify(word.slice(0, 40))} is no word of a till\n`);
    if (key !== undefined) this.#words.set(key, word);
    else this.#said?.(word);
    answer(response, 200, "noted\n");
  }

  #tell(response: ServerResponse): void {
    response.write(`data: ${JSON.stringify(this.#shown)}\n\n`);
  }
}

function answer(response: ServerResponse, status: number, text: string, type = "text/plain; charset=utf-8"): void {
  response
    .writeHead(status, { "Content-Type": type, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" })
    .end(text);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of request.setEncoding("utf8")) {
    text += piece;
    if (text.length > bodyBytesMax) break;
  }
  return text;
}
