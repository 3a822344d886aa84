import { AdminListener, type AdminRoute } from "../../http/admin-listener.ts";
import type { AdminStream } from "../../http/streams.ts";
import type { Judged, Moment } from "../report/judgement.ts";
import { countsText } from "../report/judgement.ts";
import { isWord, type Word } from "./scenario.ts";
import { screenPage } from "./screen-page.ts";

/**
 * The rehearsal's own port, on this machine only, under the admin port's guard and limits: a till may send its word there, and a person sees
 * what to do at a till with a screen, what happens meanwhile, and says what the screen shows in the end.
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

export class RehearsalPort {
  readonly #listener: AdminListener;
  readonly #watching = new Set<AdminStream>();
  readonly #words = new Map<string, Word>();
  #said: ((word: Word) => void) | undefined;
  #shown: Shown = { task: "", note: "It begins", scenario: "", counts: "", addresses: {}, moments: [] };
  #port = 0;

  /** @param error Called with a bug. */
  constructor(error: (error: unknown) => void) {
    const routes = {
      "GET /": () => ({ status: 200, text: screenPage, contentType: "text/html; charset=utf-8" }),
      "GET /events": () => ({ contentType: "text/event-stream", start: (stream: AdminStream) => this.#watch(stream) }),
      "POST /said": this.#hears((word) => this.#said?.(word)),
      "POST /word": this.#hears((word, key) => this.#words.set(key, word)),
    };
    this.#listener = new AdminListener({ config: { host: "127.0.0.1", port: 0 }, routes, error });
  }

  /** @throws Error of the system if it can't listen. */
  async listen(): Promise<void> {
    this.#port = (await this.#listener.listen()).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Where a till sends the word of a deed. */
  wordUrl(key: string): string {
    return `${this.url}/word?key=${encodeURIComponent(key)}`;
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
    void this.#listener.close();
  }

  #hears(hear: (word: Word, key: string) => void): AdminRoute {
    return (body, { query }) => {
      const word = body.trim();
      if (!isWord(word)) return jsonAnswer(400, { error: `${JSON.stringify(word.slice(0, 40))} is no word of a till` });
      hear(word, query.get("key") ?? "");
      return jsonAnswer(200, { noted: word });
    };
  }

  #watch(stream: AdminStream): () => void {
    this.#watching.add(stream);
    this.#tell(stream);
    return () => this.#watching.delete(stream);
  }

  #tell(stream: AdminStream): void {
    stream.write(`data: ${JSON.stringify(this.#shown)}\n\n`);
  }
}

const jsonAnswer = (status: number, body: object) => ({ status, text: `${JSON.stringify(body)}\n` });
