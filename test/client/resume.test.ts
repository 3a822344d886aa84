import assert from "node:assert/strict";
import { test } from "node:test";
import type { SettleEvent } from "../../src/client/settled.ts";
import { readToken } from "../../src/client/token.ts";
import { absentFrom0To30s } from "./bank-settling.ts";
import { busy, error, kept, lost, merchantId, ok, over, type Script } from "./scripted.ts";

const body = { pay_id: "P-1", amount: 1500, currency_name: "AZN" };
const sale = { documentExtID: "ORDER-1", items: [{ itemAmount: 150 }] };
const approved = ok({ data: { status: "APPROVED", txn_id: "7" } });
const closed = ok({ docStatus: 1, documentID: 12 });
const absent = error(-15);

/** Follows until an event of a type, and gives the token it came with, as if the process had died there. */
async function tokenAt(script: Script, type: SettleEvent["type"], operation: "sale" | "cancel" = "sale"): Promise<unknown> {
  const world = over(script);
  const gone = new AbortController();
  let token: unknown;
  await world.client.bank.settle(operation, body, {
    clock: world.clock,
    signal: gone.signal,
    onProgress: (event) => {
      if (event.type !== type || token !== undefined) return;
      token = kept(event.token);
      gone.abort();
    },
  });
  assert.notEqual(token, undefined);
  return token;
}

test("a token holds the body to the letter, big integers too, and no merchant's id", async () => {
  const world = over([["/sale", closed]]);
  const amount = 9007199254740993n;
  const { token } = await world.client.fiscal.settle("sale", { ...sale, items: [{ itemAmount: amount }] }, world.options);
  const text = JSON.stringify(token);
  assert.ok(!text.includes(merchantId));
  assert.ok(token.body.includes("9007199254740993"));
  assert.deepEqual(kept(token), JSON.parse(text));
  assert.deepEqual(readToken(kept(token)).token.known, { ...token.known });
});

const lostAndAbsent: Script = [
  ["/sale", lost],
  ["/check", absent],
];

for (const [name, script, at] of [
  ["the first event", [], "sent"],
  ["a lost start", [["/sale", lost]], "waiting"],
  ["the question", [["/sale", lost]], "asked"],
  ["the resending", lostAndAbsent, "resent"],
  ["acceptance", [["/sale", ok()]], "in progress"],
] as const) {
  test(`resume() after ${name} asks first, and never sends blindly`, async () => {
    const token = await tokenAt(script, at);
    const world = over([
      ["/check", ok()],
      ["/check", approved],
    ]);
    assert.equal((await world.client.resume(token, world.options)).result, "approved");
    world.done();
  });
}

for (const [name, script, at] of [
  ["the first event", [], "sent"],
  ["a lost start", [["/sale", lost]], "waiting"],
  ["the resending", lostAndAbsent, "resent"],
] as const) {
  test(`resume() after ${name} resends the same, with the same key, only when it isn't found`, async () => {
    const token = await tokenAt(script, at);
    const world = over([
      ["/check", absent],
      ["/sale", ok()],
      ["/check", approved],
    ]);
    assert.equal((await world.client.resume(token, world.options)).result, "approved");
    assert.equal(world.service.bodies[1], readToken(token).token.body);
    world.done();
  });
}

test("resume() doesn't resend more often than settle() would have, over all processes", async () => {
  let token = await tokenAt([["/sale", lost]], "waiting");
  let sent = 1;
  for (let process = 0; process < 6; process++) {
    const world = over([["/check", absent], ["/sale", lost], ...Array.from({ length: 30 }, () => ["/check", absent] as const)]);
    const settled = await world.client.resume(token, { ...world.options, windowMs: 10_000 });
    sent += world.service.seen.filter(({ route }) => route === "/sale").length;
    token = kept(settled.token);
    assert.equal(settled.result, "unknown");
  }
  assert.equal(sent, 4);
});

test("resume() says declined for a start that was refused and then isn't found, with the start's code", async () => {
  const token = await tokenAt([["/sale", error(-3)]], "waiting");
  const world = over(absentFrom0To30s);
  const { result, code } = await world.client.resume(token, { ...world.options, intervalMs: 1000 });
  assert.deepEqual([result, code], ["declined", -3]);
  world.done();
});

test("resume() of /cancel without a baseline takes nothing for its own, and doesn't resend", async () => {
  const token = await tokenAt([], "asked", "cancel");
  const world = over(Array.from({ length: 11 }, () => ["/check", approved] as const));
  const options = { ...world.options, windowMs: 10_000, intervalMs: 1000 };
  assert.equal((await world.client.resume(token, options)).result, "unknown");
  world.done();
});

test("resume() of /cancel without a baseline takes nothing for its own that runs under its pay_id either", async () => {
  const token = await tokenAt([], "asked", "cancel");
  const world = over([["/check", ok()], ...Array.from({ length: 10 }, () => ["/check", approved] as const)]);
  const options = { ...world.options, windowMs: 10_000, intervalMs: 1000 };
  assert.equal((await world.client.resume(token, options)).result, "unknown");
  world.done();
});

test("resume() of /cancel with a baseline takes what differs from it for its own", async () => {
  const token = await tokenAt([["/check", approved]], "sent", "cancel");
  const own = ok({ data: { status: "APPROVED", txn_id: "8" } });
  const world = over([
    ["/check", approved],
    ["/check", own],
  ]);
  assert.equal((await world.client.resume(token, world.options)).result, "approved");
  world.done();
});

test("resume() of a document whose copy was being printed doesn't print again: unprinted", async () => {
  const first = over([
    ["/sale", error(15)],
    ["/check_status", closed],
  ]);
  const gone = new AbortController();
  let token: unknown;
  await first.client.fiscal.settle("sale", sale, {
    clock: first.clock,
    signal: gone.signal,
    onProgress: (event) => {
      if (event.type !== "printing") return;
      token = kept(event.token);
      gone.abort();
    },
  });
  const second = over([["/check_status", closed]]);
  const { result, data } = await second.client.resume(token, second.options);
  assert.deepEqual([result, data?.["documentID"]], ["unprinted", 12]);
  second.done();
});

test("resume() waits while it is turned away", async () => {
  const token = await tokenAt([["/sale", ok()]], "in progress");
  const world = over([
    ["/check", busy],
    ["/check", approved],
  ]);
  assert.equal((await world.client.resume(token, world.options)).result, "approved");
  assert.deepEqual(world.clock.slept, [1000]);
});

const good = { v: 1, service: "bank", route: "/sale", body: "{}", known: {} };
for (const [name, value, words] of [
  ["nothing", undefined, /is no object/],
  ["its text", JSON.stringify(good), /parsed where it was kept as text/],
  ["another version", { ...good, v: 2 }, /has v 2/],
  ["no service", { ...good, service: "cash" }, /no service cash/],
  ["no operation", { ...good, route: "/terminals" }, /no operation \/terminals/],
  ["a route of Object's own", { ...good, route: "__proto__" }, /no operation/],
  ["a broken body", { ...good, body: "{" }, /body/],
  ["no phase", good, /phase/],
] as const) {
  test(`resume() rejects ${name}, and says what is wrong`, async () => {
    const { client, service } = over([]);
    await assert.rejects(client.resume(value), (thrown) => thrown instanceof TypeError && words.test(thrown.message));
    assert.equal(service.seen.length, 0);
  });
}

test("resume() rejects a token in which any field of what is known was spoilt", async () => {
  const world = over([
    ["/sale", ok()],
    ["/check", approved],
  ]);
  const { known, ...rest } = (await world.client.bank.settle("sale", body, world.options)).token;
  for (const field of [
    "phase",
    "doubt",
    "baseline",
    "resends",
    "signedAgain",
    "absents",
    "learned",
    "learnedProven",
    "copied",
  ]) {
    const spoilt = { ...rest, known: { ...known, [field]: [] } };
    await assert.rejects(over([]).client.resume(spoilt), TypeError, field);
  }
});
