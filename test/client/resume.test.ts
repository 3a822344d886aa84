import assert from "node:assert/strict";
import { test } from "node:test";
import type { SettleEvent } from "../../src/client/settle-types.ts";
import { readToken } from "../../src/client/token.ts";
import { areFacts, type Fact } from "../../src/settle/fact.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import {
  absent,
  absentBefore,
  absentFrom0To30s,
  approved,
  body,
  busy,
  closed,
  error,
  kept,
  knownBy,
  lost,
  merchantId,
  ok,
  over,
  repeat,
  type Script,
  sale,
  tokenAt,
  wrong,
} from "./scripted.ts";

/** Tests src/client/settle.ts, src/client/token.ts. */

/** The token of a cancel, before which its key is asked about. */
const cancelAt = (script: Script | string, type: SettleEvent["type"]) =>
  tokenAt(script, type, ({ bank }, options) => bank.settle("cancel", body, options));

test("a token holds the body to the letter, big integers too, and no merchant's id", async () => {
  const world = over("sale closed");
  const amount = 9007199254740993n;
  const { token } = await world.client.fiscal.settle("sale", { ...sale, items: [{ itemAmount: amount }] }, world.options);
  const text = JSON.stringify(token);
  assert.ok(!text.includes(merchantId));
  assert.ok(token.body.includes("9007199254740993"));
  assert.deepEqual(kept(token), JSON.parse(text));
  assert.deepEqual(readToken(kept(token)).token, kept(token));
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
    const world = over("check ok, check approved");
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
    const world = over("check -15, sale ok, check approved");
    assert.equal((await world.client.resume(token, world.options)).result, "approved");
    assert.equal(world.service.bodies[1], readToken(token).token.body);
    assert.deepEqual(
      world.events.map(({ type }) => type).filter((type) => type !== "waiting"),
      ["asked", "resent", "in progress", "asked", "final"],
    );
    world.done();
  });
}

test("resume() doesn't resend more often than settle() would have, over all processes", async () => {
  let token: unknown = await tokenAt("sale lost", "waiting");
  let sent = 1;
  for (let process = 0; process < 6; process++) {
    const world = over([["/check", absent], ["/sale", lost], ...repeat(30, ["/check", absent])]);
    const settled = await world.client.resume(token, { ...world.options, windowMs: 10_000 });
    sent += world.service.seen.filter(({ route }) => route === "/sale").length;
    token = kept(settled.token);
    assert.equal(settled.result, "unknown");
  }
  assert.equal(sent, 4);
});

test("resume() says failed for a start that was answered with an error and then isn't found, with the start's code", async () => {
  const token = await tokenAt("sale -3", "waiting");
  const world = over(absentFrom0To30s);
  const { result, code } = await world.client.resume(token, { ...world.options, intervalMs: 1000 });
  assert.deepEqual([result, code], ["failed", -3]);
  world.done();
});

test('resume() counts the 30 s in which "not found" proves nothing anew: no clock outlives its process', async () => {
  const script: Script = [...absentBefore, ["/cancel", lost], ...repeat(29, ["/check", absent])];
  const first = over(script);
  const gone = new AbortController();
  const { send } = first.service;
  first.service.send = async (request) => {
    if (first.service.seen.length === script.length - 1) gone.abort();
    return send.call(first.service, request);
  };
  const options = { clock: first.clock, signal: gone.signal, intervalMs: 1000 };
  const { result, token } = await first.client.bank.settle("cancel", body, options);
  assert.deepEqual([result, knownBy(token).nones], ["unknown", 0]);
  for (const [answers, expected] of [
    [absentFrom0To30s, "failed"],
    [[...absentFrom0To30s.slice(1), ["/check", approved]], "approved"],
  ] as const) {
    const world = over(answers);
    assert.equal((await world.client.resume(kept(token), { ...world.options, intervalMs: 1000 })).result, expected);
    world.done();
  }
});

const baselines = [
  ["before its first question", [], "asked"],
  ["while it waits to ask again", [["/check", lost]], "waiting"],
] as const;

for (const [name, script, at] of baselines) {
  test(`resume() of /cancel ${name} knows that nothing was sent: it asks, sends, and follows it to its end`, async () => {
    const token = await cancelAt(script, at);
    const world = over([
      ["/check", approved],
      ["/cancel", ok()],
      ["/check", ok({ data: { status: "REVERSED", txn_id: "7" } })],
      ["/check", error(-1, { data: { status: "REVERSED", txn_id: "7" } })],
    ]);
    assert.equal((await world.client.resume(token, world.options)).result, "reversed");
    assert.deepEqual(world.service.seen[1]?.body, body);
    assert.deepEqual(
      world.events.map(({ type }) => type).filter((type) => !["waiting", "in progress"].includes(type)),
      ["asked", "sent", "asked", "asked", "final"],
    );
    world.done();
  });
}

test("resume() of /cancel that has its baseline doesn't send when its token can't be stored, and rejects with the reason", async () => {
  const token = await cancelAt([], "asked");
  const world = over("check approved");
  const full = new Error("disk full");
  const onProgress = ({ type }: SettleEvent) => {
    if (type === "sent") throw full;
  };
  await assert.rejects(world.client.resume(token, { clock: world.clock, onProgress }), full);
  world.done();
});

test('resume() never sends /cancel again by the token that was given with "sent", nor by any later one', async () => {
  const first: Script = [...absentBefore, ["/cancel", lost], ["/check", error(-3)]];
  const world = over(first);
  await world.client.bank.settle("cancel", body, { ...world.options, windowMs: 3_500, intervalMs: 1000 });
  world.done();
  const sent = world.events.findIndex(({ type }) => type === "sent");
  assertMapped(world.events, [0, 0, 0, 0, 0, 1, 1, 1, 1], ({ token }) => knownBy(token).starts);
  for (const { token } of world.events.slice(sent)) {
    const again = over(absentFrom0To30s);
    assert.equal((await again.client.resume(kept(token), { ...again.options, intervalMs: 1000 })).result, "failed");
    again.done();
  }
});

/** Ends in nothing, as settle() tells it. */
async function endedInNothing(
  script: Script | string,
  options: { readonly signal?: AbortSignal; readonly askOnly?: AbortSignal },
) {
  const world = over(script);
  const settled = await world.client.bank.settle("cancel", body, { ...world.options, ...options, windowMs: 5_000 });
  world.done();
  assert.equal(settled.result, "not-sent");
  assert.deepEqual(world.events.at(-1)?.token ?? settled.token, settled.token);
  return settled;
}

for (const [name, script, options, words] of [
  ["the window's end", [...absentBefore, ...repeat(2, ["/cancel", busy])], {}, "the line is down"],
  ["the end of a baseline that never came", repeat(3, ["/check", busy]), {}, "the line is down"],
  ["a refusal for good", [...absentBefore, ["/cancel", wrong]], {}, "mend it"],
  ["a refusal of its baseline", [["/check", error(-29)]], {}, "code -29"],
  ["its caller's leaving", [], { signal: AbortSignal.abort() }, "it was stopped before it was sent"],
  ["a stop", [], { askOnly: AbortSignal.abort() }, "it was stopped before it was sent"],
] as const) {
  test(`resume() of an operation that ended unsent by ${name} sends and asks nothing, and says so`, async () => {
    const { token, message } = await endedInNothing(script, options);
    assert.deepEqual([knownBy(token).end, message], ["not-sent", words]);
    for (let times = 0; times < 2; times++) {
      const world = over([]);
      const again = await world.client.resume(kept(token), world.options);
      assert.deepEqual([again.result, again.message, again.steps], ["not-sent", `nothing was sent: ${words}`, []]);
      assert.deepEqual([again.token, world.service.seen], [token, []]);
      assertMapped(world.events, ["final"], ({ type }) => type);
    }
  });
}

test("resume() of a start that the service refused never sends it again: failed, with the start's code", async () => {
  const first = over("sale -47");
  const { result, token } = await first.client.bank.settle("sale", body, first.options);
  assert.equal(result, "failed");
  const world = over("check -15");
  const again = await world.client.resume(kept(token), { ...world.options, intervalMs: 1000 });
  assert.deepEqual([again.result, again.code], ["failed", -47]);
  world.done();
});

/** A token of an operation that may have been sent, and whose baseline isn't known. */
async function lostBaseline(): Promise<unknown> {
  const { token } = readToken(await cancelAt([], "asked"));
  return kept({ ...token, facts: [{ is: "sent", atMs: 1 }] });
}

for (const [what, first] of [
  ["", approved],
  [" that runs under its pay_id", ok()],
] as const) {
  test(`resume() of /cancel without a baseline takes nothing for its own${what}, and doesn't resend`, async () => {
    const token = await lostBaseline();
    const world = over([["/check", first], ...repeat(10, ["/check", approved])]);
    const options = { ...world.options, windowMs: 10_000, intervalMs: 1000 };
    assert.equal((await world.client.resume(token, options)).result, "unknown");
    world.done();
  });
}

test("resume() of /cancel with a baseline takes what differs from it for its own", async () => {
  const token = await cancelAt("check approved", "sent");
  const own = ok({ data: { status: "APPROVED", txn_id: "8" } });
  const world = over([
    ["/check", approved],
    ["/check", own],
  ]);
  assert.equal((await world.client.resume(token, world.options)).result, "approved");
  world.done();
});

test("resume() of a document whose copy was being printed doesn't print again: unprinted", async () => {
  const script: Script = [
    ["/sale", error(15)],
    ["/check_status", closed],
  ];
  const token = await tokenAt(script, "printing", ({ fiscal }, options) => fiscal.settle("sale", sale, options));
  const second = over("check_status closed");
  const { result, data } = await second.client.resume(token, second.options);
  assert.deepEqual([result, data?.["documentID"]], ["unprinted", 12]);
  second.done();
});

test("resume() waits while it is turned away", async () => {
  const token = await tokenAt("sale ok", "in progress");
  const world = over("check busy, check approved");
  assert.equal((await world.client.resume(token, world.options)).result, "approved");
  assert.deepEqual(world.clock.slept, [1000]);
});

for (const [name, change, words] of [
  ["another version", { v: 1 }, /its v is 1/],
  ["a route of Object's own", { route: "__proto__" }, /no operation/],
] as const) {
  test(`resume() rejects ${name}, says what is wrong, and sends nothing`, async () => {
    const { client, service } = over([]);
    const token = { v: 2, service: "bank", route: "/sale", body: "{}", madeMs: 1, facts: [], ...change };
    await assert.rejects(client.resume(token), { name: "TypeError", message: words });
    assert.equal(service.seen.length, 0);
  });
}

/** Facts of every kind, each of which may be spoilt in each of its fields. */
const facts: readonly Fact[] = [
  { is: "told", atMs: 1, said: { says: "none", code: -15, message: "none" }, name: "T-1" },
  { is: "sent", atMs: 2, before: { txn_id: "7" } },
  { is: "answered", atMs: 3, said: { says: "end", end: "approved", ids: { txn_id: "8" }, unprinted: true, name: "T-1" } },
  { is: "unsent", atMs: 4, passing: false, isSign: true, code: 1, message: "mend it" },
  { is: "copied", atMs: 5, ok: true },
  { is: "word", atMs: 6, word: "pending", isGuarded: true, trans: "T-1" },
  { is: "ended", atMs: 7, end: "approved" },
  { is: "resumed", atMs: 8 },
];

test("areFacts() takes facts of each kind, and none in which a field was spoilt", () => {
  assert.ok(areFacts(JSON.parse(JSON.stringify(facts))));
  for (const fact of facts)
    for (const [name, value] of Object.entries(fact)) {
      assert.ok(!areFacts([{ ...fact, [name]: [] }]), `${fact.is}: ${name}`);
      if (typeof value !== "object") continue;
      for (const field of Object.keys(value)) assert.ok(!areFacts([{ ...fact, [name]: { ...value, [field]: [] } }]), field);
    }
  for (const wrong of [{}, null, "facts", [1], [{ is: "sold", atMs: 1 }], [{ is: "sent" }]]) assert.ok(!areFacts(wrong));
});

const stateOf = (status: "APPROVED" | "REVERSED", txn_id?: string) =>
  status === "APPROVED" ? ok({ data: { status, txn_id } }) : error(-1, { data: { status, txn_id } });
const document = (documentID: number, more: object = {}) => ok({ docStatus: 1, documentID, ...more });

const deposit = ["deposit", [["/deposit", ok({ documentID: 12, docStatus: 1 })]], "closed"] as const;
const payment = [
  "sale",
  [
    ["/sale", ok()],
    ["/check", stateOf("APPROVED", "7")],
  ],
  "approved",
] as const;

for (const [what, [path, script, end], said, isShown] of [
  ["the same document", deposit, document(12), true],
  ["another document, as a refund under its number", deposit, document(13), false],
  ["another document without its print", deposit, error(15, { docStatus: 1, documentID: 13, printError: 3 }), false],
  ["there is none any more", deposit, error(9), false],
  ["no answer", deposit, lost, false],
  ["the same transaction", payment, stateOf("APPROVED", "7"), true],
  ["another transaction, as a confirm under its key", payment, stateOf("APPROVED", "8"), false],
  ["its reversal, by a cancel since", payment, stateOf("REVERSED", "7"), false],
  ["a cancel under its key that has failed since", payment, error(-20, { data: { status: "ERROR", txn_id: "9" } }), false],
] as const) {
  test(`resume() of what was ${end} says so again, asks once, and is told of ${what}: ${isShown ? "that is" : "nothing is"} shown`, async () => {
    const first = over(script);
    const body = { documentExtID: "D-1", pay_id: "P-1", amount: 100 };
    const { fiscal, bank } = first.client;
    const ended = await (path === "deposit"
      ? fiscal.settle(path, body, first.options)
      : bank.settle(path, { ...body, currency_name: "AZN" }, first.options));
    assert.equal(ended.result, end);
    const again = over([[path === "deposit" ? "/check_status" : "/check", said]]);
    const { result, data } = await again.client.resume(kept(ended.token), again.options);
    again.done();
    assert.deepEqual([result, data !== undefined], [end, isShown]);
  });
}

test("resume() of what came to nothing is told that it goes on, and follows it to its end", async () => {
  const first = over("sale 10, check_status 9");
  const failed = await first.client.fiscal.settle("sale", sale, first.options);
  assert.equal(failed.result, "failed");
  const again = over([
    ["/check_status", error(44)],
    ["/check_status", document(12)],
  ]);
  assert.equal((await again.client.resume(kept(failed.token), again.options)).result, "closed");
  again.done();
});

for (const [which, start] of [
  ["lost", lost],
  ["refused by an error that leaves it open", error(-3)],
] as const) {
  test(`resume() of a start that was ${which} more than a day ago sends nothing, and "there is none" proves nothing: the batch may be closed`, async () => {
    const { token: read } = readToken(kept(await tokenAt([["/sale", start]], "waiting")));
    const old = { ...read, madeMs: read.madeMs - 86_400_000 };
    const later = over(repeat(60, ["/check", absent]));
    assert.equal((await later.client.resume(kept(old), { ...later.options, windowMs: 60_000 })).result, "unknown");
    assert.ok(later.service.seen.every(({ route }) => route === "/check"));
    const found = over("check approved");
    assert.equal((await found.client.resume(kept(old), found.options)).result, "approved", "what it has, it says");
  });
}
