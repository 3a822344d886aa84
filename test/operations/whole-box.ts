import assert from "node:assert/strict";
import { Ways } from "../../src/bridge/ways.ts";
import { contracts } from "../../src/contract/contracts.ts";
import type { Call, Handler, Reply } from "../../src/core/call.ts";
import { Fault, nothingSent } from "../../src/core/fault.ts";
import type { OperationEnd } from "../../src/core/followed.ts";
import { Presence } from "../../src/core/presence.ts";
import { keyOf } from "../../src/envelope/json.ts";
import { lineCaller } from "../../src/line/caller.ts";
import type { Line } from "../../src/line/line.ts";
import { Operations } from "../../src/operations/operations.ts";
import { bytes, folder, Told as ToldJournal } from "../journal/records.ts";
import { SimDisk } from "../journal/sim-disk.ts";
import { lineOver } from "../line/lines.ts";
import { FakeDevice } from "../support/fake-device.ts";
import { serviceConfigOf } from "../support/service-config.ts";
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
 * A box with one bank terminal in virtual time: the real journal over a disk in memory, the real line over a device in memory, and
 * how operations settle, wired as `src/bridge/bridge.ts` does.
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

  get operations(): Operations {
    return this.#running.operations;
  }

  async start(): Promise<this> {
    const device = new FakeDevice((framing, text) => {
      const probe = probeReply({ framing, text, number: 0 });
      const reply = probe ?? this.#replyTo(text);
      if (reply !== undefined) this.time.after(probe === undefined ? this.answerMs : 10, () => device.reply(framing, reply));
    });
    const operations = new Operations({ folder, bytes, onFailure: "relay", report: new ToldJournal(), disk: this.disk });
    void operations.start();
    const contract = contracts.bank;
    const merchantId = undefined;
    const config = serviceConfigOf();
    const { line } = lineOver(device.open, { services: ["bank"] });
    const caller = lineCaller({ contract, line, merchantId, ledger: operations, replyTimeoutMs: {} });
    const ways = new Ways({
      operations,
      folder,
      resolve: this.#resolves ? "ask" : "observe",
      error: (error) => {
        throw error;
      },
    });
    const calls = ways.handlerOf({ service: "bank", config }, caller);
    ways.take({ lines: {}, services: { bank: config }, journal: false, log: { level: "info" } }, [line]);
    this.#life = { device, operations, ways, calls, line };
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
    const { ways, line } = this.#running;
    this.disk.fuse = 0;
    this.disk = this.disk.afterCut([{ keeps: "all", bytes: 0 }], true);
    this.disk.isReadOnly = isReadOnly;
    ways.stop();
    void line.stop(0);
    await this.start();
  }

  /** A till's call, and then so many milliseconds. */
  async callFor(ms: number, route: string, body: Asked["body"], waitS?: number): Promise<Told> {
    const told = this.call(route, body, waitS);
    await this.time.advance(ms);
    return told;
  }

  /** A till's call; without `Prefer: wait` where no seconds are given. */
  call(route: string, body: Asked["body"], waitS?: number): Told {
    const { calls } = this.#running;
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
    calls(call).then(
      ({ followed, payload }) => {
        const { result: word, isGuarded } = followed ?? {};
        Object.assign(told, { outcome: "answered", word, isGuarded, text: Buffer.concat(payload).toString() });
      },
      (error: unknown) => {
        if (!(error instanceof Fault)) throw error;
        const { result: word, isGuarded } = error.details.followed ?? {};
        Object.assign(told, { outcome: error.outcome, word, isGuarded, text: error.message });
        // Who reads the message alone would sell under another key.
        assert.ok(word !== "unknown" || !error.message.includes(nothingSent), error.message);
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

  /** How the operation that was sent last of a route is proven to have ended. */
  endOf(route: string, key = "P-1"): OperationEnd | undefined {
    const last = this.operations.under("bank", key).findLast(({ sent }) => sent.route === route);
    return last === undefined ? undefined : this.operations.togetherOf(last).end;
  }

  get unknown(): readonly string[] {
    return this.operations.unknown().map(({ route, key }) => `${route} ${key}`);
  }
}

/** One process. */
interface Life {
  readonly device: FakeDevice;
  readonly operations: Operations;
  readonly ways: Ways;
  readonly calls: Handler;
  readonly line: Line;
}

export const success = { status: "success" };
export const absent = { status: "error", code: -15, message: "transaction not found" };
export const final = (status: "APPROVED" | "ERROR", txn_id: string) => ({
  status: status === "APPROVED" ? "success" : "error",
  ...(status === "APPROVED" ? {} : { code: -20, message: "declined" }),
  data: { status, txn_id },
});

/** A reply with this JSON. */
export const replyOf = (json: { readonly status?: string; readonly code?: number }): Reply => ({
  ...{ payload: [Buffer.from(JSON.stringify(json))], status: json.status, code: json.code, queueMs: 0, lineMs: 10 },
});
