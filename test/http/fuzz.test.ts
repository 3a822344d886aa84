import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import fc from "fast-check";
import { ask, Client, closeAll, serve } from "./served.ts";

/** Tests src/http/server.ts, src/http/listener.ts. */

afterEach(closeAll);

const sale = '{"pay_id":"A-1","amount":1}';

test("HttpListener survives random bytes and never hands any of them to the handler (fuzz)", async () => {
  const served = await serve("bank", { timeouts: { headersMs: 200, requestMs: 300, checkConnectionsMs: 50 } });
  const words = fc.constantFrom(
    "POST ",
    "GET ",
    "/sale",
    " HTTP/1.1",
    "\r\n",
    "\r\n\r\n",
    "Host: localhost",
    ":",
    "Content-Length: 1",
    "{}",
    "\0",
    "Transfer-Encoding: chunked",
    "Origin: null",
    "%",
    "0\r\n",
  );
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array)),
    fc.array(words, { maxLength: 20 }).map((all) => Buffer.from(all.join(""))),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(bytes, { minLength: 1, maxLength: 4 }), async (pieces) => {
      const client = new Client(served.port);
      for (const piece of pieces) client.write(piece);
      client.socket.end();
      await client.rest();
    }),
    { numRuns: 150 },
  );
  // The words can make a good request without a body, but none of /sale, which needs one.
  assert.deepEqual(served.calls, []);
  assert.deepEqual(served.errors, []);
  assert.equal((await ask(served.port, "POST", "/sale", sale)).status, 200);
});
