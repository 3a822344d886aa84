import type { CommandModule } from "yargs";
import { serviceNames } from "../core/call.ts";
import type { Outcome } from "../core/fault.ts";
import { sinceExamples } from "../logs/since.ts";

/** `posline logs`: the log as a technician reads it, from journald, a file or standard input. */

export interface LogsArguments {
  readonly file?: string | undefined;
  readonly follow?: boolean | undefined;
  readonly since?: string | undefined;
  readonly service?: string | undefined;
  readonly key?: string | undefined;
  readonly outcome?: Outcome | undefined;
  readonly grep?: string | undefined;
  readonly lines?: number | undefined;
  readonly json?: boolean | undefined;
  readonly color?: boolean | undefined;
  readonly unit?: string | undefined;
}

export const logsCommand: CommandModule<object, LogsArguments> = {
  command: "logs [file]",
  describe: "Show the log as people read it: from the journal, a file, or - for standard input",
  builder: (yargs) =>
    yargs.positional("file", { type: "string", describe: "A file, or - for standard input (default: the journal)" }).options({
      follow: { alias: "f", type: "boolean", describe: "Go on with what comes" },
      since: { type: "string", requiresArg: true, describe: `Not what is older: ${sinceExamples}` },
      service: { choices: serviceNames, requiresArg: true, describe: "Only this service" },
      key: { type: "string", requiresArg: true, describe: "Only the operation of this pay_id or documentExtID" },
      outcome: { choices: ["unknown", "not-sent", "answered"] as const, requiresArg: true, describe: "Only this outcome" },
      grep: { type: "string", requiresArg: true, describe: "Only lines that contain this text" },
      lines: {
        alias: "n",
        type: "number",
        requiresArg: true,
        describe: "Only the last N of what is there (with --follow 10, else all)",
      },
      json: { type: "boolean", describe: "posline's own lines as they were written" },
      color: { type: "boolean", describe: "Colours, or none with --no-color (default: on a terminal, unless NO_COLOR is set)" },
      unit: { type: "string", requiresArg: true, describe: "The unit in the journal (default posline)" },
    }),
  handler: async (args) => {
    // Loaded when it is run, so that registering the command costs nothing.
    const { runLogs } = await import("./show-logs.ts");
    process.exitCode = await runLogs(args);
  },
};
