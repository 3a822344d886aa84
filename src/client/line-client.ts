import { isObject } from "../core/json-object.ts";
import { type Answer, failedAnswer, type Transport, type TransportRequest } from "../settle/transport.ts";
import { type Client, createClientOver, createHttpClient, refuseUnknown, type ServicesOptions } from "./client.ts";
import { type LineClientOptions, openLine } from "./client-line.ts";

/** The package's entry `posline/line`: a client straight over a line of its own, where no bridge runs. */

export type { LineClientOptions } from "./client-line.ts";
export * from "./exports.ts";

export type ClientOptions = ServicesOptions & { readonly line: LineClientOptions };

/**
 * Makes a client that speaks to the terminal itself: the line is opened by the first call and held until `close`.
 * @throws TypeError for options of other types or names.
 */
export function createClient(options: ClientOptions): Client {
  // createHttpClient says what is wrong with options that are none.
  if (!isObject(options)) return createHttpClient(options);
  const { line, ...services } = options;
  if (!isLine(line)) {
    throw new TypeError('Cannot make a client: line has no path: use { path: "/dev/ttyUSB0" }');
  }
  refuseUnknown("line", line, Object.keys(lineOptions));
  return createClientOver(new LateTransport(() => openLine(line, services)), services);
}

/** All options of a line, which the type holds the list to. */
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
