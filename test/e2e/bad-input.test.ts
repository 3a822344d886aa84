import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { answering } from "../support/terminal.ts";
import { withBridge } from "../support/with-bridge.ts";
import { key, services, signed } from "./guarded.ts";

interface Bad {
  readonly what: string;
  readonly service: ContractName;
  readonly path: string;
  readonly body: string;
  readonly headers?: Record<string, string>;
  readonly status: number;
  readonly code: number;
}

const badInputs: readonly Bad[] = [
  { what: "no JSON", service: "bank", path: "/sale", body: "hello", headers: key, status: 200, code: -29 },
  { what: "a JSON list", service: "bank", path: "/sale", body: "[]", headers: key, status: 200, code: -29 },
  { what: "an empty body", service: "bank", path: "/sale", body: "", headers: key, status: 200, code: -29 },
  { what: "an unknown route", service: "bank", path: "/sales", body: "{}", headers: key, status: 404, code: -80 },
  { what: "no key", service: "bank", path: "/sale", body: "{}", status: 401, code: -29 },
  { what: "a wrong key", service: "bank", path: "/sale", body: "{}", headers: { "x-api-key": "no" }, status: 401, code: -29 },
  { what: "a foreign host", service: "qr", path: "/refund", body: "{}", headers: { host: "evil.com" }, status: 421, code: 1 },
  {
    what: "a foreign origin",
    service: "qr",
    path: "/refund",
    body: "{}",
    headers: { origin: "https://evil.com" },
    status: 403,
    code: 1,
  },
  { what: "no JSON for qr", service: "qr", path: "/refund", body: "{", status: 400, code: 1 },
  { what: "too much", service: "qr", path: "/refund", body: `{"a":"${"x".repeat(1024 * 1024)}"}`, status: 413, code: 1 },
  { what: "no form", service: "fiscal", path: "/sale", body: "{}", status: 200, code: 3 },
  { what: "no sign", service: "fiscal", path: "/sale", body: "data=e30=", status: 200, code: 3 },
  { what: "a wrong sign", service: "fiscal", path: "/sale", body: "data=e30=&sign=AAAA", status: 200, code: 1 },
  { what: "no Base64", service: "fiscal", path: "/sale", body: "data=%02%03&sign=AAAA", status: 200, code: 2 },
  { what: "data twice", service: "fiscal", path: "/sale", body: `${signed("{}")}&data=e30=`, status: 200, code: 2 },
  {
    what: "a smuggled command",
    service: "fiscal",
    path: "/check_status",
    body: `command=/sale&${signed("{}")}`,
    status: 200,
    code: 2,
  },
  {
    what: "an unknown route",
    service: "fiscal",
    path: "/nope",
    body: signed("{}"),
    status: 404,
    code: contracts.fiscal.faultCodes.route,
  },
];

test("bridge refuses a call at once while its line is down, before its body has come", async () => {
  const success = answering(() => '{"status":"success"}');
  await withBridge({ services }, success, async ({ bridge, terminal }) => {
    const seen = bridge.log.length;
    terminal.unplug();
    await bridge.state("till", "down", seen);
    const socket = connect(await bridge.port("qr"), "127.0.0.1");
    socket.on("error", () => {});
    socket.write("POST /check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n");
    const [head] = await once(socket.setEncoding("latin1"), "data");
    assert.match(head, /^HTTP\/1\.1 503 /);
    assert.match(head, /^X-Posline-Outcome: not-sent\r$/m);
    assert.match(head, /^Retry-After: 2\r$/m);
    assert.match(head, /Cannot send to line till: it is down \(.*\). Nothing was sent, it is safe to send again/);
    socket.destroy();
    const refused = await bridge.logged(({ outcome }) => outcome === "not-sent", "the refusal", seen);
    assert.deepEqual([refused["route"], refused["httpStatus"], refused["requestBytes"]], ["/check", 503, 0]);
  });
});

test("bridge answers bad input of every kind in the service's own envelope, sends none of it, and goes on", async () => {
  const success = answering(() => '{"status":"success"}');
  await withBridge({ services }, success, async ({ bridge, terminal }) => {
    for (const { what, service, path, body, headers, status, code } of badInputs) {
      const answer = await bridge.post(service, path, body, headers ?? {});
      const envelope = JSON.parse(answer.text);
      assert.equal(answer.status, status, `${service} ${what}: ${answer.text}`);
      assert.equal(answer.headers["x-posline-outcome"], "not-sent", what);
      assert.equal(envelope.status, "error", what);
      assert.equal(envelope.code, code, what);
      assert.ok(envelope.message.length > 20, what);
    }
    // Not HTTP at all.
    for (const garbage of [
      "\x16\x03\x01\x02\x00",
      "\x02command=/sale\x03",
      `GET / HTTP/1.1\r\nX: ${"y".repeat(20_000)}\r\n\r\n`,
    ]) {
      const socket = connect(await bridge.port("qr"), "127.0.0.1");
      socket.on("error", () => {});
      socket.end(garbage);
      await once(socket.resume(), "close");
    }
    assert.equal(terminal.calls.length, 0, "calls that reached the line");
    assert.equal((await bridge.post("qr", "/check", '{"pay_id":"A"}')).headers["x-posline-outcome"], "answered");
  });
});
