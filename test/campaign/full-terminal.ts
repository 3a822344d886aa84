import type { Framing } from "../../src/wire/decoded.ts";
import { FakeDevice, frame } from "../support/fake-device.ts";
import { probeReply } from "../support/terminal.ts";
import type { VirtualTime } from "../support/virtual-time.ts";

/**
 * A bank terminal with a ledger, at the far end of a line: it answers in order, and what it carried out last under a key it says when it is
 * asked about that. Where it is a gateway, it may answer -3, and carry out behind that answer, before the contract's time is over.
 */

export interface FullFate {
  readonly kind: "answered" | "reply lost" | "request lost" | "corrupt" | "late" | "refused" | "behind";
  /** How the operation ends, and how long that takes. */
  readonly end: "APPROVED" | "ERROR" | "REVERSED";
  readonly takesMs: number;
}

/** Routes of what is carried out. */
export type Route = "/sale" | "/cancel";

interface Entry {
  readonly id: string;
  readonly end: FullFate["end"];
  readonly atMs: number;
}

/** How a request stands: it was refused, or what was carried out goes on or ended so. */
export type Stand = FullFate["end"] | "in progress" | "refused";

/** Milliseconds that an answer takes; one that is late takes as long as its call waits, and a little more or less. */
const answerMs = 10;

/** The same behind an answer -3: before that operation's reply timeout is over. */
const behindMsMax = 29_000;

const atOnce = { end: "APPROVED", takesMs: 0 } as const;

const absent = '{"status":"error","code":-15}';

export class FullTerminal {
  /** By route and key: each time that it was carried out, the last one last. */
  readonly #ledger = new Map<string, readonly Entry[]>();
  /** By route and key: what was refused. */
  readonly #refused = new Set<string>();
  /** What was carried out last under a key: a sale, or a cancel. */
  readonly #latest = new Map<string, Entry>();
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
  #ids = 0;
  onRun: (route: Route, key: string, times: number) => void = () => {};

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

  /** How the sales or cancels of a key stand. */
  standsOf(route: Route, key: string): readonly Stand[] {
    const ran = (this.#ledger.get(`${route} ${key}`) ?? []).map((entry) => this.#stand(entry));
    return this.#refused.has(`${route} ${key}`) ? ["refused", ...ran] : ran;
  }

  /** How many of them were carried out. */
  timesRun(route: Route, key: string): number {
    return this.#ledger.get(`${route} ${key}`)?.length ?? 0;
  }

  #stand({ end, atMs }: Entry): FullFate["end"] | "in progress" {
    return atMs <= this.#time.nowMs ? end : "in progress";
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
    const [route] = text.split("\n", 1);
    const answer = route === "/check" ? this.#check(key) : this.#begin(route === "/sale" ? route : "/cancel", key, fate);
    if (fate?.kind === "reply lost") return;
    this.#answer(framing, answer, fate?.kind === "late" ? this.#lateMs : answerMs, fate?.kind === "corrupt");
  }

  #begin(route: Route, key: string, fate: FullFate | undefined): string {
    if (route === "/sale") this.heard.push(key);
    if (fate?.kind === "refused") {
      this.#refused.add(`${route} ${key}`);
      return '{"status":"error","code":-29}';
    }
    if (fate?.kind === "behind") {
      this.#time.after(Math.min(fate.takesMs, behindMsMax), () => this.#carryOut(route, key, { ...fate, takesMs: 0 }));
      return '{"status":"error","code":-3}';
    }
    return this.#carryOut(route, key, fate) ? '{"status":"success"}' : absent;
  }

  /** False where there is nothing to cancel. */
  #carryOut(route: Route, key: string, { end, takesMs }: Pick<FullFate, "end" | "takesMs"> = atOnce): boolean {
    if (route === "/cancel" && this.timesRun("/sale", key) === 0) return false;
    const entry = { id: `T-${++this.#ids}`, end, atMs: this.#time.nowMs + takesMs };
    this.#latest.set(key, entry);
    const all = [...(this.#ledger.get(`${route} ${key}`) ?? []), entry];
    this.#ledger.set(`${route} ${key}`, all);
    this.onRun(route, key, all.length);
    return true;
  }

  #check(key: string): string {
    const latest = this.#latest.get(key);
    if (latest === undefined) return absent;
    const stand = this.#stand(latest);
    if (stand === "in progress") return '{"status":"success"}';
    const data = { status: stand, txn_id: latest.id };
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
