import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpAnswer } from "../support/bridge-process.ts";
import { answering, type Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { type Pair, withBridge } from "../support/with-bridge.ts";

/** A bridge that settles operations on the box (`Prefer: wait`) and joins identical calls: tests src/operations over HTTP and a pty. */

const sale = (payId: string, amount = 1500) => JSON.stringify({ pay_id: payId, amount, currency_name: "EUR" });
const approved = '{"status":"success","data":{"status":"APPROVED","txn_id":"T-1"}}';
const services = { bank: { replyTimeoutMs: 3_001 } };

const wait = (seconds: number) => ({ Prefer: `wait=${seconds}` });

const says = ({ headers }: HttpAnswer) => [
  headers["x-posline-outcome"],
  headers["x-posline-result"],
  headers["x-posline-answer-of"],
];

const sales = (terminal: Terminal) => terminal.asked.filter(({ text }) => text.startsWith("/sale")).length;

/** A terminal that loses the answer to a sale, and has carried it out. */
const losing = answering(({ text }) => (text.startsWith("/check") ? approved : undefined));

test("a sale whose answer is lost is followed to its end in one call, and reaches the terminal once", async () => {
  await withBridge({ services }, losing, async ({ bridge, terminal }) => {
    const answer = await bridge.post("bank", "/sale", sale("A-1"), wait(30));
    assert.equal(answer.status, 200);
    assert.equal(answer.text, approved);
    assert.deepEqual(says(answer), ["answered", "approved", "/check"]);
    assert.equal(answer.headers["preference-applied"], "wait");
    assert.equal(answer.headers["x-posline-polls"], "1");
    assert.equal(sales(terminal), 1);
    const line = await bridge.logged(({ msg, route }) => msg === "exchange" && route === "/sale", "the sale in the log");
    assert.equal(line["result"], "approved");
  });
});

test("posline that stops answers the caller that waits with what is known", async () => {
  await withBridge(
    { services },
    answering(() => '{"status":"success"}'),
    async ({ bridge, terminal }: Pair) => {
      const waiting = bridge.post("bank", "/sale", sale("S-1"), wait(60));
      await until(() => sales(terminal) === 1, "the sale to be sent");
      await until(() => terminal.asked.some(({ text }) => text.startsWith("/check")), "it to be asked about");
      const stopped = bridge.stop();
      assert.deepEqual(says(await waiting), ["answered", "pending", undefined]);
      assert.equal(await stopped, 0);
    },
  );
});
