import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { systemError } from "../journal/sim-disk.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { type Asked, absent, final, success, WholeBox } from "./whole-box.ts";

/**
 * Tests src/operations/.
 *
 * Over a whole box: what one sending proves is never said of another, whatever else is sent under its key.
 */

const time = virtualTime();
afterEach(() => time.forgetTimers());

const sale = { pay_id: "P-1", amount: 1500, currency_name: "EUR" };

test("a box whose clock is set right after a sale still knows it: the same call again only asks", async (t) => {
  // What a box without a clock chip believes at its start, and what it is.
  t.mock.timers.enable({ apis: ["Date"], now: Date.UTC(2026, 10, 21, 18) });
  let isOver = false;
  const box = await new WholeBox(time, ({ route }) =>
    route === "/sale" || !isOver ? success : final("APPROVED", "T-1"),
  ).start();
  const first = await box.callFor(200_000, "/sale", sale, 60);
  t.mock.timers.setTime(Date.UTC(2026, 10, 23, 8));
  isOver = true;
  const again = await box.callFor(70_000, "/sale", sale, 60);
  assert.deepEqual([first.word, again.word, box.count("/sale")], ["pending", "approved", 1]);
});

test("that nothing was carried out, proven of the first sending, isn't said while a later one may still begin", async () => {
  let beginsMs = Number.POSITIVE_INFINITY;
  let begun = 0;
  const box = await new WholeBox(time, ({ route, atMs }) => {
    if (route === "/check") return atMs >= beginsMs ? final("APPROVED", "T-1") : absent;
    // The first is lost on its way; the second one's end comes late, behind a gateway.
    if (box.count("/sale") === 1) return undefined;
    begun++;
    beginsMs = atMs + 29_000;
    return { status: "error", code: -3 };
  }).start();
  const first = await box.callFor(55_000, "/sale", sale, 120);
  await box.callFor(45_000, "/sale", sale);
  const again = await box.callFor(40_000, "/sale", sale, 30);
  assert.deepEqual([first.word, again.word, box.count("/sale"), begun], ["approved", "approved", 2, 1]);
});

test("a repetition that goes out behind the deciding question is listed as unknown after kill -9, and not sent once more", async () => {
  let isRepeated = false;
  let isSilent = false;
  let begun = 0;
  const box = await new WholeBox(
    time,
    ({ route, atMs }) => {
      if (isSilent) return undefined;
      if (route === "/sale") {
        // The first is lost on its way, the second one's answer on its own.
        if (box.count("/sale") > 1) begun++;
        return undefined;
      }
      const lostMs = (box.got.find((each) => each.route === "/sale")?.atMs ?? 0) + 30_010;
      if (atMs >= lostMs + 30_005 && !isRepeated) {
        isRepeated = true;
        box.call("/sale", sale);
      }
      return begun > 0 ? final("APPROVED", "T-1") : absent;
    },
    false,
  ).start();
  box.call("/sale", sale, 120);
  await time.until(() => isRepeated, 100_000);
  await time.advance(5_000);
  isSilent = true;
  await box.kill();
  assert.ok(box.unknown.includes("/sale P-1"));
  isSilent = false;
  const again = await box.callFor(60_000, "/sale", sale, 30);
  assert.deepEqual([again.word, box.count("/sale"), begun], ["approved", 2, 1]);
});

/** A terminal that answers a question by the latest operation under the key, as the emulator does. */
function latest(ends: Readonly<Record<string, "APPROVED" | "ERROR">>, isLost: () => boolean = () => false) {
  const ledger: Asked[] = [];
  return (asked: Asked): object | undefined => {
    if (asked.route !== "/check") {
      ledger.push(asked);
      return isLost() ? undefined : success;
    }
    const last = ledger.findLast(({ body }) => body.pay_id === asked.body.pay_id);
    return last === undefined ? absent : final(ends[last.route] ?? "ERROR", `T-${ledger.indexOf(last)}`);
  };
}

test("a sale that was approved stays so when its /cancel, under its pay_id, was declined", async () => {
  const box = await new WholeBox(time, latest({ "/sale": "APPROVED" })).start();
  for (const [route, word] of [
    ["/sale", "approved"],
    ["/cancel", "declined"],
    ["/sale", "approved"],
    ["/sale", "approved"],
  ] as const) {
    const told = await box.callFor(40_000, route, sale, 30);
    assert.equal(told.word, word);
  }
  assert.deepEqual([box.count("/sale"), box.endOf("/sale")], [1, "approved"]);
});

test("a sale of unknown outcome stays unknown, and isn't sent again, once its /cancel went out under its pay_id", async () => {
  for (const end of ["APPROVED", "ERROR"] as const) {
    let isLost = true;
    const answer = latest({ "/sale": "APPROVED", "/cancel": end }, () => isLost);
    const box = await new WholeBox(time, answer, false).start();
    await box.callFor(35_000, "/sale", sale);
    await box.kill();
    isLost = false;
    await box.callFor(40_000, "/cancel", sale);
    const again = await box.callFor(40_000, "/sale", sale, 30);
    assert.deepEqual([again.outcome, again.word, box.count("/sale")], ["unknown", "unknown", 1]);
    assert.match(
      again.text ?? "",
      /and another operation was sent under its key, and an answer would not say which one it is about$/,
    );
    assert.deepEqual(box.unknown, ["/sale P-1"]);
  }
});

test("a sale that was followed and goes on when the box is killed is asked about after it, and ends as the terminal says", async () => {
  for (const [wait, asks] of [
    [10, true],
    [undefined, false],
  ] as const) {
    let hasPaid = false;
    const answer = ({ route }: Asked) => (route === "/sale" ? success : hasPaid ? final("APPROVED", "T-1") : success);
    const box = await new WholeBox(time, answer, false).start();
    await box.callFor(3_000, "/sale", sale, wait);
    await box.kill();
    hasPaid = true;
    await time.advance(30_000);
    assert.equal(box.count("/check") > 0 && box.operations.open.length === 0, asks, `wait ${wait}`);
    assert.equal(box.count("/sale"), 1);
  }
});

test("another body under a key that waits to be sent without the header is refused, and nothing is said of the key", async () => {
  const box = await new WholeBox(time, ({ route }) => (route === "/check" ? final("APPROVED", "T-1") : success)).start();
  box.call("/sale", { ...sale, pay_id: "P-0" });
  box.call("/sale", sale);
  const other = await box.callFor(80_000, "/sale", { ...sale, amount: 9900 }, 60);
  assertMapped(
    box.got.filter(({ route }) => route === "/sale"),
    [
      ["P-0", 1500],
      ["P-1", 1500],
    ],
    ({ body }) => [body.pay_id, body.amount],
  );
  assert.deepEqual([other.outcome, other.word], ["not-sent", "unknown"]);
  assert.match(other.text ?? "", /another operation was sent under its key meanwhile: send the same call again/);
});

test("a refund that asks about its key first doesn't go out behind the same refund that didn't", async () => {
  const refund = { pay_id: "R-1", amount: 100, currency_name: "EUR" };
  let begunMs: number | undefined;
  const box = await new WholeBox(time, ({ route, atMs }) => {
    if (route === "/refund") {
      begunMs = atMs;
      return success;
    }
    if (box.count("/check") === 1) return undefined;
    if (begunMs === undefined) return absent;
    return atMs < begunMs + 5_000 ? success : final("APPROVED", "T-1");
  }).start();
  const followed = await box.callFor(25_000, "/refund", refund, 120);
  const plain = await box.callFor(150_000, "/refund", refund);
  assert.deepEqual([plain.outcome, box.count("/refund")], ["answered", 1]);
  assert.ok(followed.word === "unknown" || followed.word === "approved", followed.word);
});

test("a journal on a disk that became read-only is read at the start, and still stops a repetition", async () => {
  let isOver = false;
  const box = await new WholeBox(time, ({ route }) =>
    route === "/sale" || !isOver ? success : final("APPROVED", "T-1"),
  ).start();
  const first = await box.callFor(6_000, "/sale", sale, 5);
  await box.kill(true);
  assert.match(box.operations.state, /read-only/);
  isOver = true;
  const again = await box.callFor(90_000, "/sale", sale, 60);
  assert.deepEqual([first.word, again.word, box.count("/sale")], ["pending", "approved", 1]);
});

test("a cancel with the header waits for the end of the sale that it is about, whose end can't be proven behind it", async () => {
  // While the sale is followed on behind its caller's wait, and after that.
  for (const gapMs of [31_050, 34_100, 190_000]) {
    const beganMs = time.nowMs;
    const ledger: Asked[] = [];
    const box = await new WholeBox(time, (asked) => {
      if (asked.route === "/check") {
        return asked.atMs < beganMs + gapMs + 15_000 ? success : final("APPROVED", `T-${ledger.length}`);
      }
      ledger.push(asked);
      return success;
    }).start();
    const first = await box.callFor(gapMs, "/sale", sale, 30);
    const cancel = await box.callFor(300_000, "/cancel", sale, 120);
    assert.deepEqual([first.word, cancel.word], ["pending", "approved"]);
    assert.equal(box.endOf("/sale"), "approved");
    assertMapped(ledger, ["/sale", "/cancel"], ({ route }) => route);
    time.forgetTimers();
  }
});

test("a cancel without the header that the terminal refuses leaves its sale what it is", async () => {
  let isOver = false;
  const box = await new WholeBox(time, ({ route }) => {
    if (route === "/cancel") return { status: "error", code: -80 };
    return route === "/sale" || !isOver ? success : final("APPROVED", "T-1");
  }).start();
  await box.callFor(20_000, "/sale", sale, 5);
  await box.callFor(10_000, "/cancel", sale);
  isOver = true;
  const again = await box.callFor(40_000, "/sale", sale, 30);
  assert.deepEqual([again.word, box.count("/sale")], ["approved", 1]);
});

test("a route that can't be followed is sent no more often with the header than without", async () => {
  const box = await new WholeBox(time, () => undefined, false).start();
  await box.callFor(1_000, "/close-shift", { pay_id: "Z-1" }, 30);
  await box.kill();
  const again = await box.callFor(60_000, "/close-shift", { pay_id: "Z-1" }, 30);
  assert.deepEqual([again.outcome, box.count("/close-shift")], ["unknown", 1]);
});

test("a cancel whose line is down is refused within its caller's wait, though its sale is to be asked about first", async () => {
  const box = await new WholeBox(time, () => success).start();
  await box.callFor(200_000, "/sale", sale, 5);
  box.unplug();
  await time.advance(10_000);
  const cancel = await box.callFor(15_000, "/cancel", sale, 10);
  assert.deepEqual([cancel.outcome, cancel.word], ["not-sent", "failed"]);
});

test("a cancel waits for its sale's answer, which proves more than a question: accepted, the sale never ends as failed", async () => {
  const box = await new WholeBox(time, ({ route }) => (route === "/check" ? absent : success)).start();
  box.call("/sale", sale);
  await time.until(() => box.count("/sale") === 1, 1_000);
  const cancel = await box.callFor(70_000, "/cancel", sale, 60);
  const again = await box.callFor(200_000, "/sale", sale, 60);
  assert.deepEqual([cancel.word, again.word, box.count("/sale"), box.count("/cancel")], ["failed", "unknown", 1, 0]);
});

test("what a till's own question proves counts beside posline's: after 'it runs' three times 'there is none' isn't failed", async () => {
  let isTill = false;
  const box = await new WholeBox(
    time,
    ({ route }) => (route === "/sale" ? undefined : isTill ? success : absent),
    false,
  ).start();
  const first = await box.callFor(36_000, "/sale", sale, 120);
  isTill = true;
  const check = box.call("/check", { pay_id: "P-1" });
  await time.until(() => check.outcome !== undefined, 1_000);
  isTill = false;
  await time.advance(100_000);
  assert.equal(first.word, "unknown");
});

test("a sale's late end is never taken for its cancel's", async () => {
  for (const [saleWaitS, cancels] of [
    [undefined, [10, 60]],
    [5, [10, 60]],
    [undefined, [undefined, 60]],
  ] as const) {
    let beginsMs = Number.POSITIVE_INFINITY;
    const box = await new WholeBox(
      time,
      ({ route, atMs }) => {
        if (route === "/check") return atMs >= beginsMs ? final("APPROVED", "SALE-T-1") : absent;
        if (route === "/sale") beginsMs = atMs + 29_000;
        // A gateway's word: the sale runs on behind it, and nothing came of the cancel.
        return { status: "error", code: -3 };
      },
      false,
    ).start();
    await box.callFor((saleWaitS ?? 0) * 1_000 + 1_000, "/sale", sale, saleWaitS);
    await box.callFor(12_000, "/cancel", sale, cancels[0]);
    const again = await box.callFor(70_000, "/cancel", sale, cancels[1]);
    assert.equal(again.word, "unknown");
    assert.equal(box.endOf("/cancel"), undefined);
  }
});

test("that a sale failed, the terminal's own word takes back: it isn't sent once more", async () => {
  let isThere = false;
  const absences = await new WholeBox(time, ({ route }) =>
    route === "/check" ? (isThere ? final("APPROVED", "T-1") : absent) : undefined,
  ).start();
  const first = await absences.callFor(100_000, "/sale", sale, 90);
  isThere = true;
  await absences.callFor(1_000, "/check", { pay_id: "P-1" });
  const again = await absences.callFor(60_000, "/sale", sale, 5);
  assert.deepEqual([first.word, again.word, absences.count("/sale")], ["failed", "approved", 1]);

  // A person may be wrong as well.
  const operator = await new WholeBox(time, ({ route }) => (route === "/sale" ? undefined : success), false).start();
  await operator.callFor(35_000, "/sale", sale);
  const [open] = operator.operations.listed;
  assert.ok(open);
  await operator.operations.settle(open, { result: "failed", by: "operator", note: "no slip" });
  await operator.callFor(2_000, "/check", { pay_id: "P-1" });
  const repeated = await operator.callFor(10_000, "/sale", sale, 5);
  assert.deepEqual([repeated.word, operator.unknown, operator.count("/sale")], ["pending", ["/sale P-1"], 1]);
});

test("what a person took for failed, and the terminal has, is neither another amount's end nor sent again as a refund", async () => {
  let isLost = true;
  const answer = latest({ "/sale": "APPROVED", "/refund": "APPROVED" }, () => isLost);
  const failed = { result: "failed", by: "operator", note: "a mistake" } as const;
  for (const [route, next, word] of [
    ["/sale", { ...sale, amount: 7 }, undefined],
    ["/refund", sale, undefined],
  ] as const) {
    const box = await new WholeBox(time, answer, false).start();
    isLost = true;
    await box.callFor(35_000, route, sale);
    isLost = false;
    const [open] = box.operations.listed;
    assert.ok(open);
    await box.operations.settle(open, failed);
    const told = await box.callFor(60_000, route, next, 30);
    assert.deepEqual([told.outcome, told.word, box.count(route)], ["not-sent", word, 1], route);
    // Without the header nothing is refused, and nothing is proven of either.
    await box.callFor(3_000, route, { ...sale, amount: 8 });
    await box.callFor(3_000, "/check", { pay_id: "P-1" });
    assert.equal(box.endOf(route), undefined, route);
  }
});

test("what a person says of a lost sending isn't said of a later one that the terminal has, also after kill -9", async () => {
  for (const kills of [false, true]) {
    const box = await new WholeBox(
      time,
      ({ route }, it) => (route === "/sale" && it.count("/sale") === 1 ? undefined : success),
      false,
    ).start();
    await box.callFor(35_000, "/sale", sale);
    await box.callFor(3_000, "/sale", sale);
    const [open] = box.operations.listed;
    assert.ok(open);
    await box.operations.settle(open, { result: "failed", by: "operator", note: "looked" });
    if (kills) await box.kill();
    const again = await box.callFor(30_000, "/sale", sale, 20);
    assert.deepEqual([again.word, box.count("/sale")], ["pending", 2]);
  }
});

test("a cancel that was sent while the box's clock was behind is still known: its end isn't its sale's", async (t) => {
  const now = Date.UTC(2026, 10, 21, 18);
  t.mock.timers.enable({ apis: ["Date"], now });
  const sent: Asked[] = [];
  const box = await new WholeBox(
    time,
    (asked) => {
      if (asked.route === "/check") return final(sent.at(-1)?.route === "/sale" ? "ERROR" : "APPROVED", `T-${sent.length}`);
      sent.push(asked);
      return success;
    },
    false,
  ).start();
  await box.callFor(2_000, "/sale", sale);
  t.mock.timers.setTime(Date.UTC(1970, 0, 1));
  await box.kill();
  await box.callFor(2_000, "/cancel", sale);
  t.mock.timers.setTime(now + 600_000);
  await box.kill();
  const again = await box.callFor(40_000, "/sale", sale, 30);
  assert.equal(again.word, "unknown");
});

test("that a call wasn't sent isn't said as 'failed' where another body was sent under its key meanwhile", async () => {
  const box = await new WholeBox(time, () => success, false).start();
  box.call("/sale", { ...sale, pay_id: "P-0" });
  box.call("/sale", sale);
  const other = await box.callFor(70_000, "/sale", { ...sale, amount: 1700 }, 60);
  assert.deepEqual([other.outcome, other.word, box.count("/sale")], ["not-sent", "unknown", 2]);
});

test("an answer about another operation, to anybody's question, isn't taken for this one's end", async () => {
  const box = await new WholeBox(time, ({ route }, it) => {
    if (route === "/sale") return undefined;
    return it.count("/check") === 1 ? { ...final("APPROVED", "T-0"), pay_id: "P-0" } : absent;
  }).start();
  await box.callFor(40_000, "/sale", sale);
  assert.ok(box.count("/check") > 0, "posline asked by itself");
  const again = await box.callFor(70_000, "/sale", sale, 60);
  assert.equal(again.word, "failed");
});

test("a good end stays, whatever becomes of the same request sent once more", async () => {
  for (const [second, word] of [
    [undefined, "approved"],
    // Though the terminal took it for a new one, and declined that.
    [success, "approved"],
  ] as const) {
    const box = await new WholeBox(time, ({ route }, { got }) => {
      const times = got.filter((each) => each.route === "/sale").length;
      if (route === "/sale") return times === 1 ? success : second;
      return final(times === 1 ? "APPROVED" : "ERROR", `T-${times}`);
    }).start();
    const first = await box.callFor(70_000, "/sale", sale, 60);
    await box.callFor(600_000, "/sale", sale);
    const again = await box.callFor(100_000, "/sale", sale, 60);
    assert.deepEqual([first.word, again.word], ["approved", word]);
  }
});

test("a cancel of a sale that was repeated without the header is sent, and how it ended stays unknown, after kill -9 too", async () => {
  const ran: string[] = [];
  const box = await new WholeBox(time, ({ route }) => {
    if (route === "/check") return ran.length === 0 ? absent : final("APPROVED", `T-${ran.length}`);
    if (!ran.includes(route)) ran.push(route);
    return success;
  }).start();
  await box.callFor(2_000, "/sale", sale);
  await box.callFor(5_000, "/sale", sale);
  const cancel = await box.callFor(300_000, "/cancel", sale, 90);
  await box.kill();
  const again = await box.callFor(100_000, "/cancel", sale, 60);
  assert.deepEqual([cancel.word, again.word, box.count("/cancel")], ["unknown", "unknown", 1]);
});

test("a cancel with a short wait is sent once it is proven that its sale never began", async () => {
  const box = await new WholeBox(time, ({ route }) => {
    return route === "/check" ? absent : { status: "error", code: route === "/cancel" ? -16 : -3 };
  }).start();
  await box.callFor(2_000, "/sale", sale);
  const words: (string | undefined)[] = [];
  for (let n = 0; n < 3; n++) {
    const cancel = await box.callFor(60_000, "/cancel", sale, 20);
    words.push(cancel.word);
  }
  assert.deepEqual([words[0], box.count("/cancel") > 0], ["failed", true]);
});

test("a sale that a day didn't settle isn't sent by the same call, until a person says what became of it", async () => {
  const dayMs = 86_400_000;
  // Its answer is lost, or the terminal says that it goes on. Only a process that runs knows that a till waits for the second.
  for (const { isLost, kills } of [
    { isLost: true, kills: false },
    { isLost: true, kills: true },
    { isLost: false, kills: false },
  ]) {
    const box = await new WholeBox(time, ({ route }) => (route === "/sale" && isLost ? undefined : success)).start();
    await box.callFor(dayMs + 600_000, "/sale", sale, 30);
    if (kills) await box.kill();
    const again = box.call("/sale", sale, 30);
    const other = await box.callFor(90_000, "/sale", { ...sale, amount: 7 }, 30);
    assert.deepEqual([again.word, other.word, box.count("/sale"), box.unknown], ["unknown", undefined, 1, ["/sale P-1"]]);
    const [open] = box.operations.listed;
    assert.ok(open);
    await box.operations.settle(open, { result: "failed", by: "operator", note: "not in the report" });
    await box.callFor(90_000, "/sale", sale, 30);
    assert.equal(box.count("/sale"), 2, "it may be sent again");
  }
});

test("a record from a clock that was ahead makes none behind it younger", async (t) => {
  const day = 86_400_000;
  const now = Date.UTC(2026, 10, 21, 18);
  t.mock.timers.enable({ apis: ["Date"], now: now + 10 * day });
  const box = await new WholeBox(time, ({ route }) => (route === "/check" ? final("APPROVED", "T-1") : success), false).start();
  await box.callFor(2_000, "/sale", { ...sale, pay_id: "AHEAD" });
  t.mock.timers.setTime(now);
  const first = await box.callFor(60_000, "/sale", sale, 60);
  t.mock.timers.setTime(now + 3 * day);
  await box.kill();
  await box.callFor(60_000, "/sale", sale, 60);
  assert.deepEqual(
    [first.word, box.got.filter(({ route, body }) => route === "/sale" && body.pay_id === "P-1").length],
    ["approved", 2],
  );
});

test("a cancel of a sale that ended well, and was sent once more without an answer that says so, is given neither one's end", async () => {
  const ran: string[] = [];
  const box = await new WholeBox(time, ({ route }, it) => {
    if (route === "/check") return final(ran.at(-1) === "/cancel" ? "ERROR" : "APPROVED", `T-${ran.length}`);
    const isRepeated = route === "/sale" && it.count("/sale") === 2;
    if (isRepeated) time.after(20_000, () => ran.push(route));
    else ran.push(route);
    return isRepeated ? { status: "error", code: -3 } : success;
  }).start();
  const first = await box.callFor(30_000, "/sale", sale, 30);
  await box.callFor(1_000, "/sale", sale);
  const early = await box.callFor(20_000, "/cancel", sale, 10);
  const cancel = await box.callFor(120_000, "/cancel", sale, 90);
  assert.deepEqual(
    [first.word, early.word, cancel.word, ran],
    ["approved", "unknown", "unknown", ["/sale", "/cancel", "/sale"]],
  );
});

test("a sale is known however much is sent under its key: partial refunds, cancels that were turned away, and after kill -9", async () => {
  for (const [route, isKilled] of [
    ["/refund", false],
    ["/cancel", false],
    ["/cancel", true],
  ] as const) {
    const busy = { status: "error", code: -3 };
    const answer = ({ route: asked }: Asked) => {
      if (asked === "/check") return final("APPROVED", "T-1");
      return asked === "/cancel" ? busy : success;
    };
    const box = await new WholeBox(time, answer).start();
    const first = await box.callFor(10_000, "/sale", sale, 60);
    for (let n = 0; n < 20; n++) {
      await box.callFor(3_000, route, { pay_id: "P-1", amount: 100 + n });
    }
    if (isKilled) await box.kill();
    const again = await box.callFor(70_000, "/sale", sale, 60);
    assert.deepEqual([first.word, again.word, box.count("/sale")], ["approved", "approved", 1], route);
  }
});

test("a good end isn't forgotten however often the sale is repeated after it, and nor is each failure", async () => {
  let ends = 0;
  const box = await new WholeBox(time, ({ route }) => {
    if (route === "/check") return ends <= 1 ? final("APPROVED", "T-1") : final("ERROR", `T-${ends}`);
    ends++;
    return success;
  }).start();
  const first = await box.callFor(10_000, "/sale", sale, 60);
  for (let n = 0; n < 20; n++) {
    await box.callFor(3_000, "/sale", sale);
  }
  const again = await box.callFor(70_000, "/sale", sale, 60);
  assert.deepEqual([first.word, again.word], ["approved", "approved"]);
  const lost = await new WholeBox(time, ({ route }) => (route === "/sale" ? undefined : absent)).start();
  for (let n = 0; n < 12; n++) {
    const told = await lost.callFor(125_000, "/sale", sale, 120);
    assert.equal(told.word, "failed", `after ${n}`);
  }
});

test("a sale under the key of a preauthorisation is refused, whenever it comes", async () => {
  for (const gapMs of [5_000, 120_000]) {
    const box = await new WholeBox(time, ({ route }) => {
      if (route === "/sale") return undefined;
      return route === "/preauth" ? success : final("APPROVED", "T-1");
    }).start();
    const preauth = await box.callFor(gapMs, "/preauth", { pay_id: "P-1", amount: 100 }, 30);
    const told = await box.callFor(240_000, "/sale", sale, 170);
    assert.deepEqual([preauth.word, told.outcome, told.word, box.count("/sale")], ["approved", "not-sent", undefined, 0]);
  }
});

test("what was answered about one key of over 64 characters says nothing of another that begins alike", async () => {
  const long = "3f2504e0-4f89-11d3-9a0c-0305e82c3301/3f2504e0-4f89-11d3-9a0c-0305e82c3302/";
  const box = await new WholeBox(time, ({ route, body }) => {
    if (route === "/sale") return undefined;
    return body.pay_id === `${long}A` ? final("APPROVED", "T-1") : absent;
  }).start();
  const other = { ...sale, pay_id: `${long}B` };
  await box.callFor(40_000, "/sale", other);
  await box.callFor(5_000, "/check", { pay_id: `${long}A` });
  const told = await box.callFor(100_000, "/sale", other, 60);
  assert.notEqual(told.word, "approved");
});

test("a sale whose record isn't on the disk isn't called guarded, until it is", async () => {
  const box = await new WholeBox(time, () => success).start();
  await box.callFor(5_000, "/sale", { ...sale, pay_id: "P-0" }, 1);
  box.disk.trouble = { error: systemError("EROFS") };
  const first = await box.callFor(20_000, "/sale", sale, 5);
  assert.deepEqual([first.word, first.isGuarded], ["pending", false]);
  box.disk.trouble = undefined;
  await time.advance(60_000);
  const again = await box.callFor(20_000, "/sale", sale, 5);
  assert.deepEqual([again.word, again.isGuarded, box.count("/sale")], ["pending", true, 2]);
});

test("beside a good end no answer is shown that denies it", async () => {
  let isGone = false;
  const box = await new WholeBox(time, ({ route }) => {
    if (route === "/sale") return success;
    return isGone ? absent : final("APPROVED", "T-1");
  }).start();
  const first = await box.callFor(20_000, "/sale", sale, 30);
  assert.deepEqual([first.outcome, first.word, first.text], ["answered", "approved", JSON.stringify(final("APPROVED", "T-1"))]);
  isGone = true;
  const again = await box.callFor(20_000, "/sale", sale, 30);
  assert.deepEqual([again.outcome, again.word], ["unknown", "approved"]);
  assert.match(again.text ?? "", /it ended as approved, and no answer about it says so any more/);
});

test("beside a failure that 'there is none' proves, the terminal's own error is shown, but not one that may be a gateway's", async () => {
  const refused = { status: "error", code: -77, message: "the slip is missing" };
  const lost = { status: "error", code: -3, message: "internal error" };
  for (const [own, shown] of [
    [refused, refused],
    [lost, absent],
  ]) {
    const box = await new WholeBox(time, ({ route }) => (route === "/sale" ? own : absent)).start();
    const told = await box.callFor(61_000, "/sale", sale, 60);
    assert.deepEqual([told.outcome, told.word, told.text], ["answered", "failed", JSON.stringify(shown)]);
  }
});

test("a bad end isn't told any more once the same sale, sent without the header, runs", async () => {
  let ends = 0;
  const box = await new WholeBox(time, ({ route }) => {
    if (route === "/sale") {
      ends++;
      return success;
    }
    return ends === 1 ? final("ERROR", "T-1") : final("APPROVED", "T-2");
  }).start();
  const first = await box.callFor(10_000, "/sale", sale, 30);
  // It waits its turn when the same comes with the header.
  box.call("/check", { pay_id: "P-0" });
  box.call("/sale", sale);
  const meanwhile = await box.callFor(10_000, "/sale", sale, 60);
  const again = await box.callFor(70_000, "/sale", sale, 60);
  assert.deepEqual([first.word, meanwhile.word, again.word, box.count("/sale")], ["declined", "unknown", "approved", 2]);
});

test("what a till's own question finds meanwhile is the word of whoever waits, whatever the terminal says later, and however it writes codes", async () => {
  for (const code of [-15, "-15"]) {
    for (const [found, word] of [
      [final("APPROVED", "T-1"), "approved"],
      [success, "unknown"],
    ] as const) {
      let isFound = false;
      const box = await new WholeBox(time, ({ route }) => {
        if (route === "/sale") return undefined;
        const answer = isFound ? found : { ...absent, code };
        isFound = false;
        return answer;
      }).start();
      const told = await box.callFor(40_000, "/sale", sale, 120);
      isFound = true;
      await box.callFor(110_000, "/check", { pay_id: "P-1" });
      assert.equal(told.word, word);
    }
  }
});

test("a sale of which more was sent meanwhile ends well by whichever of them does", async () => {
  let beginsMs = Number.POSITIVE_INFINITY;
  let sales = 0;
  const box = await new WholeBox(
    time,
    ({ route, atMs }) => {
      if (route === "/sale") {
        // The second one is carried out behind a gateway, which answers at once.
        if (++sales === 2) beginsMs = atMs + 29_000;
        return sales === 1 ? undefined : { status: "error", code: -3 };
      }
      if (sales < 2) return { status: "error", code: -3 };
      return atMs >= beginsMs ? final("APPROVED", "T-1") : absent;
    },
    false,
  ).start();
  const first = await box.callFor(70_000, "/sale", sale, 170);
  await box.callFor(100_000, "/sale", sale);
  const again = await box.callFor(60_000, "/sale", sale, 30);
  assert.deepEqual([first.word, again.word, box.count("/sale")], ["approved", "approved", 2]);
});

test("a preauthorisation that never arrived isn't given the end of another body under its key", async () => {
  let hasOther = false;
  const box = await new WholeBox(
    time,
    ({ route, body }) => {
      if (route === "/preauth") {
        hasOther ||= body.amount !== sale.amount;
        return hasOther ? success : undefined;
      }
      return hasOther ? final("APPROVED", "T-1") : { status: "error", code: -3 };
    },
    false,
  ).start();
  const lost = await box.callFor(95_000, "/preauth", sale, 170);
  await box.callFor(80_000, "/preauth", { ...sale, amount: 2000 });
  assert.equal(lost.word, "unknown");
});

test("what a till's own question found to have ended well is shown beside no answer that denies it", async () => {
  const reversed = { status: "error", code: -20, data: { status: "REVERSED", txn_id: "T-1" } };
  const refused = { status: "error", code: -20, message: "declined" };
  for (const [start, before, later] of [
    [undefined, absent, absent],
    [undefined, success, reversed],
    [refused, { status: "error", code: -3 }, { status: "error", code: -3 }],
  ] as const) {
    let answer: object = before;
    const box = await new WholeBox(time, ({ route }) => (route === "/sale" ? start : answer), false).start();
    const waiting = await box.callFor(start === undefined ? 40_000 : 20_000, "/sale", sale, 120);
    answer = final("APPROVED", "T-1");
    const check = box.call("/check", { pay_id: "P-1" });
    await time.until(() => check.text !== undefined, 5_000);
    answer = later;
    await time.advance(130_000);
    assert.deepEqual([waiting.word, waiting.outcome], ["approved", "unknown"]);
  }
});

for (const [how, answer] of [
  ["runs", success],
  // A gateway's word for an answer that it lost: nothing says that the terminal has it.
  ["has no known end", { status: "error", code: -3 }],
] as const) {
  test(`a refund isn't sent where a sale that ${how} came under its key between the question before it and its turn`, async () => {
    let sold = false;
    const box = await new WholeBox(
      time,
      ({ route }) => {
        if (route === "/sale") sold = true;
        if (route === "/sale") return answer;
        if (route === "/refund") return { status: "error", code: -3 };
        return sold ? final("APPROVED", "T-1") : absent;
      },
      false,
    ).start();
    const refund = box.call("/refund", sale, 60);
    // The last of the three by which nothing is known under its key.
    await time.until(() => box.count("/check") === 3, 10_000);
    await time.advance(5);
    await box.callFor(5_000, "/sale", sale);
    assert.deepEqual([refund.word, refund.outcome, box.count("/refund")], ["failed", "not-sent", 0]);
    const again = await box.callFor(65_000, "/refund", sale, 60);
    assert.deepEqual([again.word, box.count("/refund")], ["unknown", 1], "what is found is the sale");
  });
}

test("a followed sale that is joined to the same one in the queue, without the header, is followed to its end", async () => {
  const box = await new WholeBox(time, ({ route }) => (route === "/sale" ? success : final("APPROVED", "T-1")), false).start();
  // It holds the line.
  box.call("/check", { pay_id: "P-0" });
  box.call("/sale", sale);
  const followed = await box.callFor(10_000, "/sale", sale, 30);
  assert.deepEqual([followed.word, box.count("/sale"), box.endOf("/sale")], ["approved", 1, "approved"]);
});

test("a followed sale that is joined to the same one in the queue isn't taken for what was sent behind that", async () => {
  let isOtherSold = false;
  const other = { ...sale, amount: 9900 };
  const box = await new WholeBox(time, ({ route, body }) => {
    if (route === "/check") return isOtherSold ? final("APPROVED", "T-1") : absent;
    if (body.pay_id === "P-0") return success;
    isOtherSold ||= body.amount === other.amount;
    return isOtherSold ? success : { status: "error", code: -29 };
  }).start();
  box.call("/sale", { ...sale, pay_id: "P-0" });
  box.call("/sale", sale);
  box.call("/sale", other);
  const joined = await box.callFor(20_000, "/sale", sale, 60);
  const again = await box.callFor(60_000, "/sale", other, 30);
  assert.deepEqual([joined.word, again.word, box.count("/sale")], ["unknown", "approved", 3]);
});

for (const [name, denials] of [
  ["in passing", 1],
  ["for as long as it is asked before", 3],
  ["from then on", Number.POSITIVE_INFINITY],
] as const) {
  test(`a cancel whose sale the terminal denies ${name} is given neither that sale's end nor "failed"`, async () => {
    let left = 0;
    const box = await new WholeBox(time, ({ route }) => {
      if (route === "/sale") return success;
      if (route !== "/check") return undefined;
      return left-- > 0 ? absent : final("APPROVED", "T-1");
    }).start();
    const sold = await box.callFor(100_000, "/sale", sale, 30);
    left = denials;
    const words: unknown[] = [];
    for (let times = 0; times < 2; times++) {
      const cancel = await box.callFor(300_000, "/cancel", sale, 120);
      words.push(cancel.word);
    }
    await box.kill();
    const afterwards = await box.callFor(300_000, "/cancel", sale, 120);
    assert.deepEqual([sold.word, ...words, afterwards.word], ["approved", "unknown", "unknown", "unknown"]);
    assert.equal(box.count("/cancel"), 1);
  });
}

test("a cancel isn't given the end of its sale's repetition that is on its way, though a question found the first", async () => {
  let ran = 0;
  const box = await new WholeBox(time, ({ route }) => {
    if (route === "/check") return ran === 0 ? absent : final("APPROVED", `T-${ran}`);
    if (route === "/cancel") return { status: "error", code: -3 };
    ran++;
    if (ran === 1) return undefined;
    // A gateway lost its answer, and it is carried out behind that.
    ran--;
    time.after(8_000, () => ran++);
    return { status: "error", code: -3 };
  }).start();
  await box.callFor(31_000, "/sale", sale);
  await box.callFor(100, "/sale", sale);
  const check = await box.callFor(100, "/check", { pay_id: "P-1" });
  assert.match(check.text ?? "", /T-1/);
  const cancel = await box.callFor(150_000, "/cancel", sale, 120);
  assert.notEqual(cancel.word, "approved", "T-2 is the sale's second");
});

test("that a terminal knows nothing of a sale proves nothing once a batch was closed behind it, also after kill -9, and not before", async () => {
  for (const kills of [false, true]) {
    let known: string[] = [];
    let charges = 0;
    const box = await new WholeBox(time, ({ route, body: { pay_id: key } }) => {
      if (route === "/check") return known.includes(key) ? final("APPROVED", key) : absent;
      if (route === "/close-shift") known = [];
      else {
        known.push(key);
        charges++;
        if (charges === 1) return undefined;
      }
      return success;
    }).start();
    const first = await box.callFor(29_000, "/sale", sale, 20);
    // It waits for the line, and so goes out before any question about the sale.
    const close = await box.callFor(120_000, "/close-shift", { pay_id: "Z-1" });
    if (kills) await box.kill();
    const again = await box.callFor(100_000, "/sale", sale, 60);
    assert.deepEqual([first.word, close.outcome, again.word, charges], ["unknown", "answered", "unknown", 1]);
    assert.deepEqual(box.unknown, ["/sale P-1"]);
    // What is lost after it is proven as ever.
    const lost = box.call("/sale", { pay_id: "P-2", amount: 1500 }, 60);
    known = [];
    await time.advance(100_000);
    assert.equal(lost.outcome, "answered");
  }
});

test("that nothing was carried out is still proven where the close of a batch was not sent, or refused before anything was begun", async () => {
  let isLost = true;
  const box = await new WholeBox(time, ({ route }) => {
    if (route === "/check") return absent;
    if (route === "/close-shift") return { status: "error", code: -29 };
    return isLost ? undefined : success;
  }).start();
  const first = await box.callFor(29_000, "/sale", sale, 90);
  await box.callFor(120_000, "/close-shift", { pay_id: "Z-1" });
  isLost = false;
  assert.equal(first.word, "failed");
});

test("a followed sale that goes on is listed as one that its till asks about again, until it has ended", async () => {
  let isOver = false;
  const box = await new WholeBox(time, ({ route }) =>
    route === "/check" && isOver ? final("APPROVED", "T-1") : success,
  ).start();
  const told = await box.callFor(10_000, "/sale", sale, 5);
  const unended = () => box.operations.unended().map(({ route, key }) => `${route} ${key}`);
  assert.deepEqual([told.word, unended()], ["pending", ["/sale P-1"]]);
  isOver = true;
  await time.advance(20_000);
  assert.deepEqual(unended(), []);
});

test("a sale that is sent once more while its answer is awaited is answered within its wait, as the first is, and gets that answer later", async () => {
  const box = await new WholeBox(time, () => success).start();
  box.answerMs = 20_000;
  const first = await box.callFor(1_000, "/sale", sale, 5);
  const again = await box.callFor(6_000, "/sale", sale, 5);
  assert.deepEqual([again.word, first.word, box.count("/sale")], ["unknown", "unknown", 1]);
  const later = await box.callFor(17_000, "/sale", sale, 15);
  assert.deepEqual([later.word, box.count("/sale")], ["pending", 1]);
});
