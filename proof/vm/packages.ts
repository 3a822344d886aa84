import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cacheDir, must, projectDir } from "./host.ts";

/** Our Debian packages, made of the bundle as it is, anew in each run. */

export type Architecture = "amd64" | "arm64" | "armhf";

const made = new Set<string>();
const { version } = JSON.parse(readFileSync(join(projectDir, "package.json"), "utf8")) as { readonly version: string };

/** The package of an architecture, which needs a Node of the distribution. */
export const packageOf = (architecture: Architecture) => make("posline", ["--arch", architecture], architecture);
/** The same with a Node of its own. */
export const standaloneOf = (architecture: Architecture) =>
  make("posline-standalone", ["--arch", architecture, "--standalone"], architecture);

function make(name: string, options: readonly string[], architecture: Architecture): string {
  const path = join(cacheDir, `${name}_${version}_${architecture}.deb`);
  if (!made.has(path)) must([process.execPath, "scripts/deb.mjs", ...options, "--out", cacheDir], { cwd: projectDir });
  made.add(path);
  if (!existsSync(path)) throw new Error(`Cannot go on: scripts/deb.mjs has not made ${path}`);
  return path;
}

/** What is in a package, laid out in a new folder. */
export function unpacked(path: string, folder: string): string {
  mkdirSync(folder, { recursive: true });
  must(["dpkg-deb", "-x", path, folder]);
  return folder;
}

/** The same package under a higher version number. */
export function newerPackage(path: string): string {
  const folder = mkdtempSync(join(tmpdir(), "posline-newer-"));
  try {
    must(["dpkg-deb", "-R", path, join(folder, "raw")]);
    const control = join(folder, "raw", "DEBIAN", "control");
    writeFileSync(control, readFileSync(control, "utf8").replace(/^Version: (.*)$/m, "Version: $1+newer"));
    const newer = path.replace(version, `${version}+newer`);
    must(["dpkg-deb", "--root-owner-group", "-b", join(folder, "raw"), newer]);
    return newer;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
