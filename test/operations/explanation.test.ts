import assert from "node:assert/strict";
import { test } from "node:test";
import { contractNames } from "../../src/core/call.ts";
import { type JournalRecord, joinOperations, type SentRecord } from "../../src/journal/record.ts";
import { readEvent } from "../../src/logs/event.ts";
import { type Explanation, explain } from "../../src/operations/explanation.ts";
import { assertMapped } from "../support/assert-mapped.ts";

/** Tests src/operations/explanation.ts, src/operations/recorded-end.ts. Records and log lines go in, sentences come out; that none is false is tried in worlds.test.ts. */

const timeMs = Date.now() - 60_000;
const dayBeforeMs = timeMs - 86_400_000;

const sent = (more: Partial<SentRecord> = {}): SentRecord => ({
  ...{ kind: "sent", timeMs, requestId: "r1", service: "bank", route: "/sale", key: "A", amount: "1500", digest: "d", ask: {} },
  ...more,
});
const outcome = (more: object): JournalRecord => ({ kind: "outcome", timeMs, sent: 1, outcome: "answered", ...more });
const going = outcome({ status: "success", begun: true });
const settled = (more: object): JournalRecord =>
  ({ kind: "settled", timeMs, sent: 1, digest: "d", result: "approved", by: "answer", ...more }) as JournalRecord;
const told = (more: object) =>
  JSON.stringify({
    level: "info",
    time: new Date(timeMs + 1_000).toISOString(),
    msg: "exchange",
    requestId: "r1",
    service: "bank",
    route: "/sale",
    key: "A",
    ...more,
  });

function explained(records: readonly JournalRecord[], log: readonly string[] = [], isWritten = false): readonly Explanation[] {
  const stored = records.map((record, index) => ({ sequence: index + 1, record }));
  return explain({
    records: stored,
    operations: joinOperations(stored),
    isWritten,
    exchanges: log.map(readEvent).filter((event) => event.kind === "exchange"),
    contractOf: (service) => contractNames.find((name) => name === service),
  });
}

const isRecorded = "Request r1 was recorded, to be sent to the terminal.";
const hasIt = "The terminal answered success: it took it on, which doesn't say how it ends.";
const hasOne = "The terminal answered success: it has an operation under this key, which may be the other one.";

const cases: readonly (readonly [
  what: string,
  records: readonly JournalRecord[],
  log: readonly string[],
  texts: readonly string[],
  result: Explanation["result"],
  todo: RegExp,
])[] = [
  [
    "a sale whose till waited",
    [sent(), going, settled({})],
    [told({ outcome: "answered", result: "approved", httpStatus: 200 })],
    [
      isRecorded,
      hasIt,
      "The terminal was asked about it, and its answer proves the end: approved.",
      "The till was told: approved (request r1, HTTP 200).",
    ],
    "approved",
    /^It was carried out\. Finish it at the till/,
  ],
  [
    "no answer, and nothing since",
    [sent(), outcome({ outcome: "unknown", left: true })],
    [told({ outcome: "unknown", httpStatus: 504, message: "No valid reply came" })],
    [
      isRecorded,
      "No valid answer to it came. By then its till's wait was over, or it had left.",
      "The till was told that the outcome is unknown (request r1, HTTP 504): No valid reply came.",
    ],
    "unknown",
    /^Don't repeat it under a new key: send the same call again with Prefer: wait, which asks the terminal and sends nothing twice; or look at the terminal or its report, then record what you saw: sudo posline journal settle A --as done/,
  ],
  [
    "killed with the sale out, then found and declined",
    [
      sent(),
      { kind: "start", timeMs, version: "1" },
      { kind: "begun", timeMs, sent: 1, digest: "d" },
      settled({ result: "declined" }),
    ],
    [],
    [
      isRecorded,
      "posline started again, without a record of how this ended: it had been stopped, or its journal had failed.",
      "The terminal was asked about it, and answered that it has it.",
      "The terminal was asked about it, and its answer proves the end: declined.",
    ],
    "declined",
    /^It was not carried out: a new attempt needs a new key/,
  ],
  [
    "a person's word",
    [sent(), outcome({ outcome: "unknown" }), settled({ by: "operator", note: "slip 12" })],
    [],
    [isRecorded, "No valid answer to it came.", 'A person recorded: approved, "slip 12".'],
    "approved",
    /^It was carried out\. Finish it at the till/,
  ],
  [
    "not sent",
    [sent(), outcome({ outcome: "not-sent" })],
    [told({ outcome: "not-sent", httpStatus: 503, message: "Cannot send to line till: it is down" })],
    [
      isRecorded,
      "It was not sent: nothing left for the terminal.",
      "The till was told that it was not sent (request r1, HTTP 503): Cannot send to line till: it is down.",
    ],
    "failed",
    /^Nothing was carried out: the same call may be sent again/,
  ],
  [
    "refused before anything was begun",
    [sent(), outcome({ status: "error", code: -29, begun: false })],
    [],
    [
      isRecorded,
      "The terminal answered error, code -29 (invalid request parameters or body): it refused it before anything was begun.",
    ],
    "failed",
    /^Nothing was carried out: the same call may be sent again/,
  ],
  [
    "a question of the till's, and another's sale under the key",
    [sent(), going, sent({ requestId: "r2", digest: "e", amount: "99", timeMs: timeMs + 1 })],
    [
      told({ outcome: "answered", route: "/check", requestId: "r3", status: "success", httpStatus: 200 }),
      told({ outcome: "answered", requestId: "r2", status: "success", httpStatus: 200 }),
    ],
    [isRecorded, hasIt, "The till, which asked /check, was given the terminal's answer: success (request r3, HTTP 200)."],
    "unknown",
    /^Don't repeat it under a new key: look at the terminal or its report, then record what you saw: sudo posline journal settle r1 /,
  ],
  [
    "a shift that is closed",
    [
      sent({ service: "fiscal", route: "/close_shift", key: undefined, amount: undefined }),
      outcome({ status: "success", code: 0 }),
    ],
    [],
    [isRecorded, "The terminal answered success, code 0 (success)."],
    "answered",
    /^Nothing, as far as posline knows/,
  ],
  [
    "a QR payment given back, whose answer is lost",
    [
      sent({ service: "qr", route: "/refund" }),
      outcome({ outcome: "unknown" }),
      sent({ service: "qr", route: "/refund", requestId: "r2" }),
      outcome({ sent: 3, status: "success", begun: true, end: "approved" }),
    ],
    [],
    [isRecorded, "No valid answer to it came."],
    "unknown",
    /^Don't repeat it: look at the terminal/,
  ],
  [
    "an error that proves nothing",
    [sent(), outcome({ outcome: "unknown", status: "error", code: -3, message: "too much" })],
    [],
    [
      isRecorded,
      'The terminal answered error, code -3 (generic send/processing error), "too much", which leaves open whether it was carried out.',
    ],
    "unknown",
    /: send the same call again with Prefer: wait/,
  ],
  [
    "a sale that goes on, of which posline remembers nothing after a day",
    [sent({ timeMs: dayBeforeMs }), going],
    [],
    [isRecorded, hasIt],
    "unknown",
    /with it; then look at the terminal or its report; after a day the same call is sent again, too$/,
  ],
  [
    "a sale, and another amount under its key that was refused",
    [sent(), outcome({ outcome: "unknown" }), settled({})],
    [
      told({ outcome: "unknown", result: "unknown", httpStatus: 504, message: "No valid reply came" }),
      told({ requestId: "r2", outcome: "not-sent", reason: "key-reused", httpStatus: 422, message: "Cannot send /sale" }),
    ],
    [
      isRecorded,
      "No valid answer to it came.",
      "The terminal was asked about it, and its answer proves the end: approved.",
      "The till was told: unknown (request r1, HTTP 504): No valid reply came.",
      "The till was told that another request under this key was not sent (request r2, HTTP 422): Cannot send /sale.",
    ],
    "approved",
    /^It was carried out\. Finish it at the till/,
  ],
];

for (const [what, records, log, texts, result, todo] of cases) {
  test(`explain() of ${what}`, () => {
    const [first] = explained(records, log);
    assertMapped(first?.moments ?? [], texts, ({ text }) => text);
    assert.equal(first?.result, result);
    assert.match(first?.todo ?? "", todo);
  });
}

test("explain() calls what has no outcome in flight while a posline writes the journal, and unknown once it has ended", () => {
  assert.equal(explained([sent()], [], true)[0]?.result, "in flight");
  assert.equal(explained([sent()])[0]?.result, "unknown");
});

test("explain() says of what is unknown that its terminal may have forgotten it, if a batch was closed there since", () => {
  const close = (more: Partial<SentRecord>) => sent({ route: "/close-shift", key: "Z", digest: "z", ...more });
  const proofOf = (more: Partial<SentRecord>) =>
    explained([sent(), outcome({ outcome: "unknown" }), close(more)])[0]?.proof ?? "";
  assert.match(proofOf({}), /^No answer proves how it ended.*the terminal may have forgotten it\.$/);
  assert.doesNotMatch(proofOf({ service: "bank-2" }), /forgotten/);
});

test("explain() takes no record for an operation's that was of another one in its place", () => {
  const [first] = explained([sent(), { kind: "begun", timeMs, sent: 1, digest: "other" }]);
  assertMapped(first?.moments ?? [], [isRecorded], ({ text }) => text);
});

test("explain() tells all that was recorded of an end, also what was taken back, and how often the same call was sent", () => {
  const again = sent({ requestId: "r2", timeMs: timeMs + 3 });
  const byPerson = settled({ by: "operator", result: "failed", note: "no slip" });
  const [first] = explained([sent(), outcome({ outcome: "unknown" }), byPerson, settled({ timeMs: timeMs + 2 }), again]);
  assertMapped(
    first?.moments.slice(2) ?? [],
    [
      'A person recorded: failed, "no slip".',
      "The terminal was asked about it, and its answer proves the end: approved.",
      "The same call again, request r2, was recorded, to be sent to the terminal.",
    ],
    ({ text }) => text,
  );
});

test("explain() calls equal refunds of one QR payment operations of their own, since each may give back", () => {
  const refund = (requestId: string) => sent({ service: "qr", route: "/refund", requestId });
  const done = (at: number) => outcome({ sent: at, status: "success", begun: true, end: "approved" });
  assertMapped(
    explained([refund("r1"), done(1), refund("r2"), outcome({ sent: 3, outcome: "unknown" })]),
    ["approved", "unknown"],
    ({ result }) => result,
  );
});

test("explain() says of a second amount under a used key that the terminal has one of them, and of an abort nothing", () => {
  const second = (first: SentRecord) =>
    explained([first, going, sent({ digest: "e", amount: "99" }), { ...going, sent: 3 } as JournalRecord])[1];
  assert.equal(second(sent())?.moments[1]?.text, hasOne);
  assert.match(second(sent())?.proof ?? "", /^Another operation used this key/);
  const after = second(sent({ route: "/abort", digest: "x" }));
  assert.deepEqual([after?.moments[1]?.text, after?.proof.slice(0, 23)], [hasIt, "The terminal took it on"]);
});

test("explain() offers no question where none is asked: of what has no key, and of a refund whose key was not looked up before", () => {
  const unknown = outcome({ outcome: "unknown" });
  for (const more of [{ key: undefined }, { route: "/refund" }, { service: "fiscal", route: "/refund" }]) {
    assert.match(explained([sent(more), unknown])[0]?.todo ?? "", /^Don't repeat it( under a new key)?: look at the terminal/);
  }
  assert.match(explained([sent({ route: "/refund", before: {} }), unknown])[0]?.todo ?? "", /: send the same call again/);
});

test("explain() gives each operation of a key its own explanation: by route, or by body", () => {
  const records = [sent(), going, sent({ route: "/refund", digest: "e" }), sent({ digest: "f" })];
  assertMapped(
    explained(records),
    [
      ["/sale", "1500"],
      ["/refund", "1500"],
      ["/sale", "1500"],
    ],
    ({ route, amount }) => [route, amount],
  );
});

/** What was found to lead a person astray: the records of an operation, and what is said of it. */
const advised: readonly (readonly [what: string, records: readonly JournalRecord[], proof: RegExp, todo: RegExp])[] = [
  [
    "cash without a key is done again by the same call",
    [sent({ service: "fiscal", route: "/withdraw", key: undefined }), outcome({ status: "success", end: "closed" })],
    /own answer/,
    /^The document is there\. Don't send it again/,
  ],
  [
    "so is what is no operation to follow",
    [sent({ service: "fiscal", route: "/check_copy" }), settled({ result: "closed", by: "operator" })],
    /A person recorded that/,
    /Don't send it again/,
  ],
  [
    "a failed sale whose key another amount has",
    [sent(), settled({ result: "failed" }), sent({ digest: "e", amount: "99" }), { ...going, sent: 3 } as JournalRecord],
    /asked about it/,
    /another operation has its key: look at that one/,
  ],
  [
    "a sale that was cancelled under its key, by the same body",
    [sent(), settled({}), sent({ route: "/cancel", requestId: "r2" }), settled({ sent: 3, result: "reversed" })],
    /asked about it/,
    /taken back afterwards under its key: no goods/,
  ],
  [
    "a sale that was sent twice",
    [sent(), going, sent({ requestId: "r2" }), { ...going, sent: 3 } as JournalRecord],
    /^It was sent more than once, and only a good end/,
    /^Don't repeat it under a new key: send the same call again .* or look at the terminal/,
  ],
  [
    "a code whose trans was in the lost answer",
    [sent({ service: "qr", route: "/showqrcode" }), outcome({ outcome: "unknown" })],
    /^No answer proves/,
    /^Don't repeat it under a new key: look at the terminal/,
  ],
  [
    "a refund by QR beside another one",
    [sent({ service: "qr", route: "/refund" }), outcome({ outcome: "unknown" }), sent({ service: "qr", route: "/cancel" })],
    /^The contract has no question about it/,
    /posline journal settle r1 /,
  ],
  [
    "a receipt that lacks its print",
    [sent({ service: "fiscal" }), outcome({ status: "error", code: 15, begun: true })],
    /^The terminal took it on/,
    /^Don't repeat it under a new key: send the same call again/,
  ],
  [
    "a key that another service has as well",
    [sent(), outcome({ outcome: "unknown" }), sent({ service: "fiscal", digest: "e", requestId: "r2" })],
    /^No answer proves/,
    /posline journal settle r1 /,
  ],
  [
    "a refund that was reversed",
    [sent({ route: "/refund", before: {} }), settled({ result: "reversed" })],
    /asked about it/,
    /doesn't say what of a refund was reversed: look at the terminal/,
  ],
  [
    "a call that is unknown for more than a day, and not asked about",
    [sent({ timeMs: dayBeforeMs }), outcome({ outcome: "unknown" })],
    /^No answer proves/,
    /^Don't repeat it under a new key: look at the terminal/,
  ],
  [
    "a cancel that asked before what its key had",
    [
      sent(),
      settled({}),
      sent({ route: "/cancel", digest: "e", before: { txn_id: "1" } }),
      outcome({ sent: 3, outcome: "unknown" }),
    ],
    /^No answer proves/,
    /: send the same call again with Prefer: wait/,
  ],
  [
    "a refund by QR of which a person saw that nothing was done",
    [
      sent({ service: "qr", route: "/showqrcode", digest: "e" }),
      sent({ service: "qr", route: "/refund" }),
      settled({ sent: 2, result: "failed", by: "operator" }),
    ],
    /^A person recorded that/,
    /^Nothing was carried out: the same call may be sent again/,
  ],
  [
    "a sale beside a cancel under its key, of which nobody knows the end",
    [sent(), settled({}), sent({ route: "/cancel", digest: "e", before: {} }), outcome({ sent: 3, outcome: "unknown" })],
    /asked about it/,
    /^It was carried out, and perhaps taken back under its key/,
  ],
  [
    "an abort whose answer was lost",
    [sent(), going, sent({ route: "/abort", digest: "e", requestId: "-a" }), outcome({ sent: 3, outcome: "unknown" })],
    /^The end of what it was to stop/,
    /^Look at the operation that has its key.* settle --as done --note "\.\.\." -- -a /,
  ],
  [
    "a sale that was done, and sent again a day later",
    [sent({ timeMs: dayBeforeMs }), settled({}), sent({ requestId: "r2" }), settled({ sent: 3 })],
    /^The same call had been sent more than a day before, and didn't fail/,
    /^Compare with the terminal's report/,
  ],
];

for (const [what, records, proof, todo] of advised) {
  test(`explain() advises nothing that is done twice or can't be: ${what}`, () => {
    // The operation that is meant is the only one, the first, or came behind the one that its key has.
    const all = explained(records);
    const meant = all.find((each) => proof.test(each.proof) && todo.test(each.todo));
    assert.ok(
      meant !== undefined,
      JSON.stringify(
        all.map((each) => [each.proof, each.todo]),
        undefined,
        2,
      ),
    );
  });
}

test("explain() tells the first and the last of what a till was told again and again", () => {
  const log = ["r1", "r2", "r3", "r4"].map((requestId) =>
    told({ requestId, outcome: "answered", result: "pending", httpStatus: 200 }),
  );
  assertMapped(explained([sent(), going], log)[0]?.moments.slice(2) ?? [], ["r1", "r4"], ({ text }) => /r\d/.exec(text)?.[0]);
});

test("explain() tells of an operation only what was asked about it or sent by its route", () => {
  const records = [
    sent({ service: "qr", route: "/showqrcode", digest: "e" }),
    sent({ service: "qr", route: "/refund", requestId: "r2" }),
  ];
  const log = ["/check", "/refund"].map((route) => told({ service: "qr", route, requestId: route, outcome: "answered" }));
  assertMapped(
    explained(records, log),
    [
      ["r1", "/check"],
      ["r2", "/refund"],
    ],
    ({ moments }) => moments.map(({ text }) => /request (?:r[12]|\/\w+)/i.exec(text)?.[0].split(" ")[1]),
  );
});
