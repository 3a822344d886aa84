import assert from "node:assert/strict";
import { Socket } from "node:net";
import { afterEach, test } from "node:test";
import { fetchWithin } from "../../src/http/fetch-within.ts";
import { gate, watched } from "../support/promises.ts";
import { closeAll, echo, replyOf, type ServeOptions, serve } from "./served.ts";

/** Tests src/http/fetch-within.ts, and HttpListener.connect() of src/http/listener.ts. */

afterEach(closeAll);

const sale = { method: "POST", body: '{"pay_id":"A-1","amount":1}', headers: { "X-Request-Id": "t-1" } };

/** A listener, and a fetch of it. */
async function within(options: ServeOptions = {}) {
  const served = await serve("bank", options);
  return { ...served, ask: fetchWithin(() => served.listener.connect()) };
}

test("fetchWithin() is answered as any caller is, and opens no socket", async (t) => {
  const text = "чек €😀 ".repeat(20_000);
  const { ask, calls, records } = await within({ handler: async () => replyOf(text) });
  const opened = t.mock.method(Socket.prototype, "connect");
  const answer = await ask("http://localhost/sale", sale);
  assert.deepEqual([answer.status, answer.headers.get("X-Posline-Outcome")], [200, "answered"]);
  assert.equal(answer.headers.get("X-Request-Id"), "t-1");
  assert.equal(await answer.text(), text);
  assert.equal(Buffer.concat(calls[0]?.body ?? []).toString(), sale.body);
  assert.deepEqual([records[0]?.requestId, records[0]?.left], ["t-1", false]);
  assert.equal(opened.mock.callCount(), 0);
});

test("fetchWithin() is under the service's rules: its key, its Host, its routes", async () => {
  const { ask, calls } = await within({ config: { apiKey: "k-1" } });
  assert.equal((await ask("http://localhost/sale", sale)).status, 401);
  assert.equal((await ask("http://till.example/sale", sale)).status, 421);
  const headers = { "X-API-Key": "k-1" };
  assert.equal((await ask("http://localhost/sael", { ...sale, headers })).status, 404);
  assert.equal((await ask("http://localhost/sale", { ...sale, headers })).status, 200);
  assert.equal(calls.length, 1);
});

test("fetchWithin() that is aborted leaves, as a till does that closes its connection", async () => {
  const abort = new AbortController();
  const { ask, calls } = await within({
    handler: async (call) => {
      abort.abort();
      while (!call.caller.gone) await new Promise((resolve) => setTimeout(resolve, 5));
      return echo(call);
    },
  });
  await assert.rejects(ask("http://localhost/sale", { ...sale, signal: abort.signal }), { name: "AbortError" });
  while (calls[0]?.caller.gone !== true) await new Promise((resolve) => setTimeout(resolve, 5));
});

test("fetchWithin() that is aborted within an answer gives no more of it", async () => {
  const payload = Array.from({ length: 50 }, () => Buffer.alloc(100_000, "x"));
  const { ask } = await within({ handler: async () => ({ ...replyOf(""), payload }) });
  const abort = new AbortController();
  const { body } = await ask("http://localhost/sale", { ...sale, signal: abort.signal });
  const reader = body?.getReader();
  assert.equal((await reader?.read())?.done, false);
  abort.abort();
  await assert.rejects(
    async () => {
      while ((await reader?.read())?.done === false);
    },
    { name: "AbortError" },
  );
});

test("fetchWithin() fails once nothing listens, and a service that closes lets the answer on its way out", async () => {
  const answer = gate();
  const { ask, listener, calls } = await within({
    handler: async (call) => {
      await answer.passed;
      return echo(call);
    },
  });
  const asked = ask("http://localhost/sale", sale);
  while (calls.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const closing = watched(listener.close());
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(closing.isOver, false);
  answer.open();
  assert.equal((await asked).status, 200);
  await closing.ended;
  await assert.rejects(ask("http://localhost/sale", sale), (error: Error) => {
    // What a client calls not sent.
    assert.equal((error.cause as NodeJS.ErrnoException).code, "ECONNREFUSED");
    return true;
  });
});
