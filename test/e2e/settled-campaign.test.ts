import assert from "node:assert/strict";
import { test } from "node:test";
import { isKept } from "../../proof/campaign/part.ts";
import { rowsOf } from "../../proof/campaign/settled.ts";
import { World } from "../../proof/campaign/settled-world.ts";

/**
 * Followed operations over the real bundle, two lines of ptys and the emulator with every fault of its list, with tills that crash and
 * reloads and kill -9 of posline; and over TCP, with connections that are cut. `npm run campaign -- --part settled --part tcp` is the long
 * one.
 */

/** The operations over ptys are together more than there are faults. */
const drawn = [
  { seed: 20_261_122, operations: 20, isKilled: true, isOverTcp: false },
  { seed: 20_261_123, operations: 20, isKilled: true, isOverTcp: false },
  { seed: 20_261_124, operations: 12, isKilled: false, isOverTcp: true },
];

test("followed operations end as the terminal has them, once each, whatever goes wrong and however often posline is reloaded and killed and a connection is cut", async () => {
  const patience = { patienceMs: 8_000, lastPatienceMs: 60_000 };
  const worlds = drawn.map((each) => new World({ ...each, tills: 5, beginMs: Number.POSITIVE_INFINITY, ...patience }).run());
  const rows = rowsOf(await Promise.all(worlds));
  const count = (name: string) => rows.find(({ what }) => what === name)?.value ?? 0;
  assert.equal(count("operations"), 52);
  assert.ok(count("cut connections") > 0);
  assert.deepEqual(
    rows.filter((row) => !isKept(row)),
    [],
  );
});
