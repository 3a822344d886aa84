// Makes of test files what Node runs as it is: each one with all of ours that it imports in one file, in a few seconds for all of
// them. A loader that compiles while a test starts takes more time than most tests.
import { rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, extname, join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";

const assertOk = "test/support/assert-ok.ts";

/** In the bundle each file still finds what lies beside it: a bundle would lose the file's own place. */
const ownPlaces = {
  name: "own places",
  setup(esbuild) {
    esbuild.onLoad({ filter: /\.(ts|mjs)$/ }, async ({ path }) => {
      const places = { url: pathToFileURL(path).href, dirname: dirname(path), filename: path };
      const source = await readFile(path, "utf8");
      // In quotes stands what a build replaces, which is no place.
      const contents = source.replace(/(?<!")import\.meta\.(url|dirname|filename)\b/g, (_, name) =>
        JSON.stringify(places[name]),
      );
      return { contents, loader: extname(path) === ".ts" ? "ts" : "js" };
    });
  },
};

/** What a file imports if what it does can reach another file's tests: processes, sockets, devices, threads, and V8's flags. */
const outside = /^(?:node:)?(?:child_process|https?|net|tls|v8|worker_threads)$|serialport|node-pty/;
/** What a file of tests says if it changes what is there once in a process: clocks, mocks of no test, the environment. */
const shared = /\bnew VirtualTime\b|(?<!\.)\bmock\.|process\.(?:chdir|umask|env\[)|\bsetFlagsFromString\b/;

/** @returns whether a test file leaves nothing behind, and can share a process with others. */
async function isPure(file, { inputs }, root) {
  const seen = new Set([file]);
  for (const path of seen) {
    if (/^(?:proof|test)\//.test(path) && shared.test(await readFile(join(root, path), "utf8"))) return false;
    for (const { path: imported, external } of inputs[path]?.imports ?? []) {
      if (!external) seen.add(imported);
      else if (outside.test(imported)) return false;
    }
  }
  return true;
}

/** A program that runs test files one after the other: hooks and names of one file are its own. */
const program = (files, bundleOf) => `process.setSourceMapsEnabled(true);
await import(${JSON.stringify(bundleOf(assertOk))});
const { writeFileSync } = await import("node:fs");
writeFileSync(new URL(import.meta.url + ".pid"), String(process.pid));
const { after, describe } = await import("node:test");
for (const [file, bundle] of ${JSON.stringify(files.map((file) => [file, bundleOf(file)]))}) {
  await new Promise((done) => {
    describe(file, async () => {
      try {
        await import(bundle);
      } finally {
        after(done);
      }
    });
  });
}
`;

/**
 * Builds test files, and writes the programs that run them: files that leave nothing behind share as many processes as `shares` says,
 * each of the others has one of its own.
 * @returns the programs, each with its files by the names of their bundles
 */
export async function buildTests(root, files, shares) {
  // Of this run alone: another one may run beside it.
  const folder = join(root, "out", `test.${process.pid}`);
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  process.on("SIGINT", () => process.exit(130));
  const named = (file) => file.replace(/\.ts$/, "");
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [...files, assertOk].map((file) => ({ in: file, out: named(file) })),
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    packages: "external",
    platform: "node",
    target: "node20.19",
    format: "esm",
    keepNames: true,
    sourcemap: true,
    sourcesContent: false,
    metafile: true,
    logLevel: "error",
    plugins: [ownPlaces],
  });
  const pure = [];
  const lone = [];
  for (const file of files) ((await isPure(file, metafile, root)) ? pure : lone).push(file);
  const together = Array.from({ length: shares }, (_, share) => pure.filter((_, index) => index % shares === share));
  const bundleOf = (file) => join(folder, `${named(file)}.mjs`);
  // The shared ones first: a long one that begins last is waited for alone.
  const groups = [...together, ...lone.map((file) => [file])].filter((group) => group.length > 0);
  return groups.map((group, index) => {
    const path = join(folder, `${index}.mjs`);
    writeFileSync(
      path,
      program(group, (file) => pathToFileURL(bundleOf(file)).href),
    );
    return { path, files: new Map(group.map((file) => [bundleOf(file), file])) };
  });
}

/** Paths as esbuild names them. */
export const posix = (path) => path.split(sep).join("/");
