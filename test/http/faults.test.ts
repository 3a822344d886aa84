import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { contractNames } from "../../src/core/call.ts";
import { Fault, type FaultKind, faultClasses } from "../../src/core/fault.ts";
import { readingOf, trueReadings } from "../support/body-till.ts";
import { type Answer, ask, Client, closeAll, held, type Served, serve } from "./served.ts";

/** Tests src/http/response-writer.ts, src/envelope/fault.ts. */

afterEach(closeAll);

// Its keys are the kinds.
const kinds = Object.keys(faultClasses) as FaultKind[];

const message = "Cannot do it: a test: do something else";

for (const service of contractNames) {
  for (const faultStatus of [undefined, 200] as const) {
    const where = faultStatus === undefined ? "HTTP" : "HTTP with faultStatus 200";
    test(`no fault of ${service} over ${where} lets a till that reads the body alone take a doubt for an end`, async () => {
      let kind: FaultKind = "timeout";
      const config = { check: "none", ...(faultStatus && { faultStatus }) } as const;
      const { port, records } = await serve(service, { config, handler: () => Promise.reject(new Fault(kind, message)) });
      const client = new Client(port);
      for (const { path } of contracts[service].routes) {
        for (kind of kinds) {
          const { outcome, reason, httpStatus } = faultClasses[kind];
          const answer = await client.ask("POST", path, service === "fiscal" ? "data=e30=&sign=AAAA" : "{}").answer();
          assert.ok(answer);
          const what = `${service} ${path} ${kind}: ${answer.status} ${answer.text}`;
          const { status } = answer;
          assert.equal(answer.headers.get("x-posline-outcome"), outcome, what);
          assert.equal(answer.headers.get("x-posline-reason"), reason, what);
          assert.equal(records.at(-1)?.reason, reason, what);
          assert.equal(JSON.parse(answer.text).message, message, what);
          assert.ok(status === 200 || status === httpStatus, what);
          const wholly = readingOf(service, path, answer.text);
          // A till for which there is faultStatus throws other statuses away
          const in200 = readingOf(service, path, status === 200 ? answer.text : undefined);
          const allowed = trueReadings(service, path, outcome);
          assert.ok(allowed.includes(wholly), `${what} reads as ${wholly}`);
          assert.ok(in200 === "none" || allowed.includes(in200), `${what} reads as ${in200}`);
          if (faultStatus === 200)
            assert.ok(status === 200 || wholly === "none", `${what}: only a body with no word is left out of 200`);
          const { status: loggedStatus, code } = records.at(-1) ?? {};
          assert.deepEqual([loggedStatus, code], [JSON.parse(answer.text).status, JSON.parse(answer.text).code], what);
        }
      }
    });
  }
}

/** An error would end a payment, and "in progress" would have the till repeat its own mistake for ever. */
const withoutWord = (answer: Answer | undefined, kind: FaultKind) => {
  assert.equal(answer?.status, faultClasses[kind].httpStatus);
  assert.equal(answer.headers.get("x-posline-outcome"), faultClasses[kind].outcome);
  assert.equal(answer.headers.get("x-posline-reason"), faultClasses[kind].reason);
  const body = JSON.parse(answer.text);
  assert.deepEqual(Object.keys(body), ["message"]);
  assert.equal(readingOf("qr", "/check", answer.text), "none");
  assert.match(body.message, /: /);
};

/** Whatever the listener itself refuses a /check for. */
const refusals: readonly (readonly [FaultKind, (served: Served) => Promise<Answer | undefined>])[] = [
  ["host", ({ port }) => ask(port, "POST", "/check", "{}", { Host: "evil.example" })],
  ["origin", ({ port }) => ask(port, "POST", "/check", "{}", { Origin: "https://evil.example" })],
  ["key", ({ port }) => ask(port, "POST", "/check", "{}")],
  ["method", ({ port }) => ask(port, "PUT", "/check?x=1", "{}", key)],
  ["malformed", ({ port }) => ask(port, "POST", "/check", "{", key)],
  ["missing", ({ port }) => ask(port, "POST", "/check", "", key)],
  ["size", ({ port }) => ask(port, "POST", "/check", `{"a":"${"x".repeat(64)}"}`, key)],
  // The body never comes to its end.
  ["slow", ({ port }) => new Client(port).ask("POST", "/check", "{", { ...key, "Content-Length": "2" }).answer()],
  // A chunk without its size.
  [
    "http",
    ({ port }) => new Client(port).write(`POST /check HTTP/1.1\r\nHost: localhost\r\nX-API-Key: K\r\n${chunk}`).answer(),
  ],
];

const key = { "X-API-Key": "K" };
const chunk = "Transfer-Encoding: chunked\r\n\r\nx\r\n";

for (const faultStatus of [undefined, 200] as const) {
  for (const [kind, asked] of refusals) {
    test(`HttpListener answers a qr /check that it refuses (${kind}) without a word of the contract${faultStatus ? ", never in 200" : ""}`, async () => {
      const served = await serve("qr", {
        config: { apiKey: "K", bodyBytesMax: 64, ...(faultStatus && { faultStatus }) },
        timeouts: { headersMs: 200, requestMs: 300, checkConnectionsMs: 50 },
      });
      withoutWord(await asked(served), kind);
      assert.equal(served.calls.length, 0);
    });
  }
}

test("HttpListener answers what is no request on qr's port without a word of the contract, and never in 200: it may be a /check", async () => {
  const served = await serve("qr", {
    config: { faultStatus: 200 },
    timeouts: { headersMs: 200, requestMs: 300, checkConnectionsMs: 50 },
  });
  for (const [status, bytes] of [
    [400, "no http\r\n\r\n"],
    [408, "POST /check HTTP/1.1\r\n"],
    [431, `POST /check HTTP/1.1\r\nX: ${"y".repeat(20_000)}\r\n\r\n`],
  ] as const) {
    const answer = await new Client(served.port).write(bytes).answer();
    assert.equal(answer?.status, status);
    assert.equal(answer.headers.get("x-posline-outcome"), "not-sent");
    assert.deepEqual(Object.keys(JSON.parse(answer.text)), ["message"]);
    assert.equal(readingOf("qr", "/check", answer.text), "none");
  }
});

test("HttpListener answers a qr /cancel of unknown outcome with 504 or 502 under faultStatus 200 too, and a later one in 200", async () => {
  const { handler, nth } = held();
  const { port } = await serve("qr", { handler, config: { faultStatus: 200 } });
  for (const [n, kind, status] of [
    [0, "timeout", 504],
    [1, "broken", 502],
    [2, "unavailable", 200],
  ] as const) {
    const asking = ask(port, "POST", "/cancel", "{}");
    (await nth(n)).fail(new Fault(kind, message));
    const { status: told, headers } = await asking;
    assert.deepEqual([told, headers.get("x-posline-outcome")], [status, faultClasses[kind].outcome]);
  }
});

/** What any page that an answer is shown to, or that asks for it, must not do with it. */
const safe = ["nosniff", "no-store"];
const safety = (answer: Answer | undefined) => [
  answer?.headers.get("x-content-type-options"),
  answer?.headers.get("cache-control"),
];

test("HttpListener has nosniff and no-store on every answer: replies, faults, preflights and those on a bare connection", async () => {
  const origin = "https://till.example";
  const { port } = await serve("bank", { config: { allowOrigins: [origin] } });
  const preflight = { Origin: origin, "Access-Control-Request-Method": "POST" };
  for (const [status, answer] of [
    [200, await ask(port, "POST", "/sale", '{"pay_id":"A"}')],
    [200, await ask(port, "POST", "/sale", "")],
    [404, await ask(port, "GET", "/favicon.ico")],
    [403, await ask(port, "POST", "/sale", "{}", { Origin: "https://evil.example" })],
    [204, await ask(port, "OPTIONS", "/sale", "", preflight)],
    [400, await new Client(port).write("no http\r\n\r\n").answer()],
  ] as const) {
    assert.equal(answer?.status, status);
    assert.deepEqual(safety(answer), safe, answer.text);
  }
});
