/** The package's entry for pages: the same client, over HTTP alone. */

export { createHttpClient as createClient } from "./client.ts";
export * from "./exports.ts";
