import { type ArgumentsOf, type CommandIo, defineCommand, type FlagTable, processIo } from "../core/command.ts";
import { exitCodes, UsageError } from "../core/exit.ts";
import { printable, printableLines } from "../core/shell-text.ts";
import type { Device } from "../device/devices.ts";
import { usbWords } from "../device/usb-words.ts";
import type { SetupEnd, SetupOptions } from "../setup/setup.ts";
import type { SetupPerson } from "../setup/setup-wait.ts";
import { type Ask, askAtTerminal } from "./ask.ts";
import { secretFrom } from "./call-target.ts";
import { sourceFlags } from "./config.ts";
import { findingRows, type Look, lookOf } from "./doctor.ts";

/** `posline setup`: finds the terminal, and writes the drop-in of the configuration that fits it. */

export type SetupArguments = ArgumentsOf<typeof flags>;

/** Milliseconds in which the last message is read at the other end. */
const lastMessageMs = 500;

/** Where the command writes to and is answered from. */
export interface SetupSurroundings extends Pick<CommandIo, "out"> {
  readonly setUp: (options: SetupOptions) => Promise<SetupEnd>;
  readonly look: Look;
  /** Asks whoever is at the terminal; undefined where nobody is. */
  readonly ask: Ask | undefined;
}

/** @returns the exit code: 0 when all is written, or nothing had to be or was to be; 69 when the test afterwards failed. */
export async function runSetup(args: SetupArguments, { setUp, look, out, ask }: SetupSurroundings): Promise<number> {
  const { config, line, merchantIdFile, yes = false } = args;
  if (!yes && ask === undefined) {
    throw new UsageError("Cannot set up: nobody can be asked here: add --yes, and --line with the device");
  }
  const say = (text: string) => out(`${printable(text)}\n`);
  const person: SetupPerson = {
    say,
    show: (findings) => {
      for (const found of findings) if (found.level !== "ok") out(`${findingRows(found, look, false).join("\n")}\n`);
    },
    pick: async (devices, signal) => pick(devices, yes ? undefined : ask, out, signal),
    merchantId: async (refused) => {
      if (refused !== undefined) say(refused);
      if (yes || ask === undefined) return undefined;
      const question = "The merchant's id of fiscal (not shown; Enter if you don't know it): ";
      const id = await given(ask(question, { hidden: true }));
      return id === "" ? undefined : id;
    },
    agrees: async (words) => {
      out(`\n${printableLines(words)}\n`);
      return yes || ask === undefined || /^y(?:es)?$/i.test((await ask("Write this? [yes/no] "))?.trim() ?? "");
    },
  };
  const end = await setUp({ config, line, merchantId: await secretFrom(merchantIdFile), person });
  return end.is !== "written" || (await end.test()) ? exitCodes.ok : exitCodes.unavailable;
}

/** What was typed. @throws SetupError if the input has ended. */
async function given(answer: Promise<string | undefined>): Promise<string> {
  const text = await answer;
  if (text !== undefined) return text.trim();
  const { SetupError } = await import("../setup/setup-file.ts");
  throw new SetupError("it was stopped: nothing was written");
}

/** Asks for the terminal, and lets a device be named by its number in a list, while another one may still be plugged in. */
async function pick(
  devices: readonly Device[],
  ask: Ask | undefined,
  out: (text: string) => void,
  signal: AbortSignal,
): Promise<Device> {
  out("Plug the terminal in and switch it on. If it is plugged in already, unplug it and plug it in again\n");
  if (ask === undefined || devices.length === 0) return new Promise(() => {});
  out("Or type the number of the device that the terminal is on:\n");
  for (const [at, device] of devices.entries()) {
    const words = usbWords(device.usb);
    out(`  ${at + 1}  ${printable(device.path)}${words === "" ? "" : ` (${printable(words)})`}\n`);
  }
  for (;;) {
    const device = devices[Number(await given(ask("", { signal }))) - 1];
    if (device !== undefined) return device;
    out(`Type a number from 1 to ${devices.length}, or plug the terminal in\n`);
  }
}

const flags = {
  line: {
    type: "string",
    example: "/dev/ttyUSB0",
    describe: "Look at this device, or line of the file; without it, at the one that is plugged in next",
  },
  config: sourceFlags.config,
  "merchant-id-file": {
    type: "string",
    example: "merchant-id",
    describe: "Sign fiscal's requests with the merchant's id in this file, and keep it for the service",
  },
  yes: { type: "boolean", describe: "Ask nothing, and write what was found: for images and scripts" },
  json: { type: "boolean", describe: "Ask in lines of JSON on standard output, and read the answers from standard input" },
} as const satisfies FlagTable;

export const setupCommand = defineCommand({
  name: "setup",
  describe: "Find the terminal and write the drop-in posline.d/terminal.json that fits it, once you agree",
  flags,
  epilogue:
    "It sends only questions that change nothing, and only to that device. Exit codes: 0, 64 wrong usage, 69 no terminal found, or the test failed, 78 the file can't be used.",
  examples: [
    ["setup", "Plug the terminal in when it says so"],
    ["setup --line /dev/ttyUSB0 --yes", "For an image"],
  ],
  run: async (args: SetupArguments) => {
    // Loaded when it is run, so that registering the command costs nothing.
    const { setUp } = await import("../setup/setup.ts");
    const { config, line, merchantIdFile, yes } = args;
    if (args.json === true) {
      if (yes === true) throw new UsageError("Cannot set up: --json asks, and --yes answers: use one of them");
      const { runSetupJson } = await import("./setup-json.ts");
      const options = { config, line, merchantId: await secretFrom(merchantIdFile) };
      const ended = runSetupJson(options, setUp, { input: process.stdin, output: process.stdout });
      // Whoever has gone has ended a search, too, which would go on asking the terminal for a minute.
      return ended.finally(() => setTimeout(() => process.exit(), lastMessageMs).unref());
    }
    const { stdin, stdout } = process;
    const ask = stdin.isTTY === true && stdout.isTTY === true ? askAtTerminal(stdout) : undefined;
    return runSetup(args, { ...processIo, setUp, look: lookOf(process), ask });
  },
});
