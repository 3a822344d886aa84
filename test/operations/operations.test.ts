import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Fault } from "../../src/core/fault.ts";
import { journalFile } from "../../src/journal/errors.ts";
import { joinOperations, readRecord, writeRecord } from "../../src/journal/record.ts";
import { recordMs } from "../../src/journal/recorder.ts";
import { slotBytes, textBytesMax } from "../../src/journal/slot.ts";
import { type JournalOptions, type Operations, openOperations } from "../../src/operations/operations.ts";
import { dayMs, isRecorded, knownOfOne, recorded as recordedOf, type Sending } from "../../src/operations/sending.ts";
import { bytes, callOf, folder, lastSent, routeTo, Told } from "../journal/records.ts";
import { type Fate, SimDisk, systemError } from "../journal/sim-disk.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { gate, watched } from "../support/promises.ts";
import { virtualTime } from "../support/virtual-time.ts";

/**
 * Tests src/operations/operations.ts, src/operations/under-key.ts, src/journal/record.ts.
 *
 * How operations of unknown outcome are settled, and what is found of operations that were sent before.
 */

const time = virtualTime();

async function opened(disk = new SimDisk(), settings: Partial<JournalOptions> = {}) {
  const told = new Told();
  const journal = await openOperations({ folder, bytes, onFailure: "relay", report: told, disk, ...settings });
  return { journal, told, disk };
}

async function send(journal: Operations, key: string, outcome?: "answered" | "unknown" | "not-sent", body?: string) {
  const entry = journal.begin(callOf(key, body === undefined ? {} : { body }), routeTo());
  await entry.sent();
  if (outcome !== undefined) await entry.ended({ outcome });
  return entry;
}

const knownOf = (operations: Operations, key: string, route?: string, service?: string) => {
  const sending = lastSent(operations, key, route, service);
  return sending === undefined ? undefined : operations.togetherOf(sending);
};

/** The one that was sent last of a sale under a key. */
function sentLast(operations: Operations, key: string): Sending {
  const sending = lastSent(operations, key);
  assert.ok(sending);
  return sending;
}

const settle = (operations: Operations, key: string, result: "approved" | "failed") =>
  void operations.settle(sentLast(operations, key), { result, by: "answer" });
const begun = (operations: Operations, key: string) =>
  operations.begun(sentLast(operations, key), { is: "told", atMs: performance.now(), said: { says: "going" } });
const recorded = (operations: Operations, key: string) => recordedOf(sentLast(operations, key));
const keysOf = (journal: Operations) => journal.unknown().map(({ key }) => key);

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

test("Operations.settle() takes all sendings of one body under one key out of what is unknown, now and after a restart", async () => {
  const { journal, told, disk } = await opened();
  await send(journal, "A", "unknown");
  await send(journal, "A", "unknown");
  await send(journal, "A", "unknown", '{"pay_id":"A","amount":200}');
  await send(journal, "B", "unknown");
  const [first] = journal.listed;
  assert.ok(first);
  assert.equal(await journal.settle(first, { result: "approved", by: "operator", note: "seen" }), true);
  assert.deepEqual([keysOf(journal), journal.unknownTotal], [["A", "B"], 2]);
  assert.deepEqual(told.settlings, ["bank /sale A approved operator", "bank /sale A approved operator"]);
  const next = await opened(disk.afterCut([], true));
  assert.deepEqual([keysOf(next.journal), next.journal.unknownTotal], [["A", "B"], 2]);
  assert.deepEqual(next.told.finds, [{ recent: [], older: 2 }]);
});

test("Operations.settled() is consistent when the ring has overwritten what it settles, or the record itself is the oldest", async () => {
  const { journal, disk } = await opened();
  const slots = bytes / slotBytes;
  await send(journal, "OLD", "unknown");
  const [old] = journal.listed;
  assert.ok(old);
  // Its sending and its outcome are overwritten, and only then it is settled.
  for (let n = 0; n < slots / 2; n++) await send(journal, `N${n}`, "answered");
  assert.equal(await journal.settle(old, { result: "failed", by: "answer" }), true);
  const next = await opened(disk.afterCut([], true));
  assert.deepEqual(keysOf(next.journal), []);
  assert.equal(lastSent(next.journal, "OLD"), undefined);
  // Sendings go before what settles them: nothing comes back as unknown on the way round.
  const round = await opened();
  await send(round.journal, "A", "unknown");
  const [a] = round.journal.listed;
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

test("Operations keeps what it acknowledged as settled, through power cuts in the middle of the record", async () => {
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
      const [a] = journal.listed;
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
      assert.equal(knownOf(next.journal, "A")?.end, isSettled ? "declined" : undefined);
      assert.equal(knownOf(next.journal, "B")?.end, undefined);
    }),
    { numRuns: 200 },
  );
});

test("writeRecord() keeps what was known under a key only beside what the operation is asked by", () => {
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
  for (const before of [{}, { txn_id: "T-1", status: "APPROVED" }])
    assert.deepEqual(read({ ask: {}, before }), { ...sent, ask: {}, before });
  assert.deepEqual(read({ before: {} }), sent);
  assert.deepEqual(read({ ask: {}, before: { txn_id: "9".repeat(400) } }), { ...sent, ask: {} });
});

test("Operations.find() forgets after a day, and remembers no more keys than the ring has operations", async () => {
  const { journal } = await opened();
  await send(journal, "A", "answered");
  await time.advance(86_400_000);
  assert.ok(lastSent(journal, "A"));
  await time.advance(1);
  assert.equal(lastSent(journal, "A"), undefined);
  const most = bytes / slotBytes / 2;
  for (let n = 0; n < most + 5; n++) await send(journal, `N${n}`, "answered");
  assert.equal(lastSent(journal, "N4"), undefined);
  assert.ok(lastSent(journal, "N5"));
});

test("Operations.isReadable is false until the disk was there; then what was sent before and meanwhile is found", async () => {
  const { journal: before, disk } = await opened();
  await send(before, "OLD", "answered");
  await send(before, "BOTH", "unknown");
  const later = disk.afterCut([], true);
  later.trouble = { error: new Error("away") };
  const { journal } = await opened(later);
  assert.equal(journal.isReadable, false);
  await send(journal, "BOTH", "unknown");
  assert.equal(lastSent(journal, "OLD"), undefined);
  later.trouble = undefined;
  await send(journal, "NEW", "answered");
  assert.equal(journal.isReadable, true);
  for (const key of ["OLD", "BOTH", "NEW"]) assert.ok(lastSent(journal, key), key);
  assert.deepEqual(keysOf(journal), ["BOTH", "BOTH"]);
  settle(journal, "BOTH", "approved");
  assert.deepEqual(keysOf(journal), []);
});

test("Operations refuses to send once more what was on the line when the process before ended, for a minute and while that is unknown", async () => {
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
    const [open] = journal.listed.filter(({ sent }) => sent.key === key);
    assert.ok(open);
    await journal.settle(open, { result, by: "answer" });
    assert.equal(await isSent(key), sends, `${key} ${result}`);
  }
  assert.equal(await isSent("E"), false);
  settle(journal, "E", "failed");
  assert.equal(await isSent("E"), true, "its follower found that it failed");
  await time.advance(60_001);
  assert.equal(await isSent("A"), true);
});

test("Operations.refuseCopy() refuses what was on the line when the process before ended, for a minute", async () => {
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

test("Operations sends an abort again that was on the line when the process before ended: it waits for nobody", async () => {
  const { journal: before, disk } = await opened();
  const abort = { ...callOf("A"), route: "/abort" };
  void before.begin(abort, routeTo("/abort")).sent();
  await time.settle();
  const { journal } = await opened(disk.afterCut([], true));
  journal.refuseCopy(abort, routeTo("/abort"));
  await journal.begin(abort, routeTo("/abort")).sent();
});

test("Operations lists the newest 100 operations of unknown outcome, lets 1,000 be settled, and counts all, after a restart too", async () => {
  const size = { bytes: 4_096 * slotBytes };
  const { journal, disk } = await opened(new SimDisk(), size);
  for (let n = 0; n < 1_002; n++) await send(journal, `K${n}`, "unknown");
  for (const at of [journal, (await opened(disk.afterCut([], true), size)).journal]) {
    assert.deepEqual([at.unknown().length, at.listed.length, at.unknownTotal], [100, 1_000, 1_002]);
    assert.deepEqual([keysOf(at)[0], keysOf(at).at(-1), at.listed[0]?.sent.key], ["K902", "K1001", "K2"]);
  }
});

test("Operations.recorded() waits for the outcome, too, that is on its way to the disk", async () => {
  const { journal, disk } = await opened();
  const entry = await send(journal, "A");
  const answer = gate();
  disk.trouble = { until: answer.passed };
  void entry.ended(success);
  const recording = watched(recorded(journal, "A"));
  await time.advance(300);
  assert.deepEqual([recording.isOver, isRecorded(lastSent(journal, "A"))], [false, false]);
  disk.trouble = undefined;
  answer.open();
  await time.advance(1);
  assert.deepEqual([recording.isOver, isRecorded(lastSent(journal, "A"))], [true, true]);
});

test("Operations forgets what an earlier process sent a day after its sending, also of what followed while the clock was ahead", async () => {
  const hourMs = 3_600_000;
  const { journal, disk } = await opened();
  time.setOffMs = 240 * hourMs;
  await send(journal, "AHEAD", "answered");
  time.setOffMs = 0;
  await send(journal, "A", "answered");
  await time.advance(20 * hourMs);
  const { journal: next } = await opened(disk.afterCut([], true));
  const known = () => ["AHEAD", "A"].map((key) => lastSent(next, key) !== undefined);
  await time.advance(4 * hourMs);
  assert.deepEqual(known(), [true, true]);
  await time.advance(1);
  assert.deepEqual(known(), [true, false]);
  await time.advance(20 * hourMs - 1);
  assert.deepEqual(known(), [true, false], "what was sent ahead of all clocks counts from the start, for a whole day");
  await time.advance(1);
  assert.deepEqual(known(), [false, false]);
});

test("Operations records how an operation ended, and that the terminal has it, which an earlier process sent, for the next one", async () => {
  const { journal: first, disk } = await opened();
  for (const key of ["ENDED", "BEGUN", "OPEN"]) await send(first, key, "unknown");
  const { journal: second, disk: disk2 } = await opened(disk.afterCut([], true));
  const [ended, begun] = second.listed;
  assert.ok(ended && begun);
  assert.equal(await second.settle(ended, { result: "approved", by: "operator", note: "seen" }), true);
  second.begun(begun, { is: "told", atMs: performance.now(), said: { says: "going" } });
  await time.settle();
  const { journal: third } = await opened(disk2.afterCut([], true));
  assert.deepEqual(keysOf(third), ["BEGUN", "OPEN"]);
  const known = ["ENDED", "BEGUN", "OPEN"].map((key) => knownOf(third, key));
  assertMapped(
    known,
    [
      ["approved", false],
      [undefined, true],
      [undefined, false],
    ],
    (each) => [each?.end, each?.isAccepted],
  );
});

test("Operations takes what was sent before a record that is missing for what the terminal may have cleared, and no later one", async () => {
  const { journal, disk } = await opened();
  for (const key of ["A", "B"]) await send(journal, key, "answered");
  const cut = disk.afterCut([{ keeps: "all", bytes: 0 }], true);
  // The start, A and its outcome, then B.
  cut.files.get(journalFile(folder))?.current.fill(0xff, 3 * slotBytes, 3 * slotBytes + 9);
  const { journal: next } = await opened(cut);
  const cleared = (key: string) => next.lacksSince(sentLast(next, key));
  assert.deepEqual([cleared("A"), cleared("B"), next.isWhole], [true, false, false]);
});

test("Operations knows what this process sent also when a full journal is read late", async () => {
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
  assert.equal(knownOf(journal, "NEW")?.isAccepted, true);
  assert.equal(lastSent(journal, "OLD-0"), undefined, "the oldest is forgotten");
  assert.notEqual(lastSent(journal, "OLD-79"), undefined);
});

const success = { outcome: "answered", status: "success" } as const;
const lost = { outcome: "unknown" } as const;

test("Operations notes that an operation was aborted, over a restart", async () => {
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
  const stopped = (journal: Operations) =>
    ["STOPPED", "GOES-ON", "LATER"].map((key) => knownOfOne(lastSent(journal, key) ?? assert.fail())?.isAborted);
  assert.deepEqual(stopped(before), [true, false, false]);
  await time.settle();
  assert.deepEqual(stopped((await opened(disk.afterCut([], true))).journal), [true, false, false]);
});

test("Operations takes what the terminal refused by its code for no sending, over a restart as well", async () => {
  const { journal: before, disk } = await opened();
  await send(before, "A", "unknown");
  const cancel = before.begin({ ...callOf("A"), route: "/cancel" }, routeTo("/cancel"));
  await cancel.sent();
  await cancel.ended({ outcome: "answered", status: "error", code: -16 });
  assert.equal(before.under("bank", "A").length, 1);
  await time.settle();
  const { journal } = await opened(disk.afterCut([], true));
  assert.equal(journal.under("bank", "A").length, 1);
  assert.equal(lastSent(journal, "A", "/cancel"), undefined);
});

test("Operations refuses to send once more what was on the line, whatever the box's clock says, until something was carried out since", async (t) => {
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

test("Operations keeps an end that an answer is, over a restart", async () => {
  const { journal: before, disk } = await opened();
  const deposit = before.begin({ ...callOf("D", { service: "fiscal" }), route: "/deposit" }, routeTo("/deposit", "fiscal"));
  await deposit.sent();
  await deposit.ended({ ...success, payload: [Buffer.from('{"status":"success","docStatus":1}')] });
  assert.equal(knownOf(before, "D", "/deposit", "fiscal")?.end, "closed");
  await time.settle();
  assert.equal(knownOf((await opened(disk.afterCut([], true))).journal, "D", "/deposit", "fiscal")?.end, "closed");
});

test("Operations remembers nothing of a call that was refused while it was recorded", async () => {
  const { journal } = await opened();
  const entry = journal.begin(callOf("A"), routeTo());
  const recording = entry.sent();
  const ending = entry.ended({ outcome: "not-sent" });
  await Promise.all([recording, ending]);
  assert.equal(lastSent(journal, "A"), undefined);
  assert.deepEqual(keysOf(journal), []);
});

test("Operations.unended() has what its tills may send again to learn how it ended, and nothing that is over", async () => {
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
  journal.followed(sentLast(journal, "FOLLOWED"));
  assert.deepEqual(keys(), ["bank /sale OUT", "bank /sale FOLLOWED"]);
  await inFlight.ended({ outcome: "unknown" });
  await time.advance(dayMs - 1);
  assert.deepEqual(keys(), ["bank /sale FOLLOWED", "bank /sale OUT"]);
  await time.advance(1);
  assert.deepEqual(keys(), ["bank /sale OUT", "bank /sale FOLLOWED"], "what a day didn't end is unknown");
});

test("Operations takes a success about another key for no word of the call's own operation, over a restart as well", async () => {
  const { journal, disk } = await opened();
  const entry = await send(journal, "A");
  await entry.ended({ ...success, payload: [Buffer.from('{"status":"success","pay_id":"B"}')] });
  const accepted = (at: Operations) => knownOf(at, "A")?.isAccepted;
  assert.deepEqual([accepted(journal), accepted((await opened(disk.afterCut([], true))).journal)], [false, false]);
});

test("Operations lists an operation again, and has it asked about, once the terminal has what was settled as failed", async () => {
  const { journal } = await opened();
  let calls = 0;
  journal.onChange(() => {
    calls++;
  });
  await send(journal, "A", "unknown");
  const [open] = journal.listed;
  assert.ok(open);
  await journal.settle(open, { result: "failed", by: "operator", note: "nothing printed" });
  assert.deepEqual(keysOf(journal), []);
  calls = 0;
  begun(journal, "A");
  assert.deepEqual([keysOf(journal), calls], [["A"], 1]);
});

test("Operations.settle() is false where one of the sendings that it settles can't be recorded", async () => {
  const { journal, disk } = await opened(new SimDisk(), { bytes: 16 * bytes });
  // More than are written at once.
  for (let n = 0; n < 50; n++) await send(journal, "A", "unknown");
  const [open] = journal.listed;
  assert.ok(open);
  // One write with its sync; then the disk hangs.
  disk.fuse = 3;
  const settled = journal.settle(open, { result: "approved", by: "operator", note: "seen" });
  await time.advance(recordMs + 1);
  assert.equal(await settled, false);
});

test("Operations.settle() leaves the same request to another service as it is, and another one without a key", async () => {
  const { journal } = await opened();
  for (const service of ["bank", "second"]) {
    const entry = journal.begin({ ...callOf("A"), service }, routeTo());
    await entry.sent();
    await entry.ended(lost);
  }
  const [first] = journal.listed;
  assert.ok(first);
  await journal.settle(first, { result: "approved", by: "answer" });
  assertMapped(journal.unknown(), ["second"], ({ service }) => service);
  for (const requestId of ["r-1", "r-2"]) {
    const entry = journal.begin({ ...callOf("A", { body: '{"amount":100}' }), key: undefined, requestId }, routeTo());
    await entry.sent();
    await entry.ended(lost);
  }
  const unnamed = journal.listed.find(({ sent }) => sent.requestId === "r-1");
  assert.ok(unnamed);
  await journal.settle(unnamed, { result: "failed", by: "operator", note: "looked" });
  assertMapped(journal.unknown(), ["r-A", "r-2"], ({ requestId }) => requestId);
});

test("Operations.recorded() waits until what was learned is on the disk, and isRecorded says whether it is", async () => {
  const learns: Readonly<Record<string, (journal: Operations) => unknown>> = {
    settled: (journal) => settle(journal, "A", "approved"),
    accepted: (journal) => begun(journal, "A"),
    "settled by another's question": (journal) => {
      const [open] = journal.listed;
      if (open !== undefined) void journal.settle(open, { result: "approved", by: "answer" });
    },
  };
  for (const [what, learn] of Object.entries(learns)) {
    const isKept = (journal: Operations) => isRecorded(lastSent(journal, "A"));
    const slow = await opened();
    await send(slow.journal, "A", "unknown");
    const answer = gate();
    slow.disk.trouble = { until: answer.passed };
    learn(slow.journal);
    const recording = watched(recorded(slow.journal, "A"));
    await time.advance(300);
    assert.deepEqual([recording.isOver, isKept(slow.journal)], [false, false], what);
    slow.disk.trouble = undefined;
    answer.open();
    await time.advance(1);
    assert.deepEqual([recording.isOver, isKept(slow.journal)], [true, true], what);

    const failing = await opened();
    await send(failing.journal, "A", "unknown");
    failing.disk.trouble = { error: systemError("EIO") };
    learn(failing.journal);
    const over = recorded(failing.journal, "A");
    await time.advance(recordMs + 1);
    await over;
    assert.equal(isKept(failing.journal), false, what);
  }
});

test("Operations that holds less than a day isn't whole until a day after what it forgot, says so once, and also in the next process", async () => {
  const isTold = (told: Told) => told.notices.filter((notice) => /more operations were sent within a day/.test(notice)).length;
  const size = { bytes: 128 * slotBytes };
  const { journal, told, disk } = await opened(new SimDisk(), size);
  const minuteMs = 60_000;
  for (let sale = 0; sale < 64; sale++) {
    await time.advance(minuteMs);
    await send(journal, `S-${sale}`, "answered");
  }
  assert.deepEqual([journal.isWhole, isTold(told), lastSent(journal, "S-0") === undefined], [true, 0, false]);
  await time.advance(minuteMs);
  await send(journal, "S-64", "answered");
  assert.deepEqual([journal.isWhole, isTold(told), lastSent(journal, "S-0") === undefined], [false, 1, true]);
  await send(journal, "S-65", "answered");
  assert.equal(isTold(told), 1);
  const { journal: next, told: toldNext } = await opened(disk.afterCut([{ keeps: "all", bytes: 0 }], true), size);
  assert.deepEqual([next.isWhole, isTold(toldNext)], [false, 1]);
  // The second sale, which was forgotten last, was sent 63 minutes ago, and the oldest one that is left a minute later.
  await time.advance(dayMs - 63 * minuteMs - 1);
  assert.equal(journal.isWhole, false);
  await time.advance(1);
  assert.equal(journal.isWhole, true);
  assert.equal(next.isWhole, false);
  await time.advance(minuteMs);
  assert.equal(next.isWhole, true);
});

test("Operations whose ring is full to the last slot is whole in the next process, and isn't with one record more", async () => {
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

test("Operations whose ring was overwritten isn't whole in any process of that day, also once its file was made larger", async () => {
  const small = { bytes: 128 * slotBytes };
  const { journal, disk } = await opened(new SimDisk(), small);
  for (let sale = 0; sale < 70; sale++) await send(journal, `S-${sale}`, "answered");
  await journal.close();
  for (const start of ["with the larger file made", "in it", "in it once more"]) {
    const { journal: next, told } = await opened(disk, { bytes: 32_768 * slotBytes });
    assert.deepEqual([next.isWhole, lastSent(next, "S-0")], [false, undefined], start);
    assertMapped(
      told.notices,
      [true],
      (notice) => /more operations were sent within a day than the journal held before it was made larger/.test(notice),
      `${start}, which gave it more room`,
    );
    await next.close();
  }
});

test("Operations whose ring was overwritten is whole where a day has passed since its oldest record", async () => {
  const size = { bytes: 128 * slotBytes };
  const { journal, disk } = await opened(new SimDisk(), size);
  for (let sale = 0; sale < 64; sale++) {
    await time.advance(dayMs / 32);
    await send(journal, `S-${sale}`, "answered");
  }
  const { journal: next, told } = await opened(disk.afterCut([{ keeps: "all", bytes: 0 }], true), size);
  assert.deepEqual([journal.isWhole, next.isWhole, told.notices], [true, true, []]);
});

test("Operations.find() says that an operation may be cleared once a batch or shift of its service was closed behind it", async () => {
  const cleared = (journal: Operations, service = "bank", key = "A") => {
    const sending = lastSent(journal, key, "/sale", service);
    return sending !== undefined && journal.wasClosedSince(sending);
  };
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
    assert.deepEqual([cleared(journal, service), cleared(journal, service, "B")], [true, false]);
    const { journal: next } = await opened(disk.afterCut([{ keeps: "all", bytes: 0 }], true));
    assert.deepEqual([cleared(next, service), cleared(next, service, "B")], [true, false]);
    const [open] = next.listed;
    assert.deepEqual([open?.sent.key, open && next.wasClosedSince(open)], ["A", true]);
    const last = next.listed.find(({ sent }) => sent.key === "B");
    assert.ok(last);
    assert.equal(next.wasClosedSince(last), false);
    const again = next.begin({ ...callOf("Z-3", { service }), route }, routeTo(route, service));
    await again.sent();
    assert.equal(next.wasClosedSince(last), true);
    await again.ended({ outcome: "not-sent" });
    assert.equal(next.wasClosedSince(last), false);
    assert.equal(cleared(next, service), true, "the close before stays");
  }
});

test("Operations.owing() gives the devices over which something went out of late whose end nobody knows, after a crash as well", async () => {
  const { journal, disk } = await opened();
  const begin = async (key: string, device: string) => {
    const entry = journal.begin(callOf(key), routeTo(), device);
    await entry.sent();
    return entry;
  };
  const [answered, unknown] = [await begin("A", "one"), await begin("B", "two")];
  await answered.ended({ outcome: "answered" });
  await unknown.ended({ outcome: "unknown" });
  await begin("C", "three");
  assert.deepEqual([...journal.owing(10_000)], ["two"]);
  const { journal: next } = await opened(disk.afterCut([{ keeps: "all", bytes: 0 }], true));
  assert.deepEqual([...next.owing(10_000)], ["two", "three"]);
  settle(next, "C", "approved");
  assert.deepEqual([...next.owing(10_000)], ["two"]);
  await time.advance(10_001);
  assert.deepEqual([...next.owing(10_000)], []);
});

test("Operations.wasClosedSince() sees a batch that a service of another name closed over the same device", async () => {
  const { journal } = await opened();
  await journal.begin(callOf("A"), routeTo(), "bank 1").sent();
  const close = (service: string, device: string) =>
    journal.begin({ ...callOf("Z"), service, route: "/close-shift" }, routeTo("/close-shift"), device).sent();
  await close("bank2", "bank 2");
  assert.equal(journal.wasClosedSince(sentLast(journal, "A")), false);
  await close("bank2", "bank 1");
  assert.equal(journal.wasClosedSince(sentLast(journal, "A")), true);
});

test("Operations forgets a close that wasn't sent also where another one of its service is on its way", async () => {
  const { journal } = await opened();
  const begin = (path: string, key: string) => journal.begin({ ...callOf(key), route: path }, routeTo(path));
  const cleared = (key: string) => journal.wasClosedSince(sentLast(journal, key));
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

test("Operations that forgets at the start what doesn't fit says only that it is too small, not that records are missing", async () => {
  const size = { bytes: 128 * slotBytes };
  const { journal, disk } = await opened(new SimDisk(), size);
  for (let sale = 0; sale < 100; sale++) await send(journal, `S-${sale}`);
  const { journal: next, told } = await opened(disk.afterCut([{ keeps: "all", bytes: 0 }], true), size);
  assert.equal(next.isWhole, false);
  assertMapped(told.notices, [true], (notice) => /more operations were sent within a day/.test(notice));
});
