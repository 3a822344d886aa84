// Makes a release: `npm run release -- X.Y.Z [--arch amd64] [--standalone]`, with the flags of `npm run deb`. It sets the version, dates
// the changelog's part, makes in out/X.Y.Z/ all that is published, commits and tags. It pushes and publishes nothing.
//
// What is made comes from the commit, so the tag comes last; what fails before it leaves the repository as it was.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { version as runtimeVersion } from "./deb/standalone.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const textOf = (path) => readFileSync(join(root, path), "utf8");

function run(program, ...args) {
  const options = { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"], maxBuffer: 64 << 20 };
  return execFileSync(program, args, options).trim();
}

function fail(reason) {
  console.error(`Cannot release: ${reason}`);
  process.exit(1);
}

function optionsOf() {
  try {
    const options = { arch: { type: "string", default: "all" }, standalone: { type: "boolean", default: false } };
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    if (positionals.length !== 1 || !/^\d+\.\d+\.\d+$/.test(positionals[0])) throw new Error("name one version, as X.Y.Z");
    return { ...values, version: positionals[0] };
  } catch (error) {
    return fail(error.message);
  }
}

/** The changelog's part that is to be released: its heading, and what stands below it. */
const unreleased = /^## Unreleased\n([\s\S]*?)(?=^## |(?![\s\S]))/m;

function isHigher(version, other) {
  const [ours, theirs] = [version, other].map((each) => each.split(".").map(Number));
  const at = ours.findIndex((number, place) => number !== theirs[place]);
  return at !== -1 && ours[at] > theirs[at];
}

/** Sets the version wherever it stands: for npm, in the changelog, and in the names of files that the pages tell. */
function setVersion(version, before) {
  run("npm", "version", version, "--no-git-tag-version", "--ignore-scripts");
  const today = new Date().toISOString().slice(0, 10);
  const dated = textOf("CHANGELOG.md").replace(unreleased, (part) => part.replace("Unreleased", `${version}, ${today}`));
  writeFileSync(join(root, "CHANGELOG.md"), dated);
  for (const page of run("git", "ls-files", "README.md", "docs/*.md").split("\n")) {
    const name = new RegExp(`(posline[a-z-]*[_-])${before.replaceAll(".", "\\.")}(?=_|\\.tgz)`, "g");
    writeFileSync(join(root, page), textOf(page).replace(name, `$1${version}`));
  }
}

/**
 * What is in the packages, as CycloneDX: of npm's own list what the build put into the bundle, and serialport's binding with what npm
 * brings with it. The same commit gives the same list, so it has the commit's time and no number of its own.
 */
function contents({ version, standalone }) {
  const all = JSON.parse(run("npm", "sbom", "--sbom-format", "cyclonedx", "--sbom-type", "application", "--package-lock-only"));
  const needs = new Map(all.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  const bundled = textOf("dist/LICENSES.txt").split(`\n${"-".repeat(80)}\n\n`);
  const shipped = new Set(bundled.map((part) => part.split("\n", 1)[0].replace(/ (?=\S+$)/, "@")));
  const brought = new Set([...shipped].filter((ref) => ref.startsWith("@serialport/bindings-cpp@")));
  for (const ref of brought) for (const each of needs.get(ref) ?? []) brought.add(each);
  for (const ref of brought) shipped.add(ref);
  for (const ref of shipped)
    if (!needs.has(ref)) throw new Error(`package-lock.json has no ${ref}, which is in dist/: run npm ci`);
  const components = all.components.filter((each) => shipped.has(each["bom-ref"]));
  // npm marks as for development what is bundled.
  for (const each of components) each.properties = [];
  const own = { ...all.metadata.component, name: "posline" };
  const node = { "bom-ref": `node@${runtimeVersion}`, type: "platform", name: "node", version: runtimeVersion };
  const runtime = standalone ? [{ ...node, purl: `pkg:generic/node@${runtimeVersion}` }] : [];
  const dependsOn = [...components, ...runtime].map((each) => each["bom-ref"]);
  const others = [...shipped].sort().map((ref) => ({ ref, dependsOn: needs.get(ref).filter((each) => shipped.has(each)) }));
  return {
    ...all,
    serialNumber: undefined,
    metadata: { ...all.metadata, timestamp: run("git", "log", "-1", "--format=%cI"), component: own },
    components: [...components, ...runtime],
    dependencies: [{ ref: `posline@${version}`, dependsOn }, ...others],
  };
}

/** Makes what is published, with the list of what is in it and the checksums of all. */
function makeAll(options, out) {
  run(process.execPath, "scripts/build.mjs");
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  run("npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", out);
  const deb = (...more) => run(process.execPath, "scripts/deb.mjs", "--arch", options.arch, "--out", out, ...more);
  deb();
  if (options.standalone) deb("--standalone");
  writeFileSync(join(out, `posline-${options.version}.cdx.json`), `${JSON.stringify(contents(options), undefined, 2)}\n`);
  const hash = (name) =>
    createHash("sha256")
      .update(readFileSync(join(out, name)))
      .digest("hex");
  const sums = readdirSync(out)
    .sort()
    .map((name) => `${hash(name)}  ${name}\n`);
  writeFileSync(join(out, "SHA256SUMS"), sums.join(""));
}

const options = optionsOf();
const { version } = options;
const { version: before } = JSON.parse(textOf("package.json"));
if (run("git", "status", "--porcelain") !== "") fail("the tree has changes: commit them first");
if (run("git", "tag", "--list", `v${version}`) !== "") fail(`the tag v${version} exists`);
if (!isHigher(version, before)) fail(`${version} is not higher than ${before}`);
if (!/^- /m.test(unreleased.exec(textOf("CHANGELOG.md"))?.[1] ?? ""))
  fail('CHANGELOG.md has nothing below "## Unreleased": write what changed');
const base = run("git", "rev-parse", "HEAD");
const out = join(root, "out", version);
try {
  setVersion(version, before);
  run("git", "commit", "--quiet", "--all", "--message", `release: Set version ${version}`);
  makeAll(options, out);
  run("git", "tag", "--annotate", "--message", `posline ${version}`, `v${version}`);
} catch (error) {
  run("git", "reset", "--quiet", "--hard", base);
  fail(error.message);
}
console.log(`Made out/${version}, and the tag v${version} of a commit that is not pushed: git push --follow-tags`);
