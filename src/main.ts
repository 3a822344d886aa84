#!/usr/bin/env node
import { runServe, serveFlags } from "./cli/serve.ts";

/** The door: `serve` goes straight in, everything else through yargs. */
async function main(args: readonly string[]): Promise<void> {
  const [command, ...rest] = args;
  const flags = command === "serve" ? serveFlags(rest) : undefined;
  if (flags === undefined) {
    const { runCommands } = await import("./cli/commands.ts");
    await runCommands(args);
  } else {
    process.exitCode = await runServe(flags);
  }
}

void main(process.argv.slice(2));
