import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { maskPayload, maskUnframed } from "../../src/capture/mask.ts";
import { fieldNames } from "../../src/capture/shown-fields.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { schemas } from "../../src/contract/schema.ts";
import { readReply } from "../../src/envelope/reply.ts";
import { readFormLine, readTextLine } from "../../src/envelope/request.ts";
import { shapeOf, walk } from "../contract/shape.ts";
import { secretsIn, seededSecrets } from "../support/secrets.ts";

const secrets = [seededSecrets.merchantId];

const mask = (text: string | Buffer) => maskPayload([Buffer.from(text)], secrets);
const masked = (text: string) => mask(text).toString("utf8");
const parsed = (json: Buffer | string): unknown => JSON.parse(json.toString());

/** A form as a till writes it: Base64 as it is, or with its `+ / =` escaped, or every character of it. */
const escapings = [
  (text: string) => text,
  (text: string) => text.replaceAll(/[+/=]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`),
  (text: string) => text.replaceAll(/./g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`),
];

const formOf = (json: string, escaped: (text: string) => string, command = "/sale") =>
  `command=${command}&data=${escaped(Buffer.from(json).toString("base64"))}&sign=${escaped(seededSecrets.sign)}`;

/** JSON with fields of the contracts and others, in which a seeded secret may stand anywhere, within other text too. */
const seeded = fc.oneof(
  ...Object.values(seededSecrets).map((secret) =>
    fc.tuple(fc.string({ maxLength: 4 }), fc.string({ maxLength: 4 })).map(([before, behind]) => before + secret + behind),
  ),
  fc.constant(4539578763621486),
);
const { value: anyJson } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    seeded,
    fc.jsonValue({ maxDepth: 1 }),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.oneof(fc.constantFrom(...fieldNames), seeded.map(String), fc.string()), tie("value"), { maxKeys: 4 }),
  ),
}));
const body = fc.dictionary(fc.oneof(fc.constantFrom(...fieldNames), seeded.map(String)), anyJson, { maxKeys: 5 });
const written = fc
  .tuple(body, fc.constantFrom(undefined, 1, "\t"))
  .map(([value, indent]) => JSON.stringify(value, null, indent));

/** The same JSON value but for its texts, numbers and names: what kind of value stands where. */
function kinds(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(kinds);
  return typeof value === "object" && value !== null ? Object.keys(value).length > 0 : typeof value;
}

test("maskPayload() keeps the length of a reply, its JSON and the kind of each value, and shows no secret", () => {
  fc.assert(
    fc.property(written, (json) => {
      const out = mask(json);
      assert.equal(out.length, Buffer.byteLength(json));
      assert.deepEqual(kinds(parsed(out)), kinds(parsed(json)));
      assert.deepEqual(secretsIn(out), []);
    }),
    { numRuns: 1_000 },
  );
});

test("maskPayload() keeps the length of a request with a route in front, its route and its JSON, and shows no secret", () => {
  fc.assert(
    fc.property(written, fc.constantFrom("/sale", ":8887/showqrcode", ":9001/check"), (json, head) => {
      const request = `${head}\n${json}`;
      const out = mask(request);
      assert.equal(out.length, Buffer.byteLength(request));
      const read = readTextLine(out);
      assert.equal(`${read?.prefix}${read?.route}`, head);
      parsed(Buffer.concat(read?.body ?? []));
      assert.deepEqual(secretsIn(out), []);
    }),
    { numRuns: 500 },
  );
});

test("maskPayload() keeps the length of a form in each escaping, what its Base64 holds stays JSON, and shows no secret", () => {
  fc.assert(
    fc.property(written, fc.nat(2), fc.nat(2), (json, escaping, alignment) => {
      const text = `${" ".repeat(alignment)}${json}`;
      const form = formOf(text, escapings[escaping] ?? String);
      const out = mask(form);
      assert.equal(out.length, form.length);
      const read = readFormLine(out);
      assert.equal(read?.route, "/sale");
      const data = decodeURIComponent(read?.body[1]?.toString() ?? "");
      const content = Buffer.from(data, "base64");
      assert.equal(content.length, Buffer.byteLength(text));
      parsed(content);
      assert.deepEqual(secretsIn(out), []);
      assert.deepEqual(secretsIn(content), []);
    }),
    { numRuns: 500 },
  );
});

test("maskPayload() takes any bytes, and what a reader can't parse it can't parse for the same reason afterwards", () => {
  const spoiled = fc
    .tuple(written, fc.nat(), fc.constantFrom("", "}", '"', "\\", "\u0001", ",", "1", "é", "tru"))
    .map(([json, at, by]) => json.slice(0, at % (json.length + 1)) + by + json.slice((at % (json.length + 1)) + 1));
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array(),
        spoiled.map((text) => Buffer.from(text)),
      ),
      (bytes) => {
        const text = Buffer.from(bytes);
        const before = readReply([text]);
        const out = maskPayload([text], secrets);
        assert.equal(out.length, text.length);
        const behind = readReply([out]);
        if (typeof before === "string" || typeof behind === "string") assert.equal(behind, before);
        else assert.equal(behind.status === "success", before.status === "success");
      },
    ),
    { numRuns: 2_000 },
  );
});

test("maskPayload() shows what says how it went, and nothing of the money", () => {
  assert.equal(
    masked('{"status":"error","code":-20,"message":"ORDER-7731-seeded: 4539578763621486 declined","data":{"amount":-150.5}}'),
    '{"status":"error","code":-20,"message":"xxxxxxxxxxxxxxxxxx xxxxxxxxxxxxxxxx declined","data":{"amount":-999.9}}',
  );
  assert.equal(masked('{"status":"4539578763621486","code":45395}'), '{"status":"xxxxxxxxxxxxxxxx","code":99999}');
});

test("maskPayload() keeps the answers to probes, by which a line is proven clean", () => {
  const bank = { status: "success", data: { operations: ["sale", "close-shift", "seeded"] } };
  const answer = parsed(masked(JSON.stringify(bank)));
  assert.deepEqual(answer, { status: "success", data: { operations: ["sale", "close-shift", "xxxxxx"] } });
  const systems = { status: "success", data: { systems: [{ name: "A", operations: ["showqrcode"] }] } };
  const read = readReply([mask(JSON.stringify(systems))]);
  assert.ok(typeof read !== "string" && contracts.qr.probe.isAnswer(read.json));
});

test("maskPayload() reads names and texts as a parser does, with their escapes", () => {
  assert.equal(masked('{"st\\u0061tus":"succ\\u0065ss","p\\u0061n":"1"}'), '{"st\\u0061tus":"succ\\u0065ss","xxxxxxxx":"x"}');
});

test("maskPayload() shows no word of a message that is, or may be, somebody's", () => {
  const message = (text: string) => (parsed(masked(JSON.stringify({ message: text }))) as { message: string }).message;
  assert.equal(message("Нет бумаги: замените"), "Нет бумаги: замените");
  assert.equal(message(`shop ${seededSecrets.merchantId.slice(0, 8)}`), "shop MERCHANT");
  assert.equal(message(`shop ${seededSecrets.merchantId} is closed`).includes("seeded"), false);
  assert.equal(message("token eyJhIjoxfQ is bad"), "token xxxxxxxxxx is bad");
  assert.equal(message("pay_id is missing, ask /check"), "pay_id is missing, ask /check");
  assert.equal(message("4539 5787 6362 1486"), "xxxx xxxx xxxx xxxx");
});

test("maskPayload() shows a code only where it is the field's whole value, however broken the JSON is", () => {
  assert.equal(masked('{"code":""4539 5787 6362 1486}'), '{"code":""9999 9999 9999 9999}');
  assert.equal(masked('{"code": 4539 5787 6362 1486}'), '{"code": 9999 9999 9999 9999}');
  assert.equal(
    masked('{"code":[4539,5787],"docStatus" : 2 ,"printError":1'),
    '{"code":[9999,9999],"docStatus" : 2 ,"printError":1',
  );
  const deep = `${'{"code":['.repeat(70)}{"code":4539}`;
  assert.equal(masked(deep).includes("4539"), false);
});

test("maskPayload() masks an unknown route, an unknown command and what is in no pair of the form", () => {
  assert.equal(masked("/sael\n{}"), "/xxxx\n{}");
  assert.equal(masked("command=refund&token=abc&sign=YWJj%3D&data=!abc"), "command=refund&xxxxx=xxx&sign=xxxx%3D&data=!xxx");
});

test("maskUnframed() leaves control characters and punctuation", () => {
  assert.deepEqual(maskUnframed(Buffer.from("AT+4\r\n\u0000")), Buffer.from("xx+x\r\n\u0000"));
});

test("fieldNames has every field of the contracts' schemas", () => {
  const missing = new Set<string>();
  for (const routes of Object.values(schemas)) {
    for (const { request, reply } of Object.values(routes)) {
      for (const schema of [request, reply]) {
        if (schema === undefined) continue;
        for (const [path] of walk(shapeOf(schema))) {
          const name = path.split(".").at(-1)?.replaceAll("[]", "") ?? "";
          if (name !== "" && !fieldNames.has(name)) missing.add(name);
        }
      }
    }
  }
  assert.deepEqual([...missing], []);
});
