import type { FlagTable } from "../core/command.ts";

/** The flags of the emulator, as `serve --emulated` and `emulate` share them. */
export const emulatorFlags = {
  world: {
    type: "string",
    example: "shop.json",
    describe: "Play the shop in this file: terminals, currencies, taxes and more; posline emulate --print-world prints one",
  },
  state: { type: "string", example: "state.json", describe: "Keep the emulator's state in this file across restarts" },
  seed: { type: "whole", example: "7", describe: "Random seed of --fault: the same seed gives the same faults (default 1)" },
  fault: {
    type: "string",
    repeatable: true,
    example: "corrupt=0.05",
    describe: "Apply a fault to a share of the answers, such as corrupt=0.05 or late:5000=0.1; may be repeated",
  },
  "plain-amounts": { type: "boolean", describe: "Ignore the magic amounts: no amount decides how an operation ends" },
} as const satisfies FlagTable;
