import assert from "node:assert/strict";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { afterEach, test } from "node:test";
import { Guard } from "../../src/http/guard.ts";
import { requestTarget } from "../../src/http/request-target.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { ask, Client, closeAll, serve } from "./served.ts";

afterEach(closeAll);

const sale = '{"pay_id":"A-1","amount":1}';
const till = "https://till.shop";

for (const host of [
  ...["evil.com", "localhost.evil.com", "127.0.0.1.evil.com", "evil.com:80", "localhost@evil.com", "localhost evil.com"],
  ...["localhost, evil.com", "127.1", "2130706433", "0.0.0.0", "192.168.1.7", "[::2]", "[::1", "::1", "localhost:port"],
  ...["localhost:123456", "", "xlocalhost", "till-7.lan.evil.com", ".", "localhost..", "localhost.evil.com."],
  ...["[::ffff:192.168.1.7]", "[::ffff:127.0.0.1", "[::127.0.0.1]"],
]) {
  test(`Guard refuses the Host "${host}" with 421 before anything else`, async () => {
    const { port, calls } = await serve("bank", { config: { allowHosts: ["till-7.lan"], allowOrigins: [till], apiKey: "k" } });
    const answer = await ask(port, "POST", "/sale", sale, { Host: host, Origin: till });
    assert.equal(answer.status, 421);
    assert.equal(answer.headers.get("x-posline-outcome"), "not-sent");
    assert.equal(answer.headers.has("access-control-allow-origin"), false);
    assert.equal(JSON.parse(answer.text).status, "error");
    assert.equal(calls.length, 0);
  });
}

for (const host of [
  ...["localhost", "LOCALHOST:8888", "127.0.0.1", "127.0.0.1:8888", "127.8.9.1", "[::1]", "[::1]:8888", "till-7.lan"],
  ...["Till-7.LAN:1", "localhost.", "localhost.:8888", "localhost:", "127.0.0.1.", "[::ffff:127.0.0.1]"],
  ...["[::FFFF:7f00:1]:8888", "[0:0:0:0:0:0:0:1]:", "till-7.lan."],
]) {
  test(`Guard admits the Host "${host}"`, async () => {
    const { port } = await serve("bank", { config: { allowHosts: ["till-7.lan"] } });
    assert.equal((await ask(port, "POST", "/sale", sale, { Host: host })).status, 200);
  });
}

test("Guard admits HTTP/1.0 without Host and without Origin from this box, which no browser sends, and answers OPTIONS with 204", async () => {
  const { port, calls } = await serve("bank", { config: { allowOrigins: [till], apiKey: "k" } });
  for (const [request, status] of [
    ["OPTIONS / HTTP/1.0", 204],
    ["OPTIONS * HTTP/1.0", 204],
    ["GET /supported_operations HTTP/1.0\r\nX-API-Key: k", 200],
    ["GET /supported_operations HTTP/1.0", 401],
    ["GET http://evil.com/supported_operations HTTP/1.0\r\nX-API-Key: k", 421],
    ["GET /supported_operations HTTP/1.0\r\nHost: evil.com\r\nX-API-Key: k", 421],
    ["GET /supported_operations HTTP/1.0\r\nHost:\r\nX-API-Key: k", 421],
    [`GET /supported_operations HTTP/1.0\r\nOrigin: ${till}\r\nX-API-Key: k`, 421],
    ["GET /supported_operations HTTP/1.0\r\nSec-Fetch-Site: cross-site\r\nX-API-Key: k", 403],
    ["GET /supported_operations HTTP/1.1\r\nX-API-Key: k", 421],
  ] as const) {
    assert.equal((await new Client(port).write(`${request}\r\n\r\n`).answer())?.status, status, request);
  }
  assert.equal(calls.length, 1);
});

test("Guard asks for a Host by HTTP/1.0 as well where the request comes from the network", () => {
  const guard = new Guard({ service: "bank", allowHosts: [], allowOrigins: [], apiKey: undefined });
  const from = (remoteAddress: string) => {
    const socket = Object.defineProperty(new Socket(), "remoteAddress", { value: remoteAddress });
    return Object.assign(new IncomingMessage(socket), { httpVersion: "1.0" });
  };
  for (const address of ["127.0.0.1", "::1", "::ffff:127.0.0.1"]) {
    assert.equal(guard.admit(from(address), requestTarget("/check")), undefined, address);
  }
  for (const address of ["192.168.10.7", "::ffff:192.168.10.7", "fe80::1"]) {
    assert.throws(() => guard.admit(from(address), requestTarget("/check")), {
      kind: "host",
      message: "Cannot accept the request: the header Host is missing: send it, such as Host: localhost",
    });
  }
});

test("Guard refuses a request without Host and one with two, whichever comes first", async () => {
  const { port, calls } = await serve("bank");
  for (const hosts of ["", "Host: localhost\r\nHost: evil.com\r\n", "Host: evil.com\r\nHost: localhost\r\n"]) {
    const client = new Client(port).write(`GET /supported_operations HTTP/1.1\r\n${hosts}\r\n`);
    assert.equal((await client.answer())?.status, 421);
  }
  assert.equal(calls.length, 0);
});

test("Guard refuses a foreign Host also after it admitted a good one on the same connection", async () => {
  const { port } = await serve("bank");
  const client = new Client(port);
  for (const [host, status] of [
    ["localhost", 200],
    ["evil.com", 421],
    ["localhost", 200],
    ["Localhost", 200],
  ] as const) {
    assert.equal((await client.ask("POST", "/sale", sale, { Host: host }).answer())?.status, status);
  }
});

for (const origin of [
  ...["null", "", "https://evil.com", "http://till.shop", "https://till.shop.evil.com", "https://eviltill.shop"],
  ...["https://till.shop:8443", "https://TILL.shop", "https://till.shop/", "https://till.shop, https://evil.com"],
  ...["http://localhost", "http://127.0.0.1:8888"],
]) {
  test(`Guard refuses the Origin "${origin}" by every method and content type`, async () => {
    const { port, calls } = await serve("bank", { config: { allowOrigins: [till] } });
    for (const method of ["GET", "POST", "PUT", "DELETE", "OPTIONS"]) {
      for (const type of ["application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
        const answer = await ask(port, method, "/supported_operations", "", { Origin: origin, "Content-Type": type });
        assert.equal(answer.status, 403);
        assert.equal(answer.headers.get("x-posline-outcome"), "not-sent");
        assert.equal(
          [...answer.headers.keys()].some((name) => name.startsWith("access-control")),
          false,
        );
      }
    }
    assert.equal(calls.length, 0);
  });
}

test("Guard refuses what a page of another site asks without an Origin: an image, a link", async () => {
  const { port, calls } = await serve("bank", { config: { allowOrigins: [till] } });
  for (const site of ["cross-site", "same-site"]) {
    const answer = await ask(port, "GET", "/supported_operations", "", { "Sec-Fetch-Site": site });
    assert.equal(answer.status, 403);
  }
  assert.equal(calls.length, 0);
  for (const site of ["none", "same-origin"]) {
    assert.equal((await ask(port, "GET", "/supported_operations", "", { "Sec-Fetch-Site": site })).status, 200);
  }
  const allowed = await ask(port, "POST", "/sale", sale, { Origin: till, "Sec-Fetch-Site": "cross-site" });
  assert.equal(allowed.status, 200);
});

test("Guard refuses two Origins, one of them allowed", async () => {
  const { port } = await serve("bank", { config: { allowOrigins: [till] } });
  const request = `POST /terminals HTTP/1.1\r\nHost: localhost\r\nOrigin: ${till}\r\nOrigin: https://evil.com\r\n\r\n`;
  assert.equal((await new Client(port).write(request).answer())?.status, 403);
});

test("Guard answers a preflight of an allowed origin, on any path and without the API key", async () => {
  const { port, calls } = await serve("bank", { config: { allowOrigins: [till], apiKey: "k" } });
  const answer = await ask(port, "OPTIONS", "/sale", "", {
    Origin: till,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "baggage,content-type,x-api-key,x-b3-traceid,x-of-a-library",
    "Access-Control-Request-Private-Network": "true",
  });
  assert.equal(answer.status, 204);
  assert.equal(answer.headers.get("access-control-allow-origin"), till);
  assert.equal(answer.headers.get("access-control-allow-methods"), "GET, POST");
  assert.equal(
    answer.headers.get("access-control-allow-headers"),
    "baggage,content-type,x-api-key,x-b3-traceid,x-of-a-library",
  );
  assert.equal(answer.headers.get("access-control-allow-private-network"), "true");
  assert.equal(answer.headers.get("vary"), "Origin, Access-Control-Request-Headers");
  assert.equal(answer.headers.get("access-control-allow-credentials"), "true");
  const plain = await ask(port, "OPTIONS", "/sale", "", { Origin: till });
  assert.equal(plain.headers.has("access-control-allow-private-network"), false);
  assert.equal(plain.headers.has("access-control-allow-headers"), false);
  assert.equal(calls.length, 0);
});

test("Guard's allowed origin may read answers and faults, also one of a broken body", async () => {
  const { port } = await serve("bank", { config: { allowOrigins: [till], bodyBytesMax: 1024, apiKey: "k" } });
  const key = { Origin: till, "X-API-Key": "k" };
  const answers = [
    await ask(port, "POST", "/sale", sale, key),
    await ask(port, "POST", "/sale", sale, { Origin: till }),
    await ask(port, "POST", "/nowhere", sale, key),
    await ask(port, "PUT", "/sale", sale, key),
    await ask(port, "POST", "/sale", "x".repeat(2000), key),
    await ask(port, "POST", "/sale", "[]", key),
    await new Client(port)
      .ask("POST", "/sale", "", { ...key, "Transfer-Encoding": "chunked" })
      .write("ZZ\r\n")
      .answer(),
  ];
  for (const answer of answers) {
    assert.equal(answer?.headers.get("access-control-allow-origin"), till);
    assert.equal(answer?.headers.get("access-control-allow-credentials"), "true");
    assert.equal(answer?.headers.get("vary"), "Origin");
    assert.match(answer?.headers.get("access-control-expose-headers") ?? "", /X-Posline-Outcome/);
  }
  assertMapped(answers, [200, 401, 404, 405, 413, 200, 400], (answer) => answer?.status);
});

test("Guard refuses a missing, wrong, cut, longer or doubled API key with 401 not-sent", async () => {
  const { port, calls } = await serve("bank", { config: { apiKey: "right-key" } });
  for (const key of [undefined, "", "wrong-key", "right-ke", "right-keys", "RIGHT-KEY", "right-key, right-key"]) {
    const answer = await ask(port, "POST", "/sale", sale, key === undefined ? {} : { "X-API-Key": key });
    assert.equal(answer.status, 401);
    assert.equal(answer.headers.get("x-posline-outcome"), "not-sent");
    assert.equal(JSON.parse(answer.text).code, -29);
    assert.ok(!answer.text.includes("right-key"));
    assert.match(answer.text, /--api-key-file FILE; root may read the service's, \/etc\/posline\/credentials\/api-key/);
  }
  assert.equal(calls.length, 0);
  assert.equal((await ask(port, "POST", "/sale", sale, { "X-API-Key": "right-key" })).status, 200);
});

test("Guard checks the API key before it says which routes there are", async () => {
  const { port } = await serve("bank", { config: { apiKey: "k" } });
  assert.equal((await ask(port, "POST", "/nowhere")).status, 401);
});

for (const [target, host] of [
  ["http://localhost:8888/sale", "localhost:8888"],
  ["HTTP://LOCALHOST/sale?a=1", "localhost"],
  ["https://till-7.lan/sale", "till-7.lan"],
  ["http://[::1]:8888/sale", "[::1]:8888"],
] as const) {
  test(`Guard admits ${target} as a request's target`, async () => {
    const { port, records } = await serve("bank", { config: { allowHosts: ["till-7.lan"] } });
    assert.equal((await ask(port, "POST", target, sale, { Host: host })).status, 200);
    assert.equal(records[0]?.route, "/sale");
  });
}

for (const [target, host, status] of [
  ["http://evil.com/sale", "evil.com", 421],
  ["http://evil.com/sale", "localhost", 400],
  ["http://localhost/sale", "evil.com", 400],
  ["http://localhost/sale", "127.0.0.1", 400],
  ["http://till-7.lan/sale", "localhost", 400],
  ["http://till-7.lan/sale", "till-7.lan:8888", 400],
  ["http://localhost/sale", "localhost, evil.com", 400],
  ["http://localhost.evil.com/sale", "localhost", 400],
  ["http://localhost@evil.com/sale", "localhost", 421],
  ["http://evil.com@localhost/sale", "localhost", 421],
  ["http://127.1/sale", "localhost", 400],
  ["http:///sale", "localhost", 400],
  ["http://?localhost/sale", "localhost", 400],
] as const) {
  test(`Guard refuses ${target} as a request's target, by the Host "${host}", with ${status}`, async () => {
    const { port, calls } = await serve("bank", { config: { allowHosts: ["till-7.lan"] } });
    assert.equal((await ask(port, "POST", target, sale, { Host: host })).status, status);
    assert.equal(calls.length, 0);
  });
}

test("Guard refuses a whole URL without Host, and repeats no password of one", async () => {
  const { port, records } = await serve("bank");
  const client = new Client(port).write("POST http://localhost/sale HTTP/1.1\r\n\r\n");
  assert.equal((await client.answer())?.status, 421);
  const { status, text } = await ask(port, "POST", "http://user:pass-word@localhost/sale", sale);
  assert.equal(status, 421);
  assert.doesNotMatch(text + JSON.stringify(records), /pass-word/);
});
