import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder, startedBridge } from "../support/bridge-process.ts";
import { Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

test("bridge that was killed while a sale was out waits for that one's answer after its restart, also where it asks nothing", async () => {
  const folder = scratchFolder();
  const terminal = new Terminal(join(folder.path, "tty"), () => {});
  const line = { path: terminal.link, recovery: "quiet", lateReplyMs: 4_000, queueWaitMs: 6_000 };
  const config = {
    lines: { till: line },
    services: { bank: { line: "till", replyTimeoutMs: 10_000 } },
    journal: { folder: folder.path },
  };
  try {
    const killed = await startedBridge(config);
    const sale = killed.post("bank", "/sale", '{"pay_id":"A","amount":1,"currency_name":"EUR"}').catch(() => {});
    await until(() => terminal.calls.length === 1, "the sale on the line");
    await killed.stop("SIGKILL");
    await sale;
    const next = await startedBridge(config, { lineState: "recovering" });
    try {
      const check = await next.post("bank", "/check", '{"pay_id":"B"}');
      assert.deepEqual([check.status, check.headers["x-posline-reason"]], [503, "recovering"]);
      assert.equal(terminal.calls.length, 1, "nothing was sent whose answer could be that of the sale");
    } finally {
      await next.stop("SIGKILL");
    }
  } finally {
    terminal.unplug();
    folder.remove();
  }
});
