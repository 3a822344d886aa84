import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { fiscal } from "../../src/contract/fiscal.ts";
import { contractNames } from "../../src/core/call.ts";
import { signOf } from "../../src/envelope/sign.ts";
import type { BridgeProcess } from "../support/bridge-process.ts";
import { type Asked, answering, questionReplies, type Terminal } from "../support/terminal.ts";
import { startedPair } from "../support/with-bridge.ts";

const merchantId = "MERCHANT-1";
// What no re-serialising survives: white space, key order, a number beyond 2^53, an unknown field, text beyond ASCII.
const oddJson = '{ "zzz" : 1.50,  "pay_id":"A-1",\n "amount": 9007199254740993, "note":"Ünïcödé ☕" }';
const oddReply = '{\n "status":"success" , "code":0,"documentID":9223372036854775807, "b":1, "a":"\u00e9" }';
let terminal: Terminal;
let bridge: BridgeProcess;
let end: () => Promise<void>;

before(async () => {
  const services = { fiscal: { merchantId }, bank: { bodyBytesMax: 1_048_576 }, qr: {} };
  ({ terminal, bridge, end } = await startedPair(
    { services },
    answering(() => oddReply),
  ));
});

after(() => end());

const lastAsked = (): Asked => {
  const asked = terminal.asked.at(-1);
  assert.ok(asked);
  return asked;
};

for (const service of contractNames) {
  const contract = contracts[service];
  for (const route of contract.routes) {
    test(`bridge relays POST ${service} ${route.path} and its answer byte for byte`, async () => {
      const data = Buffer.from(oddJson).toString("base64");
      const sign = signOf(data, merchantId);
      const form = `data=${data}&sign=${sign}`;
      // The scripted terminal takes these two of fiscal for posline's own questions.
      const { probe, second } = questionReplies.fiscal;
      const own = { [fiscal.probe.route]: probe, [fiscal.secondProbe.route]: second }[route.path];
      const answer = await bridge.post(service, route.path, service === "fiscal" ? form : oddJson);
      const asked = lastAsked();
      assert.equal(answer.status, 200);
      assert.equal(answer.headers["x-posline-outcome"], "answered");
      assert.equal(answer.headers["content-type"], contract.replyContentType);
      assert.match(answer.headers["server-timing"] ?? "", /^queue;dur=[\d.]+, line;dur=[\d.]+$/);
      assert.equal(asked.framing, service === "fiscal" ? "stx" : "length");
      const wanted = service === "fiscal" ? `command=${route.path}&${form}` : `${contract.linePrefix}${route.path}\n${oddJson}`;
      assert.equal(asked.text, wanted);
      assert.equal(answer.text, service === "fiscal" ? (own ?? oddReply) : oddReply);
    });
  }
}

test("bridge relays requests without a body as the bare route", async () => {
  await bridge.post("bank", "/terminals", "");
  assert.equal(lastAsked().text, "/terminals");
  const connection = await bridge.post("qr", "/check_connection", "");
  assert.equal(lastAsked().text, ":8887/check_connection");
  assert.equal(connection.text, questionReplies.qr.probe);
  const operations = await bridge.get("bank", "/supported_operations");
  assert.equal(operations.text, questionReplies.bank.probe);
});

test("bridge signs a fiscal GET /supported_operations itself", async () => {
  const answer = await bridge.get("fiscal", "/supported_operations");
  assert.equal(answer.text, questionReplies.fiscal.probe);
  assert.equal(lastAsked().text, `command=/supported_operations&data=e30=&sign=${signOf("e30=", merchantId)}`);
});

test("bridge relays an escaped and a raw fiscal form as each was written", async () => {
  // Base64 with + and /, from bytes chosen for it.
  const data = Buffer.from('{"documentExtID":"??>>~~"}').toString("base64");
  const sign = signOf(data, merchantId);
  const escaped = `data=${data.replaceAll("=", "%3D").replaceAll("+", "%2B").replaceAll("/", "%2f")}&sign=${encodeURIComponent(sign)}`;
  for (const form of [`data=${data}&sign=${sign}`, escaped]) {
    const answer = await bridge.post("fiscal", "/check_status", form, { "content-type": "text/plain" });
    assert.equal(answer.headers["x-posline-outcome"], "answered");
    assert.equal(lastAsked().text, `command=/check_status&${form}`);
  }
});

test("bridge relays bodies and replies of several hundred kB, in one piece at the till", async () => {
  const items = "x".repeat(300_000);
  const reply = `{"status":"success","data":{"print_data":{"text":"${"y".repeat(400_000)}"}}}`;
  terminal.behaviour = answering(() => reply);
  const body = `{"pay_id":"BIG","note":"${items}"}`;
  const answer = await bridge.post("bank", "/sale", body);
  assert.equal(answer.text, reply);
  assert.equal(lastAsked().text, `/sale\n${body}`);
});
