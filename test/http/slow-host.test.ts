import assert from "node:assert/strict";
import dns, { type LookupAddress } from "node:dns";
import { once } from "node:events";
import { connect } from "node:net";
import { mock, type TestContext, test } from "node:test";
import { Worker } from "node:worker_threads";
import { createClient } from "../../src/client/http-client.ts";
import { callerOf, callOf, textOf } from "./calling.ts";

/**
 * A name with two addresses: the first answers only after a second, as over a slow link, and nothing listens at the second.
 *
 * Tests src/http/caller.ts, src/client/http-client.ts.
 */

/** Takes no connection until it is told to: what comes meanwhile is dropped by the kernel, and comes again a second later. */
const late = `
const { parentPort, workerData } = require("node:worker_threads");
const server = require("node:http").createServer((request, response) => {
  request.resume().on("end", () => response.end('{"status":"success","code":0}'));
});
server.listen({ host: "127.0.0.2", port: 0, backlog: 1 }, () => {
  parentPort.postMessage(server.address().port);
  Atomics.wait(workerData, 0, 0);
});
`;

/** As many as the kernel keeps for a backlog of one. */
const waiting = 2;

/** More than Node gives one address. */
const slowMs = 600;

async function slowHost(t: TestContext): Promise<string> {
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const open = () => {
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
  };
  const worker = new Worker(late, { eval: true, workerData: gate });
  const [port] = await once(worker, "message");
  const sockets = Array.from({ length: waiting }, () => connect(port, "127.0.0.2"));
  for (const socket of sockets) await once(socket, "connect");
  const addresses: LookupAddress[] = ["127.0.0.2", "127.0.0.1"].map((address) => ({ address, family: 4 }));
  mock.method(dns, "lookup", (_host: string, _options: object, done: (error: null, found: LookupAddress[]) => void) =>
    done(null, addresses),
  );
  t.after(async () => {
    mock.restoreAll();
    open();
    for (const socket of sockets) socket.destroy();
    await worker.terminate();
  });
  setTimeout(open, slowMs);
  return `http://slow.example:${port}`;
}

test("httpCaller() reaches the first address of a host over a slow link, though the second refuses", async (t) => {
  const reply = await callerOf("bank", await slowHost(t))(callOf("bank", "/sale", "{}"));
  assert.equal(textOf(reply), '{"status":"success","code":0}');
});

test("createClient() reaches the first address of a host over a slow link, though the second refuses", async (t) => {
  const client = createClient({ bank: { url: await slowHost(t) } });
  assert.equal((await client.bank.sale({ pay_id: "A-1", amount: 1, currency_name: "EUR" })).status, "success");
});
