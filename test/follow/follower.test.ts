import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { queryObjects } from "node:v8";
import type { Contract } from "../../src/contract/contract.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { Call } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { Presence } from "../../src/core/presence.ts";
import { bodyDigest } from "../../src/envelope/body-digest.ts";
import { signOf } from "../../src/envelope/sign.ts";
import type { FollowerOptions } from "../../src/follow/follower.ts";
import { Turns } from "../../src/follow/turns.ts";
import { monotonicClock } from "../../src/settle/clock.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import {
  type Answered,
  absent,
  approved,
  down,
  type Following,
  following,
  lost,
  replyOf,
  running,
  takesMs,
  unanswered,
} from "./following.ts";

/** Tests src/follow/follower.ts and src/follow/operation.ts. */

const time = new VirtualTime();
after(() => time.restore());
// What one test leaves waiting would live on in the next one's hours, and cost it seconds.
afterEach(() => time.forgetTimers());

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

test("Follower answers at most one interval of the contract's polling after the terminal knows the end", async () => {
  for (const knowsMs of [100, 900, 1_700, 5_300, 20_900]) {
    let knows = false;
    const box = following((route) => (route === "/sale" || !knows ? running : approved));
    const asking = box.ask(sale);
    await time.advance(knowsMs);
    knows = true;
    const { intervalMs } = contracts.bank.routes.find(({ path }) => path === "/sale")?.polling ?? assert.fail();
    const answered = await askedFor(intervalMs.max + 2 * takesMs, asking);
    assert.notEqual(answered, "still waiting", `it ended after ${knowsMs} ms`);
  }
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
  assert.deepEqual(box.history.ends, [], "what wasn't sent has no end to be recorded");
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
    box.history.past.set("bank /sale P-1", {
      ...unanswered,
      sentMs: Date.now() - 60_000,
      digest,
      end: undefined,
      isFresh: false,
      isLast: true,
    });
    assert.match((await ended(box.ask(sale))).stands, stands);
    assert.equal(sales(box), 0);
  }
});

test("Follower keeps an end that the journal has, whatever the terminal remembers, and sends again what was proven undone", async () => {
  const digest = bodyDigest([Buffer.from(JSON.stringify(sale))]);
  const settled = following(() => absent);
  settled.history.past.set("bank /sale P-1", {
    ...unanswered,
    sentMs: Date.now(),
    digest,
    end: "approved",
    isFresh: false,
    isLast: true,
  });
  assert.equal((await ended(settled.ask(sale))).stands, "approved after 1");
  assert.equal(sales(settled), 0);
  const undone = following((route) => (route === "/sale" ? running : approved));
  undone.history.past.set("bank /sale P-1", {
    ...unanswered,
    sentMs: Date.now(),
    digest,
    end: "failed",
    isFresh: false,
    isLast: true,
  });
  assert.equal((await ended(undone.ask(sale))).stands, "approved by /check after 1");
  assert.equal(sales(undone), 1);
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
      const first = following((path, _, count) => (path === route ? lost : count <= (isFresh ? 3 : 1) ? known : running), {
        route,
      });
      await ended(first.ask(body, 1_000));
      const sent = first.history.past.get(`bank ${route} R-1`);
      assert.equal(sent?.isFresh, isFresh);
      // Another process, whose journal has no answer.
      const next = following(() => answer, { route });
      if (sent !== undefined) next.history.past.set(`bank ${route} R-1`, { ...sent, isAccepted: false });
      assert.match((await ended(next.ask(body))).stands, stands);
      assert.equal(next.sent.filter((each) => each.route === route).length, 0);
    }
  });
}

test("Follower gives up asking what stands under a key a moment after its caller's wait, though it was answered once that there is none", async () => {
  const cancel = following((_, __, count) => (count === 1 ? absent : lost), { route: "/cancel" });
  const { fault, stands } = await ended(cancel.ask({ pay_id: "P-1" }, 10_000), 10_000 + 5_000 + 2_000 + 30_000);
  assert.deepEqual([fault?.outcome, fault?.reason], ["not-sent", "waited-too-long"]);
  assert.match(stands, /^failed/);
  assert.equal(cancel.sent.filter(({ route }) => route === "/cancel").length, 0);
});

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
    assert.match(
      fault?.message ?? "",
      /: ask how that one ended, and use a new pay_id for another operation\. Nothing was sent/,
    );
    // The first one may go on: a till that reads the word alone must not sell once more.
    assert.equal(fault?.details.followed, undefined);
    await ended(first);
  }
  assert.equal(sales(box), 1);
});

test("Follower sends a sale at once, whatever else is open under its key: it refers to nothing", async () => {
  const box = following(() => running);
  box.history.sent("bank", "/cancel", "P-1", { sentMs: Date.now(), digest: "other", isFresh: false });
  void box.ask(sale);
  await time.advance(takesMs);
  assert.deepEqual(
    box.sent.map(({ route }) => route),
    ["/sale"],
  );
});

test("Follower refuses another cancel of a sale at once, whose first one goes on", async () => {
  const box = following(() => running, { route: "/cancel" });
  box.history.sent("bank", "/cancel", "P-1", { sentMs: Date.now(), digest: "other", isFresh: false });
  const { fault } = await ended(box.ask({ pay_id: "P-1" }), 100);
  assert.equal(fault?.kind, "reused");
  assert.deepEqual(box.sent, []);
});

test("Follower without a journal sends no cancel while the sale that it follows is on its way", async () => {
  let isThere = false;
  const times: number[] = [];
  const handler = async ({ route }: Call) => {
    if (route === "/cancel") times.push(time.nowMs);
    if (route === "/check") return replyOf(isThere ? approved : absent);
    await new Promise((resolve) => setTimeout(resolve, 20_000));
    isThere = true;
    return replyOf(running);
  };
  const beganMs = time.nowMs;
  const { follower } = following(() => running, { handler, history: undefined });
  const call = { service: "bank", contract: "bank", requestId: "r", key: "P-1", followMs: 60_000 } as const;
  for (const [route, body] of [
    ["/sale", sale],
    ["/cancel", { pay_id: "P-1" }],
  ] as const) {
    void follower.follow({ ...call, route, body: [Buffer.from(JSON.stringify(body))], caller: new Presence() });
    await time.advance(1_000);
  }
  await time.advance(60_000);
  assert.ok(times.length === 1 && (times[0] ?? 0) > beganMs + 20_000, String(times));
});

for (const route of ["/cancel", "/refund", "/final_confirm"]) {
  test(`Follower that refuses a second qr ${route} of a payment says how it can be sent, under the payment's own pay_id`, async () => {
    const box = following((_, __, count) => (count === 1 ? lost : running), { service: "qr", route });
    const operation = { pay_id: "P-1", trans: "T-1", amount: 500 };
    assert.equal((await ended(box.ask(operation))).stands, "unknown after 0");
    // A till that writes the same otherwise must not give back twice.
    const { fault } = await ended(box.ask({ ...operation, amount: "500.0", rrn: "1" }));
    assert.equal(fault?.kind, "reused");
    const advice = "make sure how that one ended, and send another operation without Prefer: wait. Nothing was sent";
    assert.ok(fault?.message.endsWith(`: its pay_id is the payment's: ${advice}`), fault?.message);
    const isByAmount = route !== "/final_confirm";
    assert.equal(fault?.message.includes('another body with the pay_id "P-1" and this amount was sent at '), isByAmount);
    assert.equal(box.sent.length, 1);
  });
}

for (const route of ["/cancel", "/refund"]) {
  test(`Follower refuses a qr ${route} without an amount, by which several of one payment are told apart, unsent`, async () => {
    const box = following(() => running, { service: "qr", route });
    for (const more of [{}, { amount: null }, { amount: "five" }]) {
      const { fault } = await ended(box.ask({ pay_id: "P-1", trans: "T-1", ...more }));
      assert.equal(fault?.kind, "missing");
      assert.match(fault?.message ?? "", /: the body has no amount that is a number, .*: add amount\. Nothing was sent/);
    }
    assert.equal(box.sent.length, 0);
  });
}

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
  assert.equal((await ended(box.ask({ documentExtID: "D-1" }))).stands, "unprinted by /check_status after 1");
  assert.deepEqual(
    box.sent.map(({ route }) => route),
    ["/sale", "/check_status"],
  );
});

test("Follower can ask nothing about qr's refund: its success with the rrn ends it, and other answers prove nothing", async () => {
  const refund = { pay_id: "P-1", amount: 100 };
  const good = following(() => ({ status: "success", data: { rrn: "77" } }), { service: "qr", route: "/refund" });
  assert.equal((await ended(good.ask(refund))).stands, "approved after 0");
  for (const answer of [{ status: "error", code: 1 }, running]) {
    const open = following(() => answer, { service: "qr", route: "/refund" });
    assert.equal((await ended(open.ask(refund))).stands, "unknown after 0");
    const again = await ended(open.ask(refund));
    assert.equal(again.fault?.outcome, "unknown");
    assert.equal(open.sent.length, 1, "nor is it sent again");
  }
});

test("Follower follows 64 operations of a service at most, and refuses the next unsent", async () => {
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on("warning", warned);
  const box = following((route) => (route === "/sale" ? running : undefined));
  const asked = Array.from({ length: 65 }, (_, n) => box.ask({ ...sale, pay_id: `P-${n}` }));
  await time.advance(100);
  const { fault, stands } = await ended(asked[64] ?? Promise.reject(new Error("65 were asked")), 0);
  assert.equal(fault?.reason, "too-many-followed");
  assert.equal(fault?.outcome, "not-sent");
  assert.equal(fault?.retryAfterS, 5);
  assert.match(fault?.message ?? "", /Cannot follow \/sale: 64 operations of bank are followed, which is the limit/);
  assert.match(fault?.message ?? "", /Nothing was sent/);
  assert.equal(stands, "not followed", "it may be one that was sent before");
  assert.equal(sales(box), 64);
  box.follower.stop();
  await time.settle();
  process.off("warning", warned);
  assert.deepEqual(warnings, [], "so many that listen are no leak");
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
  unread.history.isWhole = false;
  assert.equal((await ended(unread.ask(sale))).stands, "approved by /check after 1, unguarded");
});

test("Follower calls nothing failed that wasn't sent while the journal couldn't tell whether it was sent before", async () => {
  for (const [isWhole, stands] of [
    [true, /^failed /],
    [false, /^unknown .*unguarded$/],
  ] as const) {
    const box = following(() => down);
    box.history.isWhole = isWhole;
    const { fault, stands: told } = await ended(box.ask(sale));
    assert.equal(fault?.outcome, "not-sent");
    assert.match(told, stands);
  }
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

test("Follower passes on what can't be followed as it came, and asks nothing about it", async () => {
  for (const route of ["/check", "/abort"]) {
    const box = following(() => running, { route });
    const { json, stands } = await ended(box.ask({ amount: 1 }));
    assert.deepEqual([json, stands], [running, "not followed"]);
    assert.deepEqual(
      box.sent.map((each) => each.route),
      [route],
    );
  }
});

test("Follower gives an operation's own answer where that ends it, though it asked about its key before", async () => {
  const refused = { status: "error", code: -29 };
  const cancel = following((route) => (route === "/cancel" ? refused : absent), { route: "/cancel" });
  const declined = await ended(cancel.ask({ pay_id: "P-1" }));
  assert.deepEqual([declined.json, declined.stands], [refused, "declined after 3"]);
  const closed = { status: "success", docStatus: 1, documentID: 13 };
  const refund = following((route) => (route === "/refund" ? closed : { status: "error", code: 9 }), {
    service: "fiscal",
    route: "/refund",
  });
  const done = await ended(refund.ask({ documentExtID: "D-1" }));
  assert.deepEqual([done.json, done.stands], [closed, "closed after 3"]);
  assert.deepEqual(refund.history.ends, ["fiscal /refund D-1 closed"]);
});

test("Follower answers the last it heard while nothing is proven of what was sent before, a fault too", async () => {
  const digest = bodyDigest([Buffer.from(JSON.stringify(sale))]);
  const past = { ...unanswered, sentMs: Date.now(), digest, end: undefined, isFresh: false, isLast: true };
  const silent = following(() => lost);
  silent.history.past.set("bank /sale P-1", past);
  const { fault, stands } = await ended(silent.ask(sale, 5_000));
  assert.deepEqual([fault?.kind, fault?.message], [lost.kind, lost.message]);
  assert.match(stands, /^unknown after [1-9]$/);
  const open = following(() => running);
  open.history.past.set("bank /sale P-1", past);
  const answered = await ended(open.ask(sale, 5_000));
  assert.deepEqual(answered.json, running);
  assert.match(answered.stands, /^pending by \/check after [1-9]$/);
});

test("Follower says what it knows of an operation that was sent before when no question was answered, or asked", async () => {
  const digest = bodyDigest([Buffer.from(JSON.stringify(sale))]);
  for (const [end, said] of [
    [undefined, /it was sent before, how it ended is not known, and no question about it was answered/],
    ["approved", /it was sent before, it ended as approved, and no question about it was answered/],
  ] as const) {
    const box = following(() => undefined);
    box.history.past.set("bank /sale P-1", { ...unanswered, sentMs: Date.now(), digest, end, isFresh: false, isLast: true });
    const asking = box.ask(sale, 1_000);
    const { fault, stands } = await ended(asking);
    assert.match(fault?.message ?? "", said);
    assert.match(fault?.message ?? "", /^Cannot show an answer to \/sale: /);
    assert.deepEqual([fault?.kind, fault?.reason], ["broken", "no-reply"]);
    assert.match(stands, new RegExp(`^${end ?? "unknown"} after 1$`));
  }
});

test("Follower asks one question about an operation whose end the journal has, and follows all else for three minutes", async () => {
  const digest = bodyDigest([Buffer.from(JSON.stringify(sale))]);
  for (const [end, least, most] of [
    ["approved", 1, 1],
    [undefined, 80, 130],
  ] as const) {
    const box = following(() => running);
    box.history.past.set("bank /sale P-1", { ...unanswered, sentMs: Date.now(), digest, end, isFresh: false, isLast: true });
    void box.ask(sale, 1_000);
    await time.advance(177_000);
    assert.equal(box.follower.isFollowed("/sale", "P-1"), end === undefined);
    await time.advance(20_000);
    assert.equal(box.follower.isFollowed("/sale", "P-1"), false);
    assert.ok(box.sent.length >= least && box.sent.length <= most, `${box.sent.length} questions`);
  }
});

test("Follower follows for longer than three minutes where its caller waits longer", async () => {
  const box = following(() => running);
  const asking = box.ask(sale, 400_000);
  assert.equal(await askedFor(399_000, asking), "still waiting");
  assert.match((await ended(asking)).stands, /^pending after /);
});

test("Follower knows what it follows by route and key, until that has ended", async () => {
  let isOver = false;
  const box = following((route) => (route === "/sale" || !isOver ? running : approved));
  const asking = box.ask(sale);
  await time.advance(100);
  assert.deepEqual(
    [
      box.follower.isFollowed("/sale", "P-1"),
      box.follower.isFollowed("/refund", "P-1"),
      box.follower.isFollowed("/sale", "P-2"),
    ],
    [true, false, false],
  );
  isOver = true;
  await ended(asking);
  assert.equal(box.follower.isFollowed("/sale", "P-1"), false);
});

test("Follower leaves no wait behind once it has answered", async () => {
  let waits = 0;
  const clock = {
    nowMs: monotonicClock.nowMs,
    sleep: async (ms: number, signal: AbortSignal | undefined) => {
      waits++;
      await monotonicClock.sleep(ms, signal);
      waits--;
    },
  };
  const box = following((route) => (route === "/sale" ? running : approved), { clock });
  const answered = await askedFor(1_500, box.ask(sale, 600_000));
  assert.ok(answered !== "still waiting");
  assert.equal(waits, 0);
});

test("Follower asks by another configuration from then on, of what it follows already as well", async () => {
  const box = following((route) => (route === "/sale" ? running : undefined));
  const asking = box.ask(sale);
  await time.advance(500);
  const { history } = box;
  const handler = async () => replyOf(approved);
  box.follower.use({ contract: contracts.bank, service: "bank", handler, merchantId: undefined, history, turns: new Turns() });
  assert.equal((await ended(asking)).stands, "approved by /check after 1");
  assert.equal(box.sent.length, 1);
});

test("Follower takes what the terminal on another device knows for proof, and not that it knows nothing", async () => {
  const box = following((route) => (route === "/sale" ? lost : undefined), { device: "old" });
  const asking = box.ask(sale, 120_000);
  await time.advance(500);
  const { history } = box;
  const options = { contract: contracts.bank, service: "bank", merchantId: undefined, history, turns: new Turns() };
  const answers = { now: absent as Answered };
  const handler = async () => replyOf(answers.now);
  box.follower.use({ ...options, handler, device: "new" });
  assert.equal(await askedFor(100_000, asking), "still waiting");
  answers.now = { status: "error", code: -20, data: { status: "ERROR" } };
  assert.equal(await askedFor(5_000, asking), "still waiting");
  answers.now = approved;
  assert.match((await ended(asking)).stands, /^approved by \/check/);
  const again = await ended(box.ask(sale));
  assert.match(again.stands, /^approved/);
});

test("Follower takes no answer for its own once another service sent its key over the same device, and sends no new one", async () => {
  const box = following((route) => (route === "/sale" ? lost : approved), { device: "A" });
  const asking = box.ask(sale, 20_000);
  await time.advance(500);
  box.history.othersKeyOver = "A";
  await time.advance(21_000);
  const { stands, json, fault } = await asking;
  assert.match(stands, /^unknown after \d+/);
  assert.deepEqual([json, fault?.outcome], [undefined, "unknown"]);
  const other = await ended(box.ask({ ...sale, pay_id: "P-2" }));
  assert.deepEqual([other.fault?.reason, other.stands, sales(box)], ["key-reused", "not followed", 1]);
});

test("Follower takes what differs from before a cancel for its end, unless another service sent its key since", async () => {
  const done = { status: "success", data: { status: "APPROVED", txn_id: "T-2" } };
  for (const [othersOrder, stands] of [
    [0, /^approved by \/check/],
    [9, /^unknown/],
  ] as const) {
    let isSent = false;
    const box = following(
      (route) => {
        if (route === "/check") return isSent ? done : approved;
        isSent = true;
        return lost;
      },
      { route: "/cancel", device: "A" },
    );
    box.history.othersKeyOver = "A";
    box.history.othersOrder = othersOrder;
    const asking = box.ask({ pay_id: "P-1" }, 60_000);
    await time.advance(65_000);
    assert.match((await asking).stands, stands);
  }
});

test("Follower takes no success of a terminal that may have another service's operation under the same key, nor shows it", async () => {
  for (const hasJournal of [true, false]) {
    const box = following((route) => (route === "/sale" ? lost : undefined), {
      device: "old",
      ...(hasJournal ? {} : { history: undefined }),
    });
    const history = hasJournal ? box.history : undefined;
    box.history.othersDevice = "new";
    const asking = box.ask(sale, 20_000);
    await time.advance(500);
    const options = { contract: contracts.bank, service: "bank", merchantId: undefined, history, turns: new Turns() };
    box.follower.use({ ...options, handler: async () => replyOf(approved), device: "new" });
    await time.advance(21_000);
    const { stands, json, fault } = await asking;
    assert.match(stands, /^unknown after \d+/);
    assert.deepEqual([json, fault?.outcome], [undefined, "unknown"]);
    // The one that it was sent to has it.
    box.follower.use({ ...options, handler: async () => replyOf(approved), device: "old" });
    assert.match((await ended(box.ask(sale, 60_000))).stands, /^approved by \/check/);
  }
});

test("Follower sends what waits for a question, though its line gets another device meanwhile", async () => {
  const turns = new Turns();
  void turns.take(() => new Promise<void>((resolve) => time.after(500, resolve)));
  const box = following(() => absent, { route: "/cancel", device: "old", turns });
  const asking = box.ask({ pay_id: "P-1" });
  await time.advance(100);
  const { history } = box;
  const sent: string[] = [];
  const handler = async ({ route }: Call) => {
    sent.push(route);
    return replyOf(route === "/check" ? absent : approved);
  };
  const options = { contract: contracts.bank, service: "bank", merchantId: undefined, history, turns };
  box.follower.use({ ...options, handler, device: "new" });
  await ended(asking);
  assert.ok(sent.includes("/cancel"), String(sent));
  assert.deepEqual(box.sent, [], "nothing went to the old one");
});

test("Follower sends nothing where it would count one terminal's answers for another's", async () => {
  const box = following(() => absent, { route: "/cancel", device: "old" });
  const asking = box.ask({ pay_id: "P-1" });
  await time.until(() => box.sent.length === 2, 10_000);
  await time.advance(takesMs);
  const { history } = box;
  const sent: string[] = [];
  // It has the sale, and denies it once, in passing.
  const handler = async ({ route }: Call) => replyOf(sent.push(route) === 1 ? absent : approved);
  const options = { contract: contracts.bank, service: "bank", merchantId: undefined, history, turns: new Turns() };
  box.follower.use({ ...options, handler, device: "new" });
  const { fault } = await ended(asking);
  assert.deepEqual([fault?.outcome, fault?.reason, sent], ["not-sent", "stopping", ["/check"]]);
});

test("Follower sends nothing by another contract than a call was made for, though its service gets that while it waits", async () => {
  const box = following(() => undefined, { route: "/refund" });
  const { history } = box;
  history.sent("bank", "/sale", "P-1", { sentMs: Date.now(), digest: "d", isFresh: false, isInFlight: true });
  const asking = box.ask({ pay_id: "P-1", amount: 1500, rrn: "9", trans: "P-1", pay_system: "X" }, 60_000);
  await time.advance(2_000);
  const sent: string[] = [];
  const handler = async ({ route }: Call) => {
    sent.push(route);
    return replyOf(approved);
  };
  box.follower.use({ contract: contracts.qr, service: "bank", handler, merchantId: undefined, history, turns: new Turns() });
  // What it waited for is answered.
  history.sent("bank", "/sale", "P-1", { sentMs: Date.now(), digest: "d", isFresh: false });
  const { fault, stands } = await ended(asking, 1_000);
  assert.deepEqual([fault?.outcome, fault?.reason, stands, sent], ["not-sent", "stopping", "not followed", []]);
  assert.match(fault?.message ?? "", /^Cannot send \/refund: its service's configuration has changed\. Nothing was sent/);
  const later = await ended(box.ask({ pay_id: "P-2", amount: 1500 }));
  assert.deepEqual([later.fault?.reason, sent], ["stopping", []], "it came by the former contract's port");
});

test("Follower holds a document for failed that the journal may have as sent only once that can't be on its way any more", async () => {
  const box = following((route) => ({ status: "error", code: route === "/sale" ? 4 : 9 }), { service: "fiscal" });
  box.history.isWhole = false;
  const asking = box.ask({ documentExtID: "D-1", items: [{}] }, 10_000);
  assert.match((await ended(asking)).stands, /^unknown/);
});

test("Follower goes by the device that an earlier process sent it over", async () => {
  for (const [device, stands] of [
    ["old", /^failed/],
    ["new", /^unknown/],
  ] as const) {
    const box = following(() => absent, { device });
    const digest = bodyDigest([Buffer.from(JSON.stringify(sale))]);
    box.history.sent("bank", "/sale", sale.pay_id, { sentMs: Date.now(), digest, isFresh: false, device: "old" });
    const answered = await ended(box.ask(sale, 60_000));
    assert.match(answered.stands, stands);
    if (device === "new")
      assert.match(answered.fault?.message ?? "", /^Cannot tell how \/sale ended: it was sent over another/);
  }
});

test("Follower sends a question of its own: without the key, for nobody that could leave, under an id that begins with the call's", async () => {
  const questions: Call[] = [];
  const handler = async (call: Call) => {
    if (call.route === "/sale") return replyOf(running);
    return replyOf(questions.push(call) < 2 ? running : approved);
  };
  const caller = new Presence();
  const box = following(() => running, { handler });
  const asking = box.ask(sale, 60_000, caller);
  caller.leave();
  await ended(asking);
  const [question, next] = questions;
  assert.deepEqual([question?.key, question?.contract], [undefined, "bank"]);
  assert.equal(question?.caller.gone, false);
  assert.match(String(question?.requestId), /^r-1\.\d+$/);
  assert.match(String(next?.requestId), /^r-1\.\d+$/);
  assert.notEqual(question?.requestId, next?.requestId, "each is an exchange of its own");
});

test("Follower tells its line whether anything was known under the key that it sends", async () => {
  const freshOf = async (route: "/sale" | "/cancel", known: Answered) => {
    const sent: Call[] = [];
    const handler = async (call: Call) => {
      sent.push(call);
      return replyOf(call.route === "/check" ? known : { status: "error", code: -29 });
    };
    await ended(following(() => running, { handler, route }).ask({ pay_id: "P-1" }));
    return sent.find((call) => call.route === route)?.isFresh;
  };
  assert.equal(await freshOf("/cancel", absent), true);
  assert.equal(await freshOf("/cancel", approved), undefined);
  assert.equal(await freshOf("/sale", absent), undefined, "nothing is asked before a sale");
});

test("Follower takes a bug in its handler for an unknown outcome, and says that it was one", async () => {
  const handler = () => Promise.reject(new Error("a bug"));
  const { fault } = await ended(following(() => running, { handler }).ask(sale, 1_000));
  assert.deepEqual([fault?.outcome, fault?.reason], ["unknown", "internal-error"]);
  assert.match(
    fault?.message ?? "",
    /^Cannot answer: internal error in posline, please report it \(Error: a bug\)\. .*: call \/check with the same pay_id$/,
  );
});

test("Follower keeps no view of its line's memory: what it answers later is what came then", async () => {
  const memory = Buffer.from(JSON.stringify(running));
  const handler = async (call: Call) =>
    call.route === "/sale" ? { ...replyOf(running), payload: [memory.subarray(0, 5), memory.subarray(5)] } : replyOf(running);
  const asking = following(() => running, { handler }).ask(sale, 5_000);
  await time.advance(1_000);
  memory.fill(0);
  assert.deepEqual((await ended(asking)).json, running);
});

test("Follower waits for the end of its sending, though its caller asked it to wait shorter", async () => {
  const box = following(async () => {
    await new Promise((resolve) => setTimeout(resolve, 20_000));
    return running;
  });
  const asking = box.ask(sale, 1_000);
  assert.equal(await askedFor(19_900, asking), "still waiting");
  const answered = await askedFor(200, asking);
  assert.ok(answered !== "still waiting");
  assert.deepEqual([answered.json, answered.stands], [running, "pending after 0"]);
});

test("Follower asks again after a question that wasn't sent: when it was said to, else after a second, then two", async () => {
  for (const [retryAfterS, waitsMs] of [
    [7, [7_010, 7_010]],
    [undefined, [1_010, 2_010]],
  ] as const) {
    const atMs: number[] = [];
    const refused = new Fault("unavailable", "Cannot send to line till: 16 calls are waiting", { retryAfterS });
    const box = following((route, _, count) => {
      if (route === "/sale") return running;
      atMs.push(time.nowMs);
      return count < 3 ? refused : approved;
    });
    assert.equal((await ended(box.ask(sale))).stands, "approved by /check after 3");
    const [first = 0, second = 0, third = 0] = atMs;
    assert.deepEqual([second - first, third - second], waitsMs);
  }
});

test("Follower answers the fault of a sending that didn't leave, never what stood under its key before", async () => {
  for (const known of [approved, absent]) {
    const box = following((route) => (route === "/cancel" ? down : known), { route: "/cancel" });
    const { fault, json, stands } = await ended(box.ask({ pay_id: "P-1" }));
    assert.deepEqual([fault?.outcome, fault?.reason, json], ["not-sent", "line-down", undefined]);
    assert.equal(stands, known === absent ? "failed after 3" : "failed after 1");
  }
});

test("Follower refuses a body whose name is a number that no question can hold, unsent", async () => {
  const { follower, sent } = following(() => running, { service: "qr", route: "/showqrcode" });
  const caller = new Presence();
  const call = {
    service: "qr",
    contract: "qr",
    route: "/showqrcode",
    requestId: "r",
    key: "P-1",
    caller,
    followMs: 1_000,
  } as const;
  for (const trans of ["1e20", "-1e999"]) {
    const body = [Buffer.from(`{"pay_id":"P-1","trans":${trans},"pay_system":"PALM"}`)];
    await assert.rejects(follower.follow({ ...call, body }), {
      kind: "malformed",
      message: /trans, .* number beyond 2\^53.*Nothing was sent/,
    });
  }
  assert.deepEqual(sent, []);
});

test("Follower refuses a body that names a field twice, unsent: it could ask about it by no key", async () => {
  const sent: string[] = [];
  const handler = async (call: Call) => {
    sent.push(call.route);
    return replyOf(running);
  };
  const { follower } = following(() => running, { handler });
  const body = [Buffer.from('{"pay_id":"P-1","amount":1500,"note":"a","note":"b"}')];
  const caller = new Presence();
  const call = { service: "bank", contract: "bank", route: "/sale", body, requestId: "r", key: "P-1", caller } as const;
  const asking = follower.follow({ ...call, followMs: 1_000 });
  await assert.rejects(
    asking,
    (thrown) => thrown instanceof Fault && thrown.outcome === "not-sent" && /field once/.test(thrown.message),
  );
  assert.deepEqual(sent, []);
});

for (const [service, route, key] of [
  ["bank", "/sale", "pay_id"],
  ["fiscal", "/sale", "documentExtID"],
] as const) {
  test(`Follower refuses a ${service} body that isn't UTF-8, unsent: it would be asked about by other bytes`, async () => {
    const { follower, sent } = following((path) => (path === "/sale" ? lost : absent), { service });
    // A name in Windows-1251, as a till may have it where nothing is checked.
    const json = Buffer.from(`{"${key}":"\xca\xe0\xf1\xf1\xe0-1","amount":1500}`, "latin1");
    const form = `data=${encodeURIComponent(json.toString("base64"))}&sign=c2lnbg%3D%3D`;
    const body = [service === "fiscal" ? Buffer.from(form) : json];
    const caller = new Presence();
    const call = { service, contract: service, route, body, requestId: "r", key: "\uFFFD-1", caller } as const;
    await assert.rejects(follower.follow({ ...call, followMs: 60_000 }), {
      kind: "malformed",
      message: /^Cannot follow \/sale: its JSON is not UTF-8: .*Nothing was sent/,
    });
    assert.deepEqual(sent, []);
  });
}

test("Follower never says of what was sent that it wasn't, because a question about it wasn't", async () => {
  for (const [service, route] of [
    ["qr", "/showqrcode"],
    ["bank", "/sale"],
  ] as const) {
    let isDown = false;
    const box = following((asked) => (!isDown && asked === route ? lost : down), { service, route });
    void box.ask(sale, 1_000);
    await time.advance(300_000);
    isDown = true;
    const { fault, stands } = await ended(box.ask(sale, 5_000));
    assert.deepEqual([fault?.outcome, fault?.reason], ["unknown", "no-reply"]);
    assert.match(stands, /^unknown after /);
    assert.equal(box.sent.filter((each) => each.route === route).length, 1);
  }
});

test("Follower without a journal calls nothing failed that wasn't sent, for it may have been before", async () => {
  let isDown = false;
  const box = following((route) => (isDown ? down : route === "/sale" ? lost : running), { history: undefined });
  void box.ask(sale, 1_000);
  await time.advance(300_000);
  isDown = true;
  const { fault, stands } = await ended(box.ask(sale, 5_000));
  assert.deepEqual([fault?.outcome, stands], ["not-sent", "unknown after 0, unguarded"]);
});

test("Follower answers a refund whose line is down as soon as a sale, though it would ask first", async () => {
  for (const route of ["/sale", "/refund"]) {
    const box = following(() => down, { route });
    const asking = box.ask({ pay_id: "R-1", amount: 1 }, 10_000);
    await time.advance(1_000);
    const { fault, stands } = await asking;
    assert.deepEqual([fault?.outcome, fault?.reason], ["not-sent", "line-down"]);
    assert.match(stands, /^failed after [01]$/);
  }
});

test("Follower never takes for undone what the terminal has said that it has, though it knows of none later", async () => {
  let begun = true;
  const box = following((route) => (route === "/sale" || begun ? running : absent));
  assert.match((await ended(box.ask(sale, 10_000))).stands, /^pending/);
  begun = false;
  // Beyond the three minutes for which it is followed, it is taken up from what the journal has.
  await time.advance(200_000);
  for (let again = 0; again < 2; again++) {
    assert.match((await ended(box.ask(sale, 120_000))).stands, /^pending by \/check/);
    await time.advance(200_000);
  }
  assert.equal(sales(box), 1);
  assert.deepEqual(box.history.ends, []);
});

test("Follower takes an accepted document that is gone for undone only where it was aborted", async () => {
  const receipt = { documentExtID: "F-1", items: [] };
  for (const [isStopped, stands] of [
    [false, /^pending/],
    [true, /^failed/],
  ] as const) {
    const box = following(() => ({ status: "error", code: 9 }), { service: "fiscal" });
    const form = `data=${encodeURIComponent(Buffer.from(JSON.stringify(receipt)).toString("base64"))}&sign=c2lnbg%3D%3D`;
    const digest = bodyDigest([Buffer.from(form)]);
    const past = { ...unanswered, sentMs: Date.now(), digest, isFresh: false, isAccepted: true };
    box.history.sent("fiscal", "/sale", "F-1", past);
    box.history.past.set("fiscal /sale F-1", { ...past, end: undefined, isLast: true, isStopped });
    assert.match((await ended(box.ask(receipt, 60_000))).stands, stands);
  }
});

test("Follower takes note of an abort while it asks", async () => {
  const receipt = { documentExtID: "F-2", items: [] };
  let isAborted = false;
  const box = following(
    (route) => (isAborted ? { status: "error", code: 9 } : route === "/sale" ? { status: "error", code: 44 } : running),
    {
      service: "fiscal",
    },
  );
  const asking = box.ask(receipt, 60_000);
  await time.advance(10_000);
  isAborted = true;
  const past = box.history.past.get("fiscal /sale F-2");
  assert.ok(past);
  box.history.past.set("fiscal /sale F-2", { ...past, isStopped: true });
  const answered = await askedFor(40_000, asking);
  assert.ok(answered !== "still waiting");
  assert.match(answered.stands, /^failed by \/check_status/);
});

test("Follower asks about a code by the name that its answer gave, however long ago, and calls no other name's failure its end", async () => {
  const digest = bodyDigest([Buffer.from(JSON.stringify(code))]);
  const failed = { status: "error", code: 1 };
  for (const [learned, answer, stands] of [
    [{ learned: "T-9" }, { status: "success", data: { rrn: "1" } }, /^approved/],
    [{ learned: "T-9" }, failed, /^declined/],
    // An earlier code may be paid.
    [{ learned: "T-9", hasOtherNames: true }, failed, /^pending/],
  ] as const) {
    const box = following((_, __, count) => (count === 1 ? { status: "success", data: {} } : answer), {
      service: "qr",
      route: "/showqrcode",
    });
    const past = { ...unanswered, sentMs: Date.now(), digest, end: undefined, isFresh: false, isLast: true };
    box.history.past.set("qr /showqrcode Q-1", { ...past, isAccepted: true, ...learned });
    assert.match((await ended(box.ask(code, 60_000))).stands, stands);
    assert.equal(box.sent[0]?.body, '{"pay_id":"Q-1","trans":"T-9","pay_system":"A"}');
  }
});

const code = { pay_id: "Q-1", amount: 100, currency: "944", currency_name: "AZN", pay_system: "A" };
const named = { status: "success", data: { trans: "T-1" } };
const paid = { status: "success", data: { rrn: "1" } };

test("Follower gives the trans that the answer to /showqrcode gave, with each word of the payment, and none of what was never answered", async () => {
  for (const [start, question, stands, trans] of [
    [named, paid, /^approved/, "T-1"],
    [named, running, /^pending/, "T-1"],
    [named, { status: "error", code: 1 }, /^declined/, "T-1"],
    [named, lost, /^pending/, "T-1"],
    [running, paid, /^approved/, "Q-1"],
    [lost, running, /^pending/, "Q-1"],
    [lost, paid, /^approved/, "Q-1"],
    [lost, lost, /^unknown/, undefined],
    [lost, { status: "error", code: 1 }, /^unknown/, undefined],
    [down, running, /^failed/, undefined],
  ] as const) {
    const box = following((route) => (route === "/showqrcode" ? start : question), { service: "qr", route: "/showqrcode" });
    const answered = await ended(box.ask(code, 5_000));
    assert.match(answered.stands, stands);
    assert.equal(answered.trans, trans, answered.stands);
  }
});

test("Follower gives the trans that the journal has, whatever is answered by now, and of several none until one is paid", async () => {
  const digest = bodyDigest([Buffer.from(JSON.stringify(code))]);
  for (const [known, question, trans] of [
    [{ learned: "T-9" }, running, "T-9"],
    [{ learned: "T-9" }, lost, "T-9"],
    [{ learned: "T-9", end: "approved" }, lost, "T-9"],
    [{ learned: "T-9", hasOtherNames: true }, running, undefined],
    [{ learned: "T-9", hasOtherNames: true }, lost, undefined],
    [{ learned: "T-9", hasOtherNames: true, end: "approved" }, lost, undefined],
    [{ learned: "T-9", hasOtherNames: true }, paid, "T-9"],
    [{}, lost, undefined],
  ] as const) {
    const box = following(() => question, { service: "qr", route: "/showqrcode" });
    const past = { ...unanswered, sentMs: Date.now(), digest, end: undefined, isFresh: false, isLast: true };
    box.history.past.set("qr /showqrcode Q-1", { ...past, isAccepted: true, ...known });
    assert.equal((await ended(box.ask(code, 5_000))).trans, trans, JSON.stringify([known, question]));
  }
});

test("Follower gives no trans while the same code was shown once more since, without the header", async () => {
  let isPaid = false;
  const box = following((route) => (route === "/showqrcode" ? named : isPaid ? paid : running), {
    service: "qr",
    route: "/showqrcode",
  });
  const asking = box.ask(code, 60_000);
  await time.advance(5_000);
  const past = box.history.past.get("qr /showqrcode Q-1");
  assert.ok(past);
  box.history.past.set("qr /showqrcode Q-1", { ...past, learned: "T-2", hasOtherNames: true });
  assert.equal((await ended(box.ask(code, 1_000), 2_000)).trans, undefined);
  isPaid = true;
  const { stands, trans } = await ended(asking);
  assert.match(stands, /^approved/);
  assert.equal(trans, "T-1", "by which it is paid");
});

test("Follower gives no trans of a code whose earlier showing may be missing from the journal, until it is paid", async () => {
  let isPaid = false;
  const box = following((route) => (route === "/showqrcode" ? named : isPaid ? paid : running), {
    service: "qr",
    route: "/showqrcode",
  });
  box.history.isWhole = false;
  assert.equal((await ended(box.ask(code, 5_000), 6_000)).trans, undefined);
  isPaid = true;
  assert.equal((await ended(box.ask(code, 60_000))).trans, "T-1");
});

test("Follower takes a gateway's word for a code that it lost for nothing: its success is neither begun nor a name", async () => {
  const second = { pay_id: "Q-2", amount: 100, currency: "944", currency_name: "AZN", pay_system: "A" };
  const doubt = { status: "success", message: "No valid answer to /showqrcode: the upstream's is lost" };
  for (const [checks, stands] of [
    [[doubt, doubt], /^unknown/],
    [[doubt, { status: "error", code: 1 }], /^unknown/],
    [[doubt, { status: "success" }], /^pending/],
    [[doubt, { status: "success" }, { status: "success", data: { rrn: "7" } }], /^approved/],
  ] as const) {
    const box = following((route, _, count) => (route === "/check" ? (checks[count - 1] ?? checks.at(-1)) : doubt), {
      service: "qr",
      route: "/showqrcode",
    });
    const { stands: got, json } = await ended(box.ask(second, 10_000));
    assert.match(got, stands);
    if (!got.startsWith("approved")) assert.deepEqual(json, doubt, "as without the header");
    assert.equal(box.sent.filter(({ route }) => route === "/showqrcode").length, 1);
  }
});

test("Follower says failed a second after the terminal's own refusal, and 30 s after one that a gateway may have made", async () => {
  for (const [service, route, body, code, none, ownS] of [
    ["fiscal", "/deposit", { documentExtID: "D-1", amount: 100 }, 4, 9, 2],
    ["fiscal", "/withdraw", { documentExtID: "D-1", amount: 100 }, 23, 9, 2],
    ["bank", "/sale", { pay_id: "P-1", amount: 100 }, -21, -15, 2],
    ["fiscal", "/deposit", { documentExtID: "D-1", amount: 100 }, 5, 9, 30],
    ["bank", "/sale", { pay_id: "P-1", amount: 100 }, -3, -15, 30],
  ] as const) {
    const options = { service, route };
    const box = following((asked) => ({ status: "error", code: asked === route ? code : none }), options);
    const asking = box.ask(body);
    if (ownS === 30) assert.equal(await askedFor(29_000, asking), "still waiting");
    const answered = await askedFor(ownS === 30 ? 10_000 : 2_000, asking);
    assert.ok(answered !== "still waiting", `${route} ${code}`);
    assert.match(answered.stands, ownS === 30 ? /^failed by / : /^failed by \/\w+ after 1$/);
    assert.equal(box.sent.filter((each) => each.route === route).length, 1);
  }
});

test("Follower asks about a cancel's sale as the sale named itself, and not at all where the journal can't tell that", async () => {
  for (const [ask, questions] of [
    [{}, ['{"pay_id":"7"}']],
    [{ pay_id: 7 }, ['{"pay_id":7}']],
    [undefined, []],
  ] as const) {
    const box = following((route) => (route === "/check" ? approved : running), { route: "/cancel" });
    const past = { ...unanswered, ask, sentMs: Date.now(), digest: "other", end: undefined, isFresh: false, isLast: true };
    box.history.past.set("bank /sale 7", past);
    void box.ask({ pay_id: "7" }, 10_000);
    await time.advance(2_000);
    const asked = box.sent.filter(({ route }) => route === "/check").map(({ body }) => body);
    // The cancel's own questions come behind.
    assert.deepEqual(asked.slice(0, questions.length), questions);
    assert.equal(asked[questions.length], '{"pay_id":"7"}');
    assert.deepEqual(box.history.ends, questions.length === 0 ? [] : ["bank /sale 7 approved"]);
  }
});

test("Follower sends a cancel not later than its callers wait for what it refers to, and says then that it wasn't sent", async () => {
  for (const waitMs of [0, 5_000]) {
    const box = following(() => running, { route: "/cancel" });
    const answered = await askedFor(waitMs + 3_000, box.ask({ pay_id: "P-1" }, waitMs));
    assert.ok(answered !== "still waiting");
    assert.match(answered.stands, /^failed after \d+$/);
    assert.deepEqual([answered.fault?.outcome, answered.fault?.reason], ["not-sent", "waited-too-long"]);
    assert.match(
      answered.fault?.message ?? "",
      /^Cannot send \/cancel: what stands under its pay_id has not ended yet: send the same/,
    );
    await time.advance(300_000);
    assert.equal(box.sent.filter(({ route }) => route === "/cancel").length, 0);
  }
  // One that waits longer keeps it waiting.
  const joined = following((_, __, count) => (count < 20 ? running : approved), { route: "/cancel" });
  void joined.ask({ pay_id: "P-1" }, 5_000);
  const longer = joined.ask({ pay_id: "P-1" }, 120_000);
  await time.advance(30_000);
  await ended(longer);
  assert.equal(joined.sent.filter(({ route }) => route === "/cancel").length, 1);
});

test("Follower sends for the caller who waits, where the first has left before the sending", async () => {
  const [first, second] = [new Presence(), new Presence()];
  const callers: Presence[] = [];
  let isOver = false;
  const handler = async ({ route, caller }: Call) => {
    if (route === "/cancel") callers.push(caller);
    return replyOf(route === "/check" && !isOver ? running : approved);
  };
  const box = following(() => running, { route: "/cancel", handler });
  void box.ask({ pay_id: "P-1" }, 60_000, first);
  await time.advance(2_000);
  first.leave();
  await time.advance(2_000);
  void box.ask({ pay_id: "P-1" }, 60_000, second);
  isOver = true;
  await time.advance(10_000);
  assert.deepEqual(
    callers.map(({ gone }) => gone),
    [false],
  );
});

test("Follower sends for the first caller, who still waits, though one that came later has left", async () => {
  const [first, second] = [new Presence(), new Presence()];
  const callers: Presence[] = [];
  let isOver = false;
  const handler = async ({ route, caller }: Call) => {
    if (route === "/cancel") callers.push(caller);
    return replyOf(route === "/check" && !isOver ? running : approved);
  };
  const box = following(() => running, { route: "/cancel", handler });
  for (const caller of [first, second]) {
    void box.ask({ pay_id: "P-1" }, 60_000, caller);
    await time.advance(2_000);
  }
  second.leave();
  isOver = true;
  await time.advance(10_000);
  assert.deepEqual(
    callers.map(({ gone }) => gone),
    [false],
  );
});

test("Follower that is stopped says of what never began that it wasn't sent", async () => {
  const box = following(() => running);
  box.follower.stop();
  const { fault, stands } = await ended(box.ask(sale));
  assert.deepEqual([fault?.outcome, fault?.reason], ["not-sent", "stopping"]);
  assert.match(fault?.message ?? "", /^Cannot send \/sale: posline is shutting down\. Nothing was sent/);
  assert.equal(stands, "failed after 0");
  assert.equal(box.sent.length, 0);
});

test("Follower answers a cancel that wasn't sent with no other operation's success, however its waiting ended", async () => {
  const unsent = (answered: { fault?: Fault; json?: unknown; stands: string }, reason: string, words: RegExp) => {
    assert.deepEqual([answered.fault?.outcome, answered.fault?.reason, answered.json], ["not-sent", reason, undefined]);
    assert.match(answered.fault?.message ?? "", words);
    assert.match(answered.stands, /^failed /);
  };
  const long = following(() => running, { route: "/cancel" });
  unsent(await ended(long.ask({ pay_id: "P-1" }, 200_000), 260_000), "waited-too-long", /has not ended yet/);
  const silent = following(() => lost, { route: "/cancel" });
  unsent(
    await ended(silent.ask({ pay_id: "P-1" }, 5_000)),
    "waited-too-long",
    /is not known, since the terminal did not answer/,
  );
  const unplugged = following((_, __, count) => (count < 3 ? running : down), { route: "/cancel" });
  unsent(await ended(unplugged.ask({ pay_id: "P-1" }, 60_000)), "line-down", /it is down/);
  const stopped = following(() => running, { route: "/cancel" });
  const asking = stopped.ask({ pay_id: "P-1" }, 60_000);
  await time.advance(3_000);
  stopped.follower.stop();
  unsent(await ended(asking), "stopping", /posline is shutting down/);
  for (const { sent } of [long, silent, unplugged, stopped]) assert.ok(!sent.some(({ route }) => route === "/cancel"));
});

test("Follower notes that the terminal has it as soon as a question says so, and not of what may be another's", async () => {
  const box = following((route) => (route === "/sale" ? lost : running));
  void box.ask(sale, 60_000);
  await time.advance(5_000);
  assert.equal(box.history.find("bank", "/sale", "P-1")?.isAccepted, true);
  const cancel = following(() => running, { route: "/cancel" });
  const digest = bodyDigest([Buffer.from(JSON.stringify({ pay_id: "P-1" }))]);
  cancel.history.sent("bank", "/cancel", "P-1", { sentMs: Date.now(), digest, isFresh: false });
  assert.match((await ended(cancel.ask({ pay_id: "P-1" }, 5_000))).stands, /^unknown/);
  assert.equal(cancel.history.find("bank", "/cancel", "P-1")?.isAccepted, false);
});

test("Follower waits for the answer to the same call without the header before it asks about it, and no longer than its caller", async () => {
  const box = following(() => approved);
  const digest = bodyDigest([Buffer.from(JSON.stringify(sale))]);
  const past = { ...unanswered, sentMs: Date.now(), digest, end: undefined, isFresh: false, isLast: true };
  box.history.past.set("bank /sale P-1", { ...past, isInFlight: true });
  const short = await ended(box.ask(sale, 2_000));
  assert.match(
    short.fault?.message ?? "",
    /^Cannot show an answer to \/sale: it was sent before, and its answer is still awaited$/,
  );
  assert.equal(short.stands, "unknown after 0");
  const long = box.ask(sale, 60_000);
  await time.advance(5_000);
  assert.deepEqual(box.sent, []);
  box.history.past.set("bank /sale P-1", { ...past, isAccepted: true });
  assert.equal((await ended(long)).stands, "approved by /check after 1");
});

test("Follower answers a refund that wasn't sent with no other document's progress", async () => {
  const refund = { documentExtID: "F-3", items: [] };
  const busy = { status: "error", code: 44 };
  for (const [waitMs, stops, reason] of [
    [200_000, false, "waited-too-long"],
    [60_000, true, "stopping"],
  ] as const) {
    const box = following(() => busy, { service: "fiscal", route: "/refund" });
    const asking = box.ask(refund, waitMs);
    await time.advance(3_000);
    if (stops) box.follower.stop();
    const { fault, json } = await ended(asking);
    assert.deepEqual([fault?.reason, json], [reason, undefined]);
  }
});

/** A terminal at one of two devices that a configuration leads to, and how it is asked. */
function terminalAt(
  box: Following,
  device: string,
  contract: Contract,
  answerAfterMs: number,
  answer: (call: Call) => Answered,
): FollowerOptions {
  const handler = async (call: Call) => {
    const { key, body, isFresh = false } = call;
    if (key !== undefined) {
      call.onSent?.(
        box.history.sent(contract.service, call.route, key, { sentMs: Date.now(), digest: bodyDigest(body), isFresh, device }),
      );
    }
    await new Promise((resolve) => setTimeout(resolve, answerAfterMs));
    const answered = answer(call);
    if (answered instanceof Fault) throw answered;
    return replyOf(answered);
  };
  const service = contract.service;
  return { contract, service, handler, merchantId: "M", history: box.history, device, turns: new Turns() };
}

test("Follower takes a question's answer as that of the device that it was asked over, whichever its line has by then", async () => {
  const box = following(() => running, { service: "fiscal", device: "A" });
  const open = { status: "error", code: 8 };
  const first = terminalAt(box, "A", contracts.fiscal, takesMs, ({ route }) =>
    route === "/sale" ? { status: "error", code: 23 } : open,
  );
  const second = terminalAt(box, "B", contracts.fiscal, 3_000, () => ({ status: "error", code: 9 }));
  box.follower.use(first);
  const asking = box.ask({ documentExtID: "D-1", items: [] }, 120_000);
  await time.advance(45_000);
  box.follower.use(second);
  await time.advance(1_700);
  box.follower.use(first);
  await time.advance(80_000);
  assert.match((await asking).stands, /^(unknown|pending)/);
});

test("Follower sends no cancel by what another device knew under its key: it asks anew", async () => {
  const box = following(() => running, { route: "/cancel", device: "A" });
  const routes: string[] = [];
  const first = terminalAt(box, "A", contracts.bank, 3_000, () => absent);
  const second = terminalAt(box, "B", contracts.bank, takesMs, ({ route }) => {
    routes.push(route);
    return route === "/cancel" ? lost : approved;
  });
  box.follower.use(first);
  const asking = box.ask({ pay_id: "A-1", rrn: "1", amount: 1500 }, 60_000);
  await time.advance(1_000);
  box.follower.use(second);
  await time.advance(70_000);
  const { stands } = await asking;
  assert.doesNotMatch(stands, /^approved/);
  assert.deepEqual(routes.slice(0, 2), ["/check", "/cancel"]);
});

test("Follower takes no end of another device for a refund's: under its key there may be its sale", async () => {
  const box = following(() => running, { route: "/refund", device: "A" });
  let isDone = false;
  const first = terminalAt(box, "A", contracts.bank, takesMs, ({ route }) => {
    if (route === "/refund") return lost;
    return isDone ? { status: "success", data: { status: "APPROVED", txn_id: "T-2" } } : absent;
  });
  const asked: string[] = [];
  const second = terminalAt(box, "B", contracts.bank, takesMs, ({ route }) => {
    asked.push(route);
    return approved;
  });
  box.follower.use(first);
  const refund = { pay_id: "A-1", rrn: "1", amount: 1500 };
  const asking = box.ask(refund, 60_000);
  await time.until(() => box.history.find("bank", "/refund", "A-1") !== undefined, 30_000);
  await time.advance(100);
  box.follower.use(second);
  await time.advance(60_000);
  assert.match((await asking).stands, /^unknown/);
  assert.ok(asked.length > 3 && asked.every((route) => route === "/check"), String(asked));
  isDone = true;
  box.follower.use(first);
  assert.match((await ended(box.ask(refund))).stands, /^approved by \/check/);
});

test("Follower asks no other contract's terminal about an operation, and tells no end by it", async () => {
  const code = { pay_id: "Q-1", amount: 100, currency: "1", currency_name: "EUR", pay_system: "P" };
  const box = following(() => running, { service: "qr", route: "/showqrcode" });
  const trans = { status: "success", data: { trans: "T-1" } };
  box.follower.use(terminalAt(box, "A", contracts.qr, takesMs, ({ route }) => (route === "/showqrcode" ? trans : running)));
  const asking = box.ask(code, 20_000);
  await time.advance(5_000);
  let asked = 0;
  const other = terminalAt(box, "A", contracts.bank, takesMs, () => {
    asked++;
    return absent;
  });
  box.follower.use(other);
  await time.advance(20_000);
  assert.match((await asking).stands, /^pending/);
  assert.equal(asked, 0);
});

test("Follower signs its questions by the configuration in force", async () => {
  const box = following(() => ({ status: "error", code: 44 }), { service: "fiscal", merchantId: "WRONG" });
  const asking = box.ask({ documentExtID: "D-1", items: [] }, 120_000);
  await time.advance(5_000);
  const sign = encodeURIComponent(signOf(Buffer.from('{"documentExtID":"D-1"}').toString("base64"), "M"));
  const closed = { status: "success", code: 0, docStatus: 1, documentExtID: "D-1" };
  const isSigned = (call: Call) => Buffer.concat(call.body).toString().endsWith(`sign=${sign}`);
  box.follower.use(
    terminalAt(box, "A", contracts.fiscal, takesMs, (call) => (isSigned(call) ? closed : { status: "error", code: 1 })),
  );
  await time.advance(10_000);
  assert.match((await asking).stands, /^closed/);
});

test("Follower tells a word only once it is recorded, and says that repetitions aren't recognised where it can't be", async () => {
  for (const isRecorded of [true, false]) {
    const box = following((route) => (route === "/sale" ? running : approved));
    let recorded = () => {};
    box.history.recorded = () =>
      new Promise<void>((resolve) => {
        recorded = () => {
          const past = box.history.find("bank", "/sale", "P-1");
          if (past !== undefined) box.history.past.set("bank /sale P-1", { ...past, isRecorded });
          resolve();
        };
      });
    const asking = box.ask(sale);
    assert.equal(await askedFor(4_000, asking), "still waiting");
    assert.deepEqual(box.history.ends, ["bank /sale P-1 approved"]);
    recorded();
    const { stands } = await ended(asking);
    assert.equal(stands, isRecorded ? "approved by /check after 1" : "approved by /check after 1, unguarded");
  }
});

test("Follower shows no other operation's end beside a word that is open", async () => {
  // The sale was approved; its cancel, under the same key, is lost, and what the terminal says is about the sale.
  const sold = { status: "success", data: { status: "APPROVED", txn_id: "T-SALE" } };
  const box = following((route) => (route === "/cancel" ? lost : sold), { route: "/cancel" });
  const first = await ended(box.ask(sale, 10_000));
  assert.match(first.stands, /^unknown/);
  const again = await ended(box.ask(sale, 10_000));
  assert.match(again.stands, /^unknown/);
  assert.equal(again.json, undefined);
  assert.equal(again.fault?.outcome, "unknown");
});

/** How many objects of a class there are after a collection of garbage. */
const living = (of: new (...args: never[]) => object) => queryObjects(of, { format: "count" });

test("Follower keeps nothing of the callers that it has answered, while what they asked about goes on", async () => {
  class Till extends Presence {}
  const box = following(() => running);
  for (let asked = 0; asked < 50; asked++) assert.match((await ended(box.ask(sale, 0, new Till()), 100)).stands, /^pending/);
  // The first one's call is the operation's.
  assert.ok(living(Till) <= 1, `${living(Till)} are kept`);
  assert.equal(sales(box), 1);
});

test("Follower joins no signals with that of its own end, since Node 20 keeps a reference for each joint as long as that lives", async (t) => {
  const any = t.mock.method(AbortSignal, "any");
  const box = following((route) => (route === "/sale" ? running : approved));
  for (let asked = 0; asked < 3; asked++) assert.match((await ended(box.ask(sale))).stands, /^approved/);
  assert.equal(any.mock.callCount(), 0);
});
