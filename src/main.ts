import { serveCommand } from "./cli/serve.ts";
import { messageOf } from "./core/error-code.ts";
import { deletedFolderText, exitCodeOf, exitCodes } from "./core/exit.ts";
import { printableLines } from "./core/shell-text.ts";

/** `serve` goes straight in, the other commands and all help through `cli/commands.ts`. */
async function main(args: readonly string[]): Promise<void> {
  const [command, ...rest] = args;
  // Its reader may be gone, as the log's may: nothing ends by that.
  process.stderr.on("error", () => {});
  const isHelp = rest.some((word) => word === "--help" || word === "-h" || word === "--version");
  const run = async () => {
    if (command === "serve" && !isHelp) return serveCommand.run(rest);
    const { runCommands } = await import("./cli/commands.ts");
    return runCommands(args);
  };
  try {
    const code = await run();
    if (code !== undefined) process.exitCode = code;
  } catch (error) {
    const deleted = deletedFolderText(error);
    const code = deleted === undefined ? exitCodeOf(error) : exitCodes.unavailable;
    const message = deleted ?? messageOf(error);
    if (code === undefined) process.stderr.write("Internal error in posline: please report it with what follows\n");
    const stack = error instanceof Error ? (error.stack ?? message) : message;
    process.stderr.write(`${printableLines(code === undefined ? stack : message)}\n`);
    process.exitCode = code ?? exitCodes.bug;
  }
}

void main(process.argv.slice(2));
