import { writevSync } from "node:fs";
import type { LinuxPortBinding } from "@serialport/bindings-cpp/dist/linux.js";
import type { LineConfig } from "../config/config.ts";
import { nowMs, within } from "../core/clock.ts";
import { codeOf, messageOf } from "../core/error-code.ts";
import { bytesOf } from "../core/pieces.ts";
import { causeOf, type Places } from "./devices.ts";
import { drained } from "./drain.ts";
import { resolveDevice } from "./identity.ts";
import { type Lock, takeLock } from "./lock.ts";
import { type Cause, cannotSetUp, moved, noNativePart, notOnLinux } from "./open-errors.ts";
import { TtySettings } from "./settings.ts";
import { type Connection, type ConnectionHandler, closeMs, msPerByte, OpenError, type OpenTransport } from "./transport.ts";
import { type Reading, readFrom } from "./tty-reader.ts";

/**
 * A serial device as a transport: the only importer of serialport.
 *
 * serialport opens the device, locks it and sets it up. Its streams are not used: they miss a hang-up under traffic and spin on
 * it, keep writes for the next opening, and take twice the processor time. Here Node's own tty handle reads straight into the
 * decoder's memory, frames are written without being joined, and the device is given up for good on the first sign of loss.
 */

/** Folder of the lock files of serial devices. */
const lockFolder = "/run/lock";

/** Bytes written at once. Bytes that lie in the kernel when output is stopped hold up close() for half a minute, so few must lie there. */
const writeBytesMax = 1_024;

/**
 * Bytes that may lie in the system when the last byte of a frame was accepted: drivers hold a page of memory, which is 16 KiB at
 * most on the boxes that posline is built for.
 */
const kernelBytesMax = 16_384;

/** Bytes that may lie in an adapter's own buffer, which not every driver asks about, when the system has sent all. */
const adapterBytesMax = 512;

/**
 * Milliseconds that written bytes get at least to leave, beside twice their time on the wire: a USB adapter's packets (16 ms) and a busy
 * box's threads.
 */
const drainMsMin = 500;

/** Milliseconds between two looks at the settings. */
const lookMs = 60_000;

/** Milliseconds without a byte after which a look disturbs nobody: to start its process takes the event loop a millisecond or two. */
const quietMs = 1_000;

/** The binding's word for a poll. */
const writable = 2;

/** Options of a device beside its line's settings. */
export interface SerialPortOptions {
  /** Told that another program changed the device's settings, or that this can't be seen. */
  readonly settingsChanged?: (cause: Cause) => void;
  readonly lockFolder?: string;
  readonly places?: Places;
  /** Milliseconds between two looks at the settings, for tests. */
  readonly lookMs?: number;
}

/** Opens a device. The device that its path means is found at each opening, so a by-id name finds it wherever it is now. */
export function serialPort(config: LineConfig, options: SerialPortOptions = {}): OpenTransport {
  const { lockFolder: folder = lockFolder, places = {} } = options;
  return async (handler) => {
    if (process.platform !== "linux") throw new OpenError(notOnLinux(config.path, process.platform));
    const device = await resolveDevice(config.path, places);
    const lock = await takeLock(device, folder).catch(async (error) => Promise.reject(await refusalOf(error, device, places)));
    try {
      return await openLocked(device, config, lock, handler, options);
    } catch (error) {
      await lock.release();
      throw error;
    }
  };
}

async function openLocked(
  device: string,
  config: LineConfig,
  lock: Lock,
  handler: ConnectionHandler,
  { places = {}, settingsChanged = () => {}, lookMs: everyMs = lookMs }: SerialPortOptions,
): Promise<Connection> {
  const port = await openPort(device, config).catch(async (error) => Promise.reject(await refusalOf(error, device, places)));
  try {
    await refuseMoved(config.path, device, places);
    await setModemLines(port, config);
    const { fd } = port;
    if (fd === null) throw new Error("it has no descriptor");
    const settings = new TtySettings({ port, fd, device, config, told: settingsChanged, proc: places.proc });
    await settings.setUp();
    return new SerialConnection({ port, fd, device, lock, handler, config, settings, everyMs });
  } catch (error) {
    await port.close().catch(() => {});
    throw error instanceof OpenError ? error : new OpenError(cannotSetUp(device, String(error)));
  }
}

/** The binding sets both lines at once, and lowers one that isn't named; the driver raised both at the opening. */
async function setModemLines(port: LinuxPortBinding, { dtr, rts }: LineConfig): Promise<void> {
  if (dtr !== undefined || rts !== undefined) await port.set({ dtr: dtr ?? true, rts: rts ?? true });
}

/** The system's refusal, with how to fix it. */
async function refusalOf(error: unknown, device: string, places: Places): Promise<OpenError> {
  if (error instanceof OpenError) return error;
  return new OpenError(await causeOf(error, device, places));
}

/** Refuses a device that got the tty's number between the look and the opening: it may be another adapter. Nothing was sent to it yet. */
async function refuseMoved(path: string, device: string, places: Places): Promise<void> {
  if ((await resolveDevice(path, places)) !== device) throw new OpenError(moved(path, device));
}

/** Loaded by the first opening: without one, posline runs without serialport's native part. */
async function loadBinding(device: string) {
  try {
    return (await import("@serialport/bindings-cpp/dist/linux.js")).LinuxBinding;
  } catch (error) {
    throw new OpenError(noNativePart(device, messageOf(error)));
  }
}

async function openPort(device: string, config: LineConfig): Promise<LinuxPortBinding> {
  const binding = await loadBinding(device);
  const { baudRate, dataBits, parity, stopBits, flowControl, hupcl } = config;
  const xonxoff = flowControl === "xonxoff";
  return binding.open({
    path: device,
    baudRate,
    dataBits,
    parity,
    stopBits,
    rtscts: flowControl === "rtscts",
    xon: xonxoff,
    xoff: xonxoff,
    hupcl,
    lock: true,
  });
}

interface SerialConnectionOptions {
  readonly port: LinuxPortBinding;
  readonly fd: number;
  readonly device: string;
  readonly lock: Lock;
  readonly handler: ConnectionHandler;
  readonly config: LineConfig;
  readonly settings: TtySettings;
  /** Milliseconds between two looks at the settings. */
  readonly everyMs: number;
}

class SerialConnection implements Connection {
  readonly #port: LinuxPortBinding;
  readonly #lock: Lock;
  readonly #handler: ConnectionHandler;
  readonly #fd: number;
  /** Begins the reading, once the opener knows of the connection and has memory for its bytes. */
  readonly #start: NodeJS.Immediate;
  #reading: Reading | undefined;
  /** False once the port was lost or closed: then the descriptor's number may belong to another file. */
  #open = true;
  #closed: Promise<void> | undefined;
  #rest: NodeJS.Timeout | undefined;
  #pieces: readonly Buffer[] = [];
  #toWrite = 0;
  wroteBytes = 0;
  readonly #msPerByte: number;
  readonly #rtscts: boolean;
  /** Until when accepted bytes may lie in the kernel: twice their time on the wire, since a device may hold the flow up. */
  #leavesByMs = 0;
  readonly device: string;
  readonly #config: LineConfig;
  readonly #settings: TtySettings;
  readonly #everyMs: number;
  /** The timer of the next look at the settings. */
  #look: NodeJS.Timeout | undefined;
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** When a byte was last written or read. */
  #passedMs = nowMs();

  constructor({ port, fd, device, lock, handler, config, settings, everyMs }: SerialConnectionOptions) {
    this.#port = port;
    this.device = device;
    this.#lock = lock;
    this.#handler = handler;
    this.#msPerByte = msPerByte(config);
    this.#rtscts = config.flowControl === "rtscts";
    this.#config = config;
    this.#settings = settings;
    this.#everyMs = everyMs;
    this.#lookIn(everyMs);
    this.#fd = fd;
    this.#start = setImmediate(() => this.#read());
    // An exception within a poller's callback ends the process, and on Node 26 work done in it may wait for the next event: hence the hop
    // through setImmediate.
    port.poller.on("writable", () => setImmediate(() => this.#open && this.#writeOn()));
  }

  write(pieces: readonly Buffer[]): void {
    this.#pieces = pieces;
    this.wroteBytes = 0;
    this.#toWrite = bytesOf(pieces);
    this.#writeOn();
  }

  lookAtSettings(): void {
    if (!this.#open) return;
    const now = nowMs();
    // A line that noise drives from one recovery into the next has its look once it is quiet.
    if (now < this.#lookedMs + quietMs) this.#lookIn(quietMs);
    else {
      this.#lookedMs = now;
      this.#settings.look();
    }
  }

  /** Looks at the settings each minute; while bytes pass, as soon as they don't. */
  #lookDue(): void {
    const isQuiet = nowMs() >= this.#passedMs + quietMs;
    this.#lookIn(isQuiet ? this.#everyMs : quietMs);
    if (isQuiet) this.lookAtSettings();
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#look);
    this.#look = setTimeout(() => this.#lookDue(), ms);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Closes once only: the binding's poller doesn't survive being stopped twice. */
  async #close(): Promise<void> {
    const takesBytes = this.#open && this.wroteBytes === this.#toWrite;
    this.#open = false;
    clearImmediate(this.#start);
    clearTimeout(this.#rest);
    clearTimeout(this.#look);
    this.#reading?.pause();
    const port = this.#port;
    port.poller.stop();
    // The binding keeps each poller for ever, by a reference of its own to the callback: without this the decoder's memory and all of
    // its line's would stay with it.
    port.poller.removeAllListeners();
    await within(closeMs, this.#settings.close());
    const isEmpty = takesBytes && (await this.#drained());
    // Without the flush, closing waits for output that a stopped line will never take. If nothing is known to be left there is no flush: a
    // pty counts as empty as soon as it is written, and the flush would take unread bytes from its reader.
    const closed = (isEmpty ? Promise.resolve() : port.flush())
      .catch(() => {})
      .then(() => {
        // Closed before the port: the last to close may have to wait, and the port does that in a thread.
        this.#reading?.close();
        return port.close();
      })
      .catch(() => {});
    await within(closeMs, closed);
    await this.#lock.release();
  }

  /** Lets accepted bytes leave. False if some are left, or may be. */
  async #drained(): Promise<boolean> {
    const dueMs = Math.max(this.#leavesByMs, nowMs()) + drainMsMin;
    if (!(await drained(this.#port, dueMs, this.#rtscts))) return false;
    // Half of the time left until then is the wire's own.
    const wireMs = Math.min((this.#leavesByMs - nowMs()) / 2, adapterBytesMax * this.#msPerByte);
    if (wireMs > 0) await new Promise((resolve) => setTimeout(resolve, wireMs));
    return true;
  }

  #read(): void {
    try {
      this.#reading = readFrom(this.#fd, {
        space: () => this.#handler.space(),
        heard: (n) => this.#heard(n),
        ended: (reason) => this.#lost(reason),
      });
      // The reader's opening has raised the modem lines again, so they are set anew. A failure here would have shown at the opening of the
      // port, or is a loss that shows by itself.
      setModemLines(this.#port, this.#config).catch(() => {});
    } catch (error) {
      this.#lost(`reading from the device failed: ${messageOf(error)}`);
    }
  }

  /**
   * Passes on read bytes. While a frame comes slowly and its end is far, bytes are left to gather: at 115200 baud in 8-byte pieces each
   * would wake the process, nearly always for nothing.
   */
  #heard(n: number): void {
    if (!this.#open) return;
    this.#passedMs = nowMs();
    this.#handler.onBytes(n);
    const restMs = this.#open ? (this.#handler.coalesceMs?.() ?? 0) : 0;
    if (restMs === 0) return;
    this.#reading?.pause();
    this.#rest = setTimeout(() => this.#reading?.resume(), restMs);
  }

  /** Writes as much as the system takes, a little at a time. */
  #writeOn(): void {
    while (this.#open && this.wroteBytes < this.#toWrite) {
      try {
        this.#took(writevSync(this.#fd, this.#nextPieces()));
      } catch (error) {
        if (!isWait(error)) {
          this.#lost(`writing to the device failed: ${messageOf(error)}`);
          return;
        }
        this.#port.poller.poll(writable);
        return;
      }
    }
    if (this.#open) this.#handler.onWritten();
  }

  #took(bytes: number): void {
    this.wroteBytes += bytes;
    const now = nowMs();
    this.#passedMs = now;
    const leavesByMs = Math.max(now, this.#leavesByMs) + 2 * bytes * this.#msPerByte;
    this.#leavesByMs = Math.min(leavesByMs, now + 2 * kernelBytesMax * this.#msPerByte);
  }

  /** The next bytes to write, as views. */
  #nextPieces(): readonly Buffer[] {
    if (this.wroteBytes === 0 && this.#toWrite <= writeBytesMax) return this.#pieces;
    const next: Buffer[] = [];
    let skip = this.wroteBytes;
    let room = writeBytesMax;
    for (const piece of this.#pieces) {
      if (skip >= piece.length) {
        skip -= piece.length;
        continue;
      }
      const part = piece.subarray(skip, skip + room);
      next.push(part);
      room -= part.length;
      skip = 0;
      if (room === 0) break;
    }
    return next;
  }

  #lost(reason: string): void {
    if (!this.#open) return;
    this.#open = false;
    clearTimeout(this.#rest);
    clearTimeout(this.#look);
    this.#handler.onClosed(reason);
  }
}

function isWait(error: unknown): boolean {
  const code = codeOf(error);
  return code === "EAGAIN" || code === "EINTR";
}
