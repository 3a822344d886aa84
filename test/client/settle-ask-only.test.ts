import assert from "node:assert/strict";
import { test } from "node:test";
import { createClientOver } from "../../src/client/client.ts";
import type { SettleEvent } from "../../src/client/settle-types.ts";
import { readToken } from "../../src/client/token.ts";
import {
  absentFrom0To30s,
  absentTo30s,
  busy,
  error,
  goneTo30s,
  knownBy,
  lost,
  merchantId,
  ok,
  over,
  repeat,
  type Script,
} from "./scripted.ts";

/** Tests src/settle/judge.ts. */

const sale = { pay_id: "P-1", amount: 1500, currency_name: "AZN" };
const receipt = { documentExtID: "ORDER-1", items: [{ itemAmount: 150 }] };
const approved = ok({ data: { txn_id: "7", status: "APPROVED", rrn: "77" } });
const absent = error(-15);
const closed = ok({ docStatus: 1, documentID: 12 });

/** Follows with a stop that comes while the given request is out, or before all when that is 0. */
async function stoppedAt(
  request: number,
  script: Script,
  service: "bank" | "fiscal" = "bank",
  { windowMs = 20_000, isAborted = false } = {},
) {
  const world = over(script);
  const stop = new AbortController();
  if (request === 0) stop.abort();
  const send = world.service.send.bind(world.service);
  world.service.send = async (each) => {
    const answer = await send(each);
    if (world.service.seen.length === request) stop.abort();
    return answer;
  };
  const aborted = isAborted ? stop.signal : new AbortController().signal;
  const options = { ...world.options, askOnly: stop.signal, aborted, windowMs, intervalMs: 1000 };
  const { client } = world;
  const settled = await (service === "bank"
    ? client.bank.settle("sale", sale, options)
    : client.fiscal.settle("sale", receipt, options));
  world.done();
  return settled;
}

test("askOnly before the first sending: nothing is sent, and that is what it says", async () => {
  assert.equal((await stoppedAt(0, [])).result, "not-sent");
  assert.equal((await stoppedAt(0, [], "fiscal")).result, "not-sent");
});

test("askOnly: a start that wasn't sent is not tried again, and has ended", async () => {
  assert.equal((await stoppedAt(1, [["/sale", busy]])).result, "not-sent");
});

test("askOnly: an operation that runs is asked about to its end", async () => {
  const { result } = await stoppedAt(1, [
    ["/sale", ok()],
    ["/check", ok()],
    ["/check", approved],
  ]);
  assert.equal(result, "approved");
});

test('askOnly: a lost start is never resent, and "not found" ends it: after 30 s', async () => {
  assert.equal((await stoppedAt(1, [["/sale", lost], ...absentTo30s], "bank", { windowMs: 60_000 })).result, "declined");
  assert.equal((await stoppedAt(1, [["/sale", lost], ...goneTo30s], "fiscal", { windowMs: 60_000 })).result, "failed");
});

test("askOnly that comes with the question's -15 keeps the resend from being sent", async () => {
  assert.equal((await stoppedAt(2, [["/sale", lost], ...absentTo30s], "bank", { windowMs: 60_000 })).result, "declined");
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

test("a document in progress that was aborted at the terminal, and is then not found for 30 s, has failed", async () => {
  const script: Script = [["/sale", error(44)], ...goneTo30s];
  const aborted = await stoppedAt(1, script, "fiscal", { windowMs: 60_000, isAborted: true });
  assert.deepEqual([aborted.result, knownBy(aborted.token).isAborted], ["failed", true]);
  const gone: Script = [["/sale", error(44)], ...repeat(40, ["/check_status", error(9)] as const)];
  const stopped = await stoppedAt(1, gone, "fiscal", { windowMs: 40_000 });
  assert.equal(stopped.result, "unknown", "nobody took it away");
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
  assert.equal(result, "not-sent");
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
  assert.equal(result, "not-sent");
  world.done();
});

test("resume() with askOnly resends nothing, and a token that was stopped stays so", async () => {
  const first = await stoppedAt(1, [["/sale", lost], ...repeat(20, ["/check", error(-3)])]);
  assert.deepEqual([first.result, knownBy(first.token).isStopped], ["unknown", true]);
  const token: unknown = JSON.parse(JSON.stringify(first.token));
  const world = over(absentFrom0To30s);
  assert.equal((await world.client.resume(token, { ...world.options, intervalMs: 1000 })).result, "declined");
  world.done();
  const { token: read } = readToken(token);
  const again = over(absentFrom0To30s);
  const options = { ...again.options, askOnly: AbortSignal.abort(), intervalMs: 1000 };
  assert.equal(
    (await again.client.resume({ ...read, facts: read.facts.filter(({ is }) => is !== "stopped") }, options)).result,
    "declined",
  );
  again.done();
});

test("askOnly that comes while a resending is out: its refusal is read as one, and told by its own code", async () => {
  const { result, code, token } = await stoppedAt(
    3,
    [["/sale", lost], ["/check", absent], ["/sale", error(-29)], ...absentTo30s],
    "bank",
    { windowMs: 60_000 },
  );
  assert.deepEqual([result, code, knownBy(token).end], ["declined", -29, "failed"]);
});

test("askOnly that comes right before a resending keeps it from being sent: it is asked about", async () => {
  for (const [at, script, service] of [
    ["resent", [["/sale", lost], ["/check", absent], ...absentTo30s], "bank"],
    [
      "waiting",
      [
        ["/sale", error(5)],
        ["/check_status", closed],
      ],
      "fiscal",
    ],
  ] as const) {
    const world = over(script);
    const stop = new AbortController();
    const onProgress = ({ type }: SettleEvent) => {
      if (type === at) stop.abort();
    };
    const options = { clock: world.clock, askOnly: stop.signal, intervalMs: 1000, onProgress };
    const { result, token } = await (service === "bank"
      ? world.client.bank.settle("sale", sale, options)
      : world.client.fiscal.settle("sale", receipt, options));
    assert.deepEqual([result, knownBy(token).isStopped], [service === "bank" ? "declined" : "closed", true]);
    world.done();
  }
});
