import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import fc from "fast-check";
import type { ContractName } from "../../src/core/call.ts";
import type { OperationEnd } from "../../src/core/followed.ts";
import { type Journal, openJournal } from "../../src/journal/journal.ts";
import { knownOf, nothingSaid, type Sending, saidBy, saidInRecord } from "../../src/journal/sending.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { bytes, callOf, folder, routeTo, Told } from "./records.ts";
import { SimDisk } from "./sim-disk.ts";

/** Tests src/journal/sending.ts, and that src/journal/journal.ts knows after a restart what it knew before. */

const time = new VirtualTime();
after(() => time.restore());
afterEach(() => time.forgetTimers());

function sendingOf(order: number, more: Partial<Sending> = {}): Sending {
  const from = { route: "/sale", digest: "A", place: order, order, atMs: 0, sentMs: 0, ask: {}, isFresh: false, endedMs: 0 };
  return {
    ...from,
    amount: undefined,
    isFollowed: false,
    notes: [],
    said: nothingSaid,
    isFound: false,
    settled: undefined,
    isStopped: false,
    ...more,
  };
}

const begun = { ...nothingSaid, begun: true };

test("knownOf() takes the same request once more for the same operation", () => {
  const accepted = sendingOf(1, { said: begun });
  assert.equal(knownOf([accepted, sendingOf(2)]).isAccepted, true);
  assert.equal(knownOf([{ ...accepted, isStopped: true }, sendingOf(2)]).isAccepted, false, "it was aborted before");
  assert.equal(knownOf([{ ...accepted, settled: "failed" }, sendingOf(2)]).isAccepted, false, "it begins anew");
  assert.equal(knownOf([accepted, sendingOf(2, { digest: "B" })]).isAccepted, false, "another body");
  const unprinted = sendingOf(1, { said: { ...begun, isUnprinted: true } });
  assert.equal(knownOf([unprinted, sendingOf(2)]).isUnprinted, true);
});

test("knownOf() keeps a good end, unless the terminal took the request for a new one or the key isn't its own", () => {
  const approved = { settled: "approved" } as const;
  const ends = (sendings: readonly Sending[]) => knownOf(sendings).end;
  assert.equal(ends([sendingOf(1, approved), sendingOf(2)]), "approved");
  assert.equal(ends([sendingOf(1, approved), sendingOf(2, { settled: "failed" })]), "approved");
  assert.equal(ends([sendingOf(1, approved), sendingOf(2, { said: begun })]), undefined);
  assert.equal(ends([sendingOf(1, { settled: "declined" }), sendingOf(2)]), undefined);
  const refund = { route: "/refund" };
  assert.equal(ends([sendingOf(1, { ...refund, ...approved }), sendingOf(2, refund)]), undefined, "qr's has no key of its own");
  assert.equal(ends([sendingOf(1, { settled: "failed" }), sendingOf(2, { said: begun })]), undefined, "of the older one alone");
});

test("knownOf() knows whether a code of another name may be paid", () => {
  const code = (order: number, learned: string | undefined, more: Partial<Sending> = {}) =>
    sendingOf(order, { route: "/showqrcode", said: { ...begun, learned }, ...more });
  const names = (sendings: readonly Sending[]) => {
    const { learned, hasOtherNames } = knownOf(sendings);
    return [learned, hasOtherNames];
  };
  assert.deepEqual(names([code(1, "T-1")]), ["T-1", false]);
  assert.deepEqual(names([code(1, "T-1"), code(2, "T-1")]), ["T-1", false]);
  assert.deepEqual(names([code(1, "T-1"), code(2, "T-2")]), ["T-2", true]);
  assert.deepEqual(names([code(1, "T-1"), code(2, undefined)]), ["T-1", true], "its answer is lost");
  assert.deepEqual(names([code(1, undefined), code(2, undefined)]), [undefined, true]);
  assert.deepEqual(names([code(1, "T-1", { settled: "failed" }), code(2, "T-2")]), ["T-2", false]);
  const nameless = { said: nothingSaid };
  const failed = [code(1, undefined, nameless), code(2, undefined, { ...nameless, settled: "failed" })];
  assert.deepEqual(names([...failed, code(3, "T-3")]), ["T-3", false], "it begins anew");
  assert.deepEqual(names([code(1, "T-1", { digest: "B" }), code(2, "T-2")]), ["T-2", true], "another body");
  assert.deepEqual(names([code(1, "T-1", { digest: "B", settled: "failed" }), code(2, "T-2")]), ["T-2", false]);
  const refused = { said: { ...nothingSaid, naming: "none" } } as const;
  const own = { said: { ...begun, learned: "P-1", naming: "own" } } as const;
  assert.deepEqual(names([code(1, undefined, refused), code(2, "T-2")]), ["T-2", false], "a refusal shows no code");
  assert.deepEqual(names([code(1, "T-1"), code(2, undefined, refused)]), ["T-1", false]);
  assert.deepEqual(names([code(1, undefined, own), code(2, undefined, refused)]), ["P-1", false]);
  assert.deepEqual(names([code(1, undefined, refused), code(2, undefined, own)]), ["P-1", true], "a repetition may be unnamed");
  assert.deepEqual(names([code(1, undefined, nameless), code(2, undefined, refused), code(3, "T-3")]), ["T-3", true]);
  assert.deepEqual(names([code(1, undefined, refused), code(2, undefined), code(3, "T-3")]), ["T-3", true]);
  const anew = code(2, undefined, { ...refused, settled: "failed" });
  assert.deepEqual(names([code(1, undefined, refused), anew, code(3, undefined, own)]), ["P-1", false], "it begins anew");
});

test("saidBy() knows whether a name is the answer's, the till's own, or none at all", () => {
  const naming = (ending: object, ask?: Readonly<Record<string, string>>) =>
    saidBy({ route: "/showqrcode", key: "P-1", ask }, { outcome: "answered", ...ending }).naming;
  assert.equal(naming({ status: "success", learned: "T-1" }, {}), "given");
  assert.equal(naming({ status: "success", learned: "P-1" }, {}), "own");
  assert.equal(naming({ status: "success", learned: "MINE" }, { trans: "MINE" }), "own");
  assert.equal(naming({ status: "success", learned: "P-1" }, { trans: "MINE" }), "given");
  assert.equal(naming({ status: "error", code: 1 }), "none");
  assert.equal(naming({ status: "error", code: 1, learned: "T-1" }), "given");
  assert.equal(naming({ status: "success" }), "unknown", "a gateway's doubt");
  assert.equal(naming({ outcome: "unknown", status: "error" }), "unknown");
});

test("saidInRecord() reads from a record without `begun`, as an earlier version wrote it, that the terminal has the operation", () => {
  const said = (status: string, code?: number, route = "/sale") =>
    saidInRecord({ route }, { outcome: "answered", status, code }).begun;
  assert.deepEqual(
    [said("success"), said("error", 44), said("error", 15), said("error", 1, "/showqrcode")],
    [true, true, true, undefined],
  );
  assert.deepEqual([said("error", -3), said("error", -29)], [undefined, undefined]);
  assert.equal(saidInRecord({ route: "/sale" }, { outcome: "answered", status: "success", begun: false }).begun, false);
  assert.equal(saidInRecord({ route: "/sale" }, { outcome: "unknown" }).begun, undefined);
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
  fc.record({ does: fc.constant("accept" as const), route: fc.constantFrom("/sale", "/cancel") }),
  fc.record({
    does: fc.constant("settle" as const),
    route: fc.constantFrom("/sale", "/cancel"),
    end: fc.constantFrom("approved" as const, "declined" as const, "failed" as const),
  }),
  fc.record({ does: fc.constant("hear" as const), end: fc.constantFrom(undefined, "approved" as const) }),
  fc.record({ does: fc.constant("look" as const), end: fc.constantFrom("approved" as const, "failed" as const) }),
);
type Happening = typeof happenings extends fc.Arbitrary<infer T> ? T : never;

async function happen(journal: Journal, happening: Happening): Promise<void> {
  const sent = async (route: string, body: string, ending: object) => {
    const entry = journal.begin({ ...callOf("A", { body }), route }, routeTo(route, "bank" satisfies ContractName));
    await entry.sent();
    const payload = "status" in ending ? [Buffer.from(JSON.stringify({ ...ending, outcome: undefined }))] : [];
    await entry.ended({ outcome: "unknown", ...ending, payload });
  };
  const end = (of: { readonly end: OperationEnd | undefined }) => of.end;
  await time.advance(10);
  switch (happening.does) {
    case "send":
      return sent(happening.route, happening.body, happening.ending);
    case "abort":
      return sent("/abort", '{"pay_id":"A"}', { outcome: "answered", status: "success" });
    case "accept":
      return journal.accepted("bank", happening.route, "A", journal.lastOrder("bank", "A"));
    case "settle":
      return journal.settled("bank", happening.route, "A", happening.end, journal.lastOrder("bank", "A"));
    case "hear":
      return journal.heardOf("bank", "A", ["/sale"], { askedMs: time.nowMs + 1, device: undefined }, () => end(happening));
    case "look": {
      const [open] = journal.open;
      if (open !== undefined) await journal.settle(open, { result: happening.end, by: "operator", note: "looked" });
    }
  }
}

test("Journal knows after a restart what it knew before, whatever happened under a key", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(happenings, { minLength: 1, maxLength: 12 }), async (all) => {
      const disk = new SimDisk();
      const settings = { folder, bytes, onFailure: "relay", report: new Told() } as const;
      const before = await openJournal({ ...settings, disk });
      for (const each of all) await happen(before, each);
      await time.settle();
      const restarted = await openJournal({ ...settings, disk: disk.afterCut([], true) });
      for (const route of ["/sale", "/cancel", "/refund"]) {
        assert.deepEqual(restarted.find("bank", route, "A"), before.find("bank", route, "A"), route);
      }
    }),
    { numRuns: 1000 },
  );
});

test("knownOf() lets a bad end of the last sending undo nothing of the ones before", () => {
  const last = (more: Partial<Sending>) => sendingOf(2, more);
  const accepted = sendingOf(1, { said: begun });
  assert.deepEqual(
    [knownOf([accepted, last({ settled: "failed" })]).end, knownOf([accepted, last({ settled: "failed" })]).isAccepted],
    [undefined, true],
  );
  const approved = sendingOf(1, { settled: "approved" });
  assert.equal(knownOf([approved, last({ settled: "declined" })]).end, "approved");
  assert.equal(knownOf([approved, last({ settled: "declined", said: begun })]).end, undefined);
  assert.equal(knownOf([approved, last({ settled: "reversed" })]).end, "reversed");
});

test("Journal keeps what it learned of an operation that is repeated more often than it keeps sendings", async () => {
  const settings = { folder, bytes, onFailure: "relay", report: new Told(), disk: new SimDisk() } as const;
  const journal = await openJournal(settings);
  const send = (ending: object) =>
    happen(journal, { does: "send", route: "/sale", body: '{"pay_id":"A","amount":1}', ending } as Happening);
  await send({ outcome: "answered", status: "success" });
  journal.settled("bank", "/sale", "A", "approved", journal.lastOrder("bank", "A"));
  for (let n = 0; n < 20; n++) await send({ outcome: "answered", status: "error", code: -3 });
  assert.equal(journal.find("bank", "/sale", "A")?.end, "approved");
  const others = await openJournal({ ...settings, disk: new SimDisk() });
  for (let n = 0; n < 20; n++) {
    await happen(others, { does: "send", route: "/sale", body: '{"pay_id":"A","amount":1}', ending: { outcome: "unknown" } });
  }
  assert.equal(others.find("bank", "/sale", "A")?.isAccepted, false, "nothing was learned, and nothing forgotten");
});
