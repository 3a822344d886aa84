import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { createServer, Socket } from "node:net";
import { test } from "node:test";
import { BridgePorts, socketsForAdmin } from "../../src/bridge/bridge-ports.ts";
import { unserved } from "../../src/bridge/unserved.ts";
import { adminDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { ask } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { ofLocalhost } from "../support/localhost.ts";

const report = { exchange: () => {}, error: () => {} };
const socketOn = (host: string, port = 8_880) => ({ holder: new Socket(), host, port });

test("socketsForAdmin() finds the sockets of the configured or usual port, and refuses a configured port that systemd doesn't have", () => {
  const sockets = [socketOn("127.0.0.1", 8_888), socketOn("::1"), socketOn("127.0.0.1")];
  assert.deepEqual(socketsForAdmin({}, sockets), sockets.slice(1));
  assert.deepEqual(socketsForAdmin({ admin: { ...adminDefaults, port: 8_888 } }, sockets), sockets.slice(0, 1));
  assert.deepEqual(socketsForAdmin({}, []), []);
  assert.throws(() => socketsForAdmin({ admin: { ...adminDefaults, port: 9 } }, sockets), {
    name: "SocketsError",
    exitCode: 78,
  });
});

test("BridgePorts refuses a port that systemd doesn't have, by the name of the service whose setting it is", async () => {
  const ports = new BridgePorts([socketOn("127.0.0.1")], report);
  const options = { ...unserved(9_888, report), contract: contracts.bank, service: "bank-2" };
  await assert.rejects(ports.prepare([{ line: "till", options }]), {
    name: "SocketsError",
    message: /^Cannot use the configuration: services\.bank-2\.port is 9888, but systemd's posline\.socket listens on 8880: /,
  });
});

test("BridgePorts refuses a host that meets one of its own on the same port by naming itself, and another's by the system's error", async (t) => {
  const [port = 0] = await freePorts(1);
  const at = (host: string) => {
    const options = unserved(port, report);
    return [{ line: "till", options: { ...options, service: "bank", config: { ...options.config, host } } }];
  };
  const ports = new BridgePorts([], report);
  const other = createServer();
  t.after(() => other.close());
  t.after(() => ports.close());
  ports.take(await ports.prepare(at("127.0.0.1")));
  await assert.rejects(ports.prepare(at("0.0.0.0")), {
    message: `Cannot reload: services.bank is to listen on 0.0.0.0:${port}, and posline itself listens on 127.0.0.1:${port}, so the change of the host needs a restart: restart posline, or undo the change`,
  });
  assertMapped(ports.listening, ["127.0.0.1"], ({ host }) => host);
  await new Promise<void>((resolve) => other.listen(port, "127.0.0.2", resolve));
  await assert.rejects(ports.prepare(at("127.0.0.2")), { code: "EADDRINUSE" });
});

test("BridgePorts listens on both addresses of localhost, closes both, and refuses where another has one", async (t) => {
  const [port = 0] = await freePorts(1);
  const options = unserved(port, report);
  const wanted = [{ line: "till", options }];
  const ports = new BridgePorts([], report);
  const other = createServer();
  const statusAt = async (host: string) => {
    const asking = request({ host, port, method: "POST", path: "/sale", agent: false }).end();
    const [answer] = await once(asking, "response");
    answer.resume();
    return answer.statusCode;
  };
  t.after(() => other.close());
  t.after(() => ports.close());
  ports.take(await ports.prepare(wanted));
  assertMapped(ports.listening, [`localhost:${port}`], (each) => `${each.host}:${each.port}`);
  for (const host of ofLocalhost) assert.equal(await statusAt(host), 503);
  ports.take(await ports.prepare([]));
  await ports.closed;
  for (const host of ofLocalhost) await assert.rejects(statusAt(host));
  const taken = ofLocalhost.at(-1);
  await new Promise<void>((resolve) => other.listen(port, taken, resolve));
  await assert.rejects(ports.prepare(wanted), { code: "EADDRINUSE", address: taken });
  for (const host of ofLocalhost.slice(0, -1)) await assert.rejects(statusAt(host), "nothing is left");
});

test("BridgePorts answers those whose connections only the kernel had accepted when their port was taken away, and takes it back at once", async () => {
  const [port = 0] = await freePorts(1);
  const ports = new BridgePorts([], report);
  ports.take(await ports.prepare([{ line: "till", options: unserved(port, report) }]));
  const answers = Promise.all(Array.from({ length: 8 }, () => ask(port, "POST", "/sale", "{}")));
  // Each connects before the event loop turns, and so before the port can accept one of them.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  ports.take(await ports.prepare([]));
  ports.take(await ports.prepare([{ line: "till", options: unserved(port, report) }]));
  assert.deepEqual([...new Set((await answers).map(({ status }) => status))], [503]);
  await ports.close();
  await assert.rejects(ask(port, "POST", "/sale", "{}"), /ECONNREFUSED/);
});

test("socketsForAdmin() refuses a socket that the network reaches without a token, with what to do", () => {
  for (const host of ["0.0.0.0", "::", "192.168.10.7"]) {
    const sockets = [socketOn("127.0.0.1"), socketOn(host)];
    for (const admin of [undefined, adminDefaults]) {
      assert.throws(
        () => socketsForAdmin(admin === undefined ? {} : { admin }, sockets),
        (error) => {
          assert.ok(error instanceof Error);
          assert.equal(error.name, "SocketsError");
          assert.ok(
            error.message.includes(`posline.socket opens the admin port on ${host}, where it needs a token`),
            error.message,
          );
          assert.match(error.message, /admin\.tokenFile.*127\.0\.0\.1:8880: sudo systemctl edit posline\.socket/);
          return true;
        },
      );
    }
    assert.deepEqual(socketsForAdmin({ admin: { ...adminDefaults, token: "T-0123456789abcdef" } }, sockets), sockets);
  }
});
