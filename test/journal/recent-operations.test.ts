import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type Journal, openJournal } from "../../src/journal/journal.ts";
import { recentMs } from "../../src/journal/recent-operations.ts";
import { slotBytes } from "../../src/journal/slot.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { bytes, callOf, folder, routeTo, Told } from "./records.ts";
import { SimDisk } from "./sim-disk.ts";

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
  await time.advance(39_000);
  assert.equal(others(journal), "recent");
  await time.advance(2_000);
  assert.equal(others(journal), "old");
  const { journal: next } = await opened(disk.afterCut([], true));
  await time.advance(59_000);
  assert.equal(others(next), "recent");
  await time.advance(2_000);
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
