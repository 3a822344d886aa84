import { availableParallelism } from "node:os";
import { emulatorFlags } from "../../cli/emulator-flags.ts";
import { fileBytesMax } from "../../config/limits.ts";
import { readAtMost } from "../../config/secrets.ts";
import { contractNames } from "../../core/call.ts";
import { type ArgumentsOf, defineCommand, type FlagTable } from "../../core/command.ts";
import { messageOf } from "../../core/error-code.ts";
import { exitCodes, UsageError } from "../../core/exit.ts";
import { isObject } from "../../core/json-object.ts";
import { JsonError, parseJson } from "../../core/json-syntax.ts";
import { inQuotes } from "../../core/shell-text.ts";
import { loadWorld } from "../emulator/world-file.ts";
import { RehearsalPort } from "../rehearse/port.ts";
import { anyPorts, usualPorts } from "../rehearse/posline.ts";
import { rehearse } from "../rehearse/rehearsal.ts";
import { isWord, neededServices, type Scenario, type Word, words } from "../rehearse/scenario.ts";
import { quick, scenarios } from "../rehearse/scenarios.ts";
import { screenTill } from "../rehearse/screen-till.ts";
import { endPlays, type Till } from "../rehearse/stand.ts";
import { checkSyntax, type ExitWords, runTill, TillError } from "../rehearse/till.ts";
import type { Judged } from "../report/judgement.ts";
import { listOf, refuseUnknownNames, reportFlags, runJudging, showProgress, tryReports } from "./judging.ts";

/** `posline rehearse`: judges a till by what the terminal did. */

export type RehearseArguments = ArgumentsOf<typeof flags>;

/** A till that asks until it knows needs a minute if the terminal never had the sale, and its own pauses. */
const patienceSeconds = 180;

/** What ends a rehearsal early: its poslines and tills end with it. */
const ending = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** Most of the time is waiting; each is a posline and a till. */
const jobsMax = 16;

/**
 * Rehearses.
 * @returns the exit code: 0 if all passed, 1 if one failed, 75 if none did and not all were tested, 69 if the till is none.
 */
export async function runRehearse(args: RehearseArguments): Promise<number> {
  const chosen = chosenScenarios(args);
  if (args.list === true) {
    process.stdout.write(listOf(chosen));
    return exitCodes.ok;
  }
  const {
    till: command = "",
    seed = 1,
    jobs = Math.min(jobsMax, 2 * availableParallelism()),
    minutes = 60,
    patience = chosen.some(({ lasts }) => lasts === "minutes") ? 2 * patienceSeconds : patienceSeconds,
    origin = [],
  } = args;
  const isPage = args.page === true;
  // Without its key a till that is run again can't know that it is the same operation.
  if (!isPage && !command.includes("{key}")) {
    const example = "--till 'python3 till.py {key} {amount}'";
    const state = command.trim() === "" ? "no till is named" : "the till's command has no {key}";
    throw new UsageError(`Cannot rehearse: ${state}: add --till 'COMMAND', such as ${example}, or --page if it has a screen`);
  }
  checkWhole("--seed", seed, 0, 0x7fff_ffff);
  checkWhole("--jobs", jobs, 1, jobsMax);
  checkWhole("--minutes", minutes, 1, 24 * 60);
  checkWhole("--patience", patience, 1, 3_600);
  tryReports(args);
  const exitWords = args.words === undefined ? new Map<number, Word>() : readExitWords(args.words);
  const began = new Date();
  const end = () => {
    endPlays();
    process.exit(exitCodes.unavailable);
  };
  for (const signal of ending) process.once(signal, end);
  process.once("exit", endPlays);
  const port = new RehearsalPort((error) => process.stderr.write(`A bug of the rehearsal's page: ${String(error)}\n`));
  await port.listen();
  if (isPage) process.stderr.write(`Open ${port.url} and do what it says at your till\n`);
  const byCommand: Till = (order, env) => {
    const sent = () => port.takeWord(order.key);
    return runTill({ command, order, env, exitWords, patienceMs: patience * 1_000, sent });
  };
  const over: Judged[] = [];
  const run = async (judged: (judged: Judged) => void) => {
    if (!isPage) checkSyntax(command);
    return rehearse({
      scenarios: chosen,
      till: isPage ? screenTill(port) : byCommand,
      ports: isPage ? await usualPorts() : anyPorts,
      wordUrl: (key) => port.wordUrl(key),
      begins: ({ title }) => port.show({ scenario: `${over.length + 1} of ${chosen.length}: ${title}.` }),
      noted: (moment) => port.note(moment),
      program: [process.execPath, ...process.execArgv, ...process.argv.slice(1, 2)],
      world: loadWorld(args.world),
      origins: origin,
      seed,
      jobs: isPage ? 1 : jobs,
      limitMs: minutes * 60_000,
      judged: (each) => {
        judged(each);
        over.push(each);
        port.judged(over);
      },
      progress: (done, running) => showProgress(progressText(done, running, chosen.length, began)),
    });
  };
  const setup = (cases: readonly Judged[]) => {
    const leftOut = scenarios.filter(({ name }) => !cases.some((each) => each.name === name)).map(({ name }) => name);
    return {
      ...{ seed: String(seed), world: args.world ?? "built in", scenarios: `${cases.length} of ${scenarios.length}` },
      ...(leftOut.length > 0 && { "left out": leftOut.join(", ") }),
    };
  };
  const subject = isPage ? "a till with a screen" : command;
  const files = [...(args.world === undefined ? [] : [args.world]), ...command.split(/\s+/)];
  try {
    return await runJudging({ subject, by: "posline rehearse", args, chosen, run, refusal: TillError, setup, files });
  } finally {
    port.show({ task: "", note: "It is over", scenario: "" });
    port.close();
    for (const signal of ending) process.off(signal, end);
  }
}

function chosenScenarios({ scenario, services, quick: isQuick, thorough }: RehearseArguments): readonly Scenario[] {
  const names = isQuick === true ? quick : scenario;
  refuseUnknownNames(scenarios, names, "Cannot rehearse: there is no scenario");
  const isMeant = ({ name, lasts }: Scenario) => names?.includes(name) ?? (thorough === true || lasts !== "minutes");
  const asked = scenarios.filter(isMeant);
  const chosen = asked.filter(
    (each) => services === undefined || neededServices(each).every((service) => services.includes(service)),
  );
  if (chosen.length > 0) return chosen;
  throw new UsageError("Cannot rehearse: none of these scenarios is of these services alone: name others");
}

function checkWhole(flag: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw new UsageError(`Cannot rehearse: ${flag} is ${value}: use a whole number from ${min} to ${max}`);
}

/** Reads `{"0": "approved", "1": "declined"}`. */
function readExitWords(file: string): ExitWords {
  const refuse = (state: string) => {
    throw new UsageError(
      `Cannot read ${file}: ${state}: write it as {"0": "approved", "1": "declined"}, with ${words.join(", ")}`,
    );
  };
  let value: unknown;
  try {
    value = parseJson(readAtMost(file, fileBytesMax).toString("utf8"));
  } catch (error) {
    return refuse(error instanceof JsonError ? error.message : messageOf(error));
  }
  if (!isObject(value)) return refuse("it is no JSON object");
  return new Map(
    Object.entries(value).map(([code, word]) => {
      if (!/^\d{1,3}$/.test(code) || Number(code) > 255) return refuse(`${inQuotes(code)} is no exit code`);
      if (typeof word !== "string" || !isWord(word)) return refuse(`${inQuotes(String(word))} is no word of a till`);
      return [Number(code), word];
    }),
  );
}

/** What is over, and about how long the rest takes. */
function progressText(over: number, running: number, of: number, began: Date): string {
  const perMs = over === 0 ? undefined : (Date.now() - began.getTime()) / over;
  const left = perMs === undefined ? "" : `, about ${Math.ceil((perMs * (of - over)) / 1_000)} s left`;
  return `${over} of ${of}, ${running} running${left}`;
}

const flags = {
  till: {
    type: "string",
    example: "'python3 till.py {key} {amount} $POSLINE_BANK_URL'",
    describe:
      "The till, run through the shell once for each operation, with {do}, {key}, {amount} (minor units) and {of} replaced. " +
      "Its last line on standard output is its word",
  },
  page: {
    type: "boolean",
    describe: "In place of --till: a page says what to do at a till with a screen, and asks what it shows",
  },
  services: {
    type: "string",
    repeatable: true,
    example: "bank",
    choices: contractNames,
    describe: "Play only scenarios of these services, such as bank,fiscal (default: all three)",
  },
  scenario: {
    type: "string",
    repeatable: true,
    example: "no-answer-carried-out",
    describe: "Play only this scenario; may be repeated (default: all)",
    conflicts: "quick",
  },
  quick: { type: "boolean", describe: "Play only those in which money is lost most often, in about a minute" },
  thorough: { type: "boolean", describe: "Play that too which takes minutes: a customer who takes three" },
  list: { type: "boolean", describe: "Print the scenarios, and play none" },
  world: emulatorFlags.world,
  seed: { type: "whole", example: "7", describe: "Draws the amounts: the same seed, the same amounts (default 1)" },
  jobs: { type: "whole", example: "4", describe: "Scenarios played at a time (default: two for each processor)" },
  minutes: { type: "whole", example: "5", describe: "Begin no scenario after so many minutes (default 60)" },
  patience: {
    type: "whole",
    example: "60",
    describe: "Seconds that the till may take for one operation (default 180, with --thorough 360)",
  },
  origin: {
    type: "string",
    repeatable: true,
    example: "http://localhost:3000",
    describe: "Let pages of this origin call posline; may be repeated",
  },
  words: {
    type: "string",
    example: "words.json",
    describe: 'Take the word from the exit code, by this file: {"0": "approved", "1": "declined"}',
  },
  ...reportFlags,
} as const satisfies FlagTable;

export const rehearseCommand = defineCommand({
  name: "rehearse",
  describe: "Judge a till: play a shop in which things go wrong, and compare its words with what the terminal did",
  flags,
  epilogue:
    `A till's words: ${words.join(", ")}. {do} is sale, abort, refund, receipt, return, cash-in, qr or qr-refund. The environment has ` +
    "POSLINE_BANK_URL, POSLINE_FISCAL_URL, POSLINE_QR_URL, POSLINE_MERCHANT_ID, POSLINE_CURRENCY, and for a receipt of a given article " +
    "POSLINE_ITEM and POSLINE_QUANTITY (thousandths). A word may also be sent by POST to POSLINE_WORD_URL. " +
    "Exit codes: 0 all passed, 1 one failed, 75 none failed and not all were tested, 69 the till can't be run.",
  examples: [
    ["rehearse --till 'python3 till.py {key} {amount} $POSLINE_BANK_URL' --services bank", "A till that sells by card"],
    ["rehearse --till './till {do} {key} {amount} {of}' --report rehearsal.html", "One that does everything"],
  ],
  run: runRehearse,
});
