import { AdminListener, type AdminRoute } from "../../src/http/admin-listener.ts";
import { readPageFiles } from "../../src/http/page-files.ts";
import type { AdminStream } from "../../src/http/streams.ts";

/** A stand-in for a posline behind the real page, on the real admin port: its status and its events are what a test says. */

export const builtPage = new URL("../../dist/page/", import.meta.url);

/** A status in which all is well. */
export const wellStatus = {
  version: "1.0.0",
  pid: 1,
  state: "running",
  ready: true,
  reasons: [] as object[],
  notes: [] as string[],
  lines: {
    till: {
      state: "idle",
      reason: "the terminal answered: the line is ready",
      device: { path: "/dev/ttyUSB0" },
      counters: { late: 0, losses: 0, discards: { noise: { count: 0, bytes: 0 } } },
    },
  },
  services: {
    bank: {
      contract: "bank",
      line: "till",
      heard: { state: "heard", agoMs: 100 },
      counters: { answered: 0, notSent: 0, unknown: 0 },
    },
  },
  journal: { state: "ok", readable: true, unknown: { total: 0, newest: [] as object[] } },
};

export class StreamDouble {
  status: object = wellStatus;
  /** What the port wants as a bearer token, from its start on. */
  token: string | undefined;
  port = 0;
  process = "a1";
  /** What the emulator's control says; undefined: there is none. */
  emulator: object | undefined;
  /** The test sales, and the answer to a test; undefined: there are no tests. */
  tests: object | undefined;
  tested: object = {};
  /** Exchanges from before a page came, each with how long before: every page is told them first. */
  kept: readonly { readonly agoMs: number; readonly data: object }[] = [];
  #count = 0;
  #streams = new Set<AdminStream>();
  #listener: AdminListener | undefined;

  async start(): Promise<string> {
    const routes: Record<string, AdminRoute> = {
      "GET /status": () => ({ status: 200, text: JSON.stringify(this.status) }),
      "GET /events": () => ({
        contentType: "text/event-stream",
        start: (stream) => {
          this.#streams.add(stream);
          const now = Date.now();
          const missed = this.kept.length;
          stream.write(this.#text("hello", { version: "1.0.0", pid: 1, time: new Date(now).toISOString(), missed }));
          for (const { agoMs, data } of this.kept) {
            this.#count++;
            stream.write(this.#text("exchange", { time: new Date(now - agoMs).toISOString(), ...data }));
          }
          return () => this.#streams.delete(stream);
        },
      }),
    };
    if (this.emulator !== undefined) {
      routes["GET /emulator"] = () => ({ status: 200, text: JSON.stringify(this.emulator) });
    }
    if (this.tests !== undefined) {
      routes["GET /test"] = () => ({ status: 200, text: JSON.stringify(this.tests) });
      routes["POST /test"] = () => ({ status: 200, text: JSON.stringify(this.tested) });
    }
    const paths = Object.keys(routes).flatMap((name) => (name.startsWith("GET ") ? [name.slice("GET ".length)] : []));
    const files = await readPageFiles(builtPage, { paths });
    this.#listener = new AdminListener({
      config: { host: "127.0.0.1", port: this.port, ...(this.token === undefined ? {} : { token: this.token }) },
      routes,
      files,
      error: (error) => {
        throw error;
      },
    });
    ({ port: this.port } = await this.#listener.listen());
    return `http://127.0.0.1:${this.port}/`;
  }

  /** Sends an event to all who watch. */
  send(event: string, data: object): void {
    this.#count++;
    const text = this.#text(event, { time: new Date().toISOString(), ...data });
    for (const stream of this.#streams) stream.write(text);
  }

  /** Sends an exchange from its beginning to its end. */
  exchange(
    callId: string,
    end: object = { outcome: "answered", status: "success", queueMs: 0.1, lineMs: 8.2 },
    named = {},
  ): void {
    const name = { requestId: callId, callId, service: "bank", line: "till", route: "/sale", ...named };
    for (const phase of ["sent", "written", "replying"]) this.send("exchange", { ...name, phase });
    this.send("exchange", { ...name, phase: "ended", key: `pay-${callId}`, requestMs: 1.2, terminalMs: 5, replyMs: 2, ...end });
  }

  async stop(): Promise<void> {
    await this.#listener?.close();
    this.#listener = undefined;
  }

  #text(event: string, data: object): string {
    return `id: ${this.process}-${this.#count}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
  }
}
