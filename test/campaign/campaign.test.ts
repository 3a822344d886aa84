import assert from "node:assert/strict";
import { test } from "node:test";
import { isKept } from "./part.ts";
import { parts } from "./parts.ts";

/** A short run of each part; `npm run campaign` is the long one. */

const seed = 20_261_122;

for (const part of parts) {
  test(`the campaign's ${part.name} keep their bounds in a short run`, async () => {
    const rows = await part.run({ minutes: 1, seed, short: true });
    assert.ok(rows.length > 0);
    assert.deepEqual(
      rows.filter((row) => !isKept(row)),
      [],
    );
  });
}
