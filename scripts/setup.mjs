// What `npm start` and `npm test` need, made from nothing when it isn't there: dependencies as locked, and the bundle.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const timeOf = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0);

function run(command, ...args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
  if (error !== undefined) console.error(`Cannot set up: ${command} could not be run: ${error.message}`);
  if (status !== 0) process.exit(status || 1);
}

/** When the newest of a folder's files was changed. */
function newestIn(folder) {
  const times = readdirSync(folder, { recursive: true }).map((name) => timeOf(join(folder, name)));
  return Math.max(...times);
}

// A Node that is too old says so, as long as it can read the whole of this file.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Cannot set up: this is Node ${process.versions.node}, and posline needs 20.19 or newer`);
  process.exit(1);
}
// npm writes this file at the end of each installation.
if (timeOf(join(root, "node_modules/.package-lock.json")) < timeOf(join(root, "package-lock.json"))) {
  // No package needs a script at its installation: esbuild and serialport bring what they need ready-made.
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  // npm names its own file to what it runs. On Windows the command `npm` is a file that only a shell runs.
  const npm = process.env.npm_execpath || "npm";
  if (npm.endsWith(".js")) run(process.execPath, npm, ...args);
  else run("npm", ...args);
}
const made = timeOf(join(root, "dist/posline.cjs"));
const sources = Math.max(
  newestIn(join(root, "src")),
  timeOf(join(root, "package.json")),
  timeOf(join(root, "scripts/build.mjs")),
  timeOf(join(root, "scripts/client-types.mjs")),
  newestIn(join(root, "scripts/client-types")),
);
if (made < sources) run(process.execPath, join(root, "scripts/build.mjs"));
