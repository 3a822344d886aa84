// What posline's command line has, read from its own help: the man page and the completions are made of it, so they can't say
// anything else than the program does.
import { execFileSync } from "node:child_process";

/**
 * @typedef {{ names: string[], describe: string, type: string, choices: string[], fallback: string }} Option
 * @typedef {{ name: string, usage: string, describe: string, options: Option[], examples: string[], epilogue: string[] }}
 *   Command
 */

/** yargs speaks the language of the environment, and breaks lines at 80 columns where there is no terminal. */
function run(bundle, args) {
  const env = { ...process.env, LC_ALL: "en_US", LANG: "en_US", LANGUAGE: "", NODE_OPTIONS: "" };
  return execFileSync(process.execPath, [bundle, ...args], { encoding: "utf8", env, stdio: ["ignore", "pipe", "inherit"] });
}

/** The help's parts by their headings; what comes before the first is under "". */
function sections(help) {
  const parts = new Map([["", []]]);
  let heading = "";
  let blank = false;
  for (const line of help.split("\n")) {
    const begun = /^([A-Z][a-z]+):$/.exec(line)?.[1];
    // What follows the last part without a heading is the epilogue.
    if (begun === undefined && blank && /^\S/.test(line) && heading !== "") heading = "epilogue";
    if (begun !== undefined) heading = begun;
    if (!parts.has(heading)) parts.set(heading, []);
    if (begun === undefined && line !== "") parts.get(heading).push(line);
    blank = line === "";
  }
  return parts;
}

/** What a row begins with: a command, or a flag, which stands further right where others have a short form. */
const heads = { Commands: /^ {2}(posline (?:.*?\S)?)(?: {2,}(.*))?$/, Options: /^ {2,6}(-(?:.*?\S)?)(?: {2,}(.*))?$/ };

/** Rows of two columns under a heading, each with the lines that it was broken into. */
function rows(parts, heading) {
  const found = [];
  for (const line of parts.get(heading) ?? []) {
    const begun = heads[heading].exec(line);
    if (begun === null) found.at(-1)?.text.push(line.trim());
    else found.push({ head: begun[1], text: begun[2] === undefined ? [] : [begun[2].trim()] });
  }
  return found.map(({ head, text }) => ({ head, text: text.join(" ").trim() }));
}

/** @returns {Option} */
function option({ head, text }) {
  const marks = /((?:\s*\[[^\]]*\])*)$/.exec(text)?.[1] ?? "";
  const mark = (name) => new RegExp(`\\[${name}: ([^\\]]*)\\]`).exec(marks)?.[1] ?? "";
  return {
    names: head.split(/, /),
    describe: text.slice(0, text.length - marks.length).trim(),
    type: /\[(string|number|array|boolean|count)\]/.exec(marks)?.[1] ?? "string",
    choices: mark("choices")
      .split(", ")
      .filter(Boolean)
      .map((choice) => choice.replaceAll('"', "")),
    fallback: mark("default"),
  };
}

/** @returns {Command} */
function command(bundle, { head, text }) {
  const name = head.split(" ")[1] ?? "";
  const parts = sections(run(bundle, [name, "--help"]));
  // `completion` is yargs' own and shows the help of the whole.
  const own = parts.get("")?.[0]?.startsWith(`posline ${name}`) ?? false;
  const options = own ? rows(parts, "Options").map(option) : [];
  return {
    name,
    usage: head,
    describe: text,
    options: options.filter(({ names }) => !names.includes("--version") && !names.includes("--help")),
    examples: own ? (parts.get("Examples") ?? []) : [],
    epilogue: own ? (parts.get("epilogue") ?? []) : [],
  };
}

/** The commands of a bundle, in the order of its help. */
export function readCommands(bundle) {
  const commands = rows(sections(run(bundle, ["--help"])), "Commands").map((row) => command(bundle, row));
  if (commands.length === 0) throw new Error(`Cannot read the commands: ${bundle} --help names none`);
  return commands;
}

/** The services and routes that `posline call` completes. */
export function readRoutes(bundle) {
  const complete = (...words) =>
    run(bundle, ["--get-yargs-completions", "posline", "call", ...words, ""])
      .split("\n")
      .filter(Boolean);
  return complete().map((service) => ({ service, routes: complete(service) }));
}

/** The JSON Schema of the configuration file. */
export function readSchema(bundle) {
  return JSON.parse(run(bundle, ["config", "--schema"]));
}
