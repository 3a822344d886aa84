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

test("redact() shows the first six digits at most of what may be a card's number, whole, cut off or in groups", () => {
  for (const text of [
    "4111111111111111",
    ";4111111111111111=2512",
    "4111 1111 1111 1111",
    "\u0002371449635398431",
    "630400000000",
  ]) {
    const { hex } = redact(Buffer.from(text, "latin1"), { direction: "received", atMs: 0 });
    const shown = hex.split(" ").filter((pair) => /^3\d$/.test(pair));
    assert.deepEqual([shown.length, hex.includes("**")], [6, true], `${text}: ${hex}`);
  }
  const { hex } = redact(Buffer.from("AT+IPR=115200"), { direction: "received", atMs: 0 });
  assert.equal(hex.includes("**"), false);
});

test("redact() lets no control character of a text through", () => {
  const { text } = redact(Buffer.from("x"), { direction: "received", atMs: 0, text: '{"message":"\u001b[2J"}' });
  assert.equal(text, '{"message":" [2J"}');
});
