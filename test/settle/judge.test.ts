import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContractName } from "../../src/core/call.ts";
import { areFacts, type Fact } from "../../src/settle/fact.ts";
import { differ, type JudgedOperation, judge, type Known, withFact } from "../../src/settle/judge.ts";
import { saidToQuestion, saidToStart } from "../../src/settle/said.ts";
import { bad, good, operationOf } from "./judged.ts";

/** The judge: facts in a list, and the word that they prove. Each row is an operation's history in words. */

/** An answer in words: a code, the status of a transaction with its id, a document, a payment by QR, or `ok`. */
function answerOf([word = "", id]: readonly string[]) {
  const data = { status: word, txn_id: id };
  switch (word) {
    case "ok":
      return good({ data: { trans: id } });
    case "APPROVED":
      return good({ data });
    case "ERROR":
    case "REVERSED":
      return bad(-20, { data });
    case "closed":
      return good({ docStatus: 1, documentID: id });
    case "unprinted":
      return bad(15, { docStatus: 1, documentID: id, printError: 3 });
    case "paid":
      return good({ data: { rrn: "77" } });
    case "another":
      return good({ pay_id: "OTHER", documentExtID: "OTHER", docStatus: 1, data: { status: "APPROVED", rrn: "9" } });
    default:
      return bad(Number(word));
  }
}

/** A question, or a start's answer, comes a second after what was before it, unless the row says after how many. */
function factsOf(operation: JudgedOperation, history: string): readonly Fact[] {
  let atMs = 0;
  let name = operation.ownName;
  return history.split(", ").map((each): Fact => {
    const [what = "", ...words] = each.split(" ");
    const [, wait = "1"] = /after (\d+) s/.exec(each) ?? [];
    atMs += Number(wait) * 1_000;
    const answer = words.filter((word) => !/^(after|s)$/.test(word));
    switch (what) {
      case "lost":
        return { is: "answered", atMs, said: { says: "nothing" } };
      case "answered": {
        const said = saidToStart(operation, answerOf(answer));
        name = said.name ?? name;
        return { is: "answered", atMs, said };
      }
      case "asked":
        return { is: "told", atMs, said: saidToQuestion(operation, answerOf(answer), name), name };
      case "unsent":
        return { is: "unsent", atMs, passing: answer[0] === "for-now" };
      case "word":
        return { is: "word", atMs, word: "pending", isGuarded: true };
      case "copied":
        return { is: "copied", atMs, ok: true };
      case "recorded":
        return { is: "ended", atMs, end: "failed" };
      default: {
        const fact = { is: what, atMs };
        assert.ok(areFacts([fact]), each);
        return fact as readonly unknown[] | Fact as Fact;
      }
    }
  });
}

const absent = (code: number) => `asked ${code} after 30 s, asked ${code}, asked ${code}`;
const none = absent(-15);
const noDocument = absent(9);

/** The word, and what is done next where there is none. */
type Word = NonNullable<Known["end"]> | `: ${Known["next"]}`;

type Row = readonly [service: ContractName, route: string, history: string, word: Word];

/** As by the client, which asks before by itself, sends again by the contract's rules, and prints. */
const byClient: readonly Row[] = [
  // An answer to a question before the sending says nothing of what wasn't sent
  ...["/cancel", "/refund", "/confirm"].flatMap((route): readonly Row[] => [
    ...[-80, -29, -47, -100, -101].map((code): Row => ["bank", route, `asked ${code}`, "not-sent"]),
    ["bank", route, "asked -16, asked -15, asked -16", ": start"],
    ["bank", route, "asked -15, asked -15", ": ask"],
    ["bank", route, "asked -54", ": ask"],
    ["bank", route, "asked ok", ": ask"],
    ["bank", route, "asked APPROVED 7", ": start"],
    ["bank", route, "asked -15, asked APPROVED 7", ": start"],
    ["bank", route, "asked APPROVED 7, sent, lost, asked APPROVED 7", ": ask"],
    ["bank", route, "asked APPROVED 7, sent, lost, asked REVERSED 7", "reversed"],
    ["bank", route, "asked APPROVED 7, sent, lost, asked APPROVED 8", "approved"],
    ["bank", route, `asked APPROVED 7, sent, lost, ${none}`, ": ask"],
  ]),
  ...[1, 2, 3, 6, 14].map((code): Row => ["fiscal", "/refund", `asked ${code}`, "not-sent"]),
  ["fiscal", "/refund", "asked closed 12, sent, answered closed 12", ": ask"],
  ["fiscal", "/refund", "asked closed 12, sent, answered closed 13", "closed"],
  // Refused before anything can begin
  ...[-29, -47, -16, -80, -100, -101].map((code): Row => ["bank", "/sale", `sent, answered ${code}`, "failed"]),
  ...[2, 3, 6, 14].map((code): Row => ["fiscal", "/sale", `sent, answered ${code}`, "failed"]),
  ["fiscal", "/sale", "sent, answered 1", ": start"],
  ["fiscal", "/sale", "sent, answered 1, sent, answered 1", "failed"],
  ["bank", "/preauth", "sent, lost, sent, answered -29", ": ask"],
  // "There is none": once after the terminal's own error, three times and 30 s after any other
  ["bank", "/sale", "sent, answered -21, asked -15", "failed"],
  ["bank", "/sale", "sent, answered -3, asked -15", ": ask"],
  ["bank", "/sale", "sent, answered -999, asked -15, asked -15, asked -15", ": ask"],
  ["bank", "/sale", `sent, answered -999, ${none}`, "failed"],
  ["bank", "/sale", "sent, answered -999, asked -15 after 30 s, asked -15, asked -3, asked -15, asked -15", ": ask"],
  ["bank", "/sale", `sent, answered ok, ${none}`, ": ask"],
  ["bank", "/sale", "sent, answered -999, asked -15 after 30 s, asked -15, resumed, asked -15", ": ask"],
  ["fiscal", "/sale", `sent, answered 44, ${noDocument}`, ": ask"],
  ["fiscal", "/sale", `sent, answered 44, aborted, ${noDocument}`, "failed"],
  ["fiscal", "/deposit", `sent, answered 44, ${noDocument}`, "failed"],
  ["bank", "/sale", "sent, answered -21, asked -15, asked APPROVED 7", "approved"],
  ["bank", "/sale", "sent, answered -21, asked -15, asked ok", ": ask"],
  // Sent again
  ["bank", "/sale", "sent, lost, asked -15", ": start"],
  ["bank", "/cancel", "asked -15, asked -15, asked -15, sent, lost, asked -15", ": ask"],
  ["bank", "/sale", "sent, lost, stopped, asked -15", ": ask"],
  ["bank", "/sale", "stopped", "not-sent"],
  ["bank", "/sale", "sent, unsent for-now", ": start"],
  ["bank", "/sale", "sent, unsent for-good", "not-sent"],
  ["bank", "/sale", "sent, lost, asked -15, sent, unsent for-good", ": ask"],
  ["fiscal", "/sale", "sent, answered 5", ": start"],
  ["fiscal", "/sale", "sent, answered 5, sent, answered 9", ": start"],
  ["fiscal", "/sale", "sent, answered 5, sent, answered 5, sent, answered 5, sent, answered 5", ": ask"],
  ["fiscal", "/deposit", "sent, answered 5", ": ask"],
  ["bank", "/sale", "sent, resumed", ": ask"],
  ["bank", "/sale", "sent, unsent for-now, resumed", ": ask"],
  ["bank", "/cancel", "asked -15, asked -15, asked -15, resumed", ": ask"],
  ["bank", "/sale", "left", ": ask"],
  ["bank", "/cancel", `left, ${none}`, ": ask"],
  // Ends, and what only seems to be one
  ["bank", "/sale", "sent, answered APPROVED 7", ": ask"],
  ["bank", "/sale", "sent, lost, asked another", ": ask"],
  ["bank", "/sale", "sent, lost, asked APPROVED 7, asked REVERSED 7", "approved"],
  ["bank", "/sale", "sent, lost, asked ERROR 7, asked APPROVED 8", "declined"],
  ["fiscal", "/sale", "sent, answered closed 12", "closed"],
  ["fiscal", "/sale", "sent, answered 15, asked closed 12", "unprinted"],
  ["fiscal", "/sale", "sent, lost, asked unprinted 12, copy, copied", "closed"],
  ["fiscal", "/sale", "sent, lost, asked unprinted 12, copy, resumed", "unprinted"],
  // A payment by QR
  ["qr", "/showqrcode", "sent, answered ok T-1, asked 1", "declined"],
  ["qr", "/showqrcode", "sent, lost, asked 1", ": start"],
  ["qr", "/showqrcode", "sent, lost, sent, answered ok T-1, asked 1", ": ask"],
  ["qr", "/showqrcode", "sent, lost, asked ok, asked 1", "declined"],
  ["qr", "/showqrcode", "sent, answered 1, asked 1, sent, answered 1, asked 1", "declined"],
  ["qr", "/showqrcode", "sent, answered ok T-1, asked paid", "approved"],
  ["qr", "/refund", "sent, answered paid", "approved"],
  ["qr", "/refund", "sent, answered 1", ": none"],
  ["qr", "/final_confirm", "sent, lost", ": none"],
];

/** As by the bridge, which sends once and prints nothing. */
const byBridge: readonly Row[] = [
  ["bank", "/sale", "sent, lost, asked -15", ": ask"],
  ["bank", "/sale", "earlier, sent, answered -29", ": ask"],
  ["fiscal", "/sale", "sent, answered 5, asked 9, asked 9, asked 9", "failed"],
  ["fiscal", "/sale", "sent, lost, asked 9, asked 9, asked 9", ": ask"],
  ["fiscal", "/sale", "sent, answered 15, asked unprinted 12", "unprinted"],
  ["bank", "/sale", "sent, lost, resumed, recorded, asked ok", ": ask"],
  ["qr", "/showqrcode", "sent, lost, asked 1", ": ask"],
];

const rows = [
  ...byClient.map((row) => ({ row, operation: operationOf(row[0], row[1]) })),
  ...byBridge.map((row) => ({
    row,
    operation: { ...operationOf(row[0], row[1]), isSentOnce: true, asksFirst: false, intervalMs: 1_000 },
  })),
];
const wordOf = ({ end, next }: Known): Word => end ?? `: ${next}`;

for (const { row, operation } of rows) {
  const [service, route, history, word] = row;
  const who = operation.isSentOnce ? "the bridge" : "the client";
  test(`judge() for ${who}: ${service} ${route}: ${history} = ${word}`, () => {
    assert.equal(wordOf(judge(operation, factsOf(operation, history))), word);
  });
}

test("judge() says the same of a list that was stored, and a restart between any two facts takes no word away and says none", () => {
  for (const { row, operation } of rows) {
    const facts = factsOf(operation, row[2]);
    for (let kept = 0; kept <= facts.length; kept++) {
      const before = facts.slice(0, kept);
      const { end } = judge(operation, before);
      const stored: unknown = JSON.parse(JSON.stringify(before));
      assert.ok(areFacts(stored), row[2]);
      assert.equal(judge(operation, stored).end, end, row[2]);
      const atMs = before.at(-1)?.atMs ?? 0;
      assert.equal(judge(operation, [...before, { is: "resumed", atMs }]).end, end, `${row[2]}: ${kept}`);
    }
  }
});

test("withFact() keeps a list short while nothing is learned, and says the same by it", () => {
  for (const [service, route, history] of [
    ["bank", "/sale", ["asked -15 after 30 s", "asked -3"]],
    ["bank", "/sale", ["asked -15"]],
    ["bank", "/sale", ["asked ok", "asked -15"]],
    ["bank", "/sale", ["resumed"]],
    ["qr", "/showqrcode", ["asked 1"]],
  ] as const) {
    const operation = { ...operationOf(service, route), isSentOnce: true };
    let [kept, all]: (readonly Fact[])[] = [[], []];
    for (const fact of factsOf(operation, ["sent, lost", ...Array.from({ length: 200 }, () => history).flat()].join(", "))) {
      [kept, all] = [withFact(operation, kept ?? [], fact), [...(all ?? []), fact]];
      assert.equal(judge(operation, kept).end, judge(operation, all).end);
    }
    if (judge(operation, kept ?? []).end === undefined) assert.ok((kept?.length ?? 0) < 6, `${history}: ${kept?.length}`);
  }
  const client = operationOf("bank", "/sale");
  const unsent = factsOf(client, Array.from({ length: 200 }, () => "sent, unsent for-now").join(", "));
  assert.deepEqual(
    unsent.reduce<readonly Fact[]>((kept, fact) => withFact(client, kept, fact), []),
    [],
  );
});

for (const [what, service, one, other, areDifferent] of [
  ["another txn_id", "bank", { txn_id: "7" }, { txn_id: "8" }, true],
  ["the same txn_id with another end", "bank", { txn_id: "7", status: "APPROVED" }, { txn_id: "7", status: "REVERSED" }, true],
  ["the same txn_id without its zeros", "bank", { txn_id: "007" }, { txn_id: "7" }, false],
  ["ids beyond 2^53", "bank", { txn_id: "9007199254740992" }, { txn_id: "9007199254740993" }, true],
  ["ids of letters and digits", "bank", { txn_id: "A7" }, { txn_id: "7" }, true],
  ["the same txn_id and another auth", "bank", { txn_id: "7", auth: "1" }, { txn_id: "7", auth: "2" }, false],
  ["another auth alone", "bank", { auth: "1" }, { txn_id: "7", auth: "2" }, true],
  ["nothing in common", "bank", { auth: "1" }, { rrn: "7" }, false],
  ["another documentID", "fiscal", { documentID: "12" }, { documentID: "13" }, true],
  [
    "the same documentID and another fiscalID",
    "fiscal",
    { documentID: "12", fiscalID: "A" },
    { documentID: "12", fiscalID: "B" },
    false,
  ],
  ["another fiscalID alone", "fiscal", { fiscalID: "A" }, { fiscalID: "B" }, true],
] as const) {
  test(`differ() finds ${areDifferent ? "two transactions or documents" : "no difference"} by ${what}`, () => {
    assert.equal(differ(operationOf(service, "/sale"), one, other), areDifferent);
  });
}

test("judge() proves no name by an answer whose question's name isn't known, as after a restart", () => {
  const told = (name: string | undefined): Known =>
    judge(operationOf("qr", "/showqrcode"), [
      { is: "sent", atMs: 0, before: {} },
      { is: "resumed", atMs: 1 },
      { is: "told", atMs: 2, said: { says: "going" }, name },
      { is: "ended", atMs: 3, end: "approved" },
    ]);
  assert.deepEqual([told(undefined).isNameProven, told("1").isNameProven, told("1").name], [false, true, "1"]);
});
