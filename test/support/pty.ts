import { closeSync, readlinkSync, rmSync, symlinkSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { ReadStream } from "node:tty";

/**
 * A pseudo terminal: a real tty for posline, with this process as the device at its other end. No root and no package of the
 * system is needed. Plugging is a link to its path; unplugging takes the link away and closes the pty, which hangs up whoever has it
 * open. A link that stayed would lead to another process's pty: the system gives the number away again at once.
 */

interface NativePty {
  open(columns: number, rows: number): { readonly master: number; readonly slave: number; readonly pty: string };
}

const require = createRequire(import.meta.url);
// The package's own `open` reads the slave side too, and would take bytes away from posline.
const native: NativePty = require("@lydell/node-pty/requireBinary.js").requireBinary("pty.node");

export class Pty {
  /** The tty that posline opens. */
  readonly path: string;
  readonly #master: ReadStream;
  readonly #masterFd: number;
  readonly #slave: ReadStream;
  readonly #slaveFd: number;
  #open = true;
  #link: string | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(heard: (bytes: Buffer) => void) {
    const { master, slave, pty } = native.open(80, 25);
    this.path = pty;
    // Of a posline that was killed with the number's last holder; the number of its process may be somebody's by now.
    rmSync(`/run/lock/LCK..${pty.slice("/dev/".length).replaceAll("/", "_")}`, { force: true });
    // Held open and never read: without it the master would fail while posline hasn't opened its side.
    this.#slave = new ReadStream(slave);
    this.#slaveFd = slave;
    this.#slave.setRawMode(true);
    this.#slave.on("error", () => {});
    this.#masterFd = master;
    this.#master = new ReadStream(master);
    this.#master.on("data", heard);
    this.#master.on("error", () => {});
  }

  /** Makes a link to the tty, in place of one that is there. */
  linkAt(link: string): this {
    rmSync(link, { force: true });
    symlinkSync(this.path, link);
    this.#link = link;
    return this;
  }

  /** Sends bytes to posline, in order, waiting while the tty's buffer is full. */
  write(bytes: Uint8Array): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      for (let sent = 0; sent < bytes.length && this.#open; ) {
        try {
          sent += writeSync(this.#masterFd, bytes, sent);
        } catch (error) {
          if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) return;
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      }
    });
    return this.#writing;
  }

  /** Takes no more bytes from posline, as a device does that holds up the flow. */
  pause(): void {
    this.#master.pause();
  }

  resume(): void {
    this.#master.resume();
  }

  /** Pulls the plug. */
  unplug(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#removeLink();
    this.#master.destroy();
    this.#slave.destroy();
    // Node reads a tty through a descriptor of its own.
    closeSync(this.#slaveFd);
  }

  /** Unless another pty was linked there meanwhile, or its folder is gone. */
  #removeLink(): void {
    if (this.#link === undefined) return;
    try {
      if (readlinkSync(this.#link) === this.path) rmSync(this.#link);
    } catch {}
  }

  get isOpen(): boolean {
    return this.#open;
  }
}
