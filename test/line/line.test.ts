import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { payloadMsMin, silenceMs } from "../../src/config/limits.ts";
import { Presence } from "../../src/core/presence.ts";
import { babbleMsMax, corruptQuietMs, silenceMsMax, writeMsMin } from "../../src/line/limits.ts";
import type { Line } from "../../src/line/line.ts";
import { rowMin } from "../../src/recovery/limits.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { FakeDevice, frame } from "../support/fake-device.ts";
import { probeReplies, probeReply } from "../support/terminal.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { ending, hasEnded, type LineSetup, lineOver, merchantId, requestFor, type Told } from "./lines.ts";

/** A line against a device that does just what a test says, with the clock in the test's hand. */

const time = virtualTime();

const good = (id: string) => `{"status":"success","id":"${id}"}`;

interface Set {
  readonly device: FakeDevice;
  readonly line: Line;
  readonly told: Told;
  /** The first line of each request that came to the device. */
  readonly asked: string[];
}

/** A line with a device that answers probes, until `probes` is false, and calls by `answer`. */
function setOf(
  answer: (framing: Framing, text: string) => void,
  setup: LineSetup & { readonly probes?: () => boolean } = {},
): Set {
  const asked: string[] = [];
  const device = new FakeDevice((framing, text) => {
    asked.push(text.split(/[\n&]/)[0] ?? "");
    const probe = probeReply({ framing, text, number: 0 });
    if (probe === undefined) answer(framing, text);
    else if (setup.probes?.() ?? true) device.reply(framing, probe);
  });
  // What an idle line asks by itself is `liveness.test.ts`'s affair.
  const { line, told } = lineOver(device.open, { ...setup, config: { idleProbeMs: 0, ...setup.config } });
  line.start();
  return { device, line, told, asked };
}

const idle = ({ line }: Set, msMax?: number) => time.until(() => line.state === "idle", msMax);

/** A line that is idle and has answered one good call, so that nothing is left over. */
async function clean(set: Set): Promise<Set> {
  assert.ok(await idle(set));
  const end = ending(set.line, requestFor("FIRST"));
  await time.advance(2);
  set.device.reply("length", good("FIRST"));
  await time.settle();
  assert.equal(end.text, good("FIRST"));
  return set;
}

test("Line discards what comes until silenceMs of silence after an opening, and asks its probes then", async () => {
  const set = setOf(() => {});
  await time.settle();
  for (let times = 0; times < 5; times++) {
    await time.advance(silenceMs - 10);
    set.device.reply("length", good("OLD"));
  }
  assert.equal(set.told.lates, 5);
  assert.deepEqual(set.asked, []);
  await time.advance(silenceMs + 5);
  assert.deepEqual(set.asked.slice(0, 1), ["/supported_operations"]);
  assert.ok(await idle(set));
});

test("Line waits silenceMsMax at most for the silence after an opening", async () => {
  const set = setOf(() => {});
  await time.settle();
  for (let ms = 0; ms < silenceMsMax + 20; ms += 10) {
    set.device.send(Buffer.from("A"));
    await time.advance(10);
  }
  assert.ok(set.asked.length > 0);
});

/** What was asked behind the last call. */
const askedSince = ({ asked }: Set, route = "/sale") => asked.slice(asked.lastIndexOf(route) + 1);

const questions = ["/supported_operations", "/terminals"];

test("Line proves itself after each opening, though nothing was owed before the unplug: another terminal may be there", async () => {
  const set = await clean(setOf(() => {}));
  set.device.unplug();
  assert.equal(set.line.state, "down");
  set.device.plug();
  assert.ok(await idle(set, 2_000));
  assert.equal(askedSince(set).length, rowMin + 2);
});

test("Line whose call was in flight at the unplug says so at once, and proves itself after the replug", async () => {
  const set = await clean(setOf(() => {}));
  const end = ending(set.line, requestFor("A"));
  const waiting = ending(set.line, requestFor("B"));
  await time.advance(5);
  set.device.unplug();
  await time.settle();
  assert.equal(end.fault?.kind, "broken");
  assert.match(end.fault?.message ?? "", /the line was lost before the reply came \(the device was unplugged/);
  assert.equal(waiting.fault?.outcome, "not-sent");
  set.device.plug();
  assert.ok(await idle(set, 3_500));
  assert.deepEqual([...new Set(askedSince(set))].sort(), questions);
});

for (const [takesBytes, outcome, owing] of [
  [0, "not-sent", []],
  [1, "unknown", ["bank"]],
] as const) {
  test(`Line says ${outcome} of a call of which ${takesBytes} bytes were taken over before an unplug`, async () => {
    const set = await clean(setOf(() => {}));
    set.device.takesBytes = takesBytes;
    const end = ending(set.line, requestFor("A"));
    set.device.unplug();
    await time.settle();
    assert.equal(end.fault?.outcome, outcome);
    assert.deepEqual(set.line.owing, owing);
    set.device.takesBytes = Number.POSITIVE_INFINITY;
    set.device.plug();
    assert.ok(await idle(set, 3_500));
  });
}

test("Line gives up a device that takes no bytes, by a clock of its own", async () => {
  const set = await clean(setOf(() => {}));
  set.device.takesBytes = 10;
  const end = ending(set.line, requestFor("A", { replyTimeoutMs: 3_001 }));
  await time.advance(writeMsMin - 1);
  assert.equal(hasEnded(end), false, "the reply's clock begins after the write");
  await time.advance(50);
  assert.match(end.fault?.message ?? "", /the device accepts no data: check flowControl and the cable/);
  assert.equal(end.fault?.kind, "broken");
  set.device.takesBytes = Number.POSITIVE_INFINITY;
  assert.ok(await idle(set));
  assert.equal(set.device.openings, 2);
});

test("Line sends no call while a probe is still being written, though its row is whole, and gives its answer to nobody", async () => {
  let heard = Number.NEGATIVE_INFINITY;
  const set = await clean(
    setOf(() => {}, {
      probes: () => {
        // The last of the row stays in the system's buffer.
        if (++heard === rowMin + 1) set.device.takesBytes = 5;
        return true;
      },
    }),
  );
  heard = 0;
  const lost = ending(set.line, requestFor("A", { replyTimeoutMs: 3_001 }));
  await time.until(() => hasEnded(lost));
  const next = ending(set.line, requestFor("B"));
  await time.until(() => set.device.takesBytes === 5);
  await time.advance(10);
  // A copy of an older answer has the shape that is due.
  set.device.reply("length", probeReplies.bankSupported);
  await time.advance(1_000);
  assert.equal(set.line.state, "recovering");
  assert.equal(set.line.waiting, 1);
  set.device.takesBytes = Number.POSITIVE_INFINITY;
  set.device.takeRest();
  await time.settle();
  assert.equal(set.line.state, "awaiting");
  await time.advance(10);
  assert.equal(hasEnded(next), false, "the probe's own answer came");
  set.device.reply("length", good("B"));
  await time.settle();
  assert.equal(next.text, good("B"));
});

test("Line fails a call before which a frame came while it was written, and doesn't take the next frame for its reply", async () => {
  const set = await clean(setOf(() => {}));
  set.device.takesBytes = 5;
  const end = ending(set.line, requestFor("A"));
  set.device.reply("length", good("OLD"));
  await time.settle();
  assert.equal(end.fault?.kind, "broken");
  set.device.takeRest();
  set.device.takesBytes = Number.POSITIVE_INFINITY;
  set.device.reply("length", good("A"));
  assert.equal(set.told.lates, 2);
  assert.ok(await idle(set));
});

test("Line that hears a frame nobody asked for proves itself before it sends again", async () => {
  const set = await clean(setOf(() => {}));
  set.device.reply("length", good("STRAY"));
  assert.equal(set.line.state, "recovering");
  const end = ending(set.line, requestFor("A"));
  assert.ok(await time.until(() => set.line.state === "awaiting"));
  await time.advance(5);
  set.device.reply("length", good("A"));
  await time.settle();
  assert.equal(end.text, good("A"));
  const between = set.asked.slice(set.asked.indexOf("/sale") + 1, -1);
  assert.ok(between.length > rowMin);
  assert.deepEqual([...new Set(between)].sort(), questions);
});

test("Line that hears a whole frame with a wrong checksum while idle proves itself too, and not for noise", async () => {
  const set = await clean(setOf(() => {}));
  set.device.send(Buffer.from("AT\r"));
  await time.advance(200);
  assert.equal(set.line.state, "idle");
  const written = set.device.written.length;
  const bytes = frame("length", good("STRAY"));
  bytes.writeUInt8(0x20, 8);
  set.device.send(bytes);
  await time.advance(corruptQuietMs - 1);
  assert.equal(set.device.written.length, written, "nothing is sent before it is known");
  await time.advance(1);
  assert.equal(set.line.state, "recovering");
  assert.ok(await idle(set));
});

test("Line that hears another framing's frame while a call awaits keeps waiting, and proves itself afterwards", async () => {
  const set = setOf(() => {}, { services: ["fiscal", "bank"], merchantId });
  assert.ok(await idle(set));
  const end = ending(set.line, requestFor("A"));
  await time.advance(5);
  set.device.reply("stx", good("LATE"));
  set.device.reply("length", good("A"));
  await time.settle();
  assert.equal(end.text, good("A"));
  assert.equal(set.line.state, "recovering");
  assert.ok(await idle(set));
  assert.equal(set.asked.at(-1), "command=/supported_operations");
});

test("Line sends nothing while bytes of an unfinished frame are pending", async () => {
  const set = await clean(setOf(() => {}));
  set.device.send(frame("length", good("TORN")).subarray(0, 12));
  const end = ending(set.line, requestFor("A"));
  await time.advance(payloadMsMin - 100);
  assert.equal(set.line.state, "idle");
  assert.equal(set.line.waiting, 1);
  await time.advance(200);
  assert.equal(set.line.state, "awaiting");
  set.device.reply("length", good("A"));
  await time.settle();
  assert.equal(end.text, good("A"));
});

test("Line lets a reply that has begun in time come to its end after replyTimeoutMs", async () => {
  const set = await clean(setOf(() => {}));
  const end = ending(set.line, requestFor("A", { replyTimeoutMs: 3_001 }));
  const bytes = frame("length", good("A"));
  await time.advance(2_900);
  set.device.send(bytes.subarray(0, 9));
  await time.advance(1_000);
  assert.equal(hasEnded(end), false);
  set.device.send(bytes.subarray(9));
  await time.settle();
  assert.equal(end.text, good("A"));
});

test("Line fails a call whose reply is due where each frame of another service begins before a timer can run", async () => {
  const set = await clean(setOf(() => {}, { services: ["bank", "fiscal"], merchantId }));
  const end = ending(set.line, requestFor("A", { replyTimeoutMs: 3_001 }));
  const other = frame("stx", good("X"));
  await time.advance(2_000);
  set.device.send(other.subarray(0, 10));
  for (let ms = 0; ms < 6_000 && !hasEnded(end); ms += 2_000) {
    await time.advance(2_000);
    set.device.send(other.subarray(10));
    set.device.send(other.subarray(0, 10));
    await time.settle();
  }
  assert.equal(end.fault?.reason, "no-reply");
});

test("Line takes neither of two replies that come at once for its call's, unless they are the same", async () => {
  for (const [one, other, reason] of [
    [good("OLD"), good("A"), "reply-ambiguous"],
    [good("A"), good("OLD"), "reply-ambiguous"],
    [good("A"), good("A"), undefined],
    // Known to be nobody's.
    [probeReplies.bankSupported, good("A"), undefined],
    // Zeros behind it.
    [good("A"), "", undefined],
  ] as const) {
    const set = await clean(setOf(() => {}));
    const end = ending(set.line, requestFor("A"));
    await time.advance(10);
    set.device.send(Buffer.concat([frame("length", one), frame("length", other)]));
    await time.settle();
    assert.equal(end.fault?.reason, reason, `${one} ${other}`);
    if (reason === undefined) assert.equal(end.text, good("A"));
    await set.line.stop(0);
  }
});

test("Line fails a call babbleMsMax after replyTimeoutMs on a line that babbles without end, since its reply may be in it", async () => {
  const set = await clean(setOf(() => {}));
  const end = ending(set.line, requestFor("A", { replyTimeoutMs: 3_001 }));
  let ms = 0;
  for (; ms < 9_000 && !hasEnded(end); ms += 50) {
    set.device.send(Buffer.from("babble"));
    await time.advance(50);
  }
  assert.equal(end.fault?.kind, "timeout");
  assert.ok(ms >= 3_001 + babbleMsMax && ms < 3_300 + babbleMsMax, `${ms} ms`);
});

test("Line looks at its clock only when something is due", async () => {
  // Lines of other tests are still there, and their timers aren't this one's.
  time.forgetTimers();
  const set = setOf(() => {}, { services: ["fiscal"] });
  // A torn frame is pending while silence settles: the one must not make the other's clock spin.
  await time.advance(29_000);
  set.device.send(Buffer.from("\x02torn", "latin1"));
  const run = time.timersRun;
  assert.ok(await idle(set));
  assert.ok(time.timersRun - run < 60, `${time.timersRun - run} timers`);
});

test("Line with recovery quiet asks nothing, and is clean after lateReplyMs of silence", async () => {
  const set = setOf(() => {}, { config: { recovery: "quiet", lateReplyMs: 8_000 } });
  await time.advance(7_900);
  assert.equal(set.line.state, "recovering");
  assert.ok(await idle(set, 300));
  assert.deepEqual(set.asked, []);
});

test("Line that asks nothing any more behind a reload gives no call the answer, 40 s late, of a sale that was out then", async () => {
  const heard: string[] = [];
  const device: FakeDevice = new FakeDevice((framing, text) => {
    const probe = probeReply({ framing, text, number: 0 });
    if (probe !== undefined) return device.reply(framing, probe);
    heard.push(text);
    time.after(40_000, () => device.reply(framing, good("OUT")));
  });
  const { line: before } = lineOver(device.open);
  before.start();
  assert.ok(await time.until(() => before.state === "idle"));
  const out = ending(before, requestFor("OUT", { replyTimeoutMs: 30_000 }));
  await time.advance(100);
  await before.stop(0);
  assert.equal(out.fault?.outcome, "unknown");
  const inherited = () => before.owing ?? [];
  const { line, told } = lineOver(device.open, { config: { recovery: "quiet" }, inherited });
  line.start();
  for (let calls = 0; calls < 20; calls++) {
    const end = ending(line, requestFor(`B-${calls}`, { replyTimeoutMs: 30_000 }));
    assert.ok(await time.until(() => hasEnded(end)));
    assert.deepEqual([end.fault?.reason, end.text], ["recovering", undefined]);
  }
  assert.deepEqual([told.lates, heard.length], [1, 1]);
  // Ten times lateReplyMs behind the answer that came.
  assert.ok(await time.until(() => line.state === "idle", 60_000));
  await line.stop(0);
});

test("Line tells of no change while its terminal stays off, and of its cause all the time", async () => {
  const set = setOf(() => {}, { services: ["bank", "qr"], probes: () => false });
  await time.advance(120_000);
  assert.equal(set.line.state, "idle");
  const { length } = set.told.states;
  const asked = set.asked.length;
  for (let seconds = 0; seconds < 600; seconds++) {
    await time.advance(1_000);
    assert.match(set.line.reason, /not one byte comes back/);
  }
  assert.equal(set.told.states.length, length, set.told.states.slice(length).join());
  assert.ok(set.asked.length > asked + 20, "it is asked all the same");
  await set.line.stop(0);
});

test("Line.stop() twice is one stop, and an opening that comes after it is closed", async () => {
  const set = setOf(() => {});
  const both = [set.line.stop(0), set.line.stop(0)];
  await Promise.all(both);
  assert.equal(set.line.state, "closed");
  await time.advance(10_000);
  assert.equal(set.device.isOpen, false);
  assert.equal(set.device.openings, 1);
});

test("Line says beforehand with which fault it would refuse a call, in the same words", async () => {
  const set = setOf(() => {}, { config: { queueCallsMax: 1 } });
  const same = async (what: string) => {
    const { refusal } = set.line;
    const end = ending(set.line, requestFor("X"));
    await time.settle();
    assert.match(refusal?.message ?? "", new RegExp(what));
    assert.deepEqual(refusal, end.fault);
    assert.equal(refusal?.retryAfterS, end.fault?.retryAfterS);
  };
  assert.ok(await idle(set));
  assert.equal(set.line.refusal, undefined);
  ending(set.line, requestFor("A"));
  assert.equal(set.line.refusal, undefined, "one more may wait");
  ending(set.line, requestFor("B"));
  await same("1 calls are waiting, which is the limit");
  set.device.unplug();
  await time.settle();
  await same("it is down");
  void set.line.stop(0);
  await same("posline is shutting down");
});

test("Line lets its observer see each event with what follows from it, before it is done", async () => {
  const seen: string[] = [];
  const set = setOf((framing) => set.device.reply(framing, good("SALE")), {
    observe: (event, effects) => {
      const asked = effects.flatMap((effect) =>
        effect.do === "write" ? [`${effect.service} ${effect.exchange?.request.requestId ?? "probe"}`] : [],
      );
      const done = effects.map((effect) => (effect.do === "report" ? effect.what.is : effect.do));
      seen.push(`${event.at}: ${[...done, ...asked].join(", ")}`);
      if (done.includes("write")) assert.equal(set.asked.length, writes++, "not written yet");
    },
  });
  let writes = 0;
  assert.ok(await idle(set));
  seen.length = 0;
  const end = ending(set.line, requestFor("SALE"));
  assert.ok(await time.until(() => hasEnded(end)));
  assert.deepEqual(seen, ["call: write, bank SALE", "wrote: ", "received: end"]);
});

test("Line sends a background question when no caller waits, and its repetition after a corrupt reply behind callers too", async () => {
  const set = await clean(setOf(() => {}));
  const ends = [
    ending(set.line, requestFor("A")),
    ending(set.line, requestFor("ASKED", { route: "/check", background: true, repeatable: true })),
    ending(set.line, requestFor("B")),
  ];
  set.asked.length = 0;
  for (const id of ["A", "B"]) {
    await time.advance(2);
    set.device.reply("length", good(id));
    await time.settle();
  }
  await time.advance(2);
  assert.deepEqual(set.asked, ["/sale", "/sale", "/check"]);
  // Its reply is corrupt, and a caller comes while the line is proven clean.
  set.device.reply("length", "nonsense");
  await time.settle();
  ends.push(ending(set.line, requestFor("C", { route: "/refund" })));
  await time.until(() => set.asked.includes("/refund"));
  set.device.reply("length", good("C"));
  await time.until(() => set.asked.filter((route) => route === "/check").length === 2);
  set.device.reply("length", good("ASKED"));
  await time.settle();
  assertMapped(ends, ["A", "ASKED", "B", "C"].map(good), ({ text }) => text);
  assert.deepEqual(
    set.asked.filter((route) => route === "/refund" || route === "/check"),
    ["/check", "/refund", "/check"],
  );
});

test("Line keeps no hold on a caller whose call waited and has ended", async () => {
  const set = await clean(setOf(() => {}));
  const caller = new ListenedTo();
  const [first, second] = [requestFor("A"), { ...requestFor("B"), caller }];
  ending(set.line, first);
  const end = ending(set.line, second);
  assert.equal(caller.listeners.size, 1, "it may leave while it waits");
  for (const id of ["A", "B"]) {
    await time.advance(2);
    set.device.reply("length", good(id));
    await time.settle();
  }
  assert.equal(end.text, good("B"));
  assert.equal(caller.listeners.size, 0);
});

test("Line listens to no caller whose call went out at once, or was refused", async () => {
  const set = await clean(setOf(() => {}, { config: { queueCallsMax: 1 } }));
  const [out, refused] = [new ListenedTo(), new ListenedTo()];
  ending(set.line, { ...requestFor("A"), caller: out });
  ending(set.line, requestFor("B"));
  const end = ending(set.line, { ...requestFor("C"), caller: refused });
  await time.settle();
  assert.equal(end.fault?.reason, "queue-full");
  assert.deepEqual([out.listeners.size, refused.listeners.size], [0, 0]);
});

test("Line tells what each answered probe says", async () => {
  const set = setOf(() => {});
  assert.ok(await idle(set));
  assert.deepEqual([...new Set(set.told.probes.map(({ service }) => service))], ["bank"]);
  assert.match(JSON.stringify(set.told.probes[0]?.answer), /"operations"/);
});

test("Line that is told to stop from within its own report does first what it had decided", async () => {
  const set = setOf(() => {});
  const stops: Promise<void>[] = [];
  mock.method(set.told, "state", (state: string) => {
    if (state === "idle") stops.push(set.line.stop(0));
  });
  const end = ending(set.line, requestFor("A"));
  assert.ok(await time.until(() => hasEnded(end)));
  assert.deepEqual([end.fault?.reason, end.fault?.outcome], ["stopping", "unknown"]);
  assert.match(String(set.device.written.at(-1)), /\/sale/, "it was written");
  await Promise.all(stops);
  assert.equal(set.device.isOpen, false);
});

class ListenedTo extends Presence {
  readonly listeners = new Set<() => void>();

  override onLeave(listener: () => void): void {
    super.onLeave(listener);
    this.listeners.add(listener);
  }

  override offLeave(listener: () => void): void {
    super.offLeave(listener);
    this.listeners.delete(listener);
  }
}
