import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { loadConfig } from "../../src/config/load.ts";
import { builtInWorld } from "../../src/lab/emulator/world.ts";
import { worldText } from "../../src/lab/emulator/world-file.ts";
import { openOperations } from "../../src/operations/operations.ts";
import { bytes, callOf, routeTo, Told } from "../journal/records.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { bundle, PoslineProcess } from "../support/posline-process.ts";
import { answering, Terminal } from "../support/terminal.ts";
import { blocks, commands, page, root, runs } from "./docs.ts";
import { pathOf } from "./till-programs.ts";

/** The commands of README and docs/ run, their configurations load, and what they say is printed is. */

const run = promisify(execFile);
const scripts: Record<string, string> = JSON.parse(readFileSync(new URL("package.json", root), "utf8")).scripts;

test("the documentation's npm commands are scripts of package.json", () => {
  for (const command of commands.filter((line) => line.startsWith("npm "))) {
    const [, first = "", second = ""] = command.split(" ");
    // npm pack is npm's own, and builds by the script of another name.
    const script = first === "run" ? second : first === "pack" ? "prepack" : first;
    assert.ok(script in scripts, command);
  }
});

/** The shortest reply time-outs that may be set, so that the sale that is never answered isn't waited for long. */
const impatient = {
  lines: { till: { path: "/dev/null" } },
  services: Object.fromEntries(["fiscal", "bank", "qr"].map((name) => [name, { line: "till", replyTimeoutMs: 3001 }])),
};

/** What the admin port's paths answer. */
const admin: Readonly<Record<string, RegExp>> = {
  emulator: /"endings": \{/,
  healthz: /"status": "ok"/,
  metrics: /^posline_ready 1$/m,
  readyz: /"status": "ready"/,
  status: /"lines": \{[\s\S]*"state": "idle"/,
};

test("the documentation's curl commands are answered by the emulated bridge that npm start runs", async (t) => {
  assert.match(scripts["start"] ?? "", /dist\/posline\.cjs serve --emulated$/);
  const folder = scratchFolder();
  const file = join(folder.path, "posline.json");
  writeFileSync(file, JSON.stringify(impatient));
  const bridge = new PoslineProcess(["serve", "--emulated"], { env: { POSLINE_CONFIG: file } });
  t.after(() => bridge.ended("SIGTERM"));
  await bridge.logged((line) => line["state"] === "idle", "the line to be clean");
  const curls = commands.filter((line) => line.startsWith("curl "));
  const answers: string[] = [];
  for (const command of curls) {
    const ported = command
      .replace(":8888", `:${await bridge.port("bank")}`)
      .replace(":8887", `:${await bridge.port("qr")}`)
      .replace(":8008", `:${await bridge.port("fiscal")}`)
      .replace(":8880", `:${await bridge.port("admin")}`);
    const { stdout } = await run("bash", ["-c", ported.replace("curl ", "curl -sSi ")]);
    const result = command.includes("Prefer: wait") ? (command.includes('"amount":1520') ? "declined" : "approved") : undefined;
    const [, path = ""] = /:8880\/(\w+)$/.exec(command) ?? [];
    if (path !== "") {
      assert.match(stdout, /^HTTP\/1\.1 200 OK/, command);
      assert.match(stdout, admin[path] ?? /^$/, command);
    } else if (result !== undefined) assert.match(stdout, new RegExp(`^X-Posline-Result: ${result}\\r$`, "m"), command);
    else assert.match(stdout, /X-Posline-Outcome: answered[\s\S]*"status":"success"/, command);
    answers.push(stdout);
  }
  for (const command of commands.filter((line) => line.startsWith("posline call "))) {
    const call = `${process.execPath} ${bundle} ${command.slice("posline ".length)} --url http://127.0.0.1:${await bridge.port("bank")}`;
    const { stdout } = await run("bash", ["-c", call]);
    assert.match(stdout, command.endsWith("--wait") ? /^{"result":"approved"/ : /"terminals":/);
  }
  const [first = ""] = answers.slice(curls.findIndex((command) => command.includes('"pay_id":"T-1"')));
  const [shown = ""] = blocks("text", page("README.md")).filter((block) => block.startsWith("HTTP/"));
  for (const line of shown.trim().split("\n"))
    assert.ok(first.replaceAll("\r", "").includes(line.replace(/\.\.\.$/, "")), line);
});

test("README gets from nothing to an approved, a declined and a recovered sale in four commands", () => {
  const [block = ""] = blocks("sh").filter((each) => each.includes('"pay_id":"T-1"'));
  const lines = block.trim().split("\n");
  assert.equal(lines.length, 4);
  assert.equal(lines[0], "npm start");
});

test("npm start prints what README shows of it", async () => {
  const [block = ""] = blocks("text", page("README.md"));
  const shown = block.split("\n").filter((line) => line !== "" && line !== "...");
  assert.ok(shown.length > 5);
  const bridge = new PoslineProcess(["serve", "--emulated"]);
  try {
    await bridge.until(() => (bridge.stderr.includes("Stop it with") ? true : undefined), "the greeting");
    let printed = bridge.stderr;
    for (const [name, usual] of [
      ["fiscal", 8008],
      ["bank", 8888],
      ["qr", 8887],
      ["admin", 8880],
    ] as const) {
      printed = printed.replaceAll(`:${await bridge.port(name)}`, `:${usual}`);
    }
    const lines = printed.split("\n");
    for (const line of shown) assert.ok(lines.includes(line), `it doesn't print: ${line}\n${printed}`);
  } finally {
    await bridge.ended("SIGTERM");
  }
});

test("development.md's ways to run one test run it", async () => {
  const own = commands.filter((line) => line.startsWith("npm test -- "));
  assert.equal(own.length, 2);
  // This process is a test's too, and a test runner under another one reports to that in place of printing.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  for (const command of own) {
    const { stdout } = await run("bash", ["-c", command], { cwd: root, env });
    assert.match(stdout, /^[#ℹ] pass [1-9]/m, command);
    assert.match(stdout, /^[#ℹ] fail 0$/m, command);
  }
});

interface Expected {
  /** What it writes before it is stopped, or by itself. */
  readonly fits: RegExp;
  /** More arguments, without which there is nothing to show here. */
  readonly more?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** What stands for the box that the commands speak of. */
interface Bench {
  /** A device, in place of /dev/ttyUSB0. */
  readonly link: string;
  /** A configuration whose line till is that device. */
  readonly config: string;
  /** A log, in place of a file's and of systemd's journal: it is standard input as well, which goes before the journal. */
  readonly log: string;
  /** A state folder, with a sale in its journal that has no outcome. */
  readonly state: string;
  /** The admin port of a running posline. */
  readonly running: string;
}

const expected = ({ link, config, log, state, running }: Bench): Readonly<Record<string, Expected>> => ({
  "posline setup": { fits: /^Cannot set up: nobody can be asked here: add --yes, and --line with the device$/m },
  "posline ports": { fits: /DEVICE|no serial device/ },
  "posline config": { fits: /lines\.till\.path .*flag --line/, more: ["--line", link] },
  "posline config --schema": { fits: /"\$schema"/ },
  "posline openapi bank": { fits: /^\{\n {2}"openapi": "3\.1\.0"[\s\S]*\n\}\n$/ },
  "posline serve --line /dev/ttyUSB0": { fits: /"msg":"listening"/ },
  "posline emulate": { fits: /"msg":"listening"/ },
  "posline emulate --line /dev/ttyUSB0 --no-http": { fits: /"reason":"the device opened"/ },
  "posline emulate --line /dev/ttyUSB0 --service bank --world shop.json --state bank.json": {
    fits: /"reason":"the device opened"/,
  },
  "posline gateway --line /dev/ttyUSB0": { fits: /"reason":"the device opened"/ },
  "posline gateway --line /dev/ttyUSB0 --upstream-bank https://terminal.lan --upstream-fiscal http://10.0.0.7:8008": {
    fits: /"reason":"the device opened"/,
  },
  "posline rehearse --page": { fits: /^Open http:\/\/127\.0\.0\.1:\d+ and do what it says/m },
  "posline rehearse --till 'python3 docs/tills/shop.py {do} {key} {amount} {of}'": {
    fits: /^passed +receipt-exact .*\n1 passed, 0 failed, 0 not tested$/m,
    more: ["--scenario", "receipt-exact"],
  },
  "posline rehearse --till 'python3 till.py {key} {amount} $POSLINE_BANK_URL' --services bank --report rehearsal.html": {
    fits: /^passed +declined .*\n1 passed, 0 failed, 0 not tested$/m,
    more: ["--scenario", "declined"],
  },
  "posline serve --emulated --fault corrupt=0.05 --fault late:5000=0.01 --seed 7": { fits: /"msg":"listening"/ },
  "posline page": { fits: /^http:\/\/127\.0\.0\.1:\d+\/\n$/, more: ["--url", running] },
  "posline tap": {
    fits: /^\d\d:\S+ till -> bank \/terminals request \d+ bytes checksum good id=\S+\n {4}\/terminals\n/m,
    more: ["--url", running],
  },
  "posline tap --line till --hex": {
    fits: /^00000000 {2}2f 74 65 72 6d 69 6e 61 {2}6c 73 +\|\/terminals\|$/m,
    more: ["--url", running],
  },
  "posline tap --write till.pcapng": { fits: /^Tapping http/, more: ["--url", running] },
  "posline tap --write -": { fits: /posline bank \/terminals request/, more: ["--url", running] },
  "posline tap --unmask": { fits: /^Cannot tap \/run\/posline\/tap\.sock: ENOENT: systemd opens it: / },
  "posline tap --raw --line /dev/ttyUSB0": { fits: /^Listening on \S+ at 115200 8N1\n00000000 {2}41 54 0d/ },
  "posline doctor --line /dev/ttyUSB0 --scan": { fits: /^line [\s\S]*^First: /m },
  "posline doctor --line till --scan": { fits: /^line till: [\s\S]*^First: /m, env: { POSLINE_CONFIG: config } },
  "posline support --list": { fits: /^In the archive:\n[\s\S]*Nothing was written: /, more: ["--log", log] },
  "posline support": { fits: /^In the archive:\n[\s\S]*^Written: /m, more: [join(state, "support.tar.gz"), "--log", log] },
  "posline journal --unknown": { fits: / A-7 .* unknown [\s\S]*1 operation: 1 unknown/, env: { STATE_DIRECTORY: state } },
  "posline logs --since 2h --outcome unknown": { fits: /^[^\n]* A-2 +UNKNOWN 504 [^\n]*\n$/ },
  "posline logs -n 5": { fits: / A-1 [\s\S]* A-2 / },
  "posline logs --key A-2": { fits: /^[^\n]* A-2 +UNKNOWN 504 [^\n]*\n$/ },
  "posline logs /var/log/posline.log --follow --service bank": { fits: / A-1 [\s\S]* A-2 / },
  "posline logs --grep discard": { fits: /^[^\n]*bytes were discarded[^\n]*\n$/ },
  "posline logs --json --since today": { fits: /^\{[^\n]*"key":"A-1"[^\n]*"lineMs":8\.7/ },
});

test("the documentation's posline commands run", async (t) => {
  const folder = scratchFolder();
  const at = (name: string) => join(folder.path, name);
  const bench = { link: at("tty"), config: at("posline.json"), log: at("posline.log"), state: folder.path };
  const terminal = new Terminal(
    bench.link,
    answering(() => '{"status":"success"}'),
  );
  await prepare(bench);
  const bridge = new PoslineProcess(["serve", "--emulated"], { env: { POSLINE_CONFIG: bench.config } });
  const running = `http://127.0.0.1:${await bridge.port("admin")}`;
  const terminals = `http://127.0.0.1:${await bridge.port("bank")}/terminals`;
  const wanted = expected({ ...bench, running });
  t.after(() => bridge.ended("SIGTERM"));
  t.after(() => terminal.unplug());
  const found = [...new Set(runs.filter((each) => each.startsWith("posline ") && !each.startsWith("posline call ")))];
  assert.deepEqual(found.sort(), Object.keys(wanted).sort(), "each command has its test");
  for (const [command, { fits, more = [], env = {} }] of Object.entries(wanted)) {
    const here = command.replace("/dev/ttyUSB0", bench.link).replace("/var/log/posline.log", bench.log);
    const tills = here.replace(/python3 (?:docs\/tills\/)?(\w+\.py)/, (_, file) => `python3 ${pathOf(file)}`);
    const words = (tills.match(/'[^']*'|\S+/g) ?? []).slice(1).map((word) => word.replace(/^'|'$/g, ""));
    const talk = () => {
      void terminal.send(Buffer.from("AT\r"));
      if (more.includes(running)) void fetch(terminals, { method: "POST" });
    };
    const text = await output([...words, ...more], bench, { fits, env, talk });
    assert.match(text, fits, command);
  }
});

/** Any free ports, and nothing of this process's own environment that posline would take for settings. */
const anyPorts = {
  PATH: process.env["PATH"],
  POSLINE_FISCAL_PORT: "0",
  POSLINE_BANK_PORT: "0",
  POSLINE_QR_PORT: "0",
  POSLINE_ADMIN_PORT: "0",
};

/** All that a command writes until it ends, or has written what fits. */
async function output(
  args: readonly string[],
  { log, state: cwd }: Pick<Bench, "log" | "state">,
  { fits, env, talk }: { readonly fits: RegExp; readonly env: Readonly<Record<string, string>>; readonly talk: () => void },
): Promise<string> {
  const input = openSync(log, "r");
  const child = spawn(process.execPath, [bundle, ...args], {
    env: { ...anyPorts, ...env },
    cwd,
    stdio: [input, "pipe", "pipe"],
  });
  closeSync(input);
  let text = "";
  const watch = (piece: string) => {
    text += piece;
    if (fits.test(text)) child.kill("SIGINT");
  };
  child.stdout?.setEncoding("utf8").on("data", watch);
  child.stderr?.setEncoding("utf8").on("data", watch);
  const talking = setInterval(talk, 100);
  const limit = setTimeout(() => child.kill("SIGKILL"), 30_000);
  await once(child, "close");
  clearInterval(talking);
  clearTimeout(limit);
  return text;
}

async function prepare({ link, config, log, state: folder }: Omit<Bench, "running">): Promise<void> {
  writeFileSync(config, JSON.stringify({ lines: { till: { path: link } }, services: impatient.services }));
  const journal = await openOperations({ folder, bytes, onFailure: "refuse", report: new Told() });
  await journal.begin(callOf("A-7"), routeTo()).sent();
  await journal.close();
  const exchange = { level: "info", time: new Date().toISOString(), service: "bank", route: "/sale", msg: "exchange" };
  const lines = [
    { ...exchange, key: "A-1", requestId: "r-1", outcome: "answered", httpStatus: 200, queueMs: 0, lineMs: 8.7 },
    {
      ...exchange,
      level: "warn",
      key: "A-2",
      requestId: "r-2",
      outcome: "unknown",
      httpStatus: 504,
      queueMs: 0,
      lineMs: 30_000,
    },
    { level: "warn", time: exchange.time, line: "till", reason: "noise", bytes: 2, head: "4154", msg: "bytes were discarded" },
  ];
  writeFileSync(join(folder, "shop.json"), worldText(builtInWorld));
  writeFileSync(log, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

test("the documentation's configurations load, in the bridge or the gateway", async () => {
  const folder = scratchFolder();
  const file = join(folder.path, "posline.json");
  // systemd shows the service what is in /etc/posline/credentials, the path that the pages name.
  writeFileSync(join(folder.path, "merchant-id"), "MERCHANT-1\n");
  const secrets = { CREDENTIALS_DIRECTORY: folder.path };
  const examples = blocks("json").filter((each) => /"lines": \{\s+"\w+": \{ "path"/.test(each));
  assert.equal(examples.length, 3, "two of configuration.md, and gateway.md's");
  for (const example of examples) {
    writeFileSync(file, example);
    const isGateway = example.includes("upstream");
    const { config } = await loadConfig({ env: secrets, flags: { config: file, ...(isGateway && { gateway: {} }) } });
    assert.ok(Object.values(config.services).length > 0);
    if (isGateway || config.services.fiscal === undefined) continue;
    assert.equal(config.services.fiscal.merchantId, "MERCHANT-1");
    assert.equal(config.services.bank?.port, 8888);
  }
});

test("typescript.md's program is the one that the types are checked with", () => {
  assert.deepEqual(blocks("ts"), [readFileSync(new URL("docs-client.ts", import.meta.url), "utf8")]);
});
