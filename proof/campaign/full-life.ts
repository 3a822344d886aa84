import assert from "node:assert/strict";
import fc from "fast-check";
import { contracts } from "../../src/contract/contracts.ts";
import { closingRoutes } from "../../src/contract/settling.ts";
import { isGoodEnd, isNothing, type OperationResult, operationResults } from "../../src/core/followed.ts";
import { journalFile } from "../../src/journal/errors.ts";
import { scanRing } from "../../src/journal/reader.ts";
import { joinOperations, type SentRecord } from "../../src/journal/record.ts";
import { readSlot, slotBytes } from "../../src/journal/slot.ts";
import { isRecorded } from "../../src/operations/sending.ts";
import { folder } from "../../test/journal/records.ts";
import { type Fate as CutFate, pageBytes, SimDisk, systemError } from "../../test/journal/sim-disk.ts";
import type { VirtualNet } from "../../test/support/virtual-net.ts";
import type { VirtualTime } from "../../test/support/virtual-time.ts";
import { between, type Drawn, deed, mostly, often, one } from "./draw.ts";
import type { Notes } from "./found.ts";
import { type BoxSettings, FullBox, portOf } from "./full-box.ts";
import { FullClients } from "./full-client.ts";
import { FullFarEnd } from "./full-far-end.ts";
import { askBox, fetchOver, KeptConnections } from "./full-http.ts";
import { type FullFate, FullTerminal } from "./full-terminal.ts";
import { isAllowed, isClientKey, isGood, operationOf, type Stand, type TradeName, trades } from "./full-trade.ts";
import { bodyOf } from "./request-body.ts";
import { type Counts, emptyTallyOf, type TallyOf } from "./tally.ts";

/**
 * Random lives of a whole box: the bridge with two services of any contract, on a line each or on one, a journal on a disk that fails and
 * loses its power, followed sales, and posline's own questions. Tills send sales, leave, repeat the same call with `Prefer: wait` until it
 * ends, and under its key, without it, cancel, refund, abort or sell once more, or sell for another amount, or give back in part; clocks are
 * set; processes are killed and stopped at any moment. Terminals keep a ledger, and each word that a till is given must be what the ledger
 * has of its sale.
 */

const serviceNames = ["till-0", "till-1"] as const;

/** What services are configured with at first; what a reload sets is never more. */
const usualSettings: BoxSettings = { replyTimeoutMs: 4_000, queueCallsMax: 8, isMoved: false };
const { replyTimeoutMs } = usualSettings;

const service = fc.nat({ max: serviceNames.length - 1 });
/** Half of all is of one key, so that much stands under it. */
const key = fc.oneof(fc.constant(0), fc.nat({ max: 3 }));
const clientKey = fc.nat({ max: 1 });
const waitS = between(0, 60);

const usualAmount = 1500;

/** What is given back, of a payment by QR code also in part. */
const backAmount = often([2, fc.constant(usualAmount)], [1, one(700, 800)]);

const fate = fc.record({
  kind: often(
    [8, one("answered")],
    [4, one("reply lost", "request lost", "corrupt", "late", "refused", "behind", "other key", "denied")],
  ),
  // How the operation ends, and how long that takes.
  end: one("good", "good", "bad", "other"),
  takesMs: fc.oneof(between(0, 3_000), between(0, 60_000)),
}) satisfies fc.Arbitrary<FullFate>;

const cutFate: fc.Arbitrary<CutFate> = fc.record({
  keeps: one("all", "none", "start", "end"),
  bytes: fc.nat({ max: slotBytes }),
});

const powerCut = deed("power cut", {
  fates: fc.array(cutFate, { minLength: 1, maxLength: 8 }),
  renamesKept: fc.boolean(),
});

/** The process is killed, and a page of its journal goes bad before the next one reads it: so many behind the newest record's. */
const pageLost = deed("page lost", { behind: fc.nat({ max: 3 }), as: one("garbage", "unreadable") });

const diskTrouble = deed("disk", { kind: one("fails", "hangs"), ms: one(1, 4_999, 5_001, 20_000) });

const step = often(
  [
    10,
    deed("sale", {
      ...{ service, key, waitS, amount: mostly(9, usualAmount, fc.constant(1700)) },
      leavesMs: often([4, fc.constant(undefined)], [1, between(0, 30_000)]),
    }),
  ],
  [3, deed("check", { service, key })],
  [2, deed(["plain sale", "abort"], { service, key })],
  // What takes it back, under the same key.
  [1, deed("plain back", { service, key, amount: backAmount })],
  [3, deed("back", { service, key, amount: backAmount, waitS })],
  // A person looks at the terminal, and settles the oldest operation of unknown outcome.
  [1, fc.constant({ do: "look" as const })],
  // A till with the typed client begins an operation of a key of its own, or takes it up again; or dies.
  [
    4,
    deed("client", {
      ...{ service, key: clientKey, isByBridge: fc.boolean() },
      takesBack: often([3, fc.constant(false)], [1, fc.constant(true)]),
      windowS: between(0, 180),
    }),
  ],
  [1, deed("client dies", { service, key: clientKey })],
  // The time of day is set to so much before or behind the true one: a time server's step, a summer time, a box that began with a battery
  // clock half a day wrong; by less than a day in all.
  [1, deed("clock", { offMs: one(0, 0, 2_000, -2_000, -40_000, 3_600_000, -3_600_000, 39_600_000, -39_600_000) })],
  [6, deed("wait", { ms: between(0, 30_000) })],
  // The terminal closes its batch by itself, and forgets; or a till has it closed.
  [2, deed(["batch", "close"], { service })],
  [1, deed("unplug", { service, ms: between(0, 20_000) })],
  [1, diskTrouble],
  [2, deed(["kill", "sigterm"], {})],
  [1, powerCut],
  // The configuration is read anew: with nothing changed, or another timeout of a service, another line, or another port.
  [
    2,
    deed("reload", {
      service,
      sets: one<Partial<BoxSettings>>(
        {},
        ...[3_000, 4_000].map((ms) => ({ replyTimeoutMs: ms })),
        ...[8, 9].map((calls) => ({ queueCallsMax: calls })),
        ...[false, true].map((isMoved) => ({ isMoved })),
      ),
    }),
  ],
  [1, pageLost],
);

/** A service with its till and terminal. */
const fullService = fc.record({
  trade: one(...(Object.keys(trades) as TradeName[])), // Of the table's own keys
  // Whether its till names a payment itself, and whether its terminal takes that name over (qr).
  tillNames: fc.boolean(),
  takesNames: fc.boolean(),
  // Whether its till uses connections again.
  keepsConnections: fc.boolean(),
  fates: fc.array(fate, { minLength: 1, maxLength: 12 }),
});

export const fullWorld = fc.record({
  services: fc.tuple(fullService, fullService),
  // Whether they share a line, where they are of different contracts.
  sharesLine: fc.boolean(),
  onFailure: one("refuse", "relay"),
  lateMs: one(replyTimeoutMs - 1, replyTimeoutMs, replyTimeoutMs + 1, replyTimeoutMs + 10, 12_000),
  // Whether the terminals close their batches in the end.
  closesBatch: fc.boolean(),
  steps: fc.array(step, { minLength: 1, maxLength: 30, size: "max" }),
});

export type FullStep = Drawn<typeof step>;
export type FullWorld = Drawn<typeof fullWorld>;

/** What lives come to, in the order of the table. */
export const fullCounts = {
  exchanges: ["exchanges", "requests that a terminal heard whole"],
  lives: ["lives"],
  calls: ["calls"],
  answered: ["answered"],
  notSent: ["not sent"],
  unknown: ["unknown"],
  left: ["till left"],
  killed: ["process killed", "these five make up all calls"],
  named: ["answers with a payment's trans", "each held against the code that was paid, or shown"],
  restarts: ["restarts", "by SIGTERM, kill and power cut"],
  reloads: ["reloads"],
  settled: ["operations settled in the journal"],
  lastOfSeveral: [
    "operations told how the last of several ended",
    "sent again without the header, and carried out again, against the contract: nobody can tell them apart",
  ],
  unrecordedTwice: ["sales twice, unrecorded", 'journal.onFailure "relay", its disk failing: nobody can know'],
  lostTwice: ["sales twice, record lost", "a page of the journal went bad, and answers said that no repetition is recognised"],
  lostOthers: [
    "words of another operation, record lost",
    "sent before it under its key, by another route or for another amount, and forgotten",
  ],
} as const satisfies Counts;

export type FullTally = TallyOf<typeof fullCounts>;

export const emptyFullTally = () => emptyTallyOf(fullCounts);

/** A till's call with `Prefer: wait`. */
interface FollowedCall {
  readonly do: "sale" | "back";
  readonly service: number;
  readonly key: number;
  readonly amount: number;
}

/** What a till sends to a service. */
interface TillCall {
  readonly path: string;
  readonly body: string;
  /** Milliseconds of its `Prefer: wait`. */
  readonly waitMs?: number | undefined;
  /** After so many its till leaves. */
  readonly leavesMs?: number | undefined;
}

/** Takes the word with which a call ends, if any, and what its till is to give the payment back by. */
type Ended = (word: OperationResult | undefined, trans: string | undefined) => void;

/** What is counted of a call's end, by `X-Posline-Outcome`. */
const outcomes: ReadonlyMap<unknown, "answered" | "notSent" | "unknown"> = new Map([
  ["answered", "answered"],
  ["not-sent", "notSent"],
  ["unknown", "unknown"],
]);

const contentTypes = { bank: "application/json", fiscal: "application/x-www-form-urlencoded", qr: "application/json" } as const;

/** What says which operation was sent. */
type Sent = Pick<SentRecord, "service" | "route" | "key" | "amount">;

/** Where worlds live: a clock, and a network. */
export type FullPlace = { readonly time: VirtualTime; readonly net: VirtualNet };

export class FullLife {
  readonly #world: FullWorld;
  readonly #time: VirtualTime;
  readonly #net: VirtualNet;
  readonly #tally: FullTally;
  readonly #say: (text: string) => void;
  readonly #terminals: readonly FullTerminal[];
  #disk = new SimDisk();
  /** The disk failed or hung, or lost its power, so that a record may be missing where the policy is to relay. */
  #mayLackRecords = false;
  /** A page of the journal was lost. */
  #hasLostRecords = false;
  /** What ran twice behind that, by its name: its record may have been in it. */
  readonly #lostTwice = new Set<string>();
  #life = 0;
  /** As they are configured now, by service. */
  #settings: readonly BoxSettings[] = serviceNames.map(() => usualSettings);
  #box: FullBox;
  readonly #open = new Set<string>();
  /** How often a sale or cancel was sent without `Prefer: wait`, by its name: each of these may run. */
  readonly #plain = new Map<string, number>();
  /** When it was asked for last, by its name. */
  readonly #lastSentMs = new Map<string, number>();
  /** How often it was asked for, by its name. */
  readonly #timesSent = new Map<string, number>();
  /** Operations whose tills leave, and when. */
  readonly #leavings: { readonly sent: Sent; readonly atMs: number }[] = [];
  /** Until when a till waits with `Prefer: wait`, by its name: what is joined to its call waits as long. */
  readonly #waitedUntilMs = new Map<string, number>();
  /** What was asked for last with `Prefer: wait`: of the sales of a key the last one alone. */
  readonly #last = new Map<string, FollowedCall>();
  readonly #clients: FullClients;
  /** By service. */
  readonly #kept: readonly (KeptConnections | undefined)[];
  #calls = 0;
  #broken: Error | undefined;

  constructor(world: FullWorld, { time, net }: FullPlace, tally: FullTally, notes?: Pick<Notes, "say">) {
    this.#world = world;
    this.#time = time;
    this.#net = net;
    this.#tally = tally;
    this.#say = (text) => notes?.say(time.nowMs, text);
    time.setOffMs = 0;
    const isShared = world.sharesLine && new Set(world.services.map(({ trade }) => trades[trade].contract)).size > 1;
    const shared = new FullFarEnd(time);
    this.#terminals = world.services.map(({ trade, fates, takesNames }, index) => {
      const farEnd = isShared ? shared : new FullFarEnd(time);
      const terminal = new FullTerminal({ time, farEnd, trade: trades[trade], fates, lateMs: world.lateMs, takesNames });
      farEnd.serve(terminal);
      terminal.onRun = (route, operation, times) => this.#ran(`${serviceNames[index]} ${route} ${operation}`, times);
      return terminal;
    });
    this.#box = this.#started();
    this.#kept = world.services.map(({ keepsConnections }) => (keepsConnections ? new KeptConnections(net) : undefined));
    this.#clients = new FullClients({
      amount: usualAmount,
      tills: this.#terminals.map((terminal, index) => ({
        terminal,
        service: serviceNames[index] ?? terminal.trade.contract,
        names: world.services[index]?.tillNames === true,
        fetchAbout: (key) =>
          fetchOver({
            net,
            portNow: () => this.#portOf(index),
            asking: (route) => {
              const sent = { service: serviceNames[index] ?? "", route, key, amount: String(usualAmount) };
              this.#noteSent(this.#nameOf(sent));
            },
          }),
      })),
      mayRelayUnrecorded: () => this.#mayRelayUnrecorded,
      say: this.#say,
      fail: (error) => this.#fail(error),
    });
  }

  async run(): Promise<void> {
    try {
      await this.#live();
    } finally {
      // The next world's ports are the same.
      this.#net.kill();
    }
  }

  async #live(): Promise<void> {
    this.#tally.lives++;
    await this.#box.reload(this.#settings);
    await this.#time.advance(3_000);
    for (const each of this.#world.steps) {
      await this.#do(each);
      await this.#time.advance(1);
      if (this.#broken !== undefined) throw this.#broken;
    }
    if (this.#world.closesBatch) {
      for (const each of this.#last.values())
        if (each.do === "sale") this.#takeBack({ ...each, amount: usualAmount }, backWaitMs);
      await this.#time.advance(backWaitMs);
    }
    for (const terminal of this.#terminals) {
      terminal.isHealthy = true;
    }
    for (const { device } of this.#farEnds) device.plug();
    this.#disk.trouble = undefined;
    await this.#allEnd();
    for (const index of this.#terminals.keys()) if (this.#world.closesBatch) this.#closeBatch(index);
    this.#nothingSentForNobody();
    // Once more, where nothing fails any more: a till asks until it knows.
    for (const each of this.#last.values()) this.#ask(each, each.do, each.amount, lastWaitMs);
    await this.#allEnd();
    this.#clients.check();
    await this.#journalAgrees();
    this.#tally.exchanges += this.#terminals.reduce((sum, { requests }) => sum + requests, 0);
    const { calls, answered, notSent, unknown, left, killed } = this.#tally;
    assert.equal(answered + notSent + unknown + left + killed, calls, "the counters add up");
    await this.#end();
  }

  async #allEnd(): Promise<void> {
    const isOver = await this.#time.until(() => this.#open.size === 0 && !this.#clients.areRunning, 600_000);
    if (this.#broken !== undefined) throw this.#broken;
    assert.ok(isOver, `every call and client ends: ${[...this.#open].join(" ")}`);
  }

  // --- the process

  /** One where two services share a line. */
  get #farEnds(): readonly FullFarEnd[] {
    return [...new Set(this.#terminals.map(({ farEnd }) => farEnd))];
  }

  #started(): FullBox {
    const life = ++this.#life;
    const farEnds = this.#farEnds;
    for (const each of farEnds) each.renew();
    return new FullBox({
      services: this.#terminals.map(({ contract, farEnd }, index) => {
        const line = `line-${farEnds.indexOf(farEnd)}`;
        return { name: serviceNames[index] ?? contract, contract, line, open: farEnd.device.open };
      }),
      ...{ onFailure: this.#world.onFailure, disk: this.#disk },
      // What was killed tells nobody anything.
      fail: (error) => {
        if (life === this.#life) this.#fail(error);
      },
    });
  }

  /** Nothing of the process does anything any more, and its disk is as the kernel has it. */
  async #kill({ cut, spoilt }: { cut?: Drawn<typeof powerCut>; spoilt?: Drawn<typeof pageLost> } = {}) {
    this.#tally.restarts++;
    this.#tally.killed += this.#open.size;
    this.#open.clear();
    this.#disk.fuse = 0;
    const kept: readonly CutFate[] = [{ keeps: "all", bytes: 0 }];
    this.#disk = this.#disk.afterCut(cut?.fates ?? kept, cut?.renamesKept ?? true);
    if (spoilt !== undefined) this.#spoil(spoilt);
    this.#life++;
    this.#box.kill();
    this.#net.kill();
    this.#box = this.#started();
    await this.#box.reload(this.#settings);
  }

  #spoil({ behind, as }: Drawn<typeof pageLost>): void {
    const path = journalFile(folder);
    const newest = newestPage(this.#disk.files.get(path)?.current ?? Buffer.alloc(0));
    if (newest === undefined || newest < behind) return;
    this.#hasLostRecords = true;
    this.#disk.spoil(path, newest - behind, as);
  }

  async #end(): Promise<void> {
    let hasEnded = false;
    void this.#box.stop().then(() => {
      hasEnded = true;
    });
    assert.ok(await this.#time.until(() => hasEnded, stopMsMax), "it stops in time");
  }

  async #sigterm(): Promise<void> {
    this.#tally.restarts++;
    await this.#end();
    assert.equal(this.#open.size, 0, `calls without an end after a stop: ${[...this.#open].join(" ")}`);
    const { trouble } = this.#disk;
    this.#disk.fuse = 0;
    this.#disk = this.#disk.afterCut([{ keeps: "all", bytes: 0 }], true);
    this.#disk.trouble = trouble;
    this.#box = this.#started();
    await this.#box.reload(this.#settings);
  }

  // --- what the world does

  async #do(each: FullStep): Promise<void> {
    this.#say(JSON.stringify(each));
    switch (each.do) {
      case "wait":
        await this.#time.advance(each.ms);
        break;
      case "sale":
        this.#last.set(`${each.service} sale ${each.key}`, each);
        this.#ask(each, "sale", each.amount, each.waitS * 1_000, each.leavesMs);
        break;
      case "plain sale":
        this.#askPlainly({ ...each, amount: usualAmount }, "sale");
        break;
      case "plain back":
        this.#askPlainly(this.#givenBack(each), "back");
        break;
      case "back":
        this.#takeBack(this.#givenBack(each), each.waitS * 1_000);
        break;
      case "check":
        this.#ask(each, "question");
        break;
      case "abort":
        this.#ask(each, "abort");
        break;
      case "look":
        this.#look();
        break;
      case "client":
        this.#clients.follow(each);
        break;
      case "client dies":
        this.#clients.die(each);
        break;
      case "clock":
        this.#time.setOffMs = each.offMs;
        break;
      case "close":
        this.#close(each.service);
        break;
      case "batch":
        this.#closeBatch(each.service);
        break;
      case "unplug": {
        const device = this.#terminals[each.service]?.farEnd.device;
        device?.unplug();
        this.#time.after(each.ms, () => device?.plug());
        break;
      }
      case "disk":
        this.#diskTrouble(each);
        break;
      case "kill":
        await this.#kill();
        break;
      case "power cut":
        await this.#kill({ cut: each });
        break;
      case "reload":
        this.#tally.reloads++;
        this.#settings = this.#settings.map((before, index) => (index === each.service ? { ...before, ...each.sets } : before));
        await this.#box.reload(this.#settings);
        break;
      case "page lost":
        await this.#kill({ spoilt: each });
        break;
      case "sigterm":
        await this.#sigterm();
        break;
    }
  }

  /**
   * What posline knows by then that the terminal had is forgotten, with what refers to it, and once: of anything else "there is none" would
   * be the terminal's own word that it never came, and of a payment by QR code that it failed.
   */
  #closeBatch(index: number): void {
    const [terminal, name] = [this.#terminals[index], serviceNames[index]];
    if (terminal === undefined || name === undefined || terminal.trade.contract === "qr" || this.#mayLackRecords) return;
    const { sale, back } = terminal.trade;
    const { operations } = this.#box;
    for (const key of terminal.ended) {
      const sent = operations.under(name, key);
      const [known, referring] = [sale, back].map((route) => sent.findLast((each) => each.sent.route === route));
      const hasEnded = known !== undefined && isGoodEnd(operations.togetherOf(known).end) && isRecorded(known);
      const isKnown = hasEnded && terminal.timesRun(sale, key) === 1;
      const isOwn = isNothing(referring?.sent.before) || (referring === undefined && terminal.timesRun(back, key) > 0);
      if (isKnown && !isOwn && !isClientKey(key)) terminal.forget(key);
    }
  }

  /** At any moment, as a person does who goes home. */
  #close(index: number): void {
    const [service, contract] = [serviceNames[index], this.#terminals[index]?.trade.contract];
    if (service === undefined || contract === undefined) return;
    const route = contracts[contract].routes.find(({ path }) => closingRoutes.has(path));
    if (route === undefined) return;
    this.#send(index, `${service} ${route.path} #${++this.#calls}`, { path: route.path, body: bodyOf(contract, {}) }, () => {});
  }

  /** @param ended Not called where its process is no more, or its till has left. */
  #send(index: number, id: string, asked: TillCall, ended: Ended): void {
    const life = this.#life;
    this.#open.add(id);
    this.#tally.calls++;
    const { path, body, waitMs, leavesMs } = asked;
    const till = new AbortController();
    if (leavesMs !== undefined) this.#time.after(leavesMs, () => till.abort());
    const end = (outcome: "answered" | "notSent" | "unknown" | "left", word?: OperationResult, trans?: string) => {
      // A process that was killed tells nobody anything.
      if (life !== this.#life) return;
      this.#say(`${id}: ${outcome} ${word ?? ""} ${trans ?? ""}`);
      this.#open.delete(id);
      this.#tally[outcome]++;
      if (outcome !== "left") this.#checked(() => ended(word, trans));
    };
    const headers = {
      ...{ "Content-Type": contentTypes[this.#terminals[index]?.trade.contract ?? "bank"], "X-Request-Id": `r${this.#calls}` },
      ...(waitMs !== undefined && { Prefer: `wait=${waitMs / 1_000}` }),
    };
    const [port, kept] = [this.#portOf(index), this.#kept[index]];
    askBox(this.#net, { port, path, body, headers, signal: till.signal, kept }).then(
      ({ headers: { "x-posline-outcome": said, "x-posline-result": word, "x-posline-trans": trans } }) => {
        const outcome = outcomes.get(said);
        const result = operationResults.find((each) => each === word);
        if (outcome !== undefined && result === word) end(outcome, result, trans?.toString());
        else this.#fail(new Error(`${id} was answered with the outcome ${String(said)} and the result ${String(word)}`));
      },
      (error: unknown) => {
        if (till.signal.aborted) end("left");
        // As long as its process lives each call is answered.
        else if (life === this.#life) this.#fail(new Error(`${id} has no answer: ${String(error)}`));
      },
    );
  }

  #portOf(index: number): number {
    return portOf(index, this.#settings[index]?.isMoved === true);
  }

  #diskTrouble({ kind, ms }: Drawn<typeof diskTrouble>): void {
    this.#mayLackRecords = true;
    const disk = this.#disk;
    const until = new Promise<void>((resolve) => this.#time.after(ms, () => resolve()));
    disk.trouble = kind === "fails" ? { error: systemError("EIO") } : { until };
    this.#time.after(ms, () => {
      disk.trouble = undefined;
    });
  }

  /** In part only where that is an operation of its own. */
  #givenBack({ service, key, amount }: Omit<FollowedCall, "do">): Omit<FollowedCall, "do"> {
    const isByAmount = this.#terminals[service]?.trade.backIsByAmount === true;
    return { service, key, amount: isByAmount ? amount : usualAmount };
  }

  #takeBack({ service, key, amount }: Omit<FollowedCall, "do">, waitMs: number): void {
    this.#last.set(`${service} back ${key} of ${amount}`, { do: "back", service, key, amount });
    this.#ask({ service, key }, "back", amount, waitMs);
  }

  #askPlainly({ service, key, amount }: Omit<FollowedCall, "do">, what: "sale" | "back"): void {
    const route = this.#terminals[service]?.trade[what] ?? "";
    const name = this.#nameOf({ service: serviceNames[service] ?? "", route, key: `k${key}`, amount: String(amount) });
    this.#plain.set(name, (this.#plain.get(name) ?? 0) + 1);
    this.#ask({ service, key }, what, amount);
  }

  /** What is over can be looked up: that nothing was carried out, once nothing can be on its way any more. */
  #look(): void {
    const { operations } = this.#box;
    const open = operations.listed.find(
      ({ sent }) => this.#time.nowMs - (this.#lastSentMs.get(this.#nameOf(sent)) ?? 0) > lookMs,
    );
    if (open === undefined) return;
    const { sent } = open;
    const stands = this.#terminalOf(sent.service)?.standsOf(sent.route, this.#operationOf(sent)) ?? [];
    const ran = stands.filter((stand) => stand !== "refused" && stand !== "gone");
    const [end] = ran;
    if (ran.length > 1 || end === "in progress" || end === "declined") return;
    void operations.settle(open, { result: end ?? "failed", by: "operator", note: "looked" });
  }

  #ask(
    { service: index, key: number }: { readonly service: number; readonly key: number },
    what: "sale" | "back" | "question" | "abort",
    amount: number = usualAmount,
    waitMs?: number,
    leavesMs?: number,
  ): void {
    const key = `k${number}`;
    const name = serviceNames[index];
    const terminal = this.#terminals[index];
    if (name === undefined || terminal === undefined) return;
    const { trade } = terminal;
    const route = what === "abort" ? "/abort" : trade[what];
    if (!contracts[trade.contract].routes.some(({ path }) => path === route)) return;
    const id = `${name} ${route} ${key} #${++this.#calls}`;
    const cameMs = this.#time.nowMs;
    const sent = { service: name, route, key, amount: String(amount) };
    const operation = this.#nameOf(sent);
    this.#noteSent(operation);
    if (leavesMs !== undefined) this.#leavings.push({ sent, atMs: cameMs + leavesMs });
    const untilMs = Math.max(this.#waitedUntilMs.get(operation) ?? 0, cameMs + (waitMs ?? 0));
    this.#waitedUntilMs.set(operation, untilMs);
    // A till that doesn't name its payments has the name from the answer.
    const own = this.#world.services[index]?.tillNames === true ? `own-${key}` : undefined;
    const payment = what === "sale" ? own : (terminal.nameOf(key) ?? own);
    const body = bodyOf(trade.contract, trade.body(route, key, amount, payment));
    this.#send(index, id, { path: route, body, waitMs, leavesMs }, (word, trans) => {
      const untilMs = Math.max(cameMs, this.#waitedUntilMs.get(operation) ?? 0);
      assert.ok(this.#time.nowMs <= untilMs + boundMs, `${id} took ${this.#time.nowMs - cameMs} ms`);
      if (word !== undefined) this.#wordIsSo(sent, word);
      if (trans !== undefined) this.#transIsSo(sent, word, trans);
    });
  }

  #noteSent(name: string): void {
    this.#lastSentMs.set(name, this.#time.nowMs);
    this.#timesSent.set(name, (this.#timesSent.get(name) ?? 0) + 1);
  }

  #terminalOf(service: string): FullTerminal | undefined {
    return this.#terminals.find((_, index) => serviceNames[index] === service);
  }

  /** As its terminal's ledger has it, under its path. */
  #operationOf({ service, route, key = "", amount }: Sent): string {
    const terminal = this.#terminalOf(service);
    return terminal === undefined ? key : operationOf(terminal.trade, route, key, Number(amount));
  }

  /** Of an operation among all. */
  #nameOf(sent: Sent): string {
    return `${sent.service} ${sent.route} ${this.#operationOf(sent)}`;
  }

  // --- what is promised

  /** A sale may have gone out without a record, as its owner chose: nobody can know of it then. */
  get #mayRelayUnrecorded(): boolean {
    return this.#world.onFailure === "relay" && this.#mayLackRecords;
  }

  #fail(error: unknown): void {
    this.#broken ??= error instanceof Error ? error : new Error(String(error));
  }

  /** What a promise's callback finds is thrown where the world is run. */
  #checked(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** By another's, or by a code that nobody paid, nothing would be given back. */
  #transIsSo(sent: Sent, word: OperationResult | undefined, trans: string): void {
    const isPaid = word === "approved";
    const has = this.#terminalOf(sent.service)?.hasId(sent.route, this.#operationOf(sent), trans, isPaid ? isGood : undefined);
    assert.ok(has !== false, `${this.#nameOf(sent)} was told ${word ?? "nothing"} and to be given back by ${trans}`);
    this.#tally.named++;
  }

  #wordIsSo(sent: Sent, word: OperationResult): void {
    const terminal = this.#terminalOf(sent.service);
    if (terminal === undefined) return;
    const { route } = sent;
    const [operation, name] = [this.#operationOf(sent), this.#nameOf(sent)];
    const stands = terminal.standsOf(route, operation, sent.amount);
    const isPaid = stands.some(isGood);
    const isOfOne = isAllowed(word, this.#judged(sent, stands));
    if (isOfOne && !(isPaid && (word === "declined" || word === "failed"))) return;
    const beganMs = terminal.lastBeganMs(route, operation) ?? Number.POSITIVE_INFINITY;
    const isOfLast = isAllowed(word, stands.slice(-1)) && this.#time.nowMs - beganMs > onItsWayMs;
    // A repetition without the header was carried out again, against the contract. Once nothing can be on its way any more, nobody can tell
    // how that one ended from how the first did.
    if (isOfLast && this.#plain.has(name)) this.#tally.lastOfSeveral++;
    // The terminal's word about a second sending, where the first was to go out without a record.
    else if (this.#mayRelayUnrecorded) this.#tally.unrecordedTwice++;
    else if (this.#lostTwice.has(name)) this.#tally.lostTwice++;
    else if (this.#mayBeOfLostOther(sent)) this.#tally.lostOthers++;
    else assert.fail(`${name} was told ${word}, and the ledger has ${stands.join(", ")}`);
  }

  /** Whether another sending under its key may be in records that are lost: what nobody knows of where no journal is kept, either. */
  #mayBeOfLostOther(sent: Sent): boolean {
    const { service, route, key = "" } = sent;
    const terminal = this.#terminalOf(service);
    if (!this.#hasLostRecords || terminal === undefined) return false;
    // Nor is it known of the same without the header.
    if (this.#plain.has(this.#nameOf(sent))) return true;
    const operation = this.#operationOf(sent);
    // One that never came to the terminal may have been sent until its till asked last.
    const sentMs = terminal.heardMs(route, operation) ?? this.#lastSentMs.get(this.#nameOf(sent)) ?? 0;
    return terminal.hadOtherBefore(route, { key, operation, amount: sent.amount }, sentMs);
  }

  /** By which of its sendings a word is judged: by the last that ran, unless it was sent without the header too, as clients do, or a lost record had it. */
  #judged(sent: Sent, stands: readonly Stand[]): readonly Stand[] {
    const last = stands.at(-1);
    const isRepeated = this.#plain.has(this.#nameOf(sent)) || isClientKey(sent.key ?? "") || this.#hasLostRecords;
    return last === undefined || isRepeated ? stands : [last];
  }

  /** What its till no longer waits for isn't sent any more. */
  #nothingSentForNobody(): void {
    for (const { sent, atMs } of this.#leavings) {
      const name = this.#nameOf(sent);
      if (this.#timesSent.get(name) !== 1) continue;
      const heardMs = this.#terminalOf(sent.service)?.heardMs(sent.route, this.#operationOf(sent)) ?? 0;
      assert.ok(heardMs <= atMs + outMs, `${name} was sent ${heardMs - atMs} ms after its till had left`);
    }
  }

  /** A repetition with `Prefer: wait` isn't carried out again. */
  #ran(name: string, times: number): void {
    this.#say(`${name} runs`);
    if (times <= 1 + (this.#plain.get(name) ?? 0) || this.#clients.mayShowAgain(name)) return;
    if (this.#mayRelayUnrecorded) this.#tally.unrecordedTwice++;
    else if (this.#hasLostRecords && !this.#box.operations.isWhole) {
      this.#tally.lostTwice++;
      this.#lostTwice.add(name);
    } else this.#fail(new Error(`${name} was carried out ${times} times`));
  }

  /** What the journal calls not sent was not, what it calls settled is so, and what went out is in it. */
  async #journalAgrees(): Promise<void> {
    const path = journalFile(folder);
    const file = this.#disk.files.get(path);
    if (file === undefined) return;
    const { records } = await scanRing(await this.#disk.open(path), 0, file.current.length / slotBytes);
    const operations = joinOperations(records);
    for (const [index, terminal] of this.#terminals.entries()) {
      const name = serviceNames[index];
      const { sale, back } = terminal.trade;
      const own = operations.filter(({ sent }) => sent.service === name && (sent.route === sale || sent.route === back));
      for (const { sent, settled, ending } of own) {
        const { route } = sent;
        const [operation, named] = [this.#operationOf(sent), this.#nameOf(sent)];
        const others = own.filter((each) => this.#nameOf(each.sent) === named);
        if (settled !== undefined) {
          this.#tally.settled++;
          // One that failed may have been sent anew under its key; then as many ran as did not fail, or fewer.
          const stands = terminal.standsOf(route, operation, sent.amount);
          const ran = stands.filter((stand) => stand !== "refused" && stand !== "gone").length;
          const lost = this.#hasLostRecords ? timesHeard(terminal, `${route} ${operation}`) - others.length : 0;
          const mayHaveRun = others.filter((each) => each.settled?.result !== "failed").length + Math.max(0, lost);
          const isSo = settled.result === "failed" ? ran <= mayHaveRun : isAllowed(settled.result, this.#judged(sent, stands));
          // It may have been sent again without a record, and the ledger stands as that one ended.
          assert.ok(
            isSo || this.#mayRelayUnrecorded || this.#lostTwice.has(named) || this.#mayBeOfLostOther(sent),
            `${named} is settled as ${settled.result}, and the ledger has ${stands.join(", ")}`,
          );
        }
        const allNotSent = others.every((each) => each.ending?.outcome === "not-sent");
        if (route === sale && ending?.outcome === "not-sent" && allNotSent && !this.#mayLackRecords && !this.#hasLostRecords) {
          assert.ok(
            !terminal.heard.includes(`${sale} ${operation}`),
            `the journal has ${named} as not sent, and the terminal heard it`,
          );
        }
      }
      if (this.#mayRelayUnrecorded || this.#hasLostRecords) continue;
      const recorded = new Set(own.map(({ sent }) => `${sent.route} ${this.#operationOf(sent)}`));
      for (const each of terminal.heard)
        assert.ok(recorded.has(each), `${name} ${each} went out, and the journal has no record`);
    }
  }
}

const timesHeard = (terminal: FullTerminal, name: string) => terminal.heard.filter((each) => each === name).length;

/** The page of a journal's file where its newest record is. */
function newestPage(file: Buffer): number | undefined {
  let newest: { readonly sequence: number; readonly at: number } | undefined;
  for (let at = 0; at < file.length; at += slotBytes) {
    const slot = readSlot(file.subarray(at, at + slotBytes));
    if (typeof slot !== "string" && slot.sequence > (newest?.sequence ?? 0)) newest = { sequence: slot.sequence, at };
  }
  return newest && Math.floor(newest.at / pageBytes);
}

/** Milliseconds for which tills wait that take all back before the batch is closed. */
const backWaitMs = 20_000;

/** Milliseconds within which a process stops: what systemd gives it (systemd/posline.service). */
const stopMsMax = 75_000;

/** Milliseconds that a request may be on its way to the terminal once it is out. */
const outMs = 1_000;

/** Milliseconds that each till waits in the end: longer than "there is none" proves nothing. */
const lastWaitMs = 60_000;

/** Milliseconds from its arrival after which nothing of a sending can be on its way: a minute from when it was sent (bank.md, 30 s twice). */
const onItsWayMs = 59_000;

/** Milliseconds after which nothing of a call can be on its way: its time in the queue and out, and behind a gateway. */
const lookMs = 120_000;

/**
 * Milliseconds that a call may take beside its own wait: for its records, its turn behind others, its sending, and a question's end, and for a
 * sale that outdates that question.
 */
const boundMs = 10_000 + 2 * (15_000 + replyTimeoutMs + 10_000) + replyTimeoutMs;
