import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { faultReasons } from "../../src/core/fault.ts";

/**
 * The page's words, and what it weighs.
 *
 * Tests src/page/texts.ts, src/page/en.json, src/page/de.json, src/page/index.html.
 */

const source = fileURLToPath(new URL("../../src/page/", import.meta.url));
const built = fileURLToPath(new URL("../../dist/page/", import.meta.url));
const textsOf = (language: string): Record<string, string> =>
  JSON.parse(readFileSync(join(source, `${language}.json`), "utf8"));

const placesIn = (text = "") => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).sort();

test("de.json has the texts of en.json, in its order, with the same places to fill in", () => {
  const [en, de] = [textsOf("en"), textsOf("de")];
  assert.deepEqual(Object.keys(de), Object.keys(en));
  for (const [key, text] of Object.entries(en)) assert.deepEqual(placesIn(de[key]), placesIn(text), key);
});

test("every text is used, and every name in the HTML and of a reason is one that there is", () => {
  const en = textsOf("en");
  const html = readFileSync(join(source, "index.html"), "utf8");
  const named = [...html.matchAll(/data-(?:text|label)="([^"]+)"/g)].map(([, key = ""]) => key);
  for (const key of named) assert.ok(Object.hasOwn(en, key), key);
  const scripts = readdirSync(source)
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(source, name), "utf8"))
    .join("\n");
  for (const key of Object.keys(en)) {
    const group = key.slice(0, key.indexOf(".") + 1);
    const isMade = group !== "" && scripts.includes(`\`${group}\${`);
    assert.ok(named.includes(key) || scripts.includes(`"${key}"`) || isMade, `${key} is used nowhere`);
    if (key.startsWith("reason.")) assert.ok(Object.hasOwn(faultReasons, key.slice("reason.".length)), key);
  }
});

test("the page weighs at most 82 kB as it is sent, all languages together, and each file can be read", () => {
  const names = readdirSync(built);
  assert.deepEqual(names.sort(), ["de.json", "en.json", "icon.svg", "index.html", "page.css", "page.js"]);
  const bytes = names.reduce((sum, name) => sum + statSync(join(built, name)).size, 0);
  assert.ok(bytes <= 82_000, `${bytes} bytes`);
  for (const name of names) {
    const longest = Math.max(
      ...readFileSync(join(built, name), "utf8")
        .split("\n")
        .map((line) => line.length),
    );
    assert.ok(longest < 300, `${name} has a line of ${longest} characters`);
  }
});
