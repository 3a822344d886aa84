import { parseArgs } from "node:util";
import { UsageError } from "./exit.ts";
import { nearest } from "./nearest.ts";
import { inQuotes } from "./shell-text.ts";

/**
 * A command as data: its flags and positionals, and one function. The arguments are checked against that table here, so that
 * whatever is wrong with them is one sentence and exit code 64; yargs only prints the help and the completions of the same table.
 */

/** What a command reads, and where it writes to; the tests have their own. */
export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The configuration file to read when none is named, in place of the default one. */
  readonly file?: string | undefined;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

export const processIo: CommandIo = {
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
};

/** A flag. Given more than once, the last one counts, unless it is repeatable. */
export type Flag = SwitchFlag | ValueFlag;

/** A flag without a value; `--no-NAME` turns it off. */
export interface SwitchFlag {
  readonly type: "boolean";
  readonly describe: string;
  readonly alias?: string;
  /** Where it isn't given. */
  readonly default?: boolean;
}

export interface ValueFlag {
  /** `whole`: a number whose fraction and bounds are checked where it is used. */
  readonly type: "string" | "number" | "whole";
  readonly describe: string;
  /** A value that a message can offer. */
  readonly example: string;
  readonly alias?: string;
  readonly choices?: readonly string[];
  /** The flag that can't be given beside it. */
  readonly conflicts?: string;
  /** May be given several times, and each time several values, with commas between them. */
  readonly repeatable?: true;
}

export type FlagTable = Readonly<Record<string, Flag>>;

/** A word without a flag, optional, by its place. */
export interface Positional {
  readonly describe: string;
  readonly choices?: readonly string[];
}

export type PositionalTable = Readonly<Record<string, Positional>>;

type Camel<Name extends string> = Name extends `${infer Head}-${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;

type One<F> = F extends { readonly choices: readonly (infer Choice)[] }
  ? Choice
  : F extends { readonly type: "boolean" }
    ? boolean
    : F extends { readonly type: "number" | "whole" }
      ? number
      : string;

type Value<F> = F extends { readonly repeatable: true } ? readonly One<F>[] : One<F>;

/** What a command is given: each flag under its name in camel case, each positional under its own. */
export type ArgumentsOf<F extends FlagTable, P extends PositionalTable = Record<never, never>> = {
  readonly [Name in keyof F as Camel<Name & string>]?: Value<F[Name]> | undefined;
} & { readonly [Name in keyof P]?: One<P[Name]> | undefined };

/** A command in words and data; `run` gives its exit code. */
export interface CommandTable<F extends FlagTable, P extends PositionalTable> {
  readonly name: string;
  readonly describe: string;
  readonly flags: F;
  readonly positionals?: P;
  readonly epilogue?: string;
  /** A command line without the program's name, and what it is for. */
  readonly examples?: readonly (readonly [string, string])[];
  readonly run: (args: ArgumentsOf<F, P>) => Promise<number>;
}

/** A command whose arguments are read and checked before it runs. */
export interface Command extends Omit<CommandTable<FlagTable, PositionalTable>, "run"> {
  readonly positionals: PositionalTable;
  /**
   * @returns the exit code.
   * @throws UsageError for arguments that it doesn't take; then nothing has run.
   */
  readonly run: (words: readonly string[]) => Promise<number>;
}

export function defineCommand<const F extends FlagTable, const P extends PositionalTable = Record<never, never>>(
  table: CommandTable<F, P>,
): Command {
  const { positionals = {}, run } = table;
  const command = { ...table, positionals };
  return { ...command, run: async (words) => run(readArguments<F, P>(command, words)) };
}

type ArgumentTable = Pick<Command, "name" | "flags" | "positionals">;

/**
 * Reads the words after a command's name.
 * @throws UsageError naming what it doesn't take, and what was probably meant.
 */
export function readArguments<F extends FlagTable, P extends PositionalTable>(
  { name, flags, positionals }: ArgumentTable,
  words: readonly string[],
): ArgumentsOf<F, P> {
  const values: Record<string, unknown> = {};
  for (const [flag, option] of Object.entries(flags)) {
    if (option.type === "boolean" && option.default !== undefined) values[camel(flag)] = option.default;
  }
  const places = Object.entries(positionals);
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(Object.entries(flags).map(([flag, option]) => [flag, tokenizerOption(option)])),
    strict: false,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === "positional") {
      const [place, positional] = places.shift() ?? [];
      if (place === undefined) throw new UsageError(unexpectedText(name, token.value, flags, positionals));
      values[place] = oneOf(token.value, positional, `Unknown ${place}`);
    } else if (token.kind === "option") {
      const [flag, value] = flagOf(name, flags, token);
      const key = camel(flag);
      values[key] = Array.isArray(value) ? [...list(values[key]), ...list(value)] : value;
    }
  }
  refuseConflicts(flags, values);
  // Made of the same table that the type is made of.
  return values as ArgumentsOf<F, P>;
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const camel = (flag: string) => flag.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());

function tokenizerOption({ type, alias }: Flag): { readonly type: "boolean" | "string"; readonly short?: string } {
  return { type: type === "boolean" ? "boolean" : "string", ...(alias !== undefined && { short: alias }) };
}

/** A flag as node's parseArgs finds it. */
interface FlagToken {
  readonly name: string;
  /** As it was typed, with its dashes. */
  readonly rawName: string;
  readonly value?: string | undefined;
  /** Whether the value was written after a `=`. */
  readonly inlineValue?: boolean | undefined;
}

function flagOf(command: string, flags: FlagTable, token: FlagToken): readonly [string, unknown] {
  const { name, rawName, value, inlineValue } = token;
  const option = Object.hasOwn(flags, name) ? flags[name] : undefined;
  if (option?.type === "boolean") return [name, switchValue(rawName, value)];
  if (option !== undefined) return [name, flagValue(name, option, value, inlineValue === true)];
  const positive = name.startsWith("no-") ? name.slice(3) : "";
  if (Object.hasOwn(flags, positive) && flags[positive]?.type === "boolean") {
    return [positive, !switchValue(rawName, value)];
  }
  const switches = Object.entries(flags).flatMap(([flag, { type }]) => (type === "boolean" ? [`no-${flag}`] : []));
  const meant = rawName.startsWith("--") ? nearest(name, [...Object.keys(flags), ...switches, "help", "version"]) : undefined;
  const advice = meant === undefined ? `posline ${command} --help lists its flags` : `did you mean "--${meant}"?`;
  throw new UsageError(`Unknown flag ${inQuotes(rawName)} of posline ${command}: ${advice}`);
}

function switchValue(rawName: string, value: string | undefined): boolean {
  if (value === undefined || value === "true") return true;
  if (value === "false") return false;
  throw new UsageError(`${rawName} takes no value, and ${inQuotes(value)} was given: write ${rawName} alone`);
}

function flagValue(name: string, flag: ValueFlag, value: string | undefined, isInline: boolean): unknown {
  const { type, choices, example, repeatable } = flag;
  const isNumber = type !== "string" && Number.isFinite(Number(value)) && value?.trim() !== "";
  // The next flag isn't a value; a number below 0 is, and so is whatever follows a "="
  const isNextFlag = value !== undefined && !isInline && value.startsWith("-") && value !== "-" && !isNumber;
  // An empty one is what a shell makes of a variable that isn't set
  if (value === undefined || value === "" || isNextFlag) {
    const offer = choices === undefined ? `for example --${name} ${example}` : `--${name} ${orList(choices)}`;
    throw new UsageError(`--${name} needs a value: write ${offer}`);
  }
  if (type === "string" && repeatable) return value.split(",").map((each) => oneOf(each.trim(), flag, `--${name}`));
  if (type === "string") return oneOf(value, flag, `--${name}`);
  if (isNumber) return Number(value);
  const what = type === "whole" ? "whole number" : "number";
  throw new UsageError(`--${name} ${inQuotes(value)} must be a ${what}, for example --${name} ${example}`);
}

/** The value, where it is one of the choices or there are none. `what` is the start of the message for another. */
function oneOf(value: string, option: Pick<Positional, "choices"> | undefined, what: string): string {
  const { choices } = option ?? {};
  if (choices === undefined || choices.includes(value)) return value;
  if (what.startsWith("--")) throw new UsageError(`${what} ${inQuotes(value)} must be ${orList(choices)}`);
  const meant = nearest(value, choices);
  const advice = meant === undefined ? `it must be ${orList(choices)}` : `did you mean "${meant}"?`;
  throw new UsageError(`${what} ${inQuotes(value)}: ${advice}`);
}

function unexpectedText(name: string, word: string, flags: FlagTable, positionals: PositionalTable): string {
  const head = `Unexpected argument ${inQuotes(word)} of posline ${name}`;
  const places = Object.keys(positionals);
  if (Object.hasOwn(flags, word)) return `${head}: did you mean "--${word}"?`;
  if (places.length === 0) return `${head}: it takes only flags, and posline ${name} --help lists them`;
  return `${head}: it takes at most ${places.join(", ")}; quote a value that has spaces`;
}

function refuseConflicts(flags: FlagTable, values: Readonly<Record<string, unknown>>): void {
  for (const [name, flag] of Object.entries(flags)) {
    if (flag.type === "boolean" || flag.conflicts === undefined || values[camel(name)] === undefined) continue;
    if (values[camel(flag.conflicts)] === undefined) continue;
    throw new UsageError(`--${name} and --${flag.conflicts} can't be used together: leave one of them out`);
  }
}

function orList(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}
