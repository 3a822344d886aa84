import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { scratchFolder } from "../support/bridge-process.ts";

/** How tests are run: scripts/test.mjs and scripts/test-build.mjs, over files of tests that are made here, and .ci/run. */

const root = fileURLToPath(new URL("../../", import.meta.url));

/** A project with these files of tests and posline's way to run them. */
function project(
  t: TestContext,
  tests: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv = {},
): (...args: string[]) => ReturnType<typeof run> {
  const { path, remove } = scratchFolder();
  t.after(remove);
  for (const file of ["scripts/test.mjs", "scripts/test-build.mjs", "test/support/assert-ok.ts", "package.json"]) {
    cpSync(join(root, file), join(path, file));
  }
  symlinkSync(join(root, "node_modules"), join(path, "node_modules"));
  for (const [file, source] of Object.entries(tests)) {
    mkdirSync(dirname(join(path, file)), { recursive: true });
    writeFileSync(join(path, file), `import { ok } from "node:assert/strict";\n${source}`);
  }
  return (...args) => run(path, args, env);
}

function run(folder: string, args: readonly string[], more: NodeJS.ProcessEnv) {
  // A test runner under another one reports to that in place of printing.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const options = { env: { ...env, ...more }, encoding: "utf8", timeout: 60_000 } as const;
  return spawnSync(process.execPath, [join(folder, "scripts/test.mjs"), ...args], options);
}

const holds = 'import { test } from "node:test";\ntest("holds", () => ok(true));\n';
const fails = 'import { test } from "node:test";\ntest("fails", () => { throw new Error("as it should"); });\n';

test("npm test is quiet about what holds, and exits with 0", (t) => {
  const { status, stdout, stderr } = project(t, { "test/wire/one.test.ts": holds, "test/core/two.test.ts": holds })();
  assert.deepEqual([status, stderr], [0, ""]);
  assert.match(stdout, /^2 passed, 0 failed, 0 skipped in \d+ s\n$/);
});

test("npm test tells a failure whole, with its file and place and what was written there, and exits with 1", (t) => {
  const { status, stdout } = project(t, {
    "test/wire/one.test.ts": holds,
    "test/wire/two.test.ts": `import { log } from "node:console";\nlog("seen");\n${fails}`,
  })();
  assert.equal(status, 1);
  assert.match(
    stdout,
    /✖ test\/wire\/two\.test\.ts: fails\n {4}Error: as it should\n[\s\S]*test\/wire\/two\.test\.ts:5:\d+\)[\s\S]*seen/,
  );
  assert.match(stdout, /\n1 passed, 1 failed, 0 skipped in \d+ s\n$/);
});

test("npm test fails for a file that can't be loaded, one that ends its process, one without an end, and for none at all", (t) => {
  for (const source of [
    'throw new Error("at its start");',
    `${holds}process.exitCode = 3;`,
    `${holds}test("endless", () => new Promise(() => {}));`,
    `import { spawnSync } from "node:child_process";\n${holds}test("ends all", () => process.exit(spawnSync("true").status ?? 1));`,
  ]) {
    const tests = { "test/wire/one.test.ts": source, "test/wire/two.test.ts": holds };
    // Node 24 waits for a test that nothing can end.
    const { status, stdout } = project(t, tests, { POSLINE_TEST_LIMIT_MS: "4000" })();
    assert.equal(status, 1, `${source}\n${stdout}`);
    assert.match(stdout, /✖ /);
  }
  assert.equal(project(t, {})().status, 1);
});

test("npm test kills a file that takes longer than its limit, names it, and runs the others", (t) => {
  const spawns = 'import { spawnSync } from "node:child_process";\n';
  const run = project(
    t,
    {
      "test/wire/waits.test.ts": `${spawns}${holds}test("endless", () => new Promise((done) => setTimeout(done, 99_000)));`,
      "test/wire/leaks.test.ts": `${spawns}${holds}setInterval(() => {}, 1_000);`,
      "test/wire/blocks.test.ts": `${spawns}${holds}test("blocked", () => spawnSync("node", ["-e", "setTimeout(() => {}, 20_000)"]));`,
      "test/wire/holds.test.ts": `${spawns}${holds}`,
      "test/wire/fails.test.ts": `${spawns}${fails}`,
    },
    { POSLINE_TEST_LIMIT_MS: "4000" },
  );
  const { status, stdout } = run();
  assert.equal(status, 1, stdout);
  for (const [file, why] of [
    ["waits", "its tests did not end"],
    ["blocks", "its tests did not end"],
    ["leaks", "its tests had ended, and something kept its process"],
  ])
    assert.ok(stdout.includes(`✖ test/wire/${file}.test.ts\n    Killed after 4 s: ${why}\n`), stdout);
  assert.match(stdout, /✖ test\/wire\/fails\.test\.ts: fails[\s\S]* 4 failed, 0 skipped/);
  // Node 24 gives a time limit to each test, and none to a file: one that is named there is waited for.
  if (Number.parseInt(process.versions.node, 10) >= 24) return;
  const named = run("test/wire/leaks.test.ts", "test/wire/holds.test.ts");
  assert.equal(named.status, 1);
  assert.match(named.stdout, /✖ \S*test\/wire\/leaks\.test\.ts[\s\S]*test timed out after 4000ms/);
});

test("npm test keeps hooks and own modules of files apart that share a process, and gives clocks a process of their own", (t) => {
  const counter = "export const counter = { n: 0 };";
  const counts = `import { after, beforeEach, test } from "node:test";
    import { counter } from "../count.ts";
    beforeEach(() => { counter.n++; });
    after(() => ok(counter.n === 2));
    test("first", () => ok(counter.n === 1));
    test("second", () => ok(counter.n === 2));`;
  const clock = `import { test } from "node:test";
    performance.now = () => 0;
    class VirtualTime {}
    new VirtualTime();
    test("stands", () => ok(performance.now() === 0));`;
  const goes = 'import { test } from "node:test";\ntest("goes", () => ok(performance.now() > 0));';
  const files = Array.from(
    { length: 40 },
    (_, index) => [`test/wire/many${index}.test.ts`, index % 2 ? goes : counts] as const,
  );
  const run = project(t, { "test/count.ts": counter, "test/core/clock.test.ts": clock, ...Object.fromEntries(files) });
  const { status, stdout } = run();
  assert.equal(status, 0, stdout);
  assert.match(stdout, /^61 passed/);
});

test("npm run test:rest runs the folders that npm test doesn't, and lists what is skipped and why", (t) => {
  const skips = 'import { test } from "node:test";\ntest("asks much", { skip: "there is no podman here" }, () => {});\n';
  const run = project(t, {
    "test/wire/one.test.ts": holds,
    "test/slow/wire/two.test.ts": skips,
    "test/e2e/three.test.ts": holds,
  });
  assert.match(run().stdout, /^1 passed, 0 failed, 0 skipped/);
  const { status, stdout } = run("--rest");
  assert.equal(status, 0);
  assert.match(
    stdout,
    /^﹣ skipped: test\/slow\/wire\/two\.test\.ts: asks much: there is no podman here\n1 passed, 0 failed, 1 skipped/,
  );
});

test("npm test with a file's name shows its tests one by one, and repeats a failure at the end", (t) => {
  const { status, stdout } = project(t, { "test/one.test.ts": `${holds}test("fails", () => ok(false, "as it should"));` })(
    "test/one.test.ts",
  );
  assert.equal(status, 1);
  assert.match(stdout, /✔ holds[\s\S]*✖ fails[\s\S]*ℹ fail 1\n[\s\S]*failing tests:[\s\S]*✖ fails[\s\S]*as it should/);
});

test(".ci/run fails, and names the packages, where apt-get can't install what is missing, before it installs or tests anything", (t) => {
  const { path, remove } = scratchFolder();
  t.after(remove);
  const began = join(path, "began");
  const program = (name: string, line: string) => writeFileSync(join(path, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  for (const name of ["grep", "php", "apt-get"]) program(name, "exit 100");
  program("dirname", "echo .ci");
  program("npm", `echo > ${began}`);
  const { status, stderr } = spawnSync("/bin/bash", [join(root, ".ci/run")], {
    cwd: root,
    env: { PATH: path },
    encoding: "utf8",
    timeout: 30_000,
  });
  assert.equal(status, 1, stderr);
  assert.match(
    stderr,
    /^apt-get can't install curl systemd [^:]*nginx-light[^:]*: install them, or the checks that need them would be skipped$/m,
  );
  assert.equal(existsSync(began), false);
});
