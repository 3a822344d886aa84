import { spawn } from "node:child_process";
import type { LineConfig } from "../config/config.ts";
import { messageOf } from "../core/error-code.ts";
import { lookForHolders } from "./holders.ts";
import { type Cause, changedSettings, unreadSettings } from "./open-errors.ts";

/**
 * The settings of an open device: speed, echo, line mode, flow control. Any program that may open the device can change them, in spite of
 * posline's lock, and the kernel tells nobody. So the settings are read once the device is set up, and compared with that later.
 *
 * Neither Node nor serialport's binding reads more of them than the speed. `stty` does, in a process of its own, on the descriptor that
 * posline has: opening the path for it would raise DTR.
 */

/** Milliseconds that `stty` may take: it waits while a device holds the flow up. */
const sttyMs = 2_000;

/**
 * The shell command that gives `stty` a descriptor. As standard input of a child of Node's the descriptor would become a blocking one, for
 * posline as well.
 */
const sttyOnThird = 'exec stty "$1" <&3';

/** The used part of serialport's port. */
export interface Speed {
  getBaudRate(): Promise<{ readonly baudRate: number }>;
  update(settings: { readonly baudRate: number }): Promise<void>;
}

/** The settings as read from a device. */
interface Reading {
  /** The settings as `stty -g` prints them: four sets of flags and the control characters, in hex, between colons. */
  readonly modes: string;
  readonly baudRate: number;
}

/** The sets of flags by their places in `stty -g`, and the control characters after them by Linux's numbers. */
const places = { input: 0, output: 1, control: 2, local: 3, vtime: 4 + 5, vmin: 4 + 6 } as const;

/** Linux's bits, which are the same on every processor that serialport has a native part for. */
const bits = { ignpar: 0x4, ixon: 0x400, ixoff: 0x1000, hupcl: 0x400 } as const;

/** Names for people of the flags of each set. Flags without a name here are control characters and details of terminals. */
const names = [
  ["local", 0x8, "echo"],
  ["local", 0x2, "line mode"],
  ["local", 0x1, "signal characters"],
  ["output", 0x1, "changed line ends of the output"],
  ["input", 0x1c0, "changed line ends of the input"],
  ["input", 0x20, "7-bit input"],
  ["input", 0x1c00, "flow control by XON and XOFF"],
  ["control", 0x8000_0000, "flow control by RTS and CTS"],
  ["control", 0x30, "data bits"],
  ["control", 0x40, "stop bits"],
  ["control", 0x4000_0300, "parity"],
  ["control", 0x80, "the receiver"],
  ["control", 0x800, "modem control"],
  ["control", bits.hupcl, "HUPCL"],
] as const;

export interface TtySettingsOptions {
  readonly port: Speed;
  readonly fd: number;
  readonly device: string;
  readonly config: Pick<LineConfig, "flowControl" | "hupcl">;
  /** Told that another program changed the settings, or that they can't be compared. */
  readonly told: (cause: Cause) => void;
  readonly proc?: string | undefined;
}

/** The settings of one opening. */
export class TtySettings {
  readonly #options: TtySettingsOptions;
  readonly #ending = new AbortController();
  /** The settings at the opening; undefined until they are known. */
  #own: Reading | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: TtySettingsOptions) {
    this.#options = options;
  }

  /**
   * Sets what serialport's binding can't, and reads the settings that the device took: drivers refuse some that their chip doesn't have.
   */
  async setUp(): Promise<void> {
    try {
      const found = await this.#read();
      const modes = this.#ownModes(found.modes);
      this.#own = modes === found.modes ? found : await this.#set({ ...found, modes });
    } catch (error) {
      this.#options.told(unreadSettings(this.#options.device, messageOf(error)));
    }
  }

  /** Compares the settings with those of the opening, and sets them again if they differ. Returns at once. */
  look(): void {
    const own = this.#own;
    if (own === undefined || this.#looking !== undefined || this.#ending.signal.aborted) return;
    // A device that is gone, or a process that can't be started, is no news here: the next look is another try.
    this.#looking = this.#compare(own)
      .catch(() => {})
      .then(() => {
        this.#looking = undefined;
      });
  }

  /** Ends a look that is under way, and resolves when nothing uses the descriptor any more. */
  async close(): Promise<void> {
    this.#ending.abort();
    await this.#looking;
  }

  async #compare(own: Reading): Promise<void> {
    const found = await this.#read();
    if (isSame(found, own)) return;
    const { device, proc, told } = this.#options;
    // Holders are looked for before the settings are put right: the program that changed them may be gone by then.
    const held = (await lookForHolders([device], proc)).get(device);
    const others = held?.holders.filter(({ pid, ended }) => pid !== process.pid && ended !== true) ?? [];
    const isRight = isSame(await this.#set(own), own);
    told(changedSettings(device, { changes: changesOf(own, found), isRight, holder: others[0], hidden: held?.hidden ?? true }));
  }

  /** @returns the settings that the device took. */
  async #set({ modes, baudRate }: Reading): Promise<Reading> {
    // The exit code of stty says nothing: some versions fail for their own reading of the speed, with all set.
    await this.#stty(modes);
    const { port } = this.#options;
    // The binding flushes too, and rightly: bytes that came at another speed mean nothing.
    if ((await port.getBaudRate()).baudRate !== baudRate) await port.update({ baudRate });
    return this.#read();
  }

  async #read(): Promise<Reading> {
    const modes = await this.#stty("-g");
    if (!/^[0-9a-f]+(?::[0-9a-f]+){10,}$/.test(modes)) throw new Error("stty printed no settings");
    return { modes, baudRate: (await this.#options.port.getBaudRate()).baudRate };
  }

  #stty(argument: string): Promise<string> {
    const { fd } = this.#options;
    const { signal } = this.#ending;
    return new Promise((resolve, reject) => {
      let printed = "";
      const child = spawn("sh", ["-c", sttyOnThird, "sh", argument], {
        stdio: ["ignore", "pipe", "ignore", fd],
        timeout: sttyMs,
        killSignal: "SIGKILL",
        signal,
      });
      child.stdout?.setEncoding("utf8").on("data", (text: string) => {
        printed += text;
      });
      // A process that is ended by the signal emits an error at once, and has the descriptor until it closes.
      child.on("error", (error) => {
        if (child.pid === undefined) reject(error);
      });
      child.on("close", (code) => {
        if (signal.aborted) reject(new Error("the device is being closed"));
        else if (code === 127) reject(new Error("there is no stty here"));
        else if (code === null) reject(new Error(`stty took longer than ${sttyMs} ms`));
        else resolve(printed.trim());
      });
    });
  }

  /**
   * The modes that posline wants. No driver has a say in the raw mode, so another program's change between the binding's setting and this
   * reading is overruled; the rest is as the device took it.
   */
  #ownModes(found: string): string {
    const { flowControl, hupcl } = this.#options.config;
    const modes = found.split(":");
    const xonxoff = flowControl === "xonxoff" ? bits.ixon | bits.ixoff : 0;
    const control = Number.parseInt(modes[places.control] ?? "", 16);
    const set = (place: keyof typeof places, value: number) => modes.splice(places[place], 1, value.toString(16));
    set("input", bits.ignpar | xonxoff);
    set("output", 0);
    set("control", (hupcl ? control | bits.hupcl : control & ~bits.hupcl) >>> 0);
    set("local", 0);
    set("vtime", 0);
    set("vmin", 1);
    return modes.join(":");
  }
}

function isSame(one: Reading, other: Reading): boolean {
  return one.modes === other.modes && one.baudRate === other.baudRate;
}

/** The differences, in words. */
function changesOf(own: Reading, found: Reading): readonly string[] {
  const flagsOf = ({ modes }: Reading, place: number) => Number.parseInt(modes.split(":")[place] ?? "", 16);
  const flags = names.flatMap(([place, mask, name]) => {
    const changed = flagsOf(own, places[place]) ^ flagsOf(found, places[place]);
    return (changed & mask) === 0 ? [] : [name];
  });
  const speed = own.baudRate === found.baudRate ? [] : [`speed (${found.baudRate} in place of ${own.baudRate})`];
  const changes = [...speed, ...flags];
  return changes.length === 0 ? ["control characters"] : changes;
}
