import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { answering, probeReply } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { withBridge } from "../support/with-bridge.ts";

/** Sends a request and shuts down the writing side, as `nc -N` does; resolves with all that was answered. */
async function askAndShutDown(port: number, path: string, body: string, behind = ""): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  let text = "";
  socket.setEncoding("latin1").on("data", (piece) => {
    text += piece;
  });
  socket.end(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}${behind}`);
  await once(socket, "end");
  return text;
}

test("bridge answers a call that is out to a client that has shut down its side or goes on with a NUL, and sends none that waits", async () => {
  let answer: (() => void) | undefined;
  const whenTold = answering(({ text }) => JSON.stringify({ status: "success", code: 0, echo: /A-\d/.exec(text)?.[0] }));
  await withBridge(
    { services: { bank: {} } },
    async (asked, self) => {
      if (probeReply(asked) === undefined) {
        await new Promise<void>((resolve) => {
          answer = resolve;
        });
      }
      await whenTold(asked, self);
    },
    async ({ bridge, terminal }) => {
      const port = await bridge.port("bank");
      const out = askAndShutDown(port, "/check", '{"pay_id":"A-1"}');
      await until(() => answer !== undefined, "the call at the terminal");
      const waiting = await askAndShutDown(port, "/sale", '{"pay_id":"A-2","amount":1}');
      assert.match(waiting, /^HTTP\/1\.1 503 .*X-Posline-Outcome: not-sent\r\n.*X-Posline-Reason: caller-left\r\n/s);
      assert.match(waiting, /the client disconnected, or shut down its side of the connection, before its turn came/);
      answer?.();
      assert.match(await out, /^HTTP\/1\.1 200 .*"echo":"A-1"/s);
      answer = undefined;
      const withNul = askAndShutDown(port, "/check", '{"pay_id":"A-3"}', "\0");
      await until(() => answer !== undefined, "the call at the terminal");
      (answer as (() => void) | undefined)?.();
      assert.match(await withNul, /^HTTP\/1\.1 200 .*"echo":"A-3"/s);
      assert.deepEqual(
        terminal.calls.map(({ text }) => /A-\d/.exec(text)?.[0]),
        ["A-1", "A-3"],
      );
    },
  );
});
