import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { ServiceConfig } from "../../src/config/config.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { Handler } from "../../src/core/call.ts";
import { ask, assertFault, Client, closeAll, held, listenerOf, replyOf, type Served, serve, settingsOf } from "./served.ts";

/** Tests src/http/listener.ts, src/http/service-settings.ts. */

afterEach(closeAll);

const sale = '{"pay_id":"A-1","amount":1}';

function replace({ listener, contract, report }: Served, config: Partial<ServiceConfig>, handler: Handler): void {
  listener.replace({ contract, report, ...settingsOf({ config, handler }) });
}

const newer: Handler = async () => replyOf('"newer"');

test("HttpListener.replace() has requests that begin after it taken by the new settings, also on open connections", async () => {
  const served = await serve("bank", {
    config: { allowOrigins: ["https://old.example"] },
    handler: async () => replyOf('"older"'),
  });
  const client = new Client(served.port);
  assert.equal((await client.ask("POST", "/sale", sale, { Origin: "https://old.example" }).answer())?.text, '"older"');
  replace(
    served,
    { allowOrigins: ["https://new.example"], allowHosts: ["till.lan"], bodyBytesMax: 64, apiKey: "K", faultStatus: 200 },
    newer,
  );
  const key = { "X-API-Key": "K" };
  const took = await client.ask("POST", "/sale", sale, { Origin: "https://new.example", Host: "till.lan", ...key }).answer();
  assert.equal(took?.text, '"newer"');
  assert.equal(took?.headers.get("access-control-allow-origin"), "https://new.example");
  for (const [kind, body, headers] of [
    ["origin", sale, { Origin: "https://old.example", ...key }],
    ["key", sale, {}],
    ["size", `{"pay_id":"${"x".repeat(64)}"}`, key],
  ] as const) {
    assertFault(await ask(served.port, "POST", "/sale", body, headers), "bank", kind, 200);
  }
});

test("HttpListener.replace() leaves requests in work to the old handler, and answers them as before", async () => {
  const { handler, nth } = held();
  const served = await serve("bank", { handler, config: { allowOrigins: ["https://old.example"] } });
  const inWork = new Client(served.port).ask("POST", "/sale", sale, { Origin: "https://old.example" });
  const first = await nth(0);
  const coming = new Client(served.port).ask("POST", "/refund", sale.slice(0, 5), { "Content-Length": String(sale.length) });
  // Its headers have been seen once a later request was served.
  await ask(served.port, "POST", "/nowhere");
  replace(served, { faultStatus: 200, check: "none", bodyBytesMax: 8 }, newer);
  assert.equal((await ask(served.port, "POST", "/sale", "[1]")).text, '"newer"');
  coming.write(sale.slice(5));
  const second = await nth(1);
  assert.equal(second.call.route, "/refund");
  second.fail(new Error("a bug"));
  const failed = await coming.answer();
  assertFault(failed, "bank", "broken", 502);
  first.give(replyOf('"older"'));
  const answer = await inWork.answer();
  assert.equal(answer?.text, '"older"');
  assert.equal(answer?.headers.get("access-control-allow-origin"), "https://old.example");
});

test("HttpListener.replace() counts the bodies that are held on, so that reloading makes no room", async () => {
  const { handler, nth } = held();
  const bodyBytesMax = 16_384;
  const served = await serve("bank", { handler, config: { bodyBytesMax } });
  const large = `{"pay_id":"${"x".repeat(bodyBytesMax - 13)}"}`;
  const clients: Client[] = [];
  for (let i = 0; i < 16; i++) {
    clients.push(new Client(served.port).ask("POST", "/sale", large));
    await nth(i);
  }
  replace(served, { bodyBytesMax }, newer);
  assertFault(await ask(served.port, "POST", "/sale", large), "bank", "unavailable");
  (await nth(0)).give(replyOf("{}"));
  assert.equal((await clients[0]?.answer())?.status, 200);
  assert.equal((await ask(served.port, "POST", "/sale", large)).status, 200);
  replace(served, { bodyBytesMax: bodyBytesMax + 1 }, newer);
  assert.equal((await ask(served.port, "POST", "/sale", large)).status, 200);
});

test("HttpListener.listen() goes on with its own address after replace() named another", async () => {
  const { listener, contract, report } = listenerOf("bank");
  const { port } = await listener.listen();
  listener.replace({ contract, report, ...settingsOf({ config: { port: 1 }, handler: newer }) });
  assert.equal((await ask(port, "POST", "/sale", sale)).text, '"newer"');
  await listener.close();
});

test("HttpListener.replace() puts another service on the port: its routes, its envelope, and its name in the log", async () => {
  const served = await serve("bank");
  const services: string[] = [];
  const report = { ...served.report, exchange: ({ service }: { readonly service: string }) => services.push(service) };
  served.listener.replace({ contract: contracts.qr, report, ...settingsOf({ handler: newer }) });
  assert.equal((await ask(served.port, "POST", "/showqrcode", sale)).text, '"newer"');
  assertFault(await ask(served.port, "POST", "/terminals"), "qr", "route");
  served.listener.replace({ contract: contracts.fiscal, report, ...settingsOf({ handler: newer }) });
  assert.equal((await ask(served.port, "GET", "/supported_operations")).text, '"newer"');
  assertFault(await ask(served.port, "POST", "/sale", "no form"), "fiscal", "missing", 200);
  assert.deepEqual(services, ["qr", "qr", "fiscal", "fiscal"]);
  assert.deepEqual(served.records, []);
});
