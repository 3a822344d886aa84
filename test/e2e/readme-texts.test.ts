import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { exitCodes } from "../../src/cli/exit.ts";
import { journalDefaults } from "../../src/config/limits.ts";
import { endingsTable } from "../../src/emulator/outcomes.ts";
import { faultTable } from "../../src/envelope/fault-table.ts";
import { transitionTable } from "../../src/line/states.ts";
import { blocks, commands, readme, root, runs } from "./readme.ts";

/** What README says is what the code, the units and the package have. */

/** All that a folder's files hold. */
function textsOf(folder: string): string {
  const path = fileURLToPath(new URL(folder, root));
  const files = readdirSync(path, { recursive: true, encoding: "utf8" }).map((name) => join(path, name));
  return files
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, "utf8"))
    .join("\n");
}

test("README's table of states is the code's", () => {
  assert.ok(readme.includes(transitionTable()), `print it anew:\n${transitionTable()}`);
});

test("README's table of faults is what is written of them", () => {
  assert.ok(readme.includes(faultTable()), `print it anew:\n${faultTable()}`);
});

test("README's table of endings is the emulator's", () => {
  assert.ok(readme.includes(endingsTable()), `print it anew:\n${endingsTable()}`);
});

test("README's keys and variables are those that the configuration has", async () => {
  const { fileSchema } = await import("../../src/config/schema.ts");
  const { variableNames } = await import("../../src/config/overrides.ts");
  const { lines, services, admin, journal, log } = fileSchema.properties;
  const keys = [
    ...Object.keys(lines.additionalProperties.properties),
    ...Object.values(services.properties).flatMap(({ properties }) => Object.keys(properties)),
    ...Object.keys(admin.properties).map((key) => `admin.${key}`),
    ...Object.keys(journal.anyOf[1].properties).map((key) => `journal.${key}`),
    ...Object.keys(log.properties).map((key) => `log.${key}`),
    "journal",
    `usb:VID:PID[:SERIAL]`,
  ];
  for (const key of keys) assert.ok(readme.includes(`\`${key}\``), `README doesn't speak of ${key}`);
  for (const name of variableNames) assert.ok(readme.includes(`\`${name}\``), `README doesn't speak of ${name}`);
  assert.ok(readme.includes(`| \`journal.bytes\` | ${journalDefaults.bytes} |`));
  assert.ok(readme.includes(`| \`journal.onFailure\` | \`"${journalDefaults.onFailure}"\` |`));
});

test("README's exit codes are those that there are", () => {
  const [, table = ""] = /^### Signals and exit codes$([\s\S]*?)^##/m.exec(readme) ?? [];
  const codes = [...table.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  assert.deepEqual(
    codes,
    Object.values(exitCodes).sort((one, other) => one - other),
  );
});

test("README's links lead to its headings", () => {
  const slugs = [...readme.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
  for (const [, slug = ""] of readme.matchAll(/\]\(#([^)]*)\)/g))
    assert.ok(slugs.includes(slug), `there is no heading #${slug}`);
});

test("README's JSON is JSON", () => {
  for (const block of blocks("json")) assert.doesNotThrow(() => JSON.parse(block), block);
});

/** Words of systemd's, of the browser's, and what stands for something: the code can't hold them. */
const wordsOfOthers: readonly string[] = [
  ...["status=78/CONFIG", "trigger-limit-hit", "posline.socket", "Unknown key 'OpenFile'"],
  ...["local network", "Permission was denied", "Mixed Content"],
  ...["AT", "NAME-THE-DEVICE"],
];

test("README's table of troubles has the words of log, status, answers and doctor", () => {
  // A text that is broken over lines in the code is one to whoever reads it.
  const said = textsOf("src").replaceAll(/["`] \+\s+["`]/g, "");
  const [, table = ""] = /^### What a technician looks for$([\s\S]*?)^###? /m.exec(readme) ?? [];
  const cells = [...table.matchAll(/^\| ((?:`[^`]*`|[^|`])*) \|/gm)].map(([, cell = ""]) => cell).slice(2);
  assert.ok(cells.length > 30, "the table is found");
  for (const cell of cells) {
    for (const [, text = ""] of cell.matchAll(/`([^`]*)`/g)) {
      if (wordsOfOthers.includes(text)) continue;
      for (const piece of text.replace(/ \((?:minicom|nginx)\)$/, "").split("...")) {
        assert.ok(said.includes(piece.trim()), `nothing in src says "${piece.trim()}" (${text})`);
      }
    }
  }
});

test("README's proofs are those of the virtual machine", () => {
  const main = fileURLToPath(new URL("test/vm/main.ts", root));
  const help = execFileSync(process.execPath, ["--import", "tsx", main, "--help"], { encoding: "utf8" });
  const proofs = [...help.matchAll(/^ {2}(\w+) +(short )?/gm)].map(([, name, short]) => [name, short !== undefined]);
  const [, table = ""] = /^<!-- proofs: ([\s\S]*)^<!-- \/proofs -->$/m.exec(readme) ?? [];
  const rows = [...table.matchAll(/^\| `(\w+)` \| (✓)? ?\|/gm)].map(([, name, short]) => [name, short !== undefined]);
  assert.deepEqual(rows, proofs);
});

const { version } = JSON.parse(readFileSync(new URL("package.json", root), "utf8")) as { readonly version: string };
const units = readdirSync(new URL("systemd", root)).filter((name) => /\.(?:service|socket)$/.test(name));

/** What scripts/deb says of packages. */
interface Deb {
  packageName(release: { readonly standalone: boolean }): string;
  readonly standaloneArchitectures: readonly string[];
  readonly architectures: Readonly<Record<string, string>>;
}

/** The scripts have no types of their own. */
async function debOf(): Promise<Deb> {
  const parts = ["control", "standalone", "tree"].map((name) => import(new URL(`scripts/deb/${name}.mjs`, root).href));
  return Object.assign({}, ...(await Promise.all(parts)));
}

test("README's packages are those that npm run deb makes", async () => {
  const { packageName, standaloneArchitectures, architectures } = await debOf();
  const made = Object.keys(architectures).flatMap((architecture) => {
    const names = standaloneArchitectures.includes(architecture) ? [false, true] : [false];
    return names.map((standalone) => `${packageName({ standalone })}_${version}_${architecture}.deb`);
  });
  const named = [...readme.matchAll(/posline[\w.-]*_\w+\.deb/g)].map(([name]) => name);
  assert.ok(named.length > 2);
  for (const name of named) assert.ok(made.includes(name), `${name} is none of ${made.join(", ")}`);
  for (const [, name = ""] of readme.matchAll(/apt (?:remove|purge) ([\w-]+)/g)) {
    assert.equal(name, packageName({ standalone: false }));
  }
});

/** Programs of the box's own, and what of their arguments can be held against the project here. */
const programs: Readonly<Record<string, (args: readonly string[]) => void>> = {
  systemctl: ([, ...args]) => unitsThere(args.filter((arg) => !arg.startsWith("-"))),
  journalctl: (args) => unitsThere(args.flatMap((arg, n) => (args[n - 1] === "-u" ? [arg] : []))),
  ssh: ([, program = "", ...args]) => programs[program]?.(args),
  apt: ([verb = ""]) => assert.equal(verb, "install"),
  ...Object.fromEntries(["cp", "install", "jq", "mkdir", "printf", "sudoedit", "tee"].map((name) => [name, () => {}])),
};

/** A unit of ours, or one of the system's that README speaks of. */
function unitsThere(names: readonly string[]): void {
  for (const name of names) {
    const whole = /\.\w+$/.test(name) ? name : `${name}.service`;
    assert.ok([...units, "systemd-journald.service"].includes(whole), `there is no unit ${whole} in systemd/`);
  }
}

// They need root, a package manager and a systemd that runs: none is here, and a test must not change the box that it runs on.
// What they do is shown on a real box by test:vm, which installs, reloads, restarts, stops, removes and purges the package.
test("README's commands for the box name units, files and packages that there are", () => {
  const installed = `${textsOf("systemd")}\n${textsOf("scripts/deb")}`;
  const elsewhere = runs.filter((each) => !/^(?:npm|curl|posline) /.test(each));
  assert.ok(elsewhere.some((each) => each.startsWith("systemctl reload posline")));
  for (const each of elsewhere) {
    const [program = "", ...args] = each.split(" ");
    assert.ok(Object.hasOwn(programs, program), `README runs ${program}, which this test doesn't know`);
    programs[program]?.(args);
    for (const path of args.filter((arg) => /^\/(?:etc|usr\/share\/doc|var\/lib)\/posline/.test(arg))) {
      const [, example] = /^\/usr\/share\/posline\/examples\/(.*)$/.exec(path) ?? [];
      assert.ok(installed.includes(example ?? path.slice(1)), `nothing of the package knows ${path}`);
    }
  }
  for (const [, path = ""] of readme.matchAll(/^\| `\/(usr[^`]*)` \|/gm)) assert.ok(installed.includes(path), path);
});

test("README's other port is one change to posline.socket", () => {
  const streams = (text: string) => [...text.matchAll(/^ListenStream=(\S+)$/gm)].map(([, address = ""]) => address);
  const ours = streams(readFileSync(new URL("systemd/posline.socket", root), "utf8"));
  const [block = ""] = blocks("ini");
  assert.match(block, /^\[Socket\]\nListenStream=\n/, "an empty one takes the others away first");
  assert.equal(streams(block).filter((address) => !ours.includes(address)).length, 1);
  assert.equal(streams(block).length, ours.length);
  for (const address of ours) assert.ok(readme.includes(address.replace("127.0.0.1:", "")), address);
});

test("README shows nothing to paste that only looks like a command", () => {
  for (const line of commands) assert.match(line, /^[a-z]/, line);
});
