import assert from "node:assert/strict";
import { execFile, execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { adminDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { ask } from "../support/bridge-process.ts";
import { freePorts } from "../support/free-port.ts";
import { bundle, PoslineProcess } from "../support/posline-process.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";
import { commandLine, folder, root, version } from "./packages.ts";

/** The image and the compose file of scripts/container, and both at work where podman runs. */

const run = promisify(execFile);
const here = join(root, "scripts/container");
const composeFile = join(here, "compose.yaml");

/** What a compose file has under a path of keys: a text, or a list's texts. */
type Settings = ReadonlyMap<string, string | readonly string[]>;

/** Reads the plain YAML that the file is written in: keys, lists of texts, quotes; anything else fails the test. */
function settingsOf(text: string): Settings {
  const found = new Map<string, string | string[]>();
  const path: string[] = [];
  for (const line of text.split("\n").filter((each) => !/^ *(?:#|$)/.test(each))) {
    const parts = /^(?<indent>(?: {2})*)(?:(?<key>[\w-]+):|-)(?: (?:"(?<quoted>[^"]*)"|(?<plain>[\w./-]+)))?$/.exec(
      line,
    )?.groups;
    assert.ok(parts !== undefined, `not the YAML that this test reads: ${line}`);
    const { indent = "", key, quoted, plain } = parts;
    const value = quoted ?? plain;
    const depth = indent.length / 2;
    if (key === undefined) {
      const list = found.get(path.slice(0, depth).join(".")) ?? [];
      assert.ok(Array.isArray(list) && value !== undefined, line);
      found.set(path.slice(0, depth).join("."), [...list, value]);
    } else {
      path.splice(depth, path.length, key);
      const name = path.join(".");
      assert.ok(!found.has(name), `${name} stands twice`);
      if (value !== undefined) found.set(name, value);
    }
  }
  return found;
}

const compose = settingsOf(readFileSync(composeFile, "utf8"));
const own = "services.posline.";

function textOf(key: string): string {
  const value = compose.get(own + key);
  assert.equal(typeof value, "string", key);
  return String(value);
}

function listOf(key: string): readonly string[] {
  const value = compose.get(own + key);
  assert.ok(Array.isArray(value), key);
  return value;
}

const containerfile = readFileSync(join(here, "Containerfile"), "utf8");
const instructions = containerfile
  .replaceAll(/^#.*\n/gm, "")
  .replaceAll("\\\n", "")
  .split("\n")
  .filter((line) => line !== "")
  .map((line): readonly [string, string] => [line.slice(0, line.indexOf(" ")), line.slice(line.indexOf(" ") + 1)]);
const instruction = (name: string) => instructions.filter(([each]) => each === name).map(([, value]) => value);

const unit = readFileSync(join(root, "systemd/posline.service"), "utf8");

/** Asks the admin port as the container's healthcheck does. */
const healthcheck = listOf("healthcheck.test").slice(1);

test("compose.yaml takes every privilege away", () => {
  assert.deepEqual(listOf("cap_drop"), ["ALL"]);
  assert.deepEqual(listOf("security_opt"), ["no-new-privileges"]);
  for (const key of ["read_only", "init"]) assert.equal(textOf(key), "true", key);
  const volumes = ["/etc/posline:/etc/posline:ro", "journal:/var/lib/posline", "/dev:/dev:ro"];
  assert.deepEqual(listOf("volumes"), volumes);
});

test("compose.yaml allows the devices that posline.service allows, and stops as patiently", () => {
  const majors = [...unit.matchAll(/^DeviceAllow=char-(\d+) rw$/gm)].map(([, major]) => `c ${major}:* rw`);
  assert.ok(majors.length > 0);
  assert.deepEqual(listOf("device_cgroup_rules"), majors);
  const seconds = (text: string | undefined) => Number(/^(\d+)s?$/.exec(text ?? "")?.[1]);
  assert.ok(seconds(textOf("stop_grace_period")) >= seconds(/^TimeoutStopSec=(.*)$/m.exec(unit)?.[1]));
});

test("Containerfile and compose.yaml name only files that there are, and a command that posline has", () => {
  const context = join(here, textOf("build.context"));
  assert.equal(context, dirname(bundle));
  assert.equal(join(context, textOf("build.dockerfile")), join(here, "Containerfile"));
  const copied = instruction("COPY").flatMap((value) => {
    const [into = "", ...from] = value
      .split(" ")
      .filter((word) => !word.startsWith("--"))
      .reverse();
    return from.map((name) => {
      assert.ok(existsSync(join(context, name)), name);
      return into.endsWith("/") ? `${into}${name}` : into;
    });
  });
  assert.ok(copied.includes("/usr/lib/posline/prebuilds"));
  const [entry = "[]"] = instruction("ENTRYPOINT");
  const [program, file] = JSON.parse(entry);
  assert.equal(program, "node");
  assert.ok(copied.includes(file), entry);
  const [command = "[]"] = instruction("CMD");
  assert.ok(commandLine().has(JSON.parse(command)[0]), command);
});

test("compose.yaml's healthcheck succeeds while posline serves, and fails when it doesn't", async () => {
  const check = (port: number) => {
    const [program = "", ...args] = healthcheck.map((word) => word.replace(`:${adminDefaults.port}/`, `:${port}/`));
    assert.equal(program, "node");
    assert.ok(args.join(" ").includes(`:${port}/`));
    return run(process.execPath, args, { timeout: 15_000 }).then(
      () => 0,
      ({ code }) => code,
    );
  };
  const posline = new PoslineProcess(["serve", "--emulated"]);
  const port = await posline.port("admin");
  assert.equal(await check(port), 0);
  await posline.ended("SIGTERM");
  assert.equal(await check(port), 1);
});

/** podman, with a storage of its own that is gone with the test. */
class Engine {
  readonly #storage: string;
  readonly #runtime: readonly string[];
  /** Lower than an engine's own: a machine that is a guest itself may not be allowed to raise its limits that far. */
  readonly limits = ["--ulimit", "nofile=1024:4096", "--ulimit", "nproc=512:512"] as const;

  constructor(storage: string, runtime: string) {
    this.#storage = storage;
    this.#runtime = ["--runtime", runtime];
  }

  async do(...args: readonly string[]): Promise<string> {
    const places = ["--root", join(this.#storage, "root"), "--runroot", join(this.#storage, "run")];
    const { stdout } = await run("podman", [...this.#runtime, ...places, ...args], { timeout: 120_000 });
    return stdout.trim();
  }

  /** `podman build`, whose steps run by the same runtime. */
  build(...args: readonly string[]): Promise<string> {
    return this.do("build", "--quiet", ...this.#runtime, ...this.limits, "--network", "none", ...args);
  }

  /** Removes its containers. podman leaves its storage mounted onto itself after one that didn't start. */
  async end(): Promise<void> {
    await this.do("rm", "--all", "--force", "--time", "0");
    const mounted = join(this.#storage, "root/overlay");
    if (readFileSync("/proc/self/mountinfo", "utf8").includes(` ${mounted} `)) await run("umount", [mounted]);
  }
}

/** A root with this machine's Node, a shell and what the Containerfile runs: no network is needed, and a second is enough. */
function makeRoot(into: string): void {
  const bin = join(into, "usr/bin");
  for (const name of ["usr/bin", "etc", "proc", "sys", "dev", "tmp", "run"]) mkdirSync(join(into, name), { recursive: true });
  symlinkSync("usr/bin", join(into, "bin"));
  const found = ["sh", "env", "mkdir", "chown", "chmod", "ln"].map((name) => [name, realpathSync(`/bin/${name}`)] as const);
  for (const [name, file] of [["node", process.execPath] as const, ...found]) {
    copyFileSync(file, join(bin, name));
    const libraries = spawnSync("ldd", [file], { encoding: "utf8" }).stdout.matchAll(/(\/[^ ]+) \(0x/g);
    for (const [, library = ""] of libraries) {
      mkdirSync(join(into, dirname(library)), { recursive: true });
      copyFileSync(library, join(into, library));
    }
  }
}

/** The engine with the image, or why there is none. */
async function startEngine(): Promise<Engine | string> {
  const install = "sudo apt-get install podman runc catatonit containernetworking-plugins";
  if (spawnSync("podman", ["--version"]).error !== undefined) return `there is no podman here: ${install}`;
  if (process.getuid?.() !== 0) return "podman applies device rules only as root: run this test as root";
  const files = folder();
  const tar = join(files, "base.tar");
  makeRoot(join(files, "base"));
  execFileSync("tar", ["-C", join(files, "base"), "-cf", tar, "."]);
  const reasons: string[] = [];
  for (const runtime of ["crun", "runc"].filter((name) => spawnSync(name, ["--version"]).error === undefined)) {
    const engine = new Engine(join(files, runtime), runtime);
    try {
      await engine.do("import", "--quiet", tar, "base");
      await engine.do("run", "--rm", "--init", ...engine.limits, "base", "node", "--version");
    } catch (error) {
      await engine.end();
      const text = error instanceof Error && "stderr" in error ? String(error.stderr) : String(error);
      reasons.push(text.trim().split("\n").at(-1) ?? runtime);
      continue;
    }
    await engine.build(
      "--build-arg",
      "BASE=localhost/base",
      "-f",
      join(here, "Containerfile"),
      "-t",
      "posline",
      dirname(bundle),
    );
    return engine;
  }
  return `podman can't run a container here: ${reasons.join("; ")}`;
}

/** The flags that stand for what the compose file says, with a configuration and ports of the test's own. */
function flagsOf(config: string, ports: ReadonlyMap<number, number>): readonly string[] {
  const each = (flag: string, values: readonly string[]) => values.flatMap((value) => [flag, value]);
  return [
    ...["--init", "--read-only", "--read-only-tmpfs=false"],
    ...["--stop-timeout", textOf("stop_grace_period").replace("s", "")],
    ...["--pids-limit", textOf("pids_limit"), "--ulimit", `core=${textOf("ulimits.core")}`],
    ...["--env", `POSLINE_HOST=${textOf("environment.POSLINE_HOST")}`],
    ...each("--cap-drop", listOf("cap_drop")),
    ...each("--security-opt", listOf("security_opt")),
    ...each("--tmpfs", listOf("tmpfs")),
    ...each("--group-add", listOf("group_add")),
    ...each("--device-cgroup-rule", listOf("device_cgroup_rules")),
    ...each(
      "--volume",
      listOf("volumes").map((value) => value.replace(/^\/etc\/posline:/, `${config}:`)),
    ),
    ...each(
      "--publish",
      [...ports].map(([inside, outside]) => `127.0.0.1:${outside}:${inside}`),
    ),
  ];
}

async function sell(bank: number): Promise<void> {
  const { status, headers } = await ask(
    bank,
    "POST",
    "/sale",
    '{"pay_id":"IN-A-CONTAINER","amount":1500,"currency_name":"EUR"}',
  );
  assert.deepEqual([status, headers["x-posline-outcome"]], [200, "answered"]);
}

test("the image relays a sale as compose.yaml runs it, ends it when stopped, and keeps its journal", async (t) => {
  const engine = await startEngine();
  if (typeof engine === "string") return t.skip(engine);
  const config = folder();
  const terminal = new Terminal(
    join(folder(), "tty"),
    answering(() => '{"status":"success"}'),
  );
  t.after(() => engine.end());
  t.after(() => terminal.unplug());
  assert.equal(await engine.do("run", "--rm", ...engine.limits, "posline", "--version"), version);

  // A pty belongs to its user, a serial device to the group that the compose file adds.
  chmodSync(terminal.device, 0o666);
  chmodSync(config, 0o755);
  const file = {
    lines: { till: { path: terminal.device } },
    services: { bank: { line: "till" } },
    admin: { port: adminDefaults.port },
  };
  writeFileSync(join(config, "posline.json"), JSON.stringify(file), { mode: 0o644 });
  const [bank = 0] = await freePorts(1);
  const flags = [...engine.limits, ...flagsOf(config, new Map([[contracts.bank.port, bank]]))];
  await engine.do("run", "--detach", "--name", "till", ...flags, "posline");
  const isClean = () =>
    ask(bank, "POST", "/terminals", "").then(
      ({ status }) => status === 200,
      () => false,
    );
  await until(isClean, "the line in the container", 30_000);
  await engine.do("exec", "till", ...healthcheck);

  const opened = async (device: string) => {
    const open = `try { fs.openSync(${JSON.stringify(device)}, 2050); "opened" } catch ({ code }) { code }`;
    // As the owner of all devices, without capabilities: what is refused is refused by the device rules.
    return engine.do("exec", "--user", "0:0", "till", "node", "-p", open);
  };
  for (const device of ["/dev/fuse", "/dev/loop-control", "/dev/kvm"].filter(existsSync)) {
    assert.equal(await opened(device), "EPERM", device);
  }
  if (existsSync("/dev/tty1")) assert.equal(await opened("/dev/tty1"), "opened", "major 4, which ttyS has too");

  const { behaviour } = terminal;
  let stopping: Promise<string> | undefined;
  terminal.behaviour = async (asked, itself) => {
    stopping ??= engine.do("stop", "till");
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await behaviour(asked, itself);
  };
  await sell(bank);
  await stopping;
  assert.equal(await engine.do("inspect", "till", "--format", "{{.State.ExitCode}}"), "0");

  terminal.behaviour = behaviour;
  await engine.do("start", "till");
  await until(isClean, "the line after a restart", 30_000);
  assert.match(await engine.do("exec", "till", "posline", "journal"), /IN-A-CONTAINER/);
  await engine.do("stop", "till");

  await engine.do("run", "--detach", "--name", "emulated", ...flags, "posline", "serve", "--emulated");
  await until(isClean, "the emulated terminal in the container", 30_000);
  await sell(bank);
  await engine.do("stop", "emulated");
});

test("the image rehearses a till that is mounted into it, as docs/rehearse.md shows", async (t) => {
  const engine = await startEngine();
  if (typeof engine === "string") return t.skip(engine);
  t.after(() => engine.end());
  const page = readFileSync(join(root, "docs/rehearse.md"), "utf8");
  const [, flags = ""] = /docker run (.*) posline\n +rehearse /.exec(page) ?? [];
  const till = folder();
  const sell = `fetch(process.env.POSLINE_BANK_URL + "/sale", {
    method: "POST", headers: { Prefer: "wait=30" },
    body: JSON.stringify({ pay_id: process.argv[2], amount: Number(process.argv[3]), currency_name: process.env.POSLINE_CURRENCY }),
  }).then(({ headers }) => console.log(headers.get("x-posline-result")));`;
  writeFileSync(join(till, "till.js"), sell, { mode: 0o644 });
  const shown = flags.replace("$PWD", till).replace('"$(id -u)"', "0").replaceAll('"', "").split(" ");
  const command = ["rehearse", "--scenario", "approved", "--junit", "rehearsal.xml", "--till", "node till.js {key} {amount}"];
  assert.match(await engine.do("run", ...shown, ...engine.limits, "posline", ...command), /^passed +approved /m);
  assert.match(readFileSync(join(till, "rehearsal.xml"), "utf8"), /<testcase [^>]*name="approved"/);
});
