import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { askAgain, checkFirst, Fault } from "../../src/core/fault.ts";
import { bodyDigest } from "../../src/envelope/body-digest.ts";
import { Turns } from "../../src/follow/turns.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { approved, down, following, lost, running, takesMs, unanswered } from "./following.ts";

/** Tests src/follow/operation.ts: what an operation's callers are answered. */

const time = new VirtualTime();
after(() => time.restore());
afterEach(() => time.forgetTimers());

const sale = { pay_id: "P-1", amount: 1, currency_name: "EUR" };

test("Operation answers each of its callers with the recorded end, whatever its question finds now", async () => {
  const code = { pay_id: "Q-1", amount: 100, currency: "1", currency_name: "EUR", pay_system: "P" };
  const box = following(() => ({ status: "error", code: 1 }), { service: "qr", route: "/showqrcode" });
  const digest = bodyDigest([Buffer.from(JSON.stringify(code))]);
  const past = { ...unanswered, sentMs: Date.now(), digest, isFresh: false, isLast: true, isAccepted: true, learned: "T-1" };
  box.history.past.set("qr /showqrcode Q-1", { ...past, end: "approved" });
  const asking = [box.ask(code), box.ask(code)];
  await time.advance(10_000);
  const words = (await Promise.all(asking)).map(({ stands }) => stands.split(" ")[0]);
  assert.deepEqual(words, ["approved", "approved"]);
});

test("Operation shows no failure of a code beside an open word: it may be another code's, or of one that was never shown", async () => {
  const code = { pay_id: "Q-1", amount: 100, currency: "1", currency_name: "EUR", pay_system: "P" };
  const digest = bodyDigest([Buffer.from(JSON.stringify(code))]);
  const past = { ...unanswered, sentMs: Date.now(), digest, end: undefined, isFresh: false, isLast: true };
  for (const known of [{}, { isAccepted: true, learned: "T-1", hasOtherNames: true }]) {
    const box = following(() => ({ status: "error", code: 1 }), { service: "qr", route: "/showqrcode" });
    box.history.past.set("qr /showqrcode Q-1", { ...past, ...known });
    const asking = box.ask(code, 5_000);
    await time.advance(6_000);
    const { json, fault, stands } = await asking;
    assert.match(stands, /^(unknown|pending) after \d+$/);
    assert.deepEqual([json, fault?.outcome], [undefined, "unknown"]);
    assert.match(fault?.message ?? "", /how it ended is not known, and what was answered about it may be about another one/);
  }
});

test("Operation takes a refusal for no end while the journal can't say what was sent before, but 'there is none' for one", async () => {
  const refused = { status: "error", code: -29 };
  for (const [answer, found, word] of [
    [refused, refused, "unknown after"],
    [refused, { status: "error", code: -15 }, "failed by /check"],
    [refused, approved, "approved by /check"],
    [lost, approved, "approved by /check"],
    // It wasn't sent, and its till is told so at once.
    [down, approved, "unknown after 0"],
  ] as const) {
    const box = following((route) => (route === "/sale" ? answer : found));
    box.history.isWhole = false;
    const asking = box.ask(sale, 60_000);
    await time.advance(70_000);
    const { stands } = await asking;
    assert.match(stands, new RegExp(`^${word}.*unguarded$`));
  }
});

test("Operation answers with nothing that was asked before its sending once that is out", async () => {
  const box = following((route) => (route === "/check" ? approved : undefined), { route: "/cancel" });
  const asking = box.ask(sale, 60_000);
  await time.advance(5_000);
  box.follower.stop();
  await time.advance(takesMs);
  const { json, fault } = await asking;
  assert.deepEqual([json, fault?.outcome], [undefined, "unknown"]);
});

test("Operation ends as unprinted where its document's answer said so, however long ago", async () => {
  const receipt = { documentExtID: "D-1", items: [{}] };
  const form = `data=${encodeURIComponent(Buffer.from(JSON.stringify(receipt)).toString("base64"))}&sign=c2lnbg%3D%3D`;
  const box = following(() => ({ status: "success", code: 0, docStatus: 1, documentID: 7 }), { service: "fiscal" });
  const past = { ...unanswered, sentMs: Date.now(), digest: bodyDigest([Buffer.from(form)]), isFresh: false, isLast: true };
  box.history.past.set("fiscal /sale D-1", { ...past, end: undefined, isAccepted: true, isUnprinted: true });
  const asking = box.ask(receipt);
  await time.advance(10_000);
  assert.match((await asking).stands, /^unprinted/);
});

test("Operation shows no answer beside a good end that doesn't say it", async () => {
  const receipt = { documentExtID: "D-1", items: [{}] };
  const form = `data=${encodeURIComponent(Buffer.from(JSON.stringify(receipt)).toString("base64"))}&sign=c2lnbg%3D%3D`;
  const open = { status: "success", code: 0, docStatus: 0, documentID: 7, documentExtID: "D-1" };
  for (const answer of [open, { status: "error", code: 9 }]) {
    const box = following(() => answer, { service: "fiscal" });
    const past = { ...unanswered, sentMs: Date.now(), digest: bodyDigest([Buffer.from(form)]), isFresh: false, isLast: true };
    box.history.past.set("fiscal /sale D-1", { ...past, end: "closed", isAccepted: true });
    const asking = box.ask(receipt);
    await time.advance(10_000);
    const { stands, json, fault } = await asking;
    assert.match(stands, /^closed/);
    assert.deepEqual([json, fault?.outcome], [undefined, "unknown"]);
  }
});

test("Operation shows no answer that names another key, whether an end is known or not", async () => {
  for (const end of ["approved", undefined] as const) {
    const box = following(() => ({ ...approved, pay_id: "P-2" }));
    const digest = bodyDigest([Buffer.from(JSON.stringify(sale))]);
    const past = { ...unanswered, sentMs: Date.now(), digest, isFresh: false, isLast: true, isAccepted: false };
    box.history.past.set("bank /sale P-1", { ...past, end });
    const asking = box.ask(sale, 5_000);
    await time.advance(20_000);
    const { stands, json, fault } = await asking;
    assert.match(stands, new RegExp(`^${end ?? "unknown"}`));
    assert.deepEqual([json, fault?.outcome], [undefined, "unknown"]);
    assert.match(fault?.message ?? "", /names another operation/);
  }
});

test("Operation shows an answer that has its key as a number, however long", async () => {
  const key = "12345678901234567890";
  const long = { ...sale, pay_id: key };
  const digest = bodyDigest([Buffer.from(JSON.stringify(long))]);
  for (const end of ["approved", undefined] as const) {
    const box = following(() => ({ ...approved, pay_id: BigInt(key) }));
    const past = { ...unanswered, sentMs: Date.now(), digest, isFresh: false, isLast: true };
    box.history.past.set(`bank /sale ${key}`, { ...past, end });
    const asking = box.ask(long, 5_000);
    await time.advance(20_000);
    const { stands, fault } = await asking;
    assert.deepEqual([stands, fault?.message], ["approved by /check after 1", undefined]);
  }
});

test("Operation doesn't say of what was sent that nothing was changed, where that is said of the question about it", async () => {
  const why = "No valid reply from line till: the terminal did not answer within 4 s";
  for (const [end, said] of [
    [undefined, `${why}. ${checkFirst.bank}`],
    [
      "approved",
      "Cannot show an answer to /sale: it was sent before, it ended as approved, and no question about it was answered",
    ],
  ] as const) {
    const box = following(() => new Fault("timeout", `${why}. ${askAgain}`));
    const digest = bodyDigest([Buffer.from(JSON.stringify(sale))]);
    const past = { ...unanswered, sentMs: Date.now(), digest, isFresh: false, isLast: true };
    box.history.past.set("bank /sale P-1", { ...past, end });
    const asking = box.ask(sale, 5_000);
    await time.advance(20_000);
    const { stands, fault } = await asking;
    assert.match(stands, new RegExp(`^${end ?? "unknown"}`));
    assert.deepEqual([fault?.message, fault?.outcome], [said, "unknown"]);
  }
});

test("Operation that isn't sent doesn't say that the terminal was silent where it named another operation", async () => {
  const box = following(() => ({ ...approved, pay_id: "P-2" }), { route: "/cancel" });
  const asking = box.ask(sale, 5_000);
  await time.advance(20_000);
  const { fault } = await asking;
  assert.match(fault?.message ?? "", /is not known, since the terminal's answer names another operation/);
});

test("Operation goes on asking about what the terminal has had, though that denies it for a minute", async () => {
  const receipt = { documentExtID: "D-1", items: [{}] };
  const form = `data=${encodeURIComponent(Buffer.from(JSON.stringify(receipt)).toString("base64"))}&sign=c2lnbg%3D%3D`;
  const open = { status: "error", code: 44 };
  const denied = { status: "error", code: 9 };
  const closed = { status: "success", code: 0, docStatus: 1, documentID: 7 };
  for (const wasSentBefore of [false, true]) {
    let found: object = open;
    const box = following(() => found, { service: "fiscal" });
    if (wasSentBefore) {
      const digest = bodyDigest([Buffer.from(form)]);
      const past = { ...unanswered, sentMs: Date.now(), digest, isFresh: false, isLast: true, isAccepted: true };
      box.history.past.set("fiscal /sale D-1", { ...past, end: undefined });
      found = denied;
    }
    const asking = box.ask(receipt, 120_000);
    await time.advance(1_000);
    found = denied;
    await time.advance(60_000);
    found = closed;
    await time.advance(5_000);
    assert.match((await asking).stands, /^closed by/);
  }
});

test("Operation isn't given what is found under its key behind it, though the journal forgets it while it is asked about", async () => {
  const box = following(() => approved);
  const digest = bodyDigest([Buffer.from(JSON.stringify(sale))]);
  const past = { ...unanswered, sentMs: Date.now(), digest, end: undefined, isFresh: false, isLast: false };
  box.history.past.set("bank /sale P-1", past);
  const asking = box.ask(sale, 10_000);
  await time.advance(takesMs / 2);
  box.history.past.clear();
  await time.advance(200_000);
  assert.match((await asking).stands, /^unknown/);
});

test("Operation without a journal has its end told by the questions about its key, where nothing was known under that", async () => {
  const answer = (route: string, _: string, count: number) =>
    route === "/refund" ? lost : count <= 3 ? { status: "error", code: -15 } : approved;
  const box = following(answer, { route: "/refund", history: undefined });
  const asking = box.ask(sale);
  await time.advance(10_000);
  assert.equal((await asking).stands, "approved by /check after 4, unguarded");
});

test("Operation that waits to be sent is answered by what was said of its key last", async () => {
  const refused = { status: "error", code: -29 };
  const others = { ...refused, pay_id: "P-2" };
  for (const [first, later, said] of [
    [lost, running, /what stands under its pay_id has not ended yet/],
    [others, lost, /is not known, since the terminal did not answer/],
    [lost, refused, refused],
  ] as const) {
    const box = following((_, __, count) => (count === 1 ? first : later), { route: "/cancel" });
    const asking = box.ask(sale, 10_000);
    await time.advance(15_000);
    const { json, fault } = await asking;
    if (said instanceof RegExp) assert.match(fault?.message ?? "", said);
    else assert.deepEqual(json, said);
    assert.ok(!box.sent.some(({ route }) => route === "/cancel"));
  }
});

for (const [service, route, question, code] of [
  ["bank", "/sale", "/check", -15],
  ["fiscal", "/deposit", "/check_status", 9],
] as const) {
  test(`Operation without a journal ends as failed where the terminal never had the ${service} ${route}`, async () => {
    const answer = (asked: string) => (asked === route ? lost : { status: "error", code });
    const box = following(answer, { service, route, history: undefined });
    const asking = box.ask({ ...sale, documentExtID: "D-1" });
    await time.advance(60_000);
    const { stands } = await asking;
    assert.ok(stands.startsWith(`failed by ${question} after `) && stands.endsWith(", unguarded"), stands);
  });
}

test("Operation answers with the error by which a question found that its document is closed and unprinted", async () => {
  const unprinted = { status: "error", code: 15, docStatus: 1, documentID: 12, documentExtID: "D-1" };
  const box = following((route) => (route === "/sale" ? lost : unprinted), { service: "fiscal" });
  const asking = box.ask({ documentExtID: "D-1", items: [{}] });
  await time.advance(5_000);
  const { json, stands } = await asking;
  assert.deepEqual([json, stands], [unprinted, "unprinted by /check_status after 1"]);
});

test("Operation whose caller doesn't wait is sent once the terminal has said three times that there is none under its key", async () => {
  const box = following((route) => (route === "/cancel" ? running : { status: "error", code: -15 }), { route: "/cancel" });
  void box.ask(sale, 0);
  await time.advance(10_000);
  assert.deepEqual(
    box.sent.slice(0, 4).map(({ route }) => route),
    ["/check", "/check", "/check", "/cancel"],
  );
});

test("Operation that waited too long for its question's turn asks nothing once that comes", async () => {
  const turns = new Turns();
  void turns.take(() => new Promise<void>((resolve) => time.after(60_000, resolve)));
  const box = following(() => running, { route: "/cancel", turns });
  const asking = box.ask(sale, 5_000);
  await time.advance(31_000);
  const { fault } = await asking;
  assert.deepEqual([fault?.outcome, fault?.reason], ["not-sent", "waited-too-long"]);
  assert.match(fault?.message ?? "", /^Cannot send \/cancel: the questions about other operations on its line take too long: /);
  await time.advance(60_000);
  assert.deepEqual(box.sent, []);
});

test("Operation waits for the answer to the question before its sending, once that is out, though its caller waits shorter", async () => {
  const box = following(
    async (route) => {
      if (route === "/check") await new Promise((resolve) => setTimeout(resolve, 40_000));
      return route === "/check" ? approved : running;
    },
    { route: "/cancel" },
  );
  void box.ask(sale, 5_000);
  await time.advance(41_000);
  assert.deepEqual(
    box.sent.slice(0, 2).map(({ route }) => route),
    ["/check", "/cancel"],
  );
});

test("Operation takes its own answer for its end, though the terminal denied right before what it had under its key", async () => {
  const closed = { status: "success", code: 0, docStatus: 1, documentID: 13, documentExtID: "D-1" };
  const answer = (route: string) => (route === "/refund" ? closed : { status: "error", code: 9 });
  const box = following(answer, { service: "fiscal", route: "/refund" });
  box.history.hadAny = () => true;
  const asking = box.ask({ documentExtID: "D-1", items: [{}] });
  await time.advance(30_000);
  const { json, stands } = await asking;
  assert.deepEqual([json, stands], [closed, "closed after 3"]);
});

test("Operation waits for its question's turn as long as its caller waits for it", async () => {
  const turns = new Turns();
  void turns.take(() => new Promise<void>((resolve) => time.after(40_000, resolve)));
  const box = following((route) => (route === "/check" ? approved : running), { route: "/cancel", turns });
  void box.ask(sale, 60_000);
  await time.advance(41_000);
  assert.deepEqual(
    box.sent.slice(0, 2).map(({ route }) => route),
    ["/check", "/cancel"],
  );
});
