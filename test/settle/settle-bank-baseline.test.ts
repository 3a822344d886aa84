import assert from "node:assert/strict";
import { test } from "node:test";
import { absent, absentBefore, absentTo30s, approved, body, data, reversed, settled } from "./bank-settling.ts";
import { error, lost, ok, over, repeat, type Script } from "./scripted.ts";

/** Tests src/settle/judge.ts, src/settle/proof.ts. */

for (const operation of ["confirm", "cancel"] as const) {
  const route = `/${operation}`;
  test(`bank.settle never resends ${route} after a lost start (rule 4), and believes "not found" once its time-out is over`, async () => {
    const { result, done } = await settled(operation, [...absentBefore, [route, lost], ...absentTo30s], 60_000);
    assert.equal(result, "declined");
    done();
  });
  test(`bank.settle finds a lost ${route} that begins just before the start's time-out of 30 s is over (Limits)`, async () => {
    const { result, done } = await settled(
      operation,
      [...absentBefore, [route, lost], ...absentTo30s.slice(1), ["/check", approved]],
      60_000,
    );
    assert.equal(result, "approved");
    done();
  });
  test(`bank.settle never says approved for ${route} by the data of the original`, async () => {
    const { result, done } = await settled(operation, [
      ["/check", approved],
      [route, lost],
      ...repeat(20, ["/check", approved]),
    ]);
    assert.equal(result, "unknown");
    done();
  });
  test(`bank.settle says approved for ${route} by data that differs from the original's`, async () => {
    const own = ok({ data: data("APPROVED", { txn_id: "8" }) });
    const { result, done } = await settled(operation, [
      ["/check", approved],
      [route, ok()],
      ["/check", ok()],
      ["/check", own],
    ]);
    assert.equal(result, "approved");
    done();
  });
  test(`bank.settle waits with ${route} until the original has ended`, async () => {
    const { result, done } = await settled(operation, [
      ["/check", ok()],
      ["/check", lost],
      ["/check", approved],
      [route, ok()],
      ["/check", reversed],
    ]);
    assert.equal(result, "reversed");
    done();
  });
  test(`bank.settle sends no ${route} when what the pay_id stands for can't be learned`, async () => {
    const { result, done } = await settled(operation, repeat(21, ["/check", error(-3)]));
    assert.equal(result, "not-sent");
    done();
  });
}

test("bank.settle takes the same rrn with another txn_id as another transaction, and print_data as no difference", async () => {
  const printed = ok({ data: data("APPROVED", { print_data: { copy: true } }) });
  const { result } = await settled("cancel", [["/check", approved], ["/cancel", ok()], ...repeat(20, ["/check", printed])]);
  assert.equal(result, "unknown");
});

test("bank.settle never takes the original for /cancel's own end that was denied once before it, in passing", async () => {
  const { result, done } = await settled("cancel", [
    ["/check", absent],
    ["/check", approved],
    ["/cancel", lost],
    ...repeat(19, ["/check", approved]),
  ]);
  assert.equal(result, "unknown");
  done();
});

test("bank.settle asks no baseline for a key that it made itself", async () => {
  const world = over([
    ["/cancel", ok()],
    ["/check", approved],
  ]);
  const { pay_id, ...unnamed } = body;
  assert.equal(pay_id, "P-1");
  const { result } = await world.client.bank.settle("cancel", unnamed, world.options);
  assert.equal(result, "approved");
  world.done();
});

test("bank.settle asks a baseline before /refund, which refers to an original as well, and resends it by the rule of /sale", async () => {
  const { result, done } = await settled("refund", [
    ...absentBefore,
    ["/refund", lost],
    ["/check", absent],
    ["/refund", ok()],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
  done();
});

test('bank.settle doesn\'t believe "not found" of a pay_id under which an original was found before', async () => {
  const { result, done } = await settled("cancel", [
    ["/check", approved],
    ["/cancel", lost],
    ...repeat(20, ["/check", absent]),
  ]);
  assert.equal(result, "unknown");
  done();
});

const told = (more: object = {}) => ({ txn_id: "7", status: "APPROVED", rrn: "77", ...more });

for (const [name, before, then, expected] of [
  ["another rrn under the same txn_id", told(), told({ rrn: "78" }), "unknown"],
  ["an rrn that only the later has", { txn_id: "7", status: "APPROVED" }, told(), "unknown"],
  ["a txn_id that only the later has", { status: "APPROVED", rrn: "77" }, told(), "unknown"],
  ["another rrn where one has no txn_id", { status: "APPROVED", rrn: "1" }, told(), "approved"],
  ["another txn_id", told(), told({ txn_id: "8" }), "approved"],
] as const) {
  test(`bank: ${name} than the baseline's makes /cancel ${expected}`, async () => {
    const asked = expected === "unknown" ? 20 : 1;
    const script: Script = [
      ["/check", ok({ data: before })],
      ["/cancel", ok()],
      ...repeat(asked, ["/check", ok({ data: then })]),
    ];
    const world = over(script);
    const options = { ...world.options, windowMs: 20_000, intervalMs: 1000 };
    assert.equal((await world.client.bank.settle("cancel", body, options)).result, expected);
    world.done();
  });
}
