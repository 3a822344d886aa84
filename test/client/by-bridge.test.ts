import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteService } from "../../src/client/remote-service.ts";
import { resume, settle } from "../../src/client/settle.ts";
import type { SettleEvent, SettleOptions } from "../../src/client/settle-types.ts";
import type { Contract } from "../../src/contract/contract.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { OperationResult } from "../../src/core/followed.ts";
import type { Clock } from "../../src/settle/clock.ts";
import { type Answer, failedAnswer, type TransportRequest } from "../../src/settle/transport.ts";
import {
  absent,
  approved,
  body,
  busy,
  down,
  endsAt,
  error,
  kept,
  knownBy,
  lost,
  merchantId,
  ok,
  over,
  repeat,
  type Script,
  Scripted,
  sale,
  TestClock,
  why,
  wrong,
} from "./scripted.ts";

/** Tests src/client/settle.ts. A bridge is asked to follow the operation (`Prefer: wait`). */

/** An answer as a bridge gives it that followed the operation. */
const by = (answer: Answer, result: OperationResult, isGuarded = true): Answer => ({
  ...answer,
  followed: { result, answerOf: undefined, isGuarded },
});

/** As of its question, by which a payment's name may be proven. */
const ofQuestion = (answer: Answer, result: OperationResult, isGuarded = true, trans?: string): Answer => ({
  ...answer,
  followed: { result, answerOf: "/check", isGuarded, ...(trans !== undefined && { trans }) },
});

interface RunOptions extends SettleOptions {
  readonly service?: keyof typeof contracts;
  /** What happens as a request leaves. */
  readonly before?: (request: TransportRequest, clock: TestClock) => void;
}

/** A run over a script, with what was told, the requests as they left, and the time that it waited. */
async function run(script: Script, { before, service: name, ...options }: RunOptions = {}) {
  const path = script[0]?.[0] ?? "/sale";
  const contract: Contract = contracts[name ?? (path === "/showqrcode" ? "qr" : "bank")];
  const scripted = new Scripted(script);
  const clock = new TestClock();
  clock.ms = 5_000;
  const requests: TransportRequest[] = [];
  const transport = {
    send: (request: TransportRequest) => {
      requests.push(request);
      before?.(request, clock);
      return scripted.send(request);
    },
    close: async () => {},
  };
  const events: SettleEvent[] = [];
  const onProgress = (event: SettleEvent) => {
    events.push(event);
    return options.onProgress?.(event);
  };
  const service = new RemoteService({ contract, transport, merchantId, timeoutMs: undefined });
  const given = name === "fiscal" ? sale : body;
  const ended = await settle(service, path, given, { clock, ...options, onProgress }, true);
  assert.deepEqual(
    scripted.seen.map(({ route }) => route),
    script.map(([route]) => route),
  );
  return {
    ...ended,
    known: knownBy(ended.token),
    types: events.map(({ type }) => type),
    events,
    requests,
    clock,
    seen: scripted.seen,
  };
}

const asksNot = (outcome: "not-sent" | "unknown"): Answer => ({
  ...failedAnswer(outcome, "the terminal can't be asked"),
  ...(outcome === "not-sent" ? { httpStatus: 503, reason: "cannot-ask" } : { httpStatus: 502, reason: "no-question" }),
});

const paid = ok({ data: { rrn: "1" } });
const open = by(lost, "unknown");
const forgotten = by(lost, "unknown", false);
const reused: Answer = { ...failedAnswer("not-sent", why), httpStatus: 422, reason: "key-reused" };
const others = ok({ code: 0, message: "Approved", data: { status: "APPROVED", txn_id: "T-9" } });
/** A code with its name: a second one of a bridge that forgot the first. */
const shownT1 = by(ok({ data: { trans: "T1" } }), "pending");
const shownT2 = by(ok({ data: { trans: "T2" } }), "pending", false);
/** Of one that a bridge shows without knowing an earlier one. */
const declined = (isGuarded: boolean) => ofQuestion(error(1), "declined", isGuarded);
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

const ok9 = ok({ data: { trans: "T9" } });
const twice = (answer: Answer) => shown(answer, answer);
const namedT1 = is("unknown", { name: "T1", isNameProven: true });
const unnamed = (isAccepted: boolean) => is("unknown", { isAccepted, name: "P-1", isNameProven: false });
const refused = (answerOf: string | undefined): Answer => ({
  ...error(1, { message: "not paid" }),
  followed: { result: "unknown", answerOf, isGuarded: true },
});

/** The requests in their order, and what comes of them within so many milliseconds. */
type Row = readonly [what: string, script: Script, expected: Expected, windowMs?: number];

const rows: readonly Row[] = [
  ["an end", called(by(approved, "approved")), is("approved", { data: { status: "APPROVED", txn_id: "7" } })],
  [
    "a decline",
    called(by(error(-20, { data: { status: "ERROR" } }), "declined")),
    is("declined", { code: -20, message: "code -20", data: { status: "ERROR" } }),
  ],
  ["a refusal", called(by(error(-29), "failed")), is("failed", { code: -29 })],
  ["a proof that nothing was carried out", called(by(error(-15), "failed")), is("failed")],
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
  ["a refusal by code", called(error(-29)), is("failed")],
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
  ["a second code's failure by a bridge that knows the first one", shown(shownT1, declined(true)), is("declined")],
  ["a code's failure where there was no other", shown(declined(false)), is("declined")],
  [
    "a second code's failure by a bridge that forgot the first one, which is paid",
    [...shown(shownT1, declined(false)), ...asked(paid)],
    is("approved"),
  ],
  // Names: only the start's answer, or the bridge's word, gives one, and its token asks by it
  ...[shownT1, ofQuestion(ok({ data: { trans: "T9" } }), "pending"), open, by(error(-3), "unknown")].map(
    (later, at): Row => [`a code with its name, and then by answer ${at}`, shown(shownT1, later), namedT1, 1_000],
  ),
  ["a name in an answer to the bridge's question, which goes on", twice(ofQuestion(ok9, "pending")), unnamed(true), 1_000],
  ["a name in an answer to the bridge's question, which is unknown", twice(ofQuestion(ok9, "unknown")), unnamed(false), 1_000],
  ...[true, false].map(
    (isGuarded): Row => [
      `a paid code with its proven name, ${isGuarded ? "with" : "without"} a journal`,
      shown(ofQuestion(paid, "approved", isGuarded, "T1")),
      is("approved", { trans: "T1" }),
    ],
  ),
  ["a failed code with its proven name", shown(ofQuestion(error(1), "declined", true, "T1")), is("declined", { trans: "T1" })],
  [
    "a second code that isn't paid yet",
    [...shown(shownT1, ofQuestion(ok(), "pending", false, "T2")), ...asked(ok(), ok())],
    is("unknown", { trans: undefined, name: "T2" }),
    2_500,
  ],
  ["a second code that is paid", shown(shownT1, ofQuestion(paid, "approved", false, "T2")), is("approved", { trans: "T2" })],
  // Beside unknown stands no error to a question that ends a payment by the contract, but its start's own
  ["an error to a question, unknown", twice(refused("/check")), is("unknown", { code: undefined, message: unproven }), 1_500],
  ["an error to its start, unknown", twice(refused(undefined)), is("unknown", { code: 1, message: "not paid" }), 1_500],
];

for (const [what, script, expected, windowMs = 20_000] of rows) {
  test(`settleByBridge() is answered ${what}: ${String(expected["result"])}`, async () => {
    const service = script[0]?.[0] === "/refund" ? "qr" : undefined;
    const { known, ...seen } = await run(script, { windowMs, ...(service && { service }) });
    const all: Expected = { ...known, ...seen };
    assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, all[name]])), expected);
    if ("trans" in expected) assert.equal(seen.token.trans, expected["trans"], "in its token too");
  });
}

test("settleByBridge() that is stopped before it was sent sends nothing", async () => {
  for (const stop of ["signal", "askOnly"] as const)
    assert.equal((await run([], { [stop]: AbortSignal.abort() })).result, "not-sent");
});

test("settleByBridge() sends the same call again while the word is pending or unknown", async () => {
  const { result, types } = await run(called(by(ok(), "pending"), open, by(approved, "approved")));
  assert.equal(result, "approved");
  assert.deepEqual(types, ["sent", "in progress", "waiting", "resent", "waiting", "resent", "final"]);
});

test("settleByBridge() hands out no token by which an operation that was sent could be sent again before it is asked about", async () => {
  for (const path of ["/sale", "/refund", "/confirm"]) {
    const { events } = await run([
      [path, open],
      [path, by(approved, "approved")],
    ]);
    for (const { token } of events) {
      const later = over([["/check", lost]]);
      const { end = "unknown" } = knownBy(token);
      assert.equal((await later.client.resume(kept(token), { ...later.options, windowMs: 0 })).result, end);
      later.done();
    }
  }
});

test("settleByBridge() sends nothing when its first event can't be stored, and rejects with the reason", async () => {
  const full = new Error("disk full");
  await assert.rejects(run([], { onProgress: () => Promise.reject(full) }), full);
  let events = 0;
  const onProgress = ({ type }: SettleEvent) => {
    events++;
    if (type === "sent" && events > 1) throw full;
  };
  await assert.rejects(run(called(busy), { onProgress }), full);
});

test("settleByBridge() goes on when a later event's handler fails, until what wasn't sent is to be sent", async () => {
  const failing: readonly SettleEvent["type"][] = ["not sent", "waiting", "resent", "final"];
  const onProgress = ({ type }: SettleEvent) => {
    if (failing.includes(type)) throw new Error("no display");
  };
  const { result } = await run(called(busy, by(ok(), "pending"), by(approved, "approved")), { onProgress });
  assert.equal(result, "approved");
});

test("settleByBridge() does nothing while its handler is at work, and sends nothing while it waits", async () => {
  const log: string[] = [];
  const takesTime = async (what: string) => {
    await new Promise((resolve) => setImmediate(resolve));
    log.push(what);
  };
  const { clock } = await run(called(busy, open, by(approved, "approved")), {
    onProgress: ({ type }) => takesTime(`told: ${type}`),
    before: (_, each) => {
      log.push("calls");
      each.sleep = async (ms) => {
        log.push("sleeps");
        await takesTime("wakes");
        await TestClock.prototype.sleep.call(each, ms);
      };
    },
  });
  const waits = ["told: waiting", "sleeps", "wakes"];
  assert.deepEqual(log, [
    ...["told: sent", "calls", "told: not sent", ...waits],
    ...["told: sent", "calls", ...waits],
    ...["told: resent", "calls", "told: final"],
  ]);
  assert.deepEqual(clock.slept, [1_000, 1_000]);
});

test("settleByBridge() that is left while it waits ends at once, and asks at once where it may only ask from then on", async () => {
  for (const [stop, answers, result] of [
    ["signal", [], "unknown"],
    ["askOnly", asked(approved), "approved"],
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
    const ended = await run([...called(by(ok(), "pending")), ...answers], { clock, [stop]: stopping.signal });
    assert.equal(ended.result, result, stop);
  }
});

test("settleByBridge() asks the bridge to follow for what is left of its window, ten minutes at most", async () => {
  const waits = async (options: RunOptions) => {
    const { requests } = await run(called(by(ok(), "pending"), by(approved, "approved")), options);
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
  const service = new RemoteService({ contract: contracts.bank, transport, merchantId: undefined, timeoutMs: 1_000 });
  void settle(service, "/sale", body, { windowMs: 60_000, clock: new TestClock() }, true);
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
  const { result } = await run([...called(by(ok(), "pending")), ...asked(approved)], {
    askOnly: stop.signal,
    before: (request) => {
      withdrawn.push(request.withdrawn?.aborted === false);
      stop.abort();
    },
  });
  assert.deepEqual([result, withdrawn], ["approved", [true, false]], "what has left is waited for");
});

test("settleByBridge() that is stopped after a call that wasn't sent sends none again, and says not-sent", async () => {
  for (const stop of ["signal", "askOnly"] as const) {
    const { result, message } = await run(called(busy), endsAt("waiting", stop));
    assert.deepEqual([result, message], ["not-sent", "it was stopped before it was sent"]);
  }
});

test("settleByBridge() says what was last known when its caller leaves while a call is out, and waits no more", async () => {
  for (const [answer, result] of [
    [open, "unknown"],
    [busy, "not-sent"],
  ] as const) {
    const leaving = new AbortController();
    const before = () => queueMicrotask(() => leaving.abort());
    const left = await run(called(answer), { signal: leaving.signal, before });
    assert.deepEqual([left.result, left.clock.slept], [result, []]);
  }
});

test("settleByBridge() that is left between two calls sends and announces nothing more, and doesn't say that nothing was sent", async () => {
  for (const at of ["waiting", "resent"] as const) {
    const { result, message, types } = await run(called(by(ok(), "pending")), endsAt(at));
    assert.deepEqual([result, message], ["unknown", "it is no longer followed"]);
    assert.deepEqual(types, ["sent", "in progress", "waiting", ...(at === "resent" ? ["resent"] : []), "final"]);
  }
});

test("settleByBridge() asks by itself for what is left of its window, and once where nothing is", async () => {
  const script = [...called(open, forgotten), ...repeat(9, ["/check", ok()])];
  assert.equal((await run(script, { windowMs: 9_000, intervalMs: 1_000 })).result, "unknown");
  const late = await run([...called(lost), ...asked(approved)], {
    windowMs: 9_000,
    before: ({ route }, clock) => {
      if (route === "/sale") clock.ms += 20_000;
    },
  });
  assert.deepEqual([late.result, late.requests[0]?.waitS], ["approved", 9]);
});

test("settleByBridge() asks the bridge for nothing more once its window is over, and says what it was told", async () => {
  const late = await run(called(by(ok({ data: { status: "IN_PROGRESS" } }), "pending")), {
    windowMs: 9_000,
    before: (_, clock) => {
      clock.ms += 20_000;
    },
  });
  assert.deepEqual([late.result, late.data], ["unknown", { status: "IN_PROGRESS" }]);
  const edge = await run(called(open, open), { windowMs: 1_000 });
  assert.deepEqual([edge.result, edge.message, edge.clock.slept], ["unknown", "no answer came", [1_000]]);
  assert.equal(edge.requests[1]?.waitS, 0);
});

test("resume() of what settleByBridge() never sent says so, and sends nothing", async () => {
  const { token, known, message } = await run(called(wrong));
  assert.deepEqual([known.end, message], ["not-sent", "mend it"]);
  const world = over([]);
  const again = await world.client.resume(kept(token), world.options);
  assert.deepEqual([again.result, again.message], ["not-sent", "nothing was sent: mend it"]);
});

test("settleByBridge() asks by itself by the name that only the start's answer gave", async () => {
  const { result, seen } = await run([...shown(by(ok({ data: { trans: "T1" } }), "pending", false)), ...asked(ok(), paid)]);
  assert.deepEqual([result, seen[1]?.body["trans"], seen[2]?.body["trans"]], ["approved", "T1", "T1"]);
});

test("settleByBridge() gives the name that the bridge says is proven while a payment goes on, and its token asks by it", async () => {
  for (const [answer, result] of [
    [ok(), "pending"],
    [lost, "unknown"],
    [busy, "pending"],
  ] as const) {
    const going = await run(twice(ofQuestion(answer, result, true, "T1")), { windowMs: 1_000 });
    assert.deepEqual([going.result, going.trans, going.token.trans], ["unknown", "T1", "T1"], result);
    const later = over(asked(paid));
    const resumed = await later.client.resume(kept(going.token), later.options);
    assert.deepEqual([resumed.result, resumed.trans], ["approved", "T1"]);
    assert.equal(later.service.seen[0]?.body["trans"], "T1");
  }
});

test("settleByBridge() only asks from askOnly's abort on, and its token does so for ever", async () => {
  for (const at of ["waiting", "resent"] as const) {
    const stop = new AbortController();
    const onProgress = ({ type }: SettleEvent) => {
      if (type === at) queueMicrotask(() => stop.abort());
    };
    const options = { askOnly: stop.signal, windowMs: 2_000, intervalMs: 1_000, onProgress };
    const stopped = await run([...called(open), ...asked(lost, lost)], options);
    assert.deepEqual([stopped.result, stopped.known.isStopped], ["unknown", true], at);
  }
});

test("resume() of a code that a bridge forgot shows one more, no third, and takes no failure for its end", async () => {
  const { token } = await run([...shown(forgotten), ...asked(lost)], { windowMs: 1 });
  const later = over([...asked(error(1)), ...shown(declined(false)), ...repeat(9, ["/check", error(1)])]);
  assert.equal((await later.client.resume(kept(token), { ...later.options, windowMs: 4_000 })).result, "unknown");
  assert.equal(later.service.seen.filter(({ route }) => route === "/showqrcode").length, 1);
});

test("settleByBridge() gives a declined payment a token that shows no code again", async () => {
  const { result, token } = await run(shown(declined(true)));
  assert.equal(result, "declined");
  const later = over(repeat(8, ["/check", error(1)]));
  assert.notEqual((await later.client.resume(kept(token), { ...later.options, windowMs: 12_000 })).result, "approved");
  assert.deepEqual(new Set(later.service.seen.map(({ route }) => route)), new Set(["/check"]));
});

test("settleByBridge() takes no 'there is none' for proof at once while its first call may be on its way", async () => {
  const script = [...called(open, by(error(4), "unknown", false)), ...repeat(7, ["/check_status", error(9)])];
  assert.equal((await run(script, { service: "fiscal", windowMs: 12_000 })).result, "unknown");
});

for (const route of ["/refund", "/cancel"] as const) {
  for (const denials of [1, 100]) {
    test(`resume() of a ${route} that a bridge sent proves nothing by ${denials} "there is none" of the key that it shares`, async () => {
      const { result, token } = await run([[route, forgotten], ...asked(lost)], { windowMs: 0 });
      assert.equal(result, "unknown");
      const later = over([...repeat(denials, ["/check", absent]), ...repeat(100, ["/check", approved])]);
      assert.equal((await later.client.resume(kept(token), { ...later.options, windowMs: 60_000 })).result, "unknown");
      assert.deepEqual(new Set(later.service.seen.map((each) => each.route)), new Set(["/check"]));
    });
  }
}

test("resume() of what a bridge was to follow asks first, and sends it again with the header, which the bridge recognises", async () => {
  const { events } = await run(called(lost), endsAt("asked"));
  const token = kept(events.findLast(({ type }) => type === "asked")?.token ?? assert.fail("nothing was asked"));
  // Its journal has it: the batch is closed.
  const scripted = new Scripted([...asked(absent), ...called(by(approved, "approved"))]);
  const waits: (number | undefined)[] = [];
  const transport = {
    send: (request: TransportRequest) => {
      waits.push(request.waitS);
      return scripted.send(request);
    },
    close: async () => {},
  };
  const service = new RemoteService({ contract: contracts.bank, transport, merchantId: undefined, timeoutMs: undefined });
  const { result, steps } = await resume({ bank: service }, token, { clock: new TestClock() });
  assert.equal(result, "approved");
  assert.deepEqual([waits[0], typeof waits[1], waits.length, steps.length], [undefined, "number", 2, 2]);
});

test("settleByBridge() counts a start's refusal once, however often the bridge repeats it: its token is no proof of a second one", async () => {
  const refusal = by(error(1), "unknown");
  const { result, token, known } = await run(shown(refusal, refusal, refusal), { windowMs: 3_000 });
  assert.deepEqual([result, known.refusals], ["unknown", 1]);
  const later = over([...asked(error(1)), ...shown(by(paid, "approved"))]);
  assert.equal((await later.client.resume(kept(token), later.options)).result, "approved");
  later.done();
});
