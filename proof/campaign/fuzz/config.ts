import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError } from "../../../src/config/config.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { JsonError, parseJson, repeatedKeys } from "../../../src/core/json-syntax.ts";
import { corpusTexts } from "./corpus.ts";
import { mutated, mutatedJson, randomObject } from "./mutate.ts";
import type { Random } from "./random.ts";
import type { Target } from "./target.ts";

/** Configuration files: each is loaded, or refused by a ConfigError whose problems say something. */

const texts = corpusTexts("config.txt");

function fileText(random: Random): Buffer {
  const text = random.pick(texts);
  const json = random.chance(0.05) ? randomObject(random, 5) : mutatedJson(random, JSON.parse(text), random.pick([0.02, 0.1]));
  const bytes = Buffer.from(random.chance(0.3) ? text : json);
  return random.chance(0.4)
    ? mutated(
        random,
        bytes,
        texts.map((each) => Buffer.from(each)),
      )
    : bytes;
}

const folder = mkdtempSync(join(tmpdir(), "posline-fuzz-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const file = join(folder, "posline.json");

const configuration: Target = {
  name: "configuration files",
  unit: "files that were taken",
  make: fileText,
  check: async (input, random) => {
    writeFileSync(file, input);
    const flags = random.pick([{}, {}, {}, { gateway: {} }, { emulated: true }]);
    try {
      const { config, warnings } = await loadConfig({ env: {}, flags: { ...flags, config: file } });
      assert.ok(Object.keys(config.lines).length > 0 || "gateway" in flags);
      for (const warning of warnings) assertSaid(warning);
      return 1;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      assert.ok(error.problems.length > 0);
      for (const problem of error.problems) assertSaid(problem);
      assertSaid(error.message);
      return 0;
    }
  },
};

function assertSaid(text: string): void {
  assert.ok(
    text.length > 0 && text.length < 100_000 && !/\bundefined\b|\[object|NaN/.test(text),
    `says nothing: ${text.slice(0, 200)}`,
  );
}

const json: Target = {
  name: "JSON with places",
  unit: "texts that were taken",
  make: (random) => (random.chance(0.2) ? Buffer.from(randomObject(random, 6)) : mutated(random, fileText(random))),
  check: (input) => {
    const text = input.toString("utf8");
    const body = text.startsWith("\uFEFF") ? text.slice(1) : text;
    let value: unknown;
    let isJson = true;
    try {
      value = JSON.parse(body);
    } catch {
      isJson = false;
    }
    try {
      assert.equal(JSON.stringify(parseJson(text)), JSON.stringify(value));
      for (const { lines, path } of repeatedKeys(text)) assert.ok(path.length > 0 && lines[0] <= lines[1]);
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      assert.ok(error.line >= 1 && error.column >= 1 && error.line <= body.split(/\r\n|\r|\n/).length);
      // What JSON.parse takes is refused for one reason alone.
      if (isJson) assert.match(error.message, /nested more than/);
      return 0;
    }
    return 1;
  },
};

export const configTargets: readonly Target[] = [configuration, json];
