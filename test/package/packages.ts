import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

/** Packages as `npm run deb` makes them, to be looked into by the tests. */

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

const folders: string[] = [];
process.on("exit", () => {
  for (const made of folders) rmSync(made, { recursive: true, force: true });
});

/** A folder of the test's own, gone when the test's process is. */
export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "posline-package-"));
  folders.push(made);
  return made;
}

/** The project as a clone has it, its dependencies installed and nothing built. */
export function clone(): string {
  const to = folder();
  const names = ["src", "scripts", "systemd", "docs", "package.json", "package-lock.json", "tsconfig.json", "README.md"];
  for (const name of [...names, "test/vectors/contracts", "CHANGELOG.md", "LICENSE", ".gitignore"])
    cpSync(join(root, name), join(to, name), { recursive: true });
  // In the folder itself, since modules are named by their place; linked, where that can be, since they are large.
  const modules = [join(root, "node_modules"), join(to, "node_modules")] as const;
  if (spawnSync("cp", ["-al", ...modules]).status !== 0) cpSync(...modules, { recursive: true, verbatimSymlinks: true });
  // Older than node_modules: nothing is to be installed.
  utimesSync(join(to, "package-lock.json"), 0, 0);
  return to;
}

/** Whether a program is here; the reason to skip where it isn't. */
export function missing(program: string, cure: string): string | false {
  return spawnSync(program, ["--version"]).error === undefined ? false : `there is no ${program} here: ${cure}`;
}

/** Why no package can be made here. */
export const noDpkg = missing("dpkg-deb", "sudo apt-get install dpkg");

/** Makes packages. @returns the folder that holds them. */
export function makePackages(arch: string, env: Readonly<Record<string, string>> = {}): string {
  const out = folder();
  const script = join(root, "scripts/deb.mjs");
  execFileSync(process.execPath, [script, "--arch", arch, "--out", out], {
    env: { ...process.env, SOURCE_DATE_EPOCH: "1767225600", ...env },
    stdio: ["ignore", "ignore", "inherit"],
  });
  return out;
}

/** The version that packages are named by. */
export const version: string = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;

/** The file of an architecture's package. */
export const packageIn = (out: string, arch: string) => join(out, `posline_${version}_${arch}.deb`);

/** Unpacks a package: its files, and what dpkg is told under DEBIAN. */
export function unpack(file: string): string {
  const into = folder();
  execFileSync("dpkg-deb", ["--raw-extract", file, into]);
  return into;
}

/** A file of an unpacked package as text. */
export function textIn(tree: string, path: string): string {
  const bytes = readFileSync(join(tree, path));
  return (path.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8");
}

/** One row of a package's list: who owns it, with which mode, and where it goes. */
export type Packed = { readonly mode: string; readonly owner: string; readonly path: string };

export function listOf(file: string): readonly Packed[] {
  const rows = execFileSync("dpkg-deb", ["--contents", file], { encoding: "utf8" }).trim().split("\n");
  return rows.map((row) => {
    const [mode = "", owner = "", , , , path = ""] = row.split(/\s+/);
    return { mode, owner, path: path.replace(/^\./, "") };
  });
}

/** What the command line has, read anew from its help: commands and their flags. */
export function commandLine(): ReadonlyMap<string, readonly string[]> {
  const help = (...args: string[]) =>
    execFileSync(process.execPath, [join(root, "dist/posline.cjs"), ...args, "--help"], {
      encoding: "utf8",
      env: { ...process.env, LC_ALL: "en_US" },
    });
  const commands = [...help().matchAll(/^ {2}posline (\w+)/gm)].map(([, name = ""]) => name);
  return new Map(
    commands.map((name) => {
      const text = help(name);
      // yargs' own command shows the help of the whole.
      const [, options = ""] = /^Options:\n((?:.+\n)*)/m.exec(text) ?? [];
      const own = text.startsWith(`posline ${name}`) ? [...options.matchAll(/^ {2,6}(?:-\w, )?(--[a-z0-9-]+)/gm)] : [];
      return [name, own.map(([, flag = ""]) => flag).filter((flag) => flag !== "--version" && flag !== "--help")];
    }),
  );
}
