import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { before, test } from "node:test";
import { exitCodes } from "../../src/cli/exit.ts";
import { variableNames } from "../../src/config/overrides.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { commandLine, makePackages, missing, noDpkg, packageIn, textIn, unpack } from "./packages.ts";

let tree = "";
let commands: ReadonlyMap<string, readonly string[]> = new Map();

before(() => {
  if (noDpkg !== false) return;
  tree = unpack(packageIn(makePackages("amd64"), "amd64"));
  commands = commandLine();
});

/** A man page as it is read, without roff's own. */
const page = (path: string) => textIn(tree, path).replaceAll("\\-", "-").replaceAll("\\(aq", "'");

test("posline(1) names every command with all its flags", { skip: noDpkg }, () => {
  const text = page("usr/share/man/man1/posline.1.gz");
  assert.ok(commands.size >= 8);
  for (const [name, flags] of commands) {
    const [, part = ""] = text.split(new RegExp(`^\\.SS posline ${name}\\b.*$`, "m"));
    const own = part.split(/^\.S[SH] /m)[0] ?? "";
    assert.notEqual(own, "", name);
    for (const flag of flags) assert.match(own, new RegExp(`^\\.B .*${flag}\\b`, "m"), `${name} ${flag}`);
  }
});

test("posline(1) names every exit code and every variable of the environment", { skip: noDpkg }, () => {
  const text = page("usr/share/man/man1/posline.1.gz");
  for (const code of Object.values(exitCodes)) assert.match(text, new RegExp(`^\\.B ${code}$`, "m"));
  for (const name of variableNames) assert.match(text, new RegExp(`\\b${name}\\b`));
});

test("posline.json(5) names every key of the configuration", { skip: noDpkg }, () => {
  const text = page("usr/share/man/man5/posline.json.5.gz");
  const schema: unknown = JSON.parse(textIn(tree, "usr/share/posline/posline.schema.json"));
  const keys = new Set<string>();
  const collect = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    if ("properties" in node && typeof node.properties === "object" && node.properties !== null) {
      for (const key of Object.keys(node.properties)) keys.add(key);
    }
    for (const value of Object.values(node)) collect(value);
  };
  collect(schema);
  assert.ok(keys.has("baudRate") && keys.has("allowOrigins"));
  for (const key of keys) assert.match(text, new RegExp(`^\\.B (?:.*\\.)?${key.replace("$", "\\$")}$`, "m"), key);
});

/** What bash offers for the last of these words. */
function offered(...words: readonly string[]): readonly string[] {
  const script = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _posline; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const file = join(tree, "usr/share/bash-completion/completions/posline");
  const text = execFileSync("bash", ["-c", script, "bash", file, ...words], { encoding: "utf8" });
  return text.split("\n").filter((line) => line !== "");
}

test("bash completes every command, its flags, and the services and routes of call", { skip: noDpkg }, () => {
  const first = offered("posline", "");
  for (const [name, flags] of commands) {
    assert.ok(first.includes(name), name);
    const own = offered("posline", name, "--");
    for (const flag of flags) assert.ok(own.includes(flag) || own.includes(flag.replace("--", "--no-")), `${name} ${flag}`);
  }
  assert.deepEqual(offered("posline", "call", "ba"), ["bank"]);
  const routes = ["test", ...contracts.bank.routes.map(({ path }) => path.slice(1))];
  assert.deepEqual(offered("posline", "call", "bank", ""), routes);
  assert.deepEqual(offered("posline", "emulate", "--service", "q"), ["qr"]);
});

const noZsh = missing("zsh", "sudo apt-get install zsh");

test("zsh takes its completion", { skip: noDpkg || noZsh }, () => {
  execFileSync("zsh", ["-n", join(tree, "usr/share/zsh/vendor-completions/_posline")]);
});

test("zsh's completion names every command, its flags and routes", { skip: noDpkg }, () => {
  const text = textIn(tree, "usr/share/zsh/vendor-completions/_posline");
  assert.match(text, /^#compdef posline\n/);
  for (const [name, flags] of commands) {
    assert.match(text, new RegExp(`^ {4}'${name}:`, "m"));
    const [, part = ""] = text.split(new RegExp(`^ {4}${name}\\)$`, "m"));
    for (const flag of flags)
      assert.match(part.split(";;")[0] ?? "", new RegExp(`'\\*?--(?:no-)?${flag.slice(2)}\\[`), `${name} ${flag}`);
  }
  for (const { path } of contracts.fiscal.routes) assert.match(text, new RegExp(`compadd .*\\b${path.slice(1)}\\b`));
});
