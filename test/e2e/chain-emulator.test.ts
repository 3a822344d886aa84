import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { serviceNames } from "../../src/core/call.ts";
import type { Ask, Row } from "../emulator/conformance-rows.ts";
import { bodyOf, merchantId, overHttpTransport, rows } from "../emulator/conforming.ts";
import { type BridgeProcess, scratchFolder, startedBridge } from "../support/bridge-process.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { nullModem } from "../support/till.ts";

/** till → HTTP → bridge → tty → gateway → HTTP → emulator, for every route: the answers are the emulator's, byte for byte. */

const folder = scratchFolder();
const [near, far] = [join(folder.path, "near"), join(folder.path, "far")];
let emulated: Awaited<ReturnType<typeof overHttpTransport>>;
let cable: ReturnType<typeof nullModem>;
let gateway: PoslineProcess;
let bridge: BridgeProcess;

before(async () => {
  cable = nullModem(near, far);
  emulated = await overHttpTransport();
  const upstreams = serviceNames.flatMap((name) => [`--upstream-${name}`, `http://127.0.0.1:${emulated.ports.get(name)}`]);
  gateway = new PoslineProcess(["gateway", "--line", far, ...upstreams]);
  await gateway.logged((line) => line["state"] === "open", "the gateway's line to open");
  bridge = await startedBridge({
    lines: { till: { path: near } },
    services: { fiscal: { line: "till", merchantId }, bank: { line: "till" }, qr: { line: "till" } },
  });
});

after(async () => {
  await bridge.stop();
  await gateway.ended("SIGTERM");
  await emulated.stop();
  cable.unplug();
  folder.remove();
});

async function ask(service: Row["service"], each: Ask): Promise<string> {
  const { text, headers } = await bridge.post(service, each.route, bodyOf(service, each));
  assert.equal(headers["x-posline-outcome"], "answered", text);
  assert.equal(text, emulated.answered.at(-1));
  return text;
}

for (const row of rows.filter(({ case: each }) => each === "success" || each === "resend")) {
  test(`the chain gives the emulator's answer to ${row.service} ${row.route} ${row.case}${row.why === undefined ? "" : `, ${row.why}`}`, async () => {
    emulated.emulator.reset();
    for (const each of row.before ?? []) await ask(row.service, each);
    assert.equal(JSON.parse(await ask(row.service, row)).status, "success");
  });
}
