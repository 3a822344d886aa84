// Runs the tests: `npm test`, or those that are named: `npm test -- test/line/states.test.ts`. Flags are node's own.
//
// The files are found here and not by a shell's pattern, which Windows' shell wouldn't know. Failures are repeated at the end.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const args = process.argv.slice(2);

function allFiles() {
  const names = readdirSync(join(root, "test"), { recursive: true }).filter((name) => name.endsWith(".test.ts"));
  return names.map((name) => join("test", name)).sort();
}

const files = args.some((each) => !each.startsWith("-")) ? [] : allFiles();
const loaded = ["--import", "tsx", "--import", "./test/support/assert-ok.ts"];
// Much of what they do is to wait: on two cores node's own choice would be one file at a time.
const concurrency = `--test-concurrency=${Math.max(2, availableParallelism() - 1)}`;
const { status } = spawnSync(process.execPath, [...loaded, "--test", "--test-reporter=spec", concurrency, ...args, ...files], {
  cwd: root,
  stdio: "inherit",
});
process.exit(status ?? 1);
