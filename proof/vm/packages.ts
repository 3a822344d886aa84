import { appendFileSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { cacheDir, finished, must, projectDir, ran } from "./host.ts";

/** Our Debian packages, made of the bundle as it is, anew in each run. */

export type Architecture = "amd64" | "arm64" | "armhf";

/** What was begun to be made in this run, by its command. */
const made = new Map<string, Promise<void>>();
const { version } = JSON.parse(readFileSync(join(projectDir, "package.json"), "utf8")) as { readonly version: string };

/** The package of an architecture, which needs a Node of the distribution. All are made at once: what is read for them is the same. */
export const packageOf = (architecture: Architecture) => make("posline", [], architecture);
/** The same with a Node of its own. */
export const standaloneOf = (architecture: Architecture) =>
  make("posline-standalone", ["--arch", architecture, "--standalone"], architecture);

/** What the boxes have besides where they play a terminal. */
export const labPackage = () => make("posline-lab", [], "all");

async function make(name: string, options: readonly string[], architecture: Architecture | "all"): Promise<string> {
  const path = join(cacheDir, `${name}_${version}_${architecture}.deb`);
  const command = [process.execPath, "scripts/deb.mjs", ...options, "--out", cacheDir];
  const key = command.join(" ");
  const making = made.get(key) ?? finished(command, { cwd: projectDir });
  made.set(key, making);
  await making;
  if (!existsSync(path)) throw new Error(`Cannot go on: scripts/deb.mjs has not made ${path}`);
  return path;
}

/** What is in a package, laid out in a new folder. */
export function unpacked(path: string, folder: string): string {
  mkdirSync(folder, { recursive: true });
  must(["dpkg-deb", "-x", path, folder]);
  return folder;
}

/** The same package under a higher version number, and with another configuration as shipped, in this folder. */
export function newerPackage(path: string, into: string): string {
  const folder = mkdtempSync(join(tmpdir(), "posline-newer-"));
  try {
    must(["dpkg-deb", "-R", path, join(folder, "raw")]);
    const control = join(folder, "raw", "DEBIAN", "control");
    writeFileSync(control, readFileSync(control, "utf8").replace(/^Version: (.*)$/m, "Version: $1+newer"));
    appendFileSync(join(folder, "raw", "etc", "posline", "posline.json"), "\n");
    const newer = join(into, basename(path).replace(version, `${version}+newer`));
    must(["dpkg-deb", "--root-owner-group", "-b", join(folder, "raw"), newer]);
    return newer;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The environment of gpg with a home of its own, in which it has made this key. */
export function throwAwayKey(home: string, name: string): NodeJS.ProcessEnv {
  mkdirSync(home, { mode: 0o700 });
  const env = { ...process.env, GNUPGHOME: home };
  must(["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", "never"], { env });
  return env;
}

/** Makes a repository with these packages in a suite, signed with a key that nobody keeps: FOLDER/repository. */
export function repositoryWith(files: readonly string[], suite: string, folder: string): string {
  const repository = join(folder, "repository");
  const pool = join(repository, "pool", suite);
  mkdirSync(pool, { recursive: true });
  for (const file of files) copyFileSync(file, join(pool, basename(file)));
  const env = throwAwayKey(join(folder, "gnupg"), "Shop <apt@shop.example>");
  try {
    must([process.execPath, "scripts/deb.mjs", "--repository", repository, "--sign-with", "Shop", "--index"], {
      cwd: projectDir,
      env,
    });
    return repository;
  } finally {
    // gpg's agent stays in memory for as long as its home is there.
    ran(["gpgconf", "--kill", "all"], { env });
  }
}
