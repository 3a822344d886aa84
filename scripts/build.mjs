// Makes dist/: the bundle main.cjs, the few lines of posline.cjs before it, and beside them serialport's native prebuilds for Linux,
// and the status page. It runs with no node_modules near.
//
// The bundle is plain CommonJS, not minified: what runs can be read in it, and a stack trace leads into it. Each module is in it once,
// whole; a dynamic import is a module of the same file that is run on first use.
import { rmSync } from "node:fs";
import { chmod, cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { writeClientTypes } from "./client-types.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const finished = join(root, "dist");
/** Made beside it, and put in its place when it is whole: a failed build takes nothing away, and who runs dist/ never finds half of it. */
const dist = join(root, `dist.${process.pid}`);
const bindings = dirname(createRequire(import.meta.url).resolve("@serialport/bindings-cpp/package.json"));

const common = {
  bundle: true,
  platform: "node",
  target: "node20.19",
  format: "cjs",
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
  // Its main file is UMD, whose inner requires esbuild can't see.
  alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js" },
};

/**
 * What packages ask of the place that they are in. The binding looks for its prebuilds one level above its own folder: above the
 * bundle itself, so in the folder beside it. yargs looks for its translations by `import.meta.url`, which CommonJS hasn't got.
 */
const places = {
  define: { __dirname: "__filename", "import.meta.url": "bundleUrl" },
  // What stands before a file's "use strict" takes its force, so it is there once more.
  banner: { js: `"use strict";\nconst bundleUrl = require("node:url").pathToFileURL(__filename).href;` },
};

/**
 * typebox in one module. Each module of the file is a function that V8 has to look through at each start, and as 500 of them
 * typebox alone would take 2 MiB of every idle bridge.
 */
const oneTypebox = {
  name: "one typebox",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\/typebox\.ts$/ }, () => ({ path: "src/contract/typebox.ts", namespace: "joined" }));
    onLoad({ filter: /.*/, namespace: "joined" }, async ({ path }) => {
      const { outputFiles, metafile } = await build({ ...common, entryPoints: [join(root, path)], write: false });
      note(metafile);
      return { contents: outputFiles[0].text };
    });
  },
};

/** The packages whose code went into the file, by folder, so that their licences go with it. */
const packages = new Set([bindings]);

function note({ inputs }) {
  for (const input of Object.keys(inputs)) {
    const folder = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
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
  ...places,
  entryPoints: [join(root, "src/main.ts")],
  outfile: join(dist, "main.cjs"),
  plugins: [oneTypebox],
});
note(metafile);
await writeFile(join(dist, "LICENSES.txt"), await licences());
await cp(join(root, "src/door.cjs"), join(dist, "posline.cjs"));
await chmod(join(dist, "posline.cjs"), 0o755);
for (const platform of ["linux-x64", "linux-arm64", "linux-arm"]) {
  await cp(join(bindings, "prebuilds", platform), join(dist, "prebuilds", platform), { recursive: true });
}

// The status page, which the admin port answers: one script that can be read too, and the other files as they are.
const page = join(root, "src/page");
await build({
  entryPoints: [join(page, "page.ts")],
  outfile: join(dist, "page/page.js"),
  tsconfig: join(page, "tsconfig.json"),
  bundle: true,
  platform: "browser",
  // Browsers of 2023 and newer
  target: ["chrome110", "firefox113", "safari16.4"],
  // A classic script, since a browser names an Origin when it asks for a module, which a proxy that changes the Host lets no port
  // take for its own. A function holds its names.
  format: "esm",
  banner: { js: '"use strict";\n(() => {' },
  footer: { js: "})();" },
  charset: "utf8",
  logLevel: "warning",
});
// The build drops all comments but those on a class's members, which would be a thirtieth of what a browser is sent.
const script = join(dist, "page/page.js");
await writeFile(script, (await readFile(script, "utf8")).replace(/^ *\/\*\*.*?\*\/\n/gms, ""));
for (const name of ["index.html", "page.css", "icon.svg", "en.json", "de.json"])
  await cp(join(page, name), join(dist, "page", name));

// The client, for those who import it: one file each for import, require and pages, and its types. What a line needs is loaded by
// the first call over one, from a file of its own; only the binding stays a package, since it finds its prebuilds in itself.
const client = join(dist, "client");
const library = { ...common, external: ["@serialport/bindings-cpp"] };
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
await writeClientTypes(root, join(client, "types"));

const before = `${dist}.before`;
await rename(finished, before).catch(() => {});
await rename(dist, finished);
await rm(before, { recursive: true, force: true });
