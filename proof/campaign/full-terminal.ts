import { closingRoutes } from "../../src/contract/settling.ts";
import type { ContractName } from "../../src/core/call.ts";
import { scalarText } from "../../src/settle/exact-json.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { probeReply } from "../../test/support/terminal.ts";
import type { VirtualTime } from "../../test/support/virtual-time.ts";
import type { FullFarEnd } from "./full-far-end.ts";
import {
  type End,
  type Entry,
  foundOther,
  isClientKey,
  type Request,
  readRequest,
  type Stand,
  type Trade,
} from "./full-trade.ts";

/**
 * A terminal with a ledger, at the far end of a line: it answers in order, and what it carried out last under a key it says when it is
 * asked about that. Where it is a gateway, it may answer that it doesn't know, and carry out behind that answer, within half a minute.
 */

export interface FullFate {
  readonly kind:
    | "answered"
    | "reply lost"
    | "request lost"
    | "corrupt"
    | "late"
    | "refused"
    | "behind"
    | "other key"
    | "denied";
  /** How the operation ends, and how long that takes. */
  readonly end: keyof Trade["ends"];
  readonly takesMs: number;
}

/** Milliseconds that an answer takes; one that is late takes as long as its call waits, and a little more or less. */
const answerMs = 10;

/** The same behind an answer that says nothing: before the operation's reply timeout is over (bank.md, 30 s). */
const behindMsMax = 29_000;

/** Milliseconds for which a terminal that answers with an operation's end lets its caller wait. */
const blocksMsMax = 3_000;

const atOnce = { end: "good", takesMs: 0 } as const;

/** A sale, or what is sent behind it, as it came. */
interface Heard extends Pick<Entry, "key" | "amount"> {
  /** Path and operation. */
  readonly name: string;
  readonly atMs: number;
}

export interface FullTerminalOptions {
  readonly time: VirtualTime;
  readonly farEnd: FullFarEnd;
  readonly trade: Trade;
  readonly fates: readonly FullFate[];
  readonly lateMs: number;
  /** Whether a till's own name stands, where the contract lets it name a payment (qr). */
  readonly takesNames: boolean;
}

export class FullTerminal {
  /** What was carried out, in order. */
  readonly #ledger: Entry[] = [];
  /** By path and operation: what was refused. */
  readonly #refused = new Set<string>();
  /** Keys of which nothing is known any more, as after a closed batch, but for what was carried out since. */
  readonly #forgotten = new Map<string, number>();
  /** What moves money, in the order in which it came whole. */
  readonly #heard: Heard[] = [];
  /** All requests of callers, and posline's own questions about operations. */
  requests = 0;
  /** Keys that were denied in passing: each once. */
  readonly #denied = new Set<string>();
  isHealthy = false;
  readonly trade: Trade;
  readonly farEnd: FullFarEnd;
  readonly #time: VirtualTime;
  readonly #fates: readonly FullFate[];
  readonly #lateMs: number;
  readonly #takesNames: boolean;
  #next = 0;
  #ids = 0;
  onRun: (path: string, operation: string, times: number) => void = () => {};

  constructor({ time, farEnd, trade, fates, lateMs, takesNames }: FullTerminalOptions) {
    this.#time = time;
    this.farEnd = farEnd;
    this.trade = trade;
    this.#fates = fates;
    this.#lateMs = lateMs;
    this.#takesNames = takesNames;
  }

  /** Paths and operations of what moves money, each time that it came whole. */
  get heard(): readonly string[] {
    return this.#heard.map(({ name }) => name);
  }

  get contract(): ContractName {
    return this.trade.contract;
  }

  /**
   * How an operation stands, each time that it came.
   * @param amount Of all of them those with this amount: another amount makes another request.
   */
  standsOf(path: string, operation: string, amount?: string): readonly Stand[] {
    const isIt = (entry: Entry) => amount === undefined || entry.amount === undefined || entry.amount === amount;
    const ran = this.#entries(path, operation)
      .filter(isIt)
      .map((entry) => this.#stand(entry));
    return this.#refused.has(`${path} ${operation}`) ? ["refused", ...ran] : ran;
  }

  /** When an operation was begun last. */
  lastBeganMs(path: string, operation: string): number | undefined {
    return this.#entries(path, operation).at(-1)?.beganMs;
  }

  /** When an operation came last. */
  heardMs(path: string, operation: string): number | undefined {
    return this.#heard.findLast(({ name }) => name === `${path} ${operation}`)?.atMs;
  }

  /** Whether another operation under its key came before it, or one for another amount: nobody knows of that where records are lost. */
  hadOtherBefore(
    path: string,
    { key, operation, amount }: Pick<Entry, "key" | "operation" | "amount">,
    sentMs: number,
  ): boolean {
    const name = `${path} ${operation}`;
    const isOther = (each: Heard) => each.name !== name || (each.amount !== undefined && each.amount !== amount);
    return this.#heard.some((each) => each.key === key && isOther(each) && each.atMs <= sentMs);
  }

  /** Whether an operation has this number or name, also among those of it that stand so. */
  hasId(path: string, operation: string, id: string, standsSo: (stand: Stand) => boolean = () => true): boolean {
    return this.#entries(path, operation).some((entry) => entry.id === id && standsSo(this.#stand(entry)));
  }

  /** How often it was carried out: what was taken back and forgotten may be sent again. */
  timesRun(path: string, operation: string): number {
    return this.#entries(path, operation).filter((entry) => this.#stand(entry) !== "gone").length;
  }

  /** Keys of which nothing was forgotten yet, and under which all that was carried out has ended. */
  get ended(): readonly string[] {
    const isOpen = (key: string) => this.#ledger.some((entry) => entry.key === key && this.#stand(entry) === "in progress");
    return [...new Set(this.#ledger.map(({ key }) => key))].filter((key) => !this.#forgotten.has(key) && !isOpen(key));
  }

  forget(key: string): void {
    this.#forgotten.set(key, this.#ledger.length);
  }

  /** What it can still be asked about. */
  #isKept({ key }: Entry, place: number): boolean {
    return place >= (this.#forgotten.get(key) ?? 0);
  }

  /** Whether a copy of an operation's document was printed. */
  isCopied(path: string, operation: string): boolean {
    return this.#entries(path, operation).some(({ copies }) => copies > 0);
  }

  /** The name of the last sale of a key, as its answer gives it. */
  nameOf(key: string): string | undefined {
    return this.#entries(this.trade.sale, key).at(-1)?.id;
  }

  #entries(path: string, operation: string): readonly Entry[] {
    return this.#ledger.filter((entry) => entry.path === path && entry.operation === operation);
  }

  #stand({ end, atMs }: Entry): End | "in progress" {
    return atMs <= this.#time.nowMs ? end : "in progress";
  }

  /** A request came. */
  take(framing: Framing, text: string): void {
    const probe = probeReply({ framing, text, number: 0 });
    if (probe !== undefined) {
      this.farEnd.answer(framing, probe, answerMs, false);
      return;
    }
    this.requests++;
    const fate = this.isHealthy ? undefined : this.#fates[this.#next++ % this.#fates.length];
    const request = readRequest(this.trade, framing, text);
    const { path, operation } = request;
    if (path === this.trade.sale || path === this.trade.back) {
      const { key, json } = request;
      const amount = scalarText(json["amount"]);
      this.#heard.push({ name: `${path} ${operation}`, key, amount, atMs: this.#time.nowMs });
    }
    // It came to the terminal, which dropped it: on the line it was.
    if (fate?.kind === "request lost") return;
    const [answer, takesMs] = this.#carryOut(request, fate);
    if (fate?.kind === "reply lost" || answer === undefined) return;
    this.farEnd.answer(framing, answer, fate?.kind === "late" ? this.#lateMs : takesMs, fate?.kind === "corrupt");
  }

  /** @returns the answer, and how long it takes. */
  #carryOut(request: Request, fate: FullFate | undefined): readonly [string | undefined, number] {
    const { trade } = this;
    if (closingRoutes.has(request.path)) {
      // Tills that count on the contract by themselves, as the client without a bridge, can't know of it.
      for (const key of this.ended) if (!isClientKey(key)) this.forget(key);
      return ['{"status":"success","code":0}', answerMs];
    }
    if (request.path === trade.question) {
      // By the contracts one denial ends a QR payment, and cash that was accepted: who loses sight of those says something false.
      if (fate?.kind === "denied" && !trade.denialEnds && !this.#denied.has(request.key)) {
        this.#denied.add(request.key);
        return [trade.absent, answerMs];
      }
      return [fate?.kind === "other key" ? foundOther(trade) : this.#found(request), answerMs];
    }
    if (request.path === "/abort") return [this.#abort(request, fate?.end === "other"), answerMs];
    if (request.path === "/check_copy") return [this.#copy(request), answerMs];
    return this.#begin(request, fate);
  }

  #begin(request: Request, fate: FullFate | undefined): readonly [string | undefined, number] {
    const { trade } = this;
    if (fate?.kind === "refused") {
      this.#refused.add(`${request.path} ${request.operation}`);
      return [trade.refused, answerMs];
    }
    if (fate?.kind === "behind") {
      this.#time.after(Math.min(fate.takesMs, behindMsMax), () => this.#run(request, { ...fate, takesMs: 0 }));
      return [trade.unsure(request.path, fate.end), answerMs];
    }
    const entry = this.#run(request, fate);
    if (entry === undefined) return [trade.absent, answerMs];
    const takesMs = entry.atMs - this.#time.nowMs;
    if (trade.startEnds && takesMs <= blocksMsMax) return [trade.started(entry, entry.end), takesMs + answerMs];
    return [trade.started(entry, this.#stand(entry)), answerMs];
  }

  /** Undefined where there is nothing to take back. */
  #run(
    { path, key, operation, json }: Request,
    { end, takesMs }: Pick<FullFate, "end" | "takesMs"> = atOnce,
  ): Entry | undefined {
    const { trade } = this;
    const name = this.#takesNames ? scalarText(json["trans"]) : undefined;
    const before = this.#isIdempotent(path, key, name) ? this.#entries(path, operation).at(-1) : undefined;
    if (before !== undefined && this.#stand(before) !== "gone") return before;
    const isSale = (entry: Entry, place: number) =>
      entry.path === trade.sale && entry.key === key && this.#isKept(entry, place);
    const hasSale = () => this.#ledger.some((entry, place) => isSale(entry, place) && this.#stand(entry) !== "gone");
    if (path === trade.back && trade.backNeedsSale && !hasSale()) return undefined;
    const id = name ?? String(++this.#ids);
    // What nobody can ask about is over when it is answered.
    const isAsked = trade.contract !== "qr" || path === trade.sale;
    const { nowMs: beganMs } = this.#time;
    const atMs = beganMs + (isAsked ? takesMs : 0);
    const amount = scalarText(json["amount"]);
    const entry = { id, key, path, operation, amount, end: trade.ends[end], beganMs, atMs, copies: 0 };
    this.#ledger.push(entry);
    this.onRun(path, operation, this.timesRun(path, operation));
    return entry;
  }

  /**
   * The same once more is the one that there is (bank.md, Fields; fiscal.md, Idempotency; of qr where the till's name for it stands, for
   * which two couldn't be told apart): so it is for tills that count on it. The others', of which posline promises that each is sent once,
   * are carried out as often as they come; and bank's cancels (bank.md, rule 4).
   */
  #isIdempotent(path: string, key: string, name: string | undefined): boolean {
    const { contract, sale, backIsIdempotent } = this.trade;
    if (!isClientKey(key)) return false;
    return path === sale ? contract !== "qr" || name !== undefined : backIsIdempotent;
  }

  #found({ key, json }: Request): string {
    const { trade } = this;
    const isIt = (entry: Entry, place: number) =>
      entry.key === key &&
      this.#isKept(entry, place) &&
      this.#stand(entry) !== "gone" &&
      (trade.contract !== "qr" || (entry.path === trade.sale && entry.id === json["trans"]));
    const entry = this.#ledger.findLast(isIt);
    return entry === undefined ? trade.absent : trade.found(entry, this.#stand(entry));
  }

  /** Prints a closed document's copy, by the document's number. */
  #copy({ json }: Request): string {
    const entry = this.#ledger.find(({ id }) => id === String(json["documentID"]));
    if (entry === undefined) return this.trade.absent;
    this.onRun("/check_copy", entry.key, ++entry.copies);
    return '{"status":"success","code":0}';
  }

  /** Takes an open document away. Of bank it is an attempt, and may be answered so though it came too late (bank.md, Endpoints). */
  #abort({ key }: Request, isTooLate: boolean): string {
    const open = this.#ledger.findLast((entry) => entry.key === key && this.#stand(entry) === "in progress");
    if (open === undefined) return this.trade.absent;
    if (this.trade.contract !== "bank" || !isTooLate) {
      open.end = "gone";
      open.atMs = this.#time.nowMs;
    }
    return '{"status":"success","code":0}';
  }
}
