import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { type Mutant, mutantsOf, withMutants } from "./operators.ts";

export const root = fileURLToPath(new URL("../../../", import.meta.url));
const here = dirname(fileURLToPath(import.meta.url));

/** A mutant of one file of the project, under a number that holds while the sources do. */
export interface NumberedMutant extends Mutant {
  readonly id: number;
  readonly file: string;
}

/** The mutants of these files, numbered from 1. */
export function numberedMutants(files: readonly string[]): readonly NumberedMutant[] {
  let id = 0;
  return files.flatMap((file) =>
    mutantsOf(readFileSync(join(root, file), "utf8")).map((mutant) => {
      id += 1;
      return { ...mutant, id, file };
    }),
  );
}

/** Mutated sources for the targets, this room's registry for `node:test`, and each file's own URL, which a bundle would lose. */
function mutating(mutants: readonly NumberedMutant[], on: (id: number) => string): Plugin {
  const byFile = new Map<string, NumberedMutant[]>();
  for (const mutant of mutants) byFile.set(mutant.file, [...(byFile.get(mutant.file) ?? []), mutant]);
  return {
    name: "mutating",
    setup(esbuild) {
      esbuild.onResolve({ filter: /^node:test$/ }, ({ importer }) =>
        dirname(importer) === here ? { path: "node:test", external: true } : { path: join(here, "registry.ts") },
      );
      esbuild.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const source = readFileSync(path, "utf8");
        const file = relative(root, path);
        const own = byFile.get(file);
        const mutated =
          own === undefined ? source : `const $m = globalThis.$mutant;${withMutants(source, own, own[0]?.id ?? 0, on)}`;
        const contents = mutated
          .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href))
          .replaceAll("import.meta.dirname", JSON.stringify(dirname(path)));
        return { contents, loader: "ts" };
      });
    },
  };
}

/** What a build made: each test file's bundle. */
export type Built = { readonly child: string; readonly bundles: ReadonlyMap<string, string> };

/**
 * Builds the tests with all mutants in them.
 * @param on the expression that puts a mutant in force; undefined to note which test reaches which mutant
 */
export async function buildTests(
  tests: readonly string[],
  mutants: readonly NumberedMutant[],
  folder: string,
  on: (id: number) => string,
): Promise<Built> {
  const child = relative(root, join(here, "child.ts"));
  await build({
    absWorkingDir: root,
    entryPoints: [...tests, child].map((file) => ({ in: file, out: file.replace(/\.ts$/, "") })),
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    packages: "external",
    platform: "node",
    target: "node20",
    format: "esm",
    logLevel: "error",
    plugins: [mutating(mutants, on)],
  });
  const output = (file: string) => join(root, folder, file.replace(/\.ts$/, ".mjs"));
  return { child: output(child), bundles: new Map(tests.map((test) => [test, output(test)])) };
}
