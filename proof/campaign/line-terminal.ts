import fc from "fast-check";
import { type ContractName, contractNames } from "../../src/core/call.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { idOf } from "../../test/line/lines.ts";
import { SimulatedDevice } from "../../test/line/simulated-line.ts";
import type { Timeline } from "../../test/line/timeline.ts";
import { frame } from "../../test/support/fake-device.ts";
import { strayed, strayOf } from "../../test/support/stray-bytes.ts";
import { bothReplies, probeReplies, questionReply, type SecondKind } from "../../test/support/terminal.ts";
import { between, type Drawn, mostly, often, one } from "./draw.ts";

/**
 * A terminal on a line of the campaign, with a ledger of what it heard whole. It answers in order, one queue for all or one a service, and
 * does with each request what its fate says. It may hang for hours, be off, and take its time.
 */

/** All that stay within what docs/limits.md says can be detected. */
export const detectable = [
  ...(["request lost", "reply lost", "corrupt", "dropped", "torn", "noise first", "strays", "split"] as const),
  "question twice",
] as const;

/** What of a fate's kinds a world may have. */
export type FateKind = "answer" | (typeof detectable)[number] | "twice" | "error";

/** What the terminal does with one request. */
export const fateOf = (kinds: readonly FateKind[]) =>
  fc.record({
    kind: often([6, fc.constant<FateKind>("answer")], [4, one(...kinds)]),
    // When the answer comes, in milliseconds: soon, late, or around the moment at which its call, or the wait for its probe, is over.
    delay: often(
      [6, fc.record({ from: one("request"), ms: between(1, 50) })],
      [2, fc.record({ from: one("request"), ms: between(1_500, 20_000) })],
      [3, fc.record({ from: one("deadline"), ms: one(-2, -1, 0, 1, 2, 99, 100, 101) })],
    ),
    // Where bytes are changed, dropped or parted: a share of the frame.
    at: fc.double({ min: 0.05, max: 0.99, noNaN: true }),
    // Milliseconds between the pieces of a split answer, or between an answer and its copy.
    pauseMs: one(0, 1, 5, 20, 99, 100, 101, 1_000),
  });

export type Fate = Drawn<ReturnType<typeof fateOf>>;

interface Queued {
  readonly framing: Framing;
  readonly text: string;
  readonly fate: Fate;
  readonly heardMs: number;
  readonly wasQueued: boolean;
}

/** It may be an answer to anything: the first one can't be told from a call's (docs/limits.md). */
const bareSuccess = '{"status":"success"}';

/**
 * To probes of these services it answers something else than their contracts say, as soon as it has answered so many requests. Most terminals
 * answer as the contracts say.
 */
export const oddFirmware = mostly(
  9,
  undefined,
  fc.record({
    services: fc.subarray([...contractNames], { minLength: 1 }),
    answer: one(bareSuccess, "BUSY"),
    fromRequest: fc.oneof(fc.constant(0), fc.nat({ max: 200 })),
  }),
);

export type OddFirmware = NonNullable<Drawn<typeof oddFirmware>>;

export interface TerminalPlan {
  readonly fates: readonly Fate[];
  /** Every so many requests one meets a fate; the others are answered at once. */
  readonly fateEvery: number;
  /** Each service has a queue of its own. */
  readonly apart: boolean;
  /** Answers that piled up behind another take their full time too. */
  readonly slowWhenQueued: boolean;
  readonly odd: OddFirmware | undefined;
  /** What it does with the second question. */
  readonly second: SecondKind;
  /** It hangs for so long from the start, and then takes so long for each answer, in turns. */
  readonly hangsFirst?: { readonly ms: number; readonly paces: readonly number[] } | undefined;
  /** What comes right behind each answer, in hexadecimal. */
  readonly behind?: string;
}

const noFate: Fate = { kind: "answer", delay: { from: "request", ms: 5 }, at: 0, pauseMs: 0 };

export class LineTerminal {
  readonly device: SimulatedDevice;
  /** Ids of calls that came whole, in their order. */
  readonly seen: string[] = [];
  /** How many probes came. */
  probes = 0;
  healthy = false;
  onCall: (id: string) => void = () => {};
  onSent: (bytes: Buffer, why: string) => void = () => {};
  /** A right answer to a call is sent, among stray bytes. */
  onStrayed: (id: string) => void = () => {};
  /** When a request's answer is overdue for its caller, on the time line. */
  deadlineOf: (id: string) => number | undefined = () => undefined;
  readonly #plan: TerminalPlan;
  readonly #time: Timeline;
  readonly #queues = new Map<string, Queued[]>();
  #next = 0;
  #asked = 0;
  /** What it answers to probes of these services, once it does. */
  #odd: OddFirmware | undefined;
  #oddAnswers = 0;
  #sentMs = 0;
  /** Pieces that wait for their moment. */
  #onTheirWay = 0;
  #isOff = false;
  #hangsUntilMs = 0;
  #paces: readonly number[] = [];
  #paced = 0;

  constructor(time: Timeline, plan: TerminalPlan) {
    this.#time = time;
    this.#plan = plan;
    this.device = new SimulatedDevice(time, (framing, text) => this.#take(framing, text));
    if (plan.hangsFirst === undefined) return;
    this.hang(plan.hangsFirst.ms);
    this.pace(plan.hangsFirst.paces);
  }

  get isIdle(): boolean {
    return this.#onTheirWay === 0 && [...this.#queues.values()].every((queue) => queue.length === 0);
  }

  /** It hangs or is off: what it is asked now is answered late, or never. */
  get isAway(): boolean {
    return this.#isOff || this.#time.now < this.#hangsUntilMs;
  }

  /** It answers nothing for so long, and then what it was asked. */
  hang(ms: number): void {
    this.#hangsUntilMs = this.#time.now + ms;
    // Who waits for its end looks again then.
    this.#time.after(ms, () => {});
  }

  /** It forgets what it was asked, and hears nothing for so long. */
  switchOff(ms: number): void {
    this.#isOff = true;
    for (const queue of this.#queues.values()) queue.length = 0;
    this.#time.after(ms, () => {
      this.#isOff = false;
    });
  }

  /** From now on its answers take so many milliseconds each, in turns; as their fates say where there are none. */
  pace(paces: readonly number[]): void {
    this.#paces = paces;
  }

  /** Whether it has begun to answer probes otherwise than before. */
  get hasChanged(): boolean {
    return this.#plan.odd?.fromRequest !== 0 && this.#oddAnswers > 0;
  }

  /** Whether an answer is the first bare success by which it answered a probe, where it answered rightly until then. */
  isFirstBareSuccess(text: string): boolean {
    return (
      text === bareSuccess && this.#odd?.answer === bareSuccess && this.#plan.odd?.fromRequest !== 0 && this.#oddAnswers === 1
    );
  }

  #take(framing: Framing, text: string): void {
    if (this.#isOff) return;
    const id = idOf(text);
    if (id === "") this.probes++;
    else {
      this.seen.push(id);
      this.onCall(id);
    }
    const { apart, odd } = this.#plan;
    // In the end its firmware isn't changed any more.
    if (odd !== undefined && !this.healthy && this.#asked++ >= odd.fromRequest && this.isIdle) this.#odd = odd;
    const fate = this.healthy ? noFate : this.#nextFate();
    if (fate.kind === "request lost") return;
    const key = apart ? serviceOf(framing, text) : "all";
    const queue = this.#queues.get(key) ?? [];
    this.#queues.set(key, queue);
    queue.push({ framing, text, fate, heardMs: this.#time.now, wasQueued: queue.length > 0 });
    if (queue.length === 1) this.#work(queue);
  }

  #nextFate(): Fate {
    const { fates, fateEvery } = this.#plan;
    const turn = this.#next++;
    return (turn % fateEvery === 0 ? fates[(turn / fateEvery) % fates.length] : undefined) ?? noFate;
  }

  #work(queue: Queued[]): void {
    const [first] = queue;
    if (first === undefined) return;
    this.#time.after(this.#delayOf(first), () => this.#finish(queue, first));
  }

  #finish(queue: Queued[], first: Queued): void {
    // It was switched off since.
    if (queue[0] !== first) return;
    const hangsMs = this.#hangsUntilMs - this.#time.now;
    if (hangsMs > 0) {
      this.#time.after(hangsMs + this.#delayOf(first), () => this.#finish(queue, first));
      return;
    }
    this.#answer(first);
    queue.shift();
    this.#work(queue);
  }

  #delayOf({ fate, text, heardMs, wasQueued }: Queued): number {
    const pace = this.healthy ? undefined : this.#paces[this.#paced++ % this.#paces.length];
    if (pace !== undefined) return pace;
    const id = idOf(text);
    const { from, ms } = fate.delay;
    const dueMs = id === "" ? heardMs + probeMs : (this.deadlineOf(id) ?? heardMs);
    const delayMs = from === "request" ? ms : Math.max(1, dueMs + ms - this.#time.now);
    // A reply that never comes takes no time: silence while it owes would be longer than `lateReplyMs` otherwise.
    const isQuick = fate.kind === "reply lost" || (id === "" && wasQueued && !this.#plan.slowWhenQueued);
    return isQuick ? Math.min(delayMs, 100) : delayMs;
  }

  #answer({ framing, text, fate: { kind, at, pauseMs } }: Queued): void {
    if (kind === "reply lost") return;
    const id = idOf(text);
    const isOwn = id === "" || isOwnShaped(id);
    const odd = isOwn && this.#odd?.services.includes(serviceOf(framing, text)) ? this.#odd.answer : undefined;
    const own = id === "" ? questionReply({ framing, text, number: 0 }, this.#plan.second) : undefined;
    if (id === "" && own === undefined && odd === undefined && kind !== "error") return;
    const good =
      odd ?? own ?? (isOwnShaped(id) ? ownShape(framing, id, this.#plan.second) : `{"status":"success","id":"${id}"}`);
    if (odd !== undefined && kind !== "error") this.#oddAnswers++;
    const bytes = frame(framing, kind === "error" ? `{"status":"error","code":5,"id":"${id}"}` : good);
    const cut = Math.max(1, Math.floor(bytes.length * at));
    switch (kind) {
      case "corrupt":
        bytes.writeUInt8(bytes.readUInt8(cut) ^ 0x41, cut);
        this.#send(bytes, 0, "corrupt");
        break;
      case "dropped":
        this.#send(Buffer.concat([bytes.subarray(0, cut), bytes.subarray(cut + 3)]), 0, "with bytes missing");
        break;
      case "torn":
        this.#send(bytes.subarray(0, cut), 0, "torn");
        break;
      case "noise first":
        this.#send(Buffer.from("AT\r\r"), 0, "noise");
        this.#send(bytes, 0, "answer");
        break;
      case "strays":
        if (odd === undefined) this.onStrayed(id);
        for (const [piece, ms] of strayed(bytes, strayOf(Math.floor(at * 1_000_003)))) this.#send(piece, ms, "answer, strayed");
        break;
      case "split":
        for (let from = 0; from < bytes.length; from += cut) this.#send(bytes.subarray(from, from + cut), pauseMs, "piece");
        break;
      case "twice":
        this.#send(bytes, pauseMs, "answer");
        this.#send(bytes, 0, "its copy");
        break;
      case "question twice":
        // In one read: a copy behind the last answer of a recovery would come while the next call is in flight, which nobody can tell.
        this.#send(id === "" && this.#tellsCopies(framing, text) ? Buffer.concat([bytes, bytes]) : bytes, 0, "answer, twice");
        break;
      default:
        this.#send(Buffer.concat([bytes, Buffer.from(this.#plan.behind ?? "", "hex")]), 0, kind);
    }
  }

  /** Whether the second question tells a copy of an answer to posline's own questions from that answer. */
  #tellsCopies(framing: Framing, text: string): boolean {
    return this.#plan.second === "answered" && serviceOf(framing, text) !== "qr";
  }

  /** Sends bytes behind those that are on their way, and nothing for a while after them. */
  #send(bytes: Buffer, pauseMs: number, why: string): void {
    const { now } = this.#time;
    const atMs = Math.max(now, this.#sentMs);
    this.#sentMs = atMs + pauseMs;
    const send = () => {
      this.onSent(bytes, why);
      this.device.send(bytes);
    };
    if (atMs === now) {
      send();
      return;
    }
    this.#onTheirWay++;
    this.#time.after(atMs - now, () => {
      this.#onTheirWay--;
      send();
    });
  }
}

function serviceOf(framing: Framing, text: string): ContractName {
  if (framing === "stx") return "fiscal";
  return text.startsWith(":8887") ? "qr" : "bank";
}

/** Milliseconds after which a recovery asks again, and an idle line's own question is given up. */
const probeMs = 2_000;

/** A call of a till that asks what posline asks: by its id it is known which of the two. */
export const isOwnShaped = (id: string) => id.startsWith("B") || id.startsWith("D");

/** What such a call is answered: no id in it, by which it could be told from the answer to posline's own question. */
function ownShape(framing: Framing, id: string, second: SecondKind): string {
  if (id.startsWith("D")) return framing === "stx" ? bothReplies.shift : bothReplies.terminals;
  const { supported, bankSupported } = second === "not offered" ? probeReplies : bothReplies;
  return framing === "stx" ? supported : bankSupported;
}

/** Whether an answer is of the shape that such a call is answered in. */
export function isShapedFor(id: string, text: string): boolean {
  if (id.startsWith("B")) return text.includes("operations");
  return text.includes('"terminals":') || text.includes("isShiftOpen");
}
