import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, afterEach, test } from "node:test";
import type { Call } from "../../../src/core/call.ts";
import { Fault } from "../../../src/core/fault.ts";
import { Presence } from "../../../src/core/presence.ts";
import type { EmulatedReply } from "../../../src/lab/emulator/emulator.ts";
import type { WireFault } from "../../../src/lab/emulator/faults/wire-fault.ts";
import { httpEndpoint } from "../../../src/lab/emulator/http-endpoint.ts";
import { ask, Client, closeAll, serve } from "../../http/served.ts";
import { assertMapped } from "../../support/assert-mapped.ts";
import { VirtualTime } from "../../support/virtual-time.ts";

const time = new VirtualTime();
after(() => time.restore());
afterEach(closeAll);

/** An emulator that answers with a count, with these faults one after the other. */
function over(...faults: readonly (WireFault | undefined)[]) {
  const waiting = [...faults];
  let count = 0;
  const answer = (): EmulatedReply => {
    const payload = [Buffer.from(`{"status":"success","code":0,"n":${++count}}`)];
    return { reply: { payload, status: "success", code: 0, queueMs: 0, lineMs: 0 }, fault: waiting.shift() };
  };
  return httpEndpoint({ answer });
}

/** Whoever asks, over a connection that can be cut. */
class Caller extends Presence {
  cuts = 0;
  override hangUp(): void {
    this.cuts++;
    setImmediate(() => this.leave());
  }
}

const callOf = (caller: Presence): Call => ({
  service: "bank",
  contract: "bank",
  route: "/sale",
  body: [],
  requestId: "r",
  key: undefined,
  caller,
});

/** Asks, and notes when it was answered. */
function asking(handler: ReturnType<typeof over>["handler"]) {
  const caller = new Caller();
  const began = time.nowMs;
  const asked: { caller: Caller; tookMs: number | undefined; goneByThen: boolean } = {
    caller,
    tookMs: undefined,
    goneByThen: false,
  };
  void handler(callOf(caller)).then(() => {
    asked.tookMs = time.nowMs - began;
    asked.goneByThen = caller.gone;
  });
  return asked;
}

for (const kind of ["corrupt", "truncated", "wrong-length", "unplug"] as const) {
  const fault: WireFault = kind === "unplug" ? { kind, ms: 2_000 } : { kind };

  test(`httpEndpoint() cuts the connection of an answer with the fault ${kind}, and answers the next`, async () => {
    const { port, records } = await serve("bank", { handler: over(fault).handler });
    assert.equal(await new Client(port).ask("POST", "/sale", '{"pay_id":"A"}').answer(), undefined);
    assert.equal((await ask(port, "POST", "/sale", '{"pay_id":"B"}')).text, '{"status":"success","code":0,"n":2}');
    assertMapped(
      records,
      [
        { key: "A", outcome: "answered", left: true },
        { key: "B", outcome: "answered", left: false },
      ],
      ({ key, outcome, left }) => ({ key, outcome, left }),
    );
  });
}

test("httpEndpoint() cuts every request of a pipelined connection, as a lost line would", async () => {
  const { port, records } = await serve("bank", { handler: over(undefined, { kind: "corrupt" }, undefined).handler });
  const client = new Client(port);
  for (const id of ["A", "B", "C"]) client.ask("POST", "/sale", `{"pay_id":"${id}"}`);
  assert.ok(!(await client.rest()).includes('"n":2'));
  await time.settle();
  assert.equal(records.find(({ key }) => key === "B")?.left, true);
});

for (const fault of [
  { kind: "pieces", ms: 300 },
  { kind: "noise" },
  { kind: "twice", ms: 0 },
  { kind: "reserved-crc" },
] as const) {
  test(`httpEndpoint() answers at once and whole where the fault is ${fault.kind}`, async () => {
    const { port } = await serve("bank", { handler: over(fault).handler });
    assert.equal((await ask(port, "POST", "/sale", "{}")).text, '{"status":"success","code":0,"n":1}');
  });
}

test("httpEndpoint() holds an answer that never comes until its caller leaves", async () => {
  const { port, records } = await serve("bank", { handler: over({ kind: "no-answer" }).handler });
  const client = new Client(port).ask("POST", "/sale", '{"pay_id":"A"}');
  // The next one is answered, so the first has come.
  assert.equal((await ask(port, "POST", "/sale", '{"pay_id":"B"}')).text, '{"status":"success","code":0,"n":2}');
  assertMapped(records, ["B"], ({ key }) => key);
  client.socket.destroy();
  while (records.length < 2) await time.settle();
  assert.deepEqual([records[1]?.key, records[1]?.left], ["A", true]);
});

test("httpEndpoint() writes no answer that is to get lost to a client that has shut down its writing side", async () => {
  for (const kind of ["no-answer", "corrupt"] as const) {
    const { port, records } = await serve("bank", { handler: over({ kind }).handler });
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("error", () => {});
    let text = "";
    socket.setEncoding("latin1").on("data", (piece) => {
      text += piece;
    });
    socket.end('POST /check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\n\r\n{"pay_id":"A"}');
    if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
    assert.equal(text, "");
    assert.equal(records.length, 1);
  }
});

test("httpEndpoint() cuts the connection of an answer that never comes after five minutes", async () => {
  const asked = asking(over({ kind: "no-answer" }).handler);
  await time.advance(299_999);
  assert.deepEqual([asked.tookMs, asked.caller.cuts], [undefined, 0]);
  await time.advance(1);
  await time.settle();
  assert.deepEqual([asked.tookMs, asked.caller.cuts, asked.goneByThen], [300_000, 1, true]);
});

test("httpEndpoint() answers late, and forgets it when the caller leaves", async () => {
  const { handler } = over({ kind: "late", ms: 5_000 }, { kind: "late", ms: 5_000 });
  const [stays, leaves] = [asking(handler), asking(handler)];
  await time.advance(1_000);
  leaves.caller.leave();
  await time.advance(60_000);
  assert.deepEqual([stays.tookMs, leaves.tookMs], [5_000, 1_000]);
  assert.equal(stays.caller.cuts + leaves.caller.cuts, 0);
});

test("httpEndpoint() answers when the next request has come, of whatever service, or after a minute", async () => {
  const { handler } = over({ kind: "after-next" }, { kind: "after-next" }, undefined, { kind: "after-next" });
  const first = asking(handler);
  await time.advance(10_000);
  assert.equal(first.tookMs, undefined);
  const second = asking(handler);
  await time.advance(500);
  assert.deepEqual([first.tookMs, second.tookMs], [10_000, undefined]);
  const third = asking(handler);
  await time.settle();
  assert.deepEqual([second.tookMs, third.tookMs], [500, 0]);
  const alone = asking(handler);
  await time.advance(120_000);
  assert.equal(alone.tookMs, 60_000);
});

test("HttpEndpoint.stop() ends all that is held back, answered or cut, and holds nothing back any more", async () => {
  const { handler, stop } = over(
    { kind: "late", ms: 5_000 },
    { kind: "no-answer" },
    { kind: "after-next" },
    { kind: "no-answer" },
    { kind: "late", ms: 5_000 },
  );
  const all = [asking(handler), asking(handler), asking(handler)];
  await time.advance(10);
  stop();
  await time.settle();
  await time.settle();
  assertMapped(
    all,
    [
      [10, 0],
      [10, 1],
      [10, 0],
    ],
    ({ tookMs, caller }) => [tookMs, caller.cuts],
  );
  const after = [asking(handler), asking(handler)];
  await time.settle();
  await time.settle();
  assertMapped(
    after,
    [
      [0, 1],
      [0, 0],
    ],
    ({ tookMs, caller }) => [tookMs, caller.cuts],
  );
  const run = time.timersRun;
  await time.advance(600_000);
  assert.equal(time.timersRun, run);
});

test("httpEndpoint() throws a Fault of unknown outcome where there is no connection to cut", async () => {
  const { handler } = over({ kind: "corrupt" });
  await assert.rejects(handler(callOf(new Presence())), (error) => error instanceof Fault && error.outcome === "unknown");
});
