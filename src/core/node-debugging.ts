import { setImmediate } from "node:timers/promises";

/**
 * Ways in which Node opens, prints or writes a process's data by itself, by a flag, a variable or a signal that somebody left over: a
 * debugger, its own debugging output, reports, copies of the memory. Each shows data that passes through, so card data and secrets too.
 */

/** Variables by which Node prints passing data, and which a process can't undo. */
const printing: readonly string[] = ["NODE_DEBUG", "NODE_DEBUG_NATIVE"];

/** Variables by which Node writes files of its own. */
const writing: readonly string[] = ["NODE_V8_COVERAGE", "NODE_REDIRECT_WARNINGS"];

/** Flags of Node by which it opens a debugger, prints or writes. */
const flagForm =
  /^--(?:inspect|debug-port|trace|print|log|prof|cpu-prof|heap-prof|perf-|heapsnapshot|report-|redirect-warnings)/;

/** A set variable by which Node would print passing data: with one of them no call may come. */
export function printingVariable(env: NodeJS.ProcessEnv): string | undefined {
  return printing.find((name) => isSet(env, name));
}

/**
 * The flags and variables that make Node open a debugger, print or write by itself, as a person would look for them.
 * @param flags Flags that Node itself was started with.
 */
export function debuggingOf(env: NodeJS.ProcessEnv, flags: readonly string[]): readonly string[] {
  const debugging = (words: readonly string[]) => words.filter((word) => flagForm.test(word)).map(nameOf);
  const options = (env["NODE_OPTIONS"] ?? "").split(/[\s"]+/);
  return [
    ...debugging(flags),
    ...debugging(options).map((flag) => `${flag} in NODE_OPTIONS`),
    ...[...printing, ...writing].filter((name) => isSet(env, name)),
  ];
}

/** A flag without its value, which may be anything. */
const nameOf = (flag: string) => flag.replace(/=.*/s, "");

const isSet = (env: NodeJS.ProcessEnv, name: string) => (env[name] ?? "") !== "";

/**
 * Closes the debugger that a flag or a signal opened, and lets no signal open one or write a report or a copy of the memory from now on. To
 * be called before anybody listens to signals.
 */
export async function switchOffDebugging(): Promise<void> {
  const given = [...process.execArgv, process.env["NODE_OPTIONS"] ?? ""].join(" ");
  for (const [, signal = ""] of given.matchAll(/--heapsnapshot-signal[= ](\w+)/g)) process.removeAllListeners(signal);
  // Node opens its debugger on this signal unless somebody listens.
  process.on("SIGUSR1", () => {});
  process.report.reportOnSignal = false;
  process.report.reportOnFatalError = false;
  process.report.reportOnUncaughtException = false;
  closeDebugger();
  // A signal from before opens the debugger once more, from the event loop.
  await setImmediate();
  closeDebugger();
}

function closeDebugger(): void {
  // Got from the process and not imported: a Node can be built without it.
  const inspector = process.features.inspector ? process.getBuiltinModule("node:inspector") : undefined;
  if (inspector?.url() !== undefined) inspector.close();
}
