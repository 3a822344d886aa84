import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Events } from "../../src/admin/events.ts";
import { Status } from "../../src/admin/status.ts";
import { RunningBridge } from "../../src/bridge/bridge.ts";
import { Ways } from "../../src/bridge/ways.ts";
import { loadLab } from "../../src/cli/lab.ts";
import type { Contract } from "../../src/contract/contract.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { posts } from "../../src/contract/post.ts";
import { qr } from "../../src/contract/qr.ts";
import { settlingRules } from "../../src/contract/settling.ts";
import type { ContractName } from "../../src/core/call.ts";
import { openLog } from "../../src/core/log.ts";
import { Operations } from "../../src/operations/operations.ts";
import { memoryBench, type Script } from "../line/benches.ts";
import { configOf } from "../line/lines.ts";
import { ask as askOver } from "../support/bridge-process.ts";
import { serviceConfigOf } from "../support/service-config.ts";
import type { Asked } from "../support/terminal.ts";
import { until } from "../support/until.ts";

/**
 * Tests src/contract/contracts.ts. A weighing scale, of which no room of posline has heard, is relayed by the whole bridge, from its HTTP
 * port to its device, once its rows are in the tables that the bridge reads.
 */

/** The union is closed, so that the compiler lists each table that a new contract must fill; the bridge asks the tables alone. */
const service = "scale" as string as ContractName;

const post = posts({ replyTimeoutMs: 400, key: undefined });

const scale: Contract = {
  ...{ service, port: 8890, linePrefix: ":8890", framing: "length", envelope: "text", replyContentType: "application/json" },
  routes: [post("/weight", "none")],
  ...{ decisive: ["pan"], codes: [{ code: 1, name: "NO_PAN", meaning: "there is no such pan" }] },
  ...{ faultCodes: qr.faultCodes, faultsInOk: [], inProgress: { status: "error", code: undefined } },
  // Without a body the first pan is weighed.
  probe: { route: "/weight", isAnswer: (reply) => typeof reply["weight_g"] === "number" },
  secondProbe: { route: "/weight", body: '{"pan":0}', alikeRoutes: [], isAnswer: () => false },
  finals: { field: [], values: [], pendingCodes: [], errorIsFinal: true, absentCodes: [] },
};

Object.assign(contracts, { scale });
Object.assign(settlingRules, { scale: [] });

const weights = new Map(Object.entries({ "": 1, '\n{"pan":1}': 1234, '\n{"pan":2}': 2345 }));
const gramsOf = (text: string) => weights.get(text.replace(/^:8890\/weight/, ""));
const answerTo = (text: string) => (gramsOf(text) === undefined ? '{"code":1}' : `{"code":0,"weight_g":${gramsOf(text)}}`);
const weigh: Script = ({ framing, text }, wire) => wire.reply(framing, answerTo(text));

const bench = memoryBench();
bench.script = weigh;
const operations = new Operations();
const status = new Status("0.0.0");
const bridge = new RunningBridge({
  ...{ log: openLog("silent"), status, operations, sockets: [], control: {}, isWatched: true, lab: loadLab },
  events: new Events({ version: "0.0.0", notReady: () => status.notReady(), error: assert.ifError }),
  transportOf: () => ({ open: bench.open }),
  ways: new Ways({ operations, folder: undefined, resolve: "observe", error: assert.ifError }),
});
const services = { scale: serviceConfigOf({ contract: service }) };
await bridge.reload({ lines: { till: configOf() }, services, journal: false, log: { level: "silent" } });
after(async () => {
  await bridge.stop();
  await bench.dispose();
});

const ask = (pan: number) => askOver(bridge.listening[0]?.port ?? 0, "POST", "/weight", JSON.stringify({ pan }));
const isClean = () => until(() => bridge.lines[0]?.state === "idle", "the line to be clean");
const isCall = ({ text }: Asked) => /"pan":[12]/.test(text);
const callsHeard = () => bench.wire.asked.filter(isCall).length;

/** The scale does otherwise with the next call; posline's own questions are answered as ever. */
function once(script: Script): void {
  bench.script = (asked, wire) => {
    if (!isCall(asked)) return weigh(asked, wire);
    bench.script = weigh;
    return script(asked, wire);
  };
}

test("a bridge relays a contract that is nothing but a row of the tables", async () => {
  await isClean();
  const { status: httpStatus, headers, text } = await ask(1);
  assert.deepEqual([httpStatus, headers["x-posline-outcome"], text], [200, "answered", '{"code":0,"weight_g":1234}']);
});

test("a lost weight is a question without an answer: it may be asked again, and no money is in doubt", async () => {
  await isClean();
  once(() => {});
  const lost = await ask(1);
  assert.deepEqual([lost.status, lost.headers["x-posline-reason"]], [504, "no-reply"]);
  assert.match(lost.text, /did not answer within 400 ms\. Nothing was changed: send the request again"/);
  assert.equal(operations.unknownTotal, 0);
  assert.equal((await ask(1)).text, '{"code":0,"weight_g":1234}');
});

test("a corrupt weight is asked for once more by posline itself", async () => {
  await isClean();
  const before = callsHeard();
  once(({ framing }, wire) => wire.send(wire.frame(framing, answerTo("")).fill("?", 8)));
  assert.equal((await ask(2)).text, '{"code":0,"weight_g":2345}');
  assert.equal(callsHeard() - before, 2);
});

test("two weights asked for at once are asked for one after the other", async () => {
  await isClean();
  const before = callsHeard();
  let heardMeanwhile = 0;
  once(async (asked, wire) => {
    await until(() => bridge.lines[0]?.waiting === 1, "the other call to wait");
    heardMeanwhile = callsHeard() - before;
    await weigh(asked, wire);
  });
  const texts = (await Promise.all([ask(1), ask(2)])).map(({ text }) => text);
  assert.deepEqual(texts, ['{"code":0,"weight_g":1234}', '{"code":0,"weight_g":2345}']);
  assert.equal(heardMeanwhile, 1);
});
