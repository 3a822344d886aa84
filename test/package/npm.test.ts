import assert from "node:assert/strict";
import { execFileSync, type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { before, test } from "node:test";
import { ask } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { PoslineProcess } from "../support/posline-process.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { clone, folder, root, version } from "./packages.ts";

/** `npm pack` gives a package that works: packed from a copy without dist/, and installed into an empty folder. */

/** Where the package was installed; undefined where no registry is reached. */
let installed: string | undefined;
let noNetwork = "";
/** The files of the package. */
let packed: readonly string[] = [];
const copy = clone();

/** npm as a user of a new shell has it: nothing of the npm that runs this test is handed on. */
function npm(cwd: string, ...args: readonly string[]): SpawnSyncReturns<string> {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^npm_(?:package|lifecycle|command)/.test(name)),
  );
  return spawnSync("npm", [...args], { cwd, env, encoding: "utf8", timeout: 180_000 });
}

/** Errors of npm that mean that no registry can be reached, and say nothing of the package. */
const unreachable = /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ENOTCACHED)\b/;

/** Installs into a folder. @returns false where no registry can be reached. */
function install(cwd: string, ...what: readonly string[]): boolean {
  const { status, stderr } = npm(cwd, "install", "--ignore-scripts", "--no-audit", "--no-fund", ...what);
  if (status === 0) return true;
  assert.match(stderr, unreachable, stderr);
  noNetwork = `npm reaches no registry: ${unreachable.exec(stderr)?.[0]}`;
  return false;
}

function emptyProject(): string {
  const made = folder();
  writeFileSync(join(made, "package.json"), '{ "name": "till", "version": "1.0.0", "private": true }\n');
  return made;
}

before(() => {
  const out = folder();
  const { status, stderr } = npm(copy, "pack", "--pack-destination", out);
  assert.equal(status, 0, stderr);
  const file = join(out, `posline-${version}.tgz`);
  assert.deepEqual(readdirSync(out), [`posline-${version}.tgz`]);
  packed = execFileSync("tar", ["-tzf", file], { encoding: "utf8" }).trim().split("\n");
  const project = emptyProject();
  if (install(project, file)) installed = project;
});

test("npm pack builds first: the package has the command and the client, and not what its dependency brings", () => {
  const needed = [
    ...["dist/posline.cjs", "dist/lab.cjs", "dist/main.cjs", "dist/more.cjs", "dist/examples.json"],
    ...["dist/client/client.cjs", "dist/client/client.mjs", "dist/client/line.mjs", "dist/client/browser.mjs"],
    "README.md",
  ];
  for (const name of needed) assert.ok(packed.includes(`package/${name}`), name);
  assert.ok(!packed.some((name) => name.startsWith("package/dist/prebuilds/")));
  assert.deepEqual(packed.filter((name) => /^package\/(?:src|test|scripts|node_modules|out)\//.test(name)).sort(), [
    ...["package/scripts/prometheus/grafana-dashboard.json", "package/scripts/prometheus/posline.rules.yml"],
    ...["package/scripts/prometheus/prometheus.yml", "package/scripts/wireshark/posline.lua"],
    ...["package/test/vectors/contracts/bank.md", "package/test/vectors/contracts/fiscal.md"],
    "package/test/vectors/contracts/qr.md",
  ]);
});

test("the same sources, built in another folder, give the same bytes in dist/", () => {
  const built = (of: string) =>
    readdirSync(join(of, "dist"), { recursive: true, encoding: "utf8" }).filter((name) =>
      statSync(join(of, "dist", name)).isFile(),
    );
  assert.deepEqual(built(copy).sort(), built(root).sort());
  for (const name of built(root)) {
    const isSame = readFileSync(join(copy, "dist", name)).equals(readFileSync(join(root, "dist", name)));
    assert.ok(isSame, `dist/${name} differs: is this one built from these sources?`);
  }
});

/** Pages for those who change posline, of which README says where they are. */
const forMaintainers = /^package\/(?:CONTRIBUTING|SECURITY|docs\/(?:architecture|decisions|development|proof))\.md$/;

test("the links of the package's pages lead to files of the package, or to pages that README says are in the repository", () => {
  assert.deepEqual(
    packed.filter((name) => forMaintainers.test(name)),
    [],
  );
  const pages = packed.filter((name) => /^package\/(?:README\.md|docs\/.*\.md)$/.test(name));
  assert.ok(pages.length > 10, pages.join());
  for (const name of pages) {
    const text = readFileSync(join(root, name.slice("package/".length)), "utf8").replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");
    for (const [, target = ""] of text.matchAll(/\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g)) {
      if (/^https?:/.test(target)) continue;
      const file = posix.join(posix.dirname(name), target);
      assert.ok(
        forMaintainers.test(file) || packed.some((each) => each === file || each.startsWith(`${file}/`)),
        `${name} leads to ${target}`,
      );
    }
  }
});

test("the package brings 10 packages at most", (t) => {
  if (installed === undefined) return t.skip(noNetwork);
  const lock: { packages: Record<string, unknown> } = JSON.parse(
    readFileSync(join(installed, "node_modules/.package-lock.json"), "utf8"),
  );
  const names = Object.keys(lock.packages).filter((name) => name !== "node_modules/posline");
  assert.ok(names.length > 0 && names.length <= 10, names.join(" "));
});

test("the installed command says its version, and plays a terminal by npx posline emulate", async (t) => {
  if (installed === undefined) return t.skip(noNetwork);
  assert.equal(npm(installed, "exec", "--no", "--", "posline", "--version").stdout.trim(), version);
  const [bank = 0, fiscal = 0, qr = 0] = await freePorts(3);
  const ports = { POSLINE_BANK_PORT: `${bank}`, POSLINE_FISCAL_PORT: `${fiscal}`, POSLINE_QR_PORT: `${qr}` };
  const child = spawn("npx", ["--no", "posline", "emulate", "--no-admin"], {
    cwd: installed,
    env: { ...process.env, ...ports },
    stdio: "ignore",
    detached: true,
  });
  const closed = once(child, "close");
  // npx, its shell and the command are one group.
  t.after(async () => {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
  });
  t.after(() => closed);
  const asked = () =>
    ask(bank, "POST", "/terminals", "").then(
      ({ status }) => status === 200,
      () => false,
    );
  await until(asked, "the emulator's answer", 30_000);
});

/** A terminal on a pty, and posline's own files as processes beside it. */
async function onALine(
  file: (link: string) => readonly [string, ...string[]],
  body: (started: PoslineProcess) => Promise<void>,
) {
  const link = join(folder(), "tty");
  const terminal = new Terminal(
    link,
    answering(() => '{"status":"success","data":[]}'),
  );
  const [path, ...args] = file(link);
  // Bank alone is served.
  const started = new PoslineProcess(args, { file: path, env: { POSLINE_FISCAL_PORT: undefined, POSLINE_QR_PORT: undefined } });
  try {
    await body(started);
  } finally {
    if (started.child.exitCode === null) await started.ended("SIGKILL");
    terminal.unplug();
  }
}

test("the installed command drives a line, though no script of a package was run", async (t) => {
  if (installed === undefined) return t.skip(noNetwork);
  const file = join(installed, "node_modules/posline/dist/posline.cjs");
  await onALine(
    (link) => {
      const config = `${link}.json`;
      writeFileSync(config, JSON.stringify({ lines: { till: { path: link } }, services: { bank: { line: "till" } } }));
      return [file, "serve", "--config", config];
    },
    async (started) => {
      const bank = await started.port("bank");
      await until(() => ask(bank, "POST", "/terminals", "").then(({ status }) => status === 200), "the terminal's answer");
    },
  );
});

test("the installed client drives a line of its own, imported and required", async (t) => {
  if (installed === undefined) return t.skip(noNetwork);
  const call = `const client = createClient({ line: { path: process.argv[2], services: ["bank"] } });
client.bank.terminals().then((answer) => console.log(answer.status)).finally(() => client.close());
`;
  writeFileSync(join(installed, "line.mjs"), `import { createClient } from "posline/line";\n${call}`);
  writeFileSync(join(installed, "line.cjs"), `const { createClient } = require("posline/line");\n${call}`);
  for (const name of ["line.mjs", "line.cjs"]) {
    const file = join(installed, name);
    await onALine(
      (link) => [file, link],
      async (started) => {
        assert.equal(await started.ended(), 0, started.stderr);
        assert.equal(started.stdout, "success\n");
      },
    );
  }
});

/** The lines that must compile, and those that must not, as test/client has them for the sources. */
function consumer(): string {
  const text = readFileSync(join(root, "test/client/types.test.ts"), "utf8");
  const functions = [...text.matchAll(/export async function compiled[\s\S]*?\n\}\n/g)].map(([found]) => found);
  assert.equal(functions.length, 2);
  const body = functions.join("\n").replaceAll("createHttpClient", "createClient");
  assert.ok(body.includes("@ts-expect-error"));
  return `import { createClient, type Client, UnknownError } from "posline";\n${body}\nexport const client: Client = createClient();\nexport { UnknownError };\n`;
}

const line = `import { createClient, type ClientOptions } from "posline/line";
const options: ClientOptions = { line: { path: "/dev/ttyUSB0", baudRate: 9600 } };
export const client = createClient(options);
`;

for (const typescript of ["5.4", "latest"]) {
  test(`the client's types compile without @types/node and skipLibCheck (TypeScript ${typescript})`, (t) => {
    if (installed === undefined) return t.skip(noNetwork);
    const project = folder();
    writeFileSync(join(project, "package.json"), '{ "type": "module" }\n');
    if (!install(project, `typescript@${typescript}`)) return t.skip(noNetwork);
    // As npm puts it: a folder of its own, and nothing of posline's development above it.
    cpSync(join(installed, "node_modules/posline"), join(project, "node_modules/posline"), { recursive: true });
    mkdirSync(join(project, "src"));
    writeFileSync(join(project, "src/till.ts"), consumer());
    writeFileSync(join(project, "src/required.cts"), consumer());
    writeFileSync(join(project, "src/page.ts"), consumer());
    writeFileSync(join(project, "src/line.ts"), line);
    const compile = (options: object, files: readonly string[]) => {
      const compilerOptions = { strict: true, target: "es2022", types: [], skipLibCheck: false, noEmit: true, ...options };
      writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
      const tsc = join(project, "node_modules/typescript/bin/tsc");
      const { status, stdout } = spawnSync(process.execPath, [tsc], { cwd: project, encoding: "utf8" });
      assert.equal(status, 0, `${JSON.stringify(options)}\n${stdout}`);
    };
    // The strictest that a consumer may be.
    const strictest = { exactOptionalPropertyTypes: true, noPropertyAccessFromIndexSignature: true };
    compile({ module: "nodenext", ...strictest }, ["src/till.ts", "src/required.cts", "src/line.ts"]);
    compile({ module: "esnext", moduleResolution: "bundler", customConditions: ["browser"] }, ["src/page.ts"]);
  });
}
