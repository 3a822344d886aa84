import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { allCommands, runCommands } from "../../../src/cli/commands.ts";
import { type Command, readArguments } from "../../../src/core/command.ts";
import { UsageError } from "../../../src/core/exit.ts";
import { scratchFolder } from "../../support/bridge-process.ts";
import { bundle } from "../../support/posline-process.ts";

const commands = await allCommands();

/** What is wrong on a command line, made of the commands' own tables: `src/core/command.ts` and `src/cli/commands.ts`. */

type Wrong = { readonly words: readonly string[]; readonly message: RegExp };

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Two letters swapped, the slip of the hand; of a word that stays the same by that, one letter doubled. */
function misspelt(word: string): string {
  const swapped = `${word.slice(0, -2)}${word.at(-1)}${word.at(-2)}`;
  return swapped === word ? `${word}${word.at(-1)}` : swapped;
}

/** Each flag of a command without its value. */
function bare({ name, flags }: Command): readonly Wrong[] {
  return Object.entries(flags).flatMap(([flag, option]) => {
    if (option.type === "boolean") return [];
    const message = new RegExp(`^--${flag} needs a value: write .*--${flag} ["'\\w/@.:]`);
    const { alias } = option;
    const written = alias === undefined ? [`--${flag}`] : [`--${flag}`, `-${alias}`];
    return written.flatMap((word) => [
      { words: [name, word], message },
      // What a shell makes of a variable that isn't set.
      { words: [name, word, ""], message },
      { words: [name, `--${flag}=`], message },
      { words: [name, word, "--help-me"], message },
    ]);
  });
}

/** Each flag of a command misspelt, with a value and without. */
function misspeltFlags({ name, flags }: Command): readonly Wrong[] {
  // One letter turned round is --world as much as --words.
  const told = Object.keys(flags).filter((flag) => flag !== "words");
  return told.flatMap((flag) => {
    const word = `--${misspelt(flag)}`;
    const message = new RegExp(`^Unknown flag "${escaped(word)}" of posline ${name}: did you mean "--${flag}"\\?$`);
    return [
      { words: [name, word], message },
      { words: [name, `${word}=1`], message },
    ];
  });
}

/** Each flag that wants a number or one of a few words with another. */
function badValues({ name, flags }: Command): readonly Wrong[] {
  return Object.entries(flags).flatMap(([flag, option]) => {
    if (option.type === "boolean")
      return [{ words: [name, `--${flag}=maybe`], message: /takes no value, and "maybe" was given/ }];
    if (option.type !== "string") {
      const message = new RegExp(`^--${flag} "abc" must be a (whole )?number, for example --${flag} \\d+$`);
      return [{ words: [name, `--${flag}`, "abc"], message }];
    }
    if (option.choices === undefined) return [];
    return [{ words: [name, `--${flag}`, "abc"], message: new RegExp(`^--${flag} "abc" must be .* or `) }];
  });
}

const misspeltCommands: readonly Wrong[] = commands.map(({ name }) => ({
  words: [misspelt(name)],
  message: new RegExp(`^Unknown command "${misspelt(name)}": did you mean "${name}"\\?$`),
}));

async function messageOf(words: readonly string[]): Promise<string> {
  try {
    await runCommands(words);
  } catch (error) {
    assert.ok(error instanceof UsageError, `${words.join(" ")}: ${String(error)}`);
    assert.equal(error.exitCode, 64);
    return error.message;
  }
  return assert.fail(`posline ${words.join(" ")} was accepted`);
}

test("runCommands() refuses every flag bare, misspelt or with a wrong value, and every command misspelt, in one sentence", async () => {
  const all = [...misspeltCommands, ...commands.flatMap((each) => [...bare(each), ...misspeltFlags(each), ...badValues(each)])];
  assert.ok(all.length > 200, `${all.length} command lines`);
  for (const { words, message } of all) {
    const said = await messageOf(words);
    assert.match(said, message, words.join(" "));
    assert.doesNotMatch(said, /\n|NaN|undefined/, words.join(" "));
  }
});

test("runCommands() refuses a word that a command doesn't take, and no command at all", async () => {
  for (const [words, message] of [
    [[], /^No command was given: .* posline --help/],
    [["xyzzy"], /^Unknown command "xyzzy": posline --help lists them$/],
    [["--hepl"], /^Unknown flag "--hepl" without a command: did you mean "--help"\?$/],
    [["doctor", "till"], /^Unexpected argument "till" of posline doctor: it takes only flags/],
    [["serve", "emulated"], /^Unexpected argument "emulated" of posline serve: did you mean "--emulated"\?$/],
    [
      ["call", "bank", "sale", "{}", "{}"],
      /^Unexpected argument "\{\}" of posline call: it takes at most service, route, body/,
    ],
    [["serve", "--line", "/dev/x", "--emulated"], /^--line and --emulated can't be used together/],
    [["serve", "--line\u001b[2J"], /^Unknown flag "--line\ufffd\[2J" of posline serve/],
  ] as const) {
    assert.match(await messageOf(words), message);
  }
});

test("readArguments() takes the values of a flag that may be repeated with commas as well, in every command that has one", async () => {
  const given = [];
  for (const command of commands) {
    for (const [flag, option] of Object.entries(command.flags)) {
      if (option.type === "boolean" || option.repeatable !== true) continue;
      const values = (option.choices ?? ["a", "b", "c"]).slice(0, 3);
      const [first = "", second = "", third = ""] = values;
      const { [flag]: read } = readArguments(command, [`--${flag}`, `${first}, ${second}`, `--${flag}=${third}`]) as Record<
        string,
        unknown
      >;
      assert.deepEqual(read, values, `${command.name} --${flag}`);
      given.push(`${command.name} --${flag}`);
    }
  }
  for (const each of ["certify --services", "rehearse --services", "emulate --service"]) assert.ok(given.includes(each), each);
  for (const value of ["bank,card", "bank,"]) {
    const wrong = value.slice("bank,".length);
    assert.match(
      await messageOf(["certify", "--services", value]),
      new RegExp(`^--services "${wrong}" must be fiscal, bank or qr`),
    );
  }
});

test("readArguments() reads values, switches, aliases, repeated flags and numbers below 0", () => {
  const table: Pick<Command, "name" | "flags" | "positionals"> = {
    name: "x",
    flags: {
      lines: { type: "whole", example: "1", alias: "n", describe: "" },
      "plain-text": { type: "boolean", alias: "p", describe: "" },
      fault: { type: "string", example: "a", repeatable: true, describe: "" },
      file: { type: "string", example: "a", describe: "" },
    },
    positionals: { place: { describe: "" } },
  };
  const read = (...words: string[]) => readArguments(table, words);
  assert.deepEqual(read("-n", "-1", "--file", "-", "here"), { lines: -1, file: "-", place: "here" });
  assert.deepEqual(read("-pn5", "--fault", "a", "--fault=b"), { plainText: true, lines: 5, fault: ["a", "b"] });
  assert.deepEqual(read("--file", "a", "--file=-b", "--no-plain-text"), { file: "-b", plainText: false });
  assert.deepEqual(read("--plain-text=false", "--", "--file"), { plainText: false, place: "--file" });
});

/** The real entry: what it writes, and its exit code. */
function posline(words: readonly string[]) {
  return new Promise<{ readonly code: unknown; readonly stdout: string; readonly stderr: string }>((resolve) => {
    const child = execFile(process.execPath, [bundle, ...words], { timeout: 20_000 }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}

/** A value of the right type that no command can use, by the flags that have one. */
const unusable: Readonly<Record<string, string>> = {
  at: "-1",
  baud: "1.5",
  seed: "-1",
  lines: "1.5",
  jobs: "0",
  minutes: "1.5",
  patience: "0",
  amount: "0",
  "admin-port": "70000",
  timeout: "0",
  window: "-1",
  line: "no such device",
  url: "no such url",
  fault: "no such fault=1",
  since: "never",
  "upstream-fiscal": "no such url",
  "upstream-bank": "no such url",
  "upstream-qr": "no such url",
};

/** What else a command needs, so that nothing but the value is wrong. */
const besides: Readonly<Record<string, (flag: string) => readonly string[]>> = {
  serve: (flag) => (flag === "baud" ? ["--line", "/dev/posline-none"] : flag === "line" ? [] : ["--emulated"]),
  gateway: (flag) => (flag === "line" ? [] : ["--line", "/dev/posline-none"]),
  config: (flag) => (flag === "line" ? [] : ["--line", "/dev/posline-none"]),
  tap: (flag) => ["--raw", ...(flag === "line" ? [] : ["--line", "/dev/posline-none"])],
  rehearse: () => ["--till", "true {key}"],
  certify: (flag) => [
    ...["--with-sales", "--yes", "--currency", "EUR"],
    ...(flag === "amount" ? [] : ["--amount", "100"]),
    ...(flag === "line" ? [] : ["--line", "/dev/posline-none"]),
  ],
  doctor: () => ["--line", "/dev/posline-none"],
  replay: () => ["recording.jsonl"],
  call: (flag) => [
    ...["bank", "sale", '{"pay_id":"A","amount":1,"currency_name":"EUR"}'],
    ...(flag === "window" ? ["--wait"] : []),
    ...(flag === "baud"
      ? ["--line", "/dev/posline-none"]
      : flag === "url" || flag === "line"
        ? []
        : ["--url", "http://127.0.0.1:8888"]),
  ],
};

test("posline exits with 64 for a value of a flag that can't be used, for each flag of each command, naming the value or the flag", async () => {
  const tried = commands.flatMap(({ name, flags }) =>
    Object.entries(flags).flatMap(([flag, { type }]) => {
      if (type !== "string")
        assert.ok(type === "boolean" || flag in unusable, `${name} --${flag} has values that can't be used`);
      // There it may be a line's name, of which the configuration decides: test/doctor/doctor.test.ts and test/setup/setup.test.ts have that.
      const value = ["doctor", "replay", "setup"].includes(name) && flag === "line" ? undefined : unusable[flag];
      return value === undefined ? [] : [{ flag, words: [name, ...(besides[name]?.(flag) ?? []), `--${flag}=${value}`] }];
    }),
  );
  assert.ok(tried.length > 20, `${tried.length} command lines`);
  for (const { flag, words } of tried) {
    const { code, stdout, stderr } = await posline(words);
    assert.equal(code, 64, `${words.join(" ")}: ${stderr}`);
    assert.match(stderr + stdout, new RegExp(`--${flag}\\b|url is not valid`), words.join(" "));
  }
});

test("posline exits with 78 for a wrong value in the configuration, with a wrong flag beside it too", async () => {
  const folder = scratchFolder();
  const file = join(folder.path, "posline.json");
  writeFileSync(file, '{"lines":{"till":{"path":"/dev/posline-none","baudRate":7}},"services":{"bank":{"line":"till"}}}');
  assert.equal((await posline(["config", "--config", file])).code, 78);
  const both = await posline(["config", "--config", file, "--baud", "1.5"]);
  assert.deepEqual([both.code, both.stdout], [78, ""]);
  assert.match(both.stderr, /2 problems\n {2}lines\.till\.baudRate: .*\n {2}--baud: /);
});

test("posline call --resume @FILE says which file can't be read, and which holds no token", async () => {
  const folder = scratchFolder();
  const file = join(folder.path, "token");
  const missing = await posline(["call", "--resume", `@${file}`]);
  assert.equal(missing.code, 64);
  assert.equal(
    missing.stderr,
    `Cannot resume: cannot read the token's file "${file}": there is no such file, or nothing in it: correct the path\n`,
  );
  writeFileSync(file, "token");
  assert.match(
    (await posline(["call", "--resume", `@${file}`])).stderr,
    /^Cannot resume: the token in ".*token" is not JSON: /,
  );
});

test("posline --help lists every command, and each command's --help every flag, on standard output", async () => {
  const all = await posline(["--help"]);
  assert.equal(all.code, 0);
  for (const { name, flags } of commands) {
    assert.match(all.stdout, new RegExp(`^  posline ${name}\\b`, "m"));
    const { code, stdout, stderr } = await posline([name, "-h"]);
    assert.deepEqual([code, stderr], [0, ""]);
    for (const flag of Object.keys(flags)) assert.match(stdout, new RegExp(`--${flag}\\b`), `${name} --${flag}`);
  }
});
