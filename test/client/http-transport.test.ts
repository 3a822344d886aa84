import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTcpServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { createHttpClient } from "../../src/client/client.ts";
import { NotSentError, RejectedError, UnknownError } from "../../src/client/errors.ts";

/** Starts a server for one test and gives its address. */
async function served(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return `http://127.0.0.1:${address.port}`;
}

/** A server of bare bytes. */
async function bare(t: TestContext, answer: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return `http://127.0.0.1:${address.port}`;
}

const sale = { pay_id: "P-1", amount: 1, currency_name: "AZN" };

interface Case {
  readonly name: string;
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  readonly expected: "answered" | "rejected" | "not-sent" | "unknown";
}

const success = '{"status":"success"}';
const refusal = '{"status":"error","code":-29,"message":"no amount"}';
const posline = (outcome: string) => ({ "X-Posline-Outcome": outcome });

const cases: readonly Case[] = [
  { name: "posline's 200 answered", status: 200, headers: posline("answered"), body: success, expected: "answered" },
  {
    name: "posline's 200 answered with an error",
    status: 200,
    headers: posline("answered"),
    body: refusal,
    expected: "rejected",
  },
  {
    name: "posline's not-sent in 200 (faultStatus)",
    status: 200,
    headers: posline("not-sent"),
    body: refusal,
    expected: "not-sent",
  },
  {
    name: "posline's unknown in 200 (faultStatus)",
    status: 200,
    headers: posline("unknown"),
    body: refusal,
    expected: "unknown",
  },
  { name: "posline's 503", status: 503, headers: posline("not-sent"), body: refusal, expected: "not-sent" },
  { name: "posline's 504", status: 504, headers: posline("unknown"), body: refusal, expected: "unknown" },
  { name: "posline's 502", status: 502, headers: posline("unknown"), body: refusal, expected: "unknown" },
  { name: "an outcome that doesn't exist", status: 504, headers: posline("fine"), body: success, expected: "unknown" },
  {
    name: "posline's answered whose body is no JSON",
    status: 200,
    headers: posline("answered"),
    body: "?",
    expected: "unknown",
  },
  { name: "a direct 200 with success", status: 200, body: success, expected: "answered" },
  { name: "a direct 200 with an error", status: 200, body: refusal, expected: "rejected" },
  { name: "a direct 200 with a page", status: 200, body: "<html>", expected: "unknown" },
  { name: "a direct 200 with an array", status: 200, body: "[]", expected: "unknown" },
  { name: "a direct 200 with half an answer", status: 200, body: '{"status":"succ', expected: "unknown" },
  { name: "a direct 200 with nothing", status: 200, body: "", expected: "unknown" },
  { name: "a direct 200 without a status", status: 200, body: "{}", expected: "unknown" },
  { name: "a direct 200 with two statuses", status: 200, body: '{"status":"success","status":"error"}', expected: "unknown" },
  { name: "a direct 204", status: 204, body: "", expected: "unknown" },
  { name: "a direct 202", status: 202, body: success, expected: "unknown" },
  { name: "a direct 307", status: 307, headers: { Location: "/" }, body: "", expected: "unknown" },
  { name: "a direct 400 with a page", status: 400, body: "<html>", expected: "unknown" },
  { name: "a direct 400 with an error without a code", status: 400, body: '{"status":"error"}', expected: "rejected" },
  {
    name: "a direct 422 with an error whose code is null",
    status: 422,
    body: '{"status":"error","code":null}',
    expected: "rejected",
  },
  ...[409, 422, 423, 425].map(
    (status): Case => ({ name: `a direct ${status} with a page`, status, body: "<html>", expected: "unknown" }),
  ),
  { name: "a direct 400 with the service's error", status: 400, body: refusal, expected: "rejected" },
  ...[401, 403, 404, 405, 408, 411, 413, 414, 415, 421, 429, 431].map(
    (status): Case => ({ name: `a direct ${status} of a proxy`, status, body: '{"status":"error"}', expected: "not-sent" }),
  ),
  ...[401, 403, 404, 405, 408, 411, 413, 414, 415, 421, 429, 431].map(
    (status): Case => ({
      name: `a direct ${status} with a success`,
      status,
      body: '{"status":"success"}',
      expected: "unknown",
    }),
  ),
  { name: "a direct 401 with the service's error", status: 401, body: refusal, expected: "not-sent" },
  ...[403, 404, 405, 408, 411, 413, 414, 415, 421, 429, 431].map(
    (status): Case => ({ name: `a direct ${status} with the service's error`, status, body: refusal, expected: "rejected" }),
  ),
  ...[500, 501, 502, 503, 504].map(
    (status): Case => ({ name: `a direct ${status}`, status, body: refusal, expected: "unknown" }),
  ),
];

test("HttpTransport gives posline's reason on the error, and none where the word is not of the list", async (t) => {
  for (const [word, reason] of [
    ["line-down", "line-down"],
    ["something-else", undefined],
  ] as const) {
    const url = await served(t, (_, response) => {
      response.writeHead(503, { "X-Posline-Outcome": "not-sent", "X-Posline-Reason": word }).end(refusal);
    });
    await assert.rejects(createHttpClient({ bank: { url } }).bank.sale(sale), (error) => {
      assert.ok(error instanceof NotSentError, String(error));
      assert.equal(error.reason, reason);
      return true;
    });
  }
});

const classes = { rejected: RejectedError, "not-sent": NotSentError, unknown: UnknownError };

for (const { name, status, headers = {}, body, expected } of cases) {
  test(`HttpTransport takes ${name} for ${expected}`, async (t) => {
    let requests = 0;
    const url = await served(t, (_, response) => {
      requests++;
      response.writeHead(status, headers).end(body);
    });
    const call = createHttpClient({ bank: { url } }).bank.sale(sale);
    if (expected === "answered") {
      assert.equal((await call).status, "success");
    } else {
      await assert.rejects(call, (error) => {
        assert.ok(error instanceof classes[expected], String(error));
        assert.deepEqual([error.service, error.route, error.httpStatus], ["bank", "/sale", status]);
        assert.notEqual(error.advice, "");
        return true;
      });
    }
    // The fetch standard tries a 421 once more on another connection: it says that nobody took the request
    assert.equal(requests, status === 421 ? 2 : 1);
  });
}

const closed = /the connection was closed before the answer was complete$/;
const broken: readonly (readonly [string, (socket: Socket) => void, RegExp?])[] = [
  ["a connection that is closed without an answer", (socket) => socket.end(), closed],
  ["a connection that is reset", (socket) => socket.resetAndDestroy(), closed],
  ["half a head", (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Le"), closed],
  ["half a body", (socket) => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n${success}`)],
  ["half a chunk", (socket) => socket.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n${success}`)],
  ["what is no HTTP", (socket) => socket.end("ready>\r\n\r\n"), /^what answers there does not speak HTTP$/],
  [
    "too large a head",
    (socket) => socket.write(`HTTP/1.1 200 OK\r\nX: ${"x".repeat(100_000)}\r\n\r\n`),
    /^the headers of the answer are too large$/,
  ],
  [
    "half of a 503 that says not-sent",
    (socket) => socket.end(`HTTP/1.1 503 No\r\nX-Posline-Outcome: not-sent\r\nContent-Length: 500\r\n\r\n${refusal}`),
  ],
];

for (const [name, answer, message = /./] of broken) {
  test(`HttpTransport takes ${name} for unknown, and says what happened`, async (t) => {
    const url = await bare(t, answer);
    const isTold = (error: unknown) => error instanceof UnknownError && message.test(error.message);
    await assert.rejects(createHttpClient({ bank: { url } }).bank.sale(sale), isTold);
  });
}

test("HttpTransport takes a refused connection for not-sent, on one address and on all of a name", async (t) => {
  const url = await served(t, () => {});
  const { port } = new URL(url);
  const free = createServer();
  await new Promise<void>((resolve) => free.listen(0, "127.0.0.1", resolve));
  const address = free.address();
  assert.ok(typeof address === "object" && address !== null && String(address.port) !== port);
  await new Promise((resolve) => free.close(resolve));
  for (const host of ["127.0.0.1", "localhost"]) {
    const call = createHttpClient({ bank: { url: `http://${host}:${address.port}` } }).bank.sale(sale);
    const message = `nothing listens at http://${host}:${address.port}`;
    await assert.rejects(call, (error) => error instanceof NotSentError && error.passing && error.message === message);
  }
});

for (const [name, cause, expected] of [
  ["a name that doesn't exist", { code: "ENOTFOUND" }, NotSentError],
  ["a name server that is away", { code: "EAI_AGAIN" }, NotSentError],
  ["a reset connection", { code: "ECONNRESET" }, UnknownError],
  ["a time-out of the system", { code: "ETIMEDOUT" }, UnknownError],
] as const) {
  test(`HttpTransport takes ${name} for ${expected.name}`, async () => {
    const failing = () => Promise.reject(new TypeError("fetch failed", { cause: Object.assign(new Error("no"), cause) }));
    await assert.rejects(createHttpClient({ fetch: failing }).bank.sale(sale), expected);
  });
}

test("HttpTransport takes a failure without a cause, as browsers give it, for unknown", async () => {
  const failing = () => Promise.reject(new TypeError("Failed to fetch"));
  await assert.rejects(createHttpClient({ fetch: failing }).bank.sale(sale), UnknownError);
});

test("HttpTransport takes addresses of which one was reached for unknown", async () => {
  const refused = Object.assign(new Error("no"), { code: "ECONNREFUSED" });
  const reset = Object.assign(new Error("no"), { code: "ECONNRESET" });
  const failing = () => Promise.reject(new TypeError("fetch failed", { cause: new AggregateError([refused, reset]) }));
  await assert.rejects(createHttpClient({ fetch: failing }).bank.sale(sale), UnknownError);
});

test("HttpTransport takes an answer beyond replyBytesMax for unknown, which is 1 MiB unless said otherwise", async (t) => {
  const answer = (bytes: number) => `{"status":"success","x":"${"x".repeat(bytes - 27)}"}`;
  let bytes = 1_048_576;
  const url = await served(t, (_, response) => response.end(answer(bytes)));
  const usual = createHttpClient({ bank: { url } });
  const larger = createHttpClient({ bank: { url, replyBytesMax: 8_388_608 } });
  await usual.bank.sale(sale);
  bytes++;
  const isUnknown = (error: unknown) => error instanceof UnknownError && /larger than 1048576 bytes/.test(error.message);
  await assert.rejects(usual.bank.sale(sale), isUnknown);
  bytes = 8_388_608;
  await larger.bank.sale(sale);
  bytes++;
  await assert.rejects(larger.bank.sale(sale), UnknownError);
});

for (const replyBytesMax of [0, -1, 1.5, Number.NaN, 8_388_609]) {
  test(`createHttpClient() refuses a replyBytesMax of ${replyBytesMax}`, () => {
    assert.throws(() => createHttpClient({ qr: { replyBytesMax } }), TypeError);
  });
}

test("a call is unknown when no answer comes within timeoutMs, whatever the transport does", async () => {
  const never = () => new Promise<Response>(() => {});
  const client = createHttpClient({ fetch: never, bank: { timeoutMs: 5 } });
  await assert.rejects(client.bank.sale(sale), (error) => error instanceof UnknownError && /within 5 ms/.test(error.message));
  await assert.rejects(client.bank.sale(sale, { timeoutMs: 6 }), /within 6 ms/);
});

test("a call whose caller leaves is unknown, and not-sent when that was before it was sent", async () => {
  const leaving = new AbortController();
  const never = () => {
    leaving.abort();
    return new Promise<Response>(() => {});
  };
  const client = createHttpClient({ fetch: never });
  await assert.rejects(client.bank.sale(sale, { signal: leaving.signal }), UnknownError);
  await assert.rejects(client.bank.sale(sale, { signal: leaving.signal }), NotSentError);
});

test("HttpTransport sends the bank's key, its JSON, and nothing of it to the others", async (t) => {
  const seen: string[] = [];
  const url = await served(t, (request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += String(chunk);
    });
    request.on("end", () => {
      const { "x-api-key": key, "content-type": type } = request.headers;
      seen.push([request.method, request.url, key, type, body].join(" "));
      response.end('{"status":"success","operations":[],"data":{"systems":[],"operations":[]}}');
    });
  });
  const client = createHttpClient({
    fiscal: { url: `${url}/`, merchantId: "MERCHANT-1" },
    bank: { url: `${url}/box/`, apiKey: "K" },
    qr: { url },
  });
  await client.bank.check({ pay_id: "P-1" });
  await client.bank.supportedOperations();
  await client.bank.terminate();
  await client.qr.checkConnection();
  await client.fiscal.supportedOperations();
  await client.fiscal.abort({ documentExtID: "ORDER-1001" });
  assert.deepEqual(seen, [
    'POST /box/check K application/json {"pay_id":"P-1"}',
    "GET /box/supported_operations K  ",
    "POST /box/terminate K  ",
    "POST /check_connection   ",
    "GET /supported_operations   ",
    // The vector of the field notes, escaped as a form has it
    "POST /abort  application/x-www-form-urlencoded data=eyJkb2N1bWVudEV4dElEIjoiT1JERVItMTAwMSJ9" +
      "&sign=OWNkZDRlMGI2OWNlNDA4OTJjMDk0YTY2YmE4YjcyMWY1OTczMWUxOQ%3D%3D",
  ]);
});

test("NotSentError tells when to try again, and whether that helps", async (t) => {
  const answers = [
    { status: 503, headers: { ...posline("not-sent"), "Retry-After": "3" } },
    { status: 503, headers: posline("not-sent") },
    { status: 401, headers: posline("not-sent") },
    // faultStatus 200: the code is all there is
    { status: 200, headers: posline("not-sent") },
  ];
  const url = await served(t, (_, response) => {
    const { status, headers } = answers.shift() ?? { status: 500, headers: {} };
    response.writeHead(status, headers).end(refusal);
  });
  const client = createHttpClient({ bank: { url } });
  for (const expected of [
    [true, 3000],
    [true, undefined],
    [false, undefined],
    [false, undefined],
  ]) {
    await assert.rejects(client.bank.sale(sale), (error) => {
      assert.ok(error instanceof NotSentError);
      assert.deepEqual([error.passing, error.retryAfterMs], expected);
      return true;
    });
  }
});

const going = '{"status":"success","message":"Cannot send to line till: it is down"}';

test("a qr check is what its outcome says, though its body says in progress (faults in 200)", async (t) => {
  let outcome = "unknown";
  const url = await served(t, (_, response) => response.writeHead(200, posline(outcome)).end(going));
  const { qr } = createHttpClient({ qr: { url } });
  const asked = { pay_id: "P-1", trans: "T-1", pay_system: "A" };
  await assert.rejects(qr.check(asked), (error) => error instanceof UnknownError && /it is down/.test(error.message));
  outcome = "not-sent";
  await assert.rejects(qr.check(asked), (error) => error instanceof NotSentError && error.passing && error.code === undefined);
});

for (const status of [400, 409, 422, 500]) {
  test(`a qr check that is answered with HTTP ${status} and an error is unknown: whose error it is isn't known`, async (t) => {
    const url = await served(t, (_, response) => response.writeHead(status).end('{"status":"error","code":1}'));
    const { qr } = createHttpClient({ qr: { url } });
    await assert.rejects(qr.check({ pay_id: "P-1", trans: "T-1", pay_system: "A" }), UnknownError);
  });
}

test("createHttpClient() reaches a service of a name of its own at its url, and resumes its operations there alone", async (t) => {
  const asked: string[] = [];
  const serve = (name: string) =>
    served(t, (request, response) => {
      asked.push(`${name} ${request.url} ${request.headers["x-api-key"] ?? "no key"}`);
      response.end('{"status":"success","data":{"status":"APPROVED","rrn":"1"}}');
    });
  const [one, two] = [await serve("one"), await serve("two")];
  const client = createHttpClient({ bank: { url: one }, "bank-2": { contract: "bank", url: two, apiKey: "K2" } });
  await client.bank.sale(sale);
  await client["bank-2"].sale(sale);
  assert.deepEqual(asked, ["one /sale no key", "two /sale K2"]);
  asked.length = 0;
  let token: unknown;
  const options = {
    onProgress: (event: { readonly token: unknown }) => {
      token = event.token;
    },
  };
  assert.equal((await client["bank-2"].settle("sale", { ...sale, pay_id: "N-1" }, options)).result, "approved");
  assert.ok(asked.length > 0 && asked.every((each) => each.startsWith("two ")), asked.join());
  const kept: unknown = JSON.parse(JSON.stringify(token));
  assert.ok(typeof kept === "object" && kept !== null && "service" in kept && "contract" in kept);
  assert.deepEqual([kept.service, kept.contract], ["bank-2", "bank"]);
  asked.length = 0;
  await client.resume(kept);
  assert.ok(asked.length > 0 && asked.every((each) => each.startsWith("two ")), asked.join());
  const another = createHttpClient({ bank: { url: one } });
  await assert.rejects(another.resume(kept), /Cannot resume: the client has no service bank-2/);
});

test("createHttpClient() refuses a name of its own without a contract, before anything is sent", () => {
  const options: object = { "bank-2": { url: "http://127.0.0.1:1" } };
  assert.throws(
    () => createHttpClient(options),
    /Cannot make a client: bank-2 says no contract: add contract: "fiscal", "bank" or "qr"/,
  );
});
