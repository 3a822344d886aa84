import assert from "node:assert/strict";
import { test } from "node:test";
import { bank } from "../../src/contract/bank.ts";
import type { OperationResult } from "../../src/core/followed.ts";
import { settleByBridge } from "../../src/settle/by-bridge.ts";
import { RemoteService } from "../../src/settle/remote-service.ts";
import type { Answer } from "../../src/settle/transport.ts";
import type { SettleEvent, SettleOptions } from "../../src/settle/types.ts";
import { busy, error, lost, ok, repeat, reply, type Script, Scripted, TestClock, wrong } from "./scripted.ts";

const body = { pay_id: "P-1", amount: 1500 };

/** An answer as a bridge gives it that followed the operation. */
const by = (answer: Answer, result: OperationResult, isGuarded = true): Answer => ({
  ...answer,
  followed: { result, isGuarded },
});
const approved = reply({ status: "success", data: { status: "APPROVED", rrn: "77" } });

async function settled(script: Script, more: SettleOptions = {}, path = "/sale") {
  const transport = new Scripted(script);
  const clock = new TestClock();
  const events: SettleEvent[] = [];
  const service = new RemoteService({ contract: bank, transport, merchantId: undefined, timeoutMs: undefined });
  const ended = await settleByBridge(service, path, body, {
    clock,
    onProgress: (event) => {
      events.push(event);
    },
    ...more,
  });
  assert.deepEqual(
    transport.seen.map(({ route }) => route),
    script.map(([route]) => route),
  );
  return { ...ended, events, clock };
}

test("settleByBridge() takes the bridge's word, with the terminal's data", async () => {
  const { result, data, steps } = await settled([["/sale", by(approved, "approved")]]);
  assert.equal(result, "approved");
  assert.equal(data?.["rrn"], "77");
  assert.equal(steps.length, 1);
});

test("settleByBridge() sends the same call again while the word is pending or unknown", async () => {
  const { result, events } = await settled([
    ["/sale", by(ok(), "pending")],
    ["/sale", by(lost, "unknown")],
    ["/sale", by(approved, "approved")],
  ]);
  assert.equal(result, "approved");
  assert.deepEqual(
    events.map(({ type }) => type),
    ["sent", "waiting", "resent", "waiting", "resent", "final"],
  );
});

test("settleByBridge() never sends again where the bridge wouldn't recognise it: from there on it asks", async () => {
  for (const first of [
    by(ok(), "pending", false),
    by(lost, "unknown", false),
    ok(), // A service that doesn't know the header
    lost, // The bridge went away in the midst
  ]) {
    const { result, steps } = await settled([
      ["/sale", first],
      ["/check", ok()],
      ["/check", approved],
    ]);
    assert.equal(result, "approved");
    assert.equal(steps.length, 3);
  }
});

test("settleByBridge() waits and tries again what was turned away for now, and ends as not-sent in the end", async () => {
  for (const down of [busy, by(busy, "failed")]) {
    const { result } = await settled([
      ["/sale", down],
      ["/sale", by(approved, "approved")],
    ]);
    assert.equal(result, "approved");
    const never = await settled(repeat(2, ["/sale", down]), { windowMs: 2_000 });
    assert.equal(never.result, "not-sent");
    assert.equal(never.token.known.phase, "unsent");
  }
});

test("settleByBridge() ends as not-sent what is refused for good, and as declined what the terminal refused", async () => {
  assert.equal((await settled([["/sale", wrong]])).result, "not-sent");
  assert.equal((await settled([["/sale", by(wrong, "failed")]])).result, "not-sent");
  const { result, code } = await settled([["/sale", by(error(-29), "declined")]]);
  assert.equal(result, "declined");
  assert.equal(code, -29);
  assert.equal((await settled([["/sale", by(error(-15), "failed")]])).result, "declined", "proven not carried out");
});

test("settleByBridge() says unknown when the window is over, and its token asks first", async () => {
  const { result, token } = await settled(repeat(3, ["/sale", by(lost, "unknown")]), { windowMs: 2_500 });
  assert.equal(result, "unknown");
  assert.equal(token.known.phase, "lost");
  assert.equal(token.known.doubt, true);
});

test("settleByBridge() hands out no token by which an operation that was sent could be sent again", async () => {
  for (const path of ["/sale", "/refund", "/confirm"]) {
    const { events } = await settled([[path, by(approved, "approved")]], {}, path);
    assert.deepEqual([...new Set(events.map(({ token }) => token.known.phase))], ["lost"]);
  }
});

test("settleByBridge() that is stopped before it was sent sends nothing", async () => {
  for (const stop of ["signal", "askOnly"] as const) {
    const { result } = await settled([], { [stop]: AbortSignal.abort() });
    assert.equal(result, "not-sent");
  }
});
