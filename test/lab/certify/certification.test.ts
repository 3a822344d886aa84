import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { lineDefaults } from "../../../src/config/limits.ts";
import { contracts } from "../../../src/contract/contracts.ts";
import type { Reply } from "../../../src/core/call.ts";
import { memoryTransport } from "../../../src/device/memory-transport.ts";
import { certify, checks } from "../../../src/lab/certify/certification.ts";
import { assertMapped } from "../../support/assert-mapped.ts";
import { askedServices, certified, emulatedTerminal, quickPace } from "./emulated-terminal.ts";

const contractText = (service: string) =>
  readFileSync(new URL(`../../vectors/contracts/${service}.md`, import.meta.url), "utf8");

test("checks quote their contract word for word, and say where", () => {
  for (const { name, service, rule } of checks) {
    assert.ok(contractText(service).includes(rule.says), `${name}: ${rule.says}`);
    const [file, section] = rule.from.split(", ");
    assert.equal(file, `${service}.md`, name);
    assert.match(contractText(service), new RegExp(`^#+ ${section}|\\b${section}\\b`, "m"), name);
  }
});

test("checks have names of their own, which begin with their service", () => {
  const names = checks.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const { name, service } of checks) assert.ok(name.startsWith(`${service}-`), name);
});

/** Waits of a terminal that is expected to say nothing. */
const shortPace = { ...quickPace, presenceMs: 60, answerMsMax: 60, cutMs: 60, idleMs: 20 };

test("certify() calls everything not tested with nothing connected", async () => {
  const { near } = memoryTransport(0);
  const judged = await certified(near, { pace: shortPace, sale: { amount: 100, currency: "EUR" } });
  assert.deepEqual([...new Set(judged.map(({ verdict }) => verdict))], ["not tested"]);
  assert.equal(judged.length, checks.length);
  assert.match(judged[0]?.why ?? "", /^Nothing was answered within/);
});

test("certify() asks fiscal nothing without the merchant's id, and says which flag it needs", async () => {
  const { near } = memoryTransport(0);
  let opened = 0;
  const judged = await certify({
    config: { ...lineDefaults, path: "emulated:" },
    open: (handler) => {
      opened++;
      return near(handler);
    },
    services: [{ contract: contracts.fiscal }],
    checks: checks.filter(({ sells }) => sells !== true),
    pace: shortPace,
    judged: () => {},
  });
  assert.equal(opened, 1);
  assert.ok(judged.length > 0);
  for (const { name, verdict, why, moments } of judged) {
    assert.deepEqual([verdict, moments.length], ["not tested", 0], name);
    assert.match(why, /--merchant-id-file/);
  }
});

const named = (...names: readonly string[]) => checks.filter(({ name }) => names.includes(name));

test("certify() calls what follows not tested, and nothing failed, once the terminal answers nothing any more", async (t) => {
  let asked = 0;
  const silent: Promise<Reply> = new Promise(() => {});
  const terminal = emulatedTerminal({ answers: (call, answer) => (++asked > 5 ? silent : answer(call)) });
  t.after(() => terminal.stop());
  const some = named("bank-answers", "bank-unknown-key", "bank-pairs", "bank-json");
  const judged = await certified(terminal.open, { services: ["bank"], checks: some, pace: { ...quickPace, answerMsMax: 200 } });
  assertMapped(
    judged,
    ["bank-answers passed", "bank-unknown-key passed", "bank-pairs not tested", "bank-json not tested"],
    ({ name, verdict }) => `${name} ${verdict}`,
  );
  assert.match(
    judged.at(-1)?.why ?? "",
    /^Asked \/terminals, the terminal said nothing within 0\.2 s, and answers nothing any more$/,
  );
});

test("certify() calls what follows not tested once the line is lost", async () => {
  const { near, unplug } = memoryTransport(0);
  const judged = await certify({
    config: { ...lineDefaults, path: "emulated:" },
    open: near,
    services: askedServices(["bank"]),
    checks: named("bank-answers", "bank-pairs"),
    pace: quickPace,
    begins: () => setTimeout(() => unplug(10_000), 20),
    judged: () => {},
  });
  assertMapped(
    judged,
    Array(2).fill("not tested: The line was lost: the line in memory was unplugged"),
    ({ verdict, why }) => `${verdict}: ${why}`,
  );
});

test("certify() takes the error of another service for no answer of the one it asks", async () => {
  const refusal = Buffer.from('{"status":"error","code":-80,"message":"no such route"}');
  const terminal = emulatedTerminal({ answers: async (call, answer) => ({ ...(await answer(call)), payload: [refusal] }) });
  try {
    const judged = await certified(terminal.open, { services: ["qr"] });
    assert.deepEqual([...new Set(judged.map(({ verdict }) => verdict))], ["not tested"]);
    assert.match(judged[0]?.why ?? "", /an error \(code -80\): qr isn't there/);
  } finally {
    await terminal.stop();
  }
});

test("certify() shows neither the merchant's id nor a sign in a time line, and masks card numbers", async (t) => {
  const card = "4111111111111111";
  const terminal = emulatedTerminal({
    answers: async (call, answer) => {
      const reply = await answer(call);
      const text = Buffer.concat(reply.payload).toString().replace("{", `{"card":"${card}",`);
      return { ...reply, payload: [Buffer.from(text)] };
    },
  });
  t.after(() => terminal.stop());
  const judged = await certified(terminal.open, { services: ["fiscal"], checks: named("fiscal-answers", "fiscal-wrong-sign") });
  const texts = judged.flatMap(({ moments }) => moments.map(({ text }) => text)).join("\n");
  assert.match(texts, /411111\*{6}1111/);
  for (const secret of [card, "MERCHANT-1", "sign="]) assert.ok(!texts.includes(secret), secret);
});

test("certify() says of one check alone that a sale had no answer, and calls others that judge that sale not tested", async (t) => {
  const terminal = emulatedTerminal({ hears: (bytes) => (bytes.includes("/sale") ? Buffer.alloc(0) : bytes) });
  t.after(() => terminal.stop());
  const judged = await certified(terminal.open, {
    services: ["bank"],
    checks: named("bank-sale", "bank-spelled", "bank-remembered"),
    sale: { amount: 100, currency: "EUR" },
    pace: { ...quickPace, answerMsMax: 300 },
  });
  assertMapped(
    judged,
    ["bank-sale failed", "bank-spelled not tested", "bank-remembered not tested"],
    ({ name, verdict }) => `${name} ${verdict}`,
  );
  assert.match(judged[1]?.why ?? "", /^There is nothing to judge: Asked \/sale /);
});

const selling = { sale: { amount: 100, currency: "EUR" } } as const;

test("certify() takes a sale for refused only if that is proven, and names an end that its status denies", async () => {
  const error = (code: number) => `{"status":"error","code":${code},"message":"no"}`;
  const rows: readonly (readonly [texts: Readonly<Record<string, string>>, found: RegExp, check?: string])[] = [
    [{ "/sale": error(-29) }, /^not tested: It refused the sale \(code -29\)$/],
    [{ "/sale": error(-16), "/check": error(-15) }, /^not tested: It refused the sale \(code -16\)$/],
    [
      { "/sale": error(-3), "/check": error(-15) },
      /^not tested: The sale of key .* had not ended after \d+ questions: look at/,
    ],
    [
      { "/check": '{"status":"error","code":-1,"data":{"status":"APPROVED"}}' },
      /^failed: Asked \/check .*APPROVED with status error$/,
      "bank-results",
    ],
  ];
  const found = rows.map(async ([texts, expected, check = "bank-sale"]) => {
    const asked: string[] = [];
    const terminal = emulatedTerminal({
      answers: async (call, answer) => {
        asked.push(call.route);
        const text = texts[call.route];
        return text === undefined ? answer(call) : { ...(await answer(call)), payload: [Buffer.from(text)] };
      },
    });
    const pace = { ...quickPace, followMs: 1_500 };
    const judged = await certified(terminal.open, { services: ["bank"], checks: named(check), pace, ...selling });
    await terminal.stop();
    assert.match(judged.map(({ verdict, why }) => `${verdict}: ${why}`).join("\n"), expected);
    assert.equal(asked.filter((route) => route === "/sale").length, 1);
  });
  await Promise.all(found);
});

test("certify() has no copy printed of a receipt that lacks its print", async () => {
  const asked: string[] = [];
  const terminal = emulatedTerminal({
    answers: async (call, answer) => {
      asked.push(call.route);
      const reply = await answer(call);
      const text = Buffer.concat(reply.payload).toString().replace('"docStatus":1', '"docStatus":1,"printError":1');
      return { ...reply, payload: [Buffer.from(text)] };
    },
  });
  const checks = named("fiscal-check-status");
  const judged = await certified(terminal.open, { services: ["fiscal"], checks, ...selling });
  await terminal.stop();
  assertMapped(judged, ["passed: The receipt ended with status success"], ({ verdict, why }) => `${verdict}: ${why}`);
  assert.deepEqual(asked, ["/supported_operations", "/sale", "/check_status"]);
});
