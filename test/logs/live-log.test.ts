import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Events } from "../../src/admin/events.ts";
import { LiveLog } from "../../src/logs/live-log.ts";
import { until } from "../support/until.ts";

/** Tests src/logs/live-log.ts: what is said of lines that can't be had any more. `test/e2e/events.test.ts` has the rest. */

test("LiveLog says where events are missing that posline keeps no longer, and of no others", async (t) => {
  const newEvents = () => new Events({ version: "0", notReady: () => [], error: (error) => assert.fail(String(error)) });
  let events = newEvents();
  let open: ServerResponse | undefined;
  const server = createServer(({ url = "", headers }, response) => {
    open = response.writeHead(200, { "Content-Type": "text/event-stream" });
    const answer = events.routes["GET /events"]("", { query: new URL(url, "http://x").searchParams, headers });
    assert.ok(answer.start !== undefined);
    const over = answer.start({ write: (text) => response.write(text), end: () => response.end() });
    response.on("close", over);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const publish = (count: number) => {
    for (let n = 0; n < count; n++) events.publish({ event: "late", fields: { line: "till", framing: "length", bytes: n } });
  };
  const cut = () => {
    open?.destroy();
    open = undefined;
  };
  const seen = { lines: 0, err: "" };
  const stop = new AbortController();
  const live = new LiveLog({
    ...{ url: `http://127.0.0.1:${port}/`, headers: {} },
    err: (text) => {
      seen.err += text;
    },
  });
  publish(600);
  const sink = { push: () => seen.lines++, endLine: () => {}, caughtUp: () => {} };
  const reading = live.read(sink, stop.signal);
  // The newest of them says that posline is ready.
  await until(() => seen.lines === 512, "all that is kept");
  cut();
  publish(5);
  await until(() => seen.lines === 512 + 5, "what was missed");
  assert.doesNotMatch(seen.err, /missing/);
  cut();
  publish(600);
  await until(() => seen.lines === 512 + 5 + 512, "what is left");
  assert.match(seen.err, /Lines may be missing here: posline no longer has 88 events of before\n/);
  cut();
  events = newEvents();
  seen.err = "";
  publish(3);
  await until(() => seen.lines === 512 + 5 + 512 + 4, "those of another process");
  assert.doesNotMatch(seen.err, /missing/);
  stop.abort();
  await reading;
});
