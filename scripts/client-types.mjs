// The client's types as the package has them: they need neither @types/node nor a package, and any TypeScript from 5.4 on reads
// them, with skipLibCheck or without. tsc writes them; then only what the entries reach is kept, and three things are rewritten:
// names of files (.ts becomes .js), Buffer (its base, Uint8Array) and the schema library (scripts/client-types/typebox.d.ts).
import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, posix, relative, sep } from "node:path";

const entries = ["client/http-client.d.ts", "client/line-client.d.ts", "client/page.d.ts"];
const schemaLibrary = "contract/typebox.d.ts";

/** Writes the types below a folder: as those of an ES module, and in `cjs` as those of what is required. */
export async function writeClientTypes(root, folder) {
  const work = await mkdtemp(join(tmpdir(), "posline-types-"));
  try {
    compile(root, work);
    await cp(join(root, "scripts/client-types/typebox.d.ts"), join(work, schemaLibrary));
    for (const [name, text] of await reached(work)) {
      for (const target of [join(folder, name), join(folder, "cjs", name)]) {
        await mkdir(dirname(target), { recursive: true });
        await writeFile(target, text);
      }
    }
    await writeFile(join(folder, "cjs/package.json"), '{ "type": "commonjs" }\n');
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

function compile(root, out) {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const args = [tsc, "-p", join(root, "scripts/tsconfig.types.json"), "--outDir", out];
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
  if (status !== 0) throw new Error("Cannot build: the client's types can't be written");
}

/** The files that the entries reach, by name, as they are published. */
async function reached(folder) {
  const texts = new Map();
  const open = [...entries];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (texts.has(name)) continue;
    const written = await readFile(join(folder, name), "utf8");
    const library = relative(dirname(name), schemaLibrary).split(sep).join("/");
    const text = written
      .replaceAll('from "typebox"', `from "${library.startsWith(".") ? library : `./${library}`}"`)
      .replace(/(from "\.[^"]*?)(?:\.d)?\.ts"/g, '$1.js"')
      .replace(/\bBuffer\b/g, "Uint8Array");
    texts.set(name, text);
    for (const [, path] of text.matchAll(/from "([^"]*)\.js"/g)) open.push(posix.join(posix.dirname(name), `${path}.d.ts`));
  }
  return texts;
}
