import assert from "node:assert/strict";
import { test } from "node:test";
import { createClientOver } from "../../src/client/client.ts";
import { methodName } from "../../src/client/remote-service.ts";
import type { Settled, SettleOptions } from "../../src/client/settle-types.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { busy, error, kept, lost, ok, over, repeat, reply, type Script, scriptOf, wrong } from "./scripted.ts";

/**
 * Tests src/client/settle.ts, src/settle/judge.ts, src/contract/settling.ts.
 *
 * Whole operations of each contract: what is sent and answered, in order, and what settle() says then. Questions are a second apart. What is
 * decided by the facts alone has its rows in judge.test.ts.
 */

const data = (status: string, more: object = {}) => ({ data: { txn_id: "7", status, rrn: "77", auth: "1", ...more } });

const answers = {
  ...{ lost, busy, wrong, ok: ok() },
  // bank
  ...{ approved: ok(data("APPROVED")), other: ok(data("APPROVED", { txn_id: "8" })), declined: error(-20, data("ERROR")) },
  ...{ reversed: error(-1, data("REVERSED")), isApproved: error(-3, data("APPROVED")), odd: ok({ status: "IN_PROGRESS" }) },
  ...{ isError: ok(data("ERROR")), isReversed: ok(data("REVERSED")), noData: ok({ data: null }) },
  ...{ printed: ok(data("APPROVED", { print_data: {} })), gateway: reply({ status: "error", message: "gateway timeout" }) },
  // fiscal
  ...{ open: ok({ docStatus: 0, documentID: 12 }), minus: ok({ docStatus: -1 }), closed: ok({ docStatus: 1, documentID: 12 }) },
  ...{
    own: ok({ docStatus: 1, documentID: 13 }),
    one: ok({ docStatus: "1" }),
    another: ok({ docStatus: 1, documentExtID: "X" }),
  },
  ...{
    unprinted: error(15, { docStatus: 1, documentID: "12" }),
    printError: ok({ docStatus: 1, documentID: 12, printError: 4 }),
  },
  ...{
    unnamed: ok({ docStatus: 1 }),
    cash: ok({ documentID: 3 }),
    goes: ok({ code: 44 }),
    unsigned: { ...error(1), outcome: "not-sent", httpStatus: 401 } as const,
  },
  // qr; "unsure" is a gateway's word on a line where it doesn't know, which looks like the service's own
  ...{ shown: ok({ data: { trans: "T-1" } }), paid: ok({ data: { rrn: "77" } }), unsure: ok({ message: "No answer to it" }) },
  ...{ "1@422": { ...error(1), httpStatus: 422 }, "-3@504": { ...error(-3), httpStatus: 504 } },
};

const bodies = {
  bank: { pay_id: "P-1", amount: 1500, currency_name: "AZN" },
  fiscal: { documentExtID: "D-1", items: [{ itemAmount: 150 }], amount: 150 },
  qr: { pay_id: "P-1", amount: 1500, currency: "944", currency_name: "AZN", pay_system: "A", rrn: "77" },
} as const;

type Service = keyof typeof bodies;

async function settled(
  service: Service,
  operation: string,
  script: Script,
  more: SettleOptions = {},
  body: object = bodies[service],
) {
  const world = over(script);
  const options = { ...world.options, windowMs: 60_000, intervalMs: 1_000, ...more };
  // Any operation of any service: the types hold them apart
  const settle = world.client[service].settle as (...given: readonly unknown[]) => Promise<Settled>;
  return { ...world, ...(await settle(methodName(`/${operation}`), body, options)) };
}

const none = "check -15 x3, ";
const noDocument = "check_status 9 x3, ";

/** A service, what is sent and answered, what is said, and the code that is told with it. */
type Row = readonly [service: Service, script: string, says: Settled["result"], code?: number];

const rows: readonly Row[] = [
  // Polling, and ends (bank.md, Endpoints, rules 1 and 2)
  ["bank", "sale ok, check ok, check noData, check approved", "approved"],
  ["bank", "sale odd, check approved", "approved"],
  ["bank", "sale ok, check declined", "declined", -20],
  ["bank", "sale ok, check reversed", "reversed", -1],
  ["bank", "sale ok, check isApproved, check isError, check isReversed, check declined", "declined", -20],
  ["bank", "sale ok, check lost, check busy, check -3, check wrong, check approved", "approved"],
  ["bank", "sale ok, check -15 x60", "unknown", -15],
  // Refused, or perhaps not
  ...[-29, -47, -16, -80, -100, -101].map((code): Row => ["bank", `sale ${code}`, "failed", code]),
  ...[-3, -20, -999].map((code): Row => ["bank", `sale ${code}, check ok, check approved`, "approved"]),
  ...[-3, -999, 504].map((code): Row => ["bank", `sale ${code}, check -15 x32`, "failed", code]),
  ["bank", "sale gateway, check -15 x32", "failed"],
  ["bank", "sale wrong", "not-sent"],
  ["bank", "sale -3, check -15 x28, check -3, check -15 x3", "failed", -3],
  // Lost, and sent again (rules 3 and 4)
  ["bank", "sale lost, check ok, check approved", "approved"],
  ...["sale", "preauth", "xreport", "close-shift"].map(
    (each): Row => ["bank", `${each} lost, check -15, ${each} ok, check approved`, "approved"],
  ),
  ["bank", "sale lost, check -15, sale -29, check approved", "approved"],
  ["bank", "sale lost, check -15, sale -20, check -15 x32", "failed", -20],
  ["bank", "sale lost, check -15, sale -15, check -15 x32", "failed", -15],
  ["bank", "sale lost, check -15, sale lost, check -15, sale lost, check -15, sale lost, check -15 x32", "failed", -15],
  ["bank", `refund lost, check -15, refund ok, check approved`, "approved"],
  ...["confirm", "cancel"].flatMap((each): readonly Row[] => [
    ["bank", `${each} lost, check -15 x32`, "failed", -15],
    ["bank", `${each} lost, check -15 x31, check approved`, "approved"],
    ["bank", `check approved, ${each} lost, check approved x60`, "unknown"],
    ["bank", `check approved, ${each} ok, check ok, check other`, "approved"],
    ["bank", `check ok, check lost, check approved, ${each} ok, check reversed`, "reversed"],
    ["bank", "check -3 x61", "not-sent", -3],
  ]),
  ...["sale", "preauth", "refund", "confirm", "cancel"].flatMap((each): readonly Row[] =>
    [-20, -21, -54].map((code) => ["bank", `${each} ${code}, check -15`, "failed", code]),
  ),
  ["bank", "check approved, cancel ok, check printed x60", "unknown"],
  ["bank", "check -15, check approved, cancel lost, check approved x59", "unknown"],
  ["bank", "check approved, cancel lost, check -15 x60", "unknown", -15],
  // Documents (fiscal.md, Errors, recovery behavior)
  ...["sale", "refund"].flatMap((each): readonly Row[] => [
    ...["closed", "unnamed", "one"].map((answer): Row => ["fiscal", `${each} ${answer}`, "closed"]),
    ...["open", "minus", "ok", "44"].map(
      (answer): Row => ["fiscal", `${each} ${answer}, check_status 44, check_status minus, check_status closed`, "closed"],
    ),
    ["fiscal", `${each} 1, ${each} closed`, "closed"],
    ["fiscal", `${each} 1, ${each} 1`, "failed", 1],
    ["fiscal", `${each} unsigned, ${each} closed`, "closed"],
    ["fiscal", `${each} unsigned, ${each} unsigned`, "not-sent", 1],
    ["fiscal", `${each} 5, ${each} closed`, "closed"],
    ["fiscal", `${each} 5 x4, check_status 9 x32`, "failed", 5],
    ...[2, 3, 6, 14].map((code): Row => ["fiscal", `${each} ${code}`, "failed", code]),
    ...[4, 7, 8, 9, 10, 11, 12, 13, 23].map((code): Row => ["fiscal", `${each} ${code}, check_status 9`, "failed", code]),
    ...[16, 36].map((code): Row => ["fiscal", `${each} ${code}, check_status 9 x32`, "failed", code]),
    ...[4, 8, 23, 99].map(
      (code): Row => ["fiscal", `${each} ${code}, check_status 44, check_status open, check_status closed`, "closed"],
    ),
    ["fiscal", `${each} lost, check_status 9, ${each} lost, check_status closed`, "closed"],
    ["fiscal", `${each} lost, check_status 9, ${each} 9, ${each} closed`, "closed"],
    ["fiscal", `${each} lost, check_status 9, ${each} 6, check_status closed`, "closed"],
    ["fiscal", `${each} lost, check_status 9, ${each} 23, check_status 9 x32`, "failed", 23],
    ["fiscal", `${each} 5, ${each} 6, check_status 9 x32`, "failed", 6],
    ["fiscal", `${each} another, check_status another, check_status closed`, "closed"],
    // The print (code 15)
    ["fiscal", `${each} 15, check_status open, check_status closed, check_copy ok`, "closed"],
    ["fiscal", `${each} 15, check_status closed, check_copy 15`, "unprinted", 15],
    ["fiscal", `${each} 15, check_status closed, check_copy lost`, "unprinted"],
  ]),
  ["fiscal", "sale 44, check_status 9 x60", "unknown", 9],
  ["fiscal", "sale lost, check_status unprinted, check_copy ok", "closed"],
  ["fiscal", "sale lost, check_status printError, check_copy ok", "closed"],
  ["fiscal", "sale lost, check_status 9, sale printError, check_status closed, check_copy ok", "closed"],
  ["fiscal", "sale 15, check_status unnamed", "unprinted"],
  ["fiscal", "sale 15, check_status closed, check_copy busy, check_copy ok", "closed"],
  // A refund under its sale's number
  ["fiscal", "check_status closed, refund lost, check_status closed, check_status own", "closed"],
  ["fiscal", "check_status closed, refund closed, check_status closed, check_status own", "closed"],
  ["fiscal", "check_status closed, refund lost, check_status closed x60", "unknown"],
  ["fiscal", "check_status 9, check_status closed, refund lost, check_status closed x59", "unknown"],
  ["fiscal", "check_status open, check_status 44, check_status another, check_status closed, refund own", "closed"],
  ["fiscal", "check_status closed, refund 6", "failed", 6],
  // Cash
  ...["deposit", "withdraw"].flatMap((each): readonly Row[] => [
    ...["cash", "closed"].map((answer): Row => ["fiscal", `${each} ${answer}`, "closed"]),
    ...["open", "minus", "goes"].flatMap((answer): readonly Row[] => [
      ["fiscal", `${each} ${answer}, check_status open, check_status closed`, "closed"],
      ["fiscal", `${each} ${answer}, check_status 9 x32`, "failed", 9],
    ]),
    ["fiscal", `${each} another, check_status 9, ${each} ok`, "closed"],
    ["fiscal", `${each} lost, check_status lost, check_status closed`, "closed"],
    ["fiscal", `${each} lost, check_status 9, ${each} ok`, "closed"],
    ["fiscal", `${each} 44, check_status 9 x32`, "failed", 9],
    ...[5, 504].map((code): Row => ["fiscal", `${each} ${code}, check_status 9 x32`, "failed", code]),
    ...[4, 7, 8, 11, 12, 13, 23].map((code): Row => ["fiscal", `${each} ${code}, check_status 9`, "failed", code]),
  ]),
  // Payments by QR (qr.md, Flow rules)
  ["qr", "showqrcode shown, check ok, check paid", "approved"],
  ["qr", "showqrcode shown, check ok, check 1", "declined", 1],
  ["qr", "showqrcode ok, check ok, check 1", "declined", 1],
  ["qr", "showqrcode shown, check unsure, check 1", "declined", 1],
  ["qr", "showqrcode shown, check 1@422, check paid", "approved"],
  ["qr", "showqrcode lost, check ok, check paid", "approved"],
  ["qr", "showqrcode lost, check 1, showqrcode shown, check paid", "approved"],
  ["qr", "showqrcode 1, check 1, showqrcode shown, check paid", "approved"],
  ["qr", "showqrcode 1, check 1, showqrcode wrong, check paid", "approved"],
  ["qr", "showqrcode 1, check 1, showqrcode shown, check ok, check 1", "declined", 1],
  ["qr", "showqrcode 1, check 1, showqrcode 1, check 1", "declined", 1],
  ["qr", "showqrcode unsure, check 1, showqrcode shown, check unsure, check paid", "approved"],
  ...["lost", "unsure"].map((before): Row => ["qr", `showqrcode ${before}, check 1, showqrcode shown, check 1 x59`, "unknown"]),
  ...["lost", "unsure", "1"].map(
    (before): Row => ["qr", `showqrcode ${before}, check 1, showqrcode ok, check 1 x59`, "unknown"],
  ),
  ["qr", "showqrcode lost, check 1, showqrcode shown, check ok, check 1 x58", "unknown"],
  [
    "qr",
    "showqrcode lost, check 1, showqrcode lost, check 1, showqrcode lost, check 1, showqrcode lost, check 1 x57",
    "unknown",
  ],
  ...["cancel", "refund", "final_confirm"].flatMap((each): readonly Row[] => [
    ["qr", `${each} paid`, "approved"],
    ["qr", `${each} ok`, each === "final_confirm" ? "approved" : "unknown"],
    ["qr", `${each} noData`, each === "final_confirm" ? "approved" : "unknown"],
    ["qr", `${each} 1`, "unknown", 1],
    ["qr", `${each} wrong`, "not-sent"],
    ["qr", `${each} lost`, "unknown"],
    ["qr", `${each} busy, ${each} paid`, "approved"],
    ["qr", `${each} busy, ${each} lost`, "unknown"],
  ]),
];

/** A follow-up's key is asked about first: unless the row says what is there, nothing is. */
function withBefore(service: Service, script: string): string {
  const isFollowUp = service === "bank" ? /^(refund|confirm|cancel) / : service === "fiscal" ? /^refund / : undefined;
  return isFollowUp?.test(script) ? (service === "bank" ? none : noDocument) + script : script;
}

for (const [service, written, says, code] of rows) {
  const words = withBefore(service, written);
  test(`${service}.settle: ${written} = ${says}`, async () => {
    const script = scriptOf(words, answers);
    const operation = script.find(([route]) => !/^\/(check|check_status|check_copy)$/.test(route))?.[0].slice(1) ?? "cancel";
    const ended = await settled(service, operation, script);
    assert.equal(ended.result, says);
    if (code !== undefined) assert.equal(ended.code, code);
    ended.done();
    const sent = ended.service.seen.flatMap(({ route }, at) => (route === `/${operation}` ? [ended.service.bodies[at]] : []));
    assert.ok(new Set(sent.map((body) => new URLSearchParams(body).get("data") ?? body)).size <= 1, "each time the same");
  });
}

test("settle() waits 1 s growing to 2 s between questions where no interval is given (bank.md, Limits), and as long as Retry-After says", async () => {
  const world = over([["/sale", ok()], ...repeat(6, ["/check", ok()]), ["/check", answers.approved]]);
  await world.client.bank.settle("sale", bodies.bank, world.options);
  assert.deepEqual(world.clock.slept, [1000, 1250, 1500, 1750, 2000, 2000, 2000]);
  const { clock } = await settled("bank", "sale", [
    ["/sale", { ...busy, retryAfterMs: 7000 }],
    ["/sale", busy],
    ["/sale", ok()],
    ["/check", answers.approved],
  ]);
  assert.deepEqual(clock.slept, [7000, 2000, 1000]);
});

test("settle() says resent of nothing that wasn't sent, and not-sent at the window's end", async () => {
  const { events } = await settled("bank", "sale", [
    ["/sale", busy],
    ["/sale", ok()],
    ["/check", answers.approved],
  ]);
  const types = events.map(({ type }) => type).filter((type) => type !== "waiting");
  assert.deepEqual(types, ["sent", "not sent", "sent", "in progress", "asked", "final"]);
  const never = await settled("bank", "sale", repeat(5, ["/sale", busy]), { windowMs: 20_000 });
  assert.deepEqual([never.result, never.message], ["not-sent", "the line is down"]);
  const copy = await settled(
    "fiscal",
    "sale",
    [["/sale", error(15)], ["/check_status", answers.closed], ...repeat(5, ["/check_copy", busy])],
    { windowMs: 20_000 },
  );
  assert.equal(copy.result, "unprinted");
});

test("settle() makes a missing key before the first event, asks nothing before it, and keeps it", async () => {
  const { pay_id: _, ...unnamed } = bodies.bank;
  const sale = await settled("bank", "sale", scriptOf("sale lost, check -15, sale ok, check approved", answers), {}, unnamed);
  const ids = [...new Set(sale.service.seen.map((seen) => seen.body["pay_id"]))];
  assert.ok(ids.length === 1 && typeof ids[0] === "string" && sale.events[0]?.token.body.includes(ids[0]));
  const cancel = await settled("bank", "cancel", scriptOf("cancel ok, check approved", answers), {}, unnamed);
  assert.equal(cancel.result, "approved");
  // A documentID is the service's to give
  const receipt = await settled("fiscal", "refund", scriptOf("refund closed", answers), {}, { documentID: 0, items: [] });
  assert.equal(typeof receipt.service.seen[0]?.body["documentExtID"], "string");
});

test("settle() gives the code, the message and the data of an end, and knows a key that lost its zeros", async () => {
  const { code, message, data: got } = await settled("bank", "sale", scriptOf("sale ok, check declined", answers));
  assert.deepEqual([code, message, got?.["status"]], [-20, "code -20", "ERROR"]);
  const number: Script = [["/sale", ok({ docStatus: 1, documentExtID: 7 })]];
  assert.equal((await settled("fiscal", "sale", number, {}, { ...bodies.fiscal, documentExtID: "007" })).result, "closed");
});

test("settle() prints by the document's own number", async () => {
  const { service, data: got } = await settled(
    "fiscal",
    "sale",
    scriptOf("sale 15, check_status unprinted, check_copy ok", answers),
  );
  assert.deepEqual([service.seen.at(-1)?.body, got?.["documentID"]], [{ documentID: 12 }, "12"]);
});

test("fiscal.settle looks the merchant's id up for each sending, and sends nothing where there is none", async () => {
  const { service, options } = over(scriptOf("sale 1, sale closed", answers));
  const ids = ["WRONG", "RIGHT"];
  const client = createClientOver(service, { fiscal: { merchantId: () => ids.shift() ?? "" } });
  assert.equal((await client.fiscal.settle("sale", bodies.fiscal, options)).result, "closed");
  const second = new URLSearchParams(service.bodies[1]);
  assert.equal(second.get("sign"), signOf(second.get("data") ?? "", "RIGHT"));
  const unsigned = over([]);
  const { result, message } = await createClientOver(unsigned.service).fiscal.settle("sale", bodies.fiscal, unsigned.options);
  assert.deepEqual([result, /merchantId/.test(message ?? "")], ["not-sent", true]);
});

for (const [before, after, says] of [
  [{ rrn: "77" }, { rrn: "78" }, "unknown"],
  [{ rrn: undefined }, {}, "unknown"],
  [{ txn_id: undefined }, {}, "unknown"],
  [{ txn_id: undefined, rrn: "1" }, {}, "approved"],
  [{}, { txn_id: "8" }, "approved"],
] as const) {
  test(`bank.settle of /cancel whose key had ${JSON.stringify(before)} is told of ${JSON.stringify(after)}: ${says}`, async () => {
    const asked = repeat(says === "unknown" ? 20 : 1, ["/check", ok(data("APPROVED", after))]);
    const script: Script = [["/check", ok(data("APPROVED", before))], ["/cancel", ok()], ...asked];
    assert.equal((await settled("bank", "cancel", script, { windowMs: 20_000 })).result, says);
  });
}

for (const [what, more, script, trans, asked] of [
  ["the trans that /showqrcode returned", {}, "showqrcode shown, check ok, check paid", "T-1", ["T-1", "T-1"]],
  ["the till's pay_id, where it returned none", {}, "showqrcode ok, check ok, check paid", "P-1", ["P-1", "P-1"]],
  ["the till's trans, where it returned none", { trans: "MINE" }, "showqrcode ok, check paid", "MINE", ["MINE"]],
  ["the name by which a lost one is found", {}, "showqrcode lost, check paid", "P-1", ["P-1"]],
  ["none that /check doesn't know", {}, "showqrcode lost, check lost x60", undefined, undefined],
  ["none of a code that was shown twice", {}, "showqrcode lost, check 1, showqrcode shown, check 1 x59", undefined, undefined],
  ["none of it while it goes on", {}, "showqrcode lost, check 1, showqrcode shown, check ok x59", undefined, undefined],
  ["that of it once it is paid", {}, "showqrcode lost, check 1, showqrcode shown, check paid", "T-1", ["P-1", "T-1"]],
  ["none of a refund, whose trans is the payment's", { trans: "T-1" }, "refund paid", undefined, []],
] as const) {
  test(`qr.settle gives ${what}, in its token too, and asks by it: ${script}`, async () => {
    const operation = script.startsWith("refund") ? "refund" : "showqrcode";
    const ended = await settled("qr", operation, scriptOf(script, answers), {}, { ...bodies.qr, ...more });
    assert.deepEqual([ended.trans, ended.token.trans], [trans, trans]);
    const names = ended.service.seen.filter(({ route }) => route === "/check").map(({ body }) => body["trans"]);
    if (asked !== undefined) assert.deepEqual(names, asked);
    if (ended.result !== "approved" || operation === "refund") return;
    const again = over([["/check", answers.paid]]);
    assert.equal((await again.client.resume(kept(ended.token), again.options)).trans, trans, "and resumed once more");
  });
}

test("qr.settle takes the failure of a code with the till's own name for the end, whatever came before", async () => {
  const script = scriptOf("showqrcode lost, check 1, showqrcode shown, check 1", answers);
  assert.equal((await settled("qr", "showqrcode", script, {}, { ...bodies.qr, trans: "T-1" })).result, "declined");
});

test("qr.settle shows beside unknown no error that ends a payment by the contract, and says what a refund's answer lacks", async () => {
  const open = await settled("qr", "showqrcode", scriptOf("showqrcode lost, check 1, showqrcode shown, check 1 x59", answers));
  assert.deepEqual([open.result, open.code, open.data], ["unknown", undefined, undefined]);
  assert.match(open.message ?? "", /^it may have been carried out, and the last answer is about another/);
  const bare = await settled("qr", "refund", [["/refund", answers.shown]]);
  assert.deepEqual([bare.result, bare.data], ["unknown", { trans: "T-1" }]);
  assert.match(bare.message ?? "", /^the success has no data\.rrn: .*this operation has no query: look it up/);
  const refused = await settled("qr", "refund", [["/refund", error(1)]]);
  assert.match(refused.message ?? "", /^code 1: .*this operation has no query/);
  assert.notEqual(refused.events.at(-1)?.reply, undefined);
  const again = over([]);
  assert.equal((await again.client.resume(kept(refused.token), again.options)).result, "unknown");
  assert.deepEqual(again.service.seen, []);
});
