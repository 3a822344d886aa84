import assert from "node:assert/strict";
import { test } from "node:test";
import { kinds, searches } from "./search.ts";

/**
 * Tests src/settle/judge.ts, src/settle/said.ts, src/contract/settling.ts, src/operations/sending.ts.
 *
 * Each history that an operation may have, over the judge itself, against a terminal as bad as its contract lets it be. What it says that must
 * hold is in search.ts (`laws`), what a terminal may do in terminal.ts. proof/campaign/mutation/judge.ts removes one rule of the judge at a time.
 */

for (const kind of kinds()) {
  test(`judge() keeps every law in every history of ${kind.name}, by the bridge and by the client`, (t) => {
    const beganMs = performance.now();
    let states = 0;
    for (const [seen, broken] of searches(kind)) {
      assert.equal(broken, undefined, broken);
      states += seen;
    }
    t.diagnostic(`${states} states in ${((performance.now() - beganMs) / 1_000).toFixed(1)} s`);
  });
}
