import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { ContractName } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { Shop } from "./shop.ts";
import { absent, final, success, WholeBox } from "./whole-box.ts";

/**
 * Tests src/operations/before.ts, src/operations/following.ts.
 *
 * What the terminal answers to posline's own question before a sending is never told as the answer to the till's call.
 */

const time = virtualTime();
afterEach(() => time.forgetTimers());

/** Routes before whose sending the terminal is asked, by contract. */
const asking: Readonly<Partial<Record<ContractName, readonly string[]>>> = {
  bank: ["/confirm", "/cancel", "/refund"],
  fiscal: ["/refund"],
};

/** Answers to the question, and what becomes of the call: `sent`, or the reason why it isn't. */
const answers: readonly (readonly [ContractName, object, string])[] = [
  ["bank", { code: -15 }, "sent"],
  ["bank", { code: -16 }, "sent"],
  ...[-29, -47, -80, -100, -101].map((code) => ["bank", { code }, "cannot-ask"] as const),
  ...[-3, -20, -21, -54, -77, undefined].map((code) => ["bank", { code }, "waited-too-long"] as const),
  ["fiscal", { code: 9 }, "sent"],
  ...[1, 2, 3, 6, 14].map((code) => ["fiscal", { code }, "cannot-ask"] as const),
  ...[4, 5, 7, 8, 10, 11, 12, 13, 15, 23, 36, 44, undefined].map((code) => ["fiscal", { code }, "waited-too-long"] as const),
];

for (const [contract, fields, becomes] of answers)
  for (const route of asking[contract] ?? [])
    test(`Following, ${contract} ${route} whose question before is answered by ${JSON.stringify(fields)} is ${becomes}`, async () => {
      const says = { status: "error", message: "The terminal's words", ...fields };
      const shop = new Shop(time, { contract, answer: (asked) => (asked === route ? { status: "error", code: 999 } : says) });
      const word = await shop.do({ send: route, waitS: 20 });
      if (becomes === "sent") {
        assert.equal(shop.count(route), 1);
        return;
      }
      const { told } = shop;
      assert.ok(told instanceof Fault, JSON.stringify(told));
      assert.deepEqual(
        [shop.count(route), word, told.outcome, told.httpStatus, told.reason, told.details.followed?.answerOf],
        [0, "failed", "not-sent", 503, becomes, undefined],
      );
      assert.match(told.message, /The terminal's words/);
      assert.match(told.message, /Nothing was sent/);
    });

test("Following: -16 to the question behind a sending proves nothing", async () => {
  const answer = (route: string, _: unknown, count: number) =>
    route === "/cancel" ? success : count <= 3 ? absent : { ...absent, code: -16 };
  const shop = new Shop(time, { answer });
  assert.equal(await shop.do({ send: "/cancel" }), "pending");
});

const sale = { pay_id: "P-1", amount: 1500, currency_name: "EUR" };

/** Seconds from now until a caller is answered, up to so many. */
async function answeredAfter(told: { outcome?: string }, secondsMax: number): Promise<number> {
  const beganMs = time.nowMs;
  assert.ok(await time.until(() => told.outcome !== undefined, secondsMax * 1_000), "it is answered");
  return (time.nowMs - beganMs) / 1_000;
}

for (const route of ["/cancel", "/refund", "/confirm"])
  for (const [firstS, secondS] of [
    [2, 10],
    [12, 3],
    [600, 2],
  ] as const)
    test(`Following, two callers of one ${route} that wait ${firstS} and ${secondS} s behind a sale are each answered in their own time`, async () => {
      const box = await new WholeBox(time, () => success).start();
      box.call("/sale", sale, 1);
      await time.advance(2_000);
      const first = box.call(route, sale, firstS);
      const second = box.call(route, sale, secondS);
      const [isShort, isLong] = firstS < secondS ? [first, second] : [second, first];
      const shortS = await answeredAfter(isShort, 700);
      assert.ok(Math.abs(shortS - Math.min(firstS, secondS)) <= 1, `the shorter one after ${shortS} s`);
      // Another one may have it sent yet, so that nothing was sent isn't said.
      assert.deepEqual([isShort.word, isShort.outcome], ["unknown", "unknown"]);
      const longS = shortS + (await answeredAfter(isLong, 700));
      assert.ok(Math.abs(longS - Math.max(firstS, secondS)) <= 1, `the longer one after ${longS} s`);
      assert.deepEqual([isLong.word, isLong.outcome, box.count(route)], ["failed", "not-sent", 0]);
    });

test("Following: a caller that comes as the last one's wait ends has its own wait", async () => {
  let isOver = false;
  const box = await new WholeBox(time, ({ route }) =>
    route === "/check" && isOver ? final("APPROVED", "T-1") : success,
  ).start();
  box.call("/sale", sale, 1);
  await time.advance(2_000);
  const first = box.call("/cancel", sale, 5);
  await time.advance(4_999);
  const second = box.call("/cancel", sale, 60);
  isOver = true;
  await time.advance(30_000);
  assert.deepEqual([first.word, box.count("/cancel")], ["unknown", 1]);
  assert.ok(second.word !== undefined || (await answeredAfter(second, 40)) < 31);
});

for (const [waitS, route] of [
  [3, "/sale"],
  [3, "/cancel"],
  [10, "/refund"],
] as const)
  test(`Following: ${route} with wait=${waitS} whose terminal takes 25 s for each answer is answered within a second of its wait`, async () => {
    const box = await new WholeBox(time, ({ route: asked }) => (asked === "/check" ? absent : success)).start();
    box.answerMs = 25_000;
    const told = box.call(route, sale, waitS);
    const tookS = await answeredAfter(told, 60);
    assert.ok(tookS <= waitS + 1, `${tookS} s`);
    await time.advance(60_000);
    if (route === "/sale") assert.deepEqual([told.word, told.outcome, box.count(route)], ["unknown", "unknown", 1]);
    else assert.deepEqual([told.word, told.outcome, box.count(route)], ["failed", "not-sent", 0]);
  });

test("Following: a call whose turn on the line doesn't come within its wait isn't sent", async () => {
  const box = await new WholeBox(time, () => success).start();
  box.answerMs = 20_000;
  box.call("/sale", sale);
  await time.advance(1_000);
  const told = box.call("/sale", { ...sale, pay_id: "P-2" }, 5);
  assert.ok((await answeredAfter(told, 60)) <= 6);
  await time.advance(60_000);
  assert.deepEqual([told.word, told.outcome, box.count("/sale")], ["failed", "not-sent", 1]);
  assert.match(told.text ?? "", /its turn on the line/);
});

for (const [contract, says, none, word, secondsMax] of [
  // Errors that the contract lists say by themselves that nothing was begun, and one question confirms it
  ["bank", { code: -21 }, absent, "failed", 5],
  ["fiscal", { code: 8 }, { status: "error", code: 9 }, "failed", 5],
  // Fiscal 5 is sent again with the same documentExtID, so that its end must not take half a minute
  ["fiscal", { code: 5 }, { status: "error", code: 9 }, "failed", 8],
  // Others leave it open, as a lost answer does
  ["bank", { code: -3 }, absent, "failed", undefined],
  ["bank", { code: -77 }, absent, "failed", undefined],
  ["bank", { code: undefined }, absent, "failed", undefined],
  ["fiscal", { code: 36 }, { status: "error", code: 9 }, "failed", undefined],
  ["fiscal", { code: 5, outcome: "unknown" }, { status: "error", code: 9 }, "failed", undefined],
] as const)
  test(`Following, ${contract} /sale that is answered by ${JSON.stringify(says)} and then not found: ${word} after ${secondsMax === undefined ? "30 s" : "seconds"}`, async () => {
    const shop = new Shop(time, { contract, answer: (route) => (route === "/sale" ? { status: "error", ...says } : none) });
    const beganMs = time.nowMs;
    assert.equal(await shop.do({ send: "/sale" }), word);
    const tookS = (time.nowMs - beganMs) / 1_000;
    assert.ok(secondsMax === undefined ? tookS >= 30 && tookS < 45 : tookS <= secondsMax, `${tookS} s`);
  });

for (const code of [-3, -77])
  test(`Following, bank /sale that is answered by ${code}, denied once, and found later isn't told as failed`, async () => {
    const shop = new Shop(time, {
      answer: (route, _, count) =>
        route === "/sale" ? { status: "error", code } : count < 4 ? absent : count < 6 ? success : final("APPROVED", "T-1"),
    });
    assert.equal(await shop.do({ send: "/sale" }), "approved");
  });

for (const [route, body] of [
  ["/refund", {}],
  ["/cancel", {}],
  ["/final_confirm", {}],
] as const)
  for (const says of [{ status: "error", code: 1, message: "Merchant limit reached" }, undefined])
    test(`Following, qr ${route} ${says === undefined ? "without an answer" : "with an error"}: it is said at once that unknown won't change, and again after a restart`, async () => {
      const shop = new Shop(time, { contract: "qr", answer: () => says });
      const words: unknown[] = [];
      for (const step of [{ send: route, body }, { send: route, body }, { restart: true } as const, { send: route, body }]) {
        const word = await shop.do(step);
        if (!("send" in step)) continue;
        const { told } = shop;
        const followed = told instanceof Fault ? told.details.followed : told?.followed;
        words.push([word, followed?.isLasting]);
        if (!(told instanceof Fault)) assert.match(Buffer.concat(told?.payload ?? []).toString(), /Merchant limit reached/);
        else {
          assert.equal(told.reason, "no-question");
          if (says !== undefined) assert.match(told.message, /answered .*1.*Merchant limit reached/);
          assert.match(told.message, /will not change/);
          assert.match(told.message, /posline journal settle/);
        }
      }
      assert.deepEqual(words, Array(3).fill(["unknown", true]));
      assert.equal(shop.count(route), 1);
    });

for (const [contract, route] of [
  ["qr", "/final_confirm"],
  ["fiscal", "/deposit"],
  ["fiscal", "/withdraw"],
] as const)
  test(`Following: ${contract} ${route} without its optional key is sent as if nobody waited`, async () => {
    const shop = new Shop(time, { contract, answer: () => success });
    const word = await shop.do({ send: route, body: { pay_id: undefined, documentExtID: undefined } });
    const { told } = shop;
    assert.ok(!(told instanceof Fault));
    assert.deepEqual([word, told?.followed, shop.count(route)], [undefined, undefined, 1]);
  });

for (const [contract, route] of [
  ["bank", "/sale"],
  ["fiscal", "/sale"],
  ["qr", "/showqrcode"],
] as const)
  test(`Following: ${contract} ${route} without its key isn't sent, since only by it the end can be asked`, async () => {
    const shop = new Shop(time, { contract, answer: () => success });
    await shop.do({ send: route, body: { pay_id: undefined, documentExtID: undefined } });
    assert.ok(shop.told instanceof Fault);
    assert.deepEqual([shop.told.kind, shop.count(route)], ["missing", 0]);
  });
