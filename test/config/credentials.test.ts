import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError } from "../../src/config/config.ts";
import { loadConfig } from "../../src/config/load.ts";
import { scratchFolder } from "../support/bridge-process.ts";

async function withCredentials(
  files: Readonly<Record<string, string>>,
  config: object,
  body: (load: () => ReturnType<typeof loadConfig>, folder: string) => Promise<void>,
): Promise<void> {
  const folder = scratchFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder.path, name), text);
  const file = join(folder.path, "posline.json");
  writeFileSync(file, JSON.stringify({ lines: { till: { path: "/dev/ttyUSB0" } }, ...config }));
  const env = { CREDENTIALS_DIRECTORY: folder.path };
  try {
    await body(() => loadConfig({ env, flags: { config: file } }), folder.path);
  } finally {
    folder.remove();
  }
}

const both = { services: { fiscal: { line: "till" }, bank: { line: "till" } } };

test("loadConfig() takes systemd's credentials where no secret is set", async () => {
  await withCredentials({ "merchant-id": "MERCHANT-9\n", "api-key": "KEY-9" }, both, async (load, folder) => {
    const { config, origins } = await load();
    assert.equal(config.services.fiscal?.merchantId, "MERCHANT-9");
    assert.equal(config.services.bank?.apiKey, "KEY-9");
    assert.equal(origins.get("services.fiscal.merchantId"), `file ${join(folder, "merchant-id")}`);
  });
});

test("loadConfig() takes an empty credential, or none, for no secret", async () => {
  await withCredentials({ "merchant-id": "\n" }, both, async (load) => {
    const { config } = await load();
    assert.equal(config.services.fiscal?.merchantId, undefined);
    assert.equal(config.services.bank?.apiKey, undefined);
  });
});

test("loadConfig() leaves a credential aside where the file says another secret, or has no such service", async () => {
  const services = { bank: { line: "till", apiKey: "FROM-FILE" } };
  await withCredentials({ "merchant-id": "MERCHANT-9", "api-key": "KEY-9" }, { services }, async (load) => {
    const { config } = await load();
    assert.equal(config.services.bank?.apiKey, "FROM-FILE");
    assert.equal(config.services.fiscal, undefined);
  });
});

test("loadConfig() refuses a credential that is no such secret, and doesn't show it", async () => {
  await withCredentials({ "api-key": "two words" }, both, async (load) => {
    await assert.rejects(load(), (error) => {
      assert.ok(error instanceof ConfigError);
      assert.match(error.message, /services\.bank\.apiKeyFile/);
      assert.doesNotMatch(error.message, /two words/);
      return true;
    });
  });
});
