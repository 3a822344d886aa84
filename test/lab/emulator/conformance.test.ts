import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { contracts } from "../../../src/contract/contracts.ts";
import { validateReply } from "../../../src/contract/schema.ts";
import { type ContractName, contractNames, type Handler } from "../../../src/core/call.ts";
import { Presence } from "../../../src/core/presence.ts";
import { memoryTransport } from "../../../src/device/memory-transport.ts";
import { lineEndpoint } from "../../../src/lab/emulator/line-endpoint.ts";
import { lineCaller } from "../../../src/line/caller.ts";
import { LineListener } from "../../../src/line/listener.ts";
import { configOf, lineOver } from "../../line/lines.ts";
import type { Ask, Json, Row } from "./conformance-rows.ts";
import { bodyOf, merchantId, newEmulator, overHttpTransport, rows, type Transport } from "./conforming.ts";

/**
 * Tests src/lab/emulator/emulator.ts.
 *
 * * Each route of the three contracts, with each code that the contract allows for it and a resend, asked over HTTP and over a
 * line: every answer has the contract's shape, and both transports give the same bytes.
 */

async function overLineTransport(): Promise<Transport> {
  const emulator = newEmulator();
  const config = configOf({});
  const { near, far } = memoryTransport(0);
  const { handler } = lineEndpoint(emulator, config.crc16);
  const listener = new LineListener({
    config,
    open: far,
    services: contractNames.map((service) => ({ contract: contracts[service], handler })),
    report: { discard: ({ reason }) => assert.fail(reason), state: () => {} },
  });
  const { line } = lineOver(near, { services: contractNames, merchantId });
  listener.start();
  line.start();
  const callers = new Map<ContractName, Handler>();
  for (const service of contractNames) {
    callers.set(service, lineCaller({ contract: contracts[service], line, replyTimeoutMs: {}, merchantId }));
  }
  const ask = async (service: ContractName, each: Ask) => {
    const text = bodyOf(service, each);
    const body = text === "" ? [] : [Buffer.from(text)];
    const call = {
      service,
      contract: service,
      route: each.route,
      body,
      requestId: "r",
      key: undefined,
      caller: new Presence(),
    };
    const reply = await callers.get(service)?.(call);
    return Buffer.concat(reply?.payload ?? []).toString();
  };
  const close = async () => {
    await line.stop(0);
    await listener.stop();
  };
  return { emulator, ask, stop: close };
}

let transports: Readonly<Record<"HTTP" | "line", Transport>>;
before(async () => {
  transports = { HTTP: await overHttpTransport(), line: await overLineTransport() };
});
after(async () => {
  for (const { stop } of Object.values(transports)) await stop();
});

/** The value at a path, `data.rrn`. */
function at(json: Json, path: string): unknown {
  let value: unknown = json;
  for (const key of path.split(".")) value = (value as Json | undefined)?.[key];
  return value;
}

async function answerTo({ emulator, ask }: Transport, row: Row): Promise<string> {
  emulator.reset();
  for (const each of row.before ?? []) await ask(row.service, each);
  const { service, route, outcome } = row;
  if (outcome !== undefined) emulator.plan.force({ service, route, effect: { outcome } });
  return ask(service, row);
}

function check(row: Row, text: string): void {
  const json: Json = JSON.parse(text);
  const expected = typeof row.case === "number" ? { status: "error", code: row.case } : { status: "success" };
  assert.deepEqual({ status: json["status"], ...(typeof row.case === "number" && { code: json["code"] }) }, expected, text);
  assert.equal(validateReply(row.service, row.route, json)?.message, undefined, text);
  // Recovery relies on it: only the probe's answer looks like one.
  const { probe } = contracts[row.service];
  assert.equal(probe.isAnswer(json), row.route === probe.route && row.case === "success", text);
  for (const path of row.has ?? []) assert.notEqual(at(json, path), undefined, `${path} in ${text}`);
}

for (const row of rows) {
  const name = `${row.service} ${row.route} ${row.case}${row.why === undefined ? "" : `, ${row.why}`}`;
  test(`${name}: over HTTP and over a line, the same bytes`, async () => {
    const text = await answerTo(transports.HTTP, row);
    check(row, text);
    assert.equal(await answerTo(transports.line, row), text);
  });
}

test("every route of every contract has its rows, and every code of every contract is answered by some route", () => {
  for (const service of contractNames) {
    const own = rows.filter((row) => row.service === service);
    for (const { path } of contracts[service].routes) {
      assert.ok(
        own.some((row) => row.route === path && row.case === "success"),
        `${service} ${path}`,
      );
    }
    const answered = new Set(own.map((row) => row.case));
    const missing = contracts[service].codes.map(({ code }) => code).filter((code) => code !== 0 && !answered.has(code));
    assert.deepEqual(missing, [], service);
  }
});
