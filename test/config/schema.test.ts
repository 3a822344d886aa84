import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import Schema from "typebox/schema";
import { check, type Node } from "../../src/config/check.ts";
import { fileSchema } from "../../src/config/schema.ts";

function problemsOf(value: unknown): string[] {
  const problems: string[] = [];
  check(fileSchema, value, "", problems);
  return problems;
}

/** The example of the design and the README. */
const readme = {
  lines: { till: { path: "/dev/serial/by-id/...", baudRate: 115_200 } },
  services: {
    fiscal: { line: "till", port: 8008, merchantId: "..." },
    bank: { line: "till", port: 8888, apiKey: "..." },
    qr: { line: "till", port: 8887 },
  },
  admin: { port: 8880 },
};

/** A file that sets every key there is. */
const service = {
  line: "till",
  host: "::1",
  upstream: "https://terminal.lan:8443/services/v1",
  bodyBytesMax: 4_096,
  check: "contract",
  faultStatus: 200,
  allowOrigins: ["https://till.shop", "http://localhost:3000", "chrome-extension://abcdef"],
  allowHosts: ["till-7.lan", "10.0.0.7", "fe80::1"],
};
const whole = {
  $schema: "posline.schema.json",
  lines: {
    till: {
      path: "/dev/ttyUSB0",
      baudRate: 9_600,
      dataBits: 7,
      parity: "even",
      stopBits: 2,
      flowControl: "rtscts",
      crc16: "umts",
      recovery: "quiet",
      lateReplyMs: 5_000,
      queueCallsMax: 3,
      pauseMs: 40,
      queueWaitMs: 500,
      hupcl: false,
      dtr: true,
      rts: false,
    },
    "Bar_2-x": { path: "/dev/ttyACM0" },
  },
  services: {
    fiscal: { ...service, port: 1, replyTimeoutMs: { "/sale": 9_000 }, merchantId: "M 1", merchantIdFile: "m" },
    bank: { ...service, port: 2, replyTimeoutMs: 9_000, apiKey: "k", apiKeyFile: "/k" },
    qr: { ...service, port: 3, replyTimeoutMs: { "/check": 9_000 } },
  },
  admin: {
    host: "localhost",
    port: 65_535,
    tokenFile: "admin-token",
    allowOrigins: ["https://wall.example"],
    allowHosts: ["box.lan"],
  },
  journal: { folder: "/var/lib/posline", bytes: 1_048_576, onFailure: "refuse" },
  log: { level: "debug" },
};

test("fileSchema accepts the README's example, its own examples and a file that sets every key", () => {
  for (const file of [readme, whole, ...fileSchema.examples]) {
    assert.deepEqual(problemsOf(file), []);
    assert.equal(Schema.Check(fileSchema, file), true);
  }
});

/** Every schema within a schema, with its path. */
function* nodes(node: unknown, path = "#"): Generator<[string, Record<string, unknown>]> {
  if (typeof node !== "object" || node === null) return;
  const record = Object.fromEntries(Object.entries(node));
  yield [path, record];
  for (const key of ["properties", "patternProperties"]) {
    for (const [name, inner] of Object.entries(record[key] ?? {})) yield* nodes(inner, `${path}/${key}/${name}`);
  }
  for (const key of ["additionalProperties", "items"]) yield* nodes(record[key], `${path}/${key}`);
  if (Array.isArray(record["anyOf"]))
    for (const [index, arm] of record["anyOf"].entries()) yield* nodes(arm, `${path}/anyOf/${index}`);
}

test("fileSchema closes every object, and bounds every number, text and list", () => {
  for (const [path, node] of nodes(fileSchema)) {
    if (node["type"] === "object") assert.notEqual(node["additionalProperties"], undefined, path);
    if (node["type"] === "integer") assert.ok(typeof node["minimum"] === "number" && typeof node["maximum"] === "number", path);
    if (node["type"] === "array") assert.equal(typeof node["maxItems"], "number", path);
  }
});

test("fileSchema describes every key and gives defaults and examples that it accepts itself", () => {
  for (const [path, node] of nodes(fileSchema)) {
    if (!/\/(additionalProperties|items)$/.test(path)) assert.equal(typeof node["description"], "string", path);
    const given = [
      ...(Object.hasOwn(node, "default") ? [node["default"]] : []),
      ...(Array.isArray(node["examples"]) ? node["examples"] : []),
    ];
    for (const value of given) {
      const problems: string[] = [];
      check(node as Node, value, path, problems);
      assert.deepEqual(problems, []);
    }
  }
});

/** The path of every object within a value. */
function objectPaths(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  return [path, ...Object.entries(value).flatMap(([key, inner]) => objectPaths(inner, [...path, key]))];
}

/** Every path within a value, its own included. */
function allPaths(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, inner]) => allPaths(inner, [...path, key]))];
}

/** The value with one place in it replaced. */
function replaced(value: unknown, path: readonly string[], by: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return by;
  if (Array.isArray(value)) return value.map((inner, index) => (String(index) === key ? replaced(inner, rest, by) : inner));
  const record = Object.fromEntries(Object.entries(value ?? {}));
  return { ...record, [key]: replaced(record[key], rest, by) };
}

test("check() refuses any unknown key anywhere, with its path", () => {
  const places = objectPaths(whole).filter((path) => !["lines", "services"].includes(path.join()));
  const key = fc.stringMatching(/^[a-z]{1,9}$/);
  fc.assert(
    fc.property(fc.constantFrom(...places), key, fc.jsonValue(), (path, name, value) => {
      const file = replaced(whole, [...path, `x${name}`], value);
      const at = [...path, `x${name}`].join(".");
      const problems = problemsOf(file);
      assert.equal(problems.length, 1);
      assert.ok(problems[0]?.startsWith(`${at}: unknown `), problems[0]);
      assert.equal(Schema.Check(fileSchema, file), false);
    }),
  );
});

test("check() and TypeBox's own validator agree on files with one place changed at random", () => {
  const likely = fc.constantFrom<unknown[]>(
    0,
    1,
    1.5,
    200,
    3_000,
    3_001,
    65_536,
    "",
    "till",
    "none",
    "*",
    "null",
    "/dev/x",
    "http://A",
    "http://a:1/b",
    "a:1",
    "::",
    true,
    null,
  );
  fc.assert(
    fc.property(fc.constantFrom(...allPaths(whole)), fc.oneof(likely, fc.jsonValue({ maxDepth: 2 })), (path, value) => {
      const file = replaced(whole, path, value);
      assert.equal(problemsOf(file).length === 0, Schema.Check(fileSchema, file));
    }),
    { numRuns: 1_500 },
  );
});

test("fileSchema refuses origins that aren't one, and host names with more than a name", () => {
  for (const origin of [
    ...["*", "null", "https://till.shop/", "https://till.shop/pay", "till.shop", "https://", "https://a@b"],
    "https://*.shop",
  ]) {
    assert.equal(problemsOf(replaced(whole, ["services", "qr", "allowOrigins"], [origin])).length, 1, origin);
  }
  for (const host of ["*", "till:8080", "http://till", "till/", "Till", "", "a b", "10.0.0.7:80"]) {
    assert.equal(problemsOf(replaced(whole, ["services", "qr", "allowHosts"], [host])).length, 1, host);
  }
});

test("fileSchema refuses upstreams that are no base URL, or hold credentials", () => {
  const take = (upstream: string) => problemsOf(replaced(whole, ["services", "qr", "upstream"], upstream)).length === 0;
  for (const upstream of [
    "http://127.0.0.1:8888",
    "http://localhost",
    "https://terminal.lan/",
    "http://[::1]:8008/a/b",
    "http://10.0.0.7:80/Services/%20x",
  ]) {
    assert.equal(take(upstream), true, upstream);
  }
  for (const upstream of [
    ...["127.0.0.1:8888", "ftp://a", "http://", "http://user:secret@a", "http://user@a", "http://a?key=1", "http://a/#x"],
    ...["http://A", "http://a:b", "http://a/ b", "http://a\n", ""],
  ]) {
    assert.equal(take(upstream), false, upstream);
  }
});

test("what a URL holds before its host is in no problem's text", () => {
  for (const upstream of [
    "http://till:GEHEIM@terminal.lan",
    "https://GEHEIM@a",
    "till:GEHEIM@terminal.lan",
    "http://till:GE@HEIM@a",
  ]) {
    for (const [key, value] of [
      ["upstream", upstream],
      ["allowOrigins", [upstream]],
      ["host", upstream],
    ] as const) {
      const problems = problemsOf(replaced(whole, ["services", "qr", key], value));
      assert.equal(problems.length, 1, upstream);
      assert.doesNotMatch(problems.join(), /GE|HEIM|till:/);
      assert.match(problems.join(), /"(?:https?:\/\/)?\*\*\*\*@(?:a|terminal\.lan)" is not valid/);
    }
  }
});
