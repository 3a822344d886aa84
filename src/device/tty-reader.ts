import { closeSync, constants, openSync } from "node:fs";
import { ReadStream } from "node:tty";

/**
 * Reads a tty into memory that its owner hands out, with Node's own tty handle: the loop's poll stays armed, each read lands in place, and
 * its consequences run like any other event. A read of 0 bytes or EIO, which is how a hang-up shows on a tty, ends it at once, under
 * traffic too.
 */
export interface Reading {
  /** Leaves coming bytes in the kernel. */
  pause(): void;
  resume(): void;
  /** Closes the reader's descriptors; the one it was made from stays open, and must be closed after it. */
  close(): void;
}

const hungUp = "the device was unplugged or hung up";

export interface ReadingEvents {
  /** The place of the next bytes. Asked for at once, and anew after each `heard`. */
  space(): Buffer;
  heard(n: number): void;
  /** The tty hung up or failed. Called once, and not after `close`. */
  ended(reason: string): void;
}

/**
 * Begins to read from an open tty.
 *
 * The handle gets an opening of its own, since it replaces the description behind the descriptor that it is given, and the driver's lock
 * hangs on the description. Like any opening it raises DTR and RTS, if they were lowered.
 * @throws Error with the system's code if the tty went away meanwhile.
 */
export function readFrom(fd: number, events: ReadingEvents): Reading {
  const own = openSync(`/proc/self/fd/${fd}`, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  let stream: ReadStream;
  try {
    const onread = {
      buffer: () => events.space(),
      callback: (n: number) => {
        events.heard(n);
        return true;
      },
    };
    // net.Socket's `onread`, which tty.ReadStream passes on; the types know it only for connections.
    const options: object = { onread };
    stream = new ReadStream(own, options);
  } catch (error) {
    closeSync(own);
    throw error;
  }
  let open = true;
  const end = (reason: string) => {
    if (open) events.ended(reason);
    open = false;
  };
  stream.on("error", (error: NodeJS.ErrnoException) =>
    end(error.code === "EIO" ? hungUp : `reading from the device failed: ${error.message}`),
  );
  stream.on("end", () => end(hungUp));
  stream.on("close", () => end(hungUp));
  stream.resume();
  return {
    pause: () => stream.pause(),
    resume: () => stream.resume(),
    close: () => {
      open = false;
      stream.destroy();
      closeSync(own);
    },
  };
}
