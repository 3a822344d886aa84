import assert from "node:assert/strict";
import { test } from "node:test";
import { absent, approved, body, data, declined, reversed, settled } from "./bank-settling.ts";
import { busy, error, lost, ok, over, repeat, scriptOf, wrong } from "./scripted.ts";

/** Tests src/settle/judge.ts. */

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

const words = {
  ...{ ok: ok(), approved, declined, reversed, lost, busy, wrong },
  isApproved: error(-3, { data: data("APPROVED") }),
  odd: ok({ status: "IN_PROGRESS" }),
};

for (const [what, script, expected, code] of [
  ["the end ERROR", "sale ok, check declined", "declined", -20],
  ["the end REVERSED", "sale ok, check reversed", "reversed", -1],
  ["APPROVED with status error, which is no end", "sale ok, check isApproved, check declined", "declined", -20],
  ["a status that is none of the contract's", "sale odd, check approved", "approved"],
  ...([-29, -47, -16, -80, -100, -101] as const).map(
    (refusal) => [`${refusal}: nothing was begun`, `sale ${refusal}`, "declined", refusal] as const,
  ),
  ...([-3, -20, -999] as const).map(
    (open) => [`${open}, which leaves it open`, `sale ${open}, check ok, check approved`, "approved"] as const,
  ),
  ["a gateway's -3 and not found until 30 s are over", "sale -3, check -15 x32", "declined", -3],
  ["a request that is turned away for good", "sale wrong", "not-sent"],
  ["/check lost, turned away or failed", "sale ok, check lost, check busy, check -3, check wrong, check approved", "approved"],
  ["an accepted one that is not found", "sale ok, check -15 x60", "unknown", -15],
] as const) {
  test(`bank.settle after ${what}: ${expected}`, async () => {
    const ended = await settled("sale", scriptOf(script, words), 60_000);
    assert.deepEqual([ended.result, ended.code], [expected, code]);
    ended.done();
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

test("bank: a success whose data.status is ERROR or REVERSED is no end", async () => {
  for (const status of ["ERROR", "REVERSED"]) {
    const world = over([["/sale", ok()], ...repeat(20, ["/check", ok({ data: data(status) })])]);
    const options = { ...world.options, windowMs: 20_000, intervalMs: 1000 };
    assert.equal((await world.client.bank.settle("sale", body, options)).result, "unknown");
    world.done();
  }
});
