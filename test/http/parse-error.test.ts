import assert from "node:assert/strict";
import { connect } from "node:net";
import { afterEach, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { gzipSync } from "node:zlib";
import type { ContractName } from "../../src/core/call.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { ask, Client, closeAll, serve } from "./served.ts";

afterEach(closeAll);

const messageOf = (text: string | undefined): string => {
  const body: { readonly message?: unknown } = JSON.parse(text ?? "{}");
  return String(body.message);
};

const http = "HTTP/1.1\r\nHost: localhost\r\n";
const cookie = (bytes: number) => `POST /check ${http}X: 1\r\nCookie: ${"c".repeat(bytes)}\r\nY: 2\r\n\r\n`;

const unread: readonly (readonly [what: string, bytes: string, status: number, message: string])[] = [
  [
    "a TLS handshake",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    400,
    "it begins with a TLS handshake, and this port speaks plain HTTP: use http in place of https",
  ],
  [
    "a PROXY line",
    `PROXY TCP4 127.0.0.1 127.0.0.1 5000 8888\r\nPOST /check ${http}\r\n`,
    400,
    "it begins with a line of the PROXY protocol, which posline doesn't read: switch it off in the proxy (send-proxy, proxy_protocol)",
  ],
  [
    "a PROXY header of version 2",
    `\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c${"\x7f\0\0\x01".repeat(3)}POST /check ${http}\r\n`,
    400,
    "it begins with a line of the PROXY protocol, which posline doesn't read: switch it off in the proxy (send-proxy, proxy_protocol)",
  ],
  [
    "the preface of HTTP/2",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\x04\0\0\0\0\0",
    400,
    "it begins as HTTP/2 does, and this port speaks HTTP/1.1: set the client to HTTP/1.1",
  ],
  [
    "line feeds alone",
    "POST /check HTTP/1.1\nHost: localhost\n\n",
    400,
    "it is not an HTTP/1.1 request (a line ends with LF alone, and must end with CR LF)",
  ],
  [
    "two lengths",
    `POST /check ${http}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
    400,
    "it is not an HTTP/1.1 request (Duplicate Content-Length)",
  ],
  [
    "a chunk's size with a blank",
    `POST /check ${http}Transfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n`,
    400,
    "it is not an HTTP/1.1 request (there are blanks beside a chunk's size)",
  ],
  ["a frame of a line", "\x02command=/sale\x03", 400, "it is not an HTTP/1.1 request (Invalid method encountered)"],
  [
    "a cookie header that is too large",
    cookie(17_000),
    431,
    "its headers are larger than 16384 bytes, which is the limit: the largest is Cookie",
  ],
  [
    "a URL that is too large",
    `GET /check?${"x".repeat(17_000)} ${http}\r\n`,
    431,
    "its headers are larger than 16384 bytes, which is the limit: the largest is the URL in its first line",
  ],
];

for (const [what, bytes, status, message] of unread) {
  test(`HttpListener names ${what}, in the answer and in the log`, async () => {
    const { port, calls, records } = await serve("bank");
    const answer = await new Client(port).write(bytes).answer();
    assert.equal(answer?.status, status);
    assert.equal(answer.headers.get("x-posline-outcome"), "not-sent");
    assert.equal(messageOf(answer.text), `Cannot accept the request: ${message}`);
    assertMapped(records, [messageOf(answer.text)], (record) => record.message);
    assert.equal(calls.length, 0);
  });
}

test("HttpListener takes 16 KiB of headers", async () => {
  const { port } = await serve("bank");
  assert.equal((await ask(port, "GET", "/supported_operations", "", { Cookie: "c".repeat(16_000) })).status, 200);
});

test("HttpListener names no header that it hasn't seen, as the bytes of a value that came in several reads", async () => {
  const { port } = await serve("bank");
  const client = new Client(port).write(`POST /check ${http}Cookie: `);
  for (let i = 0; i < 18; i++) {
    await delay(5);
    client.write("c".repeat(1_000));
  }
  const answer = await client.answer();
  assert.equal(
    messageOf(answer?.text),
    "Cannot accept the request: its headers are larger than 16384 bytes, which is the limit",
  );
});

test("HttpListener logs the handshake of a real TLS client, which reads that it is no TLS", async () => {
  const { port, records } = await serve("bank");
  const error = await new Promise<Error>((resolve) => connectTls({ port, host: "127.0.0.1" }).on("error", resolve));
  assert.match(error.message, /wrong version number|packet length too long/i);
  assert.match(records[0]?.message ?? "", /TLS handshake/);
});

test("HttpListener says of a request that takes too long how much of its body came", async () => {
  const { port, records } = await serve("bank", { timeouts: { headersMs: 50, requestMs: 100, checkConnectionsMs: 20 } });
  const answer = await new Client(port).ask("POST", "/sale", '{"pay_id":"A"}', { "Content-Length": "17" }).answer();
  assert.equal(answer?.status, 408);
  assert.match(messageOf(answer.text), /: 14 of the 17 bytes that Content-Length announces came$/);
  assert.equal(records[0]?.message, messageOf(answer.text));
});

const form = "data=e30=&sign=AAAA";
const bodies: readonly (readonly [
  what: string,
  service: ContractName,
  path: string,
  body: string | Buffer,
  message: RegExp,
  headers?: Readonly<Record<string, string>>,
])[] = [
  ["broken JSON", "bank", "/sale", '{"pay_id":"A",\n"amount":15,}', /\/sale: the body is not JSON: line 2, column 12: a comma/],
  [
    "broken JSON in data",
    "fiscal",
    "/sale",
    `data=${btoa('{"a":')}&sign=AAAA`,
    /the decoded data is not JSON: line 1, column 6/,
  ],
  [
    "Content-Encoding",
    "qr",
    "/refund",
    gzipSync("{}"),
    /compressed \(Content-Encoding "gzip"\)/,
    { "Content-Encoding": "gzip" },
  ],
  [
    "Content-Encoding",
    "fiscal",
    "/sale",
    gzipSync(form),
    /compressed \(Content-Encoding "gzip"\)/,
    { "Content-Encoding": "gzip" },
  ],
  [
    "multipart",
    "bank",
    "/sale",
    '--X\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--X--\r\n',
    /is multipart\/form-data: send/,
  ],
  ["JSON in place of the form", "fiscal", "/sale", '{"items":[]}', /the body is JSON: send the form/],
  ["a query in place of the form", "fiscal", `/sale?${form}`, "", /the URL's query has data: send the form as the body/],
  ["a query in place of JSON", "bank", "/sale?amount=1", "", /the URL's query isn't read/],
  ["a byte order mark", "fiscal", "/sale", `\ufeff${form}`, /begins with a byte order mark/],
  ["a field in capitals", "fiscal", "/sale", "Data=e30=&Sign=AAAA", /the form has Data: write data/],
];

for (const [what, service, path, body, message, headers = {}] of bodies) {
  test(`HttpListener names ${what} to a ${service} till, in the answer and in the log`, async () => {
    const { port, calls, records } = await serve(service);
    const bytes = Buffer.from(body);
    const all = { Host: "localhost", "Content-Length": String(bytes.length), ...headers };
    const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    const answer = await new Client(port)
      .write(`POST ${path} HTTP/1.1\r\n${head.join("")}\r\n`)
      .write(bytes)
      .answer();
    assert.equal(answer?.headers.get("x-posline-outcome"), "not-sent");
    assert.match(messageOf(answer?.text), message);
    assert.equal(records[0]?.message, messageOf(answer?.text));
    assert.equal(calls.length, 0);
  });
}

for (const isTogether of [true, false]) {
  test(`HttpListener names a Content-Length that counts characters, and says nothing to the rest, ${isTogether ? "in one write" : "in two"}`, async () => {
    const { port, calls, records } = await serve("bank");
    const json = '{"pay_id":"A","note":"Ünïcödé"}';
    const head = `POST /sale ${http}Content-Length: ${json.length}\r\n\r\n`;
    const client = new Client(port);
    if (isTogether) client.write(Buffer.from(head + json));
    else {
      client.write(head);
      await delay(20);
      client.write(Buffer.from(json));
    }
    const answer = await client.answer();
    assert.match(messageOf(answer?.text), /the body breaks off after 31 bytes, .*: it must count bytes, not characters$/);
    assert.equal(await client.rest(), "");
    assertMapped(records, [messageOf(answer?.text)], (record) => record.message);
    assert.equal(calls.length, 0);
  });
}

test("HttpListener names a page that was opened from a file, which no setting allows", async () => {
  const { port, records } = await serve("bank");
  for (const origin of ["file://", "null"]) {
    const answer = await ask(port, "POST", "/sale", "{}", { Origin: origin });
    assert.equal(answer.status, 403);
    assert.match(
      messageOf(answer.text),
      new RegExp(`Origin "${origin}" is not allowed, as any page in a sandbox or a file has it: serve the page over http`),
    );
    assert.equal(records.at(-1)?.message, messageOf(answer.text));
  }
});

test("HttpListener answers on a connection whose client goes on with a TLS handshake for ever", async () => {
  const { port } = await serve("bank");
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  let text = "";
  socket.setEncoding("latin1").on("data", (piece) => {
    text += piece;
  });
  const writing = setInterval(() => socket.write("\x16\x03\x01".repeat(10_000)), 5);
  await new Promise((resolve) => socket.once("close", resolve));
  clearInterval(writing);
  assert.match(text, /^HTTP\/1\.1 400 .*TLS handshake/s);
});
