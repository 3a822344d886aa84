import assert from "node:assert/strict";
import { after, test } from "node:test";
import { JournalSettling } from "../../src/app/journal-settling.ts";
import type { AdminAnswer } from "../../src/http/admin-listener.ts";
import { openJournal } from "../../src/journal/journal.ts";
import { recordMs } from "../../src/journal/recorder.ts";
import { bytes, callOf, folder, routeTo, Told } from "../journal/records.ts";
import { SimDisk, systemError } from "../journal/sim-disk.ts";
import { VirtualTime } from "../support/virtual-time.ts";

/** What the admin port answers the person who settles, by what the journal's disk does. */

const time = new VirtualTime();
after(() => time.restore());

/** A journal with one unknown operation, and who settles it. */
async function opened() {
  const disk = new SimDisk();
  const open = () => openJournal({ folder, bytes, onFailure: "relay", report: new Told(), disk });
  const journal = await open();
  const entry = journal.begin(callOf("A"), routeTo());
  await entry.sent();
  await entry.ended({ outcome: "unknown" });
  const settling = new JournalSettling({ journal, folder, resolve: false, isFollowed: () => false, error: assert.ifError });
  const request = { query: new URLSearchParams(), headers: {} };
  const settle = async (): Promise<AdminAnswer> => {
    const answer = await settling.routes["POST /journal/settle"]?.('{"key":"A","as":"done","note":"seen"}', request);
    assert.ok(answer !== undefined && "status" in answer);
    return answer;
  };
  return { disk, journal, open, settle };
}

test("POST /journal/settle answers 200 once what was settled is on the disk", async () => {
  const { disk, journal, settle, open } = await opened();
  let go = () => {};
  disk.trouble = {
    until: new Promise((resolve) => {
      go = resolve;
    }),
  };
  let isAnswered = false;
  const answered = settle().finally(() => {
    isAnswered = true;
  });
  await time.advance(recordMs - 1);
  assert.equal(isAnswered, false);
  disk.trouble = undefined;
  go();
  const { status, text } = await answered;
  assert.deepEqual([status, text], [200, '{"settled":[{"service":"bank","route":"/sale","key":"A","result":"approved"}]}\n']);
  await journal.close();
  assert.deepEqual((await open()).unknown(), []);
});

for (const [trouble, meets] of [
  ["hangs", { until: new Promise<void>(() => {}) }],
  ["is full", { error: systemError("ENOSPC") }],
] as const) {
  test(`POST /journal/settle doesn't say that an operation is settled where the journal's disk ${trouble}, and answers in time`, async () => {
    const { disk, settle } = await opened();
    disk.trouble = meets;
    let answer: AdminAnswer | undefined;
    void settle().then((each) => {
      answer = each;
    });
    await time.advance(recordMs);
    assert.equal(answer?.status, 503);
    assert.match(
      answer?.text ?? "",
      /^\{"error":"Cannot say that \\"A\\" is settled: posline took it, and can't write it yet \(/,
    );
    assert.match(answer?.text ?? "", trouble === "hangs" ? /no answer from the disk for 5000 ms/ : /disk is full|no space/i);
  });
}
