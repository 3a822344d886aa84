// An apt repository in a folder. What lies in pool/SUITE is what the suite offers, so that a version is offered to another ring by
// copying its file there, and an older one stays until somebody takes its file away.
//
// apt-ftparchive makes the index from the files alone. reprepro would keep a database beside them, and one version of each package.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { access, copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { signerOf } from "./signer.mjs";
import { architectures } from "./tree.mjs";

/** What a suite is called: a folder's name, and a word of apt's sources. */
const suiteName = /^[a-z0-9][a-z0-9.-]*$/;

/** Index and signature are read line by line, and may be longer than Node takes by itself. */
const maxBuffer = 1 << 26;

function ran(program, args, options = {}) {
  return execFileSync(program, args, { maxBuffer, stdio: ["inherit", "pipe", "inherit"], ...options });
}

/**
 * Keeps other publishers out for as long as this process lives, however it ends: a child holds the lock until its input is closed.
 * @throws Error if another one has it.
 */
async function lock(folder) {
  const args = ["--nonblock", folder, "sh", "-c", "echo locked; exec cat"];
  const holder = spawn("flock", args, { stdio: ["pipe", "pipe", "inherit"] });
  const isHeld = await new Promise((resolve, reject) => {
    holder.on("error", () => reject(new Error("flock is missing: sudo apt-get install util-linux")));
    holder.on("exit", () => resolve(false));
    holder.stdout.once("data", () => resolve(true));
  });
  if (!isHeld) throw new Error(`another process publishes into ${folder}: run this again when it has ended`);
  for (const each of [holder, holder.stdin, holder.stdout]) each.unref();
}

/**
 * The repository that the options name, with a folder for the suite in which packages are put.
 * @throws Error if it can't be made here: a program or the key is missing, nobody may write there, another publisher does, or what
 * lies there can't be offered.
 */
export async function openRepository(options) {
  // An index alone puts nothing anywhere, and so begins no suite.
  const { repository: folder, suite = options.index ? "" : "stable" } = options;
  if (suite !== "" && !suiteName.test(suite)) throw new Error(`unknown suite ${suite}: use small letters, digits, "-" and "."`);
  if (spawnSync("apt-ftparchive", ["--version"]).error !== undefined)
    throw new Error("apt-ftparchive is missing: sudo apt-get install apt-utils");
  const signer = signerOf(options);
  // Web server and boxes read all that is written from here on; who else writes it is left to the operator's umask.
  process.umask(process.umask() & ~0o555);
  try {
    await mkdir(join(folder, "pool", suite), { recursive: true });
    for (const each of [folder, join(folder, "pool", suite)]) await access(each, constants.W_OK);
  } catch (error) {
    throw new Error(`cannot write into ${folder} (${error.code}): name a folder of yours`);
  }
  await lock(folder);
  const repository = { folder, suite, signer };
  await refuseHalf(repository);
  return repository;
}

async function suitesOf({ folder }) {
  const entries = await readdir(join(folder, "pool"), { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

/** The packages that a suite offers. */
async function packagesIn({ folder }, suite) {
  return (await readdir(join(folder, "pool", suite))).filter((name) => name.endsWith(".deb")).sort();
}

/** @throws Error naming a package in the pool of which a part is missing: apt-ftparchive leaves it out, and says nothing. */
async function refuseHalf(repository) {
  const whole = new Set();
  for (const suite of await suitesOf(repository)) {
    for (const name of await packagesIn(repository, suite)) {
      const file = join("pool", suite, name);
      const digest = createHash("sha256")
        .update(await readFile(join(repository.folder, file)))
        .digest("hex");
      // The same file lies in several suites, and unpacking it takes seconds.
      if (whole.has(digest)) continue;
      const { status } = spawnSync("dpkg-deb", ["--contents", file], { cwd: repository.folder, stdio: "ignore" });
      if (status !== 0) throw new Error(`${file} is no whole package: copy it there again, or take it away`);
      whole.add(digest);
    }
  }
}

/**
 * Puts a package into the suite.
 * @throws Error if any suite has other bytes under its name: boxes would hold two packages for one.
 */
export async function add(repository, file) {
  const { folder, suite } = repository;
  const name = basename(file);
  const bytes = await readFile(file);
  for (const each of await suitesOf(repository)) {
    const there = await readFile(join(folder, "pool", each, name)).catch(() => undefined);
    if (there !== undefined && !there.equals(bytes))
      throw new Error(`pool/${each}/${name} has other bytes, and a version never changes: raise version in package.json`);
  }
  const place = join(folder, "pool", suite, name);
  await copyFile(file, `${place}.part`);
  await rename(`${place}.part`, place);
}

/** Makes and signs the index of each suite anew. @returns what each one has, in a line. */
export async function index(repository) {
  const { folder, signer } = repository;
  // Whole beside the old one before any of it is put in place: a signature may take a while, or not be made.
  const made = join(folder, ".new");
  await rm(made, { recursive: true, force: true });
  try {
    await mkdir(made);
    const said = [];
    for (const suite of await suitesOf(repository)) {
      const count = await indexSuite(repository, suite, join(made, "dists", suite));
      const by = signer === undefined ? "unsigned" : `signed by ${signer}`;
      said.push(`${join(folder, "dists", suite)}: ${count} packages, ${by}`);
    }
    if (signer !== undefined) await writeFile(join(made, "posline.gpg"), ran("gpg", ["--export", signer]));
    await putInPlace(repository, made);
    return said;
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

/**
 * Makes a suite's index in a folder. @returns how many packages it offers.
 * @throws Error naming a package that it can't offer.
 */
async function indexSuite(repository, suite, place) {
  const { folder, signer } = repository;
  const offered = new Set();
  for (const architecture of Object.keys(architectures)) {
    const list = ran("apt-ftparchive", ["--arch", architecture, "packages", join("pool", suite)], { cwd: folder });
    for (const [, file] of list.toString().matchAll(/^Filename: (.*)$/gm)) offered.add(basename(file));
    await mkdir(join(place, "main", `binary-${architecture}`), { recursive: true });
    await writeFile(join(place, "main", `binary-${architecture}`, "Packages"), list);
  }
  const left = (await packagesIn(repository, suite)).find((name) => !offered.has(name));
  if (left !== undefined)
    throw new Error(
      `pool/${suite}/${left} would be offered to no box: its name must end with _ARCHITECTURE.deb as dpkg-deb made it, ` +
        `for ${Object.keys(architectures).join(", ")} or all`,
    );
  const fields = {
    Origin: "posline",
    Label: "posline",
    Suite: suite,
    Codename: suite,
    Components: "main",
    Architectures: Object.keys(architectures).join(" "),
  };
  const options = Object.entries(fields).flatMap(([name, value]) => ["-o", `APT::FTPArchive::Release::${name}=${value}`]);
  // By hash a box finds the lists that its own Release names, while newer ones are put in place.
  const release = ran("apt-ftparchive", [...options, "-o", "APT::FTPArchive::DoByHash=true", "release", place]);
  await writeFile(join(place, "Release"), release);
  if (signer !== undefined)
    await writeFile(
      join(place, "InRelease"),
      // By its name: a gpg that ends before it has read its input would be told as EPIPE, without its own words.
      ran("gpg", ["--local-user", signer, "--output", "-", "--clearsign", join(place, "Release")], { stdio: "pipe" }),
    );
  return offered.size;
}

/** In which order files are put in place, after all others: nothing is announced that isn't there. */
const lastFiles = ["Packages", "InRelease", "Release"];

/** Puts what was made in the place of what boxes read; at no moment is there a Release beside the InRelease of another one. */
async function putInPlace({ folder, signer }, made) {
  await mkdir(join(folder, "dists"), { recursive: true });
  // What lies there may have been made or copied under another umask.
  const open = (type, mode) => ["-type", type, "!", "-perm", `-a+${mode}`, "-exec", "chmod", `a+${mode}`, "{}", "+"];
  ran("find", ["pool", "dists", ...open("d", "rx"), "-o", ...open("f", "r")], { cwd: folder });
  const entries = await readdir(made, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => relative(made, join(parentPath, name)));
  const rank = (file) => lastFiles.indexOf(basename(file));
  for (const file of files.sort((one, other) => rank(one) - rank(other))) {
    const place = join(folder, dirname(file));
    await mkdir(place, { recursive: true });
    // Boxes take InRelease where there is one, and don't miss the other.
    if (basename(file) === "InRelease") await rm(join(place, "Release"), { force: true });
    if (basename(file) === "Release" && signer === undefined) await rm(join(place, "InRelease"), { force: true });
    await rename(join(made, file), join(folder, file));
  }
}
