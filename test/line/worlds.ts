import assert from "node:assert/strict";
import fc from "fast-check";
import type { LineConfig } from "../../src/config/config.ts";
import { idleProbeMsMin } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import { type ContractName, contractNames } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { type ContractService, lineService } from "../../src/line/caller.ts";
import type { Ending, LineRequest } from "../../src/line/exchange.ts";
import type { LineObserve } from "../../src/line/line.ts";
import type { Framing } from "../../src/wire/decoded.ts";
import { frame } from "../support/fake-device.ts";
import { strayed, strayOf } from "../support/stray-bytes.ts";
import { bothReplies, questionReply, type SecondKind, secondKinds } from "../support/terminal.ts";
import { configOf, idOf, merchantId, requestFor } from "./lines.ts";
import { SimulatedDevice, SimulatedLine } from "./simulated-line.ts";
import { Timeline } from "./timeline.ts";

/**
 * Random lives of lines, over a terminal that does its worst within what a terminal may do: what the safety of a line is tried on, and
 * what its recorder is.
 */

const lateReplyMs = 30_000;

/** What the terminal does with one request. */
export interface Fate {
  readonly kind: "answer" | "request lost" | "reply lost" | "corrupt" | "torn" | "error" | "strays" | "in pieces";
  readonly delayMs: number;
}

export type Step =
  | {
      readonly do: "call";
      readonly service: ContractName;
      readonly kind: "money" | "query" | "probe-shaped" | "second-shaped";
      readonly timeoutMs: number;
      /** What precedes its first byte, for a call for money: how long it takes, and how it ends. */
      readonly before?: { readonly ms: number; readonly kind: "done" | "failed" | "never" };
      /** After how many milliseconds its caller leaves. */
      readonly leavesMs?: number;
    }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "unplug" | "plug" | "restart" | "stray" };

/**
 * A terminal whose firmware is of another version: to the probes of these services it answers something else than their contracts say, from
 * a step on, as soon as it has answered all that it was asked before.
 */
export interface OddFirmware {
  readonly services: readonly ContractName[];
  readonly answer: string;
  readonly fromStep: number;
}

/** A terminal that answers each queue in order: one queue for all, or one a service. */
class FifoTerminal {
  readonly device: SimulatedDevice;
  /** Ids of calls, in the order in which they came. */
  readonly seen: string[] = [];
  healthy = false;
  /** The version that it gets when it has nothing to answer, and the one that it has. */
  update: OddFirmware | undefined;
  #odd: OddFirmware | undefined;
  onCall: (id: string) => void = () => {};
  readonly #fates: readonly Fate[];
  readonly #apart: boolean;
  readonly #second: SecondKind;
  readonly #ownFateOneIn: number;
  #own = 0;
  readonly #slowWhenQueued: boolean;
  readonly #queues = new Map<string, { framing: Framing; text: string; fate: Fate; queued: boolean }[]>();
  readonly #time: Timeline;
  #next = 0;
  /** When the last bytes that were put in have left. */
  #sentMs = 0;

  constructor(time: Timeline, { fates, apart, slowWhenQueued, second, ownFateOneIn = 1 }: World) {
    this.#ownFateOneIn = ownFateOneIn;
    this.#time = time;
    this.device = new SimulatedDevice(time, (framing, text) => this.#take(framing, text));
    this.#fates = fates;
    this.#apart = apart;
    this.#second = second;
    this.#slowWhenQueued = slowWhenQueued;
  }

  get idle(): boolean {
    return [...this.#queues.values()].every((queue) => queue.length === 0);
  }

  #take(framing: Framing, text: string): void {
    if (this.idle) this.#odd = this.update;
    const id = idOf(text);
    if (id !== "") {
      this.seen.push(id);
      this.onCall(id);
    }
    const isSpared = this.healthy || (id === "" && ++this.#own % this.#ownFateOneIn !== 0);
    const fate = isSpared
      ? { kind: "answer" as const, delayMs: 5 }
      : (this.#fates[this.#next++ % this.#fates.length] ?? never());
    if (fate.kind === "request lost") return;
    const key = this.#apart ? serviceOf(framing, text) : "all";
    const queue = this.#queues.get(key) ?? [];
    this.#queues.set(key, queue);
    queue.push({ framing, text, fate, queued: queue.length > 0 });
    if (queue.length === 1) this.#work(queue);
  }

  #work(queue: { framing: Framing; text: string; fate: Fate; queued: boolean }[]): void {
    const [first] = queue;
    if (first === undefined) return;
    const { kind, delayMs } = first.fate;
    const isProbeShaped = idOf(first.text) === "";
    // A reply that never comes takes no time: silence while it owes would be longer than `lateReplyMs` otherwise.
    const quick = kind === "reply lost" || (isProbeShaped && first.queued && !this.#slowWhenQueued);
    this.#time.after(quick ? Math.min(delayMs, 100) : delayMs, () => {
      this.#answer(first);
      queue.shift();
      this.#work(queue);
    });
  }

  #answer({ framing, text, fate: { kind, delayMs } }: { framing: Framing; text: string; fate: Fate }): void {
    const id = idOf(text);
    const isOwn = id === "" || isOwnShaped(id);
    const isOdd = isOwn && this.#odd?.services.includes(serviceOf(framing, text)) === true;
    const odd = isOdd ? this.#odd?.answer : undefined;
    const own = id === "" ? questionReply({ framing, text, number: 0 }, this.#second) : undefined;
    if (id === "" && own === undefined) return;
    const good = odd ?? own ?? (isOwnShaped(id) ? ownShape(framing, id) : `{"status":"success","id":"${id}"}`);
    const bytes = frame(framing, kind === "error" ? `{"status":"error","code":5,"id":"${id}"}` : good);
    if (kind === "reply lost") return;
    if (kind === "corrupt") bytes.writeUInt8(bytes.readUInt8(bytes.length - 4) ^ 0x41, bytes.length - 4);
    const sent = kind === "torn" ? bytes.subarray(0, bytes.length >> 1) : bytes;
    if (kind === "strays") for (const [piece, ms] of strayed(sent, strayOf(delayMs))) this.#send(piece, ms);
    else if (kind !== "in pieces") this.#send(sent, 0);
    else for (let from = 0; from < sent.length; from += 20) this.#send(sent.subarray(from, from + 20), 40);
  }

  /** Sends bytes behind those that are on their way, and nothing for a while after them. */
  #send(bytes: Buffer, pauseMs: number): void {
    const { now } = this.#time;
    const atMs = Math.max(now, this.#sentMs);
    this.#sentMs = atMs + pauseMs;
    if (atMs === now) this.device.send(bytes);
    else this.#time.after(atMs - now, () => this.device.send(bytes));
  }
}

function serviceOf(framing: Framing, text: string): ContractName {
  if (framing === "stx") return "fiscal";
  return text.startsWith(":8887") ? "qr" : "bank";
}

function never(): never {
  throw new Error("there is at least one fate");
}

/** A call of a till that asks what posline asks: by its id it is known which of the two. */
const isOwnShaped = (id: string) => id.startsWith("B") || id.startsWith("D");

/** What such a call is answered: no id in it, by which it could be told from the answer to posline's own question. */
function ownShape(framing: Framing, id: string): string {
  if (id.startsWith("D")) return framing === "stx" ? bothReplies.shift : bothReplies.terminals;
  return framing === "stx" ? bothReplies.supported : bothReplies.bankSupported;
}

// Quick answers, and those that make a call time out and probes pile up.
const delayMs = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 1, max: 50 }) },
  { weight: 4, arbitrary: fc.integer({ min: 1_500, max: 20_000 }) },
);
const fateOf = (kinds: readonly Fate["kind"][]): fc.Arbitrary<Fate> =>
  fc.record({ kind: fc.oneof({ weight: 6, arbitrary: fc.constant("answer" as const) }, fc.constantFrom(...kinds)), delayMs });
export const garbling = ["request lost", "reply lost", "corrupt", "torn", "strays", "in pieces"] as const;

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("call" as const),
      service: fc.constantFrom("bank" as const, "bank" as const, "bank" as const, "qr" as const, "fiscal" as const),
      kind: fc.constantFrom(
        ...(["money", "money", "money", "money", "query", "query", "probe-shaped", "second-shaped"] as const),
      ),
      timeoutMs: fc.integer({ min: 3_001, max: 6_000 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 0, max: 15_000 }) }) },
  // In which a line comes in step.
  { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 30_000, max: 120_000 }) }) },
  { weight: 1, arbitrary: fc.constant({ do: "unplug" as const }) },
  { weight: 2, arbitrary: fc.constant({ do: "plug" as const }) },
  { weight: 1, arbitrary: fc.constant({ do: "restart" as const }) },
);

export interface World {
  readonly fates: readonly Fate[];
  readonly steps: readonly Step[];
  readonly apart: boolean;
  readonly signed: boolean;
  readonly slowWhenQueued: boolean;
  /** Whether an idle line asks its terminal between the calls, as often as it may. */
  readonly probes: boolean;
  readonly second: SecondKind;
  /** One in so many questions of posline's own meets its fate; the others are answered at once. Otherwise hardly a call would go out. */
  readonly ownFateOneIn?: number | undefined;
  readonly odd?: OddFirmware | undefined;
}

const shapes = { money: undefined, query: undefined, "probe-shaped": "probe", "second-shaped": "second" } as const;

function requestOf(step: Step & { do: "call" }, id: string): LineRequest {
  const { service, kind, timeoutMs, before } = step;
  const shapedAs = service === "qr" ? undefined : shapes[kind];
  return requestFor(`${shapedAs === undefined ? "C" : shapedAs === "probe" ? "B" : "D"}${id}`, {
    service,
    route: kind === "money" ? "/sale" : "/check",
    replyTimeoutMs: timeoutMs,
    repeatable: kind !== "money",
    shapedAs,
    // What it does is the world's affair; that it is there says that the call is to be recorded.
    beforeSend: before === undefined || kind !== "money" ? undefined : async () => {},
  });
}

/** A call of the world, and how it ended. */
interface Called {
  readonly step: Step & { do: "call" };
  readonly request: LineRequest;
  /** Its record was done. */
  isRecorded: boolean;
  ending: Ending | undefined;
}

/** A line of a world, as those who watch it know it. */
export interface WorldLine {
  readonly name: string;
  readonly config: LineConfig;
  readonly services: readonly ContractService[];
}

/** One life of a till, its bridge and its terminal. Throws when a promise is broken. */
export class Life {
  readonly #world: World;
  readonly #time = new Timeline();
  readonly #terminal: FifoTerminal;
  readonly #calls = new Map<string, Called>();
  readonly #watch: (line: WorldLine) => LineObserve | undefined;
  #line: SimulatedLine;

  /** @param watch Who sees what happens on each line of it; nobody where absent. */
  constructor(world: World, watch: (line: WorldLine) => LineObserve | undefined = () => undefined) {
    this.#world = world;
    this.#watch = watch;
    this.#terminal = new FifoTerminal(this.#time, world);
    this.#terminal.onCall = (id) => this.#checkAlone(id);
    this.#line = this.#started();
  }

  run(): void {
    const haveEnded = () => [...this.#calls.values()].every(({ ending }) => ending !== undefined);
    for (const [index, each] of this.#world.steps.entries()) {
      if (index === this.#world.odd?.fromStep) this.#terminal.update = this.#world.odd;
      this.#do(each);
    }
    this.#terminal.healthy = true;
    this.#terminal.device.plugged = true;
    assert.ok(this.#time.until(haveEnded), "every call ends");
    this.#check();
    const isStill = () => this.#terminal.idle && this.#line.state === "idle" && this.#line.takesCalls;
    assert.ok(this.#time.until(isStill), "the line is usable again");
    // A torn frame from before may still have its time.
    this.#time.advance(10_000);
    assert.ok(this.#time.until(isStill), "the line stays usable");
    for (const service of contractNames) this.#call({ do: "call", service, kind: "money", timeoutMs: 5_000 });
    assert.ok(this.#time.until(haveEnded), "the last calls end");
    this.#check();
    for (const { ending } of [...this.#calls.values()].slice(-3)) {
      assert.ok(!(ending instanceof Fault), `and is answered: ${ending instanceof Fault ? ending.message : ""}`);
    }
  }

  #started(): SimulatedLine {
    const id = this.#world.signed ? merchantId : undefined;
    const rules = { crc16: "arc", quiet: false, merchantId: id } as const;
    const idleProbeMs = this.#world.probes ? idleProbeMsMin : 0;
    const config = configOf({ lateReplyMs, queueWaitMs: 60_000, queueCallsMax: 8, idleProbeMs });
    const services = contractNames.map((service) => lineService(contracts[service], rules));
    const line = new SimulatedLine({
      ...{ config, services },
      observe: this.#watch({ name: "till", config, services }),
      time: this.#time,
      device: this.#terminal.device,
      record: (request, done) => this.#record(request, done),
    });
    line.start();
    return line;
  }

  #do(step: Step): void {
    if (step.do === "call") this.#call(step);
    else if (step.do === "wait") this.#time.advance(step.ms);
    else if (step.do === "unplug") this.#terminal.device.unplug();
    else if (step.do === "plug") this.#terminal.device.plugged = true;
    else {
      this.#line.stop();
      this.#line = this.#started();
    }
  }

  #call(step: Step & { do: "call" }): void {
    const request = requestOf(step, String(this.#calls.size + 1));
    const called: Called = { step, request, isRecorded: false, ending: undefined };
    const id = idIn(request);
    this.#calls.set(id, called);
    const leave = this.#line.call(request, (ending) => {
      assert.equal(called.ending, undefined, `${id} ended twice`);
      called.ending = ending;
    });
    if (step.leavesMs !== undefined) this.#time.after(step.leavesMs, leave);
  }

  /** A disk that takes its time, fails, or hangs. */
  #record(request: LineRequest, done: (fault: Fault | undefined) => void): void {
    const called = this.#calls.get(idIn(request));
    const { ms, kind } = called?.step.before ?? { ms: 0, kind: "done" };
    if (kind === "never") return;
    this.#time.after(ms, () => {
      if (kind === "done" && called !== undefined) called.isRecorded = true;
      done(kind === "done" ? undefined : new Fault("unavailable", "Cannot send: its record can't be written"));
    });
  }

  /** When a request comes, each that came before has ended, one way or the other. */
  #checkAlone(id: string): void {
    const called = this.#calls.get(id);
    if (called?.request.beforeSend !== undefined) assert.ok(called.isRecorded, `${id} was sent and not recorded`);
    for (const other of this.#terminal.seen.slice(0, -1)) {
      if (other === id) continue;
      assert.notEqual(this.#calls.get(other)?.ending, undefined, `${id} was sent while ${other} was in flight`);
    }
  }

  #check(): void {
    for (const [id, { request, ending }] of this.#calls) {
      const sendings = this.#terminal.seen.filter((each) => each === id).length;
      if (ending instanceof Fault) {
        if (ending.outcome === "not-sent") assert.equal(sendings, 0, `${id} was sent, and called not sent: ${ending.message}`);
      } else if (ending !== undefined) {
        const text = Buffer.concat(ending.payload).toString();
        const isOwn = isOwnShaped(id) && !text.includes('"id"');
        const isOdd = text === this.#world.odd?.answer;
        const good = ownShape(request.framing, id);
        if (isOwn) assert.ok(isOdd || text === good || isListOf(text, id), `${id} was answered ${text}`);
        else assert.equal(idOf(text), id, `${id} was answered ${text}`);
      }
      assert.ok(sendings <= (request.repeatable ? 2 : 1), `${id} was sent ${sendings} times`);
    }
  }
}

/** The probe's own answer to a till that asks the same, whatever it lists. */
const isListOf = (text: string, id: string) => id.startsWith("B") && text.includes("operations");

const idIn = (request: LineRequest) => idOf(Buffer.concat(request.payload).toString());

/** Calls for money that must be recorded before they go out, on a disk that is slow, fails or hangs, and callers that leave. */
export const recordedStep: fc.Arbitrary<Step> = fc
  .tuple(
    step,
    fc.record({
      ms: fc.oneof(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 1_000, max: 20_000 })),
      kind: fc.constantFrom("done" as const, "done" as const, "done" as const, "failed" as const, "never" as const),
    }),
    fc.option(fc.integer({ min: 1, max: 8_000 }), { nil: undefined, freq: 3 }),
  )
  .map(([each, before, leavesMs]) =>
    each.do === "call" ? { ...each, before, ...(leavesMs === undefined ? {} : { leavesMs }) } : each,
  );

/** A terminal that is of another version from the beginning, or from some step on. */
export const oddFirmware: fc.Arbitrary<OddFirmware> = fc.record({
  services: fc.subarray([...contractNames], { minLength: 1 }),
  answer: fc.constantFrom('{"status":"success"}', '{"status":"success","data":{"operations":null}}', "BUSY"),
  fromStep: fc.oneof(fc.constant(0), fc.nat({ max: 12 })),
});

export const worldOf = (
  kinds: readonly Fate["kind"][],
  slowWhenQueued: boolean,
  {
    steps = step,
    odd = fc.constant(undefined),
  }: { steps?: fc.Arbitrary<Step>; odd?: fc.Arbitrary<OddFirmware | undefined> } = {},
): fc.Arbitrary<World> =>
  fc.record({
    fates: fc.array(fateOf(kinds), { minLength: 1, maxLength: 24 }),
    steps: fc.array(steps, { minLength: 1, maxLength: 24 }),
    apart: fc.boolean(),
    signed: fc.boolean(),
    slowWhenQueued: fc.constant(slowWhenQueued),
    probes: fc.boolean(),
    second: fc.constantFrom(...secondKinds, "answered" as const),
    ownFateOneIn: fc.constantFrom(1, 10, 40, 200),
    odd,
  });
