import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { writeExact } from "../../../src/lab/emulator/exact-json.ts";
import { readStateFile, StateFileError, writeStateFile } from "../../../src/lab/emulator/state-file.ts";
import { worldOf } from "../../../src/lab/emulator/world.ts";
import type { WorldShape } from "../../../src/lab/emulator/world-schema.ts";
import { folder } from "../../config/loading.ts";
import { assertMapped } from "../../support/assert-mapped.ts";
import { rows } from "./conforming.ts";
import { WorldTill } from "./world-till.ts";

/** What each setting of a world changes in the emulator's answers, all of which fit their contract. */

const sale = { pay_id: "A", amount: 1500, currency_name: "EUR" };

/** The data of a bank operation's end. */
function endOf(till: WorldTill, payId = "A") {
  till.ask("bank", "/check", { pay_id: payId });
  const answer = till.ask("bank", "/check", { pay_id: payId });
  // Each answer fits the contract.
  return { code: answer["code"], data: answer["data"] as { data: Record<string, unknown>; print_data: { lines: string[] } } };
}

test("bank.terminals are the pairs: the first is taken without a terminal, and a terminal's first merchant without a merchant", () => {
  const till = new WorldTill({
    bank: {
      terminals: [
        { terminal: 70, merchant: 5, merchantName: "Bakery" },
        { terminal: 70, merchant: 4 },
        { terminal: 80, merchant: 9_007_199_254_740_991, mcc: "5812" },
      ],
    },
  });
  assert.deepEqual(till.ask("bank", "/terminals")["data"], {
    terminals: [
      { terminal: 70, merchant: 5, merchantName: "Bakery" },
      { terminal: 70, merchant: 4 },
      { terminal: 80, merchant: 9_007_199_254_740_991, mcc: "5812" },
    ],
  });
  assert.equal(till.code("bank", "/sale", { ...sale, terminal: 1 }), -29);
  assert.equal(till.code("bank", "/sale", { ...sale, terminal: 80, merchant: 5 }), -29);
  assert.equal(till.code("bank", "/sale", sale), undefined);
  const { data, print_data } = endOf(till).data;
  assert.deepEqual([data["terminal"], data["merchant"], print_data.lines[1]], [70, 5, "Bakery"]);
});

test("a terminal without merchant isn't among the pairs, and refuses its operations even as the first one", () => {
  const till = new WorldTill({
    bank: {
      terminals: [
        { terminal: 3, name: "Till" },
        { terminal: 4, merchant: 1 },
      ],
    },
  });
  assert.deepEqual(till.ask("bank", "/terminals")["data"], { terminals: [{ terminal: 4, merchant: 1 }] });
  for (const place of [{}, { terminal: 3 }, { terminal: 3, merchant: 1 }]) {
    const { code, message } = till.ask("bank", "/sale", { ...sale, ...place });
    assert.equal(code, -29);
    assert.match(String(message), /terminal 3 has no (valid merchant|merchant 1)/);
  }
  assert.equal(till.code("bank", "/sale", { ...sale, terminal: 4 }), undefined);
});

test("without any terminal every operation is refused, and /terminals is empty", () => {
  const till = new WorldTill({ bank: { terminals: [] } });
  assert.deepEqual(till.ask("bank", "/terminals")["data"], { terminals: [] });
  for (const route of ["/sale", "/xreport"]) assert.equal(till.code("bank", route, sale), -29);
});

test("bank.currencies are those that an operation may name, by each of their names", () => {
  const till = new WorldTill({ bank: { currencies: { JPY: ["392", "yen"], KWD: [] } } });
  for (const [index, name] of ["JPY", "392", "yen", "KWD"].entries()) {
    assert.equal(till.code("bank", "/sale", { ...sale, pay_id: `${index}`, currency_name: name }), undefined, name);
    assert.equal(endOf(till, `${index}`).data.data["currency_name"], index < 3 ? "JPY" : "KWD");
  }
  for (const name of ["EUR", "978", "414", "jpy", "__proto__"]) {
    assert.equal(till.code("bank", "/sale", { ...sale, pay_id: "B", currency_name: name }), -47, name);
  }
  till.ask("bank", "/xreport", { pay_id: "X" });
  assert.deepEqual(endOf(till, "X").data.data["totals"], [
    { kind: "sale", currency: "JPY", count: 3, sum: 4500 },
    { kind: "sale", currency: "KWD", count: 1, sum: 1500 },
  ]);
});

test("bank.operations are listed, and all others are refused with -80", () => {
  const till = new WorldTill({ bank: { operations: ["sale", "check"] } });
  assert.deepEqual(till.ask("bank", "/supported_operations")["data"], { operations: ["sale", "check"] });
  assert.equal(till.code("bank", "/sale", sale), undefined);
  assert.equal(till.code("bank", "/terminals"), -80);
});

test("bank.codes are the codes of ends, and what is left out keeps its code", () => {
  const till = new WorldTill({ bank: { codes: { declined: -51, exhausted: -61 } } });
  for (const [payId, amount, code] of [
    ["A", 1520, -51],
    ["B", 1521, -21],
  ] as const) {
    till.ask("bank", "/sale", { ...sale, pay_id: payId, amount });
    assert.equal(endOf(till, payId).code, code);
  }
  till.ask("bank", "/sale", { ...sale, pay_id: "C" });
  endOf(till, "C");
  till.ask("bank", "/refund", { ...sale, pay_id: "D", amount: 1600, rrn: "000000000003" });
  assert.equal(endOf(till, "D").code, -61);
});

test("qr.systems are listed with their operations, and serve those alone, with a trans of their own or the till's", () => {
  const till = new WorldTill({
    qr: {
      systems: [
        { name: "Ours", operations: ["showqrcode", "check", "refund"], makesTrans: false },
        { name: "Theirs", operations: ["showqrcode"], makesTrans: true },
      ],
    },
  });
  assert.deepEqual(till.ask("qr", "/check_connection")["data"], {
    systems: [
      { name: "Ours", operations: ["showqrcode", "check", "refund"] },
      { name: "Theirs", operations: ["showqrcode"] },
    ],
  });
  const shown = { pay_id: "P", amount: 1000, currency: "392", currency_name: "JPY", pay_system: "Ours" };
  assert.deepEqual(till.ask("qr", "/showqrcode", shown), { status: "success" });
  const asked = { pay_id: "P", trans: "T", pay_system: "Ours" };
  till.ask("qr", "/check", asked);
  assert.deepEqual(till.ask("qr", "/check", asked), { status: "success", data: { rrn: "000000000001" } });
  const back = { ...asked, rrn: "000000000001", amount: 400, currency: "392" };
  assert.equal(till.code("qr", "/refund", back), undefined);
  assert.equal(till.code("qr", "/cancel", back), 1);
  assert.equal(till.code("qr", "/showqrcode", { ...shown, pay_id: "Q", pay_system: "QRPAY" }), 1);
  assert.deepEqual(till.ask("qr", "/showqrcode", { ...shown, pay_id: "Q", pay_system: "Theirs" })["data"], {
    trans: "EMU000000000003",
  });
  assert.equal(till.code("qr", "/check", { pay_id: "Q", trans: "EMU000000000003", pay_system: "Theirs" }), 1);
});

/** A receipt over 10.00. */
const receipt = (id: string, more: object = {}, item: object = {}) => ({
  documentExtID: id,
  items: [{ itemAmount: 1000, ...item }],
  ...more,
});

test("fiscal.operations are listed, and all others are refused with 5; the list itself is always there", () => {
  const till = new WorldTill({ fiscal: { operations: ["sale", "check_status"] } });
  assert.deepEqual(till.ask("fiscal", "/supported_operations")["operations"], ["sale", "check_status"]);
  assert.equal(till.code("fiscal", "/sale", receipt("A")), 0);
  for (const route of ["/refund", "/x_report", "/get_info"]) assert.equal(till.code("fiscal", route, receipt("B")), 5, route);
});

test("fiscal.departments are those that a sale may name", () => {
  const departments = [{ departmentCode: "1", departmentName: "Bakery" }, { departmentCode: "2" }];
  const till = new WorldTill({ fiscal: { departments } });
  const codeOf = (more: object) => till.code("fiscal", "/sale", receipt(JSON.stringify(more), more));
  for (const more of [
    {},
    { departmentCode: "1" },
    { departmentCode: 1, departmentName: "Bakery" },
    { departmentName: "Bakery" },
    { departmentCode: "2" },
  ]) {
    assert.equal(codeOf(more), 0, JSON.stringify(more));
  }
  for (const more of [
    { departmentCode: "3" },
    { departmentCode: "1", departmentName: "Butcher" },
    { departmentCode: "2", departmentName: "Bakery" },
    { departmentName: "Butcher" },
  ]) {
    assert.equal(codeOf(more), 2, JSON.stringify(more));
  }
  assert.equal(new WorldTill().code("fiscal", "/sale", receipt("A", { departmentCode: "3" })), 0);
  assert.equal(
    new WorldTill({ fiscal: { departments: [] } }).code("fiscal", "/sale", receipt("A", { departmentName: "B" })),
    2,
  );
});

test("fiscal.taxes are those that a line may name, by code, by rate or by both; the rate is the shop's", () => {
  const till = new WorldTill({
    fiscal: { taxes: [{ taxCode: "A", taxPrc: 1800 }, { taxCode: "0", taxPrc: 0 }, { taxPrc: 700 }] },
  });
  const codeOf = (...itemTaxes: object[]) =>
    till.code("fiscal", "/sale", receipt(JSON.stringify(itemTaxes), {}, { itemTaxes }));
  for (const tax of [{ taxCode: "A" }, { taxPrc: 1800 }, { taxCode: "A", taxPrc: 1800 }, { taxCode: 0 }, { taxPrc: 700 }, {}]) {
    assert.equal(codeOf(tax), 0, JSON.stringify(tax));
  }
  assert.equal(codeOf(), 0);
  assert.deepEqual(till.ask("fiscal", "/x_report")["saleVatAmounts"], [
    { vatPercent: 0, vatAmount: 0, currency_name: "XTS" },
    { vatPercent: 700, vatAmount: 65, currency_name: "XTS" },
    { vatPercent: 1800, vatAmount: 459, currency_name: "XTS" },
  ]);
  for (const tax of [{ taxPrc: 2000 }, { taxCode: "A", taxPrc: 0 }, { taxCode: "B" }, { taxCode: "B", taxPrc: 700 }]) {
    assert.equal(codeOf(tax), 2, JSON.stringify(tax));
  }
  const without = new WorldTill({ fiscal: { taxes: [] } });
  assert.equal(without.code("fiscal", "/sale", receipt("A")), 0);
  assert.equal(without.code("fiscal", "/sale", receipt("B", {}, { itemTaxes: [{ taxPrc: 1800 }] })), 2);
  assert.deepEqual(without.ask("fiscal", "/x_report")["saleVatAmounts"], []);
});

test("fiscal.payments are the kinds of money that are taken, and extraPayments their other codes", () => {
  const till = new WorldTill({ fiscal: { payments: ["cashless"], extraPayments: { AMEX: "cashless", GIFT: "bonuses" } } });
  const codeOf = (id: string, more: object) => till.code("fiscal", "/sale", receipt(id, more));
  assert.equal(codeOf("A", { payments: { cashlessAmount: 1000, cashAmount: 0 } }), 0);
  assert.equal(codeOf("B", { extraPayments: [{ code: "AMEX", amount: 1000 }] }), 0);
  // A till that says nothing was paid in cash.
  for (const more of [
    {},
    { payments: { cashAmount: 1000 } },
    { payments: { cashlessAmount: 500, creditAmount: 0, prepaymentAmount: 500 } },
    { extraPayments: [{ code: "GIFT", amount: 1000 }] },
    { extraPayments: [{ code: "CARD", amount: 1000 }] },
  ]) {
    assert.equal(codeOf("C", more), 7, JSON.stringify(more));
  }
  assert.equal(till.code("fiscal", "/deposit", { documentExtID: "D", amount: 500 }), 7);
  assert.equal(till.ask("fiscal", "/x_report")["saleSum"], 2000);
});

test("fiscal.drawer is the cash before the first document, and after a reset again; fiscal.currency is in each answer", () => {
  const till = new WorldTill({ fiscal: { drawer: 5000, currency: "JPY" } });
  const cash = () => till.ask("fiscal", "/check_shift")["cash"];
  assert.equal(cash(), 5000);
  assert.equal(till.code("fiscal", "/withdraw", { documentExtID: "W", amount: 5001 }), 4);
  assert.equal(till.code("fiscal", "/withdraw", { documentExtID: "W", amount: 4000 }), 0);
  assert.equal(cash(), 1000);
  assert.equal(till.ask("fiscal", "/sale", receipt("A"))["currency_name"], "JPY");
  assert.equal(till.ask("fiscal", "/check_status", { documentExtID: "A" })["currency_name"], "JPY");
  assert.equal(till.ask("fiscal", "/check_copy", { documentID: 2 })["currency_name"], "JPY");
  assert.equal(till.ask("fiscal", "/x_report")["currency_name"], "JPY");
  assert.match(JSON.stringify(till.ask("fiscal", "/get_info")["fiscalData"]), /"JPY"/);
  till.emulator.reset();
  assert.equal(cash(), 5000);
});

for (const [name, shape] of Object.entries({
  "has next to nothing": {
    bank: { terminals: [], currencies: { JPY: [] }, operations: [] },
    qr: { systems: [] },
    fiscal: { operations: [], departments: [], taxes: [], payments: [], extraPayments: {} },
  },
  "has one terminal, no taxes and a currency of three decimals": {
    bank: { terminals: [{ terminal: 0, merchant: 0 }], currencies: { KWD: ["978", "EUR"] } },
    qr: { systems: [{ name: "QRPAY", operations: ["check", "showqrcode"], makesTrans: false }] },
    fiscal: { taxes: [], departments: [], currency: "KWD", drawer: 2 ** 53 - 1 },
  },
} satisfies Record<string, WorldShape>)) {
  test(`every answer fits its contract in a world that ${name}`, () => {
    const till = new WorldTill(shape);
    for (const row of rows) {
      till.emulator.reset();
      for (const each of row.before ?? []) till.text(row.service, each);
      const { service, route, outcome } = row;
      if (outcome !== undefined) till.emulator.plan.force({ service, route, effect: { outcome } });
      till.text(service, row);
    }
  });
}

test("services of one contract share the world, each with a memory of its own", () => {
  const till = new WorldTill({ fiscal: { drawer: 700 } });
  till.emulator.play("fiscal-2", { contract: "fiscal" });
  till.ask("fiscal", "/withdraw", { documentExtID: "W", amount: 200 });
  const { fiscal, "fiscal-2": other } = till.emulator.services;
  assertMapped([fiscal, other], [500n, 700n], (service) => service?.answer("/check_shift", {})["cash"]);
});

test("readStateFile() takes back a state in the world in which it was made, and in no other", () => {
  const shape = { bank: { terminals: [{ terminal: 7, merchant: 7 }] }, fiscal: { drawer: 900 } };
  const path = join(folder, "state.json");
  const till = new WorldTill(shape);
  till.ask("bank", "/sale", sale);
  till.ask("fiscal", "/sale", receipt("A"));
  writeStateFile(path, till.emulator, "keeper");
  const again = new WorldTill(shape);
  readStateFile(path, again.emulator);
  assert.equal(again.ask("fiscal", "/check_shift")["cash"], 1900);
  assert.equal(writeExact(again.emulator.saved()), writeExact(till.emulator.saved()));
  const message = `Cannot use the state file ${path}: it was made in another world: move it away to start with an empty state, or name another file`;
  for (const other of [{}, { ...shape, fiscal: { drawer: 901 } }]) {
    assert.throws(() => readStateFile(path, new WorldTill(other).emulator), new StateFileError(message));
  }
  writeStateFile(path, new WorldTill().emulator);
  assert.throws(() => readStateFile(path, again.emulator), new StateFileError(message));
  readStateFile(path, new WorldTill({ fiscal: { drawer: 0 } }).emulator);
});

test("worldOf() marks no world that is the built-in one, and each other by what differs", () => {
  assertMapped(
    [{}, { fiscal: { drawer: 0 } }, { bank: { codes: { declined: -20 } } }],
    [undefined, undefined, undefined],
    (shape) => worldOf(shape).mark,
  );
  const marks = [{ fiscal: { drawer: 1 } }, { fiscal: { drawer: 2 } }, { qr: { systems: [] } }].map(
    (shape) => worldOf(shape).mark,
  );
  for (const mark of marks) assert.match(String(mark), /^[0-9a-f]{16}$/);
  assert.equal(new Set(marks).size, marks.length);
  assert.equal(worldOf({ fiscal: { drawer: 1 }, bank: { codes: {} } }).mark, marks[0]);
});
