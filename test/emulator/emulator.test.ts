import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import { validateReply, validateRequest } from "../../src/contract/schema.ts";
import { type Call, type Handler, present, type ServiceName } from "../../src/core/call.ts";
import { createEmulator } from "../../src/emulator/emulator.ts";
import { signOf } from "../../src/envelope/sign.ts";
import { packagesLoadedBy } from "../contract/imports.ts";

const merchantId = "MERCHANT-1";
const clock = () => new Date(2024, 4, 6, 7, 8, 9);
const emulator = () => createEmulator({ merchantId, clock });

function callOf(service: ServiceName, route: string, body: readonly Buffer[]): Call {
  return { service, route, body, requestId: "r1", key: undefined, caller: present() };
}

function bodyOf(service: ServiceName, json: unknown): readonly Buffer[] {
  if (json === undefined) {
    return [];
  }
  if (service !== "fiscal") {
    return [Buffer.from(JSON.stringify(json))];
  }
  const data = Buffer.from(JSON.stringify(json)).toString("base64");
  const sign = signOf(data, merchantId);
  return [Buffer.from(`data=${data.replaceAll("=", "%3D")}`), Buffer.from(`&sign=${sign.replaceAll("=", "%3D")}`)];
}

async function ask(handler: Handler, service: ServiceName, route: string, json?: unknown) {
  return answer(handler, callOf(service, route, bodyOf(service, json)));
}

async function answer(handler: Handler, call: Call) {
  const reply = await handler(call);
  // What the emulator writes is a JSON object
  const json = JSON.parse(Buffer.concat(reply.payload).toString("utf8")) as Record<string, unknown>;
  assert.equal(reply.status, json["status"]);
  assert.equal(reply.code, json["code"]);
  return json;
}

const card = { cashlessAmount: 150 };
const sale = { documentExtID: "ORDER-1", items: [{ itemName: "Bread", itemQty: 1000, itemAmount: 150 }], payments: card };
const operation = { pay_id: "P-1", amount: 1000, currency_name: "AZN", rrn: "77" };
const back = { trans: "EMU1", pay_id: "P-1", rrn: "000000000001", amount: 100, currency: "944", pay_system: "A" };

/** One request to every route, in an order in which each of them succeeds. */
const requests: Readonly<Record<ServiceName, readonly (readonly [string, unknown?])[]>> = {
  fiscal: [
    ["/supported_operations"],
    ["/sale", sale],
    ["/refund", { ...sale, documentExtID: "ORDER-2", parentDocID: "1" }],
    ["/check_status", { documentExtID: "ORDER-1" }],
    ["/check_copy", { documentID: 1 }],
    ["/abort", { documentExtID: "ORDER-1" }],
    ["/deposit", { documentExtID: "CASH-1", amount: 500 }],
    ["/withdraw", { documentExtID: "CASH-2", amount: 200 }],
    ["/check_shift", {}],
    ["/x_report", { skipReceipt: true }],
    ["/dates_report", { dateFrom: "2024-05-01", dateFor: "2024-05-06" }],
    ["/close_shift", {}],
    ["/open_shift", {}],
    ["/get_info", {}],
  ],
  bank: [
    ["/supported_operations"],
    ["/terminals"],
    ["/sale", operation],
    ["/preauth", { ...operation, pay_id: "P-2" }],
    ["/confirm", { ...operation, pay_id: "P-3" }],
    ["/cancel", operation],
    ["/refund", { ...operation, pay_id: "P-4" }],
    ["/xreport", { pay_id: "P-5" }],
    ["/close-shift", {}],
    ["/check", { pay_id: "P-1" }],
    ["/abort", { pay_id: "P-1", no_print_data: true }],
    ["/terminate"],
  ],
  qr: [
    ["/check_connection"],
    ["/showqrcode", { pay_id: "P-1", amount: 100, currency: "944", currency_name: "AZN", pay_system: "A" }],
    ["/check", { pay_id: "P-1", trans: "EMU1", pay_system: "A" }],
    ["/cancel", back],
    ["/refund", back],
    ["/final_confirm", { pay_system: "A" }],
  ],
};

for (const contract of Object.values(contracts)) {
  const { service } = contract;

  test(`emulator answers every route of ${service} with success, in the shape of its contract`, async () => {
    const handler = emulator();
    assert.deepEqual(requests[service].map(([route]) => route).sort(), contract.routes.map((route) => route.path).sort());
    for (const [route, json] of requests[service]) {
      assert.equal(validateRequest(service, route, json), undefined);
      const reply = await ask(handler, service, route, json);
      assert.equal(reply["status"], "success", `${route}: ${reply["message"]}`);
      assert.equal(validateReply(service, route, reply), undefined);
    }
  });

  test(`emulator answers the barrier of ${service}, and nothing else of it looks like that`, async () => {
    const handler = emulator();
    for (const [route, json] of requests[service]) {
      const reply = await ask(handler, service, route, json);
      assert.equal(contract.barrier.isAnswer(reply), route === contract.barrier.route, route);
    }
  });

  test(`emulator answers a route that ${service} doesn't have with the service's own error`, async () => {
    const reply = await ask(emulator(), service, "/__proto__", {});
    assert.deepEqual([reply["status"], reply["code"]], ["error", contract.faultCodes.route]);
  });

  test(`emulator of ${service} refuses an empty body with the service's own error wherever one is required`, async () => {
    const handler = emulator();
    for (const route of contract.routes.filter(({ body }) => body === "required")) {
      const reply = await ask(handler, service, route.path);
      assert.equal(reply["status"], "error", route.path);
      assert.equal(reply["code"], { fiscal: 3, bank: -29, qr: 1 }[service], route.path);
      assert.equal(validateReply(service, route.path, reply), undefined);
    }
  });
}

test("emulator loads no schema library", () => {
  const packages = packagesLoadedBy(new URL("../../src/emulator/emulator.ts", import.meta.url));
  assert.deepEqual(
    [...packages].filter((name) => !name.startsWith("node:")),
    [],
  );
});

test("emulated fiscal refuses a wrong sign with 1, bad Base64 with 2, and signs nothing off without merchantId", async () => {
  const form = (data: string, sign: string) => callOf("fiscal", "/get_info", [Buffer.from(`data=${data}&sign=${sign}`)]);
  assert.equal((await answer(emulator(), form("e30=", "AAAA")))["code"], 1);
  assert.equal((await answer(emulator(), form("!!!!", signOf("!!!!", merchantId))))["code"], 2);
  assert.equal((await answer(createEmulator(), form("e30=", "AAAA")))["code"], 0);
  assert.equal((await answer(createEmulator(), callOf("fiscal", "/get_info", [Buffer.from("data=e30=")])))["code"], 3);
});

test("emulated fiscal gives the same documentExtID the same document, and another one another", async () => {
  const handler = emulator();
  const first = await ask(handler, "fiscal", "/sale", sale);
  assert.deepEqual(await ask(handler, "fiscal", "/sale", sale), first);
  assert.deepEqual(await ask(handler, "fiscal", "/check_status", { documentExtID: "ORDER-1" }), first);
  const other = await ask(handler, "fiscal", "/sale", { ...sale, documentExtID: "ORDER-2" });
  assert.notEqual(other["documentID"], first["documentID"]);
  assert.deepEqual([first["docStatus"], first["docTime"], first["documentExtID"]], [1, "2024-05-06 07:08:09", "ORDER-1"]);
  const report = await ask(handler, "fiscal", "/x_report", {});
  assert.deepEqual([report["saleCount"], report["saleSum"], report["saleCashlessSum"]], [2, 300, 300]);
});

test("emulated fiscal finds cash again by type, id and amount, and counts it once", async () => {
  const handler = emulator();
  const cash = { documentExtID: "CASH-1", amount: 500 };
  const first = await ask(handler, "fiscal", "/deposit", cash);
  assert.deepEqual(await ask(handler, "fiscal", "/deposit", cash), first);
  assert.equal((await ask(handler, "fiscal", "/check_shift", {}))["cash"], 500);
  const other = await ask(handler, "fiscal", "/deposit", { ...cash, amount: 600 });
  assert.notEqual(other["documentID"], first["documentID"]);
});

test("emulated fiscal masks the card and answers 9, 14 and 6 where the contract has them", async () => {
  const handler = emulator();
  assert.match(String((await ask(handler, "fiscal", "/sale", sale))["cardNum"]), /^\d{6}\*+\d{4}$/);
  assert.equal((await ask(handler, "fiscal", "/check_status", { documentExtID: "NONE" }))["code"], 9);
  assert.equal((await ask(handler, "fiscal", "/dates_report", { dateFrom: "06.05.2024" }))["code"], 14);
  await ask(handler, "fiscal", "/close_shift", {});
  assert.equal((await ask(handler, "fiscal", "/sale", { ...sale, documentExtID: "LATE" }))["code"], 6);
  assert.equal((await ask(handler, "fiscal", "/check_shift", {}))["isShiftOpen"], "false");
});

test("emulated bank starts without data and approves on /check, one transaction to a pay_id", async () => {
  const handler = emulator();
  assert.deepEqual(await ask(handler, "bank", "/sale", operation), { status: "success" });
  const first = await ask(handler, "bank", "/check", { pay_id: "P-1" });
  // data is an object, as the line above it in the contract's envelope says
  const data = first["data"] as Record<string, unknown>;
  assert.deepEqual([data["status"], data["rrn"], data["auth"]], ["APPROVED", "77", "000001"]);
  assert.match(String(data["card_num"]), /^\d{6}\*+\d{4}$/);
  assert.ok("print_data" in data);
  await ask(handler, "bank", "/sale", operation);
  assert.deepEqual(await ask(handler, "bank", "/check", { pay_id: "P-1" }), first);
  const plain = await ask(handler, "bank", "/check", { pay_id: "P-1", no_print_data: true });
  assert.ok(!JSON.stringify(plain).includes("print_data"));
});

test("emulated bank keeps a pay_id apart by route: a /cancel of a sale is an operation of its own", async () => {
  const handler = emulator();
  const txn = async () => JSON.stringify(await ask(handler, "bank", "/check", { pay_id: "P-1" }));
  await ask(handler, "bank", "/sale", operation);
  const saleResult = await txn();
  await ask(handler, "bank", "/cancel", operation);
  assert.notEqual(await txn(), saleResult);
});

test("emulated bank answers -15 to an unknown pay_id and -29 to an invalid request", async () => {
  const handler = emulator();
  assert.equal((await ask(handler, "bank", "/check", { pay_id: "NONE" }))["code"], -15);
  assert.equal((await ask(handler, "bank", "/sale", { pay_id: "P-1", amount: 1 }))["code"], -29);
  assert.equal((await ask(handler, "bank", "/sale", { ...operation, tips: 1, cashback: 1 }))["code"], -29);
  assert.equal((await ask(handler, "bank", "/check", {}))["code"], -29);
});

test("emulated bank remembers a bounded number of operations and forgets the longest known", async () => {
  const handler = emulator();
  for (let i = 0; i <= 4096; i += 1) {
    await ask(handler, "bank", "/sale", { ...operation, pay_id: `P-${i}` });
  }
  assert.equal((await ask(handler, "bank", "/check", { pay_id: "P-0" }))["code"], -15);
  assert.equal((await ask(handler, "bank", "/check", { pay_id: "P-1" }))["status"], "success");
});

test("emulated qr shows one payment to a pay_id and finds it only by both its ids", async () => {
  const handler = emulator();
  const show = { pay_id: "P-1", amount: 100, currency: "944", currency_name: "AZN", pay_system: "A" };
  assert.deepEqual(await ask(handler, "qr", "/showqrcode", show), { status: "success", data: { trans: "EMU1" } });
  assert.deepEqual(await ask(handler, "qr", "/showqrcode", show), { status: "success", data: { trans: "EMU1" } });
  const check = { pay_id: "P-1", trans: "EMU1", pay_system: "A" };
  assert.deepEqual(await ask(handler, "qr", "/check", check), { status: "success", data: { rrn: "000000000001" } });
  assert.equal((await ask(handler, "qr", "/check", { ...check, trans: "EMU2" }))["code"], 1);
  assert.equal((await ask(handler, "qr", "/check", { ...check, pay_id: "P-2" }))["code"], 1);
});
