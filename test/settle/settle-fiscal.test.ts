import assert from "node:assert/strict";
import { test } from "node:test";
import { createClientOver } from "../../src/client/client.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { failedAnswer } from "../../src/settle/transport.ts";
import { absent, closed, goneTo30s, open, sale, settled } from "./fiscal-settling.ts";
import { error, lost, ok, over, repeat } from "./scripted.ts";

/** Tests src/settle/judge.ts. */

for (const operation of ["sale", "refund"] as const) {
  const route = `/${operation}`;

  test(`fiscal.settle says closed when ${route} answers docStatus 1, with or without a code`, async () => {
    for (const answer of [closed, ok({ docStatus: 1 }), ok({ docStatus: "1" })]) {
      const { result, done } = await settled(operation, [[route, answer]]);
      assert.equal(result, "closed");
      done();
    }
  });

  for (const [name, pending] of [
    ["docStatus 0", open],
    ["docStatus -1", ok({ docStatus: -1 })],
    ["no docStatus", ok()],
    ["code 44", error(44)],
    ["code 44 as text", error(44, { code: "44" })],
  ] as const) {
    test(`fiscal.settle polls /check_status and never resends after ${name} from ${route}`, async () => {
      const { result, service, done } = await settled(operation, [
        [route, pending],
        ["/check_status", error(44)],
        ["/check_status", ok({ docStatus: -1 })],
        ["/check_status", closed],
      ]);
      assert.equal(result, "closed");
      assert.deepEqual(service.seen[1]?.body, { documentExtID: "ORDER-1" });
      done();
    });
  }

  test(`fiscal.settle goes on asking when ${route} was accepted and then isn't found, and says unknown`, async () => {
    // Of a refund's 20 s two are over before it is sent.
    const asked = operation === "refund" ? 18 : 20;
    const { result, done } = await settled(operation, [[route, error(44)], ...repeat(asked, ["/check_status", absent])]);
    assert.equal(result, "unknown");
    done();
  });

  test(`fiscal.settle rebuilds the sign of ${route} once after code 1`, async () => {
    const again = await settled(operation, [
      [route, error(1)],
      [route, closed],
    ]);
    assert.equal(again.result, "closed");
    again.done();
    const twice = await settled(operation, [
      [route, error(1)],
      [route, error(1)],
    ]);
    assert.deepEqual([twice.result, twice.code], ["failed", 1]);
    twice.done();
  });

  test(`fiscal.settle rebuilds the sign of ${route} once when the bridge itself refuses it, before it is sent`, async () => {
    const refused = { ...error(1), outcome: "not-sent", httpStatus: 401 } as const;
    const again = await settled(operation, [
      [route, refused],
      [route, closed],
    ]);
    assert.equal(again.result, "closed");
    again.done();
    const twice = await settled(operation, repeat(2, [route, refused]));
    assert.equal(twice.code, 1);
    twice.done();
  });

  test(`fiscal.settle sends ${route} no second time when the bridge refuses it for good, without a code too`, async () => {
    const { result, done } = await settled(operation, [[route, { ...failedAnswer("not-sent", "malformed"), httpStatus: 400 }]]);
    assert.equal(result, "not-sent");
    done();
  });

  test(`fiscal.settle resends ${route} with the same key after code 5, three times at most, then asks`, async () => {
    const once = await settled(operation, [
      [route, error(5)],
      [route, closed],
    ]);
    assert.equal(once.result, "closed");
    assert.deepEqual(once.service.seen[0], once.service.seen[1]);
    const { result, code, done } = await settled(operation, [...repeat(4, [route, error(5)]), ...goneTo30s], 60_000);
    assert.deepEqual([result, code], ["failed", 5]);
    done();
  });

  for (const code of [2, 3, 6, 14]) {
    test(`fiscal.settle says failed when ${route} answers ${code}`, async () => {
      const { result, code: got, done } = await settled(operation, [[route, error(code)]]);
      assert.deepEqual([result, got], ["failed", code]);
      done();
    });
  }

  for (const code of [4, 7, 8, 9, 10, 11, 12, 13, 16, 23, 36]) {
    const isListed = code !== 16 && code !== 36;
    test(`fiscal.settle asks after code ${code} from ${route}, and believes "not found"${isListed ? "" : " after 30 s"}`, async () => {
      const gone = await settled(
        operation,
        [[route, error(code)], ...(isListed ? [["/check_status", absent] as const] : goneTo30s)],
        60_000,
      );
      assert.deepEqual([gone.result, gone.code], ["failed", code]);
      gone.done();
      assert.equal(
        (
          await settled(operation, [
            [route, error(code)],
            ["/check_status", closed],
          ])
        ).result,
        "closed",
      );
    });
  }

  test(`fiscal.settle asks first after a lost ${route}, and resends the same only when it isn't found`, async () => {
    const { result, service, clock, done } = await settled(operation, [
      [route, lost],
      ["/check_status", absent],
      [route, lost],
      ["/check_status", closed],
    ]);
    assert.equal(result, "closed");
    assert.deepEqual(service.seen[0], service.seen[2]);
    assert.deepEqual(clock.slept.slice(operation === "refund" ? 2 : 0), [1000, 1000]);
    done();
  });

  test(`fiscal.settle resends ${route} that is answered "not found" after a lost one`, async () => {
    const { result, done } = await settled(operation, [
      [route, lost],
      ["/check_status", absent],
      [route, absent],
      [route, closed],
    ]);
    assert.equal(result, "closed");
    done();
  });

  test(`fiscal.settle doesn't believe that ${route} failed after a lost one, until it isn't found`, async () => {
    const { result, done } = await settled(operation, [
      [route, lost],
      ["/check_status", absent],
      [route, error(6)],
      ["/check_status", closed],
    ]);
    assert.equal(result, "closed");
    done();
  });
}

test("fiscal.settle takes an answer that names another documentExtID for none", async () => {
  const other = ok({ docStatus: 1, documentExtID: "ORDER-2" });
  const { result, done } = await settled("sale", [
    ["/sale", other],
    ["/check_status", other],
    ["/check_status", closed],
  ]);
  assert.equal(result, "closed");
  done();
});

test("fiscal.settle knows its documentExtID in a number that lost its leading zeros", async () => {
  const world = over([["/sale", ok({ docStatus: 1, documentExtID: 7 })]]);
  const { result } = await world.client.fiscal.settle("sale", { ...sale, documentExtID: "007" }, world.options);
  assert.equal(result, "closed");
});

test("fiscal.settle looks the merchant's id up for each sending, so that a corrected one signs the second", async () => {
  const { service, options } = over([
    ["/sale", error(1)],
    ["/sale", closed],
  ]);
  const ids = ["WRONG", "RIGHT"];
  const client = createClientOver(service, { fiscal: { merchantId: () => ids.shift() ?? "" } });
  assert.equal((await client.fiscal.settle("sale", sale, options)).result, "closed");
  const [first, second] = service.bodies.map((body) => new URLSearchParams(body));
  assert.equal(first?.get("data"), second?.get("data"));
  assert.notEqual(first?.get("sign"), second?.get("sign"));
  assert.equal(second?.get("sign"), signOf(second?.get("data") ?? "", "RIGHT"));
});

test("fiscal.settle sends nothing and says so where there is no merchantId", async () => {
  const { service, options } = over([]);
  const { result, message } = await createClientOver(service).fiscal.settle("sale", sale, options);
  assert.equal(result, "not-sent");
  assert.match(message ?? "", /merchantId/);
  assert.equal(service.seen.length, 0);
});

test("fiscal: a refusal after code 5 isn't believed until /check_status says 9", async () => {
  for (const refusal of [6, 23]) {
    // The first delivery may be on its way behind a gateway.
    const { clock, ...world } = over([["/sale", error(5)], ["/sale", error(refusal)], ...goneTo30s]);
    const { result } = await world.client.fiscal.settle("sale", sale, { ...world.options, intervalMs: 1_000 });
    assert.equal(result, "failed");
    assert.ok(clock.ms >= 30_000);
    world.done();
  }
  const found = over([
    ["/sale", error(5)],
    ["/sale", error(6)],
    ["/check_status", closed],
  ]);
  assert.equal((await found.client.fiscal.settle("sale", sale, found.options)).result, "closed");
  found.done();
});

test("fiscal: codes that a document may stand behind are asked about, and followed while it is open", async () => {
  for (const code of [4, 7, 8, 10, 11, 12, 13, 23, 99]) {
    const world = over([
      ["/sale", error(code)],
      ["/check_status", error(44)],
      ["/check_status", ok({ docStatus: 0 })],
      ["/check_status", closed],
    ]);
    assert.equal((await world.client.fiscal.settle("sale", sale, world.options)).result, "closed");
    world.done();
  }
});

test("fiscal: a delivery that was lost may be on its way when its repetition is refused: 9 counts 30 s later", async () => {
  const world = over([["/sale", lost], ["/check_status", absent], ["/sale", error(23)], ...goneTo30s]);
  const { result } = await world.client.fiscal.settle("sale", sale, { ...world.options, intervalMs: 1_000 });
  assert.equal(result, "failed");
  assert.ok(world.clock.ms >= 30_000);
  world.done();
});

test("fiscal: the question before a refund that is answered about another document is asked again", async () => {
  const other = { documentExtID: "OTHER" };
  for (const answer of [error(9, other), ok({ docStatus: 1, documentID: 99, ...other })]) {
    const own = ok({ docStatus: 1, documentID: 5, documentExtID: "ORDER-1" });
    const world = over([
      ["/check_status", answer],
      ["/check_status", own],
      ["/refund", lost],
      ...repeat(20, ["/check_status", own]),
    ]);
    const options = { ...world.options, windowMs: 10_000, intervalMs: 1_000 };
    const { result } = await world.client.fiscal.settle("refund", sale, options);
    assert.equal(result, "unknown", "the sale's own document isn't the refund's");
  }
});
