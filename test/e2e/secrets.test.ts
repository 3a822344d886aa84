import assert from "node:assert/strict";
import { test } from "node:test";
import { answering, probeReply } from "../support/terminal.ts";
import { withBridge } from "../support/with-bridge.ts";
import { key, services, signed } from "./guarded.ts";

const cardNumber = "4111111111111111";

test("log holds a line for each exchange and no body, secret or card number", async () => {
  const reply = JSON.stringify({ status: "success", code: 0, data: { card_num: cardNumber, track2: "TRACK2-SECRET" } });
  const secretBody = JSON.stringify({
    pay_id: "PAY-1",
    amount: 1,
    currency_name: "EUR",
    txn_config: { pan: cardNumber, pin: "PIN-SECRET" },
  });
  const replying = answering(() => reply);
  await withBridge({ services }, replying, async ({ bridge, terminal }) => {
    await bridge.post("bank", "/sale", secretBody, key);
    await bridge.post("bank", "/sale", secretBody, { "x-api-key": "WRONG-KEY-SECRET" });
    await bridge.post("bank", `/sale/${cardNumber}?pan=${cardNumber}`, secretBody, key);
    await bridge.post("bank", "/sale", `{"pan":"${cardNumber}"`, key);
    await bridge.post(
      "fiscal",
      "/sale",
      signed(`{"documentExtID":"DOC-1","extraPayments":[{"trxParams":{"cardNumber":"${cardNumber}"}}]}`),
    );
    await bridge.post("qr", "/check", secretBody, { origin: `https://${cardNumber}.com`, host: "localhost" });
    terminal.behaviour = async (asked, self) => {
      const frame = self.frame("length", probeReply(asked) ?? `{"status":"success","card":"${cardNumber}"}`);
      await self.send(probeReply(asked) === undefined ? Buffer.from(frame).fill(0, frame.length - 2) : frame);
    };
    const corrupt = await bridge.post("qr", "/check", secretBody);
    assert.equal(corrupt.status, 502);
    assert.equal(
      terminal.calls.filter(({ text }) => text.startsWith(":8887/check\n")).length,
      2,
      "what only reads is asked once more",
    );
    await bridge.logged((line) => line["msg"] === "bytes were discarded", "the corrupt frame");
    const exchange = bridge.log.find((line) => line["msg"] === "exchange" && line["outcome"] === "answered");
    assert.deepEqual(
      { ...exchange, time: 0, requestId: 0, queueMs: 0, lineMs: 0 },
      {
        ...{
          level: "info",
          time: 0,
          requestId: 0,
          service: "bank",
          route: "/sale",
          key: "PAY-1",
          requestBytes: secretBody.length,
        },
        ...{
          outcome: "answered",
          httpStatus: 200,
          status: "success",
          code: 0,
          replyBytes: reply.length,
          queueMs: 0,
          lineMs: 0,
        },
        msg: "exchange",
      },
    );
    assert.ok(bridge.log.some((line) => line["key"] === "DOC-1"));
    await bridge.stop();
    for (const secret of ["SECRET", cardNumber, "pan", Buffer.from(cardNumber).toString("hex").slice(0, 20)]) {
      assert.equal(bridge.stdout.includes(secret), false, `${secret} is in the log`);
      assert.equal(bridge.stderr.includes(secret), false, `${secret} is on standard error`);
    }
  });
});
