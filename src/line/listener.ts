import type { LineConfig } from "../config/config.ts";
import type { Contract } from "../contract/contract.ts";
import { contracts } from "../contract/contracts.ts";
import { type Call, type Handler, type Presence, present } from "../core/call.ts";
import { nowMs } from "../core/clock.ts";
import { Fault } from "../core/fault.ts";
import { faultPayload } from "../envelope/reply.ts";
import { type LineRequest, readFormLine, readTextLine } from "../envelope/request.ts";
import type { Decoded, Discard, Frame } from "../wire/decoded.ts";
import { Channel } from "./channel.ts";
import type { Open } from "./conduit.ts";
import { frameOf } from "./frame.ts";

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
  readonly #channel: Channel;
  #jobs: Job[] = [];
  #busy = false;
  /** Whoever asked what is being answered. */
  #caller: Presence = present();
  #wrote: (() => void) | undefined;
  #requests = 0;

  constructor(options: LineListenerOptions) {
    this.#options = options;
    const { config, open, services, report } = options;
    this.#channel = new Channel(config, new Set(services.map(({ contract }) => contract.framing)), open, {
      opened: () => report.state("the device opened"),
      hushed: () => {},
      heard: (decoded) => this.#heard(decoded),
      wrote: () => this.#wrote?.(),
      lost: (reason, { discards }) => this.#lost(reason, discards),
      failed: (reason) => report.state(reason),
    });
  }

  start(): void {
    this.#channel.start();
  }

  /** Gives the device back; what was asked and isn't answered yet stays without an answer. */
  async stop(): Promise<void> {
    this.#abandon();
    await this.#channel.stop();
  }

  #lost(reason: string, discards: readonly Discard[]): void {
    for (const discard of discards) this.#options.report.discard(discard);
    this.#options.report.state(reason);
    this.#abandon();
  }

  /** Nobody waits for answers any more. */
  #abandon(): void {
    this.#jobs = [];
    this.#wrote?.();
    this.#caller.gone = true;
    this.#caller.onGone?.();
  }

  #heard(decoded: readonly Decoded[]): void {
    for (const item of decoded) {
      if (item.kind === "discard") this.#discarded(item);
      // What the kernel kept from before the opening was asked by somebody who has given up: it must not be carried out.
      else if (this.#channel.hushed) this.#take({ frame: item });
    }
    void this.#work();
  }

  #discarded(discard: Discard): void {
    this.#options.report.discard(discard);
    const fiscal = this.#options.services.find(({ contract }) => contract.framing === "stx");
    // Only an STX frame can be seen to be broken and fiscal: a length frame without its length may be anybody's.
    const isBroken = discard.head.startsWith("02") && discard.reason !== "noise";
    if (fiscal !== undefined && isBroken && this.#channel.hushed) this.#take({ broken: fiscal.contract });
  }

  #take(job: Job): void {
    if (this.#jobs.length < waitingMax) this.#jobs.push(job);
  }

  async #work(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
      const { opening } = this.#channel;
      const answer = await this.#answer(job);
      // What was asked on an earlier opening isn't answered on this one: nobody waits for it.
      if (answer !== undefined && opening !== undefined && opening === this.#channel.opening) await this.#write(answer);
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
    this.#caller = present();
    const call: Call = { ...request, requestId: `line-${++this.#requests}`, key: undefined, caller: this.#caller };
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

  #write(frame: readonly Buffer[]): Promise<void> {
    return new Promise((resolve) => {
      this.#wrote = () => {
        this.#wrote = undefined;
        resolve();
      };
      this.#channel.write(frame, nowMs());
    });
  }
}
