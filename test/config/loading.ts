import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { ConfigError } from "../../src/config/config.ts";
import { type Flags, type Loaded, loadConfig } from "../../src/config/load.ts";

/** Where this test file keeps its files, until it has run. */
export const folder = mkdtempSync(join(tmpdir(), "posline-config-"));
after(() => rmSync(folder, { recursive: true }));
let count = 0;

/** Writes a file and answers its path. */
export function fileOf(content: unknown): string {
  const path = join(folder, `${count++}.json`);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

/** A default file that isn't there. */
export const absent = join(folder, "absent", "posline.json");

/** Loads what a file would hold; without content there is no file. */
export function load(content: unknown, env: NodeJS.ProcessEnv = {}, flags: Flags = {}): Promise<Loaded> {
  return loadConfig({ file: content === undefined ? absent : fileOf(content), env, flags });
}

/** The problems that loading tells; none when it succeeds. */
export async function problemsOf(content: unknown, env: NodeJS.ProcessEnv = {}, flags: Flags = {}): Promise<readonly string[]> {
  try {
    await load(content, env, flags);
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.problems;
  }
  return [];
}

/** One line, two services. */
export const plain = {
  lines: { till: { path: "/dev/ttyUSB0", baudRate: 9_600 } },
  services: { fiscal: { line: "till", merchantId: "M" }, bank: { line: "till" } },
};
/** Two lines. */
export const two = {
  lines: { till: { path: "/dev/ttyUSB0" }, bar: { path: "/dev/ttyUSB1" } },
  services: { fiscal: { line: "till" }, bank: { line: "bar" } },
};
