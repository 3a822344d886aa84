import { createServer, type Server, type Socket } from "node:net";
import { type CapturedFrame, writeCaptured } from "../capture/captured-frame.ts";
import { LineTap } from "../capture/line-tap.ts";
import type { Log } from "../core/log.ts";
import { version } from "../core/version.ts";
import type { AdminRoute } from "../http/admin-listener.ts";
import { waitingBytesMax } from "../http/streams.ts";
import type { LineObserve } from "../line/line.ts";
import type { LineWatcher, WatchedLine } from "./bridge-line.ts";

/**
 * Where frames leave for `posline tap`: masked for anybody who may ask the admin port, and as they are over a Unix socket that
 * systemd opened for posline's group. Both are lines of JSON: first who speaks, then a frame each.
 */

/** Unmasked taps at one time. */
const unmaskedMax = 4;

export class Taps implements LineWatcher {
  readonly #log: Log;
  readonly #tap = new LineTap();
  /** The names of the lines that there are, or were. */
  readonly #lines = new Set<string>();
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  watch(line: WatchedLine): LineObserve {
    this.#lines.add(line.name);
    return this.#tap.watch(line);
  }

  /** What the admin port answers. */
  get routes(): Readonly<Record<string, AdminRoute>> {
    return {
      "GET /tap": (_body, { query }) => ({
        contentType: "application/x-ndjson",
        start: (stream) => {
          const wanted = query.get("line");
          stream.write(this.#greeting(true));
          const take = (frames: readonly CapturedFrame[]) => {
            const text = frames
              .filter(({ line }) => wanted === null || line === wanted)
              .map(writeCaptured)
              .join("");
            if (text !== "") stream.write(text);
          };
          return this.#tap.add({ unmasked: false, take });
        },
      }),
    };
  }

  /** Serves unmasked taps on a Unix socket that somebody else opened, and for whom. */
  open(fd: number): void {
    this.#server = createServer((socket) => this.#connected(socket));
    this.#server.maxConnections = unmaskedMax;
    this.#server.on("error", (error) => this.#log.process("warn", "unmasked taps can't be served", { error: String(error) }));
    this.#server.listen({ fd });
  }

  close(): void {
    this.#server?.close();
    for (const socket of this.#sockets) socket.end();
  }

  #connected(socket: Socket): void {
    this.#sockets.add(socket);
    // Node can't ask the kernel whose process it is (SO_PEERCRED); who may connect, the socket's group and mode say.
    this.#log.process("warn", "an unmasked tap was connected: it sees card data and secrets", { count: this.#sockets.size });
    const take = (frames: readonly CapturedFrame[]) => {
      if (socket.writableLength <= waitingBytesMax) socket.write(frames.map(writeCaptured).join(""));
      else socket.destroy();
    };
    const end = this.#tap.add({ unmasked: true, take });
    // Its closing says the same, and follows.
    socket.on("error", () => {});
    socket.on("close", () => {
      end();
      this.#sockets.delete(socket);
      this.#log.process("info", "an unmasked tap was disconnected", { count: this.#sockets.size });
    });
    socket.resume();
    socket.write(this.#greeting(false));
  }

  /** So that the other end knows at once that it is there, what it will see, and of which lines. */
  #greeting(masked: boolean): string {
    return `${JSON.stringify({ posline: version, masked, lines: [...this.#lines] })}\n`;
  }
}
