// Makes dist/: one file, and beside it serialport's native prebuilds for Linux. It runs with no node_modules near.
//
// The time from start to listening is mostly the parsing of that file. So it is minified; it is CommonJS, where a module that is
// loaded when it is needed brings Node's own modules in only then; and what a bridge seldom needs (the other commands, the
// emulator, whole schemas), more than half of it, lies in it as packed text, which costs nothing to skip and is compiled on first use.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { chmod, cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";
import { build } from "esbuild";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const finished = join(root, "dist");
/** Made beside it, and put in its place when it is whole: a failed build takes nothing away, and who runs dist/ never finds half of it. */
const dist = join(root, `dist.${process.pid}`);
const bindings = dirname(createRequire(import.meta.url).resolve("@serialport/bindings-cpp/package.json"));

/** Loads a package's file with a text in it replaced; a package that has changed stops the build. */
async function replaced(path, search, by) {
  const text = await readFile(path, "utf8");
  if (!text.includes(search)) throw new Error(`Cannot build: ${path} no longer has ${search}`);
  return { contents: text.replace(search, by), loader: "js" };
}

const trims = {
  name: "trims",
  setup({ onLoad, onResolve }) {
    // The binding looks for its prebuilds one folder above itself; in the bundle they are beside it.
    onLoad({ filter: /bindings-cpp\/dist\/serialport-bindings\.js$/ }, ({ path }) =>
      replaced(path, "(0, path_1.join)(__dirname, '../')", "__dirname"),
    );
    // What devices there are, posline finds by itself; this would load Node's child processes.
    onLoad({ filter: /bindings-cpp\/dist\/linux-list\.js$/ }, () => ({
      contents: 'exports.linuxList = async () => { throw new Error("the bundle lists no devices this way"); };',
    }));
    // Parts of pino that posline has no use for, a seventh of what would be parsed at each start: its writer (the log has one of its
    // own) and what ends it, transports with their worker threads, several streams at once, serializers and redaction (what is logged
    // is listed field by field).
    onResolve(
      { filter: /^(sonic-boom|@pinojs\/redact|pino-std-serializers|on-exit-leak-free|\.\/(lib\/)?(transport|multistream))$/ },
      ({ path, importer }) =>
        /\/node_modules\/pino\/(pino|lib\/\w+)\.js$/.test(importer) ? { path, namespace: "unused" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "unused" }, ({ path }) => ({
      contents: `module.exports = function unused() { throw new Error("the bundle is without pino's ${path}"); };`,
    }));
    // Asked by transports alone, and it would load Node's worker threads at each start: 0.4 MB, 2 ms.
    onLoad({ filter: /\/pino\/lib\/tools\.js$/ }, ({ path }) =>
      replaced(path, "const { isMainThread } = require('worker_threads')", "const isMainThread = true"),
    );
    // Traces of serialport's own making: the switch that turns them on opens standard error at each start.
    onResolve({ filter: /^debug$/ }, () => ({ path: "debug", namespace: "silent" }));
    onLoad({ filter: /.*/, namespace: "silent" }, () => ({ contents: "module.exports = () => () => {};" }));
  },
};

const common = {
  bundle: true,
  platform: "node",
  target: "node20.19",
  format: "cjs",
  minify: true,
  legalComments: "none",
  // yargs finds its texts by this.
  define: { "import.meta.url": "importMetaUrl" },
  logLevel: "warning",
  metafile: true,
};
const metaUrl = 'const importMetaUrl = require("node:url").pathToFileURL(__filename).href;';

/** Parts that a bridge doesn't need to begin, or that few need at all. They are imported dynamically. */
const parts = [
  "cli/commands.ts",
  "contract/schema.ts",
  "app/emulation.ts",
  "app/emulated-line.ts",
  "app/supervision.ts",
  "app/journal.ts",
  "line/refusal.ts",
].map((part) => join(root, "src", part));

/** Puts those parts into the bundle as text. */
const seldom = {
  name: "seldom",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\..*\.ts$/ }, ({ path, resolveDir, kind }) => {
      const file = join(resolveDir, path);
      return kind === "dynamic-import" && parts.includes(file) ? { path: file, namespace: "seldom" } : undefined;
    });
    onLoad({ filter: /.*/, namespace: "seldom" }, async ({ path }) => {
      const { outputFiles, metafile: made } = await build({
        ...common,
        entryPoints: [path],
        plugins: [trims],
        banner: { js: metaUrl },
        write: false,
      });
      note(made);
      const { contents: code } = outputFiles[0];
      const text = brotliCompressSync(code, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: code.length } }).toString("base64");
      const name = JSON.stringify(`posline/${basename(path, ".ts")}.cjs`);
      const parameters = '["exports", "require", "module", "__filename", "__dirname"]';
      return {
        contents: `const text = require("node:zlib").brotliDecompressSync(Buffer.from("${text}", "base64")).toString();
          const run = require("node:vm").compileFunction(text, ${parameters}, { filename: ${name} });
          run(exports, require, module, __filename, __dirname);`,
        loader: "js",
      };
    });
  },
};

/** The packages whose code went into the file, by folder, so that their licences go with it. */
const packages = new Set([bindings]);

function note({ inputs }) {
  for (const input of Object.keys(inputs)) {
    const folder = /^(?:.*:)?(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
    if (folder !== undefined) packages.add(resolve(folder));
  }
}

async function licences() {
  const texts = [];
  for (const folder of [...packages].sort()) {
    const { name, version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    const text = file === undefined ? `Licence: ${license}\n` : await readFile(join(folder, file), "utf8");
    texts.push(`${name} ${version}\n\n${text}`);
  }
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

process.on("exit", () => rmSync(dist, { recursive: true, force: true }));
await mkdir(dist);
const { metafile } = await build({
  ...common,
  entryPoints: [join(root, "src/main.ts")],
  outfile: join(dist, "posline.cjs"),
  plugins: [seldom, trims],
});
note(metafile);
await writeFile(join(dist, "LICENSES.txt"), await licences());
await chmod(join(dist, "posline.cjs"), 0o755);
for (const platform of ["linux-x64", "linux-arm64", "linux-arm"]) {
  await cp(join(bindings, "prebuilds", platform), join(dist, "prebuilds", platform), { recursive: true });
}

// The client, for those who import it: one file each for import, require and pages, and its types. What a line needs is loaded by
// the first call over one, from a file of its own; only the binding stays a package, since it finds its prebuilds in itself.
const client = join(dist, "client");
const library = { ...common, minify: false, define: {}, external: ["@serialport/bindings-cpp"] };
const entry = join(root, "src/app/client.ts");
await build({
  ...library,
  entryPoints: { client: entry },
  outdir: client,
  format: "esm",
  splitting: true,
  outExtension: { ".js": ".mjs" },
});
await build({ ...library, entryPoints: [entry], outfile: join(client, "client.cjs") });
await build({
  ...library,
  entryPoints: [join(root, "src/client/page.ts")],
  outfile: join(client, "browser.mjs"),
  platform: "browser",
  target: "es2022",
  format: "esm",
});
const types = spawnSync(
  process.execPath,
  [
    join(root, "node_modules/typescript/bin/tsc"),
    ...["-p", join(root, "tsconfig.types.json"), "--outDir", join(client, "types")],
  ],
  { stdio: "inherit" },
);
if (types.status !== 0) throw new Error("Cannot build: the client's types can't be written");

const before = `${dist}.before`;
await rename(finished, before).catch(() => {});
await rename(dist, finished);
await rm(before, { recursive: true, force: true });
