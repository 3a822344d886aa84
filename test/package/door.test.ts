import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createContext, runInContext } from "node:vm";
import { transformSync } from "esbuild";
import { root } from "./packages.ts";

/** Tests src/door.cjs, as it is in dist: what a Node says that is too old for the rest. */

const text = readFileSync(join(root, "dist/posline.cjs"), "utf8").replace(/^#!.*/, "");
const { engines }: { engines: { node: string } } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** What comes of it under a Node of that version. */
function opened(node: string) {
  const told: string[] = [];
  const loaded: string[] = [];
  const heard: string[] = [];
  const process = {
    versions: { node },
    stderr: { write: (words: string) => told.push(words) },
    on: (signal: string) => heard.push(signal),
    exitCode: undefined,
  };
  runInContext(text, createContext({ process, require: (name: string) => loaded.push(name) }));
  return { told: told.join(""), loaded, heard, exitCode: process.exitCode };
}

test("dist/posline.cjs is in words that a Node of 2017 can read", () => {
  const as = (target: string) => transformSync(text, { target }).code;
  assert.equal(as("es2017"), as("esnext"));
});

test("dist/posline.cjs tells a Node that is too old so in one sentence, and loads nothing", () => {
  const oldest = engines.node.replace(">=", "");
  for (const node of ["8.17.0", "12.22.12", "16.20.2", "18.20.8", "20.18.3"]) {
    const { told, loaded, exitCode } = opened(node);
    const cure = "install a newer Node, or the package posline-standalone, which brings its own";
    assert.equal(told, `Cannot run posline: this is Node ${node}, and posline needs ${oldest} or newer: ${cure}\n`);
    assert.deepEqual([loaded, exitCode], [[], 69]);
  }
});

test("dist/posline.cjs loads the bundle under any other Node, and lets no signal open a debugger before", () => {
  for (const node of ["20.19.0", "20.20.2", "22.0.0", "26.1.0", "100.0.0"])
    assert.deepEqual(opened(node), { told: "", loaded: ["./main.cjs"], heard: ["SIGUSR1"], exitCode: undefined });
});
