import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { Fault } from "../../src/core/fault.ts";
import { bodyDigest } from "../../src/envelope/body-digest.ts";
import { journalFile } from "../../src/journal/errors.ts";
import { type Journal, type JournalOptions, openJournal } from "../../src/journal/journal.ts";
import { recentMs } from "../../src/journal/recent-operations.ts";
import { joinOperations, readRecord, writeRecord } from "../../src/journal/record.ts";
import { recordMs } from "../../src/journal/recorder.ts";
import { slotBytes, textBytesMax } from "../../src/journal/slot.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { bytes, callOf, folder, routeTo, Told } from "./records.ts";
import { type Fate, SimDisk, systemError } from "./sim-disk.ts";

/**
 * Tests src/journal/journal.ts, src/journal/recent-operations.ts, src/journal/record.ts.
 *
 * How operations of unknown outcome are settled, and what is found of operations that were sent before.
 */

const time = new VirtualTime();
after(() => time.restore());

async function opened(disk = new SimDisk(), settings: Partial<JournalOptions> = {}) {
  const told = new Told();
  const journal = await openJournal({ folder, bytes, onFailure: "relay", report: told, disk, ...settings });
  return { journal, told, disk };
}

async function send(journal: Journal, key: string, outcome?: "answered" | "unknown" | "not-sent", body?: string) {
  const entry = journal.begin(callOf(key, body === undefined ? {} : { body }), routeTo());
  await entry.sent();
  if (outcome !== undefined) await entry.ended({ outcome });
  return entry;
}

const keysOf = (journal: Journal) => journal.unknown().map(({ key }) => key);
const digestOf = (body: string) => bodyDigest([Buffer.from(body)]);

test("writeRecord() of a settled record fits into a slot whatever the note is, and readRecord() reads it without card numbers", () => {
  const note = fc.oneof(
    fc.string({ unit: "binary", maxLength: 300 }),
    fc.constantFrom(...["漢", "\u2028", '"', "\\", "\u0000", "\ud800", "😀"].map((character) => character.repeat(300))),
  );
  const settled = { kind: "settled", timeMs: 1, sent: Number.MAX_SAFE_INTEGER, digest: "0123456789abcdef" } as const;
  fc.assert(
    fc.property(note, (words) => {
      const text = writeRecord({ ...settled, result: "unprinted", by: "operator", note: words });
      assert.ok(Buffer.byteLength(text) <= textBytesMax, `${Buffer.byteLength(text)} bytes`);
      assert.equal(readRecord(text)?.kind, "settled");
    }),
  );
  const back = readRecord(writeRecord({ ...settled, result: "approved", by: "operator", note: "card 4111111111111111" }));
  assert.deepEqual(back, { ...settled, result: "approved", by: "operator", note: "card 411111******1111" });
  for (const odd of [{ result: "pending" }, { by: "nobody" }, { digest: 1 }, { sent: "1" }]) {
    assert.equal(
      readRecord(JSON.stringify({ ...JSON.parse(writeRecord({ ...settled, result: "closed", by: "answer" })), ...odd })),
      undefined,
    );
  }
});

test("writeRecord() leaves out what an operation is asked by where words are too long for a slot, and nothing else", () => {
  const sent = {
    kind: "sent",
    timeMs: 0,
    requestId: "r".repeat(64),
    service: "bank",
    route: "/sale",
    digest: "d".repeat(16),
  } as const;
  const ask = { trans: "漢".repeat(64), pay_system: "漢".repeat(64) };
  const back = (key: string) => readRecord(writeRecord({ ...sent, key, ask }));
  assert.deepEqual(back("K"), { ...sent, key: "K", amount: undefined });
  assert.deepEqual(readRecord(writeRecord({ ...sent, key: "K", ask: { trans: "T" } })), {
    ...sent,
    key: "K",
    amount: undefined,
    ask: { trans: "T" },
  });
  // Up to the last byte of a slot it stays.
  const texts = Array.from({ length: 65 }, (_, wide) => [1, 2].map((more) => "漢".repeat(wide).padEnd(62 + more, "x"))).flat();
  const written = texts.map((trans) => writeRecord({ ...sent, key: "漢".repeat(40), ask: { trans } }));
  const whole = written.filter((text) => text.includes('"trans"')).map((text) => Buffer.byteLength(text));
  assert.ok(whole.length < texts.length);
  assert.equal(Math.max(...whole), textBytesMax);
});

test("Journal.settle() takes all sendings of one body under one key out of what is unknown, now and after a restart", async () => {
  const { journal, told, disk } = await opened();
  await send(journal, "A", "unknown");
  await send(journal, "A", "unknown");
  await send(journal, "A", "unknown", '{"pay_id":"A","amount":200}');
  await send(journal, "B", "unknown");
  const [first] = journal.open;
  assert.ok(first);
  assert.equal(await journal.settle(first, { result: "approved", by: "operator", note: "seen" }), true);
  assert.deepEqual([keysOf(journal), journal.unknownTotal], [["A", "B"], 2]);
  assert.deepEqual(told.settlings, ["bank /sale A approved operator", "bank /sale A approved operator"]);
  const next = await opened(disk.afterCut([], true));
  assert.deepEqual([keysOf(next.journal), next.journal.unknownTotal], [["A", "B"], 2]);
  assert.deepEqual(next.told.finds, [{ recent: [], older: 2 }]);
});

test("Journal.settled() is consistent when the ring has overwritten what it settles, or the record itself is the oldest", async () => {
  const { journal, disk } = await opened();
  const slots = bytes / slotBytes;
  await send(journal, "OLD", "unknown");
  const [old] = journal.open;
  assert.ok(old);
  // Its sending and its outcome are overwritten, and only then it is settled.
  for (let n = 0; n < slots / 2; n++) await send(journal, `N${n}`, "answered");
  assert.equal(await journal.settle(old, { result: "failed", by: "answer" }), true);
  const next = await opened(disk.afterCut([], true));
  assert.deepEqual(keysOf(next.journal), []);
  assert.equal(next.journal.find("bank", "/sale", "OLD"), undefined);
  // Sendings go before what settles them: nothing comes back as unknown on the way round.
  const round = await opened();
  await send(round.journal, "A", "unknown");
  const [a] = round.journal.open;
  assert.ok(a);
  await round.journal.settle(a, { result: "approved", by: "answer" });
  for (let n = 0; n < slots; n++) {
    await send(round.journal, `N${n}`, "answered");
    if (n % 8 === 0) assert.deepEqual(keysOf((await opened(round.disk.afterCut([], true))).journal), []);
  }
});

test("joinOperations() settles nothing by a record whose number is another operation's, as in a file that was replaced", () => {
  const sent = { kind: "sent", timeMs: 0, requestId: "r", service: "bank", route: "/sale", key: "X", digest: "x" } as const;
  const settled = { kind: "settled", timeMs: 1, sent: 7, digest: "x", result: "approved", by: "answer" } as const;
  const joined = (digest: string, number: number) => {
    const records = [
      { sequence: 7, record: sent },
      { sequence: 8, record: { ...settled, digest, sent: number } },
    ];
    return joinOperations(records).map((each) => each.settled?.result);
  };
  assert.deepEqual([joined("x", 7), joined("another", 7), joined("x", 6)], [["approved"], [undefined], [undefined]]);
});

test("Journal keeps what it acknowledged as settled, through power cuts in the middle of the record", async () => {
  const fate: fc.Arbitrary<Fate> = fc.record({
    keeps: fc.constantFrom("all" as const, "none" as const, "start" as const, "end" as const),
    bytes: fc.nat({ max: slotBytes }),
  });
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: 12 }), fc.array(fate, { minLength: 1, maxLength: 4 }), async (fuse, fates) => {
      const { journal, disk } = await opened();
      await send(journal, "A", "unknown");
      await send(journal, "B", "unknown");
      disk.fuse = fuse;
      const [a] = journal.open;
      assert.ok(a);
      let isAcknowledged = false;
      void journal.settle(a, { result: "declined", by: "answer" }).then((recorded) => {
        isAcknowledged = recorded;
      });
      await time.settle();
      const next = await opened(disk.afterCut(fates, true));
      const unknown = keysOf(next.journal);
      assert.ok(unknown.includes("B"));
      const isSettled = !unknown.includes("A");
      assert.ok(isSettled || !isAcknowledged, "it was acknowledged and is lost");
      assert.equal(next.journal.find("bank", "/sale", "A")?.end, isSettled ? "declined" : undefined);
      assert.equal(next.journal.find("bank", "/sale", "B")?.end, undefined);
    }),
    { numRuns: 200 },
  );
});

test("Journal.find() gives the last operation of service, route and key, in flight, ended, settled, and after a restart", async () => {
  const { journal, told, disk } = await opened();
  assert.equal(journal.isReadable, true);
  const body = '{"pay_id":"A","amount":100}';
  assert.equal(journal.find("bank", "/sale", "A"), undefined);
  const entry = journal.begin(callOf("A"), routeTo());
  assert.equal(journal.find("bank", "/sale", "A"), undefined, "nothing was sent yet");
  await entry.sent();
  const found = journal.find("bank", "/sale", "A");
  assert.deepEqual([found?.digest, found?.end], [digestOf(body), undefined]);
  assert.ok(Math.abs((found?.sentMs ?? 0) - Date.now()) < 60_000);
  assert.equal(journal.find("bank", "/refund", "A"), undefined);
  assert.equal(journal.find("fiscal", "/sale", "A"), undefined);
  await entry.ended({ outcome: "answered" });
  journal.settled("bank", "/sale", "A", "approved", journal.lastOrder("bank", "A"));
  journal.settled("bank", "/sale", "A", "approved", journal.lastOrder("bank", "A"));
  journal.settled("bank", "/sale", "ABSENT", "approved", journal.lastOrder("bank", "ABSENT"));
  assert.deepEqual(told.settlings, ["bank /sale A approved answer"]);
  await send(journal, "B", "unknown");
  journal.settled("bank", "/sale", "B", "failed", journal.lastOrder("bank", "B"));
  assert.deepEqual(keysOf(journal), []);
  const other = '{"pay_id":"A","amount":200}';
  await send(journal, "A", "not-sent", other);
  assert.equal(journal.find("bank", "/sale", "A")?.end, "approved", "what wasn't sent after all leaves the one before");
  await time.settle();
  const next = await opened(disk.afterCut([], true));
  const again = next.journal.find("bank", "/sale", "A");
  assert.deepEqual([again?.digest, again?.end], [digestOf(body), "approved"]);
  assert.equal(next.journal.find("bank", "/sale", "B")?.end, "failed");
  await send(next.journal, "A", "answered", other);
  assert.deepEqual(
    [next.journal.find("bank", "/sale", "A")?.digest, next.journal.find("bank", "/sale", "A")?.end],
    [digestOf(other), undefined],
  );
});

test("Journal.find() says that nothing was known under a key, after a restart too, unless another operation was sent under it", async () => {
  const { journal, disk } = await opened();
  const refund = async (key: string, isFresh: boolean) => {
    const entry = journal.begin({ ...callOf(key), route: "/refund", isFresh }, routeTo("/refund"));
    await entry.sent();
    return entry;
  };
  await refund("FRESH", true);
  await refund("SHARED", true);
  await refund("PLAIN", false);
  await send(journal, "SHARED", "answered");
  const isFresh = (at: Journal) => ["FRESH", "SHARED", "PLAIN"].map((key) => at.find("bank", "/refund", key)?.isFresh);
  assert.deepEqual(isFresh(journal), [false, false, false], "while it is in flight, nothing is");
  const { journal: next } = await opened(disk.afterCut([], true));
  assert.deepEqual(isFresh(next), [true, false, false]);
});

test("writeRecord() keeps that nothing was known under a key only beside what the operation is asked by", () => {
  const sent = {
    kind: "sent",
    timeMs: 1,
    requestId: "r",
    service: "bank",
    route: "/refund",
    key: "K",
    amount: "1",
    digest: "d",
  } as const;
  const read = (more: object) => readRecord(writeRecord({ ...sent, ...more }));
  assert.deepEqual(read({ ask: {}, fresh: true }), { ...sent, ask: {}, fresh: true });
  assert.deepEqual(read({ fresh: true }), sent);
  assert.deepEqual(read({ ask: {}, fresh: false }), { ...sent, ask: {} });
});

test("Journal.find() says over which device an operation was sent, after a restart too", async () => {
  const { journal, disk } = await opened();
  const entry = journal.begin(callOf("MOVED"), routeTo(), "89abcdef");
  await entry.sent();
  await send(journal, "ELSE", "answered");
  const devices = (at: Journal) => ["MOVED", "ELSE"].map((key) => at.find("bank", "/sale", key)?.device);
  assert.deepEqual(devices(journal), ["89abcdef", undefined]);
  const { journal: next } = await opened(disk.afterCut([], true));
  assert.deepEqual(devices(next), ["89abcdef", undefined]);
});

test("Journal.find() forgets after a day, and remembers no more keys than the ring has operations", async () => {
  const { journal } = await opened();
  await send(journal, "A", "answered");
  await time.advance(86_400_000);
  assert.ok(journal.find("bank", "/sale", "A"));
  await time.advance(1);
  assert.equal(journal.find("bank", "/sale", "A"), undefined);
  const most = bytes / slotBytes / 2;
  for (let n = 0; n < most + 5; n++) await send(journal, `N${n}`, "answered");
  assert.equal(journal.find("bank", "/sale", "N4"), undefined);
  assert.ok(journal.find("bank", "/sale", "N5"));
});

test("Journal.isReadable is false until the disk was there; then what was sent before and meanwhile is found", async () => {
  const { journal: before, disk } = await opened();
  await send(before, "OLD", "answered");
  await send(before, "BOTH", "unknown");
  const later = disk.afterCut([], true);
  later.trouble = { error: new Error("away") };
  const { journal } = await opened(later);
  assert.equal(journal.isReadable, false);
  await send(journal, "BOTH", "unknown");
  assert.equal(journal.find("bank", "/sale", "OLD"), undefined);
  later.trouble = undefined;
  await send(journal, "NEW", "answered");
  assert.equal(journal.isReadable, true);
  for (const key of ["OLD", "BOTH", "NEW"]) assert.ok(journal.find("bank", "/sale", key), key);
  assert.deepEqual(keysOf(journal), ["BOTH", "BOTH"]);
  journal.settled("bank", "/sale", "BOTH", "approved", journal.lastOrder("bank", "BOTH"));
  assert.deepEqual(keysOf(journal), []);
});

test("Journal refuses a call that must not be sent twice, where it could be read only since the call came and has it as sent", async () => {
  const { journal: before, disk } = await opened();
  for (const key of ["OLD", "FAILED", "PLAIN"]) await send(before, key, "unknown");
  before.settled("bank", "/sale", "FAILED", "failed", before.lastOrder("bank", "FAILED"));
  await send(before, "LAST", "answered");
  for (const [key, isFollowed, isRefused] of [
    ["OLD", true, true],
    ["FAILED", true, false],
    ["PLAIN", false, false],
    ["NEW", true, false],
  ] as const) {
    const later = disk.afterCut([], true);
    later.trouble = { error: new Error("away") };
    const { journal } = await opened(later, { onFailure: "refuse" });
    later.trouble = undefined;
    const entry = journal.begin({ ...callOf(key), followMs: isFollowed ? 1_000 : undefined }, routeTo());
    const sending = entry.sent();
    if (!isRefused) {
      await sending;
      continue;
    }
    await assert.rejects(
      sending,
      (error) =>
        error instanceof Fault &&
        error.outcome === "not-sent" &&
        /the same was sent at .*: send the same call again, and it is asked about/.test(error.message) &&
        error.details.sentBefore === true,
    );
    const sentMs = before.find("bank", "/sale", key)?.sentMs;
    await entry.ended({ outcome: "not-sent" });
    assert.equal(journal.find("bank", "/sale", key)?.sentMs, sentMs, "the one before is still the last");
  }
});

test("Journal refuses a call that is followed under a key of which another body was sent since it came", async () => {
  const { journal: before, disk } = await opened();
  await send(before, "A", "unknown");
  const later = disk.afterCut([], true);
  later.trouble = { error: new Error("away") };
  const { journal } = await opened(later);
  later.trouble = undefined;
  const entry = journal.begin({ ...callOf("A", { body: '{"pay_id":"A","amount":7}' }), followMs: 1_000 }, routeTo());
  await assert.rejects(
    entry.sent(),
    (error) =>
      error instanceof Fault &&
      error.kind === "reused" &&
      error.details.sentBefore === true &&
      /^Cannot send \/sale: another body with its key was sent at .*Z, .*: ask about that one first. Nothing was sent$/.test(
        error.message,
      ),
  );
});

test("Journal refuses a call whose terminal was asked before another operation was sent under its key", async () => {
  const { journal } = await opened();
  await send(journal, "A", "unknown");
  const asked = (askedAtOrder: number) => journal.begin({ ...callOf("A"), route: "/refund", askedAtOrder }, routeTo("/refund"));
  const order = journal.lastOrder("bank", "A");
  const outdated = asked(order - 1);
  await assert.rejects(
    outdated.sent(),
    (error) =>
      error instanceof Fault &&
      error.outcome === "not-sent" &&
      error.details.reason === "not-recorded" &&
      /another operation was sent under its key meanwhile: send the same call again, and that is asked about/.test(
        error.message,
      ),
  );
  await outdated.ended({ outcome: "not-sent" });
  await asked(order).sent();
});

test("Journal refuses a call of whose key the terminal knew nothing, where it is known by now to have an operation under it", async () => {
  for (const [ending, isFresh, isRefused] of [
    [success, true, true],
    [success, false, false],
    [lost, true, false],
  ] as const) {
    const { journal } = await opened();
    const entry = journal.begin({ ...callOf("A"), route: "/refund", isFresh }, routeTo("/refund"));
    await (await send(journal, "A")).ended(ending);
    const sent = entry.sent();
    if (!isRefused) await sent;
    else {
      await assert.rejects(
        sent,
        (error) =>
          error instanceof Fault &&
          error.outcome === "not-sent" &&
          /the terminal is known by now to have another operation under its key/.test(error.message),
      );
    }
  }
});

test("Journal refuses to send once more what was on the line when the process before ended, for a minute and while that is unknown", async () => {
  const { journal: before, disk } = await opened();
  for (const key of ["A", "B", "C", "D", "E"]) void before.begin(callOf(key), routeTo()).sent();
  await send(before, "ENDED", "unknown");
  await time.settle();
  // One that dies before it is asked anything.
  const { journal: between, disk: disk2 } = await opened(disk.afterCut([], true));
  await between.start();
  await time.settle();
  const { journal } = await opened(disk2.afterCut([], true));
  const isSent = async (key: string, body?: string) => {
    const entry = journal.begin(callOf(key, body === undefined ? {} : { body }), routeTo());
    try {
      await entry.sent();
      await entry.ended({ outcome: "answered" });
      return true;
    } catch (error) {
      assert.ok(error instanceof Fault && error.outcome === "unknown", String(error));
      assert.match(error.message, /^Cannot send \/sale once more: .*: call \/check with the same pay_id$/);
      assert.match(
        error.message,
        /: the same request was on the line when posline stopped a moment ago, and its answer is lost\. /,
      );
      await entry.ended({ outcome: error.outcome });
      return false;
    }
  };
  const unknown = keysOf(journal);
  assert.equal(await isSent("A"), false);
  assert.deepEqual(keysOf(journal), unknown, "it is listed once");
  assert.equal(await isSent("ENDED"), true, "its till was answered");
  assert.equal(await isSent("B", '{"pay_id":"B","amount":200}'), true, "another body");
  for (const [key, result, sends] of [
    ["D", "approved", false],
    ["C", "failed", true],
  ] as const) {
    const [open] = journal.open.filter(({ sent }) => sent.key === key);
    assert.ok(open);
    await journal.settle(open, { result, by: "answer" });
    assert.equal(await isSent(key), sends, `${key} ${result}`);
  }
  assert.equal(await isSent("E"), false);
  journal.settled("bank", "/sale", "E", "failed", journal.lastOrder("bank", "E"));
  assert.equal(await isSent("E"), true, "its follower found that it failed");
  await time.advance(60_001);
  assert.equal(await isSent("A"), true);
});

test("Journal.refuseCopy() refuses what was on the line when the process before ended, for a minute", async () => {
  const { journal: before, disk } = await opened();
  void before.begin(callOf("A"), routeTo()).sent();
  await time.settle();
  const { journal } = await opened(disk.afterCut([], true));
  const came = (more: object = {}) => journal.refuseCopy({ ...callOf("A"), ...more }, routeTo());
  assert.throws(
    came,
    (error) => error instanceof Fault && error.outcome === "unknown" && error.details.reason === "sent-before",
  );
  came({ body: [Buffer.from('{"pay_id":"A","amount":200}')] });
  came({ followMs: 1_000 });
  came({ service: "second" });
  journal.refuseCopy({ ...callOf("A"), route: "/refund" }, routeTo("/refund"));
  await time.advance(60_000);
  assert.throws(came, Fault);
  await time.advance(1);
  came();
});

test("Journal sends an abort again that was on the line when the process before ended: it waits for nobody", async () => {
  const { journal: before, disk } = await opened();
  const abort = { ...callOf("A"), route: "/abort" };
  void before.begin(abort, routeTo("/abort")).sent();
  await time.settle();
  const { journal } = await opened(disk.afterCut([], true));
  journal.refuseCopy(abort, routeTo("/abort"));
  await journal.begin(abort, routeTo("/abort")).sent();
});

test("Journal lists the newest 100 operations of unknown outcome, lets 1,000 be settled, and counts all, after a restart too", async () => {
  const size = { bytes: 4_096 * slotBytes };
  const { journal, disk } = await opened(new SimDisk(), size);
  for (let n = 0; n < 1_002; n++) await send(journal, `K${n}`, "unknown");
  for (const at of [journal, (await opened(disk.afterCut([], true), size)).journal]) {
    assert.deepEqual([at.unknown().length, at.open.length, at.unknownTotal], [100, 1_000, 1_002]);
    assert.deepEqual([keysOf(at)[0], keysOf(at).at(-1), at.open[0]?.sent.key], ["K902", "K1001", "K2"]);
  }
});

test("Journal tells a call that is followed which of all sendings its own is", async () => {
  const { journal } = await opened();
  const orders: number[] = [];
  const entry = journal.begin({ ...callOf("A"), onSent: (order) => orders.push(order) }, routeTo());
  assert.deepEqual(orders, []);
  await entry.sent();
  assert.deepEqual(orders, [journal.lastOrder("bank", "A")]);
});

test("Journal.recorded() waits for the outcome, too, that is on its way to the disk", async () => {
  const { journal, disk } = await opened();
  const entry = await send(journal, "A");
  let answer = () => {};
  disk.trouble = {
    until: new Promise<void>((resolve) => {
      answer = resolve;
    }),
  };
  void entry.ended(success);
  let isOver = false;
  void journal.recorded("bank", "/sale", "A").then(() => {
    isOver = true;
  });
  await time.advance(300);
  assert.deepEqual([isOver, journal.find("bank", "/sale", "A")?.isRecorded], [false, false]);
  disk.trouble = undefined;
  answer();
  await time.advance(1);
  assert.deepEqual([isOver, journal.find("bank", "/sale", "A")?.isRecorded], [true, true]);
});

test("Journal forgets what an earlier process sent a day after its sending, also of what followed while the clock was ahead", async () => {
  const hourMs = 3_600_000;
  const { journal, disk } = await opened();
  time.setOffMs = 240 * hourMs;
  await send(journal, "AHEAD", "answered");
  time.setOffMs = 0;
  await send(journal, "A", "answered");
  await time.advance(20 * hourMs);
  const { journal: next } = await opened(disk.afterCut([], true));
  const known = () => ["AHEAD", "A"].map((key) => next.find("bank", "/sale", key) !== undefined);
  await time.advance(4 * hourMs);
  assert.deepEqual(known(), [true, true]);
  await time.advance(1);
  assert.deepEqual(known(), [true, false]);
  await time.advance(20 * hourMs - 1);
  assert.deepEqual(known(), [true, false], "what was sent ahead of all clocks counts from the start, for a whole day");
  await time.advance(1);
  assert.deepEqual(known(), [false, false]);
});

test("Journal records how an operation ended, and that the terminal has it, which an earlier process sent, for the next one", async () => {
  const { journal: first, disk } = await opened();
  for (const key of ["ENDED", "BEGUN", "OPEN"]) await send(first, key, "unknown");
  const { journal: second, disk: disk2 } = await opened(disk.afterCut([], true));
  const [ended, begun] = second.open;
  assert.ok(ended && begun);
  assert.equal(await second.settle(ended, { result: "approved", by: "operator", note: "seen" }), true);
  second.begun(begun);
  await time.settle();
  const { journal: third } = await opened(disk2.afterCut([], true));
  assert.deepEqual(keysOf(third), ["BEGUN", "OPEN"]);
  const known = ["ENDED", "BEGUN", "OPEN"].map((key) => third.find("bank", "/sale", key));
  assert.deepEqual(
    known.map((each) => [each?.end, each?.isAccepted]),
    [
      ["approved", false],
      [undefined, true],
      [undefined, false],
    ],
  );
});

test("Journal takes what was sent before a record that is missing for what the terminal may have cleared, and no later one", async () => {
  const { journal, disk } = await opened();
  for (const key of ["A", "B"]) await send(journal, key, "answered");
  const cut = disk.afterCut([{ keeps: "all", bytes: 0 }], true);
  // The start, A and its outcome, then B.
  cut.files.get(journalFile(folder))?.current.fill(0xff, 3 * slotBytes, 3 * slotBytes + 9);
  const { journal: next } = await opened(cut);
  const cleared = (key: string) => next.find("bank", "/sale", key)?.mayBeCleared;
  assert.deepEqual([cleared("A"), cleared("B"), next.isWhole], [true, false, false]);
});

test("Journal.settled() records nothing where more was sent under the key since it was asked", async () => {
  const { journal } = await opened();
  await send(journal, "A", "unknown");
  const order = journal.lastOrder("bank", "A");
  await send(journal, "A", "unknown");
  journal.settled("bank", "/sale", "A", "approved", order);
  assert.deepEqual([keysOf(journal), journal.find("bank", "/sale", "A")?.end], [["A", "A"], undefined]);
  journal.settled("bank", "/sale", "A", "approved", journal.lastOrder("bank", "A"));
  assert.deepEqual([keysOf(journal), journal.find("bank", "/sale", "A")?.end], [[], "approved"]);
});

test("Journal.heardOf() takes an answer that came over a device of another contract, or before the operation had ended, for none", async () => {
  const { journal } = await opened();
  const entry = journal.begin(callOf("A"), routeTo(), "bank 89abcdef");
  await entry.sent();
  const hears = (device: string | undefined, askedMs: number) => {
    journal.heardOf("bank", "A", ["/sale"], { askedMs, device }, () => "approved");
    return journal.find("bank", "/sale", "A")?.end;
  };
  assert.equal(hears(undefined, time.nowMs + 1), undefined, "it is in flight");
  await time.advance(100);
  await entry.ended(lost);
  assert.equal(hears("fiscal 89abcdef", time.nowMs), undefined);
  assert.equal(hears("bank 01234567", time.nowMs - 1), undefined);
  assert.equal(hears("bank 01234567", time.nowMs), "approved");
});

test("Journal.findOthers() finds what another service sent over a device, unless it failed, over a restart as well", async () => {
  const { journal: before, disk } = await opened();
  for (const key of ["A", "B"]) {
    const entry = before.begin({ ...callOf(key), service: "bank-2" }, routeTo(), "bank 89abcdef");
    await entry.sent();
    await entry.ended(lost);
  }
  before.settled("bank-2", "/sale", "B", "failed", before.lastOrder("bank-2", "B"));
  await time.settle();
  const { journal: next } = await opened(disk.afterCut([], true));
  for (const journal of [before, next]) {
    const found = (service: string, key: string, device: string) => journal.findOthers(service, key, device)?.service;
    assert.equal(found("bank", "A", "bank 89abcdef"), "bank-2");
    assert.deepEqual(
      [found("bank", "B", "bank 89abcdef"), found("bank", "A", "bank 01234567"), found("bank-2", "A", "bank 89abcdef")],
      [undefined, undefined, undefined],
    );
  }
});

test("Journal tells which was sent last under a key by its records, whatever the clock was, and after one that wasn't sent", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_800_000_000_000 });
  const sends = async (journal: Journal, route: "/preauth" | "/refund", ending: typeof success | typeof notSent) => {
    const entry = journal.begin({ ...callOf("A"), route }, routeTo(route));
    await entry.sent();
    await entry.ended(ending);
  };
  const lastOf = (journal: Journal) => ["/preauth", "/refund"].filter((route) => journal.find("bank", route, "A")?.isLast);
  const ends = (journal: Journal, route: string) =>
    journal.settled("bank", route, "A", "approved", journal.lastOrder("bank", "A"));
  const { journal: before, disk } = await opened();
  await sends(before, "/preauth", success);
  ends(before, "/preauth");
  // The clock is set back by an hour.
  t.mock.timers.setTime(1_800_000_000_000 - 3_600_000);
  await sends(before, "/refund", success);
  assert.deepEqual(lastOf(before), ["/refund"]);
  ends(before, "/refund");
  await time.settle();
  const { journal } = await opened(disk.afterCut([], true));
  assert.deepEqual(lastOf(journal), ["/refund"]);
  await sends(journal, "/preauth", success);
  assert.deepEqual(lastOf(journal), ["/preauth"]);
  await sends(journal, "/refund", notSent);
  assert.deepEqual(lastOf(journal), ["/preauth"]);
});

test("Journal takes nothing for the last under a key where what was sent before may stand at the terminal, unless it was taken for a new one", async () => {
  for (const [former, waitMs, outcome, isLast] of [
    [undefined, 59_000, success, false],
    [undefined, 61_000, success, true],
    [undefined, 61_000, lost, false],
    ["approved", 0, success, true],
    ["approved", 61_000, lost, false],
    ["failed", 0, lost, true],
  ] as const) {
    const { journal } = await opened();
    const cancel = journal.begin({ ...callOf("A"), route: "/cancel" }, routeTo("/cancel"));
    await cancel.sent();
    await cancel.ended({ outcome: "answered", status: "error", code: -3 });
    if (former !== undefined) journal.settled("bank", "/cancel", "A", former, journal.lastOrder("bank", "A"));
    await time.advance(waitMs);
    const preauth = journal.begin({ ...callOf("A"), route: "/preauth" }, routeTo("/preauth"));
    await preauth.sent();
    await preauth.ended(outcome);
    assert.equal(journal.find("bank", "/preauth", "A")?.isLast, isLast, `${former}, ${outcome.outcome} after ${waitMs} ms`);
  }
});

test("Journal takes a fiscal document for the last under a key of others only while none of them stands", async () => {
  for (const route of ["/deposit", "/sale"]) {
    const { journal } = await opened();
    const refund = journal.begin({ ...callOf("A", { service: "fiscal" }), route: "/refund" }, routeTo("/refund", "fiscal"));
    await refund.sent();
    await refund.ended({ ...success, code: 0 });
    journal.settled("fiscal", "/refund", "A", "closed", journal.lastOrder("fiscal", "A"));
    const document = journal.begin({ ...callOf("A", { service: "fiscal" }), route }, routeTo(route, "fiscal"));
    await document.sent();
    // It goes on; once it is rolled back or aborted, the refund's document is found under its key.
    await document.ended({ outcome: "answered", status: "error", code: 44 });
    assert.equal(journal.find("fiscal", route, "A")?.isAccepted, true);
    assert.equal(journal.find("fiscal", route, "A")?.isLast, false, route);
  }
});

test("Journal knows what this process sent also when a full journal is read late", async () => {
  const { journal: before, disk } = await opened();
  for (let n = 0; n < 80; n++) {
    await send(before, `OLD-${n}`, "answered");
    await time.advance(1_000);
  }
  await time.settle();
  const found = disk.afterCut([], true);
  found.trouble = { error: systemError("EIO") };
  const { journal } = await opened(found);
  await (await send(journal, "NEW")).ended(success);
  found.trouble = undefined;
  await time.advance(60_000);
  assert.equal(journal.isReadable, true);
  assert.equal(journal.find("bank", "/sale", "NEW")?.isAccepted, true);
  assert.equal(journal.find("bank", "/sale", "OLD-0"), undefined, "the oldest is forgotten");
  assert.notEqual(journal.find("bank", "/sale", "OLD-79"), undefined);
});

const success = { outcome: "answered", status: "success" } as const;
const lost = { outcome: "unknown" } as const;
const notSent = { outcome: "not-sent" } as const;

test("Journal keeps what an answer said of an operation that goes on, over a restart", async () => {
  const { journal: before, disk } = await opened();
  const showCode = async (key: string, reply: object) => {
    const call = { ...callOf(key, { service: "qr" }), route: "/showqrcode" } as const;
    const entry = before.begin(call, routeTo("/showqrcode", "qr"));
    await entry.sent();
    const { status, code } = reply as { readonly status: string; readonly code?: number };
    await entry.ended({ outcome: "answered", status, code, payload: [Buffer.from(JSON.stringify(reply))] });
  };
  const shown = (trans: string) => ({ status: "success", data: { trans } });
  const refused = { status: "error", code: 1, message: "no" };
  await (await send(before, "GOES-ON")).ended(success);
  await send(before, "LOST", "unknown");
  await showCode("Q", shown("T-1"));
  const first = before.find("qr", "/showqrcode", "Q");
  await showCode("Q", shown("T-2"));
  await showCode("REFUSED", refused);
  await showCode("REFUSED", shown("T-3"));
  await showCode("UNNAMED", refused);
  await showCode("UNNAMED", { status: "success" });
  await showCode("GATEWAY", { status: "success", message: "No valid answer" });
  const check = (journal: Journal) => {
    assert.equal(journal.find("bank", "/sale", "GOES-ON")?.isAccepted, true);
    assert.equal(journal.find("bank", "/sale", "LOST")?.isAccepted, false);
    assert.deepEqual([first?.learned, first?.hasOtherNames], ["T-1", false]);
    const second = journal.find("qr", "/showqrcode", "Q");
    assert.deepEqual([second?.learned, second?.hasOtherNames], ["T-2", true]);
    const named = (key: string) => {
      const { learned, hasOtherNames, isAccepted } = journal.find("qr", "/showqrcode", key) ?? {};
      return [learned, hasOtherNames, isAccepted];
    };
    assert.deepEqual(named("REFUSED"), ["T-3", false, true], "a refusal shows no code");
    assert.deepEqual(named("UNNAMED"), ["UNNAMED", true, true]);
    assert.deepEqual(named("GATEWAY"), [undefined, false, false], "a gateway's word says nothing");
  };
  check(before);
  await time.settle();
  check((await opened(disk.afterCut([], true))).journal);
});

test("Journal notes that the terminal has an operation whose answer is lost, once, and over a restart", async () => {
  const { journal: before, disk } = await opened();
  for (const key of ["ASKED", "FOLLOWED", "RESENT"]) await send(before, key, "unknown");
  const [asked] = before.open;
  assert.ok(asked);
  assert.deepEqual(before.progressOf(asked).isAccepted, false);
  before.begun(asked);
  before.begun(asked);
  before.accepted("bank", "/sale", "FOLLOWED", before.lastOrder("bank", "FOLLOWED"));
  before.accepted("bank", "/sale", "RESENT", before.lastOrder("bank", "RESENT") - 1);
  assert.equal(before.progressOf(asked).isAccepted, true);
  // Its own answer says so, and is recorded.
  await (await send(before, "ANSWERED")).ended(success);
  before.accepted("bank", "/sale", "ANSWERED", before.lastOrder("bank", "ANSWERED"));
  await time.settle();
  const texts = [...disk.files.values()].map(({ current }) => current.toString("latin1")).join("");
  assert.equal(texts.split('"kind":"begun"').length - 1, 2);
  const { journal } = await opened(disk.afterCut([], true));
  const accepted = ["ASKED", "FOLLOWED", "RESENT"].map((key) => journal.find("bank", "/sale", key)?.isAccepted);
  assert.deepEqual(accepted, [true, true, false]);
  assert.deepEqual(keysOf(journal), ["ASKED", "FOLLOWED", "RESENT"], "all are unknown still");
});

test("Journal notes that an operation was aborted, over a restart", async () => {
  const { journal: before, disk } = await opened();
  const abort = async (key: string, status: string) => {
    const entry = before.begin({ ...callOf(key), route: "/abort" }, routeTo("/abort"));
    await entry.sent();
    await entry.ended({ outcome: "answered", status });
  };
  for (const key of ["STOPPED", "GOES-ON"]) await (await send(before, key)).ended(success);
  await abort("STOPPED", "success");
  await abort("GOES-ON", "error");
  await (await send(before, "LATER")).ended(success);
  const stopped = (journal: Journal) =>
    ["STOPPED", "GOES-ON", "LATER"].map((key) => journal.find("bank", "/sale", key)?.isStopped);
  assert.deepEqual(stopped(before), [true, false, false]);
  await time.settle();
  assert.deepEqual(stopped((await opened(disk.afterCut([], true))).journal), [true, false, false]);
});

test("Journal takes what the terminal refused by its code for no sending, over a restart as well", async () => {
  const { journal: before, disk } = await opened();
  await send(before, "A", "unknown");
  const cancel = before.begin({ ...callOf("A"), route: "/cancel" }, routeTo("/cancel"));
  await cancel.sent();
  await cancel.ended({ outcome: "answered", status: "error", code: -16 });
  assert.equal(before.find("bank", "/sale", "A")?.isLast, true);
  await time.settle();
  const { journal } = await opened(disk.afterCut([], true));
  assert.equal(journal.find("bank", "/sale", "A")?.isLast, true);
  assert.equal(journal.find("bank", "/cancel", "A"), undefined);
});

test("Journal refuses to send once more what was on the line, whatever the box's clock says, until something was carried out since", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_800_000_000_000 });
  const first = await opened();
  void first.journal.begin(callOf("A"), routeTo()).sent();
  await time.settle();
  t.mock.timers.setTime(1_800_000_000_000 + 86_400_000);
  await send(first.journal, "B", "answered");
  await time.settle();
  let { disk } = first;
  for (let start = 1; start <= 7; start++) {
    const next = await opened(disk.afterCut([], true));
    const entry = next.journal.begin(callOf("A"), routeTo());
    const refused = await entry.sent().then(
      () => false,
      () => true,
    );
    assert.equal(refused, start <= 6, `after ${start} starts`);
    await entry.ended({ outcome: "not-sent" });
    if (start === 6) await send(next.journal, "C", "answered");
    await time.settle();
    ({ disk } = next);
  }
});

test("Journal keeps an end that an answer is, over a restart", async () => {
  const { journal: before, disk } = await opened();
  const deposit = before.begin({ ...callOf("D", { service: "fiscal" }), route: "/deposit" }, routeTo("/deposit", "fiscal"));
  await deposit.sent();
  await deposit.ended({ ...success, payload: [Buffer.from('{"status":"success","docStatus":1}')] });
  assert.equal(before.find("fiscal", "/deposit", "D")?.end, "closed");
  await time.settle();
  assert.equal((await opened(disk.afterCut([], true))).journal.find("fiscal", "/deposit", "D")?.end, "closed");
});

test("Journal takes the same request once more for the same operation: what was said of the first one holds", async () => {
  const { journal: before, disk } = await opened();
  await (await send(before, "A")).ended(success);
  await send(before, "A", "unknown");
  for (const _ of [1, 2]) await send(before, "B", "unknown");
  const [older] = before.open.filter(({ sent }) => sent.key === "B");
  assert.ok(older);
  before.begun(older);
  const accepted = (journal: Journal) => ["A", "B"].map((key) => journal.find("bank", "/sale", key)?.isAccepted);
  assert.deepEqual(accepted(before), [true, true]);
  await time.settle();
  const { journal } = await opened(disk.afterCut([], true));
  assert.deepEqual(accepted(journal), [true, true]);
  for (const each of journal.open.filter(({ sent }) => sent.key === "B")) {
    assert.equal(journal.progressOf(each).isAccepted, true);
  }
});

test("Journal notes that the terminal has what was answered with an error that leaves it open, and only where it is meant", async () => {
  const { journal } = await opened();
  const open = { outcome: "answered", status: "error", code: -3 } as const;
  await (await send(journal, "A")).ended(open);
  await (await send(journal, "TWO")).ended(open);
  await (await send(journal, "TWO", undefined, '{"pay_id":"TWO","amount":7}')).ended(open);
  const beforeMs = time.nowMs - 1;
  const has = (key: string) => journal.find("bank", "/sale", key)?.isAccepted;
  const noEnd = () => "begun" as const;
  journal.heardOf("bank", "A", ["/sale"], { askedMs: beforeMs, device: undefined }, noEnd);
  assert.equal(has("A"), false, "asked before it had ended");
  journal.heardOf("bank", "A", ["/refund"], { askedMs: time.nowMs + 1, device: undefined }, noEnd);
  assert.equal(has("A"), false, "another route's question");
  for (const key of ["A", "TWO", "NONE"])
    journal.heardOf("bank", key, ["/sale"], { askedMs: time.nowMs + 1, device: undefined }, noEnd);
  assert.deepEqual([has("A"), has("TWO")], [true, false]);
});

test("Journal says which call is in flight", async () => {
  const { journal } = await opened();
  const entry = await send(journal, "A");
  assert.equal(journal.find("bank", "/sale", "A")?.isInFlight, true);
  await entry.ended({ outcome: "unknown" });
  assert.equal(journal.find("bank", "/sale", "A")?.isInFlight, false);
});

test("Journal keeps a good end of a request that is sent once more, and what is proven of an older sending changes none", async () => {
  const { journal } = await opened();
  await send(journal, "A", "unknown");
  const [older] = journal.open;
  assert.ok(older);
  journal.settled("bank", "/sale", "A", "approved", journal.lastOrder("bank", "A"));
  await send(journal, "A", "unknown");
  assert.equal(journal.find("bank", "/sale", "A")?.end, "approved", "the same once more, and lost");
  const [open] = journal.open;
  assert.ok(open);
  await journal.settle(open, { result: "failed", by: "answer" });
  assert.equal(journal.find("bank", "/sale", "A")?.end, "approved");
  await (await send(journal, "A")).ended(success);
  assert.equal(journal.find("bank", "/sale", "A")?.end, undefined, "the terminal took it for a new one");
  for (const [key, end] of [
    ["D", "declined"],
    ["F", "failed"],
  ] as const) {
    await send(journal, key, "unknown");
    journal.settled("bank", "/sale", key, end, journal.lastOrder("bank", key));
    await send(journal, key, "unknown");
    assert.equal(journal.find("bank", "/sale", key)?.end, undefined);
  }
});

test("Journal takes nothing over from a request of the day before, nor from one that was aborted", async () => {
  const { journal } = await opened();
  await (await send(journal, "OLD")).ended(success);
  await (await send(journal, "STOPPED")).ended(success);
  const abort = journal.begin({ ...callOf("STOPPED"), route: "/abort" }, routeTo("/abort"));
  await abort.sent();
  await abort.ended(success);
  await send(journal, "STOPPED", "unknown");
  assert.equal(journal.find("bank", "/sale", "STOPPED")?.isAccepted, false);
  await time.advance(recentMs + 1);
  await send(journal, "OLD", "unknown");
  assert.equal(journal.find("bank", "/sale", "OLD")?.isAccepted, false);
});

test("Journal takes an abort for one of what was sent before it", async () => {
  const { journal } = await opened();
  await (await send(journal, "A")).ended(success);
  const abort = journal.begin({ ...callOf("A"), route: "/abort" }, routeTo("/abort"));
  await abort.sent();
  const later = await send(journal, "A");
  await abort.ended(success);
  await later.ended(success);
  assert.equal(journal.find("bank", "/sale", "A")?.isStopped, false);
});

test("Journal remembers nothing of a call that was refused while it was recorded", async () => {
  const { journal } = await opened();
  const entry = journal.begin(callOf("A"), routeTo());
  const recording = entry.sent();
  const ending = entry.ended({ outcome: "not-sent" });
  await Promise.all([recording, ending]);
  assert.equal(journal.find("bank", "/sale", "A"), undefined);
  assert.deepEqual(keysOf(journal), []);
});

test("Journal.unended() has what its tills may send again to learn how it ended, and nothing that is over", async () => {
  const { journal } = await opened();
  const keys = () => journal.unended().map(({ service, route, key }) => `${service} ${route} ${key}`);
  const call = (key: string) => journal.begin(callOf(key), routeTo());
  const inFlight = call("OUT");
  const recording = inFlight.sent();
  assert.deepEqual(keys(), ["bank /sale OUT"], "it is sent once it is recorded");
  await recording;
  const relayed = call("RELAYED");
  await relayed.sent();
  await relayed.ended(success);
  const followed = call("FOLLOWED");
  await followed.sent();
  await followed.ended(success);
  journal.followed("bank", "/sale", "FOLLOWED");
  assert.deepEqual(keys(), ["bank /sale OUT", "bank /sale FOLLOWED"]);
  await inFlight.ended({ outcome: "unknown" });
  await time.advance(recentMs);
  assert.deepEqual(keys(), ["bank /sale FOLLOWED", "bank /sale OUT"]);
  await time.advance(1);
  assert.deepEqual(keys(), ["bank /sale OUT"], "its repetition isn't recognised any more");
});

test("Journal takes a success about another key for no word of the call's own operation, over a restart as well", async () => {
  const { journal, disk } = await opened();
  const entry = await send(journal, "A");
  await entry.ended({ ...success, payload: [Buffer.from('{"status":"success","pay_id":"B"}')] });
  const accepted = (at: Journal) => at.find("bank", "/sale", "A")?.isAccepted;
  assert.deepEqual([accepted(journal), accepted((await opened(disk.afterCut([], true))).journal)], [false, false]);
});

test("Journal.begun() is about the body that was asked about, and no other one under its key", async () => {
  const { journal } = await opened();
  await send(journal, "A", "unknown");
  await send(journal, "A", "unknown", '{"pay_id":"A","amount":200}');
  const [first, second] = journal.open;
  assert.ok(first && second);
  journal.begun(first);
  assert.equal(journal.find("bank", "/sale", "A")?.isAccepted, false);
  const nothing = { isAccepted: false, isStopped: false, isUnprinted: false, hasOtherNames: false, mayEndWell: false };
  assert.deepEqual(journal.progressOf(first), nothing);
  assert.equal(journal.progressOf(second).hasOtherNames, true);
});

test("Journal lists an operation again, and has it asked about, once the terminal has what was settled as failed", async () => {
  const { journal } = await opened();
  let calls = 0;
  journal.onOpened = () => {
    calls++;
  };
  await send(journal, "A", "unknown");
  const [open] = journal.open;
  assert.ok(open);
  await journal.settle(open, { result: "failed", by: "operator", note: "nothing printed" });
  assert.deepEqual([keysOf(journal), calls], [[], 1]);
  journal.accepted("bank", "/sale", "A", journal.lastOrder("bank", "A"));
  assert.deepEqual([keysOf(journal), calls], [["A"], 2]);
});

/** The answer to a question by a fiscal or bank key, about the operation of a route. */
const hear = (journal: Journal, service: string, route: string, said: ReturnType<Parameters<Journal["heardOf"]>[4]>) =>
  journal.heardOf(service, "A", [route], { askedMs: time.nowMs + 1, device: undefined }, () => said);

test("Journal.heardOf() proves nothing by an answer that says nothing of the operation", async () => {
  const { journal, told } = await opened();
  await send(journal, "A", "unknown");
  hear(journal, "bank", "/sale", undefined);
  assert.deepEqual([keysOf(journal), told.settlings], [["A"], []]);
  hear(journal, "bank", "/sale", "approved");
  assert.deepEqual([keysOf(journal), told.settlings], [[], ["bank /sale A approved answer"]]);
});

test("Journal.heardOf() replaces a failed end of what the terminal has, and records no other end of an answered sale", async () => {
  const { journal, told } = await opened();
  await (await send(journal, "A")).ended(success);
  hear(journal, "bank", "/sale", "approved");
  assert.deepEqual(told.settlings, [], "its caller was answered");
  journal.settled("bank", "/sale", "A", "failed", journal.lastOrder("bank", "A"));
  assert.equal(journal.find("bank", "/sale", "A")?.end, "failed");
  hear(journal, "bank", "/sale", "approved");
  assert.equal(journal.find("bank", "/sale", "A")?.end, "approved");
});

test("Journal.heardOf() records the end of a document that may be rolled back, as unprinted where its printing failed", async () => {
  for (const [code, end] of [
    [44, "closed"],
    [15, "unprinted"],
  ] as const) {
    const { journal } = await opened();
    const deposit = { ...callOf("A", { service: "fiscal" }), route: "/deposit" } as const;
    const entry = journal.begin(deposit, routeTo("/deposit", "fiscal"));
    await entry.sent();
    await entry.ended({ outcome: "answered", status: "error", code });
    hear(journal, "fiscal", "/deposit", "closed");
    assert.equal(journal.find("fiscal", "/deposit", "A")?.end, end);
  }
});

test("Journal.settle() has a good answer also for the same operation sent once more and answered, and for nothing else", async () => {
  const same = '{"pay_id":"A","amount":100}';
  const other = '{"pay_id":"A","amount":200}';
  for (const [body, result, by, end] of [
    [same, "approved", "answer", "approved"],
    [same, "declined", "answer", undefined],
    [same, "approved", "operator", undefined],
    [other, "approved", "answer", undefined],
  ] as const) {
    const { journal } = await opened();
    await send(journal, "A", "unknown", same);
    const [open] = journal.open;
    assert.ok(open);
    await (await send(journal, "A", undefined, body)).ended(success);
    await journal.settle(open, { result, by });
    assert.equal(journal.find("bank", "/sale", "A")?.end, end, `${body} ${result} by ${by}`);
  }
});

test("Journal.settle() is false where one of the sendings that it settles can't be recorded", async () => {
  const { journal, disk } = await opened(new SimDisk(), { bytes: 16 * bytes });
  // More than are written at once.
  for (let n = 0; n < 50; n++) await send(journal, "A", "unknown");
  const [open] = journal.open;
  assert.ok(open);
  // One write with its sync; then the disk hangs.
  disk.fuse = 3;
  const settled = journal.settle(open, { result: "approved", by: "operator", note: "seen" });
  await time.advance(recordMs + 1);
  assert.equal(await settled, false);
});

test("Journal.settle() leaves the same request to another service as it is, and another one without a key", async () => {
  const { journal } = await opened();
  for (const service of ["bank", "second"]) {
    const entry = journal.begin({ ...callOf("A"), service }, routeTo());
    await entry.sent();
    await entry.ended(lost);
  }
  const [first] = journal.open;
  assert.ok(first);
  await journal.settle(first, { result: "approved", by: "answer" });
  assert.deepEqual(
    journal.unknown().map(({ service }) => service),
    ["second"],
  );
  for (const requestId of ["r-1", "r-2"]) {
    const entry = journal.begin({ ...callOf("A", { body: '{"amount":100}' }), key: undefined, requestId }, routeTo());
    await entry.sent();
    await entry.ended(lost);
  }
  const unnamed = journal.open.find(({ sent }) => sent.requestId === "r-1");
  assert.ok(unnamed);
  await journal.settle(unnamed, { result: "failed", by: "operator", note: "looked" });
  assert.deepEqual(
    journal.unknown().map(({ requestId }) => requestId),
    ["r-A", "r-2"],
  );
});

test("Journal.recorded() waits until what was learned is on the disk, and isRecorded says whether it is", async () => {
  const learns: Readonly<Record<string, (journal: Journal) => unknown>> = {
    settled: (journal) => journal.settled("bank", "/sale", "A", "approved", journal.lastOrder("bank", "A")),
    accepted: (journal) => journal.accepted("bank", "/sale", "A", journal.lastOrder("bank", "A")),
    "settled by another's question": (journal) => {
      const [open] = journal.open;
      if (open !== undefined) void journal.settle(open, { result: "approved", by: "answer" });
    },
  };
  for (const [what, learn] of Object.entries(learns)) {
    const isRecorded = (journal: Journal) => journal.find("bank", "/sale", "A")?.isRecorded;
    const slow = await opened();
    await send(slow.journal, "A", "unknown");
    let answer = () => {};
    slow.disk.trouble = {
      until: new Promise<void>((resolve) => {
        answer = resolve;
      }),
    };
    learn(slow.journal);
    let isOver = false;
    void slow.journal.recorded("bank", "/sale", "A").then(() => {
      isOver = true;
    });
    await time.advance(300);
    assert.deepEqual([isOver, isRecorded(slow.journal)], [false, false], what);
    slow.disk.trouble = undefined;
    answer();
    await time.advance(1);
    assert.deepEqual([isOver, isRecorded(slow.journal)], [true, true], what);

    const failing = await opened();
    await send(failing.journal, "A", "unknown");
    failing.disk.trouble = { error: systemError("EIO") };
    learn(failing.journal);
    const over = failing.journal.recorded("bank", "/sale", "A");
    await time.advance(recordMs + 1);
    await over;
    assert.equal(isRecorded(failing.journal), false, what);
  }
  const { journal } = await opened();
  await journal.recorded("bank", "/sale", "NEVER-SENT");
});

test("Journal that holds less than a day isn't whole until a day after what it forgot, says so once, and also in the next process", async () => {
  const isTold = (told: Told) => told.notices.filter((notice) => /more operations were sent within a day/.test(notice)).length;
  const size = { bytes: 128 * slotBytes };
  const { journal, told, disk } = await opened(new SimDisk(), size);
  const minuteMs = 60_000;
  for (let sale = 0; sale < 64; sale++) {
    await time.advance(minuteMs);
    await send(journal, `S-${sale}`, "answered");
  }
  assert.deepEqual([journal.isWhole, isTold(told), journal.find("bank", "/sale", "S-0") === undefined], [true, 0, false]);
  await time.advance(minuteMs);
  await send(journal, "S-64", "answered");
  assert.deepEqual([journal.isWhole, isTold(told), journal.find("bank", "/sale", "S-0") === undefined], [false, 1, true]);
  await send(journal, "S-65", "answered");
  assert.equal(isTold(told), 1);
  const { journal: next, told: toldNext } = await opened(disk.afterCut([{ keeps: "all", bytes: 0 }], true), size);
  assert.deepEqual([next.isWhole, isTold(toldNext)], [false, 1]);
  // The second sale, which was forgotten last, was sent 63 minutes ago, and the oldest one that is left a minute later.
  await time.advance(recentMs - 63 * minuteMs - 1);
  assert.equal(journal.isWhole, false);
  await time.advance(1);
  assert.equal(journal.isWhole, true);
  assert.equal(next.isWhole, false);
  await time.advance(minuteMs);
  assert.equal(next.isWhole, true);
});

test("Journal whose ring is full to the last slot is whole in the next process, and isn't with one record more", async () => {
  const size = { bytes: 128 * slotBytes };
  for (const [sales, isWhole] of [
    [63, true],
    [64, false],
  ] as const) {
    // The start, two records each, and one.
    const { journal, disk } = await opened(new SimDisk(), size);
    for (let sale = 0; sale < sales; sale++) await send(journal, `S-${sale}`, "answered");
    await send(journal, "OUT");
    const { journal: next, told } = await opened(disk.afterCut([{ keeps: "all", bytes: 0 }], true), size);
    assert.equal(next.isWhole, isWhole, `${sales}`);
    assert.equal(
      told.notices.some((notice) => /more operations were sent within a day/.test(notice)),
      !isWhole,
    );
  }
});

test("Journal whose ring was overwritten isn't whole in any process of that day, also once its file was made larger", async () => {
  const small = { bytes: 128 * slotBytes };
  const { journal, disk } = await opened(new SimDisk(), small);
  for (let sale = 0; sale < 70; sale++) await send(journal, `S-${sale}`, "answered");
  await journal.close();
  for (const start of ["with the larger file made", "in it", "in it once more"]) {
    const { journal: next, told } = await opened(disk, { bytes: 32_768 * slotBytes });
    assert.deepEqual([next.isWhole, next.find("bank", "/sale", "S-0")], [false, undefined], start);
    assert.deepEqual(
      told.notices.map((notice) =>
        /more operations were sent within a day than the journal held before it was made larger/.test(notice),
      ),
      [true],
      `${start}, which gave it more room`,
    );
    await next.close();
  }
});

test("Journal whose ring was overwritten is whole where a day has passed since its oldest record", async () => {
  const size = { bytes: 128 * slotBytes };
  const { journal, disk } = await opened(new SimDisk(), size);
  for (let sale = 0; sale < 64; sale++) {
    await time.advance(recentMs / 32);
    await send(journal, `S-${sale}`, "answered");
  }
  const { journal: next, told } = await opened(disk.afterCut([{ keeps: "all", bytes: 0 }], true), size);
  assert.deepEqual([journal.isWhole, next.isWhole, told.notices], [true, true, []]);
});

test("Journal.find() says that an operation may be cleared once a batch or shift of its service was closed behind it", async () => {
  const cleared = (journal: Journal, service = "bank") => journal.find(service, "/sale", "A")?.mayBeCleared;
  for (const [service, route] of [
    ["bank", "/close-shift"],
    ["fiscal", "/close_shift"],
  ] as const) {
    const { journal, disk } = await opened();
    const begin = (path: string, key: string) =>
      journal.begin({ ...callOf(key, { service }), route: path }, routeTo(path, service));
    await begin("/sale", "A").sent();
    assert.equal(cleared(journal, service), false);
    const refused = begin(route, "Z-1");
    await refused.sent();
    assert.equal(cleared(journal, service), true, "it may be carried out at any moment");
    await refused.ended({ outcome: "not-sent" });
    assert.equal(cleared(journal, service), false, "it was not sent");
    const early = begin(route, "Z-0");
    await Promise.all([early.sent(), early.ended({ outcome: "not-sent" })]);
    assert.equal(cleared(journal, service), false, "it was refused while it was recorded");
    const closed = begin(route, "Z-2");
    await closed.sent();
    await begin("/sale", "B").sent();
    await closed.ended({ outcome: "unknown" });
    assert.deepEqual([cleared(journal, service), journal.find(service, "/sale", "B")?.mayBeCleared], [true, false]);
    const { journal: next } = await opened(disk.afterCut([{ keeps: "all", bytes: 0 }], true));
    assert.deepEqual([cleared(next, service), next.find(service, "/sale", "B")?.mayBeCleared], [true, false]);
    const [open] = next.open;
    assert.deepEqual([open?.sent.key, open && next.mayBeCleared(open)], ["A", true]);
    const last = next.open.find(({ sent }) => sent.key === "B");
    assert.ok(last);
    assert.equal(next.mayBeCleared(last), false);
    const again = next.begin({ ...callOf("Z-3", { service }), route }, routeTo(route, service));
    await again.sent();
    assert.equal(next.mayBeCleared(last), true);
    await again.ended({ outcome: "not-sent" });
    assert.equal(next.mayBeCleared(last), false);
    assert.equal(cleared(next, service), true, "the close before stays");
    await time.advance(recentMs + 1);
    await send(next, "NEXT", "answered");
    assert.equal(next.mayBeCleared(last), true, "nothing is known of it any more");
  }
});

test("Journal forgets a close that wasn't sent also where another one of its service is on its way", async () => {
  const { journal } = await opened();
  const begin = (path: string, key: string) => journal.begin({ ...callOf(key), route: path }, routeTo(path));
  const cleared = (key: string) => journal.find("bank", "/sale", key)?.mayBeCleared;
  await send(journal, "A", "unknown");
  const first = begin("/close-shift", "Z-1");
  await first.sent();
  await send(journal, "B", "unknown");
  const second = begin("/close-shift", "Z-2");
  await second.sent();
  await first.ended({ outcome: "not-sent" });
  assert.deepEqual([cleared("A"), cleared("B")], [true, true], "the second one is under way");
  await second.ended({ outcome: "unknown" });
  assert.deepEqual([cleared("A"), cleared("B")], [true, true]);
});

test("Journal that forgets at the start what doesn't fit says only that it is too small, not that records are missing", async () => {
  const size = { bytes: 128 * slotBytes };
  const { journal, disk } = await opened(new SimDisk(), size);
  for (let sale = 0; sale < 100; sale++) await send(journal, `S-${sale}`);
  const { journal: next, told } = await opened(disk.afterCut([{ keeps: "all", bytes: 0 }], true), size);
  assert.equal(next.isWhole, false);
  assert.deepEqual(
    told.notices.map((notice) => /more operations were sent within a day/.test(notice)),
    [true],
  );
});
