import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ContractName } from "../../src/core/call.ts";
import { Hearing } from "../../src/operations/hearing.ts";
import { type Operations, openOperations } from "../../src/operations/operations.ts";
import { saidInRecord } from "../../src/operations/own-answer.ts";
import { knownOfOne } from "../../src/operations/sending.ts";
import { bytes, callOf, folder, routeTo, Told } from "../journal/records.ts";
import { SimDisk } from "../journal/sim-disk.ts";
import { operationOf } from "../settle/judged.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { absent, final } from "./whole-box.ts";

/** Tests src/operations/operations.ts, src/operations/recall.ts. Operations know after a restart what they knew before. */

const time = virtualTime();

test("saidInRecord() reads from an answer's record what the answer proved, and from another record nothing", () => {
  const says = (of: Omit<Parameters<typeof saidInRecord>[1], "outcome">, outcome: "answered" | "unknown" = "answered") =>
    saidInRecord(operationOf("fiscal", "/sale"), { outcome, ...of }).says;
  const all = [
    { begun: true },
    { begun: false },
    { end: "closed" },
    { code: 44 },
    { code: 5 },
    { code: 9 },
    { code: 10 },
    {},
  ] as const;
  assertMapped(all, ["going", "refused", "end", "error", "error", "error", "error", "error"], (each) => says(each));
  assert.equal(says({ begun: true, code: 15 }, "unknown"), "nothing");
});

/** What may happen to operations under one key. */
const sendings = fc.record({
  does: fc.constant("send" as const),
  route: fc.constantFrom("/sale", "/cancel", "/refund"),
  body: fc.constantFrom('{"pay_id":"A","amount":1}', '{"pay_id":"A","amount":2}'),
  ending: fc.constantFrom(
    { outcome: "answered", status: "success" } as const,
    { outcome: "answered", status: "error", code: -3 } as const,
    { outcome: "answered", status: "error", code: -29 } as const,
    { outcome: "unknown" } as const,
    { outcome: "not-sent" } as const,
  ),
});
const happenings = fc.oneof(
  { weight: 3, arbitrary: sendings },
  fc.constant({ does: "abort" as const }),
  fc.record({
    does: fc.constant("hear" as const),
    says: fc.constantFrom({ status: "success" }, final("APPROVED", "T-1"), final("ERROR", "T-1"), absent),
  }),
  fc.record({ does: fc.constant("look" as const), end: fc.constantFrom("approved" as const, "failed" as const) }),
);
type Happening = typeof happenings extends fc.Arbitrary<infer T> ? T : never;

/** What is known of each operation under the key, but for when it was sent. */
const factsOf = (operations: Operations) =>
  operations.under("bank", "A").map((sending) => {
    const { end, isAccepted, standing } = operations.togetherOf(sending);
    return [sending.sent.route, sending.sent.digest, end, isAccepted, standing.length, knownOfOne(sending)?.isAborted];
  });

async function happen(journal: Operations, happening: Happening): Promise<void> {
  const sent = async (route: string, body: string, ending: object) => {
    const entry = journal.begin({ ...callOf("A", { body }), route }, routeTo(route, "bank" satisfies ContractName));
    await entry.sent();
    const payload = "status" in ending ? [Buffer.from(JSON.stringify({ ...ending, outcome: undefined }))] : [];
    await entry.ended({ outcome: "unknown", ...ending, payload });
  };
  await time.advance(10);
  switch (happening.does) {
    case "send":
      return sent(happening.route, happening.body, happening.ending);
    case "abort":
      return sent("/abort", '{"pay_id":"A"}', { outcome: "answered", status: "success" });
    case "hear": {
      const [question, answer] = [{ pay_id: "A" }, happening.says];
      const call = { ...callOf("A", { body: JSON.stringify(question) }), route: "/check" };
      const payload = [Buffer.from(JSON.stringify(answer))];
      const reply = { payload, status: answer.status, code: undefined, queueMs: 0, lineMs: 1 };
      return new Hearing(journal, true, assert.ifError).heard(call, reply, { askedMs: time.nowMs + 1, device: undefined });
    }
    case "look": {
      const [open] = [...journal.listed, ...journal.settledByPerson];
      if (open !== undefined) await journal.settle(open, { result: happening.end, by: "operator", note: "looked" });
    }
  }
}

test("Operations knows after a restart what it knew before, whatever happened under a key", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(happenings, { minLength: 1, maxLength: 12 }), async (all) => {
      const disk = new SimDisk();
      const settings = { folder, bytes, onFailure: "relay", report: new Told() } as const;
      const before = await openOperations({ ...settings, disk });
      for (const each of all) await happen(before, each);
      await time.settle();
      const restarted = await openOperations({ ...settings, disk: disk.afterCut([], true) });
      assert.deepEqual(factsOf(restarted), factsOf(before));
    }),
    { numRuns: 1000 },
  );
});
