import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { folder, root } from "./packages.ts";

/** What ships can be read: dist/main.cjs, more.cjs and lab.cjs as a person, a debugger or a scanner finds it. */

const bundle = join(root, "dist/main.cjs");
const files = new Map(["main", "more", "lab"].map((name) => [name, readFileSync(join(root, `dist/${name}.cjs`), "utf8")]));
const text = [...files.values()].join("");

const sourceFiles = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".ts"),
);
const sources = new Map(sourceFiles.map((name) => [`src/${name}`, readFileSync(join(root, "src", name), "utf8")]));

test("the bundle holds no code as data, and makes none at run time", () => {
  const packed = /[A-Za-z0-9+/=]{200,}/;
  const made = /\bcompileFunction\b|\bbrotliDecompress|\bnew Function\(|\beval\(|["'](?:node:)?vm["']/;
  for (const found of [packed, made]) assert.equal(found.exec(text)?.[0].slice(0, 80), undefined);
});

test("the bundle holds each module of ours once, and so each class", () => {
  // A line may end within a name, behind a backslash.
  const modules = [...text.replaceAll("\\\n", "").matchAll(/"(src\/[^"]+\.ts)"\(\)\{/g)].map(([, name = ""]) => name);
  assert.deepEqual([...new Set(modules)].sort(), modules.sort());
  for (const name of ["src/core/fault.ts", "src/operations/operations.ts", "src/lab/emulator/emulator.ts"])
    assert.ok(modules.includes(name), name);
  for (const name of modules) assert.ok(sources.has(name), `${name} is no source`);
  for (const name of ["Fault", "OpenError", "ConfigError"]) {
    const made = text.match(new RegExp(`\\bclass ${name}\\d*\\b|\\b${name}\\d* ?= ?class\\b`, "g"));
    assert.equal(made?.length, 1, name);
  }
});

/** The bundle's frames, named, on the stack of the first HTTP server that a command makes. */
function framesOf(...args: readonly string[]): readonly { readonly name: string; readonly text: string }[] {
  const hook = join(folder(), "hook.cjs");
  writeFileSync(
    hook,
    `require("node:http").createServer = () => {
      Error.stackTraceLimit = 50;
      process.stderr.write(new Error("refused on purpose").stack + "\\n", () => process.exit(3));
      throw new Error("refused on purpose");
    };`,
  );
  const { stderr } = spawnSync(process.execPath, ["--require", hook, bundle, ...args], {
    encoding: "utf8",
    env: { PATH: "", POSLINE_FISCAL_PORT: "0", POSLINE_BANK_PORT: "0", POSLINE_QR_PORT: "0", POSLINE_ADMIN_PORT: "0" },
    timeout: 20_000,
  });
  const frames = [...stderr.matchAll(/^ {4}at (?:async |new )*([\w$.#<>]+) \(.*(main|more|lab)\.cjs:(\d+):\d+\)$/gm)];
  assert.ok(frames.length > 0, stderr);
  return frames.map(([, name = "", file = "", line = ""]) => ({
    name: name.replace(/^.*[.#]/, ""),
    text: files.get(file)?.split("\n")[Number(line) - 1] ?? "",
  }));
}

/** Whether a name is the sources' own; of two alike the bundler numbers one. */
const isOurs = (name: string) =>
  [...sources.values()].some((source) => new RegExp(`\\b${name.replace(/\d+$/, "")}\\b`).test(source));

test("a stack trace from the bundle names functions of the sources, and leads to lines that can be read", () => {
  const frames = framesOf("serve", "--line", "/dev/none");
  const names = frames.map(({ name }) => name);
  for (const name of ["listen", "startBridge", "runUntilStopped", "main"]) assert.ok(names.includes(name), names.join());
  for (const { name, text: line } of frames) {
    assert.ok(isOurs(name), name);
    assert.ok(line !== "" && line.length < 300, line);
  }
});

test("a stack trace from what is loaded on first use does so too", () => {
  const names = framesOf("emulate").map(({ name }) => name);
  for (const name of ["startEmulating", "runUntilStopped"]) assert.ok(names.includes(name), names.join());
});
