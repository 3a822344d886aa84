import type { LineConfig } from "../config/config.ts";
import type { Contract } from "../contract/contract.ts";
import { contracts } from "../contract/contracts.ts";
import { type Call, type Handler, present } from "../core/call.ts";
import { Deadline, nowMs } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
import { faultPayload } from "../envelope/reply.ts";
import { type LineRequest, readFormLine, readTextLine } from "../envelope/request.ts";
import type { Discard, Frame, Framing } from "../wire/decoded.ts";
import type { Ear, Open, Opening } from "./conduit.ts";
import { bytesOf, frameOf, msPerByte } from "./frame.ts";
import { writeMsMin } from "./limits.ts";
import { Opener } from "./opener.ts";
import { Reader } from "./reader.ts";

/**
 * Where calls enter from a line: reads request frames, hands them to the service's handler one after the other, and frames what
 * it answers. By the contracts a broken bank or qr frame is dropped, and a broken fiscal frame is answered as an invalid request.
 */

/** Requests that may wait behind the one that is being answered: a till sends one at a time, so more is a fault of its own. */
const waitingMax = 16;

export interface LineListenerOptions {
  readonly config: LineConfig;
  readonly open: Open;
  /** The services answered on this line. */
  readonly services: readonly { readonly contract: Contract; readonly handler: Handler }[];
  readonly report: {
    discard(discard: Discard): void;
    /** The line opened, or could not be. */
    state(reason: string): void;
  };
}

type Job = { readonly frame: Frame } | { readonly broken: Contract };

export class LineListener {
  readonly #options: LineListenerOptions;
  readonly #opener: Opener;
  readonly #deadline = new Deadline(() => this.#due());
  readonly #framings: ReadonlySet<Framing>;
  #opening: Opening | undefined;
  #reader: Reader;
  #jobs: Job[] = [];
  #busy = false;
  #wrote: (() => void) | undefined;
  #requests = 0;

  constructor(options: LineListenerOptions) {
    this.#options = options;
    this.#framings = new Set(options.services.map(({ contract }) => contract.framing));
    this.#reader = new Reader(options.config, this.#framings);
    this.#opener = new Opener(options.open, () => this.#newEar(), {
      opened: (opening) => {
        this.#opening = opening;
        options.report.state("the device opened");
      },
      failed: (reason) => options.report.state(reason),
    });
  }

  start(): void {
    this.#opener.start();
  }

  async stop(): Promise<void> {
    this.#opener.stop();
    this.#deadline.dispose();
    await this.#opening?.close();
  }

  #newEar(): Ear {
    this.#reader = new Reader(this.#options.config, this.#framings);
    return {
      space: () => this.#reader.space(),
      heard: (n) => this.#heard(n),
      wrote: () => this.#wrote?.(),
      lost: (reason) => this.#lost(reason),
    };
  }

  #lost(reason: string): void {
    const opening = this.#opening;
    if (opening === undefined) return;
    this.#opening = undefined;
    this.#jobs = [];
    this.#wrote?.();
    this.#options.report.state(reason);
    this.#opener.again(opening.close());
  }

  #heard(n: number): void {
    const now = nowMs();
    for (const item of this.#reader.heard(n, now)) {
      if (item.kind === "frame") this.#take({ frame: item });
      else this.#discarded(item);
    }
    this.#deadline.set(this.#reader.dueMs, now);
    void this.#work();
  }

  #due(): void {
    for (const discard of this.#reader.reset()) this.#discarded(discard);
    void this.#work();
  }

  #discarded(discard: Discard): void {
    this.#options.report.discard(discard);
    const fiscal = this.#options.services.find(({ contract }) => contract.framing === "stx");
    // Only an STX frame can be seen to be broken and fiscal: a length frame without its length may be anybody's.
    if (fiscal !== undefined && discard.head.startsWith("02") && discard.reason !== "noise")
      this.#take({ broken: fiscal.contract });
  }

  #take(job: Job): void {
    if (this.#jobs.length < waitingMax) this.#jobs.push(job);
  }

  async #work(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
      const opening = this.#opening;
      const answer = await this.#answer(job);
      // What was asked on an earlier opening isn't answered on this one: nobody waits for it.
      if (answer !== undefined && opening !== undefined && opening === this.#opening) await this.#write(opening, answer);
    }
    this.#busy = false;
  }

  async #answer(job: Job): Promise<readonly Buffer[] | undefined> {
    const { crc16 } = this.#options.config;
    if ("broken" in job) {
      const { broken } = job;
      return frameOf(broken.framing, [faultPayload(broken, "malformed", "Cannot read the frame: its CRC is wrong")], crc16);
    }
    const request = this.#read(job.frame);
    const service = this.#options.services.find(({ contract }) => contract.service === request?.service);
    if (request === undefined || service === undefined) return this.#refusal(job.frame);
    const { contract, handler } = service;
    const call: Call = { ...request, requestId: `line-${++this.#requests}`, key: undefined, caller: present() };
    try {
      return frameOf(contract.framing, (await handler(call)).payload, crc16);
    } catch (error) {
      const fault = error instanceof Fault ? error : new Fault("broken", "Cannot answer: an internal error");
      return frameOf(contract.framing, [faultPayload(contract, fault.kind, fault.message)], crc16);
    }
  }

  /** A frame that asks nobody here: fiscal answers it as an invalid request, bank and qr say nothing. */
  #refusal(frame: Frame): readonly Buffer[] | undefined {
    const fiscal = this.#options.services.find(({ contract }) => contract.framing === "stx" && frame.framing === "stx");
    if (fiscal === undefined) return undefined;
    const payload = faultPayload(fiscal.contract, "malformed", "Cannot read the request: it has no command, or a field twice");
    return frameOf("stx", [payload], this.#options.config.crc16);
  }

  #read(frame: Frame): LineRequest | undefined {
    const [only] = frame.payload;
    const payload = frame.payload.length === 1 && only !== undefined ? only : Buffer.concat(frame.payload);
    if (frame.framing === "stx") return readFormLine(payload);
    return readTextLine(payload, contracts.qr.linePrefix);
  }

  #write(opening: Opening, frame: readonly Buffer[]): Promise<void> {
    return new Promise((resolve) => {
      const longestMs = writeMsMin + 2 * bytesOf(frame) * msPerByte(this.#options.config);
      const overdue = setTimeout(() => this.#lost("it takes no bytes: check flow control and the cable"), longestMs);
      this.#wrote = () => {
        clearTimeout(overdue);
        this.#wrote = undefined;
        resolve();
      };
      opening.write(frame);
    });
  }
}
