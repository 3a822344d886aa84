// An apt repository in a folder. What lies in pool/SUITE is what the suite offers, so that a version is offered to another ring by
// copying its file there, and an older one stays until somebody takes its file away.
//
// apt-ftparchive makes the index from the files alone. reprepro would keep a database beside them, and one version of each package.
import { execFileSync, spawnSync } from "node:child_process";
import { constants } from "node:fs";
import { access, copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { architectures } from "./tree.mjs";

/** What a suite is called: a folder's name, and a word of apt's sources. */
const suiteName = /^[a-z0-9][a-z0-9.-]*$/;

/** Index and signature are read line by line, and may be longer than Node takes by itself. */
const maxBuffer = 1 << 26;

function ran(program, args, options = {}) {
  return execFileSync(program, args, { maxBuffer, stdio: ["inherit", "pipe", "inherit"], ...options });
}

/**
 * The key to sign with, by its fingerprint; undefined if the operator said that nothing is to be signed.
 * @throws Error if neither was said, or gpg has no such key.
 */
function signerOf({ "sign-with": key, unsigned }) {
  if (unsigned && key !== undefined) throw new Error("--unsigned and --sign-with exclude each other: leave one out");
  if (unsigned) return undefined;
  if (key === undefined)
    throw new Error(
      "a box can't tell an unsigned repository from a forged one: name a key by --sign-with KEY, or say --unsigned",
    );
  const args = ["--batch", "--with-colons", "--list-secret-keys", "--", key];
  const { error, stdout } = spawnSync("gpg", args, { encoding: "utf8", maxBuffer });
  if (error !== undefined) throw new Error("gpg is missing: sudo apt-get install gpg");
  const [, fingerprint] = /^fpr:(?:[^:]*:){8}([0-9A-F]+):/m.exec(stdout) ?? [];
  if (fingerprint === undefined)
    throw new Error(
      `gpg has no secret key ${key}: gpg --list-secret-keys shows those it has, gpg --quick-generate-key makes one`,
    );
  return fingerprint;
}

/**
 * The repository that the options name, with a folder for the suite in which packages are put.
 * @throws Error if it can't be made here: a program or the key is missing, or nobody may write there.
 */
export async function openRepository(options) {
  // An index alone puts nothing anywhere, and so begins no suite.
  const { repository: folder, suite = options.index ? "" : "stable" } = options;
  if (suite !== "" && !suiteName.test(suite)) throw new Error(`unknown suite ${suite}: use small letters, digits, "-" and "."`);
  if (spawnSync("apt-ftparchive", ["--version"]).error !== undefined)
    throw new Error("apt-ftparchive is missing: sudo apt-get install apt-utils");
  const signer = signerOf(options);
  try {
    await mkdir(join(folder, "pool", suite), { recursive: true });
    for (const each of [folder, join(folder, "pool", suite)]) await access(each, constants.W_OK);
  } catch (error) {
    throw new Error(`cannot write into ${folder} (${error.code}): name a folder of yours`);
  }
  return { folder, suite, signer };
}

async function suitesOf({ folder }) {
  const entries = await readdir(join(folder, "pool"), { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
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

/** Writes a file that boxes may read at any moment: it is there whole, or as it was. */
async function replace(file, contents) {
  await writeFile(`${file}.part`, contents);
  await rename(`${file}.part`, file);
}

/** Makes and signs the index of each suite anew. @returns what each one has, in a line. */
export async function index(repository) {
  const { folder, signer } = repository;
  if (signer !== undefined) await replace(join(folder, "posline.gpg"), ran("gpg", ["--export", signer]));
  const said = [];
  for (const suite of await suitesOf(repository)) {
    const files = (await readdir(join(folder, "pool", suite))).filter((name) => name.endsWith(".deb"));
    await indexSuite(repository, suite);
    said.push(
      `${join(folder, "dists", suite)}: ${files.length} packages, ${signer === undefined ? "unsigned" : `signed by ${signer}`}`,
    );
  }
  return said;
}

async function indexSuite({ folder, signer }, suite) {
  const place = join(folder, "dists", suite);
  for (const architecture of Object.keys(architectures)) {
    const list = ran("apt-ftparchive", ["--arch", architecture, "packages", join("pool", suite)], { cwd: folder });
    await mkdir(join(place, "main", `binary-${architecture}`), { recursive: true });
    await replace(join(place, "main", `binary-${architecture}`, "Packages"), list);
  }
  const fields = {
    Origin: "posline",
    Label: "posline",
    Suite: suite,
    Codename: suite,
    Components: "main",
    Architectures: Object.keys(architectures).join(" "),
  };
  const options = Object.entries(fields).flatMap(([name, value]) => ["-o", `APT::FTPArchive::Release::${name}=${value}`]);
  // By hash a box finds the lists that its own Release names, while newer ones are being written.
  const release = ran("apt-ftparchive", [...options, "-o", "APT::FTPArchive::DoByHash=true", "release", place]);
  const signed = join(place, "InRelease");
  // The signed one comes last: nothing is announced that isn't there.
  await replace(join(place, "Release"), release);
  if (signer === undefined) await rm(signed, { force: true });
  else await replace(signed, ran("gpg", ["--local-user", signer, "--clearsign"], { input: release, stdio: "pipe" }));
}
