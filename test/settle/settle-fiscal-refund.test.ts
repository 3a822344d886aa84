import assert from "node:assert/strict";
import { test } from "node:test";
import { absent, closed, open, sale } from "./fiscal-settling.ts";
import { error, lost, ok, over, repeat, type Script } from "./scripted.ts";

/** Tests src/settle/judge.ts. */

const refundOf = async (script: Script) => {
  const world = over(script);
  const options = { ...world.options, windowMs: 20_000, intervalMs: 1000 };
  const { result } = await world.client.fiscal.settle("refund", sale, options);
  world.done();
  return result;
};

test("fiscal.settle never says closed for /refund by the document of the sale under the same key", async () => {
  const own = ok({ docStatus: 1, documentID: 13 });
  const lostOne: Script = [
    ["/check_status", closed],
    ["/refund", lost],
  ];
  assert.equal(await refundOf([...lostOne, ...repeat(20, ["/check_status", closed])]), "unknown");
  assert.equal(await refundOf([...lostOne, ["/check_status", closed], ["/check_status", own]]), "closed");
  assert.equal(
    await refundOf([
      ["/check_status", closed],
      ["/refund", error(6)],
    ]),
    "failed",
  );
});

test("fiscal.settle waits with /refund until what is known under its key has ended", async () => {
  const running: Script = [
    ["/check_status", open],
    ["/check_status", error(44)],
    ["/check_status", closed],
  ];
  assert.equal(await refundOf([...running, ["/refund", ok({ docStatus: 1, documentID: 13 })]]), "closed");
});

test("fiscal: a refund whose start is answered with the sale's own document isn't closed by it", async () => {
  const world = over([
    ["/check_status", closed],
    ["/refund", closed],
    ["/check_status", closed],
    ["/check_status", ok({ docStatus: 1, documentID: 13 })],
  ]);
  const { result, data: told } = await world.client.fiscal.settle("refund", sale, world.options);
  assert.deepEqual([result, told?.documentID], ["closed", 13]);
  world.done();
});

test("fiscal: a refund that was lost isn't closed by the sale's own document, which was denied once before it", async () => {
  const world = over([
    ["/check_status", absent],
    ["/check_status", closed],
    ["/refund", lost],
    ...repeat(19, ["/check_status", closed]),
  ]);
  const { result } = await world.client.fiscal.settle("refund", sale, { ...world.options, windowMs: 20_000, intervalMs: 1000 });
  assert.equal(result, "unknown");
});

for (const operation of ["sale", "refund", "deposit"] as const) {
  test(`fiscal.settle makes a documentExtID for a ${operation} with a documentID, which is the service's to give, and asks by it alone`, async () => {
    const made = operation === "deposit" ? ok({ documentID: 101 }) : ok({ docStatus: 1, documentID: 101 });
    const world = over([[`/${operation}`, made]]);
    const body = { documentID: 0, amount: 150, items: [{ itemAmount: 150 }] };
    const settled = await world.client.fiscal.settle(operation, body, { ...world.options, windowMs: 20_000 });
    assert.deepEqual([settled.result, settled.data?.["documentID"], world.service.seen.length], ["closed", 101, 1]);
    const [sent] = world.service.seen;
    assert.equal(typeof sent?.body?.["documentExtID"], "string");
    const lostOnce = over([
      [`/${operation}`, lost],
      ["/check_status", closed],
    ]);
    const named = { ...body, documentExtID: "D-1" };
    await lostOnce.client.fiscal.settle(operation === "refund" ? "sale" : operation, named, lostOnce.options).catch(() => {});
    const asked = lostOnce.service.seen.filter(({ route }) => route === "/check_status");
    for (const each of asked) assert.deepEqual(each.body, { documentExtID: "D-1" });
  });
}
