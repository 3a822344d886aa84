import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, Server } from "node:net";
import { afterEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { AdminListener } from "../../src/http/admin-listener.ts";
import { ask, assertFault, Client, closeAll, listenerOf, serve } from "./served.ts";

afterEach(closeAll);

const sale = '{"pay_id":"A-1","amount":1}';

for (const name of ["HttpListener", "AdminListener"]) {
  test(`${name}.listen() takes over a socket that another process opened, with the connections that wait there`, async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    // Node's own handle of a server: the only place where its descriptor can be read.
    const { fd } = (other as unknown as { _handle: { fd: number } })._handle;
    const script = fileURLToPath(new URL("inherited.ts", import.meta.url));
    const child = spawn(process.execPath, ["--import", "tsx", script, name], { stdio: ["pipe", "pipe", "inherit", fd] });
    assert.ok(child.stdin && child.stdout);
    const exited = once(child, "exit");
    const address = other.address();
    assert.ok(typeof address === "object" && address !== null);
    const { port } = address;
    other.close();
    // Long before the other process accepts anything: whoever takes over must serve it.
    const early = new Client(port).write("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const [said] = await once(child.stdout, "data");
    assert.equal(String(said), `${port} ${port}\n`);
    assert.equal((await early.answer())?.status, 404);
    const asked = name === "HttpListener" ? ask(port, "POST", "/sale", sale) : ask(port, "GET", "/thing");
    assert.equal((await asked).status, 200);
    child.stdin.end();
    assert.deepEqual(await exited, [0, null]);
    const next = createServer().listen(port, "127.0.0.1");
    await once(next, "listening");
    next.close();
  });
}

test("AdminListener.listen() rejects when the address can't be had", async () => {
  const { port } = await serve("bank");
  const listener = new AdminListener({ config: { host: "127.0.0.1", port }, routes: {}, error: () => {} });
  await assert.rejects(listener.listen(), { code: "EADDRINUSE" });
  await listener.close();
});

for (const code of ["EADDRNOTAVAIL", "EAFNOSUPPORT"]) {
  test(`HttpListener.listen() leaves an address of localhost out that this box doesn't have (${code}), and fails where it has none`, async (t) => {
    const absent = new Set(["::1"]);
    const real = Server.prototype.listen;
    t.mock.method(Server.prototype, "listen", function (this: Server, on: { host: string }, done: () => void) {
      if (!absent.has(on.host)) return real.call(this, on, done);
      process.nextTick(() => this.emit("error", Object.assign(new Error(code), { code })));
      return this;
    });
    const { listener } = listenerOf("bank", { config: { host: "localhost" } });
    const { host, port } = await listener.listen();
    assert.equal(host, "localhost");
    assert.equal((await ask(port, "POST", "/sale", sale)).status, 200);
    await listener.close();
    absent.add("127.0.0.1");
    await assert.rejects(listener.listen(), { code });
  });
}

test("HttpListener.close() answers requests that were on their way when it was called, and ends their connections", async () => {
  const { port, listener } = await serve("bank");
  const kept = new Client(port).ask("POST", "/sale", sale);
  await kept.answer();
  const fresh = new Client(port);
  await once(fresh.socket, "connect");
  // Its connection has been accepted once a later one was served.
  await ask(port, "POST", "/sale", sale);
  const closed = listener.close();
  for (const client of [kept, fresh]) {
    client.ask("POST", "/sale", sale);
    const answer = await client.answer();
    assert.equal(answer?.status, 200);
    assert.equal(answer?.headers.get("connection"), "close");
    assert.equal(await client.rest(), "");
  }
  await closed;
});

test("HttpListener gives one answer to a refused request whose body goes on with nonsense, later too", async () => {
  const { port, records } = await serve("bank");
  const client = new Client(port).write("POST /none HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  const refused = await client.answer();
  assertFault(refused, "bank", "route");
  client.write("nonsense and no length\r\n");
  assert.equal(await client.rest(), "");
  assert.equal(records.length, 1);
});

test("AdminListener answers a request that came with garbage behind it, and nothing else", async () => {
  let ran = 0;
  const routes = {
    "GET /thing": () => {
      ran++;
      return { status: 200, text: "{}" };
    },
  };
  const listener = new AdminListener({ config: { host: "127.0.0.1", port: 0 }, routes, error: () => {} });
  const { port } = await listener.listen();
  const text = await new Client(port).write("GET /thing HTTP/1.1\r\nHost: localhost\r\n\r\ngarbage\r\n\r\n").rest();
  assert.match(text, /^HTTP\/1\.1 200 .*Connection: close\r\n/s);
  assert.equal(text.match(/HTTP\/1\.1 \d/g)?.length, 1);
  assert.equal(ran, 1);
  await listener.close();
});

test("AdminListener asks for a body that waits to be asked for, and refuses one that it won't take", async () => {
  const bodies: string[] = [];
  const routes = {
    "POST /thing": (body: string) => {
      bodies.push(body);
      return { status: 200, text: "{}" };
    },
  };
  const listener = new AdminListener({ config: { host: "127.0.0.1", port: 0 }, routes, error: () => {} });
  const { port } = await listener.listen();
  const client = new Client(port);
  client.ask("POST", "/thing", "", { "Content-Length": "2", Expect: "100-continue" });
  assert.equal((await client.answer())?.status, 100);
  client.write("{}");
  assert.equal((await client.answer())?.status, 200);
  assert.deepEqual(bodies, ["{}"]);
  const refused = new Client(port).ask("POST", "/none", "", { "Content-Length": "2", Expect: "100-continue" });
  assert.equal((await refused.answer())?.status, 404);
  await listener.close();
});

test("HttpListener.close() leaves no timer, as of a port that a reload takes away", async (t) => {
  const timers = new Set<number>();
  const hook = createHook({
    init: (id, type) => {
      if (type === "Timeout") timers.add(id);
    },
    destroy: (id) => timers.delete(id),
  }).enable();
  t.after(() => hook.disable());
  await serve("bank");
  assert.notEqual(timers.size, 0);
  await closeAll();
  // Node tells of what ended in a turn of its own.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  assert.equal(timers.size, 0);
});
