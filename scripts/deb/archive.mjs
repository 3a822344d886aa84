// A Debian archive from a folder, byte for byte the same whenever and wherever it is made from the same files.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, lstat, lutimes, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

/** Every path below a folder, sorted by name alone. */
async function pathsIn(folder) {
  const entries = await readdir(folder, { recursive: true });
  return entries.sort((a, b) => (a < b ? -1 : 1)).map((name) => join(folder, name));
}

async function sums(tree) {
  const lines = [];
  for (const path of await pathsIn(tree)) {
    const name = relative(tree, path);
    if (name.startsWith("DEBIAN") || !(await lstat(path)).isFile()) continue;
    lines.push(
      `${createHash("md5")
        .update(await readFile(path))
        .digest("hex")}  ${name}\n`,
    );
  }
  return lines.join("");
}

/** KiB that the files take, as dpkg counts them: each in whole KiB, a folder one. */
export async function installedKiB(tree) {
  let total = 0;
  for (const path of await pathsIn(tree)) {
    const stat = await lstat(path);
    total += stat.isFile() ? Math.ceil(stat.size / 1024) : 1;
  }
  return total;
}

/** Writes a file below the tree; what isn't executable is readable by all. */
export async function put(tree, path, contents, mode = 0o644) {
  const file = join(tree, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, contents);
  await chmod(file, mode);
}

/** Compresses as `gzip -9n` does, which puts no name and no time into the file. */
export function gzip(text) {
  return execFileSync("gzip", ["-9nc"], { input: text });
}

/** Packs the tree into a file. Every time in it is the release's. */
export async function pack(tree, file, date) {
  await put(tree, "DEBIAN/md5sums", await sums(tree));
  for (const path of [...(await pathsIn(tree)), tree]) {
    const stat = await lstat(path);
    if (stat.isDirectory()) await chmod(path, 0o755);
  }
  for (const path of [...(await pathsIn(tree)), tree]) await lutimes(path, date, date);
  await mkdir(dirname(file), { recursive: true });
  const epoch = String(Math.floor(date.getTime() / 1000));
  // One thread: how xz cuts its input in pieces depends on how many there are. Under its own name only when it is whole.
  execFileSync("dpkg-deb", ["--root-owner-group", "-Zxz", "-z6", "--build", tree, `${file}.part`], {
    env: { ...process.env, SOURCE_DATE_EPOCH: epoch, DPKG_DEB_THREADS_MAX: "1", LC_ALL: "C", TZ: "UTC" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  await rename(`${file}.part`, file);
}
