#!/usr/bin/env node
import { runServe, serveFlags } from "./cli/serve.ts";

/** The door: `serve` goes straight in, everything else through yargs. */

const [command, ...rest] = process.argv.slice(2);
const flags = command === "serve" ? serveFlags(rest) : undefined;
if (flags === undefined) {
  const { runCommands } = await import("./cli/commands.ts");
  await runCommands(process.argv.slice(2));
} else {
  process.exitCode = await runServe(flags);
}
