import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Call, ContractName } from "../../../src/core/call.ts";
import type { JsonObject } from "../../../src/core/json-object.ts";
import { Presence } from "../../../src/core/presence.ts";
import { Emulator } from "../../../src/lab/emulator/emulator.ts";
import { parseExact, writeExact } from "../../../src/lab/emulator/exact-json.ts";
import type { EmulatedService } from "../../../src/lab/emulator/service-context.ts";
import { type KeptEmulator, readStateFile, StateFileError, writeStateFile } from "../../../src/lab/emulator/state-file.ts";
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
    this.memory = saved;
  }

  reset(): void {
    this.memory = {};
  }
}

function fakeKept(): KeptEmulator & { readonly services: Record<ContractName, FakeService> } {
  const services = { fiscal: new FakeService(), bank: new FakeService(), qr: new FakeService() };
  let aheadMs = 0;
  return {
    services,
    contracts: { fiscal: "fiscal", bank: "bank", qr: "qr" },
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
  const [text, content] = [readFileSync(path, "utf8"), stateText({ fiscal: {}, bank: {}, qr: {} })];
  assert.equal(text, `{"version":2,"sha256":"${sha256(content)}","state":${content}}\n`);
});

test("readStateFile() begins anew where there is no file yet, and makes none", () => {
  const path = newPath();
  const kept = fakeKept();
  readStateFile(path, kept);
  assert.deepEqual(kept.saved(), { fiscal: {}, bank: {}, qr: {} });
  assert.throws(() => lstatSync(path), /ENOENT/);
});

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

const stateText = (services: object) => {
  const contracts = Object.fromEntries(Object.keys(services).map((name) => [name, name.split("-")[0]]));
  return JSON.stringify({ aheadMs: 0, contracts, services });
};

const fileOf = (state: string, digest = sha256(state)) => `{"version":2,"sha256":"${digest}","state":${state}}`;

const isDamaged =
  /: it is damaged, or somebody has changed it: move it away to start with an empty state, or name another file$/;
const damaged: readonly (readonly [string, RegExp])[] = [
  ["", /: it is empty: move it away/],
  ['{"version":2,"sha256":"00","state":{"fiscal"', /: it is not a JSON object: /],
  ["[1]", /: it is not a JSON object: /],
  ["root:x:0:0:root:/root:/bin/bash\n", /: it is not a JSON object: /],
  ['{"version":1,"version":2}', /: it is not a JSON object: /],
  ['{"sha256":"00","state":{}}', /: its version is not 2: /],
  ['{"version":1,"aheadMs":0,"services":{"fiscal":{},"bank":{},"qr":{}}}', /: its version is not 2: /],
  ['{"version":2}', isDamaged],
  [fileOf("1"), isDamaged],
  [fileOf(stateText({ fiscal: {} }), sha256(stateText({ fiscal: { a: 1 } }))), isDamaged],
  [fileOf(stateText({ "bank-2": {} })), /: services\.bank-2: the configuration has no such service: move it away/],
  [
    fileOf('{"aheadMs":0,"contracts":{"bank":"qr"},"services":{}}'),
    /: services\.bank: the configuration has no such service: /,
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

/** A tree with each of its leaves in turn replaced by another, or taken out. */
function* damages(tree: unknown): Generator<unknown> {
  if (typeof tree !== "object" || tree === null) return;
  for (const [key, value] of Object.entries(tree)) {
    for (const inner of damages(value)) yield Array.isArray(tree) ? tree.with(Number(key), inner) : { ...tree, [key]: inner };
    if (Array.isArray(tree)) yield tree.toSpliced(Number(key), 1);
    else if (typeof value !== "object") {
      yield { ...tree, [key]: value === 1n ? 2n : 1n };
      yield Object.fromEntries(Object.entries(tree).filter(([name]) => name !== key));
    }
  }
}

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
  assert.equal(writeExact(after.saved()), writeExact(before.saved()));
  assert.notDeepEqual(after.saved()["bank-2"], added.saved()["bank-2"]);
});

test("readStateFile() takes back a day, and refuses any damage to it", () => {
  const path = newPath();
  const clock = () => new Date(2024, 4, 6, 7, 8, 9);
  const real = new Emulator({ clock });
  for (const call of day) real.answer(call);
  writeStateFile(path, real);
  const same = new Emulator({ clock });
  readStateFile(path, same);
  assert.equal(writeExact(same.saved()), writeExact(real.saved()));
  // What was taken back answers as what was saved.
  for (const call of day) assert.deepEqual(same.answer(call).reply.payload, real.answer(call).reply.payload, call.route);
  const file = parseExact(readFileSync(path, "utf8")) ?? {};
  let refusals = 0;
  for (const state of damages(file["state"])) {
    writeFileSync(path, writeExact({ ...file, state }));
    assert.throws(() => readStateFile(path, new Emulator({ clock })), StateFileError);
    refusals++;
  }
  assert.ok(refusals > 200, `${refusals} refusals`);
});
