import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { type Client, createClientOver, createHttpClient } from "../../src/client/client.ts";
import type { Settled, SettleEvent, SettleOptions } from "../../src/client/settle-types.ts";
import type { Token } from "../../src/client/token.ts";
import type { Answer, Transport, TransportRequest } from "../../src/settle/transport.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { until } from "../support/until.ts";
import { absent, approved, body, error, kept, knownBy, merchantId, ok, over, sale, TestClock, tokenAt } from "./scripted.ts";

/** Tests src/client/followings.ts: one operation that several callers of a client follow. */

const reversed = error(-1, { data: { status: "REVERSED", txn_id: "7" } });

const refund = { pay_id: "P-1", trans: "T-1", rrn: "1", amount: 100, currency: "978", pay_system: "PALM" };

/** A service whose answers come when a test gives them. */
class Held implements Transport {
  readonly seen: string[] = [];
  readonly #waiting: ((answer: Answer) => void)[] = [];

  send({ route }: TransportRequest): Promise<Answer> {
    this.seen.push(route);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Answers what has been out for the longest, once something is: a fiscal question is signed by another thread first. */
  async answer(answer: Answer): Promise<void> {
    await until(() => this.#waiting.length > 0, "something to be asked");
    this.#waiting.shift()?.(answer);
  }

  get isAsked(): boolean {
    return this.#waiting.length > 0;
  }

  async close(): Promise<void> {}
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Lets all go on that waits for nothing. */
async function settleDown(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await turn();
}

function held(): { service: Held; client: Client; options: SettleOptions } {
  const service = new Held();
  return { service, client: createClientOver(service, { fiscal: { merchantId } }), options: { clock: new TestClock() } };
}

/** What a caller was told, and how to leave. */
function caller() {
  const leaving = new AbortController();
  const events: SettleEvent[] = [];
  const onProgress = (event: SettleEvent) => {
    events.push(event);
  };
  const options: SettleOptions = { clock: new TestClock(), signal: leaving.signal, onProgress };
  return { options, events, types: () => events.map(({ type }) => type), leave: () => leaving.abort() };
}

/** Nothing of it was sent. */
const unsentCancel = () => tokenAt([], "asked", ({ bank }, options) => bank.settle("cancel", body, options));

test("settle() and resume() refuse what is no AbortSignal or function before anything is sent", async () => {
  const { service, client } = held();
  const { token } = await client.bank.settle("sale", body, { askOnly: AbortSignal.abort() });
  const given: readonly (readonly [unknown, string])[] = [
    [{ signal: new AbortController() }, "signal is not an AbortSignal: pass a controller's signal"],
    [{ askOnly: true }, "askOnly is not an AbortSignal: pass a controller's signal"],
    [{ aborted: {} }, "aborted is not an AbortSignal: pass a controller's signal"],
    [{ onProgress: "store" }, "onProgress is not a function"],
    [null, "the options are not an object"],
    [5_000, "the options are not an object"],
  ];
  for (const [options, said] of given) {
    const wrong = { name: "TypeError", message: `Cannot settle: ${said}` };
    await assert.rejects(client.bank.settle("sale", body, options as SettleOptions), wrong);
    await assert.rejects(client.resume(kept(token), options as SettleOptions), wrong);
  }
  await settleDown();
  assert.deepEqual(service.seen, []);
  // @ts-expect-error null is none, as some write it
  const { result } = await client.bank.settle("sale", body, { signal: null, askOnly: AbortSignal.abort() });
  assert.equal(result, "not-sent");
});

type Begin = (client: Client, token: Token, options: SettleOptions) => Promise<Settled>;
const settles =
  (operation: "sale" | "confirm"): Begin =>
  (client, _, options) =>
    client.bank.settle(operation, { ...body }, options);
const resumes: Begin = (client, token, options) => client.resume(kept(token), options);
const soldToken = () => tokenAt("sale lost", "waiting");
const toConfirm = [absent, absent, absent, ok(), approved];

for (const [name, tokenOf, first, second, answers, seen] of [
  [
    "two resume() of what wasn't sent",
    unsentCancel,
    resumes,
    resumes,
    [approved, ok(), approved, reversed],
    "check cancel check check",
  ],
  ["settle() and resume()", soldToken, settles("sale"), resumes, [ok(), approved], "sale check"],
  ["resume() and settle()", soldToken, resumes, settles("sale"), [approved], "check"],
  ["two settle() of a sale", soldToken, settles("sale"), settles("sale"), [ok(), approved], "sale check"],
  [
    "two settle() of a confirm",
    soldToken,
    settles("confirm"),
    settles("confirm"),
    toConfirm,
    "check check check confirm check",
  ],
] as const) {
  for (const when of ["at once", "later"]) {
    test(`${name} ${when} send it once, and have one end`, async () => {
      const token = await tokenOf();
      const { service, client, options } = held();
      const one = first(client, token, options);
      if (when === "later") await settleDown();
      const other = second(client, token, options);
      for (const answer of answers) await service.answer(answer);
      assert.equal(await one, await other);
      assert.match((await one).result, /^(approved|reversed)$/);
      assert.equal(service.seen.map((route) => route.slice(1)).join(" "), seen);
    });
  }
}

test("two settle() by the bridge send it once, and have one end", async () => {
  const calls: string[] = [];
  const client = createHttpClient({
    settle: "bridge",
    fetch: async (url) => {
      calls.push(new URL(String(url)).pathname);
      const headers = { "X-Posline-Outcome": "answered", "X-Posline-Result": "approved" };
      return new Response(approved.text, { headers });
    },
  });
  const [one, other] = await Promise.all([client.bank.settle("sale", body), client.bank.settle("sale", body)]);
  assert.deepEqual([one.result, other, calls], ["approved", one, ["/sale"]]);
});

test("resume() twice at once prints one copy", async () => {
  const token = await tokenAt("sale lost", "waiting", ({ fiscal }, options) => fiscal.settle("sale", sale, options));
  const world = over([
    ["/check_status", ok({ docStatus: 1, documentID: 12, printError: 3 })],
    ["/check_copy", ok({ code: 0 })],
  ]);
  const ends = await Promise.all([world.client.resume(token, world.options), world.client.resume(token, world.options)]);
  assertMapped(ends, ["closed", "closed"], ({ result }) => result);
  world.done();
});

test("resume() after the end follows anew, by its own token", async () => {
  const token = await soldToken();
  const world = over("check approved x2");
  for (let times = 0; times < 2; times++) assert.equal((await world.client.resume(token, world.options)).result, "approved");
  world.done();
});

test("settle() twice at once of two bodies under one key, and of qr's operations on one payment, sends both", async () => {
  const { service, client, options } = held();
  const all = [
    client.bank.settle("sale", body, options),
    client.bank.settle("sale", { ...body, amount: 1600 }, options),
    client.qr.settle("refund", refund, options),
    client.qr.settle("refund", refund, options),
  ];
  await settleDown();
  assert.deepEqual(service.seen.sort(), ["/refund", "/refund", "/sale", "/sale"]);
  for (const answer of [error(-29), error(-29), ok({ data: { rrn: "2" } }), ok({ data: { rrn: "3" } })])
    await service.answer(answer);
  const ends = (await Promise.all(all)).map(({ result }) => result);
  assert.deepEqual(ends, ["failed", "failed", "approved", "approved"]);
});

test("resume() of another body under the same key, and of a second refund of one qr payment, is another operation", async () => {
  const { service, client, options } = held();
  const sold = (amount: number) =>
    tokenAt("sale lost", "waiting", (each, more) => each.bank.settle("sale", { ...body, amount }, more));
  const all = [client.resume(await sold(100), options), client.resume(await sold(200), options)];
  await settleDown();
  assert.deepEqual(service.seen, ["/check", "/check"]);
  for (const each of all) {
    await service.answer(approved);
    await each;
  }
  const refunded = await tokenAt("refund lost", "final", ({ qr }, more) => qr.settle("refund", refund, more));
  const again = client.qr.settle("refund", refund, options);
  await settleDown();
  const first = await client.resume({ ...refunded, madeMs: 1 }, options);
  await service.answer(ok({ data: { rrn: "2" } }));
  assert.deepEqual(
    [first.result, (await again).result],
    ["unknown", "approved"],
    "the second one's end is not the first one's",
  );
});

/** Two callers wait for a cancel that is asked about before it is sent. */
async function resumedTwice() {
  const token = await unsentCancel();
  const { service, client } = held();
  const [one, other] = [caller(), caller()];
  const first = client.resume(token, one.options);
  const second = client.resume(token, other.options);
  await settleDown();
  return { service, one, other, first, second };
}

test("a caller who joined and aborts is answered unknown at once, with a token that neither sends nor prints", async () => {
  const { service, other, first, second } = await resumedTwice();
  other.leave();
  const left = await second;
  assert.deepEqual(
    [left.result, left.message],
    ["unknown", "it is no longer followed for this caller, and another one follows it on"],
  );
  assert.deepEqual([knownBy(left.token).isStopped, knownBy(left.token).isLeft], [true, true]);
  for (const answer of [approved, ok(), reversed]) await service.answer(answer);
  assert.equal((await first).result, "reversed");
  assert.deepEqual(service.seen, ["/check", "/cancel", "/check"]);
  // The other one may have sent it since: by this token nothing is sent.
  const later = over("check approved");
  const asked = await later.client.resume(kept(left.token), { ...later.options, windowMs: 0 });
  assert.equal(asked.result, "unknown");
  later.done();
});

test("settle() stops what isn't sent yet for all, whichever of its callers says that it is only to be asked about", async () => {
  for (const isJoined of [false, true]) {
    const { service, client, options } = held();
    const stop = new AbortController();
    const stopped = { ...options, askOnly: stop.signal };
    const first = client.bank.settle("cancel", { ...body }, isJoined ? options : stopped);
    await until(() => service.isAsked, "the key to be asked about");
    const second = client.bank.settle("cancel", { ...body }, isJoined ? stopped : options);
    await settleDown();
    stop.abort();
    await service.answer(ok({ data: { status: "APPROVED", txn_id: "7" } }));
    const results = (await Promise.all([first, second])).map(({ result }) => result);
    assert.deepEqual([service.seen, results], [["/check"], ["not-sent", "not-sent"]]);
  }
});

test("a caller who joins after it aborted doesn't wait", async () => {
  const { service, client, options } = held();
  const first = client.bank.settle("sale", body, options);
  const { result } = await client.bank.settle("sale", body, { signal: AbortSignal.abort() });
  assert.deepEqual([result, service.seen], ["unknown", ["/sale"]]);
  for (const answer of [ok(), approved]) await service.answer(answer);
  assert.equal((await first).result, "approved");
});

for (const [sent, expected] of [
  [false, "not-sent"],
  [true, "unknown"],
] as const) {
  test(`the first caller's abort ends the following for all: ${expected} ${sent ? "after" : "before"} it was sent`, async () => {
    const { service, one, first, second } = await resumedTwice();
    if (sent) await service.answer(approved);
    await settleDown();
    one.leave();
    const [end, same] = await Promise.all([first, second]);
    assert.deepEqual([end.result, same], [expected, end]);
    assert.deepEqual(service.seen, sent ? ["/check", "/cancel"] : ["/check"]);
  });
}

test("a token that can't be stored stops it for all: nothing is sent, and each caller is told why", async () => {
  const world = over("check approved");
  const full = new Error("disk full");
  const onProgress = ({ type }: SettleEvent) => {
    if (type === "sent") throw full;
  };
  const token = await unsentCancel();
  const both = [world.client.resume(token, { clock: world.clock, onProgress }), world.client.resume(token, world.options)];
  for (const each of both) await assert.rejects(each, full);
  world.done();
});

test("settle() of the same sale by its own first event's handler sends it once", async () => {
  const { service, client, options } = held();
  let again: Promise<Settled> | undefined;
  const onProgress = () => {
    again ??= client.bank.settle("sale", body, options);
  };
  const first = client.bank.settle("sale", body, { ...options, onProgress });
  for (const answer of [ok(), approved]) await service.answer(answer);
  assert.deepEqual([(await first).result, await again, service.seen], ["approved", await first, ["/sale", "/check"]]);
});

test("nothing of a caller's signals is held once it was answered", async () => {
  const token = await unsentCancel();
  const { service, client } = held();
  const signals = [new AbortController(), new AbortController(), new AbortController()].map(({ signal }) => signal);
  const [signal, askOnly, aborted] = signals as [AbortSignal, AbortSignal, AbortSignal];
  const first = client.resume(token, { signal, askOnly, aborted, clock: new TestClock() });
  const second = client.resume(token, { signal, askOnly, aborted });
  for (const answer of [approved, ok(), reversed]) await service.answer(answer);
  await Promise.all([first, second]);
  await settleDown();
  for (const each of signals) assert.equal(getEventListeners(each, "abort").length, 0);
});
