import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

/** Tests mirror sources: whoever looks for the tests of a file, or for what a test is about, finds it by its name. */

const root = new URL("../..", import.meta.url).pathname;

/** Folders whose tests are about the whole product. */
const whole = /^(?:e2e|house|package|process|support)\//;

test("each test file has the path of the source that it tests, or names its sources in its head comment", () => {
  const all = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" });
  const files = all.filter((file) => file.endsWith(".test.ts") && !whole.test(file));
  assert.ok(files.length > 100, `${files.length} files were looked at`);
  for (const file of files) {
    if (existsSync(join(root, "src", file.replace(/^slow\//, "").replace(".test.ts", ".ts")))) continue;
    const [, named] =
      /^(?:\/\*\*| \*) Tests (src\/[^\s]+(?:, src\/[^\s]+)*)\./m.exec(readFileSync(join(root, "test", file), "utf8")) ?? [];
    assert.ok(named, `${file} tests no file of its name: name its sources in its head comment, "Tests src/a/b.ts."`);
    for (const source of named.split(", ")) assert.ok(existsSync(join(root, source)), `${file} names ${source}`);
  }
});
