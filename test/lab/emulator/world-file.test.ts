import assert from "node:assert/strict";
import { test } from "node:test";
import Schema from "typebox/schema";
import { ConfigError } from "../../../src/config/config.ts";
import { builtInWorld, worldOf } from "../../../src/lab/emulator/world.ts";
import { loadWorld, worldText } from "../../../src/lab/emulator/world-file.ts";
import { worldSchema } from "../../../src/lab/emulator/world-schema.ts";
import { absent, fileOf, folder } from "../../config/loading.ts";
import { rows } from "./conforming.ts";
import { WorldTill } from "./world-till.ts";

/** The problems of a file; none if it is read. */
function problemsOf(content: unknown): readonly string[] {
  try {
    loadWorld(fileOf(content));
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.problems;
  }
  return [];
}

test("worldText() prints the built-in world, which loadWorld() reads back, and which plays every row as without a file", () => {
  const read = loadWorld(fileOf(worldText(builtInWorld)));
  assert.deepEqual(read, builtInWorld);
  assert.equal(read.mark, undefined);
  const [without, within] = [new WorldTill(), new WorldTill({}, { world: read })];
  for (const row of rows) {
    const texts = [without, within].map((till) => {
      till.emulator.reset();
      for (const each of row.before ?? []) till.text(row.service, each);
      return till.text(row.service, row);
    });
    assert.equal(texts[0], texts[1]);
  }
});

test("worldText() prints a shop of one's own with every setting under its comment, in lines of at most 120 columns", () => {
  const world = worldOf({
    bank: { terminals: [{ terminal: 7 }], codes: { declined: -51 } },
    qr: { systems: [] },
    fiscal: { taxes: [{ taxCode: "A", taxPrc: 1800 }], departments: [{ departmentCode: "1" }], extraPayments: {} },
  });
  const text = worldText(world);
  assert.deepEqual(loadWorld(fileOf(text)), world);
  const lines = text.split("\n");
  assert.deepEqual(
    lines.filter((line) => line.length > 120),
    [],
  );
  for (const [index, line] of lines.entries())
    if (/^ {4}"/.test(line)) assert.match(lines[index - 1] ?? "", /^ {4}\/\/ /, line);
});

test("loadWorld() takes comments of both kinds, and what a file leaves out is as in the built-in world", () => {
  const { bank, fiscal, qr } = loadWorld(fileOf('{ // one\n "fiscal": { /* two\n lines */ "drawer": 500 } }'));
  assert.equal(fiscal.drawer, 500);
  assert.deepEqual({ ...fiscal, drawer: 0 }, builtInWorld.fiscal);
  assert.deepEqual([bank, qr], [builtInWorld.bank, builtInWorld.qr]);
  assert.deepEqual(loadWorld(fileOf("{}")), builtInWorld);
  assert.equal(loadWorld(), builtInWorld);
  assert.deepEqual(problemsOf('{ "worldly": "// no comment" }'), ["worldly: unknown key: use one of bank, qr, fiscal"]);
});

const refused = (content: unknown, ...problems: readonly string[]) => ({ content, problems });

for (const { content, problems } of [
  refused('{\n // one\n "bank": {,} }', `line 3, column 11: there is "," where a value belongs`),
  refused(`{ "qr": ${"[".repeat(100)} }`, "line 1, column 72: objects and lists are nested more than 64 deep"),
  refused('{ "qr": {} /* for ever }', "line 1, column 25: the text ends where a comma or } belongs"),
  refused('{ "qr": {},\n "qr": {} }', "qr: set twice, on line 1 and on line 2: keep only one"),
  refused([], "the file: must be an object, not a list"),
  refused({ bnk: {} }, "bnk: unknown key: did you mean bank?"),
  refused({ bank: { currencys: {} } }, "bank.currencys: unknown key: did you mean currencies?"),
  refused(
    { bank: { terminals: [{ terminal: 1, merchnt: 2 }, { merchant: 1 }] } },
    "bank.terminals[0].merchnt: unknown key: did you mean merchant?",
    "bank.terminals[1].terminal: missing: it is the terminal's number",
  ),
  refused(
    { bank: { terminals: [{ terminal: "1" }, { terminal: -1 }, { terminal: 2 ** 60 }, { terminal: 1, mcc: 5999 }] } },
    'bank.terminals[0].terminal: must be a whole number, not the text "1"',
    "bank.terminals[1].terminal: must be from 0 to 9007199254740991, not -1: it is the terminal's number",
    "bank.terminals[2].terminal: must be from 0 to 9007199254740991, not 1152921504606847000: it is the terminal's number",
    "bank.terminals[3].mcc: must be a text, not 5999",
  ),
  refused(
    { bank: { terminals: [{ terminal: 1, merchant: 2 }, { terminal: 1 }, { terminal: 1, merchant: 2 }] } },
    "bank.terminals[2]: terminal 1 with merchant 2 is at bank.terminals[0] already: keep only one",
  ),
  refused({ bank: { currencies: {} } }, "bank.currencies: must not be empty: name at least one currency"),
  refused(
    { bank: { currencies: { EUR: ["978"], EURO: ["978"], USD: ["EUR"] } } },
    "bank.currencies.EURO[0]: 978 is at bank.currencies.EUR[0] already: keep only one",
    "bank.currencies.USD[0]: EUR is at bank.currencies.EUR already: keep only one",
  ),
  refused(
    { bank: { currencies: { "": ["978"] } } },
    'bank.currencies."": not a valid name: it must be 1 to 128 characters without line breaks',
  ),
  refused(
    { bank: { operations: ["/sale", "check", "check"] } },
    'bank.operations[0]: must be "terminals", "sale", "preauth", "confirm", "cancel", "refund", "xreport", "close-shift", "terminate", ' +
      '"abort" or "check", not "/sale"',
  ),
  refused(
    { bank: { operations: ["check", "check"] } },
    "bank.operations[1]: check is at bank.operations[0] already: keep only one",
  ),
  refused(
    { bank: { codes: { declined: 20, reversd: -1 } } },
    "bank.codes.declined: must be from -2147483648 to -1, not 20: the bank's codes of errors are negative, and have 32 bits",
    "bank.codes.reversd: unknown key: did you mean reversed?",
  ),
  refused(
    { qr: { systems: [{ name: "A" }] } },
    "qr.systems[0].operations: missing: a list of its routes, without slash",
    "qr.systems[0].makesTrans: missing: true if /showqrcode returns a trans",
  ),
  refused(
    {
      qr: {
        systems: [
          { name: "A", operations: ["check", "check"], makesTrans: true },
          { name: "A", operations: [], makesTrans: false },
        ],
      },
    },
    "qr.systems[1]: A is at qr.systems[0] already: keep only one",
    "qr.systems[0].operations[1]: check is at qr.systems[0].operations[0] already: keep only one",
  ),
  refused(
    { fiscal: { taxes: "all", departments: 1 } },
    'fiscal.taxes: must be "any", not "all": "any" takes all there are, and a list only what is in it',
    "fiscal.departments: must be a text or a list, not 1",
  ),
  refused(
    { fiscal: { taxes: [{ taxCode: "A" }, { taxPrc: 18000 }, { taxPrc: 18.5 }] } },
    "fiscal.taxes[0].taxPrc: missing: it is percent x100, so 1800 is 18 %",
    "fiscal.taxes[1].taxPrc: must be from 0 to 10000, not 18000: it is percent x100, so 1800 is 18 %",
    "fiscal.taxes[2].taxPrc: must be a whole number, not 18.5",
  ),
  refused(
    { fiscal: { taxes: [{ taxCode: "A", taxPrc: 0 }, { taxPrc: 5 }, { taxPrc: 5 }, { taxCode: "A", taxPrc: 1 }] } },
    "fiscal.taxes[3]: A is at fiscal.taxes[0] already: keep only one",
  ),
  refused(
    { fiscal: { departments: [{ departmentCode: "1" }, { departmentCode: "1" }], payments: ["cash", "cash"] } },
    "fiscal.payments[1]: cash is at fiscal.payments[0] already: keep only one",
    "fiscal.departments[1]: 1 is at fiscal.departments[0] already: keep only one",
  ),
  refused(
    { fiscal: { payments: ["coins"], extraPayments: { QR: "card" }, drawer: -1, currency: "" } },
    'fiscal.payments[0]: must be "cash", "cashless", "credit", "bonuses" or "prepayment", not "coins"',
    'fiscal.extraPayments.QR: must be "cash", "cashless", "credit", "bonuses" or "prepayment", not "card"',
    "fiscal.drawer: must be from 0 to 9007199254740991, not -1: it is an amount in minor units",
    "fiscal.currency: must not be empty: it must be 1 to 128 characters without line breaks",
  ),
]) {
  const text = typeof content === "string" ? content : JSON.stringify(content);
  test(`loadWorld() refuses ${text.slice(0, 90)} with the path of each mistake`, () => {
    assert.deepEqual(problemsOf(content), problems);
    if (typeof content === "string") return;
    // What is there twice is a rule beside the schema.
    const beside = problems.every((problem) => problem.endsWith("already: keep only one"));
    assert.equal(Schema.Check(worldSchema, content), beside);
  });
}

test("loadWorld() says which file can't be read, and why", () => {
  for (const [path, message] of [
    [absent, `Cannot use the world of ${absent}: there is no such file: create it or correct the path`],
    [folder, `Cannot use the world of ${folder}: it is a folder: name a file`],
  ] as const) {
    assert.throws(() => loadWorld(path), { name: "ConfigError", message, exitCode: 78 });
  }
  const [large] = problemsOf(" ".repeat(2 ** 20 + 1));
  assert.equal(large, "the file is larger than 1048576 bytes, which is the limit: name a world file");
});
