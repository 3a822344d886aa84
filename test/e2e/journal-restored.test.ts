import assert from "node:assert/strict";
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { BridgeProcess } from "../support/bridge-process.ts";
import { sale, withBench } from "../support/journal-bench.ts";
import { answering } from "../support/terminal.ts";

/** A journal that is older than the box's last run, by the real bundle. */

/** The answer to a followed call, as far as repetitions go. */
const guardOf = async (bridge: BridgeProcess, id: string) => {
  const { headers } = await bridge.post("bank", "/sale", sale(id), { Prefer: "wait=5" });
  return headers["x-posline-repeat-guard"];
};

const approved = answering(({ text }) =>
  text.startsWith("/sale") ? '{"status":"success"}' : '{"status":"success","data":{"status":"APPROVED"}}',
);

for (const [what, restore] of [
  ["an older copy", (copy: string, journal: string) => copyFileSync(copy, journal)],
  ["none", (_: string, journal: string) => rmSync(journal)],
] as const) {
  test(`journal that has ${what} put in its place lacks records: the log says so, and X-Posline-Repeat-Guard is off`, async () => {
    await withBench(approved, async ({ folder, start }) => {
      const [file, copy] = [join(folder, "journal"), join(folder, "..", "copy")];
      const first = await start();
      assert.equal(await guardOf(first, "A-1"), undefined);
      await first.stop();
      copyFileSync(file, copy);
      const second = await start();
      assert.equal(await guardOf(second, "A-2"), undefined, "a restart alone loses nothing");
      await second.stop();
      restore(copy, file);
      const third = await start();
      assert.equal(await guardOf(third, "A-3"), "off");
      assert.ok(third.log.some(({ msg }) => /is older than this box's last run/.test(String(msg))));
      // Not stopped: a crash right after the start must not make it whole.
      await third.stop("SIGKILL");
      const fourth = await start();
      assert.equal(await guardOf(fourth, "A-4"), "off", "the next start still knows");
      assert.ok(!fourth.log.some(({ msg }) => /is older than/.test(String(msg))));
    });
  });
}

test("journal lacks records after a person said that the whole box was restored, which it can't see", async () => {
  await withBench(approved, async ({ folder, start }) => {
    const file = join(folder, "..", "last-record");
    const first = await start();
    await guardOf(first, "A-1");
    await first.stop();
    assert.match(readFileSync(file, "utf8"), /^[1-9]\d*\n$/);
    writeFileSync(file, "restored\n");
    const second = await start();
    assert.equal(await guardOf(second, "A-2"), "off");
    await second.stop();
    assert.match(readFileSync(file, "utf8"), /^[1-9]\d*\n$/);
  });
});
