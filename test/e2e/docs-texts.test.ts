import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { metricTable } from "../../src/admin/metrics.ts";
import { journalDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { type ContractName, contractNames } from "../../src/core/call.ts";
import { exitCodes } from "../../src/core/exit.ts";
import { faultClasses } from "../../src/core/fault.ts";
import { isOperationEnd } from "../../src/core/followed.ts";
import type { JsonObject } from "../../src/core/json-object.ts";
import { magicAmountsTable } from "../../src/lab/emulator/faults/magic-amounts.ts";
import { scenarioTable } from "../../src/lab/rehearse/scenarios.ts";
import { transitionTable } from "../../src/line/states.ts";
import { emptySummary } from "../../src/settle/call-result.ts";
import type { Fact } from "../../src/settle/fact.ts";
import { judge, judgedOperation } from "../../src/settle/judge.ts";
import { saidToQuestion, saidToStart } from "../../src/settle/said.ts";
import { faultTable } from "../envelope/fault-table.ts";
import { reasonTable } from "../lab/openapi/reason-table.ts";
import { assertMapped } from "../support/assert-mapped.ts";
import { blocks, commands, documentation, page, pages, root, runs } from "./docs.ts";

/** What README and docs/ say is what the code, the units and the package have. */

/** All that a folder's files hold. */
function textsOf(folder: string): string {
  const path = fileURLToPath(new URL(folder, root));
  const files = readdirSync(path, { recursive: true, encoding: "utf8" }).map((name) => join(path, name));
  return files
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, "utf8"))
    .join("\n");
}

/** The text of a page between a heading and the next one of its level or above. */
function section(path: string, heading: string): string {
  const [, level = "", rest = ""] = new RegExp(`^(#+) ${heading}$([\\s\\S]*)`, "m").exec(page(path)) ?? [];
  assert.notEqual(level, "", `${path} has no heading ${heading}`);
  return rest.split(new RegExp(`^#{1,${level.length}} `, "m"))[0] ?? "";
}

/** The cells of a table's rows, without its head. */
function rows(table: string): readonly (readonly string[])[] {
  const lines = table.split("\n").filter((line) => line.startsWith("| "));
  return lines.slice(1).map((line) => line.slice(2, -2).split(" | "));
}

for (const [name, table] of [
  ["architecture.md", transitionTable()],
  ["client.md", faultTable()],
  ["client.md", reasonTable()],
  ["emulator.md", magicAmountsTable()],
  ["rehearse.md", scenarioTable()],
  ["monitoring.md", metricTable()],
] as const) {
  test(`${name} has the code's table that begins with ${table.slice(0, 40)}`, () => {
    assert.ok(page(`docs/${name}`).includes(table), `print it anew:\n${table}`);
  });
}

test("monitoring.md's table of alerts has each alert of posline.rules.yml, with its severity and its wait", () => {
  const rules = readFileSync(new URL("scripts/prometheus/posline.rules.yml", root), "utf8");
  const alerts = rules.split("- alert: ").slice(1);
  const shipped = alerts.map((alert) => {
    const [, name, , wait = "at once", severity] = /^(\w+)\n[\s\S]*?( for: (\w+)\n[\s\S]*?)?severity: (\w+)/.exec(alert) ?? [];
    return [`\`${name}\``, severity, wait];
  });
  const told = rows(section("docs/monitoring.md", "Which alerts are there\\?"));
  assertMapped(told, shipped, (cells) => cells.slice(0, 3));
  // Also those that are to be muted at night.
  for (const [name] of documentation.matchAll(/\bPosline(?!\w*Error)[A-Z]\w+\b/g)) {
    assert.ok(
      alerts.some((alert) => alert.startsWith(`${name}\n`)),
      name,
    );
  }
});

test("each alert's runbook is a page and a heading that there are", () => {
  const rules = readFileSync(new URL("scripts/prometheus/posline.rules.yml", root), "utf8");
  const runbooks = [...rules.matchAll(/^ +runbook: ([^#\n]+)(?:#(.*))?$/gm)];
  assert.equal(runbooks.length, rules.split("- alert: ").length - 1);
  for (const [, path = "", anchor] of runbooks) {
    assert.ok(pages.has(path), path);
    if (anchor !== undefined) assert.ok(anchorsOf(path).includes(anchor), `${path} has no heading #${anchor}`);
  }
});

test("client.md's table of reasons has every HTTP status of each outcome", () => {
  const told = rows(section("docs/client.md", "Reasons"));
  for (const { outcome, httpStatus } of Object.values(faultClasses)) {
    const found = told.some(
      ([reasons = "", its]) => its === `\`${outcome}\`` && new RegExp(`\\b${httpStatus}\\b`).test(reasons),
    );
    assert.ok(found, `${outcome} ${httpStatus}`);
  }
});

test("configuration.md's keys and variables are those that the configuration has", async () => {
  const text = page("docs/configuration.md");
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
  for (const key of keys) assert.ok(text.includes(`\`${key}\``), `the page doesn't speak of ${key}`);
  for (const name of variableNames) assert.ok(text.includes(`\`${name}\``), `the page doesn't speak of ${name}`);
  assert.ok(text.includes(`| \`journal.bytes\` | ${journalDefaults.bytes} |`));
  assert.ok(text.includes(`| \`journal.onFailure\` | \`"${journalDefaults.onFailure}"\` |`));
});

test("support.md's exit codes are those that there are", () => {
  const table = section("docs/support.md", "What do signals and exit codes mean\\?");
  const codes = [...table.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  assert.deepEqual(
    codes,
    Object.values(exitCodes).sort((one, other) => one - other),
  );
});

/** A page without its code, where a # is no heading and a bracket no link. */
const prose = (text: string) => text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");

/** The anchors of a page's headings, as Markdown's readers make them. */
function anchorsOf(path: string): readonly string[] {
  return [...prose(page(path)).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}

/** Where a page's links lead, those to other sites left out. */
function linksOf(path: string): readonly { readonly file: string; readonly anchor: string | undefined }[] {
  const inText = [...prose(page(path)).matchAll(/\]\(([^)\s]+)\)/g)];
  const below = [...prose(page(path)).matchAll(/^\[[^\]]+\]: (\S+)$/gm)];
  return [...inText, ...below].flatMap(([, target = ""]) => {
    if (/^https?:/.test(target)) return [];
    const [name = "", anchor] = target.split("#");
    return [{ file: name === "" ? path : posix.join(posix.dirname(path), name), anchor }];
  });
}

test("the documentation's links lead to files and headings that there are", () => {
  for (const path of pages.keys()) {
    const links = linksOf(path);
    assert.ok(links.length > 0, `${path} leads nowhere`);
    for (const { file, anchor } of links) {
      assert.ok(existsSync(new URL(file, root)), `${path}: there is no file ${file}`);
      if (anchor !== undefined) assert.ok(anchorsOf(file).includes(anchor), `${path}: ${file} has no heading #${anchor}`);
    }
  }
});

test("README leads to every page", () => {
  const reached = linksOf("README.md").map(({ file }) => file);
  for (const path of pages.keys()) assert.ok(path === "README.md" || reached.includes(path), path);
});

test("decisions.md has at most 60 decisions, numbered from 1, each with its price, below subjects that it lists", () => {
  const text = page("docs/decisions.md");
  const decisions = text.split(/^### /m).slice(1);
  assert.ok(decisions.length > 0 && decisions.length <= 60, `there are ${decisions.length}`);
  for (const [n, decision] of decisions.entries()) {
    assert.ok(decision.startsWith(`${n + 1}. `), `the numbers follow each other: ${n + 1} is ${decision.split("\n")[0]}`);
    assert.match(decision, /\bPrice:\s/, decision.split("\n")[0]);
  }
  const [head = "", ...subjects] = text.split(/^## /m);
  const listed = [...head.matchAll(/\[([^\]]+)\]\(#/g)].map(([, subject]) => subject);
  assert.deepEqual(
    listed,
    subjects.map((each) => each.split("\n")[0]),
  );
});

test("the documentation's JSON is JSON", () => {
  for (const block of blocks("json")) assert.doesNotThrow(() => JSON.parse(block), block);
});

/** Words of systemd's, of the browser's, and what stands for something: the code can't hold them. */
const wordsOfOthers: readonly string[] = [
  ...["status=78/CONFIG", "trigger-limit-hit", "posline.socket", "Unknown key 'OpenFile'"],
  ...["local network", "Permission was denied", "Mixed Content"],
  ...["AT", "NAME-THE-DEVICE"],
];

test("troubleshooting.md's messages are the words of log, status, answers and doctor", () => {
  // A text that is broken over lines in the code is one to whoever reads it.
  // A comment says nothing to anybody who runs posline.
  const code = textsOf("src").replaceAll(/^\s*(?:\/\*\*.*|\*.*|\/\/.*)$/gm, "");
  const said = code.replaceAll(/["`] \+\s+["`]/g, "");
  const table = section("docs/troubleshooting.md", "What does this message mean\\?");
  const cells = [...table.matchAll(/^\| ((?:`[^`]*`|[^|`])*) \|/gm)].map(([, cell = ""]) => cell).slice(2);
  assert.ok(cells.length > 30, "the table is found");
  for (const cell of cells) {
    for (const [, text = ""] of cell.matchAll(/`([^`]*)`/g)) {
      if (wordsOfOthers.includes(text)) continue;
      for (const piece of text.split("...")) {
        assert.ok(said.includes(piece.trim()), `nothing in src says "${piece.trim()}" (${text})`);
      }
    }
  }
});

/** A string of the source, or several that are joined; what is put into it stands as an ellipsis. */
const literal = /\s*((?:(?:"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)(?:\s*\+\s*)?)+)/.source;

/** Where the bridge says what a technician may look up: warnings and errors of its log, causes, notices of the journal. */
const saying = [
  String.raw`\.(?:process|line)\(\s*"(?:warn|error)",`,
  String.raw`\bwarning\(`,
  String.raw`(?<!function )\b(?:cause|said)\(`,
  "const (?:what|cause|changed) =",
  String.raw`warnings\.push\(`,
  String.raw`\bnoticed\(`,
  String.raw`\brecovered\(`,
  '(?:relay|refuse): (?="the journal)',
  String.raw`#take\("(?:fail|stray|down)",`,
  String.raw`notices\.push\(`,
  "const lacking =",
];

const rooms = [
  ...["bridge", "cli", "config", "core", "device", "gateway", "journal", "operations", "process", "setup", "trouble"],
  "line",
];

/** The messages that the source has, each as `... does not answer`. */
function messagesOf(text: string): readonly string[] {
  return saying.flatMap((how) =>
    [...text.matchAll(new RegExp(how + literal, "g"))].map(([, said = ""]) =>
      said
        .replaceAll(/["`]\s*\+\s*["`]/g, "")
        .replaceAll(/^["`]|["`]\s*(?:\+\s*)?$/g, "")
        .replaceAll(/\$\{[^}`]*(?:\}|$)/g, "..."),
    ),
  );
}

/** Finds messages that begin as a row of the table does. */
function beginning(span: string): RegExp {
  const pieces = span.split(/tcp:\.{3}|\.{3}/).map((piece) => piece.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${pieces.join(".*")}`);
}

test("troubleshooting.md has each warning, error and cause that the source has", () => {
  const table = section("docs/troubleshooting.md", "What does this message mean\\?");
  const spans = [...table.matchAll(/^\| ((?:`[^`]*`|[^|`])*) \|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([^`]*)`/g)].flatMap(([, span = ""]) =>
      span.replaceAll("...", "").length < 6 ? [] : [beginning(span)],
    ),
  );
  const code = rooms.map((room) => textsOf(`src/${room}`)).join("\n");
  const messages = messagesOf(code);
  // Texts that are made elsewhere: warnings of the configuration, of ports and of the journal, and the words of a setup that failed
  const passedOn = [...code.matchAll(/\.(?:process|line)\(\s*"(?:warn|error)",\s*([\w.[\]]+)/g)].map(([, name]) => name);
  assert.deepEqual([...new Set(passedOn)].sort(), ["error", "journalFails[onFailure]", "message", "warning"]);
  assert.ok(messages.length > 90, `${messages.length} messages were found`);
  const isSaid = (message: string) => spans.some((span) => span.test(message));
  assert.deepEqual([...new Set(messages.filter((message) => !isSaid(message)))], []);
});

/** How an operation stands after its own answer and one answer to a question. */
function resultOf(service: ContractName, route: string, own: JsonObject, asked: JsonObject | undefined): string {
  const operation = judgedOperation(contracts[service], route, "bridge", (name) => (name === "trans" ? undefined : "K"));
  assert.ok(operation, route);
  const answerOf = (reply: JsonObject) => ({
    ...({ outcome: "answered", reply, success: reply["status"] === "success" } as const),
    summary: { ...emptySummary, code: Number(reply["code"] ?? 0) },
  });
  const first: readonly Fact[] = [
    { is: "sent", before: {}, atMs: 0 },
    { is: "answered", said: saidToStart(operation, answerOf(own)), atMs: 1 },
  ];
  const name = judge(operation, first).name;
  const told = asked && ({ is: "told", said: saidToQuestion(operation, answerOf(asked), name), name, atMs: 60_000 } as const);
  const { end, isAccepted } = judge(operation, told === undefined ? first : [...first, told]);
  return end ?? (isAccepted ? "pending" : "unknown");
}

/** What the terminal may say when it is asked: that there is none, and what it has. */
const found: Readonly<Record<ContractName, (code: number) => readonly JsonObject[]>> = {
  bank: (code) => [
    { status: "error", code: -15 },
    { status: "error", code, data: { status: "ERROR", txn_id: "1" } },
  ],
  fiscal: (code) => [
    { status: "error", code: 9 },
    ...(code === 15 ? [{ status: "success", docStatus: 1, documentID: 1 }] : []),
  ],
  qr: (code) => [{ status: "error", code }],
};

test("settling.md's table of codes has each code of the contracts, and the results that posline comes to", () => {
  const told = rows(section("docs/settling.md", "What does the cashier see\\?"));
  const seen = new Map<ContractName, Set<number>>(contractNames.map((name) => [name, new Set()]));
  for (const [whose = "", , results = ""] of told) {
    const service = contractNames.find((name) => whose.startsWith(name));
    assert.ok(service, whose);
    const codes = [...whose.matchAll(/-?\d+/g)].map(([code]) => Number(code));
    const named = [...results.matchAll(/`(\w+)`/g)].map(([, result = ""]) => result);
    const routes = [...whose.matchAll(/`(\/\w+)`/g)].map(([, route = ""]) => route);
    for (const code of [...codes, ...(whose.includes("any other") ? [-999] : [])]) {
      seen.get(service)?.add(code);
      for (const route of routes.length === 0 ? ["/sale"] : routes) {
        const isAsked = route === "/check";
        const own = isAsked ? { status: "success", data: { trans: "T" } } : { status: "error", code };
        const start = isAsked ? "/showqrcode" : route;
        const first = resultOf(service, start, own, undefined);
        const later = found[service](code).map((asked) => resultOf(service, start, own, asked));
        if (isOperationEnd(first)) assert.deepEqual(named, [first], whose);
        for (const result of named)
          assert.ok([first, ...later].includes(result), `${whose}: ${result}, not ${first} or ${later}`);
        const [none] = later;
        if (isOperationEnd(none)) assert.ok(named.includes(none), `${whose}: ${none} isn't there`);
      }
    }
  }
  for (const name of contractNames) {
    for (const { code } of contracts[name].codes) assert.ok(code === 0 || seen.get(name)?.has(code), `${name} ${code}`);
  }
});

test("development.md's proofs are those of the virtual machine", () => {
  const main = fileURLToPath(new URL("proof/vm/main.ts", root));
  const help = execFileSync(process.execPath, ["--import", "tsx", main, "--help"], { encoding: "utf8" });
  const proofs = [...help.matchAll(/^ {2}(\w+) +(short )?/gm)].map(([, name, short]) => [name, short !== undefined]);
  const [, table = ""] = /^<!-- proofs: ([\s\S]*)^<!-- \/proofs -->$/m.exec(page("docs/development.md")) ?? [];
  const named = [...table.matchAll(/^\| `(\w+)` \| (✓)? ?\|/gm)].map(([, name, short]) => [name, short !== undefined]);
  assert.deepEqual(named, proofs);
});

const { version } = JSON.parse(readFileSync(new URL("package.json", root), "utf8")) as { readonly version: string };
const units = readdirSync(new URL("systemd", root)).filter((name) => /\.(?:service|socket)$/.test(name));

/** What scripts/deb says of packages. */
interface Deb {
  readonly standaloneArchitectures: readonly string[];
  readonly architectures: Readonly<Record<string, string>>;
}

/** The scripts have no types of their own. */
async function debOf(): Promise<Deb> {
  const parts = ["control", "standalone", "tree"].map((name) => import(new URL(`scripts/deb/${name}.mjs`, root).href));
  return Object.assign({}, ...(await Promise.all(parts)));
}

test("the packages that the documentation names are those that npm run deb makes", async () => {
  const { standaloneArchitectures, architectures } = await debOf();
  const made = Object.keys(architectures).flatMap((architecture) => {
    const names = standaloneArchitectures.includes(architecture) ? ["posline", "posline-standalone"] : ["posline"];
    return names.map((name) => `${name}_${version}_${architecture}.deb`);
  });
  made.push(`posline-lab_${version}_all.deb`);
  const named = [...documentation.matchAll(/posline[\w.-]*_\w+\.deb/g)].map(([name]) => name);
  assert.ok(named.length > 2);
  for (const name of named) assert.ok(made.includes(name), `${name} is none of ${made.join(", ")}`);
  for (const [, name = ""] of documentation.matchAll(/apt (?:remove|purge) ([\w-]+)/g)) {
    assert.equal(name, "posline");
  }
});

/** Programs of the box's own, and what of their arguments can be held against the project here. */
const programs: Readonly<Record<string, (args: readonly string[]) => void>> = {
  systemctl: ([, ...args]) => unitsThere(args.filter((arg) => !arg.startsWith("-"))),
  journalctl: (args) => unitsThere(args.flatMap((arg, n) => (args[n - 1] === "-u" ? [arg] : []))),
  ssh: ([, program = "", ...args]) => programs[program]?.(args),
  docker: ([, flag, file = ""]) => assert.ok(flag === "-f" && existsSync(new URL(file, root)), `there is no ${file}`),
  apt: ([verb = ""]) => assert.ok(["install", "update"].includes(verb)),
  ...Object.fromEntries(
    ["cp", "install", "jq", "mkdir", "printf", "sudoedit", "tee", "wireshark"].map((name) => [name, () => {}]),
  ),
};

/** A unit of ours, or one of the system's that the documentation speaks of. */
function unitsThere(names: readonly string[]): void {
  for (const name of names) {
    const whole = /\.\w+$/.test(name) ? name : `${name}.service`;
    assert.ok([...units, "systemd-journald.service"].includes(whole), `there is no unit ${whole} in systemd/`);
  }
}

// They need root, a package manager and a systemd that runs: none is here, and a test must not change the box that it runs on.
// What they do is shown on a real box by test:vm, which installs, reloads, restarts, stops, removes and purges the package.
test("the documentation's commands for the box name units, files and packages that there are", () => {
  const installed = `${textsOf("systemd")}\n${textsOf("scripts/deb")}`;
  const elsewhere = runs.filter((each) => !/^(?:npm|node|curl|posline) /.test(each));
  assert.ok(elsewhere.some((each) => each.startsWith("systemctl reload posline")));
  for (const each of elsewhere) {
    const [program = "", ...args] = each.split(" ");
    assert.ok(Object.hasOwn(programs, program), `the documentation runs ${program}, which this test doesn't know`);
    programs[program]?.(args);
    for (const path of args.filter((arg) => /^\/(?:etc|usr\/share\/doc|var\/lib)\/posline/.test(arg))) {
      const [, example] = /^\/usr\/share\/posline\/examples\/(.*)$/.exec(path) ?? [];
      assert.ok(installed.includes(example ?? path.slice(1)), `nothing of the package knows ${path}`);
    }
  }
  for (const [, path = ""] of documentation.matchAll(/^\| `\/(usr[^`]*)` \|/gm)) assert.ok(installed.includes(path), path);
});

test("remote-tills.md's other port is one more of posline.socket, at both addresses of localhost", () => {
  const streams = (text: string) => [...text.matchAll(/^ListenStream=(\S*)$/gm)].map(([, address = ""]) => address);
  const ours = streams(readFileSync(new URL("systemd/posline.socket", root), "utf8"));
  const [block = ""] = blocks("ini", page("docs/remote-tills.md"));
  assert.match(block, /^\[Socket\]\n/);
  const portOf = (address: string) => address.slice(address.lastIndexOf(":"));
  const [added = ""] = streams(block).map(portOf);
  assert.ok(added !== "" && !ours.map(portOf).includes(added), added);
  // An empty one would take the others away.
  assert.deepEqual(
    streams(block),
    ours.filter((address) => portOf(address) === ":8888").map((address) => address.replace(":8888", added)),
  );
});

test("the documentation shows nothing to paste that only looks like a command", () => {
  for (const line of commands) assert.match(line, /^[a-z]/, line);
});
