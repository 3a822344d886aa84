import assert from "node:assert/strict";
import { test } from "node:test";
import { absent, closed, open, settled } from "./fiscal-settling.ts";
import { busy, error, lost, ok, repeat, type Script } from "./scripted.ts";

/** Tests src/settle/judge.ts. */

for (const operation of ["sale", "refund"] as const) {
  const route = `/${operation}`;

  test(`fiscal.settle prints once by /check_copy after code 15 from ${route} and docStatus 1`, async () => {
    const { result, service, data, done } = await settled(operation, [
      [route, error(15, { printError: 3 })],
      ["/check_status", open],
      ["/check_status", closed],
      ["/check_copy", ok()],
    ]);
    assert.equal(result, "closed");
    assert.equal(data?.docStatus, 1);
    assert.deepEqual(service.seen.at(-1)?.body, { documentID: 12 });
    done();
  });

  for (const [name, copy] of [
    ["failed", error(15)],
    ["was lost", lost],
  ] as const) {
    test(`fiscal.settle says unprinted when the copy of ${route} ${name}, and doesn't print again`, async () => {
      const { result, data, done } = await settled(operation, [
        [route, error(15)],
        ["/check_status", closed],
        ["/check_copy", copy],
      ]);
      assert.deepEqual([result, data?.documentID], ["unprinted", 12]);
      done();
    });
  }
}

test("fiscal.settle prints after a lost start when /check_status tells of code 15 or a printError", async () => {
  for (const told of [error(15, { docStatus: 1, documentID: "12" }), ok({ docStatus: 1, printError: 4, documentID: 12 })]) {
    const { result, service, done } = await settled("sale", [
      ["/sale", lost],
      ["/check_status", told],
      ["/check_copy", ok()],
    ]);
    assert.equal(result, "closed");
    assert.deepEqual(service.seen.at(-1)?.body, { documentID: 12 });
    done();
  }
});

test("fiscal.settle prints a document that a resent start finds closed, with a printError", async () => {
  const { result, done } = await settled("sale", [
    ["/sale", lost],
    ["/check_status", absent],
    ["/sale", ok({ docStatus: 1, documentID: 12, printError: 1 })],
    ["/check_status", closed],
    ["/check_copy", ok()],
  ]);
  assert.equal(result, "closed");
  done();
});

test("fiscal.settle says unprinted when there is no documentID to print by", async () => {
  const { result, done } = await settled("sale", [
    ["/sale", error(15)],
    ["/check_status", ok({ docStatus: 1 })],
  ]);
  assert.equal(result, "unprinted");
  done();
});

test("fiscal.settle tries the copy again only while it wasn't sent, and says unprinted at the window's end", async () => {
  const begin: Script = [
    ["/sale", error(15)],
    ["/check_status", closed],
  ];
  const once = await settled("sale", [...begin, ["/check_copy", busy], ["/check_copy", ok()]]);
  assert.equal(once.result, "closed");
  const never = await settled("sale", [...begin, ...repeat(5, ["/check_copy", busy])]);
  assert.equal(never.result, "unprinted");
  never.done();
});
