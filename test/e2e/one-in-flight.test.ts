import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContractName } from "../../src/core/call.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { answering, type Behaviour } from "../support/terminal.ts";
import { withBridge } from "../support/with-bridge.ts";

const merchantId = "MERCHANT-1";
const callsTotal = 600;
const clients = 24;

/** What the n-th call asks, and what only its own answer says. */
function callOf(n: number): { readonly service: ContractName; readonly path: string; readonly body: string } {
  const id = `ID-${n}`;
  if (n % 3 === 0) {
    const data = Buffer.from(JSON.stringify({ documentExtID: id })).toString("base64");
    return { service: "fiscal", path: "/check_status", body: `data=${data}&sign=${signOf(data, merchantId)}` };
  }
  const service = n % 3 === 1 ? "bank" : "qr";
  return { service, path: "/check", body: JSON.stringify({ pay_id: id, trans: "T", pay_system: "PALM" }) };
}

/** The id in a request, as the terminal reads it. */
function idIn(text: string): string {
  const data = /&data=([^&]*)/.exec(text)?.[1];
  const json = data === undefined ? text : Buffer.from(data, "base64").toString();
  return /ID-\d+/.exec(json)?.[0] ?? "none";
}

test(`bridge gives each of ${callsTotal} calls from ${clients} clients over three services on one line its own answer, one in flight`, async () => {
  let number = 0;
  const slowNowAndThen: Behaviour = async (asked, self) => {
    const answer = answering(({ text }) => JSON.stringify({ status: "success", code: 0, echo: idIn(text) }));
    // Every seventh answer takes a moment, so that calls pile up.
    if (++number % 7 === 0) await new Promise((resolve) => setTimeout(resolve, 3));
    await answer(asked, self);
  };
  await withBridge({ services: { fiscal: { merchantId }, bank: {}, qr: {} } }, slowNowAndThen, async ({ bridge, terminal }) => {
    let next = 0;
    const wrong: string[] = [];
    const client = async () => {
      for (let n = next++; n < callsTotal; n = next++) {
        const { service, path, body } = callOf(n);
        const answer = await bridge.post(service, path, body);
        if (answer.status !== 200 || !answer.text.includes(`"echo":"ID-${n}"`))
          wrong.push(`${n}: ${answer.status} ${answer.text}`);
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
    assert.deepEqual(wrong, []);
    assert.equal(terminal.inFlightMax, 1, "requests that were out at one time");
    assert.equal(terminal.calls.length, callsTotal, "each call was sent once");
    const exchanges = bridge.log.filter((line) => line["msg"] === "exchange" && line["outcome"] === "answered");
    await bridge.logged(
      () => exchanges.length === callsTotal || bridge.log.filter((l) => l["msg"] === "exchange").length >= callsTotal,
      "a log line for each",
    );
  });
});
