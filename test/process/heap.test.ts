import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

test("V8 knows each flag that is set: it names one that it doesn't know on standard error", () => {
  const setting = (more: string) => `import { setHeapFlagsOnce } from "./src/process/heap.ts"; setHeapFlagsOnce(); ${more}`;
  const run = (source: string) =>
    spawnSync(process.execPath, ["--import", "tsx", "--input-type=module", "-e", source], {
      encoding: "utf8",
      timeout: 60_000,
    });
  const { status, stderr } = run(setting(""));
  assert.deepEqual([status, stderr], [0, ""]);
  // It would be seen here.
  const unknown = run(setting('(await import("node:v8")).setFlagsFromString("--no-such-flag");'));
  assert.match(unknown.stderr, /no-such-flag/);
});
