import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test } from "node:test";
import { socketForAdmin } from "../../src/app/bridge-ports.ts";
import { adminDefaults } from "../../src/config/limits.ts";

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
