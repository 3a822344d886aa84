import assert from "node:assert/strict";
import { test } from "node:test";
import { type FaultKind, type FaultReason, faultClasses, faultReasons } from "../../../src/core/fault.ts";
import { reasonsOf } from "../../../src/lab/openapi/fault-answers.ts";
import { reasonRows } from "./reason-table.ts";

/** Tests src/lab/openapi/fault-answers.ts. */

/** Each is answered on a line only, by a gateway. */
const onLine: readonly string[] = ["upstream-unreachable", "upstream-refused", "connection-lost"];

test("reasonRows has each reason that HTTP answers may have once for each outcome, and no other", () => {
  // Its keys are the kinds.
  const kinds = Object.keys(reasonsOf) as FaultKind[];
  const answered = kinds.flatMap((kind) => reasonsOf[kind].map((reason) => `${faultClasses[kind].outcome} ${reason}`));
  const told = reasonRows.flatMap(({ outcome, reasons }) => reasons.map((reason) => `${outcome} ${reason}`));
  assert.deepEqual(told.toSorted(), [...new Set(answered)].toSorted());
  // Its keys are the reasons.
  for (const reason of Object.keys(faultReasons) as FaultReason[]) {
    assert.ok(onLine.includes(reason) || told.some((each) => each.endsWith(` ${reason}`)), reason);
  }
});
