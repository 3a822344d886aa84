import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { deflateSync, gzipSync } from "node:zlib";
import { payloadBytesMax } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { FaultKind } from "../../src/core/fault.ts";
import { faultOnLine } from "../../src/envelope/fault.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { bareServer, callerOf, callOf, endAll, failsAs, replyBytesMax, textOf, upstreamOf } from "./calling.ts";
import type { Answer } from "./upstream.ts";

virtualTime();
afterEach(endAll);

/** What no re-serialising survives. */
const oddReply = '{\n "status":"success" , "code":0,"id":9223372036854775807, "b":1.50, "a":"\\u00e9 ☕", "x":null }\n';

test("httpCaller() hands back the upstream's bytes untouched, with the status and code read from them", async () => {
  const upstream = await upstreamOf((_, response) => response.end(oddReply));
  const reply = await callerOf("bank", upstream.url)(callOf("bank", "/sale", '{"pay_id":"A"}'));
  assert.equal(textOf(reply), oddReply);
  assert.deepEqual([reply.status, reply.code, reply.queueMs], ["success", 0, 0]);
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
  const advice = /Outcome unknown, .*: call \/check_status with the same documentExtID/;
  for (const text of ["", "<html>", "[1]", '"ok"', '{"status":']) {
    assert.match(
      (
        await failsAs(
          ask((_, response) => response.end(text)),
          "broken",
          /the upstream's answer is not a JSON object/,
        )
      ).message,
      advice,
    );
  }
  await failsAs(
    ask((_, response) => response.writeHead(204).end()),
    "broken",
    /the upstream's answer is not a JSON object/,
  );
  const large = Buffer.alloc(replyBytesMax, 0x20);
  await failsAs(
    ask((_, response) => void response.write(large, () => response.end("{}"))),
    "broken",
    /larger than 65536 bytes \(replyBytesMax\)/,
  );
  await failsAs(
    ask((_, response) => response.writeHead(200, { "x-a": "a".repeat(20_000) }).end("{}")),
    "broken",
    /the upstream's answer has headers that are larger than 16384 bytes, which is the limit: the largest is x-a\. Outcome unknown/,
  );
});

test("httpCaller() takes an answer that begins with a byte order mark, and hands it back without", async () => {
  for (const cuts of [[0], [1], [2], [3], [1, 2, 3]]) {
    const answer = Buffer.from(`\ufeff${oddReply}`);
    const upstream = await upstreamOf(async (_, response) => {
      let from = 0;
      for (const to of [...cuts, answer.length]) {
        if (to > from)
          await new Promise<void>((resolve) => response.write(answer.subarray(from, to), () => setImmediate(resolve)));
        from = to;
      }
      response.end();
    });
    const reply = await callerOf("bank", upstream.url)(callOf("bank", "/sale", '{"pay_id":"A"}'));
    assert.deepEqual([textOf(reply), reply.status], [oddReply, "success"]);
  }
});

test("httpCaller() asks for no compression, and names one that comes all the same, as unknown", async () => {
  for (const [encoding, zipped] of [
    ["gzip", gzipSync(oddReply)],
    ["deflate", deflateSync(oddReply)],
  ] as const) {
    for (const status of [200, 500]) {
      const upstream = await upstreamOf((_, response) =>
        response.writeHead(status, { "content-encoding": encoding }).end(zipped),
      );
      const asked = callerOf("bank", upstream.url)(callOf("bank", "/sale", "{}"));
      const fault = await failsAs(
        asked,
        "broken",
        new RegExp(`is compressed \\(Content-Encoding "${encoding}"\\), .*: switch that off there`),
      );
      assert.deepEqual([fault.reason, upstream.heard[0]?.headers["accept-encoding"]], ["reply-corrupt", "identity"]);
    }
  }
  const { url } = await upstreamOf((_, response) => response.writeHead(200, { "content-encoding": "utf-8" }).end(oddReply));
  assert.equal(textOf(await callerOf("bank", url)(callOf("bank", "/check", "{}"))), oddReply);
});

test("httpCaller() names what is wrong with an answer that is not HTTP/1.1, as unknown, before and after it began", async () => {
  const ok = "HTTP/1.1 200 OK\r\n";
  const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`;
  for (const [bytes, message] of [
    [`${chunked}2  \r\n{}\r\n0\r\n\r\n`, /is not HTTP\/1\.1 \(there are blanks beside a chunk's size\)/],
    [`${chunked} 2\r\n{}\r\n0\r\n\r\n`, /is not HTTP\/1\.1 \(there are blanks beside a chunk's size\)/],
    [`${chunked}2\n{}\n0\n\n`, /is not HTTP\/1\.1 \(a line ends with LF alone, and must end with CR LF\)/],
    ["HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", /is not HTTP\/1\.1 \(a line ends with LF alone, and must end with CR LF\)/],
    [`${ok}Content-Length: 2\n\n{}`, /is not HTTP\/1\.1 \(a line ends with LF alone, and must end with CR LF\)/],
    [`${ok}Content-Length: 2\r\n\n{}`, /is not HTTP\/1\.1 \(a line ends with LF alone, and must end with CR LF\)/],
    [`${chunked}2\r\n{\n}\r\n0\r\n\r\n`, /is not HTTP\/1\.1 \(.*after chunk data\)/],
    ["\x15\x03\x03\x00\x02\x02\x46", /the upstream's answer is TLS: should upstream begin with https:\?/],
    ['{"status":"success"}', /is not HTTP\/1\.1 \(Expected HTTP\//],
  ] as const) {
    const server = await bareServer((socket) => socket.once("data", () => socket.write(Buffer.from(bytes, "latin1"))));
    const fault = await failsAs(callerOf("bank", `http://${server}`)(callOf("bank", "/sale", "{}")), "broken", message);
    assert.equal(fault.reason, "reply-corrupt");
    assert.match(fault.message, /Outcome unknown, it may have been carried out: call \/check with the same pay_id$/);
  }
});

test("httpCaller() takes an answer of just the size that its service may answer", async () => {
  for (const bytes of [replyBytesMax, payloadBytesMax]) {
    const text = `{"a":"${"x".repeat(bytes - 8)}"}`;
    const upstream = await upstreamOf((_, response) => response.end(text));
    const reply = await callerOf("bank", upstream.url, { replyBytesMax: bytes })(callOf("bank", "/check", "{}"));
    assert.equal(textOf(reply) === text, true);
  }
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

test("httpCaller() takes an error that ends a qr payment for the service's own only with a status of success", async () => {
  const text = '{"status":"error","code":1,"message":"declined"}';
  const ask = async (status: number, headers: Record<string, string> = {}) =>
    callerOf("qr", (await upstreamOf(answering(status, text, headers))).url)(callOf("qr", "/check", "{}"));
  assert.equal(textOf(await ask(200)), text);
  // Another posline says so, whatever status stands before it
  assert.equal(textOf(await ask(500, { "X-Posline-Outcome": "answered" })), text);
  for (const status of [400, 402, 409, 422, 429, 500, 502, 503, 504]) {
    await failsAs(ask(status), "broken", new RegExp(`HTTP ${status}`));
  }
  await failsAs(ask(404), "route", /HTTP 404/);
});

test("httpCaller() doesn't know what became of a qr operation when a server that failed says error, and believes a refusal", async () => {
  const text = '{"status":"error","code":1,"message":"failed"}';
  for (const route of ["/showqrcode", "/cancel", "/refund", "/final_confirm"]) {
    const ask = async (status: number) =>
      callerOf("qr", (await upstreamOf(answering(status, text))).url)(callOf("qr", route, "{}"));
    for (const status of [500, 502, 503])
      await failsAs(
        ask(status),
        "broken",
        route === "/showqrcode" ? /: call \/check with .* and trans$/ : /: look at the terminal$/,
      );
    for (const status of [400, 422]) assert.equal(textOf(await ask(status)), text);
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
      assert.match(fault.message, /\. Nothing was carried out$/);
      assert.equal(fault.outcome, "not-sent");
    }
  }
  const upstream = await upstreamOf(answering(401, '{"status":"error","code":-29}'));
  await failsAs(callerOf("bank", upstream.url)(callOf("bank", "/sale", "{}")), "key", /set apiKey/);
});

test("httpCaller() doesn't call refused what the body calls a success, whatever its HTTP status", async () => {
  for (const status of [401, 403, 404, 405, 413, 421, 500]) {
    const { url } = await upstreamOf(answering(status, '{"status":"success","data":{"status":"APPROVED"}}'));
    const words = new RegExp(`HTTP ${status}\\. Outcome unknown`);
    await failsAs(callerOf("bank", url)(callOf("bank", "/sale", "{}")), "broken", words);
  }
});

test("httpCaller() names the setting of the service that asked, not of another of its contract", async () => {
  for (const [status, kind, words] of [
    [401, "key", /set apiKey of bank-2 to/],
    [404, "route", /check upstream of bank-2\./],
    [405, "method", /check upstream of bank-2\./],
    [421, "host", /check upstream of bank-2\./],
  ] as const) {
    const upstream = await upstreamOf(answering(status, "<html>"));
    await failsAs(callerOf("bank", upstream.url)(callOf("bank", "/sale", "{}", { service: "bank-2" })), kind, words);
  }
});

test("httpCaller() says of an unknown outcome how to ask about it only where it has a name to ask by", async () => {
  const { url } = await upstreamOf(answering(503, "<html>"));
  for (const [service, route, key, advice] of [
    ["fiscal", "/sale", "F-1", /: call \/check_status with the same documentExtID/],
    ["fiscal", "/sale", undefined, /, and posline has no name to ask by: look at the terminal$/],
    ["fiscal", "/open_shift", undefined, /, and posline has no name to ask by: look at the terminal$/],
    ["bank", "/terminate", undefined, /, and posline has no name to ask by: look at the terminal$/],
    ["bank", "/check", "A-1", /Nothing was changed: send the request again$/],
  ] as const) {
    await failsAs(callerOf(service, url)(callOf(service, route, "data=e30=&sign=AAAA", { key })), "broken", advice);
  }
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
    assert.match(fault.message, /Outcome unknown, .* in its place: look at the terminal$/);
    assert.equal(upstream.heard.length, 1);
  }
});

test("httpCaller() advises to ask again after an unknown outcome of what only reads", async () => {
  const upstream = await upstreamOf(answering(500, ""));
  await failsAs(
    callerOf("bank", upstream.url)(callOf("bank", "/check", "{}")),
    "broken",
    /Nothing was changed: send the request again$/,
  );
});

test("httpCaller() knows a request that an upstream posline has its till fix by the reason, whatever the status", async () => {
  const text = '{"message":"Cannot accept /check: the body is not JSON"}';
  for (const [status, reason, kind] of [
    [400, "malformed-request", "malformed"],
    [200, "missing-parameter", "missing"],
    [403, "origin-not-allowed", "origin"],
    [503, "line-down", "unavailable"],
    [200, "internal-error", "unavailable"],
  ] as const) {
    const headers = { "X-Posline-Outcome": "not-sent", "X-Posline-Reason": reason };
    const upstream = await upstreamOf(answering(status, text, headers));
    const fault = await failsAs(callerOf("qr", upstream.url)(callOf("qr", "/check", "{")), kind, /is not JSON$/);
    assert.deepEqual([fault.outcome, fault.reason], ["not-sent", reason]);
    // A line has no HTTP status: there the word is all that a till gets.
    assert.equal(faultOnLine(contracts.qr, "/check", fault).length, kind === "unavailable" ? 1 : 0);
  }
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
  for (const [word, reason] of [
    ["queue-full", "queue-full"],
    ["no word of ours", "internal-error"],
  ] as const) {
    const headers = { "X-Posline-Outcome": "not-sent", "X-Posline-Reason": word };
    const upstream = await upstreamOf(answering(503, text, headers));
    const fault = await failsAs(callerOf("bank", upstream.url)(callOf("bank", "/sale", "{}")), "unavailable", /it is down$/);
    assert.equal(fault.reason, reason);
  }
  const answered = await upstreamOf(answering(200, '{"status":"error","code":-20}', { "X-Posline-Outcome": "answered" }));
  const reply = await callerOf("bank", answered.url)(callOf("bank", "/check", "{}"));
  assert.equal(reply.code, -20);
});
