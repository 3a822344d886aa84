// Makes Debian packages of dist/: `npm run deb [-- --arch amd64|arm64|armhf|all] [--standalone] [--out FOLDER]`, and puts them into an
// apt repository: `--repository FOLDER --sign-with KEY|--unsigned [--suite NAME]`. `--index` makes none: the repository's index alone.
//
// dpkg-deb alone, no debhelper: what a package holds is a list of files and three short scripts, and made this way it comes out
// the same, byte for byte, from the same commit. The time in it is SOURCE_DATE_EPOCH, or the last commit's. DEB_MAINTAINER
// ("Name <name@example.org>") and DEB_HOMEPAGE (a URL) name whoever publishes it.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { pack } from "./deb/archive.mjs";
import { publisherOf } from "./deb/control.mjs";
import { add, index, openRepository } from "./deb/repository.mjs";
import { standaloneArchitectures, withRuntime } from "./deb/standalone.mjs";
import { architectures, fill, fillLab, manualsOf } from "./deb/tree.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

function fail(reason, what = "package") {
  console.error(`Cannot make the ${what}: ${reason}`);
  process.exit(1);
}

const failRepository = ({ message }) => fail(message, "repository");

function optionsOf() {
  const options = {
    arch: { type: "string", default: "all" },
    standalone: { type: "boolean", default: false },
    out: { type: "string", default: join(root, "out") },
    repository: { type: "string" },
    suite: { type: "string" },
    "sign-with": { type: "string" },
    unsigned: { type: "boolean" },
    index: { type: "boolean" },
  };
  try {
    const { values } = parseArgs({ options, strict: true, allowPositionals: false });
    const alone = ["suite", "sign-with", "unsigned", "index"].find((name) => values[name] !== undefined);
    if (alone !== undefined && values.repository === undefined) throw new Error(`--${alone} needs --repository FOLDER`);
    return values;
  } catch (error) {
    return fail(error.message);
  }
}

/** When the release was made: the same for everybody who makes it. */
function releaseDate() {
  const git = () => spawnSync("git", ["-C", root, "log", "-1", "--format=%ct"], { encoding: "utf8" }).stdout?.trim();
  const seconds = process.env.SOURCE_DATE_EPOCH ?? git();
  if (!/^\d{1,12}$/.test(seconds ?? "")) fail("the time of the release is unknown without git: set SOURCE_DATE_EPOCH");
  return new Date(Number(seconds) * 1000);
}

async function make(release, manuals, out) {
  const work = await mkdtemp(join(tmpdir(), "posline-deb-"));
  try {
    const tree = join(work, "tree");
    const runtime = release.name === "posline-standalone" ? await withRuntime(root, work, release.architecture) : undefined;
    if (release.name === "posline-lab") await fillLab(tree, root, release);
    else await fill(tree, root, { release, manuals, runtime });
    const file = join(out, `${release.name}_${release.version}_${release.architecture}.deb`);
    await pack(tree, file, release.date);
    console.log(relative(process.cwd(), file));
    return file;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Makes the packages that the options ask for. @returns their files. */
async function makeAll({ arch, standalone, out }) {
  if (arch !== "all" && !Object.hasOwn(architectures, arch)) {
    fail(`unknown architecture ${arch}: use ${Object.keys(architectures).join(", ")} or all`);
  }
  if (!existsSync(join(root, "dist/posline.cjs"))) fail("there is no dist/posline.cjs: run npm run build");
  if (spawnSync("dpkg-deb", ["--version"]).error !== undefined) fail("dpkg-deb is missing: sudo apt-get install dpkg");
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const date = releaseDate();
  let publisher;
  try {
    publisher = publisherOf(process.env);
  } catch (error) {
    fail(error.message);
  }
  const made = standalone ? standaloneArchitectures : Object.keys(architectures);
  if (arch !== "all" && !made.includes(arch))
    fail(`no maintained Node runtime for ${arch} is published: use posline with nodejs 20.19 or newer`);
  const manuals = manualsOf(root, { version, date });
  const files = [];
  const name = standalone ? "posline-standalone" : "posline";
  const releases = (arch === "all" ? made : [arch]).map((architecture) => ({ name, architecture }));
  for (const each of [...releases, { name: "posline-lab", architecture: "all" }]) {
    const release = { ...each, version, date, publisher };
    files.push(await make(release, manuals, resolve(out)).catch((error) => fail(error.message)));
  }
  return files;
}

const options = optionsOf();
const repository =
  options.repository === undefined
    ? undefined
    : await openRepository({ ...options, repository: resolve(options.repository) }).catch(failRepository);
const files = options.index ? [] : await makeAll(options);
if (repository !== undefined) {
  try {
    for (const file of files) await add(repository, file);
    for (const line of await index(repository)) console.log(line);
  } catch (error) {
    failRepository(error);
  }
}
