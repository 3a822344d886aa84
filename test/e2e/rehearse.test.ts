import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { scratchFolder } from "../support/bridge-process.ts";
import { PoslineProcess } from "../support/posline-process.ts";

/** `posline rehearse` as a process: it finds the mistake of each wrong till by name, and calls no right one broken. */

const shop = fileURLToPath(new URL("../../docs/tills/shop.py", import.meta.url));
const polling = fileURLToPath(new URL("polling-till.py", import.meta.url));
const folder = scratchFolder();
process.on("exit", () => folder.remove());

interface Rehearsed {
  readonly code: number | null;
  readonly out: string;
  readonly complaint: string;
  /** The verdict of each scenario, by name. */
  readonly verdicts: Readonly<Record<string, string>>;
}

async function rehearsed(command: string, flags: readonly string[]): Promise<Rehearsed> {
  const env = { TILL_FOLDER: join(folder.path, "state") };
  const posline = new PoslineProcess(["rehearse", "--till", command, "--jobs", "4", ...flags], { env });
  const code = await posline.ended(undefined, 300_000);
  const rows = posline.stdout.matchAll(/^(held|BROKEN|not seen) +([a-z0-9-]+) /gm);
  const verdicts = Object.fromEntries([...rows].map(([, verdict = "", name = ""]) => [name, verdict]));
  return { code, out: posline.stdout, complaint: posline.stderr, verdicts };
}

/** A copy of a till with one mistake. */
interface Mistake {
  readonly name: string;
  readonly till: "shop" | "polling";
  /** Each text is replaced by the one beside it. */
  readonly changes: readonly (readonly [from: string, to: string])[];
  readonly scenario: string;
  readonly why: RegExp;
}

const shopCommand = "{do} {key} {amount} {of}";
const pollingCommand = "{key} {amount}";

const mistakes: readonly Mistake[] = [
  {
    name: "makes a new key for each retry",
    till: "polling",
    changes: [['while post("/sale", {"pay_id": key,', 'while (key := key + "x") and post("/sale", {"pay_id": key,']],
    scenario: "posline-killed",
    why: /the till began 2: /,
  },
  {
    name: "takes 504 for declined",
    till: "polling",
    changes: [
      ["while post(", "while (answer := post("],
      ['"currency_name": "EUR"}) is None:\n', '"currency_name": "EUR"})) is None:\n'],
      ["while word is None:", 'word = word or ("declined" if answer[0] == 504 else None)\nwhile word is None:'],
    ],
    scenario: "no-answer-carried-out",
    why: /The till said declined at .* the terminal has \/sale of .*, approved/,
  },
  {
    name: "takes the success of a start for paid",
    till: "polling",
    changes: [["while word is None:", 'word = "approved"\nwhile word is None:']],
    scenario: "declined",
    why: /The till said approved .* the terminal has \/sale of .*, declined/,
  },
  {
    name: "polls for ever",
    till: "polling",
    changes: [['in ("ERROR", "REVERSED")', 'in ("REVERSED",)']],
    scenario: "declined",
    why: /had not ended the sale after/,
  },
  {
    name: "rounds amounts through a float",
    till: "polling",
    changes: [["int(sys.argv[2])", "int(float(sys.argv[2]) / 100 * 100)"]],
    scenario: "huge-amount",
    why: /asked was 90071992547\d+\.\d\d, and the terminal has \/sale of 90071992547/,
  },
  {
    name: "signs data that it encodes anew",
    till: "shop",
    changes: [["(data + MERCHANT)", "(base64.b64encode(json.dumps(document, indent=1).encode()).decode() + MERCHANT)"]],
    scenario: "receipt-exact",
    why: /the terminal has nothing of it/,
  },
  {
    name: "cancels a sale in doubt, and sells anew",
    till: "polling",
    changes: [
      [
        "    word = ended()\n    if word ==",
        '    word = ended()\n    if word is None:\n        post("/abort", {"pay_id": key})\n        key += "x"\n        post("/sale", {"pay_id": key, "amount": amount, "currency_name": "EUR"})\n    if word ==',
      ],
    ],
    scenario: "slow",
    why: /the till began \d+: /,
  },
  {
    name: "keeps no trans",
    till: "shop",
    changes: [['{"trans": answer.getheader("X-Posline-Trans"), ', "{"]],
    scenario: "qr-given-back",
    why: /said unknown at .* of a qr-refund .* whose end could be known/,
  },
  {
    name: "ignores the amount of the answer",
    till: "polling",
    changes: [['"approved" if data["data"]["amount"] == amount else "failed"', '"approved"']],
    scenario: "key-reused",
    why: /The till said approved at .*; asked was .*, and the terminal has nothing of it/,
  },
  {
    name: "uses yesterday's key again",
    till: "shop",
    changes: [
      [
        "do, key, amount = sys.argv[1], sys.argv[2], int(sys.argv[3])",
        'do, key, amount = sys.argv[1], "A-" + sys.argv[3], int(sys.argv[3])',
      ],
    ],
    scenario: "new-day",
    why: /The till said approved at .*; asked was .*, and the terminal has nothing of it/,
  },
  {
    name: "prints the receipt twice",
    till: "shop",
    changes: [
      [
        '    save(key, {"documentID": number})',
        '    save(key, {"documentID": number})\n    settled(FISCAL, route, form({"documentExtID": key + "-2", **document}))',
      ],
    ],
    scenario: "receipt-no-answer",
    why: /the till began 2: /,
  },
  {
    name: "takes code 15 for failed",
    till: "shop",
    changes: [["    return word\n\n\ndef receipt", '    return "failed" if word == "unprinted" else word\n\n\ndef receipt']],
    scenario: "receipt-unprinted",
    why: /The till said failed at .*; the terminal has \/sale of/,
  },
];

test("rehearse finds each till's mistake, by scenario and sentence", { concurrency: 3 }, async (t) => {
  await Promise.all(
    mistakes.map((mistake, index) =>
      t.test(mistake.name, async () => {
        const { till, changes, scenario, why } = mistake;
        let text = readFileSync(till === "shop" ? shop : polling, "utf8");
        for (const [from, to] of changes) {
          assert.ok(text.includes(from), `the till has: ${from}`);
          text = text.replaceAll(from, to);
        }
        const file = join(folder.path, `till-${index}.py`);
        writeFileSync(file, text);
        const command = `python3 ${file} ${till === "shop" ? shopCommand : pollingCommand}`;
        const { code, out, verdicts } = await rehearsed(command, ["--scenario", scenario, "--patience", "25"]);
        assert.deepEqual([verdicts, code], [{ [scenario]: "BROKEN" }, 1], out);
        assert.match(out, why);
      }),
    ),
  );
});

/** Of each kind one that looks different to a till; the first till of tills.test.ts goes through more. */
const quick = ["declined", "no-answer-carried-out", "posline-killed", "till-killed", "key-reused", "huge-amount"];

test("rehearse calls the till that does everything right broken in nothing", async () => {
  const junit = join(folder.path, "rehearsal.xml");
  const only = process.env["REHEARSE"] === "all" ? [] : ["receipt-unprinted", "given-back", "qr-given-back", "return"];
  const scenarios = only.flatMap((name) => ["--scenario", name]);
  const { code, out, verdicts } = await rehearsed(`python3 ${shop} ${shopCommand}`, [...scenarios, "--junit", junit]);
  const others = Object.entries(verdicts).filter(([, verdict]) => verdict !== "held");
  // It never calls /abort.
  assert.deepEqual([others, code], only.length > 0 ? [[], 0] : [[["abort-too-late", "not seen"]], 75], out);
  assert.match(
    readFileSync(junit, "utf8"),
    /<testsuite name="posline rehearse" tests="\d+" failures="0" errors="0" skipped="\d"/,
  );
});

test("rehearse calls a till that polls by itself broken in nothing", async () => {
  const { code, out } = await rehearsed(
    `python3 ${polling} ${pollingCommand}`,
    quick.flatMap((name) => ["--scenario", name]),
  );
  assert.equal(code, 0, out);
});

const bad: readonly (readonly [name: string, command: string, said: RegExp])[] = [
  ["doesn't exist", "no-such-till {key}", /^Cannot rehearse "no-such-till \{key\}": the shell can't run it: .*not found$/m],
  ["prints without an end", "yes", /^Cannot rehearse "yes": it printed more than 1 MiB: a till prints one word$/m],
];

for (const [name, command, said] of bad) {
  test(`rehearse says in one sentence of a till that ${name}`, async () => {
    const { code, complaint, out } = await rehearsed(command, ["--scenario", "approved"]);
    assert.equal(code, 69, out);
    assert.match(complaint, said);
  });
}

test("rehearse ends a till that never answers, and all that a till began", async () => {
  const pids = join(folder.path, "pids");
  mkdirSync(pids, { recursive: true });
  const command = `for n in 1 2; do setsid sh -c 'echo $$ >${pids}/$$; sleep 300' & done; sleep 300`;
  const { code, out } = await rehearsed(command, ["--scenario", "approved", "--patience", "2"]);
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
    [["--words", join(folder.path, "no-such.json")], /Cannot read .*no-such\.json: .*\{"0": "approved"/],
  ] as const) {
    const { code, complaint } = await rehearsed("true", flags);
    assert.equal(code, 64);
    assert.match(complaint, said);
  }
});

test("rehearse takes the word from the exit code, or from a POST", async () => {
  const words = join(folder.path, "words.json");
  writeFileSync(words, '{"0": "approved", "1": "declined"}');
  const quiet = `python3 ${polling} ${pollingCommand} | grep -q approved`;
  const byCode = await rehearsed(quiet, ["--words", words, "--scenario", "approved", "--scenario", "declined"]);
  assert.equal(byCode.code, 0, byCode.out);
  const sent = `curl -s -d "$(python3 ${polling} ${pollingCommand})" "$POSLINE_WORD_URL"`;
  const byPost = await rehearsed(sent, ["--scenario", "approved", "--scenario", "declined"]);
  assert.equal(byPost.code, 0, byPost.out);
});

test("rehearse --world plays the shop, and says when no time was left", async () => {
  const world = join(folder.path, "shop.json");
  writeFileSync(world, '{"bank": {"currencies": {"JPY": ["392"]}}}');
  const { code, out } = await rehearsed(`python3 ${polling} ${pollingCommand}`, [
    "--world",
    world,
    "--scenario",
    "approved",
    "--patience",
    "8",
  ]);
  assert.equal(code, 1, out);
  assert.match(out, /the terminal: *\/sale|The till/);
});
