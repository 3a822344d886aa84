import assert from "node:assert/strict";
import { test } from "node:test";
import { Ways } from "../../src/bridge/ways.ts";
import type { Call, Handler } from "../../src/core/call.ts";
import { Presence } from "../../src/core/presence.ts";
import type { AdminAnswer } from "../../src/http/admin-listener.ts";
import { recordMs } from "../../src/journal/recorder.ts";
import { Operations, openOperations } from "../../src/operations/operations.ts";
import { bytes, callOf, folder, routeTo, Told } from "../journal/records.ts";
import { SimDisk, systemError } from "../journal/sim-disk.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { gate } from "../support/promises.ts";
import { serviceConfigOf } from "../support/service-config.ts";
import { virtualTime } from "../support/virtual-time.ts";

/** What the admin port answers the person who settles, by what the journal's disk does. */

const time = virtualTime();

/** A journal with one unknown operation, and who settles it. */
async function opened() {
  const disk = new SimDisk();
  const open = () => openOperations({ folder, bytes, onFailure: "relay", report: new Told(), disk });
  const journal = await open();
  const entry = journal.begin(callOf("A"), routeTo());
  await entry.sent();
  await entry.ended({ outcome: "unknown" });
  const ways = new Ways({ operations: journal, folder, resolve: false, error: assert.ifError });
  const request = { query: new URLSearchParams(), headers: {}, checkChange: () => {} };
  const settle = async (): Promise<AdminAnswer> => {
    const answer = await ways.routes["POST /journal/settle"]?.('{"key":"A","as":"done","note":"seen"}', request);
    assert.ok(answer !== undefined && "status" in answer);
    return answer;
  };
  return { disk, journal, open, settle };
}

test("POST /journal/settle answers 200 once what was settled is on the disk", async () => {
  const { disk, journal, settle, open } = await opened();
  const go = gate();
  disk.trouble = { until: go.passed };
  let isAnswered = false;
  const answered = settle().finally(() => {
    isAnswered = true;
  });
  await time.advance(recordMs - 1);
  assert.equal(isAnswered, false);
  disk.trouble = undefined;
  go.open();
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

const served = { service: "bank", config: serviceConfigOf() };

/** A terminal that approves, and notes by whose name it was asked. */
const terminal =
  (name: string, asked: string[]): Handler =>
  async () => {
    asked.push(name);
    return {
      ...{ payload: [Buffer.from('{"status":"success","data":{"status":"APPROVED","txn_id":"T-1"}}')], status: "success" },
      ...{ code: undefined, queueMs: 0, lineMs: 10 },
    };
  };

/** Without a journal. */
const waysOf = () => new Ways({ operations: new Operations(), folder: undefined, resolve: "observe", error: assert.ifError });
const config = { lines: {}, services: { bank: served.config }, journal: false, log: { level: "info" } } as const;
const line = { name: "till", state: "idle", waiting: 0 };

const saleOf = (key: string): Call => ({
  service: "bank",
  contract: "bank",
  route: "/sale",
  body: [Buffer.from(JSON.stringify({ pay_id: key, amount: 1500, currency_name: "EUR" }))],
  requestId: "r-1",
  key,
  caller: new Presence(),
  followMs: 1_000,
});

test("Ways asks as the configuration says that was taken, and never as one says that was refused", async () => {
  const asked: string[] = [];
  const ways = waysOf();
  const first = ways.handlerOf(served, terminal("first", asked));
  ways.take(config, [line]);
  await first(saleOf("A-1"));
  ways.handlerOf(served, terminal("refused", asked));
  ways.drop();
  ways.take(config, [line]);
  await first(saleOf("A-2"));
  const next = ways.handlerOf(served, terminal("next", asked));
  ways.take(config, [line]);
  await next(saleOf("A-3"));
  assert.deepEqual([...new Set(asked)], ["first", "next"]);
  ways.stop();
});

test("Ways asks by the configuration in force about a call that came before it, and join identical calls across it", async () => {
  const asked: string[] = [];
  const ways = waysOf();
  const first = ways.handlerOf(served, terminal("first", asked));
  ways.take(config, [line]);
  const next = ways.handlerOf(served, terminal("next", asked));
  ways.take(config, [line]);
  await first(saleOf("A-1"));
  await next(saleOf("A-2"));
  assert.deepEqual([...new Set(asked)], ["next"]);
  const { followMs, ...plain } = saleOf("A-3");
  asked.length = 0;
  const replies = await Promise.all([first(plain), next(plain)]);
  assertMapped(replies, [undefined, true], ({ isJoined }) => isJoined);
  assert.deepEqual(asked, ["first"]);
  ways.stop();
});
