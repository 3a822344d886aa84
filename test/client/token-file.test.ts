import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { newToken } from "../../src/client/token.ts";
import { TokenFile, TokenFileChanged } from "../../src/client/token-file.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { scratchFolder } from "../support/bridge-process.ts";

const token = newToken(contracts.bank, "/sale", { amount: 1, currency_name: "EUR" });

/** A second process: takes the guard over after a second, holds it for five more, writes the file, and gives it back. */
const other = `
  const { renameSync, rmSync, writeFileSync } = require("node:fs");
  const [, file] = process.argv;
  const own = file + ".own";
  writeFileSync(own, "");
  setTimeout(() => renameSync(own, file + ".saving"), 1_000);
  setTimeout(() => {
    writeFileSync(file, "{}");
    rmSync(file + ".saving", { force: true });
  }, 6_000);
  console.log("ready");
`;

test("TokenFile.save() leaves a guard to the process that took over a killed one's meanwhile, and sees what it wrote", async (t) => {
  const folder = scratchFolder();
  const path = join(folder.path, "token");
  writeFileSync(`${path}.saving`, "");
  const process = spawn("node", ["-e", other, path], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(async () => {
    if (process.exitCode === null) await once(process, "exit");
  });
  await once(process.stdout, "data");
  assert.throws(() => TokenFile.forNew(path).save(token), TokenFileChanged);
});

test("TokenFile.save() takes over the guard of a killed process, and leaves nothing beside the file", () => {
  const folder = scratchFolder();
  const path = join(folder.path, "token");
  writeFileSync(`${path}.saving`, "");
  TokenFile.forNew(path).save(token);
  assert.ok(existsSync(path));
  assert.deepEqual(readdirSync(folder.path), ["token"]);
});
