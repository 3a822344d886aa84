import { isObject } from "../core/json-object.ts";
import { type Client, createClientOver, createHttpClient, refuseUnknownOption, type ServicesOptions } from "./client.ts";
import { ClientLine, type LineClientOptions } from "./client-line.ts";

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
  refuseUnknownOption("line", line, Object.keys(lineOptions));
  return createClientOver(new ClientLine(line, services), services);
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
