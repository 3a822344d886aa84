import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Upstream } from "../http/upstream.ts";
import { type BridgeProcess, scratchFolder, startedBridge } from "../support/bridge-process.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { nullModem } from "../support/till.ts";

/**
 * Tests src/core/traceparent.ts.
 *
 * * Ids along the longest way of a call: till → HTTP → bridge → tty → gateway → HTTP → service. No id crosses the tty; on each side of it
 * they lead from the log to the journal and to the other end's HTTP.
 */

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;

const scratch = scratchFolder();
const state = join(scratch.path, "state");
const [near, far] = [join(scratch.path, "near"), join(scratch.path, "far")];
const ends: (() => unknown)[] = [() => scratch.remove()];
let upstream: Upstream;
let gateway: PoslineProcess;
let bridge: BridgeProcess;

before(async () => {
  mkdirSync(state);
  const cable = nullModem(near, far);
  ends.push(() => cable.unplug());
  const probeAnswer = '{"status":"success","data":{"operations":["sale"]}}';
  upstream = await Upstream.start(({ path }, response) =>
    response.end(path === "/supported_operations" ? probeAnswer : '{"status":"success"}'),
  );
  ends.push(() => upstream.stop());
  gateway = new PoslineProcess(["gateway", "--line", far, "--upstream-bank", upstream.url]);
  ends.push(() => gateway.ended("SIGTERM"));
  await gateway.logged((line) => line["state"] === "open", "the gateway's line to open");
  bridge = await startedBridge(
    { lines: { till: { path: near } }, services: { bank: { line: "till" } } },
    { env: { STATE_DIRECTORY: state } },
  );
  ends.push(() => bridge.stop());
});

after(async () => {
  for (const end of ends.reverse()) await end();
});

async function journalIds(key: string): Promise<readonly unknown[]> {
  const journal = new PoslineProcess(["journal", "--folder", state, "--key", key, "--json"]);
  await journal.ended();
  return journal.log.map((row) => row["requestId"]);
}

type Wish = { readonly key: string; readonly headers: Record<string, string>; readonly requestId: string };

for (const { key, headers, requestId } of [
  { key: "T-1", headers: { traceparent }, requestId: traceId },
  { key: "T-2", headers: { traceparent, "X-Request-Id": "till-7.42" }, requestId: "till-7.42" },
] satisfies readonly Wish[]) {
  test(`a sale with ${Object.keys(headers).join(" and ")} is found by it in the answer, the log and the journal`, async () => {
    const heardBefore = upstream.heard.length;
    const sale = JSON.stringify({ pay_id: key, amount: 1500, currency_name: "EUR" });
    const answer = await bridge.post("bank", "/sale", sale, headers);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers["x-request-id"], requestId);
    const line = await bridge.logged((each) => each["key"] === key, "the sale's line");
    assert.deepEqual([line["requestId"], line["traceId"]], [requestId, traceId]);
    assert.deepEqual(await journalIds(key), [requestId]);

    // Nothing of it is in the frame: the gateway begins a trace of its own.
    const heard = upstream.heard.slice(heardBefore).find(({ path }) => path === "/sale");
    assert.equal(heard?.body, sale);
    const passedOn = await gateway.logged((each) => each["key"] === key, "the gateway's line");
    assert.equal(heard.headers["x-request-id"], passedOn["requestId"]);
    assert.match(String(passedOn["traceId"]), /^[0-9a-f]{32}$/);
    assert.notEqual(passedOn["traceId"], traceId);
    assert.match(String(heard.headers["traceparent"]), new RegExp(`^00-${passedOn["traceId"]}-[0-9a-f]{16}-01$`));
  });
}

test("a sale without ids gets a request id, and no trace", async () => {
  const answer = await bridge.post("bank", "/sale", '{"pay_id":"T-3","amount":1500,"currency_name":"EUR"}');
  const line = await bridge.logged((each) => each["key"] === "T-3", "the sale's line");
  assert.equal(line["requestId"], answer.headers["x-request-id"]);
  assert.equal("traceId" in line, false);
});
