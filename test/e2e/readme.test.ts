import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { loadConfig } from "../../src/config/load.ts";
import { endingsTable } from "../../src/emulator/outcomes.ts";
import { transitionTable } from "../../src/line/states.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { bundle, PoslineProcess } from "../support/posline-process.ts";
import { answering, Terminal } from "../support/terminal.ts";

/** README is true: its commands run, its example of a configuration loads, its tables are those of the code. */

const run = promisify(execFile);
const root = new URL("../../", import.meta.url);
const readme = readFileSync(new URL("README.md", root), "utf8");
const scripts: Record<string, string> = JSON.parse(readFileSync(new URL("package.json", root), "utf8")).scripts;

const blocks = (language: string) =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "gm"))].map((match) => match[1] ?? "");
const commands = blocks("sh").flatMap((block) => block.trim().split("\n"));

test("README's npm commands are scripts of package.json", () => {
  for (const command of commands.filter((line) => line.startsWith("npm "))) {
    const [, first = "", second = ""] = command.split(" ");
    const script = first === "run" ? second : first;
    assert.ok(script in scripts, command);
  }
});

/** The shortest reply time-outs that may be set, so that the sale that is never answered isn't waited for long. */
const impatient = {
  lines: { till: { path: "/dev/null" } },
  services: Object.fromEntries(["fiscal", "bank", "qr"].map((name) => [name, { line: "till", replyTimeoutMs: 3001 }])),
};

test("README's curl commands are answered by the emulated bridge that npm start runs", async () => {
  assert.match(scripts["start"] ?? "", /dist\/posline\.cjs serve --emulated$/);
  const folder = scratchFolder();
  const file = join(folder.path, "posline.json");
  writeFileSync(file, JSON.stringify(impatient));
  const bridge = new PoslineProcess(["serve", "--emulated"], { env: { POSLINE_CONFIG: file } });
  try {
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
      const timesOut = command.includes('"amount":1531');
      if (command.endsWith("/emulator")) assert.match(stdout, /^HTTP\/1\.1 200 OK[\s\S]*"endings": \{/, command);
      else if (timesOut) assert.match(stdout, /^HTTP\/1\.1 504 [\s\S]*X-Posline-Outcome: unknown/, command);
      else assert.match(stdout, /X-Posline-Outcome: answered[\s\S]*"status":"success"/, command);
      answers.push(stdout);
    }
    for (const command of commands.filter((line) => line.startsWith("posline call "))) {
      const call = `${process.execPath} ${bundle} ${command.slice("posline ".length)} --url http://127.0.0.1:${await bridge.port("bank")}`;
      const { stdout } = await run("bash", ["-c", call]);
      assert.match(stdout, command.endsWith("--wait") ? /^{"result":"approved"/ : /"terminals":/);
    }
    const [approved = "", declined = "", , recovered = ""] = answers.slice(
      curls.findIndex((command) => command.includes('"pay_id":"T-1"')),
    );
    assert.match(approved, /"status":"APPROVED"/);
    assert.match(declined, /"status":"ERROR"/);
    assert.match(recovered, /"status":"APPROVED"/);
  } finally {
    await bridge.ended("SIGTERM");
    folder.remove();
  }
});

test("README gets from nothing to an approved, a declined and a recovered sale in five commands", () => {
  const [block = ""] = blocks("sh").filter((each) => each.includes('"pay_id":"T-1"'));
  const lines = block.trim().split("\n");
  assert.equal(lines.length, 5);
  assert.equal(lines[0], "npm start");
});

test("README's posline commands run", async () => {
  const folder = scratchFolder();
  const link = join(folder.path, "tty");
  const terminal = new Terminal(
    link,
    answering(() => '{"status":"success"}'),
  );
  const env = {
    ...process.env,
    POSLINE_FISCAL_PORT: "0",
    POSLINE_BANK_PORT: "0",
    POSLINE_QR_PORT: "0",
    POSLINE_ADMIN_PORT: "0",
  };
  const ends: Record<string, RegExp> = {
    "posline ports": /DEVICE|no serial device/,
    "posline config": /lines\.till\.path .*flag --line/,
    "posline config --schema": /"\$schema"/,
    "posline serve --line /dev/ttyUSB0": /"msg":"listening"/,
    "posline emulate": /"msg":"listening"/,
    "posline emulate --line /dev/ttyUSB0 --no-http": /"reason":"the device opened"/,
    "posline emulate --line /dev/ttyUSB0 --service bank --state bank.json": /"reason":"the device opened"/,
    "posline gateway --line /dev/ttyUSB0": /"reason":"the device opened"/,
    "posline gateway --line /dev/ttyUSB0 --upstream-bank https://terminal.lan --upstream-fiscal http://10.0.0.7:8008":
      /"reason":"the device opened"/,
    "posline serve --emulated --fault corrupt=0.05 --fault late:5000=0.01 --seed 7": /"msg":"listening"/,
    "posline tap --raw --line /dev/ttyUSB0": /^00000000 {2}41 54 0d/,
  };
  try {
    const found = commands.filter((line) => line.startsWith("posline ") && !line.startsWith("posline call "));
    assert.deepEqual([...found].sort(), Object.keys(ends).sort(), "each command of README has its test");
    for (const command of found) {
      const words = command.replace("/dev/ttyUSB0", link).split(" ").slice(1);
      // Without a file there is nothing to show but what a flag says.
      const args = command === "posline config" ? [...words, "--line", link] : words;
      const fits = ends[command] ?? /./;
      const child = spawn(process.execPath, [bundle, ...args], { env, cwd: folder.path, stdio: ["ignore", "pipe", "pipe"] });
      let text = "";
      const watch = (piece: string) => {
        text += piece;
        if (fits.test(text)) child.kill("SIGINT");
      };
      child.stdout.setEncoding("utf8").on("data", watch);
      child.stderr.setEncoding("utf8").on("data", watch);
      const talk = setInterval(() => void terminal.send(Buffer.from("AT\r")), 100);
      const limit = setTimeout(() => child.kill("SIGKILL"), 15_000);
      await once(child, "close");
      clearInterval(talk);
      clearTimeout(limit);
      assert.match(text, fits, command);
    }
  } finally {
    terminal.unplug();
    folder.remove();
  }
});

test("README's configuration loads", async () => {
  const folder = scratchFolder();
  const [example = ""] = blocks("json");
  const file = join(folder.path, "posline.json");
  const secret = join(folder.path, "merchant-id");
  writeFileSync(secret, "MERCHANT-1\n");
  writeFileSync(file, example.replace("/etc/posline/merchant-id", secret));
  const { config } = await loadConfig({ env: {}, flags: { config: file } });
  assert.equal(config.services.fiscal?.merchantId, "MERCHANT-1");
  assert.equal(config.services.bank?.port, 8888);
  folder.remove();
});

test("README's program is the one that the types are checked with", () => {
  assert.equal(blocks("ts")[0], readFileSync(new URL("readme-client.ts", import.meta.url), "utf8"));
});

test("README's table of states is the code's", () => {
  assert.ok(readme.includes(transitionTable()), `print it anew:\n${transitionTable()}`);
});

test("README's table of endings is the emulator's", () => {
  assert.ok(readme.includes(endingsTable()), `print it anew:\n${endingsTable()}`);
});

test("README's keys and variables are those that the configuration has", async () => {
  const { fileSchema } = await import("../../src/config/schema.ts");
  const { variableNames } = await import("../../src/config/overrides.ts");
  const keys = [
    ...Object.keys(fileSchema.properties.lines.additionalProperties.properties),
    ...Object.values(fileSchema.properties.services.properties).flatMap(({ properties }) => Object.keys(properties)),
  ];
  for (const key of keys) assert.ok(readme.includes(`\`${key}\``), `README doesn't speak of ${key}`);
  for (const name of variableNames) assert.ok(readme.includes(`\`${name}\``), `README doesn't speak of ${name}`);
});
