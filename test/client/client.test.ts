import assert from "node:assert/strict";
import { test } from "node:test";
import { createClientOver, createHttpClient, type HttpClientOptions } from "../../src/client/client.ts";
import { NotSentError, RejectedError, UnknownError } from "../../src/client/errors.ts";
import { methodName } from "../../src/client/remote-service.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { settlingRules, settlingRulesOf } from "../../src/contract/settling.ts";
import { contractNames } from "../../src/core/call.ts";
import { error, lost, ok, over, reply, Scripted } from "./scripted.ts";

test("a client has one method for each route of each contract, and settle", () => {
  const client = createClientOver(new Scripted([]));
  for (const service of contractNames) {
    const names = contracts[service].routes.map(({ path }) => methodName(path));
    assert.deepEqual(Object.keys(client[service]).sort(), [...names, "settle"].sort());
  }
  assert.equal(methodName("/check_status"), "checkStatus");
  assert.equal(methodName("/close-shift"), "closeShift");
});

test("settlingRules has exactly the routes that are polled or may not be resent after a lost answer", () => {
  for (const service of contractNames) {
    const money = contracts[service].routes.filter(({ effect, polling }) => effect === "money" || polling !== undefined);
    const routes = settlingRules[service].map(({ route }) => route);
    const expected = money.map(({ path }) => path).concat(service === "qr" ? ["/final_confirm"] : []);
    assert.deepEqual([...routes].sort(), expected.sort());
  }
  assert.equal(settlingRulesOf("bank", "/terminals"), undefined);
});

test("a method gives the whole answer, with exact integers and fields that no contract names", async () => {
  const answer = '{"status":"success","documentID":9007199254740993,"docStatus":1,"discount":5}';
  const { client } = over([["/check_status", { ...reply({}), text: answer }]]);
  const got = await client.fiscal.checkStatus({ documentExtID: "ORDER-1" });
  assert.deepEqual(got, { status: "success", documentID: 9007199254740993n, docStatus: 1, discount: 5 });
});

test("a method sends big integers to the last digit, and a body of none where it takes none", async () => {
  const { client, service } = over([
    ["/sale", ok()],
    ["/terminate", ok()],
    ["/check_shift", ok()],
  ]);
  await client.bank.sale({ amount: 9007199254740993n, currency_name: "AZN" });
  await client.bank.terminate();
  await client.fiscal.checkShift();
  assert.equal(service.bodies[0], '{"amount":9007199254740993,"currency_name":"AZN"}');
  assert.equal(service.bodies[1], undefined);
  assert.deepEqual(service.seen[2]?.body, {});
});

test("RejectedError has the service's own code, message and data, and says what to do", async () => {
  const data = { status: "ERROR", error: "no money" };
  const { client } = over([
    ["/check", error(-20, { data })],
    ["/sale", error(-47)],
    ["/terminals", error(-3)],
  ]);
  await assert.rejects(client.bank.check({ pay_id: "P-1" }), (thrown) => {
    assert.ok(thrown instanceof RejectedError);
    assert.deepEqual([thrown.code, thrown.message, thrown.data, thrown.outcome], [-20, "code -20", data, "answered"]);
    return true;
  });
  await assert.rejects(client.bank.sale({ amount: 1, currency_name: "?" }), { advice: /nothing was started/ });
  await assert.rejects(client.bank.terminals(), RejectedError);
});

test("the advice after an error follows the contract's recovery rules", async () => {
  for (const [code, advice] of [
    [1, /rebuild the sign/],
    [5, /same documentExtID/],
    [6, /nothing was started/],
    [15, /check_status.*check_copy/],
    [44, /check_status/],
  ] as const) {
    const { client } = over([["/sale", error(code)]]);
    await assert.rejects(client.fiscal.sale({ documentExtID: "D-1", items: [{}] }), { advice });
  }
});

test("the advice after an error names no key to a till that gave none, and says so where nothing was started", async () => {
  for (const [code, advice] of [
    [6, /nothing was started/],
    [5, /no name to ask by: look at the terminal/],
    [44, /no name to ask by: look at the terminal/],
  ] as const) {
    const { client } = over([["/sale", error(code)]]);
    await assert.rejects(client.fiscal.sale({ items: [{}] }), { advice });
  }
});

test("UnknownError says to ask first, of a question that it may be asked again, and where there is no name to ask by", async () => {
  const { client } = over([
    ["/sale", lost],
    ["/check", lost],
    ["/terminate", lost],
  ]);
  const unknown = (advice: RegExp) => (thrown: unknown) => thrown instanceof UnknownError && advice.test(thrown.advice);
  const sale = { amount: 1, currency_name: "AZN" };
  await assert.rejects(client.bank.sale({ ...sale, pay_id: "P-1" }), unknown(/\/check with the same pay_id/));
  await assert.rejects(client.bank.sale(sale), unknown(/no name to ask by: look at the terminal$/));
  await assert.rejects(client.bank.check({ pay_id: "P-1" }), unknown(/^Nothing was changed: send the request again$/));
  await assert.rejects(client.bank.terminate(), unknown(/no name to ask by: look at the terminal$/));
});

test("a method rejects with NotSentError for a fiscal request that can't be signed", async () => {
  const service = new Scripted([]);
  const client = createClientOver(service);
  await assert.rejects(client.fiscal.getInfo(), { name: "NotSentError", passing: false, message: /merchantId is missing/ });
  assert.equal(service.seen.length, 0);
});

test("a method rejects with TypeError for a body that is no JSON, before it sends", async () => {
  const { client, service } = over([]);
  await assert.rejects(client.bank.sale({ amount: Number.NaN, currency_name: "AZN" }), TypeError);
  assert.equal(service.seen.length, 0);
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

test("createHttpClient() refuses options of other types, which would have calls go to another address or with a wrong sign", () => {
  const refused: readonly (readonly [unknown, string])[] = [
    ["http://127.0.0.1:8888", "Cannot make a client: the options are not an object"],
    [null, "Cannot make a client: the options are not an object"],
    [[], "Cannot make a client: the options are not an object"],
    [{ bank: "http://till-7.lan:8888" }, 'Cannot make a client: bank is not an object: use { url: "http://..." }'],
    [{ settle: "brigde" }, 'Cannot make a client: settle must be "client" or "bridge"'],
    [{ fetch: "x" }, "Cannot make a client: fetch is not a function"],
    [{ bank: { url: new URL("http://x") } }, "Cannot call bank: its url is not text: use one such as http://127.0.0.1:8888"],
    [{ bank: { apiKey: 5 } }, "Cannot call bank: its apiKey is not text"],
    [
      { bank: { replyBytesMax: Symbol("x") } },
      "Cannot call bank: its replyBytesMax must be a whole number from 1 to 8388608, not Symbol(x)",
    ],
    [{ bank: { timeoutMs: "5000" } }, "Cannot call bank: timeoutMs is not a number: use milliseconds above 0"],
    [{ fiscal: { merchantId: 7 } }, "Cannot make a client: merchantId of fiscal is not text: write it in quotes"],
    [{ fiscal: { merchantId: "" } }, "Cannot make a client: merchantId of fiscal is empty"],
    [
      { fiscal: { merchantId: "M-1\n" } },
      "Cannot make a client: merchantId of fiscal has a line break or another control character: leave it out",
    ],
  ];
  for (const [options, message] of refused) {
    assert.throws(() => createHttpClient(options as HttpClientOptions), { name: "TypeError", message });
  }
  createHttpClient({ bank: null, qr: undefined, settle: null, fetch: null } as unknown as HttpClientOptions);
});

test("createHttpClient() refuses an option of a service that is misspelt, or another service's, and takes one that isn't given for none", () => {
  const refused: readonly (readonly [unknown, string])[] = [
    [{ bank: { timeoutms: 5 } }, "bank has no option timeoutms: use contract, url, timeoutMs, replyBytesMax, apiKey"],
    [{ fiscal: { apiKey: "K" } }, "fiscal has no option apiKey: use contract, url, timeoutMs, replyBytesMax, merchantId"],
    [{ qr: { URL: "http://till-7:8887" } }, "qr has no option URL: use contract, url, timeoutMs, replyBytesMax"],
    [
      { "bank-2": { contract: "bank", apikey: "K" } },
      "bank-2 has no option apikey: use contract, url, timeoutMs, replyBytesMax, apiKey",
    ],
  ];
  for (const [options, message] of refused) {
    const thrown = { name: "TypeError", message: `Cannot make a client: ${message}` };
    assert.throws(() => createHttpClient(options as HttpClientOptions), thrown);
    assert.throws(() => createClientOver(new Scripted([]), options as HttpClientOptions), thrown);
  }
  createHttpClient({ bank: { timeoutms: undefined, key: null } } as HttpClientOptions);
});

test("a merchantId that is looked up and can't be one ends as not-sent, and one of null is missing", async () => {
  const messageWith = async (merchantId: unknown) => {
    const call = createHttpClient({ fiscal: { merchantId } } as HttpClientOptions).fiscal.checkStatus({ documentExtID: "A" });
    return call.catch((error: unknown) => (error instanceof NotSentError ? error.message : String(error)));
  };
  assert.equal(await messageWith(null), "Cannot sign the request: merchantId is missing: pass it to the client");
  assert.equal(await messageWith(() => 7), "Cannot sign the request: merchantId is not text: write it in quotes");
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
