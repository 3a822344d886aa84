import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { dataOf } from "../../src/client/settle.ts";
import type { SettleEvent, SettleOptions } from "../../src/client/settle-types.ts";
import { readToken } from "../../src/client/token.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { askAgain } from "../../src/core/fault.ts";
import { type Answer, failedAnswer, type TransportRequest } from "../../src/settle/transport.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { absent, approved, body, busy, down, endsAt, error, knownBy, lost, ok, over, repeat, sale, why } from "./scripted.ts";

test("settle() tells its first event, with a token, before anything is sent", async () => {
  const world = over("sale ok, check approved");
  let sentBefore: number | undefined;
  await world.client.bank.settle("sale", body, {
    clock: world.clock,
    onProgress: (event) => {
      sentBefore ??= world.service.seen.length;
      assert.equal(readToken(event.token).body["pay_id"], "P-1");
    },
  });
  assert.equal(sentBefore, 0);
});

test("settle() doesn't say of a sale that may have begun that nothing was sent or changed, where that is said of a question", async () => {
  const failures: readonly Answer[] = [down, failedAnswer("unknown", `${why}. ${askAgain}`), failedAnswer("unknown", why)];
  for (const failure of failures)
    for (const start of [ok(), lost]) {
      const world = over([["/sale", start], ...repeat(3, ["/check", failure])]);
      const { result, message } = await world.client.bank.settle("sale", body, { ...world.options, windowMs: 3_500 });
      assert.equal(result, "unknown");
      assert.equal(message, `it may have been carried out, and the last request about it failed: ${why}`);
    }
  const world = over("sale lost, check -15, sale down");
  const { result, message } = await world.client.bank.settle("sale", body, { ...world.options, windowMs: 1_500 });
  assert.equal(result, "unknown");
  assert.equal(message, `it may have been carried out, and the last request about it failed: ${why}`);
});

test("settle() gives an operation that is unknown no words of another one, or of an end that isn't proven to be its own", async () => {
  const approved = ok({ code: 0, message: "Approved", data: { status: "APPROVED", txn_id: "T-9" } });
  const others = ok({ code: 0, message: "Approved", pay_id: "P-2" });
  const worlds = [
    ["sale", over([["/sale", ok()], ...repeat(3, ["/check", others])])],
    ["sale", over([["/sale", others], ...repeat(3, ["/check", others])])],
    ["refund", over([["/check", approved], ["/refund", ok()], ...repeat(3, ["/check", approved])])],
  ] as const;
  for (const [name, { client, options }] of worlds) {
    const { result, code, message, data } = await client.bank.settle(name, body, { ...options, windowMs: 2_500 });
    assert.deepEqual([result, code, data], ["unknown", undefined, undefined]);
    assert.match(
      message ?? "",
      /^it may have been carried out, and the last answer is about another operation, or doesn't prove/,
    );
  }
  const { client, options } = over([["/cancel", others]]);
  const cancel = { pay_id: "P-1", trans: "T-1", rrn: "1", amount: 100, currency: "1", pay_system: "P" };
  const { result, code, message } = await client.qr.settle("cancel", cancel, options);
  assert.deepEqual([result, code], ["unknown", undefined]);
  assert.match(message ?? "", /the last answer is about another operation/);
});

test("settle() says of a closed document that its copy was not asked for, not that nothing was sent", async () => {
  const closed = ok({ code: 0, docStatus: 1, documentID: 7, printError: 1 });
  for (const refused of [down, { ...down, httpStatus: 401 }]) {
    const world = over([
      ["/sale", closed],
      ["/check_status", closed],
      ["/check_copy", refused],
    ]);
    const { result, message } = await world.client.fiscal.settle("sale", sale, { ...world.options, windowMs: 1_500 });
    assert.deepEqual([result, message], ["unprinted", `it is closed, and its copy was not asked for: ${why}`]);
  }
});

test("settle() waits for what onProgress promises before it sends", async () => {
  const world = over("sale ok, check approved");
  let stored = false;
  await world.client.bank.settle("sale", body, {
    clock: world.clock,
    onProgress: async ({ type }) => {
      if (type !== "sent") return;
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(world.service.seen.length, 0);
      stored = true;
    },
  });
  assert.equal(stored, true);
});

test("settle() sends nothing when its first event can't be stored, and rejects with the reason", async () => {
  const world = over([]);
  const full = new Error("disk full");
  const options = { onProgress: () => Promise.reject(full) };
  await assert.rejects(world.client.bank.settle("sale", body, options), full);
  assert.equal(world.service.seen.length, 0);
});

test("settle() goes on when a later event's handler fails", async () => {
  const world = over("sale ok, check approved");
  const onProgress = ({ type }: SettleEvent) => {
    if (type !== "sent") throw new Error("no display");
  };
  assert.equal((await world.client.bank.settle("sale", body, { clock: world.clock, onProgress })).result, "approved");
});

test("settle() tells each step in order, and records each request", async () => {
  const world = over("sale lost, check -15, sale ok, check ok, check approved");
  const { steps } = await world.client.bank.settle("sale", body, { ...world.options, intervalMs: 1000 });
  const types = world.events.map(({ type }) => type);
  assert.deepEqual(types, [
    ...["sent", "waiting", "asked", "resent", "in progress", "waiting"],
    ...["asked", "in progress", "waiting", "asked", "final"],
  ]);
  assertMapped(
    steps,
    [
      ["start", "/sale", 0, "unknown", undefined, undefined],
      ["ask", "/check", 1000, "answered", "error", -15],
      ["start", "/sale", 1000, "answered", "success", undefined],
      ["ask", "/check", 2000, "answered", "success", undefined],
      ["ask", "/check", 3000, "answered", "success", undefined],
    ],
    ({ action, route, atMs, outcome, status, code }) => [action, route, atMs, outcome, status, code],
  );
});

test("settle() that is left while a request is out gives a token that says that it may have arrived", async () => {
  const gone = new AbortController();
  const world = over("sale lost");
  const { send } = world.service;
  world.service.send = async (request) => {
    gone.abort();
    return send.call(world.service, request);
  };
  const { result, token } = await world.client.bank.settle("sale", body, { clock: world.clock, signal: gone.signal });
  assert.equal(result, "unknown");
  assert.deepEqual([knownBy(token).starts, knownBy(token).doubt], [1, true]);
});

test("settle() says unknown at the end of windowMs, which begins when the first request has ended", async () => {
  const world = over("sale ok, check ok, check ok");
  const options = { ...world.options, windowMs: 2500, intervalMs: 1000 };
  assert.equal((await world.client.bank.settle("sale", body, options)).result, "unknown");
  world.done();
});

for (const [options, refusal] of [
  [{ intervalMs: 0 }, /at least 50/],
  ...[Number.NaN, Number.POSITIVE_INFINITY, -1].map((windowMs) => [{ windowMs }, /windowMs/] as const),
  // What a caller without types may give
  ...[{ windowMs: "1000" }, { windowMs: null }, { intervalMs: "1000" }, { intervalMs: 1000n }].map(
    (given) => [given, TypeError] as const,
  ),
] as const) {
  test(`settle() sends nothing with ${inspect(options)}, and rejects`, async () => {
    const world = over([]);
    await assert.rejects(world.client.bank.settle("sale", body, options as SettleOptions), refusal);
    assert.equal(world.service.seen.length, 0);
  });
}

test("settle() rejects for an operation that can't be followed, and for a body that is no JSON", async () => {
  const { client, service } = over([]);
  // @ts-expect-error: a terminal's list is asked for once
  await assert.rejects(client.bank.settle("terminals", {}), /bank has no operation of this name that can be followed/);
  await assert.rejects(client.bank.settle("sale", { ...body, amount: Number.NaN }), /amount must be a finite number/);
  await assert.rejects(client.bank.settle("sale", { ...body, amount: 2 ** 60 }), /use a bigint/);
  assert.equal(service.seen.length, 0);
});

test("settle() does nothing while its handler is at work", async () => {
  const world = over("sale busy, sale ok, check busy, check approved");
  let inside = 0;
  const idle = () => assert.equal(inside, 0);
  const { service, clock } = world;
  const [send, sleep] = [service.send.bind(service), clock.sleep.bind(clock)];
  service.send = (request) => {
    idle();
    return send(request);
  };
  clock.sleep = (ms) => {
    idle();
    return sleep(ms);
  };
  const onProgress = async () => {
    inside++;
    await new Promise((resolve) => setImmediate(resolve));
    inside--;
  };
  const { result } = await world.client.bank.settle("sale", body, { clock, onProgress });
  idle();
  assert.equal(result, "approved");
  world.done();
});

test("settle() counts the times of its steps from its beginning, whatever its clock says then", async () => {
  const world = over("sale ok, check approved");
  world.clock.ms = 5_000;
  const { steps } = await world.client.bank.settle("sale", body, world.options);
  assertMapped(steps, [0, 1_000], ({ atMs }) => atMs);
});

test('settle() counts the 30 s in which "not found" proves nothing from the end of its start', async () => {
  const world = over([["/sale", error(-3)], ...repeat(32, ["/check", absent])]);
  world.clock.ms = 5_000;
  const send = world.service.send.bind(world.service);
  world.service.send = (request) => {
    if (request.route === "/sale") world.clock.ms += 20_000;
    return send(request);
  };
  const options = { ...world.options, intervalMs: 1_000 };
  assert.equal((await world.client.bank.settle("sale", body, options)).result, "failed");
  world.done();
});

test("settle() tells of progress only what the service has just said", async () => {
  const world = over([
    ["/sale", ok()],
    ["/check", lost],
    ["/check", ok({ data: { qr: "shown" } })],
    ["/check", approved],
  ]);
  await world.client.bank.settle("sale", body, world.options);
  const told = world.events.filter(({ type }) => type === "in progress");
  assertMapped(told, [undefined, { qr: "shown" }], ({ reply }) => reply?.["data"]);
  assert.deepEqual(world.events.at(-1)?.reply?.["data"], { status: "APPROVED", txn_id: "7" });
});

test("settle() tells why nothing listens, and of its waits how long they are", async () => {
  const world = over([
    ["/sale", { ...busy, unreachable: "no-address" }],
    ["/sale", ok()],
    ["/check", approved],
  ]);
  await world.client.bank.settle("sale", body, world.options);
  assertMapped(
    world.events.filter(({ type }) => type === "not sent"),
    ["no-address"],
    ({ unreachable }) => unreachable,
  );
  assertMapped(
    world.events.filter(({ type }) => type === "waiting"),
    [1_000, 1_000],
    ({ waitMs }) => waitMs,
  );
});

/** A settle run in whose first wait a stop comes, and how long that wait was. */
async function stoppedWhileWaiting(start: typeof lost, stop: "signal" | "askOnly", both: boolean) {
  const world = over([
    ["/sale", start],
    ["/check", approved],
  ]);
  const stops = { signal: new AbortController(), askOnly: new AbortController() };
  const { clock } = world;
  clock.sleep = async (ms: number, signal?: AbortSignal) => {
    stops[stop].abort();
    if (signal?.aborted !== true) clock.ms += ms;
  };
  const given = both ? (["signal", "askOnly"] as const) : [stop];
  const signals = Object.fromEntries(given.map((name) => [name, stops[name].signal]));
  const { result } = await world.client.bank.settle("sale", body, { ...world.options, ...signals });
  return { result, waitedMs: clock.ms };
}

test("settle() that is left ends its wait at once", async () => {
  for (const both of [true, false]) {
    for (const start of [ok(), lost])
      assert.deepEqual(await stoppedWhileWaiting(start, "signal", both), { result: "unknown", waitedMs: 0 });
  }
});

test("settle() that is stopped ends its wait where something would be sent again, and not where it only asks", async () => {
  for (const both of [true, false]) {
    assert.deepEqual(await stoppedWhileWaiting(lost, "askOnly", both), { result: "approved", waitedMs: 0 });
    assert.deepEqual(await stoppedWhileWaiting(ok(), "askOnly", both), { result: "approved", waitedMs: 1_000 });
  }
});

test("settle() keeps its pace once it was stopped: a stop ends one wait, not all", async () => {
  const world = over("sale lost, check -3, check approved");
  const stop = new AbortController();
  const isWoken: (boolean | undefined)[] = [];
  const sleep = world.clock.sleep.bind(world.clock);
  Object.assign(world.clock, {
    sleep: (ms: number, signal?: AbortSignal) => {
      stop.abort();
      isWoken.push(signal?.aborted);
      return sleep(ms);
    },
  });
  await world.client.bank.settle("sale", body, { ...world.options, askOnly: stop.signal });
  assert.deepEqual(isWoken, [true, false]);
});

test("settle() can have only its start withdrawn by askOnly, never a question", async () => {
  const world = over("sale ok, check approved");
  const requests: TransportRequest[] = [];
  const send = world.service.send.bind(world.service);
  world.service.send = (request) => {
    requests.push(request);
    return send(request);
  };
  const { signal } = new AbortController();
  await world.client.bank.settle("sale", body, { ...world.options, askOnly: signal });
  assertMapped(requests, [false, undefined], ({ withdrawn }) => withdrawn?.aborted);
});

for (const [when, script, leaves, result, message, known] of [
  ["before its first sending", "", { signal: AbortSignal.abort() }, "not-sent", "it was stopped before it was sent", {}],
  ["after a start that wasn't sent", "sale busy", endsAt("waiting"), "not-sent", "it was stopped before it was sent", {}],
  ["after a lost start", "sale lost", endsAt("waiting"), "unknown", "it is no longer followed", { starts: 1, doubt: true }],
  ["as it goes on", "sale ok", endsAt("in progress"), "unknown", "it is no longer followed", { isAccepted: true }],
  ["while it waits", "sale ok", endsAt("waiting"), "unknown", "it is no longer followed", { isAccepted: true }],
] as const) {
  test(`settle() that is left ${when} says ${result}, with what is known in its token`, async () => {
    const world = over(script === "" ? [] : script);
    const left = await world.client.bank.settle("sale", body, { clock: world.clock, ...leaves });
    assert.deepEqual([left.result, left.message, left.code, left.data], [result, message, undefined, undefined]);
    const facts: Readonly<Record<string, unknown>> = { ...knownBy(left.token) };
    for (const [name, value] of Object.entries(known)) assert.equal(facts[name], value, name);
    world.done();
  });
}

test("settle() asks for the same copy again after it was turned away, and gives the document", async () => {
  const world = over([
    ["/sale", error(15)],
    ["/check_status", ok({ docStatus: 1, documentID: "12" })],
    ["/check_copy", busy],
    ["/check_copy", ok()],
  ]);
  const { result, data } = await world.client.fiscal.settle("sale", sale, world.options);
  assert.deepEqual([result, data?.["documentID"]], ["closed", "12"]);
  assertMapped(world.service.seen.slice(2), [{ documentID: 12 }, { documentID: 12 }], (seen) => seen.body);
  assert.deepEqual(
    world.events.map(({ type }) => type).filter((type) => type !== "waiting"),
    ["sent", "in progress", "asked", "printing", "not sent", "printing", "final"],
  );
});

test("settle() prints by a documentID that is no number as it was given", async () => {
  for (const documentID of ["D-12", "1".repeat(20)]) {
    const world = over([
      ["/sale", error(15)],
      ["/check_status", ok({ docStatus: 1, documentID })],
      ["/check_copy", ok()],
    ]);
    await world.client.fiscal.settle("sale", sale, world.options);
    assert.deepEqual(world.service.seen.at(-1)?.body, { documentID });
  }
});

test("resume() rejects the token of a service that its client doesn't have, and names it", async () => {
  const world = over("sale lost");
  const { token } = await world.client.bank.settle("sale", body, { ...world.options, windowMs: 0 });
  const named = { ...token, service: "till-2", contract: "bank" };
  await assert.rejects(over([]).client.resume(named), { name: "TypeError", message: /no service till-2/ });
});

test("resume() sends nothing to a service of another contract: bank and qr have routes of the same name", async () => {
  const world = over("refund lost");
  const refund = await world.client.bank.settle("refund", { ...body, rrn: "77" }, { ...world.options, windowMs: 0 });
  const later = over([]);
  const moved = { ...refund.token, service: "qr", contract: "bank" };
  await assert.rejects(later.client.resume(moved), {
    name: "TypeError",
    message: /begun with a bank service, and qr is a qr one/,
  });
  assert.deepEqual(later.service.seen, []);
});

test("dataOf() is the answer itself of a fiscal document, and what stands in data of all else", () => {
  const reply = { status: "success", data: { rrn: "7" } };
  assert.deepEqual(dataOf(contracts.fiscal, reply), reply);
  assert.deepEqual(dataOf(contracts.bank, reply), { rrn: "7" });
  for (const data of [null, undefined, "text", 7]) assert.equal(dataOf(contracts.bank, { data }), undefined);
  assert.equal(dataOf(contracts.bank, undefined), undefined);
  assert.equal(dataOf(contracts.fiscal, undefined), undefined);
});

test("settle() that is left while its handler stores the token sends nothing more, and announces nothing more", async () => {
  for (const [type, types, steps] of [
    ["sent", ["sent", "final"], 0],
    ["asked", ["sent", "in progress", "waiting", "asked", "final"], 1],
  ] as const) {
    const world = over("sale ok");
    const leaving = new AbortController();
    const told: SettleEvent["type"][] = [];
    const onProgress = (event: SettleEvent) => {
      told.push(event.type);
      if (event.type === type) leaving.abort();
    };
    const left = await world.client.bank.settle("sale", body, { clock: world.clock, signal: leaving.signal, onProgress });
    assert.deepEqual([told, left.steps.length], [types, steps]);
  }
});
