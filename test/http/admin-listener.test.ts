import assert from "node:assert/strict";
import { after, test } from "node:test";
import { AdminListener, type AdminListenerOptions, adminBodyBytesMax } from "../../src/http/admin-listener.ts";
import { PageKey } from "../../src/http/page-key.ts";
import { ask, Client } from "./served.ts";

const open: AdminListener[] = [];
after(() => Promise.all(open.map((listener) => listener.close())));

const thing = { "GET /thing": () => ({ status: 200, text: '{"thing":9223372036854775807}' }) };

/** A listener with a few routes, on a free port. */
async function started(more: Partial<AdminListenerOptions> = {}) {
  const bodies: string[] = [];
  const errors: unknown[] = [];
  const listener = new AdminListener({
    config: { host: "127.0.0.1", port: 0 },
    routes: {
      ...thing,
      "POST /thing": (body) => {
        bodies.push(body);
        return { status: body === "" ? 400 : 200, text: '{"taken":true}' };
      },
      "GET /broken": () => {
        throw new Error("a bug");
      },
    },
    error: (error) => errors.push(error),
    ...more,
  });
  open.push(listener);
  const { port } = await listener.listen();
  return { listener, port, bodies, errors };
}

const changing: AdminListenerOptions["routes"] = {
  "POST /thing": () => ({ status: 200, text: "{}" }),
  "POST /asking": (_, { checkChange }) => {
    checkChange();
    return { status: 200, text: "{}" };
  },
};

const errorOf = (text: string): string => JSON.parse(text).error;

test("AdminListener answers its routes with their own text and status", async () => {
  const { port, bodies } = await started();
  const shown = await ask(port, "GET", "/thing?pretty=1");
  assert.equal(shown.status, 200);
  assert.equal(shown.headers.get("content-type"), "application/json");
  assert.equal(shown.headers.get("date"), undefined);
  assert.equal(shown.text, '{"thing":9223372036854775807}');
  const taken = await ask(port, "POST", "/thing", '{"näme":"☕"}');
  assert.equal(taken.status, 200);
  assert.deepEqual(bodies, ['{"näme":"☕"}']);
  assert.equal((await ask(port, "POST", "/thing")).status, 400);
});

test("AdminListener takes a whole URL as a request's target, with its query, and judges its host", async () => {
  const queries: string[] = [];
  const routes: AdminListenerOptions["routes"] = {
    "GET /thing": (_, { query }) => {
      queries.push(query.toString());
      return { status: 200, text: "{}" };
    },
  };
  const { port } = await started({ routes });
  const page = { Origin: "http://localhost:8880", Host: "localhost:8880" };
  assert.equal((await ask(port, "GET", "http://localhost:8880/thing?recent=1", "", page)).status, 200);
  assert.deepEqual(queries, ["recent=1"]);
  const two = await ask(port, "GET", "http://evil.com/thing", "", page);
  assert.equal(two.status, 400);
  assert.match(errorOf(two.text), /first line names "evil\.com", and its Host "localhost:8880": send one name in both$/);
  const named = { Host: "localhost" };
  assert.equal((await ask(port, "POST", "http://localhost/thing", "", named)).status, 405);
  assert.match(errorOf((await ask(port, "GET", "http://localhost/other", "", named)).text), /no path "\/other"/);
});

test("AdminListener answers a route that answers later, with its own media type, and 500 where that fails", async () => {
  const routes: AdminListenerOptions["routes"] = {
    "GET /later": async () => ({ status: 200, text: "later", contentType: "text/plain" }),
    "GET /never": async () => {
      throw new Error("a bug");
    },
  };
  const { port, errors } = await started({ routes });
  const later = await ask(port, "GET", "/later");
  assert.deepEqual([later.status, later.text, later.headers.get("content-type")], [200, "later", "text/plain"]);
  assert.equal((await ask(port, "GET", "/never")).status, 500);
  assert.equal(errors.length, 1);
});

test("AdminListener has nosniff and no-store on every answer, one on a bare connection too", async () => {
  const { port } = await started();
  for (const answer of [
    await ask(port, "GET", "/thing"),
    await ask(port, "POST", "/thing"),
    await ask(port, "GET", "/nowhere"),
    await ask(port, "DELETE", "/thing"),
    await ask(port, "GET", "/broken"),
    await ask(port, "GET", "/thing", "", { Host: "evil.example" }),
    await new Client(port).write("no http\r\n\r\n").answer(),
  ]) {
    assert.equal(answer?.headers.get("x-content-type-options"), "nosniff", answer?.text);
    assert.equal(answer?.headers.get("cache-control"), "no-store", answer?.text);
  }
});

test("AdminListener answers 404 and 405 as JSON that says what there is", async () => {
  const { port } = await started();
  for (const path of ["/", "/thing/", "/THING", "//thing", "/thing%00", "/../thing", "/constructor"]) {
    const answer = await ask(port, "GET", path);
    assert.equal(answer.status, 404, path);
    assert.match(errorOf(answer.text), /this port has no path "\/[^"]*": use GET \/thing or POST \/thing/);
  }
  for (const method of ["DELETE", "PUT", "PATCH"]) {
    const answer = await ask(port, method, "/thing");
    assert.equal(answer.status, 405, method);
    assert.equal(answer.headers.get("allow"), "GET, HEAD, POST");
    assert.equal(errorOf(answer.text), `Cannot accept the request: /thing takes GET or POST, not ${method}`);
  }
  assert.equal((await ask(port, "HEAD", "/none")).status, 404);
});

test("AdminListener refuses the ninth request that a connection has waiting, and ends the connection with its answer", async () => {
  const { port } = await started();
  const client = new Client(port);
  for (let n = 0; n < 9; n++) client.ask("GET", "/thing");
  for (let n = 0; n < 8; n++) assert.equal((await client.answer())?.status, 200);
  const refused = await client.answer();
  assert.deepEqual(
    [refused?.status, refused?.headers.get("x-posline-reason"), refused?.headers.get("connection")],
    [503, "too-many-requests", "close"],
  );
  assert.match(errorOf(refused?.text ?? ""), /8 requests of its connection already wait, which is the limit/);
  assert.equal(await client.rest(), "");
});

test("AdminListener answers HEAD as it answers GET, without the body", async () => {
  const { port } = await started({ routes: { ...thing, "POST /only": () => ({ status: 200, text: "{}" }) } });
  const client = new Client(port).ask("HEAD", "/thing").ask("GET", "/thing");
  const [head, whole] = [await client.answer(), await client.answer()];
  assert.deepEqual(head, { ...whole, text: "" });
  assert.equal(head?.headers.get("content-length"), "29");
  assert.equal((await ask(port, "HEAD", "/only")).status, 405);
});

test("AdminListener refuses foreign Hosts, foreign Origins and pages of other sites, and runs nothing for them", async () => {
  const { port, bodies } = await started();
  const from = (headers: Readonly<Record<string, string>>) => ask(port, "POST", "/thing", "{}", headers);
  for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example", "10.0.0.7", ""]) {
    const answer = await from({ Host: host });
    assert.equal(answer.status, 421, host);
    const name = host.replace(/:\d+$/, "");
    const fix = `allowed: use localhost, or add "${name}" to allowHosts of admin`;
    assert.equal(
      errorOf(answer.text),
      `Cannot accept the request: Host "${host}" is not ${host === "" ? "a host name: use localhost" : fix}`,
    );
  }
  for (const origin of ["https://evil.example", "null", `http://localhost:${port}`, "http://127.0.0.1"]) {
    const answer = await from({ Origin: origin, "Content-Type": "text/plain" });
    assert.equal(answer.status, 403, origin);
    const sandbox =
      ", as any page in a sandbox or a file has it: serve the page over http or https, from localhost for instance";
    const fix = origin === "null" ? `${sandbox}, and add its origin` : ": add it";
    const state = `Origin "${origin}" is not allowed${fix} to allowOrigins of admin`;
    assert.equal(errorOf(answer.text), `Cannot accept the request: ${state}`);
    assert.equal(answer.headers.get("access-control-allow-origin"), undefined);
  }
  const asked = await from({ "Sec-Fetch-Site": "cross-site" });
  assert.equal(asked.status, 403);
  assert.match(errorOf(asked.text), /Sec-Fetch-Site "cross-site".*add the page to allowOrigins of admin$/);
  assert.deepEqual(bodies, []);
  assert.equal((await from({ Host: `127.0.0.1:${port}` })).status, 200);
});

const token = "T-0123456789abcdef";
const wall = "https://wall.example";
const guarded = { config: { host: "127.0.0.1", port: 0, token, allowHosts: ["box.lan"], allowOrigins: [wall] } };

test("AdminListener asks for its token as bearer token or as password, and says so to programs and browsers", async () => {
  const { port, bodies } = await started({ ...guarded, tokenless: ["GET /broken"] });
  const basic = (text: string) => ({ Authorization: `Basic ${Buffer.from(text).toString("base64")}` });
  for (const headers of [{ Authorization: `Bearer ${token}` }, { Authorization: `bearer  ${token}` }, basic(`any:${token}`)]) {
    assert.equal((await ask(port, "POST", "/thing", "{}", headers)).status, 200);
  }
  assert.equal(bodies.length, 3);
  for (const headers of [
    { Authorization: `Bearer ${token}x` },
    { Authorization: "Bearer" },
    { Authorization: token },
    { Authorization: `Digest ${token}` },
    { "X-API-Key": token },
    basic(token),
    basic(`${token}:`),
    {},
  ]) {
    const answer = await ask(port, "POST", "/thing", "{}", headers);
    assert.equal(answer.status, 401, JSON.stringify(headers));
    assert.equal(answer.headers.get("www-authenticate"), 'Bearer realm="posline", Basic realm="posline"');
    assert.equal(answer.headers.get("x-posline-reason"), "wrong-key");
    assert.match(
      errorOf(answer.text),
      /^Cannot accept the request: .* (?:missing|over): send "Authorization: Bearer TOKEN" with the token of/,
    );
    assert.doesNotMatch(answer.text, new RegExp(token));
  }
  assert.equal(bodies.length, 3);
  assert.equal((await ask(port, "GET", "/nowhere")).status, 401, "a path that isn't there");
  assert.equal((await ask(port, "GET", "/broken")).status, 500, "a route that needs no token");
});

test("AdminListener lets nobody change anything by a Host alone: it asks for a session of its key, or the token", async () => {
  const pageKey = new PageKey();
  const { port, bodies } = await started({ pageKey, asking: ["POST /asking"], routes: { ...thing, ...changing } });
  const post = (path: string, authorization?: string) =>
    ask(port, "POST", path, "{}", authorization === undefined ? {} : { Authorization: authorization });
  for (const given of [undefined, "Bearer x", `Bearer ${pageKey.code()}`, `Bearer ${new PageKey().session()}`, "Basic Og=="]) {
    const answer = await post("/thing", given);
    assert.equal(answer.status, 401, given);
    assert.match(
      errorOf(answer.text),
      /: open the address that sudo posline page prints, or send "Authorization: Bearer TOKEN"/,
    );
    assert.equal((await post("/asking", given)).status, 401, "a route that looks itself");
  }
  assert.equal((await ask(port, "GET", "/thing")).status, 200);
  assert.equal((await post("/thing", `Bearer ${pageKey.session()}`)).status, 200);
  assert.equal((await post("/asking", `Bearer ${pageKey.session()}`)).status, 200);
  assert.equal(bodies.length, 0);
});

test("AdminListener takes a session of its key in the place of its token, for reading as well", async () => {
  const pageKey = new PageKey();
  const { port } = await started({ ...guarded, pageKey });
  const session = { Authorization: `Bearer ${pageKey.session()}` };
  assert.equal((await ask(port, "GET", "/thing")).status, 401);
  assert.equal((await ask(port, "GET", "/thing", "", session)).status, 200);
  assert.equal((await ask(port, "POST", "/thing", "{}", session)).status, 200);
  assert.equal((await ask(port, "POST", "/thing", "{}", { Authorization: `Bearer ${token}` })).status, 200);
});

test("AdminListener lets pages of allowOrigins read, with CORS, and change nothing", async () => {
  const { port, bodies } = await started(guarded);
  const headers = { Origin: wall, Authorization: `Bearer ${token}` };
  const read = await ask(port, "GET", "/thing", "", headers);
  assert.equal(read.status, 200);
  assert.equal(read.headers.get("access-control-allow-origin"), wall);
  assert.equal(read.headers.get("vary"), "Origin");
  assert.equal(read.headers.get("access-control-allow-credentials"), "true");
  const wanted = "authorization,last-event-id,traceparent";
  const preflight = await ask(port, "OPTIONS", "/thing", "", { Origin: wall, "Access-Control-Request-Headers": wanted });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get("access-control-allow-methods"), "GET");
  assert.equal(preflight.headers.get("access-control-allow-headers"), wanted);
  assert.equal(preflight.headers.get("access-control-allow-credentials"), "true");
  const changed = await ask(port, "POST", "/thing", "{}", headers);
  assert.equal(changed.status, 403);
  assert.match(errorOf(changed.text), /Origin "https:\/\/wall\.example" may only read: send this from posline's own page/);
  assert.deepEqual(bodies, []);
});

test("AdminListener answers health checks of this box without Host by HTTP/1.0: GET /healthz, and OPTIONS with 204", async () => {
  const { port } = await started({ ...guarded, tokenless: ["GET /thing"] });
  for (const [request, status] of [
    ["GET /thing HTTP/1.0", 200],
    ["HEAD /thing HTTP/1.0", 200],
    ["OPTIONS / HTTP/1.0", 204],
    ["GET /thing HTTP/1.1", 421],
  ] as const) {
    const text = await new Client(port).write(`${request}\r\nConnection: close\r\n\r\n`).rest();
    assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `), request);
  }
});

test("AdminListener's own page may do what programs may: its Origin is the Host that it was asked by, in plain or behind TLS", async () => {
  const { port, bodies } = await started({ config: { host: "127.0.0.1", port: 0, allowHosts: ["box.lan"] } });
  const from = (origin: string, host: string) => ask(port, "POST", "/thing", "{}", { Origin: origin, Host: host });
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, "box.lan"]) {
    assert.equal((await from(`http://${host}`, host)).status, 200, host);
    assert.equal((await from(`https://${host}`, host)).status, 200, host);
  }
  assert.equal(bodies.length, 6);
  for (const [origin, host, status] of [
    [`http://localhost:${port + 1}`, `localhost:${port}`, 403],
    // A proxy may name the port that a browser leaves out.
    ["https://box.lan", "box.lan:443", 200],
    ["https://box.lan", "box.lan:444", 403],
    ["https://box.lan", "box.lan:99999", 403],
    ["http://evil.example", "evil.example", 421],
    ["http://box.lan", `localhost:${port}`, 403],
    ["null", "box.lan", 403],
  ] as const) {
    assert.equal((await from(origin, host)).status, status, origin);
  }
  assert.equal(bodies.length, 7);
});

test("AdminListener opens by a link of another site, and loads nothing into one", async () => {
  const { port } = await started();
  const link = { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document" };
  assert.equal((await ask(port, "GET", "/thing", "", link)).status, 200);
  for (const headers of [
    { ...link, "Sec-Fetch-Dest": "iframe" },
    { ...link, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image" },
    { ...link, Origin: "https://evil.example" },
  ]) {
    assert.equal((await ask(port, "GET", "/thing", "", headers)).status, 403, JSON.stringify(headers));
  }
  assert.equal((await ask(port, "POST", "/thing", "{}", link)).status, 403);
});

test("AdminListener answers 413 to a body that is too large, announced or not, and goes on", async () => {
  const { port, bodies } = await started();
  const large = "x".repeat(adminBodyBytesMax + 1);
  const announced = await ask(port, "POST", "/thing", large);
  assert.equal(announced.status, 413);
  assert.match(errorOf(announced.text), /its body is larger than 65536 bytes/);
  const chunked = new Client(port).write(
    `POST /thing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`,
  );
  assert.equal((await chunked.answer())?.status, 413);
  assert.deepEqual(bodies, []);
  assert.equal((await ask(port, "POST", "/thing", "x".repeat(adminBodyBytesMax))).status, 200);
});

test("AdminListener answers what is no HTTP with 400, headers too large with 431 and slow ones with 408, as JSON, and a silent connection not at all", async () => {
  const { port } = await started({ timeouts: { headersMs: 500, requestMs: 500, checkConnectionsMs: 10 } });
  const status = async (bytes: string) => {
    const text = await new Client(port).write(bytes).rest();
    const body = text.slice(text.indexOf("\r\n\r\n") + 4);
    assert.match(errorOf(body), /^Cannot accept the request: /);
    assert.match(text, new RegExp(`Content-Length: ${body.length}\r\n`));
    return text.slice(0, 12);
  };
  assert.equal(await new Client(port).rest(), "");
  assert.equal(await status("NONSENSE\r\n\r\n"), "HTTP/1.1 400");
  assert.equal(await status(`GET /thing HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(20_000)}\r\n\r\n`), "HTTP/1.1 431");
  assert.equal(await status("POST /thing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabc"), "HTTP/1.1 408");
});

test("AdminListener.listen() rejects with the system's code when its port is taken, and close() frees it", async () => {
  const { listener, port } = await started();
  const second = new AdminListener({ config: { host: "127.0.0.1", port }, routes: {}, error: () => {} });
  await assert.rejects(second.listen(), { code: "EADDRINUSE" });
  const idle = new Client(port).ask("GET", "/thing");
  assert.equal((await idle.answer())?.status, 200);
  await listener.close();
  await second.listen();
  await second.close();
});
