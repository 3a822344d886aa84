import { request } from "node:http";
import { addAbortSignal, type Duplex, Readable } from "node:stream";

/** Fetch standard, 2.2.3: a null body status. */
const statusesWithoutBody: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * `fetch` by connections within this process, as `HttpListener.connect` makes them: the package's service has no network, by which it could
 * reach its own ports.
 * @param connect Called for each request.
 */
export function fetchWithin(connect: () => Duplex): typeof fetch {
  return async (input, init) => {
    const { url, method, headers, body } = new Request(input, init);
    // The given one: a Request's own is followed only as long as somebody has the Request.
    const signal = init?.signal ?? undefined;
    const sent = body === null ? undefined : Buffer.from(await new Response(body).arrayBuffer());
    return new Promise((resolve, reject) => {
      const given = { method, headers: Object.fromEntries(headers), ...(signal && { signal }), createConnection: connect };
      const asking = request(url, given, (answer) => {
        const { statusCode = 0, rawHeaders } = answer;
        const pairs = rawHeaders.flatMap((name, at) =>
          at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ""] as [string, string]] : [],
        );
        if (signal !== undefined) addAbortSignal(signal, answer);
        // Node's type of a web stream is another one than fetch's.
        const stream = Readable.toWeb(answer) as ReadableStream<Uint8Array>;
        resolve(new Response(statusesWithoutBody.has(statusCode) ? null : stream, { status: statusCode, headers: pairs }));
      });
      asking.on("error", (error) => reject(signal?.aborted === true ? error : new TypeError("fetch failed", { cause: error })));
      asking.end(sent);
    });
  };
}
