import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { Fault, type FaultKind, faultClasses } from "../../src/core/fault.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { ask, assertFault, Client, closeAll, listenerOf, replyOf, serve } from "./served.ts";

afterEach(closeAll);

const sale = '{"pay_id":"A-1","amount":1}';

test("HttpListener answers with the handler's bytes, the outcome, the request's id and where the time went", async () => {
  const { port, calls, records } = await serve("bank", {
    handler: async () => ({ ...replyOf(""), payload: [Buffer.from('{"a" :'), Buffer.from("1"), Buffer.from("}")] }),
  });
  const answer = await ask(port, "POST", "/sale", sale, { "X-Request-Id": "till-7.42" });
  assert.equal(answer.status, 200);
  assert.equal(answer.text, '{"a" :1}');
  assert.equal(answer.headers.get("x-posline-outcome"), "answered");
  assert.equal(answer.headers.get("x-posline-reason"), undefined);
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

test("HttpListener writes an answer byte for byte, short or long, whole or in pieces", async () => {
  const replies: string[] = [];
  let cuts = 1;
  const { port } = await serve("bank", {
    handler: async () => {
      const whole = Buffer.from(replies.at(-1) ?? "");
      const size = Math.ceil(whole.length / cuts);
      const payload = Array.from({ length: cuts }, (_, i) => whole.subarray(i * size, (i + 1) * size));
      return { ...replyOf(""), payload };
    },
  });
  const client = new Client(port);
  // Characters of one to four bytes, so that a piece ends within one.
  for (const text of ["", "я", "чек €😀 ".repeat(20), "я".repeat(2048), `${"я".repeat(2048)}.`, "€".repeat(20_000)]) {
    for (cuts of [1, 2, 3]) {
      replies.push(text);
      const answer = await client.ask("POST", "/sale", sale).answer();
      assert.equal(answer?.text, replies.at(-1));
      assert.equal(answer?.headers.get("content-length"), String(Buffer.byteLength(replies.at(-1) ?? "")));
    }
  }
});

test("HttpListener makes an id of its own where the sender's could forge a log line", async () => {
  const { port } = await serve("bank");
  for (const id of ["a b", 'x"y', "a".repeat(65), ""]) {
    const answer = await ask(port, "POST", "/sale", sale, { "X-Request-Id": id });
    assert.notEqual(answer.headers.get("x-request-id"), id);
    assert.match(answer.headers.get("x-request-id") ?? "", /^[0-9a-f]{8}-[0-9a-z]+$/);
  }
});

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;

test("HttpListener names a request by its X-Request-Id, else by its trace, and logs and passes on the trace either way", async () => {
  const { port, calls, records } = await serve("bank");
  const named: readonly [headers: Record<string, string>, requestId: string][] = [
    [{ traceparent }, traceId],
    [{ traceparent, "X-Request-Id": "not fit" }, traceId],
    [{ traceparent, "X-Request-Id": "till-7.42" }, "till-7.42"],
  ];
  const callIds = new Set();
  for (const [headers, requestId] of named) {
    const answer = await ask(port, "POST", "/sale", sale, headers);
    assert.equal(answer.headers.get("x-request-id"), requestId);
    const [call, record] = [calls.pop(), records.pop()];
    assert.deepEqual([call?.requestId, call?.trace], [requestId, traceparent]);
    assert.deepEqual([record?.requestId, record?.traceId], [requestId, traceId]);
    assert.match(call?.callId ?? "", /^[0-9a-f]{8}-[0-9a-z]+$/);
    assert.equal(record?.callId, call?.callId);
    callIds.add(call?.callId);
  }
  assert.equal(callIds.size, named.length);
});

test("HttpListener logs the trace of a request that it refuses", async () => {
  const { port, records } = await serve("bank");
  const answer = await ask(port, "POST", "/nowhere", sale, { traceparent });
  assert.equal(answer.status, 404);
  assert.equal(answer.headers.get("x-request-id"), traceId);
  assert.equal(records[0]?.traceId, traceId);
});

// Its keys are the kinds.
for (const kind of Object.keys(faultClasses) as FaultKind[]) {
  test(`HttpListener answers a Fault ${kind} of the handler with its status, outcome and the service's envelope`, async () => {
    for (const service of ["fiscal", "bank", "qr"] as const) {
      const details = { retryAfterS: 3, queueMs: 10, lineMs: 20 };
      const route = contracts[service].probe.route;
      const { port, records } = await serve(service, {
        handler: () => Promise.reject(new Fault(kind, "Cannot do it: a test", details)),
      });
      const answer = await ask(port, "POST", route);
      assertFault(answer, service, kind, contracts[service].faultsInOk.includes(kind) ? 200 : undefined);
      assert.equal(answer.headers.get("retry-after"), faultClasses[kind].outcome === "not-sent" ? "3" : undefined);
      assert.equal(answer.headers.get("server-timing"), "queue;dur=10, line;dur=20");
      assert.equal(records[0]?.outcome, faultClasses[kind].outcome);
      assert.equal(records[0]?.message, "Cannot do it: a test");
      assert.equal(records[0]?.httpStatus, answer.status);
      await closeAll();
    }
  });
}

test("HttpListener with faultStatus puts every fault in 200, also those of a broken message, with the same outcome", async () => {
  const { port } = await serve("bank", { config: { faultStatus: 200 } });
  assertFault(await ask(port, "POST", "/nowhere"), "bank", "route", 200);
  assertFault(await ask(port, "POST", "/check"), "bank", "missing", 200);
  const client = new Client(port).write("no http\r\n\r\n");
  const answer = await client.answer();
  assertFault(answer, "bank", "http", 200);
  const qr = await serve("qr", { config: { faultStatus: 200 } });
  assertFault(await ask(qr.port, "POST", "/nowhere"), "qr", "route", 200);
  assertFault(await ask(qr.port, "POST", "/refund"), "qr", "missing", 200);
});

test("HttpListener puts fiscal and bank faults of content in 200, qr ones in 400", async () => {
  const kinds = { fiscal: "missing", bank: "malformed", qr: "malformed" } as const;
  for (const service of ["fiscal", "bank", "qr"] as const) {
    const { port, calls } = await serve(service);
    const answer = await ask(port, "POST", "/refund", "[1]");
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
  assert.match(answer.text, /Outcome unknown, .*: call \/check with the same pay_id/);
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
  const made = listenerOf("bank");
  made.records.push = () => {
    throw new Error("the log is broken");
  };
  const { port } = await made.listener.listen();
  const answer = await ask(port, "POST", "/sale", sale);
  assert.equal(answer.headers.get("x-posline-outcome"), "answered");
  assert.equal(made.errors.length, 1);
  await made.listener.close();
});

for (const path of [
  ...["//sale", "/sale/", "/%73ale", "/__proto__", "/constructor", "/", "*", "/SALE", "/sale%00"],
  ...["http://localhost//sale", "ftp://localhost/sale", "/a?/sale"],
]) {
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

for (const method of ["HEAD", "PUT", "DELETE", "PATCH", "TRACE", "GET"]) {
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
  assertMapped(calls, [[], []], ({ body }) => body);
  const answer = await ask(port, "DELETE", "/supported_operations");
  assert.equal(answer.headers.get("allow"), "GET, POST");
});

test("HttpListener says a payment's trans in a header, which an allowed page may read, to the letter or not at all", async () => {
  const origin = "https://till.example";
  let trans = "";
  const followed = () => ({ result: "approved", answerOf: "/check", polls: 1, isGuarded: true, trans }) as const;
  const { port } = await serve("qr", {
    config: { allowOrigins: [origin], check: "none" },
    handler: async () => ({ ...replyOf('{"status":"success"}'), followed: followed() }),
  });
  const failing = await serve("qr", {
    config: { check: "none" },
    handler: () => Promise.reject(new Fault("broken", "Cannot show it: a test", { followed: followed() })),
  });
  for (const given of ["EMU000000000001", "a b/c=+%41", "x".repeat(256)]) {
    trans = given;
    const answer = await ask(port, "POST", "/showqrcode", "{}", { Origin: origin });
    assert.equal(answer.headers.get("x-posline-trans"), given);
    assert.match(answer.headers.get("access-control-expose-headers") ?? "", /(^|, )X-Posline-Trans(,|$)/);
    assert.equal((await ask(failing.port, "POST", "/showqrcode", "{}")).headers.get("x-posline-trans"), given);
  }
  for (const odd of ["", " a", "a ", "a\r\nX-Forged: 1", "tab\there", "\u0456\u0434", "x".repeat(257)]) {
    trans = odd;
    const { status, headers } = await ask(port, "POST", "/showqrcode", "{}");
    assert.deepEqual([status, headers.get("x-posline-result"), headers.has("x-posline-trans")], [200, "approved", false], odd);
  }
});
