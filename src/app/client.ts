import {
  type Client,
  type ClientWith,
  createClientOver,
  createHttpClient,
  type HttpClientOptions,
  type NamedOptions,
  refuseUnknown,
  type ServicesOptions,
} from "../client/client.ts";
import { isObject } from "../core/json-object.ts";
import { addressMs } from "../http/limits.ts";
import { type Answer, failedAnswer, type Transport, type TransportRequest } from "../settle/transport.ts";
import type { LineClientOptions } from "./client-line.ts";

/**
 * The package's entry: a client over HTTP, or straight over a line of its own, where no bridge runs. What a line needs is loaded
 * with its first call; a page takes `client/page.ts` instead.
 */

export * from "../client/exports.ts";
export type { LineClientOptions } from "./client-line.ts";

type LineOptions = ServicesOptions & { readonly line: LineClientOptions };

export type ClientOptions = HttpClientOptions | LineOptions;

/**
 * Makes a client. With `line` it speaks to the terminal itself: the line is opened by the first call and held until `close`. Over HTTP it
 * gives each address of a host 2 s, for the whole process: `fetch` can be given no time of its own.
 * @throws TypeError for a url or a key that no request can be built of, and for options of other types or names.
 */
export function createClient(options?: ClientOptions): Client;
export function createClient<const O extends object>(options: O & NamedOptions<O>): ClientWith<O>;
export function createClient(options: ClientOptions = {}): Client {
  // Which says what is wrong with it
  if (!isObject(options)) return createHttpClient(options);
  const { line, ...services }: HttpClientOptions & { readonly line?: unknown } = options;
  if (line === undefined || line === null) {
    waitForAddresses();
    return createHttpClient(services);
  }
  if (!isLine(line)) {
    throw new TypeError('Cannot make a client: line has no path: use { path: "/dev/ttyUSB0" }');
  }
  refuseUnknown("line", line, Object.keys(lineOptions));
  const open = async () => (await import("./client-line.ts")).openLine(line, services);
  return createClientOver(new LateTransport(open), services);
}

/** Lets `fetch` wait for each address of a host as long as a slow link needs, unless the process waits longer already. */
function waitForAddresses(): void {
  // Not by an import, which the bundler of a page that takes this entry would not find.
  const net = process.getBuiltinModule("node:net");
  net.setDefaultAutoSelectFamilyAttemptTimeout(Math.max(addressMs, net.getDefaultAutoSelectFamilyAttemptTimeout()));
}

/** All that there are, which the type holds it to. */
const lineOptions: Readonly<Record<keyof LineClientOptions, true>> = {
  path: true,
  services: true,
  baudRate: true,
  dataBits: true,
  parity: true,
  stopBits: true,
  flowControl: true,
  hupcl: true,
  dtr: true,
  rts: true,
  crc16: true,
  recovery: true,
  lateReplyMs: true,
  idleProbeMs: true,
  pauseMs: true,
  queueCallsMax: true,
  queueWaitMs: true,
  open: true,
};

function isLine(line: unknown): line is LineClientOptions {
  return isObject(line) && typeof line["path"] === "string";
}

/** A transport that is opened by its first request, and once only. */
class LateTransport implements Transport {
  readonly #open: () => Promise<Transport>;
  #opened: Promise<Transport> | undefined;

  constructor(open: () => Promise<Transport>) {
    this.#open = open;
  }

  async send(request: TransportRequest, signal: AbortSignal): Promise<Answer> {
    this.#opened ??= this.#open();
    let transport: Transport;
    try {
      const opened = await unlessLeft(this.#opened, [signal, request.withdrawn]);
      if (opened === undefined) return failedAnswer("not-sent", "cancelled before the line was open");
      transport = opened;
    } catch (error) {
      // The next request tries anew
      this.#opened = undefined;
      return failedAnswer("not-sent", `Cannot open the line: ${String(error)}`);
    }
    return transport.send(request, signal);
  }

  async close(): Promise<void> {
    await (await this.#opened)?.close();
  }
}

/** What a promise gives, or undefined at once when one of the signals is aborted first. */
async function unlessLeft<T>(promise: Promise<T>, signals: readonly (AbortSignal | undefined)[]): Promise<T | undefined> {
  const given = signals.filter((each) => each !== undefined);
  if (given.some(({ aborted }) => aborted)) return undefined;
  let leave = () => {};
  const left = new Promise<undefined>((resolve) => {
    leave = () => resolve(undefined);
  });
  for (const each of given) each.addEventListener("abort", leave);
  try {
    return await Promise.race([promise, left]);
  } finally {
    for (const each of given) each.removeEventListener("abort", leave);
  }
}
