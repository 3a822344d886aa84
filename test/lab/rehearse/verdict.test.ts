import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { brokenBy } from "../../../src/lab/rehearse/contract-rules.ts";
import type { DeedStep, Word } from "../../../src/lab/rehearse/scenario.ts";
import { scenarios } from "../../../src/lab/rehearse/scenarios.ts";
import { type AskResult, amountText, type Began, findingOf } from "../../../src/lab/rehearse/verdict.ts";

/** Tests src/lab/rehearse/verdict.ts, src/lab/rehearse/contract-rules.ts, src/lab/rehearse/scenarios.ts. */

const sale: DeedStep = { deed: "sale", key: "a", ends: ["approved"] };
const anyEnd: DeedStep = { deed: "sale", key: "a" };
const receipt: DeedStep = { deed: "receipt", key: "a", ends: ["closed", "unprinted"] };

const begun = (more: Partial<Began> = {}): Began => ({
  ...{ id: "1", service: "bank", route: "/sale", key: "K", amount: 1531n, end: "approved", atMs: 9_800, endedMs: 11_000 },
  ...more,
});

const document = (more: Partial<Began> = {}): Began => begun({ service: "fiscal", end: "closed", ...more });

const refund: DeedStep = { deed: "refund", key: "b", of: "a" };
const back = { id: "2", route: "/refund" };

interface Shown extends Partial<AskResult> {
  readonly words?: readonly (Word | undefined)[];
}

function result({ ask = sale, words = ["approved"], ...more }: Shown): AskResult {
  const said = words.map((word) => ({ atMs: 12_400, word, text: word ?? "nothing (exit code 2)", how: "ended" as const }));
  return { ask, amount: 1531n, said, began: [begun()], untested: undefined, called: [], questionsPerSecond: 1, ...more };
}

type Judged = readonly [name: string, verdict: string, why: RegExp, results: readonly Shown[]];
const row =
  (verdict: string) =>
  (name: string, why: RegExp, ...results: readonly Shown[]): Judged => [name, verdict, why, results];
const [passed, failed, notTested] = [row("passed"), row("failed"), row("not tested")];

const cases: readonly Judged[] = [
  passed("a true word", /^Of the sale the till said approved; the terminal has \/sale of 15\.31, approved/, {}),
  failed("a false word", /^The till said declined at 12\.4 s; the terminal has \/sale of 15\.31, approved, begun at 9\.8 s$/, {
    words: ["declined"],
  }),
  failed("paid, and nothing at the terminal", /asked was 15\.31, and the terminal has nothing of it/, { began: [] }),
  failed("paid, and declined at the terminal", /has \/sale of 15\.31, declined/, { began: [begun({ end: "declined" })] }),
  failed("another amount", /asked was 15\.31, and the terminal has \/sale of 15\.30/, { began: [begun({ amount: 1530n })] }),
  failed("approved while it went on", /approved at 12\.4 s, while it still went on; later the terminal has \/sale of 15\.31/, {
    began: [begun({ endedMs: 13_000 })],
  }),
  failed("twice", /the till began 2: /, { began: [begun(), begun({ id: "2" })] }),
  failed("twice, though both were declined", /the till began 2: /, {
    ask: anyEnd,
    words: ["declined"],
    began: [begun({ end: "declined" }), begun({ id: "2", end: "declined" })],
  }),
  failed("what nobody asked for", /began what nobody asked for: .*\/cancel/, {
    words: ["approved"],
    began: [begun(), begun({ id: "2", route: "/cancel" })],
  }),
  failed("no word, and the end could be known", /said nothing \(exit code 2\) .* whose end could be known/, {
    words: [undefined],
  }),
  failed("unknown, and the end could be known", /said unknown/, { words: ["unknown"] }),
  passed("unknown, and nothing is asked of the end", /said unknown/, { ask: anyEnd, words: ["unknown"], began: [] }),
  notTested("a last line that is no word", /^The till's last line, "Payment OK", is none of approved, /, {
    said: [{ atMs: 12_400, word: undefined, text: '"Payment OK"', how: "unclear" }],
  }),
  passed("a last line that is no word, where no end is asked for", /said "Payment OK"/, {
    ask: anyEnd,
    said: [{ atMs: 12_400, word: undefined, text: '"Payment OK"', how: "unclear" }],
  }),
  failed("no end", /had not ended the sale after 12\.4 s/, {
    said: [{ atMs: 12_400, word: undefined, text: "nothing", how: "stopped" }],
  }),
  failed("two runs that contradict each other", /said approved and declined of the same deed|said declined/, {
    ask: { ...sale, twice: true },
    words: ["approved", "declined"],
  }),
  failed("closed without paper", /printed no paper/, {
    ask: receipt,
    words: ["closed"],
    began: [document({ end: "unprinted" })],
  }),
  passed("unprinted, and a copy printed since", /./, { ask: receipt, words: ["unprinted"], began: [document()] }),
  notTested("unsupported", /can't do sale/, { words: ["unsupported"], began: [] }),
  failed("unsupported, and done", /began 2/, { words: ["unsupported"], began: [begun(), begun({ id: "2" })] }),
  notTested("trouble that never came", /No \/sale came/, { untested: "No /sale came to the terminal" }),
  failed("trouble that never came, and a false word", /said declined/, { words: ["declined"], untested: "No /sale came" }),
  failed("the second deed is what breaks", /said approved/, {}, { ask: { ...sale, key: "b" }, began: [] }),
  passed("the article, to the thousandth", /./, {
    ask: { ...receipt, article: { name: "茶", quantity: 1n } },
    words: ["closed"],
    began: [document({ articles: [{ name: "茶", quantity: 1n }] })],
  }),
  failed("the article, in another quantity", /Asked for 1 thousandths of the article, the till sold 1000/, {
    ask: { ...receipt, article: { name: "茶", quantity: 1n } },
    words: ["closed"],
    began: [document({ articles: [{ name: "茶", quantity: 1_000n }] })],
  }),
  failed(
    "an article of another name, where one was sold as named",
    /Asked for an article named 茶, the till sold \?/,
    {
      ask: { ...receipt, article: { name: "Tea", quantity: 1n } },
      words: ["closed"],
      began: [document({ articles: [{ name: "Tea", quantity: 1n }] })],
    },
    {
      ask: { ...receipt, key: "b", article: { name: "茶", quantity: 1n } },
      words: ["closed"],
      began: [document({ articles: [{ name: "?", quantity: 1n }] })],
    },
  ),
  failed("a card sale in place of a receipt", /began what nobody asked for: \/sale/, {
    ask: receipt,
    words: ["closed"],
    began: [begun()],
  }),
  failed("a batch closed", /^Asked for one sale of 15\.31, the till called bank \/close-shift, which nobody asked for$/, {
    called: ["bank /sale", "bank /close-shift"],
  }),
  passed("a sale, an abort that is too late", /./, { called: ["bank /sale", "bank /abort"] }),
  notTested("a sale that the till stopped", /^The till stopped the sale by \/abort$/, {
    words: ["declined"],
    began: [begun({ end: "cancelled" })],
    called: ["bank /sale", "bank /abort"],
  }),
  passed("a QR payment that is confirmed", /./, {
    ask: { deed: "qr", key: "a" },
    began: [begun({ service: "qr", route: "/showqrcode" })],
    called: ["qr /showqrcode", "qr /final_confirm"],
  }),
  failed("a copy of what has its paper", /called fiscal \/check_copy/, {
    ask: receipt,
    words: ["closed"],
    began: [document()],
    called: ["fiscal /sale", "fiscal /check_copy"],
  }),
  passed("a copy of what was not printed", /./, {
    ask: { ...receipt, trouble: { kind: "outcome", outcome: "not-printed" } },
    words: ["closed"],
    began: [document()],
    called: ["fiscal /sale", "fiscal /check_copy"],
  }),
  passed("a refund of the sale that was named", /./, {}, { ask: refund, began: [begun({ ...back, of: "1" })] }),
  failed(
    "a refund of another sale",
    /^Asked for the refund of one, the till gave back another: \/refund of 15\.31/,
    {},
    { ask: refund, began: [begun({ ...back, of: "7" })] },
  ),
  failed(
    "a card payment that is booked as cash",
    /^The till booked 15\.31 as cash that were not paid in cash$/,
    {},
    { ask: { ...receipt, key: "b", of: "a" }, words: ["closed"], began: [document({ cash: 1531n })] },
  ),
  passed("a receipt of its own, in cash", /./, { ask: receipt, words: ["closed"], began: [document({ cash: 1531n })] }),
  passed("ten questions in a second", /./, { questionsPerSecond: 10 }),
  passed("more than ten questions in a second", /asked 11 times within a second/, { questionsPerSecond: 11 }),
  passed(
    "done when it was asked before, and said again",
    /./,
    { ask: anyEnd, words: ["approved"] },
    { words: ["approved"], began: [] },
  ),
  failed(
    "another deed done under the same key",
    /the terminal has nothing of it/,
    {},
    { ask: receipt, words: ["closed"], began: [] },
  ),
  notTested("an article of its own", /another article/, {
    ask: { ...receipt, article: { name: "茶", quantity: 1n } },
    words: ["closed"],
    began: [document({ articles: [{ name: "Coffee", quantity: 1_000n }] })],
  }),
];

for (const [name, verdict, why, results] of cases) {
  test(`findingOf(): ${name} is ${verdict}`, () => {
    const judged = findingOf(results.map(result));
    assert.equal(judged.verdict, verdict, judged.why);
    assert.match(judged.note ?? judged.why, why);
  });
}

test("amountText writes minor units with two decimals, beyond 2^53 too", () => {
  assert.deepEqual([1n, 10n, 1531n, 9_007_199_254_740_993n].map(amountText), ["0.01", "0.10", "15.31", "90071992547409.93"]);
});

test("a sentence by which a till is judged stands in its contract word for word, but for what ... leaves out", () => {
  const rules = [...scenarios.map(({ rule }) => rule), ...Object.values(brokenBy).flatMap((each) => Object.values(each))];
  for (const { from, says } of rules) {
    const [file = "", place = ""] = from.split(", ");
    const text = readFileSync(new URL(`../../vectors/contracts/${file}`, import.meta.url), "utf8");
    for (const part of says.split("...")) assert.ok(text.includes(part.trim()), `${from}: ${part}`);
    assert.ok(text.includes(place), from);
  }
});

test("what is printed is the sentence that was broken: of a second sale, of an early and of a blind end", () => {
  const ruleOf = (shown: Shown) => findingOf([result(shown)]).rule;
  assert.equal(ruleOf({ began: [begun(), begun({ id: "2" })] }), brokenBy.bank.again);
  assert.equal(ruleOf({ began: [begun({ end: "declined" })] }), brokenBy.bank.early);
  assert.equal(ruleOf({ words: ["declined"] }), brokenBy.bank.blind);
  assert.equal(ruleOf({ words: ["unknown"] }), brokenBy.bank.blind);
  assert.equal(ruleOf({ began: [begun({ amount: 1530n })] }), undefined);
});
