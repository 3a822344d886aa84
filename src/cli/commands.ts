import type { Options } from "yargs";
import type { Command, Flag } from "../core/command.ts";
import { codeOf } from "../core/error-code.ts";
import { exitCodes, UsageError } from "../core/exit.ts";
import { nearest } from "../core/nearest.ts";
import { inQuotes } from "../core/shell-text.ts";
import { version } from "../core/version.ts";
import { LabMissing, labCommandNames } from "../process/lab.ts";
import { callCommand, callCompletions } from "./call.ts";
import { configCommand } from "./config.ts";
import { dayCommand } from "./day.ts";
import { doctorCommand } from "./doctor.ts";
import { explainCommand } from "./explain.ts";
import { gatewayCommand } from "./gateway.ts";
import { journalCommand } from "./journal.ts";
import { loadLab } from "./lab.ts";
import { logsCommand } from "./logs.ts";
import { pageCommand } from "./page.ts";
import { portsCommand } from "./ports.ts";
import { serveCommand } from "./serve.ts";
import { setupCommand } from "./setup.ts";
import { supportCommand } from "./support.ts";
import { tapCommand } from "./tap.ts";

/** The bridge's commands, in the order of the help. */
const bridgeCommands: readonly Command[] = [
  serveCommand,
  setupCommand,
  pageCommand,
  gatewayCommand,
  callCommand,
  logsCommand,
  journalCommand,
  explainCommand,
  dayCommand,
  portsCommand,
  doctorCommand,
  configCommand,
  tapCommand,
  supportCommand,
];

const commandNames: ReadonlySet<string> = new Set([...bridgeCommands.map(({ name }) => name), ...labCommandNames]);

/** All commands that are installed, in the order of the help. */
export async function allCommands(): Promise<readonly Command[]> {
  try {
    return [...bridgeCommands, ...(await loadLab("the lab")).labCommands];
  } catch (error) {
    if (error instanceof LabMissing) return bridgeCommands;
    throw error;
  }
}

/** @throws LabMissing for one of the lab's, where that isn't installed. */
async function commandOf(word: string): Promise<Command | undefined> {
  const isNamed = ({ name }: Command) => name === word;
  return bridgeCommands.find(isNamed) ?? (await loadLab(`posline ${word}`)).labCommands.find(isNamed);
}

/** What yargs does by itself. */
const yargsCommands = ["completion"];
const completionsFlag = "--get-yargs-completions";
const helpFlags = ["--help", "-h", "--version"];

/** The reader of the output may have seen enough (posline openapi bank | head). What a command does goes on in any case. */
function outputFailed(error: Error, command: Command | undefined): void {
  if (codeOf(error) === "EPIPE") return;
  process.stderr.write(`Cannot write the output: ${error.message}\n`);
  // The exit code of a call says how its operation ended.
  if (command === callCommand) return;
  process.once("exit", () => {
    process.exitCode ||= exitCodes.unavailable;
  });
}

/**
 * Runs the command that the arguments name, or prints help.
 * @returns the exit code.
 * @throws UsageError for arguments that posline doesn't take.
 */
export async function runCommands(args: readonly string[]): Promise<number | undefined> {
  const end = args.indexOf("--");
  const flagged = end === -1 ? args : args.slice(0, end);
  const isHelp = flagged.some((word) => helpFlags.includes(word));
  // A flag may stand before the command.
  const at = args[0]?.startsWith("-") ? args.findIndex((each) => commandNames.has(each)) : 0;
  const word = args[at];
  const command = word !== undefined && commandNames.has(word) ? await commandOf(word) : undefined;
  process.stdout.on("error", (error) => outputFailed(error, command));
  if (args.includes(completionsFlag) || (word !== undefined && yargsCommands.includes(word))) return print(args);
  if (command !== undefined && !isHelp) {
    endAsByCtrlC();
    return command.run(args.toSpliced(at, 1));
  }
  if (isHelp && (command !== undefined || at === -1 || word?.startsWith("-"))) {
    return print(args.map((each) => (each === "-h" ? "--help" : each)));
  }
  throw new UsageError(unknownText(args, word));
}

/** A closed window and Ctrl-\\ end a command as Ctrl-C does, unless it listens itself: what it began ends with it. */
function endAsByCtrlC(): void {
  for (const signal of ["SIGHUP", "SIGQUIT"] as const) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.kill(process.pid, "SIGINT");
    });
  }
}

function unknownText(args: readonly string[], word: string | undefined): string {
  const [first] = args;
  if (first === undefined) {
    return "No command was given: posline serve --emulated is a good one to begin with, and posline --help lists them all";
  }
  if (first.startsWith("-")) {
    const meant = nearest(first, helpFlags);
    const advice = meant === undefined ? "posline --help lists them" : `did you mean "${meant}"?`;
    return `Unknown flag ${inQuotes(first)} without a command: ${advice}`;
  }
  const known = [...commandNames, ...yargsCommands];
  const meant = nearest(first, known);
  return `Unknown command ${inQuotes(word ?? first)}: ${meant === undefined ? "posline --help lists them" : `did you mean "${meant}"?`}`;
}

/** Help, version and completions, by yargs, which is loaded only for them. */
async function print(args: readonly string[]): Promise<undefined> {
  leaveDeletedFolder();
  const { default: yargs } = await import("yargs");
  const parser = yargs([...args])
    .scriptName("posline")
    // The texts are English, so those of yargs are too.
    .locale("en")
    .usage("$0 <command>\n\nA bridge from HTTP to payment and fiscal terminals on serial lines.")
    .epilogue("Begin with posline serve --emulated, which needs no hardware. Each command has a --help of its own.")
    .version(version)
    .help();
  for (const command of await allCommands()) {
    const { name, describe, flags, positionals, epilogue, examples = [] } = command;
    parser.command({
      command: [name, ...Object.keys(positionals).map((place) => `[${place}]`)].join(" "),
      describe,
      builder: (own) => {
        for (const [place, positional] of Object.entries(positionals)) own.positional(place, { type: "string", ...positional });
        own.options(Object.fromEntries(Object.entries(flags).map(([flag, option]) => [flag, helpOption(option)])));
        if (epilogue !== undefined) own.epilogue(epilogue);
        for (const [line, purpose] of examples) own.example(`$0 ${line}`, purpose);
        return own;
      },
      handler: () => {},
    });
  }
  await parser.completion("completion", "Print a shell completion script", complete).parseAsync();
}

/** yargs asks for its folder when it is loaded, and nothing here needs one. */
function leaveDeletedFolder(): void {
  try {
    process.cwd();
  } catch {
    process.chdir("/");
  }
}

/** A flag as yargs shows it. */
function helpOption(flag: Flag): Options {
  const { describe, alias } = flag;
  const shown: Options = { describe, ...(alias !== undefined && { alias }) };
  if (flag.type === "boolean")
    return { ...shown, type: "boolean", ...(flag.default !== undefined && { default: flag.default }) };
  const { choices, repeatable, type } = flag;
  const chosen = { ...shown, ...(choices !== undefined && { choices }) };
  if (repeatable === true) return { ...chosen, type: "array", string: true };
  return { ...chosen, type: type === "string" ? "string" : "number" };
}

/** The services and routes of `call`; yargs knows the rest. */
function complete(
  current: string,
  { _: words = [] }: { readonly _?: readonly (string | number)[] },
  others: (done: (error: unknown, completions: string[] | undefined) => void) => unknown,
  done: (completions: string[]) => unknown,
): void {
  // The first is the program, the last the word that is being written.
  const before = words.map(String).filter((word, n) => n > 0 && !(n === words.length - 1 && word === current));
  if (before[0] !== "call" || current.startsWith("-")) others((_, completions) => done(completions ?? []));
  else done(callCompletions(before).filter((word) => word.startsWith(current)));
}
