import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { virtualTime } from "../support/virtual-time.ts";
import { absent, final, success, WholeBox } from "./whole-box.ts";

/**
 * Tests src/operations/, src/settle/judge.ts.
 *
 * Over a whole box: a cancel or a refund under its sale's key is never taken for that sale, and what the terminal forgets proves nothing
 * of it.
 */

const time = virtualTime();
afterEach(() => time.forgetTimers());

const sale = { pay_id: "P-1", amount: 1500, currency_name: "EUR" };

for (const how of ["with the header", "after kill -9", "without the header"] as const) {
  test(`a cancel that was carried out ${how} isn't failed, nor sent again, once the terminal forgets its key`, async () => {
    let isForgotten = false;
    const box = await new WholeBox(time, ({ route }) => {
      if (route === "/sale") return success;
      if (route === "/check") return isForgotten ? absent : final("APPROVED", "T-1");
      // It is carried out at the terminal, and its answer is lost.
      return undefined;
    }).start();
    const first = await box.callFor(40_000, "/sale", sale, 30);
    assert.equal(first.word, "approved");
    await box.callFor(240_000, "/cancel", sale, how === "without the header" ? undefined : 30);
    if (how === "after kill -9") await box.kill();
    // As behind a closed batch.
    isForgotten = true;
    const words: (string | undefined)[] = [];
    for (let times = 0; times < 3; times++) {
      const again = await box.callFor(200_000, "/cancel", sale, 120);
      words.push(again.word);
    }
    assert.deepEqual([words, box.count("/cancel")], [["unknown", "unknown", "unknown"], 1]);
  });
}

test("a refund under a key that the terminal had of somebody else isn't sent again once the terminal forgets that", async () => {
  let isForgotten = false;
  const box = await new WholeBox(time, ({ route }) => {
    if (route === "/check") return isForgotten ? absent : final("APPROVED", "T-1");
    return isForgotten ? success : undefined;
  }).start();
  for (let times = 0; times < 3; times++) {
    const refund = await box.callFor(240_000, "/refund", sale, 60);
    assert.equal(refund.word, "unknown");
    isForgotten = true;
  }
  assert.equal(box.count("/refund"), 1);
});

test("a cancel that never arrived isn't approved by its sale, which the terminal denied for a moment", async () => {
  let denials = 0;
  const box = await new WholeBox(time, ({ route }) => {
    if (route === "/sale") return success;
    if (route === "/check") return denials-- > 0 ? absent : final("APPROVED", "T-1");
    return undefined;
  }).start();
  await box.callFor(40_000, "/sale", sale, 30);
  await box.callFor(240_000, "/cancel", sale, 30);
  denials = 1;
  const again = await box.callFor(130_000, "/cancel", sale, 120);
  assert.equal(again.word, "unknown");
});

test("a refund isn't joined to the same one without the header, which would be sent whatever came under its key meanwhile", async () => {
  let isSold = false;
  const box = await new WholeBox(time, ({ route }) => {
    isSold ||= route === "/sale";
    if (route === "/refund") return undefined;
    return route === "/check" && !isSold ? absent : final("APPROVED", "T-1");
  }).start();
  box.answerMs = 3_000;
  const refund = await box.callFor(1_000, "/refund", sale, 600);
  box.answerMs = 10;
  // Another till sells under the key, and between that and the refund without the header something else is asked.
  await box.callFor(100, "/sale", sale, 30);
  box.call("/check", { pay_id: "P-9" });
  await box.callFor(620_000, "/refund", sale);
  assert.deepEqual([refund.word, refund.outcome, box.count("/refund")], ["unknown", "not-sent", 1]);
});

test("a confirm is refused unsent while the questions about others take longer than its caller waits", async () => {
  let hangs = false;
  const box = await new WholeBox(time, () => (hangs ? undefined : success), false).start();
  for (let each = 0; each < 30; each++) await box.callFor(4_000, "/sale", { ...sale, pay_id: `S-${each}` }, 1);
  hangs = true;
  await time.advance(1_000);
  const fromMs = time.nowMs;
  const confirm = box.call("/confirm", { pay_id: "C-1", amount: 1 }, 5);
  await time.until(() => confirm.outcome !== undefined, 600_000);
  assert.deepEqual([confirm.outcome, box.count("/confirm"), time.nowMs - fromMs <= 31_000], ["not-sent", 0, true]);
  hangs = false;
  await time.advance(400_000);
  assert.equal(box.count("/confirm"), 0, "nor is it sent once its turn would have come");
});

test("a sale that was accepted under a key of over 64 characters, by which nothing is asked, is unknown, and sent once", async () => {
  const long = { ...sale, pay_id: "K".repeat(70) };
  const box = await new WholeBox(time, ({ route }) =>
    route === "/check" ? absent : { ...success, pay_id: long.pay_id },
  ).start();
  await box.callFor(5_000, "/sale", long);
  const again = await box.callFor(130_000, "/sale", long, 120);
  assert.deepEqual([again.word, box.count("/sale")], ["unknown", 1]);
});

test("a second click of a refund gets the first one's answer, though the same with the header waits behind that", async () => {
  const refund = { pay_id: "R-1", amount: 100, currency_name: "EUR" };
  const box = await new WholeBox(time, ({ route }) => (route === "/refund" ? success : absent)).start();
  box.answerMs = 300;
  box.call("/refund", refund, 60);
  await time.until(() => box.count("/check") === 3, 10_000);
  await time.advance(100);
  // While the third "there is none" is on its way: the same without the header, clicked twice.
  box.answerMs = 8_000;
  const first = await box.callFor(300, "/refund", refund);
  const second = await box.callFor(30_000, "/refund", refund);
  assert.deepEqual([first.outcome, second.outcome], ["answered", "answered"], second.text);
  assert.equal(box.count("/refund"), 1);
});

test("a cancel isn't sent, nor approved by its sale, where that sale turns up while the cancel waits for the line", async () => {
  let hasSale = false;
  const box = await new WholeBox(time, ({ route, body }) => {
    if (body.pay_id === "Q-1") return success;
    if (route !== "/check") return undefined;
    return hasSale ? final("APPROVED", "T-1") : absent;
  }).start();
  const first = box.call("/sale", sale, 120);
  await time.until(() => first.word !== undefined, 200_000);
  assert.equal(first.word, "failed");
  await time.advance(60_000);
  box.answerMs = 500;
  const before = box.count("/check");
  const cancel = box.call("/cancel", sale, 60);
  await time.until(() => box.count("/check") === before + 3, 30_000);
  // The third "there is none" is on its way; another till sells, and somebody asks about the sale.
  await time.advance(100);
  box.call("/sale", { pay_id: "Q-1", amount: 100 });
  await box.callFor(600, "/check", { pay_id: "P-1" });
  box.answerMs = 10;
  // Carried out behind its gateway only now.
  hasSale = true;
  await time.advance(100_000);
  assert.equal(box.endOf("/sale"), "approved");
  assert.equal(box.count("/cancel"), 0);
  assert.notEqual(cancel.word, "approved");
});
