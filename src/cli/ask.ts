import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import type { WriteStream } from "node:tty";

/**
 * Asks the person at the terminal.
 * @param hidden What is typed isn't shown. @param signal Ends the question.
 * @returns undefined where the input ends, as by Ctrl-D: that is no answer, and agrees to nothing.
 */
export type Ask = (
  question: string,
  options?: { readonly hidden?: true; readonly signal?: AbortSignal },
) => Promise<string | undefined>;

/** Asks at this process's terminal. @param output Where the question is written. */
export function askAtTerminal(output: WriteStream): Ask {
  return async (question, { hidden, signal } = {}) => {
    // Readline shows what is typed by writing it; of a secret that goes nowhere.
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    const lines = createInterface({
      input: process.stdin,
      output: hidden === true ? nowhere : output,
      terminal: output.isTTY === true,
    });
    lines.once("SIGINT", () => process.kill(process.pid, "SIGINT"));
    // The terminal itself shows nothing from here on, so anyone who reads the question may type.
    if (hidden === true) output.write(question);
    const asked = new Promise<string | undefined>((answered, failed) => {
      // At the end of its input readline leaves the question open, and the process would end without a word.
      lines.once("close", () => answered(undefined));
      lines.question(question, signal === undefined ? {} : { signal }).then(answered, failed);
    });
    const answer = await asked.finally(() => lines.close());
    if (hidden === true || answer === undefined) output.write("\n");
    return answer;
  };
}
