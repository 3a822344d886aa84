import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test } from "node:test";
import { BridgePorts, socketForAdmin } from "../../src/app/bridge-ports.ts";
import { unserved } from "../../src/app/unserved.ts";
import { adminDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";

const report = { exchange: () => {}, error: () => {} };
const socketOn = (host: string, port = 8_880) => ({ holder: new Socket(), host, port });

test("socketForAdmin() finds the socket of the configured or usual port, and refuses a configured port that systemd doesn't have", () => {
  const sockets = [socketOn("127.0.0.1", 8_888), socketOn("::1")];
  assert.equal(socketForAdmin({}, sockets), sockets[1]);
  assert.equal(socketForAdmin({ admin: { ...adminDefaults, port: 8_888 } }, sockets), sockets[0]);
  assert.equal(socketForAdmin({}, []), undefined);
  assert.throws(() => socketForAdmin({ admin: { ...adminDefaults, port: 9 } }, sockets), {
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

test("socketForAdmin() refuses a socket that the network reaches without a token, with what to do", () => {
  for (const host of ["0.0.0.0", "::", "192.168.10.7"]) {
    const sockets = [socketOn(host)];
    for (const admin of [undefined, adminDefaults]) {
      assert.throws(
        () => socketForAdmin(admin === undefined ? {} : { admin }, sockets),
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
    assert.equal(socketForAdmin({ admin: { ...adminDefaults, token: "T-0123456789abcdef" } }, sockets), sockets[0]);
  }
});
