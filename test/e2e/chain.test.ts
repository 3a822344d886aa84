import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createHttpClient } from "../../src/client/client.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { type ContractName, contractNames } from "../../src/core/call.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { type Answer, Upstream } from "../http/upstream.ts";
import type { BridgeProcess } from "../support/bridge-process.ts";
import { type Chain, startedChain } from "./chain.ts";

/** The longest way that a call can take, with real servers at its end. */

const merchantId = "MERCHANT-1";
// What no re-serialising survives: white space, key order, a number beyond 2^53, an unknown field, text beyond ASCII, escapes.
const oddJson = '{ "zzz" : 1.50,  "pay_id":"A-1",\n "amount": 9007199254740993, "note":"Ünïcödé ☕ \\u00e9" }';
const oddReply =
  '\n{\n "status":"success" , "code":0,"documentID":9223372036854775807, "b":1.50e0, "a":"\\u00e9 ☕", "a":null }\r\n';
const probeReplies: Readonly<Record<ContractName, string>> = {
  fiscal: '{ "status":"success","code":0,  "operations":["sale"], "x":9223372036854775807 }',
  bank: '{ "data":{"operations":[ "sale" ]},"status":"success", "x":9223372036854775807 }',
  qr: '{ "data":{"systems":[ {"name":"PALM"} ]},"status":"success", "x":1.0 }',
};

const services = new Map<ContractName, Upstream>();
let chain: Chain;
let bridge: BridgeProcess;

const serviceOf = (name: ContractName): Upstream => {
  const service = services.get(name);
  assert.ok(service);
  return service;
};

before(async () => {
  for (const name of contractNames) {
    services.set(
      name,
      await Upstream.start(({ path }, response) =>
        response.end(path === contracts[name].probe.route ? probeReplies[name] : oddReply),
      ),
    );
  }
  chain = await startedChain(merchantId, (name) => serviceOf(name).url);
  bridge = chain.bridge;
});

after(async () => {
  await chain.end();
  for (const service of services.values()) await service.stop();
});

for (const service of contractNames) {
  const contract = contracts[service];
  for (const route of contract.routes) {
    test(`bridge and gateway relay ${service} ${route.path} and its answer byte for byte`, async () => {
      const data = Buffer.from(oddJson).toString("base64");
      const form = { data, sign: signOf(data, merchantId) };
      const body = contract.envelope === "form" ? `data=${form.data}&sign=${form.sign}` : oddJson;
      const answer = await bridge.post(service, route.path, body);
      const heard = serviceOf(service).heard.at(-1);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers["x-posline-outcome"], "answered");
      assert.equal(answer.text, route.path === contract.probe.route ? probeReplies[service] : oddReply);
      assert.deepEqual([heard?.method, heard?.path], ["POST", route.path]);
      if (contract.envelope === "form") assert.deepEqual(Object.fromEntries(new URLSearchParams(heard?.body)), form);
      else assert.equal(heard?.body, body);
    });
  }
}

test("bridge and gateway relay requests without a body by the method that the contract has", async () => {
  assert.equal((await bridge.get("bank", "/supported_operations")).text, probeReplies.bank);
  assert.deepEqual([serviceOf("bank").heard.at(-1)?.method, serviceOf("bank").heard.at(-1)?.body], ["GET", ""]);
  assert.equal((await bridge.post("qr", "/check_connection", "")).text, probeReplies.qr);
  assert.deepEqual([serviceOf("qr").heard.at(-1)?.method, serviceOf("qr").heard.at(-1)?.body], ["POST", ""]);
  assert.equal((await bridge.get("fiscal", "/supported_operations")).text, probeReplies.fiscal);
});

test("bridge and gateway hand an error of the service on, whatever its HTTP status", async () => {
  const text = '{"status":"error","code":-20,  "message":"declined","data":{"status":"ERROR"}}';
  const bank = serviceOf("bank");
  const usual = bank.answer;
  bank.answer = (_, response) => response.writeHead(500).end(text);
  const answer = await bridge.post("bank", "/check", '{"pay_id":"A"}');
  bank.answer = usual;
  assert.equal(answer.text, text);
});

/** How an upstream fails once to say how a payment goes. */
const failures: Readonly<Record<string, Answer>> = {
  "HTTP 500 with an error envelope": (_, response) => response.writeHead(500).end('{"status":"error","code":1}'),
  "HTTP 502 with a page": (_, response) => response.writeHead(502).end("<html>"),
  "HTTP 404": (_, response) => response.writeHead(404).end(),
  "a cut connection": (_, response) => response.destroy(),
};

for (const [name, failure] of Object.entries(failures)) {
  test(`bridge, gateway and client end a qr payment as approved though the upstream answered one /check with ${name}`, async () => {
    const qr = serviceOf("qr");
    const usual = qr.answer;
    const checks = [
      failure,
      ...["{", '{"data":{"rrn":"77"},'].map(
        (start): Answer =>
          (_, response) =>
            response.end(`${start}"status":"success"}`),
      ),
    ];
    qr.answer = (heard, response) => {
      if (heard.path === "/check") checks.shift()?.(heard, response);
      else if (heard.path === "/showqrcode") response.end('{"status":"success","data":{"trans":"T-1"}}');
      else usual(heard, response);
    };
    const client = createHttpClient({ qr: { url: `http://127.0.0.1:${await bridge.port("qr")}` } });
    const body = { amount: 1500, currency: "944", currency_name: "AZN", pay_system: "A" };
    const { result, data, steps } = await client.qr.settle("showqrcode", body, { intervalMs: 50 });
    qr.answer = usual;
    assert.deepEqual([result, data?.rrn], ["approved", "77"]);
    assert.deepEqual(
      steps.map(({ route, status }) => [route, status]),
      [
        ["/showqrcode", "success"],
        ["/check", "success"],
        ["/check", "success"],
        ["/check", "success"],
      ],
    );
  });
}

/** A payment at the upstream, whose first answer is lost on its way to the gateway; its `trans` is the upstream's own. */
function losesFirstAnswer(usual: Answer): Answer {
  let shows = 0;
  return (heard, response) => {
    if (heard.path === "/showqrcode") {
      if (++shows === 1) response.destroy();
      else response.end('{"status":"success","data":{"trans":"T-1"}}');
    } else if (heard.path === "/check") {
      const isKnown = JSON.parse(heard.body).trans === "T-1";
      response.end(isKnown ? '{"status":"success","data":{"rrn":"77"}}' : '{"status":"error","code":1,"message":"not found"}');
    } else usual(heard, response);
  };
}

const payment = { pay_id: "LOST-1", amount: 1500, currency: "944", currency_name: "AZN", pay_system: "A" };

test("bridge, gateway and client end a qr payment as approved though the upstream's answer with its trans was lost", async () => {
  const qr = serviceOf("qr");
  const usual = qr.answer;
  qr.answer = losesFirstAnswer(usual);
  const client = createHttpClient({ qr: { url: `http://127.0.0.1:${await bridge.port("qr")}` } });
  const { result, data, steps } = await client.qr.settle("showqrcode", payment, { intervalMs: 50, windowMs: 20_000 });
  qr.answer = usual;
  assert.deepEqual([result, data?.rrn], ["approved", "77"]);
  assert.deepEqual(
    steps.map(({ route }) => route),
    ["/showqrcode", "/check", "/showqrcode", "/check"],
  );
});

test("bridge and gateway tell Prefer: wait of a lost code that it is unknown, not pending, and the till has it shown once more", async () => {
  const qr = serviceOf("qr");
  const usual = qr.answer;
  qr.answer = losesFirstAnswer(usual);
  const body = JSON.stringify({ ...payment, pay_id: "LOST-2" });
  const lost = await bridge.post("qr", "/showqrcode", body, { Prefer: "wait=4" });
  assert.equal(lost.headers["x-posline-result"], "unknown");
  assert.equal(JSON.parse(lost.text).status, "success", "/check's error would end the payment");
  assert.equal(JSON.parse((await bridge.post("qr", "/showqrcode", body)).text).data.trans, "T-1");
  qr.answer = usual;
});
