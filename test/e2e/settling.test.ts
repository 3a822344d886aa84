import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { createHttpClient } from "../../src/client/client.ts";
import { signOf } from "../../src/envelope/sign.ts";
import type { HttpAnswer } from "../support/bridge-process.ts";
import { answering, type Behaviour, probeReply, type Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { type Pair, withBridge } from "../support/with-bridge.ts";

/** A bridge that settles operations on the box (`Prefer: wait`) and joins identical calls: tests src/operations over HTTP and a pty. */

const sale = (payId: string, amount = 1500) => JSON.stringify({ pay_id: payId, amount, currency_name: "EUR" });
const approved = '{"status":"success","data":{"status":"APPROVED","txn_id":"T-1"}}';
const services = { bank: { replyTimeoutMs: 3_001 } };

const merchantId = "MERCHANT-1";

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

test("a call that prefers nothing is answered as ever, and so is a route that has no end", async () => {
  await withBridge({ services }, losing, async ({ bridge }) => {
    for (const [route, headers] of [
      ["/sale", {}],
      ["/check", wait(30)],
    ] as const) {
      const answer = await bridge.post("bank", route, sale("A-1"), headers);
      assert.equal(answer.headers["x-posline-result"], undefined);
      assert.equal(answer.headers["preference-applied"], undefined);
    }
  });
});

test("a till that leaves and sends the same sale again gets its end, and the terminal gets it once", async () => {
  let isOver = false;
  const behaviour: Behaviour = answering(({ text }) =>
    text.startsWith("/check") && isOver ? approved : '{"status":"success"}',
  );
  await withBridge({ services }, behaviour, async ({ bridge, terminal }) => {
    await leave(await bridge.port("bank"), sale("A-2"), terminal);
    const again = await bridge.post("bank", "/sale", sale("A-2"), wait(1));
    assert.deepEqual(says(again).slice(0, 2), ["answered", "pending"]);
    const other = await bridge.post("bank", "/sale", sale("A-2", 9900), wait(1));
    assert.equal(other.status, 422);
    assert.deepEqual(says(other), ["not-sent", undefined, undefined]);
    assert.equal(other.headers["x-posline-reason"], "key-reused");
    isOver = true;
    assert.deepEqual(says(await bridge.post("bank", "/sale", sale("A-2"), wait(30))), ["answered", "approved", "/check"]);
    assert.equal(sales(terminal), 1);
  });
});

test("a double click is one sale: identical calls get one exchange, others don't", async () => {
  const slowly: Behaviour = async (asked, terminal) => {
    if (probeReply(asked) === undefined) await new Promise((resolve) => setTimeout(resolve, 150));
    await terminal.reply(asked.framing, probeReply(asked) ?? '{"status":"success"}');
  };
  await withBridge({ services: { bank: {} } }, slowly, async ({ bridge, terminal }) => {
    const answers = await Promise.all([
      bridge.post("bank", "/sale", sale("D-1")),
      bridge.post("bank", "/sale", sale("D-1")),
      bridge.post("bank", "/sale", sale("D-2")),
      bridge.post("bank", "/sale", '{"amount":1500,"currency_name":"EUR"}'),
      bridge.post("bank", "/sale", '{"amount":1500,"currency_name":"EUR"}'),
    ]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 200, 200],
    );
    assert.equal(sales(terminal), 4);
    const joined = answers.map(({ headers }) => headers["x-posline-joined"]);
    assert.equal(joined.filter((each) => each === "1").length, 1);
    assert.equal(
      joined.slice(2).every((each) => each === undefined),
      true,
    );
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

/** Sends a sale and leaves once the terminal has it. */
async function leave(port: number, body: string, terminal: Terminal): Promise<void> {
  const asking = request({ host: "127.0.0.1", port, method: "POST", path: "/sale", headers: wait(60) });
  asking.on("error", () => {});
  asking.end(body);
  await until(() => sales(terminal) === 1, "the sale to be sent");
  asking.destroy();
}

test("a plain refusal of cash or of a card ends within seconds, with the header and for the client", async () => {
  const refusing = answering(({ framing, text }) => {
    if (framing === "stx") return `{"status":"error","code":${text.startsWith("command=/check_status") ? 9 : 4}}`;
    return `{"status":"error","code":${text.startsWith("/check") ? -15 : -21}}`;
  });
  await withBridge({ services: { bank: {}, fiscal: { merchantId } } }, refusing, async ({ bridge, terminal }) => {
    const beganMs = performance.now();
    const data = Buffer.from('{"documentExtID":"C-1","amount":100}').toString("base64");
    const form = `data=${data}&sign=${signOf(data, merchantId)}`;
    const [cash, card] = [
      await bridge.post("fiscal", "/deposit", form, wait(60)),
      await bridge.post("bank", "/sale", sale("C-2"), wait(60)),
    ];
    // Why is in the terminal's own error, for both: that there is none says only that nothing was done.
    for (const [told, code] of [
      [cash, 4],
      [card, -21],
    ] as const) {
      assert.deepEqual([...says(told), JSON.parse(told.text).code], ["answered", "failed", undefined, code]);
    }
    const url = async (service: "bank" | "fiscal") => `http://127.0.0.1:${await bridge.port(service)}`;
    const client = createHttpClient({ bank: { url: await url("bank") }, fiscal: { url: await url("fiscal"), merchantId } });
    const deposit = await client.fiscal.settle("deposit", { amount: 100 });
    const sold = await client.bank.settle("sale", { amount: 100, currency_name: "EUR" });
    assert.deepEqual([deposit.result, deposit.code, sold.result, sold.code], ["failed", 4, "failed", -21]);
    assert.ok(performance.now() - beganMs < 20_000);
    const sent = terminal.calls.filter(({ text }) => /deposit|^\/sale/.test(text));
    assert.equal(sent.length, 4, "each once");
  });
});
