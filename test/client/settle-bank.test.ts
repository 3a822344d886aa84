import assert from "node:assert/strict";
import { test } from "node:test";
import { busy, error, lost, ok, over, type Script, wrong } from "./scripted.ts";

const body = { pay_id: "P-1", amount: 1500, currency_name: "AZN" };
const data = (status: string, more: object = {}) => ({ txn_id: "7", status, rrn: "77", auth: "1", ...more });
const approved = ok({ data: data("APPROVED") });
const declined = error(-20, { data: data("ERROR") });
const reversed = error(-1, { data: data("REVERSED") });
const absent = error(-15);
const repeat = (times: number, ...steps: Script): Script => Array.from({ length: times }, () => steps).flat();

async function settled(
  operation: "sale" | "preauth" | "confirm" | "cancel" | "refund" | "xreport" | "closeShift",
  script: Script,
) {
  const world = over(script);
  const result = await world.client.bank.settle(operation, body, { ...world.options, windowMs: 20_000, intervalMs: 1000 });
  return { ...world, ...result };
}

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
  test(`bank.settle says declined with the start's own code ${code} when /check then knows no such operation three times`, async () => {
    const { result, code: got, done } = await settled("sale", [["/sale", error(code)], ...repeat(3, ["/check", absent])]);
    assert.deepEqual([result, got], ["declined", code]);
    done();
  });
}

test("bank.settle sends again what wasn't sent, and waits longer each time", async () => {
  const { result, clock, done, events } = await settled("sale", [
    ["/sale", busy],
    ["/sale", busy],
    ["/sale", ok()],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
  assert.deepEqual(clock.slept, [1000, 2000, 1000]);
  assert.deepEqual(
    events.filter(({ type }) => type === "sent" || type === "resent").map(({ type }) => type),
    ["sent", "resent", "resent"],
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

test("bank.settle says declined when nothing was ever sent within the window", async () => {
  const { result, message, done } = await settled("sale", repeat(5, ["/sale", busy]));
  assert.deepEqual([result, message], ["declined", "the line is down"]);
  done();
});

test("bank.settle says declined at once when the request is turned away for good", async () => {
  const { result, done } = await settled("sale", [["/sale", wrong]]);
  assert.equal(result, "declined");
  done();
});

test("bank.settle asks first after a lost start, and polls when it runs (rule 3)", async () => {
  const { result, done } = await settled("sale", [
    ["/sale", lost],
    ["/check", ok()],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
  done();
});

for (const operation of ["sale", "preauth", "xreport", "closeShift"] as const) {
  const route = operation === "closeShift" ? "/close-shift" : `/${operation}`;
  test(`bank.settle resends ${route} with the same pay_id when /check knows nothing of it (rule 4)`, async () => {
    const { result, service, done } = await settled(operation, [
      [route, lost],
      ["/check", absent],
      [route, ok()],
      ["/check", approved],
    ]);
    assert.equal(result, "approved");
    assert.equal(service.bodies[0], service.bodies[2]);
    done();
  });
}

test("bank.settle resends three times at most, then only asks, and says unknown at the window's end", async () => {
  const script: Script = [
    ["/sale", lost],
    ...repeat(3, ["/check", absent], ["/sale", lost]),
    ...repeat(17, ["/check", absent]),
  ];
  const { result, done } = await settled("sale", script);
  assert.equal(result, "unknown");
  done();
});

test("bank.settle doesn't believe a refusal of a resent start: the first may have arrived", async () => {
  const { result, done } = await settled("sale", [
    ["/sale", lost],
    ["/check", absent],
    ["/sale", error(-29)],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
  done();
});

for (const operation of ["confirm", "cancel"] as const) {
  const route = `/${operation}`;
  test(`bank.settle never resends ${route} after a lost start (rule 4), and believes the third "not found" in a row`, async () => {
    const { result, done } = await settled(operation, [["/check", absent], [route, lost], ...repeat(3, ["/check", absent])]);
    assert.equal(result, "declined");
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
    assert.equal(result, "declined");
    done();
  });
}

test("bank.settle takes the same rrn with another txn_id as another transaction, and print_data as no difference", async () => {
  const printed = ok({ data: data("APPROVED", { print_data: { copy: true } }) });
  const { result } = await settled("cancel", [["/check", approved], ["/cancel", ok()], ...repeat(20, ["/check", printed])]);
  assert.equal(result, "unknown");
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
    ["/check", absent],
    ["/refund", lost],
    ["/check", absent],
    ["/refund", ok()],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
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

test("bank.settle says unknown when a resending after a lost start isn't let through any more", async () => {
  const { result, done } = await settled("sale", [["/sale", lost], ["/check", absent], ...repeat(5, ["/sale", busy])]);
  assert.equal(result, "unknown");
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

test('bank.settle counts "not found" in a row: another answer between begins anew', async () => {
  const { result, done } = await settled("confirm", [
    ["/check", absent],
    ["/confirm", lost],
    ...repeat(2, ["/check", absent]),
    ["/check", error(-3)],
    ...repeat(3, ["/check", absent]),
  ]);
  assert.equal(result, "declined");
  done();
});
