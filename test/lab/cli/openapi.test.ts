import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { ConfigError } from "../../../src/config/config.ts";
import { UsageError } from "../../../src/core/exit.ts";
import { isObject } from "../../../src/core/json-object.ts";
import { runOpenApi } from "../../../src/lab/cli/openapi.ts";
import { scratchFolder } from "../../support/bridge-process.ts";

const scratch = scratchFolder();
after(() => scratch.remove());

const file = join(scratch.path, "posline.json");
writeFileSync(
  file,
  JSON.stringify({
    lines: { till: { path: "/dev/ttyUSB0" }, bar: { path: "/dev/ttyUSB1" } },
    services: { bank: { line: "till", port: 9001 }, "bank-2": { contract: "bank", line: "bar", port: 9002 } },
    admin: { port: 9003 },
  }),
);

async function run(args: Parameters<typeof runOpenApi>[0], env: Readonly<Record<string, string>> = {}): Promise<string> {
  let text = "";
  const out = (more: string) => {
    text += more;
  };
  assert.equal(await runOpenApi(args, { env, file: join(scratch.path, "none.json"), out }), 0);
  return text;
}

test("posline openapi prints a contract's document without a configuration, and with the port of one that is named", async () => {
  for (const [name, port] of [
    ["fiscal", "8008"],
    ["bank", "8888"],
    ["qr", "8887"],
    ["admin", "8880"],
  ] as const) {
    const document: unknown = JSON.parse(await run({ service: name }));
    assert.ok(isObject(document) && document["openapi"] === "3.1.0", name);
    assert.match(JSON.stringify(document["servers"]), new RegExp(`"default":"${port}"`));
  }
  assert.match(await run({ service: "bank", config: file }), /"default": "9001"/);
  assert.match(await run({ service: "bank" }, { POSLINE_CONFIG: file }), /"default": "9001"/);
  assert.match(await run({ service: "bank-2", config: file }), /"default": "9002"/);
  assert.match(await run({ service: "admin", config: file }), /"default": "9003"/);
});

test("posline openapi refuses no service and an unknown one, and says which there are", async () => {
  for (const [args, message] of [
    [{}, /^No service was given: write posline openapi bank; the names are fiscal, bank, qr, admin, and those of/],
    [{ service: "bnak" }, /^Unknown service "bnak": did you mean "bank"\?$/],
    [{ service: "bank-3" }, /^Unknown service "bank-3": use one of fiscal, bank, qr, admin; a name of the configuration needs/],
    [{ service: "bank-3", config: file }, /^Unknown service "bank-3": use one of fiscal, bank, qr, bank-2, admin;/],
  ] as const) {
    await assert.rejects(run(args), (error: unknown) => error instanceof UsageError && message.test(error.message));
  }
  await assert.rejects(run({ service: "bank", config: join(scratch.path, "none.json") }), ConfigError);
});
