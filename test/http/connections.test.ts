import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ask, assertFault, Client, closeAll, held, listenerOf, replyOf, serve } from "./served.ts";

afterEach(closeAll);

const sale = '{"pay_id":"A-1","amount":1}';

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

for (const [name, garbage] of [
  ["garbage", "\x00\x01garbage\r\n\r\n"],
  ["headers that are too large", `POST /sale HTTP/1.1\r\nX: ${"x".repeat(9000)}\r\n\r\n`],
  ["a body that breaks off its chunks", "POST /sale HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n"],
]) {
  test(`HttpListener never answers ${name} behind a request in flight: it ends the connection`, async () => {
    const { handler, nth } = held();
    const { port, records } = await serve("bank", { handler });
    const client = new Client(port).ask("POST", "/sale", sale);
    const first = await nth(0);
    client.write(garbage ?? "");
    assert.equal(await client.rest(), "");
    assert.equal(first.call.caller.gone, true);
    first.give(replyOf("{}"));
    await new Promise(setImmediate);
    assert.deepEqual(
      records.map(({ outcome, left }) => ({ outcome, left })),
      [{ outcome: "answered", left: true }],
    );
  });
}

test("HttpListener answers garbage after an answered request with 400 not-sent and ends the connection", async () => {
  const { port } = await serve("bank");
  const client = new Client(port).ask("POST", "/sale", sale);
  assert.equal((await client.answer())?.status, 200);
  client.write("garbage\r\n\r\n");
  const answer = await client.answer();
  assert.ok(answer);
  assertFault(answer, "bank", "http");
  assert.equal(answer.headers.get("connection"), "close");
  assert.equal(await client.rest(), "");
});

test("HttpListener's answer to garbage reaches a client that goes on sending garbage", async () => {
  const { port, records } = await serve("bank");
  const client = new Client(port);
  for (let i = 0; i < 50; i++) client.write("\x16\x03\x01garbage without end ".repeat(500));
  const answer = await client.answer();
  assert.ok(answer);
  assertFault(answer, "bank", "http");
  assert.equal(records.length, 1);
});

test("HttpListener answers headers above the limit with 431", async () => {
  const { port, calls } = await serve("bank");
  assertFault(await ask(port, "POST", "/sale", sale, { "X-Large": "x".repeat(9_000) }), "bank", "headers");
  assert.equal(calls.length, 0);
});

const shortTimeouts = { headersMs: 50, requestMs: 100, checkConnectionsMs: 20 };

test("HttpListener answers headers that drip with 408 not-sent", async () => {
  const { port } = await serve("bank", { timeouts: shortTimeouts });
  const answer = await new Client(port).write("POST /sale HTTP/1.1\r\nHost: local").answer();
  assert.ok(answer);
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
    assert.deepEqual(
      records.map(({ outcome }) => outcome),
      ["answered"],
    );
  });
}

test("HttpListener answers a body that drips with 408 not-sent on its route, and never hands it on", async () => {
  const { port, calls, records } = await serve("bank", { timeouts: shortTimeouts });
  const client = new Client(port).ask("POST", "/sale", '{"pay_id":', { "Content-Length": "100" });
  const answer = await client.answer();
  assert.ok(answer);
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
  const calls = [await nth(0), await nth(1), await nth(2)].map(({ call }) => call);
  const gone = calls.map(
    ({ caller }) =>
      new Promise<void>((resolve) => {
        caller.onLeave(resolve);
      }),
  );
  client.socket.destroy();
  await Promise.all(gone);
  assert.deepEqual(
    calls.map(({ caller }) => caller.gone),
    [true, true, true],
  );
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
  let closed = false;
  const closing = listener.close().then(() => {
    closed = true;
  });
  await assert.rejects(ask(port, "POST", "/sale", sale));
  first.give(replyOf('"first"'));
  const answer = await client.answer();
  assert.equal(answer?.text, '"first"');
  assert.notEqual(answer?.headers.get("connection"), "close");
  assert.equal(closed, false);
  second.give(replyOf('"second"'));
  const last = await client.answer();
  assert.equal(last?.text, '"second"');
  assert.equal(last?.headers.get("connection"), "close");
  await closing;
});

test("HttpListener.close() cuts off a client that takes nothing of its answer, and none that waits for one or takes it slowly", async () => {
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
  try {
    await delay(2_500);
    third.give(replyOf('"third"'));
    assert.equal((await waiting.answer())?.text, '"third"');
    await closing;
    if (!slow.closed) await once(slow, "close");
    assert.ok(taken > large.length, `${taken} bytes of an answer of ${large.length} were taken`);
  } finally {
    clearInterval(taking);
  }
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

test("HttpListener.listen() rejects with the system's code when the port is taken", async () => {
  const { port } = await serve("bank");
  const { listener } = listenerOf("bank", { config: { port } });
  await assert.rejects(listener.listen(), { code: "EADDRINUSE" });
  await listener.close();
});
