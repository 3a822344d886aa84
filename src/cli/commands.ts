import yargs from "yargs";
import { version } from "../core/version.ts";
import { configCommand } from "./config.ts";
import { emulateCommand } from "./emulate.ts";
import { exitCodes } from "./exit.ts";
import { gatewayCommand } from "./gateway.ts";
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
    .command(portsCommand)
    .command(configCommand)
    .command(tapCommand)
    .demandCommand(1, 1, "Cannot start: no command is given: posline serve --emulated is a good one to begin with")
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
