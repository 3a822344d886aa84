import type { WriteStream } from "node:tty";
import spinner, { type Spinner } from "yocto-spinner";
import type { Settled, SettleEvent } from "../client/settle-types.ts";
import { printable } from "../core/shell-text.ts";

/** How an operation goes, for a person: a spinner on a terminal, a line a step elsewhere. Keys and messages are words of others. */
export class Progress {
  readonly #stream: Pick<WriteStream, "write" | "isTTY">;
  readonly #spinner: Spinner | undefined;

  constructor(stream: WriteStream) {
    this.#stream = stream;
    if (stream.isTTY) this.#spinner = spinner({ stream, handleSignals: false, text: "starting" }).start();
  }

  show(event: SettleEvent): void {
    const { service, route } = event.token;
    const wait = event.waitMs === undefined ? "" : ` ${(event.waitMs / 1_000).toFixed(1)} s`;
    this.#tell(`${service} ${route}: ${event.type}${event.type === "waiting" ? wait : ""}`);
  }

  /** A word that stays, whatever comes after it. */
  say(text: string): void {
    this.#spinner?.clear();
    this.#stream.write(`${printable(text)}\n`);
  }

  end({ result, message }: Settled): void {
    const text = printable(message === undefined ? result : `${result}: ${message}`);
    if (this.#spinner === undefined) this.#stream.write(`${text}\n`);
    else if (result === "approved" || result === "closed") this.#spinner.success(text);
    else if (result === "unknown" || result === "unprinted") this.#spinner.warning(text);
    else this.#spinner.error(text);
  }

  stop(): void {
    if (this.#spinner?.isSpinning) this.#spinner.stop();
  }

  #tell(text: string): void {
    if (this.#spinner === undefined) this.#stream.write(`${text}\n`);
    else this.#spinner.text = text;
  }
}
