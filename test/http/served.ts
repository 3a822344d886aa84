import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { ServiceConfig } from "../../src/config/config.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { Call, ContractName, Handler, Reply } from "../../src/core/call.ts";
import { type FaultKind, faultClasses } from "../../src/core/fault.ts";
import type { ExchangeRecord } from "../../src/core/log.ts";
import { HttpListener, type HttpListenerOptions } from "../../src/http/listener.ts";
import type { ServiceSettings } from "../../src/http/service-settings.ts";
import { serviceConfigOf } from "../support/service-config.ts";

/** A listener on a free port with a made-up handler, and all that became of it. */
export interface Served {
  readonly listener: HttpListener;
  readonly port: number;
  readonly calls: Call[];
  readonly records: ExchangeRecord[];
  readonly errors: unknown[];
  /** What its listener was made with, beside its settings. */
  readonly contract: ServiceSettings["contract"];
  readonly report: ServiceSettings["report"];
}

export function replyOf(text: string): Reply {
  return { payload: [Buffer.from(text)], status: "success", code: 0, queueMs: 1.234, lineMs: 5.678 };
}

/** Options of `serve` beside its service. */
export interface ServeOptions {
  readonly config?: Partial<ServiceConfig>;
  readonly handler?: Handler;
  readonly timeouts?: NonNullable<HttpListenerOptions["timeouts"]>;
  readonly validate?: HttpListenerOptions["rules"]["validate"];
  readonly refusal?: HttpListenerOptions["refusal"];
}

export const echo: Handler = async (call) => replyOf(`{"status":"success","route":"${call.route}"}`);

/** ServiceSettings as a configuration gives them, on any free port. */
export function settingsOf({
  config: wished = {},
  handler = echo,
  validate,
  refusal,
}: ServeOptions): Omit<ServiceSettings, "contract" | "report"> {
  const config = serviceConfigOf(wished);
  const rules = { check: config.check, merchantId: config.merchantId, validate };
  return { config, handler, rules, ...(refusal === undefined ? {} : { refusal }) };
}

export function listenerOf(service: ContractName, options: ServeOptions = {}): Omit<Served, "port"> {
  const calls: Call[] = [];
  const records: ExchangeRecord[] = [];
  const errors: unknown[] = [];
  const { handler = echo, timeouts } = options;
  const contract = contracts[service];
  const report = { exchange: (record: ExchangeRecord) => records.push(record), error: (error: unknown) => errors.push(error) };
  const listener = new HttpListener({
    contract,
    report,
    ...settingsOf(options),
    handler: (call) => {
      calls.push(call);
      return handler(call);
    },
    ...(timeouts === undefined ? {} : { timeouts }),
  });
  return { listener, contract, report, calls, records, errors };
}

const open: { listener: HttpListener; sockets: Set<Socket> }[] = [];
const sockets = new Set<Socket>();

export async function serve(service: ContractName, options: ServeOptions = {}): Promise<Served> {
  const made = listenerOf(service, options);
  open.push({ listener: made.listener, sockets });
  const { port } = await made.listener.listen();
  return { ...made, port };
}

/** Ends all that was opened, also after a test that failed. */
export async function closeAll(): Promise<void> {
  // A connection that is only closed stays open on the other side until its calls are answered, and a test may never do that.
  for (const socket of sockets) socket.resetAndDestroy();
  await Promise.all(open.splice(0).map(({ listener }) => listener.close()));
}

/** An answer as it stood on the connection. */
export interface Answer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
}

/** A bare connection: writes any bytes and reads whole HTTP answers. */
export class Client {
  readonly socket: Socket;
  #bytes = Buffer.alloc(0);
  #ended = false;
  readonly #methods: string[] = [];

  constructor(port: number, host = "127.0.0.1") {
    this.socket = connect({ port, host, allowHalfOpen: false });
    sockets.add(this.socket);
    this.socket.on("data", (bytes: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, bytes]);
    });
    this.socket.on("close", () => {
      this.#ended = true;
      sockets.delete(this.socket);
    });
    this.socket.on("error", () => {});
  }

  write(bytes: string | Buffer): this {
    this.socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
    return this;
  }

  /** Writes a request with a Host and a length. */
  ask(method: string, path: string, body = "", headers: Readonly<Record<string, string>> = {}): this {
    this.#methods.push(method);
    const length = Buffer.byteLength(body);
    const all = { Host: "localhost", ...(length > 0 ? { "Content-Length": String(length) } : {}), ...headers };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    return this.write(Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`));
  }

  /** The next answer; undefined when the connection ended without one. */
  async answer(): Promise<Answer | undefined> {
    for (;;) {
      const answer = this.#take();
      if (answer !== undefined) return answer;
      if (this.#ended) return undefined;
      await Promise.race([once(this.socket, "data"), once(this.socket, "close")]).catch(() => {});
    }
  }

  /** All that is left until the connection closes. */
  async rest(): Promise<string> {
    while (!this.#ended) await once(this.socket, "close").catch(() => {});
    return this.#bytes.toString("latin1");
  }

  #take(): Answer | undefined {
    const headEnd = this.#bytes.indexOf("\r\n\r\n");
    if (headEnd === -1) return undefined;
    const [first = "", ...lines] = this.#bytes.toString("latin1", 0, headEnd).split("\r\n");
    const headers = new Map(
      lines.map((line): [string, string] => [
        line.slice(0, line.indexOf(":")).toLowerCase(),
        line.slice(line.indexOf(":") + 1).trim(),
      ]),
    );
    const bodyless = this.#methods[0] === "HEAD" || first.includes(" 204") || first.includes(" 100");
    const end = headEnd + 4 + (bodyless ? 0 : Number(headers.get("content-length") ?? 0));
    if (this.#bytes.length < end) return undefined;
    const text = this.#bytes.toString("utf8", headEnd + 4, end);
    this.#bytes = this.#bytes.subarray(end);
    if (!first.includes(" 100")) this.#methods.shift();
    return { status: Number(first.split(" ")[1]), headers, text };
  }
}

/** One request on a connection of its own. */
export async function ask(
  port: number,
  method: string,
  path: string,
  body = "",
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const client = new Client(port).ask(method, path, body, headers);
  const answer = await client.answer();
  client.socket.destroy();
  if (answer === undefined) throw new Error(`Cannot read the answer to ${method} ${path}: the connection ended`);
  return answer;
}

/** What every fault must have, beside its status. */
export function assertFault(
  answer: Answer | undefined,
  service: ContractName,
  kind: FaultKind,
  status?: number,
): asserts answer {
  assert.ok(answer);
  const contract = contracts[service];
  assert.equal(answer.status, status ?? faultClasses[kind].httpStatus);
  assert.equal(answer.headers.get("x-posline-outcome"), faultClasses[kind].outcome);
  assert.match(answer.headers.get("x-request-id") ?? "", /^[A-Za-z0-9._-]{1,64}$/);
  assert.match(answer.headers.get("server-timing") ?? "", /^queue;dur=[\d.]+, line;dur=[\d.]+$/);
  assert.equal(answer.headers.get("content-type"), contract.replyContentType);
  const body = JSON.parse(answer.text);
  assert.deepEqual(Object.keys(body), ["status", "code", "message"]);
  assert.equal(body.status, "error");
  assert.equal(body.code, contract.faultCodes[kind]);
  assert.match(body.message, /: /);
}

/** A handler whose replies the test gives when it likes. */
export function held() {
  const waiting: { call: Call; give: (reply: Reply) => void; fail: (error: unknown) => void }[] = [];
  const called: (() => void)[] = [];
  return {
    handler: (call: Call) =>
      new Promise<Reply>((give, fail) => {
        waiting.push({ call, give, fail });
        called.shift()?.();
      }),
    /** The nth call, once it came. */
    async nth(n: number) {
      for (;;) {
        const found = waiting[n];
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => called.push(resolve));
      }
    },
  };
}
