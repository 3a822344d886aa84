import { type ChildProcess, fork } from "node:child_process";

/** A process of the campaign that runs another of its modules, and sends what its code returns. */
export class Forked<Message> {
  readonly #module: string;
  readonly #child: ChildProcess;

  /** @param module A file of this folder. */
  constructor(module: string, args: readonly (string | number)[] = []) {
    this.#module = module;
    this.#child = fork(new URL(module, import.meta.url), args.map(String), { execArgv: ["--expose-gc", "--import", "tsx"] });
  }

  /**
   * What it sends next.
   * @throws Error when it ends before that.
   */
  message(): Promise<Message> {
    return new Promise((resolve, reject) => {
      const ended = () => reject(new Error(`${this.#module} ended before it sent what came of it`));
      this.#child.once("exit", ended);
      this.#child.once("message", (message) => {
        this.#child.off("exit", ended);
        // The one type that both have.
        resolve(message as Message);
      });
    });
  }

  send(message: object): void {
    this.#child.send(message);
  }

  stop(signal?: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}
