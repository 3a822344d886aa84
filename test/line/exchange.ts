import assert from "node:assert/strict";
import { test } from "node:test";
import { Presence } from "../../src/core/presence.ts";
import type { Line } from "../../src/line/line.ts";
import { rowMin } from "../../src/recovery/limits.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { until } from "../support/until.ts";
import type { Bench, Script } from "./benches.ts";
import { ending, hasEnded, idOf, type LineSetup, lineOver, requestFor, type Told } from "./lines.ts";

/**
 * One suite, many conduits: what an exchange promises, over a line in memory and over a real tty. Each has a file of its own, so
 * that they run side by side.
 */

type Set = { readonly bench: Bench; readonly line: Line; readonly told: Told };

type Exercise = (set: Set) => Promise<void>;

const answerAll: Script = ({ framing, text }, wire) => wire.reply(framing, good(idOf(text)));
const good = (id: string) => `{"status":"success","id":"${id}"}`;
const never: Script = () => {};
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const idle = ({ line }: Set) => until(() => line.state === "idle", "the line to be idle");

/** What a line does, whose set-up is given. */
const under =
  (setup: LineSetup) =>
  (criterion: string, exercise: Exercise): readonly [string, Exercise, LineSetup] => [criterion, exercise, setup];
const exercise = under({});

const exercises = [
  exercise("resolves with the reply, byte for byte, and its status, code and times", async ({ bench, line }) => {
    const odd = '{ "status":"error","code": -3,\n"n":9007199254740993, "t":"\u00e9\u2615" }';
    bench.script = ({ framing }, wire) => wire.reply(framing, odd);
    const reply = await line.run(requestFor("A"));
    assert.equal(Buffer.concat(reply.payload).toString(), odd);
    assert.equal(reply.status, "error");
    assert.equal(reply.code, -3);
    assert.ok(reply.lineMs >= 0 && reply.queueMs >= 0);
  }),
  exercise("sends the payload as it is, one call at a time, in order", async ({ bench, line }) => {
    bench.script = answerAll;
    const ends = ["A", "B", "C", "D"].map((id) => ending(line, requestFor(id)));
    await until(() => ends.every(hasEnded), "all to end");
    assertMapped(ends, ["A", "B", "C", "D"].map(good), ({ text }) => text);
    assertMapped(
      bench.wire.calls,
      ["A", "B", "C", "D"].map((id) => `/sale\n{"id":"${id}"}`),
      ({ text }) => text,
    );
  }),
  under({ config: { pauseMs: 80 } })(
    "leaves a terminal that is deaf for a moment after each answer alone for pauseMs, and each call is answered",
    async ({ bench, line }) => {
      const beganMs = performance.now();
      let answeredMs = 0;
      let deaf = 0;
      bench.script = async (asked, wire) => {
        if (performance.now() < answeredMs + 60) deaf++;
        else await answerAll(asked, wire);
        answeredMs = performance.now();
      };
      const ends = ["A", "B", "C"].map((id) => ending(line, requestFor(id, { replyTimeoutMs: 5_000 })));
      await until(() => ends.every(hasEnded), "all to end");
      assertMapped(ends, ["A", "B", "C"].map(good), ({ text }) => text);
      assert.equal(deaf, 0);
      assert.ok(performance.now() - beganMs >= 160);
    },
  ),
  exercise("rejects with timeout, outcome unknown, and proves the line before the next call", async ({ bench, line, told }) => {
    bench.script = answerAll;
    await line.run(requestFor("GOOD"));
    bench.script = (asked, wire) => (idOf(asked.text) === "A" ? undefined : answerAll(asked, wire));
    const first = ending(line, requestFor("A", { replyTimeoutMs: 50 }));
    const second = ending(line, requestFor("B"));
    await until(() => hasEnded(first), "the time-out");
    assert.equal(first.fault?.kind, "timeout");
    assert.equal(first.fault?.outcome, "unknown");
    assert.match(
      first.fault?.message ?? "",
      /^No valid reply from line till: the terminal did not answer within 50 ms\. Outcome unknown/,
    );
    await until(() => hasEnded(second), "the second");
    assert.equal(second.text, good("B"));
    assert.deepEqual(told.states.slice(-2), ["recovering", "idle"]);
    const texts = bench.wire.asked.map(({ text }) => text.split("\n")[0]);
    const between = texts.slice(texts.lastIndexOf("/sale", -2) + 1, -1);
    assert.ok(between.length > rowMin, `${between.length} questions`);
    assert.deepEqual([...new Set(between)].sort(), ["/supported_operations", "/terminals"]);
  }),
  exercise("discards a late reply, counts it, and gives it to nobody", async ({ bench, line, told }) => {
    bench.script = async ({ framing, text }, wire) => {
      if (idOf(text) === "A") await pause(150);
      await wire.reply(framing, good(idOf(text)));
    };
    const first = ending(line, requestFor("A", { replyTimeoutMs: 50 }));
    const second = ending(line, requestFor("B"));
    await until(() => hasEnded(first) && hasEnded(second), "both");
    assert.equal(first.fault?.kind, "timeout");
    assert.equal(second.text, good("B"));
    assert.equal(told.lates, 1);
  }),
  exercise("rejects with broken when the reply's checksum is wrong, and sends money once", async ({ bench, line, told }) => {
    bench.script = ({ framing, text }, wire) => {
      const bytes = wire.frame(framing, good(idOf(text)));
      bytes.writeUInt8(bytes.readUInt8(6) ^ 1, 6);
      return wire.send(bytes);
    };
    const end = ending(line, requestFor("A"));
    await until(() => hasEnded(end), "the fault");
    assert.equal(end.fault?.kind, "broken");
    assert.match(end.fault?.message ?? "", /the reply was corrupt/);
    assert.deepEqual(told.discards, ["checksum"]);
    assert.equal(bench.wire.calls.length, 1);
  }),
  exercise("sends what only reads once more after a corrupt reply, and no third time", async ({ bench, line }) => {
    let times = 0;
    bench.script = ({ framing, text }, wire) => {
      const bytes = wire.frame(framing, good(idOf(text)));
      if (++times !== 2) bytes.writeUInt8(bytes.readUInt8(6) ^ 1, 6);
      return wire.send(bytes);
    };
    assert.equal(
      await line.run(requestFor("A", { repeatable: true })).then(({ payload }) => Buffer.concat(payload).toString()),
      good("A"),
    );
    times = 2;
    await assert.rejects(line.run(requestFor("B", { repeatable: true })), { kind: "broken" });
    assertMapped(bench.wire.calls, ["A", "A", "B", "B"], ({ text }) => idOf(text));
  }),
  exercise("rejects with broken when the reply is no JSON object", async ({ bench, line }) => {
    bench.script = ({ framing }, wire) => wire.reply(framing, "[1,2]");
    await assert.rejects(line.run(requestFor("A")), { kind: "broken", outcome: "unknown" });
  }),
  exercise("rejects with broken when the reply is torn, and finds the next one", async ({ bench, line, told }) => {
    bench.script = ({ framing, text }, wire) => wire.send(wire.frame(framing, good(idOf(text))).subarray(0, 8));
    const end = ending(line, requestFor("A"));
    await until(() => hasEnded(end), "the fault");
    assert.equal(end.fault?.kind, "broken");
    assert.deepEqual(told.discards, ["reset"]);
    bench.script = answerAll;
    await line.run(requestFor("B"));
  }),
  exercise("takes the reply that noise stands before", async ({ bench, line, told }) => {
    // Time, not bytes, finds the header behind noise on a line of length frames.
    bench.script = async ({ framing, text }, wire) => {
      await wire.send(Buffer.from("AT+CGMI\r"));
      await until(() => told.discards.length === 1, "the noise to be discarded");
      await wire.reply(framing, good(idOf(text)));
    };
    const reply = await line.run(requestFor("A"));
    assert.equal(Buffer.concat(reply.payload).toString(), good("A"));
    assert.deepEqual(told.discards, ["noise"]);
  }),
  exercise("takes a reply that comes byte by byte", async ({ bench, line }) => {
    bench.script = async ({ framing, text }, wire) => {
      for (const byte of wire.frame(framing, good(idOf(text)))) {
        await wire.send(Buffer.of(byte));
        await pause(1);
      }
    };
    const reply = await line.run(requestFor("A"));
    assert.equal(Buffer.concat(reply.payload).toString(), good("A"));
  }),
  exercise("proves the line again when a call is answered twice", async (set) => {
    const { bench, line, told } = set;
    bench.script = async ({ framing, text }, wire) => {
      const twice = wire.frame(framing, good(idOf(text)));
      await wire.send(Buffer.concat([twice, twice]));
    };
    const ends = ["A", "B"].map((id) => ending(line, requestFor(id)));
    await until(() => ends.every(hasEnded), "both");
    assertMapped(ends, ["A", "B"].map(good), ({ text }) => text);
    // Over a network the copy may come a moment after the answer.
    await until(() => told.lates === 2, "the copies to be discarded");
    await idle(set);
  }),
  exercise("lets urgent calls go before all that waits, without breaking what is in flight", async ({ bench, line }) => {
    bench.script = async (asked, wire) => {
      await pause(20);
      await answerAll(asked, wire);
    };
    const ends = ["A", "B", "C"].map((id) => ending(line, requestFor(id)));
    ends.push(ending(line, requestFor("ABORT", { urgent: true })));
    await until(() => ends.every(hasEnded), "all to end");
    assertMapped(bench.wire.calls, ["A", "ABORT", "B", "C"], ({ text }) => idOf(text));
  }),
  under({ config: { queueCallsMax: 2 } })(
    "refuses at once when the queue is full: nothing was sent",
    async ({ bench, line }) => {
      bench.script = never;
      const first = ending(line, requestFor("A"));
      const waiting = [ending(line, requestFor("B")), ending(line, requestFor("C"))];
      await assert.rejects(line.run(requestFor("D")), {
        kind: "unavailable",
        outcome: "not-sent",
        message:
          "Cannot send to line till: 2 calls are waiting, which is the limit. Nothing was sent: it may be sent again, unless an earlier try is in doubt",
      });
      assert.equal(line.waiting, 2);
      assert.equal([first, ...waiting].some(hasEnded), false);
    },
  ),
  under({ config: { queueWaitMs: 80 } })("refuses a call that waited too long: nothing was sent", async ({ bench, line }) => {
    bench.script = never;
    const first = ending(line, requestFor("A"));
    await assert.rejects(line.run(requestFor("B")), {
      kind: "unavailable",
      message: /it is busy with other calls, and the call waited 80 ms/,
    });
    assert.equal(hasEnded(first), false);
    assertMapped(bench.wire.calls, ["A"], ({ text }) => idOf(text));
  }),
  exercise("never sends a call whose caller left while it waited, nor one that had left before", async ({ bench, line }) => {
    bench.script = async (asked, wire) => {
      await pause(30);
      await answerAll(asked, wire);
    };
    const [caller, early] = [new Presence(), new Presence()];
    early.leave();
    const ends = [
      ending(line, requestFor("A")),
      ending(line, requestFor("B", { caller })),
      ending(line, requestFor("C", { caller: early })),
      ending(line, requestFor("D")),
    ];
    caller.leave();
    await until(() => ends.every(hasEnded), "all to end");
    assertMapped(ends, [undefined, "unavailable", "unavailable", undefined], ({ fault }) => fault?.kind);
    assertMapped(bench.wire.calls, ["A", "D"], ({ text }) => idOf(text));
  }),
  exercise("lets a call whose caller left in flight run to its end", async ({ bench, line }) => {
    bench.script = async (asked, wire) => {
      await pause(30);
      await answerAll(asked, wire);
    };
    const caller = new Presence();
    const end = ending(line, requestFor("A", { caller }));
    caller.leave();
    await until(() => hasEnded(end), "its end");
    assert.equal(end.text, good("A"));
  }),
  exercise("stops: refuses what waits, lets the call in flight end, and sends nothing more", async ({ bench, line }) => {
    bench.script = async (asked, wire) => {
      await pause(60);
      await answerAll(asked, wire);
    };
    const ends = [ending(line, requestFor("A")), ending(line, requestFor("B"))];
    await line.stop(5_000);
    assert.equal(ends[0]?.text, good("A"));
    assert.equal(ends[1]?.fault?.outcome, "not-sent");
    assert.equal(line.state, "closed");
    await assert.rejects(line.run(requestFor("C")), { kind: "unavailable", message: /shutting down/ });
    assert.equal(bench.wire.calls.length, 1);
  }),
  exercise("stops: a call that outlasts the grace has an unknown outcome", async ({ bench, line }) => {
    bench.script = never;
    const end = ending(line, requestFor("A"));
    await line.stop(30);
    assert.equal(end.fault?.kind, "broken");
    assert.match(end.fault?.message ?? "", /posline is shutting down, and the reply had not come\. Outcome unknown/);
  }),
];

/** Declares the suite's tests over one kind of transport. */
export function testExchange(make: () => Bench, transport: string): void {
  for (const [criterion, run, setup] of exercises) {
    test(`Line over ${transport} ${criterion}`, async (t) => {
      const bench = make();
      const { line, told } = lineOver(bench.open, setup);
      const set = { bench, line, told };
      t.after(() => line.stop(0));
      t.after(() => bench.dispose());
      line.start();
      await idle(set);
      await run(set);
    });
  }
}
