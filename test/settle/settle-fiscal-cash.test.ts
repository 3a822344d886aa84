import assert from "node:assert/strict";
import { test } from "node:test";
import { absent, closed, goneTo30s, open, settled } from "./fiscal-settling.ts";
import { error, lost, ok, reply } from "./scripted.ts";

/** Tests src/settle/judge.ts. */

for (const operation of ["deposit", "withdraw"] as const) {
  const route = `/${operation}`;
  test(`fiscal.settle says closed when ${route} answers success`, async () => {
    const { result, done } = await settled(operation, [[route, ok({ documentID: 3 })]]);
    assert.equal(result, "closed");
    done();
  });
  test(`fiscal.settle says closed when ${route} answers docStatus 1`, async () => {
    const { result, done } = await settled(operation, [[route, closed]]);
    assert.equal(result, "closed");
    done();
  });
  for (const [name, answer] of [
    ["docStatus 0", open],
    ["docStatus 0 as text", ok({ docStatus: "0" })],
    ["docStatus -1", ok({ docStatus: -1 })],
    ["code 44", ok({ code: 44 })],
  ] as const) {
    test(`fiscal.settle polls /check_status and never resends after a success with ${name} from ${route}`, async () => {
      const { result, service, done } = await settled(operation, [
        [route, answer],
        ["/check_status", open],
        ["/check_status", closed],
      ]);
      assert.equal(result, "closed");
      assert.deepEqual(service.seen[1]?.body, { documentExtID: "CASH-1" });
      done();
    });
    test(`fiscal.settle says failed when ${route} answers a success with ${name} and is then rolled back`, async () => {
      const { result, done } = await settled(
        operation,
        [[route, answer], ["/check_status", open], ...goneTo30s.slice(1)],
        60_000,
      );
      assert.equal(result, "failed");
      done();
    });
  }
  test(`fiscal.settle takes a success of ${route} about another documentExtID for none`, async () => {
    const { result, done } = await settled(operation, [
      [route, ok({ docStatus: 1, documentExtID: "CASH-2" })],
      ["/check_status", absent],
      [route, ok({ documentExtID: "CASH-1" })],
    ]);
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
    const { result, done } = await settled(operation, [[route, error(44)], ...goneTo30s], 60_000);
    assert.equal(result, "failed");
    done();
  });
  test(`fiscal.settle asks after code 5 from ${route}, which isn't resent`, async () => {
    const { result, done } = await settled(operation, [[route, error(5)], ...goneTo30s], 60_000);
    assert.equal(result, "failed");
    done();
  });
  for (const code of [4, 7, 8, 11, 12, 13, 23]) {
    test(`fiscal.settle says failed a second after code ${code} from ${route}, the terminal's own word that no gateway says`, async () => {
      const {
        result,
        code: said,
        clock,
        done,
      } = await settled(operation, [
        [route, error(code)],
        ["/check_status", absent],
      ]);
      assert.deepEqual([result, said, clock.ms], ["failed", code, 1_000]);
      done();
    });
  }
}

test("fiscal.settle believes code 9 only 30 s after a refusal that a gateway, or a proxy behind it, may have made", async () => {
  for (const refusal of [error(5), error(504), reply({ status: "error", message: "gateway timeout" })]) {
    const { result, clock, done } = await settled("deposit", [["/deposit", refusal], ...goneTo30s], 60_000);
    assert.equal(result, "failed");
    assert.ok(clock.ms >= 30_000);
    done();
  }
});
