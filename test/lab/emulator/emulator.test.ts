import assert from "node:assert/strict";
import { test } from "node:test";
import { contracts } from "../../../src/contract/contracts.ts";
import { validateReply } from "../../../src/contract/schema.ts";
import type { Call, ContractName } from "../../../src/core/call.ts";
import { Presence } from "../../../src/core/presence.ts";
import { signOf } from "../../../src/envelope/sign.ts";
import { Emulator, type EmulatorOptions } from "../../../src/lab/emulator/emulator.ts";
import { httpEndpoint } from "../../../src/lab/emulator/http-endpoint.ts";
import { lineEndpoint } from "../../../src/lab/emulator/line-endpoint.ts";

/** What the emulator does before a service is asked: routes, bodies and signs; and what it keeps of all three together. */

const merchantId = "MERCHANT-1";

function requestOf(service: ContractName, route: string, body: string | undefined): Call {
  const pieces = body === undefined ? [] : [Buffer.from(body)];
  return { service, contract: service, route, body: pieces, requestId: "r1", key: undefined, caller: new Presence() };
}

function ask(emulator: Emulator, service: ContractName, route: string, body: string | undefined = undefined) {
  const { reply } = emulator.answer(requestOf(service, route, body));
  const json: Record<string, unknown> = JSON.parse(Buffer.concat(reply.payload).toString());
  assert.equal(reply.status, json["status"]);
  assert.equal(reply.code, json["code"]);
  return json;
}

const form = (json: unknown, sign?: string) => {
  const data = typeof json === "string" ? json : Buffer.from(JSON.stringify(json)).toString("base64");
  return `data=${data}&sign=${sign ?? signOf(data, merchantId)}`;
};

for (const { service, routes, faultCodes } of Object.values(contracts)) {
  test(`Emulator answers a route that ${service} doesn't have with the service's own error`, () => {
    const { status, code } = ask(new Emulator(), service, "/__proto__", "{}");
    assert.deepEqual([status, code], ["error", faultCodes.route]);
  });

  test(`Emulator of ${service} refuses an empty body with the service's own error wherever one is required`, () => {
    for (const { path } of routes.filter(({ body }) => body === "required")) {
      const json = ask(new Emulator(), service, path);
      assert.deepEqual([json["status"], json["code"]], ["error", { fiscal: 3, bank: -29, qr: 1 }[service]], path);
      assert.equal(validateReply(service, path, json), undefined);
    }
  });
}

test("Emulator says of a body that has a field twice, with two values, what may be wrong", () => {
  const twice = '{"pay_id":"A","amount":1500,"amount":1600}';
  const say = /: (?:the body|data) is not (?:the Base64 of )?a JSON object, or the object has a field twice: send one object/;
  for (const [service, body] of [
    ["bank", twice],
    ["fiscal", form(Buffer.from(twice).toString("base64"))],
  ] as const) {
    const { status, message } = ask(new Emulator({ merchantId }), service, "/sale", body);
    assert.equal(status, "error");
    assert.match(String(message), say);
  }
});

test("Emulator without merchantId takes any sign, but not none", () => {
  assert.equal(ask(new Emulator(), "fiscal", "/get_info", form({}, "AAAA"))["code"], 0);
  assert.equal(ask(new Emulator(), "fiscal", "/get_info", "data=e30=")["code"], 3);
});

test("Emulator answers fiscal's unsigned /supported_operations over HTTP alone: on a line data and sign are required", async () => {
  const call = requestOf("fiscal", "/supported_operations", undefined);
  const emulator = new Emulator();
  assert.equal((await httpEndpoint(emulator).handler(call)).status, "success");
  const { handler } = lineEndpoint(emulator, "arc");
  assert.equal((await handler(call)).code, 3);
  assert.equal((await handler(requestOf("fiscal", "/supported_operations", form({})))).status, "success");
});

test("Emulator reads a sign and data that are escaped, and those that aren't", () => {
  const emulator = new Emulator({ merchantId });
  const raw = form({ note: "???>>>" });
  assert.equal(ask(emulator, "fiscal", "/get_info", raw)["code"], 0);
  assert.equal(ask(emulator, "fiscal", "/get_info", raw.replaceAll(/[+/](?!.*&)/g, encodeURIComponent))["code"], 0);
});

test("Emulator tells of a change once for each request that made one, and not for a question", () => {
  let changes = 0;
  const options: EmulatorOptions = { changed: () => changes++ };
  const emulator = new Emulator(options);
  ask(emulator, "bank", "/terminals");
  assert.equal(changes, 0);
  ask(emulator, "bank", "/sale", '{"pay_id":"A","amount":100,"currency_name":"EUR"}');
  assert.equal(changes, 1);
  ask(emulator, "bank", "/sale", '{"pay_id":"A","amount":100,"currency_name":"EUR"}');
  assert.equal(changes, 1, "a resend changes nothing");
});

test("Emulator keeps an amount of 64 bits to the last digit", () => {
  const emulator = new Emulator();
  const amount = "9007199254740993";
  ask(emulator, "fiscal", "/deposit", form(`{}`).replace(/data=[^&]*/, `data=${btoa(`{"amount":${amount}}`)}`));
  const { reply } = emulator.answer({
    service: "fiscal",
    contract: "fiscal",
    route: "/check_shift",
    body: [Buffer.from(form({}))],
    requestId: "r2",
    key: undefined,
    caller: new Presence(),
  });
  assert.match(Buffer.concat(reply.payload).toString(), new RegExp(`"cash":${amount}`));
});

test("Emulator gives the same bytes for the same requests, seed and clock, and forgets all at a reset", () => {
  const run = (emulator: Emulator) => [
    ask(emulator, "bank", "/sale", '{"pay_id":"A","amount":100,"currency_name":"EUR"}'),
    ask(emulator, "bank", "/check", '{"pay_id":"A"}'),
    ask(emulator, "bank", "/check", '{"pay_id":"A"}'),
  ];
  const emulator = new Emulator({ clock: () => new Date(2026, 0, 1) });
  const first = run(emulator);
  emulator.reset();
  assert.deepEqual(run(emulator), first);
});

test("Emulator plays two services of one contract as two terminals: neither knows what the other sold", () => {
  const emulator = new Emulator({ merchantId });
  emulator.play("bank-2", { contract: "bank" });
  emulator.play("fiscal-2", { contract: "fiscal", merchantId: "MERCHANT-2" });
  const at = (service: string, contract: ContractName, route: string, body: string) => {
    const call = {
      service,
      contract,
      route,
      body: [Buffer.from(body)],
      requestId: "r1",
      key: undefined,
      caller: new Presence(),
    };
    return JSON.parse(Buffer.concat(emulator.answer(call).reply.payload).toString());
  };
  at("bank-2", "bank", "/sale", '{"pay_id":"A","amount":100,"currency_name":"EUR"}');
  at("bank-2", "bank", "/check", '{"pay_id":"A"}');
  assert.equal(at("bank-2", "bank", "/check", '{"pay_id":"A"}').data.status, "APPROVED");
  assert.equal(at("bank", "bank", "/check", '{"pay_id":"A"}').code, -15, "transaction not found");
  // Played once more, as after a reload, it still knows.
  emulator.play("bank-2", { contract: "bank" });
  assert.equal(at("bank-2", "bank", "/check", '{"pay_id":"A"}').data.status, "APPROVED");
  // Each signs with its own merchant's id.
  assert.equal(at("fiscal-2", "fiscal", "/get_info", form({}, signOf(btoa("{}"), "MERCHANT-2"))).code, 0);
  assert.equal(at("fiscal-2", "fiscal", "/get_info", form({})).code, 1);
});
