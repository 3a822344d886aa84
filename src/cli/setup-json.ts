import { randomInt } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import { messageOf } from "../core/error-code.ts";
import { exitCodes } from "../core/exit.ts";
import { usbWords } from "../device/usb-words.ts";
import { parseObject } from "../envelope/json.ts";
import { LineSplitter } from "../logs/line-splitter.ts";
import type { SetupEnd, SetupOptions } from "../setup/setup.ts";
import { SetupError } from "../setup/setup-file.ts";
import type { AskedOf, SetupMessage } from "../setup/setup-messages.ts";
import type { SetupPerson } from "../setup/setup-wait.ts";
import { findingRows } from "./doctor.ts";

/**
 * `posline setup --json`: the person is in another process, such as the status page of a running posline. Whoever answers tests the
 * terminal afterwards; one who goes away before `yes` leaves nothing written.
 */

export interface JsonStreams {
  readonly input: Readable;
  readonly output: Writable;
}

/** @returns the exit code. @throws what `setUp` throws, after the message that says it. */
export async function runSetupJson(
  options: Omit<SetupOptions, "person">,
  setUp: (options: SetupOptions) => Promise<SetupEnd>,
  streams: JsonStreams,
): Promise<number> {
  const far = new FarPerson(streams);
  try {
    const { is } = await Promise.race([setUp({ ...options, person: far.person }), far.left]);
    far.tell({ end: is });
    return exitCodes.ok;
  } catch (error) {
    far.tell({ error: messageOf(error) });
    throw error;
  } finally {
    far.leave();
  }
}

interface Asking {
  readonly ask: number;
  readonly answered: (answer: string) => void;
  readonly failed: (error: SetupError) => void;
}

/** The person at the other end of two streams. */
class FarPerson {
  readonly #streams: JsonStreams;
  readonly #lines = new LineSplitter();
  /** Begins anywhere, so that the answer to a question of another setup is none to this one's. */
  #asked = randomInt(2 ** 32);
  #asking: Asking | undefined;
  #isGone = false;
  #hasAgreed = false;
  #leave: (error: SetupError) => void = () => {};

  constructor(streams: JsonStreams) {
    this.#streams = streams;
    this.left = new Promise((_, fail) => {
      this.#leave = fail;
    });
    // Handled where it is raced against the setup, which may be over.
    this.left.catch(() => {});
    const { input, output } = streams;
    input.on("data", (bytes: Buffer) => this.#lines.push(bytes, ({ bytes: line }) => this.#heard(line.toString())));
    for (const event of ["end", "error", "close"]) input.on(event, () => this.#gone());
    // Nobody hears it any more, which changes nothing of what was agreed.
    output.on("error", () => this.#gone());
  }

  readonly person: SetupPerson = {
    say: (text) => this.tell({ say: text }),
    show: (findings) => {
      const look = { unicode: false, colour: false };
      for (const found of findings) {
        if (found.level !== "ok") this.tell({ say: findingRows(found, look, false).join("\n") });
      }
    },
    pick: async (devices, signal) => {
      const named = devices.map((device) => ({ path: device.path, words: usbWords(device.usb) }));
      for (;;) {
        const path = await this.#ask({ for: "device", devices: named }, signal);
        const device = devices.find((each) => each.path === path);
        if (device !== undefined) return device;
      }
    },
    merchantId: async (refused) => {
      const id = (await this.#ask({ for: "merchant-id", ...(refused !== undefined && { refused }) })).trim();
      return id === "" ? undefined : id;
    },
    agrees: async (diff) => {
      this.#hasAgreed = (await this.#ask({ for: "write", diff })) === "yes";
      return this.#hasAgreed;
    },
  };

  /** Fails when the person goes before there was a `yes`: nothing is written from then on. */
  readonly left: Promise<never>;

  tell(message: SetupMessage): void {
    this.#streams.output.write(`${JSON.stringify(message)}\n`);
  }

  /** Reads no more answers; messages already written still go out. */
  leave(): void {
    this.#streams.input.destroy();
  }

  #ask(asked: AskedOf, signal?: AbortSignal): Promise<string> {
    const ask = ++this.#asked;
    return new Promise((answered, failed) => {
      const over = () => {
        this.#asking = undefined;
        this.tell({ over: ask });
      };
      this.#asking = {
        ask,
        answered: (answer) => {
          over();
          answered(answer);
        },
        failed,
      };
      signal?.addEventListener("abort", () => {
        if (this.#asking?.ask === ask) over();
        failed(new SetupError("the question is over"));
      });
      this.tell({ ask, ...asked });
      if (this.#isGone) this.#gone();
    });
  }

  #heard(line: string): void {
    const { ask, answer } = parseObject(line) ?? {};
    const asking = this.#asking;
    // An answer that comes after its question is over isn't taken for the next one's.
    if (asking === undefined || ask !== asking.ask || typeof answer !== "string") return;
    asking.answered(answer);
  }

  #gone(): void {
    this.#isGone = true;
    if (this.#hasAgreed) return;
    const error = new SetupError("it was stopped: nothing was written");
    this.#asking?.failed(error);
    this.#leave(error);
  }
}
