import assert from "node:assert/strict";
import fc from "fast-check";
import type { LineConfig } from "../../src/config/config.ts";
import { headerMs, idleProbeMsMin } from "../../src/config/limits.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { ContractName } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { bytesOf } from "../../src/core/pieces.ts";
import { msPerByte } from "../../src/device/transport.ts";
import { type ContractService, lineService } from "../../src/line/caller.ts";
import type { LineEffect } from "../../src/line/events.ts";
import type { Ending, LineRequest } from "../../src/line/exchange.ts";
import { corruptQuietMs, payloadMsMax } from "../../src/line/limits.ts";
import type { LineObserve } from "../../src/line/line.ts";
import type { Question } from "../../src/recovery/standing.ts";
import { frameOf } from "../../src/wire/framing.ts";
import { configOf, idOf, merchantId, requestFor } from "../../test/line/lines.ts";
import { type Acceptance, SimulatedLine } from "../../test/line/simulated-line.ts";
import { Timeline } from "../../test/line/timeline.ts";
import { secondKinds } from "../../test/support/terminal.ts";
import { between, type Drawn, deed, mostly, often, one } from "./draw.ts";
import {
  detectable,
  type FateKind,
  fateOf,
  isOwnShaped,
  isShapedFor,
  LineTerminal,
  oddFirmware,
  type TerminalPlan,
} from "./line-terminal.ts";
import { type Counts, emptyTallyOf, type TallyOf } from "./tally.ts";

/**
 * Random lives of two lines under one clock: calls of several services, a terminal on each line that does with each request what its
 * fate says, kernels that take bytes slowly, unplugs, noise, callers that leave, disks that fail, SIGTERM and kill. All of it happens in
 * one synchronous loop, so that a second makes thousands of exchanges. What is promised is checked at each step.
 */

/** Which lines there are, with the contracts of their services. */
const lineServices: readonly (readonly ContractName[])[] = [
  ["bank", "qr", "fiscal"],
  ["bank", "fiscal"],
];

const lateReplyMs = 30_000;
const queueCallsMax = 6;
const queueWaitMs = 15_000;

/** What lives come to, in the order of the table: by name its words, and a remark. Of times the longest counts, in milliseconds. */
export const lineCounts = {
  exchanges: ["exchanges", "requests of callers that a terminal heard whole"],
  lives: ["lives of two lines"],
  steps: ["steps drawn"],
  events: ["decisions", "of engines, each checked"],
  probes: ["probes"],
  calls: ["calls"],
  answered: ["calls answered"],
  notSent: ["calls not sent"],
  unknown: ["calls unknown"],
  // Nobody was told anything.
  killed: ["calls whose process was killed", "these four make up all calls"],
  unplugs: ["unplugs"],
  kills: ["kills"],
  sigterms: ["SIGTERMs"],
  // A till's own question of a probe's route got the answer to an earlier probe.
  sameQuestion: ["tills' probe-shaped questions answered by an earlier probe's answer", "read-only, and the same question"],
  strayed: ["right answers in time among stray bytes"],
  strayedLost: ["of them not given to their call", "with half of another answer beside them"],
  away: ["terminals that hung or were switched off", "for seconds to hours, in worlds that last for days"],
  // From a call's coming to its end.
  longestMs: ["longest call"],
  recoveryMs: ["longest recovery", "of a terminal that is well, and has nothing left to answer"],
  undetectable: ["answers that nobody can tell from others", "copies after a pause, in worlds made for it"],
  beyond: ["exchanges in worlds made for it", "counted above too"],
  firstBareSuccess: [
    "first bare successes to a probe that a call got",
    "of terminals that answered rightly until then, and what calls got behind them: nobody can tell them either",
  ],
  firstUnknown: [
    "first calls unknown of terminals that had begun to answer probes otherwise",
    "their answers are taken for older ones, once",
  ],
} as const satisfies Counts;

export type LineTally = TallyOf<typeof lineCounts>;

export const emptyTally = () => emptyTallyOf(lineCounts);

// A step comes some time after the one before: at once, or around what a line waits for.
const soonMs = fc.oneof(
  one(0, 1, 49, 50, 51, 64, 99, 100, 101, 199, 200, 201),
  between(0, 6_000),
  one(1_999, 2_000, 2_001, 2_999, 3_000, 3_001, 14_999, 15_000, 15_001),
);
const line = fc.nat({ max: lineServices.length - 1 });

const call = deed("call", {
  line,
  service: fc.nat({ max: 2 }),
  kind: one("money", "money", "money", "money", "query", "query", "probe-shaped", "second-shaped", "shift"),
  urgent: often([7, fc.constant(false)], [1, fc.constant(true)]),
  timeoutMs: one(3_001, 4_000, 6_000),
  // What its record takes, for a call for money, and how that ends.
  record: fc.record({
    ms: often([6, one(0, 1, 5)], [1, between(100, 20_000)]),
    kind: often([12, fc.constant("done" as const)], [1, one("failed", "never")]),
  }),
  // After how many milliseconds its caller leaves.
  leavesMs: mostly(9, undefined, between(0, 8_000)),
});

type Call = Drawn<typeof call>;

/** What befalls a line, with so long before it. */
const befalls = (ms: fc.Arbitrary<number>) =>
  fc.oneof(
    deed(["noise", "kill"], { line, ms }),
    deed("unplug", { line, ms, awayMs: one(0, 1, 99, 100, 101, 5_000, 40_000) }),
    deed("sigterm", { line, graceMs: one(0, 1, 3_000, 10_000), ms }),
  );

/** Until all calls have ended. */
const settle = fc.constant({ do: "settle" as const });

const step = often([36, call], [4, deed("wait", { ms: soonMs })], [18, settle], [3, befalls(soonMs)]);

/** Milliseconds that a terminal is away, at most: some hundred questions of an idle line, more than are ever counted at ease. */
const awayMsMax = 3 * 3_600_000;

// From a moment to hours: what a till, a customer and a shop take.
const longMs = fc.oneof(soonMs, between(1_000, 60_000), between(60_000, awayMsMax));

/** How long answers take, in turns: an even pace, one that goes up and down, or as fast as ever. */
const paces = fc.oneof(
  fc.constant<number[]>([]),
  one(5, 150, 400, 700, 1_000, 2_500, 3_500, 4_000, 4_250, 5_000, 8_500, 10_000).map((ms) => [ms]),
  fc
    .record({ leastMs: between(5, 6_000), spreadMs: one(50, 300, 700, 2_000, 4_000) })
    .chain(({ leastMs, spreadMs }) => fc.array(between(leastMs, leastMs + spreadMs), { minLength: 2, maxLength: 30 })),
);

/**
 * A till that tries again and again, each time with a new call, until one is answered or so often: while the line recovers, once it may be
 * clean, or once a silence has settled all.
 */
const insisting = fc.record({
  call,
  everyMs: fc.oneof(between(4_000, 60_000), one(31_000, 310_000, 330_000)),
  times: between(2, 40),
});

type Insisting = Drawn<typeof insisting>;

const away = deed(["hang", "hang", "off"], {
  line,
  // How long it lasts, and how much of that is left when the world goes on.
  lastsMs: fc.oneof(between(5_000, 3_600_000), between(5_000, awayMsMax)),
  leftMs: fc.oneof(between(0, 60_000), between(60_000, 1_200_000), between(0, awayMsMax)),
  paces,
  // Who doesn't wait until it is well.
  till: fc.option(insisting, { nil: undefined }),
});

/** Days of a shop, in which terminals hang and are switched off. */
const longStep = often([30, call], [12, settle], [6, deed("wait", { ms: longMs })], [5, away], [1, befalls(longMs)]);

export type Step = Drawn<typeof longStep>;

const acceptance: fc.Arbitrary<Acceptance | undefined> = mostly(
  9,
  undefined,
  fc.record({ share: one(0, 0.5, 0.99), restMs: one(1, 50, 2_000, 4_000) }),
);

export interface LinePlan extends TerminalPlan {
  readonly hangsFirst?: (Required<TerminalPlan>["hangsFirst"] & { readonly till: Insisting }) | undefined;
  readonly acceptances: readonly (Acceptance | undefined)[];
}

export interface World {
  readonly steps: readonly Step[];
  readonly lines: readonly LinePlan[];
  readonly isSigned: boolean;
  readonly probesIdle: boolean;
  /** The terminal may do what nobody can detect without ids: a call that gets another's answer is then counted, and breaks nothing. */
  readonly isBeyond: boolean;
}

/** Worlds whose terminals do these things. */
export function worldOf(kinds: readonly FateKind[], isBeyond: boolean): fc.Arbitrary<World> {
  const linePlan = fc.record({
    fates: fc.array(fateOf(kinds), { minLength: 1, maxLength: 24 }),
    fateEvery: one(1, 2, 5, 20),
    apart: fc.boolean(),
    // Where probes are answered with errors, one that piled up is answered with the rest (see safety.test.ts).
    slowWhenQueued: fc.constant(!kinds.includes("error")),
    odd: oddFirmware,
    second: one(...secondKinds, "answered"),
    acceptances: fc.array(acceptance, { minLength: 1, maxLength: 8 }),
  });
  return fc.record({
    steps: fc.array(step, { minLength: 1, maxLength: 120, size: "max" }),
    lines: fc.tuple(linePlan, linePlan),
    // Unsigned, each recovery waits for a silence of 30 s.
    isSigned: mostly(9, true, fc.constant(false)),
    probesIdle: fc.boolean(),
    isBeyond: fc.constant(isBeyond),
  });
}

/** Most terminals end with their answer; some with CR LF, an ACK, or zeros, which pad a packet. */
const behind = often([4, fc.constant("")], [1, one("0d0a", "06", "000000", "00000000")]);

/** How long each terminal hangs from the start, how long its answers take then, and who tries meanwhile; most don't hang. */
const hangsFirst = fc.array(
  often([3, fc.constant(undefined)], [1, fc.record({ ms: between(20_000, 900_000), paces, till: insisting })]),
  { minLength: lineServices.length, maxLength: lineServices.length },
);

/**
 * Worlds that last for days, in which terminals hang, some from the start, are switched off, and take their time: what they were asked
 * before they answer hours later.
 */
export function longWorldOf(): fc.Arbitrary<World> {
  const steps = fc.array(longStep, { minLength: 1, maxLength: 60, size: "max" });
  return fc.tuple(worldOf(detectable, false), steps, behind, hangsFirst).map(([world, days, endsWith, first]) => ({
    ...world,
    steps: days,
    // What they are asked they answer most of the time: of one that never answered, a short silence is believed.
    lines: world.lines.map((plan, index) => ({
      ...plan,
      fateEvery: Math.max(5, plan.fateEvery),
      odd: undefined,
      behind: endsWith,
      hangsFirst: first[index],
    })),
    isSigned: true,
  }));
}

/** A call of the world, and how it ended. */
interface Called {
  readonly step: Call;
  readonly request: LineRequest;
  readonly cameMs: number;
  readonly lineLife: number;
  isRecorded: boolean;
  /** When the line wrote it last. */
  wroteMs: number | undefined;
  ending: Ending | undefined;
  isKilled: boolean;
  /** Its answer came in time, among stray bytes. */
  isStrayed: boolean;
}

/** One line with its terminal. */
interface Place {
  readonly index: number;
  readonly terminal: LineTerminal;
  readonly config: LineConfig;
  readonly services: readonly ContractService[];
  line: SimulatedLine;
  life: number;
  writes: number;
  /** The id of what is in flight, as the effects of its engine say. */
  inFlight: string | undefined;
}

export interface WatchedLine {
  readonly name: string;
  readonly config: LineConfig;
  readonly services: readonly ContractService[];
}

/** Who takes what happens. */
export interface Witness {
  say(atMs: number, text: string): void;
  watch(line: WatchedLine): LineObserve;
}

/** One life. Throws when a promise is broken. */
export class LineLife {
  readonly #world: World;
  readonly #tally: LineTally;
  readonly #witness: Witness | undefined;
  readonly #time = new Timeline();
  readonly #calls = new Map<string, Called>();
  /** Those of `#calls` that have neither ended nor been killed. */
  readonly #open = new Set<string>();
  /** Calls that got a bare success which answered a probe: their own answers come behind it. */
  readonly #misled = new Set<string>();
  readonly #places: readonly Place[];

  constructor(world: World, tally: LineTally, witness?: Witness) {
    this.#world = world;
    this.#tally = tally;
    this.#witness = witness;
    this.#places = lineServices.map((_, index) => this.#placeOf(index));
  }

  run(): void {
    this.#tally.lives++;
    for (const [line, { hangsFirst }] of this.#world.lines.entries()) {
      if (hangsFirst !== undefined) this.#insist(line, hangsFirst.till);
    }
    for (const each of this.#world.steps) {
      this.#tally.steps++;
      this.#do(each);
    }
    for (const { terminal } of this.#places) {
      terminal.healthy = true;
      terminal.device.plugged = true;
    }
    assert.ok(
      this.#time.until(() => this.#open.size === 0),
      `every call ends: ${[...this.#open].join(" ")}`,
    );
    this.#usableAgain();
    this.#count();
  }

  /** After all that happened, each service answers a call. */
  #usableAgain(): void {
    this.#untilUsable();
    for (const [index, services] of lineServices.entries()) {
      for (const service of services.keys()) {
        let [id, ending] = this.#callAlone(index, service);
        // What it answers now looked like no answer before: one call's is taken for an older one. The next one's is not.
        if (
          this.#places[index]?.terminal.hasChanged === true &&
          ending instanceof Fault &&
          ending.reason === "reply-ambiguous"
        ) {
          this.#tally.firstUnknown++;
          this.#untilUsable();
          [id, ending] = this.#callAlone(index, service);
        }
        assert.ok(!(ending instanceof Fault), `${id} is answered: ${ending instanceof Fault ? ending.message : ""}`);
      }
    }
  }

  #untilUsable(): void {
    const isIdle = () => this.#places.every(({ terminal }) => terminal.isIdle && !terminal.isAway);
    const isStill = () => isIdle() && this.#places.every(({ line }) => line.state === "idle" && line.takesCalls);
    assert.ok(this.#time.until(isIdle, 2 * awayMsMax), "the terminals work off what they were asked");
    const idleMs = this.#time.now;
    assert.ok(this.#time.until(isStill), "the lines are usable again");
    this.#tally.recoveryMs = Math.max(this.#tally.recoveryMs, this.#time.now - idleMs);
    // A torn frame from before may still have its time.
    this.#time.advance(10_000);
    assert.ok(this.#time.until(isStill), "the lines stay usable");
  }

  /** One after the other: where three zeros follow each answer, which may be the beginning of a frame, each takes five seconds. */
  #callAlone(line: number, service: number): readonly [string, Ending | undefined] {
    const id = this.#call({ ...plainCall, line, service });
    assert.ok(
      this.#time.until(() => this.#open.size === 0),
      `${id} ends`,
    );
    return [id, this.#calls.get(id)?.ending];
  }

  #count(): void {
    const tally = this.#tally;
    let counted = 0;
    for (const { ending, isKilled } of this.#calls.values()) {
      counted++;
      if (isKilled) tally.killed++;
      else if (!(ending instanceof Fault)) tally.answered++;
      else if (ending.outcome === "not-sent") tally.notSent++;
      else tally.unknown++;
    }
    tally.calls += counted;
    for (const { terminal } of this.#places) {
      tally.exchanges += terminal.seen.length;
      if (this.#world.isBeyond) tally.beyond += terminal.seen.length;
      tally.probes += terminal.probes;
    }
    const { calls, answered, notSent, unknown, killed } = tally;
    assert.equal(answered + notSent + unknown + killed, calls, "the counters add up");
  }

  // --- what the world does

  #do(each: Step): void {
    if (each.do === "call") {
      this.#call(each);
      return;
    }
    if (each.do === "settle") {
      this.#time.until(() => this.#open.size === 0, 60_000);
      return;
    }
    if ("lastsMs" in each) {
      this.#goAway(each);
      return;
    }
    this.#time.advance(each.ms);
    if (each.do === "wait") return;
    const place = this.#places[each.line];
    if (place === undefined) return;
    this.#say(`line ${place.index}: ${each.do}`);
    const { device } = place.terminal;
    switch (each.do) {
      case "unplug":
        this.#tally.unplugs++;
        device.unplug();
        this.#time.after(each.awayMs, () => {
          device.plugged = true;
        });
        break;
      case "noise":
        device.send(noises[this.#calls.size % noises.length] ?? Buffer.alloc(0));
        break;
      case "kill":
        this.#kill(place);
        break;
      case "sigterm":
        this.#sigterm(place, each.graceMs);
        break;
    }
  }

  #insist(line: number, { call, everyMs, times }: Insisting): void {
    for (let time = 0; time < times; time++) {
      const called = this.#calls.get(this.#call({ ...call, line }));
      this.#time.advance(everyMs);
      if (called?.ending !== undefined && !(called.ending instanceof Fault)) return;
    }
  }

  /** A terminal all of whose services have proven themselves hangs, or is switched off. Another would be believed after one silence. */
  #goAway({ do: how, line: index, lastsMs, leftMs, paces, till }: Drawn<typeof away>): void {
    const place = this.#places[index];
    if (place === undefined) return;
    const { terminal } = place;
    if (!this.#time.until(() => terminal.isIdle && place.line.state === "idle", 600_000) || !place.line.isHeard) return;
    this.#say(
      `line ${index}: terminal ${how === "hang" ? "hangs" : "is off"} for ${lastsMs} ms, then takes ${paces.join(", ")} ms`,
    );
    this.#tally.away++;
    terminal.pace(paces);
    if (how === "hang") terminal.hang(lastsMs);
    else terminal.switchOff(lastsMs);
    this.#time.advance(lastsMs - Math.min(lastsMs, leftMs));
    if (till !== undefined) this.#insist(index, till);
  }

  #kill(place: Place): void {
    this.#tally.kills++;
    place.line.kill();
    for (const id of this.#open) {
      const called = this.#calls.get(id);
      if (called === undefined || called.step.line !== place.index) continue;
      called.isKilled = true;
      this.#open.delete(id);
    }
    place.line = this.#started(place);
  }

  /** The next process opens the device when this one has given it back. */
  #sigterm(place: Place, graceMs: number): void {
    this.#tally.sigterms++;
    const { line: stopping, life } = place;
    const beganMs = this.#time.now;
    stopping.stop(graceMs);
    assert.ok(
      this.#time.until(() => stopping.isStopped, graceMs + 1),
      `line ${place.index} stops within its grace of ${graceMs} ms, and not after ${this.#time.now - beganMs} ms`,
    );
    for (const id of this.#open) {
      const called = this.#calls.get(id);
      assert.ok(called?.step.line !== place.index || called.lineLife !== life, `${id} has no end, and its line has stopped`);
    }
    place.line = this.#started(place);
  }

  #call(each: Call): string {
    const place = this.#places[each.line % this.#places.length];
    const services = place?.services ?? [];
    const service = services[each.service % services.length];
    if (place === undefined || service === undefined) throw new Error("a world has lines, and each line has services");
    const shapedAs = service.contract === "qr" ? undefined : shapes[each.kind];
    const isOwn = shapedAs !== undefined && each.kind !== "shift";
    const id = `${isOwn ? (shapedAs === "probe" ? "B" : "D") : "C"}${this.#calls.size + 1}`;
    const isEffectful = each.kind === "money" || each.kind === "shift";
    const request = requestFor(id, {
      service: service.contract,
      route: isEffectful ? "/sale" : "/check",
      replyTimeoutMs: each.timeoutMs,
      urgent: each.urgent,
      repeatable: !isEffectful,
      shapedAs,
      // What it does is the world's affair; that it is there says that the call is to be recorded.
      beforeSend: isEffectful ? async () => {} : undefined,
    });
    const cameMs = this.#time.now;
    const called: Called = {
      ...{ step: { ...each, line: place.index }, request, cameMs, lineLife: place.life },
      ...{ isRecorded: false, wroteMs: undefined, ending: undefined, isKilled: false, isStrayed: false },
    };
    this.#calls.set(id, called);
    this.#open.add(id);
    this.#say(`line ${place.index}: ${id} comes: ${service.contract} ${each.kind}, timeout ${each.timeoutMs} ms`);
    const leave = place.line.call(request, (ending) => this.#ended(id, called, ending));
    if (each.leavesMs !== undefined) this.#time.after(each.leavesMs, leave);
    return id;
  }

  // --- the lines

  #placeOf(index: number): Place {
    const plan = this.#world.lines[index];
    if (plan === undefined) throw new Error("a world has a plan for each line");
    const terminal = new LineTerminal(this.#time, plan);
    const id = this.#world.isSigned ? merchantId : undefined;
    const rules = { crc16: "arc", quiet: false, merchantId: id } as const;
    const idleProbeMs = this.#world.probesIdle ? idleProbeMsMin : 0;
    const config = configOf({ lateReplyMs, queueWaitMs, queueCallsMax, idleProbeMs });
    const services = (lineServices[index] ?? []).map((service) => lineService(contracts[service], rules));
    const begun = { index, terminal, config, services, life: 0, writes: 0, inFlight: undefined };
    const started = this.#started(begun);
    const place: Place = { ...begun, line: started };
    terminal.onCall = (heard) => this.#heard(place, heard);
    terminal.onSent = (bytes, why) => this.#say(`line ${index}: terminal sends ${why}, ${bytes.length} bytes`);
    terminal.onStrayed = (heard) => this.#strayed(place, heard);
    terminal.deadlineOf = (heard) => this.#deadlineOf(heard, config);
    return place;
  }

  #started(place: Omit<Place, "line"> & { line?: SimulatedLine }): SimulatedLine {
    const { index, config, services, terminal } = place;
    const life = ++place.life;
    place.inFlight = undefined;
    const name = `till-${index}`;
    const observe = this.#witness?.watch({ name, config, services });
    const acceptances = this.#world.lines[index]?.acceptances ?? [];
    const started = new SimulatedLine({
      ...{ name, config, services, time: this.#time, device: terminal.device },
      observe: (event, effects, now, engine) => {
        observe?.(event, effects, now, engine);
        if (this.#witness !== undefined && event.at !== "tick" && event.at !== "received")
          this.#say(`line ${index}: ${event.at}`);
        // The place of one whose line stops is taken by the next one's.
        const current = this.#places?.[index];
        if (current !== undefined && current.life === life) this.#decided(current, effects);
      },
      record: (request, done) => this.#record(request, done),
      acceptance: () => (terminal.healthy ? undefined : acceptances[place.writes++ % acceptances.length]),
    });
    started.start();
    return started;
  }

  /** A disk that takes its time, fails, or hangs. */
  #record(request: LineRequest, done: (fault: Fault | undefined) => void): void {
    const called = this.#calls.get(idIn(request));
    const { ms, kind } = called?.step.record ?? plainCall.record;
    if (kind === "never") return;
    this.#time.after(ms, () => {
      if (kind === "done" && called !== undefined) called.isRecorded = true;
      done(kind === "done" ? undefined : new Fault("unavailable", "Cannot send: its record can't be written"));
    });
  }

  #deadlineOf(id: string, config: LineConfig): number | undefined {
    const called = this.#calls.get(id);
    if (called?.wroteMs === undefined) return undefined;
    const { framing, payload, replyTimeoutMs } = called.request;
    return called.wroteMs + replyTimeoutMs + bytesOf(frameOf(framing, payload, config.crc16)) * msPerByte(config);
  }

  // --- what is promised

  /** One request is in flight on a line, and nothing is asked beside it; the queue keeps its bound. */
  #decided(place: Place, effects: readonly LineEffect[]): void {
    this.#tally.events++;
    for (const effect of effects) {
      if (effect.do === "end" && place.inFlight === idIn(effect.exchange.request)) place.inFlight = undefined;
      else if (effect.do === "report" && effect.what.is === "state" && effect.what.state === "recovering")
        place.inFlight = undefined;
      if (effect.do !== "write") continue;
      const id = effect.exchange === undefined ? undefined : idIn(effect.exchange.request);
      assert.equal(place.inFlight, undefined, `${id ?? "a probe"} was written while ${place.inFlight} was in flight`);
      place.inFlight = id;
      const called = id === undefined ? undefined : this.#calls.get(id);
      if (called === undefined) continue;
      called.wroteMs = this.#time.now;
      called.isStrayed = false;
    }
    const { waiting } = place.line ?? { waiting: 0 };
    // One that is to be sent once more had its place already.
    assert.ok(waiting <= queueCallsMax + 1, `${waiting} calls wait on line ${place.index}`);
  }

  /** When a request comes, each that came before has ended one way or the other; and what has an effect comes once. */
  #heard(place: Place, id: string): void {
    this.#say(`line ${place.index}: terminal hears ${id}`);
    const called = this.#calls.get(id);
    assert.ok(called !== undefined, `${id} was never called`);
    if (called.request.beforeSend !== undefined) assert.ok(called.isRecorded, `${id} was sent and not recorded`);
    const { seen } = place.terminal;
    const sendings = seen.filter((each) => each === id).length;
    assert.ok(sendings <= (called.request.repeatable ? 2 : 1), `${id} was sent ${sendings} times`);
    for (const other of this.#open) {
      if (other === id || !seen.includes(other)) continue;
      // One that is sent once more waits in between, as if it had not been sent.
      const isAgain = this.#calls.get(other)?.request.repeatable === true && place.inFlight !== other;
      assert.ok(isAgain, `${id} was sent while ${other} was in flight`);
    }
  }

  #ended(id: string, called: Called, ending: Ending): void {
    assert.equal(called.ending, undefined, `${id} ended twice`);
    assert.ok(!called.isKilled, `${id} ended after its process`);
    called.ending = ending;
    this.#open.delete(id);
    const tookMs = this.#time.now - called.cameMs;
    this.#tally.longestMs = Math.max(this.#tally.longestMs, tookMs);
    assert.ok(tookMs <= boundMs(called.request), `${id} took ${tookMs} ms`);
    const place = this.#places[called.step.line];
    const wasHeard = place?.terminal.seen.includes(id) === true;
    if (ending instanceof Fault) {
      this.#say(`${id} ends: ${ending.outcome}, ${ending.reason}`);
      if (called.isStrayed && (ending.reason === "no-reply" || ending.reason === "reply-corrupt")) this.#tally.strayedLost++;
      if (ending.outcome === "not-sent") assert.ok(!wasHeard, `${id} was sent, and called not sent: ${ending.message}`);
      return;
    }
    const text = Buffer.concat(ending.payload).toString();
    this.#say(`${id} ends: answered ${text}`);
    const isOwn = isOwnShaped(id) && !text.includes('"id"');
    const isOwnAnswer = isShapedFor(id, text) || text === this.#world.lines[called.step.line]?.odd?.answer;
    const isItsOwn = isOwn ? isOwnAnswer : wasHeard && idOf(text) === id;
    if (isItsOwn && !wasHeard) this.#tally.sameQuestion++;
    if (isItsOwn) return;
    if (place?.terminal.isFirstBareSuccess(text) === true || this.#misled.has(idOf(text))) {
      this.#tally.firstBareSuccess++;
      this.#misled.add(id);
      return;
    }
    if (!this.#world.isBeyond) assert.fail(`${id} was answered ${text}`);
    this.#tally.undetectable++;
  }

  #strayed(place: Place, id: string): void {
    const called = this.#calls.get(id);
    if (called === undefined || place.inFlight !== id) return;
    called.isStrayed = true;
    this.#tally.strayed++;
  }

  #say(text: string): void {
    this.#witness?.say(this.#time.now, text);
  }
}

/** What their replies look like. One that opens a shift has a reply of its own, which may look like the second question's. */
const shapes: Readonly<Record<Call["kind"], Question | undefined>> = {
  ...{ money: undefined, query: undefined },
  ...{ "probe-shaped": "probe", "second-shaped": "second", shift: "second" },
};

const plainCall: Call = {
  ...({ do: "call", line: 0, service: 0, kind: "money", urgent: false, timeoutMs: 6_000 } as const),
  ...{ record: { ms: 1, kind: "done" }, leavesMs: undefined },
};

/** Noise as lines have it: a modem's command, the first bytes of a header, bytes of a wrong speed. */
const noises = [
  Buffer.from("AT\r\r"),
  Buffer.from([0x02]),
  Buffer.from([0xff, 0x00, 0xfe, 0x80]),
  Buffer.from([0x00, 0x00, 0x01]),
];

/** Milliseconds that a call may take from its coming to its end: what it may wait, and each sending with the longest frame. */
function boundMs({ replyTimeoutMs, repeatable }: LineRequest): number {
  const sendings = repeatable ? 2 : 1;
  const acceptMs = 4_000;
  return sendings * (queueWaitMs + acceptMs + replyTimeoutMs + headerMs + payloadMsMax + corruptQuietMs + 100);
}

const idIn = (request: LineRequest) => idOf(Buffer.concat(request.payload).toString());
