import assert from "node:assert/strict";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { notifier } from "../../src/systemd/notifier.ts";
import { scratchFolder } from "../support/bridge-process.ts";

test("Notifier.tell() by systemd-notify keeps the order, and tells a ping once while one waits, so that the stop isn't told behind many", async (t) => {
  const folder = scratchFolder();
  const tool = join(folder.path, "systemd-notify");
  const told = join(folder.path, "told");
  writeFileSync(tool, `#!/bin/sh\necho "$*" >> ${told}\n`);
  chmodSync(tool, 0o755);
  const before = process.env["PATH"];
  process.env["PATH"] = `${folder.path}:${before}`;
  t.after(() => {
    process.env["PATH"] = before;
  });
  const failed: string[] = [];
  const { tell } = notifier({ NOTIFY_SOCKET: "/run/notify" }, undefined, (reason) => failed.push(reason));
  const ready = tell(["READY=1", "STATUS=1 line up"]);
  for (let pings = 0; pings < 10; pings++) void tell(["WATCHDOG=1"]);
  await ready;
  await tell(["WATCHDOG=1"]);
  await Promise.all([tell(["STATUS=down"]), tell(["WATCHDOG=1"]), tell(["STOPPING=1"])]);
  assert.deepEqual(readFileSync(told, "utf8").trim().split("\n"), [
    ...["READY=1 STATUS=1 line up", "WATCHDOG=1", "WATCHDOG=1", "STATUS=down", "WATCHDOG=1", "STOPPING=1"],
  ]);
  assert.deepEqual(failed, []);
});
