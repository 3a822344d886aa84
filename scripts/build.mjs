// Makes dist/: the bundle, the few lines of posline.cjs before it, and beside them serialport's native prebuilds for Linux, the status
// page and the examples of the OpenAPI documents. The bundle runs with no node_modules near.
//
// The bundle is three files of plain CommonJS without white space, which keep all names and have lines of some 140 characters: what runs
// can be read in them, and a stack trace leads into them. Each module is in one of them, whole, and a dynamic import runs its module
// on first use. main.cjs has what a bridge runs; the modules of `later`, and what only they import, are in more.cjs, which main.cjs
// loads with the first of them: an idle bridge holds the text of what it has loaded, and what it took to parse that. lab.cjs has the
// lab, which may be missing.
import { rmSync } from "node:fs";
import { chmod, cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { writeClientTypes } from "./client-types.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const finished = join(root, "dist");
/** Made beside it, and put in its place when it is whole: a failed build takes nothing away, and who runs dist/ never finds half of it. */
const dist = join(root, `dist.${process.pid}`);
const bindings = dirname(createRequire(import.meta.url).resolve("@serialport/bindings-cpp/package.json"));

const common = {
  absWorkingDir: root,
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
 * bundle itself, so in the folder beside it; where npm installed posline, they are the binding's own. yargs looks for its translations
 * by `import.meta.url`, which CommonJS hasn't got.
 */
const places = {
  define: { __dirname: "place.ofBinding", "import.meta.url": "place.url" },
  // What stands before a file's "use strict" takes its force, so it is there once more.
  banner: {
    js: `"use strict";
const place = {
  url: require("node:url").pathToFileURL(__filename).href,
  get ofBinding() {
    if (require("node:fs").existsSync(new URL("prebuilds", this.url))) return __filename;
    return require("node:path").dirname(require.resolve("@serialport/bindings-cpp"));
  },
};`,
  },
};

const typebox = "src/contract/typebox.ts";

/**
 * Leaves out what posline has no use for: the texts that jsonc-parser's formatter would make when it is loaded, 300 kB, and typebox's checks
 * of texts by their format, 25 kB, since the contracts' formats are of numbers, and typebox knows none of these.
 */
const lean = {
  name: "lean",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\/string-intern$/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, `${path}.js`),
      sideEffects: false,
    }));
    onLoad({ filter: /typebox\/build\/format\/index\.mjs$/ }, () => ({
      contents: "export const Format = { Has: () => false, Test: () => true };",
    }));
  },
};

/**
 * typebox in one module. Each module of the file is a function that V8 has to look through at each start, and as 500 of them
 * typebox alone would take 2 MiB of every idle bridge.
 */
const oneTypebox = {
  name: "one typebox",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\/typebox\.ts$/ }, () => ({ path: typebox, namespace: "joined" }));
    onLoad({ filter: /.*/, namespace: "joined" }, async ({ path }) => {
      const { outputFiles, metafile } = await build({
        ...common,
        entryPoints: [join(root, path)],
        plugins: [lean],
        write: false,
      });
      note(metafile);
      return { contents: outputFiles[0].text };
    });
  },
};

/** The packages whose code went into the files, by folder: their licences go with it, and a release's list of contents names them. */
const packages = new Set([bindings]);

function note(metafile) {
  for (const input of moduleNames(metafile)) {
    const folder = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
    if (folder !== undefined) packages.add(resolve(root, folder));
  }
}

/** The files that went in, from the root; what a plugin wrote has a namespace before its name. */
const moduleNames = ({ inputs }) => Object.keys(inputs).filter((name) => !name.includes(":"));

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

/** What a bridge that relays needs only on occasion, or never: the other commands, schemas, metrics. */
const later = [
  "src/cli/commands.ts",
  "src/cli/greeting.ts",
  "src/admin/metrics-text.ts",
  "src/operations/explanation.ts",
  "src/setup/setup-relay.ts",
  "src/trial/terminal-tests.ts",
  "src/contract/schema.ts",
  "src/device/tcp-port.ts",
  "src/logs/event.ts",
  "src/logs/render.ts",
  "src/logs/terminal-text.ts",
];
const lab = "src/lab/lab.ts";
const fromRoot = (path) => relative(root, path).replaceAll("\\", "/");
const literal = JSON.stringify;

/** A module of `later` is had from more.cjs, and the lab from lab.cjs, which are given the modules that they share with main.cjs. */
const fromOthers = {
  name: "from the other files",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\.?\// }, ({ path, kind, resolveDir }) => {
      const name = fromRoot(join(resolveDir, path));
      if (kind !== "dynamic-import") return;
      if (name === lab) return { path: name, namespace: "lab" };
      if (later.includes(name)) return { path: name, namespace: "more" };
    });
    onResolve({ filter: /^\.\/(?:more|lab)\.cjs$/ }, ({ path }) => ({ path, external: true }));
    const loadsFrom = (file) => (module) => ({
      contents: `module.exports = require("./${file}").load(${literal(module.path)}, require("shared modules").shared);`,
      resolveDir: root,
    });
    onLoad({ filter: /.*/, namespace: "more" }, loadsFrom("more.cjs"));
    onLoad({ filter: /.*/, namespace: "lab" }, loadsFrom("lab.cjs"));
  },
};

/** What each of posline's own modules exports, by its name. */
async function exportsOf(names) {
  const entryPoints = names.filter((name) => name.startsWith("src/"));
  const { metafile } = await build({ ...common, entryPoints, outdir: dist, format: "esm", packages: "external", write: false });
  return new Map(Object.values(metafile.outputs).map(({ entryPoint, exports }) => [entryPoint, exports]));
}

/**
 * The modules that a later file has from this one, by name. What posline's own export is listed when that file asks: `require` of such a
 * module would make esbuild list it at each start, 2,000 functions that a bridge holds and never calls.
 */
const sharedModules = (names, exported) => ({
  name: "shared modules",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^shared modules$/ }, ({ path }) => ({ path, namespace: "shared" }));
    onLoad({ filter: /.*/, namespace: "shared" }, () => {
      const imports = [];
      const members = names.map((name, at) => {
        const [path, words] = [literal(`./${name}`), exported.get(name)];
        if (words === undefined) return `${literal(name)}: () => require(${path}),`;
        imports.push(`import { ${words.map((word) => `${word} as ${word}${at}`).join(", ")} } from ${path};`);
        return `${literal(name)}: () => ({ ${words.map((word) => `get ${word}() { return ${word}${at}; }`).join(", ")} }),`;
      });
      const contents = [...imports, "export const shared = {", ...members, "};"].join("\n");
      return { contents, resolveDir: root };
    });
  },
});

/** A module that an earlier file has is had from there. */
const fromEarlier = (names) => ({
  name: "from the earlier files",
  setup({ onResolve, onLoad, resolve: find }) {
    onResolve({ filter: /.*/ }, async ({ path, kind, resolveDir, importer, namespace, pluginData }) => {
      if (pluginData === "found" || namespace !== "file" || kind === "entry-point") return;
      const { path: found } = await find(path, { kind, resolveDir, importer, pluginData: "found" });
      const name = fromRoot(found);
      if (names.includes(name)) return { path: name, namespace: "earlier" };
    });
    onResolve({ filter: /^the earlier modules$/ }, ({ path }) => ({ path, namespace: "given" }));
    onLoad({ filter: /.*/, namespace: "given" }, () => ({ contents: "exports.of = {};" }));
    onLoad({ filter: /.*/, namespace: "earlier" }, ({ path }) => ({
      contents: `module.exports = require("the earlier modules").of[${literal(path)}]();`,
    }));
  },
});

/** @param earlier Gives the modules of the files before, by name; `shared` are those of main.cjs. */
const laterEntry = (names, earlier) => `import * as given from "the earlier modules";
const modules = {
${names.map((name) => `  ${literal(name)}: () => require(${literal(`./${name}`)}),\n`).join("")}};
/** Gives one of these modules. */
export function load(name, shared) {
  Object.assign(given.of, ${earlier});
  return modules[name]();
}
`;
const moreEntry = `${laterEntry(later, "shared")}
/** Gives what lab.cjs has from here. */
export function share(shared) {
  Object.assign(given.of, shared);
  return require("shared modules").shared;
}
`;
const labEntry = laterEntry([lab], 'shared, require("./more.cjs").share(shared)');

// Node has `require` also for a program inside its executable, and there no `import()`.
const bundled = {
  ...common,
  ...places,
  supported: { "dynamic-import": false },
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 140,
};
const mainFile = { ...bundled, entryPoints: [join(root, "src/main.ts")], outfile: join(dist, "main.cjs") };
const moreFile = { ...bundled, stdin: { contents: moreEntry, resolveDir: root }, outfile: join(dist, "more.cjs") };
const labFile = {
  ...bundled,
  stdin: { contents: labEntry, resolveDir: root },
  outfile: join(dist, "lab.cjs"),
  external: ["./more.cjs"],
};

/** Drops the comments on a class's members, the only ones that esbuild leaves: a twentieth of what a browser is sent. */
async function dropComments(file) {
  await writeFile(file, (await readFile(file, "utf8")).replace(/^ *\/\*\*.*?\*\/\n/gms, ""));
}

process.on("exit", () => rmSync(dist, { recursive: true, force: true }));
await mkdir(dist);
// Looked through once for what each file has from those before, then written.
const looked = async (file, plugins) =>
  (await build({ ...file, write: false, plugins: [lean, ...plugins, sharedModules([], new Map())] })).metafile;
const inMain = new Set(moduleNames(await looked(mainFile, [fromOthers])));
/** What the modules of a file alone import of what is in others. */
const importedBy = ({ inputs }, others) =>
  new Set(Object.keys(inputs).flatMap((name) => (others.has(name) ? [] : inputs[name].imports.map(({ path }) => path))));
const moreLooked = await looked({ ...moreFile, external: [join(root, lab)] }, [fromEarlier([])]);
const inMore = new Set([...moduleNames(moreLooked), typebox].filter((name) => !inMain.has(name)));
const labLooked = await looked(labFile, [fromEarlier([])]);
const ofLab = importedBy(labLooked, new Set([...inMain, ...inMore]));
const ofMore = importedBy(moreLooked, inMain);
const sharedByMain = [...inMain].filter((name) => ofMore.has(name) || ofLab.has(name));
const sharedByMore = [...inMore].filter((name) => ofLab.has(name));
const sharing = async (names) => sharedModules(names, await exportsOf(names));
note((await build({ ...mainFile, plugins: [lean, fromOthers, await sharing(sharedByMain)] })).metafile);
note(
  (await build({ ...moreFile, plugins: [lean, oneTypebox, fromEarlier(sharedByMain), await sharing(sharedByMore)] })).metafile,
);
note((await build({ ...labFile, plugins: [lean, fromEarlier([...sharedByMain, ...sharedByMore])] })).metafile);
const examples = JSON.parse(await readFile(join(root, "src/lab/openapi/examples.json"), "utf8"));
await writeFile(join(dist, "examples.json"), JSON.stringify(examples));
await cp(join(root, "src/door.cjs"), join(dist, "posline.cjs"));
await chmod(join(dist, "posline.cjs"), 0o755);
for (const platform of ["linux-x64", "linux-arm64", "linux-arm"]) {
  // musl's and ARMv6's are for systems that posline has no package for.
  const filter = (path) => !/\.musl\.node$|\.armv6\./.test(path);
  await cp(join(bindings, "prebuilds", platform), join(dist, "prebuilds", platform), { recursive: true, filter });
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
  minifySyntax: true,
  minifyWhitespace: true,
  lineLimit: 100,
  logLevel: "warning",
});
await dropComments(join(dist, "page/page.js"));
for (const name of ["index.html", "page.css", "icon.svg", "en.json", "de.json"])
  await cp(join(page, name), join(dist, "page", name));
// Tabs are a twentieth less to send, and no harder to read. No text of the page goes over a line's end.
for (const name of await readdir(join(dist, "page"))) {
  const file = join(dist, "page", name);
  const text = await readFile(file, "utf8");
  await writeFile(
    file,
    text.replace(/^(?: {2})+/gm, (indent) => "\t".repeat(indent.length / 2)),
  );
}

// The client, for those who import it: one file each for import, require and pages, and its types; the client over a line is a file
// that Node also takes by `require`. Only the binding stays a package, since it finds its prebuilds in itself.
const client = join(dist, "client");
const library = { ...common, external: ["@serialport/bindings-cpp"] };
const entry = join(root, "src/client/http-client.ts");
for (const own of [
  {
    entryPoints: { client: entry, line: join(root, "src/client/line-client.ts") },
    outdir: client,
    format: "esm",
    splitting: true,
    outExtension: { ".js": ".mjs" },
  },
  { entryPoints: [entry], outfile: join(client, "client.cjs") },
  {
    entryPoints: [join(root, "src/client/page.ts")],
    outfile: join(client, "browser.mjs"),
    platform: "browser",
    target: "es2022",
    format: "esm",
  },
])
  note((await build({ ...library, ...own })).metafile);
await writeClientTypes(root, join(client, "types"));
await writeFile(join(dist, "LICENSES.txt"), await licences());

const before = `${dist}.before`;
await rename(finished, before).catch(() => {});
await rename(dist, finished);
await rm(before, { recursive: true, force: true });
