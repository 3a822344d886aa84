import assert from "node:assert/strict";
import { test } from "node:test";
import { absent, closed, settled } from "./fiscal-settling.ts";
import { error, lost, ok } from "./scripted.ts";

for (const operation of ["deposit", "withdraw"] as const) {
  const route = `/${operation}`;
  test(`fiscal.settle says closed when ${route} answers success`, async () => {
    const { result, done } = await settled(operation, [[route, ok({ documentID: 3 })]]);
    assert.equal(result, "closed");
    done();
  });
  test(`fiscal.settle asks first after a lost ${route}, and resends the same only on code 9`, async () => {
    const found = await settled(operation, [
      [route, lost],
      ["/check_status", lost],
      ["/check_status", closed],
    ]);
    assert.equal(found.result, "closed");
    found.done();
    const gone = await settled(operation, [
      [route, lost],
      ["/check_status", absent],
      [route, ok()],
    ]);
    assert.equal(gone.result, "closed");
    assert.deepEqual(gone.service.seen[0], gone.service.seen[2]);
    gone.done();
  });
  test(`fiscal.settle says failed when ${route} was in progress and is then not found: it was rolled back`, async () => {
    const { result, done } = await settled(operation, [
      [route, error(44)],
      ["/check_status", absent],
    ]);
    assert.equal(result, "failed");
    done();
  });
  test(`fiscal.settle asks after code 5 from ${route}, which isn't resent`, async () => {
    const { result, done } = await settled(operation, [
      [route, error(5)],
      ["/check_status", absent],
    ]);
    assert.equal(result, "failed");
    done();
  });
}
