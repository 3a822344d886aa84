import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Fault } from "../../src/core/fault.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { ask, assertFault, Client, closeAll, held, replyOf, serve } from "./served.ts";

/**
 * Tests src/http/listener.ts.
 *
 * What is answered while no call could be sent, and behind more requests of one connection than may wait.
 */

afterEach(closeAll);

const sale = '{"pay_id":"A-1","amount":1}';
const down = () =>
  new Fault("unavailable", "Cannot send to line till: it is down. Nothing was sent", { retryAfterS: 1, queueMs: 0 });

test("HttpListener refuses a call that can't be sent now before its body came, as its handler would", async () => {
  const late = await serve("bank", { handler: () => Promise.reject(down()) });
  const expected = await ask(late.port, "POST", "/sale", sale, { "X-Request-Id": "id-1" });
  const { port, calls, records } = await serve("bank", { refusal: down });
  const client = new Client(port).ask("POST", "/sale", "", { "Content-Length": "20000", "X-Request-Id": "id-1" });
  const answer = await client.answer();
  assertFault(answer, "bank", "unavailable");
  assert.equal(answer.headers.get("retry-after"), "1");
  assert.deepEqual({ ...answer }, { ...expected });
  assert.equal(calls.length, 0);
  // Its body, and so its key and its amount, is what nobody read.
  const [{ callId } = {}] = records;
  assert.deepEqual(records, [{ ...late.records[0], callId, key: undefined, amount: undefined, requestBytes: 0 }]);
});

test("HttpListener drops the body of a call that it refused at once, and the connection stays usable", async () => {
  let isDown = true;
  const { port, calls } = await serve("bank", { refusal: () => (isDown ? down() : undefined) });
  const client = new Client(port).ask("POST", "/sale", "", { "Content-Length": "200000" });
  assert.equal((await client.answer())?.status, 503);
  isDown = false;
  client.write("x".repeat(200_000));
  assert.equal((await client.ask("POST", "/sale", sale).answer())?.status, 200);
  assert.equal(calls.length, 1);
});

test("HttpListener doesn't ask for a body that it won't take", async () => {
  const { port } = await serve("bank", { refusal: down });
  const client = new Client(port).ask("POST", "/sale", "", { "Content-Length": "20", Expect: "100-continue" });
  const answer = await client.answer();
  assert.equal(answer?.status, 503);
  assert.equal(answer?.headers.get("connection"), "close");
});

test("HttpListener tells what is wrong with the request itself before it tells that none can be sent", async () => {
  const { port } = await serve("bank", { config: { apiKey: "K", bodyBytesMax: 1024 }, refusal: down });
  const key = { "X-API-Key": "K" };
  for (const [method, path, headers, status] of [
    ["POST", "/sale", { ...key, Host: "evil.example" }, 421],
    ["POST", "/sale", { ...key, Origin: "https://evil.example" }, 403],
    ["POST", "/sale", {}, 401],
    ["POST", "/sael", key, 404],
    ["GET", "/sale", key, 405],
    ["POST", "/sale", key, 503],
    ["GET", "/supported_operations", key, 503],
  ] as const) {
    assert.equal((await ask(port, method, path, method === "POST" ? sale : "", headers)).status, status, `${method} ${path}`);
  }
});

test("HttpListener doesn't parse a body that came while no call could be sent any more", async () => {
  let isDown = false;
  const { port, calls, records } = await serve("qr", { refusal: () => (isDown ? down() : undefined) });
  const client = new Client(port).ask("POST", "/check", "", { "Content-Length": "10" });
  assert.equal((await ask(port, "POST", "/check", sale)).status, 200);
  isDown = true;
  const answer = await client.write("no JSON...").answer();
  assert.equal(answer?.status, 503);
  assert.deepEqual([calls.length, records.at(-1)?.requestBytes], [1, 10]);
});

test("HttpListener asks whether a call would be refused by its route and the length of its body, as announced and as it came", async () => {
  const asked: unknown[] = [];
  const { port, calls } = await serve("bank", { refusal: (...call) => void asked.push(call) });
  await ask(port, "POST", "/sale", sale);
  const chunked = new Client(port).ask("POST", "/sale", "", { "Transfer-Encoding": "chunked" });
  await chunked.write(`${sale.length.toString(16)}\r\n${sale}\r\n0\r\n\r\n`).answer();
  await ask(port, "GET", "/supported_operations", "");
  assert.deepEqual(asked, [
    ["/sale", sale.length],
    ["/sale", sale.length],
    ["/sale", undefined],
    ["/sale", sale.length],
    ["/supported_operations", 0],
    ["/supported_operations", 0],
  ]);
  assert.equal(calls.length, 3);
});

/** A connection whose requests wait until the test answers them. */
async function waiting(count: number) {
  const { handler, nth } = held();
  const served = await serve("bank", { handler });
  const client = new Client(served.port);
  for (let i = 0; i < count; i++) client.ask("POST", "/sale", sale);
  for (let i = 0; i < Math.min(count, 8); i++) await nth(i);
  return { ...served, client, nth };
}

test("HttpListener takes 8 requests that wait on one connection, refuses the 9th in its turn and ends the connection with that", async () => {
  const { client, nth, calls, records } = await waiting(9);
  await new Promise(setImmediate);
  assert.equal(records[0]?.httpStatus, 503);
  for (let i = 0; i < 8; i++) {
    (await nth(i)).give(replyOf(`"${i}"`));
    assert.equal((await client.answer())?.text, `"${i}"`);
  }
  const refused = await client.answer();
  assertFault(refused, "bank", "unavailable");
  assert.match(refused.text, /8 requests of its connection already wait, which is the limit/);
  assert.equal(refused.headers.get("retry-after"), "1");
  assert.equal(refused.headers.get("connection"), "close");
  assert.equal(await client.rest(), "");
  assert.equal(calls.length, 8);
});

test("HttpListener takes a 9th request of a connection once one of 8 is answered", async () => {
  const { client, nth } = await waiting(8);
  (await nth(0)).give(replyOf('"0"'));
  assert.equal((await client.answer())?.text, '"0"');
  client.ask("POST", "/refund", sale);
  assert.equal((await nth(8)).call.route, "/refund");
});

test("HttpListener reads nothing behind the refused request of a connection, and answers those before it", async () => {
  const { handler, nth } = held();
  const { port, calls } = await serve("bank", { handler });
  const client = new Client(port);
  const request = `POST /sale HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${sale.length}\r\n\r\n${sale}`;
  // In one piece, as much as a read takes, and more of them.
  for (let i = 0; i < 20; i++) client.write(request.repeat(700));
  for (let i = 0; i < 8; i++) await nth(i);
  await delay(50);
  for (let i = 0; i < 8; i++) (await nth(i)).give(replyOf(`"${i}"`));
  for (let i = 0; i < 8; i++) assert.equal((await client.answer())?.text, `"${i}"`);
  const refused = await client.answer();
  assert.deepEqual([refused?.status, refused?.headers.get("connection")], [503, "close"]);
  assert.equal(await client.rest(), "");
  assert.equal(calls.length, 8);
});

test("HttpListener answers any number of pipelined requests that wait for nobody", async () => {
  const { port } = await serve("bank");
  const client = new Client(port);
  for (let i = 0; i < 100; i++) client.ask("POST", "/nowhere", "{}");
  for (let i = 0; i < 100; i++) assert.equal((await client.answer())?.status, 404);
});

const messageOf = (text: string): string => {
  const body: { readonly message?: unknown } = JSON.parse(text);
  return String(body.message);
};

for (const [what, headers, message] of [
  [
    "Host",
    { Host: "Evil.example:88" },
    'Host "Evil.example:88" is not allowed: use localhost, or add "evil.example" to allowHosts of bank',
  ],
  ["Host that is not a name", { Host: "a@b" }, 'Host "a@b" is not a host name: use localhost'],
  [
    "Host of many characters",
    { Host: "h".repeat(300) },
    `Host "${"h".repeat(255)}…" is not allowed: use localhost, or add "${"h".repeat(255)}…" to allowHosts of bank`,
  ],
  [
    "Origin",
    { Origin: "https://evil.example" },
    'Origin "https://evil.example" is not allowed: add it to allowOrigins of bank',
  ],
  [
    "page that names no Origin",
    { "Sec-Fetch-Site": "cross-site" },
    'a web page of another site sent it (Sec-Fetch-Site "cross-site") and names no Origin: send it by fetch, and add the page to allowOrigins of bank',
  ],
] as const) {
  test(`HttpListener names the ${what} that it refuses, in the answer and in the log`, async () => {
    const { port, records } = await serve("bank");
    const { text } = await ask(port, "POST", "/sale", sale, headers);
    assert.equal(messageOf(text), `Cannot accept the request: ${message}`);
    assertMapped(records, [["?", messageOf(text)]], ({ route, message: logged }) => [route, logged]);
  });
}

for (const [path, words] of [
  ["/sael", '"/sael": did you mean /sale?'],
  ["/Sale", '"/Sale": did you mean /sale?'],
  ["/sale/", '"/sale/": did you mean /sale?'],
  ["/sael?key=SECRET", '"/sael": did you mean /sale?'],
  ["/favicon.ico", '"/favicon.ico"'],
  ["/4111111111111111", '"/411111******1111"'],
  [`/${"x".repeat(300)}`, `"/${"x".repeat(254)}…"`],
  ['/a"b', '"/a\\"b"'],
] as const) {
  test(`HttpListener names the path ${path.slice(0, 20)} that it doesn't have, masked and bounded, with the nearest route`, async () => {
    const { port, records } = await serve("bank");
    const answer = await new Client(port).write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).answer();
    assert.equal(answer?.status, 404);
    assert.equal(messageOf(answer.text), `Cannot accept the request: bank has no route ${words}`);
    assertMapped(records, [["?", messageOf(answer.text)]], ({ route, message }) => [route, message]);
  });
}
