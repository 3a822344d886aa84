import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { afterEach, test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import type { Call, Reply } from "../../src/core/call.ts";
import { Fault, type FaultKind, faultClasses } from "../../src/core/fault.ts";
import { type Answer, ask, Client, closeAll, listenerOf, replyOf, serve } from "./served.ts";

afterEach(closeAll);

const sale = '{"pay_id":"A-1","amount":1}';

/** What every fault must have, beside its status. */
function assertFault(answer: Answer, service: "fiscal" | "bank" | "qr", kind: FaultKind, status?: number): void {
  const contract = contracts[service];
  assert.equal(answer.status, status ?? faultClasses[kind].httpStatus);
  assert.equal(answer.headers.get("x-posline-outcome"), faultClasses[kind].outcome);
  assert.match(answer.headers.get("x-request-id") ?? "", /^[A-Za-z0-9._-]{1,64}$/);
  assert.match(answer.headers.get("server-timing") ?? "", /^queue;dur=[\d.]+, line;dur=[\d.]+$/);
  assert.equal(answer.headers.get("content-type"), contract.replyContentType);
  const body = JSON.parse(answer.text);
  assert.deepEqual(Object.keys(body), ["status", "code", "message"]);
  assert.equal(body.status, "error");
  assert.equal(body.code, contract.faultCodes[kind]);
  assert.match(body.message, /: /);
}

/** A handler whose replies the test gives when it likes. */
function held() {
  const waiting: { call: Call; give: (reply: Reply) => void; fail: (error: unknown) => void }[] = [];
  const called: (() => void)[] = [];
  return {
    handler: (call: Call) =>
      new Promise<Reply>((give, fail) => {
        waiting.push({ call, give, fail });
        called.shift()?.();
      }),
    /** The nth call, once it came. */
    async nth(n: number) {
      for (;;) {
        const found = waiting[n];
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => called.push(resolve));
      }
    },
  };
}

test("HttpListener answers with the handler's bytes, the outcome, the request's id and where the time went", async () => {
  const { port, calls, records } = await serve("bank", {
    handler: async () => ({ ...replyOf(""), payload: [Buffer.from('{"a" :'), Buffer.from("1"), Buffer.from("}")] }),
  });
  const answer = await ask(port, "POST", "/sale", sale, { "X-Request-Id": "till-7.42" });
  assert.equal(answer.status, 200);
  assert.equal(answer.text, '{"a" :1}');
  assert.equal(answer.headers.get("x-posline-outcome"), "answered");
  assert.equal(answer.headers.get("x-request-id"), "till-7.42");
  assert.equal(answer.headers.get("server-timing"), "queue;dur=1.23, line;dur=5.68");
  assert.equal(answer.headers.get("content-type"), "application/json");
  assert.equal(Buffer.concat(calls[0]?.body ?? []).toString(), sale);
  const [record] = records;
  assert.equal(record?.requestId, "till-7.42");
  assert.equal(record?.route, "/sale");
  assert.equal(record?.key, "A-1");
  assert.equal(record?.outcome, "answered");
  assert.equal(record?.requestBytes, sale.length);
  assert.equal(record?.replyBytes, 8);
  assert.equal(record?.left, false);
});

test("HttpListener makes an id of its own where the sender's could forge a log line", async () => {
  const { port } = await serve("bank");
  for (const id of ["a b", 'x"y', "a".repeat(65), ""]) {
    const answer = await ask(port, "POST", "/sale", sale, { "X-Request-Id": id });
    assert.notEqual(answer.headers.get("x-request-id"), id);
    assert.match(answer.headers.get("x-request-id") ?? "", /^[0-9a-f]{8}-[0-9a-z]+$/);
  }
});

for (const kind of Object.keys(faultClasses) as FaultKind[]) {
  test(`HttpListener answers a Fault ${kind} of the handler with its status, outcome and the service's envelope`, async () => {
    for (const service of ["fiscal", "bank", "qr"] as const) {
      const details = { retryAfterS: 3, queueMs: 10, lineMs: 20 };
      const route = contracts[service].barrier.route;
      const { port, records } = await serve(service, {
        handler: () => Promise.reject(new Fault(kind, "Cannot do it: a test", details)),
      });
      const answer = await ask(port, "POST", route);
      assertFault(answer, service, kind, contracts[service].faultsInOk.includes(kind) ? 200 : undefined);
      assert.equal(answer.headers.get("retry-after"), "3");
      assert.equal(answer.headers.get("server-timing"), "queue;dur=10.00, line;dur=20.00");
      assert.equal(records[0]?.outcome, faultClasses[kind].outcome);
      assert.equal(records[0]?.message, "Cannot do it: a test");
      assert.equal(records[0]?.httpStatus, answer.status);
      await closeAll();
    }
  });
}

test("HttpListener with faultStatus puts every fault in 200, also those of a broken message, with the same outcome", async () => {
  const { port } = await serve("qr", { config: { faultStatus: 200 } });
  assertFault(await ask(port, "POST", "/nowhere"), "qr", "route", 200);
  assertFault(await ask(port, "POST", "/check"), "qr", "missing", 200);
  const client = new Client(port).write("no http\r\n\r\n");
  const answer = await client.answer();
  assert.ok(answer);
  assertFault(answer, "qr", "http", 200);
});

test("HttpListener puts fiscal and bank faults of content in 200, qr ones in 400", async () => {
  const kinds = { fiscal: "missing", bank: "malformed", qr: "malformed" } as const;
  for (const service of ["fiscal", "bank", "qr"] as const) {
    const { port, calls } = await serve(service);
    const answer = await ask(port, "POST", service === "qr" ? "/check" : "/refund", "[1]");
    assertFault(answer, service, kinds[service], service === "qr" ? 400 : 200);
    assert.equal(calls.length, 0);
  }
});

test("HttpListener answers an error that is no Fault with 502 unknown, reports it and lives on", async () => {
  const thrown = new Error("4111111111111111");
  let rejects = true;
  const { port, errors } = await serve("bank", {
    handler: () => {
      if (rejects) throw thrown;
      return Promise.resolve(replyOf("{}"));
    },
  });
  const answer = await ask(port, "POST", "/sale", sale);
  assertFault(answer, "bank", "broken");
  assert.ok(!answer.text.includes("4111"));
  assert.match(answer.text, /query \/check with the same pay_id/);
  assert.deepEqual(errors, [thrown]);
  rejects = false;
  assert.equal((await ask(port, "POST", "/sale", sale)).status, 200);
});

test("HttpListener answers an error before the handler was asked with 503 not-sent, for nothing was sent", async () => {
  const { port, errors, calls } = await serve("bank", {
    config: { check: "contract" },
    validate: () => {
      throw new RangeError("a bug");
    },
  });
  assertFault(await ask(port, "POST", "/sale", sale), "bank", "unavailable");
  assert.equal(errors.length, 1);
  assert.equal(calls.length, 0);
});

test("HttpListener survives a log that throws, and still answers what the handler said", async () => {
  const errors: unknown[] = [];
  const made = listenerOf("bank");
  made.records.push = () => {
    throw new Error("the log is broken");
  };
  const { port } = await made.listener.listen();
  const answer = await ask(port, "POST", "/sale", sale);
  assert.equal(answer.headers.get("x-posline-outcome"), "answered");
  assert.equal(made.errors.length, 1);
  assert.equal(errors.length, 0);
  await made.listener.close();
});

for (const path of ["//sale", "/sale/", "/%73ale", "/__proto__", "/constructor", "/", "*", "/SALE", "/sale%00", "http://evil.com/sale", "/a?/sale"]) {
  test(`HttpListener answers the path ${path} with 404 and asks nobody`, async () => {
    const { port, calls, records } = await serve("bank");
    assertFault(await ask(port, "POST", path, sale), "bank", "route");
    assert.equal(calls.length, 0);
    assert.equal(records[0]?.route, "?");
  });
}

test("HttpListener leaves a query out of the route", async () => {
  const { port, calls } = await serve("bank");
  assert.equal((await ask(port, "POST", "/sale?route=/refund&x=%2F", sale)).status, 200);
  assert.equal(calls[0]?.route, "/sale");
});

for (const method of ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "GET"]) {
  test(`HttpListener answers ${method} with 405 and what the route allows`, async () => {
    const { port, calls } = await serve("bank");
    const answer = await ask(port, method, "/sale");
    assert.equal(answer.status, 405);
    assert.equal(answer.headers.get("allow"), "POST");
    assert.equal(answer.headers.get("x-posline-outcome"), "not-sent");
    assert.equal(calls.length, 0);
  });
}

test("HttpListener takes GET and POST where the contract has both", async () => {
  const { port, calls } = await serve("fiscal");
  for (const method of ["GET", "POST"]) assert.equal((await ask(port, method, "/supported_operations")).status, 200);
  assert.deepEqual(
    calls.map(({ body }) => body),
    [[], []],
  );
  const answer = await ask(port, "DELETE", "/supported_operations");
  assert.equal(answer.headers.get("allow"), "GET, POST");
});

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

const impatient = { headersMs: 50, requestMs: 100, checkConnectionsMs: 20 };

test("HttpListener answers headers that drip with 408 not-sent", async () => {
  const { port } = await serve("bank", { patience: impatient });
  const answer = await new Client(port).write("POST /sale HTTP/1.1\r\nHost: local").answer();
  assert.ok(answer);
  assertFault(answer, "bank", "slow");
});

test("HttpListener answers a body that drips with 408 not-sent on its route, and never hands it on", async () => {
  const { port, calls, records } = await serve("bank", { patience: impatient });
  const client = new Client(port).ask("POST", "/sale", '{"pay_id":', { "Content-Length": "100" });
  const answer = await client.answer();
  assert.ok(answer);
  assertFault(answer, "bank", "slow");
  assert.equal(records[0]?.route, "/sale");
  assert.equal(calls.length, 0);
});

test("HttpListener gives the handler all the time it needs, whatever a request may take to come", async () => {
  const { port } = await serve("bank", {
    patience: impatient,
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
    call.caller.onGone = resolve;
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
        caller.onGone = resolve;
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

test("HttpListener.listen() takes a socket that somebody else opened", async () => {
  const other = createServer();
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  // Node's own handle of a server: the only place where its descriptor can be read.
  const { fd } = (other as unknown as { _handle: { fd: number } })._handle;
  const { listener } = listenerOf("bank");
  const { port } = await listener.listen({ fd });
  assert.equal((await ask(port, "POST", "/sale", sale)).status, 200);
  await listener.close();
  other.close();
});

test("HttpListener.listen() rejects with the system's code when the port is taken", async () => {
  const { port } = await serve("bank");
  const { listener } = listenerOf("bank", { config: { port } });
  await assert.rejects(listener.listen(), { code: "EADDRINUSE" });
  await listener.close();
});
