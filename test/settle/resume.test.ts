import assert from "node:assert/strict";
import { test } from "node:test";
import { readToken } from "../../src/settle/token.ts";
import type { SettleEvent } from "../../src/settle/types.ts";
import { absentBefore, absentFrom0To30s } from "./bank-settling.ts";
import { busy, error, kept, lost, merchantId, ok, over, repeat, type Script, wrong } from "./scripted.ts";

/** Tests src/settle/settle.ts, src/settle/token.ts. */

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
    assert.deepEqual(
      world.events.map(({ type }) => type).filter((type) => type !== "waiting"),
      ["asked", "resent", "in progress", "asked", "final"],
    );
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
  assert.deepEqual([result, token.known.absents], ["unknown", 0]);
  for (const [answers, expected] of [
    [absentFrom0To30s, "declined"],
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
    const token = await tokenAt(script, at, "cancel");
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
  const token = await tokenAt([], "asked", "cancel");
  const world = over([["/check", approved]]);
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
  assert.deepEqual(
    world.events.map(({ token }) => token.known.phase),
    ["baseline", "baseline", "baseline", "baseline", "baseline", "ready", "lost", "lost", "lost"],
  );
  for (const { token } of world.events.slice(sent)) {
    const again = over(absentFrom0To30s);
    assert.equal((await again.client.resume(kept(token), { ...again.options, intervalMs: 1000 })).result, "declined");
    again.done();
  }
});

/** Ends in nothing, as settle() tells it. */
async function endedInNothing(script: Script, options: { readonly signal?: AbortSignal; readonly askOnly?: AbortSignal }) {
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
    assert.deepEqual([token.known.phase, message], ["unsent", words]);
    for (let times = 0; times < 2; times++) {
      const world = over([]);
      const again = await world.client.resume(kept(token), world.options);
      assert.deepEqual([again.result, again.message, again.steps], ["not-sent", `nothing was sent: ${words}`, []]);
      assert.deepEqual([again.token, world.service.seen], [token, []]);
      assert.deepEqual(
        world.events.map(({ type }) => type),
        ["final"],
      );
    }
  });
}

test("resume() of a start that the service refused never sends it again: declined, with the start's code", async () => {
  const first = over([["/sale", error(-47)]]);
  const { result, token } = await first.client.bank.settle("sale", body, first.options);
  assert.deepEqual([result, token.known.phase], ["declined", "refused"]);
  const world = over([["/check", absent]]);
  const again = await world.client.resume(kept(token), { ...world.options, intervalMs: 1000 });
  assert.deepEqual([again.result, again.code], ["declined", -47]);
  world.done();
});

/** A token of an operation that may have been sent, and whose baseline isn't known. */
async function lostBaseline(): Promise<unknown> {
  const { token } = readToken(await tokenAt([], "asked", "cancel"));
  return kept({ ...token, known: { ...token.known, phase: "lost", doubt: true } });
}

test("resume() of /cancel without a baseline takes nothing for its own, and doesn't resend", async () => {
  const token = await lostBaseline();
  const world = over(Array.from({ length: 11 }, () => ["/check", approved] as const));
  const options = { ...world.options, windowMs: 10_000, intervalMs: 1000 };
  assert.equal((await world.client.resume(token, options)).result, "unknown");
  world.done();
});

test("resume() of /cancel without a baseline takes nothing for its own that runs under its pay_id either", async () => {
  const token = await lostBaseline();
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

const good = { v: 1, service: "bank", route: "/sale", body: "{}", madeMs: 1, known: {} };
for (const [name, value, words] of [
  ["nothing", undefined, /is not an object/],
  ["its text", JSON.stringify(good), /parsed if it was kept as text/],
  ["another version", { ...good, v: 2 }, /its v is 2/],
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
    "hasOtherNames",
    "copied",
    "earlierInDoubt",
    "isAborted",
    "isSentOnce",
    "isOld",
    "hasEnded",
  ]) {
    const spoilt = { ...rest, known: { ...known, [field]: [] } };
    await assert.rejects(over([]).client.resume(spoilt), TypeError, field);
  }
});

test("the token of what ended well is asked about only, and 'there is none' any more says nothing of it", async () => {
  const deposit = over([["/deposit", closed]]);
  const paidIn = await deposit.client.fiscal.settle("deposit", { documentExtID: "D-1", amount: 100 }, deposit.options);
  const aborted = new AbortController();
  const receipt = over([
    ["/sale", error(44)],
    ["/check_status", closed],
  ]);
  const onProgress = ({ type }: SettleEvent) => {
    if (type === "waiting") aborted.abort();
  };
  const options = { ...receipt.options, aborted: aborted.signal, onProgress };
  const closedMeanwhile = await receipt.client.fiscal.settle("sale", sale, options);
  for (const { result, token } of [paidIn, closedMeanwhile]) {
    assert.equal(result, "closed");
    const later = over(repeat(40, ["/check_status", error(9)]));
    assert.equal((await later.client.resume(kept(token), { ...later.options, windowMs: 40_000 })).result, "unknown");
  }
});

test("the token of what ended well takes no failure for its own: a cancel of its key may have failed since", async () => {
  const sold = over([
    ["/sale", ok()],
    ["/check", approved],
  ]);
  const paid = await sold.client.bank.settle("sale", body, sold.options);
  assert.equal(paid.result, "approved");
  const failed = error(-20, { data: { status: "ERROR", txn_id: "9" } });
  const later = over(repeat(40, ["/check", failed]));
  assert.equal((await later.client.resume(kept(paid.token), { ...later.options, windowMs: 40_000 })).result, "unknown");
});

const stateOf = (status: "APPROVED" | "REVERSED", more: object) =>
  status === "APPROVED" ? ok({ data: { status, ...more } }) : error(-1, { data: { status, ...more } });

for (const [ended, end, now, later] of [
  ["APPROVED", "approved", "REVERSED", "reversed"],
  ["REVERSED", "reversed", "APPROVED", "approved"],
] as const) {
  for (const [transaction, said, expected] of [
    ["the same transaction", { txn_id: "7" }, later],
    ["another transaction, as a cancel under its key", { txn_id: "8" }, "unknown"],
    ["one without an id", {}, "unknown"],
  ] as const) {
    test(`the token of what ended as ${end} is told of ${transaction} that is ${now}: ${expected}`, async () => {
      const world = over([
        ["/sale", ok()],
        ["/check", stateOf(ended, { txn_id: 7 })],
      ]);
      const paid = await world.client.bank.settle("sale", body, world.options);
      assert.equal(paid.result, end);
      const again = over(repeat(12, ["/check", stateOf(now, said)]));
      assert.equal((await again.client.resume(kept(paid.token), { ...again.options, windowMs: 9_000 })).result, expected);
    });
  }
}

const document = (documentID: number, more: object) => ok({ docStatus: 1, documentID, ...more });

for (const [which, said, expected] of [
  ["the same document", document(12, {}), "closed"],
  ["the same document without its print", document(12, { printError: 3 }), "unprinted"],
  ["another document, as a refund under its number", document(13, {}), "unknown"],
  ["another document without its print", document(13, { printError: 3 }), "unknown"],
  ["another document by code 15", error(15, { docStatus: 1, documentID: 13, printError: 3 }), "unknown"],
] as const) {
  test(`the token of what was closed is told of ${which}: ${expected}`, async () => {
    const deposit = over([["/deposit", ok({ documentID: 12 })]]);
    const paidIn = await deposit.client.fiscal.settle("deposit", { documentExtID: "D-1", amount: 100 }, deposit.options);
    assert.equal(paidIn.result, "closed");
    const again = over(repeat(12, ["/check_status", said]));
    const settled = await again.client.resume(kept(paidIn.token), { ...again.options, windowMs: 9_000 });
    assert.equal(settled.result, expected);
    assert.equal(settled.data?.["documentID"], expected === "unknown" ? undefined : 12);
  });
}

for (const [which, documentID, expected] of [
  ["its document, whose printError stays", 12, "closed"],
  ["another document", 13, "unknown"],
] as const) {
  test(`the token of what was closed by its copy is told of ${which}: ${expected}`, async () => {
    const receipt = over([
      ["/sale", error(15, { documentExtID: "ORDER-1", printError: 3 })],
      ["/check_status", document(12, { printError: 3 })],
      ["/check_copy", ok({ code: 0 })],
    ]);
    const printed = await receipt.client.fiscal.settle("sale", sale, receipt.options);
    assert.equal(printed.result, "closed");
    const again = over(repeat(12, ["/check_status", document(documentID, { printError: 3 })]));
    assert.equal((await again.client.resume(kept(printed.token), { ...again.options, windowMs: 9_000 })).result, expected);
  });
}

for (const [which, start, asked] of [
  ["lost", lost, absent],
  ["refused by an error that leaves it open", error(-3), absent],
] as const) {
  test(`resume() of a start that was ${which} more than a day ago sends nothing, and "there is none" proves nothing: the batch may be closed`, async () => {
    const gone = new AbortController();
    let token: unknown;
    const sold = over([["/sale", start]]);
    await sold.client.bank.settle("sale", body, {
      ...sold.options,
      signal: gone.signal,
      onProgress: (event) => {
        token = kept(event.token);
        if (event.type === "waiting") gone.abort();
      },
    });
    const { token: read } = readToken(token);
    const old = { ...read, madeMs: read.madeMs - 86_400_000 };
    const later = over(repeat(60, ["/check", asked]));
    assert.equal((await later.client.resume(kept(old), { ...later.options, windowMs: 60_000 })).result, "unknown");
    assert.ok(later.service.seen.every(({ route }) => route === "/check"));
    const found = over([["/check", approved]]);
    assert.equal((await found.client.resume(kept(old), found.options)).result, "approved", "what it has, it says");
  });
}
