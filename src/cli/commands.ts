import yargs from "yargs";
import { version } from "../core/version.ts";
import { callCommand, callCompletions } from "./call.ts";
import { configCommand } from "./config.ts";
import { doctorCommand } from "./doctor.ts";
import { emulateCommand } from "./emulate.ts";
import { exitCodes } from "./exit.ts";
import { gatewayCommand } from "./gateway.ts";
import { journalCommand } from "./journal.ts";
import { logsCommand } from "./logs.ts";
import { portsCommand } from "./ports.ts";
import { serveCommand } from "./serve.ts";
import { tapCommand } from "./tap.ts";

/** All commands, worded by yargs. Sets the process's exit code. */
export async function runCommands(args: readonly string[]): Promise<void> {
  await yargs([...args])
    .scriptName("posline")
    .usage("$0 <command>\n\nA bridge from HTTP to payment and fiscal terminals on serial lines.")
    .command(serveCommand)
    .command(emulateCommand)
    .command(gatewayCommand)
    .command(callCommand)
    .command(logsCommand)
    .command(journalCommand)
    .command(portsCommand)
    .command(doctorCommand)
    .command(configCommand)
    .command(tapCommand)
    .demandCommand(1, 1, "Cannot start: no command is given: posline serve --emulated is a good one to begin with")
    .completion("completion", "Print what makes the shell complete commands, services and routes", complete)
    .strict()
    // A flag given twice counts once, the last one, as for serve.
    .parserConfiguration({ "duplicate-arguments-array": false })
    .version(version)
    .help()
    .fail((message, error, parser) => {
      if (error !== undefined && error !== null) throw error;
      parser.showHelp("error");
      process.stderr.write(`\n${message}\n`);
      process.exit(exitCodes.usage);
    })
    .parseAsync();
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
