import assert from "node:assert/strict";
import { test } from "node:test";
import { busy, error, kept, lost, ok, over, repeat, type Script, scriptOf, wrong } from "./scripted.ts";

/** Tests src/settle/judge.ts. */

const body = { pay_id: "P-1", amount: 1500, currency: "944", currency_name: "AZN", pay_system: "A" };
const back = { ...body, trans: "T-1", rrn: "77" };
const shown = ok({ data: { trans: "T-1" } });
const paid = ok({ data: { rrn: "77" } });
const refused = error(1);
/** What a gateway writes on its line where it doesn't know: a bridge before it can't tell it from the service's own. */
const unsure = ok({ message: "No answer to it: the upstream answered with HTTP 500" });

async function settled(script: Script, more: object = {}) {
  const world = over(script);
  const options = { ...world.options, windowMs: 20_000, intervalMs: 1000 };
  const result = await world.client.qr.settle("showqrcode", { ...body, ...more }, options);
  const asked = world.service.seen.filter(({ route }) => route === "/check").map((seen) => seen.body["trans"]);
  return { ...world, ...result, asked };
}

test("qr.settle polls /check with pay_id, the trans of data.trans and pay_system, until data.rrn (flow rule 2)", async () => {
  const { result, data, service, done } = await settled([
    ["/showqrcode", shown],
    ["/check", ok()],
    ["/check", paid],
  ]);
  assert.equal(result, "approved");
  assert.deepEqual(data?.rrn, "77");
  assert.deepEqual(service.seen[1]?.body, { pay_id: "P-1", trans: "T-1", pay_system: "A" });
  done();
});

test("qr.settle asks with the caller's trans, else with pay_id, where /showqrcode gave none", async () => {
  const script: Script = [
    ["/showqrcode", ok()],
    ["/check", paid],
  ];
  assert.deepEqual((await settled(script)).asked, ["P-1"]);
  assert.deepEqual((await settled(script, { trans: "MINE" })).asked, ["MINE"]);
});

const words = { ok: ok(), shown, paid, lost, unsure, wrong, "1@422": { ...refused, httpStatus: 422 } };

for (const [what, script, expected] of [
  ["status error at /check, its trans given", "showqrcode shown, check ok, check 1", "declined"],
  ["status error once /check has known it by the trans that was guessed", "showqrcode ok, check ok, check 1", "declined"],
  ["status error after a gateway's doubts, its trans given", "showqrcode shown, check unsure, check 1", "declined"],
  ["an error at /check with an HTTP error status, which is no end", "showqrcode shown, check 1@422, check paid", "approved"],
  ["a lost start that runs (flow rule 3)", "showqrcode lost, check ok, check paid", "approved"],
  ["a refused start that runs", "showqrcode 1, check 1, showqrcode shown, check paid", "approved"],
  [
    "a resending that is turned away while the first is in doubt",
    "showqrcode 1, check 1, showqrcode wrong, check paid",
    "approved",
  ],
  [
    "a refused start, which shows no code, and a code that failed",
    "showqrcode 1, check 1, showqrcode shown, check ok, check 1",
    "declined",
  ],
  ["two refusals of the same start, and /check knows nothing", "showqrcode 1, check 1, showqrcode 1, check 1", "declined"],
  // An earlier start may have had a trans of its own: no error proves an end then
  ["a lost start before", "showqrcode lost, check 1, showqrcode ok, check 1 x19", "unknown"],
  ["a start before that a gateway lost", "showqrcode unsure, check 1, showqrcode ok, check 1 x19", "unknown"],
  ["a refused start before", "showqrcode 1, check 1, showqrcode ok, check 1 x19", "unknown"],
] as const) {
  test(`qr.settle after ${what}: ${expected}`, async () => {
    const { result, code, done } = await settled(scriptOf(script, words));
    assert.deepEqual([result, code], [expected, expected === "declined" ? 1 : code]);
    done();
  });
}

for (const [again, expected] of [
  ["lost", "lost"],
  ["lost, and then refused,", "1"],
] as const) {
  test(`qr.settle resends a start that was ${again} three times at most, and then says unknown`, async () => {
    const pairs = Array.from({ length: 3 }, () => `check 1, showqrcode ${expected}`).join(", ");
    const { result, done } = await settled(scriptOf(`showqrcode lost, ${pairs}, check 1 x17`, words));
    assert.equal(result, "unknown");
    done();
  });
}

for (const [name, more, trans, answer] of [
  ["the pay_id", {}, "P-1", ok()],
  ["the body's trans", { trans: "MINE" }, "MINE", ok({ data: { qr: "https://pay.invalid/1" }, message: "show it" })],
] as const) {
  test(`qr.settle asks with ${name} where the start gave no data.trans, and an error at /check ends it: declined`, async () => {
    const { result, code, asked, done } = await settled(
      [
        ["/showqrcode", answer],
        ["/check", refused],
      ],
      more,
    );
    assert.deepEqual([result, code, asked], ["declined", 1, [trans]]);
    done();
  });
}

for (const [name, before] of [
  ["was lost", lost],
  ["was answered by a gateway that lost it", unsure],
] as const) {
  test(`qr.settle takes no code's failure for the end where an earlier start, whose code may be paid, ${name}`, async () => {
    const again: Script = [
      ["/showqrcode", before],
      ["/check", refused],
      ["/showqrcode", shown],
    ];
    const failed = await settled([...again, ...repeat(19, ["/check", refused])]);
    assert.equal(failed.result, "unknown");
    failed.done();
    assert.equal((await settled([...again, ["/check", paid]])).result, "approved");
    const own = await settled([...again, ["/check", refused]], { trans: "T-1" });
    assert.equal(own.result, "declined", "it has the name that the till gave it, as the first one had");
    own.done();
  });
}

test("qr.settle takes a success that has a message alone for nothing: over a gateway it stands for an unknown outcome", async () => {
  for (const first of [
    [["/showqrcode", unsure]],
    [
      ["/showqrcode", lost],
      ["/check", unsure],
    ],
  ] as const satisfies readonly Script[]) {
    const { result, asked, done } = await settled([
      ...first,
      ["/check", refused],
      ["/showqrcode", shown],
      ["/check", unsure],
      ["/check", paid],
    ]);
    assert.deepEqual([result, asked.at(-1)], ["approved", "T-1"]);
    done();
  }
});

test("qr.settle resends a lost /showqrcode with the same pay_id to learn its trans", async () => {
  const { result, service, asked, done } = await settled([
    ["/showqrcode", lost],
    ["/check", refused],
    ["/showqrcode", shown],
    ["/check", paid],
  ]);
  assert.equal(result, "approved");
  assert.equal(service.bodies[0], service.bodies[2]);
  assert.deepEqual(asked, ["P-1", "T-1"]);
  done();
});

for (const [operation, route] of [
  ["cancel", "/cancel"],
  ["refund", "/refund"],
  ["finalConfirm", "/final_confirm"],
] as const) {
  const once = async (script: Script) => {
    const world = over(script);
    const { result } = await world.client.qr.settle(operation, back, world.options);
    world.done();
    return result;
  };
  test(`qr.settle says of ${route} what its one answer says`, async () => {
    assert.equal(await once([[route, paid]]), "approved");
    assert.equal(await once([[route, refused]]), "unknown");
    assert.equal(await once([[route, wrong]]), "not-sent");
    // Endpoints, responses: on success data.rrn, which final_confirm's is typically without
    for (const bare of [ok(), ok({ data: {} }), ok({ data: null }), ok({ data: { rrn: null } })]) {
      assert.equal(await once([[route, bare]]), operation === "finalConfirm" ? "approved" : "unknown");
    }
  });
  test(`qr.settle never resends ${route}: a lost one is unknown (flow rule 3)`, async () => {
    assert.equal(await once([[route, lost]]), "unknown");
  });
  test(`qr.settle sends ${route} again only while it wasn't sent`, async () => {
    assert.equal(
      await once([
        [route, busy],
        [route, paid],
      ]),
      "approved",
    );
    assert.equal(
      await once([
        [route, busy],
        [route, lost],
      ]),
      "unknown",
    );
  });
  test(`resume() of ${route} sends nothing: unknown`, async () => {
    const first = over([[route, lost]]);
    const { token } = await first.client.qr.settle(operation, back, first.options);
    const second = over([]);
    assert.equal((await second.client.resume(token, second.options)).result, "unknown");
    second.done();
  });
}

test("qr.settle shows beside unknown no error that ends a payment by the contract: it isn't proven to be this one's", async () => {
  const notPaid = ["/check", error(1, { message: "not paid" })] as const;
  const { result, code, message, data } = await settled([
    ["/showqrcode", lost],
    ...repeat(3, notPaid, ["/showqrcode", lost]),
    ...repeat(17, notPaid),
  ]);
  assert.deepEqual([result, code, data], ["unknown", undefined, undefined]);
  assert.equal(
    message,
    "it may have been carried out, and the last answer is about another operation, or doesn't prove how this one ended",
  );
});

test("qr.settle makes no pay_id for an operation that refers to a payment", async () => {
  const world = over([["/final_confirm", ok()]]);
  await world.client.qr.settle("finalConfirm", { pay_system: "A" }, world.options);
  assert.deepEqual(world.service.seen[0]?.body, { pay_system: "A" });
});

test("qr: an error answered to what can't be asked about is unknown, with its code and message", async () => {
  for (const [operation, route] of [
    ["cancel", "/cancel"],
    ["refund", "/refund"],
    ["finalConfirm", "/final_confirm"],
  ] as const) {
    const world = over([[route, error(1)]]);
    const body = { pay_id: "P-1", trans: "T", rrn: "1", amount: 1, currency: "944", currency_name: "AZN", pay_system: "A" };
    const settled = await world.client.qr.settle(operation, body, world.options);
    assert.deepEqual([settled.result, settled.code], ["unknown", 1]);
    assert.match(settled.message ?? "", /^code 1: .*this operation has no query/);
    assert.notEqual(world.events.at(-1)?.reply, undefined);
  }
});

test("qr: a refund's success without the rrn is unknown, and says why", async () => {
  const world = over([["/refund", ok({ data: { trans: "T-1" } })]]);
  const { result, message, data } = await world.client.qr.settle("refund", back, world.options);
  assert.deepEqual([result, data], ["unknown", { trans: "T-1" }]);
  assert.match(message ?? "", /^the success has no data\.rrn: .*this operation has no query: look it up/);
});

test("qr.settle calls a code's failure no end where an earlier start is lost, though its own code was known to be asked for", async () => {
  const script: Script = [
    ["/showqrcode", lost],
    ["/check", refused],
    ["/showqrcode", shown],
    ["/check", ok({ data: {} })],
  ];
  const { result, asked } = await settled([...script, ...repeat(20, ["/check", refused])]);
  assert.deepEqual([result, asked[1]], ["unknown", "T-1"]);
});

test("resume() of a payment that has ended as approved takes no error for its end", async () => {
  const paidOnce = await settled([
    ["/showqrcode", shown],
    ["/check", paid],
  ]);
  assert.equal(paidOnce.result, "approved");
  const again = over([["/check", refused]]);
  assert.equal((await again.client.resume(paidOnce.token, again.options)).result, "approved");
  again.done();
});

for (const [name, more, answer, trans] of [
  ["the trans that /showqrcode returned", {}, shown, "T-1"],
  ["the till's own where it returned none, its pay_id", {}, ok(), "P-1"],
  ["the till's own where it returned none, its trans", { trans: "MINE" }, ok(), "MINE"],
] as const) {
  test(`qr.settle gives ${name}, while the payment goes on, and with its end`, async () => {
    const {
      result,
      trans: given,
      token,
      events,
    } = await settled(
      [
        ["/showqrcode", answer],
        ["/check", ok()],
        ["/check", paid],
      ],
      more,
    );
    assert.deepEqual([result, given, token.trans], ["approved", trans, trans]);
    assert.deepEqual([...new Set(events.map((event) => event.token.trans))], [undefined, trans]);
    const again = over([["/check", paid]]);
    assert.equal((await again.client.resume(kept(token), again.options)).trans, trans, "and resumed once more");
  });
}

test("qr.settle gives the name by which /check knows a payment whose start was lost, and none that /check doesn't know", async () => {
  for (const answers of [[paid], [ok(), paid]]) {
    const { result, trans } = await settled([["/showqrcode", lost], ...answers.map((answer) => ["/check", answer] as const)]);
    assert.deepEqual([result, trans], ["approved", "P-1"]);
  }
  const unsure = await settled([["/showqrcode", lost], ...repeat(20, ["/check", lost])]);
  assert.deepEqual([unsure.result, unsure.trans, unsure.token.trans], ["unknown", undefined, undefined]);
});

test("qr.settle of a code that was shown twice gives no trans until /check says by it that it is paid", async () => {
  const again: Script = [
    ["/showqrcode", lost],
    ["/check", refused],
    ["/showqrcode", shown],
  ];
  for (const answer of [refused, ok()]) {
    const open = await settled([...again, ...repeat(20, ["/check", answer])]);
    assert.deepEqual([open.result, open.trans, open.token.trans], ["unknown", undefined, undefined]);
  }
  const { result, trans, token } = await settled([...again, ["/check", paid]]);
  assert.deepEqual([result, trans, token.trans], ["approved", "T-1", "T-1"]);
});

test("settle of what has no name of the service's gives no trans", async () => {
  const world = over([["/refund", ok({ data: { rrn: "1" } })]]);
  const { trans, token } = await world.client.qr.settle("refund", back, world.options);
  assert.deepEqual([trans, "trans" in token], [undefined, false]);
});
