import { contracts } from "../../src/contract/contracts.ts";
import type { OperationLogEnding } from "../../src/contract/operation-log.ts";
import type { Call, ContractName, Handler, Reply } from "../../src/core/call.ts";
import { Presence } from "../../src/core/presence.ts";
import { parseForm, unescapeValue } from "../../src/envelope/form.ts";
import { Doubts } from "../../src/follow/doubts.ts";
import { observed } from "../../src/follow/observer.ts";
import { Resolver } from "../../src/follow/resolver.ts";
import { type Journal, openJournal } from "../../src/journal/journal.ts";
import { bytes, folder, routeTo, Told } from "../journal/records.ts";
import { SimDisk } from "../journal/sim-disk.ts";
import type { VirtualTime } from "../support/virtual-time.ts";

/** A journal with operations in doubt, a terminal that answers as a test says, and a line that is as a test says. */

/** A question as the terminal sees it. */
export interface Asked {
  readonly atMs: number;
  readonly route: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly call: Call;
}

/** The mark of the device that questions go over. */
export const askedOver = "bank new";

/** What the terminal answers: JSON, or a fault. */
export type Answers = (asked: Asked) => object | Promise<object>;

export const absent = { status: "error", code: -15, message: "no such transaction" };
export const inProgress = { status: "success" };
export const ended = (status: "APPROVED" | "ERROR" | "REVERSED") => ({
  status: status === "APPROVED" ? "success" : "error",
  data: { status },
});

export class Bench {
  readonly asked: Asked[] = [];
  readonly told: Told;
  readonly journal: Journal;
  readonly doubts: Doubts;
  readonly line = { state: "idle", waiting: 0 };
  readonly followed = new Set<string>();
  readonly errors: unknown[] = [];
  readonly disk: SimDisk;
  answers: Answers;
  /** The observed handlers, as tills ask them. */
  readonly handlers: ReadonlyMap<ContractName, Handler>;
  resolver: Resolver | undefined;
  /** When posline may ask by itself: at once, unless a test has it wait. */
  turn: <T>(work: () => Promise<T>) => Promise<T> = (work) => work();
  readonly #beganMs: number;
  readonly #time: VirtualTime;

  constructor(time: VirtualTime, journal: Journal, told: Told, disk: SimDisk, answers: Answers) {
    this.#time = time;
    this.#beganMs = time.nowMs;
    this.journal = journal;
    this.told = told;
    this.disk = disk;
    this.answers = answers;
    this.doubts = new Doubts(journal);
    const names = ["bank", "fiscal", "qr"] as const;
    const services = new Map(names.map((name) => [name, { contract: contracts[name], merchantId: "MERCHANT-1" }]));
    this.doubts.use(services);
    this.handlers = new Map(
      names.map((name) => [
        name,
        observed(
          (call) => this.#answer(call),
          { contract: contracts[name], device: askedOver },
          this.doubts,
          (error) => this.errors.push(error),
        ),
      ]),
    );
  }

  /** Lets posline ask by itself. */
  resolve(services: readonly ContractName[] = ["bank", "fiscal", "qr"]): Resolver {
    const resolver = new Resolver({
      doubts: this.doubts,
      line: this.line,
      services: new Map(
        services.map((name) => [
          name,
          { contract: contracts[name], merchantId: "MERCHANT-1", handler: this.handlers.get(name) ?? (() => Promise.reject()) },
        ]),
      ),
      isFollowed: (service, route, key) => this.followed.has(`${service} ${route} ${key}`),
      turn: (work) => this.turn(work),
    });
    this.journal.onOpened = () => resolver.wake();
    resolver.wake();
    this.resolver = resolver;
    return resolver;
  }

  /** An operation whose outcome its till learns to be unknown. */
  lose(key: string, settings: LostSettings = {}): Promise<void> {
    return this.send(key, { outcome: "unknown" }, settings);
  }

  /** An operation that ends so for its till. */
  async send(key: string, ending: OperationLogEnding, settings: LostSettings = {}): Promise<void> {
    const { service = "bank", route = "/sale", body, isFresh, over, of = service } = settings;
    const call = { ...operationOf(key, { service, route, body }), service: of };
    const entry = this.journal.begin(isFresh === undefined ? call : { ...call, isFresh }, routeTo(route, service), over);
    await entry.sent();
    await entry.ended(ending);
  }

  /** A till's question; the key is read from the body unless nothing is checked. */
  ask(route: string, body: object, service: ContractName = "bank", key?: string): Promise<Reply> | undefined {
    return this.handlers.get(service)?.({ ...operationOf("", { service, route, body }), key });
  }

  /** Seconds at which the terminal was asked. */
  get seconds(): readonly number[] {
    return this.asked.map(({ atMs }) => Math.round((atMs - this.#beganMs) / 100) / 10);
  }

  get unknown(): readonly (string | undefined)[] {
    return this.journal.unknown().map(({ key }) => key);
  }

  async #answer(call: Call): Promise<Reply> {
    const text = Buffer.concat(call.body).toString();
    const { data } = parseForm(Buffer.from(text));
    const json = data === undefined ? text : Buffer.from(unescapeValue(data), "base64").toString();
    const asked = { atMs: this.#time.nowMs, route: call.route, body: JSON.parse(json), call };
    this.asked.push(asked);
    const answer = await this.answers(asked);
    const { status, code } = answer as { readonly status?: string; readonly code?: number };
    return { payload: [Buffer.from(JSON.stringify(answer))], status, code, queueMs: 0, lineMs: 1 };
  }
}

export interface LostSettings {
  readonly service?: ContractName;
  readonly route?: string;
  readonly body?: object | undefined;
  /** Nothing was known under its key. */
  readonly isFresh?: boolean;
  /** The name of its service, where that isn't its contract's. */
  readonly of?: string;
  /** The device that it was sent over. */
  readonly over?: string;
}

function operationOf(key: string, { service = "bank", route = "/sale", body }: LostSettings): Call {
  const keyField = service === "fiscal" ? "documentExtID" : "pay_id";
  const json = JSON.stringify(body ?? { [keyField]: key, amount: 100 });
  const text = service === "fiscal" ? `data=${encodeURIComponent(Buffer.from(json).toString("base64"))}&sign=x` : json;
  const caller = new Presence();
  return { service, contract: service, route, body: [Buffer.from(text)], requestId: `r-${key}`, key, caller };
}

export async function benchOf(time: VirtualTime, answers: Answers, disk = new SimDisk()): Promise<Bench> {
  const told = new Told();
  const journal = await openJournal({ folder, bytes, onFailure: "relay", report: told, disk });
  return new Bench(time, journal, told, disk, answers);
}
