import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { clone, noDpkg, version } from "./packages.ts";

/** `npm run release` in a repository of its own, which has this project's files in one commit. */

const at = clone();
const next = `${Number(version.split(".")[0]) + 1}.0.0`;
const changes = join(at, "CHANGELOG.md");
const textOf = (path: string) => readFileSync(join(at, path), "utf8");
const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: at, encoding: "utf8" }).trim();
const commit = () => git("commit", "--quiet", "--all", "--message", "changes");
const release = (...args: readonly string[]) =>
  spawnSync(process.execPath, [join(at, "scripts/release.mjs"), ...args], { encoding: "utf8", timeout: 300_000 });

git("init", "--quiet");
for (const [name, value] of Object.entries({ name: "Till Ltd", email: "pos@till.example" }))
  git("config", `user.${name}`, value);
const written = readFileSync(changes, "utf8").replace(/^## Unreleased\n[\s\S]*?(?=^## )/m, "");
writeFileSync(changes, written.replace("\n## ", "\n## Unreleased\n\n## "));
git("add", ".");
commit();

function refuses(reason: string, ...args: readonly string[]): void {
  const [head, tags] = [git("rev-parse", "HEAD"), git("tag")];
  const { status, stderr } = release(...args);
  assert.equal(status, 1, stderr);
  assert.ok(stderr.endsWith(`Cannot release: ${reason}\n`), stderr);
  assert.deepEqual([git("rev-parse", "HEAD"), git("tag")], [head, tags]);
}

test("npm run release refuses a wrong version, an old one, one with a tag, a changed tree, a changelog without news", () => {
  for (const wrong of [["1.2"], ["v1.2.3"], [next, next], []]) refuses("name one version, as X.Y.Z", ...wrong);
  for (const old of [version, "0.0.9"]) refuses(`${old} is not higher than ${version}`, old);
  refuses('CHANGELOG.md has nothing below "## Unreleased": write what changed', next);
  git("tag", `v${next}`);
  refuses(`the tag v${next} exists`, next);
  git("tag", "--delete", `v${next}`);
  writeFileSync(changes, written.replace("\n## ", "\n## Unreleased\n\n- For tests: news.\n\n## "));
  refuses("the tree has changes: commit them first", next);
  commit();
  appendFileSync(join(at, "left-over"), "");
  refuses("the tree has changes: commit them first", next);
  git("clean", "--quiet", "--force");
});

test("npm run release that fails on its way leaves the repository as it was", () => {
  const whole = git("rev-parse", "HEAD");
  writeFileSync(join(at, "scripts/build.mjs"), "process.exit(7);\n");
  commit();
  const head = git("rev-parse", "HEAD");
  const { status, stderr } = release(next);
  assert.equal(status, 1);
  assert.match(stderr, /^Cannot release: Command failed: .*scripts\/build\.mjs$/m);
  assert.deepEqual([git("rev-parse", "HEAD"), git("status", "--porcelain"), git("tag")], [head, "", ""]);
  git("reset", "--quiet", "--hard", whole);
});

test("npm run release commits the version, makes packages, contents and checksums, and tags", { skip: noDpkg }, () => {
  const { status, stderr, stdout } = release(next, "--arch", "amd64");
  assert.equal(status, 0, stderr);
  assert.match(stdout, new RegExp(`^Made out/${next},`));
  assert.deepEqual([git("describe"), git("status", "--porcelain")], [`v${next}`, ""]);
  const lock = JSON.parse(textOf("package-lock.json"));
  assert.deepEqual([JSON.parse(textOf("package.json")).version, lock.version, lock.packages[""].version], [next, next, next]);
  assert.match(
    textOf("CHANGELOG.md"),
    new RegExp(`^## ${next}, \\d{4}-\\d\\d-\\d\\d\n\n- For tests: news\\.\n\n## ${version}`, "m"),
  );
  assert.ok(textOf("docs/install.md").includes(`posline_${next}_amd64.deb`));
  const list = `posline-${next}.cdx.json`;
  const files = [`posline-${next}.tgz`, list, `posline-lab_${next}_all.deb`, `posline_${next}_amd64.deb`];
  assert.deepEqual(readdirSync(join(at, "out", next)).sort(), [...files, "SHA256SUMS"].sort());
  const sums = execFileSync("sha256sum", ["--check", "SHA256SUMS"], { cwd: join(at, "out", next), encoding: "utf8" });
  assert.deepEqual(sums.trim().split("\n").sort(), files.map((name) => `${name}: OK`).sort());
  const { metadata, components, bomFormat } = JSON.parse(textOf(`out/${next}/${list}`));
  assert.deepEqual([bomFormat, metadata.component.purl], ["CycloneDX", `pkg:npm/posline@${next}`]);
  const names: readonly string[] = components.map(({ name }: { name: string }) => name);
  // Each file that comes from a package names it, where the bundler has kept that.
  const dist = readdirSync(join(at, "dist"), { recursive: true, encoding: "utf8" }).filter((name) => /\.[cm]?js$/.test(name));
  const text = dist.map((name) => textOf(`dist/${name}`).replaceAll("\\\n", "")).join("\n");
  const found = new Set([...text.matchAll(/["\s/]node_modules\/((?:@[\w.-]+\/)?[\w.-]+)\//g)].map(([, name = ""]) => name));
  assert.ok(found.has("lossless-json") && found.has("pino"), [...found].join());
  for (const name of [...found, "@serialport/bindings-cpp", "@serialport/bindings-interface", "typebox"])
    assert.ok(names.includes(name), name);
  for (const name of ["esbuild", "typescript", "tsx"]) assert.ok(!names.includes(name), name);
});
