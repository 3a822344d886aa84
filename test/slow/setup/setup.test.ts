import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../../../src/config/load.ts";
import type { ContractName } from "../../../src/core/call.ts";
import { merchantId, SetupBox, type TerminalSetting } from "../../setup/setup-box.ts";
import { Terminal } from "../../support/terminal.ts";

/** Tests src/setup/setup.ts, src/doctor/terminal-search.ts over ptys. Each search waits in real time, ten at once. */

const packaged = await readFile(new URL("../../../systemd/posline.json", import.meta.url), "utf8");

const subsets: readonly (readonly ContractName[])[] = [
  ["bank"],
  ["fiscal", "bank", "qr"],
  ["qr"],
  ["fiscal"],
  ["bank", "qr"],
  ["fiscal", "bank"],
  ["fiscal", "qr"],
];

const speeds = [115_200, 9_600, 57_600, 38_400, 19_200, 4_800, 2_400, 1_200, 28_800, 14_400];

/** Each speed with either checksum, and each set of services about three times. */
const settings = Array.from({ length: 20 }, (_, at): TerminalSetting => {
  const baudRate = speeds[at % speeds.length] ?? 0;
  const crc16 = at < speeds.length ? "arc" : "umts";
  return { services: subsets[at % subsets.length] ?? [], baudRate, crc16, babbles: at % 3 === 0 };
});

async function setsUp(setting: TerminalSetting): Promise<{ readonly ms: number; readonly words: string }> {
  const { services, baudRate, crc16 } = setting;
  const words = `${services.join(" and ")} at ${baudRate} baud, ${crc16}`;
  const box = new SetupBox(setting);
  const stranger = new Terminal(join(box.box.root, "stranger"), () => {});
  box.box.tty("ttyS0", "platform/serial8250/ttyS0", undefined, stranger.link);
  box.write(packaged);
  const beganMs = performance.now();
  try {
    const running = box.run({}, services.includes("fiscal") ? [merchantId, "yes"] : ["yes"]);
    await box.saying(/Plug the terminal in/);
    box.plug();
    // Whoever reads why it failed needs what it tried.
    const code = await running.catch((error: unknown) => assert.fail(`${words}: ${error}\n${box.said.join("")}`));
    const ms = performance.now() - beganMs;
    const told = `${words}:\n${box.said.join("")}`;
    assert.equal(code, 0, told);
    assert.equal(box.text, packaged);
    const { config } = await loadConfig({ env: {}, flags: { config: box.file } });
    assert.deepEqual(Object.keys(config.services).sort(), [...services].sort(), told);
    const { till } = config.lines;
    assert.deepEqual([till?.path, till?.baudRate], [box.byId, baudRate], told);
    if (services.some((each) => each !== "fiscal")) assert.equal(till?.crc16, crc16, told);
    if (services.includes("fiscal"))
      assert.equal(await readFile(join(box.file, "../credentials/merchant-id"), "utf8"), `${merchantId}\n`);
    assert.equal(stranger.heardBytes, 0, told);
    assert.ok(
      box.heard.every((text) => /^(?:command=)?(?:\/supported_operations|:8887\/check_connection)(?:&|$)/.test(text)),
      told,
    );
    for (const speed of speeds.slice(0, speeds.indexOf(baudRate)))
      assert.match(told, new RegExp(`^${speed} baud: no answer from fiscal, bank, qr`, "m"));
    assert.ok(ms < 60_000, `${words}: ${ms} ms`);
    return { ms, words };
  } finally {
    box.remove();
    stranger.unplug();
  }
}

test("posline setup finds 20 of 20 combinations of services, speed and checksum on a device plugged in while it waits, each within 60 s", async (t) => {
  // All at once they would wait for the process's four threads, as no setup does.
  const [first, second] = [settings.slice(0, 10), settings.slice(10)];
  const ended = [...(await Promise.all(first.map(setsUp))), ...(await Promise.all(second.map(setsUp)))];
  assert.equal(ended.length, 20);
  for (const { words, ms } of ended) t.diagnostic(`${words}: ${(ms / 1_000).toFixed(1)} s`);
});

test("posline setup says each try on a device that doesn't answer, names the likeliest cause, and writes nothing", async (t) => {
  const box = new SetupBox({ services: [], baudRate: 9_600, crc16: "arc" });
  box.plug();
  box.write(packaged);
  t.after(() => box.remove());
  const running = box.run({ line: box.device, yes: true }, undefined);
  await assert.rejects(running, /^SetupError: Cannot set up: no terminal answers on .*: nothing was written to /);
  const told = box.said.join("");
  for (const speed of speeds) assert.match(told, new RegExp(`^${speed} baud: no answer from fiscal, bank, qr$`, "m"));
  assert.match(told, /the terminal does not answer, and not one byte comes back, at any speed/);
  assert.deepEqual([box.text, box.dropIn], [packaged, undefined]);
});
