import assert from "node:assert/strict";
import { test } from "node:test";
import { OwedCalls, owingAmong } from "../../src/recovery/owed-calls.ts";
import { assertMapped } from "../support/assert-mapped.ts";

test("OwedCalls.at() gives who owed a call at each place when a line ended there last, and who wasn't served by it", () => {
  const owed = new OwedCalls();
  assert.deepEqual(owed.at(["/dev/a"]), []);
  owed.learn(["/dev/a", "/dev/ttyUSB0"], { served: ["bank", "fiscal"], owing: ["bank", "fiscal"] });
  owed.learn(["/dev/b", "/dev/ttyUSB0"], { served: ["qr"], owing: ["qr"] });
  assert.deepEqual(owed.at(["/dev/a"]), ["bank", "fiscal"]);
  assert.deepEqual(owed.at(["/dev/ttyUSB0"]), ["bank", "fiscal", "qr"]);
  assert.deepEqual(owed.at(["/dev/b", "/dev/ttyUSB0"]), ["qr", "bank", "fiscal", "qr"]);
  owed.learn(["/dev/ttyUSB0"], { served: ["bank"], owing: [] });
  assert.deepEqual(owed.at(["/dev/ttyUSB0"]), [], "bank was proven, so nothing older comes any more");
});

test("OwedCalls keeps 256 places, those learned last", () => {
  const owed = new OwedCalls();
  const bank = { served: ["bank"], owing: ["bank"] } as const;
  owed.learn(["/dev/a"], bank);
  for (let n = 0; n < 255; n++) owed.learn([`/dev/ttyUSB${n}`], bank);
  owed.learn(["/dev/a"], bank);
  owed.learn(["/dev/b"], bank);
  assertMapped(["/dev/a", "/dev/ttyUSB0", "/dev/ttyUSB1", "/dev/b"], [1, 0, 1, 1], (place) => owed.at([place]).length);
});

test("owingAmong() names who owes a call's answer by its contract, and all where one owes that isn't on the line", () => {
  const services = [
    { service: "acquirer", contract: "bank" },
    { service: "qr", contract: "qr" },
  ] as const;
  assert.deepEqual(owingAmong(services, []), []);
  assert.deepEqual(owingAmong(services, ["bank"]), ["acquirer"]);
  assert.deepEqual(owingAmong(services, ["fiscal"]), ["acquirer", "qr"]);
});
