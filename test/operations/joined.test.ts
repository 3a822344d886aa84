import assert from "node:assert/strict";
import { test } from "node:test";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { contracts } from "../../src/contract/contracts.ts";
import type { Call, Reply } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { Presence } from "../../src/core/presence.ts";
import { InFlight, joined } from "../../src/operations/joined.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { replyOf } from "./whole-box.ts";

/** A handler whose replies a test gives, and what it was asked. */
function held() {
  const asked: { readonly call: Call; reply(reply: Reply): void; fail(error: unknown): void }[] = [];
  const handler = joined(contracts.bank, (call) => new Promise<Reply>((reply, fail) => asked.push({ call, reply, fail })));
  const call = (route: string, body: string, key?: string): Call => ({
    service: "bank",
    contract: "bank",
    route,
    body: body === "" ? [] : [Buffer.from(body.slice(0, 3)), Buffer.from(body.slice(3))],
    requestId: "r",
    key,
    caller: new Presence(),
  });
  return { asked, handler, call };
}

/** Collects the whole heap. */
function collect(): void {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
}

/** Bytes of objects that outlived V8's quick collections. */
function oldSpaceBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")?.space_used_size ?? 0;
}

const body = '{"pay_id":"P-1","amount":1500}';
const good = replyOf({ status: "success" });

test("joined() gives identical calls one exchange, and each caller its answer", async () => {
  const { asked, handler, call } = held();
  const first = handler(call("/sale", body, "P-1"));
  const whole = { ...call("/sale", body, "P-1"), body: [Buffer.from(body)] };
  const others = [handler(call("/sale", body, "P-1")), handler(whole)];
  assert.equal(asked.length, 1);
  asked[0]?.reply(good);
  assert.equal((await first).isJoined, undefined);
  for (const other of others) {
    const reply = await other;
    assert.equal(reply.isJoined, true);
    assert.equal(reply.payload, good.payload);
  }
});

test("joined() joins a refusal and an unknown outcome as well, and no call that comes after the end", async () => {
  const { asked, handler, call } = held();
  const [first, second] = [handler(call("/sale", body, "P-1")), handler(call("/sale", body, "P-1"))];
  asked[0]?.fail(new Fault("timeout", "no reply", { lineMs: 5 }));
  await assert.rejects(first, (fault) => fault instanceof Fault && fault.details.isJoined === undefined);
  await assert.rejects(
    second,
    (fault) => fault instanceof Fault && fault.details.isJoined === true && fault.details.lineMs === 5,
  );
  void handler(call("/sale", body, "P-1"));
  assert.equal(asked.length, 2);
});

test("joined() tells each caller of a bug in its handler as it was thrown", async () => {
  const { asked, handler, call } = held();
  const calls = [handler(call("/sale", body, "P-1")), handler(call("/sale", body, "P-1"))];
  const bug = new TypeError("a bug");
  asked[0]?.fail(bug);
  for (const each of calls) await assert.rejects(each, (error) => error === bug);
});

test("joined() leaves apart what is not the same: another route, another body, and an effect without a key", () => {
  const { asked, handler, call } = held();
  const calls = [
    call("/sale", body, "P-1"),
    call("/refund", body, "P-1"),
    call("/sale", body.replace("1500", "1501"), "P-1"),
    call("/sale", '{"amount":1500}'),
    call("/sale", '{"amount":1500}'),
    call("/terminate", ""),
    call("/terminate", ""),
    call("/nowhere", ""),
    call("/nowhere", ""),
  ];
  for (const each of calls) void handler(each);
  assert.equal(asked.length, calls.length);
});

test("joined() joins what only reads, without a key as well", () => {
  const { asked, handler, call } = held();
  for (const route of ["/terminals", "/terminals", "/supported_operations", "/supported_operations"]) {
    void handler(call(route, ""));
  }
  assertMapped(asked, ["/terminals", "/supported_operations"], ({ call: { route } }) => route);
});

test("joined() lets an exchange wait for its line while any of its callers waits", () => {
  const { asked, handler, call } = held();
  const calls = [call("/sale", body, "P-1"), call("/sale", body, "P-1"), call("/sale", body, "P-1")];
  for (const each of calls) void handler(each);
  const [first, second, third] = calls.map(({ caller }) => caller);
  first?.leave();
  third?.leave();
  assert.equal(asked[0]?.call.caller.gone, false);
  second?.leave();
  assert.equal(asked[0]?.call.caller.gone, true);
});

test("joined() still joins a call that is out when another, which came before it, has ended", async () => {
  const { asked, handler, call } = held();
  const first = handler(call("/sale", body, "P-1"));
  void handler(call("/refund", body, "P-1"));
  asked[0]?.reply(good);
  await first;
  await Promise.resolve();
  void handler(call("/refund", body, "P-1"));
  assert.equal(asked.length, 2);
});

for (const order of [
  [0, 1, 2],
  [1, 0, 2],
  [1, 2, 0],
  [2, 0, 1],
]) {
  test(`joined() joins what is out yet of one key's calls, which end in the order ${order.join(", ")}`, async () => {
    const { asked, handler, call } = held();
    const routes = ["/sale", "/refund", "/check"];
    const replies = routes.map((route) => handler(call(route, body, "P-1")));
    for (const [count, ended] of order.entries()) {
      asked[ended]?.reply(good);
      await replies[ended];
      await Promise.resolve();
      for (const index of order.slice(count + 1)) void handler(call(routes[index] ?? "", body, "P-1"));
    }
    assert.equal(asked.length, routes.length);
    for (const route of routes) void handler(call(route, body, "P-1"));
    assert.equal(asked.length, 2 * routes.length, "none is out");
  });
}

test("joined() keeps nothing alive of calls that have ended, as a Map's old tables do", async () => {
  const { asked, handler, call } = held();
  const numbers = 1_000;
  const calls = 8_000;
  let number = 0;
  const ask = () => {
    const weight = new Array<number>(numbers).fill(number);
    void handler(Object.assign(call("/check", body, `P-${number++}`), { weight }));
  };
  const endFirst = async () => {
    asked.shift()?.reply(good);
    await Promise.resolve();
    ask();
  };
  for (let i = 0; i < 8; i++) ask();
  for (let i = 0; i < 100; i++) await endFirst();
  collect();
  const before = oldSpaceBytes();
  for (let i = 0; i < calls; i++) await endFirst();
  const share = (oldSpaceBytes() - before) / (calls * numbers * 8);
  assert.ok(share < 0.1, `${Math.round(100 * share)} % of what calls held outlived them`);
});

test("joined() joins a call to one that came by the handler whose place it takes", async () => {
  const asked: Call[] = [];
  const inFlight = new InFlight();
  const never = (call: Call) => {
    asked.push(call);
    return new Promise<Reply>(() => {});
  };
  const { call } = held();
  void joined(contracts.bank, never, inFlight)(call("/sale", body, "P-1"));
  void joined(contracts.bank, never, inFlight)(call("/sale", body, "P-1"));
  assert.equal(asked.length, 1);
  // The service has another contract now.
  void joined(contracts.fiscal, never, inFlight)({ ...call("/sale", body, "P-1"), contract: "fiscal" });
  assert.equal(asked.length, 2);
});

test("InFlight.mayHave() tells by route and length which calls can't be identical to one that is out", async () => {
  const inFlight = new InFlight();
  let end = (_: Reply) => {};
  const handler = joined(
    contracts.bank,
    () =>
      new Promise<Reply>((resolve) => {
        end = resolve;
      }),
    inFlight,
  );
  const out = handler(held().call("/sale", body, "P-1"));
  assert.equal(inFlight.mayHave("/sale", body.length), true);
  // What stands in a form beside its two values isn't passed on.
  assert.equal(inFlight.mayHave("/sale", body.length + 9), true);
  assert.equal(inFlight.mayHave("/sale", undefined), true);
  assert.equal(inFlight.mayHave("/sale", body.length - 1), false);
  assert.equal(inFlight.mayHave("/refund", body.length), false);
  end(good);
  await out;
  assert.equal(inFlight.mayHave("/sale", body.length), false);
});
