import assert from "node:assert/strict";
import { test } from "node:test";
import { isKept } from "../../proof/campaign/part.ts";
import { rowsOf } from "../../proof/campaign/settled.ts";
import { World } from "../../proof/campaign/settled-world.ts";

/**
 * Followed operations over the real bundle, two lines of ptys and the emulator with every fault of its list, with tills that crash and
 * reloads and kill -9 of posline. `npm run campaign -- --part settled` is the long one.
 */

const seeds = [20_261_122, 20_261_123];

/** Of each seed; together more than there are faults. */
const operations = 20;

test("followed operations end as the terminal has them, once each, whatever goes wrong and however often posline is reloaded and killed", async () => {
  const patience = { patienceMs: 8_000, lastPatienceMs: 60_000 };
  const worlds = seeds.map((seed) =>
    new World({ seed, operations, tills: 5, isKilled: true, beginMs: Number.POSITIVE_INFINITY, ...patience }).run(),
  );
  const rows = rowsOf(await Promise.all(worlds));
  assert.equal(rows.find(({ what }) => what === "operations")?.value, seeds.length * operations);
  assert.deepEqual(
    rows.filter((row) => !isKept(row)),
    [],
  );
});
