// Makes dist/: one file, and beside it serialport's native prebuilds for Linux. It runs with no node_modules near.
import { chmod, cp, mkdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");
const bindings = dirname(createRequire(import.meta.url).resolve("@serialport/bindings-cpp/package.json"));

/** The binding looks for its prebuilds one folder above itself; in the bundle they are beside it. */
const prebuildsBeside = {
  name: "prebuilds-beside",
  setup({ onLoad }) {
    onLoad({ filter: /bindings-cpp\/dist\/serialport-bindings\.js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const search = "(0, path_1.join)(__dirname, '../')";
      if (!text.includes(search)) throw new Error(`Cannot build: ${path} no longer looks for its prebuilds as it did`);
      return { contents: text.replace(search, "__dirname"), loader: "js" };
    });
  },
};

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
await build({
  entryPoints: [join(root, "src/main.ts")],
  outfile: join(dist, "posline.mjs"),
  bundle: true,
  platform: "node",
  target: "node20.19",
  format: "esm",
  minifySyntax: true,
  legalComments: "eof",
  // CommonJS packages inside an ES module ask for these.
  banner: {
    js: [
      'import { createRequire as __createRequire } from "node:module";',
      'import { fileURLToPath as __fileURLToPath } from "node:url";',
      "const require = __createRequire(import.meta.url);",
      'const __filename = __fileURLToPath(import.meta.url), __dirname = __fileURLToPath(new URL(".", import.meta.url));',
    ].join("\n"),
  },
  plugins: [prebuildsBeside],
  logLevel: "warning",
});
await chmod(join(dist, "posline.mjs"), 0o755);
for (const platform of ["linux-x64", "linux-arm64", "linux-arm"]) {
  await cp(join(bindings, "prebuilds", platform), join(dist, "prebuilds", platform), { recursive: true });
}
