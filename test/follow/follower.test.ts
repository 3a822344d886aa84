import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Fault } from "../../src/core/fault.ts";
import { Presence } from "../../src/core/presence.ts";
import { bodyDigest } from "../../src/envelope/body-digest.ts";
import { recentMs } from "../../src/journal/recent-operations.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { type Answered, absent, approved, down, type Following, following, lost, running } from "./following.ts";

/** Tests src/follow/follower.ts and src/follow/operation.ts. */

const time = new VirtualTime();
after(() => time.restore());

const sale = { pay_id: "P-1", amount: 1500, currency_name: "EUR", note: "  kept as it came " };

/** What was answered once so much time has passed. */
async function askedFor<T>(ms: number, asking: Promise<T>): Promise<T | "still waiting"> {
  let answered: T | "still waiting" = "still waiting";
  void asking.then((value) => {
    answered = value;
  });
  await time.advance(ms);
  return answered;
}

async function ended<T>(asking: Promise<T>, msMax = 600_000): Promise<T> {
  const answered = await askedFor(msMax, asking);
  assert.ok(answered !== "still waiting", "it ends");
  return answered;
}

const sales = ({ sent }: Following) => sent.filter(({ route }) => route === "/sale").length;

test("Follower sends a call once, as its till wrote it, and answers with the terminal's bytes that prove its end", async () => {
  const box = following((route, _, count) => (route === "/sale" || count < 3 ? running : approved));
  const { json, stands } = await ended(box.ask(sale));
  assert.deepEqual(json, approved);
  assert.equal(stands, "approved by /check after 3");
  assert.deepEqual(
    box.sent.map(({ route, background }) => `${route} ${background}`),
    ["/sale false", "/check true", "/check true", "/check true"],
  );
  assert.equal(box.sent[0]?.body, JSON.stringify(sale));
  assert.equal(box.sent[1]?.body, '{"pay_id":"P-1"}');
  assert.deepEqual(box.history.ends, ["bank /sale P-1 approved"]);
});

test("Follower answers as without after the time its caller waits, and follows on", async () => {
  let isOver = false;
  const box = following((route) => (route === "/sale" || !isOver ? running : approved));
  const answered = await askedFor(5_100, box.ask(sale, 5_000));
  assert.ok(answered !== "still waiting");
  assert.deepEqual(answered.json, running);
  assert.match(answered.stands, /^pending after [34]$/);
  isOver = true;
  await time.advance(3_000);
  assert.deepEqual(box.history.ends, ["bank /sale P-1 approved"]);
  assert.equal(sales(box), 1);
});

test("Follower goes on after its caller has left, and records the end", async () => {
  const caller = new Presence();
  const box = following((route, _, count) => (route === "/sale" || count < 3 ? running : approved));
  const asking = box.ask(sale, 60_000, caller);
  await time.advance(50);
  caller.leave();
  await ended(asking);
  assert.deepEqual(box.history.ends, ["bank /sale P-1 approved"]);
});

test("Follower asks about a sending that was lost, and never sends again", async () => {
  for (const [answer, stands] of [
    [approved, /^approved by \/check after 1$/],
    [{ status: "error", data: { status: "ERROR" }, code: -20 }, /^declined by \/check after 1$/],
    // A failure that comes with a success is none of the documented ends (bank.md, rule 1).
    [{ status: "success", data: { status: "REVERSED" } }, /^pending/],
    // It counts only once the sending can't be on its way any more (bank.md, Limits: 30 s), and said three times in a row.
    [absent, /^failed by \/check after \d+$/],
  ] as const) {
    const box = following((route) => (route === "/sale" ? lost : answer));
    const { stands: got } = await ended(box.ask(sale));
    assert.match(got, stands);
    assert.equal(sales(box), 1);
  }
});

test("Follower answers the fault of its sending, with the word unknown, when nothing was proven in time", async () => {
  const box = following(() => lost);
  const { fault, stands } = await ended(box.ask(sale, 10_000));
  assert.equal(fault?.outcome, "unknown");
  assert.equal(fault?.httpStatus, 504);
  assert.match(stands, /^unknown after \d+$/);
  assert.deepEqual(box.history.ends, []);
});

test("Follower says that a call that was not sent has failed, and the same call is sent then", async () => {
  let isDown = true;
  const box = following((route) => (route !== "/sale" ? approved : isDown ? down : running));
  const refused = await ended(box.ask(sale));
  assert.equal(refused.fault?.outcome, "not-sent");
  assert.equal(refused.fault?.reason, "line-down");
  assert.equal(refused.stands, "failed after 0");
  box.history.past.clear();
  isDown = false;
  assert.equal((await ended(box.ask(sale))).stands, "approved by /check after 1");
  assert.equal(sales(box), 2);
});

test("Follower takes the same call while the first is followed for the first, and answers both", async () => {
  const box = following((route, _, count) => (route === "/sale" || count < 4 ? running : approved));
  const first = box.ask(sale);
  await time.advance(1_500);
  const second = box.ask(sale);
  assert.equal((await ended(first)).stands, "approved by /check after 4");
  assert.equal((await ended(second)).stands, "approved by /check after 4");
  assert.equal(sales(box), 1);
});

test("Follower only asks about a call that the journal has as sent, and ends it as the first", async () => {
  for (const [answer, stands] of [
    [approved, /^approved by \/check after 1$/],
    [absent, /^failed by \/check after \d+$/],
    [running, /^pending by \/check after \d+$/],
  ] as const) {
    const box = following(() => answer);
    const digest = bodyDigest([Buffer.from(JSON.stringify(sale))]);
    box.history.past.set("bank /sale P-1", { sentMs: Date.now() - 60_000, digest, end: undefined, isFresh: false });
    assert.match((await ended(box.ask(sale))).stands, stands);
    assert.equal(sales(box), 0);
  }
});

test("Follower keeps an end that the journal has, whatever the terminal remembers, and sends again what was proven undone", async () => {
  const digest = bodyDigest([Buffer.from(JSON.stringify(sale))]);
  const settled = following(() => absent);
  settled.history.past.set("bank /sale P-1", { sentMs: Date.now(), digest, end: "approved", isFresh: false });
  assert.equal((await ended(settled.ask(sale))).stands, "approved by /check after 1");
  assert.equal(sales(settled), 0);
  const undone = following((route) => (route === "/sale" ? running : approved));
  undone.history.past.set("bank /sale P-1", { sentMs: Date.now(), digest, end: "failed", isFresh: false });
  assert.equal((await ended(undone.ask(sale))).stands, "approved by /check after 1");
  assert.equal(sales(undone), 1);
  const old = following((route) => (route === "/sale" ? running : approved));
  old.history.past.set("bank /sale P-1", { sentMs: Date.now() - recentMs - 1_000, digest, end: "approved", isFresh: false });
  await ended(old.ask(sale));
  assert.equal(sales(old), 1, "a day later it is another sale");
});

for (const route of ["/refund", "/confirm", "/cancel"] as const) {
  test(`Follower proves how a ${route} ended that was sent before, where nothing was known under its key then`, async () => {
    const body = { pay_id: "R-1", amount: 100 };
    const other = { ...approved, data: { status: "APPROVED", txn_id: "T-0" } };
    for (const [known, answer, isFresh, stands] of [
      [absent, approved, true, /^approved/],
      [absent, absent, true, /^failed/],
      [other, approved, false, /^unknown/],
    ] as const) {
      const first = following((path, _, count) => (path === route ? lost : count === 1 ? known : running), { route });
      await ended(first.ask(body, 1_000));
      const sent = first.history.past.get(`bank ${route} R-1`);
      assert.equal(sent?.isFresh, isFresh);
      // Another process, which has the journal alone.
      const next = following(() => answer, { route });
      if (sent !== undefined) next.history.past.set(`bank ${route} R-1`, sent);
      assert.match((await ended(next.ask(body))).stands, stands);
      assert.equal(next.sent.filter((each) => each.route === route).length, 0);
    }
  });
}

test("Follower refuses another body under a key that was sent, or is followed", async () => {
  const box = following((route, _, count) => (route === "/sale" || count < 3 ? running : approved));
  const first = box.ask(sale);
  await time.advance(500);
  for (const when of [/is being followed/, /was sent at \d{4}-/]) {
    const { fault } = await ended(box.ask({ ...sale, amount: 9900 }), 100);
    assert.equal(fault?.kind, "reused");
    assert.equal(fault?.httpStatus, 422);
    assert.equal(fault?.outcome, "not-sent");
    assert.match(fault?.message ?? "", when);
    assert.match(fault?.message ?? "", /use a new pay_id/);
    await ended(first);
  }
  assert.equal(sales(box), 1);
});

test("Follower refuses a call without a key, and a fiscal one whose questions it can't sign, unsent", async () => {
  const box = following(() => approved);
  const { pay_id: _, ...keyless } = sale;
  const { fault } = await ended(box.ask(keyless));
  assert.equal(fault?.kind, "missing");
  assert.match(fault?.message ?? "", /the body has no pay_id, and without one nothing can be asked: add pay_id/);
  const unsigned = following(() => approved, { service: "fiscal", merchantId: undefined });
  assert.match((await ended(unsigned.ask({ documentExtID: "D-1" }))).fault?.message ?? "", /set merchantId of the service/);
  assert.equal(box.sent.length + unsigned.sent.length, 0);
});

test("Follower says that a fiscal document is closed and unprinted, and prints nothing", async () => {
  const box = following(
    (route) =>
      route === "/sale" ? { status: "error", code: 15 } : { status: "success", docStatus: 1, documentID: 12, printError: 4 },
    { service: "fiscal" },
  );
  const asking = box.ask({ documentExtID: "D-1" });
  // A sign is made in another thread, which the test's clock doesn't move.
  for (let k = 0; k < 50 && box.history.ends.length === 0; k++) {
    await time.advance(100);
    await delay(2);
  }
  assert.equal((await ended(asking)).stands, "unprinted by /check_status after 1");
  assert.deepEqual(
    box.sent.map(({ route }) => route),
    ["/sale", "/check_status"],
  );
});

test("Follower can ask nothing about qr's refund: its success ends it, and its error proves nothing", async () => {
  const refund = { pay_id: "P-1", amount: 100 };
  const good = following(() => running, { service: "qr", route: "/refund" });
  assert.equal((await ended(good.ask(refund))).stands, "approved after 0");
  const bad = following(() => ({ status: "error", code: 1 }), { service: "qr", route: "/refund" });
  assert.equal((await ended(bad.ask(refund))).stands, "unknown after 0");
  const again = await ended(bad.ask(refund));
  assert.equal(again.fault?.outcome, "unknown");
  assert.equal(bad.sent.length, 1, "nor is it sent again");
});

test("Follower follows 64 operations of a service at most, and refuses the next unsent", async () => {
  const box = following((route) => (route === "/sale" ? running : undefined));
  const asked = Array.from({ length: 65 }, (_, n) => box.ask({ ...sale, pay_id: `P-${n}` }));
  await time.advance(100);
  const { fault, stands } = await ended(asked[64] ?? Promise.reject(new Error("65 were asked")), 0);
  assert.equal(fault?.reason, "too-many-followed");
  assert.equal(fault?.outcome, "not-sent");
  assert.equal(stands, "not followed", "it may be one that was sent before");
  assert.equal(sales(box), 64);
  box.follower.stop();
});

test("Follower that is stopped answers all who wait at once with what is known", async () => {
  const box = following((route) => (route === "/sale" ? running : undefined));
  const asking = box.ask(sale);
  await time.advance(5_000);
  box.follower.stop();
  const answered = await askedFor(0, asking);
  assert.ok(answered !== "still waiting");
  assert.match(answered.stands, /^pending after \d$/);
});

test("Follower says where the same call would be sent again: without a journal, and with one that can't be read", async () => {
  const answer = (route: string): Answered => (route === "/sale" ? running : approved);
  const none = following(answer, { history: undefined });
  assert.equal((await ended(none.ask(sale))).stands, "approved by /check after 1, unguarded");
  const unread = following(answer);
  unread.history.isReadable = false;
  assert.equal((await ended(unread.ask(sale))).stands, "approved by /check after 1, unguarded");
});

test("Follower asks one question at a time on its line, for all that it follows", async () => {
  let out = 0;
  let most = 0;
  const box = following(async (route) => {
    if (route === "/sale") return running;
    most = Math.max(most, ++out);
    await new Promise((resolve) => setTimeout(resolve, 300));
    out--;
    return running;
  });
  const asking = Array.from({ length: 10 }, (_, n) => box.ask({ ...sale, pay_id: `P-${n}` }, 20_000));
  await ended(Promise.all(asking));
  assert.equal(most, 1);
  assert.ok(box.sent.length > 30);
});

test("Follower's sending waits for all who wait for it: it is refused only when the last of them has left", async () => {
  const [first, second] = [new Presence(), new Presence()];
  const box = following((route) => (route === "/sale" ? undefined : approved));
  void box.ask(sale, 60_000, first);
  await time.advance(10);
  void box.ask(sale, 60_000, second);
  await time.advance(10);
  first.leave();
  assert.equal(first.gone, false);
  second.leave();
  assert.equal(first.gone, true);
  assert.ok(lost instanceof Fault);
});
