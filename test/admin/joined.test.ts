import assert from "node:assert/strict";
import { test } from "node:test";
import { Status } from "../../src/admin/status.ts";
import { tee } from "../../src/app/line-report.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { AdminListener } from "../../src/http/admin-listener.ts";
import { lineService } from "../../src/line/caller.ts";
import { Line } from "../../src/line/line.ts";
import { ask } from "../http/served.ts";
import { memoryBench } from "../line/benches.ts";
import { configOf, ending, hasEnded, requestFor, Told } from "../line/lines.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import { recordOf, statusOf } from "./worlds.ts";

/** Tests src/admin/status.ts, src/app/line-report.ts. */

test("Status shows a real line as it goes: its states, its operations, its queue, and readiness with each", async () => {
  const time = new VirtualTime();
  const bench = memoryBench();
  const status = new Status("1.2.3");
  const told = new Told();
  const config = configOf();
  const services = (["bank", "qr"] as const).map((service) =>
    lineService(contracts[service], { crc16: "arc", quiet: false, merchantId: undefined }),
  );
  const line = new Line({ name: "till", config, services, open: bench.open, report: tee(told, status.line("till")) });
  try {
    status.setSources({
      lines: [{ name: "till", path: config.path, queueCallsMax: config.queueCallsMax, live: line }],
      services: [
        { service: "bank", line: "till", host: "127.0.0.1", port: 8888 },
        { service: "qr", line: "till", host: "127.0.0.1", port: 8887 },
      ],
    });
    assert.equal(statusOf(status).lines.till.state, "down");
    assert.equal(status.readyz().status, 503);
    line.start();
    assert.ok(await time.until(() => line.state === "idle"));
    const { lines, services, ready } = statusOf(status);
    assert.equal(ready, true);
    assert.equal(lines.till.state, "idle");
    assert.equal(lines.till.counters.openings, 1);
    assert.deepEqual(services.bank.offer.operations, ["sale", "check", "terminals"]);
    assert.deepEqual(services.qr.offer.systems, [{ name: "PALM", operations: ["showqrcode", "check"] }]);
    assert.deepEqual([...new Set(told.probes.map(({ service }) => service))], ["bank", "qr"]);
    const first = ending(line, requestFor("A-1"));
    const second = ending(line, requestFor("A-2"));
    assert.equal(statusOf(status).lines.till.state, "awaiting");
    assert.deepEqual(statusOf(status).lines.till.queue, { waiting: 1, max: config.queueCallsMax });
    assert.equal(status.readyz().status, 200);
    // Nobody answers: the first is unknown, and the line must be proven clean again.
    assert.ok(await time.until(() => hasEnded(first)));
    assert.equal(statusOf(status).lines.till.counters.recoveries, 1);
    assert.equal(status.readyz().status, 503);
    assert.ok(await time.until(() => hasEnded(second)));
    const stopped = line.stop(1_000);
    await time.until(() => line.state === "closed");
    assert.equal(statusOf(status).lines.till.state, "closed");
    await stopped;
  } finally {
    time.restore();
    await bench.dispose();
  }
});

test("Status answers on the admin port: 200 and 503, HEAD for load balancers, nothing but GET, nothing to pages", async () => {
  const status = new Status("1.2.3");
  const live = { state: "idle" as "idle" | "down", reason: "" };
  status.setSources({ lines: [{ name: "till", path: "/dev/ttyS1", live }], services: [{ service: "bank", line: "till" }] });
  const listener = new AdminListener({
    config: { host: "127.0.0.1", port: 0 },
    routes: status.routes,
    error: (error) => assert.fail(String(error)),
  });
  const { port } = await listener.listen();
  try {
    assert.equal((await ask(port, "GET", "/healthz")).status, 200);
    assert.equal((await ask(port, "GET", "/readyz")).status, 200);
    live.state = "down";
    assert.equal((await ask(port, "GET", "/readyz")).status, 503);
    for (const path of ["/healthz", "/readyz"]) {
      const head = await ask(port, "HEAD", path);
      assert.equal(head.text, "");
      assert.equal(head.status, (await ask(port, "GET", path)).status);
    }
    status.exchange(recordOf("bank", "answered"));
    const shown = await ask(port, "GET", "/status");
    assert.equal(shown.headers.get("content-type"), "application/json");
    assert.equal(JSON.parse(shown.text).lines.till.counters.answered, 1);
    assert.equal((await ask(port, "POST", "/status")).status, 405);
    assert.equal((await ask(port, "GET", "/status", "", { Origin: "https://evil.example" })).status, 403);
    assert.equal((await ask(port, "GET", "/status", "", { Host: "evil.example" })).status, 421);
    assert.match(
      (await ask(port, "GET", "/nowhere")).text,
      /use GET \/healthz or GET \/readyz or GET \/status or GET \/metrics/,
    );
  } finally {
    await listener.close();
  }
});
