import type { Argv, Options } from "yargs";

/** The flags of the emulator, as `serve --emulated` and `emulate` share them. */

/** The last value of a flag that was given more than once. */
const lastOf = (value: unknown) => (Array.isArray(value) ? value.at(-1) : value);

/** Options of which each but the lists takes the last value that was given. */
export function lastOfEach<O extends Record<string, Options>>(options: O): O {
  const entries = Object.entries(options).map(([name, option]) => {
    return [name, option.type === "array" ? option : { ...option, coerce: lastOf }];
  });
  // The same keys with the same options.
  return Object.fromEntries(entries) as O;
}

/** yargs, for a command that has a flag which may be repeated. */
export function withRepeatableFlags<T>(yargs: Argv<T>): Argv<T> {
  return yargs.parserConfiguration({ "duplicate-arguments-array": true });
}

export const emulatorOptions = {
  state: { type: "string", requiresArg: true, describe: "Keep what the emulator remembers in this file" },
  seed: { type: "number", requiresArg: true, describe: "Where the chances of --fault begin (default 1)" },
  fault: {
    type: "array",
    string: true,
    nargs: 1,
    describe: "Let this befall a share of the answers, as in corrupt=0.05 or late:5000=0.1; may be repeated",
  },
  "plain-amounts": { type: "boolean", describe: "Let no amount decide how its operation goes" },
} as const satisfies Record<string, Options>;
