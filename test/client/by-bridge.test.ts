import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteService } from "../../src/client/remote-service.ts";
import { resume, settle } from "../../src/client/settle.ts";
import type { SettleEvent, SettleOptions } from "../../src/client/settle-types.ts";
import { bank } from "../../src/contract/bank.ts";
import { fiscal } from "../../src/contract/fiscal.ts";
import { qr } from "../../src/contract/qr.ts";
import { nothingSent } from "../../src/core/fault.ts";
import type { OperationResult } from "../../src/core/followed.ts";
import type { Clock } from "../../src/settle/clock.ts";
import { type Answer, failedAnswer, type TransportRequest } from "../../src/settle/transport.ts";
import {
  busy,
  error,
  kept,
  knownBy,
  lost,
  merchantId,
  ok,
  over,
  repeat,
  reply,
  type Script,
  Scripted,
  TestClock,
  wrong,
} from "./scripted.ts";

/** Tests src/client/settle.ts. A bridge is asked to follow the operation (`Prefer: wait`). */

const settleByBridge = (service: RemoteService, path: string, given: object, options: SettleOptions) =>
  settle(service, path, given, options, true);

const body = { pay_id: "P-1", amount: 1500 };

/** An answer as a bridge gives it that followed the operation. */
const by = (answer: Answer, result: OperationResult, isGuarded = true): Answer => ({
  ...answer,
  followed: { result, answerOf: undefined, isGuarded },
});
const approved = reply({ status: "success", data: { status: "APPROVED", rrn: "77" } });

/** As of its question. */
const ofQuestion = (answer: Answer, result: OperationResult): Answer => ({
  ...answer,
  followed: { result, answerOf: "/check", isGuarded: true },
});

async function settled(script: Script, more: SettleOptions = {}, path = "/sale") {
  const transport = new Scripted(script);
  const clock = new TestClock();
  const events: SettleEvent[] = [];
  const service = new RemoteService({ contract: bank, transport, merchantId: undefined, timeoutMs: undefined });
  const ended = await settleByBridge(service, path, body, {
    clock,
    onProgress: (event) => {
      events.push(event);
    },
    ...more,
  });
  assert.deepEqual(
    transport.seen.map(({ route }) => route),
    script.map(([route]) => route),
  );
  return { ...ended, events, clock };
}

const asksNot = (outcome: "not-sent" | "unknown"): Answer => ({
  ...failedAnswer(outcome, "the terminal can't be asked"),
  ...{
    httpStatus: outcome === "not-sent" ? 503 : 502,
    reason: outcome === "not-sent" ? "cannot-ask" : "no-question",
    retryAfterMs: undefined,
  },
});

const paid = ok({ data: { rrn: "1" } });
const open = by(lost, "unknown");
const forgotten = by(lost, "unknown", false);
const absent = error(-15);
const why = "Cannot send to line till: it is down";
const down: Answer = { ...failedAnswer("not-sent", `${why}. ${nothingSent}`), httpStatus: 503 };
const reused: Answer = { ...failedAnswer("not-sent", why), httpStatus: 422, reason: "key-reused" };
const others = ok({ code: 0, message: "Approved", data: { status: "APPROVED", txn_id: "T-9" } });
const shownT1 = by(ok({ data: { trans: "T1" } }), "pending");
const shownT2 = by(ok({ data: { trans: "T2" } }), "pending", false);
const called = (...answers: readonly Answer[]): Script => answers.map((answer) => ["/sale", answer]);
const asked = (...answers: readonly Answer[]): Script => answers.map((answer) => ["/check", answer]);
const shown = (...answers: readonly Answer[]): Script => answers.map((answer) => ["/showqrcode", answer]);

/** What comes of it: fields of the result, and of what its token knows. */
type Expected = Readonly<Record<string, unknown>>;
const is = (result: string, more: Expected = {}): Expected => ({ result, ...more });
const neverSent = is("not-sent", { end: "not-sent" });
const failedSince = `it may have been carried out, and the last request about it failed: ${why}`;
const unproven =
  "it may have been carried out, and the last answer is about another operation, or doesn't prove how this one ended";

/** The requests in their order, and what comes of them within so many milliseconds. */
const rows: readonly (readonly [what: string, script: Script, expected: Expected, windowMs?: number])[] = [
  ["an end", called(by(approved, "approved")), is("approved", { data: { status: "APPROVED", rrn: "77" } })],
  [
    "a decline",
    called(by(error(-20, { data: { status: "ERROR" } }), "declined")),
    is("declined", { code: -20, message: "code -20", data: { status: "ERROR" } }),
  ],
  ["a refusal", called(by(error(-29), "declined")), is("declined", { code: -29 })],
  ["a proof that nothing was carried out", called(by(error(-15), "failed")), is("declined")],
  ["no end within the window", called(open, open, open), is("unknown", { doubt: true }), 2_500],
  // From here on it asks, where a bridge wouldn't recognise a repetition
  ["pending of a bridge without a journal", [...called(by(ok(), "pending", false)), ...asked(ok(), approved)], is("approved")],
  ["unknown of a bridge without a journal", [...called(forgotten), ...asked(ok(), approved)], is("approved")],
  ["a success of a service that doesn't know the header", [...called(ok()), ...asked(ok(), approved)], is("approved")],
  ["a bridge that went away in the midst", [...called(lost), ...asked(ok(), approved)], is("approved")],
  // What wasn't sent
  ["busy", called(busy, by(approved, "approved")), is("approved")],
  ["busy with its word", called(by(busy, "failed"), by(approved, "approved")), is("approved")],
  ["busy without a journal", called(by(busy, "unknown", false), by(approved, "approved", false)), is("approved")],
  ["busy until the window's end", called(busy, busy), neverSent, 2_000],
  ["busy with its word until the window's end", called(by(busy, "failed"), by(busy, "failed")), neverSent, 2_000],
  ["a refusal of the request", called(wrong), is("not-sent", { end: "not-sent", doubt: false, message: "mend it" })],
  ["a refusal of the request with its word", called(by(wrong, "failed")), neverSent],
  [
    "a terminal that refuses the question before",
    [["/cancel", by(asksNot("not-sent"), "failed")]],
    is("not-sent", { message: "the terminal can't be asked" }),
  ],
  ["an operation without a question", called(by(asksNot("unknown"), "unknown")), is("unknown")],
  // What wasn't sent says nothing of an earlier call that may have arrived
  ["busy after a lost one", called(open, by(busy, "failed"), by(approved, "approved")), is("approved")],
  ["no question after a lost one", called(open, by(asksNot("not-sent"), "failed"), by(approved, "approved")), is("approved")],
  ["a bridge out of reach after a lost one", called(open, busy, by(approved, "approved")), is("approved")],
  ["busy with a key that the bridge knows", called(by(busy, "unknown"), by(busy, "unknown")), is("unknown"), 1_000],
  [
    "nothing sent of what goes on",
    called(by(ok(), "pending"), by(down, "pending")),
    is("unknown", { message: failedSince }),
    1_500,
  ],
  ["another body under the key", called(by(busy, "unknown"), reused), is("unknown", { message: failedSince })],
  [
    "another body that took the key while nothing of a lost one was there",
    [...called(lost), ...asked(absent), ...called(reused)],
    is("unknown", { message: failedSince }),
  ],
  [
    "another operation's end",
    called(by(others, "unknown"), by(others, "unknown")),
    is("unknown", { code: undefined, data: undefined, message: unproven }),
    1_500,
  ],
  // A service that follows nothing
  ["an accepted one that isn't found yet", [...called(ok()), ...asked(absent, absent, approved)], is("approved"), 10_000],
  ["a refusal by code", called(error(-29)), is("declined")],
  ["a refund by QR", [["/refund", ok({ data: { rrn: "1" } })]], is("approved", { end: "approved" })],
  ["a confirm under its payment's key", [["/confirm", ok()], ...asked(absent, absent, absent, absent)], is("unknown"), 5_000],
  // What comes after a first call that was lost, or forgotten, proves nothing of that
  ["a refusal after a lost one", [...called(open, error(-29)), ...asked(approved)], is("approved"), 10_000],
  ["a refusal after an accepted one", [...called(by(ok(), "pending"), error(-29)), ...asked(approved)], is("approved"), 10_000],
  ["a second code", [...shown(shownT1, shownT2), ...asked(error(1), error(1))], is("unknown"), 2_500],
  [
    "what the terminal had before the bridge forgot it",
    [...called(by(lost, "pending"), forgotten), ...repeat(31, ["/check", absent])],
    is("unknown"),
    60_000,
  ],
  ["a payment whose name nobody gives", shown(ofQuestion(paid, "approved")), is("approved", { trans: undefined })],
];

for (const [what, script, expected, windowMs = 20_000] of rows) {
  test(`settleByBridge() is answered ${what}: ${String(expected["result"])}`, async () => {
    const path = script[0]?.[0] ?? "";
    const isQr = path === "/showqrcode" || path === "/refund";
    const { token, ...seen } = await (isQr ? runQr(script, { windowMs }) : settled(script, { windowMs }, path));
    const all: Expected = { ...knownBy(token), ...seen };
    assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, all[name]])), expected);
  });
}

test("settleByBridge() that is stopped before it was sent sends nothing", async () => {
  for (const stop of ["signal", "askOnly"] as const) {
    const { result } = await settled([], { [stop]: AbortSignal.abort() });
    assert.equal(result, "not-sent");
  }
});

test("settleByBridge() sends the same call again while the word is pending or unknown", async () => {
  const { result, events } = await settled([
    ["/sale", by(ok(), "pending")],
    ["/sale", by(lost, "unknown")],
    ["/sale", by(approved, "approved")],
  ]);
  assert.equal(result, "approved");
  assert.deepEqual(
    events.map(({ type }) => type),
    ["sent", "in progress", "waiting", "resent", "waiting", "resent", "final"],
  );
});

test("settleByBridge() hands out no token by which an operation that was sent could be sent again before it is asked about", async () => {
  for (const path of ["/sale", "/refund", "/confirm"]) {
    const { events } = await settled(
      [
        [path, by(lost, "unknown")],
        [path, by(approved, "approved")],
      ],
      {},
      path,
    );
    for (const { token } of events) {
      const later = over([["/check", lost]]);
      const { end = "unknown" } = knownBy(token);
      assert.equal((await later.client.resume(kept(token), { ...later.options, windowMs: 0 })).result, end);
      later.done();
    }
  }
});

/** A run over a script, with the requests as they left and the token as each event gave it. */
async function run(
  script: Script,
  options: SettleOptions = {},
  before: (request: TransportRequest, clock: TestClock) => void = () => {},
) {
  const scripted = new Scripted(script);
  const clock = new TestClock();
  clock.ms = 5_000;
  const requests: TransportRequest[] = [];
  const transport = {
    send: (request: TransportRequest) => {
      requests.push(request);
      before(request, clock);
      return scripted.send(request);
    },
    close: async () => {},
  };
  const service = new RemoteService({ contract: bank, transport, merchantId: undefined, timeoutMs: undefined });
  const settled = await settleByBridge(service, "/sale", body, { clock, ...options });
  assert.deepEqual(
    scripted.seen.map(({ route }) => route),
    script.map(([route]) => route),
  );
  return { ...settled, requests, clock };
}

test("settleByBridge() sends nothing when its first event can't be stored, and rejects with the reason", async () => {
  const full = new Error("disk full");
  await assert.rejects(run([], { onProgress: () => Promise.reject(full) }), full);
  let events = 0;
  const onProgress = ({ type }: SettleEvent) => {
    events++;
    if (type === "sent" && events > 1) throw full;
  };
  await assert.rejects(run([["/sale", busy]], { onProgress }), full);
});

test("settleByBridge() goes on when a later event's handler fails, until what wasn't sent is to be sent", async () => {
  const failsAt = (...types: readonly SettleEvent["type"][]) => ({
    onProgress: ({ type }: SettleEvent) => {
      if (types.includes(type)) throw new Error("no display");
    },
  });
  const { result } = await run(
    [
      ["/sale", busy],
      ["/sale", by(ok(), "pending")],
      ["/sale", by(approved, "approved")],
    ],
    failsAt("not sent", "waiting", "resent", "final"),
  );
  assert.equal(result, "approved");
});

test("settleByBridge() does nothing while its handler is at work, and sends nothing while it waits", async () => {
  const log: string[] = [];
  const takesTime = async (what: string) => {
    await new Promise((resolve) => setImmediate(resolve));
    log.push(what);
  };
  const { clock } = await run(
    [
      ["/sale", busy],
      ["/sale", by(lost, "unknown")],
      ["/sale", by(approved, "approved")],
    ],
    { onProgress: ({ type }) => takesTime(`told: ${type}`) },
    (_, each) => {
      log.push("calls");
      each.sleep = async (ms) => {
        log.push("sleeps");
        await takesTime("wakes");
        await TestClock.prototype.sleep.call(each, ms);
      };
    },
  );
  const waits = ["told: waiting", "sleeps", "wakes"];
  assert.deepEqual(log, [
    ...["told: sent", "calls", "told: not sent", ...waits],
    ...["told: sent", "calls", ...waits],
    ...["told: resent", "calls", "told: final"],
  ]);
  assert.deepEqual(clock.slept, [1_000, 1_000]);
});

test("settleByBridge() that is left while it waits ends at once, and asks at once where it may only ask from then on", async () => {
  for (const [stop, asked, result] of [
    ["signal", [], "unknown"],
    ["askOnly", [["/check", approved]], "approved"],
  ] as const) {
    const stopping = new AbortController();
    const clock: Clock = {
      nowMs: () => 0,
      sleep: (_, signal) =>
        new Promise((resolve) => {
          signal?.addEventListener("abort", () => resolve());
          setImmediate(() => stopping.abort());
        }),
    };
    const ended = await run([["/sale", by(ok(), "pending")], ...asked], { clock, [stop]: stopping.signal });
    assert.equal(ended.result, result, stop);
  }
});

test("settleByBridge() asks the bridge to follow for what is left of its window, ten minutes at most", async () => {
  const waits = async (options: SettleOptions) => {
    const { requests } = await run(
      [
        ["/sale", by(ok(), "pending")],
        ["/sale", by(approved, "approved")],
      ],
      options,
    );
    return requests.map(({ waitS }) => waitS);
  };
  assert.deepEqual(await waits({}), [180, 179]);
  assert.deepEqual(await waits({ windowMs: 2_500 }), [3, 2]);
  assert.deepEqual(await waits({ windowMs: 3_600_000 }), [600, 600]);
});

test("settleByBridge() waits for the bridge's answer longer than the bridge follows", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let sends = 0;
  const transport = { send: () => new Promise<never>(() => sends++), close: async () => {} };
  const service = new RemoteService({ contract: bank, transport, merchantId: undefined, timeoutMs: 1_000 });
  void settleByBridge(service, "/sale", body, { windowMs: 60_000, clock: new TestClock() });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  await turn();
  // The bank's 30 s for an answer, the window, and a margin of 30 s
  t.mock.timers.tick(119_999);
  await turn();
  assert.equal(sends, 1);
  t.mock.timers.tick(1);
  await turn();
  assert.equal(sends, 2, "then it is asked about");
});

test("settleByBridge() can be withdrawn by askOnly until it has left", async () => {
  const stop = new AbortController();
  const withdrawn: boolean[] = [];
  const { result } = await run(
    [
      ["/sale", by(ok(), "pending")],
      ["/check", approved],
    ],
    { askOnly: stop.signal },
    (request) => {
      withdrawn.push(request.withdrawn?.aborted === false);
      stop.abort();
    },
  );
  assert.deepEqual([result, withdrawn], ["approved", [true, false]], "what has left is waited for");
});

test("settleByBridge() that is stopped after a call that wasn't sent sends none again, and says not-sent", async () => {
  for (const stop of ["signal", "askOnly"] as const) {
    const stopping = new AbortController();
    const { result, message } = await run([["/sale", busy]], {
      [stop]: stopping.signal,
      onProgress: ({ type }) => {
        if (type === "waiting") stopping.abort();
      },
    });
    assert.deepEqual([result, message], ["not-sent", "it was stopped before it was sent"]);
  }
});

test("settleByBridge() says what was last known when its caller leaves while a call is out, and waits no more", async () => {
  for (const [answer, result] of [
    [by(lost, "unknown"), "unknown"],
    [busy, "not-sent"],
  ] as const) {
    const leaving = new AbortController();
    const left = await run([["/sale", answer]], { signal: leaving.signal }, () => queueMicrotask(() => leaving.abort()));
    assert.deepEqual([left.result, left.clock.slept], [result, []]);
  }
});

test("settleByBridge() that is left between two calls sends and announces nothing more, and doesn't say that nothing was sent", async () => {
  for (const at of ["waiting", "resent"]) {
    const leaving = new AbortController();
    const types: string[] = [];
    const { result, message } = await settled([["/sale", by(ok(), "pending")]], {
      signal: leaving.signal,
      onProgress: ({ type }) => {
        types.push(type);
        if (type === at) leaving.abort();
      },
    });
    assert.deepEqual([result, message], ["unknown", "it is no longer followed"]);
    assert.deepEqual(types, ["sent", "in progress", "waiting", ...(at === "resent" ? ["resent"] : []), "final"]);
  }
});

test("settleByBridge() asks by itself for what is left of its window, and once where nothing is", async () => {
  const left = await run(
    [["/sale", by(lost, "unknown")], ["/sale", by(lost, "unknown", false)], ...repeat(9, ["/check", ok()])],
    { windowMs: 9_000, intervalMs: 1_000 },
  );
  assert.equal(left.result, "unknown");
  const over = await run(
    [
      ["/sale", lost],
      ["/check", approved],
    ],
    { windowMs: 9_000 },
    ({ route }, clock) => {
      if (route === "/sale") clock.ms += 20_000;
    },
  );
  assert.equal(over.result, "approved");
  assert.equal(over.requests[0]?.waitS, 9);
});

test("settleByBridge() asks the bridge for nothing more once its window is over, and says what it was told", async () => {
  const late = await run(
    [["/sale", by(ok({ data: { status: "IN_PROGRESS" } }), "pending")]],
    { windowMs: 9_000 },
    (_, clock) => {
      clock.ms += 20_000;
    },
  );
  assert.deepEqual([late.result, late.data], ["unknown", { status: "IN_PROGRESS" }]);
  const edge = await run(repeat(2, ["/sale", by(lost, "unknown")]), { windowMs: 1_000 });
  assert.deepEqual([edge.result, edge.message, edge.clock.slept], ["unknown", "no answer came", [1_000]]);
  assert.equal(edge.requests[1]?.waitS, 0);
});

test("resume() of what settleByBridge() never sent says so, and sends nothing", async () => {
  const { token, message } = await run([["/sale", wrong]]);
  assert.deepEqual([knownBy(token).end, message], ["not-sent", "mend it"]);
  const world = over([]);
  const again = await world.client.resume(kept(token), world.options);
  assert.deepEqual([again.result, again.message], ["not-sent", "nothing was sent: mend it"]);
});

/** The same over qr. */
async function runQr(script: Script, options: SettleOptions = {}) {
  const scripted = new Scripted(script);
  const service = new RemoteService({ contract: qr, transport: scripted, merchantId: undefined, timeoutMs: undefined });
  const settled = await settleByBridge(
    service,
    script[0]?.[0] ?? "",
    { ...body, trans: undefined },
    {
      clock: new TestClock(),
      ...options,
    },
  );
  assert.deepEqual(
    scripted.seen.map(({ route }) => route),
    script.map(([route]) => route),
  );
  return { ...settled, seen: scripted.seen };
}

test("settleByBridge() keeps the name that only the start's answer gives, and its token asks by it", async () => {
  const shown = by(ok({ data: { trans: "T1" } }), "pending");
  const ofQuery: Answer = {
    ...ok({ data: { trans: "T9" } }),
    followed: { result: "pending", answerOf: "/check", isGuarded: true },
  };
  for (const later of [shown, ofQuery, by(lost, "unknown"), by(error(-3), "unknown")]) {
    const { result, token } = await runQr(
      [
        ["/showqrcode", shown],
        ["/showqrcode", later],
      ],
      { windowMs: 1_000 },
    );
    assert.equal(result, "unknown");
    const { name, isNameProven } = knownBy(token);
    assert.deepEqual([name, isNameProven], ["T1", true]);
  }
  const { result, seen } = await runQr([
    ["/showqrcode", by(ok({ data: { trans: "T1" } }), "pending", false)],
    ["/check", ok()],
    ["/check", ok({ data: { rrn: "1" } })],
  ]);
  assert.equal(result, "approved");
  assert.deepEqual(
    seen.slice(1).map(({ body: asked }) => asked["trans"]),
    ["T1", "T1"],
  );
});

/** A bridge's answer to a payment: /check's, or a fault, with the name that it says is proven. */
const named = (answer: Answer, result: OperationResult, trans: string, isGuarded = true): Answer => ({
  ...answer,
  followed: { result, answerOf: "/check", isGuarded, trans },
});

test("settleByBridge() gives the name that the bridge says is proven, in its token too, which asks by it", async () => {
  for (const isGuarded of [true, false]) {
    const { result, trans, token } = await runQr([["/showqrcode", named(paid, "approved", "T1", isGuarded)]]);
    assert.deepEqual([result, trans, token.trans], ["approved", "T1", "T1"]);
  }
  for (const [answer, result] of [
    [ok(), "pending"],
    [lost, "unknown"],
    [busy, "pending"],
  ] as const) {
    const open = await runQr(repeat(2, ["/showqrcode", named(answer, result, "T1")]), { windowMs: 1_000 });
    assert.deepEqual([open.result, open.trans, open.token.trans], ["unknown", "T1", "T1"], result);
    const later = over([["/check", paid]]);
    const resumed = await later.client.resume(kept(open.token), later.options);
    assert.deepEqual([resumed.result, resumed.trans], ["approved", "T1"]);
    assert.equal(later.service.seen[0]?.body["trans"], "T1");
  }
  const declined = await runQr([["/showqrcode", named(error(1), "declined", "T1")]]);
  assert.deepEqual([declined.result, declined.trans], ["declined", "T1"]);
});

test("settleByBridge() of a code that a bridge showed once more gives no name until that says by it that it is paid", async () => {
  const first = by(ok({ data: { trans: "T1" } }), "pending");
  const open = await runQr(
    [["/showqrcode", first], ["/showqrcode", named(ok(), "pending", "T2", false)], ...repeat(2, ["/check", ok()])],
    { windowMs: 2_000, intervalMs: 1_000 },
  );
  assert.deepEqual([open.result, open.trans, knownBy(open.token).name], ["unknown", undefined, "T2"]);
  const ended = await runQr([
    ["/showqrcode", first],
    ["/showqrcode", named(paid, "approved", "T2", false)],
  ]);
  assert.deepEqual([ended.result, ended.trans], ["approved", "T2"]);
});

test("settleByBridge() takes the answer to the bridge's question for no answer to the start, and learns no name by it", async () => {
  for (const result of ["pending", "unknown"] as const) {
    const followed = { result, answerOf: "/check", isGuarded: true } as const;
    const ofQuery: Answer = { ...ok({ data: { trans: "T9" } }), followed };
    const { token } = await runQr(repeat(2, ["/showqrcode", ofQuery]), { windowMs: 1_000 });
    const { isAccepted, name, isNameProven } = knownBy(token);
    assert.deepEqual([isAccepted, name, isNameProven], [result === "pending", "P-1", false]);
  }
});

test("settleByBridge() only asks from askOnly's abort on, and its token does so for ever", async () => {
  for (const at of ["waiting", "resent"] as const) {
    const stop = new AbortController();
    const onProgress = ({ type }: SettleEvent) => {
      if (type === at) queueMicrotask(() => stop.abort());
    };
    const stopped = await settled([["/sale", by(lost, "unknown")], ...repeat(2, ["/check", lost])], {
      askOnly: stop.signal,
      windowMs: 2_000,
      intervalMs: 1_000,
      onProgress,
    });
    assert.deepEqual([stopped.result, knownBy(stopped.token).isStopped], ["unknown", true], at);
  }
});

test("settleByBridge() takes no failure of a second code for the payment's end, where an earlier one may be paid", async () => {
  const declined = (isGuarded: boolean): Answer => ({
    ...error(1),
    followed: { result: "declined", answerOf: "/check", isGuarded },
  });
  const first = by(ok({ data: { trans: "T1" } }), "pending");
  const again = await runQr([
    ["/showqrcode", first],
    ["/showqrcode", declined(true)],
  ]);
  assert.equal(again.result, "declined", "the bridge knows the first one");
  const alone = await runQr([["/showqrcode", declined(false)]]);
  assert.equal(alone.result, "declined", "there was no other");
  const second = await runQr([
    ["/showqrcode", first],
    ["/showqrcode", declined(false)],
    ["/check", ok({ data: { rrn: "1" } })],
  ]);
  assert.equal(second.result, "approved", "the bridge forgot the first one, whose code was paid");

  const resumed = over([["/check", error(1)], ["/showqrcode", declined(false)], ...repeat(9, ["/check", error(1)])]);
  const { token } = await runQr(
    [
      ["/showqrcode", by(lost, "unknown", false)],
      ["/check", lost],
    ],
    { windowMs: 1 },
  );
  const { result } = await resumed.client.resume(kept(token), { ...resumed.options, windowMs: 4_000 });
  assert.equal(result, "unknown");
  const shown = resumed.service.seen.filter(({ route }) => route === "/showqrcode");
  assert.equal(shown.length, 1, "no third code is shown");
});

test("settleByBridge() gives a declined payment a token that shows no code again", async () => {
  const declined: Answer = { ...error(1), followed: { result: "declined", answerOf: "/check", isGuarded: true } };
  const transport = new Scripted([["/showqrcode", declined]]);
  const service = new RemoteService({ contract: qr, transport, merchantId: undefined, timeoutMs: undefined });
  const payment = { pay_id: "Q-1", amount: 100, currency: "944", currency_name: "AZN", pay_system: "P" };
  const ended = await settleByBridge(service, "/showqrcode", payment, { clock: new TestClock() });
  assert.equal(ended.result, "declined");
  const later = over(repeat(8, ["/check", error(1)]));
  const { result } = await later.client.resume(kept(ended.token), { ...later.options, windowMs: 12_000 });
  assert.notEqual(result, "approved");
  assert.deepEqual(new Set(later.service.seen.map(({ route }) => route)), new Set(["/check"]));
});

test("settleByBridge() shows beside unknown no error to a question that ends a payment by the contract, but its start's own", async () => {
  const refusal = (answerOf?: string): Answer => ({
    ...error(1, { message: "not paid" }),
    followed: { result: "unknown", answerOf, isGuarded: true },
  });
  const said = async (answer: Answer) => {
    const { result, code, message } = await runQr(repeat(2, ["/showqrcode", answer]), { windowMs: 1_500 });
    return [result, code, message];
  };
  const unproven =
    "it may have been carried out, and the last answer is about another operation, or doesn't prove how this one ended";
  assert.deepEqual(await said(refusal("/check")), ["unknown", undefined, unproven]);
  assert.deepEqual(await said(refusal()), ["unknown", 1, "not paid"]);
});

test("settleByBridge() takes no 'there is none' for proof at once while its first call may be on its way", async () => {
  const transport = new Scripted([
    ["/sale", by(lost, "unknown")],
    ["/sale", by(error(4), "unknown", false)],
    ...repeat(10, ["/check_status", error(9)]),
  ]);
  const service = new RemoteService({ contract: fiscal, transport, merchantId, timeoutMs: undefined });
  const sale = { documentExtID: "D-1", items: [{}] };
  const ended = await settleByBridge(service, "/sale", sale, { clock: new TestClock(), windowMs: 12_000 });
  assert.equal(ended.result, "unknown");
});

for (const route of ["/refund", "/cancel"] as const) {
  for (const denials of [1, 100]) {
    test(`resume() of a ${route} that a bridge sent proves nothing by ${denials} "there is none" of the key that it shares`, async () => {
      const transport = new Scripted([[route, by(lost, "unknown", false)]]);
      const service = new RemoteService({ contract: bank, transport, merchantId: undefined, timeoutMs: undefined });
      const ended = await settleByBridge(service, route, body, { clock: new TestClock(), windowMs: 0 });
      assert.equal(ended.result, "unknown");
      const later = over([...repeat(denials, ["/check", error(-15)]), ...repeat(100, ["/check", approved])] as Script);
      const options = { ...later.options, windowMs: 60_000 };
      assert.equal((await later.client.resume(kept(ended.token), options)).result, "unknown");
      assert.deepEqual(new Set(later.service.seen.map((each) => each.route)), new Set(["/check"]));
    });
  }
}

test("resume() of what a bridge was to follow asks first, and sends it again with the header, which the bridge recognises", async () => {
  const gone = new AbortController();
  let token: unknown;
  await settled([["/sale", lost]], {
    signal: gone.signal,
    onProgress: (event) => {
      token = kept(event.token);
      if (event.type === "asked") gone.abort();
    },
  });
  const absent = error(-15);
  const waits: (number | undefined)[] = [];
  const script: Script = [
    ["/check", absent],
    // Its journal has it: the batch is closed.
    ["/sale", by(approved, "approved")],
  ];
  const scripted = new Scripted(script);
  const transport = {
    send: (request: TransportRequest) => {
      waits.push(request.waitS);
      return scripted.send(request);
    },
    close: async () => {},
  };
  const service = new RemoteService({ contract: bank, transport, merchantId: undefined, timeoutMs: undefined });
  const { result, steps } = await resume({ bank: service }, token, { clock: new TestClock() });
  assert.equal(result, "approved");
  assert.deepEqual([waits[0], typeof waits[1], waits.length, steps.length], [undefined, "number", 2, 2]);
});

test("settleByBridge() counts a start's refusal once, however often the bridge repeats it: its token is no proof of a second one", async () => {
  const refused = by(error(1), "unknown");
  const { result, token } = await runQr(shown(refused, refused, refused), { windowMs: 3_000 });
  assert.deepEqual([result, knownBy(token).refusals], ["unknown", 1]);
  const later = over([...asked(error(1)), ...shown(by(paid, "approved"))]);
  assert.equal((await later.client.resume(kept(token), later.options)).result, "approved");
  later.done();
});
