import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type BytePattern, bytePatternOf } from "../../src/trouble/byte-patterns.ts";
import { frame } from "../support/fake-device.ts";
import { sampledAt } from "../support/wrong-speed.ts";

const sent = frame("length", "/supported_operations");

const json = Buffer.from('{"status":"success","data":{"operations":["sale","check","refund","abort"]},"code":0}');

test("bytePatternOf() knows bytes that were sent at another speed", () => {
  assert.deepEqual(sampledAt(json, 9600, 9600), json, "the receiver is right where the speeds are");
  for (const [theirs, ours] of [
    [9600, 115_200],
    [115_200, 9600],
    [19_200, 115_200],
    [38_400, 115_200],
    [57_600, 115_200],
    [115_200, 38_400],
  ] as const) {
    assert.equal(bytePatternOf(sampledAt(json, theirs, ours), [sent]), "other baud rate", `${theirs} read at ${ours}`);
  }
});

test("bytePatternOf() names what bytes look like", () => {
  const looks: readonly (readonly [BytePattern, string | Buffer])[] = [
    ["at commands", "AT\r"],
    ["at commands", "\r\nAT+GCAP\r\n"],
    ["login prompt", "\r\nraspberrypi login: "],
    ["login prompt", "Password: "],
    ["web server", "HTTP/1.1 400 Bad Request\r\n"],
    ["till", frame("length", '/sale\n{"pay_id":"A-1"}')],
    ["till", frame("length", ":8887/check_connection")],
    ["till", frame("stx", "command=/sale&data=e30=&sign=x")],
    ["damaged answer", frame("length", '{"status":"success","path":"/sale"}')],
    ["text", "/home/user"],
    ["text", "4006381333931\r\n"],
    ["break", Buffer.alloc(3)],
    ["echo", sent],
    ["echo", Buffer.concat([Buffer.from("\r"), sent.subarray(4, -2)])],
    ["unknown", Buffer.from([0x5a])],
  ];
  for (const [sign, bytes] of looks) assert.equal(bytePatternOf(Buffer.from(bytes), [sent]), sign, JSON.stringify(bytes));
});

test("bytePatternOf() names any bytes, and an echo only what was sent", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      assert.notEqual(bytePatternOf(Buffer.from(bytes), []), "echo");
    }),
  );
});
