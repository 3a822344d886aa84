import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type CallError, NotSentError, RejectedError, UnknownError } from "../../src/client/errors.ts";
import {
  type CallOptions,
  type MerchantId,
  methodsOf,
  RemoteService,
  type RemoteServiceOptions,
} from "../../src/client/remote-service.ts";
import { bank } from "../../src/contract/bank.ts";
import type { Route } from "../../src/contract/contract.ts";
import { contracts, routeOf } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { parseForm, unescapeValue } from "../../src/envelope/form.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { signedForm } from "../../src/envelope/signed-form.ts";
import { type Answer, failedAnswer, type TransportRequest } from "../../src/settle/transport.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { error, lost, merchantId, ok, reply } from "./scripted.ts";

async function check(json: string, merchantId: string): Promise<void> {
  const { data, sign, repeated } = parseForm(Buffer.from(await signedForm(json, merchantId)));
  assert.ok(data !== undefined && sign !== undefined && repeated === undefined);
  const text = unescapeValue(data);
  assert.equal(Buffer.from(text, "base64").toString("utf8"), json);
  assert.equal(unescapeValue(sign), signOf(text, merchantId));
}

test("signedForm() makes what the bridge reads and finds rightly signed, for any text", async () => {
  await fc.assert(fc.asyncProperty(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), check));
});

test("signedForm() says what to do where a page that isn't secure has no SHA-1", async (t) => {
  t.mock.getter(crypto, "subtle", () => undefined);
  await assert.rejects(signedForm("{}", "M"), /serve it over https/);
});

/** A service whose transport does what a test says, and what was sent over it. */
function serviceOver(
  name: ContractName,
  send: (request: TransportRequest, signal: AbortSignal) => Answer | Promise<Answer>,
  more: Partial<RemoteServiceOptions> = {},
) {
  const sent: TransportRequest[] = [];
  const transport = {
    send: async (request: TransportRequest, signal: AbortSignal) => {
      sent.push(request);
      return send(request, signal);
    },
    close: async () => {},
  };
  const service = new RemoteService({ contract: contracts[name], transport, merchantId, timeoutMs: undefined, ...more });
  const route = (path: string): Route => routeOf(contracts[name], path) ?? assert.fail(path);
  const call = (path: string, body?: object, options?: CallOptions) => service.call(route(path), body, options);
  const result = (path: string, json?: string, options: CallOptions = {}) => service.tryCall(route(path), json, options);
  return { sent, service, call, result };
}

const never = () => new Promise<never>(() => {});

async function thrownBy(call: Promise<unknown>): Promise<CallError> {
  const thrown = await call.then(
    () => undefined,
    (each: unknown) => each,
  );
  assert.ok(thrown instanceof NotSentError || thrown instanceof UnknownError || thrown instanceof RejectedError);
  return thrown;
}

/** What a call has come to by now. */
async function soFar<T>(call: Promise<T>): Promise<T | "waiting"> {
  const waiting = new Promise<"waiting">((resolve) => setImmediate(() => resolve("waiting")));
  return Promise.race([call, waiting]);
}

test("RemoteService asks by GET where the contract has it and there is nothing to say, else by POST", async () => {
  const { sent, call } = serviceOver("bank", () => ok());
  await call("/supported_operations");
  await call("/terminals");
  await call("/check");
  await call("/check", { pay_id: "P-1" });
  assertMapped(
    sent,
    [
      ["GET", "/supported_operations", undefined],
      ["POST", "/terminals", undefined],
      ["POST", "/check", "{}"],
      ["POST", "/check", '{"pay_id":"P-1"}'],
    ],
    ({ method, route, body }) => [method, route, body],
  );
});

test("RemoteService sends under its own name, and signs what its contract has signed", async () => {
  const named = serviceOver("fiscal", () => ok(), { name: "till-2" });
  await named.call("/sale", { documentExtID: "D-1" });
  const [request] = named.sent;
  assert.deepEqual([request?.service, request?.contract], ["till-2", "fiscal"]);
  assert.equal(request?.body, await signedForm('{"documentExtID":"D-1"}', merchantId));
  const plain = serviceOver("qr", () => ok());
  await plain.call("/check", { pay_id: "P-1" });
  assert.deepEqual([plain.sent[0]?.service, plain.sent[0]?.body], ["qr", '{"pay_id":"P-1"}']);
});

test("RemoteService passes on for how long the bridge is to follow, and by what a call is withdrawn", async () => {
  const { sent, result } = serviceOver("bank", () => ok());
  const withdrawn = new AbortController().signal;
  await result("/sale", "{}", { waitS: 60, withdrawn });
  await result("/sale", "{}");
  assert.deepEqual([sent[0]?.waitS, sent[0]?.withdrawn], [60, withdrawn]);
  assert.deepEqual([sent[1]?.waitS, "withdrawn" in (sent[1] ?? {})], [undefined, false]);
});

for (const [name, more, options, limitMs, said] of [
  ["the route's time, the bridge's queue and the way there and back", {}, {}, 50_000, /^no answer came within 50 s$/],
  ["the service's own limit", { timeoutMs: 7_000 }, {}, 7_000, /within 7 s$/],
  ["the call's own limit", { timeoutMs: 7_000 }, { timeoutMs: 3_000 }, 3_000, /within 3 s$/],
] as const) {
  test(`RemoteService gives a call up after ${name}`, async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const { result } = serviceOver("bank", never, more);
    const call = result("/sale", "{}", options);
    await soFar(call);
    t.mock.timers.tick(limitMs - 1);
    assert.equal(await soFar(call), "waiting");
    t.mock.timers.tick(1);
    const { outcome, summary } = await call;
    assert.equal(outcome, "unknown");
    assert.match(summary.message ?? "", said);
  });
}

test("RemoteService.call() says by which HTTP status something else answered, where the answer says nothing itself", async () => {
  const saidOf = async (answer: Partial<Answer>) =>
    (await thrownBy(serviceOver("bank", () => reply({}, answer)).call("/sale", {}))).message;
  const page = { outcome: "unknown", text: "<html>" } as const;
  assert.match(
    await saidOf({ ...page, httpStatus: 503 }),
    /^what came with HTTP status 503 is not an answer of the service: check/,
  );
  assert.match(await saidOf({ ...page, httpStatus: 200 }), /HTTP status 200/);
  for (const text of ['{"error":"Bad Gateway"}', '{"status":502,"error":"Bad Gateway"}'])
    assert.match(
      await saidOf({ ...page, text, httpStatus: 502 }),
      /^what came with HTTP status 502 is not an answer of the service/,
    );
  assert.equal(await saidOf({ ...page, httpStatus: undefined }), "bank /sale: unknown, code none");
  assert.equal(
    await saidOf({ ...page, text: '{"status":"error","code":-3}', httpStatus: 500 }),
    "bank /sale: unknown, code -3",
  );
  const away = { outcome: "not-sent", text: "<html>", httpStatus: 429 } as const;
  assert.equal(await saidOf(away), "the request was turned away with HTTP status 429");
});

test("RemoteService refuses a limit in which no answer can come, when it is made and before a call is sent", async () => {
  const { sent, call } = serviceOver("bank", () => ok());
  for (const timeoutMs of [0, -1, Number.NaN, "30s", "5000", 5_000n, Object.create(null)] as unknown[] as number[]) {
    const state = typeof timeoutMs === "number" ? timeoutMs : "not a number";
    const wrong = { name: "TypeError", message: `Cannot call bank: timeoutMs is ${state}: use milliseconds above 0` };
    assert.throws(() => serviceOver("bank", () => ok(), { timeoutMs }), wrong);
    await assert.rejects(call("/sale", {}, { timeoutMs }), wrong);
  }
  assert.deepEqual(sent, []);
});

test("RemoteService.call() with what is no AbortSignal sends nothing, and leaves no timer that keeps a process", async () => {
  const { sent, call } = serviceOver("bank", () => ok());
  const timers = () => process.getActiveResourcesInfo().filter((each) => each === "Timeout").length;
  const before = timers();
  const options = { signal: new AbortController() } as unknown as CallOptions;
  const wrong = { name: "TypeError", message: "Cannot call bank: signal is not an AbortSignal: pass a controller's signal" };
  await assert.rejects(call("/sale", {}, options), wrong);
  for (const none of [null, 5_000, "x"] as unknown[] as CallOptions[]) {
    const message = "Cannot call bank: the options are not an object";
    await assert.rejects(call("/sale", {}, none), { name: "TypeError", message });
  }
  assert.deepEqual([sent, timers()], [[], before]);
});

test("RemoteService says unknown when its caller leaves while a call is out", async () => {
  const leaving = new AbortController();
  const { result } = serviceOver("bank", never);
  const call = result("/sale", "{}", { signal: leaving.signal });
  assert.equal(await soFar(call), "waiting");
  leaving.abort();
  const { outcome, summary } = await call;
  assert.deepEqual([outcome, summary.message], ["unknown", "the request was cancelled before the answer came"]);
});

test("RemoteService believes a transport that says at once that nothing was sent, when the waiting ends", async () => {
  const leaving = new AbortController();
  const { result } = serviceOver(
    "bank",
    (_, signal) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", async () => {
          for (let turn = 0; turn < 10; turn++) await undefined;
          resolve(failedAnswer("not-sent", "it was still waiting for the line"));
        });
      }),
  );
  const call = result("/sale", "{}", { signal: leaving.signal });
  await soFar(call);
  leaving.abort();
  assert.equal((await call).outcome, "not-sent");
});

test("RemoteService takes a transport that fails in a way of its own for no proof", async () => {
  const { result } = serviceOver("bank", () => Promise.reject(new Error("a bug")));
  const { outcome, summary } = await result("/sale", "{}");
  assert.deepEqual([outcome, summary.message], ["unknown", "the transport failed: Error: a bug"]);
});

test("RemoteService sends nothing that its caller has left, or that was withdrawn, before", async () => {
  for (const options of [{ signal: AbortSignal.abort() }, { withdrawn: AbortSignal.abort() }]) {
    const { sent, result } = serviceOver("bank", () => ok());
    const call = await result("/sale", "{}", options);
    assert.deepEqual([call.outcome, sent.length], ["not-sent", 0]);
    assert.ok(call.outcome === "not-sent" && call.passing);
    assert.match(call.summary.message ?? "", /cancelled before it was sent/);
  }
});

for (const [name, source, passing, said] of [
  ["is missing", undefined, false, /^Cannot sign the request: merchantId is missing: pass it to the client$/],
  ["can't be looked up", () => Promise.reject(new Error("no disk")), false, /^Cannot sign the request: no disk$/],
  ["is looked up by what throws no error", () => Promise.reject("no disk"), false, /^Cannot sign the request: no disk$/],
] as const satisfies readonly (readonly [string, MerchantId | undefined, boolean, RegExp])[]) {
  test(`RemoteService sends nothing when its merchantId ${name}, and says so`, async () => {
    const { sent, result } = serviceOver("fiscal", () => ok(), { merchantId: source });
    const call = await result("/sale", "{}");
    assert.ok(call.outcome === "not-sent");
    assert.deepEqual([call.passing, call.retryAfterMs, sent.length], [passing, undefined, 0]);
    assert.match(call.summary.message ?? "", said);
  });
}

test("RemoteService sends nothing when its merchantId takes too long, or its caller leaves meanwhile; later it may do", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { sent, result } = serviceOver("fiscal", () => ok(), { merchantId: never });
  const leaving = new AbortController();
  const late = result("/sale", "{}", { timeoutMs: 1_000 });
  const left = result("/sale", "{}", { signal: leaving.signal });
  const gone = result("/sale", "{}", { signal: AbortSignal.abort() });
  assert.deepEqual([await soFar(late), await soFar(left)], ["waiting", "waiting"]);
  t.mock.timers.tick(1_000);
  leaving.abort();
  for (const call of [await late, await left, await gone]) {
    assert.ok(call.outcome === "not-sent" && call.passing);
    assert.match(call.summary.message ?? "", /looking up the merchantId took too long/);
  }
  assert.equal(sent.length, 0);
});

test("RemoteService takes for an answer what the contract defines, with a status at which an error is the service's own", async () => {
  for (const [service, path, answer, outcome] of [
    ["bank", "/sale", ok(), "answered"],
    ["bank", "/sale", ok({ code: "7" }), "answered"],
    ["bank", "/sale", reply({ status: "error" }, { httpStatus: undefined }), "answered"],
    ["bank", "/sale", reply({ status: "done" }), "unknown"],
    ["bank", "/sale", reply({}), "unknown"],
    ["bank", "/sale", { ...ok(), text: "<html>" }, "unknown"],
    ["bank", "/sale", { ...ok(), text: undefined }, "unknown"],
    ["bank", "/sale", { ...ok(), outcome: "unknown" }, "unknown"],
    ["qr", "/showqrcode", reply({ status: "error" }, { httpStatus: 499 }), "answered"],
    ["qr", "/showqrcode", reply({ status: "error" }, { httpStatus: 500 }), "unknown"],
    ["qr", "/check", reply({ status: "error" }, { httpStatus: 299 }), "answered"],
    ["qr", "/check", reply({ status: "error" }, { httpStatus: 300 }), "unknown"],
    ["qr", "/check", { ...ok(), httpStatus: 500 }, "answered"],
  ] as const) {
    const { result } = serviceOver(service, () => answer);
    const call = await result(path, "{}");
    assert.equal(call.outcome, outcome, JSON.stringify(answer));
    if (call.outcome === "answered") assert.equal(call.success, call.reply["status"] === "success");
  }
});

test("RemoteService tells an answer that isn't the contract's from one that never came", async () => {
  const { result } = serviceOver("bank", ({ route }) => (route === "/sale" ? reply({ status: "done", code: -3 }) : lost));
  const strange = await result("/sale", "{}");
  assert.deepEqual([strange.summary.message, strange.summary.code], ["the answer is not one that the contract defines", -3]);
  assert.equal((await result("/check", "{}")).summary.message, "no answer came");
});

for (const [service, code, httpStatus, retryAfterMs, passing] of [
  ["bank", -29, 400, undefined, false],
  ["bank", -29, 400, 1_000, true],
  ["bank", -3, 400, undefined, false],
  ["bank", -29, 401, undefined, false],
  ["bank", -29, 408, undefined, true],
  ["bank", -29, 429, undefined, true],
  ["bank", -3, 422, undefined, false],
  ["bank", -3, 499, undefined, false],
  ["bank", -29, 500, undefined, true],
  ["bank", -3, 503, undefined, true],
  ["bank", -29, 200, undefined, false],
  ["bank", -80, 200, undefined, false],
  ["bank", -3, 200, undefined, true],
  ["bank", -3, undefined, undefined, true],
  ["bank", -29, undefined, undefined, false],
  ["bank", undefined, undefined, undefined, true],
  ["bank", -16, 399, undefined, true],
  ["fiscal", 1, 200, undefined, false],
  ["fiscal", 2, 200, undefined, false],
  ["fiscal", 3, 200, undefined, false],
  ["fiscal", 4, 200, undefined, false],
  ["fiscal", 14, 200, undefined, false],
  ["fiscal", 5, 200, undefined, true],
  ["fiscal", 44, 200, undefined, true],
  ["qr", 1, 200, undefined, true],
] as const) {
  const after = retryAfterMs === undefined ? "" : " with a Retry-After";
  test(`RemoteService holds ${service}'s ${code} at HTTP ${httpStatus}${after} for ${passing ? "passing" : "final"} where nothing was sent`, async () => {
    const answer = { ...reply({ status: "error", code }, { httpStatus, retryAfterMs }), outcome: "not-sent" } as const;
    const { result } = serviceOver(service, () => ({ ...answer, unreachable: "refused" }));
    const call = await result(service === "qr" ? "/showqrcode" : "/sale", "{}");
    assert.ok(call.outcome === "not-sent");
    assert.deepEqual([call.passing, call.retryAfterMs, call.unreachable], [passing, retryAfterMs, "refused"]);
  });
}

test("RemoteService.call() rejects with what was known of a call that wasn't sent, and whether waiting helps", async () => {
  const down = {
    ...failedAnswer("not-sent", "the line is down"),
    httpStatus: 503,
    retryAfterMs: 2_000,
    reason: "line-down",
  } as const;
  const { call } = serviceOver("bank", () => ({ ...down, unreachable: "refused" }));
  const thrown = await thrownBy(call("/sale", {}));
  assert.ok(thrown instanceof NotSentError);
  const { outcome, service, route, code, httpStatus, reason, passing, retryAfterMs, unreachable, message, advice, name } =
    thrown;
  assert.deepEqual([outcome, name, service, route], ["not-sent", "NotSentError", "bank", "/sale"]);
  assert.deepEqual([code, httpStatus, reason, unreachable], [undefined, 503, "line-down", "refused"]);
  assert.deepEqual([passing, retryAfterMs, message], [true, 2_000, "the line is down"]);
  assert.match(advice, /again later/);
  const { call: refused } = serviceOver("bank", () => ({ ...error(-29), outcome: "not-sent", httpStatus: 400 }));
  const final = await thrownBy(refused("/sale", {}));
  assert.ok(final instanceof NotSentError && !final.passing);
  assert.match(final.advice, /fix the request/);
});

test("RemoteService.call() rejects with what to do after an unknown outcome: ask about an effect, repeat what only reads", async () => {
  const { call } = serviceOver("bank", () => lost);
  const sale = await thrownBy(call("/sale", { pay_id: "P-1" }));
  assert.ok(sale instanceof UnknownError);
  assert.deepEqual([sale.outcome, sale.name], ["unknown", "UnknownError"]);
  assert.match(sale.advice, /call \/check with the same pay_id/);
  assert.match((await thrownBy(call("/check", {}))).advice, /send the request again/);
});

test("RemoteService.call() advises to ask again after an answer that leaves open how an operation ends, unless the question was wrong", async () => {
  const adviceAfter = async (path: string, code?: number) =>
    (await thrownBy(serviceOver("bank", () => reply({ status: "error", code })).call(path, { pay_id: "P-1" }))).advice;
  const again = "this doesn't say how the operation ends: ask again";
  assert.deepEqual([await adviceAfter("/check", -15), await adviceAfter("/check")], [again, again]);
  const others = [await adviceAfter("/check", bank.faultCodes.malformed), await adviceAfter("/sale", -3)];
  assert.deepEqual(others, ["do not send it again unchanged", "query /check with the same pay_id"]);
});

test("RemoteService.call() rejects with the service's own error, its whole answer and the contract's advice", async () => {
  const answer = { status: "error", code: -47, message: "no such currency", data: { status: "ERROR" } };
  const { call } = serviceOver("bank", () => reply(answer));
  const thrown = await thrownBy(call("/sale", {}));
  assert.ok(thrown instanceof RejectedError);
  const { outcome, name, code, message, data, reply: whole, advice } = thrown;
  assert.deepEqual([outcome, name, code, message], ["answered", "RejectedError", -47, "no such currency"]);
  assert.deepEqual([whole, data], [answer, answer.data]);
  assert.match(advice, /nothing was started/);
});

test("RemoteService.call() has words of its own where nothing else says what failed", async () => {
  const { call } = serviceOver("bank", ({ route }) => reply({ status: "error", ...(route === "/sale" ? { code: -3 } : {}) }));
  assert.equal((await thrownBy(call("/sale", {}))).message, "bank /sale: answered, code -3");
  assert.equal((await thrownBy(call("/check", {}))).message, "bank /check: answered, code none");
});

test("methodsOf() gives a body to what takes one, and options to every method", async () => {
  const { sent, service } = serviceOver("bank", () => ok());
  const { sale, terminals } = methodsOf(service);
  await sale?.({ pay_id: "P-1" }, {});
  await terminals?.({});
  assertMapped(sent, ['{"pay_id":"P-1"}', undefined], ({ body }) => body);
  const gone = { signal: AbortSignal.abort() };
  for (const call of [sale?.({}, gone), terminals?.(gone)]) await assert.rejects(call ?? assert.fail(), NotSentError);
  assert.equal(sent.length, 2);
});
