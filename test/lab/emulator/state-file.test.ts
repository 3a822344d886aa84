import assert from "node:assert/strict";
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Call, type ContractName, contractNames } from "../../../src/core/call.ts";
import type { JsonObject } from "../../../src/core/json-object.ts";
import { Presence } from "../../../src/core/presence.ts";
import { fieldsOf } from "../../../src/lab/emulator/answer.ts";
import { Emulator } from "../../../src/lab/emulator/emulator.ts";
import { parseExact, writeExact } from "../../../src/lab/emulator/exact-json.ts";
import type { EmulatedService } from "../../../src/lab/emulator/service-context.ts";
import {
  aheadMsMax,
  type EmulatorState,
  readStateFile,
  StateFileError,
  writeStateFile,
} from "../../../src/lab/emulator/state-file.ts";
import { StateError } from "../../../src/lab/emulator/state-reader.ts";
import { scratchFolder } from "../../support/bridge-process.ts";

const folder = scratchFolder();
after(() => folder.remove());
let files = 0;
const newPath = () => join(folder.path, `state-${++files}.json`);

/** A service that remembers one object. */
class FakeService implements EmulatedService {
  memory: JsonObject = {};

  answer() {
    return { status: "success" } as const;
  }

  ledger() {
    return [];
  }

  saved(): JsonObject {
    return this.memory;
  }

  restore(saved: JsonObject): void {
    if ("bad" in saved) throw new StateError("operations[3].amount: it is no integer");
    this.memory = saved;
  }

  reset(): void {
    this.memory = {};
  }
}

function fakeKept(): EmulatorState & { readonly services: Record<ContractName, FakeService> } {
  const services = { fiscal: new FakeService(), bank: new FakeService(), qr: new FakeService() };
  let aheadMs = 0;
  return {
    services,
    get aheadMs() {
      return aheadMs;
    },
    worldMark: undefined,
    advance: (ms) => {
      aheadMs += ms;
    },
    saved: () => ({ fiscal: services.fiscal.saved(), bank: services.bank.saved(), qr: services.qr.saved() }),
  };
}

test("writeStateFile() and readStateFile() keep everything, integers beyond 2^53 too, and the time", () => {
  const path = newPath();
  const before = fakeKept();
  before.services.bank.memory = { amount: 9_223_372_036_854_775_807n, note: "Ünïcödé ☕", list: [{}, null, 1.5] };
  before.advance(90_000_000);
  writeStateFile(path, before);
  const after = fakeKept();
  readStateFile(path, after);
  assert.deepEqual(after.saved(), before.saved());
  assert.equal(after.aheadMs, 90_000_000);
});

test("writeStateFile() leaves one whole file, of the same mode, and no scraps beside it", () => {
  const home = join(folder.path, "alone");
  mkdirSync(home);
  const path = join(home, "state.json");
  writeStateFile(path, fakeKept());
  chmodSync(path, 0o600);
  const kept = fakeKept();
  kept.services.qr.memory = { payments: ["x".repeat(100_000)] };
  writeStateFile(path, kept);
  writeStateFile(path, fakeKept());
  assert.deepEqual(readdirSync(home), ["state.json"]);
  assert.equal(lstatSync(path).mode & 0o777, 0o600);
  assert.equal(readFileSync(path, "utf8"), '{"version":1,"aheadMs":0,"services":{"fiscal":{},"bank":{},"qr":{}}}\n');
});

test("readStateFile() begins anew where there is no file yet, and makes none", () => {
  const path = newPath();
  const kept = fakeKept();
  readStateFile(path, kept);
  assert.deepEqual(kept.saved(), { fiscal: {}, bank: {}, qr: {} });
  assert.throws(() => lstatSync(path), /ENOENT/);
});

const good = '"fiscal":{},"bank":{},"qr":{}';
const damaged: readonly (readonly [string, RegExp])[] = [
  ["", /: it is empty: move it away/],
  ['{"version":1,"aheadMs":0,"services":{"fiscal"', /: it is not a JSON object: /],
  ["[1]", /: it is not a JSON object: /],
  ["root:x:0:0:root:/root:/bin/bash\n", /: it is not a JSON object: /],
  ['{"version":1,"version":2}', /: it is not a JSON object: /],
  [`{"aheadMs":0,"services":{${good}}}`, /: its version is not 1: /],
  [`{"version":2,"aheadMs":0,"services":{${good}}}`, /: its version is not 1: /],
  [`{"version":1,"aheadMs":-1,"services":{${good}}}`, /: aheadMs: /],
  [`{"version":1,"aheadMs":${aheadMsMax + 1},"services":{${good}}}`, /: aheadMs: /],
  [
    `{"version":1,"aheadMs":0,"services":{${good},"bank-2":{}}}`,
    /: services\.bank-2: the configuration has no such service: move it away/,
  ],
  [
    `{"version":1,"aheadMs":0,"services":{${good},"__proto__":{}}}`,
    /: (?:services\.__proto__: the configuration has no such service|it is not a JSON object): /,
  ],
  ['{"version":1,"aheadMs":0}', /: services: must be an object: /],
  ['{"version":1,"aheadMs":0,"services":{"fiscal":{},"qr":{}}}', /: services\.bank: must be an object: /],
  [
    '{"version":1,"aheadMs":0,"services":{"fiscal":{},"bank":{"bad":1},"qr":{}}}',
    /: services\.bank: operations\[3\]\.amount: it is no integer: move it away to start with an empty state, or name another file$/,
  ],
];

for (const [text, message] of damaged) {
  test(`readStateFile() refuses a damaged file and leaves it as it is: ${text.slice(0, 60) || "empty"}`, () => {
    const path = newPath();
    writeFileSync(path, text);
    assert.throws(
      () => readStateFile(path, fakeKept()),
      (error) => {
        assert.ok(error instanceof StateFileError);
        assert.equal(error.exitCode, 78);
        assert.ok(error.message.startsWith(`Cannot use the state file ${path}: `));
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /\n/);
        return true;
      },
    );
    assert.equal(readFileSync(path, "utf8"), text);
  });
}

test("readStateFile() and writeStateFile() tell a folder, and a folder that isn't there", () => {
  assert.throws(() => readStateFile(folder.path, fakeKept()), /Cannot read the state file .*: it is not a file: name a file$/);
  const nowhere = join(folder.path, "none", "state.json");
  readStateFile(nowhere, fakeKept());
  const file = newPath();
  writeStateFile(file, fakeKept());
  for (const path of [nowhere, join(file, "state.json")]) {
    assert.throws(() => writeStateFile(path, fakeKept()), {
      name: "StateFileError",
      message: `Cannot write the state file ${path}: there is no such folder: create it, or name another`,
    });
  }
});

test("writeStateFile() tells a place where nothing can be written, and leaves nothing there", () => {
  const path = "/proc/posline-state.json";
  assert.throws(
    () => writeStateFile(path, fakeKept()),
    /^StateFileError: Cannot write the state file \/proc\/posline-state\.json: /,
  );
});

const callOf = (service: ContractName, route: string, json: object): Call => {
  const text = JSON.stringify(json);
  const data = Buffer.from(text).toString("base64");
  const body = [Buffer.from(service === "fiscal" ? `data=${encodeURIComponent(data)}&sign=eA%3D%3D` : text)];
  return { service, contract: service, route, body, requestId: "r", key: undefined, caller: new Presence() };
};

const bankSale = { pay_id: "P-1", amount: 1500, currency_name: "EUR" };
const qrShow = { pay_id: "Q-1", amount: 1544, currency: "978", currency_name: "EUR", pay_system: "A" };
const items = [{ itemId: "1", itemName: "Coffee", itemQty: 1000, itemAmount: 1500, itemTaxes: [{ taxPrc: 1800 }] }];
const receipt = { documentExtID: "R-1", items, payments: { cashAmount: 1000, cashlessAmount: 500 } };

/** A little of everything that is remembered, and then asked about. */
const day: readonly Call[] = [
  callOf("bank", "/sale", bankSale),
  callOf("bank", "/check", { pay_id: "P-1" }),
  callOf("bank", "/check", { pay_id: "P-1" }),
  callOf("bank", "/sale", { ...bankSale, pay_id: "P-2", amount: 1505 }),
  callOf("bank", "/sale", { ...bankSale, pay_id: "P-3", amount: 1544 }),
  callOf("bank", "/preauth", { ...bankSale, pay_id: "P-4" }),
  callOf("bank", "/close-shift", { pay_id: "P-5" }),
  callOf("bank", "/check", { pay_id: "P-5" }),
  callOf("bank", "/check", { pay_id: "P-5" }),
  callOf("qr", "/showqrcode", qrShow),
  callOf("qr", "/showqrcode", { ...qrShow, pay_id: "Q-2", amount: 1505 }),
  callOf("fiscal", "/sale", receipt),
  callOf("fiscal", "/sale", { ...receipt, documentExtID: "R-2", payments: { cashlessAmount: 1505 } }),
  callOf("fiscal", "/sale", { ...receipt, documentExtID: "R-3", payments: { cashlessAmount: 1544 } }),
  callOf("fiscal", "/deposit", { documentExtID: "R-4", amount: 500 }),
  callOf("fiscal", "/close_shift", {}),
  callOf("fiscal", "/open_shift", {}),
  callOf("fiscal", "/check_status", { documentExtID: "R-1" }),
  callOf("fiscal", "/x_report", {}),
  callOf("fiscal", "/check_shift", {}),
];

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A tree with each of its nodes in turn replaced, taken out, or doubled in its list. */
function* damages(tree: Json): Generator<Json> {
  if (typeof tree !== "object" || tree === null) return;
  const junk: readonly Json[] = [null, -1, 0, 1.5, 9e15, "", "x", true, [], [null], {}, { x: 1 }];
  const put = (key: string, value: Json): Json =>
    Array.isArray(tree) ? tree.map((each, index) => (String(index) === key ? value : each)) : { ...tree, [key]: value };
  for (const [key, value] of Object.entries(tree)) {
    for (const other of junk) yield put(key, other);
    for (const inner of damages(value)) yield put(key, inner);
    yield Array.isArray(tree) ? tree.filter((_, index) => String(index) !== key) : without(tree, key);
    if (Array.isArray(tree)) yield [...tree, value];
  }
}

const without = (tree: { readonly [key: string]: Json }, key: string): Json =>
  Object.fromEntries(Object.entries(tree).filter(([name]) => name !== key));

test("readStateFile() takes back a service of a name of its own, one that is new too", () => {
  const path = newPath();
  const [before, after, added] = [new Emulator(), new Emulator(), new Emulator()];
  writeStateFile(path, new Emulator());
  added.play("bank-2", { contract: "bank" });
  readStateFile(path, added);
  before.play("bank-2", { contract: "bank" });
  before.answer({ ...callOf("bank", "/sale", bankSale), service: "bank-2" });
  writeStateFile(path, before);
  after.play("bank-2", { contract: "bank" });
  readStateFile(path, after);
  assert.deepEqual(after.saved(), before.saved());
  assert.notDeepEqual(after.saved()["bank-2"], added.saved()["bank-2"]);
});

test("readStateFile() takes any damage to a real state for what it is, or goes on with a state that works", () => {
  const path = newPath();
  const clock = () => new Date(2024, 4, 6, 7, 8, 9);
  const real = new Emulator({ clock });
  for (const call of day) real.answer(call);
  writeStateFile(path, real);
  const state: Json = JSON.parse(readFileSync(path, "utf8"));
  const same = new Emulator({ clock });
  readStateFile(path, same);
  assert.deepEqual(same.saved(), real.saved());
  let refusals = 0;
  let taken = 0;
  for (const damage of damages(state)) {
    const text = JSON.stringify(damage);
    writeFileSync(path, text);
    const emulator = new Emulator({ clock });
    try {
      readStateFile(path, emulator);
    } catch (error) {
      assert.ok(error instanceof StateFileError, `${String(error)}: ${text}`);
      refusals++;
      continue;
    }
    taken++;
    assert.doesNotThrow(() => {
      for (const call of day) emulator.answer(call);
      const saved = parseExact(writeExact(emulator.saved())) ?? {};
      for (const service of contractNames) new Emulator({ clock }).services[service].restore(fieldsOf(saved[service]));
    }, text);
  }
  assert.ok(refusals > 1_000, `${refusals} refusals`);
  assert.ok(taken > 100, `${taken} taken`);
});
