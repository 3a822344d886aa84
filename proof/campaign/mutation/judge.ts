import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { root } from "./build.ts";
import { type Mutation, mutations } from "./judge-rules.ts";

/**
 * The exhaustive check notices each rule of the judge that is gone: a rule that it doesn't miss is one that nothing holds. Half an hour on a
 * busy machine, so it is run by itself: `npm test -- proof/campaign/mutation/judge.ts`.
 */

const script = `
  import { kinds, searches } from "./test/exhaustive/search.ts";
  for (const kind of kinds().toReversed()) {
    for (const [, broken] of searches(kind)) {
      if (broken === undefined) continue;
      console.log(broken);
      process.exit(1);
    }
  }
`;

/** The first broken law with one rule removed; undefined if there is none. */
async function brokenBy({ file, from, to }: Pick<Mutation, "file" | "from" | "to">): Promise<string | undefined> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    stdin: { contents: script, resolveDir: root },
    bundle: true,
    write: false,
    packages: "external",
    platform: "node",
    format: "esm",
    logLevel: "error",
    plugins: [
      {
        name: "one rule less",
        setup: (esbuild) =>
          esbuild.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
            const source = readFileSync(path, "utf8");
            const contents = path === join(root, file) ? source.replace(from, () => to) : source;
            return { contents, loader: "ts" };
          }),
      },
    ],
  });
  const input = outputFiles[0]?.text ?? "";
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-"], {
    cwd: root,
    input,
    encoding: "utf8",
  });
  assert.ok(status === 0 || stdout !== "", stderr);
  return status === 0 ? undefined : stdout;
}

for (const { rule, file, from, to, isUnseen } of mutations) {
  test(`the exhaustive check ${isUnseen === undefined ? "notices" : "doesn't notice"} a judge by which ${rule}`, async (t) => {
    assert.equal(readFileSync(join(root, file), "utf8").split(from).length, 2, `${file} has it once: ${from}`);
    const broken = await brokenBy({ file, from, to });
    t.diagnostic(broken ?? isUnseen ?? "no law is broken");
    assert.equal(broken === undefined, isUnseen !== undefined);
  });
}
