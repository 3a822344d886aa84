import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { settlingRules } from "../../src/contract/settling.ts";
import { recentMs } from "../../src/journal/recent-operations.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { absent, askedOver, type Bench, benchOf, ended, inProgress, type LostSettings } from "./doubtful.ts";

/**
 * Tests src/follow/doubts.ts, src/follow/observer.ts.
 *
 * What an answer proves of operations in doubt, no matter who asked, and about which of them nothing can be asked.
 */

const time = new VirtualTime();
after(() => time.restore());
// What one test leaves waiting would live on in the next one's hours, and cost it seconds.
afterEach(() => time.forgetTimers());

const qrBody = { pay_id: "Q", trans: "T-1", pay_system: "PALM", amount: 100 };

test("Doubts settles by the answer to a till's question, and by none about another operation", async () => {
  const bench = await benchOf(time, ({ body }) => (body["pay_id"] === "A" ? ended("APPROVED") : ended("ERROR")));
  await bench.lose("A");
  await bench.lose("B");
  await bench.ask("/check", { pay_id: "C" });
  assert.deepEqual(bench.unknown, ["A", "B"]);
  await bench.ask("/check", { pay_id: "A" });
  assert.deepEqual([bench.unknown, bench.told.settlings], [["B"], ["bank /sale A approved answer"]]);
  bench.answers = () => ({ ...ended("APPROVED"), pay_id: "A" });
  await bench.ask("/check", { pay_id: "B" });
  assert.deepEqual(bench.unknown, ["B"], "the answer names another one");
  bench.answers = () => ({ status: "success", data: { status: "ERROR" } });
  await bench.ask("/check", { pay_id: "B" });
  bench.answers = () => ({ status: "error", data: { status: "APPROVED" } });
  await bench.ask("/check", { pay_id: "B" });
  assert.deepEqual(bench.unknown, ["B"], "answers that contradict themselves prove nothing");
  assert.deepEqual(bench.errors, []);
});

test("Doubts counts a till's absences once an interval, and only those of a question that could have found it", async () => {
  const bench = await benchOf(time, () => absent);
  await bench.lose("7", { body: { pay_id: 7, amount: 100 } });
  await time.advance(31_000);
  for (let n = 0; n < 5; n++) await bench.ask("/check", { pay_id: 7 });
  assert.deepEqual(bench.unknown, ["7"], "in the same moment they count once");
  for (let n = 0; n < 5; n++) {
    await time.advance(1_000);
    await bench.ask("/check", { pay_id: "7" });
  }
  assert.deepEqual(bench.unknown, ["7"], "a strict terminal knows the number alone");
  for (let n = 0; n < 2; n++) {
    await time.advance(1_000);
    await bench.ask("/check", { pay_id: 7 });
  }
  assert.deepEqual(bench.told.settlings, ["bank /sale 7 failed answer"]);
});

test("Doubts takes no answer while another operation stands under the same key, or one is under way", async () => {
  const bench = await benchOf(time, () => ended("ERROR"));
  await bench.lose("A");
  await bench.lose("A", { body: { pay_id: "A", amount: 200 } });
  await bench.lose("B");
  await bench.lose("B", { route: "/cancel" });
  for (const key of ["A", "B"]) await bench.ask("/check", { pay_id: key });
  assert.deepEqual(bench.unknown, ["A", "A", "B", "B"]);
  for (const operation of bench.journal.open.slice(0, 3)) {
    assert.match(bench.doubts.cannotAsk(operation) ?? "", /another operation was sent under its key/);
  }
  await bench.lose("C");
  const entry = bench.journal.begin(
    {
      ...(bench.asked[0]?.call ?? assert.fail()),
      route: "/sale",
      key: "C",
      body: [Buffer.from('{"pay_id":"C","amount":100}')],
    },
    contracts.bank.routes.find(({ path }) => path === "/sale") ?? assert.fail(),
  );
  await entry.sent();
  await bench.ask("/check", { pay_id: "C" });
  assert.ok(bench.unknown.includes("C"), "it was sent again, and that isn't over");
  await entry.ended({ outcome: "unknown" });
  await bench.ask("/check", { pay_id: "C" });
  assert.ok(bench.unknown.includes("C"), "the first one's error: the second may be carried out yet");
  await time.advance(60_000);
  await bench.ask("/check", { pay_id: "C" });
  assert.ok(!bench.unknown.includes("C"));
});

for (const [what, settings, said] of [
  ["qr's /cancel", { service: "qr", route: "/cancel" }, /qr has no question about \/cancel/],
  ["qr's /refund", { service: "qr", route: "/refund" }, /qr has no question about \/refund/],
  ["qr's /final_confirm", { service: "qr", route: "/final_confirm" }, /qr has no question about \/final_confirm/],
  ["a payment whose trans was lost", { service: "qr", route: "/showqrcode" }, /its trans, .* was in the answer that was lost/],
  ["a bank refund", { route: "/refund" }, /may be another operation's/],
  ["a confirmation", { route: "/confirm" }, /may be another operation's/],
  ["a fiscal refund", { service: "fiscal", route: "/refund" }, /may be another operation's/],
  ["an abort", { route: "/abort" }, /bank has no question about \/abort/],
  ["a long key", { body: { pay_id: "K".repeat(70), amount: 1 } }, /too long or masked/],
  ["a card number as key", { body: { pay_id: "4111111111111111", amount: 1 } }, /too long or masked/],
  ["a number beyond 2^53 as key", { body: { pay_id: 2 ** 60, amount: 1 } }, /too long or masked/],
] as const satisfies readonly (readonly [string, LostSettings, RegExp])[]) {
  test(`Doubts.cannotAsk() says why ${what} stays unknown, and no answer changes that`, async () => {
    const bench = await benchOf(time, () => ({ ...absent, code: settings && "service" in settings ? 9 : -15 }));
    bench.resolve();
    const key = "body" in settings ? String(settings.body.pay_id) : "A";
    await bench.lose(key, settings);
    await time.advance(10 * 60_000);
    const [operation] = bench.journal.open;
    assert.ok(operation);
    assert.match(bench.doubts.cannotAsk(operation) ?? "", said);
    assert.deepEqual(bench.asked, []);
    const next = await benchOf(time, () => ended("APPROVED"), bench.disk.afterCut([], true));
    next.resolve();
    await time.advance(10 * 60_000);
    assert.equal(next.unknown.length, 1, "after a restart too");
    assert.deepEqual(next.asked, []);
  });
}

for (const [service, route, code, done, word] of [
  ["bank", "/refund", -15, ended("APPROVED"), "approved"],
  ["bank", "/confirm", -15, ended("APPROVED"), "approved"],
  ["fiscal", "/refund", 9, { status: "success", code: 0, docStatus: 1 }, "closed"],
] as const) {
  test(`Doubts settles a ${service} ${route} under whose key nothing was known, after a restart, and not beside another operation`, async () => {
    const [question, body] = service === "bank" ? ["/check", { pay_id: "R" }] : ["/check_status", { documentExtID: "R" }];
    const askedAgainAndAgain = async (bench: Bench) => {
      await time.advance(31_000);
      for (let n = 0; n < 4; n++) {
        await time.advance(2_000);
        await bench.ask(question, body, service);
      }
    };
    for (const [answer, end] of [
      [done, word],
      [{ status: "error", code }, "failed"],
    ] as const) {
      const before = await benchOf(time, () => inProgress);
      await before.lose("R", { service, route, isFresh: true });
      const next = await benchOf(time, () => answer, before.disk.afterCut([], true));
      assert.equal(next.doubts.cannotAsk(next.journal.open[0] ?? assert.fail()), undefined);
      await askedAgainAndAgain(next);
      assert.deepEqual([next.told.settlings, next.unknown], [[`${service} ${route} R ${end} answer`], []]);
      const shared = await benchOf(time, () => answer);
      await shared.lose("R", { service });
      await shared.lose("R", { service, route, isFresh: true });
      await askedAgainAndAgain(shared);
      assert.deepEqual([shared.told.settlings, shared.unknown], [[], ["R", "R"]]);
    }
  });
}

test("Doubts has no question for each operation with a baseline, and one for every other that can be polled", async () => {
  for (const service of ["bank", "fiscal", "qr"] as const) {
    for (const { route, baseline } of settlingRules[service]) {
      const bench = await benchOf(time, () => inProgress);
      const isPolled = contracts[service].routes.find(({ path }) => path === route)?.polling !== undefined;
      await bench.lose("Q", { service, route, ...(service === "qr" ? { body: qrBody } : {}) });
      const [operation] = bench.journal.open;
      assert.ok(operation);
      assert.equal(bench.doubts.cannotAsk(operation) === undefined, isPolled && !baseline, `${service} ${route}`);
    }
  }
});

test("Doubts asks about a qr payment by the trans of its own body, after a restart too; an error proves nothing", async () => {
  const before = await benchOf(time, () => inProgress);
  await before.lose("Q", { service: "qr", route: "/showqrcode", body: qrBody });
  let answer: object = { status: "error", code: 1, message: "no" };
  const bench = await benchOf(time, () => answer, before.disk.afterCut([], true));
  bench.resolve();
  await time.advance(61_000);
  assert.deepEqual(bench.asked[0]?.body, { pay_id: "Q", trans: "T-1", pay_system: "PALM" });
  assert.deepEqual(bench.unknown, ["Q"]);
  answer = { status: "success", data: { trans: "T-2", rrn: "1" } };
  await time.advance(300_000);
  assert.deepEqual(bench.unknown, ["Q"], "it names another payment");
  answer = { status: "success", data: { trans: "T-1", rrn: "1" } };
  await time.advance(300_000);
  assert.deepEqual(bench.told.settlings, ["qr /showqrcode Q approved answer"]);
});

test("Doubts settles fiscal documents by their state, signed questions and all: closed, unprinted, rolled back", async () => {
  for (const [answers, result] of [
    [[{ status: "success", code: 0, documentExtID: "A", docStatus: 1 }], "closed"],
    [[{ status: "error", code: 15, documentExtID: "A", documentID: 12, docStatus: 1, printError: 3 }], "unprinted"],
    [
      [
        { status: "error", code: 44 },
        { status: "success", docStatus: 0 },
        { status: "success", docStatus: 1 },
      ],
      "closed",
    ],
    [Array.from({ length: 9 }, () => ({ status: "error", code: 9 })), "failed"],
  ] as const) {
    const left: object[] = [...answers];
    const bench = await benchOf(time, () => left.shift() ?? inProgress);
    bench.resolve();
    await bench.lose("A", { service: "fiscal" });
    await time.advance(40_000);
    assert.deepEqual(bench.told.settlings, [`fiscal /sale A ${result} answer`]);
    assert.deepEqual(bench.asked[0]?.body, { documentExtID: "A" });
    assert.match(Buffer.concat(bench.asked[0]?.call.body ?? []).toString(), /&sign=\S+$/);
  }
});

test("observed() reads no answer while nothing is unknown, and never costs a caller its answer", async () => {
  const bench = await benchOf(time, () => ended("APPROVED"));
  const handler = bench.handlers.get("bank");
  assert.ok(handler);
  await bench.lose("A");
  Object.defineProperty(bench.journal, "settle", {
    value: () => {
      throw new Error("a bug");
    },
  });
  const reply = await bench.ask("/check", { pay_id: "A" });
  assert.match(Buffer.concat([...(reply?.payload ?? [])]).toString(), /APPROVED/);
  assert.equal(bench.errors.length, 1);
});

test("Doubts takes what the terminal on another device knows for proof, and not that it knows nothing", async () => {
  const bench = await benchOf(time, () => absent);
  await bench.lose("A", { over: "bank old" });
  await bench.lose("B", { over: askedOver });
  const [operation] = bench.journal.open;
  assert.ok(operation);
  const askAll = async () => {
    for (const key of ["A", "B"]) await bench.ask("/check", { pay_id: key });
  };
  for (let n = 0; n < 5; n++) {
    await time.advance(11_000);
    await askAll();
  }
  assert.deepEqual([bench.unknown, bench.told.settlings], [["A"], ["bank /sale B failed answer"]]);
  const said =
    "error, code -15: this proves nothing, it was sent over another device, or by another contract, than its service has now";
  assert.equal(bench.doubts.triedOf(operation).lastAnswer, said);
  assert.equal(bench.doubts.absenceDueMs(operation), undefined, "it would be asked about every second");
  bench.answers = () => ended("ERROR");
  await askAll();
  assert.deepEqual(bench.unknown, ["A"]);
  bench.answers = () => ended("APPROVED");
  await askAll();
  assert.deepEqual(bench.unknown, []);
});

test("Doubts takes no answer for its own where another service sent its key over the same device, while terminals were exchanged", async () => {
  const bench = await benchOf(time, () => absent);
  await bench.lose("A", { over: askedOver });
  await bench.send("A", { outcome: "answered", status: "success" }, { over: askedOver, of: "bank-2" });
  await bench.send("B", { outcome: "answered", status: "success" }, { over: askedOver });
  await bench.send("B", { outcome: "unknown" }, { over: askedOver, of: "bank-2" });
  // Nothing was known under its key before.
  await bench.lose("C", { route: "/refund", isFresh: true, over: askedOver });
  await bench.send("C", { outcome: "answered", status: "success" }, { route: "/refund", over: askedOver, of: "bank-2" });
  const askAll = async () => {
    for (const key of ["A", "B", "C"]) await bench.ask("/check", { pay_id: key }, "bank", key);
  };
  for (let n = 0; n < 5; n++) {
    await time.advance(11_000);
    await askAll();
  }
  bench.answers = () => ended("APPROVED");
  await askAll();
  await time.settle();
  const [operation] = bench.journal.open;
  assert.ok(operation);
  assert.deepEqual([bench.unknown, bench.told.settlings], [["A", "B", "C"], []]);
  assert.match(bench.doubts.triedOf(operation).lastAnswer ?? "", /^success: this proves nothing, another service sent/);
});

for (const usedBefore of [askedOver, "bank by-another-path"]) {
  test(`Doubts takes no success of a terminal elsewhere for its own where another service sells too (${usedBefore})`, () =>
    takesNoneOfOthers(usedBefore));
}

/** Both tills may have the same key. */
async function takesNoneOfOthers(usedBefore: string): Promise<void> {
  const bench = await benchOf(time, () => ended("APPROVED"));
  await bench.lose("A", { over: "bank old" });
  // What its answer left open is asked about as well, and isn't listed.
  await bench.send("B", { outcome: "answered", status: "success" }, { over: "bank old" });
  await bench.send("C", { outcome: "answered", status: "success" }, { over: usedBefore, of: "bank-2" });
  const askAll = async ({ ask }: Pick<typeof bench, "ask">) => {
    for (const key of ["A", "B"]) await ask("/check", { pay_id: key }, "bank", key);
  };
  await time.advance(5_000);
  await askAll({ ask: (...asked) => bench.ask(...asked) });
  await time.settle();
  const [operation] = bench.journal.open;
  assert.ok(operation);
  const endsOf = ({ journal }: typeof bench) => ["A", "B"].map((key) => journal.find("bank", "/sale", key)?.end);
  assert.deepEqual([bench.unknown, endsOf(bench), bench.told.settlings], [["A"], [undefined, undefined], []]);
  assert.match(
    bench.doubts.triedOf(operation).lastAnswer ?? "",
    /^success: this proves nothing, it was sent over another device.* may be another service's$/,
  );
  // A restart knows it too.
  const next = await benchOf(time, () => ended("APPROVED"), bench.disk.afterCut([], true));
  await askAll({ ask: (...asked) => next.ask(...asked) });
  await time.settle();
  assert.deepEqual([next.unknown, endsOf(next), next.told.settlings], [["A"], [undefined, undefined], []]);
}

test("Doubts takes nothing that the terminal on another device knows for a refund: it may be its sale", async () => {
  const bench = await benchOf(time, () => ended("APPROVED"));
  await bench.lose("A", { route: "/refund", isFresh: true, over: "bank old" });
  await bench.lose("B", { route: "/refund", isFresh: true, over: askedOver });
  const [operation] = bench.journal.open;
  assert.ok(operation);
  for (const answers of [inProgress, ended("APPROVED")]) {
    await time.advance(11_000);
    bench.answers = () => answers;
    for (const key of ["A", "B"]) await bench.ask("/check", { pay_id: key });
  }
  assert.deepEqual([bench.unknown, bench.told.settlings], [["A"], ["bank /refund B approved answer"]]);
  assert.equal(bench.journal.progressOf(operation).isAccepted, false);
  assert.match(
    bench.doubts.triedOf(operation).lastAnswer ?? "",
    /^success: this proves nothing, it was sent over another device/,
  );
});

test("Doubts takes no answer by another contract for an operation's: it is about another one of the same number", async () => {
  const bench = await benchOf(time, () => ({ status: "success", code: 0, docStatus: 1, documentID: 12, documentExtID: "A" }));
  // Its service had another contract when it was sent than the one that it is asked by.
  await bench.lose("A", { service: "fiscal", over: "fiscal new" });
  await time.advance(5_000);
  await bench.ask("/check_status", { documentExtID: "A" }, "fiscal");
  const { isAccepted, end } = bench.journal.find("fiscal", "/sale", "A") ?? {};
  assert.deepEqual([bench.unknown, isAccepted, end], [["A"], false, undefined]);
});

test("Doubts.cannotAsk() says what the configuration lacks: the service, or what signs its questions", async () => {
  const bench = await benchOf(time, () => absent);
  await bench.lose("A", { service: "fiscal" });
  const [operation] = bench.journal.open;
  assert.ok(operation);
  const { doubts } = bench;
  assert.equal(doubts.cannotAsk(operation), undefined);
  assert.deepEqual(doubts.questionOf(operation), { route: "/check_status", text: '{"documentExtID":"A"}' });
  doubts.use(new Map([["fiscal", { contract: contracts.fiscal, merchantId: undefined }]]));
  assert.match(doubts.cannotAsk(operation) ?? "", /can't be signed: set merchantId/);
  doubts.use(new Map());
  assert.match(doubts.cannotAsk(operation) ?? "", /the configuration has no service fiscal any more/);
  assert.deepEqual([doubts.questionOf(operation), doubts.absenceDueMs(operation)], [undefined, undefined]);
});

test("Doubts asks about no operation of an earlier process that is a day old by the box's clock, which says nothing of its own", async (t) => {
  const nowMs = 1_800_000_000_000;
  t.mock.timers.enable({ apis: ["Date"], now: nowMs });
  const bench = await benchOf(time, () => absent);
  await bench.lose("A");
  const [operation] = bench.journal.open;
  assert.ok(operation);
  const earlier = { ...operation, place: 1 };
  t.mock.timers.setTime(nowMs + recentMs - 1);
  assert.equal(bench.doubts.cannotAsk(earlier), undefined);
  t.mock.timers.setTime(nowMs - recentMs);
  assert.match(bench.doubts.cannotAsk(earlier) ?? "", /more than 24 h ago/, "the clock was ahead by a day, or is behind");
  t.mock.timers.setTime(nowMs + recentMs);
  assert.match(bench.doubts.cannotAsk(earlier) ?? "", /more than 24 h ago: look at the terminal/);
  // A clock that is set says nothing of how long this process has known an operation.
  assert.equal(bench.doubts.cannotAsk(operation), undefined);
  await time.advance(31_000);
  for (let n = 0; n < 3; n++) {
    await bench.ask("/check", { pay_id: "A" });
    await time.advance(1_000);
  }
  assert.deepEqual(bench.unknown, []);
});

test("Doubts takes nothing that was proven of one trans for proven of another", async () => {
  const bench = await benchOf(time, ({ body }) =>
    body["trans"] === "T-1" ? { status: "success" } : { status: "error", code: 1, message: "no such transaction" },
  );
  const payment = { pay_id: "Q-1", amount: 100, currency: "978", currency_name: "EUR", pay_system: "QRPAY" };
  await bench.lose("Q-1", { service: "qr", route: "/showqrcode", body: payment });
  await time.advance(1_000);
  for (const trans of ["T-1", "Q-1"]) await bench.ask("/check", { pay_id: "Q-1", trans, pay_system: "QRPAY" }, "qr");
  await time.settle();
  assert.deepEqual(bench.told.settlings, []);
});

test("Doubts asks about no operation that is a day old by the process's clock", async () => {
  const bench = await benchOf(time, () => inProgress);
  await bench.lose("A");
  const [operation] = bench.journal.open;
  assert.ok(operation);
  await time.advance(recentMs - 1);
  assert.equal(bench.doubts.cannotAsk(operation), undefined);
  await time.advance(1);
  assert.match(bench.doubts.cannotAsk(operation) ?? "", /more than 24 h ago/);
});

test("Doubts counts no absence of a question that was asked before the operation's sending was over", async () => {
  let answer = (_: object) => {};
  const bench = await benchOf(
    time,
    () =>
      new Promise<object>((resolve) => {
        answer = resolve;
      }),
  );
  const early = bench.ask("/check", { pay_id: "A" });
  await time.advance(500);
  await bench.lose("A");
  answer(absent);
  await early;
  await time.advance(30_000);
  bench.answers = () => absent;
  for (let n = 0; n < 2; n++) {
    await bench.ask("/check", { pay_id: "A" });
    await time.advance(1_000);
  }
  assert.deepEqual(bench.unknown, ["A"], "two of the three absences count");
  await bench.ask("/check", { pay_id: "A" });
  assert.deepEqual(bench.unknown, []);
});

test("Doubts counts an absence from 30 s after the sending on, three times, an interval apart, and says when the next one will", async () => {
  const bench = await benchOf(time, () => absent);
  const beganMs = time.nowMs;
  await bench.lose("A");
  const [operation] = bench.journal.open;
  assert.ok(operation);
  assert.equal(bench.doubts.absenceDueMs(operation), undefined);
  const askAfter = async (ms: number) => {
    await time.advance(ms);
    await bench.ask("/check", { pay_id: "A" });
    return (bench.doubts.absenceDueMs(operation) ?? Number.NaN) - beganMs;
  };
  assert.equal(await askAfter(0), 30_000);
  assert.equal(await askAfter(29_999), 30_999);
  assert.equal(await askAfter(1), 30_999, "too soon behind the one before");
  assert.equal(await askAfter(999), 31_999);
  bench.doubts.unanswered(operation, "no-reply");
  assert.equal(bench.doubts.absenceDueMs(operation), undefined, "it wasn't the last answer");
  assert.equal(await askAfter(1_000), 32_999);
  assert.deepEqual(bench.unknown, ["A"]);
  await askAfter(1_000);
  assert.deepEqual(bench.told.settlings, ["bank /sale A failed answer"]);
});

test("Doubts learns nothing from another route, nor from an answer that isn't the contract's", async () => {
  const bench = await benchOf(time, () => ({ status: "done", data: { status: "APPROVED" } }));
  await bench.lose("A");
  const [operation] = bench.journal.open;
  assert.ok(operation);
  const about = { pay_id: "A" };
  await bench.ask("/check", about);
  bench.answers = () => ended("APPROVED");
  await bench.ask("/terminals", about);
  await bench.ask("/check", []);
  await bench.ask("/check", [], "bank", "A");
  const { call: question } = bench.asked[0] ?? assert.fail();
  const html = { payload: [Buffer.from("<html>")], status: undefined, code: undefined, queueMs: 0, lineMs: 1 };
  bench.doubts.answered(question, html, time.nowMs);
  const good = { ...html, payload: [Buffer.from(JSON.stringify(ended("APPROVED")))] };
  bench.doubts.answered({ ...question, route: "/terminals" }, good, time.nowMs);
  assert.deepEqual([bench.unknown, bench.doubts.triedOf(operation).lastAnswer], [["A"], undefined]);
  assert.deepEqual(bench.errors, [], "nor is that a bug of posline");
  await bench.ask("/check", about);
  assert.deepEqual(bench.unknown, []);
});

test("Doubts tells one service's operations from another's, under the same key", async () => {
  const bench = await benchOf(time, () => ended("APPROVED"));
  await bench.lose("A");
  await bench.lose("A", { service: "qr", route: "/showqrcode", body: { ...qrBody, pay_id: "A" } });
  assert.deepEqual(
    [bench.doubts.of("bank"), bench.doubts.of("qr"), bench.doubts.of("fiscal")].map((each) => each.length),
    [1, 1, 0],
  );
  await bench.ask("/check", { pay_id: "A" });
  assert.deepEqual(bench.told.settlings, ["bank /sale A approved answer"]);
});

test("Doubts takes a qr answer only to a question that named the same payment system", async () => {
  const bench = await benchOf(time, () => ({ status: "success", data: { rrn: "1" } }));
  await bench.lose("Q", { service: "qr", route: "/showqrcode", body: qrBody });
  await bench.ask("/check", { pay_id: "Q", trans: "T-1", pay_system: "OTHER" }, "qr");
  await bench.ask("/check", { pay_id: "Q", trans: "T-1" }, "qr");
  assert.deepEqual(bench.unknown, ["Q"]);
  await bench.ask("/check", { pay_id: "Q", trans: "T-1", pay_system: "PALM" }, "qr");
  assert.deepEqual(bench.unknown, []);
});

test("Doubts counts absences from the beginning when the same was sent again: those before may be of the first sending alone", async () => {
  const bench = await benchOf(time, () => absent);
  const ask = async (times: number) => {
    for (let n = 0; n < times; n++) {
      await time.advance(1_000);
      await bench.ask("/check", { pay_id: "A" });
    }
  };
  await bench.lose("A");
  await time.advance(30_000);
  await ask(2);
  await bench.lose("A");
  await time.advance(30_000);
  await ask(2);
  assert.deepEqual(bench.unknown, ["A", "A"]);
  await ask(1);
  assert.deepEqual(bench.unknown, []);
});

test("Doubts takes the trans that a till has learned meanwhile for the payment's, where its record has none", async () => {
  const bench = await benchOf(time, () => ({ status: "success", data: { trans: "T-9", rrn: "1" } }));
  const { trans, ...body } = qrBody;
  assert.equal(trans, "T-1");
  await bench.lose("Q", { service: "qr", route: "/showqrcode", body });
  await bench.ask("/check", { pay_id: "Q", trans: "T-9", pay_system: "PALM" }, "qr");
  assert.deepEqual(bench.told.settlings, ["qr /showqrcode Q approved answer"]);
});

test("Doubts never takes for undone what an answer said that the terminal has, in another process as well", async () => {
  let isKnown = true;
  const bench = await benchOf(time, () => (isKnown ? inProgress : absent));
  await bench.lose("A");
  await bench.ask("/check", { pay_id: "A" });
  isKnown = false;
  await time.settle();
  const next = await benchOf(time, () => absent, bench.disk.afterCut([], true));
  for (const each of [bench, next]) {
    for (let n = 0; n < 40; n++) {
      await time.advance(2_000);
      await each.ask("/check", { pay_id: "A" });
    }
    assert.deepEqual([each.unknown, each.told.settlings], [["A"], []]);
  }
});

test("Doubts takes no code's failure for the end where another sending's code may be paid", async () => {
  const body = { pay_id: "Q", pay_system: "PALM", amount: 100 };
  for (const isFirstLost of [false, true]) {
    let isOver = false;
    const bench = await benchOf(time, () =>
      isOver ? { status: "error", code: 1, message: "expired" } : { status: "success" },
    );
    if (isFirstLost) await bench.lose("Q", { service: "qr", route: "/showqrcode", body });
    const payload = [Buffer.from('{"status":"success","data":{"trans":"T-1"}}')];
    await bench.send("Q", { outcome: "answered", status: "success", payload }, { service: "qr", route: "/showqrcode", body });
    if (!isFirstLost) await bench.lose("Q", { service: "qr", route: "/showqrcode", body });
    await bench.ask("/check", { pay_id: "Q", trans: "T-1", pay_system: "PALM" }, "qr");
    isOver = true;
    await time.advance(2_000);
    await bench.ask("/check", { pay_id: "Q", trans: "T-1", pay_system: "PALM" }, "qr");
    assert.deepEqual([bench.unknown, bench.told.settlings], [["Q"], []]);
  }
});

test("Doubts takes no answer for a document's own where the question named a number beside its key, which may be another's", async () => {
  const bench = await benchOf(time, () => ({ status: "success", code: 0, docStatus: 1, documentID: 12 }));
  await bench.lose("D", { service: "fiscal" });
  await bench.ask("/check_status", { documentExtID: "D", documentID: 12 }, "fiscal", "D");
  assert.deepEqual([bench.unknown, bench.journal.find("fiscal", "/sale", "D")?.isAccepted], [["D"], false]);
  await bench.ask("/check_status", { documentExtID: "D" }, "fiscal", "D");
  assert.deepEqual(bench.told.settlings, ["fiscal /sale D closed answer"]);
});

test("Doubts believes no 'there is none' a day after the sending: the terminal may have forgotten it", async () => {
  const bench = await benchOf(time, () => absent);
  await bench.lose("A");
  await time.advance(recentMs);
  for (let n = 0; n < 4; n++) {
    await bench.ask("/check", { pay_id: "A" });
    await time.advance(1_000);
  }
  assert.deepEqual(bench.unknown, ["A"]);
});

test("Doubts gives no cancel the end of its sale that a till's question found, though the journal has no other under its key", async () => {
  const bench = await benchOf(time, () => ended("APPROVED"));
  await bench.lose("A", { route: "/cancel" });
  await time.advance(1_000);
  await bench.ask("/check", { pay_id: "A" }, "bank", "A");
  const { isAccepted, end } = bench.journal.find("bank", "/cancel", "A") ?? {};
  assert.deepEqual([isAccepted, end, bench.unknown], [false, undefined, ["A"]]);
});

test("Doubts says why 'there is none' proves nothing once a batch was closed, and when it won't count", async () => {
  const bench = await benchOf(time, () => absent);
  await bench.lose("A");
  const [operation] = bench.journal.open;
  assert.ok(operation);
  await time.advance(31_000);
  await bench.ask("/check", { pay_id: "A" });
  assert.ok(bench.doubts.absenceDueMs(operation));
  await bench.send("Z", { outcome: "answered", status: "success" }, { route: "/close-shift" });
  for (let n = 0; n < 4; n++) {
    await time.advance(1_000);
    await bench.ask("/check", { pay_id: "A" });
  }
  const said =
    "this proves nothing, since a batch or shift was closed after it, or records after it are missing from the journal";
  assert.equal(bench.doubts.triedOf(operation).lastAnswer, `error, code -15: ${said}`);
  assert.deepEqual([bench.unknown, bench.doubts.absenceDueMs(operation)], [["A"], undefined]);
});

test("Doubts counts absences of an operation whose repetition was answered with an error, from that on", async () => {
  const bench = await benchOf(time, () => absent);
  await bench.lose("A");
  await time.advance(20_000);
  await bench.send("A", { outcome: "answered", status: "error", code: -3 });
  const ask = async (times: number) => {
    for (let n = 0; n < times; n++) {
      await time.advance(1_000);
      await bench.ask("/check", { pay_id: "A" });
    }
  };
  await time.advance(15_000);
  await ask(5);
  assert.deepEqual(bench.unknown, ["A"]);
  await time.advance(10_000);
  await ask(3);
  assert.deepEqual(bench.unknown, []);
});

test("Doubts settles a document as unprinted where its repetition's answer said so, though the question doesn't", async () => {
  const bench = await benchOf(time, () => ({ status: "success", code: 0, docStatus: 1, documentID: 12, documentExtID: "D" }));
  await bench.lose("D", { service: "fiscal" });
  const payload = [Buffer.from('{"status":"error","code":15,"documentID":12}')];
  await bench.send("D", { outcome: "answered", status: "error", code: 15, payload }, { service: "fiscal" });
  await time.advance(60_000);
  await bench.ask("/check_status", { documentExtID: "D" }, "fiscal");
  assert.deepEqual([bench.unknown, bench.journal.find("fiscal", "/sale", "D")?.end], [[], "unprinted"]);
  assert.ok(bench.told.settlings.every((settling) => settling === "fiscal /sale D unprinted answer"));
});

test("Doubts takes a document that was aborted for undone once the terminal has none, and says when that counts", async () => {
  let code = 44;
  const bench = await benchOf(time, () => ({ status: "error", code }));
  await bench.lose("D", { service: "fiscal" });
  const [operation] = bench.journal.open;
  assert.ok(operation);
  await time.advance(31_000);
  await bench.ask("/check_status", { documentExtID: "D" }, "fiscal");
  await bench.send("D", { outcome: "answered", status: "success" }, { service: "fiscal", route: "/abort" });
  code = 9;
  for (let n = 0; n < 2; n++) {
    await time.advance(1_000);
    await bench.ask("/check_status", { documentExtID: "D" }, "fiscal");
    assert.equal(bench.doubts.absenceDueMs(operation), time.nowMs + 1_000);
  }
  await time.advance(1_000);
  await bench.ask("/check_status", { documentExtID: "D" }, "fiscal");
  assert.deepEqual(bench.told.settlings, ["fiscal /sale D failed answer"]);
});

test("Doubts.absenceDueMs() names no time where 'there is none' proves nothing, since the terminal has had the document", async () => {
  let code = 44;
  const bench = await benchOf(time, () => ({ status: "error", code }));
  await bench.lose("D", { service: "fiscal" });
  const [operation] = bench.journal.open;
  assert.ok(operation);
  await time.advance(31_000);
  for (code of [44, 9, 9]) {
    await bench.ask("/check_status", { documentExtID: "D" }, "fiscal");
    assert.equal(bench.doubts.absenceDueMs(operation), undefined);
    await time.advance(2_000);
  }
});

test("Doubts notes by a code of progress, too, that the terminal has what was answered with an error", async () => {
  const bench = await benchOf(time, () => ({ status: "error", code: 44 }));
  await bench.send("D", { outcome: "answered", status: "error", code: 5 }, { service: "fiscal" });
  await time.advance(1_000);
  await bench.ask("/check_status", { documentExtID: "D" }, "fiscal", "D");
  assert.equal(bench.journal.find("fiscal", "/sale", "D")?.isAccepted, true);
});

test("Doubts has a document recorded as unprinted where a till's question finds it closed with an error of its printer", async () => {
  const bench = await benchOf(time, () => ({ status: "success", code: 0, docStatus: 1, documentID: 12, printError: 3 }));
  await bench.send("D", { outcome: "answered", status: "error", code: 5 }, { service: "fiscal" });
  await time.advance(1_000);
  await bench.ask("/check_status", { documentExtID: "D" }, "fiscal", "D");
  assert.equal(bench.journal.find("fiscal", "/sale", "D")?.end, "unprinted");
});

test("Doubts takes the answer to a till's question that leaves out what the payment did as well", async () => {
  const bench = await benchOf(time, () => ({ status: "success", data: { rrn: "1" } }));
  const { pay_id, trans, amount } = qrBody;
  await bench.lose("Q", { service: "qr", route: "/showqrcode", body: { pay_id, trans, amount } });
  await bench.ask("/check", { pay_id, trans, pay_system: pay_id }, "qr");
  assert.deepEqual(bench.unknown, ["Q"]);
  await bench.ask("/check", { pay_id, trans }, "qr");
  assert.deepEqual(bench.unknown, []);
});

test("Doubts.heard() notes that the terminal has an operation, and settles nothing", async () => {
  const bench = await benchOf(time, () => ended("APPROVED"));
  await bench.lose("A");
  await time.advance(1_000);
  const asked = await bench.ask("/check", { pay_id: "NONE" });
  assert.ok(asked);
  const call = { ...(bench.asked[0]?.call ?? assert.fail()), key: "A" };
  bench.doubts.heard(call, asked, time.nowMs);
  assert.deepEqual([bench.journal.find("bank", "/sale", "A")?.isAccepted, bench.unknown], [true, ["A"]]);
});

test("Doubts has a good end recorded of what was answered with an error, where a question proves it", async () => {
  const bench = await benchOf(time, () => ended("APPROVED"));
  await bench.send("A", { outcome: "answered", status: "error", code: -3 });
  await time.advance(1_000);
  await bench.ask("/check", { pay_id: "A" }, "bank", "A");
  assert.equal(bench.journal.find("bank", "/sale", "A")?.end, "approved");
  assert.deepEqual(bench.told.settlings, ["bank /sale A approved answer"]);
});
