import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { AdminListener, type AdminListenerOptions } from "../../src/http/admin-listener.ts";
import { type AdminStream, streamsMax, waitingBytesMax } from "../../src/http/streams.ts";
import { until } from "../support/until.ts";
import { ask, Client } from "./served.ts";

const open: AdminListener[] = [];
after(() => Promise.all(open.map((listener) => listener.close())));

/** A listener with one stream that the test writes to. */
async function started(more: Partial<AdminListenerOptions> = {}) {
  const streams: AdminStream[] = [];
  const counts = { over: 0, dropped: 0 };
  const listener = new AdminListener({
    config: { host: "127.0.0.1", port: 0 },
    routes: {
      "GET /watch": (_, { query, headers }) => ({
        contentType: "text/event-stream",
        start: (stream) => {
          streams.push(stream);
          stream.write(`hello ${query.get("who")} ${headers["last-event-id"]}\n`);
          return () => {
            counts.over++;
          };
        },
      }),
      "GET /thing": () => ({ status: 200, text: "{}" }),
    },
    error: (error) => assert.fail(String(error)),
    dropped: () => {
      counts.dropped++;
    },
    ...more,
  });
  open.push(listener);
  const { port } = await listener.listen();
  return { listener, port, streams, counts };
}

/** Begins to watch, and reads until the first piece came. */
async function watch(port: number, headers: Readonly<Record<string, string>> = {}, path = "/watch?who=me") {
  const client = new Client(port).ask("GET", path, "", headers);
  let text = "";
  client.socket.on("data", (bytes: Buffer) => {
    text += bytes.toString();
  });
  await until(() => text.includes("hello"), "the stream's first piece");
  return { client, text: () => text };
}

test("Streams answers with what the route writes, from its query and headers, until the client leaves", async () => {
  const { listener, port, streams, counts } = await started();
  const one = await watch(port, { "Last-Event-ID": "7" });
  assert.match(one.text(), /^HTTP\/1\.1 200 OK\r\nContent-Type: text\/event-stream\r\n/);
  assert.match(one.text(), /Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n/);
  assert.match(one.text(), /\r\nhello me 7\n/);
  streams[0]?.write("more\n");
  streams[0]?.write(Buffer.from("bytes\n"));
  await until(() => one.text().includes("bytes"), "what was written");
  assert.equal(listener.streams.size, 1);
  one.client.socket.destroy();
  await until(() => counts.over === 1, "the stream to be over");
  assert.equal(listener.streams.size, 0);
  streams[0]?.write("to nobody");
  assert.deepEqual(counts, { over: 1, dropped: 0 });
});

test("Streams ends an answer whose client has shut down its writing side, as one that has left", async () => {
  const { port, counts } = await started();
  const one = await watch(port);
  one.client.socket.end();
  await one.client.rest();
  assert.deepEqual(counts, { over: 1, dropped: 0 });
});

test(`Streams refuses watcher ${streamsMax + 1} with 503, the reason and Retry-After, and takes another once one has left`, async () => {
  const { listener, port } = await started();
  const watchers = await Promise.all(Array.from({ length: streamsMax }, () => watch(port)));
  const refused = await ask(port, "GET", "/watch");
  assert.equal(refused.status, 503);
  assert.equal(refused.headers.get("retry-after"), "5");
  assert.equal(refused.headers.get("x-posline-reason"), "too-many-requests");
  assert.match(refused.text, /Cannot watch: 8 watchers are connected, which is the limit: close one of them/);
  assert.equal((await ask(port, "GET", "/thing")).status, 200, "other answers go on");
  watchers[3]?.client.socket.destroy();
  await until(() => listener.streams.size === streamsMax - 1, "a place to be free");
  await watch(port);
});

test("Streams drops a watcher that reads nothing once 256 KiB wait behind it, counts it, and the others lose nothing", async () => {
  const { listener, port, streams, counts } = await started();
  const slow = await watch(port);
  const quick = await watch(port);
  slow.client.socket.pause();
  const piece = `${"x".repeat(16_383)}\n`;
  let written = 0;
  await until(() => {
    for (const stream of streams) stream.write(piece);
    written++;
    return counts.dropped === 1;
  }, "the slow one to be dropped");
  assert.deepEqual(counts, { over: 1, dropped: 1 });
  assert.deepEqual([listener.streams.size, listener.streams.dropped], [1, 1]);
  // What the system holds of a connection comes on top, and isn't posline's.
  assert.ok(written * piece.length > waitingBytesMax);
  const whole = () => quick.text().match(/x{16383}\n/g)?.length;
  await until(() => whole() === written, "the quick one to have it all");
  slow.client.socket.resume();
  await once(slow.client.socket, "close");
});

test("Streams outlives the timeouts of requests, answers HEAD at once, and isn't over while it is silent", async () => {
  const { port, streams } = await started({ timeouts: { headersMs: 20, requestMs: 20, checkConnectionsMs: 5 } });
  const one = await watch(port);
  await new Promise((resolve) => setTimeout(resolve, 200));
  streams[0]?.write("still here\n");
  await until(() => one.text().includes("still here"), "the stream to go on");
  const head = await ask(port, "HEAD", "/watch");
  assert.deepEqual([head.status, head.text, streams.length], [200, "", 1]);
});

test("Streams cuts a stream that fails to begin, reports the bug, and gives its place back", async () => {
  const errors: unknown[] = [];
  const start = () => {
    throw new Error("a bug");
  };
  const routes = { "GET /watch": () => ({ contentType: "text/plain", start }) };
  const { listener, port } = await started({ routes, error: (error) => errors.push(error) });
  await assert.rejects(ask(port, "GET", "/watch"), /the connection ended/);
  assert.deepEqual([listener.streams.size, errors.length], [0, 1]);
});

test("Streams ends each with its last piece when the port closes, and when its route ends it", async () => {
  const { listener, port, streams, counts } = await started();
  const [one, two] = [await watch(port), await watch(port)];
  streams[1]?.write("goodbye\n");
  streams[1]?.end();
  await until(() => /goodbye\n\r\n0\r\n\r\n$/.test(two.text()), "the whole answer");
  streams[0]?.write("last\n");
  await listener.close();
  await once(one.client.socket, "close").catch(() => {});
  assert.match(one.text(), /last\n\r\n0\r\n\r\n$/);
  assert.deepEqual(counts, { over: 2, dropped: 0 });
});
