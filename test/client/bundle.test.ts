import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Tests src/client/page.ts, src/client/exports.ts. */

const entry = (path: string) => fileURLToPath(new URL(`../../src/${path}`, import.meta.url));

test("page.ts bundles for a browser, with no Node module and no package but lossless-json", async () => {
  const { metafile, outputFiles } = await build({
    entryPoints: [entry("client/page.ts")],
    bundle: true,
    platform: "browser",
    format: "esm",
    minify: true,
    write: false,
    metafile: true,
    logLevel: "silent",
  });
  const packages = Object.keys(metafile.inputs).flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
  assert.deepEqual([...new Set(packages)], ["lossless-json"]);
  const [{ imports = [], exports = [] } = {}] = Object.values(metafile.outputs);
  assert.deepEqual(imports, []);
  const offered = ["createClient", "createClientOver", "CallError", "NotSentError", "UnknownError", "RejectedError", "newKey"];
  assert.deepEqual([...exports].sort(), offered.sort());
  const text = outputFiles[0]?.text ?? "";
  assert.doesNotMatch(text, /\bBuffer\b|\bprocess\./);
});

test("the package's entry brings in what a line needs only by a dynamic import", async () => {
  const { metafile } = await build({
    entryPoints: [entry("client/http-client.ts")],
    bundle: true,
    platform: "node",
    format: "esm",
    splitting: true,
    outdir: "/nowhere",
    write: false,
    metafile: true,
    packages: "external",
    logLevel: "silent",
  });
  const main = Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint?.endsWith("client/http-client.ts"));
  const loaded = new Set<string>();
  const load = (output: string) => {
    const { inputs = {}, imports = [] } = metafile.outputs[output] ?? {};
    for (const input of Object.keys(inputs)) loaded.add(input);
    for (const { path, kind } of imports) if (kind === "import-statement" && !loaded.has(path)) load(loaded.add(path) && path);
  };
  load(main?.[0] ?? "");
  assert.ok([...loaded].some((path) => path.endsWith("client/settle.ts")));
  assert.deepEqual(
    [...loaded].filter((path) => /src\/(line|wire)\/|^node:|typebox|serialport/.test(path)),
    [],
  );
});
