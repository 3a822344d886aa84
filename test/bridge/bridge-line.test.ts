import assert from "node:assert/strict";
import { test } from "node:test";
import { type BridgeLine, bridgeLine } from "../../src/bridge/bridge-line.ts";
import { serviceDefaults } from "../../src/config/limits.ts";
import type { ContractName } from "../../src/core/call.ts";
import { LineSet } from "../../src/process/line-set.ts";
import type { Served, SharedLine } from "../../src/process/served.ts";
import { configOf, requestFor, silentReport } from "../line/lines.ts";
import { FakeDevice } from "../support/fake-device.ts";
import { probeReply } from "../support/terminal.ts";
import { virtualTime } from "../support/virtual-time.ts";

const time = virtualTime();

test("bridgeLine() in a LineSet: who owes a call is waited for as long after a reload, and all that are there where it is gone", async () => {
  const device = new FakeDevice((framing, text) => {
    const answer = isOn ? probeReply({ framing, text, number: 0 }) : undefined;
    if (answer !== undefined) device.reply(framing, answer);
  });
  let isOn = true;
  const set = new LineSet<BridgeLine>({
    make: (line, place) => bridgeLine(line, place, { open: device.open }, silentReport, []),
    lasting: ({ config }) => config.contract,
  });
  const settings = { ...serviceDefaults, merchantId: undefined, replyTimeoutMs: {} };
  const served = (contract: ContractName, baudRate: number): SharedLine => ({
    name: "a",
    config: configOf({ baudRate }),
    // What a line takes of it.
    served: [{ service: "till", config: { ...settings, contract, line: "a", port: 1 } as unknown as Served["config"] }],
  });
  const stateAfter = async (ms: number) => {
    await time.advance(ms);
    return set.all[0]?.line.state;
  };
  const reload = (line: SharedLine) => set.take(set.prepare([line]));
  reload(served("bank", 115_200));
  assert.equal(await stateAfter(5_000), "idle");
  isOn = false;
  const timedOut = set.all[0]?.line.run({ ...requestFor("A", { replyTimeoutMs: 4_000 }), service: "till" });
  timedOut?.catch(() => {});
  assert.equal(await stateAfter(5_000), "recovering");
  reload(served("bank", 9_600));
  assert.equal(await stateAfter(5_000), "recovering");
  // Before it was proven again, too.
  reload(served("bank", 19_200));
  assert.equal(await stateAfter(290_000), "recovering");
  assert.notEqual(await stateAfter(20_000), "recovering", "it is set aside");
  reload(served("qr", 19_200));
  assert.equal(await stateAfter(290_000), "recovering", "bank's answer may still come, and be taken for qr's");
  assert.notEqual(await stateAfter(20_000), "recovering");
  await set.stop();
});
