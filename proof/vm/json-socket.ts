import { createConnection, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Commands and answers as lines of JSON over a unix socket, one at a time: QEMU's monitor and the guest's agent both speak so. What
 * comes without having been asked for, such as the monitor's events, is left aside.
 */

/** A JSON object; what it holds is found out by whoever asked. */
export type Json = Readonly<Record<string, unknown>>;

export class JsonSocket {
  readonly #socket: Socket;
  #text = "";
  #waiting: { resolve(answer: unknown): void; reject(error: Error): void } | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #ended: Error | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => this.#heard(text));
    socket.on("error", (error) => this.#end(error));
    socket.on("close", () => this.#end(new Error("the connection was closed")));
  }

  /** Connects to a socket that is there, or will soon be. */
  static async connect(path: string, limitMs = 10_000): Promise<JsonSocket> {
    const until = performance.now() + limitMs;
    for (;;) {
      try {
        return new JsonSocket(await connected(path));
      } catch (error) {
        if (performance.now() > until) throw error;
        await sleep(50);
      }
    }
  }

  /** Asks, and gives what `return` holds. Commands wait for each other. */
  ask(execute: string, args: Json = {}, limitMs = 60_000): Promise<unknown> {
    const asked = this.#turn.then(() => this.#ask(execute, args, limitMs));
    this.#turn = asked.catch(() => {});
    return asked;
  }

  close(): void {
    this.#socket.destroy();
  }

  async #ask(execute: string, args: Json, limitMs: number): Promise<unknown> {
    if (this.#ended !== undefined) throw this.#ended;
    const answer = new Promise<unknown>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`Cannot ask ${execute}: no answer within ${limitMs} ms`)), limitMs);
      this.#waiting = {
        resolve: (value) => {
          clearTimeout(timer);
          resolve(value);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      };
    });
    this.#socket.write(`${JSON.stringify({ execute, arguments: args })}\n`);
    return answer;
  }

  #heard(text: string): void {
    const lines = (this.#text + text).split("\n");
    this.#text = lines.pop() ?? "";
    for (const line of lines) {
      // The agent puts this byte before its first answer.
      const heard: unknown = JSON.parse(line.replace("\u{fffd}", ""));
      if (typeof heard !== "object" || heard === null) continue;
      if ("return" in heard) this.#waiting?.resolve(heard.return);
      else if ("error" in heard) this.#waiting?.reject(new Error(JSON.stringify(heard.error)));
      else continue;
      this.#waiting = undefined;
    }
  }

  #end(error: Error): void {
    this.#ended ??= error;
    this.#waiting?.reject(this.#ended);
    this.#waiting = undefined;
  }
}

function connected(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path);
    socket.once("connect", () => {
      socket.off("error", reject);
      resolve(socket);
    });
    socket.once("error", reject);
  });
}
