import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Ways } from "../../src/bridge/ways.ts";
import type { Call, Handler, Reply } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { type OperationResult, operationResults } from "../../src/core/followed.ts";
import { Presence } from "../../src/core/presence.ts";
import { joinOperations } from "../../src/journal/record.ts";
import { readRing } from "../../src/journal/ring.ts";
import { explain } from "../../src/operations/explanation.ts";
import { Operations } from "../../src/operations/operations.ts";
import { bytes, folder, routeTo, Told } from "../journal/records.ts";
import { SimDisk } from "../journal/sim-disk.ts";
import { serviceConfigOf } from "../support/service-config.ts";
import { virtualTime } from "../support/virtual-time.ts";
import { replyOf } from "./whole-box.ts";

/**
 * Tests src/operations/. Random worlds:
 *
 * Tills send sales and refunds, leave, come back and send the same again, two at a time; posline is killed at any moment and starts
 * anew with its journal; requests and answers are lost, refused and wrong in every way in which a line reports it. The terminal keeps
 * a ledger. Nothing is ever carried out twice under a key, and each word that a till is given is what the ledger has.
 */

const time = virtualTime();

/** What becomes of one request. */
type Way = "answered" | "reply lost" | "request lost" | "not sent" | "refused" | "cancelled" | "error";

/** How an operation ends at the terminal. */
type End = "APPROVED" | "ERROR" | "REVERSED";

interface World {
  readonly ways: readonly Way[];
  /** `latencyMs`: until the terminal knows of it; a gateway may answer before that, with an error (bank.md, -3). */
  readonly ends: readonly { readonly end: End; readonly latencyMs: number; readonly takesMs: number }[];
  readonly steps: readonly Step[];
}

type Step =
  | {
      readonly do: "call";
      readonly key: number;
      readonly route: "/sale" | "/refund";
      readonly waitS: number;
      readonly leavesMs: number;
    }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "kill" };

const way = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Way>("answered") },
  { weight: 4, arbitrary: fc.constantFrom<Way>("reply lost", "request lost", "not sent", "refused", "cancelled", "error") },
);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("call" as const),
      key: fc.integer({ min: 0, max: 2 }),
      route: fc.constantFrom("/sale" as const, "/sale" as const, "/refund" as const),
      waitS: fc.integer({ min: 0, max: 90 }),
      leavesMs: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 0, max: 40_000 })),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 0, max: 40_000 }) }) },
  { weight: 2, arbitrary: fc.constant({ do: "kill" as const }) },
);

const world: fc.Arbitrary<World> = fc.record({
  ways: fc.array(way, { minLength: 1, maxLength: 24 }),
  ends: fc.array(
    fc.record({
      end: fc.constantFrom<End>("APPROVED", "APPROVED", "ERROR", "REVERSED"),
      latencyMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 29_000 })),
      takesMs: fc.oneof(fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 0, max: 90_000 })),
    }),
    { minLength: 1, maxLength: 6 },
  ),
  steps: fc.array(step, { minLength: 1, maxLength: 20 }),
});

/** Milliseconds of an exchange, and of one that is waited for in vain. */
const exchangeMs = 20;
const replyTimeoutMs = 30_000;

/** How many calls of all worlds were followed, for the figure. */
let followed = 0;

/** How many explanations were compared with a ledger, for the figure. */
let explanations = 0;

const bodyOf = (name: string) => JSON.stringify({ pay_id: name, amount: 1500 });

class Life {
  readonly #world: World;
  readonly #ledger = new Map<string, { end: End; beganMs: number; atMs: number; times: number }>();
  #disk = new SimDisk();
  #operations: Operations;
  #calls: Handler;
  #ways: Ways;
  #lives = 0;
  #requests = 0;
  #isHealthy = false;
  /** One request at a time, as on a line. */
  #line: Promise<unknown> = Promise.resolve();
  #open = 0;

  constructor(world: World) {
    this.#world = world;
    [this.#operations, this.#ways, this.#calls] = this.#started();
  }

  async run(): Promise<void> {
    for (const each of this.#world.steps) {
      if (each.do === "wait") await time.advance(each.ms);
      else if (each.do === "kill") await this.#kill();
      else void this.#ask(each.route, each.key, each.waitS, each.leavesMs);
      await time.advance(1);
    }
    await this.#explained(true);
    this.#isHealthy = true;
    await time.advance(200_000);
    await this.#allEnd();
    await this.#explained(true);
    assert.equal(this.#open, 0, "every call is answered");
  }

  /** The same calls once more, from a terminal that answers: every operation has an end, or has no question that could tell. */
  async #allEnd(): Promise<void> {
    const calls = this.#world.steps.flatMap((each) => (each.do === "call" ? [each] : []));
    for (const { route, key } of calls) {
      let word: OperationResult | undefined;
      const asking = this.#ask(route, key, 120, Number.POSITIVE_INFINITY).then((said) => {
        word = said;
      });
      assert.ok(await time.until(() => word !== undefined, 200_000), "it ends");
      await asking;
      assert.ok(word !== "pending" && word !== "unknown", `${route} ${key} ends: ${word}`);
    }
  }

  async #kill(): Promise<void> {
    this.#lives++;
    this.#open = 0;
    this.#ways.stop();
    this.#line = Promise.resolve();
    this.#disk.fuse = 0;
    this.#disk = this.#disk.afterCut([{ keeps: "all", bytes: 0 }], true);
    await this.#explained(false);
    [this.#operations, this.#ways, this.#calls] = this.#started();
  }

  /** What `posline explain` would say now is so, whoever reads the journal. */
  async #explained(isWritten: boolean): Promise<void> {
    const { records } = await readRing(this.#disk, folder).catch(() => ({ records: [] }));
    const operations = joinOperations(records);
    const contractOf = () => "bank" as const;
    for (const { key, result, moments } of explain({ records, operations, isWritten, exchanges: [], contractOf })) {
      explanations++;
      assert.ok(moments.length > 0);
      if (operationResults.some((word) => word === result)) this.#checkWord(key ?? "", result as OperationResult);
    }
  }

  #started(): [Operations, Ways, Handler] {
    const life = this.#lives + 1;
    const operations = new Operations({ folder, bytes, onFailure: "relay", report: new Told(), disk: this.#disk });
    void operations.start();
    const fail = (error: unknown) => {
      throw error;
    };
    const ways = new Ways({ operations, folder, resolve: "ask", error: fail });
    const config = serviceConfigOf();
    const calls = ways.handlerOf({ service: "bank", config }, (call) => this.#exchange(call, life));
    const line = { name: config.line, state: "idle", waiting: 0 };
    ways.take({ lines: {}, services: { bank: config }, journal: false, log: { level: "info" } }, [line]);
    return [operations, ways, calls];
  }

  /** One call of a till; what it is told must be so. */
  async #ask(route: string, key: number, waitS: number, leavesMs: number): Promise<OperationResult | undefined> {
    const name = nameOf(route, key);
    const caller = new Presence();
    const life = this.#lives;
    if (Number.isFinite(leavesMs)) time.after(leavesMs, () => caller.leave());
    this.#open++;
    followed++;
    const body = [Buffer.from(bodyOf(name))];
    const call: Call = {
      service: "bank",
      contract: "bank",
      route,
      body,
      requestId: "r",
      key: name,
      caller,
      followMs: waitS * 1_000,
    };
    const stands = await this.#calls(call).then(
      (reply) => reply.followed,
      (error: unknown) => {
        if (error instanceof Fault) return error.details.followed;
        throw error;
      },
    );
    // A process that was killed tells nobody anything.
    if (life !== this.#lives) return undefined;
    this.#open--;
    if (stands !== undefined) this.#checkWord(name, stands.result);
    return stands?.result;
  }

  #checkWord(name: string, word: OperationResult): void {
    assert.ok(operationResults.includes(word));
    const entry = this.#ledger.get(name);
    const isOver = entry !== undefined && entry.atMs <= time.nowMs;
    const has = entry === undefined ? "nothing" : isOver ? entry.end : "in progress";
    const allowed: Readonly<Partial<Record<OperationResult, readonly string[]>>> = {
      approved: ["APPROVED"],
      // Refused by a code which proves that nothing was begun, or declined by the terminal.
      declined: ["ERROR", "nothing"],
      reversed: ["REVERSED"],
      failed: ["nothing"],
    };
    assert.ok(allowed[word]?.includes(has) ?? true, `${name} was told ${word}, and the ledger has ${has}`);
  }

  /** As a line does it: recorded before it goes out, and again before its caller learns what became of it. */
  async #exchange(call: Call, life: number): Promise<Reply> {
    const { route } = call;
    const isStart = route !== "/check";
    const way = this.#isHealthy ? "answered" : (this.#world.ways[this.#requests++ % this.#world.ways.length] ?? "answered");
    const before = this.#line;
    const turn = before.then(async () => {
      if (this.#isDead(life)) return never();
      if (way === "not sent" || (isStart && call.caller.gone)) throw down;
      const entry = isStart ? this.#operations.begin(call, routeTo(route)) : undefined;
      try {
        await entry?.sent();
        const reply = await this.#answered(call, way, life);
        await entry?.ended({ outcome: "answered", ...reply });
        return reply;
      } catch (error) {
        if (error instanceof Fault) await entry?.ended({ outcome: error.outcome });
        throw error;
      }
    });
    this.#line = turn.catch(() => {});
    return turn;
  }

  async #answered(call: Call, way: Way, life: number): Promise<Reply> {
    if (this.#isDead(life)) return never();
    const isStart = call.route !== "/check";
    const name = (JSON.parse(Buffer.concat(call.body).toString()) as { readonly pay_id: string }).pay_id;
    await new Promise((resolve) => time.after(exchangeMs, () => resolve(undefined)));
    const answer = way === "request lost" ? undefined : this.#atTerminal(isStart, name, way);
    if (this.#isDead(life)) return never();
    if (way === "request lost" || way === "reply lost") {
      await new Promise((resolve) => time.after(replyTimeoutMs, () => resolve(undefined)));
      if (this.#isDead(life)) return never();
      throw lost;
    }
    return replyOf(answer ?? {});
  }

  #isDead(life: number): boolean {
    return life !== this.#lives + 1;
  }

  #atTerminal(isStart: boolean, name: string, way: Way): object {
    const entry = this.#ledger.get(name);
    if (!isStart) {
      if (entry === undefined || entry.beganMs > time.nowMs) return { status: "error", code: -15 };
      if (entry.atMs > time.nowMs) return { status: "success" };
      const data = { status: entry.end, txn_id: name };
      return entry.end === "APPROVED" ? { status: "success", data } : { status: "error", code: -20, data };
    }
    if (way === "refused") return { status: "error", code: -29 };
    // The terminal's own word, which leaves it open by its code alone.
    if (way === "cancelled") return { status: "error", code: -21 };
    const plan = this.#world.ends[this.#ledger.size % this.#world.ends.length];
    const { end, latencyMs, takesMs } = plan ?? { end: "APPROVED", latencyMs: 0, takesMs: 0 };
    // One that is answered with success is known of from then on.
    const beganMs = time.nowMs + (way === "answered" ? 0 : latencyMs);
    const times = (entry?.times ?? 0) + 1;
    this.#ledger.set(name, { end, beganMs, atMs: beganMs + takesMs, times });
    assert.equal(times, 1, `${name} was carried out twice`);
    return way === "error" ? { status: "error", code: -3 } : { status: "success" };
  }
}

const nameOf = (route: string, key: number) => `${route.slice(1)}-${key}`;

const lost = new Fault("timeout", "No valid reply from line till", { reason: "no-reply" });
const down = new Fault("unavailable", "Cannot send to line till: it is down", { reason: "line-down", retryAfterS: 1 });
const never = () => new Promise<Reply>(() => {});

const campaign = process.env["FOLLOW_RUNS"];

test("Ways carries out nothing twice under one key, and tells no till what its terminal's ledger hasn't, in any world", async () => {
  await fc.assert(
    fc.asyncProperty(world, (each) => new Life(each).run()),
    { numRuns: Number(campaign ?? 200), ...(campaign === undefined ? { seed: 20_261_122 } : {}), includeErrorInReport: true },
  );
  assert.ok(explanations > 100, "journals are explained");
  if (campaign !== undefined) console.log(`${followed} calls followed, ${explanations} explanations`);
});
