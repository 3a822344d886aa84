import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, type TestContext, test } from "node:test";
import { endAll, resultOf, saleOf } from "../e2e/emulating.ts";
import { BridgeProcess } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { closeBrowser, noChromium, type Opened, open } from "./browser.ts";

/**
 * A till's page in a real browser, which calls a bridge from another origin: what CORS lets it do, and a page that isn't allowed.
 *
 * Tests src/http/guard.ts, src/http/response-writer.ts, src/http/admin-listener.ts.
 */

after(async () => {
  await closeBrowser();
  await endAll();
});

interface Till extends Opened {
  readonly bank: number;
  readonly admin: number;
}

/** A page of an origin that may call, or of another one: on its port localhost may, and 127.0.0.1 may not. */
async function tillAt(t: TestContext, host: "localhost" | "127.0.0.1"): Promise<Till> {
  const [pagePort = 0] = await freePorts(1);
  const server = createServer((_, response) => response.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html>"));
  await new Promise<void>((resolve) => server.listen(pagePort, "127.0.0.1", resolve));
  const allowOrigins = [`http://localhost:${pagePort}`];
  const config = {
    lines: { till: { path: "/dev/ttyUSB0" } },
    services: { bank: { line: "till", allowOrigins } },
    admin: { allowOrigins },
  };
  const bridge = new BridgeProcess(config, { env: { POSLINE_ADMIN_PORT: "0" }, flags: ["--emulated"] });
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await bridge.stop();
  });
  const [bank, admin] = [await bridge.port("bank"), await bridge.port("admin")];
  await bridge.state("till", "idle");
  const opened = await open(`http://${host}:${pagePort}/`);
  t.after(() => opened.close());
  return { ...opened, bank, admin };
}

/** A call with the browser's credentials, and headers as tracing tools add them. */
const tracedFetch = (port: number, payId: string) => `
document.cookie = "session=1";
fetch("http://localhost:${port}/sale", {
  method: "POST",
  credentials: "include",
  headers: {
    "Content-Type": "application/json",
    "X-Request-Id": "r-1",
    traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    tracestate: "a=b",
    baggage: "till=7",
    "sentry-trace": "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
    "x-b3-traceid": "4bf92f3577b34da6a3ce929d0e0e4736",
    "x-datadog-trace-id": "1",
    "X-Requested-With": "XMLHttpRequest",
  },
  body: '${saleOf(payId)}',
}).then((answer) => [answer.status, answer.headers.get("X-Posline-Outcome")], String)`;

const beacon = (port: number, payId: string, type: "string" | "blob") => {
  const body = type === "string" ? `'${saleOf(payId)}'` : `new Blob(['${saleOf(payId)}'], { type: "application/json" })`;
  return `navigator.sendBeacon("http://localhost:${port}/sale", ${body})`;
};

test("a page of an allowed origin calls with credentials, tracing headers, sendBeacon and EventSource", {
  skip: noChromium,
}, async (t) => {
  const { page, complaints, bank, admin } = await tillAt(t, "localhost");
  assert.deepEqual(await page.evaluate(tracedFetch(bank, "P-1")), [200, "answered"]);
  assert.match(await resultOf(bank, "P-1"), /"status":"success"/);
  for (const [payId, type] of [
    ["P-2", "string"],
    ["P-3", "blob"],
  ] as const) {
    const arrived = page.waitForResponse((answer) => answer.url().endsWith("/sale") && answer.status() === 200);
    assert.equal(await page.evaluate(beacon(bank, payId, type)), true);
    await arrived;
    assert.match(await resultOf(bank, payId), /"status":"success"/, payId);
  }
  const hello = await page.evaluate(`new Promise((resolve) => {
    const source = new EventSource("http://localhost:${admin}/events", { withCredentials: true });
    source.addEventListener("hello", ({ data }) => resolve(JSON.parse(data).version));
    source.onerror = () => resolve("failed");
  })`);
  assert.match(String(hello), /^\d/);
  assert.deepEqual(complaints, []);
});

test("a page of another origin sends nothing, whatever it tries, and reads nothing", { skip: noChromium }, async (t) => {
  const { page, bank, admin } = await tillAt(t, "127.0.0.1");
  assert.match(String(await page.evaluate(tracedFetch(bank, "P-1"))), /Failed to fetch/);
  for (const type of ["string", "blob"] as const) {
    const refused = page.waitForEvent("requestfinished").catch(() => undefined);
    await page.evaluate(beacon(bank, "P-1", type));
    await Promise.race([refused, page.waitForEvent("requestfailed")]);
  }
  for (const mode of ["cors", "no-cors"]) {
    const asked = await page.evaluate(`fetch("http://localhost:${admin}/status", { mode: "${mode}", credentials: "include" })
      .then((answer) => answer.text(), String)`);
    assert.match(String(asked), mode === "cors" ? /Failed to fetch/ : /^$/);
  }
  assert.match(await resultOf(bank, "P-1"), /"status":"error"/, "no sale came");
});
