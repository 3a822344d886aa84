import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "../../src/app/client.ts";
import { openLine } from "../../src/app/client-line.ts";
import { createClientOver, createHttpClient } from "../../src/client/client.ts";
import { NotSentError } from "../../src/client/errors.ts";
import { readToken } from "../../src/client/token.ts";
import { OpenError } from "../../src/line/conduit.ts";
import { busy, error, lost, merchantId, ok, over, type Script } from "./scripted.ts";

const sale = { pay_id: "P-1", amount: 1500, currency_name: "AZN" };
const receipt = { documentExtID: "ORDER-1", items: [{ itemAmount: 150 }] };
const data = (status: string, more: object = {}) => ({ txn_id: "7", status, rrn: "77", ...more });
const approved = ok({ data: data("APPROVED") });
const absent = error(-15);
const gone = error(9);
const closed = ok({ docStatus: 1, documentID: 12 });
const repeat = (times: number, ...steps: Script): Script => Array.from({ length: times }, () => steps).flat();

/** Follows with a stop that comes while the given request is out, or before all when that is 0. */
async function stoppedAt(request: number, script: Script, service: "bank" | "fiscal" = "bank") {
  const world = over(script);
  const stop = new AbortController();
  if (request === 0) stop.abort();
  const send = world.service.send.bind(world.service);
  world.service.send = async (each) => {
    const answer = await send(each);
    if (world.service.seen.length === request) stop.abort();
    return answer;
  };
  const options = { ...world.options, askOnly: stop.signal, windowMs: 20_000, intervalMs: 1000 };
  const { client } = world;
  const settled = await (service === "bank"
    ? client.bank.settle("sale", sale, options)
    : client.fiscal.settle("sale", receipt, options));
  world.done();
  return settled;
}

test("askOnly before the first sending: nothing is sent, and it is declined or failed", async () => {
  assert.equal((await stoppedAt(0, [])).result, "declined");
  assert.equal((await stoppedAt(0, [], "fiscal")).result, "failed");
});

test("askOnly: a start that wasn't sent is not tried again, and has ended", async () => {
  assert.equal((await stoppedAt(1, [["/sale", busy]])).result, "declined");
});

test("askOnly: an operation that runs is asked about to its end", async () => {
  const { result } = await stoppedAt(1, [
    ["/sale", ok()],
    ["/check", ok()],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
});

test('askOnly: a lost start is never resent, and the third "not found" in a row ends it', async () => {
  assert.equal((await stoppedAt(1, [["/sale", lost], ...repeat(3, ["/check", absent])])).result, "declined");
  const fiscal: Script = [["/sale", lost], ...repeat(3, ["/check_status", gone])];
  assert.equal((await stoppedAt(1, fiscal, "fiscal")).result, "failed");
});

test("askOnly that comes with the question's -15 keeps the resend from being sent", async () => {
  assert.equal((await stoppedAt(2, [["/sale", lost], ...repeat(3, ["/check", absent])])).result, "declined");
});

test("askOnly: fiscal code 5 is asked about, not resent", async () => {
  const { result } = await stoppedAt(
    1,
    [
      ["/sale", error(5)],
      ["/check_status", closed],
    ],
    "fiscal",
  );
  assert.equal(result, "closed");
});

test("askOnly: a document in progress that is then not found three times in a row has failed", async () => {
  const script: Script = [["/sale", error(44)], ...repeat(3, ["/check_status", gone])];
  assert.equal((await stoppedAt(1, script, "fiscal")).result, "failed");
});

test("askOnly: an accepted bank operation that isn't found stays unknown", async () => {
  assert.equal((await stoppedAt(1, [["/sale", ok()], ...repeat(20, ["/check", absent])])).result, "unknown");
});

test("askOnly that comes while onProgress stores the token keeps the start from being sent", async () => {
  const world = over([]);
  const stop = new AbortController();
  const { result } = await world.client.bank.settle("sale", sale, {
    clock: world.clock,
    askOnly: stop.signal,
    onProgress: () => stop.abort(),
  });
  assert.equal(result, "declined");
  world.done();
});

test("askOnly that comes while the request is being signed keeps it from being sent", async () => {
  const world = over([]);
  const stop = new AbortController();
  const lookUp = () => {
    stop.abort();
    return merchantId;
  };
  const client = createClientOver(world.service, { fiscal: { merchantId: lookUp } });
  const { result } = await client.fiscal.settle("sale", receipt, { clock: world.clock, askOnly: stop.signal });
  assert.equal(result, "failed");
  world.done();
});

test("resume() with askOnly resends nothing, and a token that was stopped stays so", async () => {
  const first = await stoppedAt(1, [["/sale", lost], ...repeat(20, ["/check", error(-3)])]);
  assert.deepEqual([first.result, first.token.known.askOnly], ["unknown", true]);
  const token: unknown = JSON.parse(JSON.stringify(first.token));
  const world = over(repeat(3, ["/check", absent]));
  assert.equal((await world.client.resume(token, world.options)).result, "declined");
  world.done();
  const { known, ...rest } = readToken(token).token;
  const again = over(repeat(3, ["/check", absent]));
  const options = { ...again.options, askOnly: AbortSignal.abort() };
  assert.equal((await again.client.resume({ ...rest, known: { ...known, askOnly: false } }, options)).result, "declined");
  again.done();
});

test("fiscal: a refusal after code 5 isn't believed until /check_status says 9", async () => {
  for (const [end, expected] of [
    [closed, "closed"],
    [gone, "failed"],
  ] as const) {
    const world = over([
      ["/sale", error(5)],
      ["/sale", error(6)],
      ["/check_status", end],
    ]);
    assert.equal((await world.client.fiscal.settle("sale", receipt, world.options)).result, expected);
    world.done();
  }
});

test("fiscal: codes that a document may stand behind are asked about, and followed while it is open", async () => {
  for (const code of [4, 7, 8, 10, 11, 12, 13, 23, 99]) {
    const world = over([
      ["/sale", error(code)],
      ["/check_status", error(44)],
      ["/check_status", ok({ docStatus: 0 })],
      ["/check_status", closed],
    ]);
    assert.equal((await world.client.fiscal.settle("sale", receipt, world.options)).result, "closed");
    world.done();
  }
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
    assert.match(settled.message ?? "", /^code 1: .*nothing to ask/);
    assert.notEqual(world.events.at(-1)?.reply, undefined);
  }
});

for (const operation of ["sale", "preauth", "refund", "confirm", "cancel"] as const) {
  test(`bank: after an error that leaves ${operation} open nothing is resent, and -15 must come three times in a row`, async () => {
    const before: Script = ["sale", "preauth"].includes(operation) ? [] : [["/check", absent]];
    const script: Script = [
      ...before,
      [`/${operation}`, error(-3)],
      ...repeat(2, ["/check", absent]),
      ["/check", error(-3)],
      ...repeat(3, ["/check", absent]),
    ];
    const world = over(script);
    const { result, token } = await world.client.bank.settle(operation, sale, world.options);
    assert.deepEqual([result, token.known.doubt], ["declined", true]);
    world.done();
  });
}

test("bank: -15 answered to a resent start is no reason to send it again", async () => {
  const world = over([["/sale", lost], ["/check", absent], ["/sale", absent], ...repeat(3, ["/check", absent])]);
  assert.equal((await world.client.bank.settle("sale", sale, world.options)).result, "declined");
  world.done();
});

test("bank: a success whose data.status is ERROR or REVERSED is no end", async () => {
  for (const status of ["ERROR", "REVERSED"]) {
    const world = over([["/sale", ok()], ...repeat(20, ["/check", ok({ data: data(status) })])]);
    const options = { ...world.options, windowMs: 20_000, intervalMs: 1000 };
    assert.equal((await world.client.bank.settle("sale", sale, options)).result, "unknown");
    world.done();
  }
});

for (const [name, before, then, expected] of [
  ["another rrn under the same txn_id", data("APPROVED"), data("APPROVED", { rrn: "78" }), "unknown"],
  ["an rrn that only the later has", { txn_id: "7", status: "APPROVED" }, data("APPROVED"), "unknown"],
  ["a txn_id that only the later has", { status: "APPROVED", rrn: "77" }, data("APPROVED"), "unknown"],
  ["another rrn where one has no txn_id", { status: "APPROVED", rrn: "1" }, data("APPROVED"), "approved"],
  ["another txn_id", data("APPROVED"), data("APPROVED", { txn_id: "8" }), "approved"],
] as const) {
  test(`bank: ${name} than the baseline's makes /cancel ${expected}`, async () => {
    const asked = expected === "unknown" ? 20 : 1;
    const script: Script = [
      ["/check", ok({ data: before })],
      ["/cancel", ok()],
      ...repeat(asked, ["/check", ok({ data: then })]),
    ];
    const world = over(script);
    const options = { ...world.options, windowMs: 20_000, intervalMs: 1000 };
    assert.equal((await world.client.bank.settle("cancel", sale, options)).result, expected);
    world.done();
  });
}

test("fiscal: a refund whose start is answered with the sale's own document isn't closed by it", async () => {
  const world = over([
    ["/check_status", closed],
    ["/refund", closed],
    ["/check_status", closed],
    ["/check_status", ok({ docStatus: 1, documentID: 13 })],
  ]);
  const { result, data: told } = await world.client.fiscal.settle("refund", receipt, world.options);
  assert.deepEqual([result, told?.documentID], ["closed", 13]);
  world.done();
});

test("fiscal: a body that names its operation by documentID gets no documentExtID, and its baseline is asked", async () => {
  const world = over([
    ["/check_status", gone],
    ["/refund", closed],
  ]);
  const body = { documentID: 12, items: [{ itemAmount: 150 }] };
  assert.equal((await world.client.fiscal.settle("refund", body, world.options)).result, "closed");
  assert.deepEqual(
    world.service.seen.map((seen) => seen.body),
    [{ documentID: 12 }, body],
  );
});

test("createHttpClient() refuses a url and a key that no request can be built of, and quotes neither", () => {
  const secret = "s3cret";
  for (const url of [
    `http://till:${secret}@127.0.0.1:8888`,
    `http://${secret}@127.0.0.1:8888`,
    `ftp://${secret}`,
    `http://${secret}:99999`,
    `http://127.0.0.1:6000/${secret}`,
    "http://127.0.0.1:0",
    `http://127.0.0.1/?key=${secret}`,
  ]) {
    assert.throws(
      () => createHttpClient({ bank: { url } }),
      (thrown) => thrown instanceof TypeError && !JSON.stringify([thrown.message, thrown, thrown.stack]).includes(secret),
    );
  }
  for (const apiKey of [`${secret}\n`, `${secret} `, `${secret}ə`, ""]) {
    assert.throws(
      () => createHttpClient({ bank: { apiKey } }),
      (thrown) => thrown instanceof TypeError && !thrown.message.includes(secret),
    );
  }
});

test("a merchantId that never comes ends by timeoutMs and by signal as not-sent", async () => {
  const world = over([]);
  const never = () => new Promise<string>(() => {});
  const client = createClientOver(world.service, { fiscal: { merchantId: never } });
  await assert.rejects(client.fiscal.checkShift({}, { timeoutMs: 5 }), NotSentError);
  const leaving = new AbortController();
  const call = client.fiscal.checkShift({}, { signal: leaving.signal });
  leaving.abort();
  await assert.rejects(call, NotSentError);
  world.done();
});

test("a call that is left while the line is opening is not-sent", async () => {
  let looked = false;
  const client = createClient({
    fiscal: {
      merchantId: () => {
        looked = true;
        return new Promise<string>(() => {});
      },
    },
    line: { path: "/dev/none", services: ["bank"] },
  });
  const leaving = new AbortController();
  const call = client.bank.sale(sale, { signal: leaving.signal });
  while (!looked) await new Promise((resolve) => setImmediate(resolve));
  leaving.abort();
  await assert.rejects(call, NotSentError);
});

test("settle() that is left before anything was sent says declined; after a lost start unknown", async () => {
  for (const [answer, expected] of [
    [busy, "declined"],
    [lost, "unknown"],
  ] as const) {
    const world = over([["/sale", answer]]);
    const leaving = new AbortController();
    const { result } = await world.client.bank.settle("sale", sale, {
      clock: world.clock,
      signal: leaving.signal,
      onProgress: ({ type }) => {
        if (type === "waiting") leaving.abort();
      },
    });
    assert.equal(result, expected);
    world.done();
  }
});

test("settle() throws TypeError for a windowMs or intervalMs of a wrong kind before anything is sent", async () => {
  for (const options of [{ windowMs: "1000" }, { windowMs: null }, { intervalMs: "1000" }, { intervalMs: 1000n }]) {
    const world = over([]);
    // What a caller without types may give
    const given = options as unknown as { windowMs: number };
    await assert.rejects(world.client.bank.settle("sale", sale, given), TypeError);
    assert.equal(world.service.seen.length, 0);
  }
});

test("LineTransport.send() with a signal that is aborted already, or withdrawn, is not-sent", async (t) => {
  const open = () => Promise.reject(new OpenError("there is no device"));
  const transport = await openLine({ path: "/dev/none", services: ["bank"], open }, undefined);
  t.after(() => transport.close());
  const request = { service: "bank", route: "/sale", method: "POST", body: "{}" } as const;
  const left = await transport.send(request, AbortSignal.abort());
  const withdrawn = await transport.send({ ...request, withdrawn: AbortSignal.abort() }, new AbortController().signal);
  for (const { outcome, reason } of [left, withdrawn]) {
    assert.equal(outcome, "not-sent");
    assert.match(reason ?? "", /had left/);
  }
});
