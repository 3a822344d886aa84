import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Presence } from "../../src/core/presence.ts";
import { connectMs, responseMsMin } from "../../src/http/limits.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { gate } from "../support/promises.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { bareServer, callerOf, callOf, endAll, failsAs, replyTimeoutMs, upstreamOf } from "./calling.ts";
import { type Answer, Upstream } from "./upstream.ts";

const time = virtualTime();
afterEach(endAll);

test("httpCaller() sends body, key and request id as they are, and each call on a connection of its own", async () => {
  const upstream = await upstreamOf();
  const body = '{ "pay_id":"A",  "amount": 9007199254740993, "note":"Ünïcödé ☕" }';
  const ask = callerOf("bank", `${upstream.url}/services/`, { apiKey: "KEY" });
  await ask(callOf("bank", "/sale", body));
  await ask(callOf("bank", "/check", body));
  const [sale, check] = upstream.heard;
  assert.equal(sale?.path, "/services/sale");
  assert.equal(sale.method, "POST");
  assert.equal(sale.body, body);
  assert.equal(sale.headers["content-type"], "application/json");
  assert.equal(sale.headers["content-length"], String(Buffer.byteLength(body)));
  assert.equal(sale.headers["x-api-key"], "KEY");
  assert.equal(sale.headers["x-request-id"], "id-1");
  assert.equal(sale.headers.host, `127.0.0.1:${upstream.port}`);
  assert.deepEqual([sale.connection, check?.connection], [1, 2]);
});

test("httpCaller() passes the call's traceparent on as it is, and sends none where the call has none", async () => {
  const upstream = await upstreamOf();
  const ask = callerOf("bank", upstream.url);
  const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
  await ask(callOf("bank", "/terminals", "", { trace }));
  await ask(callOf("bank", "/terminals"));
  assertMapped(upstream.heard, [trace, undefined], ({ headers }) => headers["traceparent"]);
});

test("httpCaller() passes a fiscal form and its sign on, and asks without a body by GET where the contract has it", async () => {
  const upstream = await upstreamOf();
  await callerOf("fiscal", upstream.url)(callOf("fiscal", "/sale", "data=e30=&sign=a+b/c="));
  await callerOf("bank", upstream.url)(callOf("bank", "/supported_operations"));
  await callerOf("qr", upstream.url)(callOf("qr", "/check_connection"));
  const [form, get, post] = upstream.heard;
  assert.equal(form?.body, "data=e30%3D&sign=a%2Bb%2Fc%3D");
  assert.equal(form.headers["content-type"], "application/x-www-form-urlencoded");
  assert.equal(form.headers["x-api-key"], undefined);
  assert.deepEqual([get?.method, get?.path, get?.body], ["GET", "/supported_operations", ""]);
  assert.deepEqual([post?.method, post?.path, post?.headers["content-length"]], ["POST", "/check_connection", "0"]);
});

test("httpCaller() fails as not sent when nothing listens, there is no such host, or the connection ends in the handshake", async () => {
  const upstream = await Upstream.start();
  const { url } = upstream;
  await upstream.stop();
  const sale = callOf("bank", "/sale", "{}");
  const refused = await failsAs(callerOf("bank", url)(sale), "unavailable", /nothing listens there.*\. Nothing was sent/);
  assert.equal(refused.outcome, "not-sent");
  await failsAs(callerOf("bank", "http://posline.invalid:1")(sale), "unavailable", /can't be reached.*\. Nothing was sent/);
  const cut = await bareServer((socket) => socket.destroy());
  await failsAs(callerOf("bank", `https://${cut}`)(sale), "unavailable", /can't be reached.*\. Nothing was sent/);
  const plain = await upstreamOf();
  await failsAs(
    callerOf("bank", plain.url.replace("http:", "https:"))(sale),
    "unavailable",
    /can't be reached.*\. Nothing was sent/,
  );
  assert.equal(plain.heard.length, 0);
});

test("httpCaller() fails as not sent when the upstream isn't reached in time", async () => {
  const taken = gate();
  // It takes the connection and never shakes hands.
  const mute = await bareServer(() => taken.open());
  const asked = callerOf("bank", `https://${mute}`)(callOf("bank", "/sale", "{}"));
  const failed = failsAs(asked, "unavailable", new RegExp(`longer than ${connectMs / 1000} s.*. Nothing was sent`));
  await taken.passed;
  await time.advance(connectMs - 1);
  assert.equal(await Promise.race([failed, Promise.resolve("waits")]), "waits");
  await time.advance(2);
  await failed;
});

test("httpCaller() fails as unknown when no whole answer came within replyTimeoutMs, silent or slow", async () => {
  for (const answer of [
    () => {},
    (_, response) => response.writeHead(200, { "content-length": "100" }).write('{"status":'),
  ] satisfies Answer[]) {
    const upstream = await upstreamOf(answer);
    const asked = callerOf("bank", upstream.url)(callOf("bank", "/sale", "{}"));
    const failed = failsAs(
      asked,
      "timeout",
      /no answer came within 25 s\. Outcome unknown, it may have been carried out: call \/check with the same pay_id/,
    );
    await upstream.hears(1);
    await time.advance(replyTimeoutMs - 10);
    assert.equal(await Promise.race([failed, Promise.resolve("waits")]), "waits");
    await time.advance(20);
    assert.equal((await failed).outcome, "unknown");
    assert.equal(upstream.heard.length, 1);
  }
});

test("httpCaller() counts the time that a call has waited, and sends nothing when too little is left", async () => {
  const upstream = await upstreamOf(() => {});
  const ask = callerOf("bank", upstream.url);
  const failed = failsAs(ask(callOf("bank", "/sale", "{}"), 20_000), "timeout", /no answer/);
  await upstream.hears(1);
  await time.advance(5_001);
  await failed;
  const late = ask(callOf("bank", "/sale", "{}"), replyTimeoutMs - responseMsMin + 1);
  await failsAs(late, "unavailable", /waited 24 s for another request\. Nothing was sent/);
  assert.equal(upstream.heard.length, 1);
});

test("httpCaller() sends nothing for a caller that has left by then", async () => {
  const upstream = await upstreamOf();
  const caller = new Presence();
  caller.leave();
  await failsAs(
    callerOf("bank", upstream.url)(callOf("bank", "/sale", "{}", { caller })),
    "unavailable",
    /the till no longer waits for the answer\. Nothing was sent/,
  );
  const leaving = new Presence();
  const asked = callerOf("bank", upstream.url)(callOf("bank", "/sale", "{}", { caller: leaving }));
  leaving.leave();
  await failsAs(asked, "unavailable", /the till no longer waits for the answer\. Nothing was sent/);
  assert.equal(upstream.heard.length, 0);
});

test("httpCaller() fails as unknown when the connection ends after the request, with no answer, half a header or half a body", async () => {
  const head = "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n";
  for (const [bytes, message] of [
    ["", /the connection to the upstream failed/],
    ["HTTP/1.1 200 O", /the connection to the upstream failed/],
    ["NOT HTTP AT ALL\r\n\r\n", /the upstream's answer is not HTTP\/1\.1 \(/],
    [`${head}{"status":"success"`, /the answer broke off/],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n{"status":"success"}\r\n', /the answer broke off/],
  ] as const) {
    let asks = 0;
    const server = await bareServer((socket) => {
      socket.once("data", () => {
        asks++;
        socket.end(bytes);
      });
    });
    const fault = await failsAs(callerOf("bank", `http://${server}`)(callOf("bank", "/sale", "{}")), "broken", message);
    assert.match(fault.message, /Outcome unknown, it may have been carried out: call \/check with the same pay_id$/);
    assert.equal(asks, 1, "it was asked again");
  }
});

test("httpCaller() ends what is in flight when it is told to stop, as unknown once it was sent", async () => {
  const upstream = await upstreamOf(() => {});
  const stopping = new AbortController();
  const ask = callerOf("bank", upstream.url, { stop: stopping.signal });
  const failed = failsAs(ask(callOf("bank", "/sale", "{}")), "broken", /posline shut down/);
  await upstream.hears(1);
  stopping.abort();
  await failed;
  await failsAs(ask(callOf("bank", "/sale", "{}")), "unavailable", /posline is shutting down.*\. Nothing was sent/);
});

test("httpCaller() sends nothing once connecting has left less than a second for the answer", async () => {
  const upstream = await upstreamOf();
  // It is looked at before connecting and after: between the two, time goes on.
  class Caller extends Presence {
    #looks = 0;
    override get gone(): boolean {
      if (++this.#looks === 2) time.nowMs += 1_500;
      return false;
    }
  }
  const ask = callerOf("bank", upstream.url, { replyTimeoutMs: { "/sale": 2_400 } });
  const asking = ask(callOf("bank", "/sale", "{}", { caller: new Caller() }));
  const fault = await failsAs(asking, "unavailable", /connecting to the upstream .* took too long\. Nothing was sent/);
  assert.deepEqual([fault.outcome, upstream.heard.length], ["not-sent", 0]);
});
