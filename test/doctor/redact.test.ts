import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { redact } from "../../src/doctor/redact.ts";

test("redact() hides a secret and the four bytes behind it wherever they stand", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ maxLength: 40 }), (before, after) => {
      const secret = "c2VjcmV0";
      const bytes = Buffer.concat([before, Buffer.from(secret), after]);
      const pairs = redact(bytes, { direction: "sent", atMs: 0, text: "", secret }).hex.split(" ");
      const hidden = pairs.slice(before.length, before.length + secret.length + Math.min(4, after.length));
      assert.ok(hidden.every((pair) => pair === "**"));
      assert.equal(pairs.length, bytes.length);
    }),
  );
});

test("redact() shows 16 bytes of what is no answer, and 256 of what is one", () => {
  const bytes = Buffer.alloc(300, 0x41);
  const pairs = (text?: string) => redact(bytes, { direction: "received", atMs: 1.4, text }).hex.split(" ");
  assert.deepEqual([pairs().length, pairs().at(-1)], [17, ".."]);
  assert.deepEqual([pairs("A").length, pairs("A").at(-1)], [257, ".."]);
});

test("redact() lets no control character of a text through", () => {
  const { text } = redact(Buffer.from("x"), { direction: "received", atMs: 0, text: '{"message":"\u001b[2J"}' });
  assert.equal(text, '{"message":" [2J"}');
});
