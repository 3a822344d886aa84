import assert from "node:assert/strict";
import { test } from "node:test";
import { silenceMs } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { type ContractName, contractNames } from "../../src/core/call.ts";
import { Fault, type FaultKind, faultClasses } from "../../src/core/fault.ts";
import { type LineExchange, LineListener } from "../../src/line/listener.ts";
import { createDecoder } from "../../src/wire/decoder.ts";
import { readingOf, trueReadings } from "../support/body-till.ts";
import { FakeDevice } from "../support/fake-device.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { configOf } from "./lines.ts";

/** Tests src/line/listener.ts, src/line/line.ts. */

const time = virtualTime();

// Its keys are the kinds.
const kinds = Object.keys(faultClasses) as FaultKind[];

/** A listener on which every call ends in a fault that the test chooses. */
async function failing() {
  let fault = new Fault("timeout", "");
  let read = 0;
  const device = new FakeDevice();
  const exchanges: LineExchange[] = [];
  const decoder = createDecoder({ stx: true, length: true, crc16: "arc", payloadBytesMax: 1 << 20 });
  const listener = new LineListener({
    config: configOf(),
    open: device.open,
    answering: "newest",
    services: contractNames.map((service) => ({ contract: contracts[service], handler: () => Promise.reject(fault) })),
    report: { discard: () => {}, state: () => {}, exchange: (exchange) => exchanges.push(exchange) },
  });
  listener.start();
  await time.advance(silenceMs + 1);
  /** What is answered to this on the line; undefined when nothing is. */
  const ask = async (service: ContractName, path: string, given: Fault): Promise<string | undefined> => {
    fault = given;
    const { framing, linePrefix } = contracts[service];
    device.reply(framing, framing === "stx" ? `command=${path}&data=e30=&sign=AAAA` : `${linePrefix}${path}\n{}`);
    // Before an answer goes out the loop is let go round twice.
    for (let turn = 0; turn < 3; turn++) await time.settle();
    const bytes = Buffer.concat(device.written.slice(read));
    read = device.written.length;
    const [first, ...more] = decoder.push(bytes);
    assert.equal(more.length, 0);
    if (first === undefined) return undefined;
    assert.ok(first.kind === "frame");
    return Buffer.concat(first.payload).toString();
  };
  return { ask, exchanges, stop: () => listener.stop() };
}

for (const service of contractNames) {
  test(`no fault of ${service} on a line lets a till take a doubt for an end`, async () => {
    const { ask, exchanges, stop } = await failing();
    for (const { path } of contracts[service].routes) {
      for (const kind of kinds) {
        const text = await ask(service, path, new Fault(kind, "Cannot do it: a test"));
        const reading = readingOf(service, path, text);
        const allowed = trueReadings(service, path, faultClasses[kind].outcome);
        assert.ok(allowed.includes(reading), `${service} ${path} ${kind}: ${text} reads as ${reading}`);
        if (text !== undefined) assert.equal(JSON.parse(text).message, "Cannot do it: a test");
        assert.equal(
          Buffer.concat(exchanges.at(-1)?.payload ?? []).toString(),
          text ?? "",
          "what was reported is what was written",
        );
      }
    }
    await stop();
  });
}

test("LineListener stays silent on a qr /cancel, /refund and /final_confirm of unknown outcome, and answers what comes next", async () => {
  const { ask, exchanges, stop } = await failing();
  for (const path of ["/cancel", "/refund", "/final_confirm"]) {
    for (const kind of ["timeout", "broken"] as const) {
      assert.equal(await ask("qr", path, new Fault(kind, "nobody knows")), undefined, path);
      const { ending, given, payload } = exchanges.at(-1) ?? {};
      assert.ok(ending instanceof Fault);
      assert.deepEqual([ending.outcome, given, payload], ["unknown", true, []]);
      assert.match((await ask("qr", path, new Fault("unavailable", "not sent"))) ?? "", /"error".*not sent/);
    }
  }
  await stop();
});

test("LineListener passes an upstream posline's own error on, and never one where it would end what goes on", async () => {
  const { ask, stop } = await failing();
  const payload = [Buffer.from('{ "status":"error", "code":-80,"message":"theirs" }')];
  assert.equal(await ask("bank", "/sale", new Fault("unavailable", "theirs", { payload })), payload.join(""));
  const theirs = (kind: FaultKind, text: string) => new Fault(kind, "theirs", { payload: [Buffer.from(text)] });
  const error = '{"status":"error","code":1,"message":"theirs"}';
  const going = '{"status":"success","message":"theirs"}';
  // As a posline of before this rule writes it
  assert.equal(await ask("qr", "/check", theirs("unavailable", error)), going);
  const unknown = '{"status":"success","message":"theirs","outcome":"unknown"}';
  assert.equal(await ask("qr", "/check", theirs("timeout", error)), unknown);
  assert.equal(await ask("qr", "/showqrcode", theirs("broken", error)), unknown);
  assert.equal(await ask("qr", "/refund", theirs("broken", error)), undefined);
  assert.equal(await ask("qr", "/showqrcode", theirs("unavailable", error)), error);
  // What an upstream writes where it doesn't know the route, or by mistake, is no success here
  for (const text of ['{"message":"theirs"}', '{"status":"success"}', "[]"]) {
    assert.equal(await ask("qr", "/refund", theirs("unavailable", text)), error);
  }
  await stop();
});
