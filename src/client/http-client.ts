import { isObject } from "../core/json-object.ts";
import { addressMs } from "../http/limits.ts";
import { type Client, type ClientWith, createHttpClient, type HttpClientOptions, type NamedOptions } from "./client.ts";

/**
 * The package's entry: a client over HTTP, which needs no other package. A client over a line of its own is `line-client.ts`
 * (`posline/line`); a page takes `client/page.ts`.
 */

export * from "./exports.ts";

export type ClientOptions = HttpClientOptions;

/**
 * Makes a client. Over HTTP it gives each address of a host 2 s, for the whole process: `fetch` can be given no time of its own.
 * @throws TypeError for a url or a key that no request can be built of, and for options of other types or names.
 */
export function createClient(options?: ClientOptions): Client;
export function createClient<const O extends object>(options: O & NamedOptions<O>): ClientWith<O>;
export function createClient(options: ClientOptions = {}): Client {
  if (isObject(options) && isObject(options["line"])) {
    throw new TypeError('Cannot make a client: over a line it is made by createClient of "posline/line": import that one');
  }
  const client = createHttpClient(options);
  waitForAddresses();
  return client;
}

/** Lets `fetch` wait for each address of a host as long as a slow link needs, unless the process waits longer already. */
function waitForAddresses(): void {
  // Not by an import, which the bundler of a page that takes this entry would not find.
  const net = process.getBuiltinModule("node:net");
  net.setDefaultAutoSelectFamilyAttemptTimeout(Math.max(addressMs, net.getDefaultAutoSelectFamilyAttemptTimeout()));
}
