import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { type Client, createClientOver, createHttpClient } from "../../src/client/client.ts";
import type { Token } from "../../src/settle/token.ts";
import type { Answer, Transport, TransportRequest } from "../../src/settle/transport.ts";
import type { Settled, SettleEvent, SettleOptions } from "../../src/settle/types.ts";
import { until } from "../support/until.ts";
import { absentFrom0To30s } from "./bank-settling.ts";
import { error, kept, lost, merchantId, ok, over, type Script, TestClock } from "./scripted.ts";

/** Tests src/settle/followings.ts: one operation that several callers of a client follow. */

const body = { pay_id: "P-1", amount: 1500, currency_name: "AZN" };
const approved = ok({ data: { status: "APPROVED", txn_id: "7" } });
const reversed = error(-1, { data: { status: "REVERSED", txn_id: "7" } });

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

/** The token of an operation, as it was with the first event of a type. */
async function tokenAt(script: Script, type: SettleEvent["type"], begin: (client: Client, options: SettleOptions) => unknown) {
  const world = over(script);
  const gone = new AbortController();
  let token: unknown;
  const onProgress = (event: SettleEvent) => {
    if (event.type === type) token ??= kept(event.token);
    if (token !== undefined) gone.abort();
  };
  await begin(world.client, { clock: world.clock, signal: gone.signal, onProgress });
  assert.notEqual(token, undefined);
  return token;
}

/** Nothing of it was sent. */
const unsentCancel = () => tokenAt([], "asked", (client, options) => client.bank.settle("cancel", body, options));

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

test("resume() twice at once sends once what wasn't sent yet, and gives both callers one end", async () => {
  const token = await unsentCancel();
  const world = over([
    ["/check", approved],
    ["/cancel", ok()],
    ["/check", reversed],
  ]);
  const [one, other] = [caller(), caller()];
  const ends = await Promise.all([
    world.client.resume(token, one.options),
    world.client.resume(kept(token as Token), other.options),
  ]);
  assert.deepEqual(ends[0], ends[1]);
  assert.equal(ends[0].result, "reversed");
  assert.deepEqual(one.types(), ["asked", "sent", "in progress", "waiting", "asked", "final"]);
  assert.deepEqual(other.events, one.events, "each is told of each step");
  world.done();
});

test("resume() twice at once prints one copy", async () => {
  const sale = { documentExtID: "ORDER-1", items: [{ itemAmount: 150 }] };
  const token = await tokenAt([["/sale", lost]], "waiting", (client, options) => client.fiscal.settle("sale", sale, options));
  const world = over([
    ["/check_status", ok({ docStatus: 1, documentID: 12, printError: 3 })],
    ["/check_copy", ok({ code: 0 })],
  ]);
  const ends = await Promise.all([world.client.resume(token, world.options), world.client.resume(token, world.options)]);
  assert.deepEqual(
    ends.map(({ result }) => result),
    ["closed", "closed"],
  );
  world.done();
});

for (const [by, name] of [
  ["client", "settle()"],
  ["bridge", "settle() by the bridge"],
] as const) {
  test(`resume() of what ${name} follows waits with it, told at once of where that stands`, async () => {
    const answers = by === "client" ? [ok(), approved] : [approved];
    const service = new Held();
    const one = caller();
    const other = caller();
    const client =
      by === "client"
        ? createClientOver(service)
        : createHttpClient({
            settle: "bridge",
            fetch: async () => {
              await service.send({ route: "/sale" } as TransportRequest);
              const headers = { "X-Posline-Outcome": "answered", "X-Posline-Result": "approved" };
              return new Response(approved.text, { headers });
            },
          });
    const first = client.bank.settle("sale", body, one.options);
    await settleDown();
    assert.deepEqual([one.types(), service.seen], [["sent"], ["/sale"]]);
    const second = client.resume(one.events[0]?.token, other.options);
    await settleDown();
    assert.deepEqual(other.types(), ["sent"]);
    for (const answer of answers) await service.answer(answer);
    const [end, same] = await Promise.all([first, second]);
    assert.deepEqual([end.result, same], ["approved", end]);
    assert.deepEqual(other.events, one.events);
  });
}

test("resume() after the end follows anew, by its own token", async () => {
  const token = await tokenAt([["/sale", lost]], "waiting", (client, options) => client.bank.settle("sale", body, options));
  const world = over([
    ["/check", approved],
    ["/check", approved],
  ]);
  for (let times = 0; times < 2; times++) assert.equal((await world.client.resume(token, world.options)).result, "approved");
  world.done();
});

for (const [operation, answers, seen] of [
  ["sale", [ok(), approved], ["/sale", "/check"]],
  ["confirm", [error(-15), error(-15), error(-15), ok(), approved], ["/check", "/check", "/check", "/confirm", "/check"]],
] as const) {
  test(`settle() of one ${operation} twice at once sends it once, and gives both callers one end`, async () => {
    const { service, client } = held();
    const [one, other] = [caller(), caller()];
    const ends = [client.bank.settle(operation, body, one.options), client.bank.settle(operation, { ...body }, other.options)];
    for (const answer of answers) await service.answer(answer);
    const [first, second] = await Promise.all(ends);
    assert.deepEqual([first?.result, second, service.seen], ["approved", first, seen]);
    assert.deepEqual(other.events, one.events);
  });
}

test("settle() of what the same client resumes waits with it, and sends nothing", async () => {
  const token = await tokenAt([["/sale", lost]], "waiting", (client, options) => client.bank.settle("sale", body, options));
  const { service, client } = held();
  const [one, other] = [caller(), caller()];
  const ends = [client.resume(token, one.options), client.bank.settle("sale", body, other.options)];
  await service.answer(approved);
  const [first, second] = await Promise.all(ends);
  assert.deepEqual([first?.result, second, service.seen], ["approved", first, ["/check"]]);
});

for (const by of ["client", "bridge"] as const) {
  test(`settle() by the ${by} right after the only caller of the same sale aborted asks about it, and sends nothing`, async () => {
    const service = new Held();
    const paths: string[] = [];
    const fetched = async (url: string | URL | Request) => {
      paths.push(new URL(String(url)).pathname);
      await service.send({ route: "" } as TransportRequest);
      return new Response(paths.length > 1 ? approved.text : ok().text, { headers: { "X-Posline-Outcome": "answered" } });
    };
    const client = by === "client" ? createClientOver(service) : createHttpClient({ settle: "bridge", fetch: fetched });
    const [one, other] = [caller(), caller()];
    const first = client.bank.settle("sale", body, one.options);
    await settleDown();
    one.leave();
    const second = client.bank.settle("sale", body, other.options);
    for (const answer of [ok(), approved]) await service.answer(answer);
    assert.equal((await first).result, "unknown");
    assert.equal((await second).result, "approved");
    assert.deepEqual(by === "client" ? service.seen : paths, ["/sale", "/check"]);
  });
}

test("settle() twice at once of two bodies under one key, and of qr's operations on one payment, sends both", async () => {
  const { service, client, options } = held();
  const refund = { pay_id: "P-1", trans: "T-1", rrn: "1", amount: 100, currency: "978", pay_system: "PALM" };
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
  assert.deepEqual(ends, ["declined", "declined", "approved", "approved"]);
});

test("resume() of another body under the same key, and of a second refund of one qr payment, is another operation", async () => {
  const { service, client, options } = held();
  const sold = (amount: number) =>
    tokenAt([["/sale", lost]], "waiting", (each, more) => each.bank.settle("sale", { ...body, amount }, more));
  const all = [client.resume(await sold(100), options), client.resume(await sold(200), options)];
  await settleDown();
  assert.deepEqual(service.seen, ["/check", "/check"]);
  for (const each of all) {
    await service.answer(approved);
    await each;
  }
  const refund = { pay_id: "P-1", trans: "T-1", rrn: "1", amount: 100, currency: "978", pay_system: "PALM" };
  const refunded = (await tokenAt([["/refund", lost]], "final", (each, more) =>
    each.qr.settle("refund", refund, more),
  )) as Token;
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

test("a caller who aborts is answered unknown at once, and the other one waits on for the end", async () => {
  const { service, one, first, second } = await resumedTwice();
  one.leave();
  const left = await first;
  assert.deepEqual(
    [left.result, left.message],
    ["unknown", "it is no longer followed for this caller, and another one follows it on"],
  );
  assert.deepEqual(one.types(), ["asked", "final"]);
  assert.deepEqual(one.events.at(-1)?.token, left.token);
  for (const answer of [approved, ok(), reversed]) await service.answer(answer);
  assert.equal((await second).result, "reversed");
  assert.deepEqual(service.seen, ["/check", "/cancel", "/check"]);
  assert.deepEqual(one.types(), ["asked", "final"], "it is told of nothing more");
  // The other one may have sent it since: by this token nothing is sent.
  const later = over([["/check", approved]]);
  const asked = await later.client.resume(kept(left.token), { ...later.options, windowMs: 0 });
  assert.equal(asked.result, "unknown");
  later.done();
});

test("the token of a caller who left neither sends again nor prints, whatever it is resumed to", async () => {
  const sold = await tokenAt([["/sale", lost]], "waiting", (client, options) => client.bank.settle("sale", body, options));
  const { client } = held();
  const one = caller();
  const first = client.resume(sold, one.options);
  const left = await client.resume(sold, { ...caller().options, signal: AbortSignal.abort() });
  one.leave();
  await first;
  const later = over(absentFrom0To30s);
  const { result } = await later.client.resume(kept(left.token), { ...later.options, intervalMs: 1_000 });
  assert.equal(result, "declined");
  later.done();
  assert.deepEqual([left.token.known.isSentOnce, left.token.known.copied], [true, true]);
});

test("the last caller who aborts ends the following, and is answered as a single one", async () => {
  const { service, one, other, first, second } = await resumedTwice();
  other.leave();
  assert.equal((await second).result, "unknown");
  one.leave();
  assert.equal((await first).result, "not-sent");
  assert.deepEqual(service.seen, ["/check"]);
});

for (const [what, answered, left, then, expected, seen] of [
  ["sends what was never sent", [], "not-sent", [approved, ok(), reversed], "reversed", ["/check", "/cancel", "/check"]],
  ["only asks about what was sent", [approved], "unknown", [reversed], "reversed", ["/check"]],
] as const) {
  test(`resume() right after the only caller aborted goes on from there, though its token is older: it ${what}`, async () => {
    const token = await unsentCancel();
    const { service, client } = held();
    const [one, other] = [caller(), caller()];
    const first = client.resume(token, one.options);
    for (const answer of answered) await service.answer(answer);
    await settleDown();
    const before = service.seen.length;
    one.leave();
    const second = client.resume(token, other.options);
    assert.equal((await first).result, left);
    // What nobody waits for any more.
    await service.answer(lost);
    for (const answer of then) await service.answer(answer);
    assert.deepEqual([(await second).result, service.seen.slice(before)], [expected, seen]);
  });
}

test("resume() right after the only caller aborted takes the end that came all the same", async () => {
  const token = await tokenAt([["/sale", lost]], "waiting", (client, options) => client.bank.settle("sale", body, options));
  const world = over([["/check", approved]]);
  const leaving = new AbortController();
  let second: Promise<Settled> | undefined;
  const onProgress = ({ type }: SettleEvent) => {
    if (type !== "final") return;
    leaving.abort();
    second ??= world.client.resume(token, world.options);
  };
  const first = await world.client.resume(token, { clock: world.clock, signal: leaving.signal, onProgress });
  assert.deepEqual([first.result, await second], ["approved", first]);
  world.done();
});

test("nothing is sent before each caller has stored its token, nor where one of them can't", async () => {
  const token = await unsentCancel();
  const full = new Error("disk full");
  for (const fails of [0, 1]) {
    const world = over([["/check", approved]]);
    const optionsOf = (which: number): SettleOptions => ({
      clock: world.clock,
      onProgress: async ({ type }) => {
        await settleDown();
        if (which === fails && type === "sent") throw full;
      },
    });
    const both = [0, 1].map((which) => world.client.resume(token, optionsOf(which)));
    for (const each of both) await assert.rejects(each, full);
    world.done();
  }
});

test("a caller is told of one event after the other, and its failing to hear of the first stops nothing", async () => {
  const token = await unsentCancel();
  const { service, client, options } = held();
  const first = client.resume(token, options);
  await settleDown();
  const told: string[] = [];
  let isAtWork = false;
  const second = client.resume(token, {
    onProgress: async ({ type }) => {
      assert.equal(isAtWork, false);
      isAtWork = true;
      await settleDown();
      isAtWork = false;
      told.push(type);
      if (told.length === 1) throw new Error("disk full");
    },
  });
  for (const answer of [approved, ok(), reversed]) await service.answer(answer);
  assert.deepEqual([(await first).result, (await second).result], ["reversed", "reversed"]);
  assert.deepEqual(told, ["asked", "sent", "in progress", "waiting", "asked", "final"]);
});

for (const when of ["when it joins", "later"] as const) {
  test(`a stop of either caller holds for the operation: nothing is sent from then on (${when})`, async () => {
    const token = await unsentCancel();
    const { service, client, options } = held();
    const stop = new AbortController();
    const first = client.resume(token, options);
    await settleDown();
    if (when === "when it joins") stop.abort();
    const second = client.resume(token, { ...options, askOnly: stop.signal });
    stop.abort();
    await service.answer(approved);
    assert.deepEqual([(await first).result, (await second).result], ["not-sent", "not-sent"]);
    assert.deepEqual(service.seen, ["/check"]);
  });
}

test("an abort at the terminal that one caller tells of counts for all", async () => {
  const sale = { documentExtID: "ORDER-1", items: [{ itemAmount: 150 }] };
  const token = await tokenAt([["/sale", error(44)]], "waiting", (client, options) =>
    client.fiscal.settle("sale", sale, options),
  );
  const { service, client, options } = held();
  const first = client.resume(token, { ...options, windowMs: 60_000 });
  await settleDown();
  const second = client.resume(token, { ...options, aborted: AbortSignal.abort() });
  let isOver = false;
  const ends = Promise.all([first, second]).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await until(() => isOver || service.isAsked, "a question, or the end");
    if (service.isAsked) await service.answer(error(9));
  }
  assert.deepEqual(
    (await ends).map(({ result }) => result),
    ["failed", "failed"],
  );
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
  for (const each of signals) assert.equal(getEventListeners(each, "abort").length, 0);
});
