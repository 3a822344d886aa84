import type { Framing } from "../../src/wire/decoded.ts";
import { FakeDevice, frame } from "../support/fake-device.ts";
import { probeReply } from "../support/terminal.ts";
import type { VirtualTime } from "../support/virtual-time.ts";

/** A bank terminal with a ledger, at the far end of a line: it answers in order, and what it carried out it says when it is asked. */

export interface FullFate {
  readonly kind: "answered" | "reply lost" | "request lost" | "corrupt" | "late" | "refused";
  /** How the operation ends, and how long that takes. */
  readonly end: "APPROVED" | "ERROR" | "REVERSED";
  readonly takesMs: number;
}

interface Entry {
  readonly end: FullFate["end"];
  readonly atMs: number;
  times: number;
}

/** Milliseconds that an answer takes; one that is late takes as long as its call waits, and a little more or less. */
const answerMs = 10;

export class FullTerminal {
  readonly ledger = new Map<string, Entry>();
  /** Keys of what has an effect, in the order in which it came whole. */
  readonly heard: string[] = [];
  /** All requests of callers, and posline's own questions about operations. */
  requests = 0;
  isHealthy = false;
  device: FakeDevice;
  readonly #time: VirtualTime;
  readonly #fates: readonly FullFate[];
  readonly #lateMs: number;
  #next = 0;
  #freeMs = 0;
  onHeard: (key: string, times: number) => void = () => {};

  constructor(time: VirtualTime, fates: readonly FullFate[], lateMs: number) {
    this.#time = time;
    this.#fates = fates;
    this.#lateMs = lateMs;
    this.device = this.newDevice();
  }

  /** The other end, for the next process. */
  newDevice(): FakeDevice {
    this.device = new FakeDevice((framing, text) => this.#take(framing, text));
    return this.device;
  }

  /** What a till could read on its journal: undefined where nothing is known of the key. */
  standOf(key: string): FullFate["end"] | "in progress" | undefined {
    const entry = this.ledger.get(key);
    if (entry === undefined) return undefined;
    return entry.atMs <= this.#time.nowMs ? entry.end : "in progress";
  }

  #take(framing: Framing, text: string): void {
    const probe = probeReply({ framing, text, number: 0 });
    if (probe !== undefined) {
      this.#answer(framing, probe, answerMs, false);
      return;
    }
    this.requests++;
    const fate = this.isHealthy ? undefined : this.#fates[this.#next++ % this.#fates.length];
    const key = /"pay_id":"([^"]+)"/.exec(text)?.[1] ?? "";
    if (fate?.kind === "request lost") {
      // It came to the terminal, which dropped it: on the line it was.
      if (text.startsWith("/sale")) this.heard.push(key);
      return;
    }
    const answer = text.startsWith("/sale") ? this.#sale(key, fate) : this.#check(key);
    if (fate?.kind === "reply lost") return;
    this.#answer(framing, answer, fate?.kind === "late" ? this.#lateMs : answerMs, fate?.kind === "corrupt");
  }

  #sale(key: string, fate: FullFate | undefined): string {
    this.heard.push(key);
    if (fate?.kind === "refused") return '{"status":"error","code":-29}';
    const { end = "APPROVED", takesMs = 0 } = fate ?? {};
    const times = (this.ledger.get(key)?.times ?? 0) + 1;
    this.ledger.set(key, { end, atMs: this.#time.nowMs + takesMs, times });
    this.onHeard(key, times);
    return '{"status":"success"}';
  }

  #check(key: string): string {
    const stand = this.standOf(key);
    if (stand === undefined) return '{"status":"error","code":-15}';
    if (stand === "in progress") return '{"status":"success"}';
    const data = { status: stand, txn_id: key };
    return JSON.stringify(stand === "APPROVED" ? { status: "success", data } : { status: "error", code: -20, data });
  }

  /** In order: behind what it still has to answer. */
  #answer(framing: Framing, text: string, delayMs: number, isCorrupt: boolean): void {
    this.#freeMs = Math.max(this.#freeMs, this.#time.nowMs) + delayMs;
    this.#time.after(this.#freeMs - this.#time.nowMs, () => {
      const bytes = frame(framing, text);
      if (isCorrupt) bytes.writeUInt8(bytes.readUInt8(bytes.length - 4) ^ 0x41, bytes.length - 4);
      this.device.send(bytes);
    });
  }
}
