import assert from "node:assert/strict";
import { test } from "node:test";
import { createClientOver } from "../../src/client/client.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { busy, error, lost, ok, over, type Script } from "./scripted.ts";

const sale = { documentExtID: "ORDER-1", items: [{ itemName: "Bread", itemAmount: 150 }] };
const cash = { documentExtID: "CASH-1", amount: 500 };
const closed = ok({ code: 0, documentID: 12, docStatus: 1 });
const open = ok({ code: 0, documentID: 12, docStatus: 0 });
const absent = error(9);
const repeat = (times: number, ...steps: Script): Script => Array.from({ length: times }, () => steps).flat();

/** A refund asks first what is known under its key: nothing here, unless a test says otherwise. */
async function settled(operation: "sale" | "refund" | "deposit" | "withdraw", script: Script) {
  const first: Script = operation === "refund" ? [["/check_status", absent]] : [];
  const world = over([...first, ...script]);
  const options = { ...world.options, windowMs: 20_000, intervalMs: 1000 };
  const result = await (operation === "sale" || operation === "refund"
    ? world.client.fiscal.settle(operation, sale, options)
    : world.client.fiscal.settle(operation, cash, options));
  return { ...world, ...result, service: { seen: world.service.seen.slice(first.length) } };
}

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
    const { result, done } = await settled(operation, [[route, error(44)], ...repeat(20, ["/check_status", absent])]);
    assert.equal(result, "unknown");
    done();
  });

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

  test(`fiscal.settle resends ${route} with the same key after code 5, three times at most, then asks`, async () => {
    const once = await settled(operation, [
      [route, error(5)],
      [route, closed],
    ]);
    assert.equal(once.result, "closed");
    assert.deepEqual(once.service.seen[0], once.service.seen[1]);
    const { result, code, done } = await settled(operation, [...repeat(4, [route, error(5)]), ["/check_status", absent]]);
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
    test(`fiscal.settle asks after code ${code} from ${route}, and believes "not found"`, async () => {
      const gone = await settled(operation, [
        [route, error(code)],
        ["/check_status", absent],
      ]);
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
    assert.deepEqual(clock.slept, [1000, 1000]);
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

test("fiscal.settle sends nothing and says failed where there is no merchantId", async () => {
  const { service, options } = over([]);
  const { result, message } = await createClientOver(service).fiscal.settle("sale", sale, options);
  assert.equal(result, "failed");
  assert.match(message ?? "", /merchantId/);
  assert.equal(service.seen.length, 0);
});
