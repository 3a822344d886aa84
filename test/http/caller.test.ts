import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";
import { after, afterEach, test } from "node:test";
import { replyPayloadBytesMax } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { type Call, present, type Reply, type ServiceName } from "../../src/core/call.ts";
import { Fault, type FaultKind } from "../../src/core/fault.ts";
import { type HttpCallerOptions, httpCaller } from "../../src/http/caller.ts";
import { askMsMin, connectMs } from "../../src/http/limits.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { type Answer, Upstream } from "./upstream.ts";

const time = new VirtualTime();
after(() => time.restore());

const replyTimeoutMs = 25_000;
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

async function upstreamOf(answer?: Answer): Promise<Upstream> {
  const upstream = await Upstream.start(answer);
  ends.push(() => upstream.stop());
  return upstream;
}

/** A server that does with bare connections what a test says. */
async function bareServer(take: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    take(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function callOf(service: ServiceName, route: string, body = "", more: Partial<Call> = {}): Call {
  const pieces = body === "" ? [] : [Buffer.from(body)];
  return { service, route, body: pieces, requestId: "id-1", key: undefined, caller: present(), ...more };
}

function callerOf(service: ServiceName, upstream: string, more: Partial<HttpCallerOptions> = {}) {
  const contract = contracts[service];
  const timeouts = Object.fromEntries(contract.routes.map(({ path }) => [path, replyTimeoutMs]));
  return httpCaller({ contract, upstream, replyTimeoutMs: timeouts, apiKey: undefined, ...more });
}

const textOf = ({ payload }: Reply) => Buffer.concat(payload).toString();

async function faultOf(asked: Promise<Reply>): Promise<Fault> {
  const end = await asked.catch((error: unknown) => error);
  assert.ok(end instanceof Fault, `${String(end)} is no fault`);
  return end;
}

async function failsAs(asked: Promise<Reply>, kind: FaultKind, message: RegExp): Promise<Fault> {
  const fault = await faultOf(asked);
  assert.equal(fault.kind, kind, fault.message);
  assert.match(fault.message, message);
  return fault;
}

/** What no re-serialising survives. */
const oddReply = '{\n "status":"success" , "code":0,"id":9223372036854775807, "b":1.50, "a":"\\u00e9 ☕", "x":null }\n';

test("httpCaller() hands back the upstream's bytes untouched, with the status and code read from them", async () => {
  const upstream = await upstreamOf((_, response) => response.end(oddReply));
  const reply = await callerOf("bank", upstream.url)(callOf("bank", "/sale", '{"pay_id":"A"}'));
  assert.equal(textOf(reply), oddReply);
  assert.deepEqual([reply.status, reply.code, reply.queueMs], ["success", 0, 0]);
});

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

test("httpCaller() sends nothing to a route that the contract doesn't have", async () => {
  const upstream = await upstreamOf();
  await failsAs(callerOf("bank", upstream.url)(callOf("bank", "/../admin", "{}")), "route", /no such route/);
  assert.equal(upstream.heard.length, 0);
});

test("httpCaller() fails as not sent when nothing listens, there is no such host, or the connection ends in the handshake", async () => {
  const upstream = await Upstream.start();
  const { url } = upstream;
  await upstream.stop();
  const sale = callOf("bank", "/sale", "{}");
  const refused = await failsAs(callerOf("bank", url)(sale), "unavailable", /nothing listens there.*nothing was sent/);
  assert.equal(refused.outcome, "not-sent");
  await failsAs(callerOf("bank", "http://posline.invalid:1")(sale), "unavailable", /can't be reached.*nothing was sent/);
  const cut = await bareServer((socket) => socket.destroy());
  await failsAs(callerOf("bank", `https://${cut}`)(sale), "unavailable", /can't be reached.*nothing was sent/);
  const plain = await upstreamOf();
  await failsAs(
    callerOf("bank", plain.url.replace("http:", "https:"))(sale),
    "unavailable",
    /can't be reached.*nothing was sent/,
  );
  assert.equal(plain.heard.length, 0);
});

test("httpCaller() fails as not sent when the upstream isn't reached in time", async () => {
  let taken = () => {};
  const took = new Promise<void>((resolve) => {
    taken = resolve;
  });
  // It takes the connection and never shakes hands.
  const mute = await bareServer(() => taken());
  const asked = callerOf("bank", `https://${mute}`)(callOf("bank", "/sale", "{}"));
  const failed = failsAs(asked, "unavailable", new RegExp(`longer than ${connectMs} ms.*nothing was sent`));
  await took;
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
      /no answer came within 25000 ms: outcome unknown: query \/check with the same pay_id/,
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
  const late = ask(callOf("bank", "/sale", "{}"), replyTimeoutMs - askMsMin + 1);
  await failsAs(late, "unavailable", /waited 24001 ms behind another request: nothing was sent/);
  assert.equal(upstream.heard.length, 1);
});

test("httpCaller() sends nothing for a caller that has left by then", async () => {
  const upstream = await upstreamOf();
  const caller = { ...present(), gone: true };
  await failsAs(callerOf("bank", upstream.url)(callOf("bank", "/sale", "{}", { caller })), "unavailable", /has left/);
  const leaving = present();
  const asked = callerOf("bank", upstream.url)(callOf("bank", "/sale", "{}", { caller: leaving }));
  leaving.gone = true;
  await failsAs(asked, "unavailable", /has left/);
  assert.equal(upstream.heard.length, 0);
});

test("httpCaller() fails as unknown when the connection ends after the request, with no answer, half a header or half a body", async () => {
  const head = "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n";
  for (const [bytes, message] of [
    ["", /the connection to the upstream failed/],
    ["HTTP/1.1 200 O", /the connection to the upstream failed/],
    ["NOT HTTP AT ALL\r\n\r\n", /the connection to the upstream failed/],
    [`${head}{"status":"success"`, /cut in the middle/],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n{"status":"success"}\r\n', /cut in the middle/],
  ] as const) {
    let asks = 0;
    const server = await bareServer((socket) => {
      socket.once("data", () => {
        asks++;
        socket.end(bytes);
      });
    });
    const fault = await failsAs(callerOf("bank", `http://${server}`)(callOf("bank", "/sale", "{}")), "broken", message);
    assert.match(fault.message, /outcome unknown: query \/check with the same pay_id$/);
    assert.equal(asks, 1, "it was asked again");
  }
});

test("httpCaller() takes an answer that ends with its connection, when it is a whole JSON object", async () => {
  const server = await bareServer((socket) =>
    socket.once("data", () => socket.end('HTTP/1.0 200 OK\r\n\r\n{"status":"success"}')),
  );
  const reply = await callerOf("bank", `http://${server}`)(callOf("bank", "/check", "{}"));
  assert.equal(textOf(reply), '{"status":"success"}');
});

test("httpCaller() fails as unknown on an answer that is no JSON object, is too large, or has too large a header", async () => {
  const ask = async (answer: Answer) =>
    callerOf("fiscal", (await upstreamOf(answer)).url)(callOf("fiscal", "/sale", "data=e30="));
  const advice = /query \/check_status with the same documentExtID/;
  for (const text of ["", "<html>", "[1]", '"ok"', '{"status":']) {
    assert.match(
      (
        await failsAs(
          ask((_, response) => response.end(text)),
          "broken",
          /is no JSON object/,
        )
      ).message,
      advice,
    );
  }
  await failsAs(
    ask((_, response) => response.writeHead(204).end()),
    "broken",
    /is no JSON object/,
  );
  const large = Buffer.alloc(replyPayloadBytesMax, 0x20);
  await failsAs(
    ask((_, response) => void response.write(large, () => response.end("{}"))),
    "broken",
    /larger than 8388608 bytes/,
  );
  await failsAs(
    ask((_, response) => response.writeHead(200, { "x-a": "a".repeat(20_000) }).end("{}")),
    "broken",
    /failed/,
  );
});

test("httpCaller() takes an answer of just the largest size", async () => {
  const text = `{"a":"${"x".repeat(replyPayloadBytesMax - 8)}"}`;
  const upstream = await upstreamOf((_, response) => response.end(text));
  const reply = await callerOf("bank", upstream.url)(callOf("bank", "/check", "{}"));
  assert.equal(textOf(reply) === text, true);
});

const answering = (status: number, text: string, headers: Record<string, string> = {}): Answer => {
  return (_, response) => response.writeHead(status, headers).end(text);
};

test("httpCaller() passes the service's own error envelope on byte for byte, whatever its HTTP status", async () => {
  const text = '{ "status":"error","code":5,  "message":"no such route" }';
  for (const status of [200, 400, 404, 422, 500, 503]) {
    const upstream = await upstreamOf(answering(status, text));
    const reply = await callerOf("fiscal", upstream.url)(callOf("fiscal", "/get_info", "data=e30="));
    assert.equal(textOf(reply), text);
    assert.deepEqual([reply.status, reply.code], ["error", 5]);
  }
});

test("httpCaller() tells a refusal before anything was done as not sent, with what to do", async () => {
  const refusals: readonly (readonly [number, FaultKind, RegExp])[] = [
    [401, "key", /API key: set apiKey/],
    [403, "origin", /HTTP 403/],
    [404, "route", /HTTP 404/],
    [405, "method", /HTTP 405/],
    [413, "size", /HTTP 413/],
    [421, "host", /HTTP 421/],
  ];
  for (const [status, kind, message] of refusals) {
    // Neither a page nor a proxy's JSON is the service's word.
    for (const text of ["<html>", "{}", '{"status":"error","message":"of a proxy"}', `{"status":${status},"code":1}`]) {
      const upstream = await upstreamOf(answering(status, text));
      const fault = await failsAs(callerOf("bank", upstream.url)(callOf("bank", "/sale", "{}")), kind, message);
      assert.match(fault.message, /nothing was carried out$/);
      assert.equal(fault.outcome, "not-sent");
    }
  }
  const upstream = await upstreamOf(answering(401, '{"status":"error","code":-29}'));
  await failsAs(callerOf("bank", upstream.url)(callOf("bank", "/sale", "{}")), "key", /set apiKey/);
});

test("httpCaller() tells any other status as unknown, and follows no redirection", async () => {
  for (const [status, text] of [
    [500, "<html>"],
    [502, '{"status":"error","message":"bad gateway"}'],
    [503, "{}"],
    [500, '{"status":"success","code":0}'],
    [400, "Bad Request"],
    [302, ""],
  ] as const) {
    const upstream = await upstreamOf(answering(status, text, { location: "/check" }));
    const fault = await failsAs(
      callerOf("qr", upstream.url)(callOf("qr", "/refund", "{}")),
      "broken",
      new RegExp(`HTTP ${status}`),
    );
    assert.match(fault.message, /query \/check with the same pay_id and trans$/);
    assert.equal(upstream.heard.length, 1);
  }
});

test("httpCaller() advises to ask again after an unknown outcome of what only reads", async () => {
  const upstream = await upstreamOf(answering(500, ""));
  await failsAs(
    callerOf("bank", upstream.url)(callOf("bank", "/check", "{}")),
    "broken",
    /nothing was changed by asking: ask again$/,
  );
});

test("httpCaller() believes an upstream posline's outcome, and hands on its fault in its own words", async () => {
  const text = '{"status":"error", "code":-3,"message":"Cannot send to line x: it is down"}';
  for (const [status, outcome, kind] of [
    [503, "not-sent", "unavailable"],
    [401, "not-sent", "unavailable"],
    [504, "unknown", "timeout"],
    [502, "unknown", "broken"],
    [200, "unknown", "broken"],
  ] as const) {
    const upstream = await upstreamOf(answering(status, text, { "X-Posline-Outcome": outcome }));
    const fault = await failsAs(callerOf("bank", upstream.url)(callOf("bank", "/sale", "{}")), kind, /it is down$/);
    assert.equal(fault.outcome, outcome);
    assert.equal(Buffer.concat(fault.details.payload ?? []).toString(), text);
  }
  const answered = await upstreamOf(answering(200, '{"status":"error","code":-20}', { "X-Posline-Outcome": "answered" }));
  const reply = await callerOf("bank", answered.url)(callOf("bank", "/check", "{}"));
  assert.equal(reply.code, -20);
});

test("httpCaller() ends what is in flight when it is told to stop, as unknown once it was sent", async () => {
  const upstream = await upstreamOf(() => {});
  const stopping = new AbortController();
  const ask = callerOf("bank", upstream.url, { stop: stopping.signal });
  const failed = failsAs(ask(callOf("bank", "/sale", "{}")), "broken", /posline shut down/);
  await upstream.hears(1);
  stopping.abort();
  await failed;
  await failsAs(ask(callOf("bank", "/sale", "{}")), "unavailable", /posline is shutting down.*nothing was sent/);
});
