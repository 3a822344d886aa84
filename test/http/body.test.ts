import assert from "node:assert/strict";
import { once } from "node:events";
import { afterEach, test } from "node:test";
import fc from "fast-check";
import type { Reply } from "../../src/core/call.ts";
import { bodiesMax, bodyBytesFree } from "../../src/http/limits.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { ask, assertFault, Client, closeAll, replyOf, type Served, serve } from "./served.ts";

afterEach(closeAll);

const sale = '{"pay_id":"A-1","amount":1}';
const bodyBytesMax = 65_536;
const padded = (bytes: number) => `{"pay_id":"A-1","pad":"${"x".repeat(bytes - 27)}"}  `;

for (const [name, body, status] of [
  ["an array", "[1]", 400],
  ["a number", "1", 400],
  ["null", "null", 400],
  ["a string", '"x"', 400],
  ["half an object", '{"pay_id":', 400],
  ["two objects", "{}{}", 400],
  ["nothing", "", 400],
  ["white space", " \r\n\t ", 400],
  ["NUL bytes", "\0\0", 400],
  ["an object with a raw NUL", '{"pay_id":"\0"}', 400],
  ["100,000 open brackets", "[".repeat(60_000), 400],
  ["64 levels", `{"a":${"[".repeat(63)}${"]".repeat(63)}}`, 200],
  ["deep nesting that is whole", `{"a":${"[".repeat(30_000)}${"]".repeat(30_000)}}`, 400],
  ["a number beyond every range", '{"amount":1e999999,"b":123456789012345678901234567890}', 200],
  ["__proto__", '{"__proto__":{"pay_id":"x"}}', 200],
] as const) {
  test(`HttpListener answers a body of ${name} with ${status}, and relays it verbatim if at all`, async () => {
    const { port, calls } = await serve("qr");
    const answer = await ask(port, "POST", "/check", body);
    assert.equal(answer.status, status);
    assert.equal(answer.headers.get("x-posline-outcome"), status === 200 ? "answered" : "not-sent");
    assertMapped(calls, status === 200 ? [body] : [], (call) => Buffer.concat(call.body).toString());
  });
}

test("HttpListener refuses bytes that are no UTF-8 within a JSON text, and relays them as they are where nothing is checked", async () => {
  const body = Buffer.concat([Buffer.from('{"pay_id":"A'), Buffer.from([0xff, 0xc3]), Buffer.from('"}')]);
  const head = `POST /refund HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n`;
  const strict = await serve("qr");
  const refused = await new Client(strict.port).write(head).write(body).answer();
  assertFault(refused, "qr", "malformed");
  assert.equal(strict.calls.length, 0);
  const blind = await serve("qr", { config: { check: "none" } });
  assert.equal((await new Client(blind.port).write(head).write(body).answer())?.status, 200);
  assert.deepEqual(Buffer.concat(blind.calls[0]?.body ?? []), body);
});

test("HttpListener relays a body that comes in chunks, byte by byte", async () => {
  const { port, calls } = await serve("bank");
  const client = new Client(port).write("POST /sale HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const byte of sale) client.write(`1\r\n${byte}\r\n`);
  assert.equal((await client.write("0\r\n\r\n").answer())?.status, 200);
  assert.equal(Buffer.concat(calls[0]?.body ?? []).toString(), sale);
});

test("HttpListener asks for a body that is announced with Expect, and not for one it refuses", async () => {
  const { port, calls } = await serve("bank", { config: { bodyBytesMax } });
  const head = (length: number) => ({ Expect: "100-continue", "Content-Length": String(length) });
  const client = new Client(port).ask("POST", "/sale", "", head(sale.length));
  assert.equal((await client.answer())?.status, 100);
  assert.equal((await client.write(sale).answer())?.status, 200);
  assert.equal(calls.length, 1);
  for (const [path, length, status] of [
    ["/nowhere", 10, 404],
    ["/sale", bodyBytesMax + 1, 413],
  ] as const) {
    const refused = new Client(port).ask("POST", path, "", head(length));
    const answer = await refused.answer();
    assert.equal(answer?.status, status);
    // Whether the body still comes is anybody's guess, so the connection can't go on.
    assert.equal(answer?.headers.get("connection"), "close");
    assert.equal(await refused.rest(), "");
  }
});

test("HttpListener doesn't ask an HTTP/1.0 client to continue, and ignores other expectations", async () => {
  const { port } = await serve("bank");
  const old = `POST /sale HTTP/1.0\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: ${sale.length}\r\n\r\n${sale}`;
  assert.equal((await new Client(port).write(old).answer())?.status, 200);
  assert.equal((await ask(port, "POST", "/sale", sale, { Expect: "miracles" })).status, 200);
});

test("HttpListener answers a body announced too large with 413, and the connection stays usable", async () => {
  const { port, calls } = await serve("bank", { config: { bodyBytesMax: 1024 } });
  const client = new Client(port).ask("POST", "/sale", padded(200_000));
  const answer = await client.answer();
  assert.equal(answer?.status, 413);
  assert.equal(answer?.headers.get("x-posline-outcome"), "not-sent");
  assert.equal(calls.length, 0);
  assert.equal((await client.ask("POST", "/sale", sale).answer())?.status, 200);
  assert.equal((await ask(port, "POST", "/sale", padded(1024))).status, 200);
  assert.equal((await ask(port, "POST", "/sale", padded(1025))).status, 413);
});

test("HttpListener answers a body that grows too large with 413, which reaches a client that goes on sending", async () => {
  const { port, calls } = await serve("bank", { config: { bodyBytesMax: 1024 } });
  const client = new Client(port).write("POST /sale HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (let i = 0; i < 100; i++) client.write(`400\r\n${"x".repeat(1024)}\r\n`);
  const answer = await client.answer();
  assert.equal(answer?.status, 413);
  client.write("0\r\n\r\n");
  assert.equal((await client.ask("POST", "/sale", sale).answer())?.status, 200);
  assert.equal(calls.length, 1);
});

test("HttpListener doesn't answer twice when a body breaks after it was refused", async () => {
  const { port, records } = await serve("bank", { config: { bodyBytesMax: 1024 } });
  const client = new Client(port).write("POST /sale HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.write(`800\r\n${"x".repeat(2048)}\r\nZZ\r\n`);
  assert.equal((await client.answer())?.status, 413);
  assert.equal(records[0]?.httpStatus, 413);
});

/** Fills the memory for bodies: requests that are held by their handler. */
function filling() {
  const waiting: ((reply: Reply) => void)[] = [];
  const handler = (call: { route: string }) =>
    call.route === "/terminals"
      ? Promise.resolve(replyOf("{}"))
      : new Promise<Reply>((resolve) => {
          waiting.push(resolve);
        });
  return { waiting, handler };
}

async function untilCalled(served: Served, calls: number): Promise<void> {
  // Each answered request gives the earlier ones time to arrive.
  while (served.calls.length < calls) await new Promise(setImmediate);
}

test("BodyReader refuses what exceeds the memory for all bodies with 503, but never an ordinary sale", async () => {
  const { waiting, handler } = filling();
  const served = await serve("bank", { config: { bodyBytesMax }, handler });
  const clients = Array.from({ length: bodiesMax }, () => new Client(served.port).ask("POST", "/sale", padded(bodyBytesMax)));
  await untilCalled(served, bodiesMax);
  const refused = await ask(served.port, "POST", "/sale", padded(bodyBytesFree + 1));
  assert.equal(refused.status, 503);
  assert.equal(refused.headers.get("x-posline-outcome"), "not-sent");
  assert.equal(refused.headers.get("retry-after"), "1");
  const small = new Client(served.port).ask("POST", "/sale", padded(bodyBytesFree));
  await untilCalled(served, bodiesMax + 1);
  for (const give of waiting.splice(0)) give(replyOf("{}"));
  for (const client of [...clients, small]) assert.equal((await client.answer())?.status, 200);
});

test("BodyReader holds half bodies only as long as their clients stay", async () => {
  const served = await serve("bank", { config: { bodyBytesMax } });
  const clients = Array.from({ length: 100 }, () =>
    new Client(served.port).ask("POST", "/sale", padded(bodyBytesMax / 2), { "Content-Length": String(bodyBytesMax) }),
  );
  const refused = clients.map((client) => client.answer());
  assert.equal((await Promise.race(refused))?.status, 503);
  assert.equal((await ask(served.port, "POST", "/sale", sale)).status, 200);
  for (const { socket } of clients) socket.destroy();
  await Promise.all(refused);
  await assertNothingHeld(served);
});

test("BodyReader counts the body of a call whose client has left for as long as its handler has it", async () => {
  const { waiting, handler } = filling();
  const served = await serve("bank", {
    config: { bodyBytesMax },
    handler: (call) => (call.route === "/sale" ? handler(call) : Promise.resolve(replyOf("{}"))),
  });
  const clients = Array.from({ length: bodiesMax }, () => new Client(served.port).ask("POST", "/sale", padded(bodyBytesMax)));
  await untilCalled(served, bodiesMax);
  for (const { socket } of clients) socket.destroy();
  while (!served.calls.every(({ caller }) => caller.gone)) await new Promise(setImmediate);
  assert.equal((await ask(served.port, "POST", "/refund", padded(bodyBytesFree + 1))).status, 503);
  for (const give of waiting) give(replyOf("{}"));
  await assertNothingHeld(served);
});

/** As many of the largest bodies as may be held at one time still fit: nothing of what was before is counted. */
async function assertNothingHeld(served: Served): Promise<void> {
  // A connection that closed is noticed by then.
  for (let i = 0; i < 5; i++) await ask(served.port, "POST", "/terminals");
  const clients = Array.from({ length: bodiesMax }, () => new Client(served.port).ask("POST", "/refund", padded(bodyBytesMax)));
  for (const client of clients) assert.equal((await client.answer())?.status, 200);
  for (const { socket } of clients) socket.destroy();
}

/** One way in which a client may treat the service. */
const abuse = fc.record({
  bytes: fc.integer({ min: 1, max: bodyBytesMax * 2 }),
  announced: fc.boolean(),
  sent: fc.double({ min: 0, max: 1, noNaN: true }),
  end: fc.constantFrom("destroy", "half-close", "answer", "garbage", "pipeline"),
  valid: fc.boolean(),
});

test("BodyReader's count comes back to nothing whatever clients do (property)", { timeout: 60_000 }, async () => {
  const waiting: (() => void)[] = [];
  const served = await serve("bank", {
    config: { bodyBytesMax },
    handler: (call) =>
      call.route === "/sale"
        ? new Promise((resolve, reject) => {
            waiting.push(() => (waiting.length % 2 === 0 ? resolve(replyOf("{}")) : reject(new Error("a bug"))));
          })
        : Promise.resolve(replyOf("{}")),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(abuse, { minLength: 1, maxLength: 12 }), async (abuses) => {
      const clients = abuses.map(({ bytes, announced, sent, end, valid }) => {
        const text = valid && bytes > 40 ? padded(bytes) : "x".repeat(bytes);
        const part = text.slice(0, Math.ceil(text.length * sent));
        const client = new Client(served.port);
        if (announced) client.ask("POST", "/sale", part, { "Content-Length": String(bytes) });
        else {
          client.ask("POST", "/sale", "", { "Transfer-Encoding": "chunked" });
          client.write(`${part.length.toString(16)}\r\n${part}\r\n${sent > 0.5 ? "0\r\n\r\n" : ""}`);
        }
        if (end === "garbage") client.write("\0\0\r\n");
        if (end === "pipeline") client.ask("POST", "/sale", padded(1000)).ask("POST", "/sale", "[");
        return { client, end };
      });
      await ask(served.port, "POST", "/terminals");
      clients.forEach(({ client, end }, i) => {
        if (end === "half-close") client.socket.end();
        else if (end !== "answer" || i % 2 === 0) client.socket.destroy();
      });
      for (const give of waiting.splice(0)) give();
      await ask(served.port, "POST", "/terminals");
      for (const { client } of clients) client.socket.destroy();
      await Promise.all(clients.map(({ client: { socket } }) => (socket.closed ? undefined : once(socket, "close"))));
      for (const give of waiting.splice(0)) give();
      await assertNothingHeld(served);
    }),
    { numRuns: 25 },
  );
});
