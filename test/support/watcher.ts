import { get, type IncomingMessage } from "node:http";
import { until } from "./until.ts";

/** One event, as it came. */
export type Seen = { readonly id: string; readonly event: string; readonly data: Readonly<Record<string, unknown>> };

/** Watches a posline's `GET /events` until the test leaves. */
export class Watcher {
  status = 0;
  headers: IncomingMessage["headers"] = {};
  text = "";
  readonly #asking: ReturnType<typeof get>;
  answer: IncomingMessage | undefined;

  constructor(port: number, path = "/events", headers: Record<string, string> = {}) {
    this.#asking = get({ host: "127.0.0.1", port, path, headers, agent: false }, (answer) => {
      this.answer = answer;
      this.status = answer.statusCode ?? 0;
      this.headers = answer.headers;
      answer.setEncoding("utf8").on("data", (text: string) => {
        this.text += text;
      });
      answer.on("error", () => {});
    });
    this.#asking.on("error", () => {});
  }

  get events(): readonly Seen[] {
    return this.text
      .split("\n\n")
      .slice(0, -1)
      .flatMap((block) => {
        const [, id, event, data] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block) ?? [];
        return id === undefined || event === undefined || data === undefined ? [] : [{ id, event, data: JSON.parse(data) }];
      });
  }

  /** The phases of an exchange, in order. */
  phases(key: string): readonly unknown[] {
    const requestId = this.events.find(({ data }) => data["key"] === key)?.data["requestId"];
    return this.events.filter(({ data }) => data["requestId"] === requestId).map(({ data }) => data["phase"] ?? "operation");
  }

  hello(): Promise<Seen> {
    return this.seen(({ event }) => event === "hello", "hello");
  }

  ended(key: string): Promise<Seen> {
    return this.seen(({ data }) => data["phase"] === "ended" && data["key"] === key, `the end of ${key}`);
  }

  async seen(fits: (event: Seen) => boolean, what: string): Promise<Seen> {
    let found: Seen | undefined;
    await until(() => {
      found = this.events.find(fits);
      return found !== undefined;
    }, what);
    // It was found just now.
    return found as Seen;
  }

  leave(): void {
    this.#asking.destroy();
  }
}
