import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { textDiff } from "../../src/setup/text-diff.ts";

test("textDiff() shows what went and what came, with two rows around it", () => {
  assert.equal(textDiff("1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\nfour\n5\n6\n7\n"), "  2\n  3\n- 4\n+ four\n  5\n  6\n");
});

test("textDiff() of a new text shows all of it, and of equal texts nothing", () => {
  assert.equal(textDiff("", "a\nb\n"), "+ a\n+ b\n");
  assert.equal(textDiff("a\nb\n", "a\nb\n"), "");
});

test("textDiff() holds each row that only one text has", () => {
  const rows = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 8 });
  fc.assert(
    fc.property(rows, rows, (old, fresh) => {
      const diff = textDiff(old.join("\n"), fresh.join("\n")).split("\n");
      const signed = (sign: string) => diff.filter((row) => row.startsWith(sign)).map((row) => row.slice(2));
      for (const row of ["a", "b", "c"]) {
        const count = (list: readonly string[]) => list.filter((each) => each === row).length;
        assert.equal(count(fresh) - count(old), count(signed("+")) - count(signed("-")));
      }
    }),
  );
});
