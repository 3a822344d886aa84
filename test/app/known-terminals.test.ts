import assert from "node:assert/strict";
import { test } from "node:test";
import { type KnownService, KnownTerminals } from "../../src/app/known-terminals.ts";
import type { ContractName } from "../../src/core/call.ts";

const knownOf = (contract: ContractName, service: string, stillOut = 0): KnownService => ({
  ...{ service, contract, isProven: true, isOdd: false, answersProbes: false, answeredProbes: false, isGivenUp: false },
  stillOut,
});

test("KnownTerminals.at() gives what was learned at each place, the latest of a contract, and of who isn't there any more", () => {
  const terminals = new KnownTerminals();
  const [bank, fiscal, newer] = [knownOf("bank", "bank"), knownOf("fiscal", "fiscal"), knownOf("bank", "card", 3)];
  assert.deepEqual(terminals.at(["/dev/a"]), []);
  terminals.learn(["/dev/a", "/dev/ttyUSB0"], [bank, fiscal]);
  terminals.learn(["/dev/b", "/dev/ttyUSB0"], [newer]);
  assert.deepEqual(terminals.at(["/dev/a"]), [bank, fiscal]);
  assert.deepEqual(terminals.at(["/dev/ttyUSB0"]), [fiscal, newer]);
  assert.deepEqual(terminals.at(["/dev/b", "/dev/ttyUSB0"]), [newer, fiscal, newer]);
});

test("KnownTerminals keeps 256 places, those learned last", () => {
  const terminals = new KnownTerminals();
  const known = [knownOf("bank", "bank")];
  terminals.learn(["/dev/a"], known);
  for (let n = 0; n < 255; n++) terminals.learn([`/dev/ttyUSB${n}`], known);
  terminals.learn(["/dev/a"], known);
  terminals.learn(["/dev/b"], known);
  assert.deepEqual(
    ["/dev/a", "/dev/ttyUSB0", "/dev/ttyUSB1", "/dev/b"].map((place) => terminals.at([place]).length),
    [1, 0, 1, 1],
  );
});
