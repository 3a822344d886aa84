import assert from "node:assert/strict";
import { join } from "node:path";
import { mock, test } from "node:test";
import { startBridge } from "../../src/bridge/bridge.ts";
import { loadLab } from "../../src/cli/lab.ts";
import { type Config, emulatedPath } from "../../src/config/config.ts";
import { journalDefaults, lineDefaults } from "../../src/config/limits.ts";
import { openLog } from "../../src/core/log.ts";
import { HttpListener } from "../../src/http/listener.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { ask, scratchFolder } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { serviceConfigOf } from "../support/service-config.ts";

import { answering, probeReplies, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

test("Bridge.reload() is refused for a sale that came while its ports were being opened, and closes what it opened", async (t) => {
  const folder = scratchFolder();
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(() => undefined),
  );
  const isOut = () => terminal.asked.some(({ text }) => text.startsWith("/sale"));
  const [port = 0, other = 0] = await freePorts(2);
  const bank = serviceConfigOf({ port, replyTimeoutMs: { "/sale": 3_001 } });
  const config: Config = {
    lines: { till: { ...lineDefaults, path: terminal.link } },
    services: { bank },
    journal: { ...journalDefaults, folder: folder.path, resolve: false },
    log: { level: "info" },
  };
  const bridge = await startBridge({ config, log: openLog("silent"), emulated: undefined, lab: loadLab, sockets: [] });
  t.after(() => bridge.stop());
  t.after(() => terminal.unplug());
  await until(() => bridge.lines[0]?.state === "idle", "the line to be clean");
  let sale: ReturnType<typeof ask> | undefined;
  const { listen } = HttpListener.prototype;
  const opening = mock.method(HttpListener.prototype, "listen", async function (this: HttpListener) {
    sale = ask(port, "POST", "/sale", '{"pay_id":"A-1","amount":100,"currency_name":"EUR"}');
    await until(isOut, "the sale on the line");
    return listen.call(this);
  });
  const renamed = { "bank-1": bank, qr: serviceConfigOf({ contract: "qr", port: other }) };
  await assert.rejects(bridge.reload({ ...config, services: renamed }), {
    message: /^Cannot reload: services\.bank was taken away or renamed, and how \/sale A-1 of it ended is unknown: /,
  });
  opening.mock.restore();
  assertMapped(bridge.listening, ["bank"], ({ service }) => service);
  await assert.rejects(ask(other, "POST", "/check", "{}"), /ECONNREFUSED/);
  assert.equal((await sale)?.headers["x-posline-outcome"], "unknown");
});

test("Bridge.reload() is over once no port listens any more that it took away, and its new ones do", async (t) => {
  const folder = scratchFolder();
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(() => '{"status":"success"}'),
  );
  const [port = 0, moved = 0] = await freePorts(2);
  const configOf = (bankPort: number): Config => ({
    lines: { till: { ...lineDefaults, path: terminal.link } },
    services: { bank: serviceConfigOf({ port: bankPort }) },
    journal: false,
    log: { level: "info" },
  });
  const bridge = await startBridge({
    config: configOf(port),
    log: openLog("silent"),
    emulated: undefined,
    lab: loadLab,
    sockets: [],
  });
  t.after(() => bridge.stop());
  t.after(() => terminal.unplug());
  await until(() => bridge.lines[0]?.state === "idle", "the line to be clean");
  await bridge.reload(configOf(moved));
  const [old, now] = await Promise.allSettled([port, moved].map((each) => ask(each, "POST", "/terminals", "")));
  assert.match(String(old?.status === "rejected" && old.reason), /ECONNREFUSED/);
  assert.equal(now?.status === "fulfilled" && now.value.status, 200);
});

test("a bridge asks a qr service with the port in front that linePort says, also after a reload that changes it", async (t) => {
  const folder = scratchFolder();
  const terminal = new Terminal(
    join(folder.path, "tty"),
    answering(({ text }) => (text.endsWith("/check_connection") ? probeReplies.connection : '{"status":"success"}')),
  );
  const [bankPort = 0, qrPort = 0] = await freePorts(2);
  const configOf = (linePort: number): Config => ({
    lines: { till: { ...lineDefaults, path: terminal.link } },
    services: { bank: serviceConfigOf({ port: bankPort }), qr: serviceConfigOf({ contract: "qr", port: qrPort, linePort }) },
    journal: false,
    log: { level: "info" },
  });
  const bridge = await startBridge({
    config: configOf(9001),
    log: openLog("silent"),
    emulated: undefined,
    lab: loadLab,
    sockets: [],
  });
  const isClean = () => until(() => bridge.lines[0]?.state === "idle", "the line to be clean");
  const askedOfQr = async (linePort: number) => {
    await isClean();
    const checked = await ask(qrPort, "POST", "/check", '{"pay_id":"A"}');
    assert.equal(checked.status, 200);
    const asked = terminal.asked.splice(0).map(({ text }) => text);
    const qr = asked.filter((text) => text.startsWith(":"));
    assert.ok(qr.length >= 2, "the probe and the call");
    for (const text of qr) assert.ok(text.startsWith(`:${linePort}/`), text);
    assert.ok(asked.includes("/supported_operations"), "bank is asked without a port");
  };
  t.after(() => bridge.stop());
  t.after(() => terminal.unplug());
  await askedOfQr(9001);
  await bridge.reload(configOf(9002));
  await askedOfQr(9002);
});

test("a bridge with the emulator has a qr service answer behind the port that linePort says", async (t) => {
  const [port = 0] = await freePorts(1);
  const config: Config = {
    lines: { till: { ...lineDefaults, path: emulatedPath } },
    services: { qr: serviceConfigOf({ contract: "qr", port, linePort: 9001 }) },
    journal: false,
    log: { level: "info" },
  };
  const bridge = await startBridge({ config, log: openLog("silent"), emulated: {}, lab: loadLab, sockets: [] });
  t.after(() => bridge.stop());
  await until(() => bridge.lines[0]?.state === "idle", "the line to be clean");
  const answer = await ask(port, "POST", "/check_connection", "");
  assert.equal(JSON.parse(answer.text).status, "success");
});
