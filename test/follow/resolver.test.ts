import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { Fault } from "../../src/core/fault.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { absent, benchOf, ended, inProgress } from "./doubtful.ts";

/** What posline asks by itself, and when, with the clock in the test's hand. */

const time = new VirtualTime();
after(() => time.restore());
// What one test leaves waiting would live on in the next one's hours, and cost it seconds.
afterEach(() => time.forgetTimers());

const hourMs = 3_600_000;

test("Resolver asks 2, 5, 15 and 60 s after the outcome became unknown, then every 5 minutes, for 24 h", async () => {
  const bench = await benchOf(time, () => inProgress);
  bench.resolve();
  await bench.lose("A");
  await time.advance(15 * 60_000);
  assert.deepEqual(bench.seconds, [2, 5, 15, 60, 360, 660]);
  const [first = 0, ...later] = bench.asked.map(({ atMs }) => atMs);
  assert.deepEqual(
    later.map((atMs) => atMs - first),
    [3_000, 13_000, 58_000, 358_000, 658_000],
  );
  assert.deepEqual(bench.asked[0]?.body, { pay_id: "A" });
  assert.equal(bench.asked[0]?.call.background, true);
  await time.advance(24 * hourMs);
  const { length } = bench.asked;
  assert.ok(length > 280 && length < 300, `${length} questions`);
  assert.ok((bench.seconds.at(-1) ?? 0) < 24 * 3_600);
  await time.advance(24 * hourMs);
  assert.equal(bench.asked.length, length);
  assert.deepEqual(bench.unknown, ["A"]);
  const [operation] = bench.journal.open;
  assert.ok(operation);
  assert.match(bench.doubts.cannotAsk(operation) ?? "", /sent more than 24 h ago: look at the terminal/);
});

for (const [status, result] of [
  ["APPROVED", "approved"],
  ["ERROR", "declined"],
  ["REVERSED", "reversed"],
] as const) {
  test(`Resolver settles a sale that ended as ${status}, after a restart too, and asks no more`, async () => {
    const before = await benchOf(time, () => inProgress);
    await before.lose("A");
    const bench = await benchOf(time, () => ended(status), before.disk.afterCut([], true));
    assert.deepEqual(bench.unknown, ["A"]);
    bench.resolve();
    await time.advance(10 * 60_000);
    assert.deepEqual(bench.seconds, [2]);
    assert.deepEqual([bench.unknown, bench.journal.unknownTotal], [[], 0]);
    assert.deepEqual(bench.told.settlings, [`bank /sale A ${result} answer`]);
    assert.equal(bench.journal.find("bank", "/sale", "A")?.end, result);
    const next = await benchOf(time, () => inProgress, bench.disk.afterCut([], true));
    assert.deepEqual([next.unknown, next.told.finds], [[], []]);
    assert.equal(next.journal.find("bank", "/sale", "A")?.end, result);
  });
}

test("Resolver believes that a sale never arrived when it is absent three times, the first time 30 s after it was given up", async () => {
  const bench = await benchOf(time, () => absent);
  bench.resolve();
  await bench.lose("A");
  await time.advance(29_900);
  assert.deepEqual([bench.seconds, bench.unknown], [[2, 5, 15], ["A"]]);
  await time.advance(200);
  assert.deepEqual([bench.seconds, bench.unknown], [[2, 5, 15, 30], ["A"]]);
  await time.advance(20_000);
  assert.deepEqual([bench.seconds, bench.unknown], [[2, 5, 15, 30, 31, 32], []]);
  assert.deepEqual(bench.told.settlings, ["bank /sale A failed answer"]);
});

test("Resolver counts absence anew once anything else was answered, or the same was sent again", async () => {
  const answers = [absent, absent, inProgress, absent, absent];
  const bench = await benchOf(time, () => answers.shift() ?? absent);
  bench.resolve();
  await bench.lose("A");
  await time.advance(60_100);
  assert.deepEqual(bench.unknown, ["A"], "it was in progress in between");
  const again = await benchOf(time, () => absent);
  again.resolve();
  await again.lose("B");
  await time.advance(16_000);
  await again.lose("B");
  await time.advance(29_000);
  assert.deepEqual(again.unknown, ["B", "B"], "the second sending is 29 s old");
  await time.advance(3 * 60_000);
  assert.deepEqual(again.unknown, [], "both are settled by one proof");
});

test("Resolver asks one question at a time, and each operation in its turn", async () => {
  let [running, most] = [0, 0];
  const bench = await benchOf(time, async () => {
    most = Math.max(most, ++running);
    await new Promise<void>((resolve) => time.after(4_000, resolve));
    running--;
    return inProgress;
  });
  bench.resolve();
  for (const key of ["A", "B", "C"]) await bench.lose(key);
  await time.advance(14_500);
  assert.equal(most, 1);
  assert.deepEqual(
    bench.asked.slice(0, 3).map(({ body }) => body["pay_id"]),
    ["A", "B", "C"],
  );
});

test("Resolver waits while the line isn't clean or a caller waits, and a question that wasn't sent doesn't count", async () => {
  let refuses = false;
  const bench = await benchOf(time, () => {
    if (refuses) throw new Fault("unavailable", "Cannot send to line till: it is down");
    return inProgress;
  });
  bench.resolve();
  bench.line.state = "recovering";
  await bench.lose("A");
  await time.advance(10_000);
  bench.line.state = "idle";
  bench.line.waiting = 1;
  await time.advance(10_000);
  assert.deepEqual(bench.seconds, []);
  bench.line.waiting = 0;
  refuses = true;
  await time.advance(3_000);
  const [first = 0, second = 0, third = 0] = bench.asked.map(({ atMs }) => atMs);
  assert.deepEqual([bench.asked.length, second - first, third - second], [3, 1_000, 1_000]);
  refuses = false;
  await time.advance(1_000);
  const [operation] = bench.journal.open;
  assert.ok(operation);
  assert.equal(bench.doubts.triedOf(operation).asked, 1);
  bench.asked.length = 0;
  await time.advance(3_000);
  assert.equal(bench.asked.length, 1, "the second comes 3 s after the first that was sent");
});

test("Resolver asks soon again when a line is back that was away for a minute", async () => {
  const bench = await benchOf(time, () => inProgress);
  bench.resolve();
  await bench.lose("A");
  await time.advance(100_000);
  bench.line.state = "down";
  await time.advance(10 * 60_000);
  bench.asked.length = 0;
  const backMs = time.nowMs;
  bench.line.state = "idle";
  await time.advance(17_500);
  const after = bench.asked.map(({ atMs }) => Math.round((atMs - backMs) / 1_000));
  assert.equal(after.length, 3);
  assert.ok((after[0] ?? 9) <= 3, `${after}`);
});

test("Resolver leaves an operation to the caller that follows it, until that one has left", async () => {
  const bench = await benchOf(time, () => inProgress);
  bench.followed.add("bank /sale A");
  bench.resolve();
  await bench.lose("A");
  await time.advance(60_000);
  assert.deepEqual(bench.seconds, []);
  bench.followed.clear();
  await time.advance(2_000);
  assert.equal(bench.asked.length, 1);
});

test("Resolver.stop() ends the asking, and a question that waits is not sent", async () => {
  let caller: { readonly gone: boolean } | undefined;
  const bench = await benchOf(time, ({ call }) => {
    caller = call.caller;
    return new Promise(() => {});
  });
  const resolver = bench.resolve();
  await bench.lose("A");
  await time.advance(3_000);
  assert.equal(caller?.gone, false);
  resolver.stop();
  assert.equal(caller?.gone, true);
  await bench.lose("B");
  await time.advance(hourMs);
  assert.equal(bench.asked.length, 1);
});

test("Resolver asks about what is lost once all that was lost before is settled", async () => {
  const bench = await benchOf(time, () => ended("APPROVED"));
  bench.resolve();
  for (const key of ["A", "B"]) {
    await bench.lose(key);
    await time.advance(60_000);
  }
  assert.deepEqual(bench.told.settlings, ["bank /sale A approved answer", "bank /sale B approved answer"]);
});

test("Resolver asks about an operation no earlier because the one that was due before it is settled", async () => {
  const bench = await benchOf(time, ({ body }) => (body["pay_id"] === "A" ? ended("APPROVED") : inProgress));
  bench.resolve();
  await bench.lose("A");
  await time.advance(1_500);
  await bench.lose("B");
  await bench.ask("/check", { pay_id: "A" });
  await time.advance(3_000);
  assert.deepEqual([bench.unknown, bench.seconds], [["B"], [1.5, 3.5]]);
});

test("Resolver.stop() asks nothing about what it would have asked about next", async () => {
  const bench = await benchOf(time, () => inProgress);
  const resolver = bench.resolve();
  await bench.lose("A");
  await time.advance(1_000);
  resolver.stop();
  await time.advance(hourMs);
  assert.deepEqual(bench.asked, []);
});

test("Resolver says how often it asked, and what came of it", async () => {
  const answers: (() => object)[] = [
    () => inProgress,
    () => {
      throw new Fault("timeout", "No reply from line till");
    },
    () => absent,
  ];
  const bench = await benchOf(time, () => answers.shift()?.() ?? inProgress);
  bench.resolve();
  await bench.lose("A");
  const tried = () => {
    const [operation] = bench.journal.open;
    assert.ok(operation);
    const { asked, lastAnswer, cannotAsk } = bench.doubts.triedOf(operation);
    return [asked, lastAnswer, cannotAsk];
  };
  assert.deepEqual(tried(), [0, undefined, undefined]);
  const seen = [];
  for (const ms of [2_100, 3_000, 10_000]) {
    await time.advance(ms);
    seen.push(tried());
  }
  assert.deepEqual(seen, [
    [1, "success", undefined],
    [2, "no-reply", undefined],
    [3, "error, code -15", undefined],
  ]);
});

test("Resolver asks for nobody who could leave, by the operation's key, and numbers its questions", async () => {
  const bench = await benchOf(time, () => inProgress);
  bench.resolve();
  await bench.lose("A");
  await time.advance(6_000);
  const [first, second] = bench.asked;
  assert.ok(first !== undefined && second !== undefined);
  const { service, contract, route, key, background, caller } = first.call;
  assert.deepEqual([service, contract, route, key, background, caller.gone], ["bank", "bank", "/check", "A", true, false]);
  const [one, two] = [first, second].map(({ call }) => Number(/^resolve-(\d+)$/.exec(call.requestId)?.[1]));
  assert.ok(one !== undefined && two !== undefined && two > one);
});

test("Resolver doesn't ask about an operation that was settled while the question waited for its turn", async () => {
  const bench = await benchOf(time, ({ call }) => (call.background === true ? inProgress : ended("APPROVED")));
  let begin = () => {};
  bench.turn = async (work) => {
    await new Promise<void>((resolve) => {
      begin = resolve;
    });
    return work();
  };
  bench.resolve();
  await bench.lose("A");
  await time.advance(3_000);
  await bench.ask("/check", { pay_id: "A" });
  assert.deepEqual(bench.unknown, []);
  begin();
  await time.advance(hourMs);
  assert.equal(bench.asked.length, 1, "the till's question alone");
});

test("Resolver asks soon again only after a minute's absence, about everything that is open", async () => {
  for (const [backMs, questions] of [
    // It looks at an absent line once a second, first when the next question is due, after 660 s.
    [719_500, 6],
    [718_500, 2],
  ] as const) {
    const bench = await benchOf(time, () => inProgress);
    bench.resolve();
    for (const key of ["A", "B"]) await bench.lose(key);
    await time.advance(400_000);
    bench.line.state = "down";
    await time.advance(backMs - 400_000);
    bench.asked.length = 0;
    bench.line.state = "idle";
    await time.advance(18_000);
    assert.equal(bench.asked.length, questions);
  }
});

test("Resolver takes a line that waits for an answer for one that is there", async () => {
  const bench = await benchOf(time, () => inProgress);
  bench.resolve();
  await bench.lose("A");
  await time.advance(100_000);
  bench.line.state = "awaiting";
  await time.advance(10 * 60_000);
  bench.asked.length = 0;
  bench.line.state = "idle";
  await time.advance(17_500);
  assert.equal(bench.asked.length, 1, "it wasn't away");
});

test("Resolver says what a bug in its handler was, and goes on", async () => {
  const bench = await benchOf(time, () => {
    throw new Error("a bug");
  });
  bench.resolve();
  await bench.lose("A");
  await time.advance(6_000);
  const [operation] = bench.journal.open;
  assert.ok(operation);
  const { asked, lastAnswer, lastAsked } = bench.doubts.triedOf(operation);
  assert.deepEqual([asked, lastAnswer], [2, "Error: a bug"]);
  assert.match(lastAsked ?? "", /^\d{4}-\d\d-\d\dT/);
});

test("Resolver that is woken while it asks, or after it was stopped, asks nothing more for that", async () => {
  const bench = await benchOf(time, async () => {
    await new Promise<void>((resolve) => time.after(1_500, resolve));
    return inProgress;
  });
  const resolver = bench.resolve();
  await bench.lose("A");
  await time.advance(2_100);
  resolver.wake();
  await bench.lose("B");
  await time.advance(1_000);
  assert.equal(bench.asked.length, 1);
  resolver.stop();
  resolver.wake();
  await time.advance(hourMs);
  assert.equal(bench.asked.length, 1);
});
