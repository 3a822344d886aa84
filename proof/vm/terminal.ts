import type { LineConfig } from "../../src/config/config.ts";
import { lineDefaults } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { type Call, contractNames, type Reply } from "../../src/core/call.ts";
import { msPerByte } from "../../src/device/transport.ts";
import { Emulator } from "../../src/lab/emulator/emulator.ts";
import { LineListener } from "../../src/line/listener.ts";
import { cable } from "./cable.ts";

/**
 * The terminal on the box's cable: posline's emulator, at the pace of the wire. A test sees what it is asked, can hold its answers
 * back, and pulls and plugs the cable.
 */

/** What it was asked, and what it answered, byte for byte. */
export interface Asked {
  readonly service: string;
  readonly route: string;
  readonly body: string;
  answer: Buffer | undefined;
}

/** The secret that its fiscal service and the guest's configuration share. */
export const merchantId = "MERCHANT-1";

/** Some three seconds of the wire at 115200 baud. */
const lengthyAnswer = Buffer.from(JSON.stringify({ status: "success", data: "x".repeat(32_768) }));

/** Somebody who waits for a request. */
type Watcher = { readonly route: string; readonly text: string; resolve(asked: Asked): void };

/** Nothing of it is written. */
const noReply: Reply = { payload: [], status: undefined, code: undefined, queueMs: 0, lineMs: 0 };

export class CabledTerminal {
  /** What it was asked, without what asks for its operations only. */
  readonly asked: Asked[] = [];
  readonly #path: string;
  readonly #emulator = new Emulator({ merchantId });
  #baudRate = 115_200;
  #listener: LineListener | undefined;
  #pull = new AbortController();
  /** Answers to these routes are held back. */
  #held: string | undefined;
  #release: (() => void)[] = [];
  /** A sale with this in its body comes to nothing. */
  #lost: string | undefined;
  /** Answers to sales are long enough to be interrupted. */
  #lengthy = false;
  #watchers: Watcher[] = [];

  /** @param path The socket at the cable's other end. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Plugs the cable in; the terminal speaks at this speed from then on. */
  plug(baudRate = this.#baudRate): void {
    if (this.#listener !== undefined) return;
    this.#baudRate = baudRate;
    const config: LineConfig = { ...lineDefaults, path: this.#path, baudRate };
    this.#pull = new AbortController();
    this.#listener = new LineListener({
      config,
      open: cable(this.#path, msPerByte(config), this.#pull.signal),
      services: contractNames.map((service) => ({ contract: contracts[service], handler: (call) => this.#answer(call) })),
      report: { discard: () => {}, state: () => {} },
    });
    this.#listener.start();
  }

  /** Pulls the cable, at once: what was on its way is lost. */
  async unplug(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    this.#pull.abort();
    await listener?.stop();
  }

  /** From now on a route's answers wait until `release`. */
  hold(route: string): void {
    this.#held = route;
  }

  /** From now on a sale with this in its body comes to nothing: it is neither carried out nor answered. */
  lose(text: string): void {
    this.#lost = text;
  }

  /** From now on, until `release`, the answer to a sale is so long that the cable can be pulled in the middle of it. */
  lengthen(): void {
    this.#lengthy = true;
  }

  /** Lets the answers out that are held back now; those to come are held on. */
  letOut(): void {
    for (const release of this.#release.splice(0)) release();
  }

  /** Lets the answers out that were held back, and is as usual from then on. */
  release(): void {
    this.#held = undefined;
    this.#lengthy = false;
    this.letOut();
  }

  /** The next request on this route with this text, once it has come. posline asks by some routes itself. */
  next(route: string, text = ""): Promise<Asked> {
    return new Promise((resolve) => this.#watchers.push({ route, text, resolve }));
  }

  /** How often it was asked this. */
  count(route: string, text: string): number {
    return this.asked.filter((asked) => asked.route === route && asked.body.includes(text)).length;
  }

  async #answer(call: Call): Promise<Reply> {
    const asked: Asked = { service: call.service, route: call.route, body: textOf(call), answer: undefined };
    const isOurs = call.route !== "/supported_operations" && call.route !== "/check_connection";
    if (isOurs) this.asked.push(asked);
    const isLost = this.#lost !== undefined && call.route === "/sale" && asked.body.includes(this.#lost);
    const reply = isLost ? noReply : this.#emulator.answer(call).reply;
    const isFor = ({ route, text }: Watcher) => route === asked.route && asked.body.includes(text);
    for (const watcher of this.#watchers.filter(isFor)) watcher.resolve(asked);
    this.#watchers = this.#watchers.filter((watcher) => !isFor(watcher));
    if (isLost) return reply;
    if (this.#held === call.route) await new Promise<void>((resolve) => this.#release.push(resolve));
    if (this.#lengthy && call.route === "/sale") return { ...reply, payload: [lengthyAnswer] };
    asked.answer = Buffer.concat(reply.payload);
    return reply;
  }
}

/** A request's body in clear: fiscal's is unwrapped from its form. */
function textOf({ service, body }: Call): string {
  const text = Buffer.concat(body).toString();
  if (service !== "fiscal") return text;
  return Buffer.from(new URLSearchParams(text).get("data") ?? "", "base64").toString();
}
