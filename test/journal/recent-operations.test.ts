import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { OperationEnd } from "../../src/core/followed.ts";
import type { DiskFile } from "../../src/journal/disk.ts";
import { type Journal, openJournal } from "../../src/journal/journal.ts";
import { recentMs } from "../../src/journal/recent-operations.ts";
import { slotBytes } from "../../src/journal/slot.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { bytes, callOf, folder, routeTo, Told } from "./records.ts";
import { SimDisk, systemError } from "./sim-disk.ts";

/**
 * Tests src/journal/recent-operations.ts.
 *
 * What several operations under one key say of each other, as a journal answers it.
 */

const time = new VirtualTime();
after(() => time.restore());

async function opened(disk = new SimDisk()) {
  const journal = await openJournal({ folder, bytes, onFailure: "relay", report: new Told(), disk });
  return { journal, disk };
}

const success = { outcome: "answered", status: "success" } as const;
const open = { outcome: "answered", status: "error", code: -3 } as const;
const lost = { outcome: "unknown" } as const;

async function send(journal: Journal, key: string, { route = "/sale", body }: { route?: string; body?: string } = {}) {
  const call = { ...callOf(key, body === undefined ? {} : { body }), route };
  const entry = journal.begin(call, routeTo(route));
  await entry.sent();
  return entry;
}

test("Journal.othersOpen() gives a sending a minute since it left, and one of an earlier process a minute since the start", async () => {
  const { journal, disk } = await opened();
  const others = (at: Journal) => at.othersOpen("bank", "/refund", "A");
  const entry = await send(journal, "A");
  await time.advance(20_000);
  await entry.ended(lost);
  await time.advance(39_999);
  assert.equal(others(journal), "recent");
  await time.advance(1);
  assert.equal(others(journal), "old");
  const { journal: next } = await opened(disk.afterCut([], true));
  await time.advance(59_999);
  assert.equal(others(next), "recent");
  await time.advance(1);
  assert.equal(others(next), "old");
});

test("Journal.othersOpen() leaves out what its own answer ended, however short ago", async () => {
  const { journal } = await opened();
  const call = { ...callOf("A", { service: "fiscal" }), route: "/deposit" } as const;
  const entry = journal.begin(call, routeTo("/deposit", "fiscal"));
  await entry.sent();
  await entry.ended({ ...success, payload: [Buffer.from('{"status":"success","docStatus":1}')] });
  assert.equal(journal.find("fiscal", "/deposit", "A")?.end, "closed");
  assert.equal(journal.othersOpen("fiscal", "/refund", "A"), undefined);
});

test("Journal takes an abort for no operation of its own under the key, over a restart as well", async () => {
  const { journal, disk } = await opened();
  await (await send(journal, "A")).ended(lost);
  await (await send(journal, "A", { route: "/abort" })).ended(open);
  const check = (at: Journal) => {
    assert.equal(at.find("bank", "/sale", "A")?.isLast, true);
    const [sale] = at.open;
    assert.ok(sale);
    assert.notEqual(at.aloneSinceMs(sale), undefined, "it can be asked about");
  };
  check(journal);
  check((await opened(disk.afterCut([], true))).journal);
});

test("Journal remembers a sale however many others are never sent", async () => {
  const { journal } = await opened();
  await (await send(journal, "A")).ended(success);
  for (let n = 0; n < bytes / slotBytes; n++) await (await send(journal, `N${n}`)).ended({ outcome: "not-sent" });
  assert.equal(journal.find("bank", "/sale", "A")?.isAccepted, true);
});

test("Journal.aloneSinceMs() is undefined while another body stands under the key, or the same one is in flight", async () => {
  const { journal } = await opened();
  await (await send(journal, "TWO")).ended(lost);
  await (await send(journal, "TWO", { body: '{"pay_id":"TWO","amount":200}' })).ended(lost);
  for (const each of journal.open) assert.equal(journal.aloneSinceMs(each), undefined);
  const first = await send(journal, "SAME");
  await (await send(journal, "SAME")).ended(lost);
  const same = journal.open.find(({ sent }) => sent.key === "SAME");
  assert.ok(same);
  assert.equal(journal.aloneSinceMs(same), undefined, "the first one is in flight");
  await time.advance(100);
  await first.ended(lost);
  assert.equal(journal.aloneSinceMs(same), time.nowMs);
});

test("Journal.aloneSinceMs() is undefined for an operation that is forgotten, where another body was sent under its key since", async () => {
  const { journal } = await opened();
  await (await send(journal, "A")).ended(lost);
  await time.advance(recentMs + 1);
  await (await send(journal, "A", { body: '{"pay_id":"A","amount":200}' })).ended(lost);
  const alone = journal.open.map((each) => journal.aloneSinceMs(each));
  assert.deepEqual(alone, [undefined, time.nowMs], "an answer is about the later one");
});

test("Journal.unended() has what is followed also where only the last of its sendings is", async () => {
  const { journal } = await opened();
  for (const _ of [1, 2]) await (await send(journal, "A")).ended(success);
  assert.deepEqual(journal.unended(), []);
  journal.followed("bank", "/sale", "A");
  assert.deepEqual(journal.unended(), [{ service: "bank", route: "/sale", key: "A" }]);
});

test("Journal.find() by an amount finds what may be of that: what is given back of a payment in parts, before and after a restart", async () => {
  const { journal, disk } = await opened();
  const refund = async (amount: string, answer: object) => {
    const body = `{"pay_id":"P"${amount === "" ? "" : `,"amount":${amount}`}}`;
    const entry = journal.begin(
      { ...callOf("P", { service: "qr", body }), route: "/refund", followMs: 1_000 },
      routeTo("/refund", "qr"),
    );
    const refused = await entry.sent().catch((fault: unknown) => fault);
    if (refused === undefined)
      return entry.ended({ outcome: "answered", status: "success", payload: [Buffer.from(JSON.stringify(answer))] });
    await entry.ended({ outcome: "not-sent" });
    throw refused;
  };
  const done = { status: "success", data: { rrn: "1" } };
  await refund("500", done);
  await refund("7e2", { status: "success" });
  const ends = (at: Journal) => [500, 700, 900].map((amount) => at.find("qr", "/refund", "P", amount)?.end ?? "none");
  const isThere = (at: Journal) => [500, 700, 900].map((amount) => at.find("qr", "/refund", "P", amount) !== undefined);
  assert.deepEqual(
    [ends(journal), isThere(journal)],
    [
      ["approved", "none", "none"],
      [true, true, false],
    ],
  );
  const { journal: next } = await opened(disk.afterCut([], true));
  assert.deepEqual(
    [ends(next), isThere(next)],
    [
      ["approved", "none", "none"],
      [true, true, false],
    ],
  );
  // The same amount otherwise written is no other one, and one that can't be read may be any.
  await assert.rejects(refund("500.0", done), /another body with its key was sent at/);
  await assert.rejects(refund("", done), /another body with its key was sent at/);
  await refund("900", done);
  assert.deepEqual(isThere(journal), [true, true, true]);
});

const end = (journal: Journal, key: string, how: OperationEnd) =>
  journal.settled("bank", "/sale", key, how, journal.lastOrder("bank", key));

test("Journal.othersOpen() has what was sent twice as open for a minute though its end is known, but where that is that it failed", async () => {
  for (const [times, how, before, later] of [
    [1, "approved", undefined, undefined],
    [2, "approved", "recent", undefined],
    [2, "failed", undefined, undefined],
    [1, undefined, "recent", "old"],
  ] as const) {
    const { journal } = await opened();
    for (let n = 0; n < times; n++) await (await send(journal, "A")).ended(lost);
    if (how !== undefined) end(journal, "A", how);
    const others = () => journal.othersOpen("bank", "/refund", "A");
    assert.equal(others(), before, `${times} ${how}`);
    await time.advance(60_000);
    assert.equal(others(), later, `${times} ${how}, a minute later`);
  }
});

test("Journal.othersOpen() looks at each operation under the key, and leaves out what the terminal took for a new one each time", async () => {
  const { journal } = await opened();
  await (await send(journal, "A")).ended(lost);
  await time.advance(60_000);
  await (await send(journal, "A", { route: "/cancel" })).ended(lost);
  assert.equal(journal.othersOpen("bank", "/refund", "A"), "recent", "one of two");
  await time.advance(60_000);
  assert.equal(journal.othersOpen("bank", "/refund", "A"), "old");
  end(journal, "A", "declined");
  assert.equal(journal.othersOpen("bank", "/refund", "A"), "old", "the end of one of them says nothing of the other");
  for (const _ of [1, 2]) await (await send(journal, "B")).ended(success);
  end(journal, "B", "approved");
  assert.equal(journal.othersOpen("bank", "/refund", "B"), undefined);
});

test("Journal.find() says that an operation may end well where it was sent twice within a minute, or had ended well before", async () => {
  const { journal } = await opened();
  const mayEndWell = () => journal.find("bank", "/sale", "A")?.mayEndWell;
  await (await send(journal, "A")).ended(lost);
  assert.equal(mayEndWell(), false, "sent once");
  await time.advance(100_000);
  await (await send(journal, "A")).ended(lost);
  await time.advance(59_999);
  assert.equal(mayEndWell(), true);
  await time.advance(1);
  assert.equal(mayEndWell(), false);
  end(journal, "A", "approved");
  await (await send(journal, "A")).ended(lost);
  await time.advance(100_000);
  assert.equal(mayEndWell(), true);
});

test("Journal.hadAny() is true where the terminal is known to have had an operation under the key, and it didn't fail", async () => {
  for (const [ending, known, had] of [
    [lost, undefined, false],
    [open, undefined, false],
    [success, undefined, true],
    [lost, "begun", true],
    [lost, "approved", true],
    [lost, "declined", true],
    [lost, "failed", false],
  ] as const) {
    const { journal } = await opened();
    await (await send(journal, "A")).ended(ending);
    if (known === "begun") journal.accepted("bank", "/sale", "A", journal.lastOrder("bank", "A"));
    else if (known !== undefined) end(journal, "A", known);
    await (await send(journal, "A", { route: "/cancel" })).ended(lost);
    assert.equal(journal.hadAny("bank", "A"), had, `${ending.outcome} ${known}`);
    assert.equal(journal.hadAny("bank", "B"), false);
    assert.equal(journal.hadAny("qr", "A"), false);
  }
  const { journal } = await opened();
  for (const ending of [success, lost]) await (await send(journal, "A")).ended(ending);
  assert.equal(journal.hadAny("bank", "A"), true, "one of its sendings");
});

test("Journal.lastOrder() is that of what this process sent last under a key, on any route, and 0 of what others sent", async () => {
  const { journal, disk } = await opened();
  assert.equal(journal.lastOrder("bank", "A"), 0);
  await (await send(journal, "A")).ended(lost);
  const first = journal.lastOrder("bank", "A");
  await (await send(journal, "A", { route: "/cancel" })).ended(lost);
  assert.ok(first > 0 && journal.lastOrder("bank", "A") > first);
  const { journal: next } = await opened(disk.afterCut([], true));
  assert.ok(next.find("bank", "/sale", "A"));
  assert.equal(next.lastOrder("bank", "A"), 0);
});

test("Journal takes an operation for the last under its key where its device's contract keeps what it was told", async () => {
  for (const [device, isLast] of [
    ["bank 89abcdef", true],
    ["fiscal 89abcdef", false],
    ["89abcdef", false],
    [undefined, false],
  ] as const) {
    const { journal } = await opened();
    await (await send(journal, "A", { route: "/cancel" })).ended(open);
    await time.advance(61_000);
    const sale = journal.begin(callOf("A"), routeTo(), device);
    await sale.sent();
    await sale.ended(success);
    assert.equal(journal.find("bank", "/sale", "A")?.isLast, isLast, device);
  }
});

test("Journal remembers of one key alone as many sendings as the ring has operations, the newest, and isn't whole then", async () => {
  const { journal } = await opened();
  const most = bytes / slotBytes / 2;
  await (await send(journal, "A")).ended(success);
  for (let n = 1; n < most; n++) await (await send(journal, "A")).ended(lost);
  const known = () => [journal.find("bank", "/sale", "A")?.isAccepted, journal.isWhole];
  assert.deepEqual(known(), [true, true]);
  await (await send(journal, "A")).ended(lost);
  assert.deepEqual(known(), [false, false]);
  await (await send(journal, "B")).ended(success);
  assert.equal(journal.find("bank", "/sale", "A"), undefined, "another key: the older one goes as a whole");
  assert.equal(journal.find("bank", "/sale", "B")?.isAccepted, true);
  for (let n = 1; n <= most; n++) {
    assert.ok(journal.find("bank", "/sale", "B"));
    await (await send(journal, `N${n}`)).ended(lost);
  }
  assert.equal(journal.find("bank", "/sale", "B"), undefined);
});

test("Journal remembers 16,384 sendings however large it is, and then advises no larger one, in the next process either", async () => {
  const disk = new SimDisk();
  const { create, open: openFile } = disk;
  // To sync, it copies the whole file.
  const unsynced = (file: DiskFile): DiskFile => ({ ...file, sync: async () => {} });
  disk.create = async (path) => unsynced(await create(path));
  disk.open = async (path) => unsynced(await openFile(path));
  const openedLarge = async () => {
    const report = new Told();
    return { report, journal: await openJournal({ folder, bytes: 16_384 * 1_024, onFailure: "relay", report, disk }) };
  };
  const { journal, report } = await openedLarge();
  // No more at once than its queue keeps.
  for (let sent = 0; sent < 16_384; sent += 1_024)
    await Promise.all(Array.from({ length: 1_024 }, (_, at) => send(journal, `S-${sent + at}`)));
  assert.deepEqual([journal.isWhole, report.notices], [true, []]);
  await send(journal, "LAST");
  await journal.close();
  const { journal: next, report: toldNext } = await openedLarge();
  for (const [at, notices] of [
    [journal, report.notices],
    [next, toldNext.notices],
  ] as const) {
    const isKnown = ["S-0", "S-1", "LAST"].map((key) => at.find("bank", "/sale", key) !== undefined);
    assert.deepEqual([at.isWhole, isKnown], [false, [false, true, true]]);
    assert.deepEqual(notices, [
      "more operations were sent within a day than the 16384 that posline remembers: a repetition of an older one isn't recognised, and " +
        "answers say X-Posline-Repeat-Guard: off. No setting raises that: give some of the terminals to another box",
    ]);
  }
});

test("Journal that has no room for more forgets the key whose last sending is the oldest", async () => {
  const { journal } = await opened();
  const most = bytes / slotBytes / 2;
  await (await send(journal, "A")).ended(lost);
  for (let n = 0; n < most - 2; n++) await (await send(journal, `N${n}`)).ended(lost);
  await (await send(journal, "A")).ended(lost);
  const known = () => ["A", "N0", "N1"].map((key) => journal.find("bank", "/sale", key) !== undefined);
  assert.deepEqual(known(), [true, true, true]);
  await (await send(journal, "B")).ended(lost);
  assert.deepEqual(known(), [true, false, true]);
});

test("Journal remembers the last sending of a key for a day though an older one of it is forgotten", async () => {
  const { journal } = await opened();
  for (const key of ["A", "A", "B"]) {
    await (await send(journal, key)).ended(success);
    await time.advance(recentMs / 2 - 1);
    if (key === "A") await time.advance(2);
  }
  assert.deepEqual([journal.find("bank", "/sale", "A")?.isAccepted, journal.isWhole], [true, true]);
  await time.advance(2);
  assert.equal(journal.find("bank", "/sale", "A"), undefined);
});

test("Journal that is read late puts what was sent before in front of what it sent itself", async () => {
  const { journal: before, disk } = await opened();
  await (await send(before, "A")).ended(success);
  await (await send(before, "A", { body: '{"pay_id":"A","amount":200}' })).ended(success);
  const digest = before.find("bank", "/sale", "A")?.digest;
  const late = disk.afterCut([], true);
  late.trouble = { error: systemError("EIO") };
  const { journal } = await opened(late);
  await (await send(journal, "A", { body: '{"pay_id":"A","amount":300}' })).ended(success);
  const own = journal.find("bank", "/sale", "A")?.digest;
  late.trouble = undefined;
  await send(journal, "B");
  assert.equal(journal.isReadable, true);
  const entry = await send(journal, "A", { body: '{"pay_id":"A","amount":400}' });
  await entry.ended({ outcome: "not-sent" });
  assert.equal(journal.find("bank", "/sale", "A")?.digest, own);
  assert.equal((await opened(disk.afterCut([], true))).journal.find("bank", "/sale", "A")?.digest, digest);
});
