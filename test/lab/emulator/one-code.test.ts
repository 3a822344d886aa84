import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { silenceMs } from "../../../src/config/limits.ts";
import { contracts, routeOf } from "../../../src/contract/contracts.ts";
import { schemas, validateRequest } from "../../../src/contract/schema.ts";
import { type ContractName, contractNames } from "../../../src/core/call.ts";
import { Fault } from "../../../src/core/fault.ts";
import { isObject } from "../../../src/core/json-object.ts";
import { Presence } from "../../../src/core/presence.ts";
import { faultBody } from "../../../src/envelope/fault.ts";
import { readHttpBody } from "../../../src/envelope/request.ts";
import { signOf } from "../../../src/envelope/sign.ts";
import { gatewayLine } from "../../../src/gateway/gateway-line.ts";
import type { CameOver, Emulator } from "../../../src/lab/emulator/emulator.ts";
import { shapeOf, walk } from "../../contract/shape.ts";
import { ask, closeAll, serve } from "../../http/served.ts";
import { configOf } from "../../line/lines.ts";
import { FakeDevice, frame } from "../../support/fake-device.ts";
import { serviceConfigOf } from "../../support/service-config.ts";
import { until } from "../../support/until.ts";
import type { Json, Row } from "./conformance-rows.ts";
import { bodyOf, merchantId, newEmulator, overHttpTransport, rows } from "./conforming.ts";

/**
 * Tests src/lab/emulator/emulator.ts, src/envelope/request.ts, src/contract/schema.ts, src/line/listener.ts.
 *
 * A till that sends something wrong is told so by the same code, whoever notices: the bridge with `check: "contract"`, the emulator,
 * and the gateway, which notices what is wrong with a frame's form and leaves the rest to its upstream.
 */

// --- one mistake after the other, over HTTP and on a line

const form = (json: string | Buffer, sign = (data: string) => signOf(data, merchantId)) => {
  const data = Buffer.from(json).toString("base64");
  return `data=${data}&sign=${sign(data)}`;
};

const sale = { documentExtID: "S-1", items: [{ itemAmount: 1000 }] };
const pay = { pay_id: "P-1", amount: 1000, currency_name: "EUR" };
const shown = { pay_id: "P-1", amount: 1000, currency: "978", currency_name: "EUR", pay_system: "QRPAY" };
const json = (value: Json) => JSON.stringify(value);
const fiscal = (route: string, code: number, value: Json) => ["fiscal", route, code, form(json(value))] as const;

/** One mistake in each request, with the code that it is answered with. */
const mistakes: readonly (readonly [service: ContractName, route: string, code: number, body: string])[] = [
  // The form, and what is in it
  ["fiscal", "/sale", 3, ""],
  ["fiscal", "/sale", 3, "data=e30="],
  ["fiscal", "/sale", 3, "sign=eA=="],
  ["fiscal", "/sale", 3, `data=&sign=${signOf("", merchantId)}`],
  ["fiscal", "/sale", 3, form(json(sale), () => "")],
  ["fiscal", "/sale", 2, `data=e30=&${form(json(sale))}`],
  ["fiscal", "/sale", 2, `${form(json(sale))}&sign=eA==`],
  ["fiscal", "/sale", 1, form(json(sale), () => "eA==")],
  ["fiscal", "/sale", 1, form(json(sale), () => "?")],
  ["fiscal", "/sale", 2, `data=e30-&sign=${signOf("e30-", merchantId)}`],
  ["fiscal", "/sale", 2, form("{")],
  ["fiscal", "/sale", 2, form("[]")],
  ["fiscal", "/sale", 2, form("\ufeff{}")],
  ["fiscal", "/sale", 2, form('{"documentExtID":"A","documentExtID":"B","items":[{}]}')],
  ["fiscal", "/nowhere", 5, form(json(sale))],
  ["bank", "/sale", -29, ""],
  ["bank", "/sale", -29, "[]"],
  ["bank", "/sale", -29, "{"],
  ["bank", "/sale", -29, "\ufeff{}"],
  ["bank", "/sale", -29, '{"pay_id":"A","pay_id":"B","amount":1,"currency_name":"EUR"}'],
  ["bank", "/nowhere", -80, json(pay)],
  ["qr", "/showqrcode", 1, ""],
  ["qr", "/showqrcode", 1, "null"],
  ["qr", "/nowhere", 1, json(shown)],
  // What is missing or empty
  fiscal("/sale", 3, { documentExtID: "S-1" }),
  fiscal("/sale", 3, { ...sale, items: [] }),
  fiscal("/sale", 3, { ...sale, items: null }),
  fiscal("/refund", 3, { ...sale, items: "" }),
  fiscal("/check_status", 3, {}),
  fiscal("/check_status", 3, { documentID: null, documentExtID: "" }),
  fiscal("/check_copy", 3, {}),
  fiscal("/check_copy", 3, { documentID: "" }),
  fiscal("/abort", 3, {}),
  fiscal("/abort", 3, { documentExtID: "" }),
  fiscal("/deposit", 3, { documentExtID: "D-1" }),
  fiscal("/withdraw", 3, { amount: null }),
  ["bank", "/sale", -29, json({ ...pay, amount: null })],
  ["bank", "/sale", -29, json({ ...pay, currency_name: "" })],
  ["bank", "/check", -29, "{}"],
  ["qr", "/showqrcode", 1, json({ ...shown, pay_system: "" })],
  ["qr", "/cancel", 1, json({ pay_id: "P-1" })],
  // Dates
  fiscal("/sale", 14, { ...sale, docTime: "yesterday" }),
  fiscal("/refund", 14, { ...sale, docTime: "2026-11-20T12:00:00" }),
  fiscal("/abort", 14, { documentExtID: "S-1", docTime: "20.11.2026" }),
  fiscal("/dates_report", 14, { dateFrom: "01.01.2026" }),
  fiscal("/dates_report", 14, { dateFor: "2026-1-1" }),
  fiscal("/sale", 14, { ...sale, docTime: 20_261_120 }),
  fiscal("/dates_report", 14, { dateFrom: {} }),
  // Amounts
  fiscal("/deposit", 4, { documentExtID: "D-1", amount: 0 }),
  fiscal("/withdraw", 4, { documentExtID: "D-1", amount: -5 }),
  fiscal("/deposit", 2, { documentExtID: "D-1", amount: 1.5 }),
  fiscal("/sale", 2, { ...sale, items: [{ itemAmount: "15.00" }] }),
  fiscal("/abort", 2, { documentExtID: "S-1", amount: 0.5 }),
  ["bank", "/sale", -29, json({ ...pay, amount: 460.00000000005 })],
  ["bank", "/sale", -29, json({ ...pay, tips: 1, cashback: 1 })],
  ["qr", "/showqrcode", 1, json({ ...shown, amount: "15.00" })],
  // Other types
  fiscal("/sale", 2, { ...sale, documentExtID: {} }),
  fiscal("/sale", 2, { ...sale, payments: [] }),
  fiscal("/x_report", 2, { skipReceipt: "true" }),
  ["bank", "/sale", -29, json({ ...pay, headless: "true" })],
  ["bank", "/xreport", -29, json({ txn_config: [] })],
];

let emulated: Awaited<ReturnType<typeof overHttpTransport>>;
before(async () => {
  emulated = await overHttpTransport();
});
after(async () => {
  await emulated.stop();
  await closeAll();
});

const codeIn = (text: string): unknown => JSON.parse(text).code;

/** What the emulator on a line, or a gateway before the emulator over HTTP, answers to one frame. */
async function overGateway(service: ContractName, route: string, body: string): Promise<string> {
  const device = new FakeDevice();
  const served = contractNames.map((name) => ({
    service: name,
    config: serviceConfigOf({ contract: name, upstream: `http://127.0.0.1:${emulated.ports.get(name)}` }),
  }));
  const place = { open: () => device.open, isCurrent: true, owing: [] };
  const told = { discard: () => {}, unaddressed: () => {}, state: () => {}, settingsChanged: () => {}, exchange: () => {} };
  const line = gatewayLine({ name: "till", config: configOf(), served }, place, told);
  line.start();
  try {
    await until(() => device.isOpen, "the device is open");
    await new Promise((resolve) => setTimeout(resolve, silenceMs + 20));
    const { framing, linePrefix } = contracts[service];
    const bodied = body === "" ? route : `${route}\n${body}`;
    device.send(frame(framing, framing === "stx" ? `command=${route}&${body}` : `${linePrefix}${bodied}`));
    await until(() => device.written.length > 0, "an answer came");
    const answer = Buffer.concat(device.written).toString();
    return answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1);
  } finally {
    await line.stop("the test is over", 0);
  }
}

for (const [service, route, code, body] of mistakes) {
  const what = service === "fiscal" ? decodeForm(body) : body;
  test(`${service} ${route} ${what} is ${code}, whoever notices: bridge, emulator and gateway`, async () => {
    const config = { check: "contract", merchantId } as const;
    const bridge = await serve(service, { config, validate: validateRequest });
    assert.equal(codeIn((await ask(bridge.port, "POST", route, body)).text), code, "bridge");
    assert.deepEqual(bridge.calls, []);
    const { text } = await ask(emulated.ports.get(service) ?? 0, "POST", route, body);
    assert.equal(codeIn(text), code, `emulator: ${text}`);
    const overLine = await overGateway(service, route, body);
    assert.equal(codeIn(overLine), code, `gateway: ${overLine}`);
  });
}

/** A form with its data readable, for a test's name. */
function decodeForm(text: string): string {
  return text.replaceAll(/data=([^&]*)/g, (_, data: string) => `data=${Buffer.from(data, "base64").toString()}`);
}

// --- every field of every request, with whatever may be wrong with it

/** What a field may wrongly be. */
const wrongs: readonly unknown[] = [undefined, null, "", "x", "15.00", 0, -1, 1.5, 2 ** 31, 2 ** 62, true, {}, [], [[]], ["x"]];

/** The body with another value at a path such as `.items[].itemQty`: in the first entry of each list, which is there then. */
function withValue(body: unknown, path: string, value: unknown): unknown {
  const [, name = "", rest = ""] = /^(\[\]|\.\w+)(.*)$/.exec(path) ?? [];
  if (name === "") return value;
  if (name === "[]") {
    const [first, ...others] = Array.isArray(body) ? body : [];
    return [withValue(first ?? {}, rest, value), ...others];
  }
  const key = name.slice(1);
  const fields = isObject(body) ? body : {};
  return { ...fields, [key]: withValue(fields[key], rest, value) };
}

/** The code of the bridge's refusal; undefined where it takes the request. */
function bridgeCode({ service, route: path }: Row, body: string): number | undefined {
  const contract = contracts[service];
  const route = routeOf(contract, path);
  assert.ok(route);
  try {
    readHttpBody(contract, route, [Buffer.from(body)], { check: "contract", merchantId, validate: validateRequest });
    return undefined;
  } catch (error) {
    assert.ok(error instanceof Fault);
    // To /check of qr the bridge never says an error, which would end a payment
    const { word, code } = faultBody(contract, path, error);
    return word === "none" ? 1 : code;
  }
}

/** Codes of a request whose fields are right to the emulator: an integer may be an id, and is no currency, payment or document. */
const understood: Readonly<Record<ContractName, readonly number[]>> = { fiscal: [5, 7, 9], bank: [-15, -16, -47], qr: [] };

/** What the emulator answers to a row's request in its place; undefined where it takes it. */
function emulatorCode(emulator: Emulator, row: Row, body: string, over: CameOver): number | undefined {
  const tell = (route: string, text: string) => {
    const call = {
      service: row.service,
      contract: row.service,
      route,
      body: text === "" ? [] : [Buffer.from(text)],
      requestId: "r",
      key: undefined,
      caller: new Presence(),
    };
    return emulator.answer(call, over).reply;
  };
  emulator.reset();
  for (const each of row.before ?? []) tell(each.route, bodyOf(row.service, each));
  const { status, code } = tell(row.route, body);
  return status === "error" && code !== undefined && !understood[row.service].includes(code) ? code : undefined;
}

test("each field of each request, wrong in each way, has one code where both bridge and emulator notice", () => {
  const emulator = newEmulator();
  const good = rows.filter(({ case: ending, outcome }) => ending === "success" && outcome === undefined);
  const noticed = new Map<ContractName, number>();
  const different: string[] = [];
  for (const row of good) {
    const { service, route, body } = row;
    const request = schemas[service][route]?.request;
    if (request === undefined || body === undefined) continue;
    assert.equal(bridgeCode(row, bodyOf(service, row)), undefined, `${service} ${route}`);
    for (const [path] of walk(shapeOf(request))) {
      for (const wrong of wrongs) {
        const changed = withValue(body, path, wrong);
        assert.ok(isObject(changed));
        const text = bodyOf(service, { route, body: changed });
        const bridge = bridgeCode(row, text);
        if (bridge === undefined) continue;
        for (const over of ["http", "line"] as const) {
          const code = emulatorCode(emulator, row, text, over);
          if (code === undefined) continue;
          noticed.set(service, (noticed.get(service) ?? 0) + 1);
          if (code !== bridge) different.push(`${service} ${route} ${path} = ${JSON.stringify(wrong)}: ${bridge} and ${code}`);
        }
      }
    }
  }
  assert.deepEqual([...new Set(different)], []);
  for (const service of contractNames) assert.ok((noticed.get(service) ?? 0) > 300, `${service}: ${noticed.get(service)}`);
});
