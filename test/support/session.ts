import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { PageKey } from "../../src/http/page-key.ts";
import { ask } from "./bridge-process.ts";

/** The key of a running posline, read as root reads it; undefined where a change needs none. */
export async function keyOf(admin: number): Promise<PageKey | undefined> {
  const { keyFile } = JSON.parse((await ask(admin, "GET", "/page/paths.json", "")).text);
  return keyFile === undefined ? undefined : new PageKey(readFileSync(keyFile, "utf8"));
}

/** What a request carries that may change something. */
export async function sessionOf(admin: number): Promise<{ readonly Authorization: string }> {
  const key = await keyOf(admin);
  assert.ok(key !== undefined, "this posline asks for no session");
  return { Authorization: `Bearer ${key.session()}` };
}
