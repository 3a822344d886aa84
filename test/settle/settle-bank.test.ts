import assert from "node:assert/strict";
import { test } from "node:test";
import { absent, absentTo30s, approved, body, data, declined, reversed, settled } from "./bank-settling.ts";
import { busy, error, lost, ok, over, repeat, wrong } from "./scripted.ts";

/** Tests src/settle/machine.ts. */

test("bank.settle polls /check by the same pay_id until data.status is final (rule 1)", async () => {
  const {
    result,
    data: got,
    service,
    done,
    clock,
  } = await settled("sale", [
    ["/sale", ok()],
    ["/check", ok()],
    ["/check", ok({ data: null })],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
  assert.equal(got?.rrn, "77");
  assert.ok(service.seen.every((seen) => seen.body["pay_id"] === "P-1"));
  assert.deepEqual(clock.slept, [1000, 1000, 1000]);
  done();
});

test("bank.settle waits 1 s growing to 2 s between questions where no interval is given (Limits)", async () => {
  const world = over([["/sale", ok()], ...repeat(6, ["/check", ok()]), ["/check", approved]]);
  await world.client.bank.settle("sale", body, world.options);
  assert.deepEqual(world.clock.slept, [1000, 1250, 1500, 1750, 2000, 2000, 2000]);
});

for (const [word, final, expected] of [
  ["ERROR", declined, "declined"],
  ["REVERSED", reversed, "reversed"],
] as const) {
  test(`bank.settle says ${expected} when /check ends with ${word}`, async () => {
    const { result, done } = await settled("sale", [
      ["/sale", ok()],
      ["/check", final],
    ]);
    assert.equal(result, expected);
    done();
  });
}

test("bank.settle gives the code, the message and the data of a declined operation", async () => {
  const {
    code,
    message,
    data: got,
  } = await settled("sale", [
    ["/sale", ok()],
    ["/check", declined],
  ]);
  assert.deepEqual([code, message, got?.status], [-20, "code -20", "ERROR"]);
});

test("bank.settle takes no APPROVED that comes with status error for an end", async () => {
  const { result, done } = await settled("sale", [
    ["/sale", ok()],
    ["/check", error(-3, { data: data("APPROVED") })],
    ["/check", declined],
  ]);
  assert.equal(result, "declined");
  done();
});

for (const code of [-29, -47, -16, -80, -100, -101]) {
  test(`bank.settle says declined when the start is refused with ${code}: nothing was begun`, async () => {
    const { result, code: got, done } = await settled("sale", [["/sale", error(code)]]);
    assert.deepEqual([result, got], ["declined", code]);
    done();
  });
}

for (const code of [-3, -20, -999]) {
  test(`bank.settle asks /check after a start that is refused with ${code}, which leaves it open`, async () => {
    const { result, done } = await settled("sale", [
      ["/sale", error(code)],
      ["/check", ok()],
      ["/check", approved],
    ]);
    assert.equal(result, "approved");
    done();
  });
}

test("bank.settle says declined with a gateway's -3 when /check knows no such operation until 30 s are over", async () => {
  const { result, code, done } = await settled("sale", [["/sale", error(-3)], ...absentTo30s], 60_000);
  assert.deepEqual([result, code], ["declined", -3]);
  done();
});

test("bank.settle sends what wasn't sent, waits longer each time, and says resent of none of it", async () => {
  const { result, clock, done, events } = await settled("sale", [
    ["/sale", busy],
    ["/sale", busy],
    ["/sale", ok()],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
  assert.deepEqual(clock.slept, [1000, 2000, 1000]);
  assert.deepEqual(
    events.map(({ type }) => type).filter((type) => type !== "waiting"),
    ["sent", "not sent", "sent", "not sent", "sent", "in progress", "asked", "final"],
  );
  done();
});

test("bank.settle honours Retry-After", async () => {
  const { clock } = await settled("sale", [
    ["/sale", { ...busy, retryAfterMs: 7000 }],
    ["/sale", ok()],
    ["/check", approved],
  ]);
  assert.deepEqual(clock.slept, [7000, 1000]);
});

test("bank.settle says not-sent when nothing was ever sent within the window", async () => {
  const { result, message, done } = await settled("sale", repeat(5, ["/sale", busy]));
  assert.deepEqual([result, message], ["not-sent", "the line is down"]);
  done();
});

test("bank.settle says not-sent at once when the request is turned away for good", async () => {
  const { result, done } = await settled("sale", [["/sale", wrong]]);
  assert.equal(result, "not-sent");
  done();
});

test("bank.settle asks again when /check itself is lost, turned away or fails", async () => {
  const { result, done } = await settled("sale", [
    ["/sale", ok()],
    ["/check", lost],
    ["/check", busy],
    ["/check", error(-3)],
    ["/check", wrong],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
  done();
});

test("bank.settle goes on asking when an accepted operation is not found, and says unknown", async () => {
  const { result, done } = await settled("sale", [["/sale", ok()], ...repeat(20, ["/check", absent])]);
  assert.equal(result, "unknown");
  done();
});

test("bank.settle makes a missing pay_id before the first event, and keeps it", async () => {
  const world = over([
    ["/sale", lost],
    ["/check", absent],
    ["/sale", ok()],
    ["/check", approved],
  ]);
  await world.client.bank.settle("sale", { amount: 1, currency_name: "AZN" }, world.options);
  const ids = new Set(world.service.seen.map((seen) => seen.body["pay_id"]));
  assert.equal(ids.size, 1);
  const [first] = world.events;
  assert.ok([...ids].every((id) => typeof id === "string" && first?.token.body.includes(id)));
});

test("bank.settle says unknown, not declined, when the answer's status is none of the contract's", async () => {
  const { result, done } = await settled("sale", [
    ["/sale", ok({ status: "IN_PROGRESS" })],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
  done();
});

test("bank: a success whose data.status is ERROR or REVERSED is no end", async () => {
  for (const status of ["ERROR", "REVERSED"]) {
    const world = over([["/sale", ok()], ...repeat(20, ["/check", ok({ data: data(status) })])]);
    const options = { ...world.options, windowMs: 20_000, intervalMs: 1000 };
    assert.equal((await world.client.bank.settle("sale", body, options)).result, "unknown");
    world.done();
  }
});
