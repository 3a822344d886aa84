import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeedStep, Word } from "../../../src/lab/rehearse/scenario.ts";
import { type AskResult, amountText, type Began, findingOf } from "../../../src/lab/rehearse/verdict.ts";

/** Tests src/lab/rehearse/verdict.ts. */

const sale: DeedStep = { deed: "sale", key: "a", ends: ["approved"] };
const anyEnd: DeedStep = { deed: "sale", key: "a" };
const receipt: DeedStep = { deed: "receipt", key: "a", ends: ["closed", "unprinted"] };

const begun = (more: Partial<Began> = {}): Began => ({
  ...{ id: "1", service: "bank", route: "/sale", key: "K", amount: 1531n, end: "approved", atMs: 9_800 },
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

const cases: readonly (readonly [name: string, verdict: string, why: RegExp, results: readonly Shown[]])[] = [
  ["a true word", "passed", /^Of the sale the till said approved; the terminal has \/sale of 15\.31, approved/, [{}]],
  [
    "a false word",
    "failed",
    /^The till said declined at 12\.4 s; the terminal has \/sale of 15\.31, approved, begun at 9\.8 s$/,
    [{ words: ["declined"] }],
  ],
  ["paid, and nothing at the terminal", "failed", /asked was 15\.31, and the terminal has nothing of it/, [{ began: [] }]],
  ["paid, and declined at the terminal", "failed", /has \/sale of 15\.31, declined/, [{ began: [begun({ end: "declined" })] }]],
  [
    "another amount",
    "failed",
    /asked was 15\.31, and the terminal has \/sale of 15\.30/,
    [{ began: [begun({ amount: 1530n })] }],
  ],
  ["twice", "failed", /the till began 2: /, [{ began: [begun(), begun({ id: "2" })] }]],
  [
    "twice, though both were declined",
    "failed",
    /the till began 2: /,
    [{ ask: anyEnd, words: ["declined"], began: [begun({ end: "declined" }), begun({ id: "2", end: "declined" })] }],
  ],
  [
    "what nobody asked for",
    "failed",
    /began what nobody asked for: .*\/cancel/,
    [{ words: ["approved"], began: [begun(), begun({ id: "2", route: "/cancel" })] }],
  ],
  [
    "no word, and the end could be known",
    "failed",
    /said nothing \(exit code 2\) .* whose end could be known/,
    [{ words: [undefined] }],
  ],
  ["unknown, and the end could be known", "failed", /said unknown/, [{ words: ["unknown"] }]],
  ["unknown, and nothing is asked of the end", "passed", /said unknown/, [{ ask: anyEnd, words: ["unknown"], began: [] }]],
  [
    "no end",
    "failed",
    /had not ended the sale after 12\.4 s/,
    [{ said: [{ atMs: 12_400, word: undefined, text: "nothing", how: "stopped" }] }],
  ],
  [
    "two runs that contradict each other",
    "failed",
    /said approved and declined of the same deed|said declined/,
    [{ ask: { ...sale, twice: true }, words: ["approved", "declined"] }],
  ],
  [
    "closed without paper",
    "failed",
    /printed no paper/,
    [{ ask: receipt, words: ["closed"], began: [document({ end: "unprinted" })] }],
  ],
  ["unprinted, and a copy printed since", "passed", /./, [{ ask: receipt, words: ["unprinted"], began: [document()] }]],
  ["unsupported", "not tested", /can't do sale/, [{ words: ["unsupported"], began: [] }]],
  ["unsupported, and done", "failed", /began 2/, [{ words: ["unsupported"], began: [begun(), begun({ id: "2" })] }]],
  ["trouble that never came", "not tested", /No \/sale came/, [{ untested: "No /sale came to the terminal" }]],
  [
    "trouble that never came, and a false word",
    "failed",
    /said declined/,
    [{ words: ["declined"], untested: "No /sale came" }],
  ],
  ["the second deed is what breaks", "failed", /said approved/, [{}, { ask: { ...sale, key: "b" }, began: [] }]],
  [
    "the article, to the thousandth",
    "passed",
    /./,
    [
      {
        ask: { ...receipt, article: { name: "茶", quantity: 1n } },
        words: ["closed"],
        began: [document({ articles: [{ name: "茶", quantity: 1n }] })],
      },
    ],
  ],
  [
    "the article, in another quantity",
    "failed",
    /Asked for 1 thousandths of the article, the till sold 1000/,
    [
      {
        ask: { ...receipt, article: { name: "茶", quantity: 1n } },
        words: ["closed"],
        began: [document({ articles: [{ name: "茶", quantity: 1_000n }] })],
      },
    ],
  ],
  [
    "an article of another name, where one was sold as named",
    "failed",
    /Asked for an article named 茶, the till sold \?/,
    [
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
    ],
  ],
  [
    "a card sale in place of a receipt",
    "failed",
    /began what nobody asked for: \/sale/,
    [{ ask: receipt, words: ["closed"], began: [begun()] }],
  ],
  [
    "a batch closed",
    "failed",
    /^Asked for one sale of 15\.31, the till called bank \/close-shift, which nobody asked for$/,
    [{ called: ["bank /sale", "bank /close-shift"] }],
  ],
  ["a sale, an abort that is too late", "passed", /./, [{ called: ["bank /sale", "bank /abort"] }]],
  [
    "a QR payment that is confirmed",
    "passed",
    /./,
    [
      {
        ask: { deed: "qr", key: "a" },
        began: [begun({ service: "qr", route: "/showqrcode" })],
        called: ["qr /showqrcode", "qr /final_confirm"],
      },
    ],
  ],
  [
    "a copy of what has its paper",
    "failed",
    /called fiscal \/check_copy/,
    [{ ask: receipt, words: ["closed"], began: [document()], called: ["fiscal /sale", "fiscal /check_copy"] }],
  ],
  [
    "a copy of what was not printed",
    "passed",
    /./,
    [
      {
        ask: { ...receipt, trouble: { kind: "outcome", outcome: "not-printed" } },
        words: ["closed"],
        began: [document()],
        called: ["fiscal /sale", "fiscal /check_copy"],
      },
    ],
  ],
  ["a refund of the sale that was named", "passed", /./, [{}, { ask: refund, began: [begun({ ...back, of: "1" })] }]],
  [
    "a refund of another sale",
    "failed",
    /^Asked for the refund of one, the till gave back another: \/refund of 15\.31/,
    [{}, { ask: refund, began: [begun({ ...back, of: "7" })] }],
  ],
  [
    "a card payment that is booked as cash",
    "failed",
    /^The till booked 15\.31 as cash that were not paid in cash$/,
    [{}, { ask: { ...receipt, key: "b", of: "a" }, words: ["closed"], began: [document({ cash: 1531n })] }],
  ],
  ["a receipt of its own, in cash", "passed", /./, [{ ask: receipt, words: ["closed"], began: [document({ cash: 1531n })] }]],
  ["ten questions in a second", "passed", /./, [{ questionsPerSecond: 10 }]],
  ["more than ten questions in a second", "passed", /asked 11 times within a second/, [{ questionsPerSecond: 11 }]],
  [
    "done when it was asked before, and said again",
    "passed",
    /./,
    [
      { ask: anyEnd, words: ["approved"] },
      { words: ["approved"], began: [] },
    ],
  ],
  [
    "another deed done under the same key",
    "failed",
    /the terminal has nothing of it/,
    [{}, { ask: receipt, words: ["closed"], began: [] }],
  ],
  [
    "an article of its own",
    "not tested",
    /another article/,
    [
      {
        ask: { ...receipt, article: { name: "茶", quantity: 1n } },
        words: ["closed"],
        began: [document({ articles: [{ name: "Coffee", quantity: 1_000n }] })],
      },
    ],
  ],
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
