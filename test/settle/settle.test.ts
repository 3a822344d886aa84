import assert from "node:assert/strict";
import { test } from "node:test";
import { readToken } from "../../src/settle/token.ts";
import type { SettleEvent } from "../../src/settle/types.ts";
import { busy, error, kept, lost, ok, over } from "./scripted.ts";

const body = { pay_id: "P-1", amount: 1500, currency_name: "AZN" };
const approved = ok({ data: { status: "APPROVED", txn_id: "7" } });
const absent = error(-15);

test("settle() tells its first event, with a token, before anything is sent", async () => {
  const world = over([
    ["/sale", ok()],
    ["/check", approved],
  ]);
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

test("settle() waits for what onProgress promises before it sends", async () => {
  const world = over([
    ["/sale", ok()],
    ["/check", approved],
  ]);
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
  const world = over([
    ["/sale", ok()],
    ["/check", approved],
  ]);
  const onProgress = ({ type }: SettleEvent) => {
    if (type !== "sent") throw new Error("no display");
  };
  assert.equal((await world.client.bank.settle("sale", body, { clock: world.clock, onProgress })).result, "approved");
});

test("settle() tells each step in order, and records each request", async () => {
  const world = over([
    ["/sale", lost],
    ["/check", absent],
    ["/sale", ok()],
    ["/check", ok()],
    ["/check", approved],
  ]);
  const { steps } = await world.client.bank.settle("sale", body, { ...world.options, intervalMs: 1000 });
  const types = world.events.map(({ type }) => type);
  assert.deepEqual(types, [
    ...["sent", "waiting", "asked", "resent", "in progress", "waiting"],
    ...["asked", "in progress", "waiting", "asked", "final"],
  ]);
  assert.deepEqual(
    steps.map(({ action, route, atMs, outcome, status, code }) => [action, route, atMs, outcome, status, code]),
    [
      ["start", "/sale", 0, "unknown", undefined, undefined],
      ["ask", "/check", 1000, "answered", "error", -15],
      ["start", "/sale", 1000, "answered", "success", undefined],
      ["ask", "/check", 2000, "answered", "success", undefined],
      ["ask", "/check", 3000, "answered", "success", undefined],
    ],
  );
});

test("settle() stops following when its signal is aborted: unknown, with the token", async () => {
  const world = over([["/sale", ok()]]);
  const gone = new AbortController();
  const { result, token } = await world.client.bank.settle("sale", body, {
    clock: world.clock,
    signal: gone.signal,
    onProgress: ({ type }) => {
      if (type === "in progress") gone.abort();
    },
  });
  assert.equal(result, "unknown");
  assert.equal(readToken(kept(token)).token.known.phase, "accepted");
});

test("settle() that is left while a request is out gives a token that says that it may have arrived", async () => {
  const gone = new AbortController();
  const world = over([["/sale", lost]]);
  const { send } = world.service;
  world.service.send = async (request) => {
    gone.abort();
    return send.call(world.service, request);
  };
  const { result, token } = await world.client.bank.settle("sale", body, { clock: world.clock, signal: gone.signal });
  assert.equal(result, "unknown");
  assert.deepEqual([token.known.phase, token.known.doubt], ["lost", true]);
});

test("settle() sends nothing when its signal is aborted before the first sending, and says not-sent", async () => {
  const world = over([]);
  const { result } = await world.client.bank.settle("sale", body, { ...world.options, signal: AbortSignal.abort() });
  assert.equal(result, "not-sent");
  assert.equal(world.service.seen.length, 0);
});

test("settle() says unknown at the end of windowMs, which begins when the first request has ended", async () => {
  const world = over([
    ["/sale", ok()],
    ["/check", ok()],
    ["/check", ok()],
  ]);
  const options = { ...world.options, windowMs: 2500, intervalMs: 1000 };
  assert.equal((await world.client.bank.settle("sale", body, options)).result, "unknown");
  world.done();
});

test("settle() refuses an interval that would flood a terminal", async () => {
  await assert.rejects(over([]).client.bank.settle("sale", body, { intervalMs: 0 }), /at least 50/);
});

test("settle() refuses a window that never ends", async () => {
  for (const windowMs of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
    await assert.rejects(over([]).client.bank.settle("sale", body, { windowMs }), /windowMs/);
  }
});

test("settle() rejects for an operation that can't be followed, and for a body that is no JSON", async () => {
  const { client, service } = over([]);
  // @ts-expect-error: a terminal's list is asked for once
  await assert.rejects(client.bank.settle("terminals", {}), /bank has no operation of this name that can be followed/);
  await assert.rejects(client.bank.settle("sale", { ...body, amount: Number.NaN }), /amount must be a finite number/);
  await assert.rejects(client.bank.settle("sale", { ...body, amount: 2 ** 60 }), /use a bigint/);
  assert.equal(service.seen.length, 0);
});

test("settle() that is left before anything was sent says not-sent; after a lost start unknown", async () => {
  for (const [answer, expected] of [
    [busy, "not-sent"],
    [lost, "unknown"],
  ] as const) {
    const world = over([["/sale", answer]]);
    const leaving = new AbortController();
    const { result } = await world.client.bank.settle("sale", body, {
      clock: world.clock,
      signal: leaving.signal,
      onProgress: ({ type }) => {
        if (type === "waiting") leaving.abort();
      },
    });
    assert.equal(result, expected);
    world.done();
  }
});

test("settle() throws TypeError for a windowMs or intervalMs of a wrong kind before anything is sent", async () => {
  for (const options of [{ windowMs: "1000" }, { windowMs: null }, { intervalMs: "1000" }, { intervalMs: 1000n }]) {
    const world = over([]);
    // What a caller without types may give
    const given = options as unknown as { windowMs: number };
    await assert.rejects(world.client.bank.settle("sale", body, given), TypeError);
    assert.equal(world.service.seen.length, 0);
  }
});
