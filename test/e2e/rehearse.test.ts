import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { quick as playedQuickly } from "../../src/lab/rehearse/scenarios.ts";
import { scratchFolder } from "../support/bridge-process.ts";
import { commandOf, mistakes, wrongTill } from "../support/tills/mistakes.ts";
import { rehearsed } from "../support/tills/rehearsed.ts";

/** `posline rehearse` as a process: it finds the mistake of each wrong till by name, and calls no right one broken. */

const folder = scratchFolder();

const state = join(folder.path, "state");
const fast = ["--jobs", "4"];

test("rehearse finds each till's mistake, by scenario and sentence", { concurrency: 3 }, async (t) => {
  const tried = mistakes.flatMap((mistake) => (mistake.why === undefined ? [] : [{ ...mistake, why: mistake.why }]));
  assert.ok(tried.length > 15, `only ${tried.length} have a sentence`);
  await Promise.all(
    tried.map((mistake) =>
      t.test(`${mistake.name}: ${mistake.wrong}`, async () => {
        const { name, style, why } = mistake;
        const [scenario = ""] = mistake.scenarios;
        const file = join(folder.path, name);
        writeFileSync(file, wrongTill(mistake));
        const { code, out, verdicts } = await rehearsed(commandOf(style, file), state, [
          "--scenario",
          scenario,
          "--patience",
          "25",
        ]);
        assert.deepEqual([verdicts, code], [{ [scenario]: "FAILED" }, 1], out);
        assert.match(out, why);
      }),
    ),
  );
});

/** Of each kind one that looks different to a till; the first till of tills.test.ts goes through more. */
const quick = [
  ...["declined", "no-answer-carried-out", "posline-killed", "till-killed", "key-reused", "huge-amount"],
  "receipt-fails-after-payment",
];

test("rehearse calls the till that does everything right broken in nothing", async () => {
  const junit = join(folder.path, "rehearsal.xml");
  const only = process.env["REHEARSE"] === "all" ? [] : ["receipt-unprinted", "given-back", "qr-given-back", "return"];
  const scenarios = only.flatMap((name) => ["--scenario", name]);
  const { code, out, verdicts } = await rehearsed(commandOf("wait"), state, [...fast, ...scenarios, "--junit", junit]);
  const others = Object.entries(verdicts).filter(([, verdict]) => verdict !== "passed");
  assert.deepEqual([others, code], [[], 0], out);
  assert.match(
    readFileSync(junit, "utf8"),
    /<testsuite name="posline rehearse" tests="\d+" failures="0" errors="0" skipped="\d"/,
  );
});

for (const style of ["polling", "curl"] as const) {
  test(`rehearse calls the right till of the style ${style} broken in nothing`, async () => {
    const scenarios = quick.flatMap((name) => ["--scenario", name]);
    const { code, out } = await rehearsed(commandOf(style), state, [...fast, ...scenarios]);
    assert.equal(code, 0, out);
  });
}

const bad: readonly (readonly [name: string, command: string, said: RegExp])[] = [
  ["doesn't exist", "no-such-till {key}", /^Cannot rehearse "no-such-till \{key\}": the shell can't run it: .*not found$/m],
  ["can't be parsed", "till {key} (", /^Cannot rehearse "till \{key\} \(": the shell can't parse it: .*[Ss]yntax error/m],
  [
    "prints without an end",
    "yes {key}",
    /^Cannot rehearse "yes \{key\}": it printed more than 1 MiB: a till prints one word$/m,
  ],
];

for (const [name, command, said] of bad) {
  test(`rehearse says in one sentence of a till that ${name}`, async () => {
    const { code, complaint, out } = await rehearsed(command, state, ["--scenario", "approved"]);
    assert.equal(code, 69, out);
    assert.match(complaint, said);
  });
}

test("rehearse ends a till that never answers, and all that a till began", async () => {
  const pids = join(folder.path, "pids");
  mkdirSync(pids, { recursive: true });
  const command = `: {key}; for n in 1 2; do setsid sh -c 'echo $$ >${pids}/$$; sleep 300' & done; sleep 300`;
  const { code, out } = await rehearsed(command, state, ["--scenario", "approved", "--patience", "2"]);
  assert.equal(code, 1, out);
  assert.match(out, /The till had not ended the sale after/);
  // Where nobody takes their exit codes, dead processes stay in the list, without their command.
  const commandOf = (pid: string) => (existsSync(`/proc/${pid}`) ? readFileSync(`/proc/${pid}/cmdline`, "utf8") : "");
  assert.deepEqual(readdirSync(pids).map(commandOf), ["", ""]);
});

test("rehearse says what is wrong with its flags", async () => {
  for (const [flags, said] of [
    [["--scenario", "aproved"], /there is no scenario "aproved": did you mean "approved"\?/],
    [["--jobs", "0"], /--jobs is 0: use a whole number from 1 to 16/],
    [["--quick", "--scenario", "approved"], /--scenario and --quick can't be used together/],
    [["--report", join(folder.path, "none", "report.html")], /Cannot write --report .*name a file in a folder/],
    [["--words", join(folder.path, "no-such.json")], /Cannot read .*no-such\.json: .*\{"0": "approved"/],
  ] as const) {
    const { code, complaint } = await rehearsed("true {key}", state, flags);
    assert.equal(code, 64);
    assert.match(complaint, said);
  }
  const { code, complaint } = await rehearsed("till {amount}", state, []);
  assert.equal(code, 64);
  assert.match(complaint, /the till's command has no \{key\}: add --till/);
});

test("rehearse --quick plays some scenarios, each of which there is", async () => {
  const listed = async (...flags: readonly string[]) => {
    const { out } = await rehearsed("true", state, ["--list", ...flags]);
    return out.trim().split("\n");
  };
  const [all, some] = [await listed(), await listed("--quick")];
  assert.ok(some.length > 10 && some.length < all.length / 2);
  assert.deepEqual(
    some.filter((row) => !all.some((each) => each.split(" ")[0] === row.split(" ")[0])),
    [],
  );
  assert.deepEqual(
    playedQuickly.filter((name) => !some.some((row) => row.startsWith(`${name} `))),
    [],
  );
});

test("rehearse reads a word in colours, capitals or UTF-16, and claims nothing of a till whose last line is no word", async () => {
  const said = async (printed: string) => {
    const { out, code } = await rehearsed(`${commandOf("polling")} >&2; ${printed}`, state, ["--scenario", "approved"]);
    return [code, out] as const;
  };
  for (const printed of [
    String.raw`printf '\357\273\277\033[1;32mAPPROVED\033[0m\n'`,
    "printf 'Approved\r\n' | iconv -t UTF-16LE",
  ]) {
    const [code, out] = await said(printed);
    assert.equal(code, 0, out);
  }
  const [code, out] = await said("echo Payment OK");
  assert.equal(code, 75, out);
  assert.match(out, /The till's last line, "Payment OK" \(exit code 0\), is none of approved, declined/);
});

test("rehearse takes the word from the exit code, or from a POST", async () => {
  const words = join(folder.path, "words.json");
  writeFileSync(words, '{"0": "approved", "1": "declined"}');
  const quiet = `${commandOf("polling")} | grep -q approved`;
  const byCode = await rehearsed(quiet, state, ["--words", words, "--scenario", "approved", "--scenario", "declined"]);
  assert.equal(byCode.code, 0, byCode.out);
  const sent = `curl -s -d "$(${commandOf("polling")})" "$POSLINE_WORD_URL"`;
  const byPost = await rehearsed(sent, state, ["--scenario", "approved", "--scenario", "declined"]);
  assert.equal(byPost.code, 0, byPost.out);
});

test("rehearse --world plays the shop, and says when no time was left", async () => {
  const world = join(folder.path, "shop.json");
  writeFileSync(world, '{"bank": {"currencies": {"JPY": ["392"]}}}');
  const { code, out } = await rehearsed(commandOf("polling"), state, [
    ...["--world", world, "--scenario", "approved", "--patience", "8"],
  ]);
  assert.equal(code, 1, out);
  assert.match(out, /the terminal: *\/sale|The till/);
});
