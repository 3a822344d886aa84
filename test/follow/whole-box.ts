import { contracts } from "../../src/contract/contracts.ts";
import type { Call, Handler } from "../../src/core/call.ts";
import { Fault } from "../../src/core/fault.ts";
import { Presence } from "../../src/core/presence.ts";
import { keyOf } from "../../src/envelope/json.ts";
import { Doubts } from "../../src/follow/doubts.ts";
import { Follower } from "../../src/follow/follower.ts";
import { joined } from "../../src/follow/joined.ts";
import { observed } from "../../src/follow/observer.ts";
import { Resolver } from "../../src/follow/resolver.ts";
import { Turns } from "../../src/follow/turns.ts";
import { Journal } from "../../src/journal/journal.ts";
import { lineCaller } from "../../src/line/caller.ts";
import type { Line } from "../../src/line/line.ts";
import { bytes, folder, Told as ToldJournal } from "../journal/records.ts";
import { SimDisk } from "../journal/sim-disk.ts";
import { lineOver } from "../line/lines.ts";
import { FakeDevice } from "../support/fake-device.ts";
import { probeReply } from "../support/terminal.ts";
import type { VirtualTime } from "../support/virtual-time.ts";

/** A request or a question, as the terminal got it. */
export interface Asked {
  readonly atMs: number;
  readonly route: string;
  readonly body: { readonly pay_id: string; readonly amount?: number };
}

/** What a caller was told, once it was. */
export interface Told {
  outcome?: string;
  /** `X-Posline-Result`. */
  word?: string;
  /** undefined where there is no word. */
  isGuarded?: boolean;
  text?: string;
}

/**
 * A box with one bank terminal in virtual time: the real journal over a disk in memory, the real line over a device in memory, the
 * follower and the resolver, wired as `src/app/bridge.ts` does.
 */
export class WholeBox {
  /** Milliseconds that the terminal takes for an answer. */
  answerMs = 10;
  disk = new SimDisk();
  readonly got: Asked[] = [];
  readonly time: VirtualTime;
  readonly #answer: (asked: Asked, box: WholeBox) => object | undefined;
  readonly #resolves: boolean;
  #life: Life | undefined;

  /** @param answer What the terminal answers; undefined for nothing. */
  constructor(time: VirtualTime, answer: (asked: Asked, box: WholeBox) => object | undefined, resolves = true) {
    this.time = time;
    this.#answer = answer;
    this.#resolves = resolves;
  }

  get #running(): Life {
    if (this.#life === undefined) throw new Error("the box isn't started");
    return this.#life;
  }

  get journal(): Journal {
    return this.#running.journal;
  }

  async start(): Promise<this> {
    const device = new FakeDevice((framing, text) => {
      const probe = probeReply({ framing, text, number: 0 });
      const reply = probe ?? this.#replyTo(text);
      if (reply !== undefined) this.time.after(probe === undefined ? this.answerMs : 10, () => device.reply(framing, reply));
    });
    const journal = new Journal({ folder, bytes, onFailure: "relay", report: new ToldJournal(), disk: this.disk });
    void journal.start();
    const contract = contracts.bank;
    const doubts = new Doubts(journal);
    const merchantId = undefined;
    doubts.use(new Map([["bank", { contract, merchantId }]]));
    const { line } = lineOver(device.open, { services: ["bank"] });
    const caller = lineCaller({ contract, line, merchantId, ledger: journal, replyTimeoutMs: {} });
    const seen = observed(caller, { contract }, doubts, (error) => {
      throw error;
    });
    const handler = joined(contract, seen);
    const turns = new Turns();
    const follower = new Follower({ contract, service: "bank", handler, merchantId, history: journal, turns });
    const resolver = new Resolver({
      doubts,
      line,
      services: new Map([["bank", { contract, merchantId, handler: seen }]]),
      isFollowed: (_, route, key) => follower.isFollowed(route, key),
      turn: (work) => turns.take(work),
    });
    if (this.#resolves) {
      journal.onOpened = () => resolver.wake();
      resolver.wake();
    }
    this.#life = { device, journal, follower, handler, line, resolver };
    line.start();
    await this.time.advance(3_000);
    return this;
  }

  #replyTo(text: string): string | undefined {
    const end = text.indexOf("\n");
    const asked: Asked = { atMs: this.time.nowMs, route: text.slice(0, end), body: JSON.parse(text.slice(end + 1)) };
    this.got.push(asked);
    const answered = this.#answer(asked, this);
    return answered === undefined ? undefined : JSON.stringify(answered);
  }

  /** `kill -9`, and a new process on the same disk. */
  async kill(isReadOnly = false): Promise<void> {
    const { follower, resolver, line } = this.#running;
    this.disk.fuse = 0;
    this.disk = this.disk.afterCut([{ keeps: "all", bytes: 0 }], true);
    this.disk.isReadOnly = isReadOnly;
    follower.stop();
    resolver.stop();
    void line.stop(0);
    await this.start();
  }

  /** A till's call; without `Prefer: wait` where no seconds are given. */
  call(route: string, body: Asked["body"], waitS?: number): Told {
    const { handler, follower } = this.#running;
    const call: Call = {
      service: "bank",
      contract: "bank",
      route,
      body: [Buffer.from(JSON.stringify(body))],
      requestId: "r",
      key: keyOf(body.pay_id),
      caller: new Presence(),
      followMs: waitS === undefined ? undefined : waitS * 1_000,
    };
    const told: Told = {};
    const asking = waitS === undefined ? handler(call) : follower.follow(call);
    asking.then(
      ({ followed, payload }) => {
        const { result: word, isGuarded } = followed ?? {};
        Object.assign(told, { outcome: "answered", word, isGuarded, text: Buffer.concat(payload).toString() });
      },
      (error: unknown) => {
        if (!(error instanceof Fault)) throw error;
        const { result: word, isGuarded } = error.details.followed ?? {};
        Object.assign(told, { outcome: error.outcome, word, isGuarded, text: error.message });
      },
    );
    return told;
  }

  /** The cable is pulled. */
  unplug(): void {
    this.#running.device.unplug();
  }

  /** How often a route was on the wire. */
  count(route: string): number {
    return this.got.filter((each) => each.route === route).length;
  }

  get unknown(): readonly string[] {
    return this.journal.unknown().map(({ route, key }) => `${route} ${key}`);
  }
}

/** One process. */
interface Life {
  readonly device: FakeDevice;
  readonly journal: Journal;
  readonly follower: Follower;
  readonly handler: Handler;
  readonly line: Line;
  readonly resolver: Resolver;
}

export const success = { status: "success" };
export const absent = { status: "error", code: -15, message: "transaction not found" };
export const final = (status: "APPROVED" | "ERROR", txn_id: string) => ({
  status: status === "APPROVED" ? "success" : "error",
  ...(status === "APPROVED" ? {} : { code: -20, message: "declined" }),
  data: { status, txn_id },
});
