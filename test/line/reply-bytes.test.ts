import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContractName } from "../../src/core/call.ts";
import { FakeDevice } from "../support/fake-device.ts";
import { probeReply } from "../support/terminal.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { ending, hasEnded, lineOver, merchantId, requestFor } from "./lines.ts";

/**
 * Tests src/line/engine.ts.
 *
 * Replies that are larger or deeper than any honest one, with the clock in the test's hand.
 */

const time = virtualTime();

const bankMax = 65_536;
const fiscalMax = 131_072;

/** A reply of so many bytes. */
const replyOf = (bytes: number) => `{"status":"success","x":"${"x".repeat(bytes - 27)}"}`;

/** A line that bank and fiscal share, each with its own largest reply, and what a call of one ends with. */
async function shared() {
  let reply = "";
  const device = new FakeDevice((framing, text) => {
    device.reply(framing, probeReply({ framing, text, number: 0 }) ?? reply);
  });
  const replyBytesMax = { bank: bankMax, fiscal: fiscalMax };
  const { line, told } = lineOver(device.open, { services: ["bank", "fiscal"], merchantId, replyBytesMax });
  line.start();
  assert.ok(await time.until(() => line.state === "idle"));
  const ask = async (service: ContractName, text: string) => {
    assert.ok(await time.until(() => line.state === "idle"));
    reply = text;
    const end = ending(line, requestFor("A", { service }));
    assert.ok(await time.until(() => hasEnded(end)));
    return end;
  };
  return { line, told, ask };
}

test("Line gives a reply of just its service's replyBytesMax, and fails on one byte more as unknown", async () => {
  const { line, told, ask } = await shared();
  for (const [service, bytes] of [
    ["bank", bankMax],
    ["fiscal", fiscalMax],
  ] as const) {
    assert.equal((await ask(service, replyOf(bytes))).text, replyOf(bytes));
    told.states.length = 0;
    const { fault } = await ask(service, replyOf(bytes + 1));
    assert.equal(fault?.kind, "broken");
    assert.equal(fault?.outcome, "unknown");
    assert.match(fault?.message ?? "", /: the reply is larger than replyBytesMax allows\. Outcome unknown/);
    assert.ok(await time.until(() => line.state === "idle"));
    assert.deepEqual(told.states, ["recovering", "idle"]);
  }
  // Bank's was whole and is only too large for bank; fiscal's is too large for the line, and its end is noise.
  assert.deepEqual(told.discards, ["oversize", "noise"]);
  assert.equal((await ask("bank", replyOf(100))).text, replyOf(100));
});

test("Line takes no length frame that is larger than any of its services may answer, and finds the next one", async () => {
  const { told, ask } = await shared();
  // With 02 in it, the length itself might begin a fiscal frame.
  const { fault } = await ask("bank", replyOf(fiscalMax + 0x10000));
  assert.match(fault?.message ?? "", /: the reply is larger than replyBytesMax allows\. Outcome unknown/);
  assert.equal(told.discards[0], "oversize");
  assert.equal((await ask("bank", replyOf(100))).text, replyOf(100));
});

test("Line fails on a reply of more than 64 levels as unknown, whatever stands behind them", async () => {
  const { ask } = await shared();
  const deep = `{"status":"success","a":${"[".repeat(64)}`;
  for (const reply of [`${deep}${"]".repeat(64)}}`, deep, `${deep}${"[".repeat(60_000)}`]) {
    const { fault } = await ask("bank", reply);
    assert.equal(fault?.kind, "broken");
    assert.match(fault?.message ?? "", /: the reply is nested deeper than 64 levels\. Outcome unknown/);
  }
  assert.equal((await ask("bank", `{"a":${"[".repeat(63)}${"]".repeat(63)}}`)).fault, undefined);
});
