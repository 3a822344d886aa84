import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { quoted } from "../../src/core/shell-text.ts";

test("quoted() gives a shell back the very path", () => {
  fc.assert(
    fc.property(
      fc.string().map((text) => text.replaceAll("\0", "")),
      (text) => {
        assert.equal(execFileSync("sh", ["-c", `printf %s ${quoted(text)}`], { encoding: "utf8" }), text);
      },
    ),
    { numRuns: 20, examples: [["/dev/it's"], [""], ["$(date)"], ["/dev/ttyUSB0"]] },
  );
});
