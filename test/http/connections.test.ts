import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Fault } from "../../src/core/fault.ts";
import { idleMs } from "../../src/http/limits.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { watched } from "../support/promises.ts";
import { ask, assertFault, Client, closeAll, held, listenerOf, replyOf, serve } from "./served.ts";

afterEach(closeAll);

const sale = '{"pay_id":"A-1","amount":1}';
const shortTimeouts = { headersMs: 50, requestMs: 100, checkConnectionsMs: 20 };

test("HttpListener keeps a connection for the next request", async () => {
  const { port, calls } = await serve("bank");
  const client = new Client(port);
  for (let i = 0; i < 20; i++) assert.equal((await client.ask("POST", "/sale", sale).answer())?.status, 200);
  assert.equal(calls.length, 20);
});

test("HttpListener answers pipelined requests in their order, each with its own answer", async () => {
  const { handler, nth } = held();
  const { port } = await serve("bank", { handler });
  const client = new Client(port).ask("POST", "/sale", sale).ask("POST", "/refund", sale);
  const [first, second] = [await nth(0), await nth(1)];
  assert.deepEqual([first.call.route, second.call.route], ["/sale", "/refund"]);
  second.give(replyOf('"second"'));
  first.give(replyOf('"first"'));
  assert.equal((await client.answer())?.text, '"first"');
  assert.equal((await client.answer())?.text, '"second"');
});

const behind: readonly (readonly [name: string, bytes: string])[] = [
  ["a NUL", "\0"],
  ["a CRLF too many", "\r\n"],
  ["the rest of a body that was announced too short", "5}"],
  ["garbage", "\x00\x01garbage\r\n\r\n"],
  ["much garbage", "garbage without end ".repeat(20_000)],
  ["headers that are too large", `POST /sale HTTP/1.1\r\nX: ${"x".repeat(20_000)}\r\n\r\n`],
  ["the beginning of a request", "PO"],
];

for (const [name, bytes] of behind) {
  for (const isLater of [true, false]) {
    test(`HttpListener answers a call that is out whatever follows it on its connection: ${name}, ${isLater ? "later" : "with it"}`, async () => {
      const { handler, nth } = held();
      const { port, records, calls } = await serve("bank", { handler, timeouts: shortTimeouts });
      const client = new Client(port);
      if (isLater) client.ask("POST", "/sale", sale);
      else client.write(`POST /sale HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${sale.length}\r\n\r\n${sale}${bytes}`);
      const first = await nth(0);
      if (isLater) client.write(bytes);
      await delay(200);
      assert.equal(first.call.caller.gone, false);
      first.give(replyOf('"paid"'));
      assert.equal((await client.answer())?.text, '"paid"');
      client.socket.end();
      // Nothing else is said there, which would be taken for the answer to another request.
      assert.equal(await client.rest(), "");
      assert.equal(calls.length, 1);
      assertMapped(records, [{ outcome: "answered", left: false }], ({ outcome, left }) => ({ outcome, left }));
    });
  }
}

test("HttpListener ends a connection on which something that is not HTTP followed a call, with its answer, and says so there", async () => {
  const { handler, nth } = held();
  const { port } = await serve("bank", { handler });
  const client = new Client(port).ask("POST", "/sale", sale).ask("POST", "/refund", sale);
  const [first, second] = [await nth(0), await nth(1)];
  client.write("\0");
  // Whatever comes from now on is no request, or a client would be told nothing of it.
  client.ask("POST", "/check", sale);
  await delay(50);
  second.give(replyOf('"second"'));
  first.give(replyOf('"first"'));
  const answers = [await client.answer(), await client.answer()];
  assertMapped(
    answers,
    [
      ['"first"', "keep-alive"],
      ['"second"', "close"],
    ],
    (answer) => [answer?.text, answer?.headers.get("connection")],
  );
  assert.equal(await client.rest(), "");
});

test("HttpListener answers a request whose body breaks off its chunks behind the calls that are out, and each its own", async () => {
  const { handler, nth } = held();
  const { port, calls } = await serve("bank", { handler });
  const client = new Client(port).ask("POST", "/sale", sale);
  const first = await nth(0);
  client.write("POST /refund HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n");
  await delay(20);
  first.give(replyOf('"paid"'));
  assert.equal((await client.answer())?.text, '"paid"');
  const refused = await client.answer();
  assertFault(refused, "bank", "http");
  assert.equal(refused.headers.get("connection"), "close");
  assert.equal(await client.rest(), "");
  assert.equal(calls.length, 1);
});

/** A client that shuts down its writing side, and still reads. */
async function halfClosed(port: number, ...requests: readonly string[]) {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  let text = "";
  socket.setEncoding("latin1").on("data", (piece) => {
    text += piece;
  });
  for (const request of requests) socket.write(request);
  return {
    shutDown: () => socket.end(),
    /** All that it was sent until the other side ended too. */
    async rest() {
      if (!socket.readableEnded) await once(socket, "end");
      return text;
    },
  };
}

const asRequest = (path: string, body = sale) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

test("HttpListener writes the answer of a call that is out to a client that has shut down its writing side, who counts as left", async () => {
  const { handler, nth } = held();
  const { port, records } = await serve("bank", { handler });
  const client = await halfClosed(port, asRequest("/sale"), asRequest("/check"));
  const [sold, checked] = [await nth(0), await nth(1)];
  client.shutDown();
  await new Promise<void>((resolve) => {
    sold.call.caller.onLeave(resolve);
  });
  assert.equal(checked.call.caller.gone, true);
  // As a line does it: what is out is answered, what waits isn't sent.
  checked.fail(new Fault("unavailable", "Cannot send: the client has left. Nothing was sent", { reason: "caller-left" }));
  await delay(50);
  sold.give(replyOf('"paid"'));
  const text = await client.rest();
  const [, first = "", second = "", more] = text.split("HTTP/1.1 ");
  assert.match(first, /^200 .*\r\n\r\n"paid"$/s);
  assert.match(second, /^503 .*X-Posline-Outcome: not-sent\r\n.*X-Posline-Reason: caller-left\r\n.*Connection: close\r\n/s);
  assert.equal(more, undefined);
  assertMapped(
    records,
    [
      ["not-sent", true],
      ["answered", true],
    ],
    ({ outcome, left }) => [outcome, left],
  );
});

test("HttpListener answers a request that came whole with the end of its client's side, and ends the connection then", async () => {
  const { port } = await serve("bank");
  const client = await halfClosed(port, asRequest("/sale"));
  client.shutDown();
  assert.match(await client.rest(), /^HTTP\/1\.1 200 .*"route":"\/sale"\}$/s);
});

test("HttpListener answers a request that its client's end cut short with what came of it, and never hands it on", async () => {
  const { port, calls, records } = await serve("bank");
  const client = await halfClosed(port, asRequest("/sale").replace(`: ${sale.length}`, ": 99"));
  client.shutDown();
  const text = await client.rest();
  assert.match(text, /^HTTP\/1\.1 400 .*X-Posline-Outcome: not-sent\r\n/s);
  assert.match(text, /the connection ended after 27 of the 99 bytes that Content-Length announces/);
  assert.equal(records[0]?.route, "/sale");
  assert.equal(calls.length, 0);
  const head = await halfClosed(port, "POST /sale HTT");
  head.shutDown();
  assert.match(await head.rest(), /^HTTP\/1\.1 400 .*the connection ended before a whole request had come/s);
});

test("HttpListener answers garbage after an answered request with 400 not-sent and ends the connection", async () => {
  const { port } = await serve("bank");
  const client = new Client(port).ask("POST", "/sale", sale);
  assert.equal((await client.answer())?.status, 200);
  client.write("garbage\r\n\r\n");
  const answer = await client.answer();
  assertFault(answer, "bank", "http");
  assert.equal(answer.headers.get("connection"), "close");
  assert.equal(await client.rest(), "");
});

test("HttpListener's answer to garbage reaches a client that goes on sending garbage", async () => {
  const { port, records } = await serve("bank");
  const client = new Client(port);
  for (let i = 0; i < 50; i++) client.write("\x16\x03\x01garbage without end ".repeat(500));
  const answer = await client.answer();
  assertFault(answer, "bank", "http");
  assert.equal(records.length, 1);
});

test("HttpListener answers headers above the limit with 431", async () => {
  const { port, calls } = await serve("bank");
  assertFault(await ask(port, "POST", "/sale", sale, { "X-Large": "x".repeat(17_000) }), "bank", "headers");
  assert.equal(calls.length, 0);
});

test("HttpListener answers headers that drip with 408 not-sent", async () => {
  const { port } = await serve("bank", { timeouts: shortTimeouts });
  const answer = await new Client(port).write("POST /sale HTTP/1.1\r\nHost: local").answer();
  assertFault(answer, "bank", "slow");
});

for (const [name, leave] of [
  ["times out", undefined],
  ["closes", ({ socket }: Client) => void socket.end()],
  ["is reset", ({ socket }: Client) => void socket.resetAndDestroy()],
] as const) {
  test(`HttpListener takes a connection that ${name} without a byte for no request: no answer, no record`, async () => {
    const { port, records } = await serve("bank", { timeouts: shortTimeouts });
    const client = new Client(port);
    leave?.(client);
    assert.equal(await client.rest(), "");
    // A request after it, so that what became of the first one would be there.
    assert.equal((await ask(port, "POST", "/sale", sale)).status, 200);
    assertMapped(records, ["answered"], ({ outcome }) => outcome);
  });
}

test("HttpListener answers a body that drips with 408 not-sent on its route, and never hands it on", async () => {
  const { port, calls, records } = await serve("bank", { timeouts: shortTimeouts });
  const client = new Client(port).ask("POST", "/sale", '{"pay_id":', { "Content-Length": "100" });
  const answer = await client.answer();
  assertFault(answer, "bank", "slow");
  assert.equal(records[0]?.route, "/sale");
  assert.equal(calls.length, 0);
});

test("HttpListener gives the handler all the time it needs, whatever a request may take to come", async () => {
  const { port } = await serve("bank", {
    timeouts: shortTimeouts,
    handler: () => new Promise((resolve) => setTimeout(() => resolve(replyOf("{}")), 300)),
  });
  assert.equal((await ask(port, "POST", "/sale", sale)).status, 200);
});

test("HttpListener tells the call when its client leaves, and logs what came of it", async () => {
  const { handler, nth } = held();
  const { port, records } = await serve("bank", { handler });
  const client = new Client(port).ask("POST", "/sale", sale);
  const { call, give } = await nth(0);
  const gone = new Promise<void>((resolve) => {
    call.caller.onLeave(resolve);
  });
  assert.equal(call.caller.gone, false);
  client.socket.destroy();
  await gone;
  assert.equal(call.caller.gone, true);
  give(replyOf('{"status":"success"}'));
  await new Promise(setImmediate);
  assert.equal(records[0]?.outcome, "answered");
  assert.equal(records[0]?.left, true);
});

test("HttpListener tells every pipelined call when its client leaves", async () => {
  const { handler, nth } = held();
  const { port } = await serve("bank", { handler });
  const client = new Client(port).ask("POST", "/sale", sale).ask("POST", "/check", sale).ask("POST", "/abort", sale);
  const out = [await nth(0), await nth(1), await nth(2)];
  const calls = out.map(({ call }) => call);
  const gone = calls.map(
    ({ caller }) =>
      new Promise<void>((resolve) => {
        caller.onLeave(resolve);
      }),
  );
  client.socket.destroy();
  await Promise.all(gone);
  assertMapped(calls, [true, true, true], ({ caller }) => caller.gone);
  for (const { give } of out) give(replyOf("{}"));
});

test("HttpListener doesn't tell a call that its client left when it has its answer", async () => {
  const { port, calls } = await serve("bank");
  const client = new Client(port).ask("POST", "/sale", sale);
  await client.answer();
  client.socket.destroy();
  assert.equal((await ask(port, "POST", "/sale", sale)).status, 200);
  assert.equal(calls[0]?.caller.gone, false);
});

test("HttpListener.close() waits for the answer in flight and says Connection: close with it", async () => {
  const { handler, nth } = held();
  const { port, listener } = await serve("bank", { handler });
  const client = new Client(port).ask("POST", "/sale", sale).ask("POST", "/refund", sale);
  const [first, second] = [await nth(0), await nth(1)];
  const closed = watched(listener.close());
  await assert.rejects(ask(port, "POST", "/sale", sale));
  first.give(replyOf('"first"'));
  const answer = await client.answer();
  assert.equal(answer?.text, '"first"');
  assert.notEqual(answer?.headers.get("connection"), "close");
  assert.equal(closed.isOver, false);
  second.give(replyOf('"second"'));
  const last = await client.answer();
  assert.equal(last?.text, '"second"');
  assert.equal(last?.headers.get("connection"), "close");
  await closed.ended;
});

test("HttpListener.close() cuts off a client that takes nothing of its answer, and none that waits for one or takes it slowly", async (t) => {
  const { handler, nth } = held();
  const { port, listener } = await serve("bank", { handler, timeouts: { answerMs: 1_000, checkConnectionsMs: 20 } });
  const stuck = new Client(port).ask("POST", "/sale", sale);
  const slow = connect(port, "127.0.0.1");
  slow.write(`POST /sale HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${sale.length}\r\n\r\n${sale}`);
  let taken = 0;
  slow.on("data", (bytes) => {
    taken += bytes.length;
  });
  const waiting = new Client(port).ask("POST", "/sale", sale);
  const [first, second, third] = [await nth(0), await nth(1), await nth(2)];
  stuck.socket.pause();
  const closing = listener.close();
  // The moment for requests on their way is over.
  await delay(700);
  // More than the system takes for a client.
  const large = "x".repeat(32 * 1024 * 1024);
  first.give(replyOf(large));
  second.give(replyOf(large));
  const taking = setInterval(() => (slow.isPaused() ? slow.resume() : slow.pause()), 100);
  t.after(() => clearInterval(taking));
  await delay(2_500);
  third.give(replyOf('"third"'));
  assert.equal((await waiting.answer())?.text, '"third"');
  await closing;
  if (!slow.closed) await once(slow, "close");
  assert.ok(taken > large.length, `${taken} bytes of an answer of ${large.length} were taken`);
});

test("HttpListener.close() ends connections that wait for their next request or asked nothing yet", async () => {
  const { port, listener } = await serve("bank");
  const idle = new Client(port).ask("POST", "/sale", sale);
  await idle.answer();
  const silent = new Client(port);
  await once(silent.socket, "connect");
  // Its connection has been accepted once a later one was served.
  await ask(port, "POST", "/sale", sale);
  await listener.close();
  assert.equal(await idle.rest(), "");
  assert.equal(await silent.rest(), "");
});

test("HttpListener.close() answers requests that came while the process stood still, on new and on kept connections", async () => {
  const { port, listener } = await serve("bank");
  const kept = new Client(port).ask("POST", "/sale", sale);
  await kept.answer();
  const silent = new Client(port);
  await once(silent.socket, "connect");
  await ask(port, "POST", "/sale", sale);
  const closing = listener.close();
  kept.ask("POST", "/sale", sale);
  silent.ask("POST", "/sale", sale);
  // A busy box: the time that idle connections are kept is over before the process may read again.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, idleMs + 100);
  assert.equal((await kept.answer())?.status, 200);
  assert.equal((await silent.answer())?.status, 200);
  await closing;
});

test("HttpListener.listen() rejects with the system's code when the port is taken", async () => {
  const { port } = await serve("bank");
  const { listener } = listenerOf("bank", { config: { port } });
  await assert.rejects(listener.listen(), { code: "EADDRINUSE" });
  await listener.close();
});
